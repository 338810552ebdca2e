//! `[database]`: the database of a hub, if it is not a file of its data folder.

use settings::{Fault, table, value};
use std::path::PathBuf;

table! {
    /// `[database]`: the PostgreSQL of a hub.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DatabaseSettings, checked by DatabaseSettings::check {
        /// Address of a PostgreSQL database, version 15 or newer [default: the file `hub.db` in the data folder]
        url: Option<String> = None, text(url), like "\"postgres://watchglass@db.example.org/watchglass\"";
        /// File with the password and nothing else
        password_file: Option<PathBuf> = None, text(value::file), like "\"/etc/watchglass/database-password\"";
        /// File with the key that encrypts addresses and secrets of channels, the same for all hubs of one database
        /// [default: `secret.key` in the data folder]
        key_file: Option<PathBuf> = None, text(value::file), like "\"/etc/watchglass/secret.key\"";
    }
}

impl DatabaseSettings {
    fn check(&self) -> Result<(), Fault> {
        match self.url.is_none() && self.password_file.is_some() {
            true => Err(Fault::new("url", "write the address that the password is for")),
            false => Ok(()),
        }
    }
}

/// An address of PostgreSQL without a password in it.
fn url(text: &str) -> Result<String, String> {
    let place = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    let place = place
        .ok_or("write it like postgres://watchglass@db.example.org/watchglass; without it the file hub.db is taken")?;
    let user = place.split_once('?').map_or(place, |(place, _)| place).rsplit_once('@').map(|(user, _)| user);
    match user.is_some_and(|user| user.contains(':')) || place.contains("password=") {
        true => Err("leave the password out; name a file that holds it with password_file".into()),
        false => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_a_password_has_no_place_in_it() {
        let read = |text: &str| DatabaseSettings::TABLE.read_text(text);
        assert_eq!(read("").expect("nothing"), DatabaseSettings::default());
        let own = read("url = \"postgres://me@db/hub\"\npassword_file = \"/run/secrets/db\"\nkey_file = \"/k\"")
            .expect("a table");
        assert_eq!(read(&DatabaseSettings::TABLE.print(&own).to_string()).expect("a table"), own);
        for (wrong, said) in [
            ("url = \"postgres://me:s3cret@db/hub\"", "password_file"),
            ("url = \"postgres://me@db/hub?password=s3cret\"", "password_file"),
            ("url = \"mysql://s3cret@db/hub\"", "postgres://watchglass@"),
            ("password_file = \"/s3cret\"", "url: write the address"),
        ] {
            let error = read(wrong).expect_err(wrong);
            let error = error.to_string();
            assert!(error.contains(said) && !error.contains("s3cret"), "{wrong}: {error}");
        }
    }
}
