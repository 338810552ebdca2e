//! Values of other machines that a program here tells of, such as the exporter of a whole cluster.

use parking_lot::Mutex;
use shared::catalog::MetricDef;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of other machines, and of values of one between two ticks.
const MAX_MACHINES: usize = 256;
const MAX_VALUES: usize = 4096;

/// Values of a machine since the last tick.
#[derive(Debug, Default)]
pub struct OtherMachine {
    /// Time between two readings.
    pub interval: Duration,
    /// Row, instance and value.
    pub values: Vec<(&'static MetricDef, String, f64)>,
}

/// All other machines that collectors here tell of, by host name.
#[derive(Debug)]
pub struct OtherMachines {
    /// Host name of this machine.
    own: Option<String>,
    told: Mutex<BTreeMap<String, OtherMachine>>,
}

impl OtherMachines {
    /// None is told of yet. `own`: the host name of this machine.
    pub fn new(own: Option<String>) -> Self {
        OtherMachines { own, told: Mutex::default() }
    }

    /// Whether a host name is that of this machine, with or without its domain.
    pub fn is_own(&self, host: &str) -> bool {
        let short = |name: &str| name.split('.').next().unwrap_or(name).to_ascii_lowercase();
        self.own.as_deref().is_some_and(|own| short(own) == short(host))
    }

    /// Adds a value of a machine that is read every `interval`. Above the limits it is dropped.
    pub fn tell(&self, host: &str, interval: Duration, value: (&'static MetricDef, String, f64)) {
        let mut told = self.told.lock();
        if !told.contains_key(host) && told.len() >= MAX_MACHINES {
            return;
        }
        let machine = told.entry(host.to_string()).or_default();
        machine.interval = interval;
        if machine.values.len() < MAX_VALUES {
            machine.values.push(value);
        }
    }

    /// Takes the values since the last call.
    pub fn take(&self) -> BTreeMap<String, OtherMachine> {
        std::mem::take(&mut self.told.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::gpu;

    #[test]
    fn values_are_taken_once_and_bounded() {
        let others = OtherMachines::new(Some("node-1.example.org".into()));
        assert!(others.is_own("NODE-1") && !others.is_own("node-11") && !OtherMachines::new(None).is_own("node-1"));
        for at in 0..MAX_MACHINES + 3 {
            others.tell(&format!("node-{at}"), Duration::from_secs(5), (&gpu::TEMP, "0".into(), 40.0));
        }
        (0..2 * MAX_VALUES).for_each(|at| others.tell("node-0", Duration::ZERO, (&gpu::TEMP, at.to_string(), 1.0)));
        let told = others.take();
        assert_eq!(
            (told.len(), told["node-0"].values.len(), told["node-7"].values.len()),
            (MAX_MACHINES, MAX_VALUES, 1)
        );
        assert_eq!(told["node-7"].interval, Duration::from_secs(5));
        assert!(others.take().is_empty());
    }
}
