//! Measures the crate on traces whose truth is known: machines, jobs and faults are simulated, their samples are handed
//! to the crate as a server would, and what it finds is compared with what was done.
//!
//! `cargo run --release -p watchglass-insight --example measure -- --help` names what it takes.

mod card;
mod job;
mod judge;
mod random;
mod score;
mod set;
mod world;
mod write;

use judge::Judge;
use score::{Outcome, rate, wilson};
use set::Class;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

const HELP: &str = "\
measure [FLAGS]

  --seeds N     traces (default 480)
  --odd         odd seeds, for tuning; the default is even ones, on which nothing is tuned
  --hours H     length of a trace, where its kind does not say another
  --kind K      only traces whose name holds K
  --alter P     constants of the simulation moved by up to P percent
  --one SEED    one trace: its labels and findings
  --quick       120 traces
  --write DIR   each trace as a file for `watchglass import`, and labels.json, in place of the score
";

struct Flags {
    seeds: usize,
    odd: bool,
    hours: Option<f64>,
    kind: Option<String>,
    alter: f64,
    one: Option<u64>,
    write: Option<PathBuf>,
}

fn flags() -> Result<Flags, String> {
    let mut flags = Flags { seeds: 480, odd: false, hours: None, kind: None, alter: 0.0, one: None, write: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        let number = |text: String| text.parse::<f64>().map_err(|e| format!("{text}: {e}"));
        match arg.as_str() {
            "--seeds" => flags.seeds = number(value()?)? as usize,
            "--quick" => flags.seeds = 120,
            "--odd" => flags.odd = true,
            "--hours" => flags.hours = Some(number(value()?)?),
            "--kind" => flags.kind = Some(value()?),
            "--alter" => flags.alter = number(value()?)? / 100.0,
            "--one" => flags.one = Some(number(value()?)? as u64),
            "--write" => flags.write = Some(PathBuf::from(value()?)),
            other => return Err(format!("{other} is not known\n\n{HELP}")),
        }
    }
    Ok(flags)
}

fn trace(seed: u64, flags: &Flags) -> (world::World, Judge) {
    let mut world = set::world(seed, flags.hours, flags.alter);
    let mut judge = Judge::new(world.hosts.len() > 1);
    world.run(&mut judge);
    (world, judge)
}

fn main() -> ExitCode {
    let flags = match flags() {
        Ok(flags) => flags,
        Err(sentence) => {
            eprintln!("{sentence}");
            return ExitCode::from(2);
        }
    };
    let mut text = String::new();
    if let Some(folder) = &flags.write {
        if let Err(error) = files(folder, &flags) {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
    } else if let Some(seed) = flags.one {
        one(seed, &flags, &mut text);
    } else {
        let outcomes = all(&flags);
        summary(&outcomes, &mut text);
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn seeds(flags: &Flags) -> Vec<u64> {
    if let Some(one) = flags.one {
        return vec![one];
    }
    (0..flags.seeds as u64)
        .map(|n| 2 * n + u64::from(flags.odd))
        .filter(|&seed| flags.kind.as_ref().is_none_or(|kind| set::plan(seed).1.contains(kind.as_str())))
        .collect()
}

fn files(folder: &Path, flags: &Flags) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut labels = Vec::new();
    for seed in seeds(flags) {
        let mut world = set::world(seed, flags.hours, flags.alter);
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
    *text += &format!("seed {seed}: {} ({:?}), {:.0} s, {:.1} GPU-hours\n", world.name, outcome.class, world.seconds, outcome.gpu_hours);
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
            f.severity.word(),
            f.since - world::BEGIN / 1000,
            score::told_at(found),
            f.until.map(|t| t - world::BEGIN / 1000),
            f.because,
            f.sentence
        );
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| values[values.len() / 2])
}

fn seconds(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| if v.is_finite() { format!("{v:.0} s") } else { "never".into() })
}

fn summary(outcomes: &[Outcome], text: &mut String) {
    let hours: f64 = outcomes.iter().map(|o| o.gpu_hours).sum();
    let of = |class| outcomes.iter().filter(|o| o.class == class).count();
    *text += &format!(
        "{} traces ({} with faults, {} hard, {} healthy), {hours:.0} GPU-hours\n\n",
        outcomes.len(),
        of(Class::Fault),
        of(Class::Hard),
        of(Class::Healthy)
    );
    let labels: Vec<_> = outcomes.iter().flat_map(|o| &o.told).filter(|t| !t.label.optional).collect();
    let mut kinds: BTreeMap<String, Vec<&score::Told>> = BTreeMap::new();
    for told in &labels {
        let part = if told.label.mild { "mild" } else { "all strong" };
        kinds.entry(format!("{} {part}", told.label.kind)).or_default().push(told);
        kinds.entry(format!("{} {part}: {}", told.label.kind, told.label.name)).or_default().push(told);
    }
    *text += "label | cases | told | recall (95 %) | device right | to tell: median, worst | to clear: median, worst | repeats\n";
    for (kind, of) in &kinds {
        let told: Vec<_> = of.iter().filter(|t| t.after.is_some()).collect();
        let (recall, low, high) = wilson(told.len(), of.len());
        let mut after: Vec<f64> = told.iter().filter_map(|t| t.after).collect();
        let mut cleared: Vec<f64> = told.iter().filter_map(|t| t.cleared).collect();
        let devices: Vec<bool> = of.iter().filter_map(|t| t.device).collect();
        let claims: usize = told.iter().map(|t| t.claims).sum();
        *text += &format!(
            "{kind} | {} | {} | {recall:.2} ({low:.2}-{high:.2}) | {}/{} | {}, {} | {}, {} | {:.2}\n",
            of.len(),
            told.len(),
            devices.iter().filter(|d| **d).count(),
            devices.len(),
            seconds(median(&mut after)),
            seconds(after.last().copied()),
            seconds(median(&mut cleared)),
            seconds(cleared.last().copied()),
            claims as f64 / told.len().max(1) as f64
        );
    }
    *text += "\nrule | claims | right | precision (95 %) | false per 1,000 GPU-hours\n";
    let mut rules: BTreeMap<&str, Vec<&score::Claim>> = BTreeMap::new();
    for claim in outcomes.iter().flat_map(|o| &o.claims) {
        rules.entry(&claim.rule).or_default().push(claim);
    }
    for (rule, claims) in &rules {
        let right = claims.iter().filter(|c| c.right).count();
        let (p, low, high) = wilson(right, claims.len());
        let (per, from, to) = rate(claims.len() - right, hours);
        *text += &format!("{rule} | {} | {right} | {p:.2} ({low:.2}-{high:.2}) | {per:.2} ({from:.2}-{to:.2})\n", claims.len());
    }
    let claims: Vec<_> = outcomes.iter().flat_map(|o| &o.claims).collect();
    let right = claims.iter().filter(|c| c.right).count();
    let told = labels.iter().filter(|t| t.after.is_some()).count();
    let (p, pl, ph) = wilson(right, claims.len());
    let (r, rl, rh) = wilson(told, labels.len());
    *text += &format!("\noverall: precision {p:.3} ({pl:.3}-{ph:.3}) of {}, recall {r:.3} ({rl:.3}-{rh:.3}) of {}\n\nmissed:\n", claims.len(), labels.len());
    for outcome in outcomes {
        for told in outcome.told.iter().filter(|t| t.after.is_none() && !t.label.optional) {
            *text += &format!("  seed {}: {} {} ({}) at {:.0}\n", outcome.seed, outcome.name, told.label.kind, told.label.name, told.label.onset);
        }
    }
    *text += "\nfalse:\n";
    for outcome in outcomes {
        for claim in outcome.claims.iter().filter(|c| !c.right) {
            *text += &format!("  seed {} {}: {} {} at {:.0}: {}\n", outcome.seed, outcome.name, claim.rule, claim.worst.word(), claim.at, claim.sentence);
        }
    }
}
