//! States over time: a row of bars each, under a chart or as a chart of their own.

use crate::frame::{Bar, Frame, Grade, Lane, Plot};
use crate::kind::{Shows, Traits, no_note};
use crate::paint::{block, faint, fill, shorten, width, words};
use crate::{Area, Drawn, over_time};
use plotters::style::text_anchor::HPos;
use plotters_backend::DrawingBackend;

/// Opacity of a bar whose state the user should look at.
const ALERT_OPACITY: f64 = 0.42;

/// Vertical middle of the first lane, and the distance from one lane to the next, both in units.
fn places(frame: &Frame, plot: &Plot) -> (i32, i32) {
    let pitch = frame.px(frame.measures.text + 4.0);
    if frame.shows() != Shows::States {
        return (plot.bottom + frame.px(16.0), pitch);
    }
    let count = frame.lanes.len().max(1) as i32;
    let pitch = ((plot.bottom - plot.top) / count).min(pitch * 3 / 2);
    (plot.top + pitch / 2, pitch)
}

/// Number n such that every n-th lane has room for a text.
fn sparse(frame: &Frame, pitch: i32) -> usize {
    (frame.px(frame.measures.text) / pitch.max(1) + i32::from(frame.px(frame.measures.text) % pitch.max(1) > 0)).max(1)
        as usize
}

/// Series whose values are states.
pub(crate) const TRAITS: Traits =
    Traits { fits: |shape| shape.states, shows: Shows::States, column_px: 1, note: no_note };

/// Draws a chart of states: its rows are all its data.
pub(crate) fn draw<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    over_time(area, frame, plot, || Ok(()))
}

/// Draws the rows of bars of a frame: in the plot for a chart of states, under the plot for any other.
pub(crate) fn bars<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot) -> Drawn<DB> {
    let (first, pitch) = places(frame, plot);
    let name = words(frame, frame.theme.text_3, false, HPos::Right);
    let device = frame.device as i32;
    let high = frame.whole(6.0 * frame.css).min(pitch - device).max(device);
    for (i, lane) in frame.lanes.iter().enumerate() {
        let middle = first + i as i32 * pitch;
        let y = frame.whole(f64::from(middle - high / 2));
        if i % sparse(frame, pitch) == 0 {
            // A name that is longer than the gutter is cut at its end, because its beginning identifies it.
            let (right, room) = (plot.left - frame.px(8.0), plot.left - frame.px(10.0));
            let short = shorten(&lane.name, |text| width(area, text, &name) <= room);
            area.draw_text(&short, &name, (right, middle))?;
        }
        block(area, (plot.left, y + high / 2), (plot.right, y + high / 2 + frame.hair()), frame.theme.grid)?;
        for bar in lane.bars.iter().filter(|b| b.strength > 0.0 && b.to > plot.from && b.from < plot.to) {
            let color = match bar.grade {
                Grade::Critical => faint(frame.theme.bad, ALERT_OPACITY),
                Grade::Plain | Grade::Warning if bar.alert => faint(frame.theme.warn, ALERT_OPACITY),
                _ => faint(frame.theme.unknown, bar.strength),
            };
            let x = frame.whole(f64::from(plot.x_within(bar.from)));
            // A bar is at least 2 CSS pixels wide, so that a short state can be seen.
            let end = frame.whole(f64::from(plot.x_within(bar.to))).max(x + frame.px(2.0)).min(plot.right);
            if bar.grade == Grade::Pending {
                let middle = y + high / 2;
                block(area, (x.min(end - device), middle), (end, middle + frame.hair()), frame.theme.text_2)?;
                continue;
            }
            block(area, (x.min(end - device), y), (end, y + high), color)?;
            if bar.from >= plot.from {
                begin(area, frame, (x, y + high / 2), bar.grade)?;
            }
        }
    }
    Ok(())
}

/// The shape at the start of an alert: it shows the severity without color.
fn begin<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, (x, y): (i32, i32), grade: Grade) -> Drawn<DB> {
    let h = frame.px(4.0);
    match grade {
        Grade::Warning => fill(area, vec![(x, y + h), (x + h, y - h), (x + 2 * h, y + h)], frame.theme.warn),
        Grade::Critical => block(area, (x, y - h + frame.px(0.5)), (x + 2 * h - frame.px(1.0), y + h), frame.theme.bad),
        _ => Ok(()),
    }
}

/// The bar of a lane at an instant; None when the state is unknown there.
pub fn at(lane: &Lane, t: i64) -> Option<&Bar> {
    let after = lane.bars.partition_point(|b| b.from < t);
    lane.bars[..after].last().filter(|b| t <= b.to)
}

/// Writes the state of each lane at the instant `t` beside the right edge.
pub(crate) fn draw_states<DB: DrawingBackend>(area: &Area<DB>, frame: &Frame, plot: &Plot, t: i64) -> Drawn<DB> {
    let (first, pitch) = places(frame, plot);
    for (i, lane) in frame.lanes.iter().enumerate().step_by(sparse(frame, pitch)) {
        let (bar, y) = (at(lane, t), first + i as i32 * pitch);
        let x = plot.right + frame.px(8.0);
        let alert = bar.is_some_and(|b| b.alert);
        if bar.is_some_and(|b| b.grade == Grade::Critical) {
            begin(area, frame, (x, y), Grade::Critical)?;
        } else if alert {
            let h = frame.px(4.0);
            fill(area, vec![(x, y + h), (x + frame.px(5.0), y - h), (x + frame.px(10.0), y + h)], frame.theme.warn)?;
        }
        let plain = bar.is_none_or(|b| b.strength == 0.0);
        let color = if plain { frame.theme.text_3 } else { frame.theme.text_2 };
        let x = if alert { x + frame.px(18.0) } else { x };
        area.draw_text(bar.map_or("no data", |b| &b.word), &words(frame, color, false, HPos::Left), (x, y))?;
    }
    Ok(())
}
