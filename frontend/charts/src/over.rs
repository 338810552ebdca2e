//! What lies over the data and changes with the pointer: the rule of the crosshair, dots, and the names and values at
//! the right edge. Drawn apart, so that a moving pointer never redraws a line.

use crate::frame::{Frame, Hue, Plot};
use crate::paint::{block, faint, path, width, words};
use crate::{Area, Drawn};
use plotters::element::Circle;
use plotters::style::Color;
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// The name and value of a series at the instant that is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Name; left out when it is the only series.
    pub name: String,
    /// Value in base units; not finite when there is none.
    pub value: f64,
    /// The value in words.
    pub text: String,
    /// Colour.
    pub hue: Hue,
    /// Opacity of its swatch: 1, or less for the hairlines of a band.
    pub strength: f64,
    /// False when another series has the attention.
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
    if let Some(t) = at.filter(|t| (plot.from..=plot.to).contains(t)) {
        let x = frame.whole(f64::from(plot.x(t)));
        block(area, (x, plot.top), (x + hair, plot.bottom), faint(theme.text_3, 0.8))?;
    } else if frame.live {
        block(area, (plot.right, plot.top), (plot.right + hair, plot.bottom), theme.hair_strong)?;
    }
    let mut shown: Vec<(usize, &Label)> = labels.iter().enumerate().filter(|(_, l)| l.value.is_finite()).collect();
    if shown.is_empty() {
        if at.is_some() {
            let style = words(frame, theme.text_3, false, HPos::Left);
            area.draw_text("no data", &style, (plot.right + frame.px(10.0), (plot.top + plot.bottom) / 2))?;
        }
        return Ok(Vec::new());
    }
    let line = frame.measures.line * frame.css;
    let t = at.unwrap_or(newest);
    if at.is_some() || shown.len() == 1 {
        for (_, label) in shown.iter().filter(|_| (plot.from..=plot.to).contains(&t)) {
            let place = (plot.x(t), plot.snap(label.value, line, frame.device));
            area.draw(&Circle::new(place, frame.px(3.5), theme.card.filled()))?;
            area.draw(&Circle::new(place, frame.px(2.5), label.hue.color(theme).filled()))?;
        }
    }
    if shown.len() == 1 && labels.len() == 1 {
        return single(area, frame, &plot, unit, shown[0].1).map(|()| Vec::new());
    }
    // In steps, else equal lines would trade places each second.
    let rank = |l: &Label| (l.value / (plot.hi - plot.lo) * 40.0).round() as i64;
    shown.sort_unstable_by(|(i, a), (j, b)| rank(b).cmp(&rank(a)).then(i.cmp(j)));
    let (top, bottom) = (plot.top + frame.px(2.0), plot.bottom - frame.px(2.0));
    let room = (bottom - top) / (shown.len() as i32 - 1).max(1);
    let pitch = frame.px(frame.measures.text + 2.0).min(room);
    let mut ys: Vec<i32> = Vec::with_capacity(shown.len());
    for (_, label) in &shown {
        let least = ys.last().map_or(top, |y| y + pitch);
        ys.push(plot.y(label.value).max(least));
    }
    let mut most = bottom;
    for y in ys.iter_mut().rev() {
        *y = (*y).min(most);
        most = *y - pitch;
    }
    let mut places = Vec::with_capacity(shown.len());
    for ((index, label), y) in shown.into_iter().zip(ys) {
        row(area, frame, &plot, label, y)?;
        places.push((index, f64::from(y) / frame.css));
    }
    Ok(places)
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
    let color = faint(label.hue.color(theme), dim * label.strength);
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
    let value = words(frame, faint(theme.text, dim), true, HPos::Right);
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
