//! Names of secrets: of variables, fields, options and headers, and in prose.

use super::shapes::{is_number, is_odd};

/// Kind of secret that a name announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretKind {
    /// A secret that may be a number.
    Password,
    /// A secret of several words.
    Phrase,
    /// A secret that is no number, because tokens and keys are also counted.
    Key,
    /// The same, after a scheme.
    Header,
    /// A word with many other meanings: it must be directly before its value.
    Weak,
    /// Digits.
    Pin,
}

/// Suffixes of names: `PGPASSWORD`, `apikey`.
const ENDS: [(&str, SecretKind); 16] = [
    ("password", SecretKind::Password),
    ("passwd", SecretKind::Password),
    ("passwort", SecretKind::Password),
    ("passphrase", SecretKind::Phrase),
    ("passcode", SecretKind::Password),
    ("apikey", SecretKind::Key),
    ("secretkey", SecretKind::Key),
    ("accesskey", SecretKind::Key),
    ("privatekey", SecretKind::Key),
    ("accountkey", SecretKind::Key),
    ("authkey", SecretKind::Key),
    ("authtoken", SecretKind::Key),
    ("accesstoken", SecretKind::Key),
    ("apitoken", SecretKind::Key),
    ("clientsecret", SecretKind::Key),
    ("setcookie", SecretKind::Phrase),
];

/// Last parts of names: `DB_PASS`, `hf-token`, `AccountKey`.
const LAST: [(&str, SecretKind); 18] = [
    ("secret", SecretKind::Key),
    ("token", SecretKind::Key),
    ("key", SecretKind::Key),
    ("credential", SecretKind::Key),
    ("credentials", SecretKind::Key),
    ("creds", SecretKind::Key),
    ("auth", SecretKind::Header),
    ("authorization", SecretKind::Header),
    ("bearer", SecretKind::Key),
    ("cookie", SecretKind::Phrase),
    ("dsn", SecretKind::Key),
    ("pass", SecretKind::Weak),
    ("pw", SecretKind::Weak),
    ("pwd", SecretKind::Weak),
    ("sig", SecretKind::Weak),
    ("signature", SecretKind::Weak),
    ("otp", SecretKind::Pin),
    ("pin", SecretKind::Pin),
];

/// Words before `key` and `token` that make them harmless.
const HARMLESS: &[&str] = &[
    "sort",
    "primary",
    "foreign",
    "cache",
    "prng",
    "rng",
    "random",
    "group",
    "map",
    "dict",
    "partition",
    "public",
    "metric",
    "monitor",
    "index",
    "row",
    "column",
    "hot",
    "arrow",
    "state",
    "batch",
    "query",
    "num",
    "max",
    "min",
    "eos",
    "bos",
    "pad",
    "unk",
    "mask",
    "sep",
    "cls",
    "next",
    "first",
    "last",
    "stop",
    "special",
    "start",
    "end",
    "image",
    "per",
    "decoder",
    "new",
    "prompt",
    "missing",
    "unexpected",
];

/// Words that are never secrets, after any name.
const PLAIN: &[&str] = &[
    "",
    "true",
    "false",
    "none",
    "null",
    "nil",
    "yes",
    "no",
    "ok",
    "on",
    "off",
    "set",
    "unset",
    "empty",
    "done",
    "required",
    "missing",
    "invalid",
    "incorrect",
    "wrong",
    "expired",
    "not",
    "accepted",
    "rejected",
    "changed",
    "valid",
    "found",
    "given",
    "given.",
    "needed",
    "used",
    "hidden",
    "redacted",
    "default",
    "optional",
    "str",
    "string",
    "auto",
    "env",
];

/// Words that follow `is` in prose.
pub(super) const ARTICLES: [&str; 3] = ["a", "an", "the"];

/// Words that may follow `bearer` and `basic` in prose.
pub(super) const FOLLOWS_SCHEME: [&str; 12] =
    ["token", "tokens", "auth", "authentication", "authorization", "of", "the", "is", "scheme", "block", "and", "or"];

/// Words of prose before `key` that make it a secret.
const OF_KEY: [&str; 9] = ["api", "access", "secret", "private", "license", "encryption", "account", "auth", "service"];

/// The kind of secret that a name announces; None if there is none.
pub(super) fn kind_of(name: &str) -> Option<SecretKind> {
    let mut parts: [&str; 2] = ["", ""];
    for part in parts_of(name) {
        parts = [parts[1], part];
    }
    let [before, last] = parts.map(str::to_ascii_lowercase);
    if last.is_empty() {
        return None;
    }
    let whole = format!("{before}{last}");
    if let Some((_, kind)) = ENDS.iter().find(|(end, _)| whole.ends_with(end)) {
        return Some(*kind);
    }
    // Variables may have names of joined words: MYSQLPWD and DBPASS are secrets, compass and bypass are not.
    let is_variable = name.bytes().all(|byte| !byte.is_ascii_lowercase());
    let (_, kind) = LAST.iter().find(|(known, _)| {
        last == *known
            || is_variable && known.len() > 3 && last.ends_with(known)
            || last.strip_suffix("pwd") == Some("mysql") && *known == "pwd"
    })?;
    match kind {
        // Alone it is an ordinary word.
        SecretKind::Key if last == "key" && before.is_empty() => Some(SecretKind::Weak),
        SecretKind::Key if (last == "key" || last == "token") && HARMLESS.contains(&before.as_str()) => None,
        // With a word before it, it has no other meaning.
        SecretKind::Weak if !before.is_empty() && last != "signature" => Some(SecretKind::Password),
        kind => Some(*kind),
    }
}

/// The parts of a name: `dbPass`, `DB_PASS` and `db-pass` have two.
fn parts_of(name: &str) -> impl Iterator<Item = &str> {
    name.split(['_', '-', '.']).flat_map(|part| {
        let bytes = part.as_bytes();
        let is_begin = move |at: &usize| bytes[*at].is_ascii_uppercase() && bytes[*at - 1].is_ascii_lowercase();
        let begins = (1..bytes.len()).filter(is_begin).chain([bytes.len()]);
        begins.scan(0, move |from, to| Some(&part[std::mem::replace(from, to)..to]))
    })
}

/// The kind of secret that a word of prose announces after the word before it.
pub(super) fn in_prose(before: &str, word: &str) -> Option<SecretKind> {
    let before = before.to_ascii_lowercase();
    match word {
        "password" | "passwd" | "passcode" => Some(SecretKind::Password),
        "passphrase" => Some(SecretKind::Password),
        "token" | "secret" | "credential" => Some(SecretKind::Key).filter(|_| !HARMLESS.contains(&before.as_str())),
        "key" => OF_KEY.contains(&before.as_str()).then_some(SecretKind::Key),
        "pin" => Some(SecretKind::Pin),
        _ if word.ends_with("_token")
            || word.ends_with("_key")
            || word.ends_with("_secret")
            || word.ends_with("password") =>
        {
            kind_of(word)
        }
        _ => None,
    }
}

/// Whether a text is no secret as any value: a word such as `None`, or a placeholder for a value.
pub(super) fn is_plain(text: &str) -> bool {
    let bare = text.trim_matches(|c: char| c.is_ascii_punctuation() && !"$<{%*".contains(c)).to_ascii_lowercase();
    let is_variable = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let stands_for = bare.starts_with(['<', '{', '%'])
        || text.strip_prefix('$').is_some_and(|name| name.starts_with(['{', '(']) || is_variable(name));
    let is_dotted = bare.chars().all(|c| "*.…•".contains(c)) || bare.len() > 3 && bare.bytes().all(|byte| byte == b'x');
    PLAIN.contains(&bare.as_str()) || stands_for || is_dotted
}

impl SecretKind {
    /// Whether a value may be on the next line.
    pub fn tells_next_line(self) -> bool {
        !matches!(self, SecretKind::Weak)
    }

    /// Whether a text is hidden as the value of a name.
    pub fn hides(self, name: &str, text: &str) -> bool {
        if is_plain(text) {
            return false;
        }
        let is_path = text.starts_with(['/', '~', '.']);
        match self {
            SecretKind::Password | SecretKind::Phrase => !(is_path && name.to_ascii_lowercase().ends_with("pwd")),
            SecretKind::Key | SecretKind::Header => !is_number(text),
            // PWD is a folder, and tests pass.
            SecretKind::Weak if name.eq_ignore_ascii_case("key") => is_odd(text),
            SecretKind::Weak => !is_number(text) && !is_path && text.len() > 1,
            SecretKind::Pin => (4..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()),
        }
    }
}
