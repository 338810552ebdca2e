//! The set of traces: healthy ones, faults, and activity that only looks like a fault.

use super::faults::Kind;
use super::job::{HabitKind, Memory};
use super::maker::Maker;
use super::random::{Altered, Random};
use super::world::World;

/// Class of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Fault,
    Hard,
    Healthy,
}

type Make = fn(&mut Maker);

/// Name, relative frequency, and constructor of each.
const FAULTS: &[(&str, usize, Make)] = &[
    ("hang.spin", 3, |m| m.hang(Kind::Spin)),
    ("straggler", 4, |m| m.straggler(false)),
    ("ecc.uncorrected", 4, Maker::uncorrected),
    ("starvation", 3, |m| m.starvation(false)),
    ("throttle.heat", 3, |m| m.heat(false)),
    ("lost_gpu", 3, Maker::lost),
    ("pcie.lanes", 3, |m| m.lanes(false)),
    ("gpu_memory", 2, |m| m.leak(false)),
    ("straggler.mild", 3, |m| m.straggler(true)),
    ("hang.odd", 3, |m| m.hang(Kind::Odd)),
    ("ecc.corrected", 2, |m| m.corrected(false)),
    ("host_memory", 2, |m| m.host_leak(false)),
    ("idle", 2, Maker::held),
    ("net", 2, Maker::net),
    ("nvlink", 2, Maker::fallback),
    ("disk_full", 2, Maker::disk_full),
    ("host_lost", 2, Maker::host_lost),
    ("hang.idle", 2, |m| m.hang(Kind::Idle)),
    ("throttle.power", 2, |m| m.power(false)),
    ("starvation.mild", 2, |m| m.starvation(true)),
    ("throttle.heat.mild", 1, |m| m.heat(true)),
    ("pcie.boot", 2, |m| m.lanes(true)),
    ("gpu_memory.mild", 1, |m| m.leak(true)),
    ("ring.mild", 1, Maker::ring),
    ("oom", 2, Maker::oom),
    ("ecc.corrected.mild", 1, |m| m.corrected(true)),
    ("host_memory.mild", 1, |m| m.host_leak(true)),
    ("throttle.power.mild", 1, |m| m.power(true)),
    ("pcie.gen", 1, Maker::r#gen),
    ("port", 2, Maker::port),
    ("unused.reserved", 2, Maker::reserved),
    ("hang.coarse", 1, |m| {
        m.read_rarely();
        m.hang(Kind::Spin);
    }),
    ("throttle.coarse", 1, |m| {
        m.read_rarely();
        m.heat(false);
    }),
];

const HARD: &[(&str, usize, Make)] = &[
    ("save", 2, |m| m.habit(HabitKind::Save, 20.0, 300.0)),
    ("save one", 2, |m| m.habit(HabitKind::SaveOne, 20.0, 240.0)),
    ("save network", 1, |m| m.habit(HabitKind::SaveNetwork, 20.0, 240.0)),
    ("save beside", 1, |m| m.habit(HabitKind::SaveBeside, 30.0, 120.0)),
    ("eval all", 1, |m| m.habit(HabitKind::EvalAll, 60.0, 400.0)),
    ("eval one", 2, |m| m.habit(HabitKind::EvalOne, 60.0, 300.0)),
    ("eval cpu", 1, |m| m.habit(HabitKind::EvalCpu, 60.0, 280.0)),
    ("recompile", 1, |m| m.habit(HabitKind::Recompile, 20.0, 110.0)),
    ("memory flat", 1, |m| m.memory(|r| Memory::Flat(r.between(0.93, 0.978)))),
    ("memory saw", 2, |m| {
        m.memory(|r| {
            let (low, period) = (r.between(0.4, 0.7), r.scaled(60.0, 900.0));
            if r.chance(0.35) {
                // A program that buffers data to process it together knows how much fits.
                Memory::Saw { low, high: r.between(0.75, 0.93), period }
            } else {
                Memory::Records { low, high: r.between(0.85, 0.97), period }
            }
        })
    }),
    ("memory steps", 1, |m| {
        m.memory(|r| Memory::Steps {
            first: r.between(0.4, 0.7),
            last: r.between(0.9, 0.97),
            every: r.between(60.0, 400.0),
            count: 5.0,
        })
    }),
    ("memory plateau", 2, |m| {
        m.memory(|r| Memory::Toward { first: 0.4, last: r.between(0.86, 0.965), tau: r.between(120.0, 900.0) })
    }),
    ("turns", 2, Maker::turns),
    ("pipeline", 2, Maker::pipeline),
    ("rollout", 2, Maker::rollout),
    ("long steps", 1, Maker::long_steps),
    ("inference", 2, Maker::inference),
    ("notebook", 2, Maker::notebook),
    ("prepare", 1, Maker::prepare),
    ("hot", 2, Maker::hot),
    ("capped fleet", 2, Maker::capped),
    ("two jobs", 1, Maker::two_jobs),
    ("two models", 1, Maker::two_models),
    ("unused", 1, Maker::unused),
    ("jobs in a row", 2, Maker::in_a_row),
    ("crash", 1, Maker::crash),
    ("programs' xids", 1, Maker::xids),
    ("silent collector", 1, Maker::blind),
    ("host memory plateau", 1, Maker::host_plateau),
    ("uneven", 1, Maker::uneven),
    ("few corrected errors", 1, Maker::few_corrected),
    ("ended cleanly", 1, Maker::goodbye),
    ("busy disk", 1, Maker::busy_disk),
    ("busy cpu", 1, Maker::busy_cpu),
    ("agent restarted", 1, Maker::restarted),
    ("brief throttling", 1, Maker::brief_heat),
    ("work changes", 2, Maker::work_changes),
    ("experts", 1, Maker::experts),
    ("lone loader", 1, Maker::lone_loader),
    ("eval elsewhere", 3, |m| m.elsewhere(HabitKind::EvalOne, 200.0, 1500.0)),
    ("save elsewhere", 2, |m| m.elsewhere(HabitKind::SaveOne, 200.0, 900.0)),
    ("reserved and used", 1, Maker::reserved_and_used),
    ("coarse samples", 1, |m| {
        m.read_rarely();
        m.healthy();
    }),
];

/// Kinds of the traces after the first [`FIRST`]: so those stay what they were.
const MORE_FAULTS: &[(&str, usize, Make)] = &[
    ("straggler.coarse", 1, |m| {
        m.read_rarely();
        m.straggler(false);
    }),
    ("gpu_memory.coarse", 1, |m| {
        m.read_rarely();
        m.leak(false);
    }),
    ("hang.dcgm", 1, |m| {
        m.read_by_dcgm();
        m.hang(Kind::Spin);
    }),
    ("straggler.dcgm", 1, |m| {
        m.read_by_dcgm();
        m.straggler(false);
    }),
    ("gpu_memory.dcgm", 1, |m| {
        m.read_by_dcgm();
        m.leak(false);
    }),
    ("hang.split", 1, |m| m.split_hang()),
    ("straggler.split", 1, |m| m.split_straggler()),
    ("stuck after reset", 1, Maker::stuck_after_reset),
    ("nvlink.boot", 1, Maker::links_down_from_start),
    ("zombie memory", 1, Maker::zombie),
];

const MORE_HARD: &[(&str, usize, Make)] = &[
    ("dcgm", 2, |m| {
        m.read_by_dcgm();
        m.healthy();
    }),
    ("dcgm eval", 1, |m| {
        m.read_by_dcgm();
        m.habit(HabitKind::EvalOne, 60.0, 300.0);
    }),
    ("jobs by gpu", 2, Maker::jobs_by_gpu),
    ("page cache", 1, Maker::page_cache),
    ("save stalls", 2, |m| m.habit(HabitKind::SaveStalls, 20.0, 150.0)),
    ("rank restarted", 2, Maker::rank_restarted),
    ("caps by the hour", 1, Maker::caps_by_the_hour),
    ("narrow slots", 1, Maker::narrow_slots),
    ("shared gpus", 1, Maker::shared_gpus),
    ("eval minutes", 2, |m| m.habit(HabitKind::EvalAll, 300.0, 1200.0)),
];

/// Number of traces of the first kinds.
pub const FIRST: u64 = 1200;

fn nth(table: &'static [(&'static str, usize, Make)], at: usize) -> (&'static str, Make) {
    // One of each, then the more frequent ones again.
    let most = table.iter().map(|(_, weight, _)| *weight).max().unwrap_or(1);
    let order: Vec<usize> = (0..most).flat_map(|round| (0..table.len()).filter(move |&i| table[i].1 > round)).collect();
    let (name, _, make) = table[order[at % order.len()]];
    (name, make)
}

/// Name and class of the trace of a seed.
pub fn plan(seed: u64) -> (Class, &'static str) {
    let (class, name, _) = chosen(seed);
    (class, name)
}

fn chosen(seed: u64) -> (Class, &'static str, Make) {
    let number = (seed / 2) as usize;
    let (number, faults, hard) = match number.checked_sub(FIRST as usize) {
        None => (number, FAULTS, HARD),
        Some(more) => (more, MORE_FAULTS, MORE_HARD),
    };
    let (round, at) = (number / 20, number % 20);
    // Interleaved, so that the first few seeds cover each class.
    match at {
        0 | 2 | 4 | 7 | 9 | 11 | 14 | 16 | 18 => {
            let at = [0, 2, 4, 7, 9, 11, 14, 16, 18].iter().position(|&i| i == at).unwrap_or(0);
            let (name, make) = nth(faults, round * 9 + at);
            (Class::Fault, name, make)
        }
        1 | 5 | 6 | 8 | 10 | 13 | 15 | 19 => {
            let at = [1, 5, 6, 8, 10, 13, 15, 19].iter().position(|&i| i == at).unwrap_or(0);
            let (name, make) = nth(hard, round * 8 + at);
            (Class::Hard, name, make)
        }
        _ => (Class::Healthy, "healthy", |m| m.healthy()),
    }
}

/// The trace of a seed.
pub fn world(seed: u64, hours: Option<f64>, altered_by: f64, machines: Option<usize>) -> World {
    let (_, name, make) = chosen(seed);
    let random = Random::new(seed);
    let altered = Altered { seed, by: altered_by };
    let mut maker = Maker::new(name, random, altered);
    if let Some(hours) = hours {
        maker.world.seconds = hours * 3600.0;
    }
    maker.machines = machines;
    make(&mut maker);
    maker.world
}
