//! Slack: an incoming webhook. Blocks contain plain text only, so that foreign text is never parsed as marks.

use super::{Field, Request, Sink, any, one};
use crate::settings::Settings;
use crate::text::{cut, plain, units};
use serde_json::{Value, json};
use shared::alert::Notice;

pub(super) const SINK: Sink = Sink {
    kind: "slack",
    help: "the address of an incoming webhook, https://hooks.slack.com/services/…, from the app's settings",
    needs: &[Field::Address],
    takes: &[],
    shows: Field::Address,
    address: None,
    signs: false,
    check: any,
    body,
};

/// Maximum length of a text block; that of a header is 150.
const MAX_BLOCK: usize = 3_000;

/// Escapes the three letters that Slack parses in its `text`.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn text(text: &str) -> Value {
    json!({"type": "plain_text", "text": text, "emoji": false})
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    let mut plain = plain(notice);
    let mut blocks = vec![json!({"type": "header", "text": text(&cut(&plain.title, 150))})];
    // Links are buttons: plain text cannot contain links.
    let buttons: Vec<Value> =
        plain.links().map(|(name, url)| json!({"type": "button", "text": text(name), "url": url})).collect();
    plain = plain.without_links();
    let from = std::mem::take(&mut plain.from);
    let fallback = escaped(&plain.title);
    let said = plain.fitted(MAX_BLOCK, units, |plain| plain.blocks().join("\n\n"));
    if !said.is_empty() {
        blocks.push(json!({"type": "section", "text": text(&said)}));
    }
    if !buttons.is_empty() {
        blocks.push(json!({"type": "actions", "elements": buttons}));
    }
    blocks.push(json!({"type": "context", "elements": [text(&from)]}));
    one(
        settings,
        &json!({
            "text": fallback,
            "blocks": blocks,
            "mrkdwn": false,
            "unfurl_links": false,
            "unfurl_media": false,
        }),
    )
}
