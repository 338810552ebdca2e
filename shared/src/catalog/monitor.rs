//! Self-monitoring metrics that findings read. Other self-monitoring metrics are defined with their collector.

use super::MetricDef;

/// Whether a collector answered; filled by the sampler.
pub static OK: MetricDef = MetricDef::state("monitor.{collector}.ok")
    .title("Collector answered")
    .on("monitor.ok", "{collector}")
    .help("1 when the collector read all it was to read, 0 when a reading failed or came too late.");
