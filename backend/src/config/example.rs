//! An example of the configuration file: every key, commented out.

use super::collector::COMMON;
use super::option::{ConfigOption, split_default};
use super::table::{Config, OPTIONS};
use collectors::{COLLECTORS, Entry};
use settings::{Inner, KeyText};
use toml::Value;

const HEAD: &str = "\
# Every key that a configuration file of Watchglass may have, with its default, or with an example where there is none.
# To set one, take away the # before it, and the # before the [table] above it. This file is TOML.
#
# Generated: `UPDATE=1 cargo test -p watchglass-tests options` writes it.
";

/// Maximum length of a comment line, letters.
const LINE: usize = 120;

/// A file without effect, in which every key is a comment.
pub fn example() -> String {
    let (tables, plain): (Vec<_>, Vec<_>) = OPTIONS.iter().partition(|row| is_table(row));
    let mut sections: Vec<&str> = plain.iter().map(|row| row.section).collect();
    let mut text = HEAD.to_string();
    while let [section, ..] = sections[..] {
        sections.retain(|other| *other != section);
        text += &format!("\n# --- {section} ---\n");
        for row in plain.iter().filter(|row| row.section == section) {
            let default = row.kind.show(&Config::default());
            setting(&mut text, row.key, row.help, &written(row.example, default.as_ref()));
        }
    }
    for row in tables {
        if let Some(inner) = row.kind.inner() {
            table(&mut text, row.key, row.help, &inner);
        }
    }
    for (at, entry) in COLLECTORS.iter().enumerate() {
        collector(&mut text, entry, at == 0);
    }
    text
}

/// Whether it cannot be among plain keys: in TOML those come before all tables.
fn is_table(row: &ConfigOption<Config>) -> bool {
    row.kind.inner().is_some() || matches!(row.kind.show(&Config::default()), Some(Value::Table(_)))
}

fn table(text: &mut String, name: &str, help: &str, inner: &Inner) {
    *text += "\n";
    comment(text, help);
    *text += &if inner.is_list { format!("#[[{name}]]\n") } else { format!("#[{name}]\n") };
    for key in inner.keys.iter().filter(|key| key.inner.is_none()) {
        setting(text, key.name, &help_of(key), &written(key.example, key.default.as_ref()));
    }
    for key in &inner.keys {
        if let Some(inner) = &key.inner {
            table(text, &format!("{name}.{}", key.name), key.help, inner);
        }
    }
}

/// The keys of one collector. Those common to all are listed only at the first one.
fn collector(text: &mut String, entry: &Entry, is_first: bool) {
    let own: Vec<_> = entry.options.iter().filter(|row| row.moved_to.is_none()).collect();
    if own.is_empty() && !is_first {
        return;
    }
    let help =
        if is_first { "Keys of every collector, each in a table of its name" } else { "More keys of this collector" };
    *text += "\n";
    comment(text, help);
    *text += &format!("#[collectors.{}]\n", entry.name);
    for key in COMMON.texts().iter().filter(|_| is_first) {
        setting(text, key.name, &help_of(key), &written(key.example, key.default.as_ref()));
    }
    for row in own {
        setting(text, row.key, row.help, row.example);
    }
}

/// The description of a key, with its default where the example shows another value.
fn help_of(key: &KeyText) -> String {
    match &key.default {
        _ if key.is_required => format!("{} [required]", key.help),
        Some(default) if !key.example.is_empty() && split_default(key.help).1.is_empty() && !is_empty(default) => {
            format!("{} [default: {default}]", key.help)
        }
        _ => key.help.into(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty)
}

fn written(example: &str, default: Option<&Value>) -> String {
    match default {
        Some(default) if example.is_empty() => default.to_string(),
        _ => example.into(),
    }
}

fn setting(text: &mut String, key: &str, help: &str, value: &str) {
    comment(text, help);
    *text += &format!("#{key} = {value}\n");
}

fn comment(text: &mut String, help: &str) {
    let mut line = String::from("#");
    for word in help.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > LINE {
            *text += &format!("{line}\n");
            line = String::from("#");
        }
        line += &format!(" {word}");
    }
    *text += &format!("{line}\n");
}
