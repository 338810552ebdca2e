//! Redacts secrets in arguments of processes and in the output of jobs.
//!
//! Three tables define secrets: [`shapes`] has the formats of service keys, [`names`] the names before a value, and
//! [`TOOLS`] the options of programs that take one. Each byte of a line is inspected a bounded number of times.

mod names;
mod shapes;
#[cfg(test)]
mod tests;

use names::{SecretKind, is_plain, kind_of};
use std::ops::Range;

/// Maximum bytes of arguments that are kept.
const MAX_BYTES: usize = 1024;
/// Replacement of a secret.
pub const HIDDEN: &str = "…";

/// Maximum lines of a block, such as a private key, that are hidden: if its end is missing, the rest is shown again.
const MAX_BLOCK_LINES: u32 = 100;

/// Maximum length of a name before a value, bytes.
const MAX_NAME_BYTES: usize = 64;

/// Maximum distance from a program to its option, bytes.
const MAX_COMMAND_BYTES: usize = 512;

/// A value that is not a secret is searched again only up to this length, bytes.
const MAX_AGAIN_BYTES: usize = 256;

/// Programs, by a part of their names, with the option that takes a secret: attached to it, or as the next word.
const TOOLS: [(&str, &str); 14] = [
    ("curl", "-u"),
    ("curl", "--user"),
    ("curl", "--proxy-user"),
    ("wget", "-u"),
    ("http", "-a"),
    ("mysql", "-p"),
    ("mariadb", "-p"),
    ("mongo", "-p"),
    ("sshpass", "-p"),
    ("docker login", "-p"),
    ("twine", "-p"),
    ("redis-cli", "-a"),
    ("ldap", "-w"),
    ("7z", "-p"),
];

/// The arguments of a `cmdline` file, where each ends with a zero byte, in one line of at most 1 KiB.
pub fn arguments(text: &[u8]) -> String {
    let mut all = String::new();
    // The text shown so far identifies the program and its options.
    let mut wanted = None;
    for word in text.split(|b| *b == 0).filter(|word| !word.is_empty()) {
        let word: String = String::from_utf8_lossy(word).chars().filter(|c| !c.is_control()).collect();
        let value = wanted.take().filter(|_| !word.starts_with('-'));
        let hidden = match (value, option(&all, &word)) {
            (Some(kind), _) if SecretKind::hides(kind, "", &word) => std::iter::once(0..word.len()).collect(),
            // An option announces what follows it.
            (None, Some((at, kind))) if at == word.len() => {
                wanted = Some(kind);
                Vec::new()
            }
            (None, Some((at, _))) => std::iter::once(at..word.len()).collect(),
            // A value may contain any separators of fields.
            _ => match word.split_once('=') {
                Some((name, value)) if kind_of(name).is_some_and(|kind| kind.hides(name, value)) => {
                    std::iter::once(name.len() + 1..word.len()).collect()
                }
                _ => secrets(&word),
            },
        };
        if !all.is_empty() {
            all.push(' ');
        }
        let mut at = 0;
        for part in hidden {
            all.push_str(&word[at..part.start]);
            all.push_str(HIDDEN);
            at = part.end;
        }
        all.push_str(&word[at..]);
        if all.len() > MAX_BYTES {
            all.truncate(all.floor_char_boundary(MAX_BYTES));
            break;
        }
    }
    all
}

/// Position at which the secret of an option begins, and its kind. The position is the end of the option if the secret
/// is the next word. None for a word that is no such option.
fn option(before: &str, word: &str) -> Option<(usize, SecretKind)> {
    if !word.starts_with('-') {
        return None;
    }
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(MAX_COMMAND_BYTES))..];
    let is_tool = |tool: &str| tool.split(' ').all(|part| near.contains(part));
    for (tool, flag) in TOOLS {
        let Some(rest) = word.strip_prefix(flag) else { continue };
        let is_attached = !flag.starts_with("--") && !rest.starts_with('-');
        if (rest.is_empty() || is_attached) && is_tool(tool) {
            return Some((flag.len(), SecretKind::Password));
        }
    }
    let kind = kind_of(word).filter(|_| !word.contains(['=', ':']))?;
    Some((word.len(), kind))
}

/// The parts of a line that look like secrets, ascending, without overlaps.
pub fn secrets(line: &str) -> Vec<Range<usize>> {
    Redactor::default().secrets(line)
}

/// Expectation about the next line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// An ordinary line.
    #[default]
    Any,
    /// The value of a name at the end of the previous line, if it is one word.
    Value,
    /// At most this many more lines of a key, until its end.
    Key(u32),
    /// At most this many more lines of a value, which are indented deeper than its name.
    Indented(u32, usize),
}

/// Redacts the lines of one stream, in their order.
#[derive(Debug, Default)]
pub struct Redactor {
    next: Next,
}

impl Redactor {
    /// The parts of the next line that look like secrets, ascending, without overlaps. Words are matched as in
    /// arguments. Since a line is also prose, `tokenizer: bert` and `token 12 of 400` are not secrets.
    pub fn secrets(&mut self, line: &str) -> Vec<Range<usize>> {
        let next = std::mem::take(&mut self.next);
        let text = line.trim();
        let begin = line.len() - line.trim_start().len();
        let whole = || std::iter::once(begin..begin + text.len()).collect::<Vec<_>>();
        match next {
            Next::Key(left) if left > 0 => {
                if !text.contains("-----END") {
                    self.next = Next::Key(left - 1);
                }
                return if text.is_empty() { Vec::new() } else { whole() };
            }
            Next::Indented(left, indent) if left > 0 && (text.is_empty() || begin > indent) => {
                self.next = Next::Indented(left - 1, indent);
                return if text.is_empty() { Vec::new() } else { whole() };
            }
            Next::Value if text.is_empty() => self.next = Next::Value,
            Next::Value if !text.contains(char::is_whitespace) && !is_plain(text) && !text.ends_with([':', '=']) => {
                return whole();
            }
            _ => {}
        }
        let mut found = Vec::new();
        if let Some(from) = line.find("-----BEGIN").filter(|from| line[*from..].contains("PRIVATE KEY")) {
            let to = line[from..].find("-----END").map(|end| from + end);
            if to.is_none() {
                self.next = Next::Key(MAX_BLOCK_LINES);
            }
            let to = to.and_then(|to| Some(to + 8 + line[to + 8..].find("-----")? + 5)).unwrap_or(line.len());
            found.push(from..to);
        }
        self.named(line, &mut found);
        announced(line, &mut found);
        shapes::find(line, &mut found);
        joined(found)
    }

    /// Skips a line that is not shown: it may still announce a secret on the next line.
    pub fn skip(&mut self, line: &[u8]) {
        let end = line.trim_ascii_end().last();
        let may_tell = end.is_some_and(|end| b":=|>-".contains(end)) || self.next != Next::Any;
        if may_tell || line.windows(10).any(|part| part == b"-----BEGIN") {
            let _ = self.secrets(&String::from_utf8_lossy(line));
        }
    }

    /// Values after the name of a secret and `=` or `:`.
    fn named(&mut self, line: &str, found: &mut Vec<Range<usize>>) {
        let bytes = line.as_bytes();
        let mut at = 0;
        while let Some(sign) = bytes[at..].iter().position(|byte| matches!(byte, b'=' | b':')).map(|sign| at + sign) {
            at = sign + 1;
            let (name, is_quoted) = name_before(&line[..sign]);
            let Some(mut kind) = kind_of(name) else { continue };
            if kind == SecretKind::Weak {
                // `API key` is a name, `key` alone is a word.
                let (before, _) = name_before(&line[..name.as_ptr() as usize - line.as_ptr() as usize]);
                kind = names::in_prose(before, &name.to_ascii_lowercase()).unwrap_or(kind);
            }
            let mut from = at + bytes[at..].iter().take_while(|byte| matches!(byte, b'=' | b'>' | b':')).count();
            let is_near = from < bytes.len() && !bytes[from].is_ascii_whitespace();
            from += bytes[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let rest = &line[from..];
            if matches!(rest.trim_end(), "|" | "|-" | "|+" | ">" | ">-" | ">+") {
                let indent = line.len() - line.trim_start().len();
                self.next = Next::Indented(MAX_BLOCK_LINES, indent);
                continue;
            }
            if rest.is_empty() {
                if kind.tells_next_line() && !is_plural(name) {
                    self.next = Next::Value;
                }
                continue;
            }
            // Prose has colons, too.
            if kind == SecretKind::Weak && !is_near && !is_quoted && !name.to_ascii_lowercase().ends_with("pwd") {
                continue;
            }
            let value = value_of(rest, kind);
            let text = rest[value.clone()].trim_end_matches([',', ';']);
            let is_hidden = kind.hides(name, text);
            if is_hidden {
                found.push(from + value.start..from + value.start + text.len());
            }
            if is_hidden || value.len() > MAX_AGAIN_BYTES {
                at = from + value.end;
            }
        }
    }
}

/// The name at the end of a text, and whether it is quoted.
fn name_before(text: &str) -> (&str, bool) {
    let text = text.trim_end();
    let bare = text.trim_end_matches(['"', '\'']);
    let (is_quoted, bytes) = (bare.len() < text.len(), bare.as_bytes());
    let length = bytes
        .iter()
        .rev()
        .take(MAX_NAME_BYTES)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        .count();
    (&bare[bytes.len() - length..], is_quoted)
}

fn is_plural(name: &str) -> bool {
    name.ends_with(['s', 'S']) && !name.to_ascii_lowercase().ends_with("pass")
}

/// Range of the value at the start of a text: between quotes, or a word, which ends before the next field.
fn value_of(text: &str, kind: SecretKind) -> Range<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    if let Some(quote) = quote {
        return 1..text[1..].find(quote).map_or(text.len(), |end| end + 1);
    }
    if kind == SecretKind::Phrase {
        return 0..text.trim_end().len();
    }
    let word = text.find(|c: char| c.is_whitespace() || "\"'&;)}]".contains(c)).unwrap_or(text.len());
    // The scheme of a header is not part of the secret.
    let scheme = text[..word].to_ascii_lowercase();
    if kind == SecretKind::Header && SCHEMES.contains(&scheme.as_str()) {
        let from = word + text[word..].len() - text[word..].trim_start().len();
        let end =
            text[from..].find(|c: char| c.is_whitespace() || "\"'".contains(c)).map_or(text.len(), |end| from + end);
        return from..end;
    }
    0..word
}

/// Schemes before a secret in a header.
const SCHEMES: [&str; 5] = ["bearer", "basic", "digest", "token", "apikey"];
/// Words between the name of a secret and the secret.
const BETWEEN: [&str; 9] = ["is", "was", "are", "=", ":", "=>", "->", "set", "to"];

/// Words that are announced: by an option, by a scheme, or in prose as in `the password is ...`.
fn announced(line: &str, found: &mut Vec<Range<usize>>) {
    #[derive(Clone, Copy, PartialEq)]
    enum SecretMark {
        No,
        /// By an option: it is the next word.
        Option(SecretKind),
        /// By a name; true if a sign or a verb has followed, so that the next word is the value.
        Name(SecretKind, bool),
        Scheme,
    }
    let mut told = SecretMark::No;
    let mut before: &str = "";
    for (at, word) in words(line) {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let value = word.trim_matches(['"', '\'', '`', ',', ';', '(', ')', '{', '}', '[', ']']);
        let from = at + value.as_ptr() as usize - word.as_ptr() as usize;
        let lower = bare.to_ascii_lowercase();
        let now = std::mem::replace(&mut told, SecretMark::No);
        let is_value = match now {
            SecretMark::No => false,
            SecretMark::Option(kind) => !word.starts_with('-') && kind.hides("", value),
            SecretMark::Scheme => {
                value.len() >= 12 && shapes::is_odd(value) || before.eq_ignore_ascii_case("bearer") && value.len() > 2
            }
            SecretMark::Name(kind, is_certain) => {
                let word = word.to_ascii_lowercase();
                if BETWEEN.contains(&word.as_str()) || word.ends_with([':', '=']) && kind_of(bare).is_none() {
                    told = SecretMark::Name(kind, true);
                    before = bare;
                    continue;
                }
                (is_certain || shapes::is_odd(value)) && kind.hides("", value)
            }
        };
        let is_plain_value = is_plain(value) || names::ARTICLES.contains(&lower.as_str());
        if is_value
            && !is_plain_value
            && !(now == SecretMark::Scheme && names::FOLLOWS_SCHEME.contains(&lower.as_str()))
        {
            found.push(from..from + value.len());
            before = bare;
            continue;
        }
        if let Some((secret, kind)) = option(&line[..at], word) {
            match secret == word.len() {
                true => told = SecretMark::Option(kind),
                false => found.push(at + secret..at + word.len()),
            }
        } else if matches!(lower.as_str(), "bearer" | "basic") {
            told = SecretMark::Scheme;
        } else if !word.contains(['=', ':', '(']) && !word.starts_with('-') {
            // `API key` is a name, `key` alone is a word.
            told = match names::in_prose(before, &lower) {
                Some(kind) => SecretMark::Name(kind, false),
                None => SecretMark::No,
            };
        }
        before = bare;
    }
}

/// Words of a line and their positions.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_whitespace().map(move |word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

/// The same parts, ascending and merged if they touch.
fn joined(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.retain(|part| !part.is_empty());
    found.sort_by_key(|part| part.start);
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for part in found {
        match apart.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => apart.push(part),
        }
    }
    apart
}
