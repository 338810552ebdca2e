//! Findings for Prometheus: the open ones, and the number raised since the start.

use crate::export::openmetrics::escape;
use shared::finding::Finding;
use std::collections::BTreeMap;
use std::fmt::Write;
use stream::live::Reader;
use watch::findings::{FindingRegistry, WantedFindings};

pub(super) const FINDINGS: &str = "Findings raised since startup.";
pub(super) const LEFT_OUT: &str = "Findings that were not reported because there were too many.";
pub(super) const FINDING: &str = "An open finding.";

/// The rows of all findings that a reader may see. In `open` (OpenMetrics) only the samples of a counter end in
/// `_total`.
pub(super) fn rows(registry: &FindingRegistry, reader: &Reader, text: &mut String, open: bool) {
    let found =
        registry.seen(&WantedFindings { active: true, ..WantedFindings::default() }, |key| reader.scope().sees(key));
    write_open(&found, text);
    let (totals, left_out) = registry.totals();
    if !totals.is_empty() {
        head(text, open, "watchglass_findings", FINDINGS);
    }
    for ((kind, severity), count) in totals {
        let (kind, severity) = (escape(&kind, true), severity.as_str());
        let _ = writeln!(text, "watchglass_findings_total{{kind=\"{kind}\",severity=\"{severity}\"}} {count}");
    }
    head(text, open, "watchglass_self_findings_left_out", LEFT_OUT);
    let _ = writeln!(text, "watchglass_self_findings_left_out_total {left_out}");
}

/// The lines above the samples of a counter.
fn head(text: &mut String, open: bool, name: &str, help: &str) {
    let total = if open { "" } else { "_total" };
    let _ = write!(text, "# HELP {name}{total} {help}\n# TYPE {name}{total} counter\n");
}

fn write_open(open: &[Finding], text: &mut String) {
    // Two findings of one rule may be open on one device; a row is written once.
    let mut rows: BTreeMap<String, ()> = BTreeMap::new();
    for finding in open.iter().filter(|finding| finding.dismissed.is_none()) {
        for place in &finding.subject {
            let labels = format!(
                "source=\"{}\",kind=\"{}\",rule=\"{}\",severity=\"{}\"",
                escape(&place.source, true),
                escape(&finding.kind, true),
                escape(&finding.rule, true),
                finding.severity.as_str()
            );
            match place.gpus.is_empty() {
                true => _ = rows.insert(labels, ()),
                false => rows.extend(place.gpus.iter().map(|gpu| (format!("{labels},gpu=\"{gpu}\""), ()))),
            }
        }
    }
    if !rows.is_empty() {
        let _ = write!(text, "# HELP watchglass_finding {FINDING}\n# TYPE watchglass_finding gauge\n");
    }
    for labels in rows.into_keys() {
        let _ = writeln!(text, "watchglass_finding{{{labels}}} 1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::finding::{Place, Severity};

    #[test]
    fn an_open_finding_has_a_row_for_each_device() {
        let finding = Finding {
            id: "hang:n1:0:5".into(),
            kind: "hang".into(),
            rule: "hang.spin".into(),
            severity: Severity::Critical,
            subject: vec![
                Place { source: "n\"1".into(), gpus: vec![0, 1] },
                Place { source: "n2".into(), gpus: Vec::new() },
            ],
            affects: Vec::new(),
            device: None,
            since: 5,
            told: 65,
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
        let mut text = String::new();
        write_open(&[finding.clone(), finding], &mut text);
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let labels = "kind=\"hang\",rule=\"hang.spin\",severity=\"critical\"";
        assert_eq!(
            rows,
            [
                format!("watchglass_finding{{source=\"n2\",{labels}}} 1"),
                format!("watchglass_finding{{source=\"n\\\"1\",{labels},gpu=\"0\"}} 1"),
                format!("watchglass_finding{{source=\"n\\\"1\",{labels},gpu=\"1\"}} 1"),
            ]
        );
    }
}
