//! `[[hub]]` and the flags that say the same of one hub: where an agent sends what it measures, and by which road. Keys and
//! passwords of proxies are secret: no error and no print-out repeats them.

use super::file_error::{FileError, deserialized};
use super::hub_url::HubUrl;
use super::option::{Field, OptionKind, list};
use super::pin::Pin;
use super::proxy::ProxyChoice;
use super::written::Takes;
use super::{Config, ConfigError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use toml::de::DeValue;
use toml::{Spanned, Table, Value};

/// Labels of one machine.
const MAX_LABELS: usize = 32;
/// The longest key and value of a label, in bytes.
const MAX_LABEL_KEY: usize = 63;
const MAX_LABEL_VALUE: usize = 256;
/// The longest name of a machine, in bytes.
const MAX_NAME: usize = 63;

/// The key of a join line, or the place where it is. Its debug form tells no key.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyFrom {
    /// The key itself.
    Given(String),
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl fmt::Debug for KeyFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFrom::Given(_) => f.write_str("Given(***)"),
            KeyFrom::Stdin => f.write_str("Stdin"),
            KeyFrom::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

/// A hub that this machine sends what it measures to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Raw")]
pub struct HubEntry {
    /// Its addresses, at least one; the next is tried where one does not answer.
    pub urls: Vec<HubUrl>,
    /// Where the key of the join line is; none: what the data folder knows.
    pub key: Option<KeyFrom>,
    /// What the machine is to be called there; none: its host name.
    pub name: Option<String>,
    /// Labels, by key.
    pub labels: Vec<(String, String)>,
    /// Certificates in PEM of the authorities to trust in place of the system's.
    pub ca: Option<PathBuf>,
    /// The one public key to trust, and nothing else.
    pub pin: Option<Pin>,
    /// The proxy to take.
    pub proxy: ProxyChoice,
    /// Whether the bytes may travel unencrypted to other machines.
    pub plain_http: bool,
}

impl HubEntry {
    pub(super) fn new(urls: Vec<HubUrl>) -> Self {
        HubEntry {
            urls,
            key: None,
            name: None,
            labels: Vec::new(),
            ca: None,
            pin: None,
            proxy: ProxyChoice::Environment,
            plain_http: false,
        }
    }

    /// The hub of these addresses, and nothing more said of it.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of(text: &str) -> Result<Self, String> {
        urls(text).map(HubEntry::new)
    }

    /// What it is called in files and sentences: its first address.
    pub fn url(&self) -> &HubUrl {
        &self.urls[0]
    }

    /// Whether these can stand together; `plain` allows http:// for all hubs.
    fn check(&self, plain: bool) -> Result<(), String> {
        let unencrypted = |url: &&HubUrl| !url.tls && !url.is_local();
        if let Some(url) = self.urls.iter().find(unencrypted).filter(|_| !self.plain_http && !plain) {
            return Err(format!(
                "{url} would send keys and samples unencrypted; write https://, or --plain-http in a network that \
                you trust"
            ));
        }
        if self.ca.is_some() && self.pin.is_some() {
            return Err("--ca and --pin exclude each other; write one of them".into());
        }
        if self.pin.is_some() && self.urls.iter().any(|url| !url.tls) {
            return Err("--pin needs a certificate, and http:// has none; write https://".into());
        }
        Ok(())
    }
}

/// The address of one hub, or with commas those of a cluster.
fn urls(text: &str) -> Result<Vec<HubUrl>, String> {
    text.split(',').map(|url| HubUrl::parse(url.trim())).collect()
}

/// The name of a machine on a hub.
fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    match !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(fits) {
        true => Ok(text.into()),
        false => Err(format!("\"{text}\" is not a valid name; write 1 to {MAX_NAME} letters, digits, dots, - and _")),
    }
}

/// `KEY=VALUE`.
fn label(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("\"{text}\" is not a label; write it like rack=r12");
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    labeled(key, value)
}

fn labeled(key: &str, value: &str) -> Result<(String, String), String> {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._/-".contains(&b);
    if key.is_empty() || key.len() > MAX_LABEL_KEY || !key.bytes().all(letter) {
        return Err(format!(
            "the label key {key:?} is invalid; write 1 to {MAX_LABEL_KEY} lower-case letters, digits, dots, _, / and \
            -"
        ));
    }
    if value.len() > MAX_LABEL_VALUE || value.chars().any(char::is_control) {
        return Err(format!(
            "the value of the label {key} is invalid; write one line of at most {MAX_LABEL_VALUE} bytes"
        ));
    }
    Ok((key.into(), value.into()))
}

fn few(labels: Vec<(String, String)>) -> Result<Vec<(String, String)>, String> {
    match labels.len() > MAX_LABELS {
        true => Err(format!("a machine has at most {MAX_LABELS} labels")),
        false => Ok(labels),
    }
}

/// The list `[[hub]]`, of which `--hub` says the addresses.
pub struct Hubs<C: 'static> {
    /// Where it is kept.
    pub field: Field<C, Vec<HubEntry>>,
}

impl<C> OptionKind<C> for Hubs<C> {
    fn takes(&self) -> Takes {
        Takes::Many
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("url", "Its address, or a list of those of one cluster"),
            ("key_file", "The file with the key of the join line"),
            ("name", "What this machine is to be called there, if not by its host name"),
            ("labels", "A table of labels of this machine"),
            ("ca", "Certificates in PEM of the authorities to trust in place of the system's"),
            ("pin", "The one public key to trust, as sha256/BASE64"),
            ("proxy", "The proxy to take, or none; else that of the environment"),
            ("plain_http", "Whether http:// may lead to other machines, unencrypted"),
        ]
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if text.is_empty() { Ok(()) } else { HubUrl::parse(text).map(drop) }
    }

    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String> {
        let all = list(HubUrl::parse, texts)?;
        *(self.field.at)(at) = if all.is_empty() { Vec::new() } else { vec![HubEntry::new(all)] };
        Ok(())
    }

    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        *(self.field.at)(at) = deserialized(value)?;
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        let hubs = (self.field.get)(of);
        (!hubs.is_empty()).then(|| Value::Array(hubs.iter().map(print).collect()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    url: Urls,
    key_file: Option<PathBuf>,
    name: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    ca: Option<PathBuf>,
    pin: Option<String>,
    proxy: Option<String>,
    #[serde(default)]
    plain_http: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Urls {
    One(String),
    All(Vec<String>),
}

impl TryFrom<Raw> for HubEntry {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let urls = match raw.url {
            Urls::One(url) => urls(&url)?,
            Urls::All(all) if all.is_empty() => return Err("`url` has no address; name a hub".into()),
            Urls::All(all) => all.iter().map(|url| HubUrl::parse(url)).collect::<Result<_, _>>()?,
        };
        let labels = raw.labels.iter().map(|(key, value)| labeled(key, value)).collect::<Result<_, _>>()?;
        Ok(HubEntry {
            urls,
            key: raw.key_file.map(KeyFrom::File),
            name: raw.name.as_deref().map(name).transpose()?,
            labels: few(labels)?,
            ca: raw.ca,
            pin: raw.pin.as_deref().map(Pin::parse).transpose()?,
            proxy: raw.proxy.as_deref().map_or(Ok(ProxyChoice::Environment), ProxyChoice::parse)?,
            plain_http: raw.plain_http,
        })
    }
}

/// An entry as it stands in a file, secrets as `***`.
fn print(hub: &HubEntry) -> Value {
    let mut own = Table::new();
    let mut say = |key: &str, value: Option<Value>| drop(value.map(|value| own.insert(key.into(), value)));
    let urls: Vec<Value> = hub.urls.iter().map(|url| url.to_string().into()).collect();
    say("url", Some(if let [url] = &urls[..] { url.clone() } else { Value::Array(urls) }));
    let path = |path: &PathBuf| Value::from(path.to_string_lossy().into_owned());
    if let Some(KeyFrom::File(file)) = &hub.key {
        say("key_file", Some(path(file)));
    }
    say("name", hub.name.clone().map(Value::from));
    let labels: Table = hub.labels.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    say("labels", (!labels.is_empty()).then_some(Value::Table(labels)));
    say("ca", hub.ca.as_ref().map(path));
    say("pin", hub.pin.map(|pin| pin.to_string().into()));
    say("proxy", hub.proxy.shown().map(Value::from));
    say("plain_http", hub.plain_http.then_some(Value::Boolean(true)));
    Value::Table(own)
}

/// Flags that say more of the one hub that is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = HUB)]
pub struct HubFlags {
    /// Key of the join line, or - for standard input
    #[arg(long, value_name = "KEY", global = true, hide = true)]
    key: Option<String>,
    /// File with the key of the join line; also WATCHGLASS_KEY_FILE
    #[arg(long, value_name = "FILE", global = true, hide = true, conflicts_with = "key")]
    key_file: Option<PathBuf>,
    /// Name of this machine on the hub [default: its host name]
    #[arg(long, value_name = "NAME", global = true, hide = true, value_parser = name)]
    name: Option<String>,
    /// Label of this machine, such as rack=r12; may be repeated
    #[arg(long, value_name = "K=V", global = true, hide = true, value_parser = label)]
    label: Vec<(String, String)>,
    /// PEM file of CA certificates to trust instead of the system's
    #[arg(long, value_name = "FILE", global = true, hide = true)]
    ca: Option<PathBuf>,
    /// Pinned public key of the hub's certificate, from the join line
    #[arg(long, value_name = "PIN", global = true, hide = true, value_parser = Pin::parse)]
    pin: Option<Pin>,
    /// Proxy such as http://proxy:3128, or none [default: from the environment]
    #[arg(long, value_name = "URL|none", global = true, hide = true, value_parser = ProxyChoice::parse)]
    proxy: Option<ProxyChoice>,
    /// Join as a new machine instead of the one in the data folder
    #[arg(long, global = true, hide = true)]
    pub new_identity: bool,
}

/// The heading of these flags in the help.
pub const HUB: &str = "Hub";

/// The ids of these flags.
pub const HUB_FLAGS: &[&str] = &["key", "key_file", "name", "label", "ca", "pin", "proxy", "new_identity"];

impl HubFlags {
    /// The labels alone, which then are no longer this machine's.
    pub fn take_labels(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.label)
    }

    /// Puts them over the hub that the configuration names.
    pub fn apply(self, config: &mut Config, env: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let given = self != HubFlags::default();
        config.new_identity = self.new_identity;
        let plain = config.plain_http;
        let hub = match &mut config.hubs[..] {
            [] if given => return Err(ConfigError::new("name the hub with --hub URL")),
            [] => return Ok(()),
            [hub] => hub,
            _ if given => {
                return Err(ConfigError::new(
                    "the configuration file names several hubs; write this option at the hub that it belongs to",
                ));
            }
            hubs => return hubs.iter().try_for_each(|hub| hub.check(plain).map_err(wrong)),
        };
        if let Some(key) = self.key {
            hub.key = Some(if key == "-" { KeyFrom::Stdin } else { KeyFrom::Given(key) });
        }
        if let Some(file) = self.key_file {
            hub.key = Some(KeyFrom::File(file));
        }
        if hub.key.is_none() {
            let file = env("WATCHGLASS_KEY_FILE").filter(|file| !file.is_empty());
            hub.key = file.map(|file| KeyFrom::File(file.into()));
        }
        let named = || ["WATCHGLASS_NAME", "NODE_NAME"].into_iter().find_map(|v| name(&env(v)?).ok());
        hub.name = self.name.or(hub.name.take()).or_else(named);
        for (key, value) in self.label {
            hub.labels.retain(|(known, _)| *known != key);
            hub.labels.push((key, value));
        }
        hub.labels = few(std::mem::take(&mut hub.labels)).map_err(wrong)?;
        hub.ca = self.ca.or(hub.ca.take());
        hub.pin = self.pin.or(hub.pin);
        if let Some(proxy) = self.proxy {
            hub.proxy = proxy;
        }
        hub.check(plain).map_err(wrong)
    }
}

fn wrong(message: String) -> ConfigError {
    ConfigError::new(format!("hub: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Result<HubEntry, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_string())
    }

    #[test]
    fn an_entry_says_all_and_is_printed_without_secrets() {
        let pin = Pin([7; 32]);
        let all = format!(
            "url = [\"https://a\", \"https://b\"]\nkey_file = \"/k\"\nname = \"node-7\"\nlabels = {{ rack = \"r1\" }}\n\
             pin = \"{pin}\"\nproxy = \"http://me:s3cret@proxy:3128\""
        );
        let hub = entry(&all).expect("all keys");
        assert_eq!(hub.urls.len(), 2);
        let shown = format!("{hub:?} {}", print(&hub));
        assert!(shown.contains("node-7") && !shown.contains("s3cret"), "{shown}");
        for (text, why) in [
            ("url = []", "has no address"),
            ("url = \"https://a\"\nname = \"a b\"", "is not a valid name"),
            ("url = \"https://a\"\nlabels = { Rack = \"r\" }", "lower-case"),
            ("url = \"https://a\"\nurls = 1", "unknown field `urls`"),
            ("url = \"https://a\"\nproxy = \"socks5://a\"", "http://"),
        ] {
            let error = entry(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(format!("{:?}", KeyFrom::Given("wg_j_s3cret".into())), "Given(***)");
    }
}
