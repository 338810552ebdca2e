//! Devices, one row each: their history as cells, and the newest values of the top charts in columns.

use crate::chart::{Frame, Reading};
use crate::palette::{Depth, Ink, Palette, Signs};
use charts::reduce::Column;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use shared::series::SeriesId;
use viewer::spread::stand;
use viewer::store::plan::{HEAT_SUFFIX, Panel};

/// Width of a value, cells.
const VALUE: u16 = 9;
/// Maximum number of value columns.
const MAX_VALUES: usize = 6;
/// Minimum width of the history, cells.
const PAST: u16 = 16;

/// A cell that is filled from below by a share, 0 to 1.
pub fn bar(palette: Palette, share: f64) -> &'static str {
    const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    const LETTERS: [&str; 8] = [".", ":", "-", "=", "+", "*", "%", "#"];
    let level = (share.clamp(0.0, 1.0) * 7.0).round() as usize;
    if palette.signs == Signs::Ascii { LETTERS[level] } else { BARS[level] }
}

impl Frame<'_> {
    /// Name and number of the devices of a chart, if they are of one kind and differ only by number.
    pub fn devices(&self, id: &str) -> Option<(&str, usize)> {
        let names = &self.model.reduced.get(id.trim_end_matches(HEAT_SUFFIX))?.names;
        let (first, _) = names.first()?.full.rsplit_once(' ')?;
        let number = |n: &str| n.bytes().all(|b| b.is_ascii_digit());
        let alike = |full: &str| full.rsplit_once(' ').is_some_and(|(word, n)| word == first && number(n));
        names.iter().all(|name| alike(&name.full)).then_some((first, names.len()))
    }

    /// Draws the devices of `panel`, with a column of values for it and for each of `beside`.
    pub fn draw_rows(&self, panel: &Panel, beside: &[Panel], focused: bool, area: Rect, buffer: &mut Buffer) {
        let id = panel.id.trim_end_matches(HEAT_SUFFIX);
        let Some(reading) = self.reading(id) else { return };
        let palette = self.palette;
        let instance = |id: &SeriesId| Some(self.model.shown()?.defs.get(*id as usize)?.instance.clone());
        let (names, own) = (&reading.reduced.names, self.devices(id));
        let name_wide = names.iter().map(|name| name.full.chars().count()).max().unwrap_or(0) as u16;
        let room = area.width.saturating_sub(name_wide + 1 + PAST) / VALUE;
        let beside: Vec<(&Panel, Reading)> = beside
            .iter()
            .filter(|other| other.id != id && !other.id.ends_with(HEAT_SUFFIX) && self.devices(&other.id) == own)
            .filter_map(|other| Some((other, self.reading(&other.id)?)))
            .take(usize::from(room.saturating_sub(1)).min(MAX_VALUES - 1))
            .collect();
        let values = VALUE * (beside.len() as u16 + 1);
        let plot = Rect {
            x: area.x + name_wide + 1,
            y: area.y + 1,
            width: area.width.saturating_sub(name_wide + 1 + values),
            height: area.height.saturating_sub(2),
        };
        if plot.height == 0 || plot.width < 4 {
            return;
        }
        let mut style = Style::new().add_modifier(Modifier::BOLD);
        if focused {
            style = style.add_modifier(Modifier::REVERSED);
        }
        let title = palette.text(&panel.title);
        let (x, _) = buffer.set_stringn(area.x, area.y, title, usize::from(name_wide + plot.width), style);
        let (rows, hidden) = self.order(&reading, usize::from(plot.height));
        if hidden > 0 {
            let words = palette.text(&format!(" the {} of {} furthest from the median", rows.len(), names.len()));
            let room = usize::from(plot.right().saturating_sub(x));
            buffer.set_stringn(x, area.y, words, room, palette.style(Ink::Faint));
        }
        let columns: Vec<(&str, &Reading)> = std::iter::once((panel.title.as_str(), &reading))
            .chain(beside.iter().map(|(panel, reading)| (panel.title.as_str(), reading)))
            .collect();
        for (n, (title, column)) in columns.iter().enumerate() {
            let unit = column.axis.scale.symbol;
            let word = if n == 0 { String::new() } else { title.rsplit(' ').next().unwrap_or_default().to_string() };
            let whole = palette.text(&format!("{word} {unit}"));
            // If the word does not fit, the unit identifies the column.
            let fits = whole.chars().count() < usize::from(VALUE);
            let head = if fits { whole } else { palette.text(unit) };
            let at = plot.right() + VALUE * (n as u16 + 1) - head.chars().count() as u16;
            buffer.set_string(at, area.y, head, palette.style(Ink::Faint));
        }
        for (row, &i) in rows.iter().enumerate() {
            let y = plot.y + row as u16;
            let odd = reading.odd.contains(&i);
            let style = if odd {
                palette.style(Ink::Of(charts::Hue::Odd(0))).add_modifier(Modifier::BOLD)
            } else {
                palette.style(Ink::Text)
            };
            buffer.set_string(area.x, y, palette.text(&names[i].full), style);
            self.past(&reading, i, Rect { y, height: 1, ..plot }, buffer);
            let device = instance(&reading.reduced.ids[i]);
            for (n, (_, column)) in columns.iter().enumerate() {
                let place = column.reduced.ids.iter().position(|id| instance(id) == device);
                let value = place.and_then(|place| column.values[place]);
                let text = palette.text(&value.map_or("–".to_string(), |v| column.axis.number(v)));
                let at = plot.right() + VALUE * (n as u16 + 1) - text.chars().count() as u16;
                let style = if place.is_some_and(|place| column.odd.contains(&place)) {
                    palette.style(Ink::Of(charts::Hue::Odd(0))).add_modifier(Modifier::BOLD)
                } else {
                    palette.style(Ink::Text)
                };
                buffer.set_string(at, y, text, style);
            }
        }
        self.times(Rect { height: rows.len() as u16, ..plot }, buffer);
    }

    /// The devices that get a row, and the number without one. If not all fit, the ones that differ most from the
    /// others get rows.
    fn order(&self, reading: &Reading, rows: usize) -> (Vec<usize>, usize) {
        let n = reading.reduced.ids.len();
        if n <= rows {
            return ((0..n).collect(), 0);
        }
        let (from, to) = self.model.span();
        let span = reading.axis.hi - reading.axis.lo;
        let distance = |i: &usize| {
            let trace = reading.reduced.traces.get(&reading.reduced.ids[*i]);
            let columns = trace.map_or(&[][..], |trace| trace.within(from, to));
            stand(columns, &reading.reduced.spread.band, span, false).distance
        };
        let mut all: Vec<(usize, f64)> = (0..n).map(|i| (i, distance(&i))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut all: Vec<usize> = all.into_iter().map(|(i, _)| i).take(rows).collect();
        // Shown in their usual order, because rows that change places cannot be read.
        all.sort_unstable();
        (all, n - rows)
    }

    /// The history of one series as a row of cells.
    fn past(&self, reading: &Reading, i: usize, area: Rect, buffer: &mut Buffer) {
        let (from, to) = self.model.span();
        let Some(trace) = reading.reduced.traces.get(&reading.reduced.ids[i]) else { return };
        let wide = usize::from(area.width);
        let mut cells: Vec<(f64, f64)> = vec![(0.0, 0.0); wide];
        let place = |t: i64| ((t - from) as f64 / (to - from).max(1) as f64 * (wide - 1) as f64).round() as usize;
        let columns: &[Column] = trace.within(from, to);
        for (k, c) in columns.iter().enumerate() {
            let start = place(c.t).min(wide - 1);
            // A cell between two connected samples repeats the value before.
            let end = columns.get(k + 1).filter(|next| next.joined).map_or(start + 1, |next| place(next.t).min(wide));
            for cell in &mut cells[start..end.max(start + 1)] {
                *cell = (cell.0 + c.mean(), cell.1 + 1.0);
            }
        }
        for (x, (sum, n)) in cells.into_iter().enumerate().filter(|(_, (_, n))| *n > 0.0) {
            let axis = &reading.axis;
            let share = ((sum / n - axis.lo) / (axis.hi - axis.lo).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            // With many colors the color shows the value, else the height of the bar.
            let is_colored = self.palette.signs != Signs::Ascii && self.palette.depth > Depth::Sixteen;
            let sign = if is_colored { "█" } else { bar(self.palette, share) };
            let style = self.palette.style(Ink::Heat(share));
            buffer.set_string(area.x + x as u16, area.y, sign, style);
        }
    }
}
