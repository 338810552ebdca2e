//! What Watchglass itself costs. The rows that tell of the collectors' times are filled by the sampler, which measures
//! them.

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

/// How long a collector took; filled by the sampler.
pub static MICROS: MetricDef = MetricDef::gauge("monitor.{collector}.micros", Unit::Microseconds)
    .title("Time a collector takes")
    .on("monitor.duration", "{collector}")
    .help("Time from the tick's begin to this collector's answer, by the clock on the wall.");

/// Ticks that were missed; filled by the sampler.
pub static LATE: MetricDef = MetricDef::counter("monitor.late", Unit::Count)
    .title("Ticks missed")
    .on("monitor.late", "missed")
    .help("Ticks that did not happen since the start because the machine, or this program, was held up; each is a gap in all series.");

/// Clock steps; filled by the sampler.
pub static CLOCK_STEPS: MetricDef = MetricDef::counter("monitor.clockSteps", Unit::Count)
    .title("Clock steps")
    .on("monitor.late", "clock steps")
    .help("Times that the machine's clock was set to another time since the start; the samples before and after stand as they were stamped.");

/// Whether the link to a hub stands; filled by the sampler, as are all of links.
pub static UPLINK_LIVE: MetricDef = MetricDef::state("monitor.uplink.{hub}.live")
    .title("Link to hub")
    .on("monitor.uplink", "hub {hub}")
    .help("1 while the link to this hub of the configuration stands, 0 while it is tried. Hubs are counted from 0 on.");

/// How far what is sent is behind what is measured.
pub static UPLINK_BEHIND: MetricDef = MetricDef::gauge("monitor.uplink.{hub}.behind", Unit::Seconds)
    .title("Behind on hub")
    .on("monitor.uplink.behind", "hub {hub} not sent")
    .range(Range::FromZero)
    .help("Seconds of samples that were not sent to the hub yet as they came.");

/// How far the hub's log is behind what is measured.
pub static UPLINK_MISSING: MetricDef = MetricDef::gauge("monitor.uplink.{hub}.missing", Unit::Seconds)
    .title("Not confirmed by hub")
    .on("monitor.uplink.behind", "hub {hub} not confirmed")
    .range(Range::FromZero)
    .help(
        "Seconds of samples that the hub has not confirmed to have in its log. They are kept here and asked for later.",
    );

/// Bytes of all messages.
pub static UPLINK_BYTES: MetricDef = MetricDef::counter("monitor.uplink.{hub}.bytes", Unit::Bytes)
    .title("Sent to hub")
    .on("monitor.uplink.bytes", "hub {hub} all")
    .help("Bytes of all messages to the hub since the start, before TLS.");

/// Bytes of what the hub asked for.
pub static UPLINK_FILL_BYTES: MetricDef = MetricDef::counter("monitor.uplink.{hub}.fillBytes", Unit::Bytes)
    .title("Sent to hub afterwards")
    .on("monitor.uplink.bytes", "hub {hub} asked for")
    .help("Bytes of what the hub lacked and asked for since the start; part of all that was sent.");

/// Links after the first.
pub static UPLINK_RECONNECTS: MetricDef = MetricDef::counter("monitor.uplink.{hub}.reconnects", Unit::Count)
    .title("Links made anew")
    .on("monitor.uplink.again", "hub {hub} made anew")
    .help("Times that the link to the hub was made anew since the start.");

/// Times that a place was lost.
pub static UPLINK_SKIPPED: MetricDef = MetricDef::counter("monitor.uplink.{hub}.skipped", Unit::Count)
    .title("Skips to newest")
    .on("monitor.uplink.again", "hub {hub} skips")
    .help("Times since the start that so much waited for the link that it went on with the newest sample; the hub asks for the others.");

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

/// Opens it. It always reads this machine, never a recording.
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
