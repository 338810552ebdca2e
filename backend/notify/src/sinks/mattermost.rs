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
    let blocks = Plain { link: None, help: None, ..plain.clone() }.blocks();
    let mut text = vec![format!("**{}**", shown(&plain.title))];
    text.extend(blocks.iter().map(|block| shown(block)));
    let links = [("Open", &plain.link), ("Help", &plain.help)];
    let links = links.into_iter().filter_map(|(name, link)| {
        // Letters that would end the link are percent-encoded.
        let link = link.as_ref()?.replace('(', "%28").replace(')', "%29");
        Some(format!("[{name}]({link})"))
    });
    let links: Vec<String> = links.collect();
    if !links.is_empty() {
        text.insert(text.len() - 1, links.join(" · "));
    }
    text.join("\n\n")
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    let text = plain(notice).fitted(MAX_TEXT, units, written);
    one(settings, &json!({"text": text}))
}
