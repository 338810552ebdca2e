//! The commands that administer a hub: `watchglass user`, `key`, `service`, `agents`, `team`, `view`, `share`,
//! `audit`, `usage`; and `runs`, `logs` and `alerts`. They use the control socket of the hub of the data folder, the
//! hub's files if no hub runs, or a remote hub with `--hub URL --key-file FILE`.

mod alerts;
mod carrier;
mod commands;
mod failed;
mod logs;
mod order;
mod password;
mod table;

pub use failed::AdminFailed;
pub use logs::logs;

use crate::config::{AdminTask, Administration, Config};
use commands::order;
use order::HubOrder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared::answer::usage::{GpuTime, gpu_time_csv};
use shared::audit::Usage;
use shared::controls::escaped_json;
use shared::people::{Erased, Made, MadeKey};
use shared::secret::Secret;
use stream::clock::{self, Clock};
use team::accounts::usage_csv;

/// Output of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// For standard output: a list, or the one requested item.
    pub output: String,
    /// For standard error: the completed action.
    pub note: String,
    /// The exit status.
    pub status: u8,
}

/// Runs a task on a hub.
///
/// # Errors
/// [`AdminFailed`], with the exit status.
pub fn run(config: &Config, wanted: &Administration) -> Result<Printed, AdminFailed> {
    match &wanted.task {
        AdminTask::Backup(file, with_key) => return carrier::backup(config, wanted.hub.as_ref(), file, *with_key),
        AdminTask::Restore(file) => return carrier::restore(config, wanted.hub.as_ref(), file),
        AdminTask::Alerts(task) => return alerts::alerts(config, wanted, task),
        _ => {}
    }
    let (order, mut note) = order(wanted)?;
    let answer = carrier::carry(config, wanted.hub.as_ref(), &order).map_err(|failed| failed.naming(order.named()))?;
    if wanted.json {
        return Ok(Printed { output: format!("{}\n", escaped_json(format!("{answer:#}"))), note, status: 0 });
    }
    if let HubOrder::Join(_, join) = &order
        && join.expires.as_deref() == Some("never")
    {
        let made: MadeJoin = read(&answer)?;
        note = format!("Write this key into FILE, and let only its owner read it:\n{}", made.key.reveal());
    }
    Ok(Printed { output: for_people(config, wanted, &order, &answer)?, note, status: 0 })
}

/// Deserializes a response.
fn read<T: DeserializeOwned>(answer: &Value) -> Result<T, AdminFailed> {
    serde_json::from_value(answer.clone()).map_err(|error| AdminFailed::version(&error))
}

/// The output for a response. Values for other programs are alone on standard output, so that scripts can use them.
fn for_people(
    config: &Config,
    wanted: &Administration,
    order: &HubOrder,
    answer: &Value,
) -> Result<String, AdminFailed> {
    Ok(match order {
        HubOrder::Usage(_) if wanted.is_csv() => usage_csv(&read::<Usage>(answer)?),
        HubOrder::GpuTime(_) if wanted.is_csv() => gpu_time_csv(&read::<GpuTime>(answer)?),
        HubOrder::AddKey(..) | HubOrder::AddKeyOfService(..) | HubOrder::AddKeyOfPerson(..) => {
            format!("{}\n", read::<MadeKey>(answer)?.key.reveal())
        }
        HubOrder::Join(_, join) => {
            let made: MadeJoin = read(answer)?;
            let own = || own_line(config, made.key.reveal(), join.expires.as_deref() != Some("never"));
            format!("{}\n", made.line.as_ref().map_or_else(own, |line| line.reveal().into()))
        }
        HubOrder::Report(..) => read(answer)?,
        HubOrder::ErasePerson(_) => format!("{}\n", read::<Erased>(answer)?.name),
        HubOrder::Invite(..) => read::<MadeLink>(answer)?.line(config, "invite"),
        HubOrder::AddShare(..) => read::<MadeLink>(answer)?.line(config, "share"),
        HubOrder::ResetPerson(_) => match (&wanted.hub, read::<Made>(answer)?.code) {
            (Some(hub), Some(code)) => format!("{}/#reset={}\n", hub.url(), code.reveal()),
            _ => String::new(),
        },
        // A change is reported by its note.
        _ => table::table(order.request().operation, answer, clock::System.wall() / 1_000)?.unwrap_or_default(),
    })
}

/// A created join key. A running hub adds the join line, as it knows its address.
#[derive(Deserialize)]
struct MadeJoin {
    key: Secret,
    line: Option<Secret>,
}

/// A created link: the full URL from a hub, or only its code if none runs.
#[derive(Deserialize)]
struct MadeLink {
    url: Option<Secret>,
    code: Option<Secret>,
}

impl MadeLink {
    fn line(&self, config: &Config, what: &str) -> String {
        match (&self.url, &self.code) {
            (Some(url), _) => format!("{}\n", url.reveal()),
            (None, Some(code)) => format!("{}#{what}={}\n", own_address(config), code.reveal()),
            (None, None) => String::new(),
        }
    }
}

/// The address of the hub of this configuration.
fn own_address(config: &Config) -> String {
    config.public_url.as_ref().map(ToString::to_string).unwrap_or_else(|| {
        let scheme = if config.tls_cert.is_some() { "https" } else { "http" };
        let host = config.hosts.first().map_or("127.0.0.1", String::as_str);
        format!("{scheme}://{host}:{}{}", config.port, config.base_path)
    })
}

/// The command line that joins a machine to a hub that is not running now. Arguments are visible to every user of the
/// machine, so a key without an expiry is read from a file.
fn own_line(config: &Config, key: &str, ends: bool) -> String {
    let key = if ends { format!("--key {key}") } else { "--key-file FILE".into() };
    let public = own_address(config);
    format!("watchglass agent --hub {public} {key}")
}

#[cfg(test)]
mod tests;
