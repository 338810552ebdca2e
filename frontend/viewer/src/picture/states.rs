//! States as bars, of one series or of many together.

use super::Picture;
use crate::store::source::Source;
use crate::store::trace::Trace;
use charts::marks::CellMark;
use charts::reduce::Column;
use charts::{Bar, Chart, Grade, Shows, order};
use shared::catalog::{self, Lane};
use shared::series::SeriesId;

/// The word for a time without a problem.
const NOTHING: &str = "none";

impl Picture {
    /// Makes the lanes from the traces of states.
    pub(super) fn find_states(&mut self) {
        let columns = |ids: &[SeriesId]| -> Vec<&[Column]> {
            ids.iter().filter_map(|i| self.traces.get(i)).map(Trace::columns).collect()
        };
        let mut lanes = Vec::new();
        for (lane, ids) in &self.lane_ids {
            let bars =
                |lane: &catalog::Lane, ids: &[SeriesId]| self::bars(lane, &columns(ids), self.step, self.interval);
            if self.shows() == Some(Shows::States) && ids.len() <= 8 {
                let own = ids.iter().zip(&self.names);
                lanes.extend(own.map(|(id, name)| charts::Lane { name: name.short.clone(), bars: bars(lane, &[*id]) }));
            } else if self.shows() == Some(Shows::States) {
                // With many series, each state that occurs has a lane.
                for state in &lane.states {
                    let one = catalog::Lane { states: vec![state.clone()], ..lane.clone() };
                    lanes.push(charts::Lane { name: state.word.clone(), bars: bars(&one, ids) });
                }
                lanes.retain(|l| l.bars.iter().any(|b| b.strength > 0.0));
                if lanes.is_empty() {
                    lanes.push(charts::Lane { name: "all".into(), bars: bars(lane, ids) });
                }
            } else if columns(ids).iter().any(|c| c.iter().any(|c| c.max > 0.0)) {
                lanes.push(charts::Lane { name: lane.title.clone(), bars: bars(lane, ids) });
            }
        }
        self.lanes = lanes;
    }
}

/// The lane of times with a problem; None if there is none in the span, ms since the epoch.
pub fn fault_lane(marks: &[CellMark], (from, to): (i64, i64)) -> Option<charts::Lane> {
    let bar = |from: i64, to: i64, word: &str, strength: f64, grade: Grade| Bar {
        from,
        to,
        word: word.into(),
        strength,
        alert: strength > 0.0,
        grade,
    };
    let (mut bars, mut end) = (Vec::new(), from);
    for mark in marks.iter().filter(|mark| mark.fault && mark.to > from && mark.from < to) {
        // If two overlap, the second one begins at the end of the first.
        let begin = mark.from.max(end);
        if begin > end {
            bars.push(bar(end, begin, NOTHING, 0.0, Grade::Plain));
        }
        if mark.to > begin {
            let grade = if mark.failed { Grade::Critical } else { Grade::Warning };
            bars.push(bar(begin, mark.to, &mark.name, 0.6, grade));
            end = mark.to;
        }
    }
    if bars.is_empty() {
        return None;
    }
    if end < to {
        bars.push(bar(end, to, NOTHING, 0.0, Grade::Plain));
    }
    Some(charts::Lane { name: "finding".into(), bars })
}

/// Maximum number of alert lanes.
const MAX_ALERT_LANES: usize = 3;

/// The lanes of alerts in a span, ms since the epoch: one bar per alert, in as few lanes as possible without overlap.
/// `alerts` are in order of their start. Alerts without room are left out; the page of alerts lists them.
pub fn alert_lanes(alerts: &[Bar], (from, to): (i64, i64)) -> Vec<charts::Lane> {
    let nothing = |from: i64, to: i64| Bar { from, to, word: NOTHING.into(), ..Bar::default() };
    let mut lanes: Vec<(i64, Vec<Bar>)> = Vec::new();
    for bar in alerts.iter().filter(|bar| bar.to > from && bar.from < to) {
        let place = lanes.iter().position(|(end, _)| *end <= bar.from);
        let place = match place {
            Some(place) => place,
            None if lanes.len() < MAX_ALERT_LANES => {
                lanes.push((from, Vec::new()));
                lanes.len() - 1
            }
            None => continue,
        };
        let (end, bars) = &mut lanes[place];
        if bar.from > *end {
            bars.push(nothing(*end, bar.from));
        }
        bars.push(bar.clone());
        *end = bar.to;
    }
    let made = |(end, mut bars): (i64, Vec<Bar>)| {
        if end < to {
            bars.push(nothing(end, to));
        }
        charts::Lane { name: "alert".into(), bars }
    };
    lanes.into_iter().map(made).collect()
}

/// The lanes of a chart, with the series of each. A chart of states has a lane of its own series; other charts have the
/// lanes that the catalog assigns to them.
pub fn lane_ids(
    source: &Source,
    catalog: &catalog::Catalog,
    id: &str,
    own: &[SeriesId],
    chart: Chart,
) -> Vec<(catalog::Lane, Vec<SeriesId>)> {
    let of = |tag: &str| -> Vec<SeriesId> {
        let metric = catalog.position(tag);
        let all = source.defs.iter().enumerate().filter(|(_, d)| Some(d.metric) == metric);
        all.map(|(i, _)| i as SeriesId).collect()
    };
    let lanes = &catalog.layout.lanes;
    if chart.traits().shows == Shows::States {
        let metric = own.first().and_then(|i| catalog.metric(source.defs.get(*i as usize)?));
        let known = lanes.iter().find(|l| metric.is_some_and(|m| m.tag == l.metric));
        let plain = || catalog::Lane {
            states: vec![catalog::LaneState { value: 0, word: "{n}".into(), alert: false }],
            ..catalog::Lane::default()
        };
        return vec![(known.cloned().unwrap_or_else(plain), own.to_vec())];
    }
    if chart.traits().shows == Shows::Rows {
        return Vec::new();
    }
    lanes
        .iter()
        .filter(|l| l.chart == id)
        .map(|l| (l.clone(), of(&l.metric)))
        .filter(|(_, ids)| !ids.is_empty())
        .collect()
}

/// Position of the first state of a lane that fits a value; None for zero, which is the normal state, and for unknown
/// values.
fn place(lane: &Lane, value: f64) -> Option<usize> {
    let number = value as u32;
    let fits = |s: &shared::catalog::LaneState| {
        s.value == 0 || if lane.bits { number & s.value != 0 } else { number == s.value }
    };
    if number == 0 && value.fract() == 0.0 { None } else { lane.states.iter().position(fits) }
}

/// A value in words. A number that is no known state is written as it is.
pub fn state_word(lane: Option<&Lane>, value: f64) -> String {
    let known = lane.and_then(|l| Some(l.states[place(l, value)?].word.replace("{n}", &shared::unit::number(value))));
    known.unwrap_or_else(|| if value == 0.0 { "no".into() } else { shared::unit::number(value) })
}

/// Two neighboring columns with the same key make one bar. The key is the state, the number of series in this state,
/// the number of series, and the value.
type Key = (Option<usize>, usize, usize, u32);

/// The bars of several series together. Where the series differ, the bar shows the state that comes first in the lane's
/// list, and how many series are in it. In a column with many samples the largest value counts. `step` is the width of
/// a column and `interval` the time between samples, both in ms.
pub fn bars(lane: &Lane, series: &[&[Column]], step: i64, interval: i64) -> Vec<Bar> {
    let mut cells: Vec<(i64, Option<usize>, f64)> = Vec::new();
    for columns in series {
        cells.extend(columns.iter().map(|c| (c.slot, place(lane, c.max), c.max)));
    }
    // No state sorts last. A lane has fewer than 62 states.
    let keys = cells.iter().map(|c| c.0 * 64 + c.1.map_or(63, |s| s.min(62) as i64));
    let cells: Vec<_> = order::by(keys).into_iter().map(|i| cells[i]).collect();
    let mut list: Vec<(Bar, Key)> = Vec::new();
    for group in cells.chunk_by(|a, b| a.0 == b.0) {
        let (slot, state, value) = group[0];
        let count = group.iter().filter(|c| c.1 == state).count();
        let key = (state, count, group.len(), value as u32);
        let (from, to) = if step > 1 { (slot * step, (slot + 1) * step) } else { (slot - interval, slot) };
        match list.last_mut() {
            // A tick may be a little late.
            Some((bar, same)) if *same == key && from - bar.to <= interval / 2 => bar.to = to,
            _ => {
                let share = count as f64 / group.len() as f64;
                let strength = if state.is_some() { 0.2 + 0.4 * share } else { 0.0 };
                let some = match () {
                    () if state.is_none() || series.len() == 1 => String::new(),
                    () if count == group.len() => ", all".into(),
                    () => format!(", {count} of {}", group.len()),
                };
                let word = state_word(Some(lane), if state.is_some() { value } else { 0.0 }) + &some;
                let alert = state.is_some_and(|s| lane.states[s].alert);
                list.push((Bar { from, to, word, strength, alert, ..Bar::default() }, key));
            }
        }
    }
    list.into_iter().map(|(bar, _)| bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use charts::reduce::Reducer;
    use shared::catalog::LaneState;

    #[test]
    fn alerts_at_one_time_have_lanes_of_their_own_and_the_others_share_one() {
        let bar = |from: i64, to: i64| Bar { from, to, word: format!("{from}"), ..Bar::default() };
        let said = |alerts: &[Bar]| {
            let lanes = alert_lanes(alerts, (0, 100));
            lanes.iter().map(|l| l.bars.iter().map(|b| (b.from, b.to)).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(said(&[]), Vec::<Vec<(i64, i64)>>::new());
        assert_eq!(said(&[bar(-20, -10), bar(200, 300)]), Vec::<Vec<(i64, i64)>>::new(), "neither is in the span");
        assert_eq!(
            said(&[bar(-5, 20), bar(10, 30), bar(30, 900)]),
            [vec![(-5, 20), (20, 30), (30, 900)], vec![(0, 10), (10, 30), (30, 100)]]
        );
        assert_eq!(said(&[bar(1, 90), bar(2, 90), bar(3, 90), bar(4, 90)]).len(), MAX_ALERT_LANES);
    }

    fn lane() -> Lane {
        let state = |value, word: &str, alert| LaneState { value, word: word.into(), alert };
        Lane {
            chart: String::new(),
            title: String::new(),
            metric: String::new(),
            bits: true,
            states: vec![state(96, "heat", true), state(4, "power", false)],
        }
    }

    fn series(values: &[f64]) -> Vec<Column> {
        let mut r = Reducer::new(1, 1_500);
        values.iter().enumerate().for_each(|(i, v)| r.push(i as i64 * 1000, *v));
        r.columns().to_vec()
    }

    #[test]
    fn one_series_says_its_states_and_a_gap_is_none_of_them() {
        let bars = bars(&lane(), &[&series(&[0.0, 4.0, 4.0, f64::NAN, 4.0, 36.0])], 1, 1000);
        let said: Vec<(i64, i64, &str, bool)> = bars.iter().map(|b| (b.from, b.to, b.word.as_str(), b.alert)).collect();
        let expected = [
            (-1000, 0, "no", false),
            (0, 2000, "power", false),
            (3000, 4000, "power", false),
            (4000, 5000, "heat", true),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn many_say_the_first_of_the_list_and_how_many() {
        let all = [series(&[4.0, 4.0]), series(&[4.0, 64.0]), series(&[4.0, 0.0])];
        let all: Vec<&[Column]> = all.iter().map(Vec::as_slice).collect();
        let words: Vec<String> = bars(&lane(), &all, 1, 1000).into_iter().map(|b| b.word).collect();
        assert_eq!(words, ["power, all", "heat, 1 of 3"]);
    }

    #[test]
    fn what_was_wrong_has_a_lane_where_it_was_in_the_span_and_there_alone() {
        let mark =
            |from, to, name: &str, fault| CellMark { from, to, name: name.into(), failed: false, strong: false, fault };
        let marks = [mark(0, 900, "[7]", false), mark(200, 400, "hang", true), mark(300, 500, "throttle", true)];
        let lane = fault_lane(&marks, (100, 600)).expect("a lane");
        let said: Vec<(i64, i64, &str, bool)> =
            lane.bars.iter().map(|b| (b.from, b.to, b.word.as_str(), b.alert)).collect();
        assert_eq!(lane.bars[1].grade, Grade::Warning);
        let expected = [
            (100, 200, "none", false),
            (200, 400, "hang", true),
            (400, 500, "throttle", true),
            (500, 600, "none", false),
        ];
        assert_eq!(said, expected);
        assert!(fault_lane(&marks, (500, 600)).is_none() && fault_lane(&marks[..1], (0, 600)).is_none());
    }

    #[test]
    fn an_unknown_number_stands_for_itself() {
        assert_eq!(
            (state_word(None, 79.0), state_word(None, 0.0), state_word(Some(&lane()), 4.0)),
            ("79".into(), "no".into(), "power".into())
        );
    }
}
