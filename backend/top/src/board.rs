//! Layout of the picture: head, tiles, devices and charts, processes, foot.

use crate::chart::Frame;
use crate::fit::{figure, shortened};
use crate::model::{Delivery, Model, Over, Places};
use crate::palette::{Ink, Palette};
use crate::{cores, over, runs, table};
use charts::axis::{self, Zone};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Modifier;
use shared::connection_state::ConnectionState;
use shared::unit::rough_duration;
use std::collections::BTreeMap;
use viewer::store::plan::{HEAT_SUFFIX, Panel};
use viewer::tile::{MISSING_PREFIX, Say};

/// Minimum size of the terminal, columns and rows.
pub const SMALLEST: (u16, u16) = (40, 10);
/// Minimum cells of a chart, across and down.
const CHART: (u16, u16) = (36, 6);
/// Maximum rows of a chart.
const MAX_CHART_ROWS: u16 = 16;
/// Maximum number of charts in a row.
const MAX_ACROSS: u16 = 4;
/// Minimum rows of the process table, with its two header rows.
const PROCESSES: u16 = 5;

/// Draws the whole picture.
pub fn draw(model: &mut Model, palette: Palette, zone: Zone, area: Rect, buffer: &mut Buffer) {
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let words = format!("{} x {} is too small; {} x {} is enough", area.width, area.height, SMALLEST.0, SMALLEST.1);
        buffer.set_stringn(area.x, area.y, words, usize::from(area.width), palette.style(Ink::Warn));
        return;
    }
    head(model, palette, zone, Rect { height: 1, ..area }, buffer);
    let mut y = area.y + 1;
    if let Some(sentence) = trouble(model) {
        let sentence = shortened(&sentence, usize::from(area.width));
        buffer.set_stringn(area.x, y, palette.text(&sentence), usize::from(area.width), palette.style(Ink::Warn));
        y += 1;
    }
    let high = if area.height >= 18 { 3 } else { 2 };
    tiles(model, palette, Rect { y, height: high, ..area }, buffer);
    y += high;
    let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
    let body = Rect { y, height: foot.y.saturating_sub(y), ..area };
    let body = runs::draw(model, palette, body, buffer);
    let body = cores::draw(model, palette, body, buffer);
    let panels = model.panels();
    model.view.focus = model.view.focus.min(panels.len().saturating_sub(1));
    // The rows of devices are known only once the lead chart's series are.
    if let Some(lead) = panels.first() {
        model.reduce(lead.id.trim_end_matches(HEAT_SUFFIX), i64::from(area.width));
    }
    let mut places = places(&Frame { model, palette, zone }, &panels, body);
    let mut dots: BTreeMap<&str, i64> = BTreeMap::new();
    if places.rows.is_some() {
        dots.extend(model.plan.top.iter().map(|panel| (panel.id.as_str(), i64::from(area.width))));
    }
    let charts = places.charts.iter().map(|(at, rect)| (panels[*at].id.as_str(), i64::from(rect.width) * 2));
    for (id, wide) in charts {
        let dots = dots.entry(id).or_insert(wide);
        *dots = wide.max(*dots);
    }
    let dots: BTreeMap<String, i64> =
        dots.into_iter().map(|(id, dots)| (id.trim_end_matches(HEAT_SUFFIX).to_string(), dots)).collect();
    dots.iter().for_each(|(id, dots)| model.reduce(id, *dots));
    // Charts that are no longer visible are dropped.
    model.reduced.retain(|id, _| {
        dots.contains_key(id) || panels.first().is_some_and(|p| p.id.trim_end_matches(HEAT_SUFFIX) == id)
    });
    let frame = Frame { model, palette, zone };
    if let (Some(rect), Some(lead)) = (places.rows, panels.first()) {
        frame.draw_rows(lead, &model.plan.top, model.view.focus == 0, rect, buffer);
    }
    let plots = places.charts.iter().map(|(at, rect)| {
        let plot = frame.draw(&panels[*at], model.view.focus == *at, *rect, buffer);
        plot.map(|plot| (*at, plot))
    });
    places.plots = plots.flatten().collect();
    if let Some(rect) = places.processes {
        table::draw(model, palette, rect, buffer);
    }
    if model.newest() == 0 {
        let words = match &model.delivery {
            Delivery::Lost(_) => "",
            _ => "waiting for the first sample",
        };
        buffer.set_string(body.x, body.y, words, palette.style(Ink::Faint));
    }
    let shown: Vec<usize> = places.rows.iter().map(|_| 0).chain(places.charts.iter().map(|(at, _)| *at)).collect();
    bottom(&Frame { model, palette, zone }, (&shown, panels.len()), foot, buffer);
    model.places = places;
    if let Over::Help(passed) = &mut model.view.over {
        *passed = (*passed).min(over::most_passed(area));
    }
    over::draw(model, palette, area, buffer);
}

/// Divides the body between devices, charts and processes.
fn places(frame: &Frame, panels: &[Panel], body: Rect) -> Places {
    let view = &frame.model.view;
    if view.table {
        return Places { processes: Some(body), ..Places::default() };
    }
    let devices = panels.first().and_then(|lead| frame.devices(&lead.id)).map_or(0, |(_, n)| n);
    let is_map = panels.first().is_some_and(|lead| lead.id.ends_with(HEAT_SUFFIX));
    if view.zoomed {
        let is_rows = view.focus == 0 && is_map;
        let charts = if is_rows || panels.is_empty() { Vec::new() } else { vec![(view.focus, body)] };
        return Places { rows: is_rows.then_some(body), charts, ..Places::default() };
    }
    let listed = frame.model.listed.len().min(200) as u16 + 2;
    let least = if body.height > CHART.1 + PROCESSES { PROCESSES } else { 0 };
    let wish = (body.height * 3 / 10).max(least).min(listed.max(least));
    let mut rest = body.height - wish;
    // Devices get a row each if all of them fit, and always if the page shows them as a heat map.
    let fits = devices >= 2 && devices as u16 + 2 <= rest;
    let rows = (is_map || fits).then(|| {
        let spare = if rest > devices as u16 + 2 + CHART.1 { CHART.1 } else { rest / 2 };
        let height = if fits { devices as u16 + 2 } else { rest.saturating_sub(spare).max(4).min(rest) };
        rest -= height;
        Rect { height, ..body }
    });
    let y = body.y + rows.map_or(0, |rows| rows.height);
    let skipped = usize::from(rows.is_some());
    let across = (body.width / CHART.0).clamp(1, MAX_ACROSS);
    let count = panels.len() - skipped.min(panels.len());
    let down = (rest / CHART.1).min((count as u16).div_ceil(across));
    let mut charts = Vec::new();
    let mut used = 0;
    if let Some(height) = rest.checked_div(down).map(|height| height.min(MAX_CHART_ROWS)) {
        // The visible charts follow the focus by whole rows.
        let row = view.focus.saturating_sub(skipped) / usize::from(across);
        let first_row = row.saturating_sub(usize::from(down) - 1);
        let (gap, whole) = (2, body.width + 2);
        for n in 0..usize::from(across * down) {
            let at = skipped + first_row * usize::from(across) + n;
            if at >= panels.len() {
                break;
            }
            let (column, line) = (n as u16 % across, n as u16 / across);
            let (x, end) = (whole * column / across, whole * (column + 1) / across);
            charts.push((at, Rect { x: body.x + x, y: y + line * height, width: end - x - gap, height }));
        }
        used = charts.last().map_or(0, |(_, rect)| rect.bottom() - y);
    }
    let processes = Rect { y: y + used, height: body.bottom() - y - used, ..body };
    Places { rows, charts, plots: Vec::new(), processes: (processes.height >= 3).then_some(processes) }
}

/// A sentence about the first problem: the connection, the machine, this program, a metric family, or dropped requests.
pub fn trouble(model: &Model) -> Option<String> {
    if let Delivery::Lost(why) = &model.delivery {
        return Some(format!("{MISSING_PREFIX}disconnected: {why}; reconnecting"));
    }
    let connection_state = model.entry().map(|entry| (&entry.state, entry.since));
    if let Some((state, _)) =
        connection_state.filter(|(state, _)| !matches!(state, ConnectionState::Live | ConnectionState::Filling { .. }))
        && !model.is_recording()
    {
        let why = state.why().map_or(String::new(), |why| format!(": {why}"));
        return Some(format!("{MISSING_PREFIX}this machine is {}{why}", state.as_str()));
    }
    if let Some(sentence) = &model.failed {
        return Some(format!("{MISSING_PREFIX}{sentence}"));
    }
    if let Some(absent) = model.plan.absent.iter().find(|absent| absent.is_trouble()) {
        return Some(format!("{MISSING_PREFIX}{}: {}", absent.title, absent.why()));
    }
    let dropped = model.dropped;
    (dropped > 0).then(|| format!("{MISSING_PREFIX}the link is slow; dropped requests: {dropped}; they are retried"))
}

/// The facts of a machine in one line. A bare number gets its name.
fn facts(model: &Model) -> String {
    let Some(source) = model.shown() else { return String::new() };
    let bare = |value: &str| value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let facts = source.info.facts.iter().filter(|(key, value)| !value.is_empty() && key != shared::wire::NAME_FACT);
    let text = facts.map(|(key, value)| if bare(value) { format!("{key} {value}") } else { value.clone() });
    text.collect::<Vec<_>>().join(", ")
}

/// A duration in the notation of the windows: `5m`.
fn window(ms: i64) -> String {
    let known = shared::window::WINDOWS.iter().find(|window| window.ms == ms);
    known.map_or_else(|| rough_duration(ms), |window| window.name.into())
}

fn head(model: &Model, palette: Palette, zone: Zone, area: Rect, buffer: &mut Buffer) {
    let (from, to) = model.span();
    let clock = |t: i64| axis::clock(t + zone.at(t), true);
    let state = match (&model.delivery, model.view.frozen) {
        (Delivery::Waiting, _) => "connecting".into(),
        (Delivery::Lost(_), _) => "disconnected".into(),
        _ if to == 0 => "waiting".into(),
        (_, Some(_)) if model.is_recording() => {
            format!(
                "recording {} {} – {}",
                axis::date((to + zone.at(to)).div_euclid(86_400_000)),
                clock(from),
                clock(to)
            )
        }
        (_, Some(_)) => format!("frozen {} – {}", clock(from), clock(to)),
        _ => format!("{} live {} {}", palette.sign("●", "*"), window(model.view.window), clock(to)),
    };
    let simulated = model.store.hello.as_ref().is_some_and(|hello| hello.simulated);
    let state = if simulated { format!("simulated  {state}") } else { state };
    let state = palette.text(&shortened(&state, usize::from(area.width)));
    let name = model.entry().map_or("Watchglass", |entry| entry.name.as_str());
    let room = usize::from(area.width).saturating_sub(state.chars().count() + 1);
    let bold = palette.style(Ink::Text).add_modifier(Modifier::BOLD);
    let (x, _) = buffer.set_stringn(area.x, area.y, palette.text(name), room, bold);
    let rest = room.saturating_sub(usize::from(x - area.x) + 1);
    let mut about = palette.text(&facts(model));
    if about.chars().count() > rest {
        about = about.chars().take(rest.saturating_sub(1)).collect::<String>() + palette.sign("…", "~");
    }
    buffer.set_stringn(x + 1, area.y, about, rest, palette.style(Ink::Faint));
    let at = area.right() - (state.chars().count() as u16).min(area.width);
    let style = if model.delivery == Delivery::Well { bold } else { palette.style(Ink::Warn) };
    buffer.set_stringn(at, area.y, state, usize::from(area.width), style);
}

/// The texts of a tile.
pub struct TileTexts {
    /// Its id.
    pub id: String,
    /// Title, and the text at its right.
    pub title: [String; 2],
    /// Number and unit.
    pub number: [String; 2],
    /// Text below the number.
    pub note: String,
    /// Value and total in the base unit, and the name of that unit.
    pub value: (Option<f64>, Option<f64>, &'static str),
}

/// The texts of the tiles, at the crosshair or the end of the span.
pub fn words(model: &mut Model) -> Vec<TileTexts> {
    let (_, to) = model.span();
    let at = model.view.crosshair.unwrap_or(to);
    let Some(entry) = model.entry().map(|entry| entry.id) else { return Vec::new() };
    let Some(source) = model.store.sources.get(&entry) else { return Vec::new() };
    let tiles = model.plan.tiles.iter();
    let layout = &model.store.catalog.layout.tiles;
    let all = tiles.filter_map(|id| layout.iter().find(|tile| tile.id == *id));
    all.map(|tile| {
        let say = Say { store: &model.store, source, tile, t: at };
        let figure = say.figure();
        let spark = model.sparklines.entry(tile.id.clone()).or_default();
        spark.points(&say, at);
        let note = spark.straggler(&say, at).unwrap_or_else(|| say.note(figure.scale));
        TileTexts {
            id: tile.id.clone(),
            title: [tile.title.clone(), say.corner()],
            number: [figure.number, figure.symbol],
            note,
            value: (figure.value, figure.of, say.unit().name()),
        }
    })
    .collect()
}

fn tiles(model: &mut Model, palette: Palette, area: Rect, buffer: &mut Buffer) {
    let all = words(model);
    let n = all.len().max(1) as u16;
    for (i, tile) in all.iter().enumerate() {
        let (x, end) = (area.width * i as u16 / n, area.width * (i as u16 + 1) / n);
        let (x, room) = (area.x + x, usize::from(end - x).saturating_sub(2));
        let put = |buffer: &mut Buffer, y: u16, text: &str, at: u16, style| {
            let room = room.saturating_sub(usize::from(at - x));
            buffer.set_stringn(at, area.y + y, palette.text(text), room, style).0
        };
        let [title, corner] = &tile.title;
        let (faint, bold) = (palette.style(Ink::Faint), palette.style(Ink::Text).add_modifier(Modifier::BOLD));
        let end = put(buffer, 0, &shortened(title, room), x, palette.style(Ink::Text));
        // The text is left out if it does not fit as a whole.
        if usize::from(end - x) + corner.chars().count() < room {
            put(buffer, 0, &format!(" {corner}"), end, faint);
        }
        let [number, unit] = figure(&tile.number, room);
        let end = put(buffer, 1, &number, x, bold);
        put(buffer, 1, &unit, end, palette.style(Ink::Text));
        if area.height > 2 {
            let style = if tile.note.starts_with(MISSING_PREFIX) { palette.style(Ink::Warn) } else { faint };
            put(buffer, 2, &shortened(&tile.note, room), x, style);
        }
    }
}

fn bottom(frame: &Frame, (shown, all): (&[usize], usize), area: Rect, buffer: &mut Buffer) {
    let Frame { model, palette, zone } = *frame;
    let view = &model.view;
    let words = match () {
        () if !view.note.is_empty() => view.note.clone(),
        () if view.chosen.is_some() && view.listing.tree.is_some() => {
            "↑↓ processes  ←→ fold  Shift-F all  Esc deselect  ? keys  q quit".into()
        }
        () if view.chosen.is_some() => "↑↓ processes  E tree  Esc deselect  ? keys  q quit".into(),
        () if let Some(at) = view.crosshair => {
            format!("values at {}  ←→ others  Shift ten  Esc live  ? keys", axis::clock(at + zone.at(at), true))
        }
        () if view.zoomed || view.table => "Esc back  ↑↓ charts  1–7 window  ? keys  q quit".into(),
        () if !model.origin.is_empty() && view.focus == 0 && view.frozen.is_none() => model.origin.clone(),
        () => "? keys  q quit  1–7 window  Space pause  ←→ values  ↑↓ charts  / find  s sort".into(),
    };
    let place = match shown {
        [] => String::new(),
        [first, .., last] if last + 1 < all || *first > 1 => format!("charts {}–{} of {all} ↓", first + 1, last + 1),
        _ => String::new(),
    };
    let signs = [("↑↓", "up/down"), ("←→", "left/right"), (" ↓", "")];
    let plain = |text: &str| {
        let text =
            signs.iter().fold(text.to_string(), |text, (sign, word)| text.replace(sign, palette.sign(sign, word)));
        palette.text(&text)
    };
    let place = plain(&place);
    let room = usize::from(area.width).saturating_sub(place.chars().count() + 1);
    buffer.set_stringn(area.x, area.y, plain(&words), room, palette.style(Ink::Faint));
    let at = area.right().saturating_sub(place.chars().count() as u16);
    buffer.set_string(at, area.y, place, palette.style(Ink::Faint));
}
