//! The table of options as a document.

use super::collector::COMMON;
use super::option::{ConfigOption, default_text, in_words, split_default};
use super::table::{Config, OPTIONS};
use collectors::COLLECTORS;
use settings::{KeyText, Takes};

const HEAD: &str = "\
# Options

Every option of Watchglass, from the one table in `backend/src/config/table.rs`, from the tables of the file that it names and from the collectors. This file is \
generated: `UPDATE=1 cargo test -p watchglass-tests options` writes it.

A flag wins over the configuration file, in both directions: `--memory=false` switches off what the file switches on, and an \
empty list, as in `--gpu ''`, clears the file's list. The file wins over the defaults. It is TOML and `--config` names it; \
`--print-config` prints what is in force as such a file. [config.example.toml](config.example.toml) has every key, commented out. A list may be written as one value if it has one. Besides, each \
command has flags of its own: `watchglass COMMAND --help`.
";

/// All options, as Markdown.
pub fn reference() -> String {
    let mut text = HEAD.to_string();
    let mut section = "";
    for row in OPTIONS {
        if section != row.section {
            section = row.section;
            text += &format!("\n## {section}\n\n| flag | key | default | description |\n| --- | --- | --- | --- |\n");
        }
        let (help, words) = split_default(row.help);
        let default = default_text(row).map_or(words.into(), |default| code(&default));
        text += &format!("| {} | {} | {default} | {help} |\n", flag(row), code(row.key));
    }
    for row in OPTIONS {
        let Some(inner) = row.kind.inner() else { continue };
        text += &format!("\n## In `{}`\n\n| key | default | what it is |\n| --- | --- | --- |\n", row.key);
        keys("", &inner.keys, &mut text);
    }
    text += "\n## In `[collectors.NAME]`\n\n| collector | key | value | description |\n| --- | --- | --- | --- |\n";
    let line = |owner: &str, key: &str, value: &str, help: &str| {
        format!("| {owner} | {} | {} | {help} |\n", code(key), code(value).replace('|', "\\|"))
    };
    for row in COMMON.texts() {
        text +=
            &line("each", row.name, &row.default.map_or(row.example.into(), |default| default.to_string()), row.help);
    }
    for entry in COLLECTORS {
        let own = entry.options.iter().map(|row| line(entry.name, row.key, row.value, row.help));
        text.extend(own);
    }
    text
}

/// A row for each key of a table, and of the tables in it.
fn keys(above: &str, all: &[KeyText], text: &mut String) {
    for key in all {
        let (help, words) = split_default(key.help);
        let default = match &key.default {
            _ if key.is_required => "required".into(),
            Some(default) => in_words(default).map_or(words.into(), |default| code(&default)),
            None => words.into(),
        };
        let help = help.replace('|', "\\|");
        *text += &format!("| {} | {default} | {help} |\n", code(&format!("{above}{}", key.name)));
        if let Some(inner) = &key.inner {
            keys(&format!("{above}{}.", key.name), &inner.keys, text);
        }
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn flag(row: &ConfigOption<Config>) -> String {
    match row.kind.takes() {
        _ if row.flag.is_empty() => String::new(),
        Takes::Switch => code(&format!("--{}", row.flag)),
        Takes::One | Takes::Many => code(&format!("--{} {}", row.flag, row.value)).replace('|', "\\|"),
    }
}
