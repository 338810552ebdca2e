//! Findings as the API and the command `findings` answer with them.

use shared::finding::{Finding, Findings, RuleState};
use shared::json::Seconds;

/// The answer of an instant, milliseconds since the Unix epoch.
pub fn answer(at: i64, findings: &[Finding], rules: Vec<RuleState>) -> Findings {
    Findings { at: Seconds(at), findings: findings.iter().cloned().map(Finding::into_answer).collect(), rules }
}
