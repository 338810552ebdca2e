//! Tests of TPUs with a metric service in this process: recordings, idle, slow, reset, empty, unknown metrics.

use super::messages::*;
use super::*;
use crate::recordings;
use parking_lot::Mutex;
use proptest::prelude::*;
use prost::Message;
use prost::bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Behavior of the service.
#[derive(Clone)]
enum Play {
    /// Answers with these metrics; others are not found.
    Metrics(BTreeMap<String, TpuMetric>),
    /// Same, without a list of names.
    Unlisted(BTreeMap<String, TpuMetric>),
    /// Sends no answer.
    Slow,
    /// Closes the connection in the middle of a call.
    Reset,
    /// Answers without a message, as a proxy would.
    Empty,
    /// Fails with this gRPC status.
    Status(u32),
    /// Answers with an invalid message.
    Junk,
}

/// A service on a port of its own, until this is dropped.
struct Service {
    address: SocketAddr,
    play: Arc<Mutex<Play>>,
    /// Calls so far, by method and metric.
    calls: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<u32>>,
    _runtime: Runtime,
}

impl Service {
    fn start(play: Play) -> Service {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let service = Service {
            address,
            play: Arc::new(Mutex::new(play)),
            calls: Arc::default(),
            connections: Arc::default(),
            _runtime: runtime,
        };
        let (play, calls, connections) = (service.play.clone(), service.calls.clone(), service.connections.clone());
        service._runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *connections.lock() += 1;
                tokio::spawn(serve(stream, play.clone(), calls.clone()));
            }
        });
        service
    }

    fn becomes(&self, play: Play) {
        *self.play.lock() = play;
    }
}

async fn serve(stream: tokio::net::TcpStream, play: Arc<Mutex<Play>>, calls: Arc<Mutex<Vec<String>>>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let now = play.lock().clone();
        if matches!(now, Play::Reset) {
            return;
        }
        tokio::spawn(answer(request, respond, now, calls.clone()));
    }
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    play: Play,
    calls: Arc<Mutex<Vec<String>>>,
) {
    let path = request.uri().path().to_string();
    let method = path.strip_prefix("/tpu.monitoring.runtime.RuntimeMetricService/").unwrap();
    let bytes = request.into_body().data().await.unwrap().unwrap();
    let metric = crate::read::grpc::unframed::<MetricRequest>(&bytes).unwrap().metric_name;
    calls.lock().push(format!("{method} {metric}").trim().to_string());
    let list = method == "ListSupportedMetrics";
    let found = |metrics: &BTreeMap<String, TpuMetric>| {
        let metric = metrics.get(&metric).cloned();
        metric.map(|metric| MetricResponse { metric: Some(metric) }.encode_to_vec()).ok_or("5".to_string())
    };
    let answer = match &play {
        Play::Slow => return std::future::pending().await,
        Play::Status(status) => Err(status.to_string()),
        Play::Unlisted(_) if list => Err("12".into()),
        Play::Metrics(metrics) if list => {
            let supported = metrics.keys().map(|name| Supported { metric_name: name.clone() }).collect();
            Ok(ListResponse { supported }.encode_to_vec())
        }
        Play::Metrics(metrics) | Play::Unlisted(metrics) => found(metrics),
        Play::Empty | Play::Reset => Ok(Vec::new()),
        Play::Junk => Ok(b"\xff\xff\xff junk".to_vec()),
    };
    let bytes = match answer {
        Ok(bytes) => bytes,
        Err(status) => {
            let response = http::Response::builder().header("grpc-status", status).header("grpc-message", "no%20way");
            drop(respond.send_response(response.body(()).unwrap(), true));
            return;
        }
    };
    let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
    if !matches!(play, Play::Empty) {
        let mut framed = vec![0];
        framed.extend((bytes.len() as u32).to_be_bytes());
        framed.extend(bytes);
        stream.send_data(Bytes::from(framed), false).unwrap();
    }
    let trailers = http::HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    stream.send_trailers(trailers).unwrap();
}

fn tpu(addresses: &[SocketAddr]) -> Part {
    let texts = addresses.iter().map(ToString::to_string).collect();
    let options = Options { own: [(&ENDPOINTS, texts)].into_iter().collect(), ..Options::default() };
    open(&options, &Roots::default()).unwrap().remove(0)
}

/// One reading at this second.
fn tick(part: &mut Part, out: &mut Out, second: u64) -> (Vec<(String, f64)>, Result<(), CollectError>) {
    out.begin(Duration::from_secs(second));
    let result = part.collector.collect(out);
    (out.present(), result)
}

fn once(play: Play) -> (Vec<(String, f64)>, Result<(), CollectError>) {
    let service = Service::start(play);
    tick(&mut tpu(&[service.address]), &mut Out::default(), 0)
}

fn reason(result: Result<(), CollectError>) -> String {
    result.unwrap_err().reason
}

fn on(device: i64, gauge: Gauge) -> Point {
    let value = AttributeValue { int: Some(device), ..AttributeValue::default() };
    let attribute = Some(Attribute { key: "device-id".into(), value: Some(value) });
    Point { attribute, gauge: Some(gauge), distribution: None }
}

fn double(value: f64) -> Gauge {
    Gauge { double: Some(value), int: None }
}

fn int(value: i64) -> Gauge {
    Gauge { double: None, int: Some(value) }
}

const TOTAL: &str = "tpu.runtime.hbm.memory.total.bytes";
const USED: &str = "tpu.runtime.hbm.memory.usage.bytes";
const DUTY: &str = "tpu.runtime.tensorcore.dutycycle.percent";
const TRANSFER: &str = "megascale.dcn_transfer_latencies.microsecond.cumulative.distribution";
const RTT: &str = "megascale.grpc_tcp_min_rtt.microsecond.cumulative.distribution";
const QUEUE: &str = "hlo.queue.size.gauge";

fn metrics(list: &[(&str, Vec<Point>)]) -> BTreeMap<String, TpuMetric> {
    let metric = |name: &str, metrics: &[Point]| TpuMetric { name: name.into(), metrics: metrics.to_vec() };
    list.iter().map(|(name, points)| (name.to_string(), metric(name, points))).collect()
}

/// Two devices.
fn two() -> BTreeMap<String, TpuMetric> {
    metrics(&[
        (TOTAL, vec![on(8, int(1000)), on(9, int(1000))]),
        (USED, vec![on(8, int(250)), on(9, int(0))]),
        (DUTY, vec![on(8, double(75.5)), on(9, double(0.0))]),
    ])
}

fn tags(values: &[(String, f64)]) -> Vec<String> {
    values.iter().map(|(tag, value)| format!("{tag} {value}")).collect()
}

const TWO: [&str; 8] = [
    "tpu.8.dutyCycle 75.5",
    "tpu.8.hbmCapacityTotal 1000",
    "tpu.8.hbmCapacityUsage 250",
    "tpu.8.hbmMemoryUsage 25",
    "tpu.9.dutyCycle 0",
    "tpu.9.hbmCapacityTotal 1000",
    "tpu.9.hbmCapacityUsage 0",
    "tpu.9.hbmMemoryUsage 0",
];

#[test]
fn devices_are_read_over_one_connection_that_is_kept() {
    let service = Service::start(Play::Metrics(two()));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    for second in 0..3 {
        let (values, result) = tick(&mut part, &mut out, second);
        assert_eq!((tags(&values), result), (TWO.map(String::from).to_vec(), Ok(())), "second {second}");
    }
    assert_eq!(*service.connections.lock(), 1);
    let calls = service.calls.lock();
    assert_eq!(calls.len(), 1 + 3 * 3, "a list, then only what is in it: {calls:?}");
    assert_eq!(calls[0], "ListSupportedMetrics");
}

#[test]
fn nobody_listening_is_idle_and_a_program_that_comes_is_found() {
    let service = Service::start(Play::Metrics(two()));
    let address = service.address;
    let mut out = Out::default();
    let mut part = tpu(&[address]);
    assert_eq!(tick(&mut part, &mut out, 0).0.len(), 8);
    drop(service);
    // The connection of the ended program breaks once; then nothing listens.
    let _ = tick(&mut part, &mut out, 1);
    assert_eq!(tick(&mut part, &mut out, 2), (Vec::new(), Ok(())));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let service = Service::start(Play::Metrics(two()));
    let (values, result) = tick(&mut tpu(&[nobody, service.address]), &mut out, 3);
    assert_eq!((values.len(), result), (8, Ok(())));
}

#[test]
fn a_slow_program_is_given_up_in_time_and_said() {
    let service = Service::start(Play::Slow);
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    let begin = std::time::Instant::now();
    let (values, result) = tick(&mut part, &mut out, 0);
    assert!(begin.elapsed() < client::CALL_TIMEOUT * 5, "{:?}", begin.elapsed());
    assert_eq!(values, []);
    let timeout = client::CALL_TIMEOUT.as_millis();
    let wanted = format!("{}: ListSupportedMetrics timed out after {timeout} ms", service.address);
    assert_eq!(reason(result), wanted);
    service.becomes(Play::Metrics(two()));
    assert_eq!(tick(&mut part, &mut out, 1).0.len(), 8, "it is asked again");
}

#[test]
fn a_reset_costs_one_reading() {
    let service = Service::start(Play::Metrics(two()));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    assert_eq!(tick(&mut part, &mut out, 0).0.len(), 8);
    service.becomes(Play::Reset);
    let (values, result) = tick(&mut part, &mut out, 1);
    assert_eq!(values, [], "no old value");
    assert!(reason(result).contains("the connection broke"));
    service.becomes(Play::Metrics(two()));
    assert_eq!(tick(&mut part, &mut out, 2).0.len(), 8);
    assert_eq!(*service.connections.lock(), 2);
}

#[test]
fn answers_that_are_none_are_said() {
    assert!(reason(once(Play::Empty).1).contains("cannot be decoded"));
    assert!(reason(once(Play::Junk).1).contains("cannot be decoded"));
    assert!(reason(once(Play::Status(14)).1).contains("failed with gRPC status 14: no%20way"));
    let (values, result) = once(Play::Metrics(metrics(&[(USED, Vec::new()), (DUTY, Vec::new())])));
    assert_eq!((values, result), (Vec::new(), Ok(())), "a metric without values");
}

#[test]
fn metrics_that_a_program_does_not_know_are_left_out() {
    let service = Service::start(Play::Unlisted(two()));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    assert_eq!(tags(&tick(&mut part, &mut out, 0).0), TWO);
    let first = service.calls.lock().len();
    assert_eq!(first, 1 + METRICS.len());
    assert_eq!(tick(&mut part, &mut out, 1).1, Ok(()));
    assert_eq!(service.calls.lock().len(), first + 3, "those not known are not asked each time");
    tick(&mut part, &mut out, 60).1.unwrap();
    assert_eq!(service.calls.lock().len(), first + 3 + first, "but now and then");
}

#[test]
fn programs_on_several_ports_are_read_together() {
    let first =
        Service::start(Play::Metrics(metrics(&[(TOTAL, vec![on(0, int(10))]), (DUTY, vec![on(0, double(1.0))])])));
    let second =
        Service::start(Play::Metrics(metrics(&[(TOTAL, vec![on(1, int(20))]), (DUTY, vec![on(1, double(2.0))])])));
    let third = Service::start(Play::Junk);
    let mut part = tpu(&[first.address, second.address, third.address]);
    let (values, result) = tick(&mut part, &mut Out::default(), 0);
    assert_eq!(values.len(), 4);
    let error = result.unwrap_err();
    assert!(error.partial && error.reason.contains(&third.address.to_string()), "{}", error.reason);
}

#[test]
fn duty_of_chips_is_put_to_both_devices_once_it_is_known_which_it_is() {
    let memory: Vec<Point> = (0..4).map(|device| on(device, int(1))).collect();
    let duty = vec![on(0, double(10.0)), on(1, double(20.0))];
    let service = Service::start(Play::Metrics(metrics(&[(DUTY, duty.clone())])));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    assert_eq!(tick(&mut part, &mut out, 0).0, [], "it might be chips or devices");
    service.becomes(Play::Metrics(metrics(&[(TOTAL, memory), (DUTY, duty.clone())])));
    let wanted = ["tpu.0.dutyCycle 10", "tpu.1.dutyCycle 10", "tpu.2.dutyCycle 20", "tpu.3.dutyCycle 20"];
    let duties = |values: Vec<(String, f64)>| {
        tags(&values).into_iter().filter(|tag| tag.contains("dutyCycle")).collect::<Vec<_>>()
    };
    assert_eq!(duties(tick(&mut part, &mut out, 60).0), wanted);
    service.becomes(Play::Metrics(metrics(&[(DUTY, duty)])));
    assert_eq!(duties(tick(&mut part, &mut out, 61).0), wanted, "it does not change");
}

#[test]
fn readings_that_cannot_be_are_absent() {
    let (values, result) = once(Play::Metrics(metrics(&[
        (TOTAL, vec![on(0, int(-1)), on(1, int(100)), on(-3, int(100))]),
        (USED, vec![on(1, int(200)), Point { gauge: Some(int(1)), ..Point::default() }]),
        (DUTY, vec![on(0, double(f64::NAN)), on(1, double(100.5))]),
    ])));
    assert_eq!(
        (tags(&values), result),
        (vec!["tpu.1.hbmCapacityTotal 100".into(), "tpu.1.hbmCapacityUsage 200".into()], Ok(()))
    );
}

/// Buckets that end at 1, 2, 4, 8 and 16.
fn counted(label: Option<&str>, mean: f64, bucket_counts: &[i64]) -> Point {
    let text = |text: &str| AttributeValue { text: Some(text.into()), ..AttributeValue::default() };
    let attribute = label.map(|label| {
        let size = Attribute { key: "buffer-size".into(), value: Some(text(label)) };
        let kind = Attribute { key: "a".into(), value: Some(text("b")) };
        let list = Some(AttributeList { attributes: vec![kind, size] });
        Attribute { key: String::new(), value: Some(AttributeValue { list, ..AttributeValue::default() }) }
    });
    let exponential = Some(Exponential { finite: 4, growth: 2.0, scale: 1.0 });
    let bucket_options = Some(BucketOptions { exponential, ..BucketOptions::default() });
    let count = bucket_counts.iter().sum();
    let distribution = Some(Distribution { count, mean, bucket_options, bucket_counts: bucket_counts.to_vec() });
    Point { attribute, gauge: None, distribution }
}

#[test]
fn percentiles_are_those_of_what_came_since_the_reading_before() {
    let play = |old: &[i64], mean| Play::Metrics(metrics(&[(TRANSFER, vec![counted(Some("8MB+"), mean, old)])]));
    let service = Service::start(play(&[0, 1000], 1.5));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    assert_eq!(tick(&mut part, &mut out, 0).0, [], "a first reading has nothing to compare with");
    service.becomes(play(&[0, 1000, 0, 50, 50], (1500.0 + 900.0) / 1100.0));
    let name = |stat: &str, value: f64| (format!("tpu.bufferTransferLatency.8mb_plus.{stat}Us"), value);
    let wanted = [
        name("mean", 9.0),
        name("p50", 8.0),
        name("p90", 14.4),
        name("p95", 15.2),
        name("p999", 15.98),
        name("p99", 15.84),
    ];
    assert_eq!(tick(&mut part, &mut out, 1), (wanted.to_vec(), Ok(())));
    assert_eq!(tick(&mut part, &mut out, 2).0, [], "nothing came");
    service.becomes(play(&[0, 10], 1.5));
    assert_eq!(tick(&mut part, &mut out, 3).0, [], "the program began anew");
}

#[test]
fn a_program_that_follows_on_the_same_port_begins_anew() {
    let play = |n: i64| Play::Metrics(metrics(&[(TRANSFER, vec![counted(Some("8MB+"), 1.5, &[0, n])])]));
    let service = Service::start(play(10));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    tick(&mut part, &mut out, 0).1.unwrap();
    service.becomes(Play::Reset);
    tick(&mut part, &mut out, 1).1.unwrap_err();
    service.becomes(play(1000));
    assert_eq!(tick(&mut part, &mut out, 2).0, [], "counts of two programs have no difference");
    service.becomes(play(1001));
    assert_eq!(tick(&mut part, &mut out, 3).0.len(), 6);
}

#[test]
fn an_answer_without_end_becomes_no_series_without_end() {
    let points = |from: i64| (from..from + 5000).map(|device| on(device, int(1))).collect::<Vec<_>>();
    let (values, _) = once(Play::Metrics(metrics(&[(TOTAL, points(0)), (QUEUE, points(0))])));
    assert_eq!(values.len(), 1024);
}

#[test]
fn points_with_and_without_a_label_have_rows_of_their_own() {
    let play = |n: i64| {
        let queue = |device: &str, size| {
            let value = AttributeValue { text: Some(device.into()), ..AttributeValue::default() };
            let attribute = Some(Attribute { key: "device_ordinal".into(), value: Some(value) });
            Point { attribute, gauge: Some(int(size)), distribution: None }
        };
        Play::Metrics(metrics(&[
            (RTT, vec![counted(None, 1.0, &[0, n]), counted(Some("peer 1"), 1.0, &[n])]),
            (QUEUE, vec![queue("0", 3), queue("1", 4), queue("1", 1)]),
        ]))
    };
    let service = Service::start(play(1));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    let queues = ["tpu.hloQueueSize.0 3", "tpu.hloQueueSize.1 5"];
    assert_eq!(tags(&tick(&mut part, &mut out, 0).0), queues);
    service.becomes(play(11));
    let values = tags(&tick(&mut part, &mut out, 1).0);
    assert!(values.contains(&"tpu.grpcTcpMinRtt.p50Us 1.5".to_string()), "{values:?}");
    assert!(values.contains(&"tpu.grpcTcpMinRtt.peer_1.p50Us 0.5".to_string()), "{values:?}");
    assert_eq!(values.len(), 6 + 6 + 2);
}

#[test]
fn every_distribution_is_read() {
    let latency = |name: &str| format!("megascale.{name}.microsecond.cumulative.distribution");
    // The tag of each, the service's name for it, and whether it also comes without a label.
    let kinds = [
        ("hloExecTiming", "hlo.execution.timing.distribution.microseconds".to_string(), false),
        ("collectiveE2ELatency", latency("collective_end_to_end_latencies"), false),
        ("bufferTransferLatency", TRANSFER.to_string(), false),
        ("inboundBufferTransferLatency", latency("dcn_inbound_transfer_latencies"), false),
        ("hostToDeviceTransferLatency", latency("host_to_device_transfer_latencies"), false),
        ("deviceToHostTransferLatency", latency("device_to_host_transfer_latencies"), false),
        ("hostComputeLatency", latency("mxla_compute_latencies"), false),
        ("grpcTcpMinRtt", RTT.to_string(), true),
        ("grpcTcpDeliveryRate", "megascale.grpc_tcp_delivery_rate.Mbps.cumulative.distribution".to_string(), true),
    ];
    let play = |n: i64| {
        let of = |(_, name, both): &(&str, String, bool)| {
            let points = [both.then(|| counted(None, 1.0, &[0, n])), Some(counted(Some("a"), 1.0, &[0, n]))];
            (name.clone(), TpuMetric { name: name.clone(), metrics: points.into_iter().flatten().collect() })
        };
        Play::Metrics(kinds.iter().map(of).collect())
    };
    let service = Service::start(play(1));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    assert_eq!(tick(&mut part, &mut out, 0), (Vec::new(), Ok(())));
    service.becomes(play(11));
    let values = tags(&tick(&mut part, &mut out, 1).0);
    // Ten values were added, all from 1 to 2.
    let stats = [("mean", 1.0), ("p50", 1.5), ("p90", 1.9), ("p95", 1.95), ("p99", 1.99), ("p999", 2.0)];
    for (tag, _, both) in &kinds {
        let unit = if tag.ends_with("Rate") { "Mbps" } else { "Us" };
        for (stat, value) in stats {
            let labeled = format!("tpu.{tag}.a.{stat}{unit} {value}");
            assert!(values.contains(&labeled), "{labeled}: {values:?}");
            let bare = format!("tpu.{tag}.{stat}{unit} {value}");
            assert_eq!(values.contains(&bare), *both, "{bare}: {values:?}");
        }
    }
}

#[test]
fn buckets_of_every_kind_are_read_and_wrong_ones_are_not() {
    use super::distribution::BucketCounts;
    let read = |options: BucketOptions, bucket_counts: &[i64]| {
        let bucket_counts = bucket_counts.to_vec();
        BucketCounts::read(&Distribution { count: 1, mean: 1.0, bucket_options: Some(options), bucket_counts })
    };
    let linear = |finite, width| BucketOptions {
        linear: Some(Linear { finite, width, offset: 10.0 }),
        ..BucketOptions::default()
    };
    let explicit = |bounds: &[f64]| BucketOptions {
        explicit: Some(Explicit { bounds: bounds.to_vec() }),
        ..BucketOptions::default()
    };
    let median = |counts: Option<BucketCounts>| counts.and_then(|counts| counts.percentile(0.5));
    assert_eq!(median(read(linear(2, 5.0), &[0, 2])), Some(12.5));
    assert_eq!(median(read(linear(2, 5.0), &[2])), Some(5.0), "the first bucket begins at zero");
    assert_eq!(median(read(explicit(&[1.0, 3.0]), &[0, 2])), Some(2.0));
    assert_eq!(median(read(explicit(&[1.0, 3.0]), &[0, 0, 2])), Some(3.0), "no more is known than the last bound");
    assert_eq!(median(read(explicit(&[1.0, 3.0]), &[])), None);
    for wrong in [linear(2, 0.0), linear(-1, 1.0), linear(i32::MAX, 1.0), explicit(&[]), explicit(&[2.0, 1.0])] {
        assert_eq!(read(wrong, &[1]), None);
    }
    assert_eq!(read(BucketOptions::default(), &[1]), None);
    assert_eq!(read(linear(2, 5.0), &[1, -1]), None);
    assert_eq!(read(linear(2, 5.0), &[1, 1, 1, 1, 1]), None, "more counts than buckets");
}

/// The messages of a recording.
fn recorded(name: &str) -> BTreeMap<String, TpuMetric> {
    let text = recordings::text(&format!("tpu/runtime-metrics_{name}_CONSTRUCTED.json"));
    let all: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    // Proto's JSON writes 64-bit numbers as text.
    let int = |json: &Value| json.as_str().map(|text| text.parse::<i64>().unwrap());
    let point = |json: &Value| {
        let value = &json["attribute"]["value"];
        let text = value["stringAttr"].as_str().map(String::from);
        let value = AttributeValue { text, int: int(&value["intAttr"]), list: None };
        let key = json["attribute"]["key"].as_str().unwrap().to_string();
        let gauge =
            json.get("gauge").map(|gauge| Gauge { double: gauge["asDouble"].as_f64(), int: int(&gauge["asInt"]) });
        let distribution = json.get("distribution").map(|counts| {
            let options = &counts["bucketOptions"]["exponentialBuckets"];
            let number = |key: &str| options[key].as_f64().unwrap();
            let (growth, scale) = (number("growthFactor"), number("scale"));
            let exponential = Some(Exponential { finite: number("numFiniteBuckets") as i32, growth, scale });
            Distribution {
                count: int(&counts["count"]).unwrap(),
                mean: counts["mean"].as_f64().unwrap(),
                bucket_options: Some(BucketOptions { exponential, ..BucketOptions::default() }),
                bucket_counts: counts["bucketCounts"].as_array().unwrap().iter().filter_map(int).collect(),
            }
        });
        Point { attribute: Some(Attribute { key, value: Some(value) }), gauge, distribution }
    };
    let points = |json: &Value| json["metric"]["metrics"].as_array().unwrap().iter().map(point).collect();
    all.iter().map(|(name, json)| (name.clone(), TpuMetric { name: name.clone(), metrics: points(json) })).collect()
}

#[test]
fn recordings_give_their_lists() {
    for name in ["v4-8", "v3-8", "v6e-slice"] {
        let (values, result) = once(Play::Metrics(recorded(name)));
        assert_eq!(result, Ok(()));
        recordings::check(&format!("tpu_runtime-metrics_{name}_CONSTRUCTED"), &values);
    }
    // The recorded distribution as the values since a program without any.
    let metrics = recorded("v6e-slice");
    let mut before = metrics.clone();
    let counts = before.get_mut(TRANSFER).unwrap().metrics[0].distribution.as_mut().unwrap();
    (counts.count, counts.mean, counts.bucket_counts) = (0, 0.0, vec![0; 6]);
    let service = Service::start(Play::Metrics(before));
    let (mut part, mut out) = (tpu(&[service.address]), Out::default());
    tick(&mut part, &mut out, 0).1.unwrap();
    service.becomes(Play::Metrics(metrics));
    let (values, _) = tick(&mut part, &mut out, 1);
    // By hand: 10 are below 2, 30 below 4, 40 below 8, so the 50th of 100 is a quarter into 4 to 8.
    assert!(tags(&values).contains(&"tpu.bufferTransferLatency.8mb_plus.p50Us 5".to_string()), "{values:?}");
    assert!(tags(&values).contains(&"tpu.bufferTransferLatency.8mb_plus.meanUs 31".to_string()), "{values:?}");
}

#[test]
fn a_machine_without_a_tpu_says_so_and_google_s_network_card_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let roots = Roots::below(dir.path());
    let device = |slot: &str, vendor: &str, id: &str| {
        let folder = roots.sys.join("bus/pci/devices").join(slot);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("vendor"), format!("{vendor}\n")).unwrap();
        std::fs::write(folder.join("device"), format!("{id}\n")).unwrap();
    };
    let absent = open(&Options::default(), &roots).err().unwrap();
    assert_eq!((absent.kind, absent.reason.as_str()), (OpenErrorKind::Absent, "there is no TPU among the PCI devices"));
    assert!(absent.tried[0].ends_with("/sys/bus/pci/devices"), "{:?}", absent.tried);
    assert!(absent.remedy.contains("endpoints under [collectors.tpu]"));
    device("0000:00:04.0", "0x1ae0", "0x0042");
    device("0000:00:05.0", "0x10de", "0x0063");
    assert!(open(&Options::default(), &roots).is_err());
    device("0000:00:06.0", "0x1ae0", "0x0063");
    let parts = open(&Options::default(), &roots).unwrap();
    assert_eq!(parts[0].tried[1..], ["127.0.0.1:8431"]);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = crate::read::grpc::unframed::<MetricResponse>(&bytes);
        if let Ok(response) = MetricResponse::decode(bytes.as_slice()) {
            let answers: Vec<_> = (0..METRICS.len()).map(|i| (i, response.metric.clone().unwrap_or_default())).collect();
            let mut readings = readings::TpuReadings::default();
            let mut reader = Reader::default();
            reader.read(&answers, &mut readings);
            reader.read(&answers, &mut readings);
            readings.put(&mut Out::default());
        }
    }

    #[test]
    fn no_part_of_an_answer_is_an_answer(cut in 0usize..1000) {
        let metric = two().remove(TOTAL);
        let message = MetricResponse { metric }.encode_to_vec();
        let mut framed = vec![0];
        framed.extend((message.len() as u32).to_be_bytes());
        framed.extend(message);
        let cut = cut % framed.len();
        prop_assert!(crate::read::grpc::unframed::<MetricResponse>(&framed[..cut]).is_none());
    }
}
