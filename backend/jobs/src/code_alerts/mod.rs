//! Alerts from code: scripts send them, and they are stored as records of the machine. An agent sends them to its hub;
//! the rule evaluation reads them by [`of`].
//!
//! A loop that alerts in each step, or all ranks of a job at once, cost few records. Repeats are counted in memory, and
//! written with the next record of their title.

use crate::values::place_of;
use parking_lot::Mutex;
use rules::{Codes, Tied};
use shared::alert::{AlertSeverity, CodeAlertTaken};
use shared::alert_call::{ALERT_KIND, AlertCall, DEFAULT_WAIT_SECONDS};
use shared::catalog::job::ValueSender;
use shared::record::Record;
use shared::wire::SourceId;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::{mpsc, oneshot, watch};

/// New alerts per minute of one run, or of the machine; the burst is as large.
const PER_MINUTE: f64 = 10.0;
/// Maximum number of titles of one run, or of the machine.
const MAX_TITLES: usize = 100;
/// A title without a call is forgotten after this time.
const TITLE_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// Maximum number of runs in memory.
const MAX_RUNS: usize = 256;
/// Remembered call IDs per run, to detect duplicates.
const MAX_SEEN: usize = 1_024;
/// Time for which repeats are counted before they are written, at first and at most: it doubles with each record.
const REPEAT_WINDOWS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(64));
/// Interval of the check whether repeats are due.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Calls that wait for the rule evaluation on a hub, and the maximum time of each.
const MAX_TOLD: usize = 256;
const KEEP_TIMEOUT: Duration = Duration::from_secs(5);
/// Records that are read at the start to restore earlier calls.
const MAX_READ: usize = 10_000;

/// The answer to a caller that exceeds the limits.
pub const TOO_MANY_CALLS: &str = "too many alerts: the limit per run is 10 new alerts a minute and 100 different \
    titles; this one is counted and dropped";

/// The alert in a record of a machine; None for another kind of record.
pub fn from_record(record: &Record) -> Option<AlertCall> {
    let body = Some(&record.body).filter(|_| record.kind == ALERT_KIND)?;
    serde_json::from_slice::<AlertCall>(body).ok()?.kept(record.t)
}

/// A call of a process of this machine, in the run and with the rank of that process. `pid` is its PID according to the
/// kernel. A run that the call names stays.
pub fn in_run_of(live: &Live, source: SourceId, call: AlertCall, pid: Option<u32>) -> AlertCall {
    let place = pid.filter(|_| call.run.is_none()).and_then(|pid| place_of(live, source, pid));
    match place {
        Some(ValueSender { run: Some(run), rank, .. }) => {
            AlertCall { run: Some(run), ranks: rank.into_iter().collect(), ..call }
        }
        _ => call,
    }
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenCall {
    /// The alert's id.
    pub id: String,
    /// First call of the alert, milliseconds since the Unix epoch.
    pub began: i64,
    /// Number of calls of the alert so far.
    pub count: u64,
    /// Whether the alert is new.
    pub new: bool,
}

impl TakenCall {
    /// The answer to the caller.
    pub fn answer(self) -> CodeAlertTaken {
        CodeAlertTaken { id: self.id, count: self.count }
    }
}

/// A call without a record: one of a hub itself, from its API. The rule evaluation stores it, and then returns the
/// result.
#[derive(Debug)]
pub struct ToldCall {
    /// The machine of the alert.
    pub source: SourceId,
    /// The alert.
    pub call: AlertCall,
    /// Receives the result once the call is stored.
    pub answer: oneshot::Sender<TakenCall>,
}

/// Reason why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedCall {
    /// The rate limit is exceeded.
    TooMany,
    /// It cannot be stored.
    Store(String),
}

impl fmt::Display for RefusedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedCall::TooMany => f.write_str(TOO_MANY_CALLS),
            RefusedCall::Store(why) => f.write_str(why),
        }
    }
}

/// State of one title of a run.
#[derive(Debug)]
struct Title {
    /// First call of the alert: by the steady clock, and by the record.
    first: Duration,
    began: i64,
    id: String,
    /// Last call.
    last: Duration,
    wait: Duration,
    worst: AlertSeverity,
    count: u64,
    /// Repeats that are counted and not yet written.
    waiting: Option<AlertCall>,
    written: Duration,
    gap: Duration,
}

impl Title {
    fn new(call: &AlertCall, id: String, at: Duration) -> Title {
        Title {
            first: at,
            began: call.t,
            id,
            last: at,
            wait: Duration::from_secs(call.wait.into()),
            worst: call.severity,
            count: call.count,
            waiting: None,
            written: at,
            gap: REPEAT_WINDOWS.0,
        }
    }

    /// Whether a call now repeats an open alert.
    fn is_open(&self, now: Duration) -> bool {
        now.saturating_sub(self.first) < self.wait
    }

    fn taken(&self) -> TakenCall {
        TakenCall { id: self.id.clone(), began: self.began, count: self.count, new: false }
    }

    /// Counts a repeat; returns the record to write now, if any. A call with a higher severity than all before is
    /// written at once.
    fn repeat(&mut self, call: AlertCall, now: Duration) -> Option<AlertCall> {
        let worse = call.severity > self.worst;
        self.worst = self.worst.max(call.severity);
        self.wait = Duration::from_secs(call.wait.into());
        self.count = self.count.saturating_add(call.count);
        self.last = now;
        match &mut self.waiting {
            Some(waiting) => waiting.fold(call),
            None => self.waiting = Some(call),
        }
        (worse || now.saturating_sub(self.written) >= self.gap).then(|| self.write(now)).flatten()
    }

    fn write(&mut self, now: Duration) -> Option<AlertCall> {
        let waiting = self.waiting.take()?;
        (self.written, self.gap) = (now, (self.gap * 2).min(REPEAT_WINDOWS.1));
        Some(waiting)
    }
}

/// State of a run, or of all calls of the machine outside of runs.
#[derive(Debug, Default)]
struct Heard {
    /// New alerts that the rate limit allows now.
    left: f64,
    /// Time of the last update of `left`.
    reckoned: Duration,
    titles: HashMap<String, Title>,
    /// IDs of received calls, the oldest first, with their titles.
    seen: VecDeque<(String, String)>,
    /// Whether an alert reports that calls were dropped.
    said: bool,
    /// Time of the last call.
    at: Duration,
}

impl Heard {
    fn may_be_new(&mut self, title: &str, now: Duration) -> bool {
        let passed = now.saturating_sub(self.reckoned).as_secs_f64();
        (self.left, self.reckoned) = ((self.left + passed * PER_MINUTE / 60.0).min(PER_MINUTE), now);
        if !self.titles.contains_key(title) && self.titles.len() >= MAX_TITLES {
            self.titles.retain(|_, title| now.saturating_sub(title.last) < TITLE_LIFE);
            if self.titles.len() >= MAX_TITLES {
                return false;
            }
        }
        let may = self.left >= 1.0;
        self.left -= f64::from(u8::from(may));
        may
    }

    fn note(&mut self, id: Option<String>, title: &str) {
        if let Some(id) = id {
            self.seen.push_back((id, title.into()));
            if self.seen.len() > MAX_SEEN {
                self.seen.pop_front();
            }
        }
    }
}

#[derive(Debug, Default)]
struct CodeAlertState {
    runs: HashMap<(SourceId, String), Heard>,
    dropped: u64,
    told: Option<mpsc::Sender<ToldCall>>,
}

/// Receives alerts from code.
#[derive(Debug, Default)]
pub struct Calls(Mutex<CodeAlertState>);

impl Calls {
    /// Takes a call of a machine. When this returns, it is stored, or counted with a stored one.
    ///
    /// # Errors
    /// [`RefusedCall`].
    pub fn take(&self, live: &Live, source: SourceId, call: AlertCall) -> Result<TakenCall, RefusedCall> {
        let (taken, write) = self.admit(live, source, call);
        append(live, source, write).map_err(RefusedCall::Store)?;
        taken
    }

    /// Receiver of calls without a record, for the rule evaluation on a hub. The latest receiver gets them.
    pub fn listen(&self) -> mpsc::Receiver<ToldCall> {
        let (told, listener) = mpsc::channel(MAX_TOLD);
        self.0.lock().told = Some(told);
        listener
    }

    /// Sends a call to the receiver of [`listen`](Self::listen), and waits until it is stored.
    ///
    /// # Errors
    /// [`RefusedCall`].
    pub async fn tell(&self, live: &Live, source: SourceId, call: AlertCall) -> Result<TakenCall, RefusedCall> {
        let told = self.0.lock().told.clone();
        let nobody =
            || RefusedCall::Store("this hub does not evaluate alerts; send it to the agent of the machine".into());
        let Some(told) = told else { return Err(nobody()) };
        // Repeats of a title are bounded by the caller's request limit; this limit counts new alerts only.
        self.admit(live, source, call.clone()).0?;
        let (answer, answered) = oneshot::channel();
        let busy = |_| RefusedCall::Store("the alert queue of this hub is full; retry in a moment".into());
        told.try_send(ToldCall { source, call, answer }).map_err(busy)?;
        match tokio::time::timeout(KEEP_TIMEOUT, answered).await {
            Ok(Ok(taken)) => Ok(taken),
            _ => Err(RefusedCall::Store("the alert may not have been stored; retry with an id".into())),
        }
    }

    /// The result of a call, and the records to write.
    fn admit(
        &self,
        live: &Live,
        source: SourceId,
        call: AlertCall,
    ) -> (Result<TakenCall, RefusedCall>, Vec<AlertCall>) {
        let (now, machine) = (live.clock.steady(), name_of(live, source));
        let mut state = self.0.lock();
        let CodeAlertState { runs, dropped, .. } = &mut *state;
        let heard = state_of_run(runs, live, source, call.whose());
        heard.at = now;
        if let Some(id) = &call.id
            && let Some((_, title)) = heard.seen.iter().find(|(seen, _)| seen == id)
            && let Some(title) = heard.titles.get(title)
        {
            return (Ok(title.taken()), Vec::new());
        }
        let name = call.title.clone();
        if let Some(title) = heard.titles.get_mut(&name).filter(|title| title.is_open(now)) {
            let id = call.id.clone();
            let write = title.repeat(call, now);
            let taken = title.taken();
            heard.note(id, &name);
            (Ok(taken), write.into_iter().collect::<Vec<_>>())
        } else if heard.may_be_new(&name, now) {
            heard.note(call.id.clone(), &name);
            // Unwritten repeats of the previous alert belong to that one.
            let id = id_of(&machine, &call);
            let title = Title::new(&call, id.clone(), now);
            let before = heard.titles.insert(name, title).and_then(|mut title| title.write(now));
            let taken = TakenCall { id, began: call.t, count: 1, new: true };
            (Ok(taken), before.into_iter().chain([call]).collect())
        } else {
            *dropped += 1;
            let first = !std::mem::replace(&mut heard.said, true);
            (Err(RefusedCall::TooMany), first.then(|| left_out(&call)).into_iter().collect())
        }
    }

    /// Counts a call that was dropped before it came here.
    pub fn drop_one(&self) {
        self.0.lock().dropped += 1;
    }

    /// Calls dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }

    /// Writes repeats that are due, or all of them.
    fn write(&self, live: &Live, all: bool) {
        let now = live.clock.steady();
        let mut due: Vec<(SourceId, AlertCall)> = Vec::new();
        {
            let mut state = self.0.lock();
            for ((source, _), heard) in &mut state.runs {
                let ready = |title: &&mut Title| all || now.saturating_sub(title.written) >= title.gap;
                due.extend(
                    heard.titles.values_mut().filter(ready).filter_map(|title| Some((*source, title.write(now)?))),
                );
            }
        }
        for (source, call) in due {
            if let Err(error) = append(live, source, vec![call]) {
                tracing::warn!(error, "alerts from code are counted and not kept");
            }
        }
    }
}

/// Writes due repeats until `stop` becomes true.
pub async fn keep_calls(live: Arc<Live>, calls: Arc<Calls>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(CHECK_INTERVAL) => calls.write(&live, false),
            _ = stop.wait_for(|stop| *stop) => return calls.write(&live, true),
        }
    }
}

/// The alert ID of a call, the same on every evaluator.
fn id_of(source: &str, call: &AlertCall) -> String {
    let tied = Tied { source: source.into(), run: call.run.clone(), labels: BTreeMap::new() };
    Codes::default().take(call, &tied, call.t).0.id
}

/// The alert that reports once that a run exceeds the limits.
fn left_out(call: &AlertCall) -> AlertCall {
    tracing::warn!(
        run = call.whose(),
        "the limit of alerts from code is reached; further alerts are counted and dropped"
    );
    AlertCall {
        title: "Limit of alerts from code reached".into(),
        text: "The limit per run is 10 new alerts a minute and 100 different titles; further alerts are dropped."
            .into(),
        severity: AlertSeverity::Warning,
        wait: DEFAULT_WAIT_SECONDS,
        run: call.run.clone(),
        ranks: Vec::new(),
        count: 1,
        id: None,
        t: call.t,
    }
}

fn name_of(live: &Live, source: SourceId) -> String {
    live.store().source(source).map(|(source, _)| source.name.clone()).unwrap_or_default()
}

fn append(live: &Live, source: SourceId, calls: Vec<AlertCall>) -> Result<(), String> {
    let some = !calls.is_empty();
    for call in calls {
        let body = serde_json::to_vec(&call).map_err(|error| error.to_string())?;
        live.append_record(source, call.t, ALERT_KIND, body).map_err(|why| why.to_string())?;
    }
    if some {
        live.announce(&[source]);
    }
    Ok(())
}

/// The state of a run; on its first call, restored from the newest records.
fn state_of_run<'a>(
    all: &'a mut HashMap<(SourceId, String), Heard>,
    live: &Live,
    source: SourceId,
    run: &str,
) -> &'a mut Heard {
    let (now, wall) = (live.clock.steady(), live.clock.wall());
    let key = (source, run.to_string());
    if !all.contains_key(&key) && all.len() >= MAX_RUNS {
        // Unwritten repeats are lost with it, but the run that is silent for longest has written all.
        let oldest = all.iter().min_by_key(|(_, heard)| heard.at).map(|(key, _)| key.clone());
        oldest.map(|key| all.remove(&key));
    }
    all.entry(key).or_insert_with(|| {
        let mut heard = Heard { left: PER_MINUTE, reckoned: now, at: now, ..Heard::default() };
        let (name, placed) = (name_of(live, source), live.store().records_since(source, 0));
        for placed in placed.iter().rev().take(MAX_READ).rev() {
            let Some(call) = from_record(&placed.record).filter(|call| call.whose() == run) else { continue };
            let ago = Duration::from_millis(u64::try_from(wall.saturating_sub(call.t)).unwrap_or(0));
            let at = now.saturating_sub(ago);
            heard.note(call.id.clone(), &call.title);
            let has_room = heard.titles.len() < MAX_TITLES || heard.titles.contains_key(&call.title);
            if let Some(title) = heard.titles.get_mut(&call.title).filter(|title| title.is_open(at)) {
                title.repeat(call, at);
                title.waiting = None;
            } else if has_room {
                let id = id_of(&name, &call);
                heard.titles.insert(call.title.clone(), Title::new(&call, id, at));
            }
        }
        heard
    })
}

#[cfg(test)]
mod tests;
