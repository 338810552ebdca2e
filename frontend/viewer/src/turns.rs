//! Drawing order of charts: a frame draws charts for a limited time, and the next frames continue with the rest. So
//! drawing never blocks clicks and keys, regardless of the number and size of charts.

use charts::order;
use std::collections::VecDeque;

/// Time in ms after which a frame starts no other chart.
const FRAME_MS: f64 = 15.0;
/// Number of charts that each frame draws, regardless of their duration: the one under the pointer, and one that waits.
/// The one under the pointer is first in every round. So every chart is drawn eventually, even if each frame brings a
/// change.
const MIN_CHARTS: usize = 2;

/// The charts that are still to be drawn, the next one first.
#[derive(Default)]
pub struct Turns {
    due: VecDeque<String>,
    round: u64,
}

impl Turns {
    /// Begins a round in which all charts are drawn, because something changed. It replaces an unfinished round:
    /// `first` comes first, then the charts that were left.
    pub fn begin<'a>(&mut self, all: impl Iterator<Item = &'a str>, first: Option<&str>) {
        self.round += 1;
        let mut all: Vec<&str> = all.collect();
        let place = |id: &str| self.due.iter().position(|left| left == id).unwrap_or(usize::MAX);
        order::sort_by_key(&mut all, |id| (Some(*id) != first, place(id)));
        self.due = all.into_iter().map(str::to_string).collect();
    }

    /// Moves a waiting chart to the front, because the pointer is on it.
    pub fn lead(&mut self, first: Option<&str>) {
        if let Some(id) = self.due.iter().position(|id| Some(id.as_str()) == first).and_then(|i| self.due.remove(i)) {
            self.due.push_front(id);
        }
    }

    /// Draws the next charts, until `begun` is at least [`FRAME_MS`] ago on `clock` (ms). Returns true if none is left.
    pub fn go(&mut self, begun: f64, clock: impl Fn() -> f64, mut draw: impl FnMut(&str)) -> bool {
        let mut done = 0;
        while done < MIN_CHARTS || clock() - begun < FRAME_MS {
            let Some(id) = self.due.pop_front() else { break };
            draw(&id);
            done += 1;
        }
        self.due.is_empty()
    }

    /// True when a chart is still to be drawn.
    pub fn waits(&self, id: &str) -> bool {
        self.due.iter().any(|left| left == id)
    }

    /// The number of the last round.
    pub fn round(&self) -> u64 {
        self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const ALL: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    /// A frame in which each chart takes `ms`. Returns the drawn charts, and whether none is left.
    fn frame(turns: &mut Turns, ms: f64) -> (String, bool) {
        let (time, mut drawn) = (Cell::new(1_000.0), String::new());
        let done = turns.go(
            1_000.0,
            || time.get(),
            |id| {
                drawn += id;
                time.set(time.get() + ms);
            },
        );
        (drawn, done)
    }

    #[test]
    fn a_frame_stops_when_its_time_is_used_up_and_the_next_goes_on() {
        let mut turns = Turns::default();
        turns.begin(ALL.into_iter(), None);
        assert_eq!(frame(&mut turns, 5.0), ("abc".into(), false));
        assert!(!turns.waits("c") && turns.waits("d"));
        assert_eq!(frame(&mut turns, 5.0), ("def".into(), true));
        assert_eq!(frame(&mut turns, 5.0), (String::new(), true));
        turns.begin(ALL.into_iter(), None);
        assert_eq!(frame(&mut turns, 2.0), ("abcdef".into(), true));
    }

    #[test]
    fn the_chart_under_the_pointer_leads() {
        let mut turns = Turns::default();
        turns.begin(ALL.into_iter(), Some("e"));
        assert_eq!(frame(&mut turns, 5.0), ("eab".into(), false));
        // It also moves to the front of the rest when the pointer reaches it in between.
        turns.lead(Some("f"));
        turns.lead(Some("a"));
        assert_eq!(frame(&mut turns, 20.0), ("fc".into(), false));
        // An unknown chart moves nothing.
        turns.begin(ALL.into_iter(), Some("x"));
        assert_eq!(frame(&mut turns, 1.0).0, "dabcef");
    }

    #[test]
    fn none_waits_for_ever_where_each_frame_brings_a_change() {
        let mut turns = Turns::default();
        let frames: Vec<String> = (0..6)
            .map(|_| {
                turns.begin(ALL.into_iter(), Some("a"));
                frame(&mut turns, 900.0).0
            })
            .collect();
        assert_eq!(frames, ["ab", "ac", "ad", "ae", "af", "ab"]);
    }

    #[test]
    fn a_new_round_forgets_charts_that_went_and_has_those_that_came() {
        let mut turns = Turns::default();
        turns.begin(ALL.into_iter(), None);
        assert_eq!(frame(&mut turns, 20.0).0, "ab");
        let before = turns.round();
        turns.begin(["a", "d", "g"].into_iter(), None);
        assert_ne!(turns.round(), before);
        assert_eq!(frame(&mut turns, 1.0), ("dag".into(), true));
    }
}
