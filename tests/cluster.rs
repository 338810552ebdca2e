//! Several hubs over a real NATS and a real PostgreSQL: any of them shows any machine, and what becomes of that when one is
//! killed, or NATS is away.
#![cfg(unix)]

use std::time::Duration;
use watchglass_tests::cluster::Cluster;
use watchglass_tests::stream::Page;

const TAG: &str = "openmetrics.books.ledger_total";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
async fn with_nats_any_hub_shows_a_machine_live_and_all_that_there_is_of_it() {
    let mut cluster = Cluster::start(2);
    cluster.start_agent(&[0]);
    cluster.until("hub 0 has samples", || cluster.shown(0).len() > 60);
    // The other hub has had none of it until it is asked.
    let n = cluster.is_whole(1);
    assert!(n > 60, "{n}");
    let took = cluster.is_live(1);
    assert!(took < Duration::from_secs(10), "{took:?}");
    // A page follows it there.
    let name = cluster.get(1, "/api/v1/sources");
    let sources: serde_json::Value = serde_json::from_str(&name.body).expect("JSON");
    let own = sources["sources"].as_array().expect("a list").iter().find(|one| one["last"].is_number());
    let key = own.and_then(|one| one["key"].as_str()).expect("the machine").to_string();
    let mut page = Page::default();
    (page.source, page.key) = (Some(key.clone()), Some(cluster.keys["data"].clone()));
    let mut connection = page.connect(cluster.hub(1).addr(), 10_000).await;
    page.until(&mut connection, |page| page.ticks.len() > 40 && page.newest(TAG).is_some()).await;
    assert!(page.whole() && page.repeated == 0, "no tick is lost on the way, and none comes twice");
    // Its agent is asked through the hub that has its link.
    let doctor = cluster.get(1, &format!("/api/v1/doctor?source={key}"));
    assert_eq!(doctor.status, 200, "{doctor:?}");
    assert!(doctor.body.contains("openmetrics"), "{doctor:?}");
    let metrics = cluster.metrics(1);
    for said in ["watchglass_cluster_hubs 2", "watchglass_cluster_relays 1", "watchglass_cluster_connected 1"] {
        assert!(metrics.contains(said), "{said}: {metrics}");
    }
}

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_a_hub_is_killed_and_its_machines_move_without_a_hole() {
    let mut cluster = Cluster::start(3);
    cluster.start_agent(&[0, 1]);
    cluster.is_live(0);
    cluster.is_live(2);
    let first = cluster.holder();
    cluster.kill_hub(0);
    cluster.until("another hub holds it", || ![String::new(), first.clone()].contains(&cluster.holder()));
    let took = cluster.is_live(2);
    assert!(took < Duration::from_secs(10), "live again on a third hub after {took:?}");
    cluster.is_live(1);
    for hub in [1, 2] {
        cluster.is_whole(hub);
    }
    // It comes back, and is one of them again.
    cluster.start_hub(0);
    cluster.is_live(0);
    cluster.is_whole(0);
}

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_away_the_hub_of_the_link_goes_on_and_the_others_say_so() {
    let mut cluster = Cluster::start(2);
    cluster.start_agent(&[0]);
    cluster.is_live(0);
    cluster.is_live(1);
    cluster.stop_nats();
    cluster.until("it is said", || cluster.get(1, "/api/v1/doctor").body.contains("NATS"));
    cluster.is_live(0);
    cluster.start_nats();
    cluster.is_live(1);
    cluster.until("it is well", || !cluster.get(1, "/api/v1/doctor").body.contains("NATS"));
    for hub in [0, 1] {
        cluster.is_whole(hub);
    }
}
