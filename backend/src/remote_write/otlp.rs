//! The same samples as OTLP metrics, for collectors of OpenTelemetry: names and attributes by its semantic conventions
//! where they exist. Field numbers are those of opentelemetry-proto 1.

use super::message::{Label, Sample, TimeSeries, WriteRequest};
use prost::Message;
use shared::catalog::prometheus::SOURCE;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Cumulative sums, in the enumeration of the protocol.
const CUMULATIVE: i32 = 2;
const NANOS_PER_MS: i64 = 1_000_000;

/// The body of a request.
#[derive(Clone, PartialEq, Message)]
pub struct ExportRequest {
    /// Metrics by machine.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// Metrics of a machine.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    /// The machine.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<OtlpResource>,
    /// Its metrics.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// A machine.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpResource {
    /// `host.name` and `service.name`.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<Attribute>,
}

/// Metrics of one program.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    /// The metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<OtlpMetric>,
}

/// One metric: a gauge or a sum.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpMetric {
    /// Its name, with dots.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its unit in UCUM.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Its values, if it is a gauge.
    #[prost(message, optional, tag = "5")]
    pub gauge: Option<Gauge>,
    /// Its values, if it is a sum.
    #[prost(message, optional, tag = "7")]
    pub sum: Option<Sum>,
}

/// Values of a gauge.
#[derive(Clone, PartialEq, Message)]
pub struct Gauge {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<Point>,
}

/// Values of a sum.
#[derive(Clone, PartialEq, Message)]
pub struct Sum {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<Point>,
    /// Cumulative.
    #[prost(int32, tag = "2")]
    pub temporality: i32,
    /// Whether it is a counter.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// A value and its time. The start of a counter is unknown, so that it is absent.
#[derive(Clone, PartialEq, Message)]
pub struct Point {
    /// Nanoseconds since the Unix epoch.
    #[prost(fixed64, tag = "3")]
    pub time: u64,
    /// The value, finite.
    #[prost(double, optional, tag = "4")]
    pub value: Option<f64>,
    /// Its labels.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<Attribute>,
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<Text>,
}

/// A value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub struct Text {
    /// The text.
    #[prost(string, optional, tag = "1")]
    pub text: Option<String>,
}

/// The response to a request.
#[derive(Clone, PartialEq, Message)]
pub struct ExportResponse {
    /// The rejected part of the request.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// The rejected part of a request.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    /// Number of rejected values.
    #[prost(int64, tag = "1")]
    pub rejected: i64,
    /// The reason.
    #[prost(string, tag = "2")]
    pub reason: String,
}

/// The body of an error, `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub struct ErrorStatus {
    /// The reason.
    #[prost(string, tag = "2")]
    pub reason: String,
}

/// A name of OpenTelemetry's conventions: our name, theirs, unit, whether it is a sum, our label with their attribute,
/// and fixed attributes.
type Convention = (
    &'static str,
    &'static str,
    &'static str,
    bool,
    Option<(&'static str, &'static str)>,
    &'static [(&'static str, &'static str)],
);

const GPU: Option<(&str, &str)> = Some(("gpu", "hw.id"));
const DISK: Option<(&str, &str)> = Some(("device", "system.device"));
const NETWORK: Option<(&str, &str)> = Some(("device", "network.interface.name"));
const OF_GPU: (&str, &str) = ("hw.type", "gpu");

/// Names of the conventions for hardware and systems: <https://opentelemetry.io/docs/specs/semconv/hardware/gpu/> and
/// <https://opentelemetry.io/docs/specs/semconv/system/system-metrics/>.
#[rustfmt::skip]
const CONVENTIONS: [Convention; 19] = [
    ("watchglass_gpu_utilization_ratio", "hw.gpu.utilization", "1", false, GPU, &[OF_GPU, ("hw.gpu.task", "general")]),
    ("watchglass_gpu_encoder_utilization_ratio", "hw.gpu.utilization", "1", false, GPU, &[OF_GPU, ("hw.gpu.task", "encoder")]),
    ("watchglass_gpu_decoder_utilization_ratio", "hw.gpu.utilization", "1", false, GPU, &[OF_GPU, ("hw.gpu.task", "decoder")]),
    ("watchglass_gpu_memory_used_bytes", "hw.gpu.memory.usage", "By", true, GPU, &[OF_GPU]),
    ("watchglass_gpu_memory_total_bytes", "hw.gpu.memory.limit", "By", true, GPU, &[OF_GPU]),
    ("watchglass_gpu_memory_used_ratio", "hw.gpu.memory.utilization", "1", false, GPU, &[OF_GPU]),
    ("watchglass_gpu_power_watts", "hw.power", "W", false, GPU, &[OF_GPU]),
    ("watchglass_gpu_energy_joules_total", "hw.energy", "J", true, GPU, &[OF_GPU]),
    ("watchglass_gpu_temperature_celsius", "hw.temperature", "Cel", false, GPU, &[("hw.type", "temperature")]),
    ("watchglass_cpu_utilization_ratio", "system.cpu.utilization", "1", false, None, &[]),
    ("watchglass_cpu_cores", "system.cpu.logical.count", "{cpu}", true, None, &[]),
    ("watchglass_memory_used_bytes", "system.memory.usage", "By", true, None, &[("system.memory.state", "used")]),
    ("watchglass_memory_cached_bytes", "system.memory.usage", "By", true, None, &[("system.memory.state", "cached")]),
    ("watchglass_memory_total_bytes", "system.memory.limit", "By", true, None, &[]),
    ("watchglass_memory_used_ratio", "system.memory.utilization", "1", false, None, &[("system.memory.state", "used")]),
    ("watchglass_disk_device_read_bytes_total", "system.disk.io", "By", true, DISK, &[("disk.io.direction", "read")]),
    ("watchglass_disk_device_written_bytes_total", "system.disk.io", "By", true, DISK, &[("disk.io.direction", "write")]),
    ("watchglass_network_device_receive_bytes_total", "system.network.io", "By", true, NETWORK, &[("network.io.direction", "receive")]),
    ("watchglass_network_device_transmit_bytes_total", "system.network.io", "By", true, NETWORK, &[("network.io.direction", "transmit")]),
];

/// Ends of our other names, and their units.
const UNITS: [(&str, &str); 7] = [
    ("_ratio", "1"),
    ("_bytes", "By"),
    ("_seconds", "s"),
    ("_celsius", "Cel"),
    ("_watts", "W"),
    ("_joules", "J"),
    ("_hertz", "Hz"),
];

fn attribute(key: &str, text: &str) -> Attribute {
    Attribute { key: key.into(), value: Some(Text { text: Some(text.into()) }) }
}

/// The body of a request with these samples, which are of one machine.
pub fn pack(request: &WriteRequest) -> Vec<u8> {
    let Some(first) = request.timeseries.first() else { return Vec::new() };
    let source = first.labels.iter().find(|label| label.name == SOURCE).map_or("", |label| label.value.as_str());
    let mut metrics: Vec<OtlpMetric> = Vec::new();
    let mut places = HashMap::new();
    for one in request.timeseries.iter().map(metric) {
        match places.entry(one.name.clone()) {
            Entry::Occupied(place) => join(&mut metrics[*place.get()], one),
            Entry::Vacant(place) => {
                place.insert(metrics.len());
                metrics.push(one);
            }
        }
    }
    let attributes = vec![attribute("host.name", source), attribute("service.name", "watchglass")];
    let machine =
        ResourceMetrics { resource: Some(OtlpResource { attributes }), scope_metrics: vec![ScopeMetrics { metrics }] };
    ExportRequest { resource_metrics: vec![machine] }.encode_to_vec()
}

/// Adds the values of another series of the same metric.
fn join(metric: &mut OtlpMetric, other: OtlpMetric) {
    if let (Some(own), Some(more)) = (&mut metric.gauge, other.gauge) {
        own.data_points.extend(more.data_points);
    }
    if let (Some(own), Some(more)) = (&mut metric.sum, other.sum) {
        own.data_points.extend(more.data_points);
    }
}

/// Number of values that a response says were rejected, and its reason.
pub fn rejected(response: &[u8]) -> (u64, String) {
    let response = ExportResponse::decode(response).unwrap_or_default();
    let part = response.partial_success.unwrap_or_default();
    (u64::try_from(part.rejected).unwrap_or(0), part.reason)
}

/// The reason in the body of an error; none if it is no such message, as that of a proxy.
pub fn reason_of(error: &[u8]) -> Option<String> {
    let status = ErrorStatus::decode(error).ok()?;
    Some(status.reason).filter(|reason| !reason.is_empty())
}

/// A series as a metric.
fn metric(series: &TimeSeries) -> OtlpMetric {
    let ours = series.labels.iter().find(|label| label.name == "__name__").map_or("", |label| label.value.as_str());
    let convention = CONVENTIONS.iter().find(|convention| convention.0 == ours);
    let is_counter = ours.ends_with("_total");
    let (name, unit, is_sum) = match convention {
        Some((_, name, unit, is_sum, ..)) => ((*name).to_owned(), *unit, *is_sum),
        None => {
            let plain = ours.strip_suffix("_total").unwrap_or(ours);
            let unit = UNITS.iter().find(|(end, _)| plain.ends_with(end)).map_or("", |(_, unit)| unit);
            // The other names keep their underscores, so that each has one spelling.
            (
                plain.strip_prefix("watchglass_").map_or(plain.to_owned(), |rest| format!("watchglass.{rest}")),
                unit,
                is_counter,
            )
        }
    };
    let renamed = convention.and_then(|convention| convention.4);
    let key = |label: &Label| match renamed {
        Some((own, theirs)) if label.name == own => theirs.to_owned(),
        _ => label.name.clone(),
    };
    let own = series.labels.iter().filter(|label| label.name != "__name__" && label.name != SOURCE);
    let fixed = convention.map_or(&[][..], |convention| convention.5).iter().map(|(key, text)| attribute(key, text));
    let attributes: Vec<Attribute> = own.map(|label| attribute(&key(label), &label.value)).chain(fixed).collect();
    let point = |sample: &Sample| Point {
        time: u64::try_from(sample.timestamp.saturating_mul(NANOS_PER_MS)).unwrap_or(0),
        value: Some(sample.value),
        attributes: attributes.clone(),
    };
    let data_points = series.samples.iter().map(point).collect();
    let (gauge, sum) = match is_sum {
        true => (None, Some(Sum { data_points, temporality: CUMULATIVE, is_monotonic: is_counter })),
        false => (Some(Gauge { data_points }), None),
    };
    OtlpMetric { name, unit: unit.into(), gauge, sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The request below as opentelemetry-proto 1.45 for Python serializes it.
    const REQUEST: &str = "\
        0aaa020a300a100a09686f73742e6e616d6512030a016e0a1c0a0c736572766963652e6e616d65120c0a0a7761746368676c\
        61737312f50112b6010a1268772e6770752e7574696c697a6174696f6e1a01312a9c010a4c19002f68590000000021000000\
        000000e03f3a0c0a0568772e696412030a01303a100a0768772e7479706512050a036770753a180a0b68772e6770752e7461\
        736b12090a0767656e6572616c0a4c19002f68590000000021000000000000d03f3a0c0a0568772e696412030a01313a100a\
        0768772e7479706512050a036770753a180a0b68772e6770752e7461736b12090a0767656e6572616c123a0a1b7761746368\
        676c6173732e6770755f626f6f73745f6a6f756c65731a014a3a180a12190094357700000000210000000000001c40100218\
        01";

    fn series(name: &str, gpu: &str, (t, value): (i64, f64)) -> TimeSeries {
        let labels = [("__name__", name), ("gpu", gpu), ("source", "n")].into_iter();
        let labels = labels.filter(|(_, text)| !text.is_empty());
        let labels = labels.map(|(name, text)| Label { name: name.into(), value: text.into() }).collect();
        TimeSeries { labels, samples: vec![Sample { value, timestamp: t }] }
    }

    #[test]
    fn the_bytes_are_those_of_the_definitions() {
        let timeseries = vec![
            series("watchglass_gpu_utilization_ratio", "0", (1_500, 0.5)),
            series("watchglass_gpu_boost_joules_total", "", (2_000, 7.0)),
            series("watchglass_gpu_utilization_ratio", "1", (1_500, 0.25)),
        ];
        assert_eq!(hex::encode(pack(&WriteRequest { timeseries })), REQUEST);
        assert!(pack(&WriteRequest::default()).is_empty());
        // Three rejected values, with the reason "old".
        assert_eq!(rejected(&hex::decode("0a07080312036f6c64").expect("hex")), (3, "old".to_string()));
        assert_eq!((rejected(b"").0, rejected(b"{}").0), (0, 0));
    }

    #[test]
    fn the_reason_of_an_error_is_read_and_a_text_of_a_proxy_is_none() {
        // Code 3 and the message "too old", as google.rpc.Status is serialized.
        let status = hex::decode("08031207746f6f206f6c64").expect("hex");
        assert_eq!(reason_of(&status).as_deref(), Some("too old"));
        for text in ["", "404 page not found", "Bad Request\n", "<html></html>", "{\"message\":\"too old\"}"] {
            assert_eq!(reason_of(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn names_of_the_conventions_are_those_of_metrics_that_exist() {
        let names: std::collections::BTreeSet<String> = collectors::catalog()
            .metrics
            .iter()
            .map(|metric| shared::catalog::prometheus::Family::from_metric(metric).name)
            .collect();
        let mut kinds = BTreeMap::new();
        for (ours, theirs, unit, is_sum, ..) in CONVENTIONS {
            assert!(names.contains(ours), "{ours} is no metric");
            assert!(*kinds.entry(theirs).or_insert((unit, is_sum)) == (unit, is_sum), "{theirs} is of two kinds");
        }
    }

    #[test]
    fn a_metric_without_a_convention_keeps_its_name_and_has_its_unit() {
        for (ours, name, unit, is_sum) in [
            ("watchglass_gpu_sm_active_ratio", "watchglass.gpu_sm_active_ratio", "1", false),
            ("watchglass_memory_dirty_bytes", "watchglass.memory_dirty_bytes", "By", false),
            ("vllm_requests_total", "vllm_requests", "", true),
            ("watchglass_network_device_receive_bytes_total", "system.network.io", "By", true),
            ("watchglass_gpu_memory_used_bytes", "hw.gpu.memory.usage", "By", true),
        ] {
            let one = metric(&series(ours, "0", (1, 1.0)));
            assert_eq!((one.name.as_str(), one.unit.as_str(), one.sum.is_some()), (name, unit, is_sum), "{ours}");
            let is_counter = one.sum.is_some_and(|sum| sum.is_monotonic);
            assert_eq!(is_counter, ours.ends_with("_total"), "{ours}");
        }
    }
}
