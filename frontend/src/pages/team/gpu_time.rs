//! GPU time of the runs of a team, or of a server without accounts: GPU-hours, idle ones, energy and cost.

use super::asked::Polled;
use super::form::{FieldInput, Form, FormDialog};
use super::frame::Card;
use crate::access::Access;
use crate::state::Page;
use crate::widgets::list::List;
use crate::widgets::list::filter::{Choice, options};
use crate::widgets::list::line::{Cell, Line, Mark};
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::answer::usage::{GpuTime, GpuTimeBy, GpuTimeRow};
use shared::json::Number;
use shared::unit::Unit;
use wasm_bindgen::JsValue;

/// Divisions: value in the API, and label.
const BY: [(&str, &str); 5] =
    [("day", "day"), ("month", "month"), ("project", "project"), ("user", "user"), ("run", "run")];
/// Spans: value in the API, and label.
const SPANS: [(&str, &str); 4] = [("-6d", "7 days"), ("-29d", "30 days"), ("-89d", "90 days"), ("-364d", "1 year")];
/// Share of idle GPU-hours from which a row is marked.
const MUCH_IDLE: f64 = 0.3;

/// A value in its unit; a dash for an unknown one.
pub(super) fn written(unit: Unit, value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return "–".into() };
    let scale = unit.scale(value);
    format!("{} {}", scale.number(value), scale.symbol).trim().to_string()
}

fn number(value: Number) -> String {
    written(Unit::Count, Some(value.0))
}

/// A sum, marked where a part of it is unknown.
fn known(value: Option<Number>, is_partial: bool) -> String {
    let least = if is_partial && value.is_some() { "≥ " } else { "" };
    format!("{least}{}", written(Unit::Count, value.map(|value| value.0)))
}

/// The card, with its sums above.
#[component]
pub fn GpuTimeCard() -> impl IntoView {
    let (access, page) = (expect_context::<Access>(), expect_context::<Page>());
    let (by, span) = (RwSignal::new("day".to_string()), RwSignal::new("-29d".to_string()));
    let path = move || {
        let asked = format!("api/v1/usage/runs?by={}&from={}", by.get(), span.get());
        match page.accounts.get() {
            true => access.team_here().map(|team| format!("{asked}&team={}", team.id)),
            false => Some(asked),
        }
    };
    let asked = Polled::<GpuTime>::follow(access, path);
    let rows = Memo::new(move |_| asked.read(|told| lines(page, told)));
    let csv = text(move || path().unwrap_or_default() + "&format=csv");
    let dates = text(move || asked.read(|told| format!("{} to {} (UTC)", told.from, told.to)));
    let form = RwSignal::new(None::<Form>);
    let limit = move |_| {
        let team = access.team().map(|team| team.id);
        let present = asked.read(|told| told.limit.as_ref().map(|one| one.limit));
        form.set(team.map(|team| limit_form(&team, present)));
    };
    let end = move || {
        view! {
            <If when=flag(move || access.team().is_some())>
                <button class="btn" data-do="gpu-time-limit" on:click=limit>"Monthly limit…"</button>
            </If>
            <Choice label="By" deed="gpu-time-by" options=options(&BY) is=by choose=Callback::new(move |value| by.set(value))/>
            <Choice label="Span" deed="gpu-time-span" options=options(&SPANS) is=span choose=Callback::new(move |value| span.set(value))/>
            <a class="btn" data-do="gpu-time-csv" href=csv download="gpu-time.csv">"Download CSV"</a>
        }
    };
    let is_partial = flag(move || asked.read(|told| told.total.partial));
    view! {
        <Totals asked/>
        <Card title="GPU time" note=dates wrong=asked.wrong end=end>
            <If when=is_partial>
                <p class="say" data-say="partial">
                    "Sums with ≥ are too low: the energy of GPUs or the price of a part of the GPU-hours is unknown."
                </p>
            </If>
            <List
                id="gpu-time"
                label="Table of GPU time"
                heads=&["of", ">runs", ">reserved", "GPU-hours", "idle", ">GPU energy, kWh", ">cost"]
                rows
                known=flag(move || asked.known())
                empty="No run held or reserved a GPU in this span."
            />
        </Card>
        <FormDialog id="limit-of-gpu-time" form done=Callback::new(move |_| asked.ask())/>
    }
}

/// The form that changes the limit of a team.
fn limit_form(team: &str, present: Option<u64>) -> Form {
    let present = present.map_or_else(String::new, |hours| hours.to_string());
    let words =
        "At 85 % and at 100 % an alert fires. Jobs continue above the limit. Leave it empty to remove the limit.";
    Form::ask("gpu-hours", "Monthly limit of GPU-hours".into(), words, "PATCH", format!("api/v1/teams/{team}"))
        .with("Save", vec![("gpu_hours", "GPU-hours in a month (UTC)", FieldInput::Text(present))])
        .writing(|typed| {
            let typed = typed.value_of("gpu_hours");
            let hours = if typed.is_empty() { Ok(0) } else { typed.parse::<u32>() };
            let hours = hours.map_err(|_| "The limit is a whole number of hours, such as 1000.".to_string())?;
            Ok(vec![("gpu_hours", JsValue::from(hours))])
        })
}

/// The sums of the span, and the limit of the team.
#[component]
fn Totals(asked: Polled<GpuTime>) -> impl IntoView {
    let tile = move |id: &'static str, title: &'static str, value: fn(&GpuTime) -> String| {
        view! {
            <div class="tile" data-tile=id>
                <h2><span>{title}</span></h2>
                <div class="value"><span class="number">{text(move || asked.read(value))}</span></div>
            </div>
        }
    };
    view! {
        <section class="tiles" aria-label="Total of GPU time">
            {tile("gpu-hours", "GPU-hours", |told| number(told.total.gpu_hours))}
            <If when=flag(move || asked.read(|told| told.total.reserved_gpu_hours.is_some()))>
                {tile("reserved", "Reserved GPU-hours", |told| {
                    told.total.reserved_gpu_hours.map_or_else(String::new, number)
                })}
            </If>
            {tile("idle", "Idle GPU-hours", |told| number(told.total.idle_gpu_hours))}
            {tile("energy", "Energy of GPUs, kWh", |told| known(told.total.energy_kwh, told.total.partial))}
            <If when=flag(move || asked.read(|told| told.currency.is_some()))>
                {tile("cost", "Cost", |told| cost(&told.total, told.currency.as_deref()))}
            </If>
            <If when=flag(move || asked.read(|told| told.limit.is_some()))>
                {tile("limit", "Used this month", |told| {
                    let limit = told.limit.as_ref();
                    limit.map(|one| format!("{} of {}", number(one.used), number(Number(one.limit as f64)))).unwrap_or_default()
                })}
            </If>
        </section>
    }
}

fn cost(row: &GpuTimeRow, currency: Option<&str>) -> String {
    let amount = known(row.cost, row.partial);
    if row.cost.is_some() { format!("{amount} {}", currency.unwrap_or_default()) } else { amount }
}

/// The rows of the table, the newest day or month first. Bars are shares of the largest row.
fn lines(page: Page, told: &GpuTime) -> Vec<Line> {
    let most = told.rows.iter().map(|row| row.gpu_hours.0).fold(0.0, f64::max);
    let line = |row: &GpuTimeRow| {
        let name = match row.name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => name.to_string(),
            None if row.of.is_empty() => "without a name".into(),
            None => row.of.clone(),
        };
        let head = match told.by {
            // Deleted runs are one row without an ID.
            GpuTimeBy::Run if !row.of.is_empty() => {
                let to = page.address_of_runs(std::slice::from_ref(&row.of));
                Cell::Link(to, name.clone(), row.of.clone(), Mark::default())
            }
            _ => Cell::Name(name.clone(), String::new()),
        };
        let held = (most > 0.0).then(|| row.gpu_hours.0 / most);
        let idle = (row.measured_gpu_hours.0 > 0.0).then(|| row.idle_gpu_hours.0 / row.measured_gpu_hours.0);
        let cells = vec![
            head,
            Cell::Number(row.runs.to_string()),
            Cell::Number(row.reserved_gpu_hours.map_or_else(String::new, number)),
            Cell::Share(held, number(row.gpu_hours), false),
            Cell::Share(idle, number(row.idle_gpu_hours), idle.is_some_and(|idle| idle >= MUCH_IDLE)),
            Cell::Number(known(row.energy_kwh, row.partial)),
            Cell::Number(cost(row, told.currency.as_deref())),
        ];
        Line { id: row.of.clone(), name, cells, deeds: Vec::new() }
    };
    let mut lines: Vec<Line> = told.rows.iter().map(line).collect();
    if told.by.is_of_time() {
        lines.reverse();
    }
    lines
}
