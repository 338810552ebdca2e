//! Grants that another program revokes directly in the hub's records end the hub's open connections, without a
//! notification.

use super::sockets::{ended, open};
use futures_util::StreamExt;
use shared::people::PersonChange;
use std::sync::Arc;
use stream::clock;
use team::accounts::{Accounts, Database, Principal};
use tokio_tungstenite::tungstenite::Message;
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::hub::Hub;
use watchglass_tests::waiting::{MAX_WAIT, until_so};

/// The records of a hub, opened by another program.
pub async fn elsewhere(database: &Database) -> Accounts {
    Accounts::open_in(database, Arc::new(clock::System)).await.expect("the hub's records")
}

/// Revokes all of a hub's grants only in its records, and waits until the hub has closed its open connections.
pub async fn all_is_closed(hub: &Hub, database: &Database) {
    let (origin, local) = (hub.origin(), Principal::local(0));
    let headers = |name: &str| [hub.cookie(name), origin.clone()];
    let mut page = open(hub, "", &headers("mike")).await;
    let mut of_key = open(hub, "", &[hub.key("data")]).await;
    let mut of_link = open(hub, "", &[hub.link.clone(), origin.clone()]).await;
    let mut of_disabled = open(hub, "", &headers("vera")).await;
    let mut stays = open(hub, "", &headers("ada")).await;
    let url = format!("http://{}", hub.server.addr());
    let mut command = agent::command(&url, &hub.keys["join"], &hub.folder.path().join("node-9"));
    command.args(["--name", "node-9", "--collectors", "cpu", "--interval", "100ms"]);
    let machine = Agent::start(command);
    let linked = || hub.send("GET", "/api/v1/sources", &[&hub.cookie("ada")], "").body.contains("\"node-9\"");
    until_so("node-9 has joined", linked);

    let other = elsewhere(database).await;
    let keys = other.service_keys(&local, "main").await.expect("keys");
    let data = keys.iter().find(|key| key.name == "data").expect("the key");
    let links = other.shares(&local, Some("main")).await.expect("links");
    let disabled = PersonChange { disabled: Some(true), ..PersonChange::default() };
    // A link ends with its creator, so it is revoked first.
    other.end_share(&local, &links[0].id).await.expect("taken back");
    other.end_service_key(&local, "main", &data.id).await.expect("ended");
    other.change_person(&local, "vera", &disabled).await.expect("disabled");
    other.remove_person(&local, "mike").await.expect("removed");
    other.revoke(&local, "main", "node-9").await.expect("revoked");
    for (stream, expected) in [
        (&mut page, "signed out"),
        (&mut of_key, "this key was revoked"),
        (&mut of_link, "this link was revoked"),
        (&mut of_disabled, "signed out"),
    ] {
        let (goodbye, close) = ended(stream).await;
        assert_eq!(goodbye.as_deref(), Some(expected));
        assert!(close.is_some_and(|close| u16::from(close.code) == 1008));
    }
    for who in [hub.cookie("mike"), hub.cookie("vera"), hub.key("data"), hub.key("own"), hub.link.clone()] {
        let status = || hub.send("GET", "/api/v1/sources", &[&who], "").status;
        until_so("what was taken back opens nothing", || status() == 401);
    }
    machine.says("revoked");
    assert_eq!(hub.send("GET", "/api/v1/sources", &[&hub.cookie("ada")], "").status, 200);
    let next = tokio::time::timeout(MAX_WAIT, stays.next()).await.expect("it goes on");
    assert!(matches!(next, Some(Ok(Message::Binary(_)))), "{next:?}");
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_program_takes_back_is_closed_without_a_word_to_the_hub() {
    let hub = Hub::start([]);
    let database = Database::in_folder(hub.folder.path());
    all_is_closed(&hub, &database).await;
}
