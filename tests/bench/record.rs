//! Makes recordings of this machine at 1 Hz: the numbers of several procfs files, and our own series.

use collectors::{COLLECTORS, Options, Out, Roots};
use shared::series::Steps;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Ticks over a list of series.
#[derive(Default)]
pub struct Recording {
    /// Steps for each unit, by series.
    pub steps: Vec<Steps>,
    /// Values by tick, then by series; NaN is absent. Later ticks may have more series.
    pub ticks: Vec<Vec<f64>>,
}

const FILES: &[&str] = &[
    "stat",
    "meminfo",
    "vmstat",
    "softirqs",
    "diskstats",
    "net/dev",
    "net/snmp",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
    "loadavg",
];
/// Number of ticks of a recording without `--record`. They are enough for the bytes of a tick, but too few for columns.
const SHORT_TICKS: usize = 120;
/// Number of ticks after which a column is sealed.
pub const COLUMN: usize = (stream::store::QUARTER / 1_000) as usize;
/// Maximum number of procfs series in a recording; the goals are stated for about 500.
const MAX_SAMPLES: usize = 500;

/// Loads the recordings of a folder. They are made first when there are none, or when `seconds` is given.
pub fn recordings(folder: &Path, seconds: Option<usize>) -> io::Result<(Recording, Recording)> {
    fs::create_dir_all(folder)?;
    let paths = [folder.join("procfs.recording"), folder.join("own.recording")];
    if seconds.is_none()
        && let (Ok(procfs), Ok(own)) = (load(&paths[0]), load(&paths[1]))
    {
        return Ok((procfs, own));
    }
    let seconds = seconds.unwrap_or(SHORT_TICKS);
    eprintln!("recording this machine for {seconds} s");
    let (procfs, own) = record(seconds);
    save(&paths[0], &procfs)?;
    save(&paths[1], &own)?;
    Ok((procfs, own))
}

fn record(seconds: usize) -> (Recording, Recording) {
    let (mut procfs, mut own) = (Recording::default(), Recording::default());
    let options = Options::default();
    let mut parts: Vec<_> = COLLECTORS
        .iter()
        .filter_map(|entry| entry.open_here(&options, &Roots::default()).ok())
        .flatten()
        .map(|part| (part.collector, Out::default(), Vec::<usize>::new()))
        .collect();
    let start = Instant::now();
    for second in 0..seconds {
        let due = start + Duration::from_secs(second as u64);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let mut values = Vec::new();
        for file in FILES {
            let text = fs::read_to_string(Path::new("/proc").join(file)).unwrap_or_default();
            for token in text.split(|c: char| c.is_whitespace() || c == '=') {
                let Ok(value) = token.parse::<f64>() else { continue };
                if values.len() == MAX_SAMPLES {
                    break;
                }
                if procfs.steps.len() == values.len() {
                    procfs.steps.push(if token.contains('.') { 100.0 } else { 1.0 });
                }
                values.push(value);
            }
        }
        procfs.ticks.push(values);
        let mut row = vec![f64::NAN; own.steps.len()];
        for (collector, out, ids) in &mut parts {
            out.begin(start.elapsed());
            // A failed reading is absent, as in the sampler.
            let _ = collector.collect(out);
            for (slot, def, _) in out.news() {
                ids.resize(ids.len().max(slot + 1), 0);
                ids[slot] = own.steps.len();
                own.steps.push(def.steps);
                row.push(f64::NAN);
            }
            ids.iter().zip(out.values()).for_each(|(&id, &v)| row[id] = v);
        }
        own.ticks.push(row);
    }
    (procfs, own)
}

fn save(path: &Path, recording: &Recording) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut put = |n: u64| bytes.extend(n.to_le_bytes());
    put(recording.steps.len() as u64);
    recording.steps.iter().for_each(|s| put(s.to_bits()));
    for tick in &recording.ticks {
        for series in 0..recording.steps.len() {
            put(tick.get(series).copied().unwrap_or(f64::NAN).to_bits());
        }
    }
    fs::write(path, bytes)
}

fn load(path: &Path) -> io::Result<Recording> {
    let bytes = fs::read(path)?;
    let mut words = bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().expect("chunks of eight")));
    let n = words.next().unwrap_or(0) as usize;
    let steps: Vec<Steps> = words.by_ref().take(n).map(f64::from_bits).collect();
    let values: Vec<f64> = words.map(f64::from_bits).collect();
    let ticks = if n == 0 { Vec::new() } else { values.chunks_exact(n).map(<[f64]>::to_vec).collect() };
    Ok(Recording { steps, ticks })
}
