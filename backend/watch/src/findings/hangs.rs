//! Names the ranks that a hanging job waits for: a new finding of a hang is completed by the answer of NCCL on one of its
//! machines. Then the launchers that offer stacks are asked for them on all its machines.

use parking_lot::Mutex;
use shared::finding::{Finding, MAX_FINDING_BYTES};
use shared::nccl::NcclReport;
use shared::run::STACKS_BEGIN;
use shared::wire::SourceId;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Asks NCCL on a machine for which ranks the job that holds these GPUs waits. It blocks, for some seconds at most.
pub type AskNccl = Arc<dyn Fn(SourceId, &[u32]) -> Option<NcclReport> + Send + Sync>;

/// Requests the stacks of the jobs on a machine that hold one of these GPUs. Returns the IDs of the runs whose output gets
/// them. It blocks, for some seconds at most.
pub type AskStacks = Arc<dyn Fn(SourceId, &[u32]) -> Vec<String> + Send + Sync>;

/// Questions to machines about a hang.
#[derive(Clone)]
pub struct HangQuestions {
    /// Asks NCCL.
    pub nccl: AskNccl,
    /// Requests stacks.
    pub stacks: AskStacks,
}

/// Kind of the findings that are completed.
const HANG: &str = "hang";

/// Age of a finding above which nobody is asked, seconds: it comes from a replay of the history.
const MAX_AGE_S: i64 = 60;

/// Maximum number of machines that are asked about one hang, one after the other. Each answers for its whole job.
const MAX_MACHINES: usize = 4;

/// Maximum number of machines whose stacks are requested about one hang, one after the other.
const MAX_STACKED_MACHINES: usize = 64;

/// Maximum number of runs that a finding names.
const MAX_NAMED_RUNS: usize = 4;

/// Maximum number of open hangs that are completed.
const MAX_HANGS: usize = 64;

/// An open hang, and the words of the answer about it.
struct Hang {
    finding: Finding,
    words: Option<String>,
}

/// Open hangs of the followed machines.
pub(super) struct Hangs {
    ask: Option<HangQuestions>,
    open: HashMap<String, Hang>,
    answers: Arc<Mutex<Vec<(String, String)>>>,
}

impl Hangs {
    pub fn new(ask: Option<HangQuestions>) -> Hangs {
        Hangs { ask, open: HashMap::new(), answers: Arc::default() }
    }

    /// The finding with the words of NCCL, if it is a hang and they are known. A hang that is new at `now`, seconds since
    /// the Unix epoch, is asked about; `source` returns a machine by its name.
    pub fn complete(&mut self, finding: Finding, now: i64, source: impl Fn(&str) -> Option<SourceId>) -> Finding {
        if finding.kind != HANG {
            return finding;
        }
        if let Some(known) = self.open.get_mut(&finding.id) {
            known.finding = finding.clone();
            let words = known.words.clone();
            if finding.until.is_some() {
                self.open.remove(&finding.id);
            }
            return with_words(finding, words.as_deref());
        }
        let is_new = finding.until.is_none() && now - finding.told <= MAX_AGE_S && self.open.len() < MAX_HANGS;
        let Some(ask) = self.ask.clone().filter(|_| is_new) else { return finding };
        let places = finding.subject.iter().chain(&finding.affects);
        let mut machines: Vec<(SourceId, Vec<u32>)> = Vec::new();
        for place in places {
            let Some(machine) = source(&place.source) else { continue };
            match machines.iter_mut().find(|(known, _)| *known == machine) {
                Some((_, gpus)) => gpus.extend(&place.gpus),
                None => machines.push((machine, place.gpus.clone())),
            }
        }
        let (id, answers) = (finding.id.clone(), self.answers.clone());
        self.open.insert(id.clone(), Hang { finding: finding.clone(), words: None });
        let asks = move || {
            let report = machines.iter().take(MAX_MACHINES).find_map(|(machine, gpus)| (ask.nccl)(*machine, gpus));
            let mut words = report.map_or_else(String::new, |report| report.words());
            if !words.is_empty() {
                answers.lock().push((id.clone(), words.clone()));
            }
            let stacked = machines.iter().take(MAX_STACKED_MACHINES);
            let runs: BTreeSet<String> = stacked.flat_map(|(machine, gpus)| (ask.stacks)(*machine, gpus)).collect();
            if !runs.is_empty() {
                words += if words.is_empty() { "" } else { "; " };
                words += &words_of_stacks(&runs);
                answers.lock().push((id, words));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("hang".into()).spawn(asks) {
            tracing::warn!(%error, "no machine is asked about a hang");
        }
        finding
    }

    /// The hangs about which an answer has come since the last call, each with its words.
    pub fn answered(&mut self) -> Vec<Finding> {
        let answers = std::mem::take(&mut *self.answers.lock());
        let with = |(id, words): (String, String)| {
            let hang = self.open.get_mut(&id)?;
            hang.words = Some(words);
            Some(with_words(hang.finding.clone(), hang.words.as_deref()))
        };
        answers.into_iter().filter_map(with).collect()
    }
}

/// The place of the stacks of these runs. Their text is for readers of the output alone.
fn words_of_stacks(runs: &BTreeSet<String>) -> String {
    let named: Vec<&str> = runs.iter().take(MAX_NAMED_RUNS).map(String::as_str).collect();
    let further = runs.len().saturating_sub(MAX_NAMED_RUNS);
    let further = if further > 0 { format!(" and {further} more") } else { String::new() };
    let run = if runs.len() == 1 { "run" } else { "runs" };
    format!("{STACKS_BEGIN}{run} {}{further}", named.join(", "))
}

/// The finding with these words at the end of its sentence, if it then still fits a record.
fn with_words(finding: Finding, words: Option<&str>) -> Finding {
    let Some(words) = words.filter(|words| !words.is_empty()) else { return finding };
    let longer = Finding { sentence: format!("{}; {words}", finding.sentence), ..finding.clone() };
    let fits = serde_json::to_vec(&longer).is_ok_and(|bytes| bytes.len() <= MAX_FINDING_BYTES);
    if fits { longer } else { finding }
}

#[cfg(test)]
mod tests {
    use super::super::testing::finding;
    use super::*;
    use shared::nccl::{NcclLack, NcclRank};
    use std::time::{Duration, Instant};

    /// Hangs about which `node` answers that rank 5 is silent, and the machines that were asked.
    fn hangs(node: SourceId) -> (Hangs, Arc<Mutex<Vec<SourceId>>>) {
        let asked = Arc::<Mutex<Vec<SourceId>>>::default();
        let theirs = asked.clone();
        let nccl: AskNccl = Arc::new(move |source, _| {
            theirs.lock().push(source);
            let ranks = vec![NcclRank { rank: 5, process: None }];
            (source == node).then_some(NcclReport { communicator: 1, lack: NcclLack::Silent, ranks, further: 0 })
        });
        // A launcher offers the stacks of this job.
        let stacks: AskStacks = Arc::new(move |source, gpus| {
            (source == node && *gpus == [0]).then(|| "train-7".to_string()).into_iter().collect()
        });
        (Hangs::new(Some(HangQuestions { nccl, stacks })), asked)
    }

    /// The sentences that come until one has the place of the stacks.
    fn named(hangs: &mut Hangs) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(15);
        let mut all: Vec<String> = Vec::new();
        while Instant::now() < until && !all.last().is_some_and(|last| last.contains("the stacks of its ranks")) {
            all.extend(hangs.answered().into_iter().map(|finding| finding.sentence));
            std::thread::sleep(Duration::from_millis(5));
        }
        all.dedup();
        all
    }

    #[test]
    fn a_new_hang_names_the_rank_and_the_place_of_the_stacks_and_keeps_them_until_its_end() {
        let (mut hangs, asked) = hangs(7);
        let new = finding("hang", "a", 100, None);
        let source = |name: &str| (name == "a").then_some(7);
        assert_eq!(hangs.complete(new.clone(), new.told + 1, source).sentence, new.sentence);
        let rank = format!("{}; NCCL: rank 5 does not answer, communicator 0000000000000001", new.sentence);
        let words = format!("{rank}; the stacks of its ranks are in the output of run train-7");
        let all = named(&mut hangs);
        assert_eq!(all.last(), Some(&words));
        assert!(all.iter().all(|one| *one == rank || *one == words), "{all:?}");
        assert_eq!(hangs.complete(new.clone(), new.told + 9, source).sentence, words);
        let over = Finding { until: Some(200), ..new.clone() };
        assert_eq!(hangs.complete(over, new.told + 99, source).sentence, words);
        assert_eq!(*asked.lock(), [7], "once");
        assert!(hangs.open.is_empty() && hangs.answered().is_empty());
    }

    #[test]
    fn many_runs_are_counted() {
        let runs: BTreeSet<String> = (1..=6).map(|n| format!("run-{n}")).collect();
        let words = "the stacks of its ranks are in the output of runs run-1, run-2, run-3, run-4 and 2 more";
        assert_eq!(words_of_stacks(&runs), words);
    }

    #[test]
    fn nobody_is_asked_without_a_hang_of_now() {
        let (mut hangs, asked) = hangs(7);
        let now = 1_000;
        let mut take = |finding: Finding| hangs.complete(finding, now, |_| Some(7));
        take(Finding { told: now, ..finding("idle", "a", 100, None) });
        take(Finding { told: now - MAX_AGE_S - 1, ..finding("hang", "a", 100, None) });
        take(Finding { told: now, ..finding("hang", "a", 100, Some(now)) });
        assert!(hangs.open.is_empty() && asked.lock().is_empty());
    }

    #[test]
    fn words_that_are_too_long_for_a_record_are_left_out() {
        let long = finding("hang", "a", 100, None);
        let words = "x".repeat(MAX_FINDING_BYTES);
        assert_eq!(with_words(long.clone(), Some(&words)), long);
    }
}
