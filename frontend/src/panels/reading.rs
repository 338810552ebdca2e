//! The content of the tooltip at an instant, for the screen and for screen readers.

use super::board::view::{PanelView, Under};
use super::summary::spoken_unit;
use crate::state::Hover;
use crate::widgets::tooltip::{Tip, TipRow};
use charts::axis;
use charts::band::quantile;
use charts::{Chart, Hue, Shows, order};
use shared::unit::duration;
use viewer::picture::{Look, Picture, is};

/// Largest number of rows in a tooltip, then in a pinned one, which can be scrolled.
const MAX_ROWS: (usize, usize) = (8, 500);

/// Updates the instant before a drawing, since a resting pointer keeps its place while time passes. An instant outside
/// the span is dropped.
pub fn follow_span(hover: &mut Option<Hover>, (from, to): (i64, i64)) {
    if let Some((hover, share)) = hover.as_mut().and_then(|h| h.share.map(|s| (h, s))) {
        hover.t = from + (share * (to - from) as f64).round() as i64;
    }
    *hover = hover.take().filter(|h| (from..=to).contains(&h.t));
}

/// The content of the tooltip for screen readers: the visible rows, those unlike their peers first, and the unit once.
pub fn spoken(tip: &Tip) -> String {
    let unit = spoken_unit(&tip.unit);
    let row = |(i, r): (usize, &TipRow)| match i {
        0 => format!(", {}, {} {unit}", r.name, r.value),
        _ => format!("; {}, {}", r.name, r.value),
    };
    let (odd, others): (Vec<&TipRow>, Vec<&TipRow>) = tip.rows.iter().partition(|r| matches!(r.hue, Hue::Odd(_)));
    let rows: String = odd.into_iter().chain(others).take(MAX_ROWS.0).enumerate().map(row).collect();
    let rest = if tip.rows.is_empty() { format!(", {}", tip.rest) } else { String::new() };
    format!("{}{rows}{rest}", tip.when)
}

/// The content of the tooltip for a panel, by the space left and right of its plot in CSS pixels, and the plot's place.
pub fn tip(
    panel: &PanelView,
    hover: &Hover,
    look: &Look,
    ((left, right), plot): ((f64, f64), Option<web_sys::DomRect>),
) -> Tip {
    let picture = &panel.picture;
    let at = picture.snap(hover.t).unwrap_or(hover.t);
    let then = panel.past.as_ref().map(|past| past.values(picture, at - past.shift, look));
    let most = if hover.pinned { MAX_ROWS.1 } else { MAX_ROWS.0 };
    let (rows, rest) = rows(picture, at, look.span.1, then.as_deref(), most, panel.row(hover));
    let other = panel.other.as_ref().map(|other| {
        let at = other.picture.snap(hover.t).unwrap_or(hover.t);
        (format!("{}, {}", other.title, other.picture.unit), rows_of(other, at, look.span.1, most))
    });
    let mean = if picture.step > 1 { format!(", mean of {}", duration(picture.step)) } else { String::new() };
    let share = (hover.t - look.span.0) as f64 / (look.span.1 - look.span.0).max(1) as f64;
    let place = plot.map(|p| (p.left() + left + share * (p.width() - left - right), p.top() + hover.y));
    Tip {
        when: format!("{}{mean}", axis::clock(at + look.zone.at(at), true)),
        unit: picture.unit.to_string(),
        rows,
        rest,
        other,
        place: place.unwrap_or_default(),
        pinned: hover.pinned,
    }
}

fn rows_of(other: &Under, at: i64, to: i64, most: usize) -> Vec<TipRow> {
    rows(&other.picture, at, to, None, most, None).0
}

/// At most `most` rows, one for each series, with the largest value first. With `first`, as on a heat map, this series
/// is first and then those furthest from the median. The text reports the omitted rows.
fn rows(
    picture: &Picture,
    at: i64,
    to: i64,
    then: Option<&[f64]>,
    most: usize,
    first: Option<usize>,
) -> (Vec<TipRow>, String) {
    let values = picture.values(Some(at), to).into_iter().enumerate();
    let mut all: Vec<(usize, f64)> = values.filter(|(i, v)| v.is_finite() && !is(&picture.muted, *i)).collect();
    all = order::by(all.iter().map(|r| order::key(-r.1))).into_iter().map(|i| all[i]).collect();
    let rest = if all.is_empty() {
        "no data here".to_string()
    } else if all.len() > most {
        let mut sorted: Vec<f64> = all.iter().map(|r| r.1).collect();
        sorted.reverse();
        let word = |share: f64| picture.number(quantile(&sorted, share));
        format!("… {} more (min {}, median {}, max {})", all.len() - most, word(0.0), word(0.5), word(1.0))
    } else {
        String::new()
    };
    let band = Chart::for_series(picture.names.len()).traits().shows == Shows::Outliers;
    let row = |(i, v): &(usize, f64)| TipRow {
        hue: match picture.hue(*i) {
            Hue::Of(_) if band => Hue::Ink,
            hue => hue,
        },
        name: picture.names[*i].full.clone(),
        value: picture.number(*v),
        then: then
            .and_then(|t| t.get(*i))
            .filter(|v| v.is_finite())
            .map_or_else(String::new, |v| format!("was {}", picture.number(*v))),
    };
    if first.is_some() {
        // On a heat map the distance from the median counts, and not the value.
        let median = all.get(all.len() / 2).map_or(0.0, |m| m.1);
        let rank = |r: &(usize, f64)| if Some(r.0) == first { i64::MIN } else { order::key(-(r.1 - median).abs()) };
        all = order::by(all.iter().map(rank)).into_iter().map(|i| all[i]).collect();
    }
    (all.iter().take(most).map(row).collect(), rest)
}
