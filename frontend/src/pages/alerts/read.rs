//! What the server says of alerts, rules, silences and channels.

use crate::fetch::Json;
use shared::alert::{
    Acked, Alert, AlertState, Channel, Checked, Delivery, Fired, Origin, Quiet, Rule, RuleRow, Sent, Silence,
};
use std::collections::BTreeMap;
use viewer::draft::severity;

fn integer(json: &Json) -> Option<i64> {
    json.number().map(|number| number as i64)
}

fn count(json: &Json) -> u64 {
    json.number().unwrap_or(0.0).max(0.0) as u64
}

fn texts(json: &Json) -> Vec<String> {
    json.list().iter().map(Json::text).collect()
}

fn labels(json: &Json) -> BTreeMap<String, String> {
    json.pairs().into_iter().collect()
}

/// Reads an alert; None where it is none.
pub fn alert(json: &Json) -> Option<Alert> {
    let text = |name: &str| json.get(name).text();
    let state = match text("state").as_str() {
        "pending" => AlertState::Pending,
        "firing" => AlertState::Firing,
        "resolved" => AlertState::Resolved,
        _ => return None,
    };
    let acked = json.get("acked");
    Some(Alert {
        id: json.get("id").maybe()?,
        rule: text("rule"),
        name: text("name"),
        subject: text("subject"),
        severity: severity(&text("severity"))?,
        state,
        began: integer(&json.get("began"))?,
        fired: integer(&json.get("fired")),
        ended: integer(&json.get("ended")),
        value: json.get("value").number(),
        worst: json.get("worst").number(),
        sentence: text("sentence"),
        text: text("text"),
        labels: labels(&json.get("labels")),
        count: json.get("count").number().map_or(1, |n| n as u64),
        acked: integer(&acked.get("at")).map(|at| Acked { by: acked.get("by").text(), at }),
        held: text("held"),
        unknown_since: integer(&json.get("unknown_since")),
    })
}

/// Reads the alerts of an answer.
pub fn alerts(json: &Json) -> Vec<Alert> {
    json.get("alerts").list().iter().filter_map(alert).collect()
}

/// Reads the sentences of what is not as it should be.
pub fn trouble(json: &Json) -> Vec<String> {
    texts(&json.get("trouble"))
}

/// Reads how many fire.
pub fn firing(json: &Json) -> u64 {
    count(&json.get("firing"))
}

fn rule(json: &Json) -> Option<Rule> {
    let text = |name: &str| json.get(name).text();
    let not_off = |name: &str| json.get(name).maybe_bool() != Some(false);
    let to = json.get("to");
    Some(Rule {
        id: text("id"),
        name: json.get("name").maybe()?,
        severity: severity(&text("severity"))?,
        when: text("when"),
        on: labels(&json.get("on")),
        to: (!to.is_null()).then(|| texts(&to)),
        title: json.get("title").maybe(),
        note: json.get("note").maybe(),
        link: json.get("link").maybe(),
        repeat: json.get("repeat").maybe(),
        resolved: not_off("resolved"),
        quiet: not_off("quiet"),
        enabled: not_off("enabled"),
        origin: match text("origin").as_str() {
            "built_in" => Origin::BuiltIn,
            "file" => Origin::File,
            _ => Origin::Made,
        },
        by: text("by"),
        version: integer(&json.get("version")).unwrap_or(0),
    })
}

/// Reads the rules of an answer.
pub fn rules(json: &Json) -> Vec<RuleRow> {
    let row = |json: &Json| {
        Some(RuleRow {
            rule: rule(&json.get("rule"))?,
            words: json.get("words").text(),
            firing: count(&json.get("firing")),
            last: integer(&json.get("last")),
            trouble: json.get("trouble").text(),
        })
    };
    json.get("rules").list().iter().filter_map(row).collect()
}

/// Reads what a rule would have done.
pub fn checked(json: &Json) -> Checked {
    let fired = |json: &Json| {
        Some(Fired {
            subject: json.get("subject").text(),
            source: json.get("source").text(),
            from: integer(&json.get("from"))?,
            to: integer(&json.get("to")),
            worst: json.get("worst").number(),
        })
    };
    Checked {
        words: json.get("words").text(),
        sentence: json.get("sentence").text(),
        fired: json.get("fired").list().iter().filter_map(fired).collect(),
        times: count(&json.get("times")),
        subjects: count(&json.get("subjects")),
    }
}

/// Reads the silences of an answer.
pub fn silences(json: &Json) -> Vec<Silence> {
    let one = |json: &Json| {
        Some(Silence {
            id: json.get("id").maybe()?,
            matches: labels(&json.get("match")),
            from: integer(&json.get("from"))?,
            to: integer(&json.get("to"))?,
            comment: json.get("comment").text(),
            by: json.get("by").text(),
            held: count(&json.get("held")),
        })
    };
    json.get("silences").list().iter().filter_map(one).collect()
}

/// Reads the channels of an answer.
pub fn channels(json: &Json) -> Vec<Channel> {
    let quiet =
        |json: &Json| Quiet { days: json.get("days").text(), from: json.get("from").text(), to: json.get("to").text() };
    let one = |json: &Json| {
        let delivery = json.get("delivery");
        Some(Channel {
            id: json.get("id").maybe()?,
            name: json.get("name").text(),
            kind: json.get("kind").text(),
            target: json.get("target").text(),
            quiet: json.get("quiet").list().iter().map(quiet).collect(),
            zone: json.get("zone").maybe(),
            is_default: json.get("is_default").is_true(),
            delivery: Delivery {
                state: delivery.get("state").text(),
                words: delivery.get("words").text(),
                at: integer(&delivery.get("at")),
                waiting: count(&delivery.get("waiting")),
                oldest: integer(&delivery.get("oldest")),
                sent: count(&delivery.get("sent")),
                lost: count(&delivery.get("lost")),
            },
        })
    };
    json.get("channels").list().iter().filter_map(one).collect()
}

/// Reads the notices of an answer.
pub fn sent(json: &Json) -> Vec<Sent> {
    let one = |json: &Json| {
        Some(Sent {
            id: json.get("id").maybe()?,
            channel: json.get("channel").text(),
            at: integer(&json.get("at"))?,
            title: json.get("title").text(),
            state: json.get("state").text(),
            words: json.get("words").text(),
        })
    };
    json.get("sent").list().iter().filter_map(one).collect()
}
