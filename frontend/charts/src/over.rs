//! Draws the layer over the data that changes with the pointer: the crosshair's line, dots, and the names and values at
//! the right edge. It is a layer of its own, so that a moving pointer never redraws the data.

use crate::frame::{Frame, Hue, Plot};
use crate::heat::{ROWS_PER_GROUP, Rows};
use crate::kind::Shows;
use crate::labels::{Label, LabelPlace, Room, apart, joined, ordered};
use crate::lanes;
use crate::paint::{block, faint, fill, path, shorten, width, words};
use crate::{Area, Drawn};
use plotters::element::Circle;
use plotters::style::Color;
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// Labels at the right edge of a chart, and how they are drawn.
#[derive(Clone, Copy, Debug)]
pub struct EdgeLabels<'a> {
    /// One label for each series that is drawn by itself.
    pub labels: &'a [Label],
    /// Unit of the values; shown beside the value of a single series.
    pub unit: &'a str,
    /// Noun for the series together, such as `GPUs`: then lines that are close together share one label. None keeps
    /// every label separate.
    pub joined_as: Option<&'a str>,
    /// The labels of the previous drawing. Their order and grouping are kept while they are nearly right.
    pub before: &'a [LabelPlace],
}

/// Draws the line of the crosshair at `at`, dots and labels. If `at` is None, labels show the instant `newest` and
/// there is no line. Returns the positions of the labels, for the pointer.
///
/// # Errors
/// Returns the error of the drawing backend.
pub fn draw<DB: DrawingBackend>(
    area: &Area<DB>,
    frame: &Frame,
    at: Option<i64>,
    newest: i64,
    said: EdgeLabels,
) -> Result<Vec<LabelPlace>, plotters::drawing::DrawingAreaErrorKind<DB::ErrorType>> {
    let labels = said.labels;
    let (plot, theme, hair) = (frame.plot(), frame.theme, frame.hair());
    if plot.is_empty() {
        return Ok(Vec::new());
    }
    let under = plot.bottom + frame.px(frame.lanes_height());
    if let Some(t) = at.filter(|t| (plot.from..=plot.to).contains(t)) {
        let x = frame.whole(f64::from(plot.x(t)));
        block(area, (x, plot.top), (x + hair, under), faint(theme.text_3, 0.8))?;
    } else if frame.live && frame.shows() != Shows::Rows {
        block(area, (plot.right, plot.top), (plot.right + hair, plot.bottom), theme.hair_strong)?;
    }
    let t = at.unwrap_or(newest);
    if !frame.measures.near() && frame.has_names() {
        lanes::draw_states(area, frame, &plot, t)?;
        let age = words(frame, theme.text_3, false, HPos::Right);
        // At the crosshair the text is the time of the values, else the age of the newest one.
        let when = at.map(|t| frame.along.at(t, frame.zone));
        area.draw_text(when.as_deref().unwrap_or(frame.age), &age, (frame.size.0 - frame.px(12.0), frame.foot()))?;
    }
    if labels.iter().all(|l| !l.value.is_finite()) {
        if at.is_some() && frame.shows() != Shows::States {
            let style = words(frame, theme.text_3, false, HPos::Left);
            area.draw_text("no data", &style, (plot.right + frame.px(10.0), (plot.top + plot.bottom) / 2))?;
        }
        return Ok(Vec::new());
    }
    if frame.shows() == Shows::Rows && frame.has_names() {
        return rows(area, frame, &plot, labels);
    }
    let line = frame.measures.line * frame.css;
    if frame.shows() != Shows::Rows && (at.is_some() || labels.len() == 1) {
        // A hidden series has no line for a dot to lie on.
        for label in labels.iter().filter(|l| l.bright && l.value.is_finite() && (plot.from..=plot.to).contains(&t)) {
            let place = (plot.x(t), plot.snap(label.value, line, frame.device));
            area.draw(&Circle::new(place, frame.px(3.5), theme.card.filled()))?;
            area.draw(&Circle::new(place, frame.px(2.5), label.hue.color(theme).filled()))?;
        }
    }
    if !frame.has_names() {
        return Ok(Vec::new());
    }
    if let [label] = labels {
        return single(area, frame, &plot, said.unit, label).map(|()| Vec::new());
    }
    let y = |label: &Label| if label.value.is_finite() { plot.y(label.value) } else { plot.bottom };
    let room = room(frame, plot.top + frame.px(2.0), plot.bottom - frame.px(2.0));
    let order = ordered(labels, plot.hi - plot.lo, said.before);
    let groups = match said.joined_as {
        Some(_) => joined(&order, labels, y, room.pitch, said.before),
        None => order.into_iter().map(|i| vec![i]).collect(),
    };
    let middle = |group: &Vec<usize>| group.iter().map(|i| y(&labels[*i])).sum::<i32>() / group.len() as i32;
    let ys = apart(room, groups.iter().map(middle).collect());
    // A single group beside other labels is named "others"; several groups are distinguished by their values.
    let others = groups.len() > 1 && groups.iter().filter(|group| group.len() > 1).count() == 1;
    let mut places = Vec::with_capacity(groups.len());
    for (series, y) in groups.into_iter().zip(ys) {
        match series[..] {
            [one] => row(area, frame, &plot, &[labels[one].hue], &labels[one], y)?,
            _ => {
                let noun = if others { "others" } else { said.joined_as.unwrap_or_default() };
                let members: Vec<&Label> = series.iter().map(|i| &labels[*i]).collect();
                let hues: Vec<Hue> = members.iter().map(|label| label.hue).collect();
                row(area, frame, &plot, &hues, &together(&members, noun, frame.measures.near()), y)?;
            }
        }
        places.push(LabelPlace { series, y: f64::from(y) / frame.css });
    }
    Ok(places)
}

/// One label for several series: their number, and their range.
fn together(members: &[&Label], noun: &str, near: bool) -> Label {
    let largest = members.iter().max_by(|a, b| a.value.total_cmp(&b.value)).map_or("", |label| &label.text);
    let smallest = members.iter().min_by(|a, b| a.value.total_cmp(&b.value)).map_or("", |label| &label.text);
    Label {
        name: if near { format!("{}×", members.len()) } else { format!("{} {noun}", members.len()) },
        value: members[0].value,
        text: range(smallest, largest),
        hue: Hue::Ink,
        bright: members[0].bright,
    }
}

/// The text of a range: whole numbers if they differ, because decimals add little to a range.
fn range(smallest: &str, largest: &str) -> String {
    match (smallest.parse::<f64>(), largest.parse::<f64>()) {
        _ if smallest == largest => largest.to_string(),
        (Ok(a), Ok(b)) if b - a >= 1.0 && b >= 10.0 => format!("{}–{}", a.floor(), b.ceil()),
        _ => format!("{smallest}–{largest}"),
    }
}

/// The name of devices with consecutive numbers, such as `GPU 8–15`; None for others.
fn from_to(members: &[Label]) -> Option<String> {
    let number = |label: &Label| label.name.rsplit(' ').next()?.parse::<usize>().ok();
    let (first, last) = (number(members.first()?)?, number(members.last()?)?);
    let follow = members.len() > 1 && members.iter().enumerate().all(|(i, label)| number(label) == Some(first + i));
    follow.then(|| format!("{}–{last}", members[0].name))
}

/// The space for labels between two heights, in units.
fn room(frame: &Frame, top: i32, bottom: i32) -> Room {
    Room { top, bottom, pitch: frame.px(frame.measures.text + 2.0) }
}

/// Draws the labels beside a heat map: the value of each row if rows are high enough for text. Otherwise the median,
/// rows far below the median, and rows without a value. Each row far below the median has a mark. The last label is the
/// median.
fn rows<DB: DrawingBackend>(
    area: &Area<DB>,
    frame: &Frame,
    plot: &Plot,
    labels: &[Label],
) -> Result<Vec<LabelPlace>, plotters::drawing::DrawingAreaErrorKind<DB::ErrorType>> {
    let Some((median, labels)) = labels.split_last() else { return Ok(Vec::new()) };
    let rows = Rows::new(frame, plot);
    let each = f64::from(rows.pitch) >= frame.measures.text * frame.css;
    let one = labels.iter().any(|l| !l.bright);
    let low = |l: &Label| median.value - l.value > (plot.hi - plot.lo) * 0.06;
    let (near, mut ranges) = (frame.measures.near(), Vec::new());
    let mut said: Vec<(i32, &Label)> = Vec::new();
    for (i, label) in labels.iter().enumerate() {
        let (x, y) = (plot.right + frame.px(5.0), rows.middle(i));
        let is_odd = matches!(label.hue, Hue::Odd(_));
        if low(label) || is_odd {
            let (w, h) = (frame.px(6.0), frame.px(4.0));
            let color = if is_odd { frame.theme.odd } else { frame.theme.warn };
            fill(area, vec![(x, y), (x + w, y - h), (x + w, y + h)], color)?;
        }
        if each || is_odd || low(label) || !label.value.is_finite() {
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
        // A healthy map shows the range of each group of eight.
        for (group, members) in labels.chunks(ROWS_PER_GROUP).enumerate().filter(|_| said.is_empty() && !near) {
            if let Some(name) = from_to(members) {
                let y = rows.y(group * ROWS_PER_GROUP) + rows.pitch * members.len() as i32 / 2;
                ranges.push((y, Label { name, ..together(&members.iter().collect::<Vec<_>>(), "", false) }));
            }
        }
        said.extend(ranges.iter().map(|(y, label)| (*y, label)));
        // Labels that do not fit are left out, those of the lowest rows first.
        let fit = ((plot.bottom - plot.top) / frame.px(frame.measures.text + 2.0) - 2).max(0) as usize;
        said.truncate(fit);
        said.insert(0, (plot.top + frame.px(frame.measures.text / 2.0), median));
    }
    let end = rows.y(rows.count - 1) + rows.pitch;
    let ys = apart(room(frame, plot.top, end), said.iter().map(|s| s.0).collect());
    for ((_, label), y) in said.iter().zip(ys) {
        let right = frame.size.0 - frame.px(if near { 10.0 } else { 12.0 });
        area.draw_text(&label.text, &words(frame, frame.theme.text, true, HPos::Right), (right, y))?;
        if !each && !near {
            let style = words(frame, frame.theme.text_2, false, HPos::Left);
            area.draw_text(&label.name, &style, (plot.right + frame.px(18.0), y))?;
        }
    }
    Ok((0..labels.len()).map(|i| LabelPlace { series: vec![i], y: f64::from(rows.middle(i)) / frame.css }).collect())
}

fn single<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, unit: &str, label: &Label) -> Drawn<DB> {
    let y = plot.y(label.value).min(plot.bottom - frame.px(4.0)).max(plot.top + frame.px(4.0));
    let x = plot.right + frame.px(10.0);
    let bold = words(frame, frame.theme.text, true, HPos::Left);
    area.draw_text(&label.text, &bold, (x, y))?;
    if !frame.measures.near() && unit.len() < 6 {
        let x = x + width(area, &label.text, &bold) + frame.px(4.0);
        area.draw_text(unit, &words(frame, frame.theme.text_3, false, HPos::Left), (x, y))?;
    }
    Ok(())
}

/// Draws one label; `hues` are the colors of the series that it names.
fn row<DB: DrawingBackend>(
    area: &Area<DB>,
    frame: &Frame,
    plot: &Plot,
    hues: &[Hue],
    label: &Label,
    y: i32,
) -> Drawn<DB> {
    let (theme, near) = (frame.theme, frame.measures.near());
    let dim = if label.bright { 1.0 } else { 0.25 };
    let color = |hue: &Hue| faint(hue.color(theme), dim);
    let name_x = if near {
        let (x, h) = (plot.right + frame.px(4.0), frame.px(4.0));
        block(area, (x, y - h), (x + frame.px(2.0), y + h), color(&hues[0]))?;
        plot.right + frame.px(9.0)
    } else {
        let (a, b) = (plot.right + frame.px(8.0), plot.right + frame.px(20.0));
        match hues {
            [one] if one.dashed() => {
                let gap = frame.px(5.0);
                path(area, vec![(a, y), (a + gap, y)], color(one), 2.0 * frame.css)?;
                path(area, vec![(b - gap, y), (b, y)], color(one), 2.0 * frame.css)?;
            }
            [one] => path(area, vec![(a, y), (b, y)], color(one), 2.0 * frame.css)?,
            many => {
                // A stripe for each series, side by side.
                let (high, n) = (frame.px(4.0), many.len() as i32);
                for (i, hue) in (0..n).zip(many) {
                    let edge = |k: i32| frame.whole(f64::from(a + (b - a) * k / n));
                    block(area, (edge(i), y - high), (edge(i + 1), y + high), color(hue))?;
                }
            }
        }
        plot.right + frame.px(26.0)
    };
    let right = frame.size.0 - frame.px(if near { 10.0 } else { 12.0 });
    let known = label.value.is_finite();
    let value = words(frame, faint(if known { theme.text } else { theme.text_3 }, dim), known, HPos::Right);
    area.draw_text(&label.text, &value, (right, y))?;
    let is_odd = matches!(label.hue, Hue::Odd(_));
    let style = words(frame, faint(if is_odd { theme.odd } else { theme.text_2 }, dim), is_odd && !near, HPos::Left);
    let room = right - width(area, &label.text, &value) - frame.px(6.0) - name_x;
    let name = shorten(&label.name, |t| width(area, t, &style) <= room);
    area.draw_text(&name, &style, (name_x, y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_as_short_as_it_can_be() {
        assert_eq!(range("72.5", "75.6"), "72–76");
        assert_eq!(range("0.26", "0.33"), "0.26–0.33");
        assert_eq!((range("99", "99"), range("1,204", "1,388")), ("99".into(), "1,204–1,388".into()));
    }

    #[test]
    fn devices_that_follow_each_other_have_a_name_together() {
        let labels = |names: &[&str]| -> Vec<Label> {
            let label = |name: &&str| Label {
                name: name.to_string(),
                value: 1.0,
                text: "1".into(),
                hue: Hue::Ink,
                bright: true,
            };
            names.iter().map(label).collect()
        };
        assert_eq!(from_to(&labels(&["GPU 8", "GPU 9", "GPU 10"])).as_deref(), Some("GPU 8–10"));
        assert_eq!((from_to(&labels(&["GPU 9", "GPU 8"])), from_to(&labels(&["sda", "sdb"]))), (None, None));
    }
}
