//! Tests of the collector with a fake library that is really loaded and answers from a scenario.

use super::open::{COMMAND, LIBRARY_PATH, open_with};
use super::*;
use crate::{OpenErrorKind, Options, Out, OwnOptions, Part, Roots, recordings};
use fake_nvml::Fake;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A healthy GPU of no maker, in use.
fn gpu(number: u32) -> Value {
    json!({
        "uuid": format!("GPU-{number}"), "name": "Test", "mig_mode": false,
        "memory": {"total": 80_000_000_000u64, "reserved": 512_000_000, "used": 20_000_000_000u64},
        "utilization": {"gpu": 50 + number, "memory": 7}, "encoder": 1, "decoder": 2, "temperature": 40 + number,
        "memory_temperature": 60, "power_mw": 350_000, "power_limit_mw": 700_000, "energy_mj": 1_000_000,
        "clocks": {"graphics": 1900, "sm": 1905, "mem": 2600}, "fan": 30,
        "ecc_volatile_dram": {"corrected": 3, "uncorrected": 0},
        "pcie": {"gen": 5, "width": 16, "tx_bytes": 1000, "rx_bytes": 5000}, "nvlink_tx_kib": 10, "nvlink_rx_kib": 20,
        "throttle_reasons": 4, "processes": [{"pid": 1, "type": "C", "used_gpu_memory": 4096}],
    })
}

/// GPUs without memory of their own, as a GB10: NVML answers "not supported".
#[test]
fn all_of_a_gpu_that_shares_the_machines_memory_is_its_processes() {
    let unified = |number: u32, used: Option<u64>| {
        let mut gpu = gpu(number);
        gpu["memory"] = Value::Null;
        gpu["processes"] = json!([
            {"pid": 1, "type": "C", "used_gpu_memory": 1 << 30}, {"pid": 1, "type": "G", "used_gpu_memory": 1 << 30},
            {"pid": std::process::id(), "type": "C", "used_gpu_memory": used},
        ]);
        gpu
    };
    let mut bench = Bench::new(&machine(&[unified(0, Some(3 << 30)), unified(1, Some(0)), gpu(2)]));
    let first = bench.tick();
    let total = (120u64 << 30) as f64;
    let of = |gpu: u32| {
        let names = ["memoryShared", "memoryAllocatedBytes", "memoryTotalBytes", "memoryAllocated"];
        names.map(|name| first.get(&format!("gpu.{gpu}.{name}")).copied())
    };
    let share = |used: f64| Some((10_000.0 * used / total).round() / 100.0).filter(|share| *share <= 100.0);
    let used = (4u64 << 30) as f64;
    assert_eq!(of(0), [Some(1.0), Some(used), Some(total), share(used)]);
    let used = (1u64 << 30) as f64;
    assert_eq!(of(1), [Some(1.0), Some(used), None, share(used)], "the machine's memory counts once");
    assert_eq!(of(2), [None, Some(2e10), Some(8e10), Some(25.0)]);
    // The driver does not tell the memory of one of them.
    bench.change(&machine(&[unified(0, None)]));
    assert_eq!(of_gpu(&bench.tick(), ["memoryShared", "memoryAllocatedBytes"]), [None; 2]);
    // Its processes cannot be listed: 4 is "no permission".
    let refused = json!([{"gpu": "GPU-0", "call": "nvmlDeviceGetComputeRunningProcesses_v3", "code": 4}]);
    bench.change(&with(machine(&[unified(0, Some(3 << 30))]), "faults", refused));
    for _ in 0..3 {
        assert_eq!(of_gpu(&bench.tick(), ["memoryShared", "memoryAllocatedBytes"]), [None; 2], "not what draws alone");
    }
}

/// Adds the health values and links of a Hopper board.
fn healthy(gpu: &mut Value) {
    let link = json!({"active": true, "replays": 0, "recoveries": 0, "crc": 0});
    gpu["nvlinks"] = json!(vec![link; 18]);
    (gpu["performance_state"], gpu["persistence_mode"]) = (json!(0), json!(true));
    gpu["remapped_rows"] = json!({"corrected": 0, "uncorrected": 0});
    gpu["violations"] = json!({"power_ns": 5_000_000_000u64, "thermal_ns": 0});
    gpu["pcie"]["replays"] = json!(9);
}

fn machine(gpus: &[Value]) -> Value {
    json!({"driver_version": "590.48.01", "gpus": gpus, "gpm_min_ms": 0})
}

fn all(n: u32) -> Value {
    machine(&(0..n).map(gpu).collect::<Vec<_>>())
}

fn with(mut scenario: Value, key: &str, value: Value) -> Value {
    scenario[key] = value;
    scenario
}

/// This machine as its first PID namespace sees it, with our own process.
fn first_namespace() -> Roots {
    let proc = tempfile::tempdir().expect("a folder").keep();
    std::fs::write(proc.join("meminfo"), "MemTotal:  125829120 kB\n").expect("a file");
    let namespace = proc.join("1/ns");
    std::fs::create_dir_all(&namespace).expect("a folder");
    let own = std::process::id().to_string();
    std::os::unix::fs::symlink("pid:[4026531836]", namespace.join("pid")).expect("a link");
    std::os::unix::fs::symlink(format!("/proc/{own}"), proc.join(&own)).expect("a link");
    Roots { proc, ..Roots::default() }
}

/// The collector with a library of its own.
struct Bench {
    fake: Fake,
    part: Part,
    out: Out,
    at: Duration,
    result: Result<(), CollectError>,
}

impl Bench {
    fn new(scenario: &Value) -> Bench {
        Bench::with_options(scenario, Options::default())
    }

    fn with_options(scenario: &Value, options: Options) -> Bench {
        Bench::with_library(Fake::new(&scenario.to_string()), options)
    }

    fn with_library(fake: Fake, options: Options) -> Bench {
        Bench::with_log(fake, options, KernelLog::default())
    }

    fn with_log(fake: Fake, options: Options, log: KernelLog) -> Bench {
        let options = Options { own: options.own.clone().with(&LIBRARY_PATH, fake.library()), ..options };
        let part = open_with(&options, &first_namespace(), log).map_err(|e| e.reason).expect("it opens").remove(0);
        Bench { fake, part, out: Out::default(), at: Duration::from_secs(1000), result: Ok(()) }
    }

    fn change(&self, scenario: &Value) {
        self.fake.scenario(&scenario.to_string());
    }

    /// A tick one second after the previous one.
    fn tick(&mut self) -> BTreeMap<String, f64> {
        self.tick_after(1)
    }

    fn tick_after(&mut self, seconds: u64) -> BTreeMap<String, f64> {
        self.at += Duration::from_secs(seconds);
        self.out.begin(self.at);
        // The first tick is at 14:02.
        self.out.stamp(1000 * (self.at.as_secs() as i64 - 1001 + (14 * 60 + 2) * 60));
        self.result = self.part.collector.collect(&mut self.out);
        self.out.present().into_iter().collect()
    }

    fn reason(&self) -> String {
        self.result.as_ref().err().map(|error| error.reason.clone()).unwrap_or_default()
    }

    /// Ticks, one second of their own time apart, until a result fits.
    fn until(&mut self, fits: impl Fn(&BTreeMap<String, f64>) -> bool) -> BTreeMap<String, f64> {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            let present = self.tick();
            if fits(&present) {
                return present;
            }
            std::thread::yield_now();
        }
        panic!("no tick fits; the last reason is {:?}", self.reason());
    }
}

fn indices(present: &BTreeMap<String, f64>) -> Vec<u32> {
    (0..20).filter(|i| present.contains_key(&format!("gpu.{i}.temp"))).collect()
}

#[test]
fn every_recording_gives_its_list() {
    let names = recordings::scenarios();
    assert_eq!(names.len(), 16);
    for name in names {
        let text = recordings::text(&format!("nvidia/scenario_{name}.json"));
        let mut bench = Bench::new(&serde_json::from_str(&text).expect("JSON"));
        let present: Vec<_> = bench.tick().into_iter().collect();
        recordings::check(&format!("nvidia_{name}"), &present);
        assert_eq!(bench.result, Ok(()), "{name}");
    }
}

#[test]
fn all_of_a_gpu_is_read_and_rates_come_with_the_second_tick() {
    let mut bench = Bench::new(&all(1));
    let first = bench.tick();
    assert_eq!(bench.result, Ok(()));
    for (tag, value) in [
        ("gpu.0.gpu", 50.0),
        ("gpu.0.memory", 7.0),
        ("gpu.0.memoryAllocated", 25.0),
        ("gpu.0.memoryAllocatedBytes", 2e10),
        ("gpu.0.memoryTotalBytes", 8e10),
        ("gpu.0.temp", 40.0),
        ("gpu.0.memoryTemp", 60.0),
        ("gpu.0.powerWatts", 350.0),
        ("gpu.0.enforcedPowerLimitWatts", 700.0),
        ("gpu.0.powerPercent", 50.0),
        ("gpu.0.energyJoules", 1000.0),
        ("gpu.0.smClock", 1905.0),
        ("gpu.0.memoryClock", 2600.0),
        ("gpu.0.graphicsClock", 1900.0),
        ("gpu.0.correctedMemoryErrors", 3.0),
        ("gpu.0.uncorrectedMemoryErrors", 0.0),
        ("gpu.0.fanSpeed", 30.0),
        ("gpu.0.encoderUtilization", 1.0),
        ("gpu.0.decoderUtilization", 2.0),
        ("gpu.0.pcieLinkGen", 5.0),
        ("gpu.0.pcieLinkWidth", 16.0),
        ("gpu.0.throttleReasons", 4.0),
        ("gpu.0.proc.1.memoryUsedBytes", 4096.0),
    ] {
        assert_eq!(first.get(tag), Some(&value), "{tag}");
    }
    assert!(!first.contains_key("gpu.0.powerMeanWatts") && !first.contains_key("gpu.0.pcieTxBytes"));

    let mut later = gpu(0);
    later["energy_mj"] = json!(1_300_000);
    later["pcie"]["tx_bytes"] = json!(2_001_000);
    later["nvlink_rx_kib"] = json!(1020);
    bench.change(&machine(&[later]));
    let second = bench.tick();
    // The clock advances between tick and reading by milliseconds.
    let near = |tag: &str, value: f64| {
        let read = second[tag];
        assert!((read - value).abs() <= 0.1 * value, "{tag}: {read} is not near {value}");
    };
    near("gpu.0.powerMeanWatts", 300.0);
    near("gpu.0.pcieTxBytes", 2e6);
    near("gpu.0.nvlinkRxBytes", 1_024_000.0);
    assert_eq!((second["gpu.0.pcieRxBytes"], second["gpu.0.nvlinkTxBytes"]), (0.0, 0.0));

    // The driver was reloaded.
    bench.change(&machine(&[gpu(0)]));
    let third = bench.tick();
    assert_eq!(third["gpu.0.energyJoules"], 1000.0);
    assert!(!third.contains_key("gpu.0.powerMeanWatts") && !third.contains_key("gpu.0.pcieTxBytes"));
}

#[test]
fn bytes_over_pcie_are_counted_in_32_bits() {
    let mut scenario = all(1);
    scenario["gpus"][0]["pcie"]["tx_bytes"] = json!(4_294_000_000u64);
    let mut bench = Bench::new(&scenario);
    bench.tick();
    scenario["gpus"][0]["energy_mj"] = json!(1_300_000);
    scenario["gpus"][0]["pcie"]["tx_bytes"] = json!(1_999_032_704);
    bench.change(&scenario);
    let sent = bench.tick()["gpu.0.pcieTxBytes"];
    assert!((1.8e9..=2.2e9).contains(&sent), "{sent}");
}

#[test]
fn a_tick_stays_within_its_calls_and_never_asks_for_the_throughput() {
    let mut scenario = all(8);
    for gpu in scenario["gpus"].as_array_mut().expect("a list") {
        // A Hopper board: no fan of its own, and profiling counters.
        (gpu["fan"], gpu["gpm"]) = (Value::Null, json!({"2": 50.0}));
        healthy(gpu);
    }
    let mut bench = Bench::new(&scenario);
    (0..40).for_each(|_| drop(bench.tick()));
    let before = bench.fake.all_calls();
    let waits = bench.fake.calls(c"nvmlEventSetWait_v2");
    (0..60).for_each(|_| drop(bench.tick()));
    let waits = bench.fake.calls(c"nvmlEventSetWait_v2") - waits;
    let calls = (bench.fake.all_calls() - before - waits) as f64 / 60.0 / 8.0;
    println!("{calls:.2} calls a GPU and tick");
    // Two of them are for rare calls: eighteen links every 30 s, their errors every 60 s, five more every 10 s.
    assert!(calls <= 20.5, "{calls} calls a GPU and tick");
    assert_eq!(bench.fake.calls(c"nvmlDeviceGetPcieThroughput"), 0);
}

#[test]
fn what_a_card_does_not_have_is_absent_and_asked_for_less_and_less_often() {
    let poor = json!({"uuid": "GPU-0", "temperature": 40, "instant_power": false, "power_mw": 100_000});
    let mut bench = Bench::new(&machine(&[poor]));
    for _ in 0..40 {
        let present = bench.tick();
        assert_eq!(bench.result, Ok(()));
        // The listener for errors may not have started yet.
        let tags: Vec<&str> = present.keys().map(String::as_str).filter(|tag| !tag.ends_with("xidErrors")).collect();
        // Power comes from the older call; without a limit there is no share.
        let tags: Vec<&str> = tags.into_iter().filter(|tag| !tag.contains(".memory")).collect();
        assert_eq!(tags, ["gpu.0.powerWatts", "gpu.0.temp"].as_slice(), "{present:?}");
        assert_eq!(present.get("gpu.0.memoryShared"), Some(&1.0), "without memory of its own it uses the machine's");
    }
    assert!(bench.fake.calls(c"nvmlDeviceGetFanSpeed_v2") < 6);
    // The GPU gains a fan later.
    let mut better = gpu(0);
    better["fan"] = json!(12);
    bench.change(&machine(&[better]));
    bench.until(|present| present.get("gpu.0.fanSpeed") == Some(&12.0));
}

#[test]
fn impossible_numbers_are_absent() {
    let mut wild = gpu(0);
    wild["utilization"] = json!({"gpu": 4_000_000_000u32, "memory": 101});
    (wild["temperature"], wild["memory_temperature"]) = (json!(65_535), json!(255));
    (wild["power_mw"], wild["power_limit_mw"]) = (json!(4_294_967_295u32), json!(0));
    wild["memory"] = json!({"total": 0, "used": 5});
    wild["processes"] = json!([{"pid": 7, "type": "C", "used_gpu_memory": null}]);
    let mut bench = Bench::new(&machine(&[wild]));
    let present = bench.tick();
    for tag in [
        "gpu",
        "memory",
        "temp",
        "memoryTemp",
        "powerWatts",
        "powerPercent",
        "memoryAllocated",
        "proc.7.memoryUsedBytes",
    ] {
        assert!(!present.contains_key(&format!("gpu.0.{tag}")), "{tag} is {}", present[&format!("gpu.0.{tag}")]);
    }
    assert_eq!(present["gpu.0.smClock"], 1905.0);
}

#[test]
fn an_old_driver_is_read_by_its_older_calls() {
    let mut old = gpu(0);
    (old["memory_v2"], old["instant_power"]) = (json!(false), json!(false));
    let mut bench = Bench::new(&with(machine(&[old]), "driver_version", json!("470.82.01")));
    let present = bench.tick();
    // Version 1 includes the driver's own part in used memory.
    assert_eq!((present["gpu.0.memoryAllocatedBytes"], present["gpu.0.powerWatts"]), (2.0512e10, 350.0));
}

#[test]
fn the_process_lists_of_older_drivers_are_read_in_their_own_layout() {
    let lists = ["Compute", "Graphics", "MPSCompute"];
    let of_version = |end: &str| lists.map(|list| format!("nvmlDeviceGet{list}RunningProcesses{end}"));
    let mut used = gpu(0);
    // More than one, so that a wrong struct size would be noticed.
    used["processes"] = json!([
        {"pid": 1, "type": "C", "used_gpu_memory": 4096, "gpu_instance_id": 7, "compute_instance_id": 9},
        {"pid": 2, "type": "C", "used_gpu_memory": 8192}, {"pid": 3, "type": "C", "used_gpu_memory": null},
        {"pid": 4, "type": "G", "used_gpu_memory": 12288}, {"pid": 5, "type": "G", "used_gpu_memory": 16384},
        {"pid": 6, "type": "M", "used_gpu_memory": 20480}, {"pid": 7, "type": "M", "used_gpu_memory": 24576},
    ]);
    let scenario = machine(&[used]).to_string();
    let (third, second) = (of_version("_v3"), of_version("_v2"));
    for missing in [vec![], third.to_vec(), [third.clone(), second].concat()] {
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        let mut bench = Bench::with_library(Fake::without(&missing, &scenario), Options::default());
        let present = bench.tick();
        let memory: Vec<(u32, f64)> =
            (1..8).filter_map(|pid| Some((pid, *present.get(&format!("gpu.0.proc.{pid}.memoryUsedBytes"))?))).collect();
        let wanted = [(1, 4096.0), (2, 8192.0), (4, 12288.0), (5, 16384.0), (6, 20480.0), (7, 24576.0)];
        assert_eq!(memory, wanted, "without {missing:?}");
        assert_eq!(bench.result, Ok(()));
    }
}

#[test]
fn a_transient_error_does_not_switch_a_reading_off() {
    let fault = json!([{"gpu": "GPU-0", "call": "nvmlDeviceGetTemperature", "code": 999, "for": 3}]);
    let mut bench = Bench::new(&with(all(2), "faults", fault));
    let present = bench.tick();
    assert_eq!(indices(&present), [1]);
    assert!(bench.reason().contains("GPU 0: temperature"), "{}", bench.reason());
    let present = bench.until(|present| present.contains_key("gpu.0.temp"));
    assert_eq!(indices(&present), [0, 1]);
    assert_eq!(bench.result, Ok(()));
}

#[test]
fn a_lost_gpu_is_told_and_the_others_go_on_until_it_returns_under_another_index() {
    let options = Options::default();
    options.gpu_numbers.describe("GPU-3", None, Some("00000000:65:00.0".into()));
    let mut bench = Bench::with_options(&all(8), options);
    assert_eq!(indices(&bench.tick()), (0..8).collect::<Vec<_>>());
    bench.change(&with(all(8), "faults", json!([{"gpu": "GPU-3", "code": 15}])));
    let present = bench.tick_after(200);
    assert_eq!(indices(&present), [0, 1, 2, 4, 5, 6, 7]);
    let named = "GPU 3 (PCI 0000:65:00.0) is lost: no response since 14:02 UTC: ";
    assert!(bench.reason().contains(named), "{}", bench.reason());
    // A GPU leaves the list; the following ones move up.
    let without: Vec<Value> = (0..8).filter(|i| *i != 3).map(gpu).collect();
    bench.change(&machine(&without));
    bench.tick();
    let present = bench.tick();
    assert_eq!(indices(&present), [0, 1, 2, 4, 5, 6, 7]);
    assert_eq!(present["gpu.7.temp"], 47.0);
    assert!(bench.reason().contains("driver no longer lists it"), "{}", bench.reason());
    // It comes back as the last one.
    let mut moved = without.clone();
    moved.push(gpu(3));
    bench.change(&machine(&moved));
    let present = bench.until(|present| present.contains_key("gpu.3.temp"));
    assert_eq!(indices(&present), (0..8).collect::<Vec<_>>());
    assert_eq!((present["gpu.3.temp"], present["gpu.4.temp"]), (43.0, 44.0));
    bench.tick();
    assert_eq!(bench.result, Ok(()));
}

#[test]
fn each_of_many_lost_gpus_is_named() {
    let mut bench = Bench::new(&all(8));
    bench.tick();
    let faults: Vec<Value> = (1..8).map(|gpu| json!({"gpu": format!("GPU-{gpu}"), "code": 15})).collect();
    bench.change(&with(all(8), "faults", json!(faults)));
    bench.tick();
    assert_eq!(indices(&bench.tick()), [0]);
    for gpu in 1..8 {
        assert!(bench.reason().contains(&format!("GPU {gpu} is lost")), "{}", bench.reason());
    }
}

#[test]
fn a_lost_gpu_costs_the_others_nothing_and_the_library_is_started_anew_once_it_is_back() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("lost"), "GPU-3, [GPU is lost]\n").expect("a file");
    std::fs::write(dir.path().join("back"), "GPU-3, 43\n").expect("a file");
    let tool = fake_tool::place(dir.path(), "nvidia-smi", "print lost");
    let options = Options { own: OwnOptions::default().with(&COMMAND, &tool), ..Options::default() };
    let mut bench = Bench::with_options(&all(4), options);
    assert_eq!(indices(&bench.tick()), [0, 1, 2, 3]);
    let energy = bench.tick().keys().filter(|tag| tag.ends_with("powerMeanWatts")).count();
    assert_eq!(energy, 4);
    // It stays lost in the library until a restart of that.
    bench.change(&with(all(4), "faults", json!([{"gpu": "GPU-3", "code": 15, "until_init": 2}])));
    for second in 0..1_000 {
        let present = bench.tick();
        assert_eq!(indices(&present), [0, 1, 2], "second {second}");
        let rates = present.keys().filter(|tag| tag.ends_with("powerMeanWatts")).count();
        assert_eq!(rates, 3, "second {second}");
        assert!(!bench.reason().contains("not found"), "{}", bench.reason());
    }
    assert_eq!(bench.fake.calls(c"nvmlInit_v2"), 1);
    let asked = || fake_tool::starts(&tool).len();
    assert!((1..5).contains(&asked()), "{} questions in 1000 s", asked());
    fake_tool::place(dir.path(), "nvidia-smi", "print back");
    let present = bench.until(|present| present.contains_key("gpu.3.temp"));
    assert_eq!(indices(&present), [0, 1, 2, 3]);
    assert_eq!(bench.fake.calls(c"nvmlInit_v2"), 2);
}

#[test]
fn without_the_tool_a_lost_gpu_costs_nothing_either_and_what_to_do_is_said() {
    let options = Options { own: OwnOptions::default().with(&COMMAND, "/nowhere/nvidia-smi"), ..Options::default() };
    let mut bench = Bench::with_options(&all(2), options);
    bench.tick();
    bench.change(&with(all(2), "faults", json!([{"gpu": "GPU-1", "code": 15}])));
    for second in 0..700 {
        assert_eq!(indices(&bench.tick()), [0], "second {second}");
    }
    assert_eq!(bench.fake.calls(c"nvmlInit_v2"), 1);
    assert!(bench.reason().contains("restart Watchglass"), "{}", bench.reason());
}

#[test]
fn gpus_may_be_any_number_and_come_while_we_read() {
    for n in [1, 10, 16] {
        let mut bench = Bench::new(&all(n));
        assert_eq!(indices(&bench.tick()).len(), n as usize);
    }
    let mut bench = Bench::new(&all(1));
    bench.tick();
    bench.change(&all(2));
    bench.tick();
    assert_eq!(indices(&bench.tick()), [0, 1]);
}

#[test]
fn a_gpu_that_hangs_costs_itself_only() {
    let mut bench = Bench::new(&all(8));
    bench.tick();
    bench.change(&with(all(8), "faults", json!([{"gpu": "GPU-2", "hang": true}])));
    for tick in 0..8 {
        let begin = Instant::now();
        let present = bench.tick();
        assert_eq!(indices(&present), [0, 1, 3, 4, 5, 6, 7], "tick {tick}");
        assert!(begin.elapsed() < 2 * TEST_ROUND_TIMEOUT, "it waited {:?}", begin.elapsed());
    }
    assert!(bench.reason().contains("GPU 2 hangs: no response since 14:02 UTC"), "{}", bench.reason());
    // The hanging call returns.
    bench.change(&all(8));
    let present = bench.until(|present| present.contains_key("gpu.2.temp"));
    assert_eq!(indices(&present), (0..8).collect::<Vec<_>>());
}

#[test]
fn slow_gpus_are_read_all_the_same() {
    let slow = json!([{"call": "nvmlDeviceGetTemperature", "delay_ms": 50}]);
    let mut bench = Bench::new(&with(all(8), "faults", slow));
    let mut seen = BTreeMap::new();
    for _ in 0..3 {
        seen.extend(bench.tick());
    }
    assert_eq!(indices(&seen), (0..8).collect::<Vec<_>>());
}

#[test]
fn a_container_that_lost_its_devices_is_named_and_the_library_started_anew() {
    let mut bench = Bench::new(&all(2));
    bench.tick();
    // The first restart does not help yet.
    bench.change(&with(all(2), "faults", json!([{"code": 999, "until_init": 3}])));
    let present = bench.tick();
    assert!(indices(&present).is_empty());
    assert!(bench.reason().contains("systemd reloads"), "{}", bench.reason());
    assert!(!bench.result.as_ref().unwrap_err().partial);
    let present = bench.until(|present| !indices(present).is_empty());
    assert_eq!(indices(&present), [0, 1]);
    assert_eq!(bench.fake.calls(c"nvmlInit_v2"), 3);
    assert_eq!(bench.fake.calls(c"nvmlShutdown"), 2, "a second start without an end would change nothing");
}

#[test]
fn a_driver_that_is_not_loaded_or_of_another_version_says_so() {
    let open = |init: u32| {
        let fake = Fake::new(&with(all(1), "init", json!([init])).to_string());
        let options = Options { own: OwnOptions::default().with(&LIBRARY_PATH, fake.library()), ..Options::default() };
        open(&options, &Roots::default()).err()
    };
    let error = open(9).expect("it does not open");
    assert_eq!(error.kind, OpenErrorKind::Absent);
    assert!(error.reason.contains("the driver is not loaded"), "{}", error.reason);
    assert_eq!(error.remedy, "load it: sudo modprobe nvidia");
    let error = open(18).expect("it does not open");
    assert_eq!(error.kind, OpenErrorKind::Failed);
    assert!(error.reason.contains("have different versions"), "{}", error.reason);
    assert!(open(0).is_none());
    let none = Fake::new(&all(0).to_string());
    let options = Options { own: OwnOptions::default().with(&LIBRARY_PATH, none.library()), ..Options::default() };
    let error = super::open(&options, &Roots::default()).err().expect("there is no GPU");
    assert_eq!(error.kind, OpenErrorKind::Absent);
}

#[test]
fn mig_devices_come_and_go_with_the_mode() {
    let mut cut = gpu(0);
    cut["mig_mode"] = json!(true);
    (cut["utilization"], cut["encoder"], cut["decoder"]) = (Value::Null, Value::Null, Value::Null);
    let part = |index: u32, instance: u32, used: u64| {
        json!({"index": index, "gpu_instance_id": instance, "memory_total": 20_000, "memory_used": used,
               "gpm": {"2": 10.0 * f64::from(instance), "10": 5.0}})
    };
    cut["mig_devices"] = json!([part(0, 2, 4096), part(3, 5, 8192)]);
    let mut bench = Bench::new(&machine(&[gpu(0)]));
    assert!(bench.tick().contains_key("gpu.0.gpu"));
    bench.change(&machine(&[cut]));
    bench.until(|present| present.contains_key("gpu.0.mig.3.memoryAllocatedBytes"));
    let present = bench.tick();
    assert_eq!((present["gpu.0.mig.0.memoryAllocatedBytes"], present["gpu.0.mig.3.memoryAllocated"]), (4096.0, 40.96));
    assert_eq!((present["gpu.0.mig.0.smActive"], present["gpu.0.mig.3.smActive"]), (20.0, 50.0));
    assert!(!present.contains_key("gpu.0.gpu") && !present.contains_key("gpu.0.smActive"));
    bench.change(&machine(&[gpu(0)]));
    let present = bench.until(|present| present.contains_key("gpu.0.gpu"));
    assert!(!present.keys().any(|tag| tag.contains(".mig.")), "{present:?}");
}

#[test]
fn profiling_counters_cover_the_time_between_two_ticks() {
    let mut hopper = gpu(0);
    hopper["gpm"] = json!({"2": 81.5, "3": 40.0, "5": 30.0, "10": 55.0, "20": 2.0, "60": 3.0, "11": 1e9});
    let mut bench = Bench::new(&machine(&[hopper]));
    let first = bench.tick();
    assert!(!first.contains_key("gpu.0.smActive"));
    let second = bench.tick();
    for (tag, value) in [("smActive", 81.5), ("smOccupancy", 40.0), ("pipeTensorActive", 30.0), ("dramActive", 55.0)] {
        assert_eq!(second[&format!("gpu.0.{tag}")], value, "{tag}");
    }
    assert_eq!(second["gpu.0.pcieTxBytes"], 2_097_152.0, "MiB/s are told as bytes/s");
    assert_eq!(second["gpu.0.nvlinkRxBytes"], 3_145_728.0);
    // Values that the counters lack come from the driver's byte counts.
    assert_eq!(second["gpu.0.pcieRxBytes"], 0.0);
    assert!(!second.contains_key("gpu.0.pipeFp64Active"));
    assert_eq!(bench.fake.calls(c"nvmlGpmSampleAlloc"), 2);
}

#[test]
fn each_profiling_counter_is_read() {
    let mut hopper = gpu(0);
    // In the order of the names below; each value is the counter's ID.
    let counters = [2, 3, 10, 5, 7, 11, 12, 13];
    hopper["gpm"] = counters.iter().map(|n| (n.to_string(), json!(*n))).collect::<serde_json::Map<_, _>>().into();
    let mut bench = Bench::new(&machine(&[hopper]));
    bench.tick();
    let second = bench.tick();
    let names = [
        "smActive",
        "smOccupancy",
        "dramActive",
        "pipeTensorActive",
        "pipeTensorHmmaActive",
        "pipeFp64Active",
        "pipeFp32Active",
        "pipeFp16Active",
    ];
    for (name, value) in names.iter().zip(counters) {
        assert_eq!(second[&format!("gpu.0.{name}")], f64::from(value), "{name}");
    }
}

#[test]
fn what_hardly_changes_is_read() {
    let mut limited = gpu(0);
    (limited["max_temperature"], limited["max_memory_temperature"]) = (json!(87), json!(95));
    limited["pcie"] = json!({"gen": 4, "width": 8, "max_gen": 5, "max_width": 16, "speed": 16_000});
    let present = Bench::new(&machine(&[limited])).tick();
    let wanted = [
        ("maxOpTemp", 87.0),
        ("memoryMaxOpTemp", 95.0),
        ("pcieLinkGen", 4.0),
        ("pcieLinkWidth", 8.0),
        ("maxPcieLinkGen", 5.0),
        ("maxPcieLinkWidth", 16.0),
        ("pcieLinkSpeed", 16.0),
    ];
    for (name, value) in wanted {
        assert_eq!(present.get(&format!("gpu.0.{name}")), Some(&value), "{name}");
    }
}

/// The values of these metrics of GPU 0, in order.
fn of_gpu<const N: usize>(present: &BTreeMap<String, f64>, names: [&str; N]) -> [Option<f64>; N] {
    names.map(|name| present.get(&format!("gpu.0.{name}")).copied())
}

#[test]
fn how_a_gpu_is_is_read_every_ten_seconds() {
    let mut ill = gpu(0);
    healthy(&mut ill);
    (ill["performance_state"], ill["persistence_mode"]) = (json!(8), json!(false));
    ill["remapped_rows"] = json!({"corrected": 2, "uncorrected": 3, "pending": true, "failed": true});
    ill["recovery_action"] = json!(4);
    let mut bench = Bench::new(&machine(&[ill.clone()]));
    let names =
        ["performanceState", "persistenceMode", "pcieReplays", "correctedRemappedRows", "uncorrectedRemappedRows"];
    let states = ["rowRemapPending", "rowRemapFailed", "powerViolationPercent", "thermalViolationPercent"];
    let first = bench.tick();
    assert_eq!(of_gpu(&first, names), [8.0, 0.0, 9.0, 2.0, 3.0].map(Some));
    assert_eq!(of_gpu(&first, states), [Some(1.0), Some(1.0), None, None], "a share needs two readings");
    let action = |present: &BTreeMap<String, f64>| present.get("gpu.0.recoveryAction").copied();
    assert_eq!(action(&first), Some(4.0));
    assert_eq!(of_gpu(&bench.tick(), names), [None; 5], "it is not time yet");
    ill["violations"] = json!({"power_ns": 7_500_000_000u64, "thermal_ns": 10_000_000_000u64});
    ill["performance_state"] = json!(0);
    ill["recovery_action"] = json!(8);
    bench.change(&machine(&[ill.clone()]));
    let later = bench.tick_after(9);
    assert_eq!(action(&later), None, "NVML does not define this number");
    assert_eq!(
        of_gpu(&later, names),
        [Some(0.0), None, Some(9.0), Some(2.0), Some(3.0)],
        "the mode is asked for rarely"
    );
    let shares = of_gpu(&later, states);
    let near = |share: Option<f64>, percent: f64| share.is_some_and(|share| (share - percent).abs() < 0.5);
    assert!(near(shares[2], 25.0) && near(shares[3], 100.0), "{shares:?}");
    // The driver was reloaded. An unknown state has a number of its own.
    ill["violations"] = json!({"power_ns": 0, "thermal_ns": 0});
    ill["performance_state"] = json!(32);
    bench.change(&machine(&[ill]));
    let later = bench.tick_after(10);
    assert_eq!(of_gpu(&later, states), [Some(1.0), Some(1.0), None, None]);
    assert_eq!(of_gpu(&later, names)[0], None);
    assert_eq!(bench.result, Ok(()));
}

#[test]
fn how_a_gpu_is_in_its_fabric_is_read_every_ten_seconds() {
    let with_fabric = |fabric: Value| {
        let mut gpu = gpu(0);
        gpu["fabric"] = fabric;
        machine(&[gpu])
    };
    let names = ["fabricState", "fabricStatus", "fabricHealth", "fabricFaults", "fabricClique"];
    let mut bench = Bench::new(&with_fabric(json!({"state": 3, "clique": 7, "mask": 0b0001_1010_1010, "summary": 1})));
    assert_eq!(of_gpu(&bench.tick(), names), [3.0, 0.0, 1.0, 0.0, 7.0].map(Some));
    assert_eq!(of_gpu(&bench.tick(), names), [None; 5], "it is not time yet");
    for (fabric, expected) in [
        (json!({"state": 2}), [Some(2.0), None, None, None, None]),
        (json!({"state": 3, "status": 999, "clique": 1}), [Some(4.0), Some(999.0), None, None, Some(1.0)]),
        (json!({"state": 3, "mask": 0b0001_1010_1001, "summary": 3}), [3.0, 0.0, 3.0, 1.0, 0.0].map(Some)),
        // A driver without the summary.
        (json!({"state": 3, "mask": 0b0001_1010_1001, "v3": false}), [3.0, 0.0, 2.0, 1.0, 0.0].map(Some)),
        (json!({"state": 0}), [None; 5]),
    ] {
        bench.change(&with_fabric(fabric.clone()));
        assert_eq!(of_gpu(&bench.tick_after(10), names), expected, "{fabric}");
    }
}

#[test]
fn the_links_of_a_gpu_are_read() {
    let mut linked = gpu(0);
    healthy(&mut linked);
    // One link is disabled in the factory.
    linked["nvlinks"][11] = json!({});
    linked["nvlinks"][0]["crc"] = json!(100);
    let mut bench = Bench::new(&machine(&[linked.clone()]));
    let names = ["nvlinksActive", "nvlinks", "nvlinkReplays", "nvlinkRecoveries", "nvlinkCrcErrors"];
    assert_eq!(of_gpu(&bench.tick(), names), [17.0, 17.0, 0.0, 0.0, 0.0].map(Some), "errors from the start on");
    linked["nvlinks"][0]["crc"] = json!(104);
    linked["nvlinks"][1] = json!({"active": true, "replays": 3, "recoveries": 2, "crc": 1});
    bench.change(&machine(&[linked.clone()]));
    assert_eq!(of_gpu(&bench.tick_after(30), names), [Some(17.0), Some(17.0), None, None, None]);
    assert_eq!(of_gpu(&bench.tick_after(30), names), [17.0, 17.0, 3.0, 2.0, 5.0].map(Some));
    // One link goes down and reports nothing. Then it is back, with its counters reset.
    linked["nvlinks"][1] = json!({"active": false});
    bench.change(&machine(&[linked.clone()]));
    assert_eq!(of_gpu(&bench.tick_after(60), names), [16.0, 17.0, 3.0, 2.0, 5.0].map(Some));
    linked["nvlinks"][1] = json!({"active": true, "replays": 0, "recoveries": 1, "crc": 0});
    bench.change(&machine(&[linked]));
    assert_eq!(of_gpu(&bench.tick_after(60), names), [17.0, 17.0, 3.0, 3.0, 5.0].map(Some));
    assert_eq!(bench.result, Ok(()));
}

#[test]
fn a_newer_gpus_links_tell_their_recoveries_alone() {
    let mut newer = gpu(0);
    newer["nvlinks"] = json!(vec![json!({"active": true, "recovery_events": 4}); 18]);
    let mut bench = Bench::new(&machine(&[newer.clone()]));
    let names = ["nvlinksActive", "nvlinkReplays", "nvlinkRecoveries", "nvlinkCrcErrors"];
    assert_eq!(of_gpu(&bench.tick(), names), [Some(18.0), None, Some(0.0), None]);
    newer["nvlinks"][17]["recovery_events"] = json!(6);
    bench.change(&machine(&[newer]));
    assert_eq!(of_gpu(&bench.tick_after(60), names), [Some(18.0), None, Some(2.0), None]);
}

#[test]
fn a_gpu_that_tells_nothing_of_how_it_is_is_asked_once_a_minute() {
    let mut bench = Bench::new(&all(1));
    for _ in 0..120 {
        let present = bench.tick();
        let rows = shared::catalog::gpu_health::ROWS.iter().map(|row| row.tag_of("0"));
        assert_eq!(rows.filter(|tag| present.contains_key(tag)).collect::<Vec<_>>(), Vec::<String>::new());
        assert_eq!(bench.result, Ok(()));
    }
    for call in [c"nvmlDeviceGetPerformanceState", c"nvmlDeviceGetNvLinkState", c"nvmlDeviceGetRemappedRows"] {
        assert_eq!(bench.fake.calls(call), 2, "{call:?}");
    }
    assert_eq!(bench.fake.calls(c"nvmlDeviceGetNvLinkErrorCounter"), 0);
    // A driver that is too old for a call reports no value.
    let old = ["nvmlDeviceGetRemappedRows", "nvmlDeviceGetNvLinkErrorCounter", "nvmlDeviceGetViolationStatus"];
    let mut board = gpu(0);
    healthy(&mut board);
    let mut bench = Bench::with_library(Fake::without(&old, &machine(&[board]).to_string()), Options::default());
    let present = bench.tick();
    assert_eq!(
        of_gpu(&present, ["performanceState", "nvlinksActive", "rowRemapPending"]),
        [Some(0.0), Some(18.0), None]
    );
    assert_eq!(bench.result, Ok(()));
}

#[test]
fn a_watched_process_on_a_gpu_repeats_the_gpus_figures() {
    let own = std::process::id();
    let mut used = gpu(1);
    used["processes"] = json!([{"pid": 1, "type": "C", "used_gpu_memory": 4096},
                               {"pid": own, "type": "C+G", "used_gpu_memory": 8192}]);
    used["process_utilization"] = json!([{"pid": own, "timestamp": 5, "sm": 11}, {"pid": own, "timestamp": 9, "sm": 12},
                                         {"pid": 4_000_000, "timestamp": 9, "sm": 50}]);
    let options = Options { pids: vec![own], ..Options::default() };
    let tables = options.processes.clone();
    let mut bench = Bench::with_options(&machine(&[gpu(0), used]), options);
    let present = bench.tick();
    #[cfg(target_os = "linux")]
    assert_eq!(tables.gpus()[&own], (8192, Some(12.0)), "the process table learns it");
    let copies: BTreeMap<&str, f64> =
        present.iter().filter_map(|(tag, v)| Some((tag.strip_prefix("gpu.process.1.")?, *v))).collect();
    let expected = [
        ("enforcedPowerLimitWatts", 700.0),
        ("gpu", 51.0),
        ("memory", 7.0),
        ("memoryAllocated", 25.0),
        ("memoryAllocatedBytes", 2e10),
        ("powerPercent", 50.0),
        ("powerWatts", 350.0),
        ("temp", 41.0),
    ];
    assert_eq!(copies, BTreeMap::from(expected));
    assert!(!present.keys().any(|tag| tag.starts_with("gpu.process.0.")));
    assert_eq!(present[&format!("gpu.1.proc.{own}.memoryUsedBytes")], 8192.0);
    assert_eq!(present["gpu.1.proc.1.memoryUsedBytes"], 4096.0);
    assert_eq!(present[&format!("gpu.1.proc.{own}.smUtilization")], 12.0, "the newest sample counts");
    assert!(!present.contains_key("gpu.1.proc.4000000.smUtilization"), "it is not on the GPU any more");
    // The driver has nothing newer.
    assert!(!bench.tick().contains_key(&format!("gpu.1.proc.{own}.smUtilization")));
}

#[test]
fn more_processes_than_there_is_room_for_are_asked_for_again() {
    let mut busy = gpu(0);
    let processes: Vec<Value> =
        (1..=200).map(|pid| json!({"pid": pid, "type": "C", "used_gpu_memory": 4096})).collect();
    busy["processes"] = json!(processes);
    let mut bench = Bench::new(&machine(&[busy]));
    let present = bench.tick();
    assert_eq!(present.keys().filter(|tag| tag.contains(".proc.")).count(), 200);
}

#[test]
fn critical_errors_are_counted_and_the_last_one_kept() {
    let mut bench = Bench::new(&all(2));
    bench.until(|present| present.get("gpu.1.xidErrors") == Some(&0.0));
    let xids = json!([{"gpu": "GPU-1", "xid": 63}, {"gpu": "GPU-1", "xid": 79}]);
    bench.change(&with(all(2), "xids", xids));
    let end = Instant::now() + Duration::from_secs(20);
    let present = loop {
        let present = bench.tick();
        if present["gpu.1.xidErrors"] == 2.0 {
            break present;
        }
        assert!(Instant::now() < end, "the events were not fetched");
    };
    assert_eq!(present["gpu.1.lastXid"], 79.0);
    assert_eq!(present["gpu.0.xidErrors"], 0.0);
    assert!(!present.contains_key("gpu.0.lastXid"));
}

/// Two GPUs at 3b:00.0 and c1:00.0.
fn placed() -> Value {
    let at = |i: u32, bus: &str| with(gpu(i), "pci_bus_id", json!(format!("00000000:{bus}:00.0")));
    machine(&[at(0, "3B"), at(1, "C1")])
}

#[test]
fn errors_of_which_no_event_comes_are_those_of_the_kernels_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let kmsg = dir.path().join("kmsg");
    std::fs::write(&kmsg, "").expect("a file");
    let write = |second: u32, bus: &str, number: u32| {
        let line = format!("3,7,{second}000000,-;NVRM: Xid (PCI:0000:{bus}:00): {number}, pid=1, text\n");
        let mut file = std::fs::OpenOptions::new().append(true).open(&kmsg).expect("a file");
        std::io::Write::write_all(&mut file, line.as_bytes()).expect("a line");
    };
    // One GPU has no events.
    let deaf = json!([{"gpu": "GPU-1", "call": "nvmlDeviceRegisterEvents", "code": 3}]);
    let scenario = with(placed(), "faults", deaf);
    let log = KernelLog::open(dir.path());
    let mut bench = Bench::with_log(Fake::new(&scenario.to_string()), Options::default(), log);
    let first = bench.tick();
    assert_eq!((first["gpu.0.xidErrors"], first["gpu.1.xidErrors"]), (0.0, 0.0));
    write(1, "c1", 31);
    write(3, "c1", 79);
    // Each has a tick of its own, and the action of NVIDIA's catalog.
    let error = |present: &BTreeMap<String, f64>| {
        ["xidErrors", "lastXid", "lastXidAction"].map(|name| present[&format!("gpu.1.{name}")])
    };
    assert_eq!(error(&bench.tick()), [1.0, 31.0, 2.0]);
    let present = bench.tick();
    assert_eq!(error(&present), [2.0, 79.0, 13.0]);
    assert_eq!(present["gpu.0.xidErrors"], 0.0);
    // Both sources report the other GPU's error.
    write(4, "3b", 63);
    bench.change(&with(scenario, "xids", json!([{"gpu": "GPU-0", "xid": 63}, {"gpu": "GPU-0", "xid": 64}])));
    let present = bench.until(|present| present.get("gpu.0.lastXid") == Some(&64.0));
    assert_eq!(present["gpu.0.xidErrors"], 2.0);
    assert_eq!(bench.result, Ok(()));
}

#[test]
fn a_gpu_that_comes_later_has_its_name_and_its_errors_of_the_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let kmsg = dir.path().join("kmsg");
    std::fs::write(&kmsg, "").expect("a file");
    // No GPU has events.
    let deaf = |scenario: Value| with(scenario, "faults", json!([{"call": "nvmlDeviceRegisterEvents", "code": 3}]));
    let options = Options::default();
    let numbers = options.gpu_numbers.clone();
    let first = deaf(machine(&[placed()["gpus"][0].clone()]));
    let mut bench = Bench::with_log(Fake::new(&first.to_string()), options, KernelLog::open(dir.path()));
    bench.tick();
    assert!(numbers.is_described("GPU-0") && !numbers.is_described("GPU-1"));
    bench.change(&deaf(placed()));
    bench.until(|present| present.get("gpu.1.xidErrors") == Some(&0.0));
    assert_eq!(numbers.pci("GPU-1").as_deref(), Some("0000:c1:00.0"));
    let line = "3,7,9000000,-;NVRM: Xid (PCI:0000:c1:00): 79, pid=1, GPU has fallen off the bus.\n";
    std::fs::write(&kmsg, line).expect("a line");
    assert_eq!(bench.tick().get("gpu.1.lastXid"), Some(&79.0));
}

#[test]
fn a_kernels_log_that_may_not_be_read_is_said_once_where_it_is_missed() {
    let deaf = json!([{"gpu": "GPU-1", "call": "nvmlDeviceRegisterEvents", "code": 3}]);
    for (faults, said) in [(deaf, 1), (json!([]), 0)] {
        let scenario = with(placed(), "faults", faults);
        let log = KernelLog::denied("the kernel's log is closed");
        let mut bench = Bench::with_log(Fake::new(&scenario.to_string()), Options::default(), log);
        let heard = |present: &BTreeMap<String, f64>| present.keys().filter(|tag| tag.ends_with("xidErrors")).count();
        // It may be said before the last GPU is listened to.
        let end = Instant::now() + Duration::from_secs(20);
        let mut before = Vec::new();
        while heard(&bench.tick()) != 2 - said {
            before.push(bench.reason());
            assert!(Instant::now() < end, "not listened to: {:?}", before.last());
            std::thread::yield_now();
        }
        before.push(bench.reason());
        let ticks: Vec<_> = (0..60).map(|_| (bench.tick(), bench.reason())).collect();
        let reasons = before.iter().chain(ticks.iter().map(|(_, reason)| reason));
        assert_eq!(reasons.filter(|reason| *reason == "the kernel's log is closed").count(), said);
        assert!(ticks.iter().all(|(present, _)| indices(present) == [0, 1]), "it costs nothing else");
        assert_eq!(ticks.last().expect("ticks").1, "");
    }
}

#[test]
fn a_gpu_that_comes_later_is_listened_to() {
    let mut bench = Bench::new(&all(1));
    bench.until(|present| present.contains_key("gpu.0.xidErrors"));
    bench.change(&all(2));
    bench.until(|present| present.contains_key("gpu.1.xidErrors"));
    bench.change(&with(all(2), "xids", json!([{"gpu": "GPU-1", "xid": 31}])));
    let present = bench.until(|present| present.get("gpu.1.xidErrors").is_some_and(|count| *count > 0.0));
    assert_eq!((present["gpu.1.xidErrors"], present["gpu.1.lastXid"]), (1.0, 31.0));
}

#[test]
fn what_this_user_may_not_read_is_named_and_the_rest_is_read() {
    let fault = json!([{"call": "nvmlDeviceGetComputeRunningProcesses_v3", "code": 4}]);
    let mut bench = Bench::new(&with(all(1), "faults", fault));
    for tick in 0..10 {
        assert_eq!(bench.tick()["gpu.0.temp"], 40.0);
        // The message also stays in ticks without the call.
        assert!(bench.reason().contains("GPU 0: processes: the current user does not have permission"), "tick {tick}");
        assert!(bench.result.as_ref().unwrap_err().partial);
    }
}

#[test]
fn doctor_is_told_the_names() {
    let mut named = gpu(0);
    (named["name"], named["pci_bus_id"]) = (json!("Test 80GB"), json!("00000000:3B:00.0"));
    let bench = Bench::new(&machine(&[named]));
    assert_eq!(bench.part.tried[1..], ["driver 590.48.01", "index 0: Test 80GB at 00000000:3B:00.0"]);
}

#[test]
fn a_gpu_that_must_be_reset_keeps_what_it_still_tells_and_that_is_said() {
    let calls = ["nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage"];
    let faults: Vec<Value> = calls.iter().map(|call| json!({"gpu": "GPU-0", "call": call, "code": 16})).collect();
    let mut bench = Bench::new(&with(all(2), "faults", json!(faults)));
    for tick in 0..10 {
        let present = bench.tick();
        assert_eq!(present.get("gpu.0.memoryAllocatedBytes"), Some(&2e10), "tick {tick}");
        assert_eq!((present.get("gpu.0.temp"), present["gpu.1.temp"]), (None, 41.0));
        assert!(
            bench.reason().contains("GPU 0: utilization: the driver requires a reset of the GPU"),
            "{}",
            bench.reason()
        );
    }
}

#[test]
fn only_chosen_gpus_are_read() {
    let options = Options { gpus: vec![1, 2], ..Options::default() };
    let mut bench = Bench::with_options(&all(4), options);
    assert_eq!(indices(&bench.tick()), [1, 2]);
}

#[test]
fn the_labels_of_a_gpu_are_known_once_it_is_open() {
    let options = Options::default();
    let numbers = options.gpu_numbers.clone();
    let placed = |i: u32| with(gpu(i), "pci_bus_id", json!(format!("00000000:{i}B:00.0")));
    let mut bench = Bench::with_options(&machine(&[placed(0), placed(1)]), options);
    bench.tick();
    let known = numbers.known();
    let labels = |number: usize| known[number].1.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!((known.len(), labels(0), labels(1)), (2, vec!["uuid", "pci", "name"], vec!["uuid", "pci", "name"]));
    assert_eq!((known[1].1[0].1.as_str(), known[1].1[2].1.as_str()), ("GPU-1", "Test"));
    assert_eq!(numbers.pci("GPU-1").as_deref(), Some("0000:1b:00.0"));
}

#[test]
fn pids_of_another_namespace_are_said() {
    let mut foreign = gpu(0);
    // Above the maximum PID of the kernel.
    foreign["processes"] = json!([{"pid": 4_194_305, "type": "C", "used_gpu_memory": 4096}]);
    let mut bench = Bench::new(&machine(&[foreign.clone()]));
    for _ in 0..9 {
        bench.tick();
        assert_eq!(bench.result, Ok(()), "it may just have ended");
    }
    bench.tick();
    bench.tick();
    let error = bench.result.clone().expect_err("a sentence");
    assert!(error.partial && error.reason.contains("another pid namespace"), "{}", error.reason);
    // One process that exists here is enough: our own.
    let own = json!({"pid": std::process::id(), "type": "C", "used_gpu_memory": 4096});
    foreign["processes"].as_array_mut().expect("a list").push(own);
    bench.change(&machine(&[foreign]));
    bench.tick();
    bench.tick();
    assert_eq!(bench.result, Ok(()));
}

/// A machine made of files: processes, each with its open files.
fn processes_of_files(all: &[(u32, &str)]) -> (tempfile::TempDir, Roots) {
    let dir = tempfile::tempdir().expect("a folder");
    for (pid, file) in all {
        let fd = dir.path().join(format!("proc/{pid}/fd"));
        std::fs::create_dir_all(&fd).expect("a folder");
        let stat = format!("{pid} (a) S 1{}\n", " 1".repeat(30));
        std::fs::write(fd.with_file_name("stat"), stat).expect("a file");
        std::os::unix::fs::symlink(file, fd.join("3")).expect("a link");
    }
    let roots = Roots { proc: dir.path().join("proc"), ..Roots::default() };
    (dir, roots)
}

#[test]
fn memory_is_never_that_of_a_process_that_merely_has_the_number() {
    let mut used = gpu(0);
    used["processes"] =
        json!([{"pid": 7, "type": "C", "used_gpu_memory": 4096}, {"pid": 9, "type": "C", "used_gpu_memory": 8192}]);
    used["process_utilization"] = json!([{"pid": 7, "timestamp": 5, "sm": 11}, {"pid": 9, "timestamp": 5, "sm": 12}]);
    for (other, own) in [("/dev/null", vec![]), ("/dev/nvidia0", vec![7, 9])] {
        let (_dir, roots) = processes_of_files(&[(7, other), (9, "/dev/nvidia0")]);
        let fake = Fake::new(&machine(&[used.clone()]).to_string());
        let options = Options { pids: vec![7], ..Options::default() };
        let tables = options.processes.clone();
        let options = Options { own: options.own.clone().with(&LIBRARY_PATH, fake.library()), ..options };
        let part = open_with(&options, &roots, KernelLog::default()).map_err(|e| e.reason).expect("it opens").remove(0);
        let mut bench = Bench { fake, part, out: Out::default(), at: Duration::from_secs(1000), result: Ok(()) };
        let present = bench.tick();
        let series = present.keys().filter(|tag| tag.contains(".proc.") && tag.ends_with("memoryUsedBytes")).count();
        let mut holders: Vec<u32> = tables.gpu_holders().into_keys().collect();
        holders.sort_unstable();
        assert_eq!((series, holders), (own.len(), own.clone()), "{other}");
        assert_eq!(present.contains_key("gpu.process.0.gpu"), !own.is_empty(), "{other}: it is watched");
        assert_eq!(present["gpu.0.memoryAllocatedBytes"], 2e10, "the device's own is known");
        assert_eq!(bench.reason().contains("another pid namespace"), own.is_empty(), "{other}: {}", bench.reason());
    }
}
