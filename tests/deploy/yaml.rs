//! YAML as JSON in which every scalar is a string.

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};
use std::path::Path;

enum Open {
    List(Vec<Value>),
    /// The fields, and the key whose value comes next.
    Map(Map<String, Value>, Option<String>),
}

/// The documents of a file.
///
/// # Panics
/// Panics when it is not YAML, when a key is repeated, and at an alias, which not every reader of these files supports.
pub fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut documents, mut open): (Vec<Value>, Vec<Open>) = (Vec::new(), Vec::new());
    for event in Parser::new_from_str(&text) {
        let (event, span) = event.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let place = format!("{}:{}", path.display(), span.start.line());
        let whole = match event {
            Event::Scalar(text, ..) => Value::from(text.into_owned()),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop().expect("it was begun") {
                Open::List(all) => Value::from(all),
                Open::Map(fields, _) => Value::from(fields),
            },
            Event::Alias(_) => panic!("{place}: an alias"),
            _ => continue,
        };
        match open.last_mut() {
            None => documents.push(whole),
            Some(Open::List(all)) => all.push(whole),
            Some(Open::Map(fields, key)) => match key.take() {
                Some(key) => assert!(fields.insert(key.clone(), whole).is_none(), "{place}: {key} stands twice"),
                None => *key = Some(whole.as_str().unwrap_or_else(|| panic!("{place}: no key")).to_owned()),
            },
        }
    }
    documents
}
