//! What is read at an instant: the words of the tooltip, on the screen and for ears.

use super::board::view::{PanelView, Under};
use super::picture::{Look, Picture, is};
use crate::state::Hover;
use crate::widgets::tooltip::{Row, Tip};
use charts::axis;
use charts::band::quantile;
use charts::{Chart, Hue, order};

/// Rows of a tooltip, at most; of a pinned one, which scrolls.
const ROWS: (usize, usize) = (8, 500);

/// Where the instant is before a drawing: a resting pointer stays at its place while time goes on.
pub fn follow_span(hover: &mut Option<Hover>, (from, to): (i64, i64)) {
    if let Some((hover, share)) = hover.as_mut().and_then(|h| h.share.map(|s| (h, s))) {
        hover.t = from + (share * (to - from) as f64).round() as i64;
    }
    *hover = hover.take().filter(|h| (from..=to).contains(&h.t));
}

/// What the tooltip says, for ears: as many rows as are seen, and the unit once.
pub fn spoken(tip: &Tip) -> String {
    let unit = match tip.unit.as_str() {
        "%" => "percent",
        "°C" => "degrees",
        "W" => "watts",
        other => other,
    };
    let row = |(i, r): (usize, &Row)| match i {
        0 => format!(", {}, {} {unit}", r.name, r.value),
        _ => format!("; {}, {}", r.name, r.value),
    };
    let rows: String = tip.rows.iter().take(ROWS.0).enumerate().map(row).collect();
    let rest = if tip.rows.is_empty() { format!(", {}", tip.rest) } else { String::new() };
    format!("{}{rows}{rest}", tip.when)
}

/// What the tooltip says of an instant on a panel whose plot has this space left and right of it, CSS pixels.
pub fn tip(panel: &PanelView, hover: &Hover, look: &Look, (left, right): (f64, f64)) -> Tip {
    let picture = &panel.picture;
    let at = picture.snap(hover.t).unwrap_or(hover.t);
    let then = panel.past.as_ref().map(|past| {
        let look = past.look(look);
        past.picture.values(Some(past.picture.snap(at - past.shift).unwrap_or(at - past.shift)), look.span.1)
    });
    let most = if hover.pinned { ROWS.1 } else { ROWS.0 };
    let (rows, rest) = rows(picture, at, look.span.1, then.as_deref(), most, panel.row(hover));
    let other = panel.other.as_ref().map(|other| {
        let at = other.picture.snap(hover.t).unwrap_or(hover.t);
        (format!("{}, {}", other.title, other.picture.unit), rows_of(other, at, look.span.1, most))
    });
    let mean = if picture.step > 1 { format!(", mean of {}", axis::duration(picture.step)) } else { String::new() };
    let share = (hover.t - look.span.0) as f64 / (look.span.1 - look.span.0).max(1) as f64;
    let place = panel.plot().map(|p| (p.left() + left + share * (p.width() - left - right), p.top() + hover.y));
    Tip {
        when: format!("{}{mean}", axis::clock(at + look.offset, true)),
        unit: picture.unit.to_string(),
        rows,
        rest,
        other,
        place: place.unwrap_or_default(),
        pinned: hover.pinned,
    }
}

fn rows_of(other: &Under, at: i64, to: i64, most: usize) -> Vec<Row> {
    rows(&other.picture, at, to, None, most, None).0
}

/// The series by value, the largest first; on a heat map `first`, then the furthest from the median. At most so many;
/// and what is to be said of the others.
fn rows(
    picture: &Picture,
    at: i64,
    to: i64,
    then: Option<&[f64]>,
    most: usize,
    first: Option<usize>,
) -> (Vec<Row>, String) {
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
    let band = Chart::for_series(picture.names.len()) == Chart::Band;
    let row = |(i, v): &(usize, f64)| Row {
        hue: if band { Hue::Ink } else { picture.names[*i].hue },
        name: picture.names[*i].full.clone(),
        value: picture.number(*v),
        then: then
            .and_then(|t| t.get(*i))
            .filter(|v| v.is_finite())
            .map_or_else(String::new, |v| format!("was {}", picture.number(*v))),
    };
    if first.is_some() {
        // On a heat map the furthest from the median count, not the largest.
        let median = all.get(all.len() / 2).map_or(0.0, |m| m.1);
        let rank = |r: &(usize, f64)| if Some(r.0) == first { i64::MIN } else { order::key(-(r.1 - median).abs()) };
        all = order::by(all.iter().map(rank)).into_iter().map(|i| all[i]).collect();
    }
    (all.iter().take(most).map(row).collect(), rest)
}
