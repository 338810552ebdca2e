//! Measures the cost of a tick with 8 NVIDIA GPUs, and the calls into the driver's library, which is a fake library
//! here.

use crate::cost::cpu_of;
use crate::table::Table;
use collectors::{COLLECTORS, Options, Out, OwnOptions, Roots};
use std::time::Duration;

const GPUS: u32 = 8;
/// Number of ticks before the measurement, so that all infrequent calls have been made.
const WARM_UP_TICKS: u32 = 40;
const TICKS: u32 = 1000;

/// Measures both figures.
pub fn measure(table: &mut Table) {
    // This is a Hopper board in use: no fan of its own, profiling counters, two processes.
    let gpu = |number: u32| {
        format!(
            r#"{{"uuid": "GPU-{number}", "mig_mode": false, "memory": {{"total": 80000000000, "used": 20000000000}},
            "utilization": {{"gpu": 50, "memory": 7}}, "encoder": 0, "decoder": 0, "temperature": 40,
            "memory_temperature": 60, "power_mw": 350000, "power_limit_mw": 700000, "energy_mj": 1000000,
            "clocks": {{"graphics": 1900, "sm": 1905, "mem": 2600}}, "ecc_volatile_dram": {{"corrected": 0, "uncorrected": 0}},
            "pcie": {{"gen": 5, "width": 16, "tx_bytes": 1000, "rx_bytes": 5000}}, "throttle_reasons": 0,
            "processes": [{{"pid": 1, "type": "C", "used_gpu_memory": 4096}}, {{"pid": 2, "type": "C", "used_gpu_memory": 4096}}],
            "gpm": {{"2": 50.0, "3": 40.0, "10": 30.0, "5": 20.0, "20": 1.0, "21": 1.0, "60": 2.0, "61": 2.0}}}}"#
        )
    };
    let gpus: Vec<String> = (0..GPUS).map(gpu).collect();
    let scenario = format!(r#"{{"driver_version": "590.48.01", "gpm_min_ms": 0, "gpus": [{}]}}"#, gpus.join(","));
    let fake = fake_nvml::Fake::new(&scenario);
    let opened = COLLECTORS.iter().find(|entry| entry.name == "nvidia").and_then(|entry| {
        let own = OwnOptions::default().with(entry.option("library")?, fake.library());
        Some(entry.open_here(&Options { own, ..Options::default() }, &Roots::default()))
    });
    let Some(Ok(mut parts)) = opened else {
        table.missing("CPU of a tick with 8 fake GPUs", "", "the fake library does not open");
        return;
    };
    let mut out = Out::default();
    let mut run = |from: u32, ticks: u32| {
        for tick in from..from + ticks {
            out.begin(Duration::from_secs(tick.into()));
            // A failed reading is absent, as in the sampler.
            let _ = parts[0].collector.collect(&mut out);
        }
    };
    run(1, WARM_UP_TICKS);
    let (calls, waits, begin) = (fake.all_calls(), fake.calls(c"nvmlEventSetWait_v2"), cpu_of("self"));
    run(1 + WARM_UP_TICKS, TICKS);
    let cpu = cpu_of("self").saturating_sub(begin);
    let calls = fake.all_calls() - calls - (fake.calls(c"nvmlEventSetWait_v2") - waits);
    let on = "a fake library, its own CPU included, mean of 1000";
    let micros = cpu.as_secs_f64() * 1e6 / f64::from(TICKS);
    table.at_most("CPU of a tick with 8 fake GPUs", micros, "µs", f64::INFINITY, "", "", on);
    let each = calls as f64 / f64::from(TICKS * GPUS);
    table.at_most("NVML calls a GPU and tick", each, "", 18.0, "18", "", on);
    let throughput = fake.calls(c"nvmlDeviceGetPcieThroughput") as f64;
    table.at_most("... of them to the blocking throughput call", throughput, "", 0.0, "0", "", on);
}
