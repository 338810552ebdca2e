//! The reference page of the docs.

use crate::Operation;
use crate::parameter::{Parameter, ParameterKind};
use crate::row::{Answer, Carries, Row};
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "# Operations of the API

Every operation of the [HTTP API](../integrate/api.md), from the one table in `shared/api/src/table.rs`. This file is generated: `UPDATE=1 cargo test -p watchglass-tests operations` writes it.

`GET /api/v1/openapi.json` returns the same as an OpenAPI 3.1 document, with the fields of each answer, too. A server without accounts has no operations of accounts, teams and the hub. Its user may do everything else.

A role includes the lower ones: viewer, member, admin. An admin of the hub may do what an admin of any team may. A key also needs the scope that is named. An unknown parameter gets status 400 with the nearest known one.
";

/// The operations, and their parameters.
pub(crate) fn operations() -> String {
    let mut text = String::from(HEAD);
    let mut section = "";
    for row in Operation::ALL.iter().filter(|operation| operation.is_listed()).map(|operation| operation.row()) {
        if row.section != section {
            section = row.section;
            let head = "| operation | who may | parameters | body | answer | what it does |\n| --- | --- | --- | --- | --- | --- |";
            write!(text, "\n## {section}\n\n{head}\n").expect("a text takes all");
        }
        text += &line(row);
    }
    text += "\n## Parameters\n\nIf a parameter that may not be repeated is repeated, its last value counts.\n\n";
    text += "| parameter | value | what it is | operations |\n| --- | --- | --- | --- |\n";
    let mut all: BTreeMap<(&str, &str), (Parameter, Vec<&str>)> = BTreeMap::new();
    for row in Operation::ALL.iter().map(|operation| operation.row()) {
        for parameter in row.parameters.iter().filter(|parameter| !parameter.is_any()) {
            let entry = all.entry((parameter.name, parameter.meaning)).or_insert((*parameter, Vec::new()));
            entry.1.push(row.path);
        }
    }
    for (parameter, mut paths) in all.into_values() {
        paths.dedup();
        let paths: Vec<String> = paths.iter().map(|path| code(path.trim_start_matches("/api/v1"))).collect();
        let (name, value) = (code(parameter.name), value(&parameter));
        writeln!(text, "| {name} | {value} | {} | {} |", parameter.meaning, paths.join(", ")).expect("likewise");
    }
    text
}

pub(crate) fn code(text: &str) -> String {
    format!("`{text}`")
}

fn line(row: &Row) -> String {
    let names: Vec<String> = row.parameters.iter().filter(|one| !one.is_any()).map(|one| code(one.name)).collect();
    let body = match (row.body.carries, row.body.shape) {
        (Carries::Json(_), Some(shape)) => code(shape.name()),
        _ => String::new(),
    };
    let answer = match row.answer {
        Answer::Json(shape) | Answer::Made(shape) | Answer::Taken(shape) => code(shape.name()),
        Answer::Text(media, shape) => {
            let named = shape.map(|shape| code(shape.name())).into_iter();
            named.chain(media.iter().map(|media| code(media))).collect::<Vec<_>>().join(", ")
        }
        Answer::Redirect => "redirection".into(),
        Answer::Socket(_) => "WebSocket".into(),
    };
    let operation = code(&format!("{} {}", row.method.text(), row.path));
    let names = names.join(", ");
    format!("| {operation} | {} | {names} | {body} | {answer} | {} |\n", row.need.words(), row.meaning)
}

fn value(parameter: &Parameter) -> String {
    let value = match parameter.kind {
        ParameterKind::Text => "text".into(),
        ParameterKind::Number(least) => format!("number from {least}"),
        ParameterKind::Instant => "time".into(),
        ParameterKind::Length => "length of time".into(),
        ParameterKind::Choice(words) => words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", "),
    };
    if parameter.repeated { format!("{value}; may be repeated") } else { value }
}
