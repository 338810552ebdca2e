//! Tests remote write and reading back: against receivers that fail in many ways, and against the real VictoriaMetrics
//! and Prometheus.

use backend::config::{RemoteWrite, WriteFormat};
use backend::remote_write::{CoverageTable, Covered, SendingCluster, SentRange, keep_covered};
use backend::remote_write::{ExportRequest, ReadBack, RemoteSeries, RemoteWriter, Window};
use flate2::read::GzDecoder;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use prost::Message;
use shared::catalog::prometheus::{self, Family};
use shared::rollup::roll;
use shared::series::{SeriesDef, quantize};
use shared::wire::{CheckState, SourceId};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use stream::clock::{Clock, Manual, System};
use stream::live::Live;
use stream::store::{Chunk, Column, Limits, Store};
use watchglass_tests::programs::Program;
use watchglass_tests::receiver::{Receiver, ReceiverAnswer, Samples};
use watchglass_tests::server::Server;
use watchglass_tests::waiting::until_so;

pub(crate) const SERIES: usize = 300;
const TICKS: usize = 200;
const HOUR: i64 = 3_600_000;

/// The name of this machine, so that the binary here finds the samples of the known machine.
pub(crate) fn host() -> String {
    collectors::host_name().unwrap_or_else(|| "this machine".into())
}

/// A machine with known measurements: one series per core, one of which comes and goes.
pub(crate) struct KnownMachine {
    pub live: Arc<Live>,
    pub defs: Vec<SeriesDef>,
    pub from: i64,
}

/// Value of a series at a tick in percent; NaN for absent.
pub(crate) fn value(series: usize, tick: usize) -> f64 {
    match series {
        7 if !tick.is_multiple_of(5) => f64::NAN,
        _ => quantize(((series * 31 + tick * 7) % 10_000) as f64 / 100.0, 100.0),
    }
}

impl KnownMachine {
    pub fn new(from: i64, ticks: usize) -> KnownMachine {
        Self::by(Arc::new(System), from, ticks)
    }

    pub fn by(clock: Arc<dyn Clock>, from: i64, ticks: usize) -> KnownMachine {
        let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: 24 * HOUR, bytes: 256 << 20 });
        let source = store.add_source(host(), 1_000, Vec::new());
        let tag = &shared::catalog::cpu::CORE_PERCENT.tag;
        let metric = store.catalog().metrics.iter().position(|m| m.tag == *tag).expect("a row") as u16;
        let defs: Vec<_> = (0..SERIES).map(|i| SeriesDef { metric, instance: i.to_string() }).collect();
        for def in &defs {
            store.intern(source, def.clone()).expect("a number");
        }
        let known = KnownMachine { live: Live::new(store, clock, 1, 24 * HOUR), defs, from };
        known.extend(0, ticks);
        known
    }

    /// Measures the ticks from `first` to `last`, exclusive.
    pub fn extend(&self, first: usize, last: usize) {
        let mut store = self.live.store();
        for tick in first..last {
            let values: Vec<f64> = (0..SERIES).map(|series| value(series, tick)).collect();
            store.append(0 as SourceId, self.from + tick as i64 * 1_000, false, &values).expect("a source");
        }
    }

    /// The expected samples on a server for the first `ticks` ticks.
    pub fn samples(&self, ticks: usize) -> Samples {
        self.samples_from(0, ticks)
    }

    /// The expected samples on a server for the ticks from `first` to `ticks`, exclusive.
    pub fn samples_from(&self, first: usize, ticks: usize) -> Samples {
        let catalog = self.live.store().catalog().clone();
        let mut all = Samples::new();
        for (series, def) in self.defs.iter().enumerate() {
            let metric = catalog.metric(def).expect("a row");
            let family = Family::from_metric(metric);
            let mut labels: Vec<_> = prometheus::labels(metric, &def.instance);
            labels.extend([("source".into(), host().into()), ("__name__".into(), family.name.as_str().into())]);
            labels.sort();
            let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let own = all.entry(labels.join(",")).or_default();
            for tick in (first..ticks).filter(|&tick| value(series, tick).is_finite()) {
                own.insert(self.from + tick as i64 * 1_000, vec![family.value(value(series, tick))]);
            }
        }
        all
    }

    /// Measures the ticks after the first `first`, with a gap of `gap` ticks before them, whose numbers stay free.
    pub fn extend_behind_a_gap(&self, first: usize, gap: usize, last: usize) {
        let mut store = self.live.store();
        for tick in first + gap..last {
            let values: Vec<f64> = (0..SERIES).map(|series| value(series, tick)).collect();
            let t = self.from + tick as i64 * 1_000;
            let encoded = store.encode_at(0 as SourceId, tick as u64 + 1, t, false, &values).expect("a source");
            store.push(encoded);
        }
    }

    /// Adds the ticks from `first` to `last`, exclusive, late.
    pub fn fill(&self, first: usize, last: usize) {
        let times: Vec<i64> = (first..last).map(|tick| self.from + tick as i64 * 1_000).collect();
        let column = |series: usize| {
            let values: Vec<f64> = (first..last).map(|tick| value(series, tick)).collect();
            let samples = values.iter().filter(|value| value.is_finite()).count() as u64;
            let raw = shared::column::encode(&values, 100.0).into_boxed_slice();
            Column { id: series as u32, raw, samples }
        };
        let chunk = Chunk::new(first as u64 + 1, &times, (0..SERIES).map(column).collect());
        self.live.fill(0 as SourceId, vec![Arc::new(chunk.after_gap(false))]);
    }

    pub fn send(&self, url: String, folder: Option<&Path>) -> Arc<RemoteWriter> {
        RemoteWriter::start(
            &self.live,
            RemoteWrite { url, read_url: None, headers: Vec::new(), ..RemoteWrite::default() },
            folder,
        )
    }
}

/// The instant `hours` hours ago, at a whole second; ms since the epoch.
pub(crate) fn hours_ago(hours: i64) -> i64 {
    System.wall() / 1_000 * 1_000 - hours * HOUR
}

/// The samples without repeated ones, and the number of repeated ones. A repeated sample must have the same value.
fn once(mut samples: Samples) -> (Samples, usize) {
    let mut again = 0;
    for values in samples.values_mut().flat_map(|own| own.values_mut()) {
        assert!(values.iter().all(|v| *v == values[0]), "one time has two values: {values:?}");
        again += values.len() - 1;
        values.truncate(1);
    }
    (samples, again)
}

#[test]
fn every_sample_arrives_once_though_the_server_fails() {
    let known = KnownMachine::new(hours_ago(1), TICKS);
    let is_seen = Arc::new(AtomicBool::new(false));
    let seen = is_seen.clone();
    let receiver = Receiver::start(move |n| match n {
        0 => ReceiverAnswer::Status(500, "", "not today"),
        // The next request ends the failure, so it is not answered before the test has seen it.
        1 => {
            until_so("the failure is seen", || seen.load(Relaxed));
            ReceiverAnswer::Take
        }
        2 => ReceiverAnswer::Status(429, "retry-after: 2\r\n", ""),
        4 => ReceiverAnswer::Close,
        _ => ReceiverAnswer::Take,
    });
    let remote = known.send(receiver.url(), None);
    until_so("the first failure is told", || remote.check().reason.contains("it returned 500: not today"));
    assert_eq!(remote.check().state, CheckState::Failed);
    is_seen.store(true, Relaxed);
    until_so("everything is taken", || once(receiver.samples()).0 == known.samples(TICKS));
    let requests = receiver.came().requests.clone();
    assert!(requests.len() >= 6, "{}", requests.len());
    for failed in [0, 2, 4] {
        assert_eq!(requests[failed].0, requests[failed + 1].0, "the same request is sent again");
    }
    until_so("it is well", || remote.check().state == CheckState::Ok);
    let samples: usize = known.samples(TICKS).values().map(|own| own.len()).sum();
    let count = |count: &std::sync::atomic::AtomicU64| count.load(Relaxed);
    let c = &remote.counts;
    until_so("it is counted", || count(&c.sent) == samples as u64);
    // The connection was lost once, after some of it.
    until_so("what was just sent went again", || count(&c.resent) == samples as u64);
    assert_eq!((count(&c.retries), count(&c.dropped)), (3, 0));
    let requests = receiver.came().requests.clone();
    let bytes: usize = requests.iter().filter(|(_, taken)| *taken).map(|(body, _)| body.len()).sum();
    assert_eq!(count(&c.bytes), bytes as u64);
    let head = receiver.came().head.to_ascii_lowercase();
    for line in [
        "post /api/v1/write http/1.1",
        "content-encoding: snappy",
        "content-type: application/x-protobuf",
        "x-prometheus-remote-write-version: 0.1.0",
    ] {
        assert!(head.contains(line), "{line} is missing in {head}");
    }
    // Later samples follow in order.
    known.extend(TICKS, TICKS + 14);
    known.extend(TICKS + 14, TICKS + 15);
    until_so("the next 15 s are taken", || once(receiver.samples()).0 == known.samples(TICKS + 15));
    assert_eq!(once(receiver.samples()).1, samples);
}

#[test]
fn what_was_sent_in_the_last_half_minute_goes_again_after_each_loss_and_no_more() {
    let clock = Arc::new(Manual::at(System.wall(), Duration::ZERO));
    let known = KnownMachine::by(clock.clone(), hours_ago(1), TICKS);
    // Two are servers that are killed and started between two requests. The third is behind a proxy that reports this.
    // The answers 500 and 429 are not a loss.
    let (next, theirs) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
    let (told, failed) = (next.clone(), theirs.clone());
    let receiver = Receiver::start(move |n| match n {
        1 => ReceiverAnswer::Status(500, "", ""),
        3 => ReceiverAnswer::Status(429, "", ""),
        _ => told.lock().take().map_or(ReceiverAnswer::Take, |answer| {
            failed.fetch_add(1, Relaxed);
            answer
        }),
    });
    let remote = known.send(receiver.url(), None);
    until_so("everything is taken", || receiver.samples() == known.samples(TICKS));
    let mut expected = 0;
    for (round, answer) in
        (0..).zip([ReceiverAnswer::TakeAndLeave, ReceiverAnswer::TakeAndLeave, ReceiverAnswer::Status(503, "", "")])
    {
        let ticks = TICKS + round * 75;
        // Samples that were sent at least 20 s ago are on the server's disk by now; 15 s of samples were sent 10 s ago.
        clock.pass(Duration::from_secs(20));
        known.extend(ticks, ticks + 15);
        until_so("some more", || once(receiver.samples()).0 == known.samples(ticks + 15));
        clock.pass(Duration::from_secs(10));
        // A killed server may lose all of the last request that it accepted.
        let is_taken = matches!(answer, ReceiverAnswer::TakeAndLeave);
        *next.lock() = Some(answer);
        known.extend(ticks + 15, ticks + 45);
        until_so("the last around the loss", || once(receiver.samples()).0 == known.samples(ticks + 45));
        known.extend(ticks + 45, ticks + 75);
        until_so("what follows", || once(receiver.samples()).0 == known.samples(ticks + 75));
        let lost = if is_taken { ticks..ticks + 45 } else { ticks..ticks + 15 };
        expected += known.samples_from(lost.start, lost.end).values().map(|own| own.len() as u64).sum::<u64>();
        // `once` checks that their values are equal.
        until_so("what was sent shortly before went again", || once(receiver.samples()).1 as u64 == expected);
        until_so("and is counted", || remote.counts.resent.load(Relaxed) == expected);
        clock.pass(Duration::from_secs(20));
    }
    assert_eq!(theirs.load(Relaxed), 3);
}

#[test]
fn a_server_that_ends_every_connection_is_sent_each_sample_a_bounded_number_of_times() {
    let known = KnownMachine::new(hours_ago(1), TICKS);
    let receiver = Receiver::start(|n| if n % 3 == 2 { ReceiverAnswer::Close } else { ReceiverAnswer::TakeAndLeave });
    let remote = known.send(receiver.url(), None);
    let runs = 4;
    for run in 1..=runs {
        let ticks = TICKS + (run - 1) * 15;
        known.extend(if run == 1 { TICKS } else { ticks - 15 }, ticks);
        until_so("everything is taken", || once(receiver.samples()).0 == known.samples(ticks));
        until_so("and it is well", || remote.check().state == CheckState::Ok);
    }
    let all: u64 = known.samples(TICKS + (runs - 1) * 15).values().map(|own| own.len() as u64).sum();
    until_so("none is counted as sent twice", || remote.counts.sent.load(Relaxed) == all);
    let most = |samples: &Samples| samples.values().flat_map(|own| own.values()).map(Vec::len).max().unwrap_or(0);
    until_so("what was sent shortly before went again", || most(&receiver.samples()) > 1);
    let resent = || remote.counts.resent.load(Relaxed);
    until_so("that is counted", || resent() == once(receiver.samples()).1 as u64);
    assert!(most(&receiver.samples()) <= 5, "{}", most(&receiver.samples()));
}

#[test]
fn a_server_that_has_what_was_sent_last_may_refuse_it() {
    let known = KnownMachine::new(hours_ago(1), TICKS);
    // Prometheus answers so when it has lost nothing.
    let (takes, refuses) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (told, refused) = (takes.clone(), refuses.clone());
    let left = AtomicBool::new(false);
    let receiver = Receiver::start(move |_| match (told.load(Relaxed), left.swap(!told.load(Relaxed), Relaxed)) {
        (true, _) => ReceiverAnswer::Take,
        (false, false) => ReceiverAnswer::TakeAndLeave,
        // The next one is new, and those after it are repeated.
        (false, true) if refused.fetch_add(1, Relaxed) == 0 => ReceiverAnswer::Take,
        (false, true) => ReceiverAnswer::Status(400, "", "out of order sample"),
    });
    let remote = known.send(receiver.url(), None);
    until_so("everything is taken", || receiver.samples() == known.samples(TICKS));
    takes.store(false, Relaxed);
    known.extend(TICKS, TICKS + 15);
    until_so("the last before the loss", || receiver.samples() == known.samples(TICKS + 15));
    known.extend(TICKS + 15, TICKS + 30);
    let before: u64 = known.samples(TICKS + 15).values().map(|own| own.len() as u64).sum();
    until_so("what was sent before went again", || remote.counts.resent.load(Relaxed) == before);
    assert_eq!(receiver.samples(), known.samples(TICKS + 30));
    assert_eq!((remote.counts.dropped.load(Relaxed), remote.check().state), (0, CheckState::Ok));
}

#[test]
fn a_refused_request_is_dropped_and_counted() {
    let known = KnownMachine::new(hours_ago(1), TICKS);
    let receiver = Receiver::start(|n| match n {
        1 => ReceiverAnswer::Status(400, "", "label name too long"),
        _ => ReceiverAnswer::Take,
    });
    let remote = known.send(receiver.url(), None);
    let all: u64 = known.samples(TICKS).values().map(|own| own.len() as u64).sum();
    let count = || (remote.counts.sent.load(Relaxed), remote.counts.dropped.load(Relaxed));
    until_so("all are sent or dropped", || count().0 + count().1 == all);
    let arrived: u64 = receiver.samples().values().map(|own| own.len() as u64).sum();
    assert_eq!(count().0, arrived);
    assert!(count().1 > 0 && remote.counts.retries.load(Relaxed) == 0);
    until_so("it is well again", || remote.check().state == CheckState::Ok);
}

#[test]
fn no_redirect_is_followed() {
    let thief = Receiver::start(|_| ReceiverAnswer::Take);
    let to: &'static str = format!("location: {}\r\n", thief.url()).leak();
    let receiver = Receiver::start(move |_| ReceiverAnswer::Status(307, to, ""));
    let known = KnownMachine::new(hours_ago(1), 1);
    let headers = vec![("Authorization".to_string(), "Bearer s3cret".to_string())];
    let remote = RemoteWriter::start(
        &known.live,
        RemoteWrite { url: receiver.url(), read_url: None, headers, ..RemoteWrite::default() },
        None,
    );
    until_so("the redirect is told", || remote.check().reason.contains("it redirects (307"));
    assert!(remote.check().reason.contains(&thief.url()), "{}", remote.check().reason);
    assert!(receiver.came().head.contains("s3cret") && thief.came().requests.is_empty());
}

#[test]
fn after_a_kill_at_any_request_nothing_is_missing_and_no_value_differs() {
    for (killed, answer) in [
        (0, ReceiverAnswer::TakeAndClose),
        (1, ReceiverAnswer::Close),
        (2, ReceiverAnswer::TakeAndClose),
        (2, ReceiverAnswer::Hang),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let from = hours_ago(2);
        let known = KnownMachine::new(from, TICKS);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let receiver = Receiver::start(move |n| match n {
            n if n == killed => answer,
            // The sender may repeat it before it is stopped, and gets no answer then.
            n if n > killed && !over.load(Relaxed) => ReceiverAnswer::Hang,
            _ => ReceiverAnswer::Take,
        });
        let remote = known.send(receiver.url(), Some(folder.path()));
        until_so("the request came that meets the kill", || receiver.came().requests.len() > killed);
        remote.stop();
        is_over.store(true, Relaxed);
        // The state is the one after a kill: a request is in flight. The history has gone on since.
        let again = KnownMachine::new(from, TICKS + 20);
        let remote = again.send(receiver.url(), Some(folder.path()));
        until_so("everything is taken", || once(receiver.samples()).0 == again.samples(TICKS + 20));
        let requests = receiver.came().requests.clone();
        assert_eq!(requests[killed].0, requests[killed + 1].0, "the same request is sent again");
        let twice = match answer {
            ReceiverAnswer::TakeAndClose => once(receiver.samples()).1,
            _ => 0,
        };
        assert_eq!(once(receiver.samples()).1, twice, "nothing but that request came twice");
        until_so("it is told", || remote.check().state == CheckState::Ok);
    }
}

#[test]
fn what_is_older_than_12_hours_is_given_up_and_counted() {
    let known = KnownMachine::new(hours_ago(14), TICKS);
    known.live.store().seal(0);
    let receiver = Receiver::start(|_| ReceiverAnswer::Take);
    let remote = known.send(receiver.url(), None);
    let all: u64 = known.samples(TICKS).values().map(|own| own.len() as u64).sum();
    until_so("they are counted", || remote.counts.expired.load(Relaxed) == all);
    assert!(receiver.came().requests.is_empty());
}

#[test]
fn a_server_that_hangs_delays_no_tick() {
    let receiver = Receiver::start(|_| ReceiverAnswer::Hang);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("w.toml");
    let text =
        format!("[remote_write]\nurl = \"{}\"\nheaders = {{ Authorization = \"Bearer s3cret\" }}\n", receiver.url());
    std::fs::write(&file, text).expect("a file");
    let mut command = watchglass_tests::server::watchglass(["--port", "0", "--interval", "100ms", "--config"]);
    command.arg(&file).env("WATCHGLASS_LOG", "trace");
    let server = Server::start_command(command);
    until_so("it hangs", || !receiver.came().requests.is_empty());
    let metric = |name: &str| {
        let text = server.get("/metrics", &[]).body;
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_string();
        line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok())
    };
    let ticks = metric("watchglass_self_ticks_total").expect("a count");
    until_so("ticks go on", || metric("watchglass_self_ticks_total") > Some(ticks + 20.0));
    assert_eq!(metric("watchglass_self_remote_write_requests_total"), Some(1.0));
    assert_eq!(metric("watchglass_self_remote_write_samples_total"), Some(0.0));
    let doctor = server.get("/api/v1/doctor", &[]).body;
    assert!(doctor.contains("\"remote_write\""), "{doctor}");
    assert!(!server.log().contains("s3cret") && !doctor.contains("s3cret"));
}

#[test]
fn what_came_late_is_sent_on_once_and_a_refusal_says_what_cures_it() {
    let known = KnownMachine::new(hours_ago(1), 50);
    let refused = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = refused.clone();
    let receiver = Receiver::start(move |_| match told.load(Relaxed) {
        true => ReceiverAnswer::Status(400, "", "out of order sample"),
        false => ReceiverAnswer::Take,
    });
    let remote = known.send(receiver.url(), None);
    until_so("the first are taken", || receiver.samples() == known.samples(50));
    known.extend_behind_a_gap(50, 30, 120);
    let with_gap = || {
        let mut wanted = known.samples(120);
        let gap = known.from + 50_000..known.from + 80_000;
        wanted.values_mut().for_each(|own| own.retain(|t, _| !gap.contains(t)));
        wanted
    };
    until_so("those behind the gap are taken", || receiver.samples() == with_gap());
    known.fill(50, 65);
    until_so("a part of it", || {
        remote.counts.sent.load(Relaxed) > with_gap().values().map(|own| own.len() as u64).sum()
    });
    refused.store(true, Relaxed);
    known.fill(65, 70);
    until_so("the refusal is told", || remote.check().reason.contains("out of order sample"));
    refused.store(false, Relaxed);
    known.fill(70, 80);
    let mut wanted = known.samples(120);
    let lost = known.from + 65_000..known.from + 70_000;
    wanted.values_mut().for_each(|own| own.retain(|t, _| !lost.contains(t)));
    until_so("all but what was refused, each once", || receiver.samples() == wanted);
    assert!(remote.counts.dropped.load(Relaxed) > 0);
    // It is reported as long as the server runs, although all other samples are accepted.
    let check = remote.check();
    assert!(check.reason.contains("late samples were rejected"), "{}", check.reason);
    assert!(check.remedy.contains("out_of_order_time_window: 12h"), "{}", check.remedy);
}

/// The table that hubs of a cluster share, in memory.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<BTreeMap<String, Vec<SentRange>>>>);

impl CoverageTable for Table {
    async fn read(&self, sources: Vec<String>) -> Result<BTreeMap<String, Vec<SentRange>>, String> {
        let table = self.0.lock();
        Ok(sources.into_iter().filter_map(|own| Some((own.clone(), table.get(&own)?.clone()))).collect())
    }

    async fn extend(&self, taken: BTreeMap<String, Vec<SentRange>>) -> Result<(), String> {
        let mut table = self.0.lock();
        taken.into_iter().for_each(|(source, ranges)| table.entry(source).or_default().extend(ranges));
        Ok(())
    }
}

impl Table {
    fn ranges(&self) -> Vec<SentRange> {
        let mut all = self.0.lock().get(&host()).cloned().unwrap_or_default();
        all.sort_unstable();
        all
    }
}

/// A hub of a cluster with a history of the known machine, which it may hold.
struct ClusterHub {
    known: KnownMachine,
    holds: Arc<AtomicBool>,
    clock: Arc<Manual>,
    remote: Arc<RemoteWriter>,
    _runtime: tokio::runtime::Runtime,
    _stop: tokio::sync::watch::Sender<bool>,
}

impl ClusterHub {
    fn new(from: i64, ticks: std::ops::Range<usize>, url: String, table: &Table) -> ClusterHub {
        let clock = Arc::new(Manual::at(System.wall(), Duration::ZERO));
        let known = KnownMachine::by(clock.clone(), from, 0);
        known.extend_behind_a_gap(0, ticks.start, ticks.end);
        let (holds, covered) = (Arc::new(AtomicBool::new(false)), Arc::new(Covered::default()));
        let ours = holds.clone();
        let cluster = SendingCluster { covered: covered.clone(), holds: Box::new(move |_| ours.load(Relaxed)) };
        let settings = RemoteWrite { url, read_url: None, headers: Vec::new(), ..RemoteWrite::default() };
        let remote = RemoteWriter::start_in(Some(cluster), &known.live, settings, None);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let (runtime, (stop, stopped)) = (runtime.expect("a runtime"), tokio::sync::watch::channel(false));
        let table = table.clone();
        runtime.spawn(async move { keep_covered(&covered, table, stopped).await });
        ClusterHub { known, holds, clock, remote, _runtime: runtime, _stop: stop }
    }

    fn hold(&self, holds: bool) {
        self.holds.store(holds, Relaxed);
    }
}

#[test]
fn hubs_of_a_cluster_send_each_sample_once_though_the_machine_moves_between_them() {
    let (from, table) = (hours_ago(1), Table::default());
    let receiver = Receiver::start(|_| ReceiverAnswer::Take);
    // Both have the same samples: one holds the machine, the other gets it by a relay, with a gap that is filled later.
    let one = ClusterHub::new(from, 0..100, receiver.url(), &table);
    let other = ClusterHub::new(from, 40..100, receiver.url(), &table);
    one.hold(true);
    until_so("it waits for what others sent", || {
        // Nothing is sent before the interval is over, regardless of the number of polls.
        one.clock.pass(Duration::from_secs(1));
        let taken = once(receiver.samples()).0 == one.known.samples(100);
        assert!(taken || receiver.came().requests.is_empty() || !receiver.samples().is_empty());
        taken
    });
    // The machine moves before the first hub has recorded its progress. It records it when it learns of the move.
    one.hold(false);
    until_so("what was sent is written down", || table.ranges() == [(1, 100)]);
    other.known.fill(0, 40);
    other.known.extend(100, 130);
    one.known.extend(100, 130);
    other.hold(true);
    until_so("what follows is sent by the other", || {
        other.clock.pass(Duration::from_secs(1));
        once(receiver.samples()).0 == one.known.samples(130)
    });
    // And back: ticks came by the relay, and a gap was filled that no hub has sent.
    other.hold(false);
    until_so("what was sent is written down, too", || table.ranges().iter().any(|(_, last)| *last == 130));
    one.known.extend(130, 160);
    one.hold(true);
    until_so("the first goes on", || {
        one.clock.pass(Duration::from_secs(1));
        once(receiver.samples()).0 == one.known.samples(160)
    });
    assert_eq!(once(receiver.samples()).1, 0, "nothing was sent twice");
    assert_eq!((one.remote.counts.dropped.load(Relaxed), other.remote.counts.dropped.load(Relaxed)), (0, 0));
}

#[test]
fn what_a_killed_hub_did_not_write_down_goes_once_more_and_no_more() {
    let (from, table) = (hours_ago(1), Table::default());
    let receiver = Receiver::start(|_| ReceiverAnswer::Take);
    // The first hub had sent all ticks, and recorded its progress up to the fiftieth.
    let one = KnownMachine::new(from, 100);
    let _remote = one.send(receiver.url(), None);
    until_so("all is taken", || receiver.samples() == one.samples(100));
    table.0.lock().insert(host(), vec![(1, 20), (31, 50)]);
    let other = ClusterHub::new(from, 0..130, receiver.url(), &table);
    other.hold(true);
    until_so("what follows is sent by the other", || {
        other.clock.pass(Duration::from_secs(1));
        once(receiver.samples()).0 == one.samples(130)
    });
    let of = |ranges: [(usize, usize); 2]| -> usize {
        ranges.iter().map(|(from, to)| one.samples_from(*from, *to).values().map(|own| own.len()).sum::<usize>()).sum()
    };
    until_so("what was not written down came twice", || once(receiver.samples()).1 == of([(20, 30), (50, 100)]));
    // The server may still lose it together with this hub. So it is recorded only after the server has had it for 30 s.
    assert_eq!(table.ranges(), [(1, 20), (31, 50)]);
    other.clock.pass(Duration::from_secs(31));
    other.known.extend(130, 160);
    until_so("and it is written down now, but for what has just been sent", || {
        let mut ranges = table.ranges();
        ranges.dedup_by(|next, range| {
            next.0 <= range.1 + 1 && {
                range.1 = range.1.max(next.1);
                true
            }
        });
        ranges == [(1, 130)]
    });
}

#[test]
#[ignore = "needs Debian's victoria-metrics on PATH"]
fn with_victoria_metrics_what_came_late_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = victoria_metrics(folder.path());
    let known = KnownMachine::new(hours_ago(1), 50);
    let remote = known.send(format!("http://{}/api/v1/write", server.addr), None);
    let samples = |from, to| known.samples_from(from, to).values().map(|own| own.len() as u64).sum::<u64>();
    let sent = |wanted: u64| until_so("they are taken", || remote.counts.sent.load(Relaxed) == wanted);
    sent(samples(0, 50));
    known.extend_behind_a_gap(50, 30, 120);
    sent(samples(0, 50) + samples(80, 120));
    known.fill(50, 80);
    sent(samples(0, 120));
    let catalog = known.live.store().catalog().clone();
    let name = Family::from_metric(catalog.metric(&known.defs[0]).expect("a row")).name;
    let selector = format!("{name}{{core=\"0\",source=\"{}\"}}", host());
    let wanted: Vec<i64> = (0..120).map(|tick| known.from + tick * 1_000).collect();
    let times = || exported(&server, &selector).into_iter().map(|(t, _)| t).collect::<Vec<_>>();
    until_so("it has each once", || times() == wanted);
}

#[test]
fn the_binary_goes_on_after_a_kill_where_the_server_was() {
    let receiver = Receiver::start(|_| ReceiverAnswer::Take);
    let folder = tempfile::tempdir().expect("a folder");
    let (file, data) = (folder.path().join("w.toml"), folder.path().join("data"));
    std::fs::write(&file, format!("[remote_write]\nurl = \"{}\"\n", receiver.url())).expect("a file");
    let start = || {
        let mut command = watchglass_tests::server::watchglass(["--port", "0", "--interval", "100ms", "--config"]);
        command.arg(&file).arg("--data-dir").arg(&data);
        Server::start_command(command)
    };
    let key = |samples: &Samples| samples.keys().find(|key| key.contains("=watchglass_memory_total_bytes,")).cloned();
    let server = start();
    until_so("the first request came", || key(&receiver.samples()).is_some());
    let ticks = || server.get("/api/v1/query?tag=memory.total", &[]).body.matches("],[").count();
    until_so("some ticks are behind it", || ticks() >= 20);
    drop(server);
    until_so("the last request is read", || receiver.rests());
    let taken = once(receiver.samples()).0.values().map(|own| own.len()).sum::<usize>();
    let (before, server) = (receiver.came().requests.len(), start());
    until_so("what was behind came", || receiver.came().requests.len() > before);
    until_so("and its last series, too", || {
        let samples = receiver.samples();
        let sent = &samples[&key(&samples).expect("a series")];
        sent.len() >= 20
    });
    until_so("what was taken just before the kill comes once more", || once(receiver.samples()).1 >= taken);
    let (sent, again) = once(receiver.samples());
    assert_eq!(again, taken, "nothing else comes twice");
    let json: serde_json::Value =
        serde_json::from_str(&server.get("/api/v1/query?tag=memory.total&from=-10m", &[]).body).expect("JSON");
    let own = json["series"][0]["points"].as_array().expect("points").iter();
    let own: Vec<i64> = own.filter_map(|p| Some((p[0].as_f64()? * 1e3).round() as i64)).collect();
    let sent: Vec<i64> = sent[&key(&sent).expect("a series")].keys().copied().collect();
    assert_eq!(sent, own[..sent.len()], "every tick that the history has, in its order");
}

/// Sends the known machine through a real server: writes it, requests the raw samples, and reads it back.
fn through(server: &Program, write: &str, raw: impl Fn(&str) -> Vec<(i64, f64)>) {
    let ticks = 1_000;
    // Prometheus accepts new samples of any age, VictoriaMetrics those within its retention.
    let known = KnownMachine::new(hours_ago(3), ticks);
    let (url, read_url) = (format!("http://{}{write}", server.addr), Some(format!("http://{}", server.addr)));
    let remote = RemoteWriter::start(
        &known.live,
        RemoteWrite { url, read_url, headers: Vec::new(), ..RemoteWrite::default() },
        None,
    );
    let expected = known.samples(ticks);
    let all: u64 = expected.values().map(|own| own.len() as u64).sum();
    until_so("all are sent", || remote.counts.sent.load(Relaxed) + remote.counts.dropped.load(Relaxed) == all);
    assert_eq!(
        (remote.counts.dropped.load(Relaxed), remote.check().state),
        (0, CheckState::Ok),
        "{:?}",
        remote.check()
    );
    let catalog = known.live.store().catalog().clone();
    let name = Family::from_metric(catalog.metric(&known.defs[0]).expect("a row")).name;
    for series in [0, 7, SERIES - 1] {
        let wanted: Vec<(i64, f64)> = (0..ticks)
            .map(|tick| (known.from + tick as i64 * 1_000, value(series, tick) / 100.0))
            .filter(|(_, v)| v.is_finite())
            .collect();
        let selector = format!("{name}{{core=\"{series}\",source=\"{}\"}}", host());
        until_so("it shows what it took", || raw(&selector).len() >= wanted.len());
        // VictoriaMetrics keeps some 15 decimal digits, not the exact bits.
        let same = |(own, theirs): (&(i64, f64), &(i64, f64))| own.0 == theirs.0 && (own.1 - theirs.1).abs() < 1e-12;
        let theirs = raw(&selector);
        assert!(theirs.len() == wanted.len() && wanted.iter().zip(&theirs).all(same), "{wanted:?}\n{theirs:?}");
    }
    let host = host();
    let wanted: Vec<RemoteSeries> = [0, 7, 42]
        .map(|series: usize| RemoteSeries {
            source: &host,
            metric: catalog.metric(&known.defs[series]).expect("a row"),
            instance: &known.defs[series].instance,
        })
        .into();
    let window = Window { from: known.from, to: known.from + ticks as i64 * 1_000, step: 60_000 };
    let mut back = ReadBack::new(&wanted, window).expect("few questions");
    while remote.ask(&mut back).expect("an answer") {}
    let read = back.end();
    for (read, series) in read.iter().zip([0, 7, 42]) {
        let samples = (0..ticks).map(|tick| (known.from + tick as i64 * 1_000, value(series, tick)));
        // The last step is incomplete.
        let own: Vec<_> = roll(samples, 60_000).into_iter().filter(|b| b.t + 60_000 <= window.to).collect();
        assert_eq!(read.len(), own.len(), "series {series}: {read:?}");
        for (read, own) in read.iter().zip(own) {
            assert_eq!((read.t, read.min, read.max), (own.t, own.min, own.max));
            assert!((read.mean - own.mean).abs() < 0.006, "{} {}", read.mean, own.mean);
        }
    }
    older(server, write, known.from, value(0, 0));
}

#[test]
#[ignore = "needs Debian's victoria-metrics on PATH"]
fn with_victoria_metrics_what_is_sent_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = victoria_metrics(folder.path());
    through(&server, "/api/v1/write", |selector| exported(&server, selector));
}

fn victoria_metrics(folder: &Path) -> Program {
    let data = folder.display();
    Program::start("victoria-metrics", |addr| {
        vec![format!("-httpListenAddr={addr}"), format!("-storageDataPath={data}"), "-loggerLevel=ERROR".into()]
    })
}

/// A series' samples in VictoriaMetrics.
pub(crate) fn exported(server: &Program, selector: &str) -> Vec<(i64, f64)> {
    server.get("/internal/force_flush");
    let text = server.get(&format!("/api/v1/export?match[]={}", escaped(selector))).body;
    let mut all = Vec::new();
    for line in text.lines() {
        let json: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let times = json["timestamps"].as_array().expect("times").iter().filter_map(|t| t.as_i64());
        all.extend(times.zip(json["values"].as_array().expect("values").iter().filter_map(|v| v.as_f64())));
    }
    all.sort_by_key(|(t, _)| *t);
    all
}

#[test]
#[ignore = "needs Debian's prometheus on PATH"]
fn with_prometheus_what_is_sent_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("prometheus.yml");
    std::fs::write(&config, "global: {}\n").expect("a file");
    let server = Program::start("prometheus", |addr| {
        vec![
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            format!("--web.listen-address={addr}"),
            "--web.enable-remote-write-receiver".into(),
        ]
    });
    until_so("it is ready", || server.get("/-/ready").status == 200);
    through(&server, "/api/v1/write", |selector| {
        let path =
            format!("/api/v1/query?query={}&time={}", escaped(&format!("{selector}[13h]")), System.wall() / 1000);
        let json: serde_json::Value = serde_json::from_str(&server.get(&path).body).expect("JSON");
        let point = |p: &serde_json::Value| Some(((p[0].as_f64()? * 1e3).round() as i64, p[1].as_str()?.parse().ok()?));
        let values = json["data"]["result"][0]["values"].as_array().cloned().unwrap_or_default();
        values.iter().filter_map(point).collect()
    });
}

/// Requests samples from the binary that are older than its own.
fn older(server: &Program, write: &str, from: i64, first: f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("w.toml");
    let addr = server.addr;
    let text = format!("[remote_write]\nurl = \"http://{addr}{write}\"\nread_url = \"http://{addr}\"\n");
    std::fs::write(&file, text).expect("a file");
    let mut command = watchglass_tests::server::watchglass(["--port", "0", "--config"]);
    command.arg(&file);
    let binary = Server::start_command(command);
    let path = format!("/api/v1/query?tag=cpu.0.cpu_percent&from={}&step=60", from / 60_000 * 60);
    until_so("the core is known", || binary.get(&path, &[]).body.contains("\"buckets\":[{"));
    let answer = binary.get(&path, &[]);
    let json: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(json["older"]["origin"], "remote", "{json}");
    let buckets = json["older"]["series"][0]["buckets"].as_array().expect("steps");
    assert!(buckets.len() >= 16 && buckets[0]["min"].as_f64() == Some(first), "{buckets:?}");
    let own = json["series"][0]["buckets"][0]["t"].as_f64();
    assert!(buckets.last().expect("one")["t"].as_f64() < own, "the two do not overlap: {json}");
    let without = binary.get("/api/v1/query?tag=cpu.0.cpu_percent&step=60&from=-1m", &[]);
    assert!(!without.body.contains("\"older\""), "{}", without.body);
}

/// A text encoded for the query of an address.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The values of OTLP requests, by time, of the metric of single cores.
fn otlp_values(receiver: &Receiver) -> BTreeMap<i64, usize> {
    let mut all = BTreeMap::new();
    for (body, _) in &receiver.came().requests {
        let mut plain = Vec::new();
        GzDecoder::new(&body[..]).read_to_end(&mut plain).expect("gzip");
        let request = ExportRequest::decode(&plain[..]).expect("a request");
        for machine in request.resource_metrics {
            let resource = format!("{:?}", machine.resource);
            assert!(resource.contains("host.name") && resource.contains(&host()), "{resource}");
            let metrics = machine.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
            for metric in metrics.filter(|metric| metric.name == "watchglass.cpu_core_utilization_ratio") {
                assert_eq!((metric.unit.as_str(), metric.sum.is_none()), ("1", true));
                for point in metric.gauge.expect("a gauge").data_points {
                    assert!(point.attributes[0].key == "core" && point.value.is_some_and(|value| value <= 1.0));
                    *all.entry((point.time / 1_000_000) as i64).or_default() += 1;
                }
            }
        }
    }
    all
}

#[test]
fn a_collector_of_opentelemetry_gets_each_sample_once_and_what_it_rejects_is_counted() {
    // The second request is taken in part: 0x18 values, and a reason.
    let receiver = Receiver::start(|n| match n {
        1 => ReceiverAnswer::Status(200, "", "\n\x07\x08\x18\x12\x03old"),
        _ => ReceiverAnswer::Take,
    });
    let known = KnownMachine::new(System.wall() - 300_000, TICKS);
    let settings = RemoteWrite {
        url: format!("http://{}/v1/metrics", receiver.addr),
        format: WriteFormat::Otlp,
        ..RemoteWrite::default()
    };
    let remote = RemoteWriter::start(&known.live, settings, None);
    let expected: u64 = known.samples(TICKS).values().map(|own| own.len() as u64).sum();
    until_so("all samples", || remote.counts.sent.load(Relaxed) + remote.counts.dropped.load(Relaxed) >= expected);
    assert_eq!(remote.counts.dropped.load(Relaxed), 24);
    assert_eq!(remote.counts.sent.load(Relaxed), expected - 24);
    assert_eq!(remote.check().state, CheckState::Ok, "later requests were taken whole");
    let head = receiver.came().head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/metrics ") && head.contains("content-type: application/x-protobuf"), "{head}");
    assert!(!head.contains("snappy") && head.contains("content-encoding: gzip"), "{head}");
    let values = otlp_values(&receiver);
    assert!(values.values().all(|count| *count == SERIES || *count == SERIES - 1), "each series once: {values:?}");
}
