//! Alertmanager: all alerts of a notice to each of its addresses. It does its own grouping, waiting and repeating.

use super::{Field, Request, Sink, post, visible};
use crate::settings::Settings;
use crate::text::{clean, cut, lines, plain};
use serde_json::{Map, Value, json};
use shared::alert::{Alert, AlertState, MAX_TEXT_BYTES, Notice, NoticeKind};

pub(super) const SINK: Sink = Sink {
    kind: "alertmanager",
    help: "the addresses of all Alertmanagers of one cluster, and a token if they require one",
    needs: &[Field::Addresses],
    takes: &[Field::Secret],
    shows: Field::Addresses,
    address: None,
    signs: false,
    check: visible,
    body,
};

/// Lifetime of an alert without an update, seconds: four times the interval of updates.
const ENDS_AFTER_S: i64 = 240;

/// Maximum bytes of a label's value.
const MAX_LABEL: usize = 1_000;

/// A valid label name of Prometheus.
fn name(text: &str) -> String {
    let name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn moment(ms: i64) -> Value {
    crate::text::rfc3339(ms).into()
}

fn alert(notice: &Notice, alert: &Alert, now: i64) -> Value {
    let mut labels = Map::new();
    let own = [
        ("alertname", alert.name.as_str()),
        ("severity", alert.severity.as_str()),
        ("team", &notice.team),
        ("subject", &alert.subject),
    ];
    let given = alert.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    // The first value stays: no label of an alert can assign it to another rule or team.
    for (label, value) in own.into_iter().chain(given) {
        let (label, value) = (name(label), cut(&clean(value), MAX_LABEL));
        if !label.is_empty() && !value.is_empty() && !labels.contains_key(&label) {
            labels.insert(label, value.into());
        }
    }
    let plain = plain(notice);
    let said = if alert.sentence.is_empty() { &alert.subject } else { &alert.sentence };
    let text = lines(&format!("{}\n{}", alert.text, notice.note));
    let mut annotations = json!({"summary": cut(&clean(said), MAX_LABEL)});
    if !text.is_empty() {
        annotations["description"] = cut(&text, MAX_TEXT_BYTES).into();
    }
    if let Some(help) = plain.help {
        annotations["runbook_url"] = help.into();
    }
    let ends = match (alert.state, alert.ended) {
        // With an end in the future it would fire until then.
        (AlertState::Resolved, ended) => ended.unwrap_or(i64::MAX).min(now.saturating_mul(1_000)),
        _ => (now + ENDS_AFTER_S).saturating_mul(1_000),
    };
    let mut one = json!({
        "labels": labels,
        "annotations": annotations,
        "startsAt": moment(alert.began.min(ends)),
        "endsAt": moment(ends),
    });
    if let Some(link) = plain.link {
        one["generatorURL"] = link.into();
    }
    one
}

fn body(notice: &Notice, settings: &Settings, now: i64) -> Vec<Request> {
    let mut alerts: Vec<Value> = notice.alerts.iter().map(|one| alert(notice, one, now)).collect();
    if alerts.is_empty() && matches!(notice.kind, NoticeKind::Test | NoticeKind::Digest) {
        let plain = plain(notice);
        let ends = now + if notice.kind == NoticeKind::Test { 60 } else { ENDS_AFTER_S };
        alerts.push(json!({
            "labels": {
                "alertname": if notice.kind == NoticeKind::Test { "WatchglassTest" } else { "WatchglassDigest" },
                "severity": notice.severity.as_str(),
            },
            "annotations": {"summary": plain.title, "description": plain.blocks().join("\n")},
            "startsAt": moment(notice.at.saturating_mul(1_000)),
            "endsAt": moment(ends.saturating_mul(1_000)),
        }));
    }
    let body = Value::Array(alerts);
    let requests = settings.addresses.iter().map(|address| {
        let mut post = post(address.at("/api/v2/alerts"), &body);
        if let Some(token) = settings.secret.as_ref().filter(|token| !token.reveal().is_empty()) {
            post.headers.push(("authorization", format!("Bearer {}", token.reveal())));
        }
        Request::Post(post)
    });
    requests.collect()
}
