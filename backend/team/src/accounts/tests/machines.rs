//! How machines join, are recognized, and are refused.

use super::*;
use shared::enrol::{EnrolRequest, Enrolled};
use shared::secret::Secret;
use shared::session::{AgentChange, NewJoin};

fn digits(letter: char, count: usize) -> String {
    letter.to_string().repeat(count)
}

/// A machine with a machine id, a network card and a request number of its own.
fn machine(letter: char, host: &str) -> EnrolRequest {
    EnrolRequest {
        request: digits(letter, 32),
        name: None,
        machine: Some(digits(letter, 64)),
        links: vec![digits(letter, 64)],
        host: host.into(),
        container: false,
        platform: Some("Linux x86_64".into()),
        version: Some("0.1.0".into()),
    }
}

impl Hub {
    async fn join_key(&self, wanted: NewJoin) -> NewKey {
        self.accounts.new_join(&Principal::local(0), "main", &wanted).await.expect("a join key")
    }

    async fn enrol(&self, key: &NewKey, request: &EnrolRequest) -> Result<Enrolment, Denied> {
        self.accounts.enrol(key.key.reveal(), request, &network(7)).await
    }

    async fn joined(&self, key: &NewKey, request: &EnrolRequest) -> Enrolled {
        match self.enrol(key, request).await.expect("it joins") {
            Enrolment::Enrolled(enrolled) => enrolled,
            Enrolment::Pending => panic!("nobody has to confirm it"),
        }
    }

    async fn agent(&self, enrolled: &Enrolled) -> Result<Identity, LinkDenied> {
        self.accounts.agent(enrolled.key.reveal(), &network(7)).await
    }

    /// Name and state of all machines.
    async fn machines(&self) -> Vec<String> {
        let agents = self.accounts.agents(&Principal::local(0), "main").await.expect("the list");
        agents.iter().map(|agent| format!("{} {}", agent.name, agent.state)).collect()
    }
}

#[tokio::test]
async fn a_machine_joins_by_a_line_and_its_key_speaks_for_it_alone() {
    let hub = Hub::new().await;
    let key = hub.accounts.printed_join().await.unwrap().expect("no account yet");
    let key = NewKey { id: String::new(), key, ends: None };
    let one = hub.joined(&key, &machine('a', "node-7.cluster.local")).await;
    let two = hub.joined(&key, &machine('b', "node-7")).await;
    assert_eq!((one.name.as_str(), two.name.as_str()), ("node-7", "node-7-2"));
    assert_eq!(one.source.len(), 26);
    let identity = hub.agent(&one).await.expect("its key");
    assert_eq!((&identity.source, &identity.name), (&one.source, &one.name));
    assert_ne!(identity.source, hub.agent(&two).await.expect("its key").source);
    // A key of each kind is valid for its own purpose only.
    assert_eq!(hub.accounts.agent(key.key.reveal(), &network(7)).await, Err(LinkDenied::NoKey));
    assert!(hub.accounts.key(one.key.reveal(), &network(7)).await.unwrap().is_none());
    let by_agent = hub.accounts.enrol(one.key.reveal(), &machine('c', "x"), &network(7)).await;
    assert_eq!(by_agent.expect_err("no join key").status(), 401);
    assert!(!format!("{one:?}").contains(one.key.reveal()));
    let new = hub.accounts.printed_join().await.unwrap().expect("still no account");
    assert_eq!(hub.enrol(&key, &machine('d', "x")).await.expect_err("a new start ends the old").status(), 403);
    let new = NewKey { id: String::new(), key: new, ends: None };
    hub.pass(minutes(24 * 60));
    assert_eq!(hub.enrol(&new, &machine('d', "x")).await.expect_err("over").status(), 403);
}

#[tokio::test]
async fn who_asks_twice_is_one_machine_with_the_newer_key() {
    let hub = Hub::new().await;
    let key = hub.join_key(NewJoin { uses: Some(1), ..NewJoin::default() }).await;
    let first = hub.joined(&key, &machine('a', "node-7")).await;
    let second = hub.joined(&key, &machine('a', "node-7")).await;
    assert_eq!(first.source, second.source);
    assert_eq!(hub.agent(&first).await, Err(LinkDenied::Replaced));
    hub.agent(&second).await.expect("the newer key");
    assert_eq!(hub.enrol(&key, &machine('b', "node-8")).await.expect_err("one use").status(), 403);
    let other = hub.join_key(NewJoin::default()).await;
    let denied = hub.enrol(&other, &machine('a', "node-7")).await.expect_err("the request of another key");
    assert_eq!(denied.status(), 409);
    hub.pass(minutes(60));
    assert_eq!(hub.enrol(&key, &machine('a', "node-7")).await.expect_err("an hour later").status(), 403);
    assert_eq!(hub.machines().await, ["node-7 active"]);
}

#[tokio::test]
async fn a_key_of_the_configuration_holds_for_as_long_as_it_is_written_there() {
    let hub = Hub::new().await;
    let (key, admin) = (crate::accounts::new_join_key(), Principal::local(0));
    let labels = |tier: &str| [("tier".to_string(), tier.to_string())].into();
    let have = async |key: &Secret, name: &str, team: Option<&str>, tier: &str| {
        let labels = labels(tier);
        let configured = crate::accounts::ConfiguredKey { name, team, labels: &labels, key: Secret::new(key.reveal()) };
        hub.accounts.register_configured_joins(&admin, &[configured]).await.map_err(|why| why.to_string())
    };
    have(&key, "slurm", None, "gpu").await.expect("it holds");
    let made = NewKey { id: String::new(), key: Secret::new(key.reveal()), ends: None };
    hub.joined(&made, &machine('a', "node-1")).await;
    // The next start changes its labels and no more.
    have(&key, "slurm", None, "cpu").await.expect("it holds");
    hub.joined(&made, &machine('b', "node-2")).await;
    let all = hub.accounts.joins(&admin, "main").await.expect("the list");
    let shown: Vec<_> = all.iter().map(|join| (join.name.as_str(), join.used, join.ends, &join.labels)).collect();
    assert_eq!(shown, [("configuration: slurm", 2, None, &labels("cpu"))]);
    let wrong = have(&Secret::new("wg_j_x"), "slurm", None, "gpu").await.expect_err("no key");
    assert!(wrong.contains("\"slurm\"") && wrong.contains("has no join key"), "{wrong}");
    assert!(have(&key, "slurm", Some("vision"), "gpu").await.expect_err("no team").contains("no team \"vision\""));
    assert!(have(&key, "slurm", None, "a\nb").await.is_err(), "labels are looked at");
    // A key removed from the configuration ends, permanently.
    hub.accounts.register_configured_joins(&admin, &[]).await.expect("none holds");
    assert_eq!(hub.enrol(&made, &machine('c', "node-3")).await.expect_err("it has ended").status(), 403);
    have(&key, "slurm", None, "gpu").await.expect("a start is not refused");
    assert_eq!(hub.enrol(&made, &machine('c', "node-3")).await.expect_err("it has ended").status(), 403);
    assert_eq!(hub.machines().await, ["node-1 active", "node-2 active"]);
}

#[tokio::test]
async fn two_machines_do_not_share_the_last_use() {
    let hub = Hub::new().await;
    let key = hub.join_key(NewJoin { uses: Some(1), ..NewJoin::default() }).await;
    let (a, b) = (machine('a', "node-a"), machine('b', "node-b"));
    let (one, two) = tokio::join!(hub.enrol(&key, &a), hub.enrol(&key, &b));
    assert_eq!([one, two].iter().filter(|joined| joined.is_ok()).count(), 1);
    assert_eq!(hub.machines().await.len(), 1);
}

#[tokio::test]
async fn a_reinstalled_machine_is_known_again_and_a_clone_is_another() {
    let hub = Hub::new().await;
    let key = hub.join_key(NewJoin::default()).await;
    let node = machine('a', "node-7");
    let first = hub.joined(&key, &node).await;
    let again = |letter| EnrolRequest { request: digits(letter, 32), ..node.clone() };
    // While the machine is connected, the same machine id and address mean a clone.
    let identity = hub.agent(&first).await.expect("its key");
    let link = hub.accounts.watch_agent(&identity);
    let clone = hub.joined(&key, &again('b')).await;
    assert_eq!((clone.name.as_str(), link.borrow().clone()), ("node-7-2", None));
    assert_ne!(clone.source, first.source);
    drop(link);
    hub.accounts.revoke(&Principal::local(0), "main", "node-7-2").await.unwrap();
    let reinstalled = hub.joined(&key, &again('c')).await;
    assert_eq!((reinstalled.source, reinstalled.name.as_str()), (first.source.clone(), "node-7"));
    assert_eq!(hub.agent(&first).await, Err(LinkDenied::Replaced));
    // One difference makes another machine.
    for (letter, other) in [
        ('d', EnrolRequest { host: "node-8".into(), ..again('d') }),
        ('e', EnrolRequest { links: vec![digits('9', 64)], ..again('e') }),
        ('f', EnrolRequest { container: true, ..again('f') }),
        ('0', EnrolRequest { machine: None, ..again('0') }),
    ] {
        assert_ne!(hub.joined(&key, &other).await.source, first.source, "{letter}");
    }
}

#[tokio::test]
async fn a_container_is_known_by_its_name_where_the_join_key_says_so() {
    let hub = Hub::new().await;
    let pod = |letter: char| EnrolRequest {
        name: Some("gpu-1".into()),
        container: true,
        links: Vec::new(),
        ..machine(letter, "pod-x7f")
    };
    let plain = hub.join_key(NewJoin::default()).await;
    let by_name = hub.join_key(NewJoin { by_name: true, ..NewJoin::default() }).await;
    let first = hub.joined(&by_name, &pod('a')).await;
    assert_eq!(first.name, "gpu-1");
    assert_ne!(hub.joined(&plain, &pod('b')).await.source, first.source);
    let identity = hub.agent(&first).await.expect("its key");
    let link = hub.accounts.watch_agent(&identity);
    let third = hub.joined(&by_name, &pod('c')).await;
    assert_ne!(third.source, first.source, "it still runs");
    drop(link);
    assert_eq!(hub.joined(&by_name, &pod('d')).await.name[..5], *"gpu-1");
}

#[tokio::test]
async fn what_another_hub_of_the_cluster_is_linked_with_is_not_given_away_here() {
    let hub = Hub::new().await;
    let elsewhere = Arc::new(Mutex::new(String::new()));
    let there = elsewhere.clone();
    hub.accounts.ask_other_hubs(move |source| *there.lock() == source);
    let key = hub.join_key(NewJoin { by_name: true, ..NewJoin::default() }).await;
    let pod = |letter: char| EnrolRequest { name: Some("gpu-1".into()), container: true, ..machine(letter, "pod-x7f") };
    let node = |letter: char| EnrolRequest { request: digits(letter, 32), ..machine('a', "node-7") };
    let joins: [&dyn Fn(char) -> EnrolRequest; 2] = [&pod, &node];
    for (joins, letters) in joins.into_iter().zip([['1', '2', '3'], ['4', '5', '6']]) {
        let first = hub.joined(&key, &joins(letters[0])).await;
        elsewhere.lock().clone_from(&first.source);
        let second = hub.joined(&key, &joins(letters[1])).await;
        assert_ne!(second.source, first.source, "the first one still runs");
        assert!(hub.agent(&first).await.is_ok(), "it keeps its key");
        elsewhere.lock().clone_from(&second.source);
        assert_eq!(hub.joined(&key, &joins(letters[2])).await.source, first.source, "it has ended there");
    }
}

#[tokio::test]
async fn a_container_that_starts_again_before_another_hub_tells_of_its_end_is_itself() {
    let hub = Hub::new().await;
    let looks = AtomicU64::new(0);
    hub.accounts.ask_other_hubs(move |_| looks.fetch_add(1, Ordering::Relaxed) < 3);
    let key = hub.join_key(NewJoin { by_name: true, ..NewJoin::default() }).await;
    let pod = |letter: char| EnrolRequest { name: Some("gpu-1".into()), container: true, ..machine(letter, "pod-x7f") };
    let first = hub.joined(&key, &pod('a')).await;
    assert_eq!(hub.joined(&key, &pod('b')).await.source, first.source);
}

#[tokio::test]
async fn a_machine_that_an_admin_confirms_gets_its_key_then() {
    let hub = Hub::new().await;
    let key = hub.join_key(NewJoin { approve: true, uses: Some(2), ..NewJoin::default() }).await;
    let request = machine('a', "node-7");
    for _ in 0..3 {
        assert_eq!(hub.enrol(&key, &request).await, Ok(Enrolment::Pending));
        hub.pass(Duration::from_secs(10));
    }
    assert_eq!(hub.machines().await, ["node-7 pending"]);
    assert_eq!(hub.accounts.scope(&Principal::local(0)).await, Ok(Scope::All));
    let by = Principal::local(0);
    hub.accounts.approve(&by, "main", "node-7").await.expect("it waits");
    assert_eq!(hub.accounts.approve(&by, "main", "node-7").await.expect_err("it does not wait").status(), 409);
    let joined = hub.joined(&key, &request).await;
    hub.agent(&joined).await.expect("its key");
    // A rejected machine stays rejected, whatever the number of its requests.
    let other = machine('b', "node-8");
    assert_eq!(hub.enrol(&key, &other).await, Ok(Enrolment::Pending));
    hub.accounts.revoke(&by, "main", "node-8").await.expect("turned away");
    assert_eq!(hub.enrol(&key, &other).await.expect_err("turned away").status(), 403);
    assert_eq!(hub.accounts.approve(&by, "main", "node-8").await.expect_err("revoked").status(), 409);
    assert_eq!(hub.machines().await, ["node-7 active", "node-8 revoked"]);
}

#[tokio::test]
async fn revoked_replaced_and_removed_are_told_apart_and_links_close() {
    let (hub, begun) = Hub::with_admin().await;
    let key = hub.join_key(NewJoin::default()).await;
    let one = hub.joined(&key, &machine('a', "node-1")).await;
    let two = hub.joined(&key, &machine('b', "node-2")).await;
    let (first, second) = (hub.agent(&one).await.unwrap(), hub.agent(&two).await.unwrap());
    let (link, other) = (hub.accounts.watch_agent(&first), hub.accounts.watch_agent(&second));
    let revoked = hub.accounts.revoke(&begun.principal, "main", "node-1").await.unwrap();
    assert_eq!((revoked.state.as_str(), revoked.key), ("revoked", None));
    assert_eq!((link.borrow().clone(), other.borrow().clone()), (Some(LinkDenied::Revoked), None));
    assert_eq!(hub.agent(&one).await.expect_err("revoked").close_code(), Some(4003));
    assert_eq!(*hub.accounts.watch_agent(&first).borrow(), Some(LinkDenied::Revoked), "known before, watched after");
    // A revoked machine returns only by a join key for it.
    let reinstalled = EnrolRequest { request: digits('c', 32), ..machine('a', "node-1") };
    assert_eq!(hub.joined(&key, &reinstalled).await.name, "node-1-2");
    let own = hub.join_key(NewJoin { source: Some("node-1".into()), ..NewJoin::default() }).await;
    let back = hub.joined(&own, &EnrolRequest { request: digits('d', 32), ..machine('a', "node-1") }).await;
    assert_eq!(back.source, one.source);
    let denied = hub.enrol(&own, &EnrolRequest { request: digits('e', 32), ..machine('a', "node-1") }).await;
    assert_eq!(denied.expect_err("the line is for one machine").status(), 403);
    hub.agent(&back).await.expect("it is back");
    // A host that an agent found in a page does not become the machine of the agent's own key.
    let twice = hub.join_key(NewJoin { source: Some("node-1".into()), uses: Some(2), ..NewJoin::default() }).await;
    let found = EnrolRequest { platform: None, machine: None, ..machine('9', "node-77") };
    assert_eq!(hub.enrol(&twice, &found).await.expect_err("another machine").status(), 409);
    hub.agent(&back).await.expect("it keeps its key");

    hub.add("tom", Role::Admin, false).await;
    let tom = hub.sign_in("tom", PASSWORD).await.unwrap().principal;
    assert_eq!(hub.accounts.remove(&tom, "node-2").await.expect_err("no hub admin").status(), 403);
    assert_eq!(hub.accounts.remove(&begun.principal, "node-2").await, Ok(two.source.clone()));
    assert_eq!(*other.borrow(), Some(LinkDenied::Unknown));
    assert_eq!(hub.agent(&two).await.expect_err("removed").close_code(), Some(4004));
    assert_eq!(hub.accounts.erased(&two.source).await, Ok(vec![(0, u64::MAX)]));
    assert_eq!(hub.accounts.removed().await, Ok(vec![two.source.clone()]));
    let anew = hub.joined(&key, &EnrolRequest { request: digits('f', 32), ..machine('b', "node-2") }).await;
    assert_ne!(anew.source, two.source, "its id never comes back");
    assert_eq!(hub.agent(&one).await.expect_err("the key of before the revocation").close_code(), Some(4003));
    hub.pass(minutes(400 * 24 * 60 + 60));
    hub.join_key(NewJoin::default()).await;
    assert_eq!(hub.agent(&one).await, Err(LinkDenied::NoKey), "ended keys are remembered for 400 days");
}

#[tokio::test]
async fn names_are_unique_and_the_old_one_leads_here_for_90_days() {
    let hub = Hub::new().await;
    let key = hub.join_key(NewJoin::default()).await;
    let one = hub.joined(&key, &machine('a', "node-1")).await;
    hub.joined(&key, &machine('b', "node-2")).await;
    let by = Principal::local(0);
    let mut changes = hub.accounts.sources_changed();
    changes.borrow_and_update();
    let name = |name: &str| AgentChange { name: Some(name.into()), labels: None };
    let renamed = hub.accounts.change(&by, "main", "node-1", &name("gpu-1")).await.unwrap();
    assert!(changes.has_changed().unwrap());
    assert_eq!((renamed.id, renamed.name.as_str()), (one.source.clone(), "gpu-1"));
    assert_eq!(hub.accounts.find("node-1").await, Ok(Some(one.source.clone())));
    for taken in ["node-2", "node-1", &one.source] {
        let denied = hub.accounts.change(&by, "main", "node-2", &name(taken)).await;
        assert_eq!(denied.is_ok(), taken == "node-2", "{taken}");
    }
    for wrong in ["", "a b", "a/b", "\u{e9}", &digits('x', 64)] {
        assert_eq!(hub.accounts.change(&by, "main", "gpu-1", &name(wrong)).await.expect_err("no name").status(), 400);
    }
    hub.accounts.change(&by, "main", "node-1", &name("node-1")).await.expect("back to the name that it had");
    hub.pass(minutes(90 * 24 * 60));
    assert_eq!(hub.accounts.find("gpu-1").await, Ok(None));
    assert_eq!(hub.accounts.find("node-1").await, Ok(Some(one.source)));
    let third = hub.joined(&key_of(&hub).await, &machine('c', "gpu-1")).await;
    assert_eq!(third.name, "gpu-1", "the name is free again");
}

async fn key_of(hub: &Hub) -> NewKey {
    hub.join_key(NewJoin::default()).await
}

#[tokio::test]
async fn labels_of_admins_count_more_than_those_of_the_line() {
    let hub = Hub::new().await;
    let labels = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let wanted = NewJoin { labels: labels(&[("rack", "r1"), ("tier", "gpu")]), ..NewJoin::default() };
    let key = hub.join_key(wanted).await;
    let one = hub.joined(&key, &machine('a', "node-1")).await;
    assert_eq!(one.labels, labels(&[("rack", "r1"), ("tier", "gpu")]));
    let change = AgentChange { name: None, labels: Some(labels(&[("rack", "r9")])) };
    hub.accounts.change(&Principal::local(0), "main", &one.source, &change).await.unwrap();
    assert_eq!(hub.agent(&one).await.unwrap().labels, labels(&[("rack", "r9")]));
    let again = hub.joined(&key, &EnrolRequest { request: digits('b', 32), ..machine('a', "node-1") }).await;
    assert_eq!(again.labels, labels(&[("rack", "r9"), ("tier", "gpu")]));
    let many: Vec<(String, String)> = (0..33).map(|i| (format!("k{i}"), String::new())).collect();
    for wrong in [labels(&[("Rack", "r")]), labels(&[("", "r")]), labels(&[("a", "b\n")]), many.into_iter().collect()] {
        let change = AgentChange { name: None, labels: Some(wrong) };
        let denied = hub.accounts.change(&Principal::local(0), "main", "node-1", &change).await;
        assert_eq!(denied.expect_err("is not a label").status(), 400);
    }
}

#[tokio::test]
async fn what_an_agent_sends_is_believed_in_nothing() {
    let hub = Hub::new().await;
    let key = hub.join_key(NewJoin::default()).await;
    let good = machine('a', "node-1");
    for (what, wrong) in [
        ("request", EnrolRequest { request: "x".into(), ..good.clone() }),
        ("request", EnrolRequest { request: digits('z', 32), ..good.clone() }),
        ("name", EnrolRequest { name: Some("../../etc".into()), ..good.clone() }),
        ("machine", EnrolRequest { machine: Some("' OR 1=1".into()), ..good.clone() }),
        ("links", EnrolRequest { links: vec![digits('a', 64); 65], ..good.clone() }),
        ("host", EnrolRequest { host: digits('h', 256), ..good.clone() }),
        ("host", EnrolRequest { host: "a\u{1b}[2J".into(), ..good.clone() }),
        ("version", EnrolRequest { version: Some(digits('v', 65)), ..good.clone() }),
    ] {
        assert_eq!(hub.enrol(&key, &wrong).await.expect_err(what).status(), 400, "{what}");
    }
    assert_eq!(hub.machines().await, Vec::<String>::new());
    let odd = hub.joined(&key, &EnrolRequest { host: "\u{fc}ber <b>".into(), ..good }).await;
    assert_eq!(odd.name, "berb", "of a host name the letters that a name may have");
    for _ in 0..10 {
        let denied = hub.accounts.enrol("wg_j_guess", &machine('b', "x"), &network(8)).await;
        assert_eq!(denied.expect_err("no key").status(), 401);
    }
    let denied = hub.accounts.enrol("wg_j_guess", &machine('b', "x"), &network(8)).await;
    assert_eq!(denied.expect_err("too often").status(), 429);
    let denied = hub.accounts.agent("wg_a_guess", &network(8)).await.expect_err("too often");
    assert!(matches!(denied, LinkDenied::Throttled { .. }));
    assert!(hub.accounts.enrol(key.key.reveal(), &machine('b', "x"), &network(8)).await.is_ok());
}

#[tokio::test]
async fn a_team_sees_its_machines_and_the_hubs_own_once_they_are_confirmed() {
    let (hub, _) = Hub::with_admin().await;
    hub.add("tom", Role::Viewer, false).await;
    hub.accounts.own_machine("hub-host").await.unwrap();
    hub.accounts.own_machine("hub-host").await.unwrap();
    let tom = hub.sign_in("tom", PASSWORD).await.unwrap().principal;
    assert!(tom.scope().sees("hub-host"));
    let key = hub.join_key(NewJoin { approve: true, ..NewJoin::default() }).await;
    let request = machine('a', "node-1");
    assert_eq!(hub.enrol(&key, &request).await, Ok(Enrolment::Pending));
    let by = Principal::local(0);
    let id = hub.accounts.agents(&by, "main").await.unwrap()[0].id.clone();
    assert!(!hub.accounts.scope(&tom).await.unwrap().sees(&id));
    hub.accounts.approve(&by, "main", &id).await.unwrap();
    assert!(hub.accounts.scope(&tom).await.unwrap().sees(&id) && !tom.scope().sees(&id));
    assert_eq!(hub.accounts.remove(&by, "hub-host").await.expect_err("its own").status(), 409);
    // An endpoint of the hub tells of it.
    for (id, host) in [("hub-host:node-1.lab", "node-1.lab"), ("hub-host:\u{fc}", "\u{fc}")] {
        hub.accounts.found_machine(id, host).await.unwrap();
        hub.accounts.found_machine(id, host).await.unwrap();
        assert!(hub.accounts.scope(&tom).await.unwrap().sees(id));
    }
    let named = |(id, name, _): (String, String, _)| id.starts_with("hub-host:").then_some(name);
    let called = hub.accounts.called().await.unwrap();
    let mut names: Vec<String> = called.into_iter().filter_map(named).collect();
    names.sort();
    assert_eq!(names, ["machine", "node-1-2"], "an agent has the other name");
    assert_eq!(hub.accounts.revoke(&by, "main", "node-1-2").await, Err(Denied::Unknown));
    hub.accounts.remove(&by, "node-1-2").await.unwrap();
    hub.accounts.found_machine("hub-host:node-1.lab", "node-1.lab").await.unwrap();
    assert!(!hub.accounts.scope(&tom).await.unwrap().sees("hub-host:node-1.lab"), "it was removed for good");
    assert_eq!(hub.accounts.revoke(&by, "main", "hub-host").await, Err(Denied::Unknown));
    let era = |first, shift_ms| Era { first, shift_ms, skew_ms: -shift_ms, rtt_ms: 4 };
    for (first, shift) in [(u64::MAX, 1), (7, 2), (7, 3)] {
        hub.accounts.put_era(&id, &era(first, shift)).await.unwrap();
    }
    assert_eq!(hub.accounts.eras(&id).await, Ok(vec![era(7, 3), era(u64::MAX, 1)]));
    let heard = Heard { version: Some("0.2.0".into()), facts: Some(digits('f', 70_000)), ..Heard::default() };
    hub.accounts.store_report(&id, &heard).await.expect("what is too long is left out");
    let agent = hub.accounts.agents(&by, "main").await.unwrap().remove(0);
    assert_eq!((agent.version.as_deref(), agent.seen), (Some("0.2.0"), Some(hub.clock.wall() / 1_000)));
}

#[tokio::test]
async fn where_it_is_wanted_a_machine_that_was_installed_anew_is_confirmed_and_a_new_one_is_not() {
    let hub = Hub::new().await;
    hub.accounts.confirm_rejoins();
    let key = hub.join_key(NewJoin::default()).await;
    let one = hub.joined(&key, &machine('a', "node-1")).await;
    let again = EnrolRequest { request: digits('c', 32), ..machine('a', "node-1") };
    assert_eq!(hub.enrol(&key, &again).await, Ok(Enrolment::Pending));
    assert_eq!(hub.machines().await, ["node-1 pending"]);
    hub.agent(&one).await.expect("the key of before holds until then");
    hub.accounts.approve(&Principal::local(0), "main", "node-1").await.expect("it waits");
    let back = hub.joined(&key, &again).await;
    assert_eq!((back.source.as_str(), hub.machines().await), (one.source.as_str(), vec!["node-1 active".to_owned()]));
}

#[tokio::test]
async fn a_machine_that_joined_for_a_while_has_ended_when_it_was_away_for_an_hour() {
    let hub = Hub::new().await;
    let key = hub.join_key(NewJoin { ephemeral: true, ..NewJoin::default() }).await;
    let passing = hub.joined(&key, &machine('a', "job-1")).await;
    let key = hub.join_key(NewJoin::default()).await;
    hub.joined(&key, &machine('b', "node-1")).await;
    hub.pass(minutes(59));
    assert_eq!(hub.accounts.ended().await, Ok(Vec::new()));
    hub.pass(minutes(2));
    assert_eq!(hub.accounts.ended().await, Ok(vec![passing.source.clone()]));
    hub.accounts.store_report(&passing.source, &Heard::default()).await.expect("it is back");
    assert_eq!(hub.accounts.ended().await, Ok(Vec::new()));
}
