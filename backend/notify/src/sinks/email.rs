//! E-mail: one message of plain text to all addresses of the channel.

use super::{Field, Mail, Request, Sink, any};
use crate::settings::Settings;
use crate::text::plain;
use ring::digest;
use shared::alert::Notice;

pub(super) const SINK: Sink = Sink {
    kind: "email",
    help: "e-mail addresses in to; [smtp] in the configuration has the server",
    needs: &[Field::To],
    takes: &[],
    shows: Field::To,
    address: None,
    signs: false,
    check: any,
    body,
};

/// Maximum letters of a subject.
const MAX_SUBJECT: usize = 150;

/// Letters allowed before the `@` of a message's id.
fn id(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(100).collect()
}

fn body(notice: &Notice, settings: &Settings, _: i64) -> Vec<Request> {
    let plain = plain(notice);
    let mut subject: String = plain.title.chars().take(MAX_SUBJECT).collect();
    if subject.len() < plain.title.len() {
        subject.pop();
        subject.push('…');
    }
    // All messages of a group refer to one that was never sent. So mail programs thread them, and the id of the first
    // need not be stored.
    let group = digest::digest(&digest::SHA256, notice.group.as_bytes());
    vec![Request::Mail(Mail {
        to: settings.to.clone(),
        subject,
        text: plain.blocks().join("\n\n"),
        id: id(&notice.id),
        thread: format!("group-{}", hex::encode(&group.as_ref()[..16])),
        follows: notice.seq > 1,
        at: notice.at,
    })]
}
