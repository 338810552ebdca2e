//! What a tick with 8 NVIDIA GPUs costs us: CPU time of all threads, and calls into the driver's library, which is a fake
//! one here. Build it in release.

#[cfg(target_os = "linux")]
#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn main() {
    use collectors::{COLLECTORS, Options, Out, Roots};
    use std::time::Duration;

    const GPUS: u32 = 8;
    const WARM: u32 = 40;
    const TICKS: u32 = 1000;

    // A Hopper board in use: no fan of its own, profiling counters, two processes.
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
    let options = Options { nvml_library: Some(fake.library().into()), ..Options::default() };
    let entry = COLLECTORS.iter().find(|entry| entry.name == "nvidia").expect("the collector is in the table");
    let mut part = (entry.open)(&options, &Roots::default()).map_err(|e| e.reason).expect("it opens").remove(0);
    let mut out = Out::default();
    let mut run = |from: u32, ticks: u32| {
        for tick in from..from + ticks {
            out.begin(Duration::from_secs(tick.into()));
            part.collector.collect(&mut out).map_err(|e| e.reason).expect("it reads");
        }
    };
    run(1, WARM);
    let (calls, waits, begin) = (fake.all_calls(), fake.calls(c"nvmlEventSetWait_v2"), cpu_time());
    run(1 + WARM, TICKS);
    let cpu = cpu_time() - begin;
    let calls = fake.all_calls() - calls - (fake.calls(c"nvmlEventSetWait_v2") - waits);
    println!(
        "{GPUS} GPUs, {} series: {:.1} us of CPU a tick, {:.2} calls a GPU and tick, PCIe throughput {} times",
        out.present().len(),
        cpu.as_secs_f64() * 1e6 / f64::from(TICKS),
        calls as f64 / f64::from(TICKS * GPUS),
        fake.calls(c"nvmlDeviceGetPcieThroughput")
    );
}

/// CPU time of all threads.
#[cfg(target_os = "linux")]
fn cpu_time() -> std::time::Duration {
    let mut time = std::mem::MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the answer is as large as the call expects, and this clock always exists.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, time.as_mut_ptr());
        time.assume_init()
    };
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Elsewhere there is no clock for it.
#[cfg(not(target_os = "linux"))]
fn main() {}
