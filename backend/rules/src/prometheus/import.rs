//! Import of Prometheus rule files.

use super::promql;
use super::translate::Translator;
use super::yaml::{Node, documents};
use shared::alert::{AlertSeverity, MAX_TEXT_BYTES, MAX_TITLE_BYTES, Rule};
use shared::catalog::Catalog;
use shared::rule::{MAX_DURATION, check, clean};
use shared::unit::size;
use std::collections::BTreeMap;

/// Maximum size of a file, bytes.
const MAX_FILE_BYTES: usize = 8 << 20;

/// Maximum number of rules in a file.
const MAX_RULES: usize = 10_000;

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Translated rules, and the parts left out of each, in sentences.
    pub rules: Vec<(Rule, Vec<String>)>,
    /// Refused rules, in the order of the file.
    pub refused: Vec<NotImported>,
}

/// A rule that is not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotImported {
    /// First line, from 1.
    pub line: usize,
    /// Its name; empty where it has none.
    pub name: String,
    /// Reason, in a sentence without its final period.
    pub why: String,
}

impl Imported {
    /// The rules as `[[rules]]` of the configuration.
    pub fn toml(&self) -> String {
        let mut out = String::new();
        for (rule, notes) in &self.rules {
            if !out.is_empty() {
                out.push('\n');
            }
            notes.iter().for_each(|note| out.push_str(&format!("# {note}.\n")));
            let text = |key: &str, value: &str| format!("{key} = {}\n", quoted(value));
            out.push_str("[[rules]]\n");
            out.push_str(&text("name", &rule.name));
            out.push_str(&text("severity", rule.severity.as_str()));
            out.push_str(&text("when", &rule.when));
            if !rule.on.is_empty() {
                let pairs = rule.on.iter().map(|(key, value)| format!("{} = {}", quoted(key), quoted(value)));
                out.push_str(&format!("on = {{ {} }}\n", pairs.collect::<Vec<_>>().join(", ")));
            }
            for (key, value) in [("title", &rule.title), ("note", &rule.note), ("link", &rule.link)] {
                value.iter().for_each(|value| out.push_str(&text(key, value)));
            }
        }
        out
    }

    /// Refused rules, a line each: `FILE:12: NAME: why`.
    pub fn refusals(&self, file: &str) -> String {
        let said = |one: &NotImported| {
            let name = if one.name.is_empty() { String::new() } else { format!("{}: ", one.name) };
            format!("{file}:{}: {name}{}\n", one.line, one.why)
        };
        self.refused.iter().map(said).collect()
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Translates a rule file of Prometheus or its operator (`spec`, `groups`). A rule without an exact equivalent is
/// refused, with its line and the reason.
pub fn import(text: &str, catalog: &Catalog) -> Imported {
    let mut all = Imported::default();
    let mut refuse = |line: usize, name: &str, why: String| {
        all.refused.push(NotImported { line, name: clean(name, MAX_TITLE_BYTES, false), why: clean(&why, 500, false) });
    };
    if text.len() > MAX_FILE_BYTES {
        refuse(1, "", format!("the file has more than {}", size(MAX_FILE_BYTES as u64)));
        return all;
    }
    let documents = match documents(text) {
        Ok(documents) => documents,
        Err((line, why)) => {
            refuse(line, "", why);
            return all;
        }
    };
    let (mut translator, mut names, mut rules) = (Translator::new(catalog), Names::default(), Vec::new());
    let (mut seen, mut count) = (false, 0);
    'all: for document in &documents {
        let groups = document.get("groups").or_else(|| document.get("spec")?.get("groups"));
        for group in groups.iter().flat_map(|groups| groups.list()) {
            seen = true;
            for node in group.get("rules").iter().flat_map(|rules| rules.list()) {
                if count == MAX_RULES {
                    refuse(node.line, "", format!("the file has more than {MAX_RULES} rules; split it into several"));
                    break 'all;
                }
                count += 1;
                let name = node.get("alert").and_then(Node::text).unwrap_or_default();
                match rule(node, catalog, &mut translator, &mut names) {
                    Ok(translated) => rules.push(translated),
                    Err(why) => refuse(node.line, name, why),
                }
            }
        }
    }
    if !seen {
        refuse(1, "", "the file has no `groups` of rules".into());
    }
    all.rules = rules;
    all
}

fn rule(
    node: &Node,
    catalog: &Catalog,
    translator: &mut Translator,
    names: &mut Names,
) -> Result<(Rule, Vec<String>), String> {
    if node.get("record").is_some() {
        return Err("a recording rule stores a computed series; here a rule watches a measured one".into());
    }
    let field = |key: &str| node.get(key).and_then(Node::text);
    let (Some(name), Some(expr)) = (field("alert"), field("expr")) else {
        return Err("a rule has `alert` and `expr`".into());
    };
    let seconds = |key: &str| match field(key) {
        None => Ok(None),
        Some(text) => {
            let seconds = promql::duration(text).filter(|seconds| *seconds <= f64::from(MAX_DURATION));
            seconds
                .map(|seconds| Some(seconds.ceil() as u32))
                .ok_or_else(|| format!("{key}: a duration is at most 7d here"))
        }
    };
    let (hold, keep) = (seconds("for")?.unwrap_or(0), seconds("keep_firing_for")?.filter(|keep| *keep > 0));
    let translated = translator.rule(&promql::parse(expr)?, hold, keep)?;
    let mut notes = translated.notes;
    let text = |kind: &str, key: &str| node.get(kind).and_then(|all| all.get(key)).and_then(Node::text);
    let severity = match text("labels", "severity").unwrap_or("warning").to_ascii_lowercase().as_str() {
        "critical" | "page" | "error" | "emergency" | "fatal" => AlertSeverity::Critical,
        "info" | "none" | "notice" | "debug" => AlertSeverity::Info,
        _ => AlertSeverity::Warning,
    };
    let mut filled = |key: &str, most: usize, lines: bool| {
        let text = text("annotations", key)?;
        match placeholders(text) {
            Some(text) => Some(clean(&text, most, lines)).filter(|text| !text.is_empty()),
            None => {
                notes.push(format!("the {key} uses a template function and was left out"));
                None
            }
        }
    };
    let title = filled("summary", MAX_TITLE_BYTES, false);
    let note = filled("description", MAX_TEXT_BYTES, true);
    let link = text("annotations", "runbook_url").filter(|link| link.starts_with("https://")).map(String::from);
    let mut rule = Rule {
        name: names.unique(&clean(name, MAX_TITLE_BYTES - 8, false)),
        severity,
        when: translated.when,
        on: translated.on,
        title,
        note,
        link,
        resolved: true,
        quiet: true,
        enabled: true,
        ..Rule::default()
    };
    if rule.link.is_some() && check(&rule, catalog).is_err_and(|why| why.starts_with("link")) {
        rule.link = None;
    }
    let condition = check(&rule, catalog);
    let condition = condition.inspect_err(|_| names.release(&rule.name))?;
    rule.when = condition.to_string();
    Ok((rule, notes))
}

/// Names of the rules of a file, and the next number for a repeated name.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    /// A name that no other rule of the file has.
    fn unique(&mut self, name: &str) -> String {
        let first = self.0.get(name).copied().unwrap_or(1);
        let numbered = |n: usize| if n == 1 { name.to_string() } else { format!("{name} {n}") };
        let n = (first..).find(|n| !self.0.contains_key(&numbered(*n))).unwrap_or(first);
        self.0.insert(name.into(), n + 1);
        self.0.entry(numbered(n)).or_insert(2);
        numbered(n)
    }

    /// Frees the name of a rule that was refused.
    fn release(&mut self, name: &str) {
        self.0.remove(name);
    }
}

/// A Prometheus template with our placeholders; None where it does more than name a value.
fn placeholders(text: &str) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    let braces = |text: &str| text.replace('{', "{{");
    while let Some((before, behind)) = rest.split_once("{{") {
        let (inner, after) = behind.split_once("}}")?;
        out.push_str(&braces(before));
        let inner = inner.trim().trim_matches('-').trim();
        // Number formats are not translated.
        let value = inner.split('|').next().unwrap_or_default().trim();
        let value = value.strip_prefix("printf").map_or(value, |rest| rest.rsplit(' ').next().unwrap_or_default());
        out.push_str(match value {
            "$value" | ".Value" => "{value}",
            _ => match value.strip_prefix("$labels.").or_else(|| value.strip_prefix(".Labels."))? {
                "instance" | "nodename" | "source" | "node" | "Hostname" | "hostname" => "{source}",
                "gpu" | "GPU" => "{gpu}",
                "device" | "mountpoint" | "name" | "chip" | "sensor" => "{subject}",
                "alertname" => "{rule}",
                "severity" => "{severity}",
                _ => return None,
            },
        });
        rest = after;
    }
    out.push_str(&braces(rest));
    Some(out)
}

#[cfg(test)]
mod tests;
