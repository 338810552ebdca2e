//! Alerts in words, in the zone of the reader; and the paths of the server.

use crate::access::Access;
use crate::browser::{now, offset};
use crate::pages::findings::words::clock as clock_of_seconds;
use leptos::prelude::*;
use shared::alert::Alert;
use viewer::alerts::{AlertStand, alert_sentence, lasted, zoned};

/// The clock of an instant in ms since the epoch, with its day where that is not today.
pub fn clock(t: i64) -> String {
    clock_of_seconds(t.div_euclid(1_000), false)
}

/// The alerts with the times of their sentences, and of the reasons of a silence, in the zone of the reader.
pub fn in_zone(mut alerts: Vec<Alert>) -> Vec<Alert> {
    let near = now();
    for one in &mut alerts {
        one.sentence = alert_sentence(one, clock);
        one.held = zoned(&one.held, near, clock);
    }
    alerts
}

/// Begin and duration: `since 14:01, 6 min`, or `14:01 to 14:07, 6 min`.
pub fn times(alert: &Alert, now: i64) -> String {
    let (began, lasted) = (clock(alert.began), lasted(alert, now));
    match alert.ended {
        None => format!("since {began}, {lasted}"),
        Some(ended) => format!("{began} to {}, {lasted}", clock(ended)),
    }
}

/// The line below its sentence: severity, rule, times, and why no notification is sent.
pub fn below(alert: &Alert, now: i64) -> String {
    let mut said = format!("{}: {}, {}", alert.severity.as_str(), alert.name, times(alert, now));
    if AlertStand::from_alert(alert) == AlertStand::Pending {
        said.push_str("; pending");
    }
    if !alert.held.is_empty() {
        said.push_str(&format!("; silenced: {}", alert.held));
    }
    if alert.count > 1 {
        said.push_str(&format!("; {} times", alert.count));
    }
    if let Some(since) = alert.unknown_since {
        said.push_str(&format!("; no data since {}", clock(since)));
    }
    if let Some(acked) = &alert.acked {
        said.push_str(&format!("; acknowledged by {} at {}", acked.by, clock(acked.at * 1_000)));
    }
    said
}

/// Local time minus UTC in seconds at an instant in Unix seconds.
pub fn offset_seconds(t: i64) -> i64 {
    offset(t * 1_000) / 1_000
}

/// A path that is about the team that the page is about; on a server without accounts there is none.
pub fn of_team(access: Access, path: &str) -> String {
    match access.team_here() {
        Some(team) => format!("{path}?team={}", String::from(js_sys::encode_uri_component(&team.id))),
        None => path.to_string(),
    }
}

/// The path of one object of a list.
pub fn of_id(path: &str, id: &str) -> String {
    format!("{path}/{}", String::from(js_sys::encode_uri_component(id)))
}

/// Whether the user may write rules, and silence or acknowledge alerts. Without accounts the server checks this itself.
pub fn may_write(access: Access) -> bool {
    use shared::role::Role;
    access.session.with(Option::is_none) || access.team_here().is_some_and(|team| team.role >= Role::Member)
}
