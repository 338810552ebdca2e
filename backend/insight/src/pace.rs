//! How much a group does, and what of that is usual.

/// How much less the job must do, a share; and how many times that what it does usually strays.
const LESS: f64 = 0.03;
const STRAYS: f64 = 2.5;
/// Time constant of what it usually does, seconds, and what of that must be known.
const USUAL: f64 = 300.0;
const KNOWN: f64 = 60.0;

/// How much of what is usual a group does.
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

    /// How much less this is than usual, and what that must be; once it is known.
    pub fn lost(&self, pace: f64) -> Option<(f64, f64)> {
        (self.known >= KNOWN).then(|| (1.0 - pace / self.mean, LESS.max(STRAYS * self.strays)))
    }
}
