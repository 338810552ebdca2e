//! Draws a fleet as a map: a cell for each device, a box of cells for each host, hosts in columns by group. Lightness
//! shows how busy a device is; hue shows only its distance from its peers. Each state of a host that is not live has a
//! shape of its own. A device or host with a problem has a frame. [`Plan`] has the positions, so that a pointer and the
//! arrow keys find the same hosts.

mod plan;

pub use plan::{Manner, Plan, Spot};

use crate::frame::{Frame, Grade, Measures};
use crate::paint::{block, dashed, faint, fill, hatch, path, width, words};
use crate::theme::Theme;
use crate::{Area, Chart, Drawn};
use plotters::style::RGBAColor;
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// Minimum distance of a device from its peers, in points of busy share, for a hue.
pub const MIN_DISTANCE: f64 = 6.0;
/// Additional points at which the hue is full.
const APART_FULL: f64 = 14.0;

/// A device of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Busy share, 0 to 100; NaN if it is unknown.
    pub busy: f64,
    /// Points above (positive) or below the median of its peers; NaN if there are none.
    pub apart: f64,
}

/// The shape of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Its cells.
    Live,
    /// Its cells, and under them the share (0 to 1) of its history that is stored here.
    Filling(f64),
    /// Its last cells faint, under a hatch.
    Late,
    /// A dashed frame with a cross.
    Lost,
    /// A frame with a square: it was stopped on purpose.
    Stopped,
    /// A frame with a bar across.
    Refused,
}

/// A host of the map.
#[derive(Clone, Debug, PartialEq)]
pub struct Host<'a> {
    /// Name of the host, as short as necessary.
    pub name: &'a str,
    /// Its devices.
    pub cells: &'a [Cell],
    /// Its state as a shape.
    pub mark: Mark,
    /// Its state as text, written if there is room; empty while live.
    pub word: &'a str,
    /// Severity of its problem: warning and critical are drawn as a frame.
    pub grade: Grade,
    /// Positions of the devices with a problem; empty if the host itself has it.
    pub faulty: &'a [usize],
    /// True if a filter excludes it.
    pub dim: bool,
    /// True if the user selected it.
    pub chosen: bool,
    /// True when the pointer or the keys are on it.
    pub here: bool,
}

/// A group of hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group<'a> {
    /// Name of the group; may be empty.
    pub name: &'a str,
    /// Note beside the name.
    pub note: &'a str,
    /// Name of the part of the fleet that it belongs to; groups of one part are adjacent. May be empty.
    pub part: &'a str,
    /// Note on that part, below its name.
    pub part_note: &'a str,
    /// Number of its hosts. They are consecutive in the list of all hosts.
    pub hosts: usize,
}

/// All inputs of a map.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a> {
    /// Width and height of the drawing in units.
    pub size: (i32, i32),
    /// Units in a CSS pixel.
    pub css: f64,
    /// Units in a device pixel.
    pub device: f64,
    /// Colors of the drawing.
    pub theme: &'a Theme,
    /// Measures in CSS pixels.
    pub measures: Measures,
    /// True if cells show values, false if they show the distance from their peers.
    pub values: bool,
    /// True if all data are old, because the connection is lost. Then no hue is used.
    pub stale: bool,
    /// Groups in their order.
    pub groups: &'a [Group<'a>],
    /// All hosts, group after group.
    pub hosts: &'a [Host<'a>],
}

/// The color of a cell. None for an idle or unknown one, which is drawn hollow.
fn color(map: &Map, cell: Cell) -> Option<RGBAColor> {
    let theme = map.theme;
    if !cell.busy.is_finite() || (cell.busy < 1.0 && !map.values) {
        return None;
    }
    if map.values {
        return Some(Theme::ramp(&theme.heat, cell.busy / 100.0));
    }
    if cell.apart.abs() > MIN_DISTANCE && !map.stale {
        let hue = if cell.apart < 0.0 { theme.diverge[4] } else { theme.diverge[0] };
        return Some(Theme::ramp(
            &[theme.cell, hue],
            0.35 + ((cell.apart.abs() - MIN_DISTANCE) / APART_FULL).min(0.65),
        ));
    }
    Some(Theme::ramp(&[theme.card, theme.cell], 0.16 + 0.84 * cell.busy / 100.0))
}

/// Draws a map. `plan` was made for the same groups.
///
/// # Errors
/// Returns the error of the drawing backend.
pub fn draw<DB: DrawingBackend>(area: &Area<DB>, map: &Map, plan: &Plan) -> Drawn<DB> {
    let frame = &frame(map);
    let px = |n: i32| frame.px(f64::from(n));
    let (name, note) =
        (words(frame, map.theme.text, true, HPos::Left), words(frame, map.theme.text_3, false, HPos::Left));
    for &(x, y, group, room) in &plan.heads {
        let group = &map.groups[group];
        let (style, room) = if plan.manner == Manner::Named { (&name, px(room)) } else { (&note, px(room)) };
        let text = cut(area, group.name, style, room);
        area.draw_text(&text, style, (px(x), px(y)))?;
        let beside = px(x + 8) + width(area, &text, style);
        if plan.manner == Manner::Named && beside + width(area, group.note, &note) < px(x) + room {
            area.draw_text(group.note, &note, (beside, px(y)))?;
        }
    }
    for &(x, y, group) in &plan.parts {
        area.draw_text(&cut(area, map.groups[group].part, &name, px(64)), &name, (px(x), px(y)))?;
        for (k, line) in map.groups[group].part_note.lines().enumerate() {
            area.draw_text(line, &note, (px(x), px(y + 18 + 16 * k as i32)))?;
        }
    }
    map.hosts.iter().zip(&plan.boxes).try_for_each(|(host, place)| draw_host(area, map, frame, plan, host, *place))
}

/// The frame that strokes take their measures from.
fn frame<'a>(map: &Map<'a>) -> Frame<'a> {
    const NO_AXIS: &crate::axis::Axis = &crate::axis::Axis::NONE;
    Frame {
        chart: Chart::Heat,
        size: map.size,
        css: map.css,
        device: map.device,
        theme: map.theme,
        measures: map.measures,
        from: 0,
        to: 1,
        zone: crate::axis::Zone::UTC,
        along: crate::axis::Along::Time,
        axis: NO_AXIS,
        step: 1,
        interval: 1,
        lines: &[],
        band: &[],
        heat: None,
        lanes: &[],
        limits: &[],
        gaps: &[],
        live: true,
        age: "",
    }
}

/// A text that fits into `room` units, with its end cut off if necessary.
fn cut<DB: DrawingBackend>(area: &Area<DB>, text: &str, style: &plotters::style::TextStyle, room: i32) -> String {
    if width(area, text, style) <= room {
        return text.to_string();
    }
    let mut short: String = text.to_string();
    while !short.is_empty() && width(area, &format!("{short}…"), style) > room {
        short.pop();
    }
    short + "…"
}

/// Draws the cells of a machine, or the shape of its state in their place, and its word.
fn draw_state<DB: DrawingBackend>(
    area: &Area<DB>,
    map: &Map,
    frame: &Frame,
    plan: &Plan,
    host: &Host,
    (a, b): Corners,
) -> Drawn<DB> {
    let theme = map.theme;
    let px = |n: i32| frame.whole(f64::from(n) * map.css);
    let dimmed = |color| if host.dim { faint(color, 0.25) } else { color };
    let alpha = match host.mark {
        _ if host.dim => 0.18,
        Mark::Late => 0.4,
        _ => 1.0,
    };
    let line = f64::from(frame.hair());
    let strong = dimmed(theme.text_3);
    let frame_of = |dash: bool| {
        let h = frame.hair() / 2;
        let corners =
            [(a.0 + h, a.1 + h), (b.0 - h, a.1 + h), (b.0 - h, b.1 - h), (a.0 + h, b.1 - h), (a.0 + h, a.1 + h)];
        match dash {
            true => dashed(area, &corners, strong, line, (2.0 * map.css, 2.0 * map.css)),
            false => path(area, corners.to_vec(), strong, line),
        }
    };
    let middle = ((a.0 + b.0) / 2, (a.1 + b.1) / 2);
    let reach = ((b.1 - a.1) * 3 / 10).min(px(5));
    match host.mark {
        Mark::Live | Mark::Late | Mark::Filling(_) => cells(area, map, frame, host, (a, b), alpha)?,
        Mark::Lost => frame_of(true)?,
        Mark::Stopped | Mark::Refused => frame_of(false)?,
    }
    let worded = !host.word.is_empty() && plan.manner == Manner::Named;
    match host.mark {
        Mark::Late => hatch(area, &Frame { theme: &strong_hatch(theme), ..frame.clone() }, a, b)?,
        Mark::Filling(share) => {
            let end = a.0 + (f64::from(b.0 - a.0) * share.clamp(0.0, 1.0)).round() as i32;
            let high = px(2).max(frame.device as i32);
            block(area, (a.0, b.1), (b.0, b.1 + high), dimmed(theme.hair_strong))?;
            block(area, (a.0, b.1), (end, b.1 + high), dimmed(theme.ink))?;
        }
        Mark::Lost if !worded => {
            let (x, y) = middle;
            path(area, vec![(x - reach, y - reach), (x + reach, y + reach)], strong, map.css)?;
            path(area, vec![(x - reach, y + reach), (x + reach, y - reach)], strong, map.css)?;
        }
        Mark::Stopped if !worded => {
            let r = reach.max(px(1));
            block(area, (middle.0 - r, middle.1 - r), (middle.0 + r, middle.1 + r), strong)?;
        }
        Mark::Refused if !worded => path(area, vec![(a.0, middle.1), (b.0, middle.1)], strong, map.css)?,
        _ => {}
    }
    if worded && !matches!(host.mark, Mark::Filling(_)) {
        let style = words(frame, dimmed(theme.text_2), false, HPos::Left);
        let text = cut(area, host.word, &style, b.0 - a.0 - px(10));
        let end = a.0 + px(8) + width(area, &text, &style);
        block(area, (a.0 + px(2), a.1 + px(2)), (end, b.1 - px(2)), theme.card)?;
        area.draw_text(&text, &style, (a.0 + px(5), middle.1))?;
    }
    Ok(())
}

fn draw_host<DB: DrawingBackend>(
    area: &Area<DB>,
    map: &Map,
    frame: &Frame,
    plan: &Plan,
    host: &Host,
    (x, y, wide, high): Spot,
) -> Drawn<DB> {
    let theme = map.theme;
    let px = |n: i32| frame.whole(f64::from(n) * map.css);
    let (a, b) = ((px(x), px(y)), (px(x + wide), px(y + high)));
    let dimmed = |color| if host.dim { faint(color, 0.25) } else { color };
    let fault = match host.grade {
        Grade::Warning => Some(theme.warn),
        Grade::Critical => Some(theme.bad),
        _ => None,
    };
    let fault = fault.map(|color| dimmed(if map.stale { theme.text_3 } else { color }));
    if plan.name > 0 {
        let quiet = if matches!(host.mark, Mark::Live | Mark::Filling(_)) { theme.text_2 } else { theme.text_3 };
        let color = if host.here || fault.is_some() { theme.text } else { quiet };
        let style = words(frame, dimmed(color), host.chosen || fault.is_some(), HPos::Left);
        let text = cut(area, host.name, &style, px(plan.name - 8));
        area.draw_text(&text, &style, (px(x - plan.name), (a.1 + b.1) / 2))?;
    }
    draw_state(area, map, frame, plan, host, (a, b))?;
    let around = |(a, b): Corners, r: i32, color: RGBAColor| {
        let corners =
            [(a.0 - r, a.1 - r), (b.0 + r, a.1 - r), (b.0 + r, b.1 + r), (a.0 - r, b.1 + r), (a.0 - r, a.1 - r)];
        path(area, corners.to_vec(), color, (1.5 * map.css).round())
    };
    let named = plan.manner == Manner::Named;
    if host.chosen {
        around((a, b), px(2), theme.ink)?;
    }
    let (left, y, r) = (px(x - plan.name - 9), (a.1 + b.1) / 2, px(3));
    if let Some(color) = fault {
        // Cells of small boxes are too small for frames of their own.
        let own = host.faulty.iter().filter(|i| named && **i < host.cells.len());
        let mut spots: Vec<Corners> = own.map(|i| spot(frame, host.cells.len(), (a, b), *i)).collect();
        if spots.is_empty() || spots.len() == host.cells.len() {
            spots = vec![(a, b)];
        }
        spots.into_iter().try_for_each(|spot| around(spot, px(1), color))?;
        // The shape identifies the severity without color.
        match host.grade {
            _ if plan.name == 0 => {}
            Grade::Critical => block(area, (left - r, y - r), (left + r, y + r), color)?,
            _ => fill(area, vec![(left - r - px(1), y + r), (left, y - r - px(1)), (left + r + px(1), y + r)], color)?,
        }
    } else if host.chosen && plan.name > 0 {
        fill(area, vec![(left - r, y), (left, y - r), (left + r, y), (left, y + r)], theme.ink)?;
    }
    if host.here {
        around((a, b), px(if named { 3 } else { 2 }), theme.text)?;
    }
    Ok(())
}

/// Two corners of a rectangle in units: upper left, and lower right.
type Corners = ((i32, i32), (i32, i32));

/// Whether a host's box is one of the high ones, in which cells stand in one row.
fn is_high(frame: &Frame, (a, b): Corners) -> bool {
    b.1 - a.1 >= frame.px(18.0)
}

/// The position of a cell among `n` in a host's box: one row in a high box or for a single cell, else two rows.
fn spot(frame: &Frame, n: usize, (a, b): Corners, i: usize) -> Corners {
    let device = frame.device as i32;
    let (n, i) = (n.max(1) as i32, i as i32);
    let named = is_high(frame, (a, b));
    let rows = if named || n == 1 { 1 } else { 2 };
    let columns = (n + rows - 1) / rows;
    let seam = if named { frame.px(2.0) } else { frame.px(1.0) }.max(device);
    let at =
        |k: i32, of: i32, from: i32, to: i32| from + frame.whole(f64::from((to + seam - from) * k) / f64::from(of));
    let (k, row) = (i % columns, i / columns);
    let (x0, y0) = (at(k, columns, a.0, b.0), at(row, rows, a.1, b.1));
    let (x1, y1) = (at(k + 1, columns, a.0, b.0) - seam, at(row + 1, rows, a.1, b.1) - seam);
    ((x0, y0), (x1.max(x0 + device), y1.max(y0 + device)))
}

/// A theme whose hatch can be seen on cells.
fn strong_hatch(theme: &Theme) -> Theme {
    Theme { hatch: theme.text_3, ..*theme }
}

/// The cells of a host.
fn cells<DB: DrawingBackend>(
    area: &Area<DB>,
    map: &Map,
    frame: &Frame,
    host: &Host,
    (a, b): Corners,
    alpha: f64,
) -> Drawn<DB> {
    let hollow = |a: (i32, i32), b: (i32, i32)| {
        let (h, color) = (frame.hair(), faint(map.theme.hair_strong, alpha));
        block(area, a, (b.0, a.1 + h), color)?;
        block(area, (a.0, b.1 - h), b, color)?;
        block(area, (a.0, a.1 + h), (a.0 + h, b.1 - h), color)?;
        block(area, (b.0 - h, a.1 + h), (b.0, b.1 - h), color)
    };
    let named = is_high(frame, (a, b));
    if host.cells.is_empty() || (!named && host.cells.iter().all(|c| color(map, *c).is_none())) {
        return hollow(a, b);
    }
    for (i, cell) in host.cells.iter().enumerate() {
        let (c, d) = spot(frame, host.cells.len(), (a, b), i);
        match color(map, *cell) {
            Some(color) => block(area, c, d, faint(color, alpha))?,
            None => hollow(c, d)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unlike_its_peers_has_a_hue_and_nothing_has_one_when_it_is_old() {
        let map = |stale| Map {
            size: (1, 1),
            css: 1.0,
            device: 1.0,
            theme: &crate::theme::DARK,
            measures: Measures::default(),
            values: false,
            stale,
            groups: &[],
            hosts: &[],
        };
        let hued = |stale, apart| {
            let RGBAColor(r, _, b, _) = color(&map(stale), Cell { busy: 80.0, apart }).expect("it is busy");
            r > b
        };
        assert!(!hued(false, -5.0) && hued(false, -20.0) && !hued(true, -20.0));
        assert_eq!(color(&map(false), Cell { busy: 0.0, apart: 0.0 }), None);
        assert_eq!(color(&map(false), Cell { busy: f64::NAN, apart: f64::NAN }), None);
    }
}
