//! `[cluster]`: several hubs that share a database and a sample store, and know of one another over NATS.

use super::{Config, ConfigError};
use serde::Deserialize;
use settings::FileTable;
use std::path::PathBuf;
use toml::Table;

/// The name of a cluster that has none of its own.
const NAME: &str = "main";
/// The longest name, bytes.
const MAX_NAME: usize = 32;

/// `[cluster]`: how a hub finds the others.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawCluster")]
pub struct ClusterSettings {
    /// Addresses of servers of NATS, separated by commas; none: this hub is alone.
    pub nats: Option<String>,
    /// What the subjects begin with, so that several clusters can share one NATS.
    pub name: String,
    /// The file with the credentials of a user of NATS.
    pub credentials_file: Option<PathBuf>,
    /// The file with the token of NATS.
    pub token_file: Option<PathBuf>,
    /// Certificates in PEM of the authorities to trust in place of the system's.
    pub ca: Option<PathBuf>,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        ClusterSettings { nats: None, name: NAME.into(), credentials_file: None, token_file: None, ca: None }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCluster {
    nats: String,
    name: Option<String>,
    credentials_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    ca: Option<PathBuf>,
}

/// Whether this is the address of one server of NATS, without a secret in it.
fn address(text: &str) -> Result<(), String> {
    let wrong = || "cluster.nats: write it like nats://nats.example.org:4222, or tls:// for TLS alone".to_string();
    let rest = text.strip_prefix("nats://").or_else(|| text.strip_prefix("tls://")).ok_or_else(wrong)?;
    if rest.contains('@') {
        return Err("cluster.nats: leave user and password out; name a file with credentials_file or token_file".into());
    }
    match !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b)) {
        true => Ok(()),
        false => Err(wrong()),
    }
}

impl TryFrom<RawCluster> for ClusterSettings {
    type Error = String;

    fn try_from(raw: RawCluster) -> Result<Self, String> {
        raw.nats.split(',').try_for_each(|one| address(one.trim()))?;
        let name = raw.name.unwrap_or_else(|| NAME.into());
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
            return Err(format!("cluster.name: write 1 to {MAX_NAME} letters, digits, - and _"));
        }
        if raw.credentials_file.is_some() && raw.token_file.is_some() {
            return Err("cluster: credentials_file and token_file exclude each other; write one of them".into());
        }
        let nats = raw.nats.split(',').map(str::trim).collect::<Vec<_>>().join(",");
        let (credentials_file, token_file) = (raw.credentials_file, raw.token_file);
        Ok(ClusterSettings { nats: Some(nats), name, credentials_file, token_file, ca: raw.ca })
    }
}

impl FileTable for ClusterSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        (
            "nats",
            "Servers of NATS over which the hubs of one cluster find one another, like `nats://nats.example.org:4222`, \
             separated by commas; without it this hub is alone",
        ),
        ("name", "What this cluster is called there, the same for all of its hubs; `main` unless it is written"),
        ("credentials_file", "A file with the credentials of a user of NATS, as `nsc` writes it"),
        ("token_file", "A file that holds the token of NATS, and nothing else"),
        ("ca", "Certificates in PEM of the authorities to trust in place of the system's"),
    ];

    fn print(&self) -> Table {
        let text = |key: &str, value: &str| (key.to_string(), value.into());
        let files = [("credentials_file", &self.credentials_file), ("token_file", &self.token_file), ("ca", &self.ca)];
        let files = files.into_iter().filter_map(|(key, file)| Some(text(key, &file.as_ref()?.display().to_string())));
        let own = self.nats.iter().flat_map(|nats| [text("nats", nats), text("name", &self.name)]);
        own.chain(files).collect()
    }
}

/// Refuses a cluster whose hubs could not know the same.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    if config.cluster.nats.is_none() {
        return Ok(());
    }
    let wrong = |sentence: &str| Err(ConfigError::new(sentence));
    if config.database.url.is_none() {
        return wrong(
            "[cluster]: the hubs of a cluster share one database; write [database] url = \"postgres://...\", the \
            same for all",
        );
    }
    if config.remote_write.as_ref().is_none_or(|remote| remote.read_url.is_none()) {
        return wrong(
            "[cluster]: the hubs of a cluster share one sample store; write [remote_write] with url and read_url, \
            the same for all",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_a_secret_has_no_place_in_it() {
        let read = |text: &str| toml::from_str::<ClusterSettings>(text);
        let own = read("nats = \"nats://a:4222, tls://[::1]:4222\"\nname = \"gpu\"\ntoken_file = \"/t\"\nca = \"/c\"");
        let own = own.expect("a table");
        assert_eq!(own.nats.as_deref(), Some("nats://a:4222,tls://[::1]:4222"));
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        assert_eq!(read("nats = \"nats://a\"").expect("a table").name, "main");
        for (wrong, said) in [
            ("name = \"a\"", "nats"),
            ("nats = \"nats://me:s3cret@a\"", "token_file"),
            ("nats = \"http://a\"", "nats://nats.example.org"),
            ("nats = \"nats://a,\"", "nats://nats.example.org"),
            ("nats = \"nats://a\"\nname = \"a.b\"", "cluster.name"),
            ("nats = \"nats://a\"\ntoken_file = \"/a\"\ncredentials_file = \"/b\"", "choose one"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.message().contains(said) && !error.message().contains("s3cret"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_cluster_has_one_database_and_one_store() {
        let mut config = Config::default();
        let said = |config: &Config| check(config).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said(&config), "");
        config.cluster.nats = Some("nats://a".into());
        assert!(said(&config).contains("[database]"));
        config.database.url = Some("postgres://a/b".into());
        assert!(said(&config).contains("[remote_write]"));
        config.remote_write = toml::from_str("url = \"http://a/w\"").ok();
        assert!(said(&config).contains("read_url"));
        config.remote_write = toml::from_str("url = \"http://a/w\"\nread_url = \"http://a\"").ok();
        assert_eq!(said(&config), "");
    }
}
