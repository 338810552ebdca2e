//! Values that jobs log: their sender, and the queue of the machine's collector.

use inventory::TakenValues;
use shared::catalog::job::ValueSender;
use shared::catalog::kernel;
use shared::new_values::{BadValues, MAX_NAMES, NewValues, PER_SECOND};
use shared::wire::SourceId;
use std::fmt;
use stream::live::Live;

/// Maximum number of ancestors of a sender among which a process of a run is searched.
const MAX_DEPTH: usize = 64;

/// Reason why values are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedValues {
    /// They are invalid.
    Bad(BadValues),
    /// The process that sent them has ended, so its run is not known.
    Gone,
}

impl fmt::Display for RefusedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedValues::Bad(why) => why.fmt(f),
            RefusedValues::Gone => f.write_str("the process that sent the values has ended; its run is not known"),
        }
    }
}

/// The answer to a sender of which values were dropped.
pub fn too_many(dropped: u64) -> String {
    let are = if dropped == 1 { "value is" } else { "values are" };
    format!("the limit per process is {MAX_NAMES} names and {PER_SECOND} messages a second; {dropped} {are} dropped")
}

/// Takes values of a process of this machine: they are in its next tick. `pid` is the process that sent them, according
/// to the kernel.
///
/// # Errors
/// [`RefusedValues`]: then none is taken, and they count as dropped.
pub fn take(live: &Live, source: SourceId, new: NewValues, pid: Option<u32>) -> Result<TakenValues, RefusedValues> {
    let values = &live.source(source).job_values;
    let count = new.values.len() as u64;
    let refused = |why| {
        values.drop_some(count);
        Err(why)
    };
    let (run, named) = (new.run.clone(), new.pid);
    let (all, step) = match new.checked() {
        Ok(checked) => checked,
        Err(bad) => return refused(RefusedValues::Bad(bad)),
    };
    let sender = match run {
        Some(run) => Some(ValueSender { run: Some(run), ..ValueSender::default() }),
        None => sender(live, source, pid.or(named), named),
    };
    match sender {
        Some(sender) => Ok(values.put(sender, all, step, live.clock.steady())),
        None => refused(RefusedValues::Gone),
    }
}

/// The place of a process in its run; of a process without a run, its kernel. A process that gives its PID is listed by
/// it, and the others, such as `watchglass log` outside of a run, without one. None for a process that has ended.
fn sender(live: &Live, source: SourceId, pid: Option<u32>, named: Option<u32>) -> Option<ValueSender> {
    let Some(pid) = pid else { return Some(ValueSender::default()) };
    line(pid).next()?;
    if let Some(sender) = place_of(live, source, pid) {
        return Some(sender);
    }
    let state = live.source(source);
    let kernel = named.and_then(|_| state.kernels.of_process(pid).ok());
    let kernel = kernel.map(|id| kernel::short(&id).to_string());
    Some(ValueSender { pid: named.filter(|_| kernel.is_none()).map(|_| pid), kernel, ..ValueSender::default() })
}

/// The place of a process in its run: its own, or that of the nearest ancestor in one. None outside of a run, and for a
/// process that has ended.
pub(crate) fn place_of(live: &Live, source: SourceId, pid: u32) -> Option<ValueSender> {
    live.source(source).job_values.of_run(line(pid))
}

/// A process and its ancestors, by PID and start; empty if it has ended.
#[cfg(unix)]
fn line(pid: u32) -> impl Iterator<Item = (u32, u64)> {
    let all = std::iter::successors(Some(pid), |pid| launch::process::parent(*pid)).take(MAX_DEPTH);
    all.map_while(|pid| Some((pid, launch::process::started(pid)?)))
}

/// On systems without a launcher no process belongs to a run.
#[cfg(not(unix))]
fn line(pid: u32) -> impl Iterator<Item = (u32, u64)> {
    let _ = MAX_DEPTH;
    std::iter::once((pid, 0))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use inventory::JobValue;
    use shared::catalog::{Catalog, cpu};
    use shared::new_values::JobNumber;
    use std::sync::Arc;
    use std::time::Duration;
    use stream::clock::Manual;
    use stream::store::{Limits, Store};

    fn live() -> Arc<Live> {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 60_000, bytes: usize::MAX });
        store.add_source("here".into(), 1_000, Vec::new());
        Live::new(store, Arc::new(Manual::at(0, Duration::from_secs(9))), 1, 60_000)
    }

    fn loss() -> NewValues {
        NewValues { values: [("loss".to_string(), JobNumber(0.41))].into(), step: Some(7), ..NewValues::default() }
    }

    #[test]
    fn values_are_of_the_run_below_which_their_sender_stands() {
        let (live, own) = (live(), std::process::id());
        let parent = launch::process::parent(own).expect("a parent");
        let start = launch::process::started(parent).expect("it runs");
        let rank = ValueSender { run: Some("abc".into()), rank: Some(3), ..ValueSender::default() };
        live.source(0).job_values.set_processes(vec![(parent, start, rank.clone())]);
        let taken = take(&live, 0, NewValues { pid: Some(1), ..loss() }, Some(own));
        assert_eq!(taken, Ok(TakenValues { taken: 1, dropped: 0 }));
        let values = live.source(0).job_values.take();
        assert_eq!(values, [(rank, vec![JobValue::Step(7.0), JobValue::Of("loss".into(), 0.41)])]);
        live.source(0).job_values.set_processes(Vec::new());
        let sender = |new: NewValues, pid| {
            take(&live, 0, new, pid).map(|_| live.source(0).job_values.take().pop().expect("values").0)
        };
        assert_eq!(sender(loss(), Some(own)), Ok(ValueSender::default()), "`watchglass log` by hand");
        let named = || NewValues { pid: Some(own), ..loss() };
        let by_pid = ValueSender { pid: Some(own), ..ValueSender::default() };
        assert_eq!(sender(named(), Some(own)), Ok(by_pid.clone()));
        assert_eq!(sender(named(), None), Ok(by_pid), "by a request");
        let run = NewValues { run: Some("of-mine".into()), ..named() };
        assert_eq!(sender(run, Some(own)).map(|sender| sender.run), Ok(Some("of-mine".into())));
    }

    #[test]
    fn what_is_refused_counts_as_dropped() {
        let live = live();
        assert_eq!(take(&live, 0, loss(), Some(u32::MAX >> 2)), Err(RefusedValues::Gone));
        let bad = NewValues { values: [("a b".to_string(), JobNumber(1.0))].into(), ..NewValues::default() };
        assert!(matches!(take(&live, 0, bad, None), Err(RefusedValues::Bad(BadValues::Name(_)))));
        assert_eq!(live.source(0).job_values.dropped(), Some(2));
        assert!(too_many(1).ends_with("10 messages a second; 1 value is dropped"), "{}", too_many(1));
    }
}
