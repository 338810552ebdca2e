//! Telegram: a bot's `sendMessage`, without a mode that parses marks.

use super::{Field, Request, Sink, post};
use crate::settings::Settings;
use crate::text::{plain, uncalled, units};
use serde_json::json;
use shared::alert::{AlertSeverity, Notice};
use shared::secret::Secret;

pub(super) const SINK: Sink = Sink {
    kind: "telegram",
    help: "the bot's token from @BotFather as secret, and the chat's number or @name as topic",
    needs: &[Field::Secret, Field::Topic],
    takes: &[Field::Address],
    shows: Field::Secret,
    address: Some("https://api.telegram.org"),
    signs: false,
    check,
    body,
};

/// Maximum length of a message at Telegram.
const MAX_TEXT: usize = 4_096;

fn check(settings: &Settings) -> Result<(), String> {
    let token = settings.secret.as_ref().map_or("", Secret::reveal);
    let (number, rest) = token.split_once(':').unwrap_or(("", ""));
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    // It is part of an address: a slash in it would change the path.
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) || rest.len() < 20 || !rest.bytes().all(letters)
    {
        return Err("a bot's token is its number, a colon and letters, as @BotFather shows it".into());
    }
    let chat = &settings.topic;
    let number = chat.strip_prefix('-').unwrap_or(chat);
    let named = chat.strip_prefix('@').is_some_and(|name| !name.is_empty() && name.bytes().all(letters));
    if named || (!number.is_empty() && number.len() <= 20 && number.bytes().all(|byte| byte.is_ascii_digit())) {
        Ok(())
    } else {
        Err("a Telegram chat is its number, such as -1001234567890, or the @name of a public channel".into())
    }
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    let Some(address) = settings.addresses.first() else { return Vec::new() };
    let token = settings.secret.as_ref().map_or("", Secret::reveal);
    let text = plain(notice).fitted(MAX_TEXT, units, |plain| {
        let blocks: Vec<String> = plain.blocks();
        // The links are ours; `@` in all other text is made harmless.
        let is_link = |block: &str| {
            plain.links().any(|(name, link)| block.strip_prefix(&format!("{name}: ")).unwrap_or(block) == link)
        };
        let shown = blocks.iter().map(|block| match is_link(block) {
            true => block.clone(),
            false => uncalled(block),
        });
        [uncalled(&plain.title)].into_iter().chain(shown).collect::<Vec<_>>().join("\n\n")
    });
    let body = json!({
        "chat_id": settings.topic,
        "text": text,
        "link_preview_options": {"is_disabled": true},
        "disable_notification": notice.severity == AlertSeverity::Info,
    });
    vec![Request::Post(post(address.at(&format!("/bot{token}/sendMessage")), &body))]
}
