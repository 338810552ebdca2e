//! Pace of a group, and its usual value.

/// Minimum loss of pace, a share; and the minimum as a multiple of the usual deviation.
const MIN_LOSS: f64 = 0.03;
const STRAYS: f64 = 2.5;
/// Time constant of the usual pace, and minimum time to know it; seconds.
const USUAL: f64 = 300.0;
const MIN_KNOWN_S: f64 = 60.0;
/// Seconds of a plain mean that deviates as much as the decaying mean of a minute, from which the deviation is known.
const MINUTE_MEAN_S: f64 = 100.0;

/// Pace of a group as a share of its usual one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    pub mean: f64,
    strays: f64,
    known: f64,
}

impl Pace {
    pub fn learn(&mut self, pace: f64, dt: f64) {
        let weight = dt / (dt + self.known.min(USUAL));
        if self.known > 0.0 {
            self.strays += weight * ((pace - self.mean).abs() - self.strays);
        }
        self.mean += weight * (pace - self.mean);
        self.known += dt;
    }

    /// Loss against the usual pace, and the minimum loss to count, once the usual one is known.
    pub fn lost(&self, pace: f64) -> Option<(f64, f64)> {
        self.lost_over(pace, 0)
    }

    /// The same for a mean over so many seconds: a longer mean deviates less by chance.
    pub fn lost_over(&self, pace: f64, seconds: i64) -> Option<(f64, f64)> {
        let share = (MINUTE_MEAN_S / (seconds as f64).max(MINUTE_MEAN_S)).sqrt();
        (self.known >= MIN_KNOWN_S).then(|| (1.0 - pace / self.mean, MIN_LOSS.max(STRAYS * share * self.strays)))
    }
}
