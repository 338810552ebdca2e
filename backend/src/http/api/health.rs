//! The server's own metrics on `GET /metrics`: received, stored and dropped samples by reason, and readers.

use crate::build_info::BUILD;
use crate::export::text::number;
use crate::http::App;
use crate::http::strangers::StrangerFigures;
use crate::remote_write::{RecallCounts, RemoteRow, SendCounts};
use cluster::ClusterFigures;
use fleet::ingest::IngestCounts;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::live::StreamCounts;
use stream::store::{Counts, Figures};
use team::accounts::AuditFileFigures;
use watch::alerts::{AlertFigures, AlertRegistry};

/// Name without `watchglass_self_` and `_total`, whether it is a counter, help, value.
type HealthRow = (&'static str, bool, &'static str, f64);

const fn counts(name: &'static str, help: &'static str, value: u64) -> HealthRow {
    (name, true, help, value as f64)
}

const fn stands(name: &'static str, help: &'static str, value: u64) -> HealthRow {
    (name, false, help, value as f64)
}

const fn with((name, counts, help, _): HealthRow, value: u64) -> HealthRow {
    (name, counts, help, value as f64)
}

fn remote_write((name, kind, help, value): RemoteRow) -> HealthRow {
    (name, kind == "counter", help, value as f64)
}

/// All families of this file that any server may print: name in Prometheus, type, help.
pub(super) fn families() -> Vec<(String, &'static str, &'static str)> {
    let live_counts = StreamCounts::default();
    let remote = SendCounts::default().figures(&RecallCounts::default(), 0).map(remote_write);
    let own = [
        ("self", store(&Counts::default()).to_vec()),
        ("self", folder(&Figures::default()).to_vec()),
        ("self", live(&live_counts).to_vec()),
        ("self", vec![STDERR]),
        ("self", connections(&StrangerFigures::default()).to_vec()),
        ("self", remote.to_vec()),
        ("demo", demo(&live_counts).to_vec()),
        ("alerts", alerts(&AlertFigures::default(), 0).to_vec()),
        ("alerts", vec![NOTICES, CALLS]),
        ("ingest", ingest(&IngestCounts::default()).to_vec()),
        ("ingest", vec![REFUSED]),
        ("cluster", cluster(&ClusterFigures::default()).to_vec()),
        ("usage", vec![USAGE]),
        ("audit", vec![SIGN_INS]),
        ("audit", audit(&AuditFileFigures::default()).to_vec()),
    ];
    let named = own.into_iter().flat_map(|(prefix, rows)| {
        rows.into_iter().map(move |(name, counts, help, _)| {
            let (total, kind) = if counts { ("_total", "counter") } else { ("", "gauge") };
            (format!("watchglass_{prefix}_{name}{total}"), kind, help)
        })
    });
    named.chain([("watchglass_build_info".into(), "gauge", BUILD_HELP)]).collect()
}

/// Writes all rows, each a family of its own.
pub(in crate::http) fn health(app: &App, text: &mut String, open: bool) {
    build(text);
    let kept = app.live.store().counts();
    let mut rows = store(&kept).to_vec();
    rows.extend(kept.history.iter().flat_map(folder));
    rows.extend(live(&app.live.counts));
    rows.push(with(STDERR, crate::stderr::dropped()));
    rows.extend(connections(&app.strangers.figures()));
    rows.extend(app.remote.iter().flat_map(|remote| remote.figures()).map(remote_write));
    rows.into_iter().for_each(|row| family(text, open, "self", row, &[]));
    if app.live.provenance.simulated && app.live.provenance.recorded.is_none() {
        demo(&app.live.counts).into_iter().for_each(|row| family(text, open, "demo", row, &[]));
    }
    if let Some(figures) = app.alerts.as_ref().map(AlertRegistry::figures) {
        alerts(&figures, app.live.clock.wall()).into_iter().for_each(|row| family(text, open, "alerts", row, &[]));
        let tries = [("delivered", figures.taken), ("retried", figures.tried), ("given_up", figures.given_up)];
        let tries: Vec<(String, u64)> = tries.map(|(result, count)| (result.to_string(), count)).into();
        family(text, open, "alerts", NOTICES, &tries);
    }
    family(text, open, "alerts", with(CALLS, app.calls.dropped()), &[]);
    if let Ok(hub) = app.hub() {
        let ingested = hub.ingest.counts();
        ingest(&ingested).into_iter().for_each(|row| family(text, open, "ingest", row, &[]));
        family(text, open, "ingest", REFUSED, &ingested.refused);
        if let Some(figures) = hub.cluster.as_ref().map(|cluster| cluster.figures()) {
            cluster(&figures).into_iter().for_each(|row| family(text, open, "cluster", row, &[]));
        }
        family(text, open, "usage", with(USAGE, hub.meter.left_out()), &[]);
        family(text, open, "audit", with(SIGN_INS, hub.accounts.unwritten_sign_ins()), &[]);
        for row in hub.audit_file.iter().map(|file| file.figures()).flat_map(|file| audit(&file)) {
            family(text, open, "audit", row, &[]);
        }
    }
}

fn connections(figures: &StrangerFigures) -> [HealthRow; 5] {
    [
        stands("connections", "Open HTTP connections, without streams and agent links.", figures.connections),
        stands("unauthenticated_connections", "Open connections without a session or a key.", figures.strangers),
        counts("unauthenticated_closed", "Unauthenticated connections closed to make room for others.", figures.closed),
        counts(
            "unauthenticated_refused",
            "Unauthenticated connections and requests over the limit of their network, or of all networks.",
            figures.turned_away,
        ),
        counts("bodies_timed_out", "Requests whose body did not arrive in time.", figures.late_bodies),
    ]
}

/// Version, commit and date of this program, as labels of a constant 1.
fn build(text: &mut String) {
    let labels = [("version", Some(BUILD.version)), ("commit", BUILD.commit), ("date", BUILD.date)];
    let labels = labels.into_iter().chain([("target", Some(BUILD.target))]);
    let labels: Vec<String> = labels.filter_map(|(name, value)| Some(format!("{name}=\"{}\"", value?))).collect();
    let _ = write!(text, "# HELP watchglass_build_info {BUILD_HELP}\n# TYPE watchglass_build_info gauge\n");
    let _ = writeln!(text, "watchglass_build_info{{{}}} 1", labels.join(","));
}

/// Writes a family of one sample, or of one for each `cause`.
fn family(
    text: &mut String,
    open: bool,
    prefix: &str,
    (name, counts, help, value): HealthRow,
    causes: &[(String, u64)],
) {
    let total = if counts { "_total" } else { "" };
    // In OpenMetrics only the samples of a counter end in `_total`, not its family.
    let named = if open { "" } else { total };
    let _ = writeln!(text, "# HELP watchglass_{prefix}_{name}{named} {help}");
    let _ = writeln!(text, "# TYPE watchglass_{prefix}_{name}{named} {}", if counts { "counter" } else { "gauge" });
    let mut sample = |labels: &str, value: f64| {
        let _ = write!(text, "watchglass_{prefix}_{name}{total}{labels} ");
        number(text, value);
        text.push('\n');
    };
    if causes.is_empty() {
        sample("", value);
    }
    for (cause, value) in causes {
        sample(&format!("{{cause=\"{cause}\"}}"), *value as f64);
    }
}

const BUILD_HELP: &str = "Version, commit, date and target of the program.";
const STDERR: HealthRow = counts("stderr_lines_dropped", "Log lines that could not be written to standard error.", 0);
const NOTICES: HealthRow = counts("notices", "Attempts to deliver a notice, by result.", 0);
const CALLS: HealthRow = counts("calls_dropped", "Alerts from code dropped because too many came.", 0);
const USAGE: HealthRow = counts("rows_left_out", "Rows of usage dropped while the database was unreachable.", 0);
const SIGN_INS: HealthRow = counts(
    "sign_ins_unwritten",
    "Failed sign-ins left out of the audit log because their network has too many there.",
    0,
);
const REFUSED: HealthRow =
    counts("refused", "Messages, series and samples of agents that were dropped or delayed, by cause.", 0);

fn ingest(counted: &IngestCounts) -> [HealthRow; 9] {
    let seconds = |ms: u64| ms as f64 / 1_000.0;
    [
        stands("links", "Connected agents.", counted.links),
        counts("ticks", "Ticks of agents appended to the store.", counted.ticks),
        counts("samples", "Samples of agents appended to the store.", counted.samples),
        counts("duplicates", "Ticks of agents dropped because the store had them already.", counted.duplicates),
        counts("bytes", "Bytes of messages received from agents.", counted.bytes),
        counts("fills", "Ranges of missing ticks requested from agents.", counted.fills),
        counts("fill_bytes", "Bytes of missing ticks received from agents.", counted.fill_bytes),
        (
            "missing_seconds",
            false,
            "Time of ticks that agents have and the hub has not fetched yet, summed over machines.",
            seconds(counted.missing_ms),
        ),
        (
            "lag_seconds",
            false,
            "Delay between the time stamp of a machine's newest tick and its arrival; the largest of all connected machines.",
            seconds(counted.lag_ms),
        ),
    ]
}

fn alerts(figures: &AlertFigures, now: i64) -> [HealthRow; 5] {
    let waits = figures.oldest.map_or(0, |oldest| (now - oldest).max(0));
    [
        stands("firing", "Firing alerts.", figures.firing),
        stands("pending", "Pending alerts: the condition holds, but not yet for long enough.", figures.pending),
        stands("subjects", "Series, runs, machines and groups that alert rules evaluate.", figures.subjects),
        ("outbox_oldest_seconds", false, "Age of the oldest notice that is not delivered yet.", waits as f64 / 1_000.0),
        counts("left_out", "Events and notices dropped while the database was unreachable.", figures.left_out),
    ]
}

fn cluster(figures: &ClusterFigures) -> [HealthRow; 19] {
    let bus = &figures.bus;
    [
        stands("connected", "1 while NATS is connected.", bus.connected.into()),
        stands("database", "1 while the shared database can be read.", figures.database.into()),
        stands("hubs", "Hubs with a valid lease.", figures.hubs.len() as u64),
        stands("held", "Machines whose agent is connected to this hub.", figures.held),
        stands("elsewhere", "Machines whose agent is connected to another live hub.", figures.elsewhere),
        stands("relays_in", "Machines of other hubs that are relayed to this hub.", figures.relays),
        stands("relays_out", "Machines of this hub that are relayed to other hubs.", figures.telling),
        counts("relays_begun", "Relays from other hubs that were started.", figures.begun),
        counts("relays_failed", "Relays from other hubs that failed.", figures.failed),
        counts(
            "refused",
            "Relays and requests of other hubs that were refused because too many were open.",
            figures.refused,
        ),
        counts("relay_in_bytes", "Bytes relayed to this hub.", figures.came_bytes),
        counts("relay_out_bytes", "Bytes relayed to other hubs.", figures.told_bytes),
        counts("messages_lost", "Messages of other hubs that were lost; each restarts its relay.", figures.lost),
        counts("requests", "Requests of other hubs.", figures.calls),
        counts("messages_sent", "Messages sent over NATS.", bus.sent),
        counts("sent_bytes", "Bytes sent over NATS.", bus.sent_bytes),
        counts("messages_dropped", "Messages that could not be sent over NATS.", bus.dropped),
        counts("messages_received", "Messages received over NATS.", bus.heard),
        counts("received_bytes", "Bytes received over NATS.", bus.heard_bytes),
    ]
}

fn audit(file: &AuditFileFigures) -> [HealthRow; 3] {
    [
        counts("file_lines", "Rows of the audit log written to its file.", file.lines),
        counts("file_failures", "Failed writes of the audit log's file.", file.failures),
        stands(
            "file_waiting",
            "Rows of the audit log that wait in the database to be written to its file.",
            file.waiting,
        ),
    ]
}

fn store(kept: &Counts) -> [HealthRow; 12] {
    [
        counts("ticks", "Ticks appended to the store.", kept.ticks),
        counts("samples", "Samples appended to the store.", kept.samples),
        stands("stored_bytes", "Bytes of sealed columns in memory.", kept.chunk_bytes as u64),
        stands("stored_samples", "Samples in sealed columns, on disk or in memory.", kept.chunk_samples),
        counts(
            "chunks_dropped",
            "Columns dropped before the retention ended, because memory was full.",
            kept.chunks_dropped,
        ),
        counts("corrupt_blocks", "Damaged columns and blocks left out of answers.", kept.damaged),
        counts(
            "refused_again",
            "Samples refused because the clock was set back to a time that has values.",
            kept.refused_again,
        ),
        counts("records", "Records (markers, runs, findings) appended to the store.", kept.records),
        counts("records_dropped", "Records dropped because memory was full.", kept.records_dropped),
        counts(
            "refused_series",
            "Times a series was refused because there were too many; it is retried every minute.",
            kept.series_refused,
        ),
        stands("series", "Series with a value in the last 15 minutes.", kept.series_alive),
        stands("stored_series", "Stored series, including those that have history alone.", kept.series_stored),
    ]
}

fn folder(figures: &Figures) -> [HealthRow; 11] {
    [
        stands("segments", "Files of sealed history on disk.", figures.segments),
        stands("segment_bytes", "Bytes of sealed history on disk.", figures.segment_bytes),
        stands("log_bytes", "Bytes of the write-ahead log.", figures.log_bytes),
        (
            "log_unsynced_seconds",
            false,
            "Age of the oldest tick that a power cut would lose.",
            figures.unsynced_ms as f64 / 1000.0,
        ),
        counts("log_unwritten", "Failed writes of the write-ahead log.", figures.unlogged),
        stands("log_skipped_bytes", "Bytes of the log that could not be read at startup.", figures.skipped_bytes),
        stands("log_cut_files", "Log files that ended in the middle of a record at startup.", figures.cut_logs),
        stands("history_missing_ticks", "Stored ticks that were missing at startup.", figures.missing_ticks),
        stands("history_failing", "1 while history cannot be written to disk.", figures.failing),
        stands("history_damaged", "Damaged places found at startup and by compaction.", figures.damaged),
        stands("unclean_start", "1 if the previous process did not shut down cleanly.", figures.unclean),
    ]
}

fn demo(live: &StreamCounts) -> [HealthRow; 2] {
    let dropped = live.dropped_ticks.load(Ordering::Relaxed);
    let behind = live.behind_ms.load(Ordering::Relaxed) as f64 / 1_000.0;
    let help = "Age of the newest tick of the simulated machines when it was made; 0 while they keep their interval.";
    [
        ("behind_seconds", false, help, behind),
        counts("ticks_dropped", "Ticks dropped because this machine is too slow to simulate them.", dropped),
    ]
}

fn live(live: &StreamCounts) -> [HealthRow; 4] {
    let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
    [
        stands("viewers", "Connected pages and scripts.", now(&live.viewers)),
        counts("live_bytes", "Bytes sent to pages and scripts.", now(&live.bytes)),
        counts("live_resyncs", "Streams that were restarted with a full copy.", now(&live.resyncs)),
        counts("live_held_back", "Times ticks were delayed for a slow page.", now(&live.held_back)),
    ]
}
