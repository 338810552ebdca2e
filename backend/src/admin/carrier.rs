//! The three ways to a hub: its control socket, HTTPS with a key, or its files if no hub runs.

use super::Printed;
use super::failed::AdminFailed;
use super::order::HubOrder;
use crate::config::Config;
use crate::control;
use crate::remote::{self, Remote};
use history::files::{Disk, Files, LockError};
use serde_json::Value;
use shared::session::Problem;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stream::clock;
use system::user;
use team::accounts::{Accounts, Database, Principal, REMOVALS_FILE};
use uplink::settings::HubEntry;
use watch::alerts::{KEY_FILE, SealingKey};

/// The data folder of the hub of this machine.
fn own_folder<'a>(config: &'a Config, hub: Option<&HubEntry>) -> Result<&'a Path, AdminFailed> {
    if hub.is_some() {
        return Err(AdminFailed::usage(
            "this command needs the data folder of the hub; leave --hub out and run it on the hub's machine",
        ));
    }
    config.data_dir.as_deref().filter(|_| !config.memory).ok_or_else(|| {
        AdminFailed::folder("there is no data folder; name it with --data-dir, or name the hub with --hub URL")
    })
}

/// The database of the hub of this machine.
fn database(config: &Config, folder: &Path) -> Result<Database, AdminFailed> {
    let (url, password_file) = (config.database.url.as_deref(), config.database.password_file.as_deref());
    Database::from_settings(folder, url, password_file).map_err(AdminFailed::usage)
}

fn wait<T>(of: impl Future<Output = Result<T, team::accounts::OpenError>>) -> Result<T, AdminFailed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| AdminFailed::new(format!("cannot start: {error}")))?;
    runtime.block_on(of).map_err(|error| AdminFailed::folder(error.to_string()))
}

/// Copies the database of the hub of this machine; the hub may run meanwhile.
pub(super) fn backup(
    config: &Config,
    hub: Option<&HubEntry>,
    file: &Path,
    with_key: bool,
) -> Result<Printed, AdminFailed> {
    let folder = own_folder(config, hub)?;
    let database = database(config, folder)?;
    if let Some(server) = database.server() {
        return Err(AdminFailed::usage(format!(
            "the data of this hub is in {server}; back it up with the tools of the database, such as pg_dump"
        )));
    }
    if !database.is_there() {
        return Err(no_hub(folder));
    }
    wait(team::accounts::backup(folder, file, &clock::System, user::own_uid()))?;
    let mut note = format!(
        "{} contains accounts, keys, views and settings, without samples. Keep it as safe as the hub itself.",
        file.display()
    );
    if with_key {
        let key = config.database.key_file.clone().unwrap_or_else(|| folder.join(KEY_FILE));
        let copy = PathBuf::from(format!("{}.key", file.display()));
        let failed = |error| AdminFailed::folder(format!("{} cannot be copied: {error}", key.display()));
        note += &match SealingKey::copy(&key, &copy).map_err(failed)? {
            true => format!(
                "\n{} decrypts the addresses and keys of channels in it. Restore it as secret.key, and keep the two \
                files apart.",
                copy.display()
            ),
            false => "\nThere is no secret.key: no channel has a secret yet.".into(),
        };
    }
    Ok(Printed { note, ..Printed::default() })
}

/// Restores such a copy.
pub(super) fn restore(config: &Config, hub: Option<&HubEntry>, file: &Path) -> Result<Printed, AdminFailed> {
    let folder = own_folder(config, hub)?;
    let failed =
        |error: String| AdminFailed::folder(format!("the data folder {} cannot be used: {error}", folder.display()));
    let disk = Disk::new(folder);
    disk.make().map_err(|error| failed(error.to_string()))?;
    let _lock = disk.lock().map_err(|error| match error {
        LockError::Held { .. } => AdminFailed::new("a Watchglass uses this folder; stop it first"),
        LockError::Io(error) => failed(error.to_string()),
    })?;
    wait(database(config, folder)?.restore(file))?;
    let note = format!(
        "{} is restored; start the hub. Changes since the backup are lost. Machines that were removed since are \
        removed again at the start if {} lists them. Erase people again, and check accounts, keys and links.",
        file.display(),
        folder.join(REMOVALS_FILE).display()
    );
    Ok(Printed { note, ..Printed::default() })
}

/// Sends an order to the hub of a data folder, or to the named one, and returns its response.
pub(super) fn carry(config: &Config, hub: Option<&HubEntry>, order: &HubOrder) -> Result<Value, AdminFailed> {
    if let Some(hub) = hub {
        return by_network(hub, order);
    }
    let folder = own_folder(config, None)?;
    let request = order.request();
    let body = request.body.map(|body| body.to_string());
    let failed = |error: io::Error| AdminFailed::new(format!("the hub's control socket does not respond: {error}"));
    match control::ask(folder, request.operation.method().text(), &request.path, body.as_deref()).map_err(failed)? {
        Some((status, body)) => judged(status, &body),
        None if order.needs_server() => Err(AdminFailed::folder(format!(
            "no watchglass runs with {}; start it, name another folder with --data-dir, or a hub with --hub URL",
            folder.display()
        ))),
        None => on_file(config, folder, order),
    }
}

/// Sends it to a hub elsewhere, with a key.
fn by_network(hub: &HubEntry, order: &HubOrder) -> Result<Value, AdminFailed> {
    let missing = || AdminFailed::answered(401, "a key is missing; name its file with --key-file FILE");
    let key = remote::key(hub.key.as_ref().ok_or_else(missing)?, None).map_err(AdminFailed::usage)?;
    let remote = Remote::new(hub, Some(&key)).map_err(AdminFailed::usage)?;
    let request = order.request();
    let body = request.body.map(|body| body.to_string().into_bytes());
    let answer = remote.send(request.operation.method().text(), &request.path, body.as_deref());
    let (status, text) = answer.map_err(AdminFailed::new)?;
    judged(status, &text)
}

/// No hub has made a database in the folder.
fn no_hub(folder: &Path) -> AdminFailed {
    AdminFailed::folder(format!(
        "no hub has ever run with the data folder {}; start one with watchglass hub, name its folder with --data-dir, or \
        name the hub with --hub URL",
        folder.display()
    ))
}

/// Runs it on the database itself, while no other process holds the folder.
fn on_file(config: &Config, folder: &Path, order: &HubOrder) -> Result<Value, AdminFailed> {
    let failed =
        |error: String| AdminFailed::folder(format!("the data folder {} cannot be used: {error}", folder.display()));
    let database = database(config, folder)?;
    // The first admin may be made before the first start. Anything else would be made for a hub that nobody runs.
    if !matches!(order, HubOrder::AddPerson(_)) && !database.is_there() {
        return Err(no_hub(folder));
    }
    let disk = Disk::new(folder);
    disk.make().map_err(|error| failed(error.to_string()))?;
    let _lock = disk.lock().map_err(|error| match error {
        LockError::Held { .. } => AdminFailed::new(
            "a Watchglass uses this folder, and its control socket does not respond; use --hub URL --key-file FILE",
        ),
        LockError::Io(error) => failed(error.to_string()),
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| AdminFailed::new(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let accounts =
            Accounts::open_in(&database, Arc::new(clock::System)).await.map_err(|error| failed(error.to_string()))?;
        accounts.keep_audit(config.audit.keep);
        let answer = order.on_file(&accounts, &Principal::local(user::own_uid())).await;
        accounts.close().await;
        Ok(answer?)
    })
}

/// The response, if it is a success.
fn judged(status: u16, body: &[u8]) -> Result<Value, AdminFailed> {
    if (200..300).contains(&status) {
        return match body {
            [] => Ok(Value::Object(serde_json::Map::new())),
            // A document is plain text, not JSON.
            html if html.starts_with(b"<!doctype html>") => Ok(String::from_utf8_lossy(html).into_owned().into()),
            body => serde_json::from_slice(body)
                .map_err(|_| AdminFailed::new("the server is not a hub: its response is not JSON")),
        };
    }
    let sentence = serde_json::from_slice::<Problem>(body).map(|problem| problem.error);
    Err(AdminFailed::answered(status, sentence.unwrap_or_else(|_| format!("the server is not a hub: status {status}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_judged_by_its_status() {
        let failed = judged(403, b"{\"error\":\"only an admin\"}").expect_err("refused");
        assert_eq!((failed.status(), failed.to_string().as_str()), (5, "only an admin"));
        assert_eq!(judged(401, b"{\"error\":\"sign in\"}").expect_err("refused").status(), 6);
        assert_eq!(judged(400, b"{\"error\":\"wrong\"}").expect_err("refused").status(), 2);
        assert_eq!(judged(502, b"<html>").expect_err("a proxy").to_string(), "the server is not a hub: status 502");
        assert!(judged(200, b"<html>").is_err() && judged(204, b"").is_ok());
    }
}
