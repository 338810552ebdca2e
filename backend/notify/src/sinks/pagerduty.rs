//! PagerDuty: Events API v2. One event per alert, so that each resolves the incident that it triggered.

use super::{Field, Request, Sink, post};
use crate::settings::Settings;
use crate::text::{clean, cut, plain};
use serde_json::{Value, json};
use shared::alert::{Alert, AlertState, Notice, NoticeKind};
use shared::secret::Secret;

pub(super) const SINK: Sink = Sink {
    kind: "pagerduty",
    help: "the routing key of a service's integration \"Events API v2\" as secret; the address https://events.eu.pagerduty.com \
           for accounts in the EU",
    needs: &[Field::Secret],
    takes: &[Field::Address],
    shows: Field::Secret,
    address: Some("https://events.pagerduty.com"),
    signs: false,
    check,
    body,
};

/// Maximum length of a summary.
const MAX_SUMMARY: usize = 1_000;

fn check(settings: &Settings) -> Result<(), String> {
    let key = settings.secret.as_ref().map_or("", Secret::reveal);
    if key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        Ok(())
    } else {
        Err("a routing key has 32 letters and digits: use that of the integration, not of the account".into())
    }
}

/// Content of an event besides its key.
struct EventContent<'a> {
    summary: String,
    source: &'a str,
    severity: &'a str,
    at: i64,
    details: Value,
}

fn event(notice: &Notice, settings: &Settings, action: &str, key: &str, said: Option<EventContent>) -> Option<Request> {
    let address = settings.addresses.first()?;
    let mut event = json!({
        "routing_key": settings.secret.as_ref().map_or("", Secret::reveal),
        "event_action": action,
        "dedup_key": key,
    });
    if let Some(said) = said {
        let source = if said.source.is_empty() { &notice.host } else { said.source };
        event["payload"] = json!({
            "summary": cut(&said.summary, MAX_SUMMARY),
            "source": if source.is_empty() { "watchglass" } else { source },
            "severity": said.severity,
            "timestamp": crate::text::rfc3339(said.at),
            "class": notice.rule,
            "group": notice.group,
            "custom_details": said.details,
        });
        event["client"] = "Watchglass".into();
        let plain = plain(notice);
        let links = [("Help", &plain.help), ("Watchglass", &plain.link), ("Charts", &plain.charts)];
        let links = links.into_iter().filter_map(|(text, href)| Some(json!({"href": href.as_ref()?, "text": text})));
        event["links"] = links.collect();
        if let Some(link) = plain.link {
            event["client_url"] = link.into();
        }
    }
    Some(Request::Post(post(address.at("/v2/enqueue"), &event)))
}

/// The events of an alert. One that has ended before its first notice opens an incident, and closes it.
fn alert_requests(notice: &Notice, settings: &Settings, alert: &Alert) -> Vec<Request> {
    let is_over = alert.state == AlertState::Resolved;
    let trigger = (!is_over || notice.kind == NoticeKind::Firing).then(|| trigger(notice, settings, alert)).flatten();
    let resolve = is_over.then(|| event(notice, settings, "resolve", &alert.id, None)).flatten();
    trigger.into_iter().chain(resolve).collect()
}

fn trigger(notice: &Notice, settings: &Settings, alert: &Alert) -> Option<Request> {
    let sentence = clean(if alert.sentence.is_empty() { &alert.subject } else { &alert.sentence });
    let details = json!({
        "rule": alert.name,
        "subject": alert.subject,
        "labels": alert.labels,
        "note": notice.note,
        "text": alert.text,
        "team": notice.team,
        "count": alert.count,
    });
    let source = alert.labels.get("source").map_or("", String::as_str);
    let said = EventContent { summary: sentence, source, severity: alert.severity.as_str(), at: alert.began, details };
    event(notice, settings, "trigger", &alert.id, Some(said))
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    if !notice.alerts.is_empty() {
        return notice.alerts.iter().flat_map(|alert| alert_requests(notice, settings, alert)).collect();
    }
    let plain = plain(notice);
    let said = EventContent {
        summary: plain.title.clone(),
        source: "",
        severity: notice.severity.as_str(),
        at: notice.at.saturating_mul(1_000),
        details: json!({"text": plain.blocks().join("\n")}),
    };
    let mut events: Vec<_> = event(notice, settings, "trigger", &notice.id, Some(said)).into_iter().collect();
    // A test is resolved at once, so that it pages nobody for longer.
    if notice.kind == NoticeKind::Test {
        events.extend(event(notice, settings, "resolve", &notice.id, None));
    }
    events
}
