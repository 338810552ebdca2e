//! Memory use of Apple's GPU, and the number of restarts by its driver. Source: the statistics of the kernel's
//! IOAccelerator, printed by `ioreg`, without root.
//!
//! W&B's `powerPercent` is not provided: Apple publishes no maximum power, and W&B divided by 16.5 W on every chip.

use crate::read::exec::{self, RunLimits};
use crate::{CollectError, Collector, Out, Part};
use shared::catalog::gpu;
use std::path::PathBuf;
use std::time::Duration;

/// Path of the tool on macOS.
const TOOL: &str = "/usr/sbin/ioreg";
const ARGS: &[&str] = &["-r", "-d", "1", "-w", "0", "-c", "IOAccelerator"];

const RUN_TIMEOUT: Duration = Duration::from_secs(4);

/// Minimum time between two runs.
const RUN_INTERVAL: Duration = Duration::from_secs(5);

/// The part of the collector that reads these values. `memory`: the machine's memory, bytes.
pub(super) fn part(gpu: u32, memory: Option<u64>) -> Part {
    let accelerator = Accelerator { path: TOOL.into(), gpu, memory, next: Duration::ZERO };
    let tried = vec![format!("{TOOL} {}", ARGS.join(" "))];
    Part { name: "GPU memory".into(), tried, collector: Box::new(accelerator) }
}

struct Accelerator {
    path: PathBuf,
    gpu: u32,
    memory: Option<u64>,
    /// Earliest time of the next run.
    next: Duration,
}

impl Collector for Accelerator {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if out.at() < self.next {
            return Ok(());
        }
        self.next = out.at() + RUN_INTERVAL;
        let output = exec::run(&self.path, ARGS, &RunLimits::within(RUN_TIMEOUT))
            .map_err(|error| CollectError::failed(error.to_string()))?;
        match Statistics::read(&String::from_utf8_lossy(&output.stdout)) {
            Some(statistics) => {
                statistics.put(self.gpu, self.memory, out);
                Ok(())
            }
            None => Err(CollectError::failed(output.failure_message(&self.path))),
        }
    }
}

/// Statistics of the driver; values that it does not report are absent.
#[derive(Debug, Default, PartialEq, Eq)]
struct Statistics {
    /// Bytes of the machine's memory that the GPU uses.
    used: Option<u64>,
    recoveries: Option<u64>,
}

impl Statistics {
    /// Statistics of the first accelerator; none if the text has no complete set.
    fn read(text: &str) -> Option<Statistics> {
        let (_, rest) = text.split_once("\"PerformanceStatistics\" = {")?;
        let (all, _) = rest.split_once('}')?;
        let value = |wanted: &str| {
            let mut pairs = all.split(',').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| key.trim().trim_matches('"') == wanted)?.1.trim().parse().ok()
        };
        Some(Statistics { used: value("In use system memory"), recoveries: value("recoveryCount") })
    }

    fn put(&self, i: u32, memory: Option<u64>, out: &mut Out) {
        // More than the machine's memory is impossible, so such a value is dropped.
        let used = self.used.filter(|used| memory.is_none_or(|memory| *used <= memory)).map(|used| used as f64);
        out.put_some(&gpu::MEMORY_ALLOCATED_BYTES, i, used);
        let share = used.zip(memory.filter(|memory| *memory > 0)).map(|(used, memory)| 100.0 * used / memory as f64);
        out.put_rounded(&gpu::MEMORY_ALLOCATED, i, share);
        out.put_some(&gpu::RECOVERIES, i, self.recoveries.map(|count| count as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;

    const TEXT: &str = "+-o AGXAcceleratorX  <class AGXAcceleratorX, id 0x1, registered, matched, active>\n    {\n      \
        \"model\" = \"Apple X\"\n      \"PerformanceStatistics\" = {\"In use system memory (driver)\"=0,\"Alloc system \
        memory\"=4294967296,\"Tiler Utilization %\"=3,\"recoveryCount\"=2,\"Device Utilization %\"=7,\"In use system \
        memory\"=1073741824}\n      \"gpu-core-count\" = 8\n    }\n";

    fn present(text: &str, memory: Option<u64>) -> Vec<(String, f64)> {
        recordings::present(|out| {
            if let Some(statistics) = Statistics::read(text) {
                statistics.put(0, memory, out);
            }
        })
    }

    #[test]
    fn memory_in_use_and_its_share_are_read() {
        let wanted = [
            ("gpu.0.memoryAllocated", 12.5),
            ("gpu.0.memoryAllocatedBytes", 1073741824.0),
            ("gpu.0.recoveryCount", 2.0),
        ];
        let wanted = wanted.map(|(tag, value)| (tag.to_string(), value));
        assert_eq!(present(TEXT, Some(8 << 30)), wanted);
        assert_eq!(present(TEXT, None), wanted[1..], "without the whole there is no share");
        assert_eq!(present(TEXT, Some(1 << 20)), wanted[2..], "more than there is cannot be");
    }

    #[test]
    fn a_text_that_is_cut_or_another_gives_nothing_new() {
        let whole = present(TEXT, Some(8 << 30));
        for end in 0..TEXT.len() {
            assert!(present(&TEXT[..end], Some(8 << 30)).iter().all(|value| whole.contains(value)), "cut at {end}");
        }
        for text in ["", "\"PerformanceStatistics\" = {}", "ioreg: command not found"] {
            assert_eq!(present(text, Some(1)), []);
        }
        assert_eq!(Statistics::read(&TEXT.replace("=1073741824", "=-5")).unwrap().used, None);
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn where_the_tool_is_not_the_part_says_so_and_goes_on() {
        let mut part = part(0, None);
        assert_eq!((part.name.as_str(), part.tried.len()), ("GPU memory", 1));
        let error = part.collector.collect(&mut Out::default()).unwrap_err();
        assert!(error.reason.contains(TOOL) && !error.partial, "{}", error.reason);
    }

    #[cfg(unix)]
    #[test]
    fn the_tool_is_run_at_most_every_five_seconds_and_its_words_are_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = fake_tool::place(dir.path(), "ioreg", "say no such class");
        let mut collector = Accelerator { path: path.clone(), gpu: 0, memory: None, next: Duration::ZERO };
        let mut out = Out::default();
        out.begin(Duration::from_secs(1));
        assert!(collector.collect(&mut out).unwrap_err().reason.ends_with("said: no such class"));
        out.begin(Duration::from_secs(5));
        assert_eq!(collector.collect(&mut out), Ok(()));
        assert_eq!(fake_tool::starts(&path).len(), 1);
    }
}
