//! Resource use of Watchglass itself. The sampler fills the metrics of collector times, because it measures them.

use super::Own;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
pub use shared::catalog::monitor::OK;
use shared::catalog::{MetricDef, Range};
use shared::unit::Unit;
use std::time::Duration;

const MIB: f64 = (1 << 20) as f64;

/// Our CPU time.
pub static CPU: MetricDef = MetricDef::gauge("monitor.cpu", Unit::Percent)
    .title("Watchglass CPU")
    .on("monitor.cpu", "CPU")
    .range(Range::FromZero)
    .help("CPU time of this program since the previous sample, in percent of one core. User and system time as the kernel accounts them to the process.");

/// Our memory.
pub static RSS: MetricDef = MetricDef::gauge("monitor.rssMB", Unit::Mebibytes)
    .title("Watchglass memory")
    .on("monitor.memory", "resident")
    .steps(256.0)
    .help("Resident set of this program.");

/// Duration of a collector; filled by the sampler.
pub static MICROS: MetricDef = MetricDef::gauge("monitor.{collector}.micros", Unit::Microseconds)
    .title("Time a collector takes")
    .on("monitor.duration", "{collector}")
    .help("Wall-clock time from the start of the tick to the result of this collector.");

/// Ticks that were missed; filled by the sampler.
pub static LATE: MetricDef =
    MetricDef::counter("monitor.late", Unit::Count).title("Ticks missed").on("monitor.late", "missed").help(
        "Ticks skipped since the start because the machine or this program was suspended or overloaded; each is a \
        gap in all series.",
    );

/// Clock steps; filled by the sampler.
pub static CLOCK_STEPS: MetricDef = MetricDef::counter("monitor.clockSteps", Unit::Count)
    .title("Clock steps")
    .on("monitor.late", "clock steps")
    .help("Number of times that the machine's clock was set since the start. Samples keep their timestamps.");

/// Whether a hub is connected. The sampler fills this, and all other metrics of links.
pub static UPLINK_LIVE: MetricDef =
    MetricDef::state("monitor.uplink.{hub}.live").title("Link to hub").on("monitor.uplink", "hub {hub}").help(
        "1 while this hub of the configuration is connected, 0 while the agent reconnects. Hubs are numbered from \
        0.",
    );

/// Delay of sent samples behind measured ones.
pub static UPLINK_BEHIND: MetricDef = MetricDef::gauge("monitor.uplink.{hub}.behind", Unit::Seconds)
    .title("Unsent to hub")
    .on("monitor.uplink.behind", "hub {hub} not sent")
    .range(Range::FromZero)
    .help("Seconds of live samples that are not sent to the hub yet.");

/// Delay of the hub's log behind measured samples.
pub static UPLINK_MISSING: MetricDef = MetricDef::gauge("monitor.uplink.{hub}.missing", Unit::Seconds)
    .title("Unacknowledged by hub")
    .on("monitor.uplink.behind", "hub {hub} unacknowledged")
    .range(Range::FromZero)
    .help("Seconds of samples that the hub has not acknowledged. They are kept here and sent on request.");

/// Bytes of all messages.
pub static UPLINK_BYTES: MetricDef = MetricDef::counter("monitor.uplink.{hub}.bytes", Unit::Bytes)
    .title("Sent to hub")
    .on("monitor.uplink.bytes", "hub {hub} all")
    .help("Bytes of all messages to the hub since the start, before TLS.");

/// Bytes of samples that the hub requested.
pub static UPLINK_FILL_BYTES: MetricDef = MetricDef::counter("monitor.uplink.{hub}.fillBytes", Unit::Bytes)
    .title("Sent to hub on request")
    .on("monitor.uplink.bytes", "hub {hub} asked for")
    .help("Bytes of missing samples that the hub requested since the start; part of all bytes sent.");

/// Connections after the first.
pub static UPLINK_RECONNECTS: MetricDef = MetricDef::counter("monitor.uplink.{hub}.reconnects", Unit::Count)
    .title("Reconnects")
    .on("monitor.uplink.again", "hub {hub} reconnects")
    .help("Reconnects to the hub since the start.");

/// Times that the position in the log was lost.
pub static UPLINK_SKIPPED: MetricDef = MetricDef::counter("monitor.uplink.{hub}.skipped", Unit::Count)
    .title("Skips to newest")
    .on("monitor.uplink.again", "hub {hub} skips")
    .help(
        "Times since the start that the queue was full and the agent skipped to the newest sample; the hub \
        requests the others.",
    );

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[
    &CPU,
    &RSS,
    &MICROS,
    &OK,
    &LATE,
    &CLOCK_STEPS,
    &UPLINK_LIVE,
    &UPLINK_BEHIND,
    &UPLINK_MISSING,
    &UPLINK_BYTES,
    &UPLINK_FILL_BYTES,
    &UPLINK_RECONNECTS,
    &UPLINK_SKIPPED,
];

/// Opens the collector. It always reads this machine, never a recording.
pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    let own = Own::open()?;
    Ok(Part::only(own.tried(), Monitor { own, before: None }))
}

struct Monitor {
    own: Own,
    before: Option<(Duration, Duration)>,
}

impl Collector for Monitor {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let used = self.own.cpu_time()?;
        let before = self.before.replace((out.at(), used));
        let percent = before.and_then(|(at, before)| {
            let passed = out.at().checked_sub(at)?.as_secs_f64();
            (passed > 0.0).then(|| 100.0 * used.saturating_sub(before).as_secs_f64() / passed)
        });
        out.put_rounded(&CPU, (), percent);
        out.put(&RSS, (), self.own.resident()? / MIB);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_cost_is_read() {
        let mut part = open(&Options::default(), &Roots::default()).unwrap().remove(0);
        let mut out = Out::default();
        let mut read = |second| {
            out.begin(Duration::from_secs(second));
            part.collector.collect(&mut out).unwrap();
            out.present()
        };
        assert_eq!(read(1).len(), 1, "a share needs two readings");
        let second = read(3);
        let tags: Vec<&str> = second.iter().map(|(tag, _)| tag.as_str()).collect();
        assert_eq!(tags, [CPU.tag, RSS.tag]);
        assert!(second[1].1 > 1.0, "some MiB: {second:?}");
    }
}
