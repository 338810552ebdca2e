//! Findings as JSON, for the API and the command `findings`.

use serde_json::{Value, json as object};
use shared::finding::{Finding, RuleState};

/// The object that the API answers with.
pub fn json(at: i64, findings: &[Finding], rules: &[RuleState]) -> Value {
    let one = |finding: &Finding| {
        let mut object = serde_json::to_value(finding).expect("texts and numbers");
        object["sentence"] = finding.sentence_utc().into();
        object
    };
    object!({ "at": at as f64 / 1000.0, "findings": findings.iter().map(one).collect::<Vec<_>>(), "rules": rules })
}
