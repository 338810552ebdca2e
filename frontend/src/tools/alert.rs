//! The draft of a rule over a chart.

use crate::state::Page;
use crate::store::reading;
use leptos::prelude::*;
use shared::catalog::Kind;
use viewer::draft::{Draft, Level, When, first_limit};

/// Initial hold time of a rule over a chart, and the span of a counter's rate, in seconds.
const DEFAULT_HOLD_S: i64 = 120;
const RATE: i64 = 60;

/// The address of the draft; None where the chart has no line that can be watched, or no server could.
pub fn address(page: Page, chart: &str) -> Option<String> {
    let is_served = page.player.with_untracked(Option::is_none) && !page.over.get_untracked();
    let view = page.view_now();
    if !is_served || view.share.is_some() {
        return None;
    }
    let store = page.store.read_value();
    let source = store.source(view.source.as_deref())?;
    let lines = &source.charts.get(chart)?.lines;
    // The rule is about an isolated or highlighted series; without one, about all series of the chart's first metric.
    let named = |id: &&u32| {
        let label = store.catalog.label(&source.defs[**id as usize]);
        view.only.iter().any(|(on, name)| on == chart && *name == label) || view.pin.contains(&label)
    };
    let chosen = lines.iter().find(named);
    let first = chosen.or_else(|| lines.first())?;
    let def = source.defs.get(*first as usize)?;
    let metric = store.catalog.metric(def).filter(|metric| metric.kind != Kind::State)?;
    let rate = (metric.kind == Kind::Counter).then_some(RATE);
    let pattern = match metric.tag.split_once('{').and_then(|(a, rest)| Some((a, rest.split_once('}')?.1))) {
        Some((before, after)) if chosen.is_none() => format!("{before}*{after}"),
        _ => store.catalog.tag(def),
    };
    let same = lines.iter().filter(|id| chosen.is_none_or(|one| one == *id));
    let same = same.filter(|id| source.defs.get(**id as usize).is_some_and(|other| other.metric == def.metric));
    let newest = source.last_t()?;
    let highest = same.filter_map(|id| reading::at(source, &store.catalog, *id, newest)).fold(0.0, f64::max);
    let unit = if rate.is_some() { metric.unit.per_second() } else { metric.unit.base() };
    let wanted = first_limit(highest, metric.range);
    let mut level =
        Level { tag: pattern, rate, above: true, limit: 0.0, unit: String::new(), hold: DEFAULT_HOLD_S, margin: None };
    level.put(wanted, wanted, unit.scale(wanted));
    level.margin = level.margins().get(1).copied();
    let mut draft = Draft::parse("");
    draft.when = When::Level(level);
    if store.index.len() > 1 {
        draft.set_fact("source", &source.info.name);
    }
    Some(page.address_of_draft(&draft.write()))
}
