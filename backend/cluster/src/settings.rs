//! `[cluster]`: several hubs that share a database and a sample store, and exchange messages over NATS.

use settings::{Fault, table, value};
use std::path::PathBuf;

/// Maximum length of a name, bytes.
const MAX_NAME: usize = 32;

table! {
    /// `[cluster]`: how a hub finds the others.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ClusterSettings, checked by ClusterSettings::check {
        /// NATS servers that connect the hubs of a cluster, like `nats://nats.example.org:4222`, separated by commas
        nats: Option<String> = None, text(servers), required like "\"nats://nats.example.org:4222\"";
        /// Name of the cluster, the same for all of its hubs
        name: String = "main".into(), text(name);
        /// File with the credentials of a NATS user, as `nsc` writes it
        credentials_file: Option<PathBuf> = None, text(value::file), like "\"/etc/watchglass/nats.creds\"";
        /// File with the NATS token and nothing else
        token_file: Option<PathBuf> = None, text(value::file), like "\"/etc/watchglass/nats-token\"";
        /// PEM file of the certificate authorities to trust [default: the system's]
        ca: Option<PathBuf> = None, text(value::file), like "\"/etc/watchglass/nats-ca.pem\"";
    }
}

impl ClusterSettings {
    fn check(&self) -> Result<(), Fault> {
        match self.credentials_file.is_some() && self.token_file.is_some() {
            true => Err("credentials_file and token_file exclude each other; write one of them".into()),
            false => Ok(()),
        }
    }
}

/// Addresses of NATS servers, separated by commas, without secrets.
fn servers(text: &str) -> Result<String, String> {
    let all = text.split(',').map(str::trim);
    all.clone().try_for_each(address)?;
    Ok(all.collect::<Vec<_>>().join(","))
}

fn address(text: &str) -> Result<(), String> {
    let wrong = || "write it like nats://nats.example.org:4222, or tls:// for TLS alone".to_string();
    let rest = text.strip_prefix("nats://").or_else(|| text.strip_prefix("tls://")).ok_or_else(wrong)?;
    if rest.contains('@') {
        return Err("leave user and password out; name a file with credentials_file or token_file".into());
    }
    match !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b)) {
        true => Ok(()),
        false => Err(wrong()),
    }
}

fn name(text: &str) -> Result<String, String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    match (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(fits) {
        true => Ok(text.into()),
        false => Err(format!("write 1 to {MAX_NAME} letters, digits, - and _")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_a_secret_has_no_place_in_it() {
        let read = |text: &str| ClusterSettings::TABLE.read_text(text);
        let own = read("nats = \"nats://a:4222, tls://[::1]:4222\"\nname = \"gpu\"\ntoken_file = \"/t\"\nca = \"/c\"");
        let own = own.expect("a table");
        assert_eq!(own.nats.as_deref(), Some("nats://a:4222,tls://[::1]:4222"));
        assert_eq!(read(&ClusterSettings::TABLE.print(&own).to_string()).expect("a table"), own);
        assert_eq!(read("nats = \"nats://a\"").expect("a table").name, "main");
        for (wrong, said) in [
            ("name = \"a\"", "nats"),
            ("nats = \"nats://me:s3cret@a\"", "token_file"),
            ("nats = \"http://a\"", "nats://nats.example.org"),
            ("nats = \"nats://a,\"", "nats://nats.example.org"),
            ("nats = \"nats://a\"\nname = \"a.b\"", "name: write 1 to 32"),
            ("nats = \"nats://a\"\ntoken_file = \"/a\"\ncredentials_file = \"/b\"", "exclude each other"),
        ] {
            let error = read(wrong).expect_err(wrong);
            let error = error.to_string();
            assert!(error.contains(said) && !error.contains("s3cret"), "{wrong}: {error}");
        }
    }
}
