//! One report that can be passed on: version, facts, checks, configuration, own health, the last lines of the log.
//! Names of machines and users, addresses and secrets are redacted; see [`Scrub`].

use super::{Examination, Scrub, report};
use crate::config::{self, Config};
use parking_lot::Mutex;
use shared::unit::quantity;
use std::collections::VecDeque;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of the log's end, bytes.
const MAX_LOG_BYTES: usize = 64 << 10;

/// Contents of the report.
pub struct Bundle<'a> {
    /// Results of the checks.
    pub examination: &'a Examination,
    /// Name and value of constant facts about the machine.
    pub facts: &'a [(String, String)],
    /// The configuration in force, as TOML, secrets as `***`.
    pub configuration: &'a str,
    /// The log so far.
    pub log: &'a str,
}

impl Bundle<'_> {
    /// The report, without anything that identifies a person or place.
    pub fn write(&self, scrub: &Scrub) -> String {
        let mut text = String::from("Watchglass report. Names, addresses and secrets have been removed.\n\n");
        text.push_str(&report(self.examination));
        text.push_str("\n== Machine ==\n\n");
        for (word, value) in self.facts {
            let _ = writeln!(text, "{word}: {value}");
        }
        text.push_str("\n== Checks ==\n\n");
        for check in &self.examination.checks {
            let line = serde_json::to_string(check).unwrap_or_default();
            let _ = writeln!(text, "{line}");
        }
        text.push_str("\n== Own health ==\n\n");
        for (tag, value, unit) in &self.examination.health {
            let (number, symbol) = quantity(*value, *unit);
            let _ = writeln!(text, "{tag}: {number} {symbol}");
        }
        text.push_str("\n== Effective configuration ==\n");
        text.push_str(self.configuration.trim_end());
        text.push_str("\n\n== Log ==\n\n");
        text.push_str(if self.log.is_empty() { "nothing was logged\n" } else { self.log });
        scrub.text(&text)
    }
}

/// Names of this machine, its user and of all hosts and users in the configuration. `env` is the environment.
pub fn names(config: &Config, env: &dyn Fn(&str) -> Option<String>) -> Scrub {
    let of_url =
        |url: &String| url.split("://").nth(1).and_then(config::split_authority).map(|(name, _)| name.to_string());
    let urls = config.origins.iter().chain(&config.embed).filter_map(of_url);
    let hosts: Vec<String> = [collectors::host_name(), env("HOSTNAME"), env("COMPUTERNAME")]
        .into_iter()
        .flatten()
        .chain(config.hosts.iter().cloned())
        .chain(urls)
        .collect();
    let home = env("HOME").and_then(|home| Some(Path::new(&home).file_name()?.to_string_lossy().into_owned()));
    let users = ["USER", "LOGNAME", "SUDO_USER", "USERNAME"].map(env);
    let users: Vec<String> = users.into_iter().chain([home]).flatten().collect();
    Scrub::new(hosts.iter().map(String::as_str), users.iter().map(String::as_str))
}

/// The end of a log, in memory. It is a writer for `tracing`.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// The stored text, from the first whole line on.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if bytes.len() < MAX_LOG_BYTES {
            text
        } else {
            text.split_once('\n').map(|(_, rest)| rest.into()).unwrap_or_default()
        }
    }
}

impl std::io::Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut held = self.0.lock();
        held.extend(bytes);
        let over = held.len().saturating_sub(MAX_LOG_BYTES);
        held.drain(..over);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
