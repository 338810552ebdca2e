//! Reads JSON lines: W&B's `wandb-events.jsonl`, the events of its public API, and our own export.

use super::{ACCEPTED, Damage, ImportError, Raw};
use serde_json::{Map, Value};
use shared::date;
use std::borrow::Cow;
use std::io::{BufRead, Read};

/// Size in bytes of the longest line. W&B itself drops lines of more than 10 MB.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Keys of a line that are no tags.
const ABOUT: [&str; 4] = ["_wandb", "_timestamp", "_runtime", "_step"];

/// Reads all lines. A line that is cut or is no JSON is noted as damage.
pub fn read(mut file: impl BufRead, raw: &mut Raw) -> Result<(), ImportError> {
    let (mut at, mut line, mut dated, mut undated) = (0, Vec::new(), 0u64, 0u64);
    loop {
        line.clear();
        let len = file.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? as u64;
        if len == 0 {
            break;
        }
        let text = std::str::from_utf8(&line).ok().map(|text| text.trim_start_matches('\u{feff}').trim());
        match text.map(|text| (text, serde_json::from_str::<Value>(&strict(text)))) {
            Some(("", _)) => {}
            Some((_, Ok(Value::Object(object)))) => match take(raw, &object) {
                Line::Dated => dated += 1,
                Line::Undated => undated += 1,
                Line::Empty => {}
            },
            _ => raw.damages.push(Damage { at, bytes: len }),
        }
        at += len;
    }
    if undated > 0 {
        raw.notes.push(format!("{undated} lines have no time (`_timestamp`) and are left out"));
    }
    if dated == 0 && raw.samples == 0 && undated == 0 && raw.damages.is_empty() {
        return Err(ImportError::Unknown(format!(
            "no line holds a reading of a machine; what can be opened is {ACCEPTED}"
        )));
    }
    Ok(())
}

enum Line {
    Dated,
    Undated,
    Empty,
}

fn take(raw: &mut Raw, object: &Map<String, Value>) -> Line {
    let time = |key: &str| object.get(key).and_then(Value::as_f64).and_then(date::from_seconds);
    // This line is one sample of our own export.
    if let (Some(Value::String(tag)), Some(value)) = (object.get("tag"), object.get("value")) {
        let source = object.get("source").and_then(Value::as_str).unwrap_or("");
        return match (time("t"), value.as_f64()) {
            (Some(t), Some(v)) => {
                raw.sample(source, tag, t, v);
                Line::Dated
            }
            (None, _) => Line::Undated,
            _ => Line::Empty,
        };
    }
    let mut tags = object.iter().filter(|(key, _)| !ABOUT.contains(&key.as_str())).peekable();
    if tags.peek().is_none() {
        return Line::Empty;
    }
    let Some(t) = time("_timestamp") else { return Line::Undated };
    tags.for_each(|(tag, value)| raw.put(tag, t, value));
    Line::Dated
}

/// The line with NaN and infinities outside of texts replaced by null. W&B 0.15 to 0.30 wrote them, although they are
/// no JSON. Only these values are lost, and not the other readings of the line.
fn strict(text: &str) -> Cow<'_, str> {
    const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    if !WORDS.iter().any(|word| text.contains(word)) {
        return text.into();
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    let (mut inside, mut escaped) = (false, false);
    while let Some(c) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !inside && rest.starts_with(**word));
        if let Some(word) = word {
            out.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = inside,
            '"' => inside = !inside,
            _ => {}
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out.into()
}
