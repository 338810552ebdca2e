//! Microsoft Teams: a Workflows webhook for an Adaptive Card. Text is in runs, which do not parse Markdown.

use super::{Field, Request, Sink, any, one};
use crate::settings::Settings;
use crate::text::{mark, plain};
use serde_json::{Value, json};
use shared::alert::{AlertSeverity, Notice, NoticeKind};

pub(super) const SINK: Sink = Sink {
    kind: "teams",
    help: "the address that the Workflows template \"Post to a channel when a webhook request is received\" shows",
    needs: &[Field::Address],
    takes: &[],
    shows: Field::Address,
    address: None,
    signs: false,
    check: any,
    body,
};

fn line(run: Value, spacing: &str) -> Value {
    json!({"type": "RichTextBlock", "spacing": spacing, "inlines": [run]})
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    let plain = plain(notice);
    let color = match (notice.kind, notice.severity) {
        (NoticeKind::Resolved, _) => "Good",
        (NoticeKind::Test, _) | (_, AlertSeverity::Info) => "Accent",
        (_, AlertSeverity::Warning) => "Warning",
        (_, AlertSeverity::Critical) => "Attention",
    };
    let title = plain.title.strip_prefix(&format!("[{}] ", mark(notice))).unwrap_or(&plain.title);
    let mut card = vec![json!({"type": "RichTextBlock", "inlines": [
        {"type": "TextRun", "text": format!("{} ", mark(notice)), "weight": "Bolder", "size": "Medium", "color": color},
        {"type": "TextRun", "text": title, "weight": "Bolder", "size": "Medium"},
    ]})];
    // A text run has no line breaks either: each line is a block.
    for part in [plain.counts.join("\n"), plain.name_subjects(), plain.note.clone()] {
        for (i, text) in part.lines().filter(|text| !text.is_empty()).enumerate() {
            let spacing = if i == 0 { "Medium" } else { "Small" };
            card.push(line(json!({"type": "TextRun", "text": text}), spacing));
        }
    }
    card.push(line(json!({"type": "TextRun", "text": plain.from, "size": "Small", "isSubtle": true}), "Medium"));
    let actions: Vec<Value> =
        plain.links().map(|(title, url)| json!({"type": "Action.OpenUrl", "title": title, "url": url})).collect();
    let mut content = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": card,
    });
    if !actions.is_empty() {
        content["actions"] = actions.into();
    }
    one(
        settings,
        &json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": null,
                "content": content,
            }],
        }),
    )
}
