//! The picture as lines, for scripts, logs and screen readers, and as JSON.

use crate::board::{trouble, words};
use crate::chart::Frame;
use crate::model::Model;
use crate::palette::Palette;
use crate::{runs, table};
use charts::axis;
use serde_json::{Map, Value, json};
use shared::controls::escaped_json;
use viewer::store::{plan::HEAT_SUFFIX, reading, trace};

/// Maximum number of processes in the output.
const MAX_PROCESSES: usize = 20;
/// Dots of a chart that is only reduced for its newest values.
const DOTS: i64 = 60;

/// The picture in lines of at most `width` letters. `offset` is local time minus UTC, ms. `rows` is the maximum number
/// of processes.
pub fn lines(model: &mut Model, palette: Palette, offset: i64, width: usize, rows: usize) -> String {
    let at = model.span().1;
    let mut all = Vec::new();
    let name = model.entry().map_or("Watchglass", |entry| entry.name.as_str());
    let simulated = model.store.hello.as_ref().is_some_and(|hello| hello.simulated);
    let time = format!("{} {}", axis::date((at + offset).div_euclid(86_400_000)), axis::clock(at + offset, true));
    all.push(format!("{name}, {time}{}", if simulated { ", simulated" } else { "" }));
    all.extend(trouble(model));
    for tile in words(model) {
        let [title, corner] = tile.title;
        let corner = if corner.is_empty() { String::new() } else { format!(" ({corner})") };
        let note = if tile.note.is_empty() { String::new() } else { format!(", {}", tile.note) };
        all.push(format!("{title}{corner}: {} {}{note}", tile.number[0], tile.number[1]).replace(" ,", ","));
    }
    all.extend(devices(model, palette));
    let runs = runs::texts(model, palette);
    if !runs.is_empty() {
        all.push(String::new());
        all.extend(runs);
    }
    if !model.processes.rows.is_empty() && rows > 0 {
        all.push(String::new());
        let lines = &model.listed[..model.listed.len().min(rows).min(MAX_PROCESSES)];
        all.extend(table::texts(model, lines, width).iter().map(|text| text.replace(['↓', '↑'], " ")));
    }
    let mut text: String = all.iter().map(|line| palette.text(line).trim_end().to_string() + "\n").collect();
    text.push('\n');
    text
}

/// A table of devices of one kind: a line each, with their newest values.
fn devices(model: &mut Model, palette: Palette) -> Vec<String> {
    let top: Vec<_> = model.plan.top.iter().filter(|panel| !panel.id.ends_with(HEAT_SUFFIX)).cloned().collect();
    top.iter().for_each(|panel| model.reduce(&panel.id, DOTS));
    let frame = Frame { model, palette, zone: axis::Zone::UTC };
    let Some(lead) = model.plan.top.first() else { return Vec::new() };
    let lead = lead.id.trim_end_matches(HEAT_SUFFIX);
    let alike = frame.devices(lead);
    let (Some(own), Some((_, 2..))) = (frame.reading(lead), alike) else { return Vec::new() };
    let instance = |id: u32| model.shown().and_then(|s| s.defs.get(id as usize)).map(|def| def.instance.clone());
    let columns: Vec<_> = top
        .iter()
        .filter(|panel| frame.devices(&panel.id) == alike)
        .filter_map(|panel| Some((panel, frame.reading(&panel.id)?)))
        .collect();
    let wide = own.reduced.names.iter().map(|name| name.full.chars().count()).max().unwrap_or(0);
    let heads: Vec<String> =
        columns.iter().map(|(panel, r)| format!("{} {}", panel.title, r.axis.scale.symbol)).collect();
    let mut all = vec![String::new(), format!("{:wide$}  {}", "", heads.join("  "))];
    for (i, name) in own.reduced.names.iter().enumerate() {
        let id = instance(own.reduced.ids[i]);
        let cells = columns.iter().zip(&heads).map(|((_, column), head)| {
            let place = column.reduced.ids.iter().position(|other| instance(*other) == id);
            let value = place.and_then(|place| column.values[place]);
            let text = value.map_or("–".to_string(), |v| column.axis.number(v));
            format!("{text:>width$}", width = head.chars().count())
        });
        let cells: Vec<String> = cells.collect();
        all.push(format!("{:<wide$}  {}", name.full, cells.join("  ")));
    }
    all
}

/// The same as a line of JSON. Control characters are escaped, because process names may contain them and a terminal
/// may read the output.
pub fn json_line(model: &mut Model) -> String {
    escaped_json(json(model).to_string()) + "\n"
}

/// The picture as one object: the machine, the tiles, the newest value of every series in base units, and processes.
pub fn json(model: &mut Model) -> Value {
    let at = model.span().1;
    let tiles: Vec<Value> = words(model)
        .into_iter()
        .map(|tile| {
            let (value, of, unit) = tile.value;
            json!({"id": tile.id, "title": tile.title[0], "value": value, "of": of, "unit": unit, "note": tile.note})
        })
        .collect();
    let trouble = trouble(model).map(|text| text.trim_start_matches(viewer::tile::MISSING_PREFIX).to_string());
    let (Some(entry), Some(source)) = (model.entry(), model.shown()) else { return Value::Null };
    let catalog = &model.store.catalog;
    let values = source.defs.iter().enumerate().filter_map(|(id, def)| {
        let value = reading::at(source, catalog, id as u32, at)?;
        let unit = trace::unit(catalog.metric(def)?).name();
        Some((catalog.tag(def), json!({"value": value, "unit": unit})))
    });
    let facts: Map<String, Value> =
        source.info.facts.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    let processes: Vec<Value> = model.listed[..model.listed.len().min(MAX_PROCESSES)]
        .iter()
        .map(|line| {
            let p = &line.process;
            json!({
                "pid": p.pid, "user": p.user, "name": p.name, "cpu_percent": p.cpu, "rss_bytes": p.rss,
                "gpu_memory_bytes": p.gpu_memory, "gpus": p.gpus, "threads": p.threads, "args": p.args,
                "started": p.started.map(|t| t as f64 / 1000.0), "state": p.state,
                "read_bytes_per_second": p.read, "written_bytes_per_second": p.written,
            })
        })
        .collect();
    let runs: Vec<Value> = model
        .runs
        .iter()
        .flatten()
        .map(|run| {
            json!({
                "id": run.id, "name": run.name, "state": run.state.name(), "sentence": run.sentence,
                "began": run.began as f64 / 1000.0, "ended": run.ended.map(|t| t as f64 / 1000.0),
                "ranks": run.ranks, "gpu_hours": run.gpu_hours, "gpu_utilization_percent": run.gpu_utilization,
            })
        })
        .collect();
    json!({
        "source": entry.name,
        "state": entry.state.as_str(),
        "t": at as f64 / 1000.0,
        "simulated": model.store.hello.as_ref().is_some_and(|hello| hello.simulated),
        "trouble": trouble,
        "facts": facts,
        "tiles": tiles,
        "values": values.collect::<Map<String, Value>>(),
        "runs": runs,
        "processes": processes,
    })
}
