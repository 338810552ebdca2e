//! Requests of each sink, byte by byte, against the files in `golden/`; and invariants of all of them.
//!
//! `WATCHGLASS_GOLDEN=write` rewrites the files; review the differences.

use crate::mail::{Smtp, SmtpTls};
use crate::sample_tests::{AT, digest, hostile, input, long, notice, resolved, settings, short, test};
use crate::settings::Settings;
use crate::sinks::{Request, SINKS};
use serde_json::Value;
use shared::alert::{Notice, NoticeKind};
use std::path::Path;

fn smtp() -> Smtp {
    Smtp::new("localhost", None, SmtpTls::None, None, None, "Watchglass <alerts@example.org>").expect("settings")
}

fn written(request: &Request) -> String {
    match request {
        Request::Post(post) => {
            let mut text = format!("POST {}\n", post.uri);
            post.headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\n")));
            let body: Value = serde_json::from_slice(&post.body).expect("JSON");
            text + "\n" + &serde_json::to_string_pretty(&body).expect("JSON") + "\n"
        }
        Request::Mail(mail) => {
            let message = smtp().message(mail).expect("a message");
            String::from_utf8(message.formatted()).expect("ASCII").replace("\r\n", "\n")
        }
    }
}

fn all(settings: &Settings, notice: &Notice) -> String {
    let requests = crate::sinks::requests(settings, notice, AT + 5);
    requests.iter().map(written).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_sink_sends_what_was_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let write = std::env::var_os("WATCHGLASS_GOLDEN").is_some();
    let notices = [
        ("firing", notice(NoticeKind::Firing)),
        ("hostile", hostile()),
        ("resolved", resolved()),
        ("short", short()),
        ("digest", digest()),
        ("test", test()),
    ];
    let mut channels: Vec<(&str, Settings)> = SINKS.iter().map(|sink| (sink.kind, settings(sink.kind))).collect();
    let events = shared::alert::ChannelInput { format: Some("cloudevents".into()), ..input("webhook") };
    channels.push(("cloudevents", Settings::check(&events, &Default::default(), true).expect("settings")));
    let mut wrong = Vec::new();
    for (name, settings) in channels {
        let mut text = String::new();
        for (title, notice) in &notices {
            text.push_str(&format!("==== {title}\n\n{}\n", all(&settings, notice)));
        }
        let path = folder.join(format!("{name}.txt"));
        if write {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(&path, &text).expect("written");
        }
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "these send something else than golden/ says: {wrong:?}");
}

/// All texts of a body that people read.
fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|one| strings(one, into)),
        Value::Object(all) => all.values().for_each(|one| strings(one, into)),
        _ => {}
    }
}

fn body(kind: &str, notice: &Notice) -> Value {
    let settings = settings(kind);
    match crate::sinks::requests(&settings, notice, AT).first() {
        Some(Request::Post(post)) => serde_json::from_slice(&post.body).expect("JSON"),
        other => panic!("{kind}: {other:?}"),
    }
}

#[test]
fn what_people_read_has_no_control_character_and_no_letter_that_turns_it() {
    for kind in ["slack", "mattermost", "discord", "teams", "ntfy", "telegram"] {
        let mut texts = Vec::new();
        strings(&body(kind, &hostile()), &mut texts);
        let text = texts.join("\n");
        assert!(text.contains("{run}"), "{kind}: a value is data: {text}");
        let bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c) || c == '\u{2066}';
        assert!(!text.contains(bad), "{kind}: {text:?}");
    }
}

#[test]
fn nobody_is_called_and_no_mark_is_read() {
    let slack = body("slack", &hostile());
    let fallback = slack["text"].as_str().expect("a text");
    assert!(fallback.contains("&lt;!channel&gt;") && !fallback.contains('<'), "{fallback}");
    let mut types = Vec::new();
    strings(&slack, &mut types);
    assert!(!types.iter().any(|text| text == "mrkdwn"), "a block reads marks");

    let mattermost = body("mattermost", &hostile())["text"].as_str().expect("a text").to_string();
    assert!(!mattermost.contains("@everyone") && mattermost.contains("@\u{200b}everyone"), "{mattermost}");
    assert!(!mattermost.contains('<') && !mattermost.contains("](https://evil"), "{mattermost}");

    let discord = body("discord", &hostile());
    assert_eq!(discord["allowed_mentions"], serde_json::json!({"parse": []}));
    let content = discord["content"].as_str().expect("a text");
    assert!(!content.contains(" <@U1>") && content.contains("\\<@U1\\>"), "{content}");
    assert!(content.contains("\\[x\\]\\(https://evil.example\\)"), "{content}");

    let teams = body("teams", &hostile());
    let mut types = Vec::new();
    strings(&teams, &mut types);
    assert!(!types.iter().any(|text| text == "TextBlock"), "a TextBlock reads Markdown");

    let telegram = body("telegram", &hostile());
    assert_eq!(telegram.get("parse_mode"), None);
    assert!(!telegram["text"].as_str().expect("a text").contains("@everyone"), "{telegram}");
}

#[test]
fn what_is_too_long_is_cut_to_what_each_service_takes() {
    let units = |text: &Value| text.as_str().expect("a text").encode_utf16().count();
    let slack = body("slack", &long());
    let blocks = slack["blocks"].as_array().expect("blocks");
    assert!(units(&blocks[0]["text"]["text"]) <= 150 && blocks.len() <= 50);
    let said = units(&blocks[1]["text"]["text"]);
    assert!((1_000..=3_000).contains(&said), "{said}");
    for (kind, field, most) in
        [("discord", "content", 2_000), ("telegram", "text", 4_096), ("mattermost", "text", 4_000)]
    {
        let body = body(kind, &long());
        let said = units(&body[field]);
        assert!((most / 4..=most).contains(&said), "{kind}: {said}");
        let text = body[field].as_str().expect("a text");
        let more: u64 =
            text.split("… and ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("more");
        assert!((990..1_000).contains(&more), "{kind}: of 1000 alerts {more} more");
    }
    let ntfy = body("ntfy", &long());
    assert!(ntfy["message"].as_str().expect("a text").len() <= 4_000);
    assert!(ntfy["title"].as_str().expect("a text").len() <= 170);
    assert!(body("teams", &long()).to_string().len() < 28_000);
    let settings = settings("pagerduty");
    let events = crate::sinks::requests(&settings, &long(), AT);
    assert_eq!(events.len(), 30, "one event an alert");
    assert!(units(&body("pagerduty", &long())["payload"]["summary"]) <= 1_024);
}

#[test]
fn an_alertmanager_is_told_when_each_alert_ends() {
    let firing = body("alertmanager", &notice(NoticeKind::Firing));
    assert_eq!(firing[0]["endsAt"], crate::text::rfc3339((AT + 240) * 1_000));
    assert_eq!(firing[0]["startsAt"], crate::text::rfc3339((AT - 180) * 1_000));
    let resolved = body("alertmanager", &resolved());
    assert_eq!(resolved[0]["endsAt"], crate::text::rfc3339((AT - 30) * 1_000));
    // Equal labels make it the same alert.
    assert_eq!(firing[0]["labels"], resolved[0]["labels"]);
    assert_ne!(firing[0]["labels"], firing[1]["labels"]);
    // A label must not make it an alert of another rule.
    let mut forged = notice(NoticeKind::Firing);
    forged.alerts[0].labels.insert("alertname".into(), "Watchdog".into());
    forged.alerts[0].labels.insert("team".into(), "others".into());
    let labels = body("alertmanager", &forged)[0]["labels"].clone();
    assert_eq!((&labels["alertname"], &labels["team"]), (&"GPU is hot".into(), &"lab".into()));
    let names = labels.as_object().expect("labels").keys();
    assert!(names.clone().all(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')), "{names:?}");
}

#[test]
fn a_repeat_has_the_same_id_and_a_new_moment() {
    let settings = settings("webhook");
    let header = |now, wanted: &str| match &crate::sinks::requests(&settings, &hostile(), now)[..] {
        [Request::Post(post)] => post.headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(header(AT, "webhook-id"), header(AT + 60, "webhook-id"));
    assert_eq!(header(AT + 60, "webhook-timestamp"), Some((AT + 60).to_string()));
    assert_ne!(header(AT, "webhook-signature"), header(AT + 60, "webhook-signature"));
}
