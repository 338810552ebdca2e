//! Ports of InfiniBand and RoCE adapters of a Linux host: RDMA traffic, which bypasses the kernel, and its errors.
//!
//! Reading a counter sends a command to the adapter, which takes some ten microseconds. So only traffic is read in
//! every tick; states, rates and errors are read every ten seconds.

use crate::host::total::Total;
use crate::read::Sources;
use crate::read::procfs::{HotFile, decimal, fields, number, trim};
use crate::read::sysfs;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::{MetricDef, infiniband};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval of searching ports, and of reading states, rates and errors. Slightly short, so that a tick that is
/// marginally early is not skipped.
const LOOK_INTERVAL: Duration = Duration::from_millis(9_900);

/// Maximum number of ports; adapters divided into virtual ones have a port each.
const MAX_PORTS: usize = 256;

/// Counter files of a direction, and the bytes per unit. Adapters with InfiniBand's own management count words of 4
/// bytes, others count bytes.
type Counted = [(&'static str, f64); 2];
const RECEIVED: Counted = [("counters/port_rcv_data", 4.0), ("hw_counters/rx_bytes", 1.0)];
const SENT: Counted = [("counters/port_xmit_data", 4.0), ("hw_counters/tx_bytes", 1.0)];

/// Counters other than bytes.
static ERRORS: [(&MetricDef, &str); 11] = [
    (&infiniband::SYMBOL_ERRORS, "counters/symbol_error"),
    (&infiniband::LINK_DOWNED, "counters/link_downed"),
    (&infiniband::LINK_RECOVERIES, "counters/link_error_recovery"),
    (&infiniband::RECEIVE_ERRORS, "counters/port_rcv_errors"),
    (&infiniband::SEND_DISCARDS, "counters/port_xmit_discards"),
    (&infiniband::SEND_WAIT, "counters/port_xmit_wait"),
    (&infiniband::OUT_OF_SEQUENCE, "hw_counters/out_of_sequence"),
    (&infiniband::SEQUENCE_ERRORS, "hw_counters/packet_seq_err"),
    (&infiniband::ACK_TIMEOUTS, "hw_counters/local_ack_timeout_err"),
    (&infiniband::CONGESTION_SENT, "hw_counters/np_cnp_sent"),
    (&infiniband::CONGESTION_HANDLED, "hw_counters/rp_cnp_handled"),
];

/// Opens the collector, if there is a port.
pub(crate) fn open(_: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let class = roots.sys.join("class/infiniband");
    let tried = [class.display().to_string()];
    let mut adapters = Adapters { class, ports: Vec::new(), looked: None };
    adapters.refresh();
    if adapters.ports.is_empty() {
        let remedy = "load the driver of the adapter, such as mlx5_ib, and map /sys into the container";
        return Err(OpenError::absent(tried, "there is no InfiniBand or RoCE adapter", remedy));
    }
    Ok(Part::only(tried, adapters))
}

struct Adapters {
    class: PathBuf,
    /// All ports ever seen; a port that returns continues its totals.
    ports: Vec<Port>,
    looked: Option<Duration>,
}

/// A port of an adapter.
struct Port {
    /// `mlx5_0/1`
    name: String,
    dir: PathBuf,
    here: bool,
    received: Traffic,
    sent: Traffic,
    errors: [Total; ERRORS.len()],
}

/// The bytes of one direction.
struct Traffic {
    row: &'static MetricDef,
    counted: Counted,
    /// Counter file, and its bytes per unit. None while there is no such file.
    file: Option<(HotFile, f64)>,
    total: Total,
}

impl Collector for Adapters {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let mut sources = Sources::default();
        let all = self.looked.is_none_or(|then| out.at().saturating_sub(then) >= LOOK_INTERVAL);
        if all {
            self.looked = Some(out.at());
            self.refresh();
        }
        for port in self.ports.iter_mut().filter(|port| port.here) {
            for traffic in [&mut port.received, &mut port.sent] {
                traffic.put(&port.name, out, &mut sources);
            }
            if all {
                port.put_state_and_errors(out);
                sources.answered();
            }
        }
        sources.outcome()
    }
}

impl Adapters {
    fn refresh(&mut self) {
        self.ports.iter_mut().for_each(|port| port.here = false);
        for adapter in sysfs::names(&self.class) {
            let ports = self.class.join(&adapter).join("ports");
            for number in sysfs::names(&ports) {
                let name = format!("{adapter}/{number}");
                if let Some(port) = self.ports.iter_mut().find(|port| port.name == name) {
                    port.here = true;
                } else if self.ports.len() < MAX_PORTS {
                    self.ports.push(Port::new(name, ports.join(number)));
                }
            }
        }
        for port in &mut self.ports {
            for traffic in [&mut port.received, &mut port.sent] {
                traffic.refresh(&port.dir, port.here);
            }
            if !port.here {
                port.errors.iter_mut().for_each(Total::forget);
            }
        }
    }
}

impl Port {
    fn new(name: String, dir: PathBuf) -> Port {
        let traffic = |row, counted| Traffic { row, counted, file: None, total: Total::default() };
        let (received, sent) = (traffic(&infiniband::RECEIVED, RECEIVED), traffic(&infiniband::SENT, SENT));
        Port { name, dir, here: true, received, sent, errors: Default::default() }
    }

    fn put_state_and_errors(&mut self, out: &mut Out) {
        let read = |file: &str| std::fs::read(self.dir.join(file)).unwrap_or_default();
        let name = self.name.as_str();
        out.put_some(&infiniband::STATE, name, state(&read("state")));
        out.put_some(&infiniband::RATE, name, rate(&read("rate")));
        for (total, (row, file)) in self.errors.iter_mut().zip(ERRORS) {
            // An adapter without a counter has no file, or a file with words.
            if let Some(count) = number(trim(&read(file))) {
                total.add(count);
                out.put(row, name, total.sum() as f64);
            }
        }
    }
}

impl Traffic {
    /// Finds the counter file, or closes it if the port has left.
    fn refresh(&mut self, dir: &Path, here: bool) {
        if !here {
            self.file = None;
            self.total.forget();
        } else if self.file.is_none() {
            let counts = |(path, each): &(&str, f64)| {
                let mut file = HotFile::new(dir.join(path));
                number(trim(file.read().ok()?))?;
                Some((file, *each))
            };
            self.file = self.counted.iter().find_map(counts);
        }
    }

    fn put(&mut self, port: &str, out: &mut Out, sources: &mut Sources) {
        let Some((file, each)) = &mut self.file else { return };
        match file.read().map(|text| number(trim(text))) {
            Ok(Some(count)) => {
                sources.answered();
                self.total.add(count);
                out.put(self.row, port, self.total.sum() as f64 * *each);
            }
            Ok(None) => sources.failed(|| format!("{}: not a number", file.path().display())),
            // The adapter has left; the next search detects that.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => sources.failed(|| format!("{}: {error}", file.path().display())),
        }
    }
}

/// `4: ACTIVE`
fn state(text: &[u8]) -> Option<f64> {
    let digits = text.split(|&b| b == b':').next()?;
    number(trim(digits)).filter(|state| (1..=5).contains(state)).map(|state| state as f64)
}

/// Bytes per second of `400 Gb/sec (4X NDR)`.
fn rate(text: &[u8]) -> Option<f64> {
    let mut words = fields(trim(text));
    let gigabits = words.next().and_then(decimal).filter(|rate| *rate > 0.0)?;
    (words.next()? == b"Gb/sec").then_some(gigabits * 1e9 / 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn states_and_rates_are_as_kernels_write_them() {
        for (text, expected) in [
            ("4: ACTIVE\n", Some(4.0)),
            ("1: DOWN\n", Some(1.0)),
            ("5: ACTIVE_DEFER\n", Some(5.0)),
            ("0: NOP\n", None),
            ("ACTIVE\n", None),
            ("", None),
        ] {
            assert_eq!(state(text.as_bytes()), expected, "{text:?}");
        }
        for (text, expected) in [
            ("400 Gb/sec (4X NDR)\n", Some(50e9)),
            ("2.5 Gb/sec (1X SDR)\n", Some(312_500_000.0)),
            ("100 Gb/sec (2X HDR)\n", Some(12.5e9)),
            ("0 Gb/sec\n", None),
            ("-1 Gb/sec\n", None),
            ("400 Mb/sec\n", None),
            ("unknown\n", None),
        ] {
            assert_eq!(rate(text.as_bytes()), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            let _ = (state(&text), rate(&text));
        }
    }
}
