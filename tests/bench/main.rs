//! `cargo xtask bench`: prints a table with each figure, its goal, and the figure of a peer if there is one.
//!
//! Machines are shared and noisy. So figures are CPU time, counts, bytes and ratios of pairs, and never only wall time.
//! Each row names the setup of its measurement. `--record SECONDS` first records this machine at 1 Hz (procfs and our
//! own series). The recording stays in `target/bench`, and later runs use it. `--machines N` sets the number of
//! machines of a cluster.

mod accounts;
mod agent;
mod alerts;
#[cfg(target_os = "linux")]
mod cluster;
mod codec;
mod cost;
mod findings;
mod gpus;
mod history;
mod hub;
mod large;
mod links;
mod notebook;
mod page;
mod record;
mod remote_write;
mod runs;
mod scrape;
mod table;
mod top;
mod viewers;
mod whole;

use std::path::PathBuf;
use table::Table;

/// The parts that `--only` accepts.
const PARTS: [&str; 19] = [
    "codec", "history", "fleet", "hub", "links", "accounts", "cost", "top", "remote", "scrape", "gpus", "viewers",
    "page", "whole", "findings", "alerts", "cluster", "notebook", "runs",
];

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "feed") {
        return cost::fed(&args[1..]);
    }
    if args.first().is_some_and(|a| a == "hub") {
        return hub::hub();
    }
    if args.first().is_some_and(|a| a == "agents") {
        return links::agents(&args[1..]);
    }
    if args.first().is_some_and(|a| a == "live") {
        return large::live(&args[1..]);
    }
    if args.first().is_some_and(|a| a == "crowd") {
        return viewers::crowd(&args[1..]);
    }
    if args.first().is_some_and(|a| a == "viewers") {
        return viewers::watch(&args[1..]);
    }
    let (mut seconds, mut redraw, mut only, mut machines) = (None, None, None, None);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match (arg.as_str(), rest.next()) {
            ("--record", Some(n)) if n.parse::<usize>().is_ok() => seconds = n.parse().ok(),
            ("--redraw", Some(folder)) => redraw = Some(PathBuf::from(folder)),
            ("--machines", Some(n)) if n.parse::<usize>().is_ok() => machines = n.parse().ok(),
            ("--only", Some(part)) if PARTS.contains(&part.as_str()) => only = Some(part),
            _ => {
                eprintln!(
                    "usage: cargo xtask bench [-- [--record SECONDS] [--machines N] [--only {}]]",
                    PARTS.join("|")
                );
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
    for part in PARTS.into_iter().filter(|part| only.is_none_or(|only| only == part)) {
        match part {
            "codec" => codec::measure(&mut table, &procfs, &own),
            "history" => {
                if history::measure(&mut table, &procfs) {
                    large::measure(&mut table, &procfs);
                }
            }
            // A run of all parts measures the fleet with the history.
            "fleet" if only.is_some() => large::fleet(&mut table, &procfs),
            "fleet" => {}
            "hub" => hub::measure(&mut table),
            "links" => {
                links::measure(&mut table, &procfs);
                agent::measure(&mut table, &procfs);
            }
            "accounts" => accounts::measure(&mut table),
            "cost" => cost::measure(&mut table, &own, &folder),
            "remote" => remote_write::measure(&mut table, &procfs),
            "scrape" => scrape::measure(&mut table),
            "gpus" => gpus::measure(&mut table),
            "findings" => findings::measure(&mut table),
            "alerts" => alerts::measure(&mut table),
            #[cfg(target_os = "linux")]
            "cluster" => cluster::measure(&mut table, machines),
            #[cfg(not(target_os = "linux"))]
            "cluster" => drop(machines),
            "notebook" => notebook::measure(&mut table),
            "runs" => runs::measure(&mut table),
            "top" => top::measure(&mut table),
            "viewers" => viewers::measure(&mut table),
            "page" => page::measure(&mut table, redraw.as_deref()),
            _ => whole::measure(&mut table, redraw.as_deref()),
        }
    }
    table.print();
    std::process::ExitCode::SUCCESS
}
