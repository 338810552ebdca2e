//! Mattermost: an incoming webhook. It parses Slack's marks in angle brackets first, and then Markdown.

use super::slack::escaped;
use super::{Field, Request, Sink, any, one};
use crate::settings::Settings;
use crate::text::{Plain, markdown, plain, uncalled, units};
use serde_json::json;
use shared::alert::Notice;

pub(super) const SINK: Sink = Sink {
    kind: "mattermost",
    help: "the address of an incoming webhook, https://HOST/hooks/…, created under Integrations",
    needs: &[Field::Address],
    takes: &[],
    shows: Field::Address,
    address: None,
    signs: false,
    check: any,
    body,
};

/// Mattermost splits longer messages.
const MAX_TEXT: usize = 4_000;

fn shown(text: &str) -> String {
    // A backslash before an angle bracket does not disable `<!channel>`: only the entity does.
    let marks = markdown(text).replace("\\<", "<").replace("\\>", ">");
    uncalled(&escaped(&marks)).replace('\n', "  \n")
}

fn written(plain: &Plain) -> String {
    let blocks = plain.without_links().blocks();
    let mut text = vec![format!("**{}**", shown(&plain.title))];
    text.extend(blocks.iter().map(|block| shown(block)));
    // Letters that would end a link are percent-encoded.
    let coded = |link: &str| link.replace('(', "%28").replace(')', "%29");
    let links: Vec<String> = plain.links().map(|(name, link)| format!("[{name}]({})", coded(link))).collect();
    if !links.is_empty() {
        text.insert(text.len() - 1, links.join(" · "));
    }
    text.join("\n\n")
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    let text = plain(notice).fitted(MAX_TEXT, units, written);
    one(settings, &json!({"text": text}))
}
