//! CPU time. On a busy machine it shows the cost of a step better than wall time.

use std::time::Duration;

/// Duration of one tick in `/proc/self/stat`. Linux counts hundredths of a second there on every machine.
const TICK: Duration = Duration::from_millis(10);

/// CPU time, user and system, of this process and of its children that were waited for. None where the system does not
/// report it (fields 14 to 17 of `/proc/self/stat`).
pub fn cpu() -> Option<Duration> {
    of_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The sum of utime, stime, cutime and cstime.
fn of_stat(stat: &str) -> Option<Duration> {
    // The second field, the name of the program, may contain spaces. It ends at the last bracket.
    let (_, rest) = stat.rsplit_once(") ")?;
    let ticks: Option<Vec<u32>> = rest.split(' ').skip(11).take(4).map(|field| field.parse().ok()).collect();
    ticks.filter(|ticks| ticks.len() == 4).map(|ticks| TICK * ticks.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::of_stat;
    use std::time::Duration;

    #[test]
    fn the_four_times_are_added() {
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194304 90 80 0 0 1 20 300 4000 20 0 1 0 5 6";
        assert_eq!(of_stat(stat), Some(Duration::from_millis(43_210)));
        assert_eq!(of_stat("12 (a) S 1"), None);
        assert_eq!(of_stat(""), None);
    }
}
