//! The clock of a recording: position, playing or not, and speed. It reads no real clock, so that tests can move it.

use shared::wire::Recorded;

/// Speeds, as multiples of real time.
pub const SPEEDS: [f64; 8] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0];

/// Last position of the slider; the first is 0.
pub const SLIDER_POSITIONS: i64 = 1000;

/// The clock of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Player {
    /// The recording that is played.
    pub recorded: Recorded,
    /// The present time of the page, ms since the epoch.
    pub t: i64,
    /// True while the recording plays.
    pub playing: bool,
    /// Index in [`SPEEDS`].
    pub speed: usize,
    /// The fraction of a millisecond that the last step left over.
    rest: f64,
}

impl Player {
    /// Makes a clock at the end, so that the whole recording is visible.
    pub fn new(recorded: Recorded) -> Self {
        Player { t: recorded.to, recorded, playing: false, speed: 1, rest: 0.0 }
    }

    /// Starts or stops the clock. At the end it starts again from the beginning.
    pub fn toggle(&mut self) {
        self.playing = !self.playing;
        if self.playing && self.t >= self.recorded.to {
            self.t = self.recorded.from;
        }
    }

    /// Moves the clock after `ms` ms of real time; true when it moved.
    pub fn pass(&mut self, ms: f64) -> bool {
        if !self.playing {
            return false;
        }
        let moved = ms.max(0.0) * SPEEDS[self.speed] + self.rest;
        self.rest = moved.fract();
        self.t += moved as i64;
        if self.t >= self.recorded.to {
            (self.t, self.playing, self.rest) = (self.recorded.to, false, 0.0);
        }
        moved >= 1.0
    }

    /// Goes to an instant, ms since the epoch, limited to the recording.
    pub fn jump(&mut self, t: i64) {
        (self.t, self.rest) = (t.clamp(self.recorded.from, self.recorded.to), 0.0);
    }

    /// Changes the speed by `steps` entries of [`SPEEDS`].
    pub fn shift(&mut self, steps: i32) {
        self.speed = self.speed.saturating_add_signed(steps as isize).min(SPEEDS.len() - 1);
    }

    /// Position on the slider, 0 to [`SLIDER_POSITIONS`].
    pub fn position(&self) -> i64 {
        let length = (self.recorded.to - self.recorded.from).max(1);
        ((self.t - self.recorded.from) as f64 / length as f64 * SLIDER_POSITIONS as f64).round() as i64
    }

    /// Goes to a position of the slider.
    pub fn place(&mut self, position: i64) {
        let length = (self.recorded.to - self.recorded.from) as f64;
        self.jump(self.recorded.from + (length * position as f64 / SLIDER_POSITIONS as f64).round() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player() -> Player {
        Player::new(Recorded { from: 1_000_000, to: 1_100_000, title: String::new(), notes: Vec::new() })
    }

    #[test]
    fn it_runs_from_the_beginning_to_the_end_and_stops_there() {
        let mut player = player();
        assert_eq!((player.t, player.playing, player.pass(1e9)), (1_100_000, false, false));
        player.toggle();
        assert_eq!((player.t, player.playing), (1_000_000, true));
        player.pass(1_500.0);
        assert_eq!(player.t, 1_001_500);
        player.shift(100);
        player.pass(1_000.0);
        assert_eq!(player.t, 1_061_500, "60 times as fast");
        player.pass(10_000.0);
        assert_eq!((player.t, player.playing), (1_100_000, false));
    }

    #[test]
    fn slow_motion_loses_no_fraction() {
        let mut player = player();
        player.toggle();
        player.shift(-5);
        for _ in 0..1000 {
            player.pass(0.5);
        }
        assert_eq!(player.t, 1_000_250, "half as fast");
    }

    #[test]
    fn it_goes_where_it_is_sent_but_not_beyond_its_ends() {
        let mut player = player();
        for (position, t) in [(0, 1_000_000), (250, 1_025_000), (1000, 1_100_000), (2000, 1_100_000), (-5, 1_000_000)] {
            player.place(position);
            assert_eq!(player.t, t);
            assert_eq!(player.position(), position.clamp(0, SLIDER_POSITIONS));
        }
        player.jump(5);
        assert_eq!(player.t, 1_000_000);
    }
}
