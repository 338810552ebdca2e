//! Compares findings with the truth.
//!
//! A claim is a finding above note that is no consequence of another (`because`). A note of a kind that is always a
//! note (idle, unused) is a claim, too. It is right when a label explains it, in one of two ways:
//!
//! - It has the label's kind, and its subject shares a GPU with the label's, or a machine where either names no GPU. It
//!   is reported between the label's onset and two minutes after its end, or six samples after it where they are rarer
//!   than one in 20 s. Such a claim reports the label.
//! - It has a kind that this fault causes, and is about affected GPUs, until five minutes after the end. Such a claim
//!   is right, but does not report the label: it counts as a repeat.
//!
//! A claim that no label explains is false.
//!
//! Other notes count only for the confidence of their rule, which is measured for each severity. A note is right when
//! any label explains it.

use super::judge::JudgedFinding;
use super::set::{self, Class};
use super::world::{BEGIN, Label, World};
use shared::finding::{Place, Severity};

/// Kinds of findings that are also true during a fault of this kind.
fn brings(kind: &str) -> &'static [&'static str] {
    match kind {
        "lost_gpu" | "host_lost" | "ecc" | "gpu_memory" => &["hang", "idle"],
        "hang" => &["idle", "straggler"],
        "throttle" | "slow_link" | "starvation" => &["straggler"],
        "straggler" => &["throttle"],
        "host_memory" => &["hang", "idle", "starvation"],
        _ => &[],
    }
}

/// Tolerance before the onset of a label, seconds: clocks of machines, and the driver's windows.
const EARLY: f64 = 6.0;

/// A label and its result.
#[derive(Clone, Debug)]
pub struct ScoredLabel {
    pub label: Label,
    /// Seconds from its onset.
    pub after: Option<f64>,
    /// Seconds before its end.
    pub left: Option<f64>,
    /// Seconds from its end until the finding ended; infinite: it did not.
    pub cleared: Option<f64>,
    /// A finding of its kind about its group named a device: whether it was the right one alone.
    pub device: Option<bool>,
    /// Number of claims that it explains.
    pub claims: usize,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub rule: String,
    pub right: bool,
    /// It is a claim; other notes are not.
    pub counts: bool,
    pub severities: Vec<Severity>,
    pub worst: Severity,
    pub sentence: String,
    pub at: f64,
}

/// Result of a trace.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub seed: u64,
    pub class: Class,
    pub name: String,
    pub gpu_hours: f64,
    pub told: Vec<ScoredLabel>,
    pub claims: Vec<Claim>,
    pub without_evidence: usize,
}

fn seconds(ms: i64) -> f64 {
    (ms - BEGIN) as f64 / 1000.0
}

fn shares(subject: &[Place], places: &[(usize, Vec<u32>)], world: &World) -> bool {
    subject.iter().any(|place| {
        places.iter().any(|(h, gpus)| {
            world.hosts[*h].name == place.source
                && (gpus.is_empty() || place.gpus.is_empty() || gpus.iter().any(|g| place.gpus.contains(g)))
        })
    })
}

/// Whether the subject is exactly the label's device.
fn exact(subject: &[Place], label: &Label, world: &World) -> bool {
    let mut truth: Vec<(&str, &[u32])> =
        label.places.iter().map(|(h, gpus)| (world.hosts[*h].name.as_str(), gpus.as_slice())).collect();
    let mut said: Vec<(&str, &[u32])> = subject.iter().map(|p| (p.source.as_str(), p.gpus.as_slice())).collect();
    truth.sort_unstable();
    said.sort_unstable();
    if label.places.iter().all(|(_, gpus)| gpus.is_empty()) {
        // The label is about the machine.
        truth.iter().map(|(h, _)| h).eq(said.iter().map(|(h, _)| h))
    } else {
        truth == said
    }
}

/// Seconds after the end of a fault in which it may still be reported: rare samples show the end later.
fn late(world: &World) -> f64 {
    let step = world.hosts.iter().map(|host| host.eyes.interval).fold(0.0, f64::max);
    f64::max(120.0, 6.0 * step)
}

/// Whether a label explains a finding, in either way.
fn explains(label: &Label, found: &JudgedFinding, world: &World) -> bool {
    let (finding, at) = (&found.finding, told_at(found));
    let within = |after: f64| at >= label.onset - EARLY && at <= label.end + after;
    let own = finding.kind == label.kind || label.or.is_some_and(|or| or == finding.kind);
    let around = if label.around.is_empty() { &label.places } else { &label.around };
    let suffers = || shares(&finding.subject, around, world) || shares(&finding.affects, around, world);
    (own && within(late(world)) && shares(&finding.subject, &label.places, world))
        || (brings(label.kind).contains(&finding.kind.as_str()) && within(300.0) && suffers())
}

pub fn is_claim(found: &JudgedFinding) -> bool {
    found.finding.because.is_none()
        && (found.above.is_some() || ["idle", "unused"].contains(&found.finding.kind.as_str()))
}

pub fn told_at(found: &JudgedFinding) -> f64 {
    seconds(found.above.unwrap_or(found.first))
}

/// A label that nothing has claimed yet.
fn unscored(label: &Label) -> ScoredLabel {
    ScoredLabel { label: label.clone(), after: None, left: None, cleared: None, device: None, claims: 0 }
}

pub fn outcome(seed: u64, world: &World, found: &[JudgedFinding]) -> Outcome {
    let (mut claims, late) = (Vec::new(), late(world));
    let mut told: Vec<ScoredLabel> = world.labels.iter().map(unscored).collect();
    for found in found {
        let finding = &found.finding;
        // A label that requires a note is reported by one.
        let note = found.above.is_none() && finding.because.is_none();
        if !is_claim(found) && !note {
            continue;
        }
        let at = told_at(found);
        let mut right = false;
        for one in &mut told {
            let label = &one.label;
            if note && !label.note {
                right |= explains(label, found, world);
                continue;
            }
            let own = finding.kind == label.kind || label.or.is_some_and(|or| or == finding.kind);
            if own && at >= label.onset - EARLY && at <= label.end + late {
                if label.device && shares(&finding.subject, &label.around, world) {
                    let exact = exact(&finding.subject, label, world);
                    one.device = Some(one.device.unwrap_or(exact));
                }
                if shares(&finding.subject, &label.places, world) {
                    right = true;
                    one.claims += 1;
                    if one.after.is_none() && (!label.before_end || at <= label.end) {
                        one.after = Some(at - label.onset);
                        one.left = Some(label.end - at);
                        if label.clears && label.end + 400.0 < world.seconds {
                            let ended = found.ended.map_or(f64::INFINITY, |ended| seconds(ended) - label.end);
                            one.cleared = Some(ended.max(0.0));
                        }
                    }
                    continue;
                }
            }
            let around = if label.around.is_empty() { &label.places } else { &label.around };
            if brings(label.kind).contains(&finding.kind.as_str())
                && at >= label.onset - EARLY
                && at <= label.end + 300.0
                && (shares(&finding.subject, around, world) || shares(&finding.affects, around, world))
            {
                right = true;
                one.claims += 1;
            }
        }
        claims.push(Claim {
            rule: finding.rule.clone(),
            right,
            counts: is_claim(found),
            severities: found.severities.clone(),
            worst: found.worst(),
            sentence: finding.sentence.clone(),
            at,
        });
    }
    let (class, name) = set::plan(seed);
    let bare = found.iter().filter(|f| f.finding.evidence.is_empty() || f.finding.sentence.is_empty()).count();
    Outcome {
        seed,
        class,
        name: name.to_owned(),
        gpu_hours: world.gpu_seconds / 3600.0,
        told,
        claims,
        without_evidence: bare,
    }
}

/// The share `hits` of `of` with its 95 % interval (Wilson).
pub fn wilson(hits: usize, of: usize) -> (f64, f64, f64) {
    if of == 0 {
        return (f64::NAN, 0.0, 1.0);
    }
    let (n, p, z) = (of as f64, hits as f64 / of as f64, 1.96);
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    (p, (middle - half).max(0.0), (middle + half).min(1.0))
}

/// Events per 1,000 hours with the 95 % interval of a Poisson distribution (Byar's approximation; without events: the
/// rule of 3.7).
pub fn rate(events: usize, hours: f64) -> (f64, f64, f64) {
    let per = 1000.0 / hours.max(1e-9);
    let (n, z) = (events as f64, 1.96);
    let low = if events == 0 { 0.0 } else { n * (1.0 - 1.0 / (9.0 * n) - z / (3.0 * n.sqrt())).powi(3) };
    let m = n + 1.0;
    let high = m * (1.0 - 1.0 / (9.0 * m) + z / (3.0 * m.sqrt())).powi(3);
    (n * per, low * per, high * per)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(source: &str, gpus: &[u32]) -> Place {
        Place { source: source.into(), gpus: gpus.to_vec() }
    }

    fn found(kind: &str, subject: Vec<Place>, at: f64) -> JudgedFinding {
        let ms = BEGIN + (at * 1000.0) as i64;
        let finding = shared::finding::Finding {
            id: format!("{kind}:{at}"),
            kind: kind.into(),
            rule: kind.into(),
            severity: Severity::Warning,
            subject,
            affects: Vec::new(),
            device: None,
            since: ms / 1000,
            told: ms / 1000,
            until: None,
            sentence: String::new(),
            sentence_template: None,
            next: String::new(),
            user: None,
            evidence: Vec::new(),
            changed: Vec::new(),
            because: None,
            confidence: None,
            dismissed: None,
        };
        JudgedFinding { finding, first: ms, above: Some(ms), ended: None, severities: vec![Severity::Warning] }
    }

    /// A machine with 8 GPUs of which number 3 is slow from 1000 to 2000 s.
    fn slow() -> World {
        let mut world = set::world(4, Some(1.0), 0.0, None);
        let all = vec![(0, (0..8).collect::<Vec<u32>>())];
        let label = Label {
            kind: "straggler",
            name: "slow",
            or: None,
            places: vec![(0, vec![3])],
            around: all,
            onset: 1000.0,
            end: 2000.0,
            mild: false,
            device: true,
            before_end: false,
            optional: false,
            clears: false,
            note: false,
        };
        world.labels = vec![label];
        world
    }

    #[test]
    fn a_finding_of_the_kind_on_the_device_tells_the_fault() {
        let world = slow();
        let outcome = outcome(4, &world, &[found("straggler", vec![place("node-0", &[3])], 1090.0)]);
        assert_eq!(outcome.told[0].after, Some(90.0));
        assert_eq!(outcome.told[0].device, Some(true));
        assert!(outcome.claims[0].right);
    }

    #[test]
    fn a_finding_on_another_device_or_at_another_time_or_of_another_kind_is_false() {
        let world = slow();
        for (kind, gpu, at) in
            [("straggler", 4, 1090.0), ("straggler", 3, 900.0), ("straggler", 3, 2200.0), ("hang", 3, 1090.0)]
        {
            let outcome = outcome(4, &world, &[found(kind, vec![place("node-0", &[gpu])], at)]);
            assert_eq!(outcome.told[0].after, None, "{kind} {gpu} {at}");
            assert!(!outcome.claims[0].right, "{kind} {gpu} {at}");
        }
        let other = outcome(4, &world, &[found("straggler", vec![place("node-0", &[4])], 1090.0)]);
        assert_eq!(other.told[0].device, Some(false));
    }

    #[test]
    fn what_a_fault_brings_is_right_and_tells_nothing_and_consequences_are_no_claims() {
        let world = slow();
        let brought = found("throttle", vec![place("node-0", &[3])], 1090.0);
        let outcome_brought = outcome(4, &world, std::slice::from_ref(&brought));
        assert!(outcome_brought.claims[0].right);
        assert_eq!((outcome_brought.told[0].after, outcome_brought.told[0].claims), (None, 1));
        let mut consequence = brought;
        consequence.finding.because = Some("x".into());
        assert!(outcome(4, &world, &[consequence]).claims.is_empty());
    }

    #[test]
    fn other_notes_count_for_the_confidence_of_their_rule_alone() {
        let world = slow();
        for (at, right) in [(1090.0, true), (900.0, false)] {
            let mut note = found("straggler", vec![place("node-0", &[3])], at);
            (note.above, note.severities, note.finding.severity) = (None, vec![Severity::Note], Severity::Note);
            let outcome = outcome(4, &world, &[note]);
            assert_eq!(outcome.told[0].after, None);
            assert_eq!((outcome.claims[0].counts, outcome.claims[0].right), (false, right), "{at}");
        }
    }

    #[test]
    fn intervals_are_those_of_the_books() {
        let (p, low, high) = wilson(9, 10);
        assert_eq!(((p * 1000.0).round(), (low * 1000.0).round(), (high * 1000.0).round()), (900.0, 596.0, 982.0));
        assert!((wilson(20, 20).1 - 20.0 / (20.0 + 1.96 * 1.96)).abs() < 1e-12);
        let (none, _, most) = rate(0, 3000.0);
        assert_eq!(none, 0.0);
        assert!((1.2..1.3).contains(&most), "{most}");
        let (_, low, high) = rate(10, 1000.0);
        assert!((4.7..4.9).contains(&low) && (18.3..18.5).contains(&high), "{low} {high}");
    }
}
