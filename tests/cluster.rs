//! Several hubs over a real NATS and a real PostgreSQL. Any hub shows any machine, also after one is killed or while
//! NATS is away.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::time::Duration;
use watchglass_tests::cluster::Cluster;
use watchglass_tests::hub::{PASSWORD, send};
use watchglass_tests::stream::Page;

const TAG: &str = "openmetrics.books.ledger_total";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
async fn with_nats_any_hub_shows_a_machine_live_and_all_that_there_is_of_it() {
    let mut cluster = Cluster::start(2);
    cluster.start_agent(&[0]);
    cluster.until("hub 0 has samples", || cluster.shown(0).len() > 60);
    // The other hub has none of it until the first request.
    let n = cluster.is_whole(1);
    assert!(n > 60, "{n}");
    cluster.is_live(1);
    // A page shows it live there.
    let key = cluster.machine(1);
    let (mut page, mut connection) = cluster.page(1).await;
    page.until(&mut connection, |page| page.ticks.len() > 40 && page.newest(TAG).is_some()).await;
    assert!(page.whole() && page.repeated == 0, "no tick is lost on the way, and none comes twice");
    // A request to its agent is relayed through the hub that holds its connection.
    let doctor = cluster.get(1, &format!("/api/v1/doctor?source={key}"));
    assert_eq!(doctor.status, 200, "{doctor:?}");
    // So is a marker, which the agent stores.
    let marker = cluster.post(1, &format!("/api/v1/markers?source={key}"), r#"{"text": "by another hub"}"#);
    assert_eq!(marker.status, 200, "{marker:?}");
    assert!(doctor.body.contains("openmetrics"), "{doctor:?}");
    // The lease of the hub that created the people expires some time after it was killed.
    for said in ["watchglass_cluster_hubs 2", "watchglass_cluster_relays_in 1", "watchglass_cluster_connected 1"] {
        cluster.until(said, || cluster.metrics(1).lines().any(|line| line == said));
    }
}

/// A viewer on another hub sees it live within 2 s of a move, so it may miss this many ticks of 100 ms. Ticks are
/// counted instead of time, since a machine that is suspended does not measure either.
const MISSED: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
async fn with_nats_a_hub_is_killed_and_its_machines_move_without_a_hole() {
    let mut cluster = Cluster::start(3);
    cluster.start_agent(&[0, 1]);
    cluster.is_live(0);
    cluster.is_live(2);
    let (mut page, mut connection) = cluster.page(2).await;
    page.until(&mut connection, |page| page.newest(TAG).is_some()).await;
    let mut missed = Vec::new();
    for killed in [0, 1, 0] {
        let before = cluster.holder();
        cluster.kill_hub(killed);
        cluster.until("another hub holds it", || ![String::new(), before.clone()].contains(&cluster.holder()));
        let since: i64 = cluster.postgresql.sql("hub", "SELECT since FROM links").parse().expect("a time");
        let first = |page: &Page| {
            let live = page.ticks.values().filter(|(t, values)| *t > since && !values.is_empty());
            live.map(|(t, _)| *t).min()
        };
        page.until(&mut connection, |page| first(page).is_some()).await;
        let first = first(&page).expect("just seen");
        let measured: BTreeSet<i64> = cluster.measured().into_keys().map(|(t, _)| t).collect();
        missed.push(measured.range(since + 1..first).count());
        // The hub returns, and joins the cluster again.
        cluster.start_hub(killed);
        cluster.is_live(killed);
    }
    missed.sort_unstable();
    assert!(missed[1] <= MISSED, "ticks that the page missed of each move: {missed:?}");
    for hub in [0, 1, 2] {
        cluster.is_whole(hub);
    }
}

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_a_hub_that_lost_its_folder_is_whole_again() {
    let mut cluster = Cluster::start(2);
    cluster.start_agent(&[0, 1]);
    cluster.is_live(0);
    let first = cluster.holder();
    cluster.kill_hub(0);
    cluster.until("another hub holds it", || ![String::new(), first.clone()].contains(&cluster.holder()));
    cluster.is_live(1);
    // The data on a hub's disk is only a cache.
    std::fs::remove_dir_all(cluster.folder(0)).expect("removed");
    // The hub returns, and joins the cluster again.
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

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_a_hub_that_is_told_to_end_hands_its_machines_over_and_ends_in_time() {
    let mut cluster = Cluster::start(2);
    cluster.start_agent(&[0, 1]);
    cluster.is_live(0);
    cluster.is_live(1);
    let first = cluster.holder();
    assert!(cluster.end_hub(0, Duration::from_secs(15)).success());
    cluster.until("the other hub has it", || ![String::new(), first.clone()].contains(&cluster.holder()));
    cluster.is_live(1);
    cluster.is_whole(1);
    // Its next version joins the cluster again.
    cluster.start_hub(0);
    cluster.is_live(0);
    cluster.is_whole(0);
}

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_any_hub_lists_the_runs_and_markers_of_a_machine_and_goes_on() {
    let mut cluster = Cluster::start(3);
    cluster.start_agent(&[0, 1]);
    let everywhere = |cluster: &Cluster, name: &str, hubs: &[usize]| {
        hubs.iter().for_each(|n| cluster.until(&format!("hub {n} lists {name}"), || cluster.lists_job(*n, name)));
    };
    everywhere(&cluster, "begun", &[0, 1, 2]);
    let holder = cluster.holder();
    cluster.kill_hub(0);
    cluster.until("another hub holds it", || ![String::new(), holder.clone()].contains(&cluster.holder()));
    cluster.run_a_job("moved");
    everywhere(&cluster, "moved", &[1, 2]);
    cluster.start_hub(0);
    everywhere(&cluster, "moved", &[0]);
    everywhere(&cluster, "begun", &[0, 1, 2]);
}

/// Maximum time from the kill of two of three hubs until the third one shows new samples.
const LIVE_AGAIN: Duration = Duration::from_secs(10);

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_two_of_three_hubs_are_killed_again_and_again_and_the_third_is_live_at_once() {
    let mut cluster = Cluster::start(3);
    cluster.start_agent(&[0, 1, 2]);
    cluster.is_live(0);
    for left in [2, 0, 1, 2] {
        let killed: Vec<usize> = (0..3).filter(|n| *n != left).collect();
        killed.iter().for_each(|n| cluster.kill_hub(*n));
        let took = cluster.is_live(left);
        assert!(took < LIVE_AGAIN, "hub {left} was live after {took:?}\n{}", cluster.output());
        killed.iter().for_each(|n| cluster.start_hub(*n));
        (0..3).for_each(|n| _ = cluster.is_live(n));
    }
}

#[test]
#[ignore = "needs Debian's nats-server and PostgreSQL 15"]
fn with_nats_a_first_account_is_known_at_each_hub() {
    let cluster = Cluster::start_empty(2);
    let status = |n: usize| send(cluster.hub(n), "GET", "/api/v1/sources", &[], "").status;
    assert_eq!([status(0), status(1)], [503, 503], "nobody is there yet");
    let code = cluster.setup_code(1);
    let body = serde_json::json!({ "code": code, "name": "root", "password": PASSWORD }).to_string();
    let json = "Content-Type: application/json";
    let made = send(cluster.hub(1), "POST", "/api/v1/session/setup", &[&cluster.origin(1), json], &body);
    assert_eq!(made.status, 200, "{made:?}");
    cluster.until("each hub asks for a sign-in", || [status(0), status(1)] == [401, 401]);
}
