//! `watchglass doctor`: checks the configured servers in the way they will be used. It changes nothing there.

use crate::config::Config;
use crate::remote_write;
#[cfg(unix)]
use jobs::runs;
use shared::wire::{Check, CheckState};
use std::path::Path;
use team::accounts::Database;

/// Name of the database check.
const DATABASE: &str = "database";

/// Checks of the configured servers: database, sample store, NATS and the API server of Kubernetes.
///
/// # Errors
/// The system grants no runtime: a sentence.
pub fn examine(config: &Config) -> Result<Vec<Check>, String> {
    let mut checks = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    if config.database.url.is_some() {
        checks.push(runtime.block_on(database(config)));
    }
    checks.extend(config.remote_write.clone().map(remote_write::examine));
    if config.cluster.nats.is_some() {
        checks.push(runtime.block_on(cluster::examine(&config.cluster)));
    }
    #[cfg(unix)]
    checks.extend(runs::examine_kubernetes(&config.runs, |name| std::env::var(name).ok()));
    Ok(checks)
}

async fn database(config: &Config) -> Check {
    let check = |state, tried: Vec<String>, found: String, reason: String, remedy: &str| Check {
        id: DATABASE.into(),
        state,
        tried,
        found,
        reason,
        remedy: remedy.into(),
    };
    let (url, password) = (config.database.url.as_deref(), config.database.password_file.as_deref());
    let kept = "it stores accounts, keys and views".to_string();
    let database = match Database::from_settings(Path::new(""), url, password) {
        Ok(database) => database,
        Err(why) => return check(CheckState::Failed, Vec::new(), kept, why, "correct [database] in the configuration"),
    };
    let Some(server) = database.server() else { return check(CheckState::Absent, Vec::new(), kept, String::new(), "") };
    let tried = vec![server.to_string()];
    match server.inspect().await {
        Ok(look) if look.schema == 0 => {
            let found =
                format!("PostgreSQL {} responds; the database is empty, and the hub creates its tables", look.version);
            check(CheckState::Ok, tried, found, String::new(), "")
        }
        Ok(look) => check(CheckState::Ok, tried, format!("PostgreSQL {} responds", look.version), String::new(), ""),
        Err(why) => {
            let remedy =
                "check that PostgreSQL runs and accepts this user; correct url and password_file of [database]";
            check(CheckState::Failed, tried, kept, why.to_string(), remedy)
        }
    }
}
