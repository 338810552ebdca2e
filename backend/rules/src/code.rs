//! Alerts that code tells: the same one told again is one alert.

use crate::builtin::FROM_CODE;
use crate::{StateRow, Transition, What, id};
use serde::{Deserialize, Serialize};
use shared::alert::{Alert, AlertSeverity, AlertState, CodeAlert, CodeAlertTaken, MAX_TEXT_BYTES, MAX_TITLE_BYTES};
use shared::rule::{clean, duration};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// In which time repeats are folded where the call does not say, milliseconds.
const WAIT_MS: i64 = 600_000;

/// New alerts of a run, or of a machine, in a minute.
const MOST_A_MINUTE: usize = 10;

/// Distinct titles of a run, or of a machine, that are open.
const MOST_TITLES: usize = 100;

/// Ids of calls that are remembered for an alert.
const MOST_CALLS: usize = 256;

/// Under this title stand calls that are too many.
const FURTHER: &str = "more alerts from code than are kept; these are counted only";

/// What a call is tied to, by the kernel or by who may tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tied {
    /// The machine's name.
    pub source: String,
    /// The run's id; None: the machine itself.
    pub run: Option<String>,
    /// The rank, as is shown.
    pub rank: Option<String>,
    /// Further labels: project, name of the run, those of the machine.
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Open {
    began: i64,
    last: i64,
    wait: i64,
    count: u64,
    severity: AlertSeverity,
    text: String,
    title: String,
    first_rank: Option<String>,
    ranks: BTreeSet<String>,
    calls: VecDeque<String>,
    labels: BTreeMap<String, String>,
}

/// The alerts from code that are open.
#[derive(Debug, Default)]
pub struct Codes {
    /// By run or machine, and title.
    open: BTreeMap<(String, String), Open>,
    /// When new ones came, by run or machine.
    recent: BTreeMap<String, VecDeque<i64>>,
    dirty: BTreeSet<(String, String)>,
}

const SEP: char = '\u{1f}';

impl Codes {
    /// Takes a call. Its time `t`, where it says one, is told as its time; `now` in milliseconds. The transition is None for
    /// a call that was taken before.
    ///
    /// # Errors
    /// A sentence for a title that is empty and a `wait` that is none.
    pub fn take(
        &mut self,
        call: &CodeAlert,
        tied: &Tied,
        now: i64,
    ) -> Result<(CodeAlertTaken, Vec<Transition>), String> {
        let mut title = clean(&call.title, MAX_TITLE_BYTES, false);
        if title.is_empty() {
            return Err("title: an alert has a title".into());
        }
        let wait = match &call.wait {
            Some(text) => i64::from(duration(text).map_err(|why| format!("wait: {why}"))?) * 1000,
            None => WAIT_MS,
        };
        let t = call.t.and_then(shared::date::from_seconds).unwrap_or(now).min(now);
        let whose = match &tied.run {
            Some(run) => format!("run {run}"),
            None => tied.source.clone(),
        };
        let seen = call
            .id
            .as_ref()
            .and_then(|id| self.open.iter().find(|((who, _), open)| *who == whose && open.calls.contains(id)));
        if let Some((key, open)) = seen {
            let taken = CodeAlertTaken { id: alert_id(key, open.began), count: open.count };
            return Ok((taken, Vec::new()));
        }
        let mut out = Vec::new();
        let folds = |open: &Open| t - open.began < wait && t - open.began < open.wait.max(wait);
        if !self.open.get(&(whose.clone(), title.clone())).is_some_and(folds) {
            let recent = self.recent.entry(whose.clone()).or_default();
            recent.retain(|at| (0..60_000).contains(&(now - at)));
            let titles = self.open.keys().filter(|(who, _)| *who == whose).count();
            let known = self.open.contains_key(&(whose.clone(), title.clone()));
            if recent.len() >= MOST_A_MINUTE || (titles >= MOST_TITLES && !known) {
                title = FURTHER.into();
            } else {
                recent.push_back(now);
            }
        }
        let key = (whose, title);
        if self.open.get(&key).is_some_and(|open| !folds(open)) {
            out.extend(self.end(&key, t));
        }
        let is_new = !self.open.contains_key(&key);
        let open = self.open.entry(key.clone()).or_insert_with(|| Open {
            began: t,
            title: key.1.clone(),
            first_rank: tied.rank.clone(),
            labels: tied.labels.clone(),
            ..Open::default()
        });
        if is_new {
            open.labels.insert("source".into(), tied.source.clone());
            open.labels.extend(tied.run.as_ref().map(|run| ("run".to_string(), run.clone())));
            open.labels.insert("title".into(), key.1.clone());
            open.severity = call.severity;
        }
        open.count += 1;
        open.severity = open.severity.max(call.severity);
        (open.wait, open.last) = (wait, open.last.max(t));
        if is_new || !call.text.is_empty() {
            open.text = clean(&call.text, MAX_TEXT_BYTES, true);
        }
        open.ranks.extend(tied.rank.clone());
        if let Some(id) = &call.id {
            open.calls.push_back(id.clone());
            while open.calls.len() > MOST_CALLS {
                open.calls.pop_front();
            }
        }
        let taken = CodeAlertTaken { id: alert_id(&key, open.began), count: open.count };
        out.push(transition(&key, open, if is_new { What::Fired } else { What::Changed }, None));
        self.dirty.insert(key);
        Ok((taken, out))
    }

    fn end(&mut self, key: &(String, String), t: i64) -> Option<Transition> {
        let open = self.open.remove(key)?;
        self.dirty.insert(key.clone());
        Some(transition(key, &open, What::Ended, Some(t.max(open.began))))
    }

    /// Ends what was not told again for its `wait`.
    pub fn poll(&mut self, now: i64) -> Vec<Transition> {
        let over: Vec<_> = self
            .open
            .iter()
            .filter(|(_, o)| now - o.last >= o.wait)
            .map(|(key, o)| (key.clone(), o.last + o.wait))
            .collect();
        self.recent.retain(|_, times| times.back().is_some_and(|t| now - t < 60_000));
        over.into_iter().filter_map(|(key, t)| self.end(&key, t)).collect()
    }

    /// A run has ended, and what it told with it.
    pub fn run_ended(&mut self, run: &str, now: i64) -> Vec<Transition> {
        let whose = format!("run {run}");
        let of_it: Vec<_> = self.open.keys().filter(|(who, _)| *who == whose).cloned().collect();
        of_it.into_iter().filter_map(|key| self.end(&key, now)).collect()
    }

    /// Parts of the state that changed since it was asked last.
    pub fn changed_rows(&mut self) -> Vec<StateRow> {
        std::mem::take(&mut self.dirty)
            .into_iter()
            .map(|key| StateRow {
                bytes: self.open.get(&key).and_then(|open| postcard::to_stdvec(open).ok()),
                key: format!("k{SEP}{}{SEP}{}", key.0, key.1),
            })
            .collect()
    }

    /// After a start: all rows that stand.
    pub fn restore(&mut self, rows: &[StateRow]) {
        for row in rows {
            let parts: Vec<&str> = row.key.split(SEP).collect();
            if let (["k", whose, title], Some(bytes)) = (&parts[..], &row.bytes)
                && let Ok(open) = postcard::from_bytes(bytes)
            {
                self.open.insert((whose.to_string(), title.to_string()), open);
            }
        }
    }
}

fn subject(key: &(String, String)) -> String {
    format!("{}: {}", key.0, key.1)
}

fn alert_id(key: &(String, String), began: i64) -> String {
    id::alert(FROM_CODE, &subject(key), began)
}

fn transition(key: &(String, String), open: &Open, what: What, ended: Option<i64>) -> Transition {
    let mut labels = open.labels.clone();
    let mut sentence = open.title.clone();
    match (open.ranks.len(), &open.first_rank) {
        (1, Some(rank)) => {
            labels.insert("rank".into(), rank.clone());
            sentence += &format!(" (rank {rank})");
        }
        (n, Some(rank)) if n > 1 => {
            labels.insert("rank".into(), rank.clone());
            sentence += &format!(" ({n} ranks, first rank {rank})");
        }
        _ => {}
    }
    let alert = Alert {
        id: alert_id(key, open.began),
        rule: FROM_CODE.into(),
        name: "from code".into(),
        subject: subject(key),
        severity: open.severity,
        state: if ended.is_some() { AlertState::Resolved } else { AlertState::Firing },
        began: open.began,
        fired: Some(open.began),
        ended,
        value: None,
        worst: None,
        sentence,
        text: open.text.clone(),
        labels,
        count: open.count,
        acked: None,
        held: String::new(),
        unknown_since: None,
    };
    Transition { what, alert, event: true, flapping: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: i64 = 1_790_000_000_000;

    fn call(title: &str) -> CodeAlert {
        CodeAlert { title: title.into(), severity: AlertSeverity::Warning, ..CodeAlert::default() }
    }

    fn of(run: &str, rank: &str) -> Tied {
        Tied { source: "node-1".into(), run: Some(run.into()), rank: Some(rank.into()), ..Tied::default() }
    }

    #[test]
    fn sixty_four_ranks_that_say_one_thing_are_one_alert() {
        let mut codes = Codes::default();
        let mut ids = BTreeSet::new();
        let mut fired = 0;
        for rank in 3..67 {
            let (taken, changes) =
                codes.take(&call("loss is\nNaN"), &of("a", &rank.to_string()), T + rank).expect("taken");
            ids.insert(taken.id);
            fired += changes.iter().filter(|c| c.what == What::Fired).count();
            if rank == 66 {
                assert_eq!(changes[0].alert.sentence, "loss is NaN (64 ranks, first rank 3)");
                assert_eq!((taken.count, changes[0].alert.labels["run"].as_str()), (64, "a"));
            }
        }
        assert_eq!((ids.len(), fired), (1, 1));
        assert!(codes.poll(T + 66 + WAIT_MS - 1).is_empty());
        let ended = codes.poll(T + 66 + WAIT_MS);
        assert_eq!((ended.len(), ended[0].what, ended[0].alert.ended), (1, What::Ended, Some(T + 66 + WAIT_MS)));
    }

    #[test]
    fn after_its_wait_it_is_a_new_one_and_a_call_counts_once() {
        let mut codes = Codes::default();
        let with_id = CodeAlert { id: Some("x".into()), ..call("slow") };
        let first = codes.take(&with_id, &of("a", "0"), T).expect("taken").0;
        assert_eq!(codes.take(&with_id, &of("a", "0"), T + 5).expect("taken"), (first.clone(), Vec::new()));
        let (again, changes) = codes.take(&call("slow"), &of("a", "0"), T + WAIT_MS).expect("taken");
        assert_ne!(first.id, again.id);
        assert_eq!(changes.iter().map(|c| c.what).collect::<Vec<_>>(), [What::Ended, What::Fired]);
        assert_eq!(codes.run_ended("a", T + WAIT_MS + 1).len(), 1);
        assert_eq!(codes.run_ended("a", T + WAIT_MS + 1).len(), 0);
    }

    #[test]
    fn a_thousand_calls_are_ten_alerts_and_one_that_counts_the_rest() {
        let mut codes = Codes::default();
        let changes: Vec<Transition> = (0..1000)
            .flat_map(|i| codes.take(&call(&format!("t{i}")), &of("a", "0"), T + i).expect("taken").1)
            .collect();
        assert_eq!(changes.iter().filter(|c| c.what == What::Fired).count(), MOST_A_MINUTE + 1);
        let last = &changes.last().expect("one").alert;
        assert_eq!((last.count, last.labels["title"].as_str()), (990, FURTHER));
    }

    #[test]
    fn text_is_never_read_and_a_start_loses_nothing() {
        let mut codes = Codes::default();
        let odd = CodeAlert { text: "{run} @everyone\u{202e} <b>".into(), ..call("{run}\u{1b}[2J") };
        let (taken, changes) = codes.take(&odd, &of("a", "0"), T).expect("taken");
        assert_eq!(
            (changes[0].alert.text.as_str(), changes[0].alert.sentence.as_str()),
            ("{run} @everyone <b>", "{run}[2J (rank 0)")
        );
        let rows = codes.changed_rows();
        let mut next = Codes::default();
        next.restore(&rows);
        let (again, changes) = next.take(&odd, &of("a", "0"), T + 1).expect("taken");
        assert_eq!((again.id, again.count, changes[0].what), (taken.id, 2, What::Changed));
        assert!(codes.take(&call(" \n"), &of("a", "0"), T).is_err());
        assert!(codes.take(&CodeAlert { wait: Some("9d".into()), ..call("x") }, &of("a", "0"), T).is_err());
    }

    #[test]
    fn severity_that_rises_is_told() {
        let mut codes = Codes::default();
        codes.take(&call("x"), &of("a", "0"), T).expect("taken");
        let worse = CodeAlert { severity: AlertSeverity::Critical, ..call("x") };
        let changes = codes.take(&worse, &of("a", "0"), T + 1).expect("taken").1;
        assert_eq!((changes[0].what, changes[0].alert.severity), (What::Changed, AlertSeverity::Critical));
        assert_eq!(
            codes.take(&call("x"), &of("a", "0"), T + 2).expect("taken").1[0].alert.severity,
            AlertSeverity::Critical
        );
    }
}
