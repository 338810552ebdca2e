//! Values of other machines that a program here tells of, such as the exporter of a whole cluster.

use parking_lot::Mutex;
use shared::catalog::MetricDef;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of other machines within [`KNOWN_FOR`].
pub const MAX_MACHINES: usize = 256;
/// Maximum number of values of one machine between two ticks: those of an endpoint.
const MAX_VALUES: usize = 10_000;
/// Maximum length of a host name, bytes: a name of DNS with a prefix of ours is a key of a source.
const MAX_HOST: usize = 180;
/// A machine that no endpoint has named for this time makes room for another one.
const KNOWN_FOR: Duration = Duration::from_secs(3_600);

/// Values of a machine since the last tick.
#[derive(Debug, Default)]
pub struct OtherMachine {
    /// Time between two readings.
    pub interval: Duration,
    /// Row, instance and value.
    pub values: Vec<(&'static MetricDef, String, f64)>,
}

#[derive(Debug, Default)]
struct ToldMachines {
    /// Values since the last tick.
    values: BTreeMap<String, OtherMachine>,
    /// When an endpoint last named a machine, by the steady clock.
    known: BTreeMap<String, Duration>,
}

/// All other machines that collectors here tell of, by host name.
#[derive(Debug)]
pub struct OtherMachines {
    /// Names of this machine.
    own: Vec<String>,
    /// Begin of the keys of their sources.
    prefix: String,
    told: Mutex<ToldMachines>,
}

impl OtherMachines {
    /// None is told of yet. `own`: the names of this machine. `prefix`: the begin of the keys of their sources, which
    /// no key of another source has.
    pub fn new(own: impl IntoIterator<Item = String>, prefix: String) -> Self {
        OtherMachines { own: own.into_iter().collect(), prefix, told: Mutex::default() }
    }

    /// Whether a host name is that of this machine, with or without its domain.
    pub fn is_own(&self, host: &str) -> bool {
        let short = |name: &str| name.split('.').next().unwrap_or(name).to_ascii_lowercase();
        self.own.iter().any(|own| short(own) == short(host))
    }

    /// The key of the source of a machine.
    pub fn key(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// Whether this is the key of another machine's source.
    pub fn is_key(&self, key: &str) -> bool {
        key.strip_prefix(&self.prefix).is_some_and(|host| !self.is_own(host))
    }

    /// Whether there is room for a machine that an endpoint names at this time of the steady clock. A name that no
    /// source can have gets none.
    pub fn admits(&self, host: &str, now: Duration) -> bool {
        let known = &mut self.told.lock().known;
        if let Some(at) = known.get_mut(host) {
            *at = now;
            return true;
        }
        if !(1..=MAX_HOST).contains(&host.len()) || host.chars().any(char::is_control) {
            return false;
        }
        if known.len() >= MAX_MACHINES {
            known.retain(|_, at| now.saturating_sub(*at) < KNOWN_FOR);
        }
        let is_room = known.len() < MAX_MACHINES;
        if is_room {
            known.insert(host.to_string(), now);
        }
        is_room
    }

    /// Adds a value of a machine that is [admitted](Self::admits) and read every `interval`.
    pub fn tell(&self, host: &str, interval: Duration, value: (&'static MetricDef, String, f64)) {
        let mut told = self.told.lock();
        if !told.known.contains_key(host) {
            return;
        }
        let machine = told.values.entry(host.to_string()).or_default();
        machine.interval = interval;
        if machine.values.len() < MAX_VALUES {
            machine.values.push(value);
        }
    }

    /// Takes the values since the last call.
    pub fn take(&self) -> BTreeMap<String, OtherMachine> {
        std::mem::take(&mut self.told.lock().values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::gpu;

    const SECOND: Duration = Duration::from_secs(1);

    fn others(own: &[&str]) -> OtherMachines {
        OtherMachines::new(own.iter().map(ToString::to_string), "hub:".into())
    }

    #[test]
    fn values_are_taken_once_and_bounded() {
        let others = others(&["node-1.example.org", "gpu-1"]);
        assert!(others.is_own("NODE-1") && others.is_own("gpu-1.lab") && !others.is_own("node-11"));
        assert!(!super::tests::others(&[]).is_own("node-1"));
        assert_eq!(others.key("node-7"), "hub:node-7");
        assert!(others.is_key("hub:node-7") && !others.is_key("hub:gpu-1") && !others.is_key("node-7"));
        others.tell("node-0", SECOND, (&gpu::TEMP, "0".into(), 40.0));
        assert!(others.take().is_empty(), "it was not admitted");
        assert!(others.admits("node-0", SECOND) && others.admits("node-7", SECOND));
        others.tell("node-7", 5 * SECOND, (&gpu::TEMP, "0".into(), 40.0));
        (0..2 * MAX_VALUES).for_each(|at| others.tell("node-0", Duration::ZERO, (&gpu::TEMP, at.to_string(), 1.0)));
        let told = others.take();
        assert_eq!((told.len(), told["node-0"].values.len(), told["node-7"].values.len()), (2, MAX_VALUES, 1));
        assert_eq!(told["node-7"].interval, 5 * SECOND);
        assert!(others.take().is_empty());
    }

    #[test]
    fn above_the_limit_a_machine_waits_until_another_was_silent_for_an_hour() {
        let others = others(&[]);
        for wrong in ["", "a\nb", &"x".repeat(MAX_HOST + 1)] {
            assert!(!others.admits(wrong, SECOND), "{wrong:?}");
        }
        for at in 0..MAX_MACHINES {
            assert!(others.admits(&format!("node-{at}"), SECOND));
        }
        assert!(!others.admits("one-more", 2 * SECOND) && others.admits("node-7", 2 * SECOND));
        assert!(!others.admits("one-more", KNOWN_FOR));
        assert!(others.admits("one-more", KNOWN_FOR + SECOND), "all but one were silent");
        assert!(others.admits("node-7", KNOWN_FOR + 2 * SECOND));
    }
}
