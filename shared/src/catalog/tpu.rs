//! Google Cloud TPUs: figures of each device, and distributions of the events between two readings.
//!
//! libtpu's SDK names come first in a help, then the metric of its service on port 8431. Six statistics of a
//! distribution are six rows, since a tag has one placeholder: the label.

use super::{Draw, MetricDef};
use crate::unit::Unit;

const LINE: &str = "TPU {i}";
const HUNDREDTHS: f64 = 100.0;
const THOUSANDTHS: f64 = 1000.0;

/// Tensor cores busy.
pub static TENSORCORE: MetricDef = MetricDef::gauge("tpu.{i}.tensorcoreUtilization", Unit::Percent)
    .title("TPU tensor core utilization")
    .on("tpu", LINE)
    .aliases(&["tpu => 0"])
    .help("Use of the tensor core's matrix units. SDK tensorcore_util.");

/// Busy with any program.
pub static DUTY_CYCLE: MetricDef = MetricDef::gauge("tpu.{i}.dutyCycle", Unit::Percent)
    .title("TPU duty cycle")
    .on("tpu.duty", LINE)
    .help("Share of the sampling period in which the chip worked; on v2 and v3 a chip's figure stands for both of its devices. SDK duty_cycle_pct; tpu.runtime.tensorcore.dutycycle.percent.");

/// Memory used, bytes.
pub static HBM_USAGE: MetricDef = MetricDef::gauge("tpu.{i}.hbmCapacityUsage", Unit::Bytes)
    .title("TPU memory used")
    .on("tpu.memory", LINE)
    .aliases(&["tpu.{i}.memoryUsageBytes"])
    .help("High-bandwidth memory in use. SDK hbm_capacity_usage; tpu.runtime.hbm.memory.usage.bytes.");

/// Memory that exists.
pub static HBM_TOTAL: MetricDef = MetricDef::gauge("tpu.{i}.hbmCapacityTotal", Unit::Bytes)
    .title("TPU memory total")
    .on("tpu.memory", "TPU {i} total")
    .draw(Draw::Limit)
    .help("High-bandwidth memory that exists. SDK hbm_capacity_total; tpu.runtime.hbm.memory.total.bytes.");

/// Memory used, percent.
pub static HBM_PERCENT: MetricDef = MetricDef::gauge("tpu.{i}.hbmMemoryUsage", Unit::Percent)
    .title("TPU memory used, share")
    .on("tpu.memory.percent", LINE)
    .aliases(&["tpu.{i}.memoryUsage"])
    .help("100 x tpu.{i}.hbmCapacityUsage / tpu.{i}.hbmCapacityTotal. Derived from both.");

/// Memory bandwidth.
pub static RUNTIME_HBM: MetricDef = MetricDef::gauge("tpu.{i}.runtimeHbmUtilization", Unit::Percent)
    .title("TPU memory utilization")
    .on("tpu.memory.activity", LINE)
    .help(
        "Use of high-bandwidth memory as the runtime reports it. Service metric tpu.runtime.hbm.utilization.percent.",
    );

/// Idle since.
pub static IDLE: MetricDef = MetricDef::gauge("tpu.{i}.tensorcoreIdleDuration", Unit::Seconds)
    .title("TPU idle time")
    .on("tpu.idle", LINE)
    .steps(THOUSANDTHS)
    .help("Seconds since the tensor core last worked. Service metric tpu.runtime.tensorcore.idle_duration.seconds.");

/// Links between chips.
pub static LINK_HEALTH: MetricDef = MetricDef::gauge("tpu.{i}.iciLinkHealth", Unit::Count)
    .title("TPU link health")
    .on("tpu.link", LINE)
    .steps(HUNDREDTHS)
    .help("Health score of the links between chips, 0 for healthy up to 10 for unusable. SDK ici_link_health.");

/// Throttling.
pub static THROTTLE_SCORE: MetricDef = MetricDef::gauge("tpu.{i}.throttleScore", Unit::Count)
    .title("TPU throttling")
    .on("tpu.throttle", LINE)
    .steps(HUNDREDTHS)
    .help("Score of throttling, 0 for none up to 10 for all of the time. SDK tpu_throttle_score.");

/// Queue of programs.
pub static QUEUE: MetricDef = MetricDef::gauge("tpu.hloQueueSize.{label}", Unit::Count)
    .title("TPU program queue")
    .on("tpu.queue", "{label}")
    .help("Compiled programs that wait for the device. SDK hlo_queue_size; hlo.queue.size.gauge.");

/// Figures of each device, in order on screen.
pub static DEVICE: &[&MetricDef] =
    &[&TENSORCORE, &DUTY_CYCLE, &HBM_USAGE, &HBM_TOTAL, &HBM_PERCENT, &RUNTIME_HBM, &IDLE, &QUEUE];

/// Rows of libtpu only, in order on screen.
pub static LIBRARY: &[&MetricDef] = &[&LINK_HEALTH, &THROTTLE_SCORE];

/// Position of the mean in a distribution's rows.
pub const MEAN: usize = 0;
/// Position of the median; likewise for those below.
pub const P50: usize = 1;
#[allow(missing_docs, reason = "see P50")]
pub const P90: usize = 2;
#[allow(missing_docs, reason = "see P50")]
pub const P95: usize = 3;
#[allow(missing_docs, reason = "see P50")]
pub const P99: usize = 4;
#[allow(missing_docs, reason = "see P50")]
pub const P999: usize = 5;

const fn stat(tag: &'static str, unit: Unit, drawn: bool) -> MetricDef {
    MetricDef::gauge(tag, unit).steps(HUNDREDTHS).draw(if drawn { Draw::Line } else { Draw::Hidden })
}

// Three of the six are drawn: more lines of one label hide each other. $line holds the tag's placeholder, or is empty
// if the distribution has no label.
macro_rules! rows {
    ($unit:ident, $before:literal, $after:literal, $chart:literal, $line:literal, $title:literal, $help:literal) => {
        [
            stat(concat!($before, ".mean", $after), Unit::$unit, false)
                .title(concat!($title, ", mean"))
                .on($chart, concat!($line, "mean"))
                .help(concat!("Mean since the reading before. ", $help)),
            stat(concat!($before, ".p50", $after), Unit::$unit, true)
                .title(concat!($title, ", median"))
                .on($chart, concat!($line, "p50"))
                .help(concat!("Median since the reading before. ", $help)),
            stat(concat!($before, ".p90", $after), Unit::$unit, true)
                .title(concat!($title, ", 90th percentile"))
                .on($chart, concat!($line, "p90"))
                .help(concat!("90th percentile since the reading before. ", $help)),
            stat(concat!($before, ".p95", $after), Unit::$unit, false)
                .title(concat!($title, ", 95th percentile"))
                .on($chart, concat!($line, "p95"))
                .help(concat!("95th percentile since the reading before. ", $help)),
            stat(concat!($before, ".p99", $after), Unit::$unit, false)
                .title(concat!($title, ", 99th percentile"))
                .on($chart, concat!($line, "p99"))
                .help(concat!("99th percentile since the reading before. ", $help)),
            stat(concat!($before, ".p999", $after), Unit::$unit, true)
                .title(concat!($title, ", 99.9th percentile"))
                .on($chart, concat!($line, "p999"))
                .help(concat!("99.9th percentile since the reading before. ", $help)),
        ]
    };
}

macro_rules! distributions {
    ($($(#[$doc:meta])* $name:ident = $rows:expr;)*) => {
        $($(#[$doc])* pub static $name: [MetricDef; 6] = $rows;)*

        /// Distributions, in order on screen.
        pub static DISTRIBUTIONS: &[&MetricDef] = &[
            $(&$name[MEAN], &$name[P50], &$name[P90], &$name[P95], &$name[P99], &$name[P999],)*
        ];
    };
}

distributions! {
    /// Run time of programs.
    HLO_TIMING = rows!(Microseconds, "tpu.hloExecTiming.{label}", "Us", "tpu.hlo", "{label} ", "TPU program run time",
        "Time that a compiled program ran on the device. SDK hlo_execution_timing; hlo.execution.timing.distribution.microseconds.");
    /// Collectives, end to end.
    COLLECTIVE = rows!(Microseconds, "tpu.collectiveE2ELatency.{label}", "Us", "tpu.collective", "{label} ", "TPU collective latency",
        "Time of a collective operation between slices, from end to end. SDK collective_e2e_latency; megascale.collective_end_to_end_latencies.microsecond.cumulative.distribution.");
    /// Buffers sent between slices.
    BUFFER_TRANSFER = rows!(Microseconds, "tpu.bufferTransferLatency.{label}", "Us", "tpu.transfer", "{label} ", "TPU buffer transfer latency",
        "Time to send a buffer to another slice over the data center's network. SDK buffer_transfer_latency; megascale.dcn_transfer_latencies.microsecond.cumulative.distribution.");
    /// Buffers received between slices.
    INBOUND_TRANSFER = rows!(Microseconds, "tpu.inboundBufferTransferLatency.{label}", "Us", "tpu.transfer.inbound", "{label} ", "TPU inbound buffer transfer latency",
        "Time to receive a buffer from another slice over the data center's network. SDK inbound_buffer_transfer_latency; megascale.dcn_inbound_transfer_latencies.microsecond.cumulative.distribution.");
    /// From the host to the device.
    HOST_TO_DEVICE = rows!(Microseconds, "tpu.hostToDeviceTransferLatency.{label}", "Us", "tpu.transfer.to", "{label} ", "TPU host to device latency",
        "Time to copy a buffer from the host to the device. SDK host_to_device_transfer_latency; megascale.host_to_device_transfer_latencies.microsecond.cumulative.distribution.");
    /// From the device to the host.
    DEVICE_TO_HOST = rows!(Microseconds, "tpu.deviceToHostTransferLatency.{label}", "Us", "tpu.transfer.from", "{label} ", "TPU device to host latency",
        "Time to copy a buffer from the device to the host. SDK device_to_host_transfer_latency; megascale.device_to_host_transfer_latencies.microsecond.cumulative.distribution.");
    /// Work on the host.
    HOST_COMPUTE = rows!(Microseconds, "tpu.hostComputeLatency.{label}", "Us", "tpu.host", "{label} ", "TPU host compute latency",
        "Time of work that the host does for a collective operation. SDK host_compute_latency; megascale.mxla_compute_latencies.microsecond.cumulative.distribution.");
    /// Round trip of gRPC connections.
    MIN_RTT = rows!(Microseconds, "tpu.grpcTcpMinRtt", "Us", "tpu.rtt", "", "TPU network round trip",
        "Shortest round trip of the TCP connections under gRPC. SDK grpc_tcp_min_rtt; megascale.grpc_tcp_min_rtt.microsecond.cumulative.distribution.");
    /// The same, where the service gives a label.
    MIN_RTT_OF = rows!(Microseconds, "tpu.grpcTcpMinRtt.{label}", "Us", "tpu.rtt", "{label} ", "TPU network round trip by label",
        "Shortest round trip of the TCP connections under gRPC. SDK grpc_tcp_min_rtt; megascale.grpc_tcp_min_rtt.microsecond.cumulative.distribution.");
    /// Throughput of gRPC connections.
    DELIVERY_RATE = rows!(MegabitsPerSecond, "tpu.grpcTcpDeliveryRate", "Mbps", "tpu.delivery", "", "TPU network delivery rate",
        "Rate at which the TCP connections under gRPC delivered data. SDK grpc_tcp_delivery_rate; megascale.grpc_tcp_delivery_rate.Mbps.cumulative.distribution.");
    /// The same, where the service gives a label.
    DELIVERY_RATE_OF = rows!(MegabitsPerSecond, "tpu.grpcTcpDeliveryRate.{label}", "Mbps", "tpu.delivery", "{label} ", "TPU network delivery rate by label",
        "Rate at which the TCP connections under gRPC delivered data. SDK grpc_tcp_delivery_rate; megascale.grpc_tcp_delivery_rate.Mbps.cumulative.distribution.");
}
