//! Our own health on `GET /metrics`: what came in, what was stored, what was left out and why, and who reads.

use crate::build_info::BUILD;
use crate::cluster::ClusterFigures;
use crate::export::text::number;
use crate::http::App;
use crate::http::strangers::StrangerFigures;
use fleet::ingest::IngestCounts;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::live::Live;
use stream::store::{Counts, Figures};
use team::accounts::AuditFileFigures;
use watch::alerts::{AlertBook, AlertFigures};

/// Name without `watchglass_self_` and `_total`, whether it counts, help, value.
type Row = (&'static str, bool, &'static str, f64);

const fn counts(name: &'static str, help: &'static str, value: u64) -> Row {
    (name, true, help, value as f64)
}

const fn stands(name: &'static str, help: &'static str, value: u64) -> Row {
    (name, false, help, value as f64)
}

/// Writes all rows, each a family of its own.
pub(in crate::http) fn health(app: &App, text: &mut String, open: bool) {
    build(text);
    let kept = app.live.store().counts();
    let mut rows = store(&kept).to_vec();
    rows.extend(kept.history.iter().flat_map(folder));
    rows.extend(live(&app.live));
    rows.push(counts("stderr_lines_dropped", "Lines of our log that could not be written.", crate::stderr::dropped()));
    rows.extend(callers(&app.strangers.figures()));
    for (name, kind, help, value) in app.remote.iter().flat_map(|remote| remote.figures()) {
        rows.push((name, kind == "counter", help, value as f64));
    }
    rows.into_iter().for_each(|row| family(text, open, "self", row, &[]));
    if app.live.provenance.simulated && app.live.provenance.recorded.is_none() {
        demo(&app.live).into_iter().for_each(|row| family(text, open, "demo", row, &[]));
    }
    if let Some(figures) = app.alerts.as_ref().map(AlertBook::figures) {
        alerts(&figures, app.live.clock.wall()).into_iter().for_each(|row| family(text, open, "alerts", row, &[]));
        let tries = [("taken", figures.taken), ("again", figures.tried), ("given up", figures.given_up)];
        let tries: Vec<(String, u64)> = tries.map(|(result, count)| (result.to_string(), count)).into();
        family(text, open, "alerts", counts("notices", "Tries to send a notice, by what came of them.", 0), &tries);
    }
    let help = "Alerts from code that were left out, because too many came.";
    family(text, open, "alerts", counts("calls_dropped", help, app.calls.dropped()), &[]);
    if let Ok(hub) = app.hub() {
        let ingested = hub.ingest.counts();
        ingest(&ingested).into_iter().for_each(|row| family(text, open, "ingest", row, &[]));
        family(text, open, "ingest", REFUSED, &ingested.refused);
        if let Some(figures) = hub.cluster.as_ref().map(|cluster| cluster.figures()) {
            cluster(&figures).into_iter().for_each(|row| family(text, open, "cluster", row, &[]));
        }
        let left_out = hub.meter.left_out();
        let help = "Rows of what was used that were left out while the database was away.";
        family(text, open, "usage", counts("rows_left_out", help, left_out), &[]);
        let help = "Sign-ins that failed and are not in the audit log, because too many of their network are.";
        family(text, open, "audit", counts("sign_ins_unwritten", help, hub.accounts.unwritten_sign_ins()), &[]);
        for row in hub.audit_file.iter().map(|file| file.figures()).flat_map(|file| audit(&file)) {
            family(text, open, "audit", row, &[]);
        }
    }
}

fn callers(figures: &StrangerFigures) -> [Row; 5] {
    [
        stands("connections", "Connections of HTTP that are open now, streams and links apart.", figures.connections),
        stands("strangers", "Connections on which nobody has signed in yet, by a session or a key.", figures.strangers),
        counts("strangers_closed", "Connections of strangers that were closed to make room.", figures.closed),
        counts(
            "strangers_refused",
            "Connections and requests of strangers beyond what their network, or all of them, may hold.",
            figures.turned_away,
        ),
        counts("bodies_late", "Requests whose body did not come in time.", figures.late_bodies),
    ]
}

/// Which program this is, as labels of a 1.
fn build(text: &mut String) {
    let labels = [("version", Some(BUILD.version)), ("commit", BUILD.commit), ("date", BUILD.date)];
    let labels = labels.into_iter().chain([("target", Some(BUILD.target))]);
    let labels: Vec<String> = labels.filter_map(|(name, value)| Some(format!("{name}=\"{}\"", value?))).collect();
    text.push_str(
        "# HELP watchglass_build_info What the program was built from.\n# TYPE watchglass_build_info gauge\n",
    );
    let _ = writeln!(text, "watchglass_build_info{{{}}} 1", labels.join(","));
}

/// Writes a family of one sample, or of one for each `cause`.
fn family(text: &mut String, open: bool, prefix: &str, (name, counts, help, value): Row, causes: &[(String, u64)]) {
    let total = if counts { "_total" } else { "" };
    // In OpenMetrics a counter's samples alone end in `_total`.
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

const REFUSED: Row = counts("refused", "Things of agents that were left out or held back, by cause.", 0);

fn ingest(counted: &IngestCounts) -> [Row; 9] {
    let seconds = |ms: u64| ms as f64 / 1_000.0;
    [
        stands("links", "Agents that are linked now.", counted.links),
        counts("ticks", "Ticks of agents that were appended.", counted.ticks),
        counts("samples", "Samples of agents that were appended.", counted.samples),
        counts("duplicates", "Ticks of agents that were here already, and were dropped.", counted.duplicates),
        counts("bytes", "Bytes of the messages of agents.", counted.bytes),
        counts("fills", "Ranges of ticks that were asked for because they were lacking.", counted.fills),
        counts("fill_bytes", "Bytes of what was asked for.", counted.fill_bytes),
        (
            "missing_seconds",
            false,
            "Samples that machines have and the hub lacks yet, of all machines together.",
            seconds(counted.missing_ms),
        ),
        (
            "lag_seconds",
            false,
            "How long after its stamp the newest tick came, of the linked machine where that is most.",
            seconds(counted.lag_ms),
        ),
    ]
}

fn alerts(figures: &AlertFigures, now: i64) -> [Row; 5] {
    let waits = figures.oldest.map_or(0, |oldest| (now - oldest).max(0));
    [
        stands("firing", "Alerts that fire now.", figures.firing),
        stands("pending", "Alerts that are about to fire.", figures.pending),
        stands("subjects", "Series, runs, machines and groups that rules watch.", figures.subjects),
        (
            "outbox_oldest_seconds",
            false,
            "How long the oldest notice waits that was not taken yet.",
            waits as f64 / 1_000.0,
        ),
        counts("left_out", "Events and notices that had no room while the database was away.", figures.left_out),
    ]
}

fn cluster(figures: &ClusterFigures) -> [Row; 19] {
    let bus = &figures.bus;
    [
        stands("connected", "1 while NATS is connected.", bus.connected.into()),
        stands("database", "1 while the shared database can be read.", figures.database.into()),
        stands("hubs", "Hubs that are there, by their leases.", figures.hubs.len() as u64),
        stands("held", "Machines whose link this hub has.", figures.held),
        stands("elsewhere", "Machines whose link another hub has that is there.", figures.elsewhere),
        stands("relays", "Machines of other hubs that are brought here now.", figures.relays),
        stands("told", "Machines that are told to other hubs now.", figures.telling),
        counts("relays_begun", "Times that a machine of another hub began to be brought here.", figures.begun),
        counts("relays_failed", "Times that a machine of another hub could not be brought here.", figures.failed),
        counts("refused", "Machines and questions that were too many at once.", figures.refused),
        counts("came_bytes", "Bytes that came of machines of other hubs.", figures.came_bytes),
        counts("told_bytes", "Bytes of machines that were told to other hubs.", figures.told_bytes),
        counts("lost", "Messages of other hubs that were lost; what they told of began anew.", figures.lost),
        counts("calls", "Questions of other hubs.", figures.calls),
        counts("messages_sent", "Messages that were sent over NATS.", bus.sent),
        counts("sent_bytes", "Bytes of them.", bus.sent_bytes),
        counts("messages_dropped", "Messages that could not be sent over NATS.", bus.dropped),
        counts("messages_heard", "Messages that were heard over NATS.", bus.heard),
        counts("heard_bytes", "Bytes of them.", bus.heard_bytes),
    ]
}

fn audit(file: &AuditFileFigures) -> [Row; 3] {
    [
        counts("file_lines", "Rows of the audit log that were written to its file.", file.lines),
        counts("file_failures", "Times that the file of the audit log could not be written.", file.failures),
        stands("file_waiting", "Rows of the audit log that its file lacks; they wait in the database.", file.waiting),
    ]
}

fn store(kept: &Counts) -> [Row; 12] {
    [
        counts("ticks", "Ticks appended to the store.", kept.ticks),
        counts("samples", "Samples appended to the store.", kept.samples),
        stands("stored_bytes", "Bytes of sealed columns in memory.", kept.chunk_bytes as u64),
        stands("stored_samples", "Samples in sealed columns, on disk or in memory.", kept.chunk_samples),
        counts("chunks_dropped", "Columns dropped before their time because memory was full.", kept.chunks_dropped),
        counts("corrupt_blocks", "Damaged columns and blocks that were left out of answers.", kept.damaged),
        counts(
            "refused_again",
            "Samples refused because the clock was set back to an instant that has its values.",
            kept.refused_again,
        ),
        counts("records", "Records (markers, runs, findings) appended to the store.", kept.records),
        counts("records_dropped", "Records that memory had no room for before they were sealed.", kept.records_dropped),
        counts("refused_series", "Times a series found no room; it is tried again every minute.", kept.series_refused),
        stands("series", "Series with a value in the last 15 minutes.", kept.series_alive),
        stands(
            "stored_series",
            "Series that are kept, those of which only history is left included.",
            kept.series_stored,
        ),
    ]
}

fn folder(figures: &Figures) -> [Row; 11] {
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
        counts("log_unwritten", "Writes that the log could not take.", figures.unlogged),
        stands("log_skipped_bytes", "Bytes of the log that could not be read at the start.", figures.skipped_bytes),
        stands("log_cut_files", "Log files that ended in the middle of a record at the start.", figures.cut_logs),
        stands("history_missing_ticks", "Ticks that were stored once and missing at the start.", figures.missing_ticks),
        stands("history_failing", "1 while history is not written to disk.", figures.failing),
        stands("history_damaged", "Damaged places met at the start and in merging.", figures.damaged),
        stands("unclean_start", "1 when the run before was not ended in order.", figures.unclean),
    ]
}

fn demo(live: &Live) -> [Row; 2] {
    let dropped = live.counts.dropped_ticks.load(Ordering::Relaxed);
    let behind = live.counts.behind_ms.load(Ordering::Relaxed) as f64 / 1_000.0;
    let help = "Age of the newest tick of the simulated machines when it was there; 0 while they keep their interval.";
    [
        ("behind_seconds", false, help, behind),
        counts("ticks_dropped", "Ticks that were not simulated, because this machine is too slow.", dropped),
    ]
}

fn live(live: &Live) -> [Row; 4] {
    let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let live = &live.counts;
    [
        stands("viewers", "Pages and scripts connected now.", now(&live.viewers)),
        counts("live_bytes", "Bytes sent to pages and scripts.", now(&live.bytes)),
        counts("live_resyncs", "Times everything was sent anew.", now(&live.resyncs)),
        counts("live_held_back", "Times ticks were held back for a slow page.", now(&live.held_back)),
    ]
}
