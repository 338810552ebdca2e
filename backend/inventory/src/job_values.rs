//! Values that training jobs log, between two ticks. Writers put them as they arrive; the collector takes them at each
//! tick.

use parking_lot::Mutex;
use shared::catalog::job::ValueSender;
use shared::new_values::{MAX_NAMES, PER_SECOND};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Maximum number of messages at once.
const BURST: f64 = 2.0 * PER_SECOND;
/// Maximum number of series of a machine.
const MAX_SERIES: usize = 8_192;
/// Maximum number of processes that are known at once.
const MAX_SENDERS: usize = 1_024;
/// Time after which a process without values is forgotten: its names count no longer.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// Values that are not finite, as the row [`NOT_A_NUMBER`](shared::catalog::job::NOT_A_NUMBER) has them.
fn code(value: f64) -> f64 {
    match value {
        value if value.is_nan() => 1.0,
        value if value == f64::INFINITY => 2.0,
        value if value == f64::NEG_INFINITY => 3.0,
        _ => 0.0,
    }
}

/// A value of a tick.
#[derive(Clone, Debug, PartialEq)]
pub enum JobValue {
    /// A finite value of this name.
    Of(String, f64),
    /// Whether the value of this name is not finite: 0, or the kind.
    Odd(String, f64),
    /// The training step.
    Step(f64),
}

/// Counts of a message with values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenValues {
    /// Accepted values.
    pub taken: u64,
    /// Values over a limit.
    pub dropped: u64,
}

/// The values of a name since the last tick.
#[derive(Debug, Default)]
struct Named {
    /// The last finite one.
    value: Option<f64>,
    /// The last one, as its kind, if the series of kinds has a value in this tick.
    odd: Option<f64>,
    /// A value was not finite at some time: from then on the kind is a series.
    was_odd: bool,
}

/// One process.
#[derive(Debug)]
struct Sender {
    names: BTreeMap<String, Named>,
    step: Option<u64>,
    /// Token bucket: messages that it may send now, and the time of that number.
    left: f64,
    at: Duration,
}

/// A process of a run: its PID, its start (clock ticks since boot), and its place in the run.
pub type JobProcess = (u32, u64, ValueSender);

#[derive(Debug, Default)]
struct JobValuesState {
    /// Running processes of runs.
    processes: HashMap<(u32, u64), ValueSender>,
    senders: HashMap<ValueSender, Sender>,
    dropped: u64,
    /// Whether any process has sent a value.
    is_used: bool,
}

/// The values of a machine's jobs since the last tick.
#[derive(Debug, Default)]
pub struct JobValues(Mutex<JobValuesState>);

impl JobValues {
    /// Replaces the running processes of runs.
    pub fn set_processes(&self, processes: Vec<JobProcess>) {
        self.0.lock().processes = processes.into_iter().map(|(pid, start, sender)| ((pid, start), sender)).collect();
    }

    /// The first of these processes that belongs to a run, by PID and start: a process and its ancestors, for example.
    pub fn of_run(&self, mut line: impl Iterator<Item = (u32, u64)>) -> Option<ValueSender> {
        let state = self.0.lock();
        line.find_map(|process| state.processes.get(&process).cloned())
    }

    /// Puts the values of one message, received at `now` of a monotonic clock. The last value of a name in a tick
    /// counts; a value that is not finite is reported in any case.
    pub fn put(
        &self,
        sender: ValueSender,
        values: impl IntoIterator<Item = (String, f64)>,
        step: Option<u64>,
        now: Duration,
    ) -> TakenValues {
        let values: Vec<(String, f64)> = values.into_iter().collect();
        let mut taken = TakenValues::default();
        let mut state = self.0.lock();
        state.is_used = true;
        if !state.senders.contains_key(&sender) {
            state.senders.retain(|_, known| now.saturating_sub(known.at) < FORGET_AFTER);
            if state.senders.len() >= MAX_SENDERS {
                taken.dropped = values.len() as u64;
                state.dropped += taken.dropped;
                return taken;
            }
        }
        let mut room = MAX_SERIES.saturating_sub(state.senders.values().map(Sender::series).sum());
        let of = Sender { names: BTreeMap::new(), step: None, left: BURST, at: now };
        let one = state.senders.entry(sender).or_insert(of);
        if !one.admit(now) {
            taken.dropped = values.len() as u64;
        } else {
            for (name, value) in values {
                match one.named(name, &mut room) {
                    Some(named) => {
                        named.put(value);
                        taken.taken += 1;
                    }
                    None => taken.dropped += 1,
                }
            }
            one.step = step.or(one.step);
        }
        state.dropped += taken.dropped;
        taken
    }

    /// Takes the values since the last call, by process.
    pub fn take(&self) -> Vec<(ValueSender, Vec<JobValue>)> {
        let mut state = self.0.lock();
        let of = |(sender, one): (&ValueSender, &mut Sender)| {
            let values = one.take();
            (!values.is_empty()).then(|| (sender.clone(), values))
        };
        state.senders.iter_mut().filter_map(of).collect()
    }

    /// Counts values that were dropped before they came here.
    pub fn drop_some(&self, count: u64) {
        let mut state = self.0.lock();
        (state.is_used, state.dropped) = (true, state.dropped + count);
    }

    /// Values dropped since the start; none if no process has sent one.
    pub fn dropped(&self) -> Option<u64> {
        let state = self.0.lock();
        state.is_used.then_some(state.dropped)
    }
}

impl Sender {
    fn series(&self) -> usize {
        self.names.len()
    }

    fn admit(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + passed * PER_SECOND).min(BURST), now);
        let some = self.left >= 1.0;
        if some {
            self.left -= 1.0;
        }
        some
    }

    /// The entry of a name, if there is room for one more; `room` is the number of series that still fit.
    fn named(&mut self, name: String, room: &mut usize) -> Option<&mut Named> {
        if !self.names.contains_key(&name) {
            if self.names.len() >= MAX_NAMES || *room == 0 {
                return None;
            }
            *room -= 1;
        }
        Some(self.names.entry(name).or_default())
    }

    fn take(&mut self) -> Vec<JobValue> {
        let mut all: Vec<JobValue> = self.step.take().map(|step| JobValue::Step(step as f64)).into_iter().collect();
        for (name, named) in &mut self.names {
            all.extend(named.value.take().map(|value| JobValue::Of(name.clone(), value)));
            all.extend(named.odd.take().map(|odd| JobValue::Odd(name.clone(), odd)));
        }
        all
    }
}

impl Named {
    fn put(&mut self, value: f64) {
        let code = code(value);
        if code == 0.0 {
            self.value = Some(value);
        }
        self.was_odd |= code != 0.0;
        // One that is not finite is reported, also if a finite one follows in the same tick.
        if self.was_odd && (code != 0.0 || self.odd.is_none()) {
            self.odd = Some(code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rank: u32) -> ValueSender {
        ValueSender { run: Some("a".into()), rank: Some(rank), ..ValueSender::default() }
    }

    fn one_value(name: &str, value: f64) -> Vec<(String, f64)> {
        vec![(name.into(), value)]
    }

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn processes_over_the_maximum_are_counted_and_have_room_when_others_are_forgotten() {
        let values = JobValues::default();
        for n in 0..MAX_SENDERS as u32 {
            assert_eq!(values.put(rank(n), one_value("loss", 1.0), None, at(0)).taken, 1);
        }
        let over = values.put(rank(9_999), one_value("loss", 1.0), None, at(0));
        assert_eq!((over.taken, over.dropped, values.dropped()), (0, 1, Some(1)));
        assert_eq!(values.take().len(), MAX_SENDERS);
        assert_eq!(values.put(rank(9_999), one_value("loss", 1.0), None, FORGET_AFTER).taken, 1);
    }

    #[test]
    fn the_last_value_of_a_tick_counts_and_a_tick_without_one_has_none() {
        let values = JobValues::default();
        assert_eq!(values.dropped(), None, "a machine without a job pays nothing");
        let both = vec![("loss".to_string(), 0.5), ("lr".to_string(), 1e-4)];
        assert_eq!(values.put(rank(3), both, Some(7), at(0)), TakenValues { taken: 2, dropped: 0 });
        values.put(rank(3), one_value("loss", 0.1 + 0.2), Some(8), at(100));
        values.put(rank(4), one_value("loss", 2.0), None, at(100));
        let mut taken = values.take();
        taken.sort_by_key(|(sender, _)| sender.rank);
        let third = vec![JobValue::Step(8.0), JobValue::Of("loss".into(), 0.1 + 0.2), JobValue::Of("lr".into(), 1e-4)];
        assert_eq!(taken, [(rank(3), third), (rank(4), vec![JobValue::Of("loss".into(), 2.0)])]);
        assert_eq!(values.take(), []);
        assert_eq!(values.dropped(), Some(0));
    }

    #[test]
    fn a_value_that_is_no_number_is_told_even_if_a_number_follows_in_the_same_tick() {
        let values = JobValues::default();
        let next = |all: &[f64]| {
            for value in all {
                values.put(rank(0), one_value("loss", *value), None, at(0));
            }
            values.take().pop().map(|(_, values)| values).unwrap_or_default()
        };
        let (loss, odd) = (|value| JobValue::Of("loss".into(), value), |kind| JobValue::Odd("loss".into(), kind));
        assert_eq!(next(&[1.0]), [loss(1.0)], "a value that was always finite has one series");
        assert_eq!(next(&[f64::NAN]), [odd(1.0)]);
        assert_eq!(next(&[2.0, f64::INFINITY, 3.0]), [loss(3.0), odd(2.0)]);
        assert_eq!(next(&[f64::NEG_INFINITY]), [odd(3.0)]);
        assert_eq!(next(&[4.0]), [loss(4.0), odd(0.0)], "it is a number again");
        assert_eq!(next(&[]), []);
    }

    #[test]
    fn a_process_below_a_run_is_of_that_run() {
        let values = JobValues::default();
        values.set_processes(vec![(7, 70, rank(0)), (8, 80, rank(1))]);
        assert_eq!(values.of_run([(9, 90), (8, 80), (7, 70)].into_iter()), Some(rank(1)));
        assert_eq!(values.of_run([(9, 90), (8, 81)].into_iter()), None, "another process has that PID now");
    }

    #[test]
    fn what_is_over_a_limit_is_dropped_and_counted() {
        let values = JobValues::default();
        let many = |count: usize| (0..count).map(|n| (format!("v{n:03}"), 1.0));
        let taken = values.put(rank(0), many(MAX_NAMES + 6), None, at(0));
        assert_eq!(taken, TakenValues { taken: MAX_NAMES as u64, dropped: 6 });
        assert_eq!(values.put(rank(0), one_value("v001", 2.0), None, at(0)).taken, 1, "a known name is taken");
        let sent = (0..100).map(|_| values.put(rank(1), one_value("loss", 1.0), None, at(0)).taken).sum::<u64>();
        assert_eq!(sent, BURST as u64);
        assert_eq!(values.put(rank(1), one_value("loss", 1.0), None, at(100)).taken, 1, "a tenth of a second later");
        assert_eq!(values.put(rank(1), one_value("loss", 1.0), None, at(100)).taken, 0);
        assert_eq!(values.dropped(), Some(6 + 80 + 1));
        values.drop_some(3);
        assert_eq!(values.dropped(), Some(90));
        for one in 2..1_000 {
            values.put(rank(one), many(MAX_NAMES), None, at(0));
        }
        let all: usize = values.take().iter().map(|(_, values)| values.len()).sum();
        assert_eq!(all, MAX_SERIES);
        let later = values.put(rank(5_000), one_value("loss", 1.0), None, FORGET_AFTER + at(200));
        assert_eq!(later.taken, 1, "processes that have gone make room");
    }
}
