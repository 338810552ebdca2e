//! The samples of a series as lines of CSV, in the format of the server's export.

use crate::range;
use crate::store::source::Source;
use crate::store::trace::Rate;
use shared::catalog::Catalog;
use shared::csv::cell;
use shared::series::SeriesId;

/// One line for each sample of the span (ms since the epoch): time in Unix seconds, source, tag and value. A counter
/// has its increase per second in base units, as it is drawn.
pub fn lines(source: &Source, catalog: &Catalog, series: SeriesId, (from, to): (i64, i64)) -> String {
    let Some(def) = source.defs.get(series as usize) else { return String::new() };
    let about = format!(",{},{},", cell(&source.info.name), cell(&catalog.tag(def)));
    let mut rate = source.is_counter(series, catalog).then(Rate::default);
    let (longest, mut text) = (source.cadence(series) * 3 / 2, String::new());
    let base = catalog.metric(def).map_or(1.0, |m| m.unit.to_base());
    source.samples(series, 0, (from - longest, to), |t, v| {
        let v = rate.as_mut().map_or(v, |r| r.push(t, v, longest) * base);
        if v.is_finite() && (from..=to).contains(&t) {
            text += &range::seconds(t);
            text += &about;
            text += &v.to_string();
            text.push('\n');
        }
    });
    text
}
