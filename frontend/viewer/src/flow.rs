//! State of the samples of a machine: loading, live, late, or none. Only a message of the server proves that a machine
//! is silent. While history or blocks of samples are still arriving, that is unknown.

/// A machine counts as silent after this many ms without a sample, or after three intervals if that is longer.
const QUIET_AFTER_MS: i64 = 6_000;

/// State of the samples of the shown machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// It has no current sample yet, and its history is still arriving.
    #[default]
    Loading,
    /// Samples arrive as they are measured.
    Live,
    /// The newest received sample is old, and the server has not reported that there is no newer one.
    Behind,
    /// The server is connected and has nothing newer.
    Silent,
}

/// Received data of a machine. Times are ms since the epoch, by the server's clock.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Now.
    pub now: i64,
    /// Time of the newest sample; None before the first.
    pub last: Option<i64>,
    /// Time between two samples, ms.
    pub interval: i64,
    /// Whether the answer to the first request is complete.
    pub opened: bool,
    /// Whether a request for history is pending.
    pub asks: bool,
    /// The latest time at which the server reported that it has nothing more; 0 before the first report.
    pub idle: i64,
}

/// The state of its samples.
pub fn flow(arrived: Arrived) -> Flow {
    let quiet = (arrived.interval * 3).max(QUIET_AFTER_MS);
    match arrived.last {
        Some(last) if arrived.now - last <= quiet => Flow::Live,
        _ if !arrived.opened || arrived.asks && arrived.last.is_some() => Flow::Loading,
        None => Flow::Live,
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
        assert_eq!(flow(Arrived { opened: false, ..SEEN }), Flow::Live, "live samples do not wait for history");
        assert_eq!(flow(Arrived { opened: false, last: None, ..SEEN }), Flow::Loading);
        let old = Arrived { last: Some(40_000), ..SEEN };
        assert_eq!(flow(Arrived { opened: false, ..old }), Flow::Loading);
        assert_eq!(flow(Arrived { asks: true, ..old }), Flow::Loading, "live samples wait behind history");
        assert_eq!(flow(old), Flow::Behind, "the server has not said that there is nothing newer");
        assert_eq!(flow(Arrived { idle: 45_000, ..old }), Flow::Behind, "it said so of another time");
        assert_eq!(flow(Arrived { idle: 98_000, ..old }), Flow::Silent);
        assert_eq!(flow(Arrived { last: None, ..SEEN }), Flow::Live, "it has never sent anything");
        let slow = Arrived { interval: 30_000, last: Some(20_000), ..SEEN };
        assert_eq!(flow(slow), Flow::Live, "three of its intervals have not passed");
    }
}
