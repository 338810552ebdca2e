//! Answers in few bytes: an assistant pays for each, and its program cuts long answers anywhere.

use serde_json::{Map, Value};

/// Maximum length of an answer, bytes. Some clients warn above 10,000 tokens, and a token of JSON has about three.
pub const MAX_BYTES: usize = 24 << 10;
/// Maximum length of the sentence of an error, bytes: it may quote what was asked, which has up to a line.
const MAX_ERROR_BYTES: usize = 2 << 10;
/// Place for the note about dropped rows, bytes.
const NOTE_BYTES: usize = 512;

/// The sentence of an error with at most [`MAX_ERROR_BYTES`]: its beginning, and its end, which says what to do.
pub fn shorten_error(sentence: String) -> String {
    const CUT: &str = " … ";
    if sentence.len() <= MAX_ERROR_BYTES {
        return sentence;
    }
    let half = MAX_ERROR_BYTES / 2 - CUT.len();
    let (head, tail) = (sentence.floor_char_boundary(half), sentence.ceil_char_boundary(sentence.len() - half));
    format!("{}{CUT}{}", &sentence[..head], &sentence[tail..])
}

/// Removes absent values, and the fields with these names, which only the page draws.
pub fn shorten(value: &mut Value, without: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| !field.is_null() && !without.contains(&name.as_str()));
            fields.values_mut().for_each(|field| shorten(field, without));
        }
        Value::Array(rows) => rows.iter_mut().for_each(|row| shorten(row, without)),
        _ => {}
    }
}

/// The rows of a list that matter most, and stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The first ones.
    First,
    /// The last ones, as of the output of a job: its error stands at the end.
    Last,
}

/// The value as JSON of at most [`MAX_BYTES`]. Rows are dropped from its longest lists, and `cut` says which.
pub fn fit(mut value: Value, narrower: &str, stays: Rows) -> String {
    let mut notes: Vec<String> = Vec::new();
    let mut text = value.to_string();
    let room = MAX_BYTES - NOTE_BYTES;
    while text.len() > room || (!notes.is_empty() && text.len() > MAX_BYTES) {
        let Some((name, rows)) = longest(&mut value, "rows") else { break };
        let (before, size) = (rows.len(), Value::Array(rows.clone()).to_string().len());
        // Rows differ in length, so the share is only an estimate; at least one row goes.
        let spare = size.saturating_sub(text.len() - room);
        let kept = (before * spare / size.max(1)).clamp(1, before - 1);
        match stays {
            Rows::First => rows.truncate(kept),
            Rows::Last => drop(rows.drain(..before - kept)),
        }
        let note = format!("{} of {before} {name}", rows.len());
        match notes.iter_mut().find(|note| note.ends_with(&format!(" {name}"))) {
            Some(known) => {
                let whole = known.split(' ').nth(2).unwrap_or_default().to_string();
                *known = format!("{} of {whole} {name}", rows.len());
            }
            None => notes.push(note),
        }
        text = value.to_string();
    }
    if !notes.is_empty() {
        let which = if stays == Rows::Last { "the last " } else { "" };
        let note = format!("The answer was too long: it has {which}{}. {narrower}", notes.join(", "));
        if let Value::Object(fields) = &mut value {
            let mut first = Map::from_iter([("cut".to_string(), Value::String(note))]);
            first.append(fields);
            *fields = first;
        }
        text = value.to_string();
    }
    match text.len() > MAX_BYTES {
        true => format!("{} (cut here: the answer was too long. {narrower})", &text[..text.floor_char_boundary(room)]),
        false => text,
    }
}

/// The list with several rows that takes the most bytes, with its name: of a list inside a row only if the row is
/// alone.
fn longest<'a>(value: &'a mut Value, name: &str) -> Option<(String, &'a mut Vec<Value>)> {
    match value {
        Value::Array(rows) => match rows.len() {
            0 | 1 => longest(rows.first_mut()?, name),
            _ => Some((name.to_string(), rows)),
        },
        Value::Object(fields) => {
            let (name, field) = fields.iter_mut().max_by_key(|(_, field)| list_bytes(field))?;
            longest(field, name)
        }
        _ => None,
    }
}

/// Bytes of a value that has a list.
fn list_bytes(value: &Value) -> usize {
    match value {
        Value::Array(_) | Value::Object(_) => value.to_string().len(),
        _ => 0,
    }
}
