//! Names of people in data that leaves a server, and their removal for readers who may not see them: the viewers and
//! share links of a team that hides names ([`Scope::hides_names_of`](shared::scope::Scope::hides_names_of)).
//!
//! [`hide`] is the one place that knows where a name stands. It works on JSON, so it holds for every answer of the API
//! and for the body of every record. Hidden are:
//!
//! - the fields of [`NAME_FIELDS`], at any depth: users of processes, runs and markers, writers of notes, rules,
//!   silences and views, people who acknowledged, dismissed or edited something, and the same words as keys of labels;
//! - the same names again in the sentences and ids around them ([`TEXT_FIELDS`]);
//! - home folders in every text.
//!
//! Text that people wrote themselves, such as the name of a run, is only searched for the names beside it. Names of
//! machines, mounts and processes stay.

use serde_json::{Map, Value};
use shared::processes::ProcessTable;
use shared::record::Record;
use shared::wire::Check;

/// The text in place of a name.
pub const HIDDEN: &str = "hidden";

/// Fields with the name of a user or a person.
pub const NAME_FIELDS: [&str; 6] = ["user", "sent_by", "by", "who", "owner", "maker"];

/// Texts that may contain the names of the object in which they stand, or of an object below it.
pub const TEXT_FIELDS: [&str; 10] =
    ["id", "sentence", "sentence_template", "words", "text", "held", "subject", "title", "comment", "notes"];

/// Programs that reserve resources for jobs, as `by` of such a reservation.
const SCHEDULERS: [&str; 2] = ["slurm", "kubernetes"];

/// Folders whose entries are called like their users.
const HOMES: [&str; 2] = ["/home/", "/Users/"];

/// Hides the names in JSON. `is_hidden` decides for an object by its own fields; None: like the object around it, and
/// for the outermost one like `outside`.
pub fn hide(value: &mut Value, outside: bool, is_hidden: &impl Fn(&Map<String, Value>) -> Option<bool>) {
    hide_below(value, outside, is_hidden);
}

/// Hides the names below a value, and returns them.
fn hide_below(
    value: &mut Value,
    hidden: bool,
    is_hidden: &impl Fn(&Map<String, Value>) -> Option<bool>,
) -> Vec<String> {
    match value {
        Value::Array(items) => {
            // The names of a row concern no other row, and no text beside the list.
            for item in items {
                hide_below(item, hidden, is_hidden);
                if let Value::String(text) = item
                    && hidden
                {
                    *text = without_homes(text);
                }
            }
            Vec::new()
        }
        Value::Object(fields) => {
            let hidden = is_hidden(fields).unwrap_or(hidden);
            let mut names = Vec::new();
            for value in fields.values_mut() {
                names.extend(hide_below(value, hidden, is_hidden));
                if let Value::String(text) = value
                    && hidden
                {
                    *text = without_homes(text);
                }
            }
            if hidden {
                names.extend(take_names(fields));
                clean_texts(fields, &names);
            }
            names
        }
        _ => Vec::new(),
    }
}

/// Replaces the names in the fields of an object, and returns them.
fn take_names(fields: &mut Map<String, Value>) -> Vec<String> {
    // These words also have other meanings: the reporter of a cell, the division of a table, the source of a claim.
    let has = |key: &str| fields.contains_key(key);
    let by_scheduler = fields.get("by").and_then(Value::as_str).is_some_and(|by| SCHEDULERS.contains(&by));
    let by_program = by_scheduler || has("cell") || has("phase") || has("rows");
    let who_program = has("word");
    let mut names = Vec::new();
    for key in NAME_FIELDS {
        if (key == "by" && by_program) || (key == "who" && who_program) {
            continue;
        }
        if let Some(Value::String(name)) = fields.get_mut(key)
            && !name.is_empty()
        {
            names.push(std::mem::replace(name, HIDDEN.into()));
        }
    }
    names
}

fn clean_texts(fields: &mut Map<String, Value>, names: &[String]) {
    for key in TEXT_FIELDS {
        let Some(Value::String(text)) = fields.get_mut(key) else { continue };
        for name in names {
            *text = without_word(text, name);
        }
        *text = without_silencer(text);
    }
}

/// A text without a word; parts of longer words stay.
fn without_word(text: &str, word: &str) -> String {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let (mut clean, mut done) = (String::new(), 0);
    for (at, found) in text.match_indices(word) {
        let end = at + found.len();
        let is_part = text[..at].ends_with(is_letter) || text[end..].starts_with(is_letter);
        if !is_part && !word.is_empty() {
            clean += &text[done..at];
            clean += HIDDEN;
            done = end;
        }
    }
    clean + &text[done..]
}

/// A reason why no notice is sent, without the person who silenced the alert.
fn without_silencer(text: &str) -> String {
    let (start, end) = ("silenced by ", " until ");
    let Some((before, rest)) = text.split_once(start) else { return text.into() };
    match rest.rfind(end) {
        Some(at) => format!("{before}silenced{}", &rest[at..]),
        None => text.into(),
    }
}

/// A text whose home folders are called [`HIDDEN`].
fn without_homes(text: &str) -> String {
    let (mut clean, mut rest) = (String::new(), text);
    while let Some(end) = HOMES.iter().filter_map(|home| Some(rest.find(home)? + home.len())).min() {
        let name = rest[end..].find(|c: char| "/ \"':,;".contains(c)).unwrap_or(rest.len() - end);
        clean += &rest[..end];
        clean += if name > 0 { HIDDEN } else { "" };
        rest = &rest[end + name..];
    }
    clean + rest
}

/// JSON without any name; empty if it is no JSON.
pub fn hide_in_json(json: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice(json) else { return Vec::new() };
    hide(&mut value, true, &|_| None);
    serde_json::to_vec(&value).unwrap_or_default()
}

/// A record without names.
pub fn hide_in_record(record: &Record) -> Record {
    Record { body: hide_in_json(&record.body), ..record.clone() }
}

/// Hides the users and the arguments of processes: those contain paths and user names of all kinds.
pub fn hide_in_processes(table: &mut ProcessTable) {
    for row in &mut table.rows {
        row.user = HIDDEN.into();
        row.args.clear();
    }
}

/// Checks without the names in their paths.
pub fn hide_in_checks(checks: &[Check]) -> Vec<Check> {
    let clean = |check: &Check| Check {
        id: check.id.clone(),
        state: check.state,
        tried: check.tried.iter().map(|text| without_homes(text)).collect(),
        found: without_homes(&check.found),
        reason: without_homes(&check.reason),
        remedy: without_homes(&check.remedy),
    };
    checks.iter().map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hidden(mut value: Value) -> Value {
        hide(&mut value, true, &|_| None);
        value
    }

    #[test]
    fn a_name_is_hidden_in_its_field_and_in_the_sentences_around_it() {
        let alert = json!({
            "sentence": "the run of zora is idle, zorax is not", "id": "zora.7",
            "labels": { "user": "zora", "source": "node-1" }, "acked": { "by": "mara", "at": 7 },
            "held": "silenced by sofia until 18:00", "text": "mara: seen",
        });
        let expected = json!({
            "sentence": "the run of hidden is idle, zorax is not", "id": "hidden.7",
            "labels": { "user": "hidden", "source": "node-1" }, "acked": { "by": "hidden", "at": 7 },
            "held": "silenced until 18:00", "text": "hidden: seen",
        });
        assert_eq!(hidden(alert), expected);
    }

    #[test]
    fn the_user_of_a_finding_is_hidden_in_its_sentences() {
        let sentence = "GPU 0 is reserved for run 4711 of zora";
        let clean = hidden(json!({ "user": "zora", "sentence": sentence, "sentence_template": sentence }));
        assert!(!clean.to_string().contains("zora"), "{clean}");
    }

    #[test]
    fn words_with_another_meaning_stay() {
        for value in [
            json!({ "phase": "end", "by": "lab" }),
            json!({ "claim": { "who": "slurm", "word": "PREEMPTED" } }),
            json!({ "by": "month", "rows": [] }),
            json!({ "reserved": { "by": "slurm", "gpus": 8 }, "sentence": "a slurm job" }),
            json!({ "name": "postgres", "pid": 7 }),
            json!({ "user": "" }),
        ] {
            assert_eq!(hidden(value.clone()), value);
        }
    }

    #[test]
    fn home_folders_lose_their_names() {
        for (text, clean) in [
            ("python /home/zora/train.py --out=/home/zora", "python /home/hidden/train.py --out=/home/hidden"),
            ("/Users/zora", "/Users/hidden"),
            ("/home/ is empty", "/home/ is empty"),
            ("no path", "no path"),
        ] {
            assert_eq!(without_homes(text), clean);
        }
        let kernel = json!({ "kernels": [{ "path": "/home/zora/a.ipynb" }] });
        assert_eq!(hidden(kernel)["kernels"][0]["path"], "/home/hidden/a.ipynb");
        assert_eq!(hidden(json!({ "tried": ["/home/zora/x", "/opt"] }))["tried"], json!(["/home/hidden/x", "/opt"]));
    }

    #[test]
    fn each_object_is_judged_by_itself_or_like_the_one_around_it() {
        let mut value = json!({ "notes": [
            { "source": "open", "by": "zora" }, { "source": "closed", "by": "zora", "below": [{ "user": "zora" }] },
        ], "by": "zora" });
        let judge = |fields: &Map<String, Value>| Some(fields.get("source")? == "closed");
        hide(&mut value, false, &judge);
        let expected = json!({ "notes": [
            { "source": "open", "by": "zora" }, { "source": "closed", "by": "hidden", "below": [{ "user": "hidden" }] },
        ], "by": "zora" });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_record_without_json_loses_its_body() {
        let record = |body: &[u8]| Record { n: 1, t: 2, kind: "marker".into(), body: body.to_vec() };
        let clean = hide_in_record(&record(br#"{"kind":"note","user":"zora"}"#));
        assert_eq!(clean.body, br#"{"kind":"note","user":"hidden"}"#);
        assert_eq!((hide_in_record(&record(b"zora")).body, clean.n, clean.t), (Vec::new(), 1, 2));
    }
}
