//! Discord: a channel's webhook. No text can mention anybody.

use super::{Field, Request, Sink, any, one};
use crate::settings::Settings;
use crate::text::{Plain, markdown, plain, units};
use serde_json::json;
use shared::alert::Notice;

pub(super) const SINK: Sink = Sink {
    kind: "discord",
    help: "the address of a webhook, https://discord.com/api/webhooks/…, from the channel's settings",
    needs: &[Field::Address],
    takes: &[],
    shows: Field::Address,
    address: None,
    signs: false,
    check: any,
    body,
};

/// Maximum length of a message at Discord.
const MAX_CONTENT: usize = 2_000;

/// Flag against previews of links.
const SUPPRESS_EMBEDS: u32 = 1 << 2;

fn written(plain: &Plain) -> String {
    let mut text = vec![format!("**{}**", markdown(&plain.title))];
    text.extend(plain.without_links().blocks().iter().map(|block| markdown(block)));
    let links: Vec<String> = plain.links().map(|(_, link)| format!("<{link}>")).collect();
    if !links.is_empty() {
        text.insert(text.len() - 1, links.join("\n"));
    }
    text.join("\n")
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    let content = plain(notice).fitted(MAX_CONTENT, units, written);
    one(settings, &json!({"content": content, "allowed_mentions": {"parse": []}, "flags": SUPPRESS_EMBEDS}))
}
