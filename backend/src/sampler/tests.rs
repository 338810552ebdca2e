//! The sampler against collectors that hang, fail and come back.

use super::*;
use collectors::{CollectError, Collector, OpenError, Out};
use parking_lot::Mutex;
use shared::wire::CheckState;
use stream::clock::System;
use stream::store::{Limits, Store};

/// A sensor that counts up.
struct Counts(f64);
impl Collector for Counts {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.0 += 1.0;
        out.put(&shared::catalog::cpu::LOAD1, (), self.0);
        Ok(())
    }
}

/// A sensor that never answers.
struct Hangs;
impl Collector for Hangs {
    fn collect(&mut self, _: &mut Out) -> Result<(), CollectError> {
        loop {
            std::thread::park();
        }
    }
}

/// A sensor that answers late, after a signal.
struct Late(Arc<Mutex<()>>);
impl Collector for Late {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        drop(self.0.lock());
        out.put(&shared::catalog::cpu::LOAD5, (), 5.0);
        Ok(())
    }
}

struct Panics;
impl Collector for Panics {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        out.put(&shared::catalog::cpu::LOAD15, (), 15.0);
        panic!("as planned")
    }
}

static GATE: Mutex<Option<Arc<Mutex<()>>>> = Mutex::new(None);

/// Each of these collectors supports the system of the tests.
const HERE: &[collectors::System] = &[collectors::System::HERE];

static COUNTS: Entry = Entry {
    name: "counts",
    about: "Counts.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| Ok(Part::only(["/counts".to_string()], Counts(0.0))),
};
static HANGS: Entry = Entry {
    name: "hangs",
    about: "Hangs.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| Ok(Part::only(Vec::new(), Hangs)),
};
static PANICS: Entry = Entry {
    name: "panics",
    about: "Panics.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| Ok(Part::only(Vec::new(), Panics)),
};
static LATE: Entry = Entry {
    name: "late",
    about: "Is late.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| Ok(Part::only(Vec::new(), Late(GATE.lock().clone().unwrap()))),
};
static ABSENT: Entry = Entry {
    name: "absent",
    about: "Is absent.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| Err(OpenError::absent(["/nowhere".to_string()], "it is nowhere", "look elsewhere")),
};

/// A server of these collectors whose ticks the test makes itself.
fn sampler(entries: Vec<&'static Entry>) -> Sampler {
    let mut sampler = unsettled(entries);
    sampler.settle(Duration::from_secs(10));
    sampler
}

/// A server whose collectors may still be opening.
fn unsettled(entries: Vec<&'static Entry>) -> Sampler {
    let limits = Limits { retention: 3_600_000, bytes: usize::MAX };
    let mut store = Store::new(Arc::new(collectors::catalog()), limits);
    let source = store.add_source("here".into(), 1_000, Vec::new());
    let live = Live::new(store, Arc::new(System), 1, limits.retention);
    let interval = Duration::from_secs(1);
    let chosen = entries.into_iter().map(|entry| Chosen { entry, every: interval, deadline: Duration::from_secs(5) });
    let plan = Plan { chosen: chosen.collect(), options: Options::default(), roots: Roots::default(), interval };
    let mut sampler = Sampler::new(live, source, plan);
    // Most tests are about the answers of each tick, for which a loaded machine may need longer than usual.
    sampler.tick_timeout = Duration::from_secs(2);
    sampler.open_all();
    sampler
}

fn value(sampler: &Sampler, tag: &str) -> Option<f64> {
    let store = sampler.live.store();
    let (_, values) = store.newest(sampler.source)?;
    let at = store.series(sampler.source, 0).iter().position(|d| store.catalog().tag(d) == tag)?;
    Some(values[at]).filter(|v| v.is_finite())
}

fn state(sampler: &Sampler, id: &str) -> CheckState {
    let (checks, _) = sampler.live.store().checks(sampler.source);
    checks.iter().find(|c| c.id == id).map(|c| c.state).unwrap()
}

/// A sensor that adds a series at its second reading.
struct Meets(u32);
impl Collector for Meets {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        static MET: std::sync::LazyLock<shared::catalog::MetricDef> = std::sync::LazyLock::new(|| {
            let row = shared::catalog::MetricDef::gauge("met.{labels}", shared::unit::Unit::Watts);
            row.title("Met").on("met", "{labels}").help("It was met at run time.")
        });
        self.0 += 1;
        if self.0 > 1 {
            out.put(&MET, "{a=\"1\"}", 7.5);
        }
        Ok(())
    }
}
static MEETS: Entry = Entry {
    name: "meets",
    about: "Meets.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| Ok(Part::only(Vec::new(), Meets(0))),
};

#[test]
fn a_row_that_is_met_at_run_time_joins_the_table_with_its_chart() {
    let mut sampler = sampler(vec![&MEETS]);
    let before = sampler.live.store().catalog().clone();
    for i in 0..3 {
        sampler.tick(1_700_000_000_000 + i * 1_000, Duration::from_secs(i as u64), false);
        assert_eq!(value(&sampler, "met.{a=\"1\"}"), Some(7.5).filter(|_| i > 0));
    }
    let after = sampler.live.store().catalog().clone();
    assert_eq!(after.metrics.len(), before.metrics.len() + 1);
    let row = after.metrics.last().unwrap();
    assert_eq!((row.title.as_str(), row.unit), ("Met", shared::unit::Unit::Watts));
    let chart = after.layout.charts.last().unwrap();
    assert_eq!((chart.id.as_str(), chart.section.as_str()), ("met", "meets"));
}

/// A sensor with one series that is absent for long, while another one appears.
struct ComesBack(u32);
impl Collector for ComesBack {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        static CAME: std::sync::LazyLock<shared::catalog::MetricDef> = std::sync::LazyLock::new(|| {
            let row = shared::catalog::MetricDef::gauge("came.{labels}", shared::unit::Unit::Watts);
            row.title("Came").on("came", "{labels}").help("It came and went.")
        });
        self.0 += 1;
        if self.0 == 1 || self.0 > 1_060 {
            out.put(&CAME, "a", f64::from(self.0));
        }
        if self.0 > 1_040 {
            out.put(&CAME, "b", -f64::from(self.0));
        }
        Ok(())
    }
}
static COMES_BACK: Entry = Entry {
    name: "comes_back",
    about: "Comes back.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| Ok(Part::only(Vec::new(), ComesBack(0))),
};

#[test]
fn one_that_comes_back_after_its_number_was_given_to_another_gets_a_new_one() {
    let mut sampler = sampler(vec![&COMES_BACK]);
    let id = |sampler: &Sampler, tag: &str| {
        let store = sampler.live.store();
        store.series(sampler.source, 0).iter().position(|def| store.catalog().tag(def) == tag)
    };
    let mut first = None;
    for i in 1..=1_070u32 {
        // Ten seconds apart: the retention of an hour holds 360 ticks.
        let t = 1_700_000_000_000 + i64::from(i) * 10_000;
        sampler.tick(t, Duration::from_secs(u64::from(i) * 10), false);
        if i % 45 == 0 {
            sampler.live.store().seal(sampler.source);
        }
        let (a, b) = (value(&sampler, "came.a"), value(&sampler, "came.b"));
        first = first.or(id(&sampler, "came.a"));
        assert_eq!(a, Some(f64::from(i)).filter(|_| i == 1 || i > 1_060), "tick {i}");
        assert_eq!(b, Some(-f64::from(i)).filter(|_| i > 1_040), "tick {i}");
        if i > 1_040 {
            assert_eq!(id(&sampler, "came.b"), first, "the number that was free");
        }
    }
}

static DOOR: Mutex<()> = Mutex::new(());
static HANGS_OPENING: Entry = Entry {
    name: "hangs_opening",
    about: "Does not open until it is let.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| {
        drop(DOOR.lock());
        Ok(Part::only(Vec::new(), Counts(0.0)))
    },
};

#[test]
fn one_that_hangs_while_it_opens_is_named_and_goes_on_when_it_opens() {
    let shut = DOOR.lock();
    let mut sampler = unsettled(vec![&COUNTS, &HANGS_OPENING]);
    let mut second = 0;
    let mut tick = |sampler: &mut Sampler| {
        second += 1;
        sampler.tick(1_700_000_000_000 + second * 1_000, Duration::from_secs(second as u64), false);
        state(sampler, "hangs_opening")
    };
    for _ in 0..6 {
        assert_eq!(tick(&mut sampler), CheckState::Starting);
    }
    assert_eq!(tick(&mut sampler), CheckState::Hung);
    let (checks, _) = sampler.live.store().checks(sampler.source);
    let check = checks.iter().find(|check| check.id == "hangs_opening").unwrap();
    assert!(check.reason.contains("more than 5 s") && !check.remedy.is_empty(), "{}", check.reason);
    drop(shut);
    sampler.settle(Duration::from_secs(10));
    assert_eq!(tick(&mut sampler), CheckState::Ok);
    let (checks, _) = sampler.live.store().checks(sampler.source);
    assert!(checks.iter().all(|check| check.reason.is_empty() && check.remedy.is_empty()));
}

#[test]
fn one_that_hangs_costs_its_own_series_and_is_named() {
    let mut sampler = sampler(vec![&COUNTS, &HANGS, &ABSENT]);
    for i in 0..8 {
        sampler.tick(1_700_000_000_000 + i * 1_000, Duration::from_secs(i as u64), false);
        assert_eq!(value(&sampler, "system.load1"), Some(i as f64 + 1.0));
        assert_eq!(value(&sampler, "monitor.counts.ok"), Some(1.0));
        assert_eq!(value(&sampler, "monitor.hangs.ok"), Some(0.0));
    }
    assert_eq!(state(&sampler, "hangs"), CheckState::Hung);
    assert_eq!(state(&sampler, "counts"), CheckState::Ok);
    assert_eq!(state(&sampler, "absent"), CheckState::Absent);
}

#[test]
fn what_is_read_after_one_that_hangs_is_in_the_same_tick() {
    let mut sampler = sampler(vec![&HANGS, &COUNTS, &HANGS, &MEETS]);
    for i in 0..10 {
        sampler.tick(1_700_000_000_000 + i * 1_000, Duration::from_secs(i as u64), false);
        assert_eq!(value(&sampler, "system.load1"), Some(i as f64 + 1.0));
        assert_eq!(value(&sampler, "monitor.meets.ok"), Some(1.0));
    }
    assert_eq!(state(&sampler, "hangs"), CheckState::Hung);
    // One for each hung part, and one for all quick ones; on a busy machine some helpers.
    assert!(sampler.pool.size() >= 3, "{}", sampler.pool.size());
}

#[test]
fn what_is_read_among_more_that_hang_than_a_tick_has_time_for_is_in_a_later_tick() {
    let mut entries = vec![&HANGS; 20];
    entries.push(&COUNTS);
    entries.extend([&HANGS; 20]);
    let mut sampler = sampler(entries);
    // Each hung part takes 10 of them.
    sampler.tick_timeout = Duration::from_millis(25);
    let (mut seconds, go_on) = (0..2_000, AtomicBool::new(false));
    // No timing matters here: a hung part delays the others, but not forever.
    for reading in 1..=3 {
        while value(&sampler, "system.load1").is_none_or(|v| v < f64::from(reading)) {
            let i = seconds.next().expect("it is read");
            sampler.tick(1_700_000_000_000 + i * 1_000, Duration::from_secs(i as u64), false);
            sampler.rest(Duration::from_millis(1), &go_on);
        }
    }
}

/// A slow sensor.
struct Slow;
impl Collector for Slow {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        std::thread::sleep(Duration::from_millis(40));
        out.put(&shared::catalog::cpu::LOAD15, (), 15.0);
        Ok(())
    }
}
static SLOW_MICROS: Entry = Entry {
    name: "slow",
    about: "Is slow.",
    systems: HERE,
    metrics: &[],
    options: &[],
    open: |_, _| Ok(Part::only(Vec::new(), Slow)),
};

#[test]
fn one_that_is_slow_is_waited_for_and_read_beside_the_others() {
    let mut sampler = sampler(vec![&SLOW_MICROS, &COUNTS]);
    for i in 0..3 {
        sampler.tick(1_700_000_000_000 + i * 1_000, Duration::from_secs(i as u64), false);
        assert_eq!(
            (value(&sampler, "system.load1"), value(&sampler, "system.load15")),
            (Some(i as f64 + 1.0), Some(15.0))
        );
    }
    assert!(sampler.pool.size() >= 2, "{}", sampler.pool.size());
}

#[test]
fn a_late_answer_goes_once_into_the_next_tick() {
    let gate = Arc::new(Mutex::new(()));
    *GATE.lock() = Some(gate.clone());
    let mut sampler = sampler(vec![&LATE]);
    let shut = gate.lock();
    sampler.tick(1_700_000_000_000, Duration::from_secs(0), false);
    assert_eq!(value(&sampler, "system.load5"), None);
    drop(shut);
    let event = sampler.events.recv_timeout(Duration::from_secs(10)).unwrap();
    sampler.take(event);
    let shut = gate.lock();
    sampler.tick(1_700_000_001_000, Duration::from_secs(1), false);
    assert_eq!(value(&sampler, "system.load5"), Some(5.0), "late, and used once");
    sampler.tick(1_700_000_002_000, Duration::from_secs(2), false);
    assert_eq!(value(&sampler, "system.load5"), None, "an old value is never repeated");
    drop(shut);
}

#[test]
fn what_was_read_before_one_that_hangs_is_not_lost_with_it() {
    static GATE: Mutex<()> = Mutex::new(());
    struct Waits;
    impl Collector for Waits {
        fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
            drop(GATE.lock());
            out.put(&shared::catalog::cpu::LOAD5, (), 5.0);
            Ok(())
        }
    }
    static WAITS: Entry = Entry {
        name: "waits",
        about: "Waits.",
        systems: HERE,
        metrics: &[],
        options: &[],
        open: |_, _| Ok(Part::only(Vec::new(), Waits)),
    };
    // They are in the order of opening.
    let in_order = || Some(sampler(vec![&WAITS, &HANGS, &HANGS])).filter(|s| s.parts[0].entry == 0);
    let mut sampler = std::iter::repeat_with(in_order).flatten().next().expect("it repeats");
    sampler.tick_timeout = Duration::from_millis(5);
    let shut = GATE.lock();
    sampler.tick(1_700_000_000_000, Duration::from_secs(0), false);
    // One thread waits at the gate and another has continued, to the first part that hangs.
    let begin = Instant::now();
    let patient = || assert!(begin.elapsed() < Duration::from_secs(20), "it is not read");
    while sampler.quick.left() > 1 {
        patient();
        if sampler.quick.wants_help() && sampler.quick.left() == 2 {
            sampler.pool.start(&sampler.quick).unwrap();
        }
    }
    drop(shut);
    // The first continues to the second, and neither will answer.
    while sampler.quick.left() > 0 {
        patient();
    }
    sampler.tick(1_700_000_001_000, Duration::from_secs(1), false);
    assert_eq!(value(&sampler, "system.load5"), Some(5.0));
}

#[test]
fn one_that_panics_ends_alone() {
    let mut sampler = sampler(vec![&COUNTS, &PANICS]);
    let mut ticks = 0..;
    let mut tick = |sampler: &mut Sampler| {
        let i = ticks.next().unwrap();
        sampler.tick(1_700_000_000_000 + i * 1_000, Duration::from_secs(i as u64), false);
    };
    // Writing the trace of a panic may take several ticks.
    let end = Instant::now() + Duration::from_secs(20);
    while (sampler.parts[1].sensor.is_some() || sampler.parts[1].asked.is_some()) && Instant::now() < end {
        tick(&mut sampler);
    }
    for _ in 0..12 {
        tick(&mut sampler);
        assert_eq!(value(&sampler, "monitor.panics.ok"), Some(0.0));
        assert_eq!(value(&sampler, "system.load15"), None);
    }
    assert_eq!(state(&sampler, "panics"), CheckState::Failed, "one that is gone does not hang");
    assert_eq!(state(&sampler, "counts"), CheckState::Ok);
}

#[test]
fn ticks_stand_on_the_boundary_and_a_step_of_the_clock_is_marked() {
    let interval = Duration::from_secs(1);
    let mut pace = Pace::new(1_700_000_000_300, Duration::from_secs(100), interval);
    let mut next = |wall: i64, steady_ms: u64| pace.next(wall, Duration::from_millis(100_000 + steady_ms));
    assert_eq!(next(1_700_000_001_001, 701), Some(Beat { t: 1_700_000_001_000, clock_step: false, missed: 0 }));
    assert_eq!(next(1_700_000_002_004, 1_704), Some(Beat { t: 1_700_000_002_000, clock_step: false, missed: 0 }));
    // Asleep for ten seconds: one gap, no step.
    assert_eq!(next(1_700_000_012_001, 11_701), Some(Beat { t: 1_700_000_012_000, clock_step: false, missed: 9 }));
    // Set an hour back.
    assert_eq!(next(1_699_996_413_001, 12_701), Some(Beat { t: 1_699_996_413_000, clock_step: true, missed: 0 }));
    assert_eq!(next(1_699_996_414_001, 13_701), Some(Beat { t: 1_699_996_414_000, clock_step: false, missed: 0 }));
    // Woken twice for one boundary.
    assert_eq!(next(1_699_996_414_020, 13_720), None);
}

#[test]
fn a_late_wake_is_stamped_with_its_boundary_and_never_twice() {
    let mut pace = Pace::new(1_700_000_000_300, Duration::from_secs(100), Duration::from_secs(1));
    let mut next = |ms: u64| pace.next(1_700_000_000_300 + ms as i64, Duration::from_millis(100_000 + ms));
    assert_eq!(next(1_300), Some(Beat { t: 1_700_000_001_000, clock_step: false, missed: 0 }), "600 ms late");
    assert_eq!(next(1_700), Some(Beat { t: 1_700_000_002_000, clock_step: false, missed: 0 }));
    assert_eq!(next(2_699), Some(Beat { t: 1_700_000_003_000, clock_step: false, missed: 0 }), "1 ms early");
    assert_eq!(next(2_701), None);
    assert_eq!(next(3_701), Some(Beat { t: 1_700_000_004_000, clock_step: false, missed: 0 }));
}

#[test]
fn another_machine_is_found_while_it_is_told_of_and_begins_a_life_each_time() {
    let mut sampler = sampler(vec![&COUNTS]);
    let others = Arc::new(inventory::OtherMachines::new(["here".to_string()], "here:".into()));
    sampler.plan.options.others = Some(others.clone());
    let earlier = sampler.live.store().add_source("here:node-z".into(), 1_000, Vec::new());
    let stranger = sampler.live.store().add_source("node-b".into(), 1_000, Vec::new());
    sampler.lose_earlier();
    let live = sampler.live.clone();
    let word = |source| live.source(source).connection_state().0.as_str();
    assert_eq!((word(earlier), word(stranger), live.is_found(stranger)), ("unreachable", "live", false));
    let mut tick = |second: u64, told: bool| {
        let at = Duration::from_secs(second);
        if told && others.admits("node-b", at) {
            others.tell("node-b", Duration::ZERO, (&shared::catalog::gpu::TEMP, "0".into(), 40.0));
        }
        sampler.tick(1_700_000_000_000 + second as i64 * 1_000, at, false);
        live.found().borrow().iter().map(|machine| (machine.source, machine.host.clone())).collect::<Vec<_>>()
    };
    let found = tick(0, true);
    let source = live.store().named("here:node-b").expect("a source of its own");
    assert_eq!(found, [(source, "node-b".to_string())]);
    let life = live.store().life(source);
    assert!(life > 0 && live.is_found(source) && live.store().ticks_after(source, 0) == 1);
    assert_eq!(live.store().ticks_after(stranger, 0), 0, "a page writes to no source of another origin");
    assert_eq!((tick(10, false).len(), word(source)), (1, "live"));
    assert_eq!((tick(11, false).len(), word(source)), (0, "unreachable"));
    assert_eq!((tick(12, true).len(), word(source)), (1, "live"));
    assert!(live.store().life(source) > life);
    live.store().remove_sources(["here:node-b".to_string()]);
    assert_eq!((tick(13, true).len(), tick(14, true).len()), (0, 0), "a removed one does not come back");
}
