//! The line by which a machine joins a hub.

use crate::config::PublicUrl;
use shared::secret::Secret;
use uplink::settings::Pin;

/// The way for machines to reach a hub.
pub struct JoinRoad<'a> {
    /// Its address.
    pub public: &'a PublicUrl,
    /// Other machines reach the hub without TLS.
    pub unencrypted: bool,
    /// Pin of the hub's certificate, if no certificate authority has issued it.
    pub pin: Option<Pin>,
}

impl JoinRoad<'_> {
    /// The command line that joins a machine. Arguments are visible to every user of the machine, so a key without an
    /// expiry is read from a file.
    pub fn line(&self, key: &Secret, ends: bool) -> String {
        let key = if ends { format!("--key {}", key.reveal()) } else { "--key-file FILE".into() };
        let plain = if self.unencrypted { " --plain-http" } else { "" };
        let pin = self.pin.map(|pin| format!(" --pin {pin}")).unwrap_or_default();
        format!("watchglass agent --hub {} {key}{plain}{pin}", self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Command, parse};

    #[test]
    fn a_key_without_an_end_is_in_no_line() {
        let args = ["watchglass", "hub", "--public-url", "https://watch.example.org"].map(std::ffi::OsString::from);
        let parsed = parse(args, &|_| None, &|_| Err(std::io::ErrorKind::NotFound.into())).expect("a hub");
        let Command::Hub(config) = parsed else { panic!("a hub") };
        let (public, key) = (config.public_url.expect("given"), Secret::new("wg_j_secret"));
        let plain = JoinRoad { public: &public, unencrypted: false, pin: None };
        assert_eq!(plain.line(&key, true), "watchglass agent --hub https://watch.example.org/ --key wg_j_secret");
        assert!(!plain.line(&key, false).contains("wg_j_secret"));
        let pinned = JoinRoad { pin: Some(Pin([0; 32])), ..plain };
        assert!(pinned.line(&key, true).ends_with(" --pin sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
        let unencrypted = JoinRoad { unencrypted: true, pin: None, ..pinned };
        assert!(unencrypted.line(&key, true).ends_with(" --plain-http"));
    }
}
