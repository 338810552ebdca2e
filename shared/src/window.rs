//! The spans that a page shows: 1 minute to 12 hours, and some days if history is long enough; with their names in
//! buttons and addresses.

/// One choice of the window picker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The name on the button, in the address and in `data-window-choice`.
    pub name: &'static str,
    /// Length in milliseconds.
    pub ms: i64,
}

/// The choices in order; keys 1 to 7.
pub const WINDOWS: [Window; 7] = [
    Window { name: "1m", ms: 60_000 },
    Window { name: "5m", ms: 300_000 },
    Window { name: "15m", ms: 900_000 },
    Window { name: "1h", ms: 3_600_000 },
    Window { name: "3h", ms: 10_800_000 },
    Window { name: "6h", ms: 21_600_000 },
    Window { name: "12h", ms: 43_200_000 },
];

/// Further choices, if history is kept that long; keys 8 to 0. They are drawn from minutes, not from samples.
pub const DAYS: [Window; 3] = [
    Window { name: "1d", ms: 86_400_000 },
    Window { name: "3d", ms: 259_200_000 },
    Window { name: "7d", ms: 604_800_000 },
];

/// Maximum span that is drawn from samples, ms.
pub const MAX_SAMPLES_SPAN_MS: i64 = 43_200_000;

/// The choices for a retention of history, ms.
pub fn choices(retention: i64) -> impl Iterator<Item = Window> {
    WINDOWS.into_iter().chain(DAYS.into_iter().filter(move |w| w.ms <= retention))
}

/// Window of a page whose address names none.
pub const DEFAULT: Window = WINDOWS[1];

/// The window with this name.
pub fn by_name(name: &str) -> Option<Window> {
    choices(i64::MAX).find(|w| w.name == name)
}
