//! `[[hub]]`: the hubs that receive an agent's samples, and the connections to them. Keys and proxy passwords are
//! secret: no error and no output contains them.

use super::{HubUrl, Pin, ProxyChoice};
use settings::kinds::texts;
use settings::{Fault, Written, table};
use std::fmt;
use std::path::PathBuf;
use toml::Value;

/// Maximum number of labels of one machine.
pub const MAX_LABELS: usize = 32;
/// Error text for more labels.
pub const TOO_MANY_LABELS: &str = "a machine has at most 32 labels";
/// Maximum length of a label's key and value, bytes.
const MAX_LABEL_KEY: usize = 63;
const MAX_LABEL_VALUE: usize = 256;
/// Maximum length of a machine's name, bytes.
const MAX_NAME: usize = 63;

/// The key of a join line, or its location. Its debug form omits the key.
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

    /// A key itself is never written to a file of ours.
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
        name: Option<String> = None, text(machine_name), like "\"node-7\"";
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
            true => Err(Fault::new("labels", TOO_MANY_LABELS)),
            false => Ok(()),
        }
    }

    /// The hub of these addresses, with default settings.
    ///
    /// # Errors
    /// The problem with the addresses.
    pub fn parse(text: &str) -> Result<Self, String> {
        urls(text).map(|urls| HubEntry { urls, ..HubEntry::default() })
    }

    /// Its name in files and messages: its first address.
    pub fn url(&self) -> &HubUrl {
        &self.urls[0]
    }

    /// Checks that the settings are compatible; `plain` allows http:// for all hubs.
    ///
    /// # Errors
    /// The incompatible settings: a sentence.
    pub fn check(&self, plain: bool) -> Result<(), String> {
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

/// The address of one hub, or those of a cluster, separated by commas.
fn urls(text: &str) -> Result<Vec<HubUrl>, String> {
    text.split(',').map(|url| HubUrl::parse(url.trim())).collect()
}

/// The name of a machine on a hub.
///
/// # Errors
/// The name is invalid: the expected form.
pub fn machine_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    match !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(fits) {
        true => Ok(text.into()),
        false => Err(format!("\"{text}\" is not a valid name; write 1 to {MAX_NAME} letters, digits, dots, - and _")),
    }
}

/// `KEY=VALUE`, a label of a machine.
///
/// # Errors
/// The label is invalid: the expected form.
pub fn label(text: &str) -> Result<(String, String), String> {
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
