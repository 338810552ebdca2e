//! The table of options as a document.

use super::collector::COMMON;
use super::option::{Row, default_text};
use super::table::{Config, OPTIONS};
use super::written::Takes;
use collectors::COLLECTORS;

const HEAD: &str = "\
# Options

This page lists every option of Watchglass: the table in `backend/src/config/table.rs` and the options of the collectors. \
The file is generated: `UPDATE=1 cargo test -p watchglass-tests options` writes it.

A flag overrides the configuration file: `--memory=false` switches off `memory = true`, and an empty list, as in `--gpu ''`, \
clears the list of the file. The file overrides the defaults. It is a TOML file that `--config` names; `--print-config` \
prints the effective configuration in this form. A list with one value may be written as that value. Each command also has \
flags of its own: `watchglass COMMAND --help`.
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
        // Where the default is no value, its words stand in the help.
        let (help, words) = row.help.split_once(" [default: ").unwrap_or((row.help, ""));
        let default = default_text(row).map_or(words.trim_end_matches(']').into(), |default| code(&default));
        text += &format!("| {} | {} | {default} | {help} |\n", flag(row), code(row.key));
    }
    for row in OPTIONS.iter().filter(|row| !row.kind.keys().is_empty()) {
        text += &format!("\n## In `{}`\n\n| key | description |\n| --- | --- |\n", row.key);
        row.kind.keys().iter().for_each(|(key, help)| text += &format!("| {} | {help} |\n", code(key)));
    }
    text += "\n## In `[collectors.NAME]`\n\n| collector | key | value | description |\n| --- | --- | --- | --- |\n";
    let line = |owner: &str, key: &str, value: &str, help: &str| {
        format!("| {owner} | {} | {} | {help} |\n", code(key), code(value).replace('|', "\\|"))
    };
    COMMON.iter().for_each(|row| text += &line("each", row.key, row.value, row.help));
    for entry in COLLECTORS {
        let own = entry.options.iter().map(|row| line(entry.name, row.key, row.value, row.help));
        text.extend(own);
    }
    text
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn flag(row: &Row<Config>) -> String {
    match row.kind.takes() {
        _ if row.flag.is_empty() => String::new(),
        Takes::Switch => code(&format!("--{}", row.flag)),
        Takes::One | Takes::Many => code(&format!("--{} {}", row.flag, row.value)).replace('|', "\\|"),
    }
}
