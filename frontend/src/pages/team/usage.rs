//! Usage of a team: GPU time, and the data of the hub by day, by machine and by key.

use super::asked::Polled;
use super::frame::Card;
use super::gpu_time::{GpuTimeCard, written};
use crate::access::Access;
use crate::widgets::list::List;
use crate::widgets::list::filter::{Choice, options};
use crate::widgets::list::line::{Cell, Line};
use crate::widgets::parts::{If, flag, text};
use charts::order;
use leptos::prelude::*;
use shared::audit::{Usage, UsageRow};
use shared::unit::Unit;

/// A measure: its name in the response, its label, its unit, and whether days are summed (else the largest counts).
type Measure = (&'static str, &'static str, Unit, bool);

const MEASURES: [Measure; 10] = [
    ("samples", "Samples", Unit::Count, true),
    ("bytes_in", "Received", Unit::Bytes, true),
    ("bytes_disk", "On disk", Unit::Bytes, false),
    ("series", "Series", Unit::Count, false),
    ("queries", "Queries", Unit::Count, true),
    ("viewer_hours", "Viewer-hours", Unit::Count, true),
    ("viewers_peak", "Peak viewers", Unit::Count, false),
    ("bytes_out", "Sent", Unit::Bytes, true),
    ("late", "Late", Unit::Count, true),
    ("dropped", "Dropped", Unit::Count, true),
];

/// Number of them, from the first on, with a tile.
const TILES: usize = 6;

/// Groupings of rows: value in the API, and label.
const BY: [(&str, &str); 3] = [("day", "day"), ("source", "machine"), ("key", "key")];

fn describe_left_out(left_out: u64) -> String {
    let left_out = left_out as f64;
    let count = Unit::Count.scale(left_out).number(left_out);
    format!(
        "{count} rows were dropped since the hub started because its database was unreachable. These sums are too \
        small."
    )
}

/// A value of several rows together.
fn together<'a>(rows: impl IntoIterator<Item = &'a UsageRow>, (name, _, _, adds): Measure) -> Option<f64> {
    let values = rows.into_iter().filter_map(|row| row.values.get(name).copied());
    values.reduce(|a, b| if adds { a + b } else { a.max(b) })
}

/// The page. A server without accounts has GPU time alone.
#[component]
pub fn UsagePage() -> impl IntoView {
    let access = expect_context::<Access>();
    view! {
        <GpuTimeCard/>
        <If when=flag(move || access.is_in())>
            <DataUsage/>
        </If>
    }
}

/// Data that the hub receives, stores and sends.
#[component]
fn DataUsage() -> impl IntoView {
    let access = expect_context::<Access>();
    let by = RwSignal::new("day".to_string());
    let path = move |by: &str| access.team_here().map(|team| format!("api/v1/usage?team={}&by={by}", team.id));
    let days = Polled::<Usage>::follow(access, move || path("day"));
    let asked = Polled::<Usage>::follow(access, move || path(&by.get()));
    let rows = Memo::new(move |_| asked.read(|told| lines(&told.usage, &by.get())));
    let tile = move |measure: Measure| {
        let value = text(move || written(measure.2, days.read(|told| together(&told.usage, measure))));
        view! {
            <div class="tile">
                <h2><span>{measure.1}</span></h2>
                <div class="value"><span class="number">{value}</span></div>
            </div>
        }
    };
    let days_of = text(move || {
        let n = days.read(|told| told.usage.len());
        if n == 1 { "one day".to_string() } else { format!("{n} days") }
    });
    let left_out = move || days.read(|told| told.left_out);
    let csv = text(move || path(&by.get()).unwrap_or_default() + "&format=csv");
    let end = move || {
        view! {
            <Choice label="By" deed="by" options=options(&BY) is=by choose=Callback::new(move |value| by.set(value))/>
            <a class="btn" data-do="csv" href=csv download="usage.csv">"Download CSV"</a>
        }
    };
    view! {
        <section class="tiles" aria-label="Total of data">{MEASURES[..TILES].iter().map(|known| tile(*known)).collect_view()}</section>
        <Card title="Data" note=days_of wrong=asked.wrong end=end>
            <If when=flag(move || left_out() > 0)>
                <p class="say" data-say="left-out">{text(move || describe_left_out(left_out()))}</p>
            </If>
            <List
                id="usage"
                label="Table of data"
                heads=&[
                    "of",
                    ">samples",
                    ">received",
                    ">on disk",
                    ">series",
                    ">queries",
                    ">viewer-hours",
                    ">peak viewers",
                    ">sent",
                    ">late",
                    ">dropped",
                ]
                rows
                known=flag(move || asked.known())
                empty="There is no usage yet: it is updated every minute."
            />
        </Card>
    }
}

/// The rows of the table: a day, machine or key each. The largest comes first, for days the newest.
fn lines(rows: &[UsageRow], by: &str) -> Vec<Line> {
    let mut groups: Vec<(&str, Vec<&UsageRow>)> = Vec::new();
    for row in rows {
        let name = if by == "day" { &row.day } else { &row.name };
        match groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, all)) => all.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    match by {
        "day" => groups.reverse(),
        _ => order::sort_by_key(&mut groups, |(_, rows)| {
            -(together(rows.iter().copied(), MEASURES[0]).unwrap_or(0.0) as i64)
        }),
    }
    let line = |(name, rows): (&str, Vec<&UsageRow>)| {
        let values = MEASURES.map(|measure| Cell::Number(written(measure.2, together(rows.iter().copied(), measure))));
        let cells = [Cell::Name(name.into(), String::new())].into_iter().chain(values).collect();
        Line { id: name.into(), name: name.into(), cells, deeds: Vec::new() }
    };
    groups.into_iter().map(line).collect()
}
