//! `[database]`: where a hub keeps its records, when it is not a file of its data folder.

use serde::Deserialize;
use settings::FileTable;
use std::path::PathBuf;
use toml::Table;

/// `[database]`: the PostgreSQL of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawDatabase")]
pub struct DatabaseSettings {
    /// Its address, without a password.
    pub url: Option<String>,
    /// The file with the password.
    pub password_file: Option<PathBuf>,
    /// The file with the key that secrets in it are sealed under; none: `secret.key` in the data folder.
    pub key_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDatabase {
    url: Option<String>,
    password_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl TryFrom<RawDatabase> for DatabaseSettings {
    type Error = String;

    fn try_from(raw: RawDatabase) -> Result<Self, String> {
        if raw.url.is_none() && raw.password_file.is_some() {
            return Err("database.url: write the address of the database that the password belongs to".into());
        }
        if let Some(url) = &raw.url {
            let place = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
            let place = place.ok_or(
                "database.url: write it like postgres://watchglass@db.example.org/watchglass; without it the hub \
                uses the file hub.db",
            )?;
            let user = place.split_once('?').map_or(place, |(place, _)| place).rsplit_once('@').map(|(user, _)| user);
            if user.is_some_and(|user| user.contains(':')) || place.contains("password=") {
                return Err("database.url: leave the password out; name a file that holds it with password_file".into());
            }
        }
        Ok(DatabaseSettings { url: raw.url, password_file: raw.password_file, key_file: raw.key_file })
    }
}

impl FileTable for DatabaseSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        (
            "url",
            "A database of PostgreSQL 15 or newer, like `postgres://watchglass@db.example.org/watchglass`; without it \
             the file `hub.db` in the data folder is taken",
        ),
        ("password_file", "A file that holds the password, and nothing else"),
        (
            "key_file",
            "The file with the key under which addresses and secrets of channels are sealed, the same for all hubs of \
             one database; `secret.key` in the data folder unless it is written",
        ),
    ];

    fn print(&self) -> Table {
        let files = [("password_file", &self.password_file), ("key_file", &self.key_file)];
        let files = files
            .into_iter()
            .filter_map(|(key, file)| Some((key.to_string(), file.as_ref()?.display().to_string().into())));
        let url = self.url.as_ref().map(|url| ("url".to_string(), url.as_str().into()));
        url.into_iter().chain(files).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_a_password_has_no_place_in_it() {
        let read = |text: &str| toml::from_str::<DatabaseSettings>(text);
        assert_eq!(read("").expect("nothing"), DatabaseSettings::default());
        let own = read("url = \"postgres://me@db/hub\"\npassword_file = \"/run/secrets/db\"\nkey_file = \"/k\"")
            .expect("a table");
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        for (wrong, said) in [
            ("url = \"postgres://me:s3cret@db/hub\"", "password_file"),
            ("url = \"postgres://me@db/hub?password=s3cret\"", "password_file"),
            ("url = \"mysql://s3cret@db/hub\"", "postgres://watchglass@"),
            ("password_file = \"/s3cret\"", "database.url"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.message().contains(said) && !error.message().contains("s3cret"), "{wrong}: {error}");
        }
    }
}
