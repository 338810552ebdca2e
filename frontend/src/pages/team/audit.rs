//! The audit log.

use super::frame::Card;
use crate::access::Access;
use crate::widgets::list::filter::Filter;
use crate::widgets::list::line::{Cell, Line};
use crate::widgets::list::{List, More};
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::audit::{AuditEntry, AuditLog};

/// Number of rows in one request.
const PAGE: usize = 100;

/// The search of the log.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sought {
    who: String,
    action: String,
    from: &'static str,
}

impl Sought {
    /// The path of the newest rows of a team that are older than the row `before`.
    fn path(&self, team: &str, before: Option<&str>) -> String {
        let escaped = |text: &str| String::from(js_sys::encode_uri_component(text.trim()));
        let mut path = format!("api/v1/audit?team={team}&limit={PAGE}");
        for (name, value) in [("who", &self.who), ("action", &self.action)] {
            if !value.trim().is_empty() {
                path += &format!("&{name}={}", escaped(value));
            }
        }
        if let Ok(seconds) = self.from.parse::<i64>() {
            path += &format!("&from={}", crate::browser::now() / 1_000 - seconds);
        }
        if let Some(id) = before {
            path += &format!("&before={id}");
        }
        path
    }
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
    // Number of the newest request; responses to older ones are dropped.
    let asked = StoredValue::new(0u32);
    let ask = move |before: Option<String>| {
        let Some(team) = untrack(|| access.team()) else { return };
        let path = sought.with_untracked(|sought| sought.path(&team.id, before.as_deref()));
        let number = asked.with_value(|n| n + 1);
        asked.set_value(number);
        let adds = before.is_some();
        access.ask("GET", path, Vec::new(), move |answer| {
            if asked.try_get_value() != Some(number) {
                return;
            }
            known.set(true);
            let (log, why) = match answer.read::<AuditLog>() {
                Ok(log) => (log, String::new()),
                Err(why) => (AuditLog::default(), why),
            };
            wrong.set(why);
            unwritten.set(log.unwritten.unwrap_or(0));
            more.set(log.more);
            let read = log.entries.into_iter().map(entry);
            rows.update(|rows| match adds {
                true => rows.extend(read),
                false => *rows = read.collect(),
            });
        });
    };
    Effect::new(move || {
        access.session.track();
        sought.track();
        ask(None);
    });
    let older = move |()| ask(rows.with_untracked(|rows| rows.last().map(|row| row.id.clone())));
    let end = move || view! { <Search sought/> };
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
                />
                <More words=text(move || if more.get() { "Show older" } else { "" }) deed="older" press=Callback::new(older)/>
            </Card>
        </If>
    }
}

/// The search form of the log: an actor, an action, and a span.
#[component]
fn Search(sought: RwSignal<Sought>) -> impl IntoView {
    let field = move |name: &'static str, label: &'static str, of: fn(&mut Sought) -> &mut String| {
        let value = text(move || sought.with(|sought| of(&mut sought.clone()).clone()));
        let put = Callback::new(move |typed| sought.update(|sought| *of(sought) = typed));
        view! { <Filter name main=false label hint=label value put/> }
    };
    let choose = move |event| {
        let value: String = event_target_value(&event);
        sought.update(|s| s.from = SPANS.iter().find(|(known, _)| *known == value).map_or("", |(known, _)| known));
    };
    view! {
        {field("who", "who", |sought| &mut sought.who)}
        {field("action", "action, such as key", |sought| &mut sought.action)}
        <select name="from" aria-label="Since" on:change=choose>
            {SPANS.map(|(value, words)| view! { <option value=value>{words}</option> }).into_iter().collect_view()}
        </select>
    }
}

fn entry(entry: AuditEntry) -> Line {
    let change = match (entry.before, entry.after) {
        (Some(before), Some(after)) => format!(": {before} to {after}"),
        (None, Some(after)) => format!(": {after}"),
        (Some(before), None) => format!(": was {before}"),
        (None, None) => String::new(),
    };
    let result = entry.result;
    let cells = vec![
        Cell::At(entry.t),
        Cell::Name(entry.who, String::new()),
        Cell::Text(entry.action.clone()),
        Cell::Text(entry.object + &change),
        Cell::Faint(entry.network),
        if result == "ok" { Cell::Faint(result) } else { Cell::State(false, result) },
    ];
    Line { id: entry.id.to_string(), name: entry.action, cells, deeds: vec![] }
}
