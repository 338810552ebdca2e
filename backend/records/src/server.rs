//! The address of a PostgreSQL.

use crate::error::{Error, OpenError};
use shared::secret::Secret;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use std::fmt;

/// A database of a PostgreSQL. It is printed without user and password.
#[derive(Clone)]
pub struct Server(pub(crate) PgConnectOptions);

impl Server {
    /// Reads `postgres://USER@HOST[:PORT]/DATABASE[?sslmode=...]`. Connections to another machine use TLS and check the
    /// server's name, unless `sslmode` is set otherwise.
    ///
    /// # Errors
    /// A sentence with the correct form; it repeats no password.
    pub fn parse(url: &str, password: Option<&Secret>) -> Result<Server, String> {
        let wrong =
            || "the address of a database looks like postgres://watchglass@db.example.org/watchglass".to_string();
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://")).ok_or_else(wrong)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let named = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
        if place.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) || named("password") {
            return Err("the address must not contain a password; name a file with it in password_file".into());
        }
        let options: PgConnectOptions = url.parse().map_err(|_| wrong())?;
        if options.get_database().is_none_or(str::is_empty) {
            return Err(format!("the name of the database is missing; {}", wrong()));
        }
        let host = options.get_host().trim_matches(['[', ']']);
        let here = options.get_socket().is_some()
            || host.starts_with('/')
            || host == "localhost"
            || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        let mode = if here { PgSslMode::Prefer } else { PgSslMode::VerifyFull };
        let options = if named("sslmode") || named("ssl-mode") { options } else { options.ssl_mode(mode) };
        let options = options.application_name("watchglass");
        Ok(Server(match password {
            Some(password) => options.password(password.reveal()),
            None => options,
        }))
    }

    /// Error of a failed read.
    pub fn unread(&self, error: &Error) -> OpenError {
        OpenError::Server { place: self.to_string(), what: "read", error: error.to_string() }
    }

    pub(crate) fn failed(&self, what: &'static str, error: sqlx::Error) -> OpenError {
        let error = match error {
            sqlx::Error::PoolTimedOut => "it does not respond".to_string(),
            other => other.to_string(),
        };
        OpenError::Server { place: self.to_string(), what, error }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.get_database().unwrap_or_default();
        match self.0.get_socket() {
            Some(socket) => write!(f, "the database {name} of the PostgreSQL at {}", socket.display()),
            None => write!(f, "the database {name} of the PostgreSQL at {}:{}", self.0.get_host(), self.0.get_port()),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_shown_without_its_secrets() {
        let secret = Secret::new("s3cret");
        let server = Server::parse("postgres://me@db.example.org:6432/hub", Some(&secret)).expect("an address");
        assert_eq!(server.to_string(), "the database hub of the PostgreSQL at db.example.org:6432");
        assert!(!format!("{server:?}").contains("s3cret"));
        for (url, mode) in [
            ("postgres://me@db.example.org/hub", "VerifyFull"),
            ("postgres://me@db.example.org/hub?sslmode=require", "Require"),
            ("postgresql://me@127.0.0.1/hub", "Prefer"),
            ("postgres://me@%2Frun%2Fpostgresql/hub", "Prefer"),
        ] {
            let mode_of = |server: Server| format!("{:?}", server.0.get_ssl_mode());
            assert_eq!(Server::parse(url, None).map(mode_of).as_deref(), Ok(mode), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_by_a_sentence_that_repeats_no_password() {
        for url in ["postgres://me:s3cret@db/hub", "postgres://me@db/hub?password=s3cret"] {
            let why = Server::parse(url, None).expect_err("refused");
            assert!(why.contains("password_file") && !why.contains("s3cret"), "{why}");
        }
        for url in ["mysql://me@db/hub", "hub.db", "postgres://me@db", "postgres://me@db/"] {
            let why = Server::parse(url, None).expect_err("refused");
            assert!(why.contains("postgres://watchglass@"), "{url}: {why}");
        }
    }
}
