//! Requirements of `[cluster]` on other tables.

use super::{Config, ConfigError};

/// Refuses a cluster whose replicas could not share their state.
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
    use crate::config::RemoteWrite;

    #[test]
    fn a_cluster_has_one_database_and_one_store() {
        let mut config = Config::default();
        let said = |config: &Config| check(config).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said(&config), "");
        config.cluster.nats = Some("nats://a".into());
        assert!(said(&config).contains("[database]"));
        config.database.url = Some("postgres://a/b".into());
        assert!(said(&config).contains("[remote_write]"));
        config.remote_write = RemoteWrite::TABLE.read_text("url = \"http://a/w\"").ok();
        assert!(said(&config).contains("read_url"));
        config.remote_write = RemoteWrite::TABLE.read_text("url = \"http://a/w\"\nread_url = \"http://a\"").ok();
        assert_eq!(said(&config), "");
    }
}
