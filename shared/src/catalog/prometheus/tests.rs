//! Every row of the table has a valid name of its own, and every series survives a round trip.

use super::*;
use crate::catalog::check::numbers;
use crate::catalog::{MetricDef, VOCABULARY, openmetrics::SAMPLE, tag};
use proptest::prelude::*;

fn catalog() -> Catalog {
    let mut catalog = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
    for (tag, kind) in [
        ("openmetrics.a-b.node_load1{labels}", Kind::Gauge),
        ("openmetrics.a_b.node_load1{labels}", Kind::Gauge),
        ("openmetrics.a-b.reads_total{labels}", Kind::Counter),
        ("openmetrics.w.watchglass_cpu_utilization_ratio{labels}", Kind::Gauge),
        ("openmetrics.w.vllm:latency_sum{labels}", Kind::Counter),
    ] {
        let mut row = Metric::from(&SAMPLE);
        (row.tag, row.kind) = (tag.into(), kind);
        catalog.metrics.push(row);
    }
    for name in ["loss", "train.loss", "train/loss"] {
        let mut row = Metric::from(&job::VALUE);
        row.tag = format!("job.{name}{{labels}}");
        catalog.metrics.push(row);
    }
    catalog
}

fn series(catalog: &Catalog, names: &Names, def: &SeriesDef) -> (String, Vec<(String, String)>) {
    let metric = catalog.metric(def).expect("a row");
    let labels = labels(metric, &def.instance).into_iter().map(|(name, value)| (name.into(), value.into()));
    (names.family(def.metric).expect("a row").name.clone(), labels.collect())
}

fn back(names: &Names, (name, labels): &(String, Vec<(String, String)>)) -> Option<SeriesDef> {
    let mut all = vec![(SOURCE, "here")];
    all.extend(labels.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    names.find(name, &all)
}

#[test]
fn names_are_as_prometheus_wants_them() {
    for (tag, name) in [
        ("gpu.{i}.temp", "watchglass_gpu_temperature_celsius"),
        ("gpu.{i}.gpu", "watchglass_gpu_utilization_ratio"),
        ("gpu.{i}.energyJoules", "watchglass_gpu_energy_joules_total"),
        ("gpu.{i}.nvlinkTxBytes", "watchglass_gpu_nvlink_tx_bytes_per_second"),
        ("gpu.{i}.smClock", "watchglass_gpu_sm_clock_hertz"),
        ("gpu.{process}.memoryUsedBytes", "watchglass_gpu_process_memory_used_bytes"),
        ("disk.{dev}.in", "watchglass_disk_device_read_bytes_total"),
        ("disk.{path}.usageGB", "watchglass_filesystem_used_bytes"),
        ("gpu.{i}.pipeFp64Active", "watchglass_gpu_pipe_fp64_active_ratio"),
        ("tpu.collectiveE2ELatency.{label}.meanUs", "watchglass_tpu_collective_latency_mean_seconds"),
        ("tpu.hloExecTiming.{label}.p50Us", "watchglass_tpu_hlo_exec_timing_p50_seconds"),
        ("trn.{i}.neuroncore_memory_usage.model_code", "watchglass_neuron_core_memory_model_code_bytes"),
        ("system.load1", "watchglass_load1"),
        ("pressure.cpu.some_percent", "watchglass_pressure_cpu_some_ratio"),
        ("proc.cpu.throttledPercent", "watchglass_process_cpu_throttled_ratio"),
        ("openmetrics.a-b.reads_total{labels}", "reads_total"),
        ("job.train/loss{labels}", "watchglass_job_value"),
        ("job.step{labels}", "watchglass_job_step"),
        ("job.not_a_number{labels}", "watchglass_job_not_a_number"),
    ] {
        let catalog = catalog();
        let metric = catalog.metrics.iter().find(|m| m.tag == tag).expect(tag);
        assert_eq!(Family::from_metric(metric).name, name);
    }
}

#[test]
fn every_row_has_a_legal_name_of_its_own() {
    let catalog = catalog();
    let mut seen = HashMap::new();
    for metric in &catalog.metrics {
        let family = Family::from_metric(metric);
        let name = family.name.trim_start_matches("vllm:");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        assert!(!name.contains("__") && !name.ends_with('_'), "{name}");
        let names = [family.name.clone(), family.open_name().to_string()].map(|name| (name, family.own.clone()));
        let own = names.iter().collect::<std::collections::HashSet<_>>();
        for name in own {
            if let Some(other) = seen.insert(name.clone(), metric.tag.clone()) {
                panic!("{} and {other} are both {name:?}", metric.tag);
            }
        }
        let ours = family.own.is_none();
        assert_eq!(ours && family.kind == Type::Counter, ours && family.name.ends_with("_total"));
        assert!(!ours || !["_count", "_sum", "_bucket", "_info"].iter().any(|end| family.name.ends_with(end)));
        assert!(family.open_name().ends_with(family.unit));
    }
}

#[test]
fn instances_are_labels_and_come_back() {
    let catalog = catalog();
    let names = Names::new(&catalog);
    for (metric, row) in catalog.metrics.iter().enumerate() {
        let instances: &[&str] = match tag::split(&row.tag) {
            None => &[""],
            Some((.., true)) => numbers(&row.tag),
            Some(_) if row.tag.ends_with("{labels}") => {
                &["", r#"{a="1",endpoint="x",exported_source="\\ \" \n",source="y"}"#, r#"{job="a",le="0.1"}"#]
            }
            Some(_) => &[
                "/mnt/data.v2",
                "0.proc.4711",
                "0.mig.3.proc.4711",
                "0.proc.x",
                "0.ecc.gfx",
                "0.ecc.x y",
                ".mig.1",
                "a b\"\\",
            ],
        };
        for instance in instances {
            let def = SeriesDef { metric: metric as u16, instance: (*instance).into() };
            let shown = series(&catalog, &names, &def);
            assert_eq!(back(&names, &shown), Some(def), "{shown:?}");
        }
    }
}

#[test]
fn parts_of_a_gpu_are_labels_of_their_own() {
    let catalog = catalog();
    let row = |tag: &str| catalog.metrics.iter().find(|m| m.tag == tag).expect("a row");
    let text = |tag: &str, instance: &str| {
        labels(row(tag), instance).iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(text("gpu.{i}.temp", "3"), "gpu=3");
    assert_eq!(text("gpu.{i}.temp", "3.mig.1"), "gpu=3 mig=1");
    assert_eq!(text("gpu.{i}.gpu", "3.xcp.1"), "gpu=3 partition=1");
    assert_eq!(text("gpu.{i.xgmi.j}.linkReadBytes", "3.xgmi.7"), "gpu=3 link=7");
    assert_eq!(text("gpu.{i.xcc.j}.xccBusy", "3.xcc.5"), "gpu=3 xcc=5");
    assert_eq!(text("gpu.{pod}.heldByPod", "3.pod.training/train-0.a"), "gpu=3 pod=training/train-0.a");
    assert_eq!(text("gpu.{block}.eccCorrected", "3.ecc.pcie_bif"), "gpu=3 block=pcie_bif");
    assert_eq!(text("gpu.{process}.smUtilization", "0.proc.4711"), "gpu=0 pid=4711");
    assert_eq!(text("cpu.{i}.cpu_percent", "63"), "core=63");
    assert_eq!(text("disk.{path}.usageGB", "/mnt/a"), "mountpoint=/mnt/a");
    assert_eq!(text("network.{dev}.recv", "eth0"), "device=eth0");
    let theirs = r#"{cpu="0",source="x"}"#;
    assert_eq!(text("openmetrics.a-b.node_load1{labels}", theirs), "endpoint=a-b cpu=0 exported_source=x");
    let rank = r#"{rank="3",run="abc"}"#;
    assert_eq!(text("job.train/loss{labels}", rank), "name=train/loss rank=3 run=abc");
    assert_eq!(text("job.step{labels}", rank), "rank=3 run=abc");
}

#[test]
fn a_name_that_nobody_has_is_no_series() {
    let names = Names::new(&catalog());
    assert_eq!(names.find("watchglass_no_such", &[]), None);
    assert_eq!(names.find("watchglass_gpu_temperature_celsius", &[]), None, "a series has its labels");
    assert_eq!(names.find("node_load1", &[(ENDPOINT, "other")]), None);
}

proptest! {
    #[test]
    fn any_series_of_any_row_comes_back(metric in any::<prop::sample::Index>(), text in "[ -~é\n]{1,20}", n in 0u32..9999) {
        let catalog = catalog();
        let names = Names::new(&catalog);
        let metric = metric.index(catalog.metrics.len());
        let row = &catalog.metrics[metric];
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let instance = match tag::split(&row.tag) {
            None => String::new(),
            Some((.., true)) => n.to_string(),
            Some(_) if row.tag.ends_with("{labels}") => format!("{{exported_endpoint=\"{n}\",source=\"{escaped}\"}}"),
            Some(_) => text,
        };
        let def = SeriesDef { metric: metric as u16, instance };
        prop_assert_eq!(back(&names, &series(&catalog, &names, &def)), Some(def));
    }

    #[test]
    fn what_lies_between_two_steps_is_not_moved_to_one(value in 0.01f64..1e6) {
        for def in VOCABULARY.iter().copied().flatten() {
            let family = Family::from_metric(&Metric::from(*def));
            let back = family.stored(family.value(value));
            // Two conversions cost a few units in the last place.
            prop_assert!((back - value).abs() <= 8.0 * f64::EPSILON * value, "{}: {value} became {back}", def.tag);
        }
    }

    #[test]
    fn values_come_back(steps in 0i64..10_000_000) {
        for def in VOCABULARY.iter().copied().flatten().filter(|def| def.steps > 0.0) {
            let family = Family::from_metric(&Metric::from(*def));
            let stored = steps as f64 / def.steps;
            prop_assert_eq!(family.stored(family.value(stored)), stored, "{}", def.tag);
        }
    }
}

#[test]
fn shares_are_ratios_without_noise() {
    let family = Family::from_metric(&Metric::from(&MetricDef::gauge("x.percent", Unit::Percent)));
    assert_eq!((family.name.as_str(), family.value(12.34)), ("watchglass_x_ratio", 0.1234));
    for steps in 0..=10_000 {
        let decimal: f64 = format!("{steps}e-4").parse().expect("a number");
        assert_eq!(family.value(f64::from(steps) / 100.0), decimal);
    }
    let clock = Family::from_metric(&Metric::from(&MetricDef::gauge("x", Unit::Megahertz)));
    assert_eq!((clock.value(1.1), clock.value(-0.07), clock.value(0.0)), (1_100_000.0, -70_000.0, 0.0));
    assert!(clock.value(f64::NAN).is_nan() && clock.value(f64::INFINITY).is_infinite());
}
