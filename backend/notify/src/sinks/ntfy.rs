//! ntfy: JSON, published at the server's root, so that no header contains foreign text.

use super::{Field, Request, Sink, post, visible};
use crate::settings::Settings;
use crate::text::plain;
use serde_json::json;
use shared::alert::{AlertSeverity, Notice, NoticeKind};

pub(super) const SINK: Sink = Sink {
    kind: "ntfy",
    help: "the address of the server, such as https://ntfy.sh, and the topic; a token if the topic is protected",
    needs: &[Field::Address, Field::Topic],
    takes: &[Field::Secret],
    shows: Field::Topic,
    address: None,
    signs: false,
    check,
    body,
};

/// ntfy turns longer messages into attachments.
const MAX_MESSAGE: usize = 4_000;

fn check(settings: &Settings) -> Result<(), String> {
    let topic = &settings.topic;
    let letters = topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !letters || topic.len() > 64 {
        return Err("a topic of ntfy has 1 to 64 letters, digits, - and _".into());
    }
    visible(settings)
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    let Some(address) = settings.addresses.first() else { return Vec::new() };
    let mut plain = plain(notice);
    let (title, link) = (std::mem::take(&mut plain.title), plain.link.take());
    let message = plain.fitted(MAX_MESSAGE, str::len, |plain| plain.blocks().join("\n\n"));
    let priority = match (notice.kind, notice.severity) {
        (NoticeKind::Resolved | NoticeKind::Test, _) | (_, AlertSeverity::Info) => 3,
        (_, AlertSeverity::Warning) => 4,
        (_, AlertSeverity::Critical) => 5,
    };
    let mut body = json!({"topic": settings.topic, "title": title, "message": message, "priority": priority});
    if let Some(link) = link {
        body["click"] = link.into();
    }
    let mut post = post(address.at("/"), &body);
    if let Some(token) = settings.secret.as_ref().filter(|token| !token.reveal().is_empty()) {
        post.headers.push(("authorization", format!("Bearer {}", token.reveal())));
    }
    vec![Request::Post(post)]
}
