//! Questions of pages to the agent of a linked machine: its process table, and the state of its collectors.
//!
//! An agent gets one question at a time, with a short timeout. Equal questions that arrive meanwhile, or shortly after,
//! share the answer. So an agent gets the same question once per second, however many pages show the machine.

use super::limits::{self, Cause, Refusals};
use super::{Ingest, limits::MAX_CHECKS};
use parking_lot::Mutex;
use shared::agent::{HubMessage, MAX_FACT_BYTES, MAX_MESSAGE, MAX_TEXT_BYTES, Question, is_text};
use shared::nccl::{MAX_RANKS, NcclReport};
use shared::output::{LinesAsked, LinesPart, MAX_LINE_BYTES, plain};
use shared::processes::{Process, ProcessTable};
use shared::run::check_id;
use shared::submission::{Submission, SubmissionResult};
use shared::wire::{Check, SourceId};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum time of an agent for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum total time of a question, with the time in the queue.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which an answer is reused for equal questions.
const ANSWER_CACHE_TIME: Duration = Duration::from_secs(1);
/// Maximum queued questions to one agent, and different ones that wait for their turn.
const MAX_CAME: usize = 64;
const MAX_WAITING: usize = 8;
/// Bytes of a message besides the submission in it.
const SUBMISSION_ENVELOPE_BYTES: usize = 32;
/// Maximum number of runs of a machine whose stacks are requested at once.
const MAX_STACKED_RUNS: usize = 64;
/// Maximum number of GPUs of a process.
const MAX_GPUS: usize = 512;

/// Reason why a machine gave no answer. Its text is one sentence for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum NoAnswer {
    /// It has no link now.
    Unlinked,
    /// Its queue of questions is full.
    Busy,
    /// It did not answer in time.
    Late,
    /// It has no answer.
    Nothing,
    /// The hub that holds its link cannot be reached.
    HubAway,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::Unlinked => f.write_str("this machine is not connected to the hub"),
            NoAnswer::Busy => f.write_str("too many requests to this machine at once; retry in a few seconds"),
            NoAnswer::Late => {
                let seconds = TURN_TIMEOUT.as_secs();
                write!(f, "the request to this machine timed out after {seconds} s; its link may be slow, so try again")
            }
            NoAnswer::HubAway => {
                f.write_str("another hub of this cluster holds the link of this machine and does not respond")
            }
            NoAnswer::Nothing => {
                f.write_str("this machine has no response to that; it may not be permitted, or not measured yet")
            }
        }
    }
}

impl std::error::Error for NoAnswer {}

/// An agent's answer, and the correction that its link adds to timestamps, milliseconds.
#[derive(Clone, Debug)]
pub(super) struct AgentAnswer {
    pub bytes: Arc<Vec<u8>>,
    pub shift: i64,
}

/// A question, and the sender for its answer.
struct Asking {
    what: Question,
    tell: oneshot::Sender<Result<AgentAnswer, NoAnswer>>,
}

/// Queues of questions to the agents' links.
#[derive(Default)]
pub(super) struct Desk(Mutex<BTreeMap<SourceId, mpsc::Sender<Asking>>>);

impl Desk {
    /// Opens the queue of a source whose link begins; questions to its previous link get no answer.
    pub fn open(&self, source: SourceId) -> Questions {
        let (ask, came) = mpsc::channel(MAX_CAME);
        self.0.lock().insert(source, ask);
        Questions { came, asked: None, waiting: VecDeque::new(), known: None, id: 0 }
    }

    /// A closed queue, for a source of another hub: that hub receives its questions.
    pub fn none() -> Questions {
        let (_, came) = mpsc::channel(1);
        Questions { came, asked: None, waiting: VecDeque::new(), known: None, id: 0 }
    }

    pub(super) async fn ask(&self, source: SourceId, what: Question) -> Result<AgentAnswer, NoAnswer> {
        let link = self.0.lock().get(&source).cloned();
        let (tell, told) = oneshot::channel();
        link.ok_or(NoAnswer::Unlinked)?.try_send(Asking { what, tell }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NoAnswer::Busy,
            mpsc::error::TrySendError::Closed(_) => NoAnswer::Unlinked,
        })?;
        match timeout(TURN_TIMEOUT, told).await {
            Ok(Ok(Ok(answer))) if answer.bytes.is_empty() => Err(NoAnswer::Nothing),
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(NoAnswer::Late),
        }
    }
}

/// One question, and all that wait for its answer.
struct Asked {
    what: Question,
    id: u32,
    until: Instant,
    tell: Vec<oneshot::Sender<Result<AgentAnswer, NoAnswer>>>,
}

/// The questions on one link.
pub(super) struct Questions {
    came: mpsc::Receiver<Asking>,
    asked: Option<Asked>,
    waiting: VecDeque<Asking>,
    /// The last answer, and its time of expiry.
    known: Option<(Question, Instant, AgentAnswer)>,
    id: u32,
}

impl Questions {
    /// The next question for the agent, whose clock is corrected by `shift` milliseconds. Cancel safe.
    pub async fn next(&mut self, shift: i64) -> HubMessage {
        loop {
            if let Some(asking) = self.waiting.pop_front_if(|_| self.asked.is_none()) {
                return self.begin(asking, shift);
            }
            let until = self.asked.as_ref().map(|asked| asked.until);
            tokio::select! {
                asking = self.came.recv() => match asking {
                    Some(asking) => self.take(asking),
                    // Another link has replaced this one.
                    None => std::future::pending().await,
                },
                // The waiting senders are dropped, which ends their channels.
                () = at(until) => self.asked = None,
            }
        }
    }

    fn take(&mut self, Asking { what, tell }: Asking) {
        match (&mut self.asked, &self.known) {
            (Some(asked), _) if asked.what == what => asked.tell.push(tell),
            // The asker may have gone.
            (_, Some((known, until, answer))) if *known == what && Instant::now() < *until => {
                drop(tell.send(Ok(answer.clone())));
            }
            _ if self.waiting.len() < MAX_WAITING => self.waiting.push_back(Asking { what, tell }),
            _ => drop(tell.send(Err(NoAnswer::Busy))),
        }
    }

    fn begin(&mut self, Asking { what, tell }: Asking, shift: i64) -> HubMessage {
        let mut tell = vec![tell];
        let (same, others) = self.waiting.drain(..).partition(|other| other.what == what);
        self.waiting = others;
        tell.extend(VecDeque::into_iter(same).map(|other| other.tell));
        self.id = self.id.wrapping_add(1);
        // An agent uses its own clock, so times are converted to it.
        let own = match what.clone() {
            Question::Processes { at: Some(t) } => Question::Processes { at: Some(t.saturating_sub(shift)) },
            Question::Lines(mut asked) => {
                let (from, to) = asked.span;
                // An open bound stays open.
                let moved = |t: i64| if matches!(t, i64::MIN | i64::MAX) { t } else { t.saturating_sub(shift) };
                asked.span = (moved(from), moved(to));
                Question::Lines(asked)
            }
            Question::Submission { json, .. } => Question::Submission { shift, json },
            what => what,
        };
        self.asked = Some(Asked { what, id: self.id, until: Instant::now() + ANSWER_TIMEOUT, tell });
        HubMessage::Ask { id: self.id, what: own }
    }

    /// Delivers the agent's answer. An answer that nobody awaits is dropped.
    pub fn answered(&mut self, id: u32, bytes: Vec<u8>, shift: i64) {
        let Some(asked) = self.asked.take_if(|asked| asked.id == id) else { return };
        let answer = AgentAnswer { bytes: Arc::new(bytes), shift };
        self.known = Some((asked.what, Instant::now() + ANSWER_CACHE_TIME, answer.clone()));
        asked.tell.into_iter().for_each(|tell| drop(tell.send(Ok(answer.clone()))));
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Ingest {
    /// Gets an answer of a source's agent, on whichever hub its link is.
    async fn ask(&self, source: SourceId, what: Question) -> Result<AgentAnswer, NoAnswer> {
        match self.0.others.as_ref().filter(|_| !self.0.live.holds(source)) {
            Some(others) => {
                let (bytes, shift) = others.ask(source, what).await?;
                Ok(AgentAnswer { bytes: Arc::new(bytes), shift })
            }
            None => self.0.desk.ask(source, what).await,
        }
    }

    /// Processes of a linked machine: its newest process table, or its largest users at a time, milliseconds since the
    /// Unix epoch by our clock. Arguments are included only if the agent was started with that option.
    ///
    /// # Errors
    /// [`NoAnswer`], after 10 s at the latest.
    pub async fn processes(&self, source: SourceId, at: Option<i64>) -> Result<ProcessTable, NoAnswer> {
        let answer = self.ask(source, Question::Processes { at }).await?;
        let table = table(&answer.bytes, &self.0.refusals(Some(source))).ok_or(NoAnswer::Nothing)?;
        Ok(ProcessTable { t: table.t.saturating_add(answer.shift), ..table })
    }

    /// A part of the output of a run on a linked machine, by our clock.
    ///
    /// # Errors
    /// [`NoAnswer`], after 10 s at the latest.
    pub async fn lines(&self, source: SourceId, asked: LinesAsked) -> Result<LinesPart, NoAnswer> {
        let answer = self.ask(source, Question::Lines(Box::new(asked))).await?;
        lines(&answer.bytes, answer.shift, &self.0.refusals(Some(source))).ok_or(NoAnswer::Nothing)
    }

    /// The ranks for which the job that holds these GPUs of a linked machine waits, as NCCL names them there.
    ///
    /// # Errors
    /// [`NoAnswer`], after 10 s at the latest.
    pub async fn nccl(&self, source: SourceId, gpus: Vec<u32>) -> Result<NcclReport, NoAnswer> {
        let answer = self.ask(source, Question::Nccl { gpus }).await?;
        let mut report: NcclReport = serde_json::from_slice(&answer.bytes).map_err(|_| NoAnswer::Nothing)?;
        report.ranks.truncate(MAX_RANKS);
        Ok(report)
    }

    /// Requests the stacks of the jobs on a linked machine that hold one of these GPUs, as output of their runs. Returns
    /// the IDs of the runs whose launchers take them.
    ///
    /// # Errors
    /// [`NoAnswer`], after 10 s at the latest.
    pub async fn stacks(&self, source: SourceId, gpus: Vec<u32>) -> Result<Vec<String>, NoAnswer> {
        let answer = self.ask(source, Question::Stacks { gpus }).await?;
        let mut runs: Vec<String> = serde_json::from_slice(&answer.bytes).map_err(|_| NoAnswer::Nothing)?;
        runs.retain(|run| check_id(run).is_ok());
        runs.truncate(MAX_STACKED_RUNS);
        Ok(runs)
    }

    /// Stores a submission on a linked machine.
    ///
    /// # Errors
    /// [`NoAnswer`], after 10 s at the latest. Then it may be stored, and a repetition with the same IDs is safe.
    pub async fn submit(&self, source: SourceId, submission: &Submission) -> Result<SubmissionResult, NoAnswer> {
        let json = serde_json::to_vec(submission).map_err(|_| NoAnswer::Nothing)?;
        if json.len() + SUBMISSION_ENVELOPE_BYTES > MAX_MESSAGE {
            return Err(NoAnswer::Nothing);
        }
        let answer = self.ask(source, Question::Submission { shift: 0, json }).await?;
        result(&answer.bytes, &self.0.refusals(Some(source))).ok_or(NoAnswer::Nothing)
    }

    /// State of the collectors of a linked machine, as its agent reports it.
    ///
    /// # Errors
    /// [`NoAnswer`], after 10 s at the latest.
    pub async fn examine(&self, source: SourceId) -> Result<Vec<Check>, NoAnswer> {
        #[derive(serde::Deserialize)]
        struct Report {
            checks: Vec<Check>,
        }
        let answer = self.ask(source, Question::Doctor).await?;
        let Report { mut checks } = serde_json::from_slice(&answer.bytes).map_err(|_| NoAnswer::Nothing)?;
        checks.truncate(MAX_CHECKS);
        checks.retain(limits::is_check);
        Ok(checks)
    }
}

/// Decodes an agent's lines, with times by our clock. Rows that are no lines of a run are dropped; None if the bytes
/// are no part.
fn lines(bytes: &[u8], shift: i64, refusals: &Refusals) -> Option<LinesPart> {
    let mut part: LinesPart = serde_json::from_slice(bytes).ok()?;
    let all = part.rows.len();
    part.rows.retain(|(_, _, line)| line.text.len() <= MAX_LINE_BYTES);
    refusals.add(Cause::Text, (all - part.rows.len()) as u64);
    for (_, _, line) in &mut part.rows {
        line.t = line.t.saturating_add(shift);
        // The only control characters that our agents send are tabs and color sequences.
        if !is_text(&plain(&line.text).replace('\t', " ")) {
            let clean = |c: char| {
                if matches!(c, '\t' | '\u{1b}') || is_text(c.encode_utf8(&mut [0; 4])) { c } else { '\u{fffd}' }
            };
            line.text = line.text.chars().map(clean).collect();
            refusals.add(Cause::Text, 1);
        }
    }
    Some(part)
}

/// Decodes an agent's result of a submission. None if it is none, or has a text that a terminal would obey.
fn result(bytes: &[u8], refusals: &Refusals) -> Option<SubmissionResult> {
    let result: SubmissionResult = serde_json::from_slice(bytes).ok()?;
    if let SubmissionResult::Refused(why) = &result
        && (why.sentence.len() > MAX_TEXT_BYTES || !is_text(&why.sentence))
    {
        refusals.add(Cause::Text, 1);
        return None;
    }
    Some(result)
}

/// Decodes an agent's table; rows that cannot be shown are dropped and counted. None if it is no table.
fn table(bytes: &[u8], refusals: &Refusals) -> Option<ProcessTable> {
    let (mut table, rest): (ProcessTable, _) = postcard::take_from_bytes(bytes).ok()?;
    if !rest.is_empty() || !limits::is_year(table.t) {
        return None;
    }
    let all = table.rows.len();
    table.rows.retain(is_shown);
    refusals.add(Cause::Text, (all - table.rows.len()) as u64);
    for row in &mut table.rows {
        row.started = row.started.filter(|t| limits::is_year(*t));
    }
    Some(table)
}

fn is_shown(row: &Process) -> bool {
    let short = [&row.user, &row.name, &row.container].iter().all(|text| text.len() <= MAX_FACT_BYTES && is_text(text));
    let numbers = [row.cpu, row.read, row.written, row.gpu_share].into_iter().flatten().all(f32::is_finite);
    let known = row.gpus.len() <= MAX_GPUS && row.state.is_none_or(|letter| letter.is_ascii_alphabetic());
    short && numbers && known && row.args.len() <= MAX_TEXT_BYTES && is_text(&row.args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_asks_one_thing_too_many_is_told_so_at_once() {
        let desk = Desk::default();
        let mut questions = desk.open(1);
        let others = (0..=MAX_WAITING as i64).map(|t| desk.ask(1, Question::Processes { at: Some(t) }));
        let others = futures_util::future::join_all(others);
        let link = async {
            questions.next(0).await;
            // The agent is silent; meanwhile all others wait.
            questions.next(0).await;
        };
        let last = async {
            tokio::task::yield_now().await;
            desk.ask(1, Question::Doctor).await.map(drop)
        };
        let began = Instant::now();
        tokio::select! {
            biased;
            _ = others => panic!("nobody answers them"),
            () = link => panic!("the agent has not answered yet"),
            told = last => assert_eq!((told, began.elapsed()), (Err(NoAnswer::Busy), Duration::ZERO)),
        }
    }

    #[test]
    fn a_table_has_no_row_that_a_terminal_would_heed() {
        let row = |name: &str| Process { name: name.into(), ..Process::default() };
        let endless = Process { cpu: Some(f32::INFINITY), ..row("c") };
        let odd = Process { state: Some('\u{1b}'), ..row("e") };
        let many = Process { gpus: vec![0; MAX_GPUS + 1], ..row("f") };
        let long = Process { args: "x".repeat(MAX_TEXT_BYTES + 1), ..row("d") };
        let sent = |t| ProcessTable {
            t,
            total: 9,
            whole: true,
            rows: vec![
                Process { started: Some(i64::MIN), ..row("a") },
                row("b\u{1b}[2J"),
                endless.clone(),
                long.clone(),
                odd.clone(),
                many.clone(),
            ],
        };
        let bytes = |t| postcard::to_stdvec(&sent(t)).expect("encoded");
        let refusals = Refusals::default();
        let kept = table(&bytes(1_800_000_000_000), &refusals).expect("a table");
        assert_eq!(
            (kept.rows, kept.total, refusals.count_of(Cause::Text)),
            (vec![row("a")], 9, 5),
            "no start is before its year"
        );
        assert_eq!(table(&bytes(0), &refusals), None, "no table was read there");
        assert_eq!(table(&[bytes(1_800_000_000_000), vec![0]].concat(), &refusals), None);
        assert_eq!(table(&[0xff; 40], &refusals), None);
    }
}
