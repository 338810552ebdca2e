//! Alerts from code are stored, counted and bounded.

use super::*;
use ::rules::What;
use shared::alert::CodeAlert;
use shared::catalog::Catalog;
use stream::clock::Manual;
use stream::store::{Limits, Store};

const NOW: i64 = 1_700_000_000_000;

fn live() -> (Arc<Live>, Arc<Manual>) {
    let mut store = Store::new(Arc::new(Catalog::new(Vec::new())), Limits { retention: 3_600_000, bytes: usize::MAX });
    store.add_source("here".into(), 1_000, Vec::new());
    let clock = Arc::new(Manual::at(NOW, Duration::from_secs(10_000)));
    (Live::new(store, clock.clone(), 1, 3_600_000), clock)
}

fn call(live: &Live, run: &str, title: &str) -> AlertCall {
    let said = CodeAlert { title: title.into(), run: Some(run.into()), ..CodeAlert::default() };
    AlertCall::checked(said, live.clock.wall()).expect("an alert")
}

fn kept(live: &Live) -> Vec<AlertCall> {
    live.store().records_since(0, 0).iter().filter_map(|placed| from_record(&placed.record)).collect()
}

#[test]
fn a_thousand_calls_in_a_second_are_a_few_records_that_count_them_all() {
    let (live, clock) = live();
    let calls = Calls::default();
    for n in 1..=1_000 {
        let taken = calls.take(&live, 0, call(&live, "llm", "loss is NaN")).expect("it is taken");
        assert_eq!((taken.began, taken.count, taken.new), (NOW, n, n == 1));
        clock.pass(Duration::from_millis(1));
    }
    assert_eq!(kept(&live).len(), 1, "the first is there at once");
    clock.pass(Duration::from_secs(2));
    calls.write(&live, false);
    let all = kept(&live);
    assert_eq!(all.iter().map(|call| call.count).collect::<Vec<_>>(), [1, 999]);
    // One hour of calls: the gap grows, and no call is lost.
    for _ in 0..3_600 {
        // Every 10 min it becomes a new alert.
        calls.take(&live, 0, call(&live, "llm", "loss is NaN")).expect("it is taken");
        clock.pass(Duration::from_secs(1));
        calls.write(&live, false);
    }
    calls.write(&live, true);
    let all = kept(&live);
    assert!(all.len() < 100, "{}", all.len());
    assert_eq!(all.iter().map(|call| call.count).sum::<u64>(), 4_600);
    assert_eq!(calls.dropped(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_of_a_request_is_of_the_run_and_rank_below_which_its_process_stands() {
    let (live, _) = live();
    let own = std::process::id();
    let start = launch::process::started(own).expect("it runs");
    let rank = ValueSender { run: Some("abc".into()), rank: Some(3), ..ValueSender::default() };
    live.source(0).job_values.set_processes(vec![(own, start, rank)]);
    let said = CodeAlert { title: "loss is NaN".into(), ..CodeAlert::default() };
    let of_machine = AlertCall::checked(said, NOW).expect("an alert");
    let placed = |call: &AlertCall, pid| {
        let call = in_run_of(&live, 0, call.clone(), pid);
        (call.run, call.ranks)
    };
    assert_eq!(placed(&of_machine, Some(own)), (Some("abc".into()), vec![3]));
    assert_eq!(placed(&of_machine, None), (None, vec![]), "over the network nobody knows the process");
    assert_eq!(placed(&call(&live, "named", "loss is NaN"), Some(own)), (Some("named".into()), vec![]));
    live.source(0).job_values.set_processes(Vec::new());
    assert_eq!(placed(&of_machine, Some(own)), (None, vec![]), "outside of all runs");
}

#[test]
fn ranks_that_say_one_thing_are_one_alert_that_names_them() {
    let (live, clock) = live();
    let calls = Calls::default();
    for rank in (0..64).map(|n| (n + 3) % 64) {
        let one = AlertCall { ranks: vec![rank], ..call(&live, "llm", "loss is NaN") };
        calls.take(&live, 0, one).expect("it is taken");
    }
    clock.pass(Duration::from_secs(2));
    calls.write(&live, false);
    let mut all = kept(&live).into_iter();
    let mut one = all.next().expect("the first");
    assert_eq!(one.ranks, [3]);
    all.for_each(|more| one.fold(more));
    assert_eq!((one.count, one.ranks.len(), one.ranks[0]), (64, 64, 3));
}

#[test]
fn who_gets_worse_is_not_kept_waiting_and_who_says_it_later_says_something_new() {
    let (live, clock) = live();
    let calls = Calls::default();
    let loss = || AlertCall { wait: 60, ..call(&live, "llm", "loss is NaN") };
    assert!(calls.take(&live, 0, loss()).is_ok_and(|taken| taken.new));
    assert!(calls.take(&live, 0, loss()).is_ok_and(|taken| !taken.new));
    assert_eq!(kept(&live).len(), 1);
    let worse = AlertCall { severity: AlertSeverity::Critical, ..loss() };
    assert_eq!(calls.take(&live, 0, worse).map(|taken| taken.count), Ok(3));
    let newest = kept(&live).pop().expect("it");
    assert_eq!((newest.severity, newest.count), (AlertSeverity::Critical, 2));
    // Repeats count from the first call: a loop that never stops is reported again.
    clock.pass(Duration::from_secs(59));
    assert!(calls.take(&live, 0, loss()).is_ok_and(|taken| !taken.new));
    clock.pass(Duration::from_secs(1));
    let again = calls.take(&live, 0, loss()).expect("it is taken");
    assert_eq!((again.began, again.count, again.new), (NOW + 60_000, 1, true));
    assert_eq!(kept(&live).iter().map(|call| call.count).collect::<Vec<_>>(), [1, 2, 1, 1]);
}

#[test]
fn too_many_of_a_run_are_counted_and_said_once() {
    let (live, clock) = live();
    let calls = Calls::default();
    let all = |from: usize, to: usize, run: &str| {
        let taken = (from..to).map(|n| calls.take(&live, 0, call(&live, run, &format!("step {n}"))));
        taken.filter(Result::is_ok).count()
    };
    assert_eq!(all(0, 40, "llm"), 10);
    assert_eq!(calls.dropped(), 30);
    assert_eq!(all(0, 5, "other"), 5, "each run has its own");
    let said = || kept(&live).into_iter().filter(|call| call.title.starts_with("Limit of alerts")).collect::<Vec<_>>();
    assert_eq!(said().iter().map(|call| call.run.as_deref()).collect::<Vec<_>>(), [Some("llm")]);
    for minute in 0..20 {
        clock.pass(Duration::from_secs(60));
        all(100 + 10 * minute, 110 + 10 * minute, "llm");
    }
    let titles = kept(&live).into_iter().filter(|call| call.run.as_deref() == Some("llm"));
    assert_eq!(titles.map(|call| call.title).filter(|title| title.starts_with("step")).count(), MAX_TITLES);
    assert_eq!(said().len(), 1, "it is said once");
    // Known titles still pass, and the next day has room for new ones.
    assert_eq!(all(100, 101, "llm"), 1);
    clock.pass(TITLE_LIFE);
    assert_eq!(all(900, 901, "llm"), 1);
}

#[test]
fn a_call_that_is_sent_twice_is_one_also_behind_a_restart() {
    let (live, clock) = live();
    let named = || AlertCall { id: Some("once".into()), ..call(&live, "llm", "loss is NaN") };
    let calls = Calls::default();
    let first = calls.take(&live, 0, named()).expect("it is taken");
    assert!(first.new);
    clock.pass(Duration::from_secs(3));
    let known = TakenCall { new: false, ..first };
    assert_eq!(calls.take(&live, 0, named()), Ok(known.clone()));
    let again = Calls::default();
    assert_eq!(again.take(&live, 0, named()), Ok(known));
    assert_eq!(again.take(&live, 0, call(&live, "llm", "loss is NaN")).map(|taken| taken.count), Ok(2));
    assert_eq!(kept(&live).iter().map(|call| call.count).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn what_is_no_alert_is_none() {
    let record = |kind: &str, body: &[u8]| Record { n: 1, t: NOW, kind: kind.into(), body: body.to_vec() };
    assert!(from_record(&record("alert", br#"{"title":"a","new":true}"#)).is_some_and(|call| call.t == NOW));
    for (kind, body) in [("marker", &br#"{"title":"a"}"#[..]), ("alert", b"{}"), ("alert", b"\xff"), ("alert", b"[1]")]
    {
        assert_eq!(from_record(&record(kind, body)), None);
    }
}

#[tokio::test]
async fn a_hub_hands_calls_on_and_answers_once_they_are_kept() {
    let (live, _) = live();
    let calls = Arc::new(Calls::default());
    let nobody = calls.tell(&live, 0, call(&live, "llm", "loss is NaN")).await;
    assert!(matches!(nobody, Err(RefusedCall::Store(why)) if why.contains("does not evaluate alerts")));
    let mut told = calls.listen();
    let kept_by = tokio::spawn(async move {
        let ToldCall { source, call, answer } = told.recv().await.expect("a call");
        let taken = TakenCall { id: "a".into(), began: call.t, count: 7, new: false };
        answer.send(taken).expect("it waits");
        (source, call.title)
    });
    let taken = calls.tell(&live, 0, call(&live, "llm", "loss is NaN")).await.expect("it is kept");
    assert_eq!((taken.id.as_str(), taken.count), ("a", 7));
    assert_eq!(kept_by.await.expect("no panic"), (0, "loss is NaN".into()));
    assert!(kept(&live).is_empty(), "no record is written on a hub");
    let unknown = calls.tell(&live, 0, call(&live, "llm", "loss is NaN")).await;
    assert!(matches!(unknown, Err(RefusedCall::Store(_))), "who evaluates has gone");
}

#[test]
fn records_are_folded_to_one_alert_with_the_id_that_was_answered() {
    let (live, clock) = live();
    let calls = Calls::default();
    let mut answered = Vec::new();
    for rank in [3, 1, 2, 3, 3] {
        let one = AlertCall { ranks: vec![rank], ..call(&live, "llm", "loss is NaN") };
        answered.push(calls.take(&live, 0, one).expect("it is taken"));
    }
    clock.pass(Duration::from_secs(2));
    calls.write(&live, false);
    let labels = BTreeMap::from([("project".to_string(), "llm".to_string())]);
    let tied = Tied { source: "here".into(), run: Some("llm".into()), labels };
    let (mut codes, now) = (Codes::default(), live.clock.wall());
    let mut all = Vec::new();
    for call in kept(&live) {
        all.extend(codes.take(&call, &tied, now).1);
    }
    let told: Vec<(What, u64)> = all.iter().map(|change| (change.what, change.alert.count)).collect();
    assert_eq!(told, [(What::Fired, 1), (What::Changed, 5)]);
    let alert = &all[1].alert;
    assert!(answered.iter().all(|taken| taken.id == alert.id), "{answered:?} {}", alert.id);
    assert_eq!((alert.labels["run"].as_str(), alert.labels["project"].as_str()), ("llm", "llm"));
    assert_eq!((alert.began, alert.severity), (NOW, AlertSeverity::Warning));
    // The same records again, as after a crash, are still one alert.
    let named = AlertCall { id: Some("once".into()), ..call(&live, "llm", "disk") };
    assert_eq!(codes.take(&named, &tied, now).1.len(), 1);
    assert!(codes.take(&named, &tied, now).1.is_empty());
}
