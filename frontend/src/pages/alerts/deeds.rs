//! Actions on alerts and rules by keys and buttons, and their requests.

use super::words;
use crate::fetch::{self, FetchAnswer, Json};
use crate::state::Page;
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use shared::alert::Rule;
use shared::catalog::Kind;
use shared::unit::Unit;
use viewer::draft::{Draft, Level, When};
use wasm_bindgen::{JsCast, JsValue};

/// The draft of a rule from nothing: a share of something that each machine has.
pub fn new_rule(page: Page) -> String {
    let tag = page.store.with_value(|store| {
        let fits =
            |m: &&shared::catalog::Metric| m.unit == Unit::Percent && m.kind == Kind::Gauge && !m.tag.contains('{');
        store.catalog.metrics.iter().find(|m| fits(m) && !m.title.is_empty()).map(|m| m.tag.clone())
    });
    let when = match tag {
        None => When::Words("run crashed".into()),
        Some(tag) => {
            let unit = Unit::Percent.symbol().to_string();
            When::Level(Level { tag, rate: None, above: true, limit: 90.0, unit, hold: 300, margin: Some(5.0) })
        }
    };
    Draft { when, ..Draft::parse("") }.write()
}

/// Whether a pressed key is for the page: not typed into a field, and no dialog is open.
pub fn is_free(page: Page, form: bool, event: &KeyboardEvent) -> bool {
    let typing = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    let typing = typing.is_some_and(|element| matches!(element.tag_name().as_str(), "INPUT" | "SELECT" | "TEXTAREA"));
    let held = event.ctrl_key() || event.meta_key() || event.alt_key();
    !typing && !form && !held && page.dialog.with_untracked(Option::is_none)
}

/// The request body for a rule.
pub fn sent(rule: &Rule) -> Vec<(&'static str, JsValue)> {
    let list = |all: &[String]| -> JsValue { all.iter().map(JsValue::from).collect::<js_sys::Array>().into() };
    let mut fields: Vec<(&'static str, JsValue)> = vec![
        ("name", rule.name.as_str().into()),
        ("severity", rule.severity.as_str().into()),
        ("when", rule.when.as_str().into()),
        ("on", Json::object(rule.on.iter().map(|(name, value)| (name.as_str(), value.as_str().into())))),
        ("resolved", rule.resolved.into()),
        ("quiet", rule.quiet.into()),
        ("enabled", rule.enabled.into()),
        ("version", (rule.version as f64).into()),
    ];
    fields.extend(rule.to.as_ref().map(|to| ("to", list(to))));
    let texts = [("title", &rule.title), ("note", &rule.note), ("link", &rule.link), ("repeat", &rule.repeat)];
    for (name, value) in texts {
        fields.extend(value.iter().map(|value| (name, value.as_str().into())));
    }
    fields
}

/// Acknowledges an alert; `wrong` gets the server's error.
pub fn acknowledge(page: Page, id: &str, wrong: RwSignal<String>) {
    fetch::ask("POST", &format!("{}/ack", words::of_id("api/v1/alerts", id)), None, move |answer: FetchAnswer| {
        // The page may have gone.
        let _ = wrong.try_set(if answer.is_ok() { String::new() } else { answer.problem() });
        page.alert_changes.update(|n| *n += 1);
    });
}
