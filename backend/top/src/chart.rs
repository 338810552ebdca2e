//! One chart: its title, its axis, its lines, and its series by name with their values.

use crate::canvas::Canvas;
use crate::model::{Model, Reduced};
use crate::palette::{Ink, Palette, Signs};
use charts::Hue;
use charts::axis::{self, Axis, Zone};
use charts::band::quantile;
use charts::reduce::{Column, four};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use shared::catalog::{Kind, Metric};
use shared::series::SeriesId;
use viewer::spread::{outliers, stand};
use viewer::store::plan::Panel;
use viewer::store::trace;

/// Maximum number of series drawn as lines of their own.
const MAX_LINES: usize = 8;
/// Width of the axis texts at the left, cells.
const LEFT_WIDTH: u16 = 6;

/// Settings for drawing a chart.
pub struct Frame<'a> {
    /// Its data.
    pub model: &'a Model,
    /// Colors and signs.
    pub palette: Palette,
    /// Local time minus UTC.
    pub zone: Zone,
}

/// Content of a chart: axis, unit and the value of each series at the crosshair, else the newest.
pub struct Reading<'a> {
    /// The reduced columns.
    pub reduced: &'a Reduced,
    /// The axis.
    pub axis: Axis,
    /// By position; none for a series without a value.
    pub values: Vec<Option<f64>>,
    /// The positions that differ most from their peers.
    pub odd: Vec<usize>,
}

/// A text of the axis, aligned at the right. A long one has no commas, and one that is longer still is left out, because
/// part of a figure is another figure.
fn tick(text: &str) -> String {
    let room = usize::from(LEFT_WIDTH - 1);
    let plain = if text.chars().count() > room { text.replace(',', "") } else { text.into() };
    if plain.chars().count() > room { String::new() } else { format!("{plain:>room$}") }
}

/// The metric of the first series of a chart.
pub fn metric<'a>(model: &'a Model, ids: &[SeriesId]) -> Option<&'a Metric> {
    model.store.catalog.metric(model.shown()?.defs.get(*ids.first()? as usize)?)
}

impl<'a> Frame<'a> {
    /// The content of a chart; none if no columns were reduced for it.
    pub fn reading(&self, id: &str) -> Option<Reading<'a>> {
        let (from, to) = self.model.span();
        let reduced = self.model.reduced.get(id)?;
        let metric = metric(self.model, &reduced.ids)?;
        let seen: Vec<&[Column]> =
            reduced.ids.iter().map(|id| reduced.traces.get(id).map_or(&[][..], |t| t.within(from, to))).collect();
        let all = || seen.iter().copied().flatten();
        let (lo, hi) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), c| (lo.min(c.min), hi.max(c.max)));
        let axis = axis::values(trace::unit(metric), metric.range, lo, hi);
        let at = self.model.view.crosshair;
        let values = reduced.ids.iter().map(|id| {
            let trace = reduced.traces.get(id)?;
            match at {
                Some(at) => trace.at(at).map(Column::mean),
                None => trace.newest(from, to).map(|c| c.last),
            }
        });
        let span = axis.hi - axis.lo;
        let alike = viewer::names::peers(&reduced.names).is_some();
        let stands: Vec<_> =
            seen.iter().filter(|_| alike).map(|c| stand(c, &reduced.spread.band, span, false)).collect();
        Some(Reading { reduced, axis, values: values.collect(), odd: outliers(&stands) })
    }

    /// Draws a chart into an area of at least three rows. Returns the area of its dots if there is room for them.
    pub fn draw(&self, panel: &Panel, focused: bool, area: Rect, buffer: &mut Buffer) -> Option<Rect> {
        let reading = self.reading(&panel.id)?;
        let metric = metric(self.model, &reading.reduced.ids)?;
        let states = metric.kind == Kind::State;
        self.title(panel, &reading, focused, area, buffer);
        let legend = self.legend(&reading, area);
        let wide = legend.iter().map(|(text, _)| text.chars().count()).max().map_or(0, |n| n as u16 + 1);
        let wide = wide.min(area.width / 2);
        let plot = Rect {
            x: area.x + LEFT_WIDTH,
            y: area.y + 1,
            width: area.width.saturating_sub(LEFT_WIDTH + wide),
            height: area.height.saturating_sub(2),
        };
        if plot.width < 4 || plot.height == 0 {
            return None;
        }
        let faint = self.palette.style(Ink::Faint);
        for (text, y) in self.ticks(&reading.axis, plot.height).into_iter().filter(|_| !states) {
            buffer.set_stringn(area.x, plot.y + y, tick(&text), usize::from(LEFT_WIDTH - 1), faint);
        }
        self.plot(&reading, plot, buffer);
        for (row, (text, style)) in legend.iter().enumerate() {
            buffer.set_stringn(plot.right() + 1, plot.y + row as u16, text, usize::from(wide), *style);
        }
        self.times(plot, buffer);
        Some(plot)
    }

    /// Title and unit at the left; the summary of all series at the right.
    fn title(&self, panel: &Panel, reading: &Reading, focused: bool, area: Rect, buffer: &mut Buffer) {
        let (axis, palette) = (&reading.axis, self.palette);
        let mut style = Style::new().add_modifier(Modifier::BOLD);
        if focused {
            style = style.add_modifier(Modifier::REVERSED);
        }
        let mut known: Vec<f64> = reading.values.iter().flatten().copied().collect();
        known.sort_unstable_by(f64::total_cmp);
        let summed = match &known[..] {
            [] => "no data".into(),
            [one] => axis.number(*one),
            [least, .., most] if viewer::names::peers(&reading.reduced.names).is_some() => {
                let number = |v: f64| axis.number(v);
                format!("{} – {} – {}", number(*least), number(quantile(&known, 0.5)), number(*most))
            }
            _ => String::new(),
        };
        let unit = axis.scale.symbol;
        let cut = if axis.cut { format!(" from {}", axis.round(axis.lo)) } else { String::new() };
        let summed = palette.text(&summed);
        let room = usize::from(area.width).saturating_sub(summed.chars().count() + 1);
        let (x, _) = buffer.set_stringn(area.x, area.y, palette.text(&panel.title), room, style);
        let rest = room.saturating_sub(usize::from(x - area.x));
        buffer.set_stringn(x, area.y, palette.text(&format!(" {unit}{cut}")), rest, palette.style(Ink::Faint));
        let at = area.right() - summed.chars().count() as u16;
        buffer.set_string(at.max(area.x), area.y, summed, palette.style(Ink::Text));
    }

    /// Series by name. If not all fit, the ones that differ most come first.
    fn legend(&self, reading: &Reading, area: Rect) -> Vec<(String, Style)> {
        let (rows, names) = (usize::from(area.height.saturating_sub(2)), &reading.reduced.names);
        if names.len() < 2 || area.width < 34 || rows == 0 {
            return Vec::new();
        }
        let many = names.len() > MAX_LINES;
        let mut order: Vec<usize> = reading.odd.clone();
        if !many {
            order.extend((0..names.len()).filter(|i| !reading.odd.contains(i)));
        }
        if !many && names.len() <= rows {
            order.sort_unstable();
        }
        let (shown, left) = (order.len().min(rows), names.len());
        let shown = if shown < left && shown == rows { rows - 1 } else { shown };
        let most = if area.width < 50 { 8 } else { 16 };
        let wide = order[..shown].iter().map(|i| names[*i].short.chars().count()).max().unwrap_or(0).min(most);
        let mut all: Vec<(String, Style)> = order[..shown]
            .iter()
            .map(|i| {
                let value = reading.values[*i].map_or("–".to_string(), |v| reading.axis.number(v));
                let short: String = names[*i].short.chars().take(wide).collect();
                let text = self.palette.text(&format!("{short:<wide$} {value:>5}"));
                (text, self.palette.style(Ink::Of(self.hue(reading, *i))))
            })
            .collect();
        if shown < left {
            let word = if many { "all" } else { "more" };
            let n = if many { left } else { left - shown };
            all.push((format!("{n} {word}"), self.palette.style(Ink::Faint)));
        }
        all
    }

    fn hue(&self, reading: &Reading, i: usize) -> Hue {
        match reading.odd.iter().position(|odd| *odd == i) {
            Some(n) => Hue::Odd(n as u8),
            None => reading.reduced.names[i].hue,
        }
    }

    /// Texts of the axis and their rows, the top one first; at most one per row.
    fn ticks(&self, axis: &Axis, rows: u16) -> Vec<(String, u16)> {
        let mut all: Vec<(String, u16)> = Vec::new();
        let ends = [axis.ticks.first(), axis.ticks.last()];
        // The ends come first; values between them are left out if there is no row for them.
        for (value, text) in ends.into_iter().flatten().chain(&axis.ticks) {
            let share = (value - axis.lo) / (axis.hi - axis.lo).max(f64::MIN_POSITIVE);
            let row =
                ((1.0 - share) * f64::from(rows.saturating_sub(1))).round().clamp(0.0, f64::from(rows - 1)) as u16;
            let near = |other: u16| if rows > 5 { other.abs_diff(row) < 2 } else { other == row };
            if all.iter().all(|(_, known)| !near(*known)) {
                all.push((text.clone(), row));
            }
        }
        all
    }

    fn plot(&self, reading: &Reading, area: Rect, buffer: &mut Buffer) {
        let (from, to) = self.model.span();
        let mut canvas = Canvas::new(self.palette.signs, area.width, area.height);
        let (wide, high) = canvas.size();
        let axis = &reading.axis;
        let x = |t: i64| ((t - from) as f64 / (to - from).max(1) as f64 * (wide - 1) as f64).round() as i64;
        let y =
            |v: f64| ((v - axis.lo) / (axis.hi - axis.lo).max(f64::MIN_POSITIVE) * (high - 1) as f64).round() as i64;
        let reduced = reading.reduced;
        let columns = |i: usize| reduced.traces.get(&reduced.ids[i]).map_or(&[][..], |t| t.within(from, to));
        let many = reduced.ids.len() > MAX_LINES;
        if many {
            let style = self.palette.style(Ink::Band);
            for b in reduced.spread.band.iter().filter(|b| (from..=to).contains(&b.t)) {
                canvas.bar(x(b.t), (y(b.values[1]), y(b.values[3])), style);
            }
            let median = reduced.spread.band.iter().map(|b| (b.t, b.values[2]));
            let style = self.palette.style(Ink::Of(Hue::Ink));
            let points: Vec<(i64, i64)> = median.map(|(t, v)| (x(t), y(v))).collect();
            points.windows(2).for_each(|pair| canvas.line(pair[0], pair[1], style));
        }
        let mut order: Vec<usize> = if many { reading.odd.clone() } else { (0..reduced.ids.len()).collect() };
        order.sort_by_key(|i| self.hue(reading, *i).depth());
        for i in order {
            let style = self.palette.style(Ink::Of(self.hue(reading, i)));
            let mut before: Option<(i64, i64)> = None;
            for c in columns(i) {
                let at = x(c.t);
                if let (Some(before), true) = (before, c.joined) {
                    canvas.line(before, (at, y(c.first)), style);
                }
                if reduced.ids.len() == 1 && self.palette.signs != Signs::Ascii {
                    canvas.bar(at, (0, y(c.max)), style);
                }
                let heights = four(c).map(y).fold((i64::MAX, i64::MIN), |(a, b), v| (a.min(v), b.max(v)));
                canvas.bar(at, heights, style);
                before = Some((at, y(c.last)));
            }
        }
        self.crosshair(area, buffer);
        canvas.write(area, buffer);
    }

    /// A vertical line at the time of the crosshair.
    fn crosshair(&self, area: Rect, buffer: &mut Buffer) {
        let (from, to) = self.model.span();
        let Some(at) = self.model.view.crosshair.filter(|at| (from..=to).contains(at)) else { return };
        let x = area.x + ((at - from) as f64 / (to - from).max(1) as f64 * f64::from(area.width - 1)).round() as u16;
        let style = self.palette.style(Ink::Text).add_modifier(Modifier::DIM);
        for row in area.y..area.bottom() {
            buffer.set_string(x, row, self.palette.sign("│", "|"), style);
        }
    }

    /// Times below a plot, without overlap.
    pub fn times(&self, plot: Rect, buffer: &mut Buffer) {
        let (from, to) = self.model.span();
        let style = self.palette.style(Ink::Faint);
        let mut free = plot.x;
        for (t, text) in axis::times(from, to, f64::from(plot.width) / 12.0, self.zone) {
            let at = (t - from) as f64 / (to - from).max(1) as f64 * f64::from(plot.width.saturating_sub(1));
            let len = text.chars().count() as u16;
            let x = (plot.x + at.round() as u16).saturating_sub(len / 2);
            if x >= free && x + len <= plot.right() {
                buffer.set_string(x, plot.bottom(), &text, style);
                free = x + len + 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tick;

    #[test]
    fn a_text_of_the_axis_is_whole_or_left_out() {
        assert_eq!(["50", "1,980", "12,000", "100,000"].map(tick), ["   50", "1,980", "12000", ""]);
    }
}
