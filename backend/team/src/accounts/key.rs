//! The text of a key: `wg_KIND_ID_SECRET`. The secret's last six letters are a checksum of everything before, so that
//! scanners of source code recognize a leaked key.

use super::random::{base62, checksum_text, hash};
use super::{DAY, Denied, MINUTE};
use shared::secret::Secret;
use shared::unit::time;

/// Letters of an id, which is visible in lists.
const ID: usize = 12;
/// Letters of a secret without its checksum.
const SECRET: usize = 43;
const CHECKSUM: usize = 6;

/// Maximum lifetime that can be given; above it use "never".
const MAX_LIFETIME: i64 = 3_660 * DAY;

/// Kind of a key's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// A person's.
    Person,
    /// A service's of a team.
    Service,
    /// An agent's, for its source alone.
    Agent,
    /// A join key.
    Join,
}

impl KeyKind {
    const ALL: [KeyKind; 4] = [KeyKind::Person, KeyKind::Service, KeyKind::Agent, KeyKind::Join];

    /// Its letter in keys and in the records.
    pub(super) const fn letter(self) -> &'static str {
        match self {
            KeyKind::Person => "p",
            KeyKind::Service => "s",
            KeyKind::Agent => "a",
            KeyKind::Join => "j",
        }
    }
}

/// A new key.
pub(super) struct Minted {
    pub id: String,
    pub text: Secret,
    /// The stored hash of its secret.
    pub hash: [u8; 32],
}

fn checksum(text: &str) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(text.as_bytes());
    checksum_text(crc.sum())
}

pub(super) fn mint(kind: KeyKind) -> Minted {
    let (id, secret) = (base62(ID), base62(SECRET));
    let text = format!("wg_{}_{id}_{secret}", kind.letter());
    let text = Secret::new(format!("{text}{}", checksum(&text)));
    Minted { id, text, hash: hash(&secret) }
}

/// The parts of a text in the form of a key, which are not verified yet.
pub(super) struct Claimed<'a> {
    /// The claimed kind.
    pub kind: KeyKind,
    pub id: &'a str,
    /// The hash of the claimed secret, as it would be stored.
    pub hash: [u8; 32],
}

/// Parses a key; none when it has no such form, or was not copied whole.
pub(super) fn read(text: &str) -> Option<Claimed<'_>> {
    let mut parts = text.split('_');
    let (Some("wg"), Some(kind), Some(id), Some(secret), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let kind = KeyKind::ALL.into_iter().find(|known| known.letter() == kind)?;
    let plain = |part: &str| part.bytes().all(|letter| letter.is_ascii_alphanumeric());
    if id.len() != ID || secret.len() != SECRET + CHECKSUM || !plain(id) || !plain(secret) {
        return None;
    }
    let (before, sum) = text.split_at(text.len() - CHECKSUM);
    (checksum(before) == sum).then(|| Claimed { kind, id, hash: hash(&secret[..SECRET]) })
}

/// Expiry from a lifetime given as text: a duration, or `never`.
pub(super) fn end_of(text: Option<&str>, unless_said: Option<i64>, now: i64) -> Result<Option<i64>, Denied> {
    let text = match text.map(str::trim) {
        None => return Ok(unless_said.map(|holds| now + holds)),
        Some("never") => return Ok(None),
        Some(text) => text,
    };
    match time::read(text).filter(|length| (MINUTE..=MAX_LIFETIME).contains(length)) {
        Some(length) => Ok(Some(now + length)),
        None => Err(Denied::invalid("write a lifetime such as 30min, 24h, 7d or never; at most ten years")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::random::same;

    #[test]
    fn a_key_is_read_as_it_was_made() {
        for kind in KeyKind::ALL {
            let minted = mint(kind);
            let text = minted.text.reveal();
            assert!(text.starts_with(&format!("wg_{}_{}_", kind.letter(), minted.id)), "{text}");
            assert_eq!(text.len(), 5 + 12 + 1 + 49);
            let claimed = read(text).expect("a key");
            assert_eq!((claimed.kind, claimed.id), (kind, minted.id.as_str()));
            assert!(same(&claimed.hash, &minted.hash));
        }
    }

    #[test]
    fn what_was_not_copied_whole_is_no_key() {
        let minted = mint(KeyKind::Join);
        let text = minted.text.reveal();
        for at in 0..text.len() {
            assert!(read(&text[..at]).is_none() && read(&text[at + 1..]).is_none(), "cut at {at}");
            let mut wrong = text.to_string();
            let other = if text.as_bytes()[at] == b'x' { "y" } else { "x" };
            wrong.replace_range(at..=at, other);
            assert!(read(&wrong).is_none(), "another letter at {at}");
        }
        for wrong in ["", "wg_j__", "_____", "wg_x_ID_SECRET", &format!("{text} "), &format!("{text}_"), "wg_j_\u{e9}"]
        {
            assert!(read(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn how_long_is_said_in_words_that_people_write() {
        for (text, ends) in [
            (None, Some(DAY)),
            (Some("30min"), Some(30 * MINUTE)),
            (Some(" 24 h "), Some(DAY)),
            (Some("7d"), Some(7 * DAY)),
            (Some("1 week"), Some(7 * DAY)),
            (Some("1.5h"), Some(90 * MINUTE)),
            (Some("never"), None),
        ] {
            assert_eq!(end_of(text, Some(DAY), 0), Ok(ends), "{text:?}");
        }
        for wrong in ["", "0min", "-1d", "1", "d", "24", "99999d", "9223372036854775807d", "\u{663}d"] {
            assert!(end_of(Some(wrong), None, 0).is_err(), "{wrong:?}");
        }
    }
}
