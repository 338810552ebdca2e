//! The table of options as a document.

use super::collector::COMMON;
use super::option::{Row, default_text};
use super::table::{Config, OPTIONS};
use super::written::Takes;
use collectors::COLLECTORS;

const HEAD: &str = "\
# Options

Every option of Watchglass, from the one table in `backend/src/config/table.rs` and from the collectors. This file is \
generated: `UPDATE=1 cargo test -p watchglass-tests options` writes it.

A flag wins over the configuration file, in both directions: `--memory=false` switches off what the file switches on, and an \
empty list, as in `--gpu ''`, clears the file's list. The file wins over the defaults. It is TOML and `--config` names it; \
`--print-config` prints what is in force as such a file. A list may be written as one value if it has one. Besides, each \
command has flags of its own: `watchglass COMMAND --help`.
";

/// All options, as Markdown.
pub fn reference() -> String {
    let mut text = HEAD.to_string();
    let mut section = "";
    for row in OPTIONS {
        if section != row.section {
            section = row.section;
            text += &format!("\n## {section}\n\n| flag | key | default | what it is |\n| --- | --- | --- | --- |\n");
        }
        // Where the default is no value, its words stand in the help.
        let (help, words) = row.help.split_once(" [default: ").unwrap_or((row.help, ""));
        let default = default_text(row).map_or(words.trim_end_matches(']').into(), |default| code(&default));
        text += &format!("| {} | {} | {default} | {help} |\n", flag(row), code(row.key));
    }
    for row in OPTIONS.iter().filter(|row| !row.kind.keys().is_empty()) {
        text += &format!("\n## In `{}`\n\n| key | what it is |\n| --- | --- |\n", row.key);
        row.kind.keys().iter().for_each(|(key, help)| text += &format!("| {} | {help} |\n", code(key)));
    }
    text += "\n## In `[collectors.NAME]`\n\n| collector | key | value | what it is |\n| --- | --- | --- | --- |\n";
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
