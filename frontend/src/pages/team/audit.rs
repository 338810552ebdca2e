//! Who did what.

use super::frame::Card;
use super::list::{Cell, Line, List};
use crate::access::Access;
use crate::fetch::Json;
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;

/// Rows that are asked for at once.
const PAGE: usize = 100;

/// What the log is searched for.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sought {
    who: String,
    action: String,
    from: &'static str,
}

/// Spans to choose from, in seconds as text, and in words.
const SPANS: [(&str, &str); 4] = [("", "all"), ("86400", "a day"), ("604800", "7 days"), ("2592000", "30 days")];

/// The page.
#[component]
pub fn AuditPage() -> impl IntoView {
    let access = expect_context::<Access>();
    let sought = RwSignal::new(Sought::default());
    let rows = RwSignal::new(Vec::<Line>::new());
    let (more, known, wrong) = (RwSignal::new(false), RwSignal::new(false), RwSignal::new(String::new()));
    let unwritten = RwSignal::new(0_u64);
    // The newest question; answers to older ones are dropped.
    let asked = StoredValue::new(0u32);
    let ask = move |before: Option<String>| {
        let Some(team) = untrack(|| access.team()) else { return };
        let sought = sought.get_untracked();
        let escaped = |text: &str| String::from(js_sys::encode_uri_component(text.trim()));
        let mut path = format!("api/v1/audit?team={}&limit={PAGE}", team.id);
        for (name, value) in [("who", &sought.who), ("action", &sought.action)] {
            if !value.trim().is_empty() {
                path += &format!("&{name}={}", escaped(value));
            }
        }
        if let Ok(seconds) = sought.from.parse::<i64>() {
            path += &format!("&from={}", crate::browser::now() / 1_000 - seconds);
        }
        if let Some(id) = &before {
            path += &format!("&before={id}");
        }
        let number = asked.with_value(|n| n + 1);
        asked.set_value(number);
        let adds = before.is_some();
        access.ask("GET", path, Vec::new(), move |answer| {
            if asked.try_get_value() != Some(number) {
                return;
            }
            known.set(true);
            wrong.set(if answer.is_ok() { String::new() } else { answer.problem() });
            let read: Vec<Line> = answer.body.get("entries").list().iter().map(entry).collect();
            unwritten.set(answer.body.get("unwritten").number().unwrap_or(0.0) as u64);
            more.set(answer.body.get("more").is_true());
            rows.update(|rows| match adds {
                true => rows.extend(read),
                false => *rows = read,
            });
        });
    };
    Effect::new(move || {
        access.session.track();
        sought.track();
        ask(None);
    });
    let older = move |_| ask(rows.with_untracked(|rows| rows.last().map(|row| row.id.clone())));
    let field = move |name: &'static str, label: &'static str, put: fn(&mut Sought, String)| {
        view! {
            <label class="filter small">
                <input
                    type="search"
                    name=name
                    aria-label=label
                    placeholder=label
                    autocomplete="off"
                    spellcheck="false"
                    on:change=move |event| sought.update(|s| put(s, event_target_value(&event)))
                />
            </label>
        }
    };
    let spans = move || {
        let choose = move |event| {
            let value: String = event_target_value(&event);
            sought.update(|s| s.from = SPANS.iter().find(|(known, _)| *known == value).map_or("", |(known, _)| known));
        };
        view! {
            <select name="from" aria-label="Since" on:change=choose>
                {SPANS.map(|(value, words)| view! { <option value=value>{words}</option> }).into_iter().collect_view()}
            </select>
        }
    };
    let end = move || {
        view! {
            {field("who", "who", |s, value| s.who = value)}
            {field("action", "action, such as key", |s, value| s.action = value)}
            {spans()}
        }
    };
    view! {
        <If when=flag(move || access.team().is_none())>
            <p class="say calm">"Only an admin can read the audit log."</p>
        </If>
        <If when=flag(move || access.team().is_some())>
            <Card title="Audit" note=text(|| "all changes; nobody can edit it") wrong end=end>
                <If when=flag(move || unwritten.get() > 0)>
                    <p class="say" data-say="unwritten">
                        {text(move || {
                            let count = unwritten.get();
                            format!("{count} more failed sign-ins are not in this log: their network had too many.")
                        })}
                    </p>
                </If>
                <List
                    id="audit"
                    label="Table of actions"
                    heads=&["time", "actor", "action", "target", "from", "result"]
                    rows
                    known
                    empty="No action matches."
                    act=Callback::new(|_| {})
                />
                <If when=flag(move || more.get())>
                    <button class="more-rows" data-do="older" on:click=older>"Show older"</button>
                </If>
            </Card>
        </If>
    }
}

fn entry(entry: &Json) -> Line {
    let text = |name: &str| entry.get(name).text();
    let change = match (entry.get("before").maybe(), entry.get("after").maybe()) {
        (Some(before), Some(after)) => format!(": {before} to {after}"),
        (None, Some(after)) => format!(": {after}"),
        (Some(before), None) => format!(": was {before}"),
        (None, None) => String::new(),
    };
    let result = text("result");
    let cells = vec![
        Cell::At(entry.get("t").number().unwrap_or(0.0) as i64),
        Cell::Name(text("who"), String::new()),
        Cell::Text(text("action")),
        Cell::Text(text("object") + &change),
        Cell::Faint(text("network")),
        if result == "ok" { Cell::Faint(result) } else { Cell::State(false, result) },
    ];
    Line {
        id: entry.get("id").number().map_or(String::new(), |n| n.to_string()),
        name: text("action"),
        cells,
        deeds: vec![],
    }
}
