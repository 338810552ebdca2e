//! The list of families: the same names on every platform, whatever was built and whatever was chosen.

use collectors::COLLECTORS;
use shared::wire::{Check, CheckState};

/// Families that exist on one system only: name, what it reads, the system, and its name in the compiler.
const BOUND: &[(&str, &str, &str, &str)] = &[
    ("pressure", "Time in which tasks stood still for want of a core, memory or I/O.", "Linux", "linux"),
    ("processes", "What runs here.", "Linux", "linux"),
    ("amd", "AMD GPUs.", "Linux", "linux"),
    ("intel", "Intel GPUs.", "Linux", "linux"),
    ("apple", "The GPU and the other parts of Apple silicon.", "macOS", "macos"),
    ("graphcore", "Graphcore IPUs.", "Linux", "linux"),
    ("tpu", "Google TPUs.", "Linux", "linux"),
    ("trainium", "AWS Trainium and Inferentia.", "Linux", "linux"),
];

/// Every family: those with a check as they are, those that were left out and those of other systems as absent.
pub fn complete(mut checks: Vec<Check>) -> Vec<Check> {
    let mut all = Vec::with_capacity(COLLECTORS.len() + BOUND.len());
    for entry in COLLECTORS {
        let (own, rest): (Vec<Check>, Vec<Check>) = checks.into_iter().partition(|check| check.id == entry.name);
        checks = rest;
        let out = || {
            let remedy = format!("--collectors {}, or enabled = true below [collectors.{}]", entry.name, entry.name);
            vec![absent(entry.name, entry.about, "left out by the configuration".into(), remedy)]
        };
        all.extend(if own.is_empty() { out() } else { own });
    }
    all.extend(checks);
    for (name, about, system, os) in BOUND {
        if *os != std::env::consts::OS && !all.iter().any(|check| check.id == *name) {
            all.push(absent(name, about, format!("only on {system}"), String::new()));
        }
    }
    all
}

fn absent(id: &str, about: &str, reason: String, remedy: String) -> Check {
    Check { id: id.into(), state: CheckState::Absent, tried: Vec::new(), found: about.into(), reason, remedy }
}
