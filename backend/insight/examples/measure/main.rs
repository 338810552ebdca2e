//! Measures the crate on traces with known truth. It simulates machines, jobs and faults, and passes their
//! samples to the crate as a server does. Then it compares the findings with the simulated faults.
//!
//! `cargo run --release -p watchglass-insight --example measure -- --help` lists its arguments.

mod alike;
mod card;
mod faults;
mod job;
mod judge;
mod maker;
mod random;
mod report;
mod score;
mod set;
mod world;
mod write;

use judge::Judge;
use report::Report;
use score::Outcome;
use set::Class;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

const HELP: &str = "\
measure [FLAGS]

  --seeds N     traces (default 1440)
  --odd         odd seeds, for tuning; the default is even ones, on which nothing is tuned
  --hours H     length of a trace, where its kind does not say another
  --kind K      only traces whose name holds K
  --alter P     constants of the simulation moved by up to P percent
  --list        the names of the traces
  --one SEED    one trace: its labels and findings
  --quick       400 traces, of all kinds; below the bar is then what is so with 95 % certainty, for few traces prove little
  --well        only traces without a fault
  --machines N  jobs that run on several machines run on this many
  --from N      the first so many traces are left out
  --report F    the report into this file
  --confidence F  what the crate reads of it into this file
  --write DIR   each trace as a file for `watchglass import`, and labels.json, in place of the score
";

/// Traces of the later kinds among those of `--quick`.
const QUICK_MORE: usize = 60;

struct Flags {
    seeds: usize,
    odd: bool,
    hours: Option<f64>,
    kind: Option<String>,
    alter: f64,
    list: bool,
    one: Option<u64>,
    quick: bool,
    well: bool,
    machines: Option<usize>,
    from: usize,
    write: Option<PathBuf>,
    report: Option<PathBuf>,
    confidence: Option<PathBuf>,
}

fn flags() -> Result<Flags, String> {
    let mut flags = Flags {
        seeds: 1440,
        odd: false,
        hours: None,
        kind: None,
        alter: 0.0,
        list: false,
        one: None,
        quick: false,
        well: false,
        machines: None,
        from: 0,
        write: None,
        report: None,
        confidence: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        let number = |text: String| text.parse::<f64>().map_err(|e| format!("{text}: {e}"));
        match arg.as_str() {
            "--seeds" => flags.seeds = number(value()?)? as usize,
            "--quick" => (flags.seeds, flags.quick) = (400, true),
            "--well" => flags.well = true,
            "--machines" => flags.machines = Some(number(value()?)? as usize),
            "--from" => flags.from = number(value()?)? as usize,
            "--list" => flags.list = true,
            "--odd" => flags.odd = true,
            "--hours" => flags.hours = Some(number(value()?)?),
            "--kind" => flags.kind = Some(value()?),
            "--alter" => flags.alter = number(value()?)? / 100.0,
            "--one" => flags.one = Some(number(value()?)? as u64),
            "--write" => flags.write = Some(PathBuf::from(value()?)),
            "--report" => flags.report = Some(PathBuf::from(value()?)),
            "--confidence" => flags.confidence = Some(PathBuf::from(value()?)),
            other => return Err(format!("{other} is not known\n\n{HELP}")),
        }
    }
    Ok(flags)
}

fn trace(seed: u64, flags: &Flags) -> (world::World, Judge) {
    let mut world = set::world(seed, flags.hours, flags.alter, flags.machines);
    let mut judge = Judge::new(world.hosts.len() > 1);
    world.run(&mut judge);
    (world, judge)
}

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--help") {
        return if std::io::stdout().write_all(HELP.as_bytes()).is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let flags = match flags() {
        Ok(flags) => flags,
        Err(sentence) => {
            eprintln!("{sentence}");
            return ExitCode::from(2);
        }
    };
    match run(&flags) {
        Ok(missed) if missed.is_empty() => ExitCode::SUCCESS,
        Ok(missed) => {
            eprintln!("below the bar: {}", missed.join("; "));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Figures that miss the bar.
fn run(flags: &Flags) -> std::io::Result<Vec<String>> {
    if let Some(folder) = &flags.write {
        files(folder, flags)?;
        return Ok(Vec::new());
    }
    let mut out = std::io::stdout();
    if flags.list {
        for seed in seeds(flags) {
            let (class, name) = set::plan(seed);
            writeln!(out, "{seed} {name} ({class:?})")?;
        }
        return Ok(Vec::new());
    }
    if let Some(seed) = flags.one {
        let mut text = String::new();
        one(seed, flags, &mut text);
        out.write_all(text.as_bytes())?;
        return Ok(Vec::new());
    }
    let outcomes = all(flags);
    let report = Report::new(&outcomes);
    let markdown = report.markdown();
    if let Some(file) = &flags.report {
        std::fs::write(file, &markdown)?;
    }
    if let Some(file) = &flags.confidence {
        std::fs::write(file, report.confidence())?;
    }
    writeln!(out, "{markdown}{}", report.seeds())?;
    // The bar applies to all kinds, so a part of the set is not compared with it.
    Ok(if flags.kind.is_some() || flags.well { Vec::new() } else { report.missed(flags.quick) })
}

fn seeds(flags: &Flags) -> Vec<u64> {
    if let Some(one) = flags.one {
        return vec![one];
    }
    let first = if flags.quick { flags.seeds - QUICK_MORE } else { flags.seeds };
    let more = if flags.quick { set::FIRST..set::FIRST + QUICK_MORE as u64 } else { 0..0 };
    let all = (0..).skip(flags.from).take(first).chain(more).map(|n: u64| 2 * n + u64::from(flags.odd));
    let wanted = all.filter(|&seed| {
        let (class, name) = set::plan(seed);
        flags.kind.as_ref().is_none_or(|kind| name.contains(kind.as_str())) && !(flags.well && class == Class::Fault)
    });
    wanted.collect()
}

fn files(folder: &Path, flags: &Flags) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut labels = Vec::new();
    for seed in seeds(flags) {
        let mut world = set::world(seed, flags.hours, flags.alter, flags.machines);
        let name = format!("trace-{seed}.jsonl");
        let mut lines = write::Lines::new(BufWriter::new(File::create(folder.join(&name))?), &world);
        world.run(&mut lines);
        lines.end()?;
        let mut truth = write::truth(seed, &world);
        truth["file"] = name.into();
        labels.push(truth);
    }
    std::fs::write(folder.join("labels.json"), serde_json::to_vec_pretty(&labels)?)
}

fn all(flags: &Flags) -> Vec<Outcome> {
    let seeds = seeds(flags);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let work = || {
        let mut outcomes = Vec::new();
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (world, judge) = trace(seed, flags);
            outcomes.push(score::outcome(seed, &world, &judge.found));
        }
        outcomes
    };
    let mut outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    outcomes.sort_by_key(|outcome| outcome.seed);
    outcomes
}

fn one(seed: u64, flags: &Flags, text: &mut String) {
    let (world, judge) = trace(seed, flags);
    let outcome = score::outcome(seed, &world, &judge.found);
    *text += &format!(
        "seed {seed}: {} ({:?}), {:.0} s, {:.1} GPU-hours\n",
        world.name, outcome.class, world.seconds, outcome.gpu_hours
    );
    for host in &world.hosts {
        let models: Vec<&str> = host.cards.iter().map(|c| c.model.name).collect();
        *text += &format!("  {}: {models:?} {:.0} cores, {:?}\n", host.name, host.cores, host.eyes);
    }
    for job in &world.jobs {
        let r = &job.recipe;
        *text += &format!(
            "  {}: {} members, {:?}, step {:.2} s, exchange {:.2} s of which {:.2} hidden, heavy {:.2}, habits {:?}\n",
            job.name,
            job.members.len(),
            r.shape,
            r.step,
            r.exchange,
            r.hidden,
            r.load.heavy,
            r.habits
        );
    }
    for told in &outcome.told {
        let l = &told.label;
        *text += &format!(
            "  label {} ({}){}{} {:?} from {:.0} to {:.0}: told after {:?}, device {:?}, cleared {:?}, claims {}\n",
            l.kind,
            l.name,
            if l.mild { " mild" } else { "" },
            if l.optional { " optional" } else { "" },
            l.places,
            l.onset,
            l.end,
            told.after,
            told.device,
            told.cleared,
            told.claims
        );
    }
    for found in &judge.found {
        let f = &found.finding;
        *text += &format!(
            "  found {} {} {} since {} told {:.0} until {:?} because {:?}: {}\n",
            f.id,
            f.rule,
            f.severity.as_str(),
            f.since - world::BEGIN / 1000,
            score::told_at(found),
            f.until.map(|t| t - world::BEGIN / 1000),
            f.because,
            f.sentence
        );
    }
}
