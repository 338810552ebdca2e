//! Prints the values of every collector on this machine: the second of two readings one second apart.

use collectors::{COLLECTORS, Options, Out, Roots};
use std::time::{Duration, Instant};

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn main() {
    let pids = std::env::args().skip(1).filter_map(|pid| pid.parse().ok()).collect();
    let options = Options { pids, ..Options::default() };
    let start = Instant::now();
    let mut open = Vec::new();
    for entry in COLLECTORS {
        match entry.open_here(&options, &Roots::default()) {
            Ok(parts) => open.extend(parts.into_iter().map(|part| (entry.name, part, Out::default()))),
            Err(error) => println!("{}: {error:?}", entry.name),
        }
    }
    for reading in 0..2 {
        for (name, part, out) in &mut open {
            out.begin(start.elapsed());
            if let Err(error) = part.collector.collect(out) {
                println!("{name} {}: {error:?}", part.name);
            }
        }
        if reading == 0 {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    for (name, _, out) in &open {
        for (tag, value) in out.present() {
            println!("{name:12} {tag:40} {value}");
        }
    }
    println!("{:?} {:?}", collectors::host_name(), collectors::facts(&Roots::default()));
}
