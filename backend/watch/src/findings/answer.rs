//! Findings in the form of the API and of the command `findings`.

use shared::finding::{Finding, Findings, RuleState};
use shared::json::Seconds;

/// The answer for a time, milliseconds since the Unix epoch.
pub fn answer(at: i64, findings: &[Finding], rules: Vec<RuleState>) -> Findings {
    Findings { at: Seconds(at), findings: findings.iter().cloned().map(Finding::into_answer).collect(), rules }
}
