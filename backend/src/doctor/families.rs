//! The list of families: the same names on every platform, whichever collectors were built and enabled.

use collectors::{COLLECTORS, System};
use shared::wire::{Check, CheckState};

/// Every family: those with a check unchanged; disabled ones and those of other systems as absent.
pub fn complete(mut checks: Vec<Check>) -> Vec<Check> {
    let mut all = Vec::with_capacity(COLLECTORS.len());
    for entry in COLLECTORS {
        let (own, rest): (Vec<Check>, Vec<Check>) = checks.into_iter().partition(|check| check.id == entry.name);
        checks = rest;
        let out = || {
            if !entry.systems.contains(&System::HERE) {
                return vec![absent(entry.name, entry.about, entry.elsewhere(), String::new())];
            }
            let remedy = format!(
                "enable it with --collectors {}, or enabled = true below [collectors.{}]",
                entry.name, entry.name
            );
            vec![absent(entry.name, entry.about, "disabled by the configuration".into(), remedy)]
        };
        all.extend(if own.is_empty() { out() } else { own });
    }
    all.extend(checks);
    all
}

fn absent(id: &str, about: &str, reason: String, remedy: String) -> Check {
    Check { id: id.into(), state: CheckState::Absent, tried: Vec::new(), found: about.into(), reason, remedy }
}
