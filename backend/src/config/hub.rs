//! `[[hub]]` and the flags that say the same of one hub: where an agent sends what it measures, and by which road. Keys and
//! passwords of proxies are secret: no error and no print-out repeats them.

use super::hub_url::HubUrl;
use super::option::OptionKind;
use super::pin::Pin;
use super::proxy::ProxyChoice;
use super::{Config, ConfigError};
use settings::kinds::{Field, TableSlot, list, texts};
use settings::{Fault, FileError, Inner, KeyKind, Takes, Written, table};
use std::fmt;
use std::path::PathBuf;
use toml::de::DeValue;
use toml::{Spanned, Value};

/// Labels of one machine.
const MAX_LABELS: usize = 32;
const TOO_MANY_LABELS: &str = "a machine has at most 32 labels";
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

impl KeyFrom {
    fn read(value: Value) -> Result<Option<Self>, String> {
        settings::value::file(&String::text(value)?).map(|file| Some(KeyFrom::File(file)))
    }

    /// A key itself stands in no file of ours.
    fn show(key: &Option<Self>) -> Option<Value> {
        if let Some(KeyFrom::File(file)) = key { Some(file.show()) } else { None }
    }
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

table! {
    /// A hub that this machine sends what it measures to.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HubEntry, checked by HubEntry::check_labels {
        /// Address of the hub, or the addresses of a cluster; if one does not respond, the next is tried
        urls as "url": Vec<HubUrl> = Vec::new(), own(read_urls, show_urls), required like "\"https://watch.example.org\"";
        /// File with the key of the join line [default: the identity in the data folder]
        key as "key_file": Option<KeyFrom> = None, own(KeyFrom::read, KeyFrom::show), like "\"/etc/watchglass/key\"";
        /// Name of this machine at the hub [default: its host name]
        name: Option<String> = None, text(name), like "\"node-7\"";
        /// Labels of this machine
        labels: Vec<(String, String)> = Vec::new(), map(check_label), like "{ rack = \"r12\" }";
        /// PEM file of the certificate authorities to trust [default: the system's]
        ca: Option<PathBuf> = None, text(settings::value::file), like "\"/etc/watchglass/ca.pem\"";
        /// Public key to trust, as in the join line
        pin: Option<Pin> = None, text(Pin::parse), like "\"sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"";
        /// Proxy to use, or `none` [default: that of the environment]
        proxy: ProxyChoice = ProxyChoice::Environment, own(ProxyChoice::read, ProxyChoice::show),
            like "\"http://proxy.example.org:3128\"";
        /// Allow unencrypted http:// to other machines
        plain_http: bool = false, text(settings::value::switch);
    }
}

impl HubEntry {
    fn check_labels(&self) -> Result<(), Fault> {
        match self.labels.len() > MAX_LABELS {
            true => Err(Fault::of("labels", TOO_MANY_LABELS)),
            false => Ok(()),
        }
    }

    /// The hub of these addresses, and nothing more said of it.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of(text: &str) -> Result<Self, String> {
        urls(text).map(|urls| HubEntry { urls, ..HubEntry::default() })
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

fn check_label(key: &str, value: &str) -> Result<(), String> {
    labeled(key, value).map(drop)
}

fn read_urls(value: Value) -> Result<Vec<HubUrl>, String> {
    match texts::<String>(value)?.as_slice() {
        [] => Err("it has no address; name a hub".into()),
        [one] => urls(one),
        all => all.iter().map(|url| HubUrl::parse(url)).collect(),
    }
}

#[allow(clippy::ptr_arg, reason = "a kind of a key takes the field as it is")]
fn show_urls(urls: &Vec<HubUrl>) -> Option<Value> {
    let all: Vec<Value> = urls.iter().map(|url| url.to_string().into()).collect();
    Some(if let [url] = &all[..] { url.clone() } else { Value::Array(all) })
}

/// The list `[[hub]]`, of which `--hub` says the addresses.
pub struct Hubs<C: 'static>(Field<C, Vec<HubEntry>>);

/// Hubs that are kept there.
pub const fn hub_tables<C>(field: Field<C, Vec<HubEntry>>) -> Hubs<C> {
    Hubs(field)
}

impl<C> KeyKind<C> for Hubs<C> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        (self.0.at)(at).read_tables(&HubEntry::TABLE, value)
    }

    fn show(&self, of: &C) -> Option<Value> {
        (self.0.get)(of).show_tables(&HubEntry::TABLE)
    }

    fn inner(&self) -> Option<Inner> {
        Some(Inner { is_list: true, keys: HubEntry::TABLE.texts() })
    }
}

impl<C> OptionKind<C> for Hubs<C> {
    fn takes(&self) -> Takes {
        Takes::Many
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if text.is_empty() { Ok(()) } else { HubUrl::parse(text).map(drop) }
    }

    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String> {
        let urls = list(HubUrl::parse, texts)?;
        let all = if urls.is_empty() { Vec::new() } else { vec![HubEntry { urls, ..HubEntry::default() }] };
        *(self.0.at)(at) = all;
        Ok(())
    }
}

/// Flags that say more of the one hub that is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = HUB)]
pub struct HubFlags {
    /// Key of the join line, or - for standard input
    #[arg(long, value_name = "KEY", global = true, hide = true)]
    key: Option<String>,
    /// File with the key of a machine or program; also WATCHGLASS_KEY_FILE
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
        if hub.labels.len() > MAX_LABELS {
            return Err(wrong(TOO_MANY_LABELS.into()));
        }
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
        HubEntry::TABLE.read_text(text).map_err(|error| error.to_string())
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
        let shown = format!("{hub:?} {}", HubEntry::TABLE.print(&hub));
        assert!(shown.contains("node-7") && !shown.contains("s3cret"), "{shown}");
        for (text, why) in [
            ("url = []", "has no address"),
            ("url = \"https://a\"\nname = \"a b\"", "is not a valid name"),
            ("url = \"https://a\"\nlabels = { Rack = \"r\" }", "lower-case"),
            ("url = \"https://a\"\nurls = 1", "unknown key `urls`; did you mean url?"),
            ("url = \"https://a\"\nproxy = \"socks5://a\"", "http://"),
        ] {
            let error = entry(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(format!("{:?}", KeyFrom::Given("wg_j_s3cret".into())), "Given(***)");
    }
}
