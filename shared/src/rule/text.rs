//! Durations, numbers, placeholders, and the validation of a whole rule.

use super::{Condition, MAX_DURATION, parse};
use crate::alert::{MAX_TEXT_BYTES, MAX_TITLE_BYTES, Rule};
use crate::catalog::Catalog;
use crate::unit::{fixed, time};

/// Maximum bytes of a value that replaces a placeholder.
pub const MAX_VALUE_BYTES: usize = 200;

/// Placeholders of a title and a note.
pub const PLACEHOLDERS: [&str; 16] = [
    "rule", "severity", "state", "subject", "source", "run", "project", "rank", "gpu", "tag", "value", "limit",
    "began", "duration", "count", "link",
];

/// Keys of `on` are short.
const MAX_KEY_BYTES: usize = 63;

/// Seconds of a duration as `90s`, `2m`, `4h`, `7d`, `1h30m`.
///
/// # Errors
/// A sentence with the allowed range: 0 s to 7 d.
pub fn duration(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text:?} is not a duration: write a number and s, m, h or d, such as 90s, 2m or 4h");
    let ms = if text.trim() == "0" { 0 } else { time::read(text).ok_or_else(wrong)? };
    if ms % time::SECOND != 0 {
        return Err(wrong());
    }
    match u32::try_from(ms / time::SECOND) {
        Ok(seconds) if seconds <= MAX_DURATION => Ok(seconds),
        _ => Err(format!("{text:?} is too long: a duration is at most 7d")),
    }
}

/// The duration in parseable form: `90s`, `2m`.
pub fn duration_text(seconds: u32) -> String {
    time::typed(i64::from(seconds) * time::SECOND)
}

/// The duration as people read it: `1 min 30 s`, `2 min`.
pub fn duration_words(seconds: u32) -> String {
    time::set(i64::from(seconds) * time::SECOND)
}

/// The number with the fewest decimal places, at most nine, that give it back.
pub fn number_text(value: f64) -> String {
    (0..9)
        .map(|decimals| fixed(value, decimals))
        .find(|text| text.parse() == Ok(value))
        .unwrap_or_else(|| fixed(value, 9))
}

/// The placeholders in the braces of the text, in order.
///
/// # Errors
/// A sentence for an unclosed brace, and for an unknown placeholder.
pub fn placeholders(text: &str) -> Result<Vec<&str>, String> {
    let (mut rest, mut all) = (text, Vec::new());
    while let Some(open) = rest.find('{') {
        let after = &rest[open + 1..];
        if let Some(literal) = after.strip_prefix('{') {
            rest = literal;
            continue;
        }
        let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(" ");
        let Some(close) = after.find('}') else {
            return Err(format!("a brace is not closed: write {{{{ for a brace, or one of {known}"));
        };
        let name = &after[..close];
        if !PLACEHOLDERS.contains(&name) {
            return Err(format!("{{{name}}} is unknown: placeholders are {known}; {{{{ is a brace"));
        }
        all.push(name);
        rest = &after[close + 1..];
    }
    Ok(all)
}

/// The text with values in the places of its placeholders. Values are data: placeholders in them are not filled, and
/// each is [cleaned](clean) to [`MAX_VALUE_BYTES`].
pub fn fill(text: &str, value: impl Fn(&str) -> String) -> String {
    let (mut rest, mut out) = (text, String::with_capacity(text.len()));
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        if let Some(literal) = after.strip_prefix('{') {
            out.push('{');
            rest = literal;
            continue;
        }
        match after.find('}').map(|close| (&after[..close], &after[close + 1..])) {
            Some((name, behind)) if PLACEHOLDERS.contains(&name) => {
                out.push_str(&clean(&value(name), MAX_VALUE_BYTES, false));
                rest = behind;
            }
            _ => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The text without control characters and characters that change the direction of writing, cut at `most` bytes.
/// Newlines are kept if `lines` is set, and are spaces otherwise.
pub fn clean(text: &str, most: usize, lines: bool) -> String {
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let mut out = String::with_capacity(text.len().min(most));
    for c in text.trim().chars() {
        let c = match c {
            '\n' if lines => '\n',
            '\n' | '\t' => ' ',
            c if c.is_control() || turns(c) => continue,
            c => c,
        };
        if out.len() + c.len_utf8() > most {
            // An ellipsis marks the cut.
            while out.len() + '…'.len_utf8() > most && out.pop().is_some() {}
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

fn is_clean(text: &str, lines: bool) -> bool {
    clean(text, usize::MAX, lines) == text.trim()
}

/// Validates a rule, and returns the condition of its `when`.
///
/// # Errors
/// A sentence that names the wrong field and the correct form.
pub fn check(rule: &Rule, catalog: &Catalog) -> Result<Condition, String> {
    let said = |field: &str, why: String| format!("{field}: {why}");
    let name = rule.name.trim();
    if name.is_empty() || name != rule.name {
        return Err("name: a rule needs a name, without surrounding blanks".into());
    }
    if name.len() > MAX_TITLE_BYTES || !is_clean(name, false) {
        return Err(format!("name: at most {MAX_TITLE_BYTES} bytes on one line, without control characters"));
    }
    let condition = parse(&rule.when, catalog).map_err(|fault| format!("when: {fault}"))?;
    for (key, pattern) in &rule.on {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._/-".contains(&b);
        if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.bytes().all(letter) {
            return Err(format!(
                "on: {key:?} is not a known key: keys are source, run, project, job_type, user, group, failure, gpu and labels"
            ));
        }
        if pattern.len() > MAX_VALUE_BYTES
            || !is_clean(pattern, false)
            || pattern.split(',').any(|p| p.trim().trim_start_matches('!').is_empty())
        {
            return Err(format!(
                "on: {key} = {pattern:?} must be patterns with commas between, as \"node-*\" or \"llm,!eval\""
            ));
        }
    }
    let odd = |channel: &String| channel.trim().is_empty() || channel.len() > MAX_TITLE_BYTES;
    if rule.to.as_ref().is_some_and(|to| to.iter().any(odd)) {
        return Err("to: names of channels; leave it out for the team's default channels".into());
    }
    if let Some(title) = &rule.title {
        placeholders(title).map_err(|why| said("title", why))?;
        if title.len() > MAX_TITLE_BYTES || !is_clean(title, false) {
            return Err(format!("title: at most {MAX_TITLE_BYTES} bytes on one line, without control characters"));
        }
    }
    if let Some(note) = &rule.note {
        placeholders(note).map_err(|why| said("note", why))?;
        if note.len() > MAX_TEXT_BYTES || !is_clean(note, true) {
            return Err(format!("note: at most {MAX_TEXT_BYTES} bytes, without control characters"));
        }
    }
    if let Some(link) = &rule.link {
        let host = link.strip_prefix("https://").and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or("");
        let odd = |c: char| c.is_whitespace() || c.is_control() || "<>\"\\^`{|}".contains(c);
        if host.is_empty()
            || host.contains('@')
            || link.len() > MAX_TEXT_BYTES
            || link.contains(odd)
            || !is_clean(link, false)
        {
            return Err("link: an address that begins with https:// and contains no user and password".into());
        }
    }
    if let Some(repeat) = &rule.repeat {
        let seconds = duration(repeat).map_err(|why| said("repeat", why))?;
        if seconds < 60 {
            return Err("repeat: at least 1m".into());
        }
    }
    Ok(condition)
}
