//! Names the ranks that a hanging job waits for: a new finding of a hang is completed by the answer of NCCL on one of its
//! machines.

use parking_lot::Mutex;
use shared::finding::{Finding, MAX_FINDING_BYTES};
use shared::nccl::NcclReport;
use shared::wire::SourceId;
use std::collections::HashMap;
use std::sync::Arc;

/// Asks NCCL on a machine which ranks its hanging job waits for. It blocks, for some seconds at most.
pub type AskNccl = Arc<dyn Fn(SourceId) -> Option<NcclReport> + Send + Sync>;

/// Kind of the findings that are completed.
const HANG: &str = "hang";

/// Age of a finding above which nobody is asked, seconds: it comes from a replay of the history.
const MAX_AGE_S: i64 = 60;

/// Maximum number of machines that are asked about one hang, one after the other. Each answers for its whole job.
const MAX_MACHINES: usize = 4;

/// Maximum number of open hangs that are completed.
const MAX_HANGS: usize = 64;

/// An open hang, and the words of the answer about it.
struct Hang {
    finding: Finding,
    words: Option<String>,
}

/// Open hangs of the followed machines.
pub(super) struct Hangs {
    ask: Option<AskNccl>,
    open: HashMap<String, Hang>,
    answers: Arc<Mutex<Vec<(String, String)>>>,
}

impl Hangs {
    pub fn new(ask: Option<AskNccl>) -> Hangs {
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
        let mut machines: Vec<SourceId> = places.filter_map(|place| source(&place.source)).collect();
        machines.dedup();
        machines.truncate(MAX_MACHINES);
        let (id, answers) = (finding.id.clone(), self.answers.clone());
        self.open.insert(id.clone(), Hang { finding: finding.clone(), words: None });
        let asks = move || {
            if let Some(report) = machines.into_iter().find_map(|machine| ask(machine)) {
                answers.lock().push((id, report.words()));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("nccl".into()).spawn(asks) {
            tracing::warn!(%error, "NCCL is not asked about a hang");
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
        let ask: AskNccl = Arc::new(move |source| {
            theirs.lock().push(source);
            let ranks = vec![NcclRank { rank: 5, process: None }];
            (source == node).then_some(NcclReport { communicator: 1, lack: NcclLack::Silent, ranks, further: 0 })
        });
        (Hangs::new(Some(ask)), asked)
    }

    fn named(hangs: &mut Hangs) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(15);
        loop {
            let found = hangs.answered();
            if !found.is_empty() || Instant::now() > until {
                return found.into_iter().map(|finding| finding.sentence).collect();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_new_hang_names_the_rank_and_keeps_it_until_its_end() {
        let (mut hangs, asked) = hangs(7);
        let new = finding("hang", "a", 100, None);
        let source = |name: &str| (name == "a").then_some(7);
        assert_eq!(hangs.complete(new.clone(), new.told + 1, source).sentence, new.sentence);
        let words = format!("{}; NCCL: rank 5 does not answer, communicator 0000000000000001", new.sentence);
        assert_eq!(named(&mut hangs), std::slice::from_ref(&words));
        assert_eq!(hangs.complete(new.clone(), new.told + 9, source).sentence, words);
        let over = Finding { until: Some(200), ..new.clone() };
        assert_eq!(hangs.complete(over, new.told + 99, source).sentence, words);
        assert_eq!(*asked.lock(), [7], "once");
        assert!(hangs.open.is_empty() && hangs.answered().is_empty());
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
