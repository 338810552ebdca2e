//! Google Cloud TPUs through the metric service of their runtime, gRPC on a local port.
//!
//! The program that uses the TPU opens the port. So a refused connection means that no such program runs, which is the
//! usual idle state and no error.
//!
//! libtpu itself is never loaded: it crashes on machines without a TPU, and elsewhere it belongs to that program. If no
//! port answers, [`tool`] is used if it is installed; it also has the use of the tensor cores. Health of links and
//! throttling are absent, because only the library has them.

mod client;
mod distribution;
mod messages;
mod readings;
mod tool;

use self::client::Channel;
use self::messages::TpuMetric;
use self::readings::{METRICS, Reader};
use self::tool::TpuInfo;
use crate::read::grpc::RpcFailure;
use crate::{CollectError, Collector, OpenError, OpenErrorKind, OptionRow, Options, Out, Part, Roots};
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Default port of libtpu.
const PORT: u16 = 8431;

/// Google's PCI vendor ID, and the device IDs of its TPUs: v2 and v3, v4, v5e, v5p, v6e, 7x. Network and disk devices
/// of its virtual machines have the same vendor ID.
const VENDOR: &str = "0x1ae0";
const DEVICES: &[&str] = &["0x0027", "0x005e", "0x0063", "0x0062", "0x006f", "0x0076"];

/// Interval of reading a program's list of metrics: some appear with its first transfer.
const LIST_INTERVAL: Duration = Duration::from_secs(60);

static ENDPOINTS: OptionRow =
    OptionRow::addresses("endpoints", "Address where programs serve TPU metrics, instead of the usual port");

/// Keys below `[collectors.tpu]`.
pub(crate) static OPTIONS: &[&OptionRow] = &[&ENDPOINTS];

/// Opens the collector, if there is a TPU or an endpoint was configured.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let pci = roots.sys.join("bus/pci/devices");
    let mut addresses = options.own.addresses(&ENDPOINTS);
    let mut tried: Vec<String> = addresses.iter().map(|address| address.to_string()).collect();
    let mut tool = None;
    if addresses.is_empty() {
        tried.push(pci.display().to_string());
        if !has_tpu(&pci) {
            let reason = "there is no TPU among the PCI devices";
            let remedy = "if a program serves TPU metrics anyway, set endpoints under [collectors.tpu]";
            return Err(OpenError::absent(tried, reason, remedy));
        }
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
        tried.push(addresses[0].to_string());
        match TpuInfo::find() {
            Ok(found) => {
                tried.push(found.shown());
                tool = Some(found);
            }
            // A broken tool is only noted: the port is preferred, because it takes no second of Python.
            Err(error) if error.kind != OpenErrorKind::Absent => tried.push(error.reason),
            Err(_) => {}
        }
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(|error| OpenError {
        kind: OpenErrorKind::Failed,
        tried: tried.clone(),
        reason: format!("the system provides no socket: {error}"),
        remedy: "raise the limit of open files: ulimit -n".into(),
    })?;
    let endpoints = addresses.into_iter().map(Endpoint::new).collect();
    Ok(Part::only(tried, Tpu { runtime, endpoints, tool }))
}

/// Whether a TPU is among the PCI devices. Reads only IDs of devices.
fn has_tpu(pci: &Path) -> bool {
    let is = |device: &Path, file: &str, known: &[&str]| {
        std::fs::read_to_string(device.join(file)).is_ok_and(|id| known.contains(&id.trim()))
    };
    let devices = std::fs::read_dir(pci).into_iter().flatten().flatten();
    devices.map(|entry| entry.path()).any(|device| is(&device, "vendor", &[VENDOR]) && is(&device, "device", DEVICES))
}

/// h2 needs an async runtime. It costs no thread, and runs only during a reading.
struct Tpu {
    runtime: Runtime,
    endpoints: Vec<Endpoint>,
    /// Used if no port answers.
    tool: Option<TpuInfo>,
}

/// One program's port.
struct Endpoint {
    address: SocketAddr,
    /// Connection, kept between ticks.
    channel: Option<Channel>,
    /// Positions in the table of the metrics that the program supports, and the time of its list.
    known: Option<(Duration, HashSet<usize>)>,
    reader: Reader,
}

/// Answer of a port.
struct Heard {
    endpoint: Endpoint,
    answers: Vec<(usize, TpuMetric)>,
    trouble: Option<String>,
}

impl Collector for Tpu {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let now = out.at();
        let endpoints = std::mem::take(&mut self.endpoints);
        let heard = self.runtime.block_on(async {
            let tasks: Vec<_> = endpoints.into_iter().map(|endpoint| tokio::spawn(endpoint.ask(now))).collect();
            let mut heard = Vec::new();
            for task in tasks {
                heard.extend(task.await);
            }
            heard
        });
        let mut trouble = None;
        let mut all = readings::TpuReadings::default();
        for mut one in heard {
            one.endpoint.reader.read(&one.answers, &mut all);
            trouble = trouble.or(one.trouble);
            self.endpoints.push(one.endpoint);
        }
        let any = all.put(out);
        if !any && let Some(tool) = &mut self.tool {
            match tool.read(out) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(reason) => trouble = trouble.or(Some(reason)),
            }
        }
        match trouble {
            None => Ok(()),
            Some(reason) if any => Err(CollectError::partial(reason)),
            Some(reason) => Err(CollectError::failed(reason)),
        }
    }
}

impl Endpoint {
    fn new(address: SocketAddr) -> Endpoint {
        Endpoint { address, channel: None, known: None, reader: Reader::default() }
    }

    /// Requests every metric at once.
    async fn ask(mut self, now: Duration) -> Heard {
        let channel = match self.channel.take() {
            Some(channel) => Ok(channel),
            // Another program may have started, with other metrics and counts.
            None => {
                (self.known, self.reader) = (None, Reader::default());
                Channel::connect(self.address).await
            }
        };
        let channel = match channel {
            Ok(channel) => channel,
            Err(RpcFailure::Refused) => return self.into_heard(Vec::new(), None),
            Err(failure) => return self.failed(Vec::new(), failure),
        };
        if self.known.as_ref().is_none_or(|(then, _)| now.saturating_sub(*then) >= LIST_INTERVAL) {
            match channel.supported().await {
                Ok(names) => self.know(now, |name| names.iter().any(|known| known == name)),
                // Older programs have no list.
                Err(RpcFailure::Unknown) => self.know(now, |_| true),
                Err(failure) => return self.failed(Vec::new(), failure),
            }
        }
        let known: Vec<usize> = self.known.iter().flat_map(|(_, known)| known.clone()).collect();
        let mut calls = JoinSet::new();
        for &metric in &known {
            let channel = channel.clone();
            calls.spawn(async move { (metric, channel.metric(METRICS[metric].name).await) });
        }
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        while let Some(call) = calls.join_next().await {
            match call {
                Ok((metric, Ok(answer))) => answers.push((metric, answer)),
                Ok((metric, Err(RpcFailure::Unknown))) => {
                    if let Some((_, known)) = &mut self.known {
                        known.remove(&metric);
                    }
                }
                Ok((_, Err(failure))) => failures.push(failure),
                Err(_) => failures.push(RpcFailure::Broken("a request was canceled".into())),
            }
        }
        answers.sort_unstable_by_key(|(metric, _)| *metric);
        // A connection without answers is closed.
        let broken = failures.iter().any(|failure| matches!(failure, RpcFailure::Broken(_)));
        if !broken && (failures.is_empty() || !answers.is_empty()) {
            self.channel = Some(channel);
        }
        match failures.into_iter().next() {
            Some(failure) => self.failed(answers, failure),
            None => self.into_heard(answers, None),
        }
    }

    fn know(&mut self, now: Duration, has: impl Fn(&str) -> bool) {
        let known = METRICS.iter().enumerate().filter(|(_, metric)| has(metric.name)).map(|(i, _)| i).collect();
        self.known = Some((now, known));
    }

    fn failed(self, answers: Vec<(usize, TpuMetric)>, failure: RpcFailure) -> Heard {
        let reason = format!("{}: {failure}", self.address);
        self.into_heard(answers, Some(reason))
    }

    fn into_heard(self, answers: Vec<(usize, TpuMetric)>, trouble: Option<String>) -> Heard {
        Heard { endpoint: self, answers, trouble }
    }
}

#[cfg(test)]
mod tests;
