//! Alerts from code: a repeated one is the same alert.

use crate::builtin::FROM_CODE;
use crate::{StateRow, Transition, What, id};
use serde::{Deserialize, Serialize};
use shared::alert::{Alert, AlertSeverity, AlertState, CodeAlertTaken};
use shared::alert_call::AlertCall;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of new alerts of a run, or of a machine, in a minute.
const MOST_A_MINUTE: usize = 10;

/// Maximum number of open titles of a run, or of a machine.
const MOST_TITLES: usize = 100;

/// Maximum number of call ids stored for an alert.
const MOST_CALLS: usize = 256;

/// Title of the alert for calls over the limits.
const FURTHER: &str = "the limit of alerts from code is reached; further alerts are only counted";

/// Origin of a call, as the kernel or the sender's permission proves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tied {
    /// The machine's name.
    pub source: String,
    /// The run's id; None: the call is about the machine.
    pub run: Option<String>,
    /// Further labels: project, name of the run, and the machine's labels.
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
    first_rank: Option<u32>,
    ranks: BTreeSet<u32>,
    calls: VecDeque<String>,
    labels: BTreeMap<String, String>,
}

/// Open alerts from code.
#[derive(Debug, Default)]
pub struct Codes {
    /// By run or machine, and title.
    open: BTreeMap<(String, String), Open>,
    /// Times of new alerts, by run or machine.
    recent: BTreeMap<String, VecDeque<i64>>,
    dirty: BTreeSet<(String, String)>,
}

const SEP: char = '\u{1f}';

impl Codes {
    /// Applies a call. A call that was applied before causes no transition.
    pub fn take(&mut self, call: &AlertCall, tied: &Tied, now: i64) -> (CodeAlertTaken, Vec<Transition>) {
        let mut title = call.title.clone();
        let wait = i64::from(call.wait) * 1000;
        let t = call.t.min(now);
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
            return (taken, Vec::new());
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
            first_rank: call.ranks.first().copied(),
            labels: tied.labels.clone(),
            ..Open::default()
        });
        if is_new {
            open.labels.insert("source".into(), tied.source.clone());
            open.labels.extend(tied.run.as_ref().map(|run| ("run".to_string(), run.clone())));
            open.labels.insert("title".into(), key.1.clone());
            open.severity = call.severity;
        }
        open.count += call.count;
        open.severity = open.severity.max(call.severity);
        (open.wait, open.last) = (wait, open.last.max(t));
        if is_new || !call.text.is_empty() {
            open.text.clone_from(&call.text);
        }
        open.ranks.extend(call.ranks.iter().copied());
        if let Some(id) = &call.id {
            open.calls.push_back(id.clone());
            while open.calls.len() > MOST_CALLS {
                open.calls.pop_front();
            }
        }
        let taken = CodeAlertTaken { id: alert_id(&key, open.began), count: open.count };
        out.push(transition(&key, open, if is_new { What::Fired } else { What::Changed }, None));
        self.dirty.insert(key);
        (taken, out)
    }

    fn end(&mut self, key: &(String, String), t: i64) -> Option<Transition> {
        let open = self.open.remove(key)?;
        self.dirty.insert(key.clone());
        Some(transition(key, &open, What::Ended, Some(t.max(open.began))))
    }

    /// Ends alerts that were not repeated within their `wait`.
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

    /// Ends the alerts of a run that has ended.
    pub fn run_ended(&mut self, run: &str, now: i64) -> Vec<Transition> {
        let whose = format!("run {run}");
        let of_it: Vec<_> = self.open.keys().filter(|(who, _)| *who == whose).cloned().collect();
        of_it.into_iter().filter_map(|key| self.end(&key, now)).collect()
    }

    /// Ends all alerts, after the rule for alerts from code was switched off.
    pub fn end_all(&mut self, now: i64) -> Vec<Transition> {
        let all: Vec<_> = self.open.keys().cloned().collect();
        all.into_iter().filter_map(|key| self.end(&key, now)).collect()
    }

    /// Parts of the state that changed since the last call.
    pub fn changed_rows(&mut self) -> Vec<StateRow> {
        std::mem::take(&mut self.dirty)
            .into_iter()
            .map(|key| StateRow {
                bytes: self.open.get(&key).and_then(|open| postcard::to_stdvec(open).ok()),
                key: format!("k{SEP}{}{SEP}{}", key.0, key.1),
            })
            .collect()
    }

    /// Releases a machine of this name to another hub: its alerts do not end here.
    pub fn release(&mut self, name: &str) {
        let gone: Vec<_> = self.open.keys().filter(|(whose, _)| whose == name).cloned().collect();
        for key in gone {
            self.open.remove(&key);
            self.dirty.remove(&key);
        }
    }

    /// Takes over the alerts of machines of these names from another hub.
    pub fn adopt(&mut self, names: &BTreeSet<String>, rows: &[StateRow]) {
        let own = |row: &&StateRow| row.key.split(SEP).nth(1).is_some_and(|whose| names.contains(whose));
        let own: Vec<StateRow> = rows.iter().filter(own).cloned().collect();
        self.restore(&own);
    }

    /// Restores all stored rows after a start.
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
            labels.insert("rank".into(), rank.to_string());
            sentence += &format!(" (rank {rank})");
        }
        (n, Some(rank)) if n > 1 => {
            labels.insert("rank".into(), rank.to_string());
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

    const WAIT_MS: i64 = 600_000;

    fn call(title: &str, rank: u32, t: i64) -> AlertCall {
        let title = title.into();
        AlertCall {
            title,
            severity: AlertSeverity::Warning,
            wait: 600,
            ranks: vec![rank],
            count: 1,
            t,
            ..AlertCall::default()
        }
    }

    fn tied_to(run: &str) -> Tied {
        Tied { source: "node-1".into(), run: Some(run.into()), ..Tied::default() }
    }

    #[test]
    fn sixty_four_ranks_that_say_one_thing_are_one_alert() {
        let mut codes = Codes::default();
        let mut ids = BTreeSet::new();
        let mut fired = 0;
        for rank in 3..67 {
            let t = T + i64::from(rank);
            let (taken, changes) = codes.take(&call("loss is NaN", rank, t), &tied_to("a"), t);
            ids.insert(taken.id);
            fired += changes.iter().filter(|c| c.what == What::Fired).count();
            if rank == 66 {
                assert_eq!(changes[0].alert.sentence, "loss is NaN (64 ranks, first rank 3)");
                assert_eq!((taken.count, changes[0].alert.labels["run"].as_str()), (64, "a"));
            }
        }
        assert_eq!((ids.len(), fired), (1, 1));
        let (taken, _) = codes.take(&AlertCall { count: 900, ..call("loss is NaN", 3, T + 66) }, &tied_to("a"), T + 66);
        assert_eq!(taken.count, 964, "a record counts what was said again and again");
        assert!(codes.poll(T + 66 + WAIT_MS - 1).is_empty());
        let ended = codes.poll(T + 66 + WAIT_MS);
        assert_eq!((ended.len(), ended[0].what, ended[0].alert.ended), (1, What::Ended, Some(T + 66 + WAIT_MS)));
    }

    #[test]
    fn after_its_wait_it_is_a_new_one_and_a_call_counts_once() {
        let mut codes = Codes::default();
        let with_id = AlertCall { id: Some("x".into()), ..call("slow", 0, T) };
        let first = codes.take(&with_id, &tied_to("a"), T).0;
        assert_eq!(codes.take(&with_id, &tied_to("a"), T + 5), (first.clone(), Vec::new()));
        let (again, changes) = codes.take(&call("slow", 0, T + WAIT_MS), &tied_to("a"), T + WAIT_MS);
        assert_ne!(first.id, again.id);
        assert_eq!(changes.iter().map(|c| c.what).collect::<Vec<_>>(), [What::Ended, What::Fired]);
        assert_eq!(codes.run_ended("a", T + WAIT_MS + 1).len(), 1);
        assert_eq!(codes.run_ended("a", T + WAIT_MS + 1).len(), 0);
        codes.take(&call("slow", 0, T), &tied_to("b"), T);
        assert_eq!(codes.end_all(T + 1).iter().map(|c| c.what).collect::<Vec<_>>(), [What::Ended]);
        assert!(codes.end_all(T + 1).is_empty());
    }

    #[test]
    fn a_thousand_titles_are_ten_alerts_and_one_that_counts_the_rest() {
        let mut codes = Codes::default();
        let changes: Vec<Transition> =
            (0..1000).flat_map(|i| codes.take(&call(&format!("t{i}"), 0, T + i), &tied_to("a"), T + i).1).collect();
        assert_eq!(changes.iter().filter(|c| c.what == What::Fired).count(), MOST_A_MINUTE + 1);
        let last = &changes.last().expect("one").alert;
        assert_eq!((last.count, last.labels["title"].as_str()), (990, FURTHER));
    }

    #[test]
    fn text_is_never_read_and_a_start_loses_nothing() {
        let mut codes = Codes::default();
        let odd = AlertCall { text: "{run} @everyone".into(), ..call("{run}", 0, T) };
        let (taken, changes) = codes.take(&odd, &tied_to("a"), T);
        let alert = &changes[0].alert;
        assert_eq!((alert.text.as_str(), alert.sentence.as_str()), ("{run} @everyone", "{run} (rank 0)"));
        let rows = codes.changed_rows();
        let mut next = Codes::default();
        next.restore(&rows);
        let (again, changes) = next.take(&AlertCall { t: T + 1, ..odd }, &tied_to("a"), T + 1);
        assert_eq!((again.id, again.count, changes[0].what), (taken.id, 2, What::Changed));
    }

    #[test]
    fn severity_that_rises_is_told() {
        let mut codes = Codes::default();
        codes.take(&call("x", 0, T), &tied_to("a"), T);
        let worse = AlertCall { severity: AlertSeverity::Critical, ..call("x", 0, T + 1) };
        let changes = codes.take(&worse, &tied_to("a"), T + 1).1;
        assert_eq!((changes[0].what, changes[0].alert.severity), (What::Changed, AlertSeverity::Critical));
        let again = codes.take(&call("x", 0, T + 2), &tied_to("a"), T + 2).1;
        assert_eq!(again[0].alert.severity, AlertSeverity::Critical);
    }
}
