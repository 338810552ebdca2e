//! How the samples of a machine come, from what arrives: its past, live, late, or nothing at all. Only what the server has said
//! proves that a machine is silent: while history is on its way, or blocks of samples still come, nobody knows.

/// A machine counts as silent after this many ms without a sample, or after three intervals if that is longer.
const QUIET_AFTER_MS: i64 = 6_000;

/// How the samples of the shown machine come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Its past is on its way.
    #[default]
    Loading,
    /// As they are measured.
    Live,
    /// The newest that came is old, and the server has not said that there is nothing newer.
    Behind,
    /// The server is there and has nothing newer.
    Silent,
}

/// What is known of a machine. Times are ms since the epoch, by the server's clock.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Now.
    pub now: i64,
    /// The newest sample; None before the first.
    pub last: Option<i64>,
    /// Time between two samples, ms.
    pub interval: i64,
    /// Whether the answer to the opening has come whole.
    pub opened: bool,
    /// Whether a question for history is open.
    pub asks: bool,
    /// The newest time at which the server said that it had nothing more; 0 before it did.
    pub idle: i64,
}

/// How its samples come.
pub fn flow(arrived: Arrived) -> Flow {
    let quiet = (arrived.interval * 3).max(QUIET_AFTER_MS);
    match arrived.last {
        _ if !arrived.opened => Flow::Loading,
        None => Flow::Live,
        Some(last) if arrived.now - last <= quiet => Flow::Live,
        Some(_) if arrived.asks => Flow::Loading,
        Some(last) if arrived.idle - last > quiet => Flow::Silent,
        Some(_) => Flow::Behind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Arrived =
        Arrived { now: 100_000, last: Some(99_000), interval: 1_000, opened: true, asks: false, idle: 0 };

    #[test]
    fn each_state_is_told_by_what_arrives() {
        assert_eq!(flow(SEEN), Flow::Live);
        assert_eq!(flow(Arrived { opened: false, ..SEEN }), Flow::Loading);
        let old = Arrived { last: Some(40_000), ..SEEN };
        assert_eq!(flow(Arrived { asks: true, ..old }), Flow::Loading, "live samples wait behind history");
        assert_eq!(flow(old), Flow::Behind, "the server has not said that there is nothing newer");
        assert_eq!(flow(Arrived { idle: 45_000, ..old }), Flow::Behind, "it said so of another time");
        assert_eq!(flow(Arrived { idle: 98_000, ..old }), Flow::Silent);
        assert_eq!(flow(Arrived { last: None, ..SEEN }), Flow::Live, "it has never sent anything");
        let slow = Arrived { interval: 30_000, last: Some(20_000), ..SEEN };
        assert_eq!(flow(slow), Flow::Live, "three of its intervals have not passed");
    }
}
