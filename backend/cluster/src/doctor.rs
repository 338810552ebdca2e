//! `watchglass doctor` for a hub of a cluster: connects to NATS and sends one message to itself.

use super::bus::{MAX_BUS_MESSAGE, options, prefix, servers};
use super::new_hub_id;
use crate::settings::ClusterSettings;
use async_nats::{ConnectError, ConnectErrorKind};
use futures_util::StreamExt;
use shared::wire::{Check, CheckState};
use std::time::Duration;
use tokio::time::timeout;

/// Name of the check.
const CHECK: &str = "nats";
/// Maximum time to connect, and then for a message.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason and the remedy.
type Wrong = (String, String);

/// Tests the NATS of a configuration: connection, authentication, and permission to publish and subscribe.
pub async fn examine(settings: &ClusterSettings) -> Check {
    let tried = servers(settings).into_iter().map(str::to_string).collect();
    let check = |state, found: String, reason, remedy| Check { id: CHECK.into(), state, tried, found, reason, remedy };
    match tried_out(settings).await {
        Ok(FoundReplicas { words, asks_who: true }) => check(CheckState::Ok, words, String::new(), String::new()),
        Ok(FoundReplicas { words, asks_who: false }) => {
            let reason = "NATS requires no authentication: anyone who reaches it can read and forge messages between \
                hubs";
            let remedy = "require a token or credentials in NATS, and name token_file or credentials_file in [cluster]";
            check(CheckState::Partial, words, reason.into(), remedy.into())
        }
        Err((reason, remedy)) => check(CheckState::Failed, "it connects the hubs of a cluster".into(), reason, remedy),
    }
}

/// The result of a successful test.
struct FoundReplicas {
    words: String,
    /// Whether the server requires authentication.
    asks_who: bool,
}

async fn tried_out(settings: &ClusterSettings) -> Result<FoundReplicas, Wrong> {
    let file =
        |why| (why, "correct the files named in [cluster]; the user of the hub must be able to read them".into());
    let connected = options(settings, "watchglass doctor").map_err(file)?.connect(servers(settings));
    let client = match timeout(ANSWER_TIMEOUT * 2, connected).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return Err(refused(&error)),
        Err(_) => return Err(late()),
    };
    let info = client.server_info();
    if info.max_payload < MAX_BUS_MESSAGE {
        let reason =
            format!("its limit for messages is {} bytes, and hubs send up to {MAX_BUS_MESSAGE}", info.max_payload);
        return Err((reason, "set max_payload of NATS to 1MB, its default".into()));
    }
    // A NATS user may have permission to connect and nothing else: NATS drops a forbidden message without an error to
    // the sender.
    let subject = format!("{}over.doctor-{}", prefix(settings), new_hub_id());
    let there_and_back = async {
        let mut heard = client.subscribe(subject.clone()).await.ok()?;
        client.publish(subject.clone(), "".into()).await.ok()?;
        client.flush().await.ok()?;
        heard.next().await
    };
    match timeout(ANSWER_TIMEOUT, there_and_back).await {
        Ok(Some(_)) => Ok(FoundReplicas {
            words: format!("NATS {} responds, and a test message arrived", info.version),
            asks_who: info.auth_required,
        }),
        _ => {
            let subjects = format!("{}>", prefix(settings));
            let reason = format!("it accepts the connection, but no message arrived on {subjects}");
            Err((reason, format!("let this user publish and subscribe to {subjects} and _INBOX.>")))
        }
    }
}

fn late() -> Wrong {
    let reason = format!("no response within {} s", (ANSWER_TIMEOUT * 2).as_secs());
    (reason, "check that NATS runs, and that this machine can connect to it".into())
}

/// Reason and remedy for a connection error.
fn refused(error: &ConnectError) -> Wrong {
    let with = |reason: &str, remedy: &str| (reason.to_string(), remedy.to_string());
    match error.kind() {
        ConnectErrorKind::Dns => with("its host name cannot be resolved", "correct nats of [cluster]"),
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => with(
            "authentication failed",
            "name the credentials of this hub in credentials_file or token_file of [cluster]",
        ),
        ConnectErrorKind::Tls => (
            format!("TLS with it failed: {error}"),
            "name the CA of its certificate in ca of [cluster], and use the host name of the certificate".into(),
        ),
        ConnectErrorKind::TimedOut => late(),
        _ => (
            format!("it cannot be reached: {error}"),
            "check that NATS runs, and that this machine can connect to it".into(),
        ),
    }
}
