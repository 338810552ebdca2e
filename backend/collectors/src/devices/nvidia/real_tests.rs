//! Tests of the collector on a real GPU: `cargo test -p watchglass-collectors real_nvml -- --ignored --nocapture`. They
//! print the cost of every call, and compare each reading with the simultaneous output of nvidia-smi.

use super::*;
use crate::read::exec::{self, RunLimits};
use crate::{Options, Out, Roots};
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, MemoryLocation, TemperatureSensor};
use std::collections::BTreeMap;

/// Name in nvidia-smi, tag after `gpu.0.`, factor to our unit, and the allowed difference, absolute and as a share.
/// Both differ because the GPU keeps working between the readings.
const SAME: &[(&str, &str, f64, f64, f64)] = &[
    ("utilization.gpu", "gpu", 1.0, 20.0, 0.0),
    ("utilization.memory", "memory", 1.0, 20.0, 0.0),
    ("memory.used", "memoryAllocatedBytes", 1_048_576.0, 2e8, 0.05),
    ("memory.total", "memoryTotalBytes", 1_048_576.0, 2e6, 0.0),
    ("temperature.gpu", "temp", 1.0, 3.0, 0.0),
    ("temperature.memory", "memoryTemp", 1.0, 3.0, 0.0),
    ("power.draw.instant", "powerWatts", 1.0, 15.0, 0.15),
    ("enforced.power.limit", "enforcedPowerLimitWatts", 1.0, 0.1, 0.0),
    ("clocks.sm", "smClock", 1.0, 150.0, 0.1),
    ("clocks.mem", "memoryClock", 1.0, 1.0, 0.0),
    ("clocks.gr", "graphicsClock", 1.0, 150.0, 0.1),
    ("fan.speed", "fanSpeed", 1.0, 3.0, 0.0),
    ("utilization.encoder", "encoderUtilization", 1.0, 20.0, 0.0),
    ("utilization.decoder", "decoderUtilization", 1.0, 20.0, 0.0),
    ("ecc.errors.corrected.volatile.dram", "correctedMemoryErrors", 1.0, 0.0, 0.0),
    ("ecc.errors.uncorrected.volatile.dram", "uncorrectedMemoryErrors", 1.0, 0.0, 0.0),
    ("pcie.link.gen.gpucurrent", "pcieLinkGen", 1.0, 0.0, 0.0),
    ("pcie.link.width.current", "pcieLinkWidth", 1.0, 0.0, 0.0),
    ("pcie.link.gen.max", "maxPcieLinkGen", 1.0, 0.0, 0.0),
    ("pcie.link.width.max", "maxPcieLinkWidth", 1.0, 0.0, 0.0),
];

fn time(name: &str, mut call: impl FnMut() -> String) {
    let begin = Instant::now();
    let answer = call();
    let first = begin.elapsed();
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let begin = Instant::now();
            call();
            begin.elapsed()
        })
        .collect();
    times.sort();
    let answer: String = answer.chars().take(60).collect();
    eprintln!("{name:24} first {first:10.1?}  median {:10.1?}  worst {:10.1?}  {answer}", times[25], times[49]);
}

fn call_times(path: &std::ffi::OsStr) {
    let begin = Instant::now();
    let library = Library::start(path).expect("the library starts");
    eprintln!("init {:?}, driver {:?}", begin.elapsed(), library.nvml().sys_driver_version());
    let gpu = library.handle(0).expect("GPU 0");
    let device = library.device(gpu);
    let place = MemoryLocation::Device;
    time("count", || format!("{:?}", library.nvml().device_count()));
    time("handle", || format!("{:?}", library.handle(0).is_ok()));
    time("uuid", || format!("{:?}", device.uuid().map(|uuid| uuid.len())));
    time("utilization", || format!("{:?}", device.utilization_rates()));
    time("memory", || format!("{:?}", library.memory(gpu)));
    time("temperature", || format!("{:?}", device.temperature(TemperatureSensor::Gpu)));
    time("fields", || format!("{:?}", library.fields(gpu)));
    eprintln!("{:?}", library.fields(gpu));
    time("power usage", || format!("{:?}", device.power_usage()));
    time("power limit", || format!("{:?}", device.enforced_power_limit()));
    time("energy", || format!("{:?}", device.total_energy_consumption()));
    time("SM clock", || format!("{:?}", device.clock_info(Clock::SM)));
    time("memory errors", || {
        format!("{:?}", device.memory_error_counter(MemoryError::Corrected, EccCounter::Volatile, place))
    });
    time("fan", || format!("{:?}", device.fan_speed(0)));
    time("encoder", || format!("{:?}", device.encoder_utilization()));
    time("decoder", || format!("{:?}", device.decoder_utilization()));
    time("throttle", || format!("{:?}", device.current_throttle_reasons()));
    time("compute processes", || format!("{:?}", library.processes(gpu, users::Who::Compute)));
    time("graphics processes", || format!("{:?}", library.processes(gpu, users::Who::Graphics)));
    time("shared processes", || format!("{:?}", library.processes(gpu, users::Who::Shared)));
    time("shares", || format!("{:?}", library.shares(gpu, 0)));
    time("link generation", || format!("{:?}", device.current_pcie_link_gen()));
    time("MIG mode", || format!("{:?}", device.mig_mode()));
    time("performance state", || format!("{:?}", library.performance_state(gpu)));
    time("persistence mode", || format!("{:?}", library.persistence_mode(gpu)));
    time("PCIe replays", || format!("{:?}", device.pcie_replay_counter()));
    time("remapped rows", || format!("{:?}", library.remapped_rows(gpu)));
    time("violation, power", || format!("{:?}", library.violation(gpu, 0)));
    time("violation, heat", || format!("{:?}", library.violation(gpu, 1)));
    time("all NVLinks", || format!("{:?}", library.nvlinks(gpu)));
    let links: Vec<u32> = library.nvlinks(gpu).unwrap_or_default().iter().map(|(link, _)| *link).collect();
    time("all NVLinks' errors", || format!("{:?}", library.nvlink_errors(gpu, &links)));
    eprintln!("profiling counters: {:?}", device.gpm_support());
    if let Ok(sample) = library.sample() {
        time("profiling sample", || format!("{:?}", library.take(gpu, None, sample)));
    }
}

fn asked(query: &str, path: &std::path::Path) -> Option<f64> {
    let args = [format!("--query-gpu={query}"), "--format=csv,noheader,nounits".into(), "--id=0".into()];
    let output = exec::run(path, &args, &RunLimits::within(Duration::from_secs(20))).ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

#[test]
#[ignore = "needs a GPU of NVIDIA's and its driver"]
fn real_nvml() {
    let path = crate::read::dylib::name(None, "libnvidia-ml.so.1");
    call_times(&path);
    let mut part = open(&Options::default(), &Roots::default()).map_err(|e| e.reason).expect("it opens").remove(0);
    let mut out = Out::default();
    let start = Instant::now();
    for tick in 0..5u64 {
        // The rates and the profiling counters need time between ticks.
        std::thread::sleep(Duration::from_secs(tick).saturating_sub(start.elapsed()));
        out.begin(start.elapsed());
        let begin = Instant::now();
        let result = part.collector.collect(&mut out);
        eprintln!("tick {tick}: {:?} {result:?}", begin.elapsed());
    }
    let present: BTreeMap<String, f64> = out.present().into_iter().collect();
    present.iter().for_each(|(tag, value)| eprintln!("{tag:44} {value}"));
    let tool = exec::find(&["nvidia-smi"], smi::DIRS, None).map_err(|e| e.reason).expect("nvidia-smi is there");
    let mut faults = Vec::new();
    for (query, name, factor, absolute, share) in SAME {
        let said = asked(query, &tool).map(|value| value * factor);
        let read = present.get(&format!("gpu.0.{name}")).copied();
        eprintln!("{name:28} read {read:?}, nvidia-smi {said:?}");
        match (read, said) {
            (Some(read), Some(said)) if (read - said).abs() > absolute + share * said.abs() => {
                faults.push(format!("{name}: {read} where nvidia-smi says {said}"));
            }
            (None, Some(said)) => faults.push(format!("{name}: nothing where nvidia-smi says {said}")),
            _ => {}
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
