//! The numbers on top of the fleet.

use super::Crowd;
use crate::panels::fleet::spark::FleetSpark;
use crate::store::fleet::Instant;
use crate::store::fleet::hosts::Totals;
use crate::store::fleet::words;
use crate::widgets::parts::text;
use leptos::prelude::*;
use shared::unit::Unit;

/// Content of a tile.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tile {
    title: &'static str,
    corner: String,
    number: String,
    unit: String,
    note: String,
}

/// A number with its unit; a dash where there is none.
fn scaled(unit: Unit, value: f64) -> (String, String) {
    if !value.is_finite() {
        return ("–".into(), String::new());
    }
    let scale = unit.scale(value);
    (scale.number(value), scale.symbol.to_string())
}

fn busy(totals: &Totals) -> Tile {
    let (known, busy) = totals.busy;
    if totals.gpus == 0 {
        let (number, unit) = scaled(Unit::Percent, totals.cpu);
        return Tile { title: "CPU", corner: "mean of all".into(), number, unit, note: String::new() };
    }
    let mean =
        if totals.busy_mean.is_finite() { format!("{:.0} % on average, ", totals.busy_mean) } else { String::new() };
    Tile {
        title: "GPUs busy",
        corner: format!("of {}", words::thousands(totals.gpus)),
        number: words::thousands(busy),
        unit: String::new(),
        note: format!("{mean}{} idle", words::thousands(known - busy)),
    }
}

fn answer(totals: &Totals) -> Tile {
    let states = words::states(totals);
    Tile {
        title: "Hosts",
        corner: format!("of {}", words::thousands(totals.hosts)),
        number: words::thousands(totals.answer),
        unit: "online".into(),
        note: if states.is_empty() { "all of them".into() } else { format!("◌ {states}") },
    }
}

fn power(totals: &Totals) -> Tile {
    if totals.gpus == 0 {
        let (number, unit) = scaled(Unit::BytesPerSecond, totals.network_in);
        let (out, symbol) = scaled(Unit::BytesPerSecond, totals.network_out);
        return Tile { title: "Network in", corner: "sum".into(), number, unit, note: format!("out {out} {symbol}") };
    }
    let (number, unit) = scaled(Unit::Watts, totals.power);
    let each = totals.power / totals.gpus as f64;
    let note = if each.is_finite() { format!("{each:.0} W per GPU") } else { String::new() };
    Tile { title: "GPU power", corner: "sum".into(), number, unit, note }
}

fn most(totals: &Totals) -> Tile {
    let (title, unit, found) = match &totals.hottest {
        Some(found) => ("Hottest GPU", Unit::Celsius, Some(found)),
        None => ("Fullest memory", Unit::Percent, totals.fullest.as_ref()),
    };
    let (number, symbol) = scaled(unit, found.map_or(f64::NAN, |(v, _)| *v));
    Tile {
        title,
        corner: "of all".into(),
        number,
        unit: symbol,
        note: found.map_or(String::new(), |(_, name)| format!("on {name}")),
    }
}

/// Content of a tile, value of its line, and the value at the line's upper edge.
type TileRow = (fn(&Totals) -> Tile, fn(&Instant) -> f64, Signal<f64>);

/// The row of tiles.
#[component]
pub fn Tiles() -> impl IntoView {
    let crowd = expect_context::<Crowd>();
    let share = Signal::derive(|| 100.0);
    let all = Signal::derive(move || crowd.totals.with(|t| t.hosts as f64));
    let free = Signal::derive(|| f64::NAN);
    let tiles: [TileRow; 4] =
        [(busy, |i| i.busy, share), (answer, |i| i.answer, all), (power, |i| i.power, free), (most, |i| i.most, share)];
    let one = move |(say, of, hi): TileRow| {
        let tile = Memo::new(move |_| crowd.totals.with(say));
        let words = move |of: fn(&Tile) -> &str| text(move || tile.with(|tile| of(tile).to_string()));
        view! {
            <div class="tile">
                <h2><span>{words(|t| t.title)}</span><span class="u corner">{words(|t| &t.corner)}</span></h2>
                <div class="value">
                    <span class="number">{words(|t| &t.number)}</span>" "<span class="u symbol">{words(|t| &t.unit)}</span>
                </div>
                <div class="note">{words(|t| &t.note)}</div>
                <FleetSpark of hi/>
            </div>
        }
    };
    view! { <section class="tiles" aria-label="Now">{tiles.into_iter().map(one).collect_view()}</section> }
}
