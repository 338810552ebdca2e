//! What lies over the data and changes with the pointer: the rule of the crosshair, dots, and the names and values at
//! the right edge. Drawn apart, so that a moving pointer never redraws a line.

use crate::frame::{Chart, Frame, Hue, Plot};
use crate::heat::Rows;
use crate::lanes;
use crate::paint::{block, faint, fill, path, width, words};
use crate::{Area, Drawn, order};
use plotters::element::Circle;
use plotters::style::Color;
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// The name and value of a series at the instant that is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Name; left out when it is the only series.
    pub name: String,
    /// Value in base units; not finite when there is none, which is said too.
    pub value: f64,
    /// The value in words.
    pub text: String,
    /// Colour.
    pub hue: Hue,
    /// False when it is hidden, or another series has the attention.
    pub bright: bool,
}

/// Draws the rule at `at` (none: the newest instant, without a rule), dots and labels. Answers with the names and the
/// middle of each label in CSS pixels from the top, for the pointer.
///
/// # Errors
/// What the backend refused.
pub fn draw<DB: DrawingBackend>(
    area: &Area<DB>,
    frame: &Frame,
    unit: &str,
    at: Option<i64>,
    newest: i64,
    labels: &[Label],
) -> Result<Vec<(usize, f64)>, plotters::drawing::DrawingAreaErrorKind<DB::ErrorType>> {
    let (plot, theme, hair) = (frame.plot(), frame.theme, frame.hair());
    let under = plot.bottom + frame.px(frame.lanes_height());
    if let Some(t) = at.filter(|t| (plot.from..=plot.to).contains(t)) {
        let x = frame.whole(f64::from(plot.x(t)));
        block(area, (x, plot.top), (x + hair, under), faint(theme.text_3, 0.8))?;
    } else if frame.live && frame.chart != Chart::Heat {
        block(area, (plot.right, plot.top), (plot.right + hair, plot.bottom), theme.hair_strong)?;
    }
    let t = at.unwrap_or(newest);
    if frame.measures.right >= 70.0 {
        lanes::say(area, frame, &plot, t)?;
        let age = words(frame, theme.text_3, false, HPos::Right);
        area.draw_text(frame.age, &age, (frame.size.0 - frame.px(12.0), frame.foot()))?;
    }
    if labels.iter().all(|l| !l.value.is_finite()) {
        if at.is_some() && frame.chart != Chart::Lanes {
            let style = words(frame, theme.text_3, false, HPos::Left);
            area.draw_text("no data", &style, (plot.right + frame.px(10.0), (plot.top + plot.bottom) / 2))?;
        }
        return Ok(Vec::new());
    }
    if frame.chart == Chart::Heat {
        return rows(area, frame, &plot, labels);
    }
    let line = frame.measures.line * frame.css;
    if at.is_some() || labels.len() == 1 {
        // A hidden series has no line that a dot could lie on.
        for label in labels.iter().filter(|l| l.bright && l.value.is_finite() && (plot.from..=plot.to).contains(&t)) {
            let place = (plot.x(t), plot.snap(label.value, line, frame.device));
            area.draw(&Circle::new(place, frame.px(3.5), theme.card.filled()))?;
            area.draw(&Circle::new(place, frame.px(2.5), label.hue.color(theme).filled()))?;
        }
    }
    if let [label] = labels {
        return single(area, frame, &plot, unit, label).map(|()| Vec::new());
    }
    // In steps, else equal lines would trade places each second. Those without a value stand below.
    let rank = |l: &Label| {
        if l.value.is_finite() { -(l.value / (plot.hi - plot.lo) * 40.0).round() as i64 } else { i64::MAX }
    };
    let shown: Vec<(usize, &Label)> = order::by(labels.iter().map(rank)).into_iter().map(|i| (i, &labels[i])).collect();
    let wish = shown.iter().map(|(_, l)| if l.value.is_finite() { plot.y(l.value) } else { plot.bottom });
    let ys = apart(frame, wish.collect(), plot.top + frame.px(2.0), plot.bottom - frame.px(2.0));
    let mut places = Vec::with_capacity(shown.len());
    for ((index, label), y) in shown.into_iter().zip(ys) {
        row(area, frame, &plot, label, y)?;
        places.push((index, f64::from(y) / frame.css));
    }
    Ok(places)
}

/// Moves texts, in order from above, so far that none lies on another.
fn apart(frame: &Frame, mut ys: Vec<i32>, top: i32, bottom: i32) -> Vec<i32> {
    let room = (bottom - top) / (ys.len() as i32 - 1).max(1);
    let pitch = frame.px(frame.measures.text + 2.0).min(room);
    let mut least = top;
    for y in &mut ys {
        *y = (*y).max(least);
        least = *y + pitch;
    }
    let mut most = bottom;
    for y in ys.iter_mut().rev() {
        *y = (*y).min(most);
        most = *y - pitch;
    }
    ys
}

/// Beside a heat map: its rows' values where they have room, else the median, those far below it and those without a
/// value. A mark stands at the rows that are far below. The last label is the median's.
fn rows<DB: DrawingBackend>(
    area: &Area<DB>,
    frame: &Frame,
    plot: &Plot,
    labels: &[Label],
) -> Result<Vec<(usize, f64)>, plotters::drawing::DrawingAreaErrorKind<DB::ErrorType>> {
    let Some((median, labels)) = labels.split_last() else { return Ok(Vec::new()) };
    let rows = Rows::new(frame, plot);
    let each = f64::from(rows.pitch) >= frame.measures.text * frame.css;
    let one = labels.iter().any(|l| !l.bright);
    let low = |l: &Label| median.value - l.value > (plot.hi - plot.lo) * 0.06;
    let mut said: Vec<(i32, &Label)> = Vec::new();
    for (i, label) in labels.iter().enumerate() {
        let (x, y) = (plot.right + frame.px(5.0), rows.middle(i));
        if low(label) {
            let (w, h) = (frame.px(6.0), frame.px(4.0));
            fill(area, vec![(x, y), (x + w, y - h), (x + w, y + h)], frame.theme.warn)?;
        }
        if each || low(label) || !label.value.is_finite() {
            said.push((y, label));
        }
        if one && label.bright {
            let (x0, y0) = (plot.left, rows.y(i));
            let frame_of =
                vec![(x0, y0), (plot.right, y0), (plot.right, y0 + rows.pitch), (x0, y0 + rows.pitch), (x0, y0)];
            path(area, frame_of, frame.theme.text, frame.css)?;
        }
    }
    if !each {
        // More than fit are cut: the lowest first in every order would need a place of its own.
        let fit = ((plot.bottom - plot.top) / frame.px(frame.measures.text + 2.0) - 2).max(0) as usize;
        said.truncate(fit);
        said.insert(0, (plot.top + frame.px(frame.measures.text / 2.0), median));
    }
    let end = rows.y(rows.count - 1) + rows.pitch;
    let ys = apart(frame, said.iter().map(|s| s.0).collect(), plot.top, end);
    let near = frame.measures.right < 70.0;
    for ((_, label), y) in said.iter().zip(ys) {
        let right = frame.size.0 - frame.px(if near { 10.0 } else { 12.0 });
        area.draw_text(&label.text, &words(frame, frame.theme.text, true, HPos::Right), (right, y))?;
        if !each && !near {
            let style = words(frame, frame.theme.text_2, false, HPos::Left);
            area.draw_text(&label.name, &style, (plot.right + frame.px(18.0), y))?;
        }
    }
    Ok((0..labels.len()).map(|i| (i, f64::from(rows.middle(i)) / frame.css)).collect())
}

fn single<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, unit: &str, label: &Label) -> Drawn<DB> {
    let y = plot.y(label.value).clamp(plot.top + frame.px(4.0), plot.bottom - frame.px(4.0));
    let x = plot.right + frame.px(10.0);
    let bold = words(frame, frame.theme.text, true, HPos::Left);
    area.draw_text(&label.text, &bold, (x, y))?;
    if frame.measures.right >= 70.0 && unit.len() < 6 {
        let x = x + width(area, &label.text, &bold) + frame.px(4.0);
        area.draw_text(unit, &words(frame, frame.theme.text_3, false, HPos::Left), (x, y))?;
    }
    Ok(())
}

fn row<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, label: &Label, y: i32) -> Drawn<DB> {
    let (theme, near) = (frame.theme, frame.measures.right < 70.0);
    let dim = if label.bright { 1.0 } else { 0.25 };
    let color = faint(label.hue.color(theme), dim);
    let name_x = if near {
        let (x, h) = (plot.right + frame.px(4.0), frame.px(4.0));
        block(area, (x, y - h), (x + frame.px(2.0), y + h), color)?;
        plot.right + frame.px(9.0)
    } else {
        let (a, b) = (plot.right + frame.px(8.0), plot.right + frame.px(20.0));
        if label.hue.dashed() {
            let gap = frame.px(5.0);
            path(area, vec![(a, y), (a + gap, y)], color, 2.0 * frame.css)?;
            path(area, vec![(b - gap, y), (b, y)], color, 2.0 * frame.css)?;
        } else {
            path(area, vec![(a, y), (b, y)], color, 2.0 * frame.css)?;
        }
        plot.right + frame.px(26.0)
    };
    let right = frame.size.0 - frame.px(if near { 10.0 } else { 12.0 });
    let known = label.value.is_finite();
    let value = words(frame, faint(if known { theme.text } else { theme.text_3 }, dim), known, HPos::Right);
    area.draw_text(&label.text, &value, (right, y))?;
    let style = words(frame, faint(theme.text_2, dim), false, HPos::Left);
    let room = right - width(area, &label.text, &value) - frame.px(6.0) - name_x;
    let name = shorten(&label.name, |t| width(area, t, &style) <= room);
    area.draw_text(&name, &style, (name_x, y))
}

/// The longest beginning that fits, with an ellipsis when it is not the whole.
fn shorten(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_string();
    }
    let mut short: Vec<char> = text.chars().collect();
    while short.pop().is_some() {
        let candidate: String = short.iter().chain(['…'].iter()).collect();
        if fits(&candidate) {
            return if short.is_empty() { String::new() } else { candidate };
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_and_a_hopeless_one_left_out() {
        assert_eq!(shorten("/mnt/scratch", |t| t.chars().count() <= 6), "/mnt/…");
        assert_eq!(shorten("eth0", |t| t.chars().count() <= 6), "eth0");
        assert_eq!(shorten("eth0", |_| false), "");
    }
}
