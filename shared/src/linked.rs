//! The part of a finding, a run, an alert or a marker that the holder of a share link sees: what is wrong, where and
//! since when. People, processes, notes, output and other machines are left out.

use crate::address;
use crate::alert::{AlertHistory, AlertState};
use crate::answer::markers::Marker;
use crate::answer::runs::ListedRun;
use crate::catalog::job;
use crate::finding::{Dismissed, Finding};
use crate::nccl::WORDS_BEGIN;
use crate::run::{About, STACKS_BEGIN};

/// Rules whose sentences consist of devices, machines, times and numbers. A finding of another rule is left out, so that
/// a new rule that names people or processes is not shown by accident.
const RULES: [&str; 26] = [
    "collector_silent",
    "disk_full",
    "ecc.corrected",
    "ecc.uncorrected",
    "fabric",
    "gpu_memory",
    "gpu_memory.ended",
    "hang.idle",
    "hang.odd",
    "hang.spin",
    "host_lost",
    "host_memory",
    "idle",
    "lost_gpu",
    "recovery",
    "slow_link.net",
    "slow_link.nvlink",
    "slow_link.pcie",
    "slow_link.port",
    "starvation",
    "straggler.slow",
    "straggler.waits",
    "throttle.heat",
    "throttle.power",
    "uneven",
    "xid",
];

/// Maximum number of training jobs of a link: as many as a page compares.
const MAX_RUNS: usize = 8;

/// Kinds of markers that name neither a person nor code.
const MARKERS: [&str; 5] = ["epoch", "step", "checkpoint", "eval", "preempting"];

/// The objects that the query of a link names, besides its machines. They are chosen by the person who made the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkedObjects {
    /// Ids of the training jobs, one or several that are compared.
    pub runs: Vec<String>,
    /// Id of an alert.
    pub alert: Option<String>,
}

impl LinkedObjects {
    /// The objects of a query.
    pub fn of_query(query: &str) -> Self {
        let pairs = address::pairs(query);
        let last = |name| pairs.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let runs = pairs.iter().filter(|(name, _)| *name == "run").map(|(_, id)| id.clone());
        LinkedObjects { runs: runs.take(MAX_RUNS).collect(), alert: last("alert") }
    }

    /// Whether the link is to this training job.
    pub fn has_run(&self, id: &str) -> bool {
        self.runs.iter().any(|run| run == id)
    }
}

/// Whether links show findings of a rule.
pub fn shows_rule(rule: &str) -> bool {
    RULES.contains(&rule)
}

/// Whether a text names a process by its number.
fn names_process(text: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_digit());
    text.match_indices("process ").any(|(at, word)| digit(&text[at + word.len()..]))
}

/// The findings for a link, of those whose machines it all shows; `shows` returns whether it shows a metric, by its tag
/// with the placeholder.
pub fn findings(all: Vec<Finding>, shows: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut seen: Vec<Finding> = all.into_iter().filter_map(|one| finding(one, &shows)).collect();
    let ids: Vec<String> = seen.iter().map(|one| one.id.clone()).collect();
    for one in &mut seen {
        // The id of a cause has the name of its machine.
        one.because = one.because.take().filter(|because| ids.contains(because));
    }
    seen
}

/// A sentence without the words at its end: the ranks that NCCL names are processes, on machines by their address, and
/// those about stacks name runs.
fn own_words(sentence: &str) -> String {
    let ends = [WORDS_BEGIN, STACKS_BEGIN].iter().filter_map(|begin| sentence.find(&format!("; {begin}")));
    sentence[..ends.min().unwrap_or(sentence.len())].to_string()
}

fn finding(mut of: Finding, shows: &impl Fn(&str) -> bool) -> Option<Finding> {
    of.sentence = own_words(&of.sentence);
    of.sentence_template = of.sentence_template.as_deref().map(own_words);
    let is_hidden = of.evidence.iter().any(|evidence| !shows(&evidence.tag));
    if !shows_rule(&of.rule) || is_hidden || names_process(&of.sentence) {
        return None;
    }
    of.evidence.retain(|evidence| !names_process(&evidence.words) && !evidence.instance.contains(".proc."));
    of.changed.retain(|change| shows(&change.tag) && !change.instance.contains(".proc."));
    of.dismissed = of.dismissed.map(|said| Dismissed { at: said.at, by: String::new(), why: String::new() });
    Some(of)
}

/// The run that a link names; `sees` returns whether the link shows a machine, by its name.
pub fn run(mut of: ListedRun, sees: impl Fn(&str) -> bool) -> ListedRun {
    let About { name, project, program, .. } = of.about;
    of.about = About { name, project, program, ..About::default() };
    of.row.hosts.retain(|host| sees(host));
    if let Some(processes) = &mut of.row.processes {
        processes.retain(|process| sees(&process.source));
    }
    if of.row.cause.as_ref().is_some_and(|cause| !sees(&cause.source)) {
        of.row.cause = None;
        of.row.sentence = of.row.state.name().into();
    }
    if let Some(cause) = &mut of.row.cause {
        cause.line = None;
    }
    (of.row.edited, of.row.may, of.row.drivers) = (None, None, None);
    of.figures.cost = None;
    of.figures.currency = None;
    of
}

/// A marker on a machine that a link shows; None if its kind is left out.
pub fn marker(of: Marker, objects: &LinkedObjects) -> Option<Marker> {
    if !MARKERS.contains(&of.kind.as_str()) {
        return None;
    }
    let id = of.t.as_ref().map(|t| format!("{}-{}", of.kind, t.0));
    let run = of.run.filter(|run| objects.has_run(run));
    let Marker { t, source, kind, rank, seq, end, step, .. } = of;
    Some(Marker { t, source, kind, rank, seq, end, step, id, run, ..Marker::default() })
}

/// The alert that a link names. `finding` is the finding that it is of, as the link shows it. An alert from code
/// has its title, and one of the values of a device its sentence.
pub fn alert(mut of: AlertHistory, finding: Option<&Finding>) -> AlertHistory {
    let own = &mut of.alert;
    let is_of_device = |tag: &String| !tag.starts_with("proc.") && !tag.starts_with(job::PREFIX);
    let is_plain = !own.labels.contains_key("finding") && own.labels.get("tag").is_some_and(is_of_device);
    own.sentence = match (finding, own.labels.get("title")) {
        (Some(finding), _) => finding.sentence_utc(),
        (None, Some(title)) => title.clone(),
        (None, None) if is_plain && !names_process(&own.sentence) => std::mem::take(&mut own.sentence),
        (None, None) => {
            let state = match own.state {
                AlertState::Pending => "pending",
                AlertState::Firing => "firing",
                AlertState::Resolved => "resolved",
            };
            format!("this alert is {state}")
        }
    };
    // It is the id of a run, a finding or a process.
    own.subject.clear();
    of.alert.text.clear();
    of.alert.held.clear();
    if let Some(acked) = &mut of.alert.acked {
        acked.by.clear();
    }
    of.alert.labels.retain(|name, _| ["source", "gpu", "rank", "tag"].contains(&name.as_str()));
    for event in &mut of.history.events {
        event.who.clear();
        event.words.clear();
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::runs::ListedCause;
    use crate::finding::{Change, Evidence, Place, Severity};
    use crate::json::Seconds;

    fn found(rule: &str, sentence: &str) -> Finding {
        let evidence = |tag: &str, words: &str| Evidence {
            tag: tag.into(),
            source: "a".into(),
            instance: "3".into(),
            words: words.into(),
            value: Some(1.0),
            level: None,
            from: 0,
            to: 1,
        };
        Finding {
            id: format!("{rule}:a:3:100"),
            kind: rule.split('.').next().unwrap_or_default().into(),
            rule: rule.into(),
            severity: Severity::Warning,
            subject: vec![Place { source: "a".into(), gpus: vec![3] }],
            affects: Vec::new(),
            device: None,
            since: 100,
            told: 110,
            until: None,
            sentence: sentence.into(),
            sentence_template: Some(sentence.into()),
            next: String::new(),
            user: None,
            evidence: vec![evidence("power", "power 140 W"), evidence("busy", "process 17 uses the GPU")],
            changed: vec![Change {
                source: "a".into(),
                tag: "hidden".into(),
                instance: String::new(),
                before: 1.0,
                after: 2.0,
                score: 9.0,
                first: false,
            }],
            because: Some("host_lost:other:0:90".into()),
            confidence: None,
            dismissed: Some(Dismissed { at: 120, by: "mara".into(), why: "a private reason".into() }),
        }
    }

    #[test]
    fn a_link_shows_what_is_wrong_and_neither_people_processes_nor_other_machines() {
        let shows = |tag: &str| tag != "hidden";
        let hang =
            "GPU 3 stopped; NCCL: rank 5 (process 4711 on 10.0.0.2) does not answer, communicator 0000000000000001";
        let seen = findings(vec![found("hang.spin", hang)], shows);
        let stacks = format!("GPU 3 stopped; {STACKS_BEGIN}run secret");
        assert_eq!(findings(vec![found("hang.spin", &stacks)], shows)[0].sentence, "GPU 3 stopped");
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].sentence.as_str(), seen[0].evidence.len(), seen[0].changed.len()), ("GPU 3 stopped", 1, 0));
        let text = serde_json::to_string(&seen).expect("JSON");
        for word in ["mara", "private", "other", "4711", "10.0.0.2", "17"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        for (rule, sentence) in [
            ("straggler.shared", "GPU 3 is shared"),
            ("of.tomorrow", "a new rule may name anybody"),
            ("idle", "GPU 3 is held by process 17"),
        ] {
            assert_eq!(findings(vec![found(rule, sentence)], shows), [], "{rule}");
        }
        assert_eq!(
            findings(vec![found("idle", "GPU 3 is idle")], |tag| tag != "power"),
            [],
            "a hidden chart proves it"
        );
        let pair = [found("host_lost", "a is away"), found("idle", "GPU 3 is idle")];
        let [cause, mut follows] = pair;
        follows.because = Some(cause.id.clone());
        assert_eq!(findings(vec![cause.clone(), follows], shows)[1].because, Some(cause.id), "both are shown");
    }

    #[test]
    fn a_run_is_shown_without_its_people_and_the_machines_that_the_link_lacks() {
        let cause = |source: &str| ListedCause {
            source: source.into(),
            pid: 7,
            rank: Some(3),
            t: Seconds(0),
            state: crate::run::RunState::Crashed,
            sentence: "killed".into(),
            line: Some("secret line".into()),
        };
        let whole = |source: &str| {
            let mut run = ListedRun::default();
            run.about.name = Some("night".into());
            run.about.user = Some("mara".into());
            run.about.notes = Some("private".into());
            run.row.hosts = vec!["a".into(), "b".into()];
            run.row.sentence = format!("crashed: rank 3 on {source} was killed");
            run.row.cause = Some(cause(source));
            run
        };
        let shown = run(whole("a"), |name| name == "a");
        assert_eq!((shown.about.name.as_deref(), &shown.row.hosts[..]), (Some("night"), &["a".to_string()][..]));
        assert_eq!(shown.row.cause, Some(ListedCause { line: None, ..cause("a") }));
        assert_eq!((shown.about.user, shown.about.notes), (None, None));
        let other = run(whole("b"), |name| name == "a");
        assert_eq!((other.row.cause, other.row.sentence.contains("on b")), (None, false));
    }

    #[test]
    fn an_alert_has_the_sentence_of_devices_and_of_nothing_else() {
        let alert_of = |label: (&str, &str), sentence: &str, finding: Option<&Finding>| {
            let labels = [label, ("source", "a"), ("user", "mara")].map(|(name, value)| (name.into(), value.into()));
            let text = serde_json::json!({
                "id": "x", "rule": "r", "name": "GPU", "subject": "run of mara", "severity": "warning",
                "state": "firing", "began": 1, "value": null, "worst": null, "sentence": sentence, "events": [],
                "labels": std::collections::BTreeMap::<String, String>::from(labels), "text": "mara",
            });
            let shown = alert(serde_json::from_value(text).expect("an alert"), finding);
            assert!(!serde_json::to_string(&shown).expect("JSON").contains("mara"), "{shown:?}");
            shown.alert.sentence
        };
        assert_eq!(alert_of(("tag", "gpu.0.temp"), "a GPU 0 at 89 °C", None), "a GPU 0 at 89 °C");
        for (label, sentence) in [
            (("finding", "hang"), "mara hangs"),
            (("run", "r1"), "run of mara: failed"),
            (("tag", "job.loss"), "mara's loss"),
            (("tag", "proc.cpu"), "mara's job"),
            (("tag", "gpu.0.temp"), "a process 17 of mara"),
        ] {
            assert_eq!(alert_of(label, sentence, None), "this alert is firing", "{label:?}");
        }
        assert_eq!(alert_of(("title", "loss is up"), "loss is up: told by mara", None), "loss is up");
        let seen = findings(vec![found("idle", "GPU 3 is idle")], |_| true);
        assert_eq!(alert_of(("finding", "idle"), "GPU 3 is idle", seen.first()), "GPU 3 is idle");
    }

    #[test]
    fn a_marker_has_its_step_and_no_text() {
        let of = |kind: &str| Marker {
            kind: kind.into(),
            t: Some(Seconds(5_000)),
            run: Some("r1".into()),
            step: Some(3),
            text: Some("private".into()),
            user: Some("mara".into()),
            id: Some("private".into()),
            ..Marker::default()
        };
        let own = LinkedObjects::of_query("page=run&run=r1");
        assert!(own.has_run("r1") && !own.has_run("r2") && own.alert.is_none());
        let several = LinkedObjects::of_query("page=runs&run=r1&run=r2&align=step");
        assert!(several.has_run("r1") && several.has_run("r2") && !several.has_run("r3"));
        let shown = marker(of("epoch"), &own).expect("shown");
        assert_eq!((shown.step, shown.run.as_deref(), shown.id.as_deref()), (Some(3), Some("r1"), Some("epoch-5000")));
        assert_eq!((shown.text, shown.user), (None, None));
        assert_eq!(marker(of("epoch"), &LinkedObjects::default()).expect("shown").run, None);
        assert_eq!(marker(of("note"), &own), None);
        assert_eq!(marker(of("cell"), &own), None);
    }
}
