//! The list `[[hub]]`, and the flags for one hub. [`HubEntry`] is in `uplink`.

use super::option::OptionKind;
use super::{Config, ConfigError};
use settings::kinds::{Field, TableSlot, list};
use settings::{FileError, Inner, KeyKind, Takes};
use std::path::PathBuf;
use toml::de::DeValue;
use toml::{Spanned, Value};
use uplink::settings::{HubEntry, HubUrl, KeyFrom, MAX_LABELS, Pin, ProxyChoice, TOO_MANY_LABELS, label, machine_name};

/// The list `[[hub]]`; `--hub` gives the addresses.
pub struct Hubs<C: 'static>(Field<C, Vec<HubEntry>>);

/// Stores the hubs in this field.
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
    #[arg(long, value_name = "NAME", global = true, hide = true, value_parser = machine_name)]
    name: Option<String>,
    /// Label of this machine, such as rack=r12; may be repeated
    // A text as it is: `watchglass run` has a flag of the same name, and clap keeps one type for both.
    #[arg(long, value_name = "K=V", global = true, hide = true, value_parser = label_text)]
    label: Vec<String>,
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

/// A label of a machine, checked.
fn label_text(text: &str) -> Result<String, String> {
    label(text).map(|_| text.to_owned())
}

impl HubFlags {
    /// Takes the labels out; they then no longer belong to this machine.
    pub fn take_labels(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.label).iter().filter_map(|text| label(text).ok()).collect()
    }

    /// Drops the name, for a command whose `--name` is that of a run.
    pub fn forget_name(&mut self) {
        self.name = None;
    }

    /// Applies them over the hub that the configuration names.
    pub fn apply(mut self, config: &mut Config, env: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let given = self != HubFlags::default();
        let labels = self.take_labels();
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
        let named = || ["WATCHGLASS_NAME", "NODE_NAME"].into_iter().find_map(|v| machine_name(&env(v)?).ok());
        hub.name = self.name.or(hub.name.take()).or_else(named);
        for (key, value) in labels {
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
