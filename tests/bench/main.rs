//! `cargo xtask bench`: a table of figure, goal, and the peer's figure where there is one.
//!
//! Machines are shared and noisy, so figures are CPU time, counts, bytes and paired ratios, never bare wall time. What a
//! figure was measured on stands beside it. `--record SECONDS` first records this machine at 1 Hz (procfs and our own
//! series); the recording stays in `target/bench` and later runs use it.

mod codec;
mod cost;
mod gpus;
mod page;
mod record;
mod remote;
mod scrape;
mod table;

use std::path::PathBuf;
use table::Table;

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "feed") {
        return cost::fed(&args[1..]);
    }
    let (mut seconds, mut redraw) = (None, None);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match (arg.as_str(), rest.next()) {
            ("--record", Some(n)) if n.parse::<usize>().is_ok() => seconds = n.parse().ok(),
            ("--redraw", Some(folder)) => redraw = Some(PathBuf::from(folder)),
            _ => {
                eprintln!("usage: cargo xtask bench [-- --record SECONDS]");
                return std::process::ExitCode::from(2);
            }
        }
    }
    let folder = PathBuf::from("target/bench");
    let mut table = Table::default();
    let recorded = record::recordings(&folder, seconds);
    let (procfs, own) = match recorded {
        Ok(recordings) => recordings,
        Err(error) => {
            eprintln!("cannot record: {error}");
            return std::process::ExitCode::FAILURE;
        }
    };
    codec::measure(&mut table, &procfs, &own);
    cost::measure(&mut table, &own, &folder);
    remote::measure(&mut table, &procfs);
    scrape::measure(&mut table);
    gpus::measure(&mut table);
    page::measure(&mut table, redraw.as_deref());
    table.print();
    std::process::ExitCode::SUCCESS
}
