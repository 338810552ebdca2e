//! Ledger of findings: open ones, recently ended ones, cause and consequence, and omitted ones.

use crate::key::{Key, What};
use crate::next;
use crate::words::{At, have_waited};
use crate::{Hosts, Settings, Source};
use shared::finding::{Evidence, Finding, MAX_FINDING_BYTES, Place, Severity};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of open findings.
const MOST_OPEN: usize = 1000;
/// Maximum number of findings that a machine raises in an hour.
const MOST_AN_HOUR: u32 = 200;
/// A condition that ended less than this many seconds ago and returns is the same finding.
const SAME_WITHIN_S: i64 = 600;
/// Findings that begin within this many seconds of each other are joined.
const JOINED_WITHIN_S: i64 = 30;
/// Maximum seconds from the begin of a cause to the begin of its consequence.
const CAUSE_BEFORE: i64 = 120;

/// A finding as its rule raises it.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub rule: &'static str,
    pub severity: Severity,
    /// Machine of the subject.
    pub source: Source,
    /// Its devices; empty where the subject is the machine itself.
    pub subject: Vec<At>,
    pub affects: Vec<At>,
    pub device: Option<String>,
    pub since: i64,
    pub sentence: String,
    pub evidence: Vec<Evidence>,
    pub group: Option<u64>,
    /// Further keys of the finding: it ends when all of them have ended.
    pub also: Vec<Key>,
    /// The next step for its cause; None: that of its rule.
    pub next: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct Open {
    finding: Finding,
    keys: Vec<Key>,
    group: Option<u64>,
    sources: Vec<Source>,
    subject: Vec<(Source, Option<u32>)>,
    /// The sentence of its own rule, before others are joined to it, and the machines that the sentence names.
    own: String,
    own_sources: Vec<Source>,
    /// A predicted time, second, and the sentence that applies after it or after the end.
    past: Option<(i64, String)>,
}

/// All findings, open and recently ended.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: Vec<Open>,
    past: VecDeque<Open>,
    hour: BTreeMap<Source, (i64, u32)>,
    /// Number of findings dropped over the limits.
    pub left_out: u64,
    out: Vec<Finding>,
    /// Keys of currently dropped findings, so that each is counted once.
    dropped: Vec<Key>,
}

/// Rank of a finding among causes; None: it is neither cause nor consequence.
fn rank(finding: &Finding) -> Option<u8> {
    match finding.kind.as_str() {
        _ if finding.severity == Severity::Note && finding.kind != "idle" && finding.kind != "straggler" => None,
        "ecc" if finding.severity != Severity::Critical => None,
        "lost_gpu" | "ecc" | "host_lost" => Some(5),
        "gpu_memory" if finding.rule == "gpu_memory.ended" => Some(5),
        "hang" => Some(4),
        "throttle" | "slow_link" | "host_memory" => Some(3),
        "straggler" => Some(2),
        "starvation" => Some(1),
        "idle" => Some(0),
        _ => None,
    }
}

impl Ledger {
    pub fn is_open(&self, key: &Key) -> bool {
        self.open.iter().any(|open| open.keys.contains(key))
    }

    /// Whether any finding of the kind is open on the machine.
    pub fn has(&self, kind: &str, source: Source) -> bool {
        self.open.iter().flat_map(|open| &open.keys).any(|key| key.kind == kind && key.source == source)
    }

    /// The open finding of a key.
    pub fn get(&self, key: &Key) -> Option<&Finding> {
        self.open.iter().find(|open| open.keys.contains(key)).map(|open| &open.finding)
    }

    /// Whether a finding of the kind is open in the group.
    pub fn has_in_group(&self, kind: &str, group: u64) -> bool {
        self.open.iter().any(|open| open.group == Some(group) && open.finding.kind == kind)
    }

    /// Raises a finding unless it is open.
    pub fn raise(&mut self, now: i64, key: Key, draft: Draft, hosts: &Hosts, settings: &Settings) {
        let silent = |word: &String| word == key.kind || word == draft.rule;
        if self.is_open(&key) || settings.silence.iter().any(silent) {
            return;
        }
        if let Some(at) = self.past.iter().position(|open| open.keys.contains(&key) && open.finding.rule == draft.rule)
        {
            let Some(mut open) = self.past.remove(at) else { return };
            open.finding.until = None;
            // The predicted time has passed: a new prediction replaces it.
            if matches!(key.kind, "gpu_memory" | "host_memory" | "disk_full") {
                open.set_sentence(draft.sentence);
            }
            open.finding.next = draft.next.or_else(|| next::of_rule(draft.rule)).unwrap_or_default().into();
            open.keys = vec![key];
            open.keys.extend(draft.also);
            self.out.push(open.finding.clone());
            self.open.push(open);
            return;
        }
        if self.join(&key, &draft, hosts) {
            return;
        }
        let hour = self.hour.entry(draft.source).or_insert((now / 3600, 0));
        if hour.0 != now / 3600 {
            *hour = (now / 3600, 0);
        }
        if hour.1 >= MOST_AN_HOUR || self.open.len() >= MOST_OPEN {
            if !self.dropped.contains(&key) && self.dropped.len() < MOST_OPEN {
                self.dropped.push(key);
                self.left_out += 1;
            }
            return;
        }
        hour.1 += 1;
        let open = Open::new(now, key, draft, hosts);
        self.insert(open);
    }

    /// Joins a draft to an open finding of the same rule that began at the same time, in the same group or on another
    /// machine.
    fn join(&mut self, key: &Key, draft: &Draft, hosts: &Hosts) -> bool {
        const OVER_HOSTS: &[&str] = &["hang", "starvation", "host_lost", "host_memory", "idle", "straggler"];
        let alike = |open: &&mut Open| {
            let same_group = draft.group.is_some() && open.group == draft.group;
            // GPUs that one holder leaves unused are one draft already; those of another holder are another finding.
            let is_joined = key.kind != "unused" && !draft.subject.is_empty();
            let same_host = draft.group.is_none() && open.sources == [draft.source] && is_joined;
            let other_host = OVER_HOSTS.contains(&key.kind) && !open.sources.contains(&draft.source);
            open.finding.rule == draft.rule
                && open.finding.severity == draft.severity
                && (open.finding.since - draft.since).abs()
                    <= if key.kind == "gpu_memory" { SAME_WITHIN_S } else { JOINED_WITHIN_S }
                && open.finding.device.is_none()
                && draft.device.is_none()
                && (same_group || same_host || other_host)
        };
        let Some(open) = self.open.iter_mut().find(alike) else { return false };
        open.keys.push(key.clone());
        open.keys.extend(draft.also.iter().cloned());
        open.add(draft, hosts);
        self.out.push(open.finding.clone());
        true
    }

    fn insert(&mut self, mut open: Open) {
        let cause = |other: &Open| {
            let (Some(high), Some(low)) = (rank(&other.finding), rank(&open.finding)) else { return None };
            let after = open.finding.since - other.finding.since;
            // Waiting goes on as long as its cause, and may be reported after the end of that cause.
            let goes_on = other.finding.until.is_none_or(|until| until >= open.finding.since) && matches!(low, 1 | 2);
            let in_time = (-JOINED_WITHIN_S..=CAUSE_BEFORE).contains(&after) || (goes_on && after > -CAUSE_BEFORE);
            (high > low && in_time && open.is_related(other)).then_some(high)
        };
        let best = |all: &[Option<u8>]| all.iter().flatten().max().copied();
        let ranks: Vec<Option<u8>> = self.open.iter().chain(&self.past).map(cause).collect();
        if let Some(high) = best(&ranks) {
            let at = ranks.iter().position(|rank| *rank == Some(high)).unwrap_or(0);
            let other = if at < self.open.len() { &mut self.open[at] } else { &mut self.past[at - self.open.len()] };
            open.finding.because = Some(other.finding.id.clone());
            self.out.push(open.finding.clone());
            if other.tell(&open) {
                self.out.push(other.finding.clone());
            }
        } else {
            self.out.push(open.finding.clone());
        }
        // Findings that are already open may be consequences of this one.
        if let Some(high) = rank(&open.finding) {
            for other in &mut self.open {
                let after = other.finding.since - open.finding.since;
                let lower = rank(&other.finding).is_some_and(|low| low < high);
                if lower
                    && other.finding.because.is_none()
                    && (-JOINED_WITHIN_S..=CAUSE_BEFORE).contains(&after)
                    && open.is_related(other)
                {
                    other.finding.because = Some(open.finding.id.clone());
                    self.out.push(other.finding.clone());
                    if open.tell(other) {
                        self.out.push(open.finding.clone());
                    }
                }
            }
        }
        self.open.push(open);
    }

    /// Ends the condition of a key.
    pub fn end(&mut self, now: i64, key: &Key) {
        self.dropped.retain(|dropped| dropped != key);
        let Some(at) = self.open.iter().position(|open| open.keys.contains(key)) else { return };
        let open = &mut self.open[at];
        if open.keys.len() > 1 {
            open.keys.retain(|own| own != key);
            return;
        }
        let mut open = self.open.remove(at);
        open.finding.until = Some(now);
        if let Some((_, past)) = open.past.take() {
            open.set_sentence(past);
        }
        self.out.push(open.finding.clone());
        self.past.push_back(open);
    }

    /// Ends a finding for good: the condition, known better now, is raised again as another finding.
    pub fn supersede(&mut self, now: i64, key: &Key) {
        self.end(now, key);
        self.past.retain(|open| !open.keys.contains(key));
    }

    /// Changes its severity, and its sentence where one is given.
    pub fn revise(&mut self, key: &Key, severity: Severity, sentence: Option<String>) {
        let Some(open) = self.open.iter_mut().find(|open| open.keys.contains(key)) else { return };
        if open.finding.severity == severity {
            return;
        }
        open.finding.severity = severity;
        open.finding.confidence = confidence(&open.finding.rule, severity);
        if let Some(sentence) = sentence {
            open.finding.sentence = sentence.clone();
            open.own = sentence;
        }
        self.out.push(open.finding.clone());
    }

    /// Replaces the next step of an open finding, once more is known about its cause.
    pub fn advise(&mut self, key: &Key, next: &str) {
        let Some(open) = self.open.iter_mut().find(|open| open.keys.contains(key)) else { return };
        if open.finding.next != next {
            open.finding.next = next.into();
            fit(&mut open.finding);
            self.out.push(open.finding.clone());
        }
    }

    /// Sets the user whom an open finding concerns, so that the name can be hidden.
    pub fn concern(&mut self, key: &Key, user: &str) {
        let Some(open) = self.open.iter_mut().find(|open| open.keys.contains(key)) else { return };
        if !user.is_empty() && open.finding.user.as_deref() != Some(user) {
            open.finding.user = Some(user.into());
            self.out.push(open.finding.clone());
        }
    }

    /// Sets the sentence of an open finding for the time after the predicted second `due`, or after its end.
    pub fn foretell(&mut self, key: &Key, due: i64, past: String) {
        if let Some(open) = self.open.iter_mut().find(|open| open.keys.first() == Some(key)) {
            open.past = Some((due, past));
        }
    }

    /// Replaces the sentence of an open finding.
    pub fn retell(&mut self, key: &Key, sentence: &str) {
        let Some(open) = self.open.iter_mut().find(|open| open.keys.contains(key)) else { return };
        if open.own != sentence {
            open.set_sentence(sentence.into());
            self.out.push(open.finding.clone());
        }
    }

    /// Ends all findings of a machine.
    pub fn end_source(&mut self, now: i64, source: Source) {
        let keys: Vec<Key> =
            self.open.iter().flat_map(|open| &open.keys).filter(|key| key.source == source).cloned().collect();
        keys.iter().for_each(|key| self.end(now, key));
        self.hour.remove(&source);
    }

    /// Ends all findings about a group as a whole.
    pub fn end_group(&mut self, now: i64, group: u64) {
        let what = What::Group(group);
        let keys: Vec<Key> =
            self.open.iter().flat_map(|open| &open.keys).filter(|key| key.what == what).cloned().collect();
        keys.iter().for_each(|key| self.end(now, key));
    }

    /// Advances by a second: drops findings that ended long ago, and appends all changes to `out`.
    pub fn hand_out(&mut self, now: i64, out: &mut Vec<Finding>) {
        for open in &mut self.open {
            if let Some((_, past)) = open.past.take_if(|(due, _)| *due <= now) {
                open.set_sentence(past);
                self.out.push(open.finding.clone());
            }
        }
        while self.past.front().is_some_and(|open| open.finding.until.is_none_or(|until| until < now - SAME_WITHIN_S)) {
            self.past.pop_front();
        }
        out.append(&mut self.out);
    }

    /// Open findings: the most severe first, causes before consequences, then the oldest.
    pub fn open(&self) -> Vec<&Finding> {
        let mut all: Vec<&Finding> = self.open.iter().map(|open| &open.finding).collect();
        all.sort_by(|a, b| {
            let order = |f: &Finding| (std::cmp::Reverse(f.severity), f.because.is_some(), f.since);
            order(a).cmp(&order(b)).then_with(|| a.id.cmp(&b.id))
        });
        all
    }
}

/// Minimum number of measured findings of a rule before its precision is reported.
const MIN_MEASURED: u32 = 20;

/// Lower 95 % bound of a rule's precision in findings of a severity, as measured by `cargo xtask insight`. None where
/// it had too few of them.
fn confidence(rule: &str, severity: Severity) -> Option<f64> {
    let of = |line: &&str| {
        let mut words = line.split(' ');
        words.next() == Some(rule) && words.next() == Some(severity.as_str())
    };
    let line = include_str!("../confidence.txt").lines().find(of)?;
    let mut words = line.split(' ').skip(2);
    let count: u32 = words.next()?.parse().ok()?;
    words.next()?.parse().ok().filter(|_| count >= MIN_MEASURED)
}

impl Open {
    fn new(now: i64, key: Key, draft: Draft, hosts: &Hosts) -> Self {
        let name = |source: &Source| hosts.get(source).map_or(String::new(), |host| host.name.clone());
        let first = draft.subject.first().map(|(.., index)| index.to_string());
        let first = first.or_else(|| draft.device.clone()).unwrap_or_default();
        let mut finding = Finding {
            id: format!("{}:{}:{first}:{}", key.kind, name(&draft.source), draft.since),
            kind: key.kind.into(),
            rule: draft.rule.into(),
            severity: draft.severity,
            subject: Vec::new(),
            affects: places(&draft.affects, hosts),
            device: draft.device,
            since: draft.since,
            told: now,
            until: None,
            sentence: draft.sentence.clone(),
            sentence_template: None,
            next: draft.next.or_else(|| next::of_rule(draft.rule)).unwrap_or_default().into(),
            user: None,
            evidence: draft.evidence,
            changed: Vec::new(),
            because: None,
            confidence: confidence(draft.rule, draft.severity),
            dismissed: None,
        };
        for evidence in &mut finding.evidence {
            (evidence.from, evidence.to) = ((draft.since - 300) * 1000, now * 1000);
        }
        let mut subject: Vec<(Source, Option<u32>)> = draft.subject.iter().map(|&(s, _, g)| (s, Some(g))).collect();
        if subject.is_empty() {
            subject.push((draft.source, None));
        }
        let mut sources: Vec<Source> = subject.iter().map(|(source, _)| *source).collect();
        sources.sort_unstable();
        sources.dedup();
        let mut keys = vec![key];
        keys.extend(draft.also);
        let own_sources = sources.clone();
        let (group, own) = (draft.group, draft.sentence);
        let mut open = Open { finding, keys, group, sources, subject, own, own_sources, past: None };
        open.place(hosts);
        fit(&mut open.finding);
        open
    }

    /// Replaces its own sentence; the joined sentences stay.
    fn set_sentence(&mut self, own: String) {
        let joined = self.finding.sentence.strip_prefix(self.own.as_str()).unwrap_or_default();
        self.finding.sentence = format!("{own}{joined}");
        self.own = own;
        fit(&mut self.finding);
    }

    /// Rebuilds the names of its subject.
    fn place(&mut self, hosts: &Hosts) {
        self.subject.sort_unstable();
        self.subject.dedup();
        let mut all: Vec<Place> = Vec::new();
        let mut last = None;
        for (source, gpu) in &self.subject {
            if last != Some(*source) {
                let source = hosts.get(source).map_or(String::new(), |host| host.name.clone());
                all.push(Place { source, gpus: Vec::new() });
            }
            last = Some(*source);
            if let (Some(place), Some(gpu)) = (all.last_mut(), gpu) {
                place.gpus.push(*gpu);
            }
        }
        self.finding.subject = all;
    }

    /// Adds other devices or machines to the subject.
    fn add(&mut self, draft: &Draft, hosts: &Hosts) {
        match draft.subject.is_empty() {
            true => self.subject.push((draft.source, None)),
            false => self.subject.extend(draft.subject.iter().map(|&(s, _, g)| (s, Some(g)))),
        }
        self.sources.extend(self.subject.iter().map(|(source, _)| *source));
        self.sources.sort_unstable();
        self.sources.dedup();
        self.place(hosts);
        let subject = &self.finding.subject;
        self.finding.affects.retain(|place| !subject.contains(place));
        // Machines that its own sentence names are not repeated.
        let others = self.sources.iter().filter(|source| !self.own_sources.contains(source));
        let more: Vec<&str> = others.filter_map(|source| Some(hosts.get(source)?.name.as_str())).collect();
        let gpus: usize = subject.iter().map(|place| place.gpus.len()).sum();
        self.finding.sentence = match more.len() {
            0 => format!("{}; the same on {gpus} GPUs", self.own),
            n @ 1..=3 => format!("{}; the same on {n} other hosts: {}", self.own, more.join(", "))
                .replace("1 other hosts", "another host"),
            n => format!("{}; the same on {n} other hosts", self.own),
        };
        fit(&mut self.finding);
    }

    fn is_related(&self, other: &Open) -> bool {
        match (self.group, other.group) {
            (Some(own), Some(its)) => own == its,
            _ => self.sources.iter().any(|source| other.sources.contains(source)),
        }
    }

    /// Joins the sentence of a consequence to its own; true when that adds information.
    fn tell(&mut self, consequence: &Open) -> bool {
        let waiting = consequence.finding.affects.iter().chain(&consequence.finding.subject);
        let waiting: usize = waiting.map(|place| place.gpus.len()).sum::<usize>();
        let own: usize = self.subject.iter().filter(|(_, gpu)| gpu.is_some()).count();
        let others = waiting.saturating_sub(own);
        let joins = consequence.finding.kind == "hang" && self.finding.kind != "hang" && others > 0;
        if joins {
            self.finding.sentence = format!("{}; {} since", self.own, have_waited(others));
        }
        joins
    }
}

fn places(of: &[At], hosts: &Hosts) -> Vec<Place> {
    let mut all: Vec<(Source, Vec<u32>)> = Vec::new();
    for (source, _, index) in of {
        match all.iter_mut().find(|(known, _)| known == source) {
            Some((_, gpus)) => gpus.push(*index),
            None => all.push((*source, vec![*index])),
        }
    }
    all.sort_unstable();
    let name = |source| hosts.get(&source).map_or(String::new(), |host| host.name.clone());
    let sorted = |mut gpus: Vec<u32>| {
        gpus.sort_unstable();
        gpus
    };
    all.into_iter().map(|(source, gpus)| Place { source: name(source), gpus: sorted(gpus) }).collect()
}

/// Evidence kept before affected devices are dropped, and in any case.
const EVIDENCE: usize = 5;
const LEAST_EVIDENCE: usize = 2;

/// Shortens a finding to the size limit of a record. It drops surplus evidence from the end, then affected devices,
/// then more evidence.
fn fit(finding: &mut Finding) {
    let place = |p: &Place| 32 + 2 * p.source.len() + 4 * p.gpus.len();
    let fact = |e: &Evidence| 130 + e.tag.len() + e.source.len() + e.instance.len() + 2 * e.words.len();
    let size = |f: &Finding| {
        430 + 2 * f.sentence.len()
            + f.next.len()
            + f.subject.iter().chain(&f.affects).map(place).sum::<usize>()
            + f.evidence.iter().map(fact).sum::<usize>()
    };
    while size(finding) > MAX_FINDING_BYTES {
        if finding.evidence.len() > EVIDENCE {
            finding.evidence.pop();
        } else if finding.affects.len() > 1 {
            finding.affects.pop();
        } else if finding.evidence.len() > LEAST_EVIDENCE {
            finding.evidence.pop();
        } else if finding.subject.len() > 1 {
            finding.subject.pop();
        } else if !finding.affects.is_empty() {
            finding.affects.pop();
        } else {
            break;
        }
    }
}
