//! Sends samples by Prometheus remote write 1.0, and reads back by `query_range`. Prometheus, VictoriaMetrics, Mimir,
//! Thanos and most hosted services support both.
//!
//! Reading order: [`follow`] (ticks behind a position in a source) and [`span`] (the samples in them), [`batch`] (the
//! samples of one request), [`message`] (its bytes), [`otlp`] (its bytes for OpenTelemetry), [`server`] (requests and responses), `link` (lost connections),
//! `unsettled` (samples to repeat after a loss), [`progress`] (sent position, on disk), [`covered`] (sent positions of
//! the replicas of a cluster, in their database), [`sender`] (the thread that combines them), [`back`] (windows older
//! than our own history), [`recall`] (machines without a holder).
//!
//! The sender reads the store by sequence. It has no queue, and a tick never waits for it. After an outage it catches
//! up, up to 12 h; late samples of an agent are sent after that. Names and labels are those of `GET /metrics`.

mod back;
mod batch;
mod covered;
mod doctor;
mod follow;
mod link;
mod message;
mod otlp;
mod progress;
mod recall;
mod sender;
mod server;
mod span;
mod unsettled;

pub use back::{ReadBack, RemoteSeries, Summary, Window};
pub use covered::{CoverageTable, Covered, SendingCluster, SentRange, keep as keep_covered};
pub use doctor::examine;
pub use message::{Label, Sample, TimeSeries, WriteRequest};
pub use otlp::ExportRequest;
pub use recall::{Recall, RecallCounts, keep as keep_recalling};

use crate::config::RemoteWrite;
use back::Doubled;
use parking_lot::Mutex;
use progress::ProgressFile;
use sender::Sender;
use server::Server;
use shared::wire::{Check, CheckState};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use stream::live::Live;
use stream::throttle::Throttle;

/// Remedy for a server that refuses samples older than its newest.
const LATE_CURE: &str = "allow out-of-order samples: storage.tsdb.out_of_order_time_window: 12h in the configuration \
    of Prometheus, limits.out_of_order_time_window: 12h for Mimir; VictoriaMetrics accepts them within its \
    -retentionPeriod";

/// Remedy for a server that stores a repeated sample twice.
const TWICE_CURE: &str =
    "start VictoriaMetrics with -dedup.minScrapeInterval=1ms; in its cluster set it on vmselect and vmstorage";

/// The name of our check.
pub const CHECK: &str = "remote_write";

/// Counts since the start, for our own metrics.
#[derive(Debug, Default)]
pub struct SendCounts {
    /// Samples that the server took.
    pub sent: AtomicU64,
    /// Samples that were sent once more because the connection was lost after the server had taken them.
    pub resent: AtomicU64,
    /// Samples that the server refused for good.
    pub dropped: AtomicU64,
    /// Samples that were more than 12 h behind.
    pub expired: AtomicU64,
    /// Requests, repeated ones included.
    pub requests: AtomicU64,
    /// Requests that were neither taken nor refused, and were repeated.
    pub retries: AtomicU64,
    /// Bytes of the requests that were taken.
    pub bytes: AtomicU64,
    /// Time of ticks that are not taken yet, milliseconds.
    pub behind_ms: AtomicU64,
}

/// A row of `GET /metrics`: name without `watchglass_self_` and `_total`, type, help, value.
pub type RemoteRow = (&'static str, &'static str, &'static str, u64);

impl SendCounts {
    /// The rows of these counts, of what was read back, and of samples that the server stored twice.
    pub fn figures(&self, recalled: &RecallCounts, doubled: u64) -> [RemoteRow; 11] {
        let row = |name, help, count: &AtomicU64| (name, "counter", help, count.load(Relaxed));
        let behind = self.behind_ms.load(Relaxed) / 1000;
        [
            row("remote_write_recalled", "Samples read back of machines that no hub has any more.", &recalled.samples),
            row(
                "remote_write_recalled_left_out",
                "Samples read back whose series this hub does not know.",
                &recalled.left_out,
            ),
            ("remote_write_doubled", "counter", "Samples that the remote server was seen to store twice.", doubled),
            row("remote_write_samples", "Samples that the remote server accepted.", &self.sent),
            row("remote_write_resent", "Samples sent again after the connection was lost.", &self.resent),
            row("remote_write_dropped", "Samples that the remote server rejected.", &self.dropped),
            row("remote_write_expired", "Samples dropped because they were more than 12 h late.", &self.expired),
            row("remote_write_requests", "Requests, retries included.", &self.requests),
            row("remote_write_retries", "Requests that had to be retried.", &self.retries),
            row("remote_write_bytes", "Bytes of accepted requests.", &self.bytes),
            (
                "remote_write_behind_seconds",
                "gauge",
                "Time of ticks that the remote server has not accepted yet.",
                behind,
            ),
        ]
    }
}

/// Shared handle of the sender's thread. Dropping it ends the thread.
pub struct RemoteWriter {
    /// Counts since the start.
    pub counts: SendCounts,
    server: Arc<Server>,
    send_state: Mutex<SendState>,
    told_refusal: AtomicBool,
    /// Reads back machines without a holder; none without a server to read from.
    recall: Option<Arc<Recall>>,
    /// The server's reason at the first refusal of late samples.
    disorder: OnceLock<String>,
    doubled: Arc<Doubled>,
    /// Throttle of warnings about failures: a server may alternate between failure and success.
    waited: Mutex<Throttle>,
    /// Carries no message: dropping it stops the thread.
    stop: Mutex<Option<SyncSender<()>>>,
}

/// Result of the last request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SendState {
    /// None was sent yet.
    Starting,
    /// It was taken.
    Well,
    /// It was refused, and its samples dropped.
    Refused(String),
    /// It will be repeated.
    Waiting(String),
}

impl RemoteWriter {
    /// Starts to send the samples of `live` to the server of these settings. The position is stored in `folder`;
    /// without one a restart begins with the stored history.
    pub fn start(live: &Arc<Live>, settings: RemoteWrite, folder: Option<&Path>) -> Arc<RemoteWriter> {
        Self::start_in(None, live, settings, folder)
    }

    /// As above. In a cluster only sources held by this replica are sent, without samples that another replica has
    /// sent.
    pub fn start_in(
        cluster: Option<SendingCluster>,
        live: &Arc<Live>,
        settings: RemoteWrite,
        folder: Option<&Path>,
    ) -> Arc<RemoteWriter> {
        let (stop, stopped) = sync_channel(0);
        let server = Arc::new(Server::new(settings, live.clock.clone()));
        let doubled = Arc::new(Doubled::default());
        let progress = ProgressFile::open(folder, &server.shown());
        let remote = Arc::new(RemoteWriter {
            counts: SendCounts::default(),
            send_state: Mutex::new(SendState::Starting),
            told_refusal: AtomicBool::new(false),
            recall: server.reads().then(|| Recall::new(live, &server, &doubled)),
            disorder: OnceLock::new(),
            doubled,
            waited: Mutex::default(),
            server,
            stop: Mutex::new(Some(stop)),
        });
        live.remember_late();
        let sender = Sender::new(live.clone(), remote.clone(), cluster, progress, stopped);
        let thread = std::thread::Builder::new().name("remote-write".into()).spawn(move || sender.run());
        if let Err(error) = thread {
            tracing::error!(%error, "nothing is sent by remote write: its thread could not be started");
        }
        remote
    }

    /// Signals the thread to end, without waiting for it.
    pub fn stop(&self) {
        self.stop.lock().take();
    }

    fn stand(&self, live: &Live, send_state: SendState) {
        let before = std::mem::replace(&mut *self.send_state.lock(), send_state.clone());
        let server = self.server.shown();
        match send_state {
            _ if before == send_state => {}
            SendState::Refused(reason) if !self.told_refusal.swap(true, Relaxed) => {
                tracing::warn!(server, reason, "samples refused and dropped; further ones are counted, not told");
            }
            SendState::Waiting(reason) if !matches!(before, SendState::Waiting(_)) => {
                let came = self.waited.lock().came(Instant::now());
                if let Some(before) = came {
                    tracing::warn!(server, reason, before, "not taken; sent again until it is, up to 12 h behind");
                }
            }
            SendState::Well if matches!(before, SendState::Waiting(_)) => {
                let throttle = self.waited.lock();
                if throttle.passed_over() == 0 {
                    tracing::info!(server, "taken again");
                }
            }
            _ => {}
        }
        live.store().set_check(&self.check());
    }

    /// Records that the server refused samples older than its newest, with its reason.
    fn refused_late(&self, reason: &str) {
        if self.disorder.set(reason.into()).is_ok() {
            tracing::warn!(server = self.server.shown(), reason, "what came late is not taken: {LATE_CURE}");
        }
    }

    /// Reads back machines without a holder; none without a server to read from.
    pub fn recall(&self) -> Option<&Arc<Recall>> {
        self.recall.as_ref()
    }

    /// Whether windows older than our own history can be read back.
    pub fn reads(&self) -> bool {
        self.server.reads()
    }

    /// Sends the next query of a read-back; returns whether there are more. Blocks until the server has answered.
    ///
    /// # Errors
    /// The reason why there is no data at all, a sentence without a full stop.
    pub fn ask(&self, back: &mut ReadBack) -> Result<bool, String> {
        back.ask(&self.server)
    }

    /// The counts as rows for `GET /metrics`.
    pub fn figures(&self) -> [RemoteRow; 11] {
        let none = RecallCounts::default();
        let recalled = self.recall.as_ref().map_or(&none, |recall| &recall.counts);
        self.counts.figures(recalled, self.doubled.met())
    }

    /// Its state as a check.
    pub fn check(&self) -> Check {
        let (state, reason, remedy) = match &*self.send_state.lock() {
            SendState::Starting => (CheckState::Starting, String::new(), ""),
            SendState::Well if self.disorder.get().is_some() => {
                let words = self.disorder.get().map_or("", String::as_str);
                (CheckState::Partial, format!("late samples were rejected and dropped: {words}"), LATE_CURE)
            }
            SendState::Well if self.doubled.met() > 0 => {
                let reason = "it stores repeated samples twice, and counts them twice in sums and means";
                (CheckState::Partial, reason.into(), TWICE_CURE)
            }
            SendState::Well => (CheckState::Ok, String::new(), ""),
            SendState::Refused(reason) => {
                let cure = if self.disorder.get().is_some() { LATE_CURE } else { "" };
                (CheckState::Partial, format!("samples were rejected and dropped: {reason}"), cure)
            }
            SendState::Waiting(reason) => (
                CheckState::Failed,
                format!("{reason}; unsent samples of up to 12 h are retried"),
                "start the server, or correct [remote_write] in the configuration file",
            ),
        };
        Check {
            id: CHECK.into(),
            state,
            tried: vec![self.server.shown()],
            found: "samples are also sent to another server".into(),
            reason,
            remedy: remedy.into(),
        }
    }
}
