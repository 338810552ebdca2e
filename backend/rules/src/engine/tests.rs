//! Rules fire, clear, flap and restart correctly.

use super::*;
use What::{Changed, Dropped, Ended, Fired, Pending};
use shared::alert::AlertSeverity;
use shared::catalog::VOCABULARY;
use shared::failure::FailureClass;
use shared::finding::{Place, Severity};
use shared::run::{About, Rank, Run, RunProcess, RunState};

const T: i64 = 1_790_000_000_000;
const SECOND: i64 = 1_000;

fn catalog() -> Catalog {
    Catalog::new(VOCABULARY.iter().copied().flatten().copied())
}

fn rule(id: &str, when: &str) -> Rule {
    Rule {
        id: id.into(),
        name: id.into(),
        when: when.into(),
        enabled: true,
        resolved: true,
        quiet: true,
        ..Rule::default()
    }
}

/// An engine with machines that all have these series.
struct World {
    engine: Engine,
    catalog: Catalog,
    tags: Vec<String>,
    now: i64,
}

impl World {
    fn new(rules: &[Rule], machines: &[&str], tags: &[&str]) -> World {
        let mut world = World { engine: Engine::new(T), catalog: catalog(), tags: Vec::new(), now: T };
        assert_eq!(world.engine.set_rules(rules, &world.catalog, T), []);
        machines.iter().for_each(|name| world.engine.source(&machine(name)));
        world.tags = tags.iter().map(ToString::to_string).collect();
        machines.iter().for_each(|name| world.define(name));
        world
    }

    fn define(&mut self, name: &str) {
        for (i, tag) in self.tags.iter().enumerate() {
            let found = self.catalog.find(tag).expect("a tag");
            let series = SeriesDef { metric: found.metric, instance: found.instance };
            self.engine.define(name, i as u32, &series, &self.catalog);
        }
    }

    fn tick(&mut self, name: &str, values: &[f64]) {
        self.step(name, SECOND, false, values);
    }

    fn step(&mut self, name: &str, ms: i64, clock_step: bool, values: &[f64]) {
        self.now += ms;
        self.engine.tick(&Tick { source: name, t: self.now, now: self.now, clock_step, values });
    }

    /// Applies `n` ticks of one machine.
    fn ticks(&mut self, n: usize, values: &[f64]) -> Vec<(usize, What)> {
        let mut all = Vec::new();
        for i in 1..=n {
            self.tick("a", values);
            all.extend(self.engine.take().into_iter().map(|change| (i, change.what)));
        }
        all
    }

    fn whats(&mut self) -> Vec<What> {
        self.engine.take().into_iter().map(|change| change.what).collect()
    }
}

fn machine(name: &str) -> Machine {
    Machine { id: name.into(), name: name.into(), interval_ms: 1000, labels: BTreeMap::new() }
}

const HOT: &str = "gpu.*.temp > 85 C for 60s, until < 82 C for 10s";

#[test]
fn a_series_fires_after_its_time_and_clears_by_its_hysteresis() {
    let mut world = World::new(&[rule("hot", HOT)], &["a"], &["gpu.0.temp"]);
    assert_eq!(world.ticks(5, &[80.0]), []);
    assert_eq!(world.ticks(100, &[90.0]), [(11, Pending), (61, Fired)]);
    // Below the limit, above `until`: it fires on.
    assert_eq!(world.ticks(100, &[84.0]), []);
    assert_eq!(world.ticks(9, &[81.0]), []);
    assert_eq!(world.ticks(1, &[83.0]), []);
    assert_eq!(world.ticks(20, &[81.0]), [(11, Ended)]);
    assert_eq!(world.ticks(30, &[90.0]), [(11, Pending)]);
    assert_eq!(world.ticks(1, &[85.0]), [(1, Dropped)]);
    // Short crossings are not reported.
    assert_eq!(world.ticks(5, &[90.0]), []);
    assert_eq!(world.ticks(1, &[85.0]), []);
}

#[test]
fn an_alert_says_what_where_and_how_much() {
    let mut world = World::new(&[rule("hot", HOT)], &["node-1"], &["gpu.3.temp"]);
    for _ in 0..70 {
        world.tick("node-1", &[89.12]);
    }
    let fired = world.engine.take().pop().expect("fired").alert;
    assert_eq!(fired.sentence, "node-1 GPU 3: GPU temperature 89.1 °C, above 85 °C for 1 min");
    assert_eq!(
        (fired.subject.as_str(), fired.value, fired.labels["gpu"].as_str()),
        ("node-1 gpu.3.temp", Some(89.12), "3")
    );
    assert_eq!(fired.fired.map(|t| t - fired.began), Some(60_000));
    assert_eq!(fired.id, crate::id::alert("hot", "node-1 gpu.3.temp", fired.began));
    for _ in 0..20 {
        world.tick("node-1", &[70.0]);
    }
    let over = world.engine.take().pop().expect("over").alert;
    assert_eq!((over.id, over.worst), (fired.id, Some(89.12)));
    assert_eq!(over.sentence, "node-1 GPU 3: GPU temperature 70 °C now, was above 85 °C for 1 min 18 s");
}

#[test]
fn a_value_of_a_job_that_is_no_number_is_told_with_its_rank_and_run() {
    let odd = |name: &str| format!("job.not_a_number{{name=\"{name}\",rank=\"3\",run=\"abc\"}}");
    let (loss, accuracy) = (odd("loss"), odd("accuracy"));
    let tags = ["job.loss{rank=\"3\",run=\"abc\"}", loss.as_str(), accuracy.as_str()];
    let mut world = World::new(&[rule("nan", "job.loss is not a number")], &["a"], &tags);
    assert_eq!(world.ticks(5, &[0.5, f64::NAN, 1.0]), [], "another value");
    world.tick("a", &[f64::NAN, 1.0, f64::NAN]);
    let fired = world.engine.take().pop().expect("fired");
    assert_eq!(fired.what, Fired);
    let alert = fired.alert;
    assert!(alert.sentence.starts_with("a rank 3 · abc: loss is not a number since "), "{}", alert.sentence);
    assert_eq!((alert.labels["run"].as_str(), alert.labels["rank"].as_str(), alert.value), ("abc", "3", None));
    // A step takes five seconds, and a value is a sample once.
    for _ in 0..20 {
        world.tick("a", &[0.5, 0.0, f64::NAN]);
        (0..4).for_each(|_| world.tick("a", &[f64::NAN; 3]));
    }
    let ended = world.engine.take().into_iter().find(|change| change.what == Ended).expect("it is a number again");
    assert!(ended.alert.sentence.contains("loss is a number again"), "{}", ended.alert.sentence);
}

#[test]
fn a_value_that_comes_each_ten_seconds_fires_after_the_time_of_its_rule_and_is_known_in_between() {
    let mut world = World::new(&[rule("high", "job.loss > 3 for 60s")], &["a"], &["job.loss{rank=\"0\",run=\"abc\"}"]);
    assert_eq!(world.ticks(5, &[1.0]), []);
    let mut told = Vec::new();
    for _ in 0..20 {
        world.tick("a", &[5.0]);
        (0..9).for_each(|_| world.tick("a", &[f64::NAN]));
        told.push(world.whats());
    }
    // The first two times between samples are learned.
    assert_eq!(told.iter().position(|whats| whats.contains(&Fired)), Some(8));
    assert_eq!(told.concat(), [Pending, Fired], "between two steps it is no other value");
    let silent: Vec<What> = world.ticks(60, &[f64::NAN]).into_iter().map(|(_, what)| what).collect();
    assert_eq!(silent, [Changed], "three times later it is unknown");
}

#[test]
fn a_value_is_compared_with_its_own_mean() {
    let slow = rule("slow", "job.tokens_per_s < 0.8 x its mean over 60s for 5s");
    let mut world = World::new(&[slow], &["a"], &["job.tokens_per_s{rank=\"0\",run=\"abc\"}"]);
    assert_eq!(world.ticks(30, &[1_000.0]), []);
    assert_eq!(world.ticks(5, &[100.0]), [], "no mean is known yet");
    assert_eq!(world.ticks(100, &[1_000.0]), []);
    assert_eq!(world.ticks(30, &[850.0]), []);
    let told = world.ticks(20, &[500.0]);
    assert_eq!(told.last().map(|(_, what)| *what), Some(Fired), "{told:?}");
    let mut zero = World::new(&[rule("r", "cpu > 2 x its mean over 10s")], &["a"], &["cpu"]);
    assert_eq!(zero.ticks(100, &[0.0]), [], "nothing is a part of zero");
}

#[test]
fn without_until_the_opposite_clears_after_a_fifth_of_the_time() {
    for (hold, clear) in [("0s", 30), ("60s", 30), ("10m", 120)] {
        let mut world = World::new(&[rule("r", &format!("cpu > 50 for {hold}"))], &["a"], &["cpu"]);
        world.ticks(3, &[0.0]);
        world.ticks(700, &[60.0]);
        assert_eq!(world.ticks(200, &[50.0]), [(clear + 1, Ended)], "{hold}");
    }
}

#[test]
fn a_clock_that_is_set_neither_fires_nor_clears() {
    for (ms, said) in [(3_600_000, true), (-3_600_000, true), (-3_600_000, false)] {
        let mut world = World::new(&[rule("hot", HOT)], &["a"], &["gpu.0.temp"]);
        world.ticks(5, &[80.0]);
        world.ticks(30, &[90.0]);
        world.step("a", ms, said, &[90.0]);
        assert_eq!(world.whats(), [], "{ms} {said}");
        assert_eq!(world.ticks(40, &[90.0]), [(30, Fired)], "{ms} {said}");
        world.step("a", ms, said, &[80.0]);
        assert_eq!(world.whats(), []);
        assert_eq!(world.ticks(20, &[80.0]), [(10, Ended)], "{ms} {said}");
    }
}

#[test]
fn a_gap_counts_three_intervals_and_what_fires_says_that_nothing_is_heard() {
    let mut world = World::new(&[rule("hot", HOT)], &["a"], &["gpu.0.temp", "cpu"]);
    world.ticks(5, &[80.0, 1.0]);
    world.ticks(31, &[90.0, 1.0]);
    // The machine was away for an hour.
    world.step("a", 3_600_000, false, &[90.0, 1.0]);
    assert_eq!(world.ticks(40, &[90.0, 1.0]), [(27, Fired)]);
    // The series alone is away.
    assert_eq!(world.ticks(100, &[f64::NAN, 1.0]), [(4, Changed)]);
    assert_eq!(world.ticks(100, &[90.0, 1.0]), [(1, Changed)]);
    world.ticks(3, &[f64::NAN, 1.0]);
    let said: Vec<_> = (0..2)
        .flat_map(|_| {
            world.tick("a", &[f64::NAN, 1.0]);
            world.engine.take()
        })
        .collect();
    assert!(said[0].alert.sentence.contains("no data since") && said[0].alert.unknown_since.is_some());
    // Gone for good.
    world.engine.undefine("a", 0);
    let over = world.engine.take();
    assert_eq!(over.len(), 1);
    assert!(over[0].what == Ended && over[0].alert.sentence.ends_with("its series has ended"));
}

#[test]
fn a_restart_goes_on_where_it_was_and_waits_two_intervals() {
    for at in [20, 55, 90] {
        let mut world = World::new(&[rule("hot", HOT)], &["a"], &["gpu.0.temp"]);
        world.ticks(5, &[80.0]);
        let mut before: Vec<Alert> = Vec::new();
        for _ in 0..at {
            world.tick("a", &[90.0]);
            world.engine.poll(world.now);
            before.extend(world.engine.take().into_iter().filter(|c| c.what == Fired).map(|c| c.alert));
        }
        world.engine.sweep(true, world.now);
        let rows = world.engine.changed_rows();
        let fires = !before.is_empty();
        let mut next = Engine::new(world.now + 30_000);
        next.restore(&rows, &before);
        next.set_rules(&[rule("hot", HOT)], &world.catalog, world.now + 30_000);
        next.source(&machine("a"));
        world.engine = next;
        world.define("a");
        world.now += 30_000;
        let after = world.ticks(100, &[90.0]);
        // Two ticks are observed only; the gap counts as one step of them.
        let expected: Vec<(usize, What)> = if fires { Vec::new() } else { vec![(64 - at, Fired)] };
        assert!(
            after == expected
                || (!fires && after.len() == 1 && after[0].1 == Fired && after[0].0.abs_diff(expected[0].0) <= 3),
            "{at}: {after:?}"
        );
        let over = world.ticks(30, &[80.0]);
        assert_eq!(over.iter().map(|o| o.1).collect::<Vec<_>>(), [Ended], "{at}");
    }
}

#[test]
fn what_fired_before_a_start_and_is_not_found_again_is_over() {
    let mut world = World::new(&[rule("hot", HOT)], &["a"], &["gpu.0.temp"]);
    world.ticks(5, &[80.0]);
    world.ticks(70, &[90.0]);
    let alert = Alert { state: shared::alert::AlertState::Firing, ..alert_of(&mut world) };
    let mut next = Engine::new(world.now);
    next.restore(&[], std::slice::from_ref(&alert));
    next.set_rules(&[rule("other", HOT)], &world.catalog, world.now);
    next.source(&machine("a"));
    next.tick(&Tick { source: "a", t: world.now, now: world.now, clock_step: false, values: &[] });
    next.poll(world.now + ORPHAN_MS - 1);
    assert_eq!(next.take(), []);
    next.poll(world.now + ORPHAN_MS);
    let over = next.take();
    assert_eq!((over.len(), over[0].what, &over[0].alert.id), (1, Ended, &alert.id));
}

fn alert_of(world: &mut World) -> Alert {
    for _ in 0..10 {
        world.tick("a", &[f64::NAN]);
    }
    world.engine.take().pop().expect("a change").alert
}

#[test]
fn a_rule_that_is_changed_ends_what_it_found_and_one_that_stays_goes_on() {
    let mut world = World::new(&[rule("hot", HOT), rule("busy", "cpu > 50")], &["a"], &["gpu.0.temp", "cpu"]);
    world.ticks(5, &[80.0, 1.0]);
    world.ticks(70, &[90.0, 90.0]);
    let rules = [rule("hot", HOT), rule("busy", "cpu > 60")];
    world.engine.set_rules(&rules, &world.catalog, world.now);
    assert_eq!(world.whats(), [Ended]);
    assert_eq!(world.ticks(5, &[90.0, 90.0]), [(1, Fired)]);
    world.engine.set_rules(&[], &world.catalog, world.now);
    assert_eq!(world.whats(), [Ended, Ended]);
    assert_eq!(world.engine.subjects(), 0);
}

#[test]
fn who_flaps_is_told_once_until_it_stands_still() {
    let mut world = World::new(&[rule("r", "cpu > 50 for 0s, until < 50 for 10s")], &["a"], &["cpu"]);
    world.ticks(3, &[0.0]);
    let (mut whats, mut flapping) = (Vec::new(), 0);
    for minute in 0..120 {
        for second in 0..60 {
            world.tick("a", &[if second < 30 && minute < 60 { 90.0 } else { 10.0 }]);
            for change in world.engine.take() {
                flapping += u32::from(change.flapping && change.what == Fired);
                whats.push((minute, change.what));
            }
        }
    }
    let fired = whats.iter().filter(|w| w.1 == Fired).count();
    assert_eq!((fired, flapping), (5, 1), "{whats:?}");
    // It ends half an hour after its last change; one row per half hour has the count.
    assert_eq!(whats.last(), Some(&(89, Ended)), "{whats:?}");
    assert!((2..=3).contains(&whats.iter().filter(|w| w.1 == Changed).count()), "{whats:?}");
}

#[test]
fn what_is_missing_fires_while_the_machine_is_heard() {
    let mut world =
        World::new(&[rule("gone", "disk.*.usagePercent missing for 1m")], &["a"], &["disk./data.usagePercent", "cpu"]);
    // It was never there.
    assert_eq!(world.ticks(200, &[f64::NAN, 1.0]), []);
    world.ticks(5, &[50.0, 1.0]);
    world.step("a", 3_600_000, false, &[50.0, 1.0]);
    assert_eq!(world.ticks(80, &[f64::NAN, 1.0]), [(11, Pending), (61, Fired)]);
    assert_eq!(world.ticks(1, &[50.0, 1.0]), [(1, Ended)]);
}

#[test]
fn functions_and_two_conditions() {
    let rules = [
        rule("rate", "rate(network.sent, 1m) > 1 kB/s"),
        rule("both", "memory_percent > 97 and pressure.memory.full_percent > 10 for 10s"),
    ];
    let mut world = World::new(&rules, &["a"], &["network.sent", "memory_percent", "pressure.memory.full_percent"]);
    let mut fired = Vec::new();
    for i in 0..300 {
        let sent = if i < 120 { 0.0 } else { f64::from(i - 120) * 2000.0 };
        world.tick("a", &[sent, 98.0, if i > 200 { 20.0 } else { 0.0 }]);
        fired.extend(world.engine.take().into_iter().filter(|c| c.what == Fired).map(|c| (i, c.alert.rule)));
    }
    // Half of the minute at 2 kB/s is 1 kB/s.
    assert!((149..=152).contains(&fired[0].0) && fired[0].1 == "rate", "{fired:?}");
    assert_eq!(fired[1], (211, "both".to_string()));
}

#[test]
fn a_disk_that_fills_is_told_before_it_is_full() {
    let mut world = World::new(
        &[rule("full", "disk.*.usagePercent reaches 100 % within 8h")],
        &["a"],
        &["disk./data.usagePercent"],
    );
    let mut at = None;
    // 5 % an hour from 50 %: full in 10 h, within 8 h after two of them.
    for minute in 0..600 {
        for _ in 0..6 {
            world.step("a", 10_000, false, &[50.0 + f64::from(minute) / 12.0]);
        }
        if let Some(change) = world.engine.take().pop() {
            at = Some((minute, change));
            break;
        }
    }
    let (minute, change) = at.expect("fired");
    assert!((115..=130).contains(&minute), "{minute}");
    assert!(change.alert.sentence.contains("reaches 100 % at about"), "{}", change.alert.sentence);
}

#[test]
fn groups_are_of_machines_runs_and_gpus() {
    let rules = [
        rule("run", "mean over run of gpu.*.gpu < 50 for 10s"),
        rule("share", "share < 5 % over source of gpu.*.gpu >= 50 % for 10s"),
    ];
    let mut world = World::new(&rules, &["a", "b"], &["gpu.0.gpu", "gpu.1.gpu"]);
    let process = |source: &str, gpus: &[u32]| RunProcess {
        source: source.into(),
        rank: Some(Rank { gpus: gpus.to_vec(), ..Rank::default() }),
        ..RunProcess::default()
    };
    let mut run =
        Run { id: "r1".into(), began: T, processes: vec![process("a", &[0]), process("b", &[1])], ..Run::default() };
    run.about = About { name: Some("llm".into()), project: Some("p".into()), ..About::default() };
    world.engine.run(&run, T);
    let mut all = Vec::new();
    for i in 0..60 {
        world.now += SECOND;
        // a.0 and b.1 are the run's; their mean is 40 from 20 on.
        let low = i >= 20;
        for (name, values) in [("a", [if low { 70.0 } else { 90.0 }, 0.0]), ("b", [0.0, if low { 10.0 } else { 90.0 }])]
        {
            world.engine.tick(&Tick { source: name, t: world.now, now: world.now, clock_step: false, values: &values });
        }
        all.extend(world.engine.take().into_iter().map(|c| (i, c.what, c.alert)));
    }
    let fired: Vec<_> = all
        .iter()
        .filter(|(_, what, _)| *what == Fired)
        .map(|(i, _, a)| (*i, a.rule.as_str(), a.sentence.as_str()))
        .collect();
    // One of the two GPUs of each machine is idle.
    assert_eq!(fired.len(), 3, "{fired:?}");
    assert!(
        fired.iter().any(
            |f| f.1 == "run" && f.2.starts_with("run llm: mean GPU utilization of a run 40 %, below 50 % for 10 s")
        ),
        "{fired:?}"
    );
    assert!(fired.iter().any(|f| f.1 == "share" && f.2.starts_with("b: share of a source")), "{fired:?}");
    run.state = RunState::Finished;
    run.ended = Some(world.now);
    world.engine.run(&run, world.now);
    world.tick("a", &[1.0, 1.0]);
    world.tick("b", &[1.0, 1.0]);
    let over: Vec<_> = world.engine.take().into_iter().filter(|c| c.what == Ended && c.alert.rule == "run").collect();
    assert_eq!(over.len(), 1);
}

#[test]
fn groups_of_a_machine_that_is_removed_are_over_and_those_of_others_go_on() {
    let rule = rule("r", "max over source of gpu.*.temp > 85 C for 5s");
    let mut world = World::new(&[rule], &["a", "b"], &["gpu.0.temp", "gpu.1.temp"]);
    for _ in 0..10 {
        world.tick("a", &[90.0, 80.0]);
        world.step("b", 0, false, &[90.0, 80.0]);
    }
    let fired: Vec<_> = world.engine.take().into_iter().filter(|c| c.what == Fired).map(|c| c.alert.subject).collect();
    assert_eq!(fired, ["a", "b"]);
    let now = world.now;
    world.engine.remove_source("a", now);
    let ended: Vec<_> = world.engine.take().into_iter().map(|c| (c.what, c.alert.subject, c.alert.ended)).collect();
    assert_eq!(ended, [(Ended, "a".to_string(), Some(now))]);
    assert_eq!(world.engine.subjects(), 1);
    for _ in 0..10 {
        world.tick("b", &[90.0, 80.0]);
    }
    assert_eq!(world.whats(), []);
}

#[test]
fn groups_of_runs_that_are_over_take_no_room() {
    let mut world = World::new(&[rule("run", "mean over run of gpu.*.gpu < 50 for 3s")], &["a"], &["gpu.0.gpu"]);
    let mut fired = Vec::new();
    for i in 0..10 {
        let process = RunProcess {
            source: "a".into(),
            rank: Some(Rank { gpus: vec![0], ..Rank::default() }),
            ..RunProcess::default()
        };
        let mut one = Run { processes: vec![process], ..run(&i.to_string(), RunState::Running, None) };
        world.engine.run(&one, world.now);
        fired.extend(world.ticks(6, &[10.0]).iter().filter(|w| w.1 == Fired).map(|_| i));
        (one.state, one.ended) = (RunState::Finished, Some(world.now));
        world.engine.run(&one, world.now);
        assert!(world.ticks(1, &[10.0]).iter().any(|w| w.1 == Ended));
    }
    assert_eq!(fired, (0..10).collect::<Vec<_>>());
    assert_eq!((world.engine.groups.len(), world.engine.subjects()), (1, 0));
}

#[test]
fn what_is_pending_goes_when_it_is_not_watched_any_more() {
    let of = |id: &str, when: &str| Rule { on: BTreeMap::from([("rack".into(), "1".into())]), ..rule(id, when) };
    let rules = [of("one", "gpu.*.temp > 85 C for 60s"), of("all", "max over source of gpu.*.temp > 85 C for 60s")];
    let mut world = World::new(&rules, &[], &["gpu.0.temp"]);
    let racked = |rack: &str| Machine { labels: BTreeMap::from([("rack".into(), rack.into())]), ..machine("a") };
    world.engine.source(&racked("1"));
    world.define("a");
    assert_eq!(world.ticks(20, &[90.0]).iter().map(|w| w.1).collect::<Vec<_>>(), [Pending, Pending]);
    world.engine.source(&racked("2"));
    assert_eq!(world.ticks(1, &[90.0]).iter().map(|w| w.1).collect::<Vec<_>>(), [Dropped, Dropped]);
    assert_eq!(world.engine.subjects(), 0);
}

#[test]
fn a_machine_is_lost_after_its_time_and_after_a_start_later() {
    let mut world = World::new(&[rule("lost", "source lost for 60s")], &["a", "b"], &["cpu"]);
    world.ticks(1, &[1.0]);
    world.engine.poll(T + 61 * SECOND);
    let lost = world.engine.take();
    assert_eq!((lost.len(), lost[0].alert.subject.as_str()), (1, "a"));
    world.engine.poll(T + 120 * SECOND);
    assert_eq!(world.engine.take()[0].alert.subject, "b");
    world.engine.record_message("a", T + 130 * SECOND);
    world.engine.poll(T + 131 * SECOND);
    let found = world.engine.take();
    assert_eq!((found.len(), found[0].what), (1, Ended));
    assert!(found[0].alert.sentence.contains("data again after 2 min"), "{}", found[0].alert.sentence);
}

#[test]
fn a_machine_that_signed_off_is_not_lost_and_one_that_fell_silent_is() {
    let rules = [rule("lost", "source lost for 60s")];
    let mut world = World::new(&rules, &["a", "b"], &["cpu"]);
    world.ticks(1, &[1.0]);
    let engine = &mut world.engine;
    let subjects = |engine: &mut Engine, second: i64| {
        engine.poll(T + second * SECOND);
        engine.take().into_iter().map(|told| (told.what, told.alert.subject)).collect::<Vec<_>>()
    };
    engine.signed_off("a", T + 2 * SECOND);
    engine.signed_off("a", T + 3 * SECOND);
    assert_eq!(subjects(engine, 200), [(Fired, "b".into())]);
    // One that was lost, and says so later, is not missing any more.
    engine.signed_off("b", T + 210 * SECOND);
    let ended = engine.take();
    assert_eq!((ended.len(), ended[0].what), (1, Ended));
    assert!(ended[0].alert.sentence.ends_with("; it was stopped"), "{}", ended[0].alert.sentence);
    assert_eq!(subjects(engine, 300), []);
    // A start knows it, and does not say that it is lost.
    let rows = engine.changed_rows();
    let mut again = Engine::new(T);
    again.restore(&rows, &[]);
    again.set_rules(&rules, &world.catalog, T);
    ["a", "b"].iter().for_each(|name| again.source(&machine(name)));
    assert_eq!(subjects(&mut again, 1000), []);
    // Once it is connected, its silence counts anew.
    engine.signed_on("a", T + 400 * SECOND);
    assert_eq!(subjects(engine, 459), []);
    assert_eq!(subjects(engine, 460), [(Fired, "a".into())]);
    let rows: Vec<_> = engine.changed_rows().into_iter().filter(|row| row.key.starts_with('o')).collect();
    assert!(rows.len() == 1 && rows[0].bytes.is_none(), "{rows:?}");
    // A tick says so, too.
    assert_eq!(subjects(&mut again, 1001), []);
    again.tick(&Tick { source: "b", t: T + 1100 * SECOND, now: T + 1100 * SECOND, clock_step: false, values: &[] });
    assert_eq!(subjects(&mut again, 1160), [(Fired, "b".into())]);
}

fn run(id: &str, state: RunState, ended: Option<i64>) -> Run {
    Run { id: id.into(), state, began: T, ended, ..Run::default() }
}

#[test]
fn the_states_of_runs_are_told_once_over_a_start_too() {
    let rules = [rule("crash", "run crashed"), rule("away", "run unreachable"), rule("long", "run longer than 1h")];
    let mut world = World::new(&rules, &["a"], &["cpu"]);
    let engine = &mut world.engine;
    engine.run(&run("1", RunState::Running, None), T);
    engine.run(&run("1", RunState::Unreachable, None), T + 60_000);
    engine.run(&run("1", RunState::Running, None), T + 90_000);
    engine.run(&run("1", RunState::Crashed, Some(T + 95_000)), T + 100_000);
    engine.run(&run("1", RunState::Crashed, Some(T + 95_000)), T + 100_000);
    let seen: Vec<_> = engine.take().into_iter().map(|c| (c.what, c.alert.rule, c.event)).collect();
    assert_eq!(seen, [(Fired, "away".into(), false), (Ended, "away".into(), false), (Fired, "crash".into(), true)]);
    // The state becomes more precise: the same alert.
    engine.run(&run("1", RunState::OutOfMemory, Some(T + 95_000)), T + 101_000);
    let seen = engine.take();
    assert_eq!((seen.len(), seen[0].what, seen[0].alert.began), (1, Changed, T + 95_000));
    // A run that ended long before the start is not reported; one that ended during the downtime is.
    let rows = engine.changed_rows();
    let mut next = Engine::new(T + 7_200_000);
    next.restore(&rows, &[seen[0].alert.clone()]);
    next.before = Some(T + 200_000);
    next.set_rules(&rules, &world.catalog, T + 7_200_000);
    next.run(&run("1", RunState::OutOfMemory, Some(T + 95_000)), T + 7_200_000);
    next.run(&run("2", RunState::Failed, Some(T - 3_600_000)), T + 7_200_000);
    next.run(&run("3", RunState::Failed, Some(T + 3_600_000)), T + 7_200_000);
    let seen: Vec<_> = next.take().into_iter().map(|c| (c.what, c.alert.subject, c.alert.fired)).collect();
    assert_eq!(seen, [(Fired, "3".into(), Some(T + 7_200_000))]);
    next.run(&run("4", RunState::Running, None), T + 7_200_000);
    next.poll(T + 7_200_000);
    let long = next.take();
    assert!(long.iter().any(|c| c.what == Fired && c.alert.rule == "long" && c.alert.subject == "4"), "{long:?}");
}

#[test]
fn a_rule_by_the_class_of_a_failure_waits_for_the_class_and_fires_once() {
    let of = |id: &str, failure: &str| {
        let on = [("failure".to_string(), failure.to_string())].into();
        Rule { on, ..rule(id, "run failed") }
    };
    let rules = [of("gpu", "out_of_gpu_memory,nccl_*"), of("rest", "!out_of_gpu_memory"), rule("all", "run failed")];
    let mut world = World::new(&rules, &["a"], &["cpu"]);
    let engine = &mut world.engine;
    let ended = |id: &str, class| Run { failure: Some(class), ..run(id, RunState::Failed, Some(T)) };
    let fired = |engine: &mut Engine| -> Vec<(String, String)> {
        let new = engine.take().into_iter().filter(|told| told.what == Fired);
        let mut all: Vec<_> = new.map(|told| (told.alert.rule, told.alert.subject)).collect();
        all.sort();
        all
    };
    let pairs = |of: &[(&str, &str)]| -> Vec<(String, String)> {
        of.iter().map(|(rule, run)| (rule.to_string(), run.to_string())).collect()
    };
    engine.run(&run("1", RunState::Running, None), T - 1_000);
    // Its last output is not read yet.
    engine.run(&ended("1", FailureClass::Unknown), T + 100);
    assert_eq!(fired(engine), pairs(&[("all", "1")]));
    engine.run(&ended("1", FailureClass::OutOfGpuMemory), T + 2_100);
    engine.run(&ended("1", FailureClass::OutOfGpuMemory), T + 60_000);
    assert_eq!(fired(engine), pairs(&[("gpu", "1")]));
    // A run without output.
    engine.run(&ended("2", FailureClass::Unknown), T + 100);
    assert_eq!(fired(engine), pairs(&[("all", "2")]));
    engine.run(&ended("2", FailureClass::Unknown), T + 30_000);
    engine.run(&ended("2", FailureClass::Unknown), T + 60_000);
    assert_eq!(fired(engine), pairs(&[("rest", "2")]));
}

fn finding(id: &str, severity: Severity, since: i64) -> Finding {
    Finding {
        id: id.into(),
        kind: "hang".into(),
        rule: "hang.spin".into(),
        severity,
        subject: vec![Place { source: "a".into(), gpus: vec![2] }],
        affects: Vec::new(),
        device: None,
        since,
        told: since,
        until: None,
        sentence: "a GPU 2 hangs since {since}".into(),
        sentence_template: None,
        next: String::new(),
        user: None,
        evidence: Vec::new(),
        changed: Vec::new(),
        because: None,
        confidence: None,
        dismissed: None,
    }
}

#[test]
fn findings_fire_by_kind_and_severity_and_consequences_do_not() {
    let rules =
        [rule("now", "finding critical"), rule("later", "finding hang for 2m"), rule("but", "finding *, !hang")];
    let mut world = World::new(&rules, &["a"], &["cpu"]);
    let s = T / 1000;
    world.engine.finding(&finding("1", Severity::Warning, s), T);
    assert_eq!(world.whats(), []);
    world.engine.poll(T + 119_000);
    assert_eq!(world.whats(), []);
    world.engine.poll(T + 120_000);
    let later = world.engine.take();
    assert_eq!((later.len(), later[0].alert.rule.as_str(), later[0].alert.began), (1, "later", T));
    assert_eq!((later[0].alert.labels["gpu"].as_str(), later[0].alert.labels["finding"].as_str()), ("2", "hang"));
    world.engine.finding(&finding("1", Severity::Critical, s), T + 130_000);
    assert_eq!(world.engine.take().iter().map(|c| c.alert.rule.as_str()).collect::<Vec<_>>(), ["now"]);
    world.engine.finding(&Finding { because: Some("1".into()), ..finding("2", Severity::Critical, s) }, T + 131_000);
    assert_eq!(world.whats(), []);
    world.engine.finding(&Finding { until: Some(s + 140), ..finding("1", Severity::Critical, s) }, T + 140_000);
    assert_eq!(world.whats(), [Ended, Ended]);
}

#[test]
fn a_finding_that_is_not_seen_any_more_is_over_and_runs_that_go_on_are_known() {
    let mut world = World::new(&[rule("now", "finding critical")], &["a"], &["cpu"]);
    let s = T / 1000;
    world.engine.finding(&finding("1", Severity::Critical, s), T);
    world.engine.finding(&finding("2", Severity::Critical, s), T);
    world.engine.finding(&Finding { until: Some(s), ..finding("3", Severity::Critical, s) }, T);
    assert_eq!(world.engine.findings().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(world.whats(), [Fired, Fired]);
    world.engine.finding_gone("1", T + 5000);
    let over = world.engine.take();
    assert_eq!((over.len(), over[0].what, over[0].alert.subject.as_str()), (1, Ended, "1"));
    assert!(over[0].alert.sentence.ends_with("; it is no longer reported"), "{}", over[0].alert.sentence);
    assert_eq!(world.engine.findings().collect::<Vec<_>>(), ["2"]);
    world.engine.finding_gone("1", T + 6000);
    assert_eq!(world.whats(), []);
    world.engine.run(&run("r", RunState::Running, None), T);
    world.engine.run(&run("s", RunState::Running, None), T);
    world.engine.run(&run("s", RunState::Crashed, Some(T + 1000)), T + 1000);
    assert_eq!(world.engine.open_runs().collect::<Vec<_>>(), ["r"]);
}

#[test]
fn the_end_of_an_event_whose_rule_goes_has_the_name_of_that_rule() {
    let lost = Rule { name: "gone".into(), severity: AlertSeverity::Critical, ..rule("lost", "source lost for 60s") };
    let mut world = World::new(&[lost], &["a"], &["cpu"]);
    world.tick("a", &[1.0]);
    world.engine.poll(T + 70_000);
    assert_eq!(world.whats(), [Fired]);
    world.engine.set_rules(&[], &world.catalog, T + 71_000);
    let over = world.engine.take();
    let seen: Vec<_> = over.iter().map(|c| (c.what, c.alert.name.as_str(), c.alert.severity)).collect();
    assert_eq!(seen, [(Ended, "gone", AlertSeverity::Critical)]);
}

#[test]
fn events_stand_for_an_hour_after_the_last() {
    let rules = [rule("xid", "xid 79"), rule("oom", "memory.oom_kills increases")];
    let mut world = World::new(&rules, &["a"], &["memory.oom_kills"]);
    world.ticks(5, &[7.0]);
    assert_eq!(world.ticks(3, &[8.0]), [(1, Fired)]);
    assert_eq!(world.ticks(1800, &[9.0]), []);
    let over = world.ticks(3600, &[9.0]);
    assert_eq!(over.iter().map(|o| o.1).collect::<Vec<_>>(), [Ended]);
    let now = world.now;
    world.engine.xid("a", Some(1), 48, now);
    world.engine.xid("a", Some(1), 79, now);
    world.engine.xid("a", Some(1), 79, now + 1_800_000);
    assert_eq!(world.whats(), [Fired]);
    world.engine.poll(now + 3_600_000);
    assert_eq!(world.whats(), []);
    world.engine.poll(now + 5_400_000);
    assert_eq!(world.whats(), [Ended]);
    assert!(world.engine.facts.is_empty() || world.engine.facts.values().all(|f| f.state.flaps.is_some()));
}

#[test]
fn a_notice_has_the_next_step_until_the_end() {
    let mut world = World::new(&[rule("xid", "xid *"), rule("hang", "finding hang")], &["a"], &["cpu"]);
    world.engine.xid("a", Some(1), 79, T);
    let steps = Finding { next: "Look at rank 3".into(), ..finding("1", Severity::Critical, T / 1000) };
    world.engine.finding(&steps, T);
    let texts: Vec<String> = world.engine.take().into_iter().map(|change| change.alert.text).collect();
    assert_eq!(texts, ["Next: Restart the machine; ask the vendor if it comes again.", "Next: Look at rank 3."]);
    world.engine.finding(&Finding { until: Some(T / 1000 + 9), ..steps }, T + 9_000);
    assert_eq!(world.engine.take().pop().map(|change| change.alert.text), Some(String::new()));
    world.engine.xid("a", Some(1), 999, T);
    assert_eq!(world.engine.take().pop().map(|change| change.alert.text), Some(String::new()), "an unknown number");
}

#[test]
fn a_rule_watches_what_it_is_on() {
    let on =
        |key: &str, text: &str| Rule { on: BTreeMap::from([(key.into(), text.into())]), ..rule("r", "gpu.*.gpu > 1") };
    for (rule, expected) in [
        (on("source", "a*"), 2),
        (on("source", "!a"), 2),
        (on("source", "a,b"), 4),
        (on("gpu", "0"), 2),
        (on("rack", "r1"), 0),
        (on("project", "llm"), 1),
        (on("project", "!llm"), 3),
    ] {
        let mut world = World::new(std::slice::from_ref(&rule), &["a", "b"], &["gpu.0.gpu", "gpu.1.gpu"]);
        let process = RunProcess {
            source: "a".into(),
            rank: Some(Rank { gpus: vec![1], ..Rank::default() }),
            ..RunProcess::default()
        };
        let about = About { project: Some("llm".into()), ..About::default() };
        world.engine.run(&Run { id: "1".into(), began: T, about, processes: vec![process], ..Run::default() }, T);
        world.tick("a", &[0.0, 0.0]);
        world.tick("b", &[0.0, 0.0]);
        assert_eq!(world.engine.subjects(), expected, "{:?}", rule.on);
    }
}

#[test]
fn a_rule_has_at_most_ten_thousand_series_and_says_so() {
    let mut world = World::new(&[rule("r", "gpu.*.gpu > 1")], &["a"], &[]);
    let metric = world.catalog.position("gpu.{i}.gpu").expect("a row");
    for i in 0..MAX_OF_RULE + 5 {
        world.engine.define("a", i, &SeriesDef { metric, instance: i.to_string() }, &world.catalog);
    }
    world.tick("a", &[]);
    assert_eq!(world.engine.subjects(), MAX_OF_RULE as usize);
    let trouble = world.engine.trouble();
    assert_eq!(trouble.len(), 1);
    assert!(trouble[0].1.starts_with("5 series exceed"), "{trouble:?}");
}

#[test]
fn a_subject_is_small() {
    assert!(size_of::<Subject>() <= 112, "{}", size_of::<Subject>());
}

/// The current rows, merged from all rows that engines returned, in that order.
fn standing(rows: &mut BTreeMap<String, Vec<u8>>, engine: &mut Engine) -> Vec<crate::StateRow> {
    for row in engine.changed_rows() {
        match row.bytes {
            Some(bytes) => drop(rows.insert(row.key, bytes)),
            None => drop(rows.remove(&row.key)),
        }
    }
    rows.iter().map(|(key, bytes)| crate::StateRow { key: key.clone(), bytes: Some(bytes.clone()) }).collect()
}

#[test]
fn a_machine_takes_what_fires_with_it_to_another_hub_and_nothing_ends_or_begins() {
    let rules = [rule("hot", HOT), rule("lost", "source lost for 60s"), rule("crashed", "run crashed")];
    let hub = |name: &str| {
        let mut world = World::new(&rules, &[], &["gpu.0.temp"]);
        world.engine.share(name, name);
        world
    };
    let (mut one, mut two) = (hub("one"), hub("two"));
    let mut rows = BTreeMap::new();
    for (world, name) in [(&mut one, "a"), (&mut two, "b")] {
        world.engine.source(&machine(name));
        world.define(name);
        (0..70).for_each(|_| world.tick(name, &[90.0]));
    }
    let fired = one.engine.take().pop().expect("it fires").alert;
    assert_eq!(two.engine.take().len(), 2, "pending and firing of its own");
    // A run on both is judged by the hub of its first machine.
    let process = |source: &str| RunProcess { source: source.into(), ..RunProcess::default() };
    let both = |state| Run { processes: vec![process("a"), process("b")], ..run("r", state, None) };
    for world in [&mut one, &mut two] {
        world.engine.run(&both(RunState::Running), world.now);
    }
    let known = standing(&mut rows, &mut one.engine);
    standing(&mut rows, &mut two.engine);
    // It moves: the hub that had it ends nothing.
    one.engine.release_source("a");
    assert_eq!(one.engine.take(), []);
    one.engine.poll(one.now + 600_000);
    assert_eq!(
        (one.engine.take(), one.engine.changed_rows().iter().filter(|row| row.bytes.is_none()).count()),
        (Vec::new(), 0)
    );
    two.engine.run(&both(RunState::Failed), two.now);
    assert_eq!(two.engine.take(), [], "another judges the run");
    // The other hub continues with the same alert, and receives the run's changes since.
    two.engine.adopt(&BTreeSet::from(["a".to_string()]), &known, std::slice::from_ref(&fired), two.now);
    two.engine.source(&machine("a"));
    two.define("a");
    two.engine.run(&both(RunState::Failed), two.now);
    let told: Vec<_> = two.engine.take().into_iter().map(|change| (change.what, change.alert.rule)).collect();
    assert_eq!(told, [(Fired, "crashed".to_string())]);
    (0..20).for_each(|_| two.tick("a", &[90.0]));
    assert_eq!(two.whats(), [], "it fires on");
    (0..20).for_each(|_| two.tick("a", &[70.0]));
    let over = two.engine.take().pop().expect("it is over").alert;
    assert_eq!((over.id, over.began), (fired.id, fired.began));
}

#[test]
fn a_machine_of_a_hub_that_died_has_two_minutes_to_come_before_it_is_lost() {
    let rules = [rule("lost", "source lost for 60s")];
    let mut world = World::new(&rules, &[], &["gpu.0.temp"]);
    world.engine.share("one", "one");
    // The hub has been running for long.
    let died = T + 10_000_000;
    world.engine.adopt(&BTreeSet::from(["a".to_string()]), &[], &[], died);
    world.engine.source(&machine("a"));
    world.engine.poll(died + 119_000);
    assert_eq!(world.whats(), []);
    world.engine.poll(died + 120_000);
    let lost = world.engine.take().pop().expect("lost").alert;
    // It reaches another hub, which continues the alert and ends it.
    let mut rows = BTreeMap::new();
    let known = standing(&mut rows, &mut world.engine);
    let mut other = World::new(&rules, &[], &["gpu.0.temp"]);
    other.engine.share("two", "two");
    other.engine.adopt(&BTreeSet::from(["a".to_string()]), &known, std::slice::from_ref(&lost), died + 130_000);
    other.engine.source(&machine("a"));
    other.define("a");
    other.now = died + 130_000;
    other.tick("a", &[50.0]);
    other.engine.poll(other.now);
    let over = other.engine.take().pop().expect("over").alert;
    assert_eq!((over.id, over.state), (lost.id, shared::alert::AlertState::Resolved));
}

#[test]
fn each_threshold_of_gpu_hours_is_told_once_a_month_and_after_a_restart_not_again() {
    let rules = [rule("nearly", "gpu hours above 85 %"), rule("all", "gpu hours above 100 %")];
    let mut world = World::new(&rules, &["a"], &[]);
    let used = |hours: f64, limit: u64, month: &str| GpuHoursUsed { hours, limit, month: month.into(), month_began: T };
    let told = |engine: &mut Engine| -> Vec<(String, What)> {
        engine.take().into_iter().map(|change| (change.alert.rule, change.what)).collect()
    };
    let row = |rule: &str, what| (rule.to_string(), what);
    world.engine.gpu_hours(Some(&used(840.0, 1_000, "2026-11")), T);
    assert_eq!(told(&mut world.engine), []);
    world.engine.gpu_hours(Some(&used(851.0, 1_000, "2026-11")), T + SECOND);
    let fired = world.engine.take().pop().expect("fired");
    assert_eq!((fired.what, fired.alert.began), (Fired, T + SECOND));
    assert_eq!(fired.alert.sentence, "85 % of the 1,000 GPU-hours of 2026-11 are used");
    for (hours, expected) in [(900.0, vec![]), (848.0, vec![]), (1_000.0, vec![row("all", Fired)]), (1_200.0, vec![])] {
        world.engine.gpu_hours(Some(&used(hours, 1_000, "2026-11")), T + 2 * SECOND);
        assert_eq!(told(&mut world.engine), expected, "{hours}");
    }
    // The server starts again.
    let rows = world.engine.changed_rows();
    let mut again = Engine::new(T + 60 * SECOND);
    again.restore(&rows, &[]);
    assert_eq!(again.set_rules(&rules, &world.catalog, T + 60 * SECOND), []);
    again.gpu_hours(Some(&used(1_300.0, 1_000, "2026-11")), T + 61 * SECOND);
    assert_eq!(told(&mut again), []);
    // A higher limit ends what is below it, and the next month begins anew.
    again.gpu_hours(Some(&used(1_300.0, 1_500, "2026-11")), T + 62 * SECOND);
    // The sentence of the other one has the new limit.
    assert_eq!(told(&mut again), [row("nearly", Changed), row("all", Ended)]);
    again.gpu_hours(Some(&used(1.0, 1_500, "2026-12")), T + 63 * SECOND);
    assert_eq!(told(&mut again), [row("nearly", Ended)]);
    again.gpu_hours(Some(&used(1_290.0, 1_500, "2026-12")), T + 64 * SECOND);
    assert_eq!(told(&mut again), [row("nearly", Fired)]);
    again.gpu_hours(None, T + 65 * SECOND);
    assert_eq!(told(&mut again), [row("nearly", Ended)]);
}
