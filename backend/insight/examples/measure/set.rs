//! The set of traces: machines, jobs, faults, and activity that only looks like a fault.

use super::card::{Card, Load, MODELS, Model};
use super::job::{Habit, HabitKind, Hang, Job, Member, Memory, Recipe, Shape};
use super::random::{Altered, Random};
use super::world::{Act, Eyes, Host, Label, Port, Watch, World};

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

enum Kind {
    Spin,
    Odd,
    Idle,
}

struct Maker {
    world: World,
    random: Random,
    altered: Altered,
    eyes: Eyes,
    /// Number of machines of a job across machines; None: random.
    machines: Option<usize>,
}

/// Requirements for the job of a trace.
#[derive(Clone, Copy)]
struct Want {
    gpus: (usize, usize),
    hosts: (usize, usize),
    nvlink: Option<bool>,
    even: bool,
    exchange: bool,
}

impl Want {
    const ANY: Want = Want { gpus: (1, 8), hosts: (1, 1), nvlink: None, even: false, exchange: false };
}

impl Maker {
    fn new(name: &str, mut random: Random, altered: Altered) -> Self {
        let interval = random.pick(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 2.0, 5.0, 10.0]);
        let eyes = Eyes {
            interval,
            profile: random.chance(0.35),
            nvlink: random.chance(0.8),
            pcie: random.chance(0.85),
            lanes: random.chance(0.9),
            throttle: random.chance(0.93),
            xid: random.chance(0.7),
            power: true,
            pressure: random.chance(0.85),
            watched: random.chance(0.6),
            processes: random.chance(0.75),
            collectors: random.chance(0.85),
            health: random.chance(0.75),
            kernel: random.chance(0.8),
            dcgm: false,
        };
        let world = World {
            name: name.to_owned(),
            seconds: 3600.0,
            hosts: Vec::new(),
            jobs: Vec::new(),
            acts: Vec::new(),
            labels: Vec::new(),
            absent: random.pick(&[0.0, 1e-4, 1e-3, 4e-3]),
            skipped: random.pick(&[0.0, 5e-4, 3e-3]),
            late: random.pick(&[5.0, 50.0, 300.0]),
            random: Random::new(random.whole(0, 1 << 30) as u64),
            gpu_seconds: 0.0,
            told_jobs: random.chance(0.75),
            stalling: Vec::new(),
            watches: Vec::new(),
        };
        Maker { world, random, altered, eyes, machines: None }
    }

    fn at(&mut self, t: f64, act: Act) {
        self.world.acts.push((t, act));
    }

    fn model(&mut self, nvlink: Option<bool>) -> &'static Model {
        loop {
            let model = &MODELS[self.random.whole(0, MODELS.len() - 1)];
            // DCGM reads the GPUs of data centers by NVIDIA.
            let readable = !self.eyes.dcgm || !(model.amd || model.fan);
            if readable && nvlink.is_none_or(|wanted| (model.nvlink > 0.0) == wanted) {
                return model;
            }
        }
    }

    fn host(&mut self, model: &'static Model, count: usize) -> usize {
        let number = self.world.hosts.len();
        let altered = self.altered;
        let cards: Vec<Card> = (0..count).map(|_| Card::new(model, &mut self.random, altered)).collect();
        let mut eyes = self.eyes;
        // Older cards have profile counters where DCGM runs.
        eyes.power = !model.fan || self.random.chance(0.9);
        eyes.pcie |= !eyes.power;
        eyes.profile = model.profile || eyes.dcgm || (eyes.profile && !model.fan && !model.amd);
        let mut host = Host::new(format!("node-{number}"), cards, eyes, &mut self.random);
        // The machines of one job are equal.
        if let Some(first) = self.world.hosts.first() {
            host.cores = first.cores;
            host.memory = first.memory;
            host.disk = first.disk;
            host.network = first.network;
            for (card, other) in host.cards.iter_mut().zip(&first.cards) {
                card.keeps_clock = other.keeps_clock;
            }
        }
        let keeps = host.cards[0].keeps_clock;
        host.cards.iter_mut().for_each(|card| card.keeps_clock = keeps);
        self.world.hosts.push(host);
        number
    }

    fn recipe(&mut self, model: &Model, count: usize, hosts: usize, shape: Shape, exchange: bool) -> Recipe {
        let a = self.altered;
        let r = &mut self.random;
        let slow = if count > 64 {
            0.8
        } else if count > 8 {
            0.3
        } else {
            0.1
        };
        let longest = if r.chance(0.2) { 20.0 } else { 3.0 };
        let step = a.alter("step", r.scaled(slow, longest));
        let share = if exchange { r.between(0.2, 0.5) } else { r.between(0.04, 0.4) };
        let exchange = if count > 1 { a.alter("exchange", step * share) } else { 0.0 };
        let hidden = if r.chance(0.7) { exchange * r.between(0.3, 0.95) } else { 0.0 };
        let wire = if model.nvlink > 0.0 && hosts == 1 { model.nvlink * 0.4 } else { 9e9 * r.between(0.5, 1.5) };
        let batch_bytes = if r.chance(0.7) { r.scaled(1e6, 400e6) * step } else { 0.0 };
        let spinning = a.alter("spinning", r.between(0.02, 0.14));
        let data = r.chance(0.35);
        let mut habits = Vec::new();
        if r.chance(0.35) {
            let kind = r.pick(&[HabitKind::Save, HabitKind::SaveOne, HabitKind::SaveNetwork, HabitKind::SaveBeside]);
            let (every, seconds) = (r.scaled(400.0, 2400.0), r.scaled(3.0, 45.0));
            habits.push(Habit { kind, every, seconds, next: r.between(0.0, every) });
        }
        if r.chance(0.25) {
            let kind = r.pick(&[HabitKind::EvalAll, HabitKind::EvalAll, HabitKind::EvalOne]);
            let (every, seconds) = (r.scaled(600.0, 3000.0), r.scaled(8.0, 70.0));
            habits.push(Habit { kind, every, seconds, next: r.between(0.0, every) });
        }
        Recipe {
            shape,
            step,
            optimizer: step * r.between(0.0, 0.1),
            gap: step * if r.chance(0.3) { r.between(0.05, 0.3) } else { r.between(0.003, 0.04) },
            copy: step * r.between(0.001, 0.02),
            exchange,
            hidden,
            exchange_bytes: exchange * wire,
            copy_bytes: step * r.scaled(1e6, 3e9),
            jitter: a.alter("jitter", r.scaled(0.003, 0.06)),
            own_jitter: a.alter("own jitter", r.scaled(0.002, 0.02)),
            odd: r.pick(&[0.0, 0.002, 0.01]),
            odd_times: r.between(1.5, 5.0),
            spins: r.chance(0.9),
            cores: if r.chance(0.75) { r.between(0.85, 1.1) } else { r.between(0.05, 0.5) },
            batch_cores: step * r.between(0.2, 5.0),
            batch_bytes,
            headroom: r.between(1.4, 4.0),
            kept: r.pick(&[2.0, 4.0, 16.0]),
            remote: data,
            load: Load {
                heavy: a.alter("heavy", if model.limit < 80.0 { r.between(0.9, 1.15) } else { r.between(0.5, 1.1) }),
                streaming: a.alter("streaming", r.between(0.4, 0.62)),
                spinning,
                moving: spinning + a.alter("moving", r.between(0.03, 0.1)),
                tensor: a.alter("tensor", r.between(0.2, 0.7)),
                sm: a.alter("sm", r.between(0.7, 0.95)).min(0.98),
                dram: a.alter("dram", r.between(0.12, 0.5)),
                waiting_sm: a.alter("waiting sm", r.between(0.03, 0.25)),
            },
            memory: Memory::Flat(r.between(0.3, 0.95)),
            resident: r.between(2.0, 9.0) * (1u64 << 30) as f64,
            start: a.alter("start", r.between(25.0, 140.0)),
            habits,
        }
    }

    fn members(&mut self, hosts: &[usize], gpus: &[usize]) -> Vec<Member> {
        let first = 2000 + 20_000 * self.world.jobs.len() as u32;
        let member = |host: usize, gpu: usize| Member { host, gpu, pid: first + gpu as u32 + 1 };
        hosts.iter().flat_map(|&host| gpus.iter().map(move |&gpu| member(host, gpu))).collect()
    }

    fn job(&mut self, members: Vec<Member>, recipe: Recipe, begin: Option<f64>) -> usize {
        let number = self.world.jobs.len();
        let mut job = Job::new(format!("run-{number}"), members, recipe);
        // One process uses several GPUs.
        if matches!(job.recipe.shape, Shape::Turns | Shape::Notebook { .. }) {
            let pid = job.members[0].pid;
            job.members.iter_mut().for_each(|m| m.pid = pid);
        }
        let start = job.recipe.start;
        self.world.jobs.push(job);
        match begin {
            None => self.at(0.0, Act::Begin(number, 0.0)),
            Some(t) => self.at(t, Act::Begin(number, start)),
        }
        number
    }

    /// Adds a training job on its own machines. It has worked for a while before any event.
    fn train(&mut self, want: Want) -> usize {
        self.train_as(want, None)
    }

    fn train_as(&mut self, want: Want, shape: Option<Shape>) -> usize {
        let model = self.model(want.nvlink);
        let hosts = self.random.whole(want.hosts.0, want.hosts.1);
        let sizes: Vec<usize> =
            [1, 2, 4, 8, 8].into_iter().filter(|n| (want.gpus.0..=want.gpus.1).contains(n)).collect();
        let count = self.random.pick(&sizes);
        let hosts: Vec<usize> = (0..hosts).map(|_| self.host(model, count)).collect();
        let gpus: Vec<usize> = (0..count).collect();
        let all = count * hosts.len();
        let shape = shape.unwrap_or_else(|| {
            if all > 1 && self.random.chance(0.35) {
                Shape::Sharded
            } else if all >= 4 && !want.even && self.random.chance(0.12) {
                Shape::Pipeline
            } else {
                Shape::Data
            }
        });
        let recipe = self.recipe(model, all, hosts.len(), shape, want.exchange);
        let members = self.members(&hosts, &gpus);
        let begin = if self.random.chance(0.5) { None } else { Some(self.random.between(5.0, 90.0)) };
        let plain = self.random.chance(0.35);
        self.world.hosts.iter_mut().for_each(|host| host.plain_network = plain);
        if !plain && hosts.len() > 1 && model.limit >= 300.0 && self.random.chance(0.7) {
            let ports = count.min(8);
            for &h in &hosts {
                self.world.hosts[h].ports = (0..ports).map(|number| Port::new(number, 50e9)).collect();
            }
        }
        if hosts.len() > 2 {
            self.world.told_jobs |= self.random.chance(0.8);
        }
        let job = self.job(members, recipe, begin);
        self.even_out(job);
        job
    }

    /// Gives the loaders of each machine what they need without faults, and each member of a pipeline its share.
    fn even_out(&mut self, job: usize) {
        let (need, r) = (self.world.jobs[job].need(), self.world.jobs[job].recipe.clone());
        for place in 0..self.world.jobs[job].hosts.len() {
            let h = self.world.jobs[job].hosts[place];
            let members = self.world.jobs[job].members.iter().filter(|m| m.host == h).count() as f64;
            let host = &mut self.world.hosts[h];
            let wanted = need * r.headroom * r.batch_cores * members + members * r.cores;
            host.cores = host.cores.max((wanted * 1.15).ceil()).min(512.0);
            let bytes = need * r.batch_bytes * members * r.headroom.min(2.0);
            let room = if r.remote { &mut host.network } else { &mut host.disk };
            *room = room.max(bytes * 1.3);
        }
        let bad = self.world.jobs[job].hosts.iter().any(|&h| {
            let members = self.world.jobs[job].members.iter().filter(|m| m.host == h).count() as f64;
            need * 1.3 * r.batch_cores * members + members * r.cores > self.world.hosts[h].cores
        });
        if bad {
            self.world.jobs[job].recipe.batch_cores *= 0.1;
        }
        if r.shape == Shape::Pipeline {
            for at in 0..self.world.jobs[job].shares.len() {
                self.world.jobs[job].shares[at] = self.random.between(0.78, 1.0);
            }
        }
        for member in 0..self.world.jobs[job].members.len() {
            let m = self.world.jobs[job].members[member].clone();
            self.world.hosts[m.host].cards[m.gpu].load = r.load;
        }
    }

    /// A random time for a fault.
    fn moment(&mut self) -> f64 {
        let seconds = self.world.seconds;
        if self.random.chance(0.12) {
            self.random.between(300.0, 600.0)
        } else {
            self.random.between(0.25, 0.6) * seconds
        }
    }

    fn label(&mut self, kind: &'static str, name: &'static str, job: Option<usize>, onset: f64, end: f64) -> Label {
        let around = job.map(|job| self.places_of(job)).unwrap_or_default();
        Label {
            kind,
            name,
            or: None,
            places: around.clone(),
            around,
            onset,
            end: end.min(self.world.seconds),
            mild: false,
            device: false,
            before_end: false,
            optional: false,
            clears: false,
            note: false,
        }
    }

    fn places_of(&self, job: usize) -> Vec<(usize, Vec<u32>)> {
        let job = &self.world.jobs[job];
        let gpus = |h: usize| job.members.iter().filter(|m| m.host == h).map(|m| m.gpu as u32).collect();
        job.hosts.iter().map(|&h| (h, gpus(h))).collect()
    }

    fn add(&mut self, label: Label) -> usize {
        self.world.labels.push(label);
        self.world.labels.len() - 1
    }

    fn victim(&mut self, job: usize) -> (usize, Member) {
        let at = self.random.whole(0, self.world.jobs[job].members.len() - 1);
        (at, self.world.jobs[job].members[at].clone())
    }

    fn some_hosts(&mut self, one: f64, few: f64) -> (usize, usize) {
        let at = self.random.unit();
        if let Some(machines) = self.machines {
            self.world.seconds = self.world.seconds.min(2700.0);
            return (machines, machines);
        }
        if at < one {
            (1, 1)
        } else if at < one + few {
            (2, 4)
        } else {
            self.world.seconds = self.world.seconds.min(2700.0);
            (5, 16)
        }
    }

    fn hang(&mut self, kind: Kind) {
        let hosts = self.some_hosts(0.65, 0.25);
        let job = self.train(Want { gpus: (2, 8), hosts, ..Want::ANY });
        self.stop(job, kind);
    }

    /// A job hangs.
    fn stop(&mut self, job: usize, kind: Kind) {
        let t = self.moment();
        let (at, victim) = self.victim(job);
        let lasts = self.random.pick(&[420.0, 640.0, 1000.0, 3600.0]);
        let mut label = self.label("hang", "spin", Some(job), t, t + lasts);
        label.clears = true;
        let hang = match kind {
            Kind::Spin => Hang::Spin,
            Kind::Idle => {
                label.name = "idle";
                label.end = (t + lasts.max(900.0)).min(self.world.seconds);
                Hang::Idle
            }
            Kind::Odd => {
                label.name = "odd";
                label.device = true;
                label.places = vec![(victim.host, vec![victim.gpu as u32])];
                Hang::Odd(at, self.random.pick(&[0.0, 0.0, 1.0]))
            }
        };
        let end = label.end;
        let label = self.add(label);
        self.at(t, Act::Stall(job, hang, label));
        self.at(end, Act::End(job));
        if self.random.chance(0.6) {
            let start = self.world.jobs[job].recipe.start;
            self.at(end + 20.0, Act::Begin(job, start));
        }
    }

    fn straggler(&mut self, mild: bool) {
        let hosts = self.some_hosts(0.7, 0.2);
        let job = self.train(Want { gpus: (4, 8), hosts, even: true, ..Want::ANY });
        self.slow_member(job, mild);
    }

    /// One member of a job becomes slower.
    fn slow_member(&mut self, job: usize, mild: bool) {
        let t = self.moment();
        let (at, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let speed = if mild { self.random.between(0.87, 0.92) } else { self.random.between(0.45, 0.8) };
        let lasts = self.random.pick(&[600.0, 1200.0, 3600.0]);
        let end = (t + lasts).min(self.world.seconds);
        let mut label = self.label("straggler", "slow", Some(job), t, end);
        (label.mild, label.device, label.clears) = (mild, true, true);
        label.places = vec![(h, vec![g as u32])];
        let clock = self.world.hosts[h].cards[g].work_clock().0;
        // Rare samples of work deviate more than a slow board or thread costs.
        let kind = self.random.whole(0, 4);
        let rare = self.eyes.interval >= 15.0 || self.eyes.dcgm;
        match if rare { [0, 3][kind % 2] } else { kind } {
            0 | 1 => {
                label.name = "clock";
                self.at(t, Act::Stuck(h, g, Some((clock * speed / 15.0).round() * 15.0)));
                self.at(end, Act::Stuck(h, g, None));
            }
            2 => {
                label.name = "board";
                self.at(t, Act::Slow(h, g, speed));
                self.at(end, Act::Slow(h, g, 1.0));
            }
            3 => {
                label.name = "second program";
                self.at(t, Act::Tenant(h, g, 1.0 - speed));
                self.at(end, Act::Tenant(h, g, 0.0));
            }
            _ if !mild => {
                label.name = "processor";
                // Its own thread gets too little CPU time, so its work is launched too slowly.
                self.at(t, Act::OwnCpu(job, at, 0.1 + 0.4 * speed));
                self.at(end, Act::OwnCpu(job, at, 1.0));
            }
            _ if self.random.chance(0.5) => {
                label.name = "gradual";
                for step in 1..=10 {
                    let share = f64::from(step) / 10.0;
                    self.at(t + 30.0 * f64::from(step), Act::Slow(h, g, 1.0 - share * (1.0 - speed)));
                }
                self.at(end, Act::Slow(h, g, 1.0));
            }
            _ => {
                label.name = "now and then";
                let (on, off) = (self.random.between(150.0, 300.0), self.random.between(60.0, 150.0));
                let mut at = t;
                while at < end {
                    self.at(at, Act::Slow(h, g, speed - 0.05));
                    self.at(at + on, Act::Slow(h, g, 1.0));
                    at += on + off;
                }
                label.clears = false;
            }
        }
        self.add(label);
    }

    /// Limits a disk to `allowed` of the `needed` bytes per second: by itself, or by writes of others.
    fn limit_disk(&mut self, h: usize, (t, end): (f64, f64), needed: f64, allowed: f64) {
        let disk = self.world.hosts[h].disk.max(needed * 1.6);
        self.world.hosts[h].disk = disk;
        let left = allowed / disk;
        if self.random.chance(0.5) {
            self.at(t, Act::Disk(h, left));
            self.at(end, Act::Disk(h, 1.0));
        } else {
            self.at(t, Act::DiskOthers(h, disk * (1.0 - left)));
            self.at(end, Act::DiskOthers(h, 0.0));
        }
    }

    fn starvation(&mut self, mild: bool) {
        let hosts = self.some_hosts(0.75, 0.25);
        let job = self.train(Want { hosts, even: true, ..Want::ANY });
        let t = self.moment();
        let lost = if mild { self.random.between(0.15, 0.25) } else { self.random.between(0.32, 0.7) };
        let end = (t + self.random.pick(&[600.0, 1500.0, 3600.0])).min(self.world.seconds);
        let mut label = self.label("starvation", "disk", Some(job), t, end);
        (label.mild, label.clears) = (mild, true);
        let which = self.random.whole(0, 5);
        let hosts = self.world.jobs[job].hosts.clone();
        let hosts = if self.random.chance(0.5) { hosts } else { vec![hosts[0]] };
        label.places.retain(|(h, _)| hosts.contains(h));
        let need = self.world.jobs[job].pace(self.world.hosts[0].cards[0].speed());
        for h in hosts {
            let members = self.world.jobs[job].members.iter().filter(|m| m.host == h).count() as f64;
            let recipe = &mut self.world.jobs[job].recipe;
            let step = recipe.step;
            // A significant amount of data: a good part of the capacity of disk or link.
            let host = &self.world.hosts[h];
            let most = if which == 3 { host.network } else { host.disk };
            recipe.batch_bytes = recipe.batch_bytes.max(0.15 * most / (need * members));
            let r = recipe.clone();
            let allowed = need * (1.0 - lost);
            match which {
                0 | 1 => {
                    self.world.jobs[job].recipe.remote = false;
                    let (needed, left) = (need * r.batch_bytes * members, allowed * r.batch_bytes * members);
                    self.limit_disk(h, (t, end), needed, left);
                }
                2 => {
                    label.name = "processor";
                    let full = self.world.jobs[job].need() * r.headroom;
                    let cores = self.world.hosts[h].cores;
                    let recipe = &mut self.world.jobs[job].recipe;
                    recipe.batch_cores = recipe.batch_cores.max(0.4 * step);
                    let loaders = full * recipe.batch_cores * members;
                    let hog = full * cores / allowed - loaders - members * r.cores - 0.6;
                    self.at(t, Act::Hog(h, hog.max(cores * 0.5)));
                    self.at(end, Act::Hog(h, 0.0));
                }
                3 => {
                    // Others use the machine's link.
                    label.name = "network";
                    self.world.jobs[job].recipe.remote = true;
                    let network = self.world.hosts[h].network.max(need * r.batch_bytes * members * 1.6);
                    self.world.hosts[h].network = network;
                    self.at(t, Act::NetworkOthers(h, network - allowed * r.batch_bytes * members));
                    self.at(end, Act::NetworkOthers(h, 0.0));
                }
                4 => {
                    label.name = "quota";
                    let recipe = &mut self.world.jobs[job].recipe;
                    recipe.batch_cores = recipe.batch_cores.max(0.6 * step);
                    let loaders = need * recipe.batch_cores * members;
                    let own = members * r.cores;
                    let quota = (own + loaders * r.headroom * 1.1).min(self.world.hosts[h].cores);
                    self.world.hosts[h].eyes.watched = true;
                    self.world.hosts[h].quota = Some(quota);
                    self.at(t, Act::Quota(h, Some(own + loaders * (1.0 - lost))));
                    self.at(end, Act::Quota(h, Some(quota)));
                }
                _ => {
                    // A slow service, with nothing measured here.
                    label.name = "not measured";
                    (label.note, label.optional) = (true, true);
                    if h == self.world.jobs[job].hosts[0] {
                        let times = allowed / (self.world.jobs[job].need() * r.headroom);
                        self.at(t, Act::Headroom(job, times));
                        self.at(end, Act::Headroom(job, 1.0 / times));
                        label.places.clone_from(&label.around);
                    }
                }
            }
        }
        self.add(label);
    }

    fn heat(&mut self, mild: bool) {
        let hosts = self.some_hosts(0.8, 0.2);
        let job = self.train(Want { hosts, ..Want::ANY });
        // Work that heats the card.
        self.world.jobs[job].recipe.load.heavy = self.random.between(0.8, 1.05);
        self.even_out(job);
        let t = self.moment();
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let end = t + self.random.pick(&[900.0, 1500.0, 3600.0]);
        let over = if mild { self.random.between(8.0, 14.0) } else { self.random.between(16.0, 60.0) };
        let card = &self.world.hosts[h].cards[g];
        let power = 0.75 * card.limit;
        let factor = (card.model.soft + over - card.ambient) / (power * card.cooling);
        let mut label = self.label("throttle", "heat", Some(job), f64::INFINITY, t);
        label.places = vec![(h, vec![g as u32])];
        (label.mild, label.device, label.clears) = (mild, true, true);
        if self.random.chance(0.4) || mild {
            for step in 1..=12 {
                self.at(t + 50.0 * f64::from(step), Act::Cooling(h, g, factor.powf(1.0 / 12.0)));
            }
        } else {
            self.at(t, Act::Cooling(h, g, factor));
        }
        if end < self.world.seconds {
            self.at(end, Act::Cooling(h, g, 1.0 / factor));
        }
        if self.world.hosts[h].cards[g].model.amd || !self.world.hosts[h].eyes.throttle {
            // Without throttle reasons it is a card slower than its peers, if it has any.
            label.or = Some("straggler");
            label.optional = self.world.jobs[job].members.len() < 3;
        }
        let label = self.add(label);
        self.world.watches.push(Watch::Heat(label, h, g));
    }

    fn power(&mut self, mild: bool) {
        let hosts = self.some_hosts(0.8, 0.2);
        let job = self.train(Want { gpus: (2, 8), hosts, even: true, ..Want::ANY });
        self.world.jobs[job].recipe.load.heavy = self.random.between(0.85, 1.08);
        self.even_out(job);
        let t = self.moment();
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let end = (t + self.random.pick(&[600.0, 1500.0, 3600.0])).min(self.world.seconds);
        let limit = self.world.hosts[h].cards[g].limit;
        let mut label = self.label("throttle", "limit", Some(job), t, end);
        label.places = vec![(h, vec![g as u32])];
        (label.mild, label.device, label.clears) = (mild, true, true);
        if mild || self.random.chance(0.5) {
            let share = if mild { self.random.between(0.75, 0.82) } else { self.random.between(0.45, 0.7) };
            self.at(t, Act::Limit(h, g, (limit * share).round()));
            self.at(end, Act::Limit(h, g, limit));
        } else {
            label.name = "brake";
            self.eyes.throttle = true;
            self.world.hosts.iter_mut().for_each(|host| host.eyes.throttle = true);
            self.at(t, Act::Brake(h, g, true));
            self.at(end, Act::Brake(h, g, false));
        }
        if self.world.hosts[h].cards[g].model.amd {
            label.or = Some("straggler");
            label.optional = self.world.jobs[job].members.len() < 3;
        }
        self.add(label);
    }

    fn uncorrected(&mut self) {
        let hosts = self.some_hosts(0.6, 0.25);
        let job = self.train(Want { hosts, ..Want::ANY });
        let t = self.moment();
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let mut label = self.label("ecc", "uncorrected", Some(job), t, t + 600.0);
        label.places = vec![(h, vec![g as u32])];
        label.device = true;
        let model = self.world.hosts[h].cards[g].model;
        // Without readings of errors or XIDs nothing can be detected.
        if !model.ecc || model.amd {
            self.world.hosts.iter_mut().for_each(|host| host.eyes.xid = true);
        }
        if model.amd {
            label.optional = true;
        }
        let count = self.random.pick(&[1.0, 1.0, 2.0, 5.0]);
        if model.ecc {
            self.at(t, Act::Uncorrected(h, g, count));
        }
        let xid = self.random.pick(&[48.0, 64.0, 94.0, 95.0, 140.0]);
        let later = self.random.between(0.0, 2.0);
        self.at(t + later, Act::Xid(h, g, xid));
        if self.random.chance(0.8) {
            self.at(t + 2.0, Act::End(job));
            let (after, start) = (self.random.between(40.0, 300.0), self.world.jobs[job].recipe.start);
            self.at(t + after, Act::Begin(job, start));
        }
        self.add(label);
    }

    fn corrected(&mut self, mild: bool) {
        let hosts = self.some_hosts(0.9, 0.1);
        let job = self.train(Want { hosts, ..Want::ANY });
        let t = self.moment();
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let rate = if mild { self.random.between(14.0, 30.0) } else { self.random.scaled(40.0, 900.0) };
        let end = (t + self.random.pick(&[400.0, 1200.0, 3600.0])).min(self.world.seconds);
        let mut label = self.label("ecc", "corrected", Some(job), t, end);
        label.places = vec![(h, vec![g as u32])];
        (label.mild, label.device) = (mild, true);
        let model = self.world.hosts[h].cards[g].model;
        label.optional = !model.ecc || model.amd;
        self.at(t, Act::Correcting(h, g, rate));
        self.at(end, Act::Correcting(h, g, 0.0));
        self.add(label);
    }

    fn lost(&mut self) {
        let hosts = self.some_hosts(0.7, 0.2);
        let job = self.train(Want { hosts, ..Want::ANY });
        let t = self.moment();
        let (at, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let mut label = self.label("lost_gpu", "lost", Some(job), t, self.world.seconds);
        label.places = vec![(h, vec![g as u32])];
        label.device = true;
        if self.random.chance(0.5) {
            self.at(t - self.eyes.interval, Act::Xid(h, g, 79.0));
        }
        self.at(t, Act::Lose(h, g, true));
        let label = self.add(label);
        let alone = self.world.jobs[job].members.len() == 1;
        if alone {
            self.at(t + 1.0, Act::End(job));
        } else {
            let stalled = self.label("hang", "lost", Some(job), t, t);
            let stalled = self.add(Label { optional: true, end: self.world.seconds, ..stalled });
            let dies = t + self.random.scaled(15.0, 900.0);
            self.world.labels[stalled].end = dies.min(self.world.seconds);
            self.at(t, Act::Stall(job, Hang::Odd(at, 0.0), stalled));
            self.at(dies, Act::End(job));
        }
        if self.random.chance(0.3) {
            let back = t + self.random.between(950.0, 1500.0);
            self.at(back, Act::Lose(h, g, false));
            self.world.labels[label].end = back.min(self.world.seconds);
            self.world.labels[label].clears = true;
        }
    }

    fn lanes(&mut self, boot: bool) {
        let job = self.train(Want::ANY);
        let amd = self.world.hosts[0].cards[0].model.amd;
        self.world.hosts.iter_mut().for_each(|host| host.eyes.lanes = true);
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let lanes = self.random.pick(&[8.0, 8.0, 4.0, 1.0]);
        let t = if boot { 0.0 } else { self.moment() };
        let mut label =
            self.label("slow_link", if boot { "lanes since boot" } else { "lanes" }, Some(job), t, self.world.seconds);
        label.places = vec![(h, vec![g as u32])];
        label.device = true;
        (label.mild, label.note) = (lanes == 8.0, boot);
        label.optional = amd;
        self.at(t, Act::Lanes(h, g, lanes));
        self.add(label);
    }

    fn r#gen(&mut self) {
        let job = self.train(Want { gpus: (2, 8), ..Want::ANY });
        let amd = self.world.hosts[0].cards[0].model.amd;
        self.world.hosts.iter_mut().for_each(|host| host.eyes.lanes = true);
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let t = self.moment();
        let mut label = self.label("slow_link", "generation", Some(job), t, self.world.seconds);
        label.places = vec![(h, vec![g as u32])];
        (label.device, label.optional) = (true, amd);
        let worst = self.random.pick(&[1.0, 2.0]);
        self.at(t, Act::Gen(h, g, Some(worst)));
        self.add(label);
    }

    fn fallback(&mut self) {
        let job = self.train(Want { gpus: (4, 8), nvlink: Some(true), even: true, ..Want::ANY });
        self.world.hosts.iter_mut().for_each(|host| host.eyes.nvlink = true);
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let t = self.moment();
        let start = self.world.jobs[job].recipe.start;
        self.at(t, Act::Xid(h, g, 74.0));
        let mut error = self.label("xid", "nvlink", Some(job), t, t + 600.0);
        error.places = vec![(h, vec![g as u32])];
        (error.device, error.optional) = (true, true);
        self.add(error);
        self.at(t + 1.0, Act::End(job));
        // Its links are down, or the program cannot use them.
        let up = if self.random.chance(0.7) { 0.0 } else { self.world.hosts[h].cards[g].model.links() };
        self.at(t + 1.0, Act::Links(h, g, 0.0, up));
        self.at(t + 20.0, Act::Begin(job, start));
        let works = t + 20.0 + start;
        let mut label = self.label("slow_link", "fallback", Some(job), works, self.world.seconds);
        label.places = vec![(h, vec![g as u32])];
        label.device = true;
        self.add(label);
    }

    fn ring(&mut self) {
        let job = self.train(Want { gpus: (4, 8), nvlink: Some(true), even: true, exchange: true, ..Want::ANY });
        self.world.hosts.iter_mut().for_each(|host| host.eyes.nvlink = true);
        let (_, victim) = self.victim(job);
        let t = self.moment();
        let mut label = self.label("slow_link", "ring", Some(job), t, self.world.seconds);
        label.mild = true;
        let all = self.world.hosts[victim.host].cards[victim.gpu].model.links();
        self.world.hosts.iter_mut().for_each(|host| host.eyes.health = true);
        label.device = true;
        label.places = vec![(victim.host, vec![victim.gpu as u32])];
        if self.random.chance(0.5) {
            label.name = "a link of a ring";
            let up = all - self.random.whole(1, 4) as f64;
            self.at(t, Act::Links(victim.host, victim.gpu, up / all, up));
        } else {
            label.name = "errors on a ring";
            let left = self.random.between(0.5, 0.85);
            let breaking = self.random.scaled(30.0, 3000.0);
            self.at(t, Act::Links(victim.host, victim.gpu, left, all));
            self.at(t, Act::Breaking(victim.host, victim.gpu, breaking));
        }
        self.add(label);
    }

    fn net(&mut self) {
        let job = self.train(Want { gpus: (2, 8), hosts: (2, 6), even: true, exchange: true, ..Want::ANY });
        let t = self.moment();
        let (_, victim) = self.victim(job);
        let end = (t + self.random.pick(&[700.0, 1500.0, 3600.0])).min(self.world.seconds);
        let mut label = self.label("slow_link", "network", Some(job), t, end);
        label.places = vec![(victim.host, Vec::new())];
        (label.device, label.clears) = (true, true);
        self.world.hosts.iter_mut().for_each(|host| host.plain_network = true);
        let (times, resent) = (self.random.between(1.5, 4.0), self.random.scaled(100.0, 4000.0));
        self.at(t, Act::Wire(victim.host, times, resent));
        self.at(end, Act::Wire(victim.host, 1.0, 0.0));
        self.add(label);
    }

    fn port(&mut self) {
        let job = self.train(Want { gpus: (2, 8), hosts: (2, 6), nvlink: Some(true), even: true, exchange: true });
        let t = self.moment();
        let (_, victim) = self.victim(job);
        let end = (t + self.random.pick(&[700.0, 1500.0, 3600.0])).min(self.world.seconds);
        let ports = self.world.jobs[job].members.iter().filter(|m| m.host == 0).count().min(8);
        for host in &mut self.world.hosts {
            host.plain_network = false;
            host.ports = (0..ports).map(|number| Port::new(number, 50e9)).collect();
        }
        let mut label = self.label("slow_link", "port", Some(job), t, end);
        label.places = vec![(victim.host, Vec::new())];
        (label.device, label.clears) = (true, true);
        // It lost lanes: all rings are as slow as the one over this port.
        let share = self.random.pick(&[0.5, 0.25]);
        let breaking = if self.random.chance(0.5) { self.random.scaled(1.0, 200.0) } else { 0.0 };
        let port = self.random.whole(0, ports - 1);
        self.at(t, Act::Port(victim.host, port, share, breaking));
        self.at(t, Act::Wire(victim.host, 1.0 / share, 0.0));
        self.at(end, Act::Port(victim.host, port, 1.0 / share, 0.0));
        self.at(end, Act::Wire(victim.host, 1.0, 0.0));
        self.add(label);
    }

    fn leak(&mut self, mild: bool) {
        let hosts = self.some_hosts(0.9, 0.1);
        if mild {
            self.world.seconds = 2.5 * 3600.0;
        }
        let job = self.train(Want { hosts, ..Want::ANY });
        let first = self.random.between(0.4, 0.75);
        self.world.jobs[job].recipe.memory = Memory::Flat(first);
        let t = if mild { self.random.between(400.0, 900.0) } else { self.moment().min(0.4 * self.world.seconds) };
        let lasts = if mild { self.random.between(4800.0, 6600.0) } else { self.random.between(500.0, 1700.0) };
        let (_, victim) = self.victim(job);
        let memory = self.world.hosts[victim.host].cards[victim.gpu].model.memory;
        let mut label = self.label("gpu_memory", "leak", Some(job), t, self.world.seconds);
        (label.mild, label.before_end) = (mild, true);
        self.at(t, Act::Leak(job, memory * (0.99 - first) / lasts));
        let label = self.add(label);
        let again = self.random.between(60.0, 200.0);
        self.world.watches.push(Watch::Full(label, job, again));
    }

    fn host_leak(&mut self, mild: bool) {
        if mild {
            self.world.seconds = 2.5 * 3600.0;
        }
        let job = self.train(Want::ANY);
        let h = self.world.jobs[job].hosts[0];
        let t = if mild { self.random.between(400.0, 900.0) } else { self.moment().min(0.4 * self.world.seconds) };
        let host = &self.world.hosts[h];
        let used = host.base_memory + self.world.jobs[job].recipe.resident * host.cards.len() as f64;
        let lasts = if mild { self.random.between(4800.0, 6600.0) } else { self.random.between(500.0, 1700.0) };
        let rate = (0.985 * host.memory - used).max(0.1 * host.memory) / lasts;
        let mut label = self.label("host_memory", "leak", Some(job), t, self.world.seconds);
        label.places = vec![(h, Vec::new())];
        (label.mild, label.before_end) = (mild, true);
        let act = if self.random.chance(0.5) { Act::HostLeak(job, rate) } else { Act::Other(h, rate) };
        self.at(t, act);
        let label = self.add(label);
        let again = self.random.between(60.0, 200.0);
        self.world.watches.push(Watch::HostFull(label, job, h, again));
    }

    fn oom(&mut self) {
        let job = self.train(Want::ANY);
        let h = self.world.jobs[job].hosts[0];
        let host = &mut self.world.hosts[h];
        if self.random.chance(0.5) || !host.eyes.kernel {
            host.eyes.watched = true;
            host.quota = Some(host.cores);
        }
        let t = self.moment();
        let mut label = self.label("host_memory", "kill", Some(job), t, t + 600.0);
        label.places = vec![(h, Vec::new())];
        let start = self.world.jobs[job].recipe.start;
        self.at(t, Act::Kill(h));
        self.at(t, Act::End(job));
        self.at(t + 60.0, Act::Begin(job, start));
        self.add(label);
    }

    fn held(&mut self) {
        let job = self.train(Want::ANY);
        let t = self.moment().min(self.world.seconds - 1500.0);
        let members = self.world.jobs[job].members.clone();
        let recipe =
            Recipe { shape: Shape::Held, start: 0.0, habits: Vec::new(), ..self.world.jobs[job].recipe.clone() };
        let held = self.world.jobs.len();
        self.world.jobs.push(Job::new(format!("run-{held}"), members, recipe));
        self.at(t, Act::End(job));
        self.at(t, Act::Begin(held, 0.0));
        let end = (t + self.random.between(1300.0, 4000.0)).min(self.world.seconds);
        let mut label = self.label("idle", "held", Some(job), t, end);
        label.note = true;
        if end < self.world.seconds {
            self.at(end, Act::End(held));
        }
        self.add(label);
    }

    fn disk_full(&mut self) {
        self.world.seconds = self.world.seconds.max(2.0 * 3600.0);
        let job = self.train(Want::ANY);
        let h = self.world.jobs[job].hosts[0];
        let volume = self.random.whole(0, 1);
        let from = self.random.between(0.8, 0.93);
        let t = self.random.between(600.0, 1500.0);
        let lasts = self.random.between(1500.0, 5000.0);
        let v = &mut self.world.hosts[h].volumes[volume];
        v.used = from * v.size;
        let rate = (v.size - v.used) / lasts;
        let mut label = self.label("disk_full", "fills", Some(job), t, self.world.seconds);
        label.places = vec![(h, Vec::new())];
        label.before_end = true;
        self.at(t, Act::Fills(h, volume, rate));
        let label = self.add(label);
        self.world.watches.push(Watch::DiskFull(label, h, volume));
    }

    fn host_lost(&mut self) {
        let job = self.train(Want { gpus: (2, 8), hosts: (2, 6), ..Want::ANY });
        let t = self.moment();
        let (at, victim) = self.victim(job);
        let mut label = self.label("host_lost", "silent", Some(job), t, self.world.seconds);
        label.places = vec![(victim.host, Vec::new())];
        label.device = true;
        self.at(t, Act::Silent(victim.host, true));
        let stalled = self.label("hang", "host lost", Some(job), t, t);
        let dies = (t + self.random.scaled(60.0, 900.0)).min(self.world.seconds);
        let stalled = self.add(Label { optional: true, end: dies, ..stalled });
        self.at(t, Act::Stall(job, Hang::Odd(at, 0.0), stalled));
        self.at(dies, Act::End(job));
        if self.random.chance(0.4) {
            label.end = (t + self.random.between(300.0, 900.0)).min(self.world.seconds);
            label.clears = true;
            self.at(label.end, Act::Silent(victim.host, false));
        }
        self.add(label);
    }

    // Activity that only looks like a fault.

    fn habit(&mut self, kind: HabitKind, least: f64, most: f64) {
        let hosts = self.some_hosts(0.7, 0.25);
        let job = self.train(Want { gpus: (2, 8), hosts, ..Want::ANY });
        let every = self.random.scaled(300.0, 1500.0);
        let seconds = self.random.scaled(least, most).min(0.6 * every);
        let next = self.random.between(60.0, every);
        self.world.jobs[job].recipe.habits = vec![Habit { kind, every, seconds, next }];
    }

    /// One member takes longer than any collective should, on one of several machines. No run shows that they work on
    /// one job, as for recordings, and for agents that may not read environments.
    fn elsewhere(&mut self, kind: HabitKind, least: f64, most: f64) {
        self.world.seconds = self.world.seconds.max(1.5 * 3600.0);
        let few = self.random.chance(0.6);
        let job = self.train(Want { gpus: (1, 8), hosts: if few { (2, 2) } else { (3, 5) }, ..Want::ANY });
        self.world.told_jobs = false;
        let seconds = self.random.scaled(least, most);
        let every = seconds + self.random.scaled(300.0, 1800.0);
        let next = self.random.between(60.0, every);
        self.world.jobs[job].recipe.habits = vec![Habit { kind, every, seconds, next }];
    }

    fn memory(&mut self, make: fn(&mut Random) -> Memory) {
        let job = self.train(Want::ANY);
        self.world.jobs[job].recipe.memory = make(&mut self.random);
        // The rise is visible from its begin.
        if let Some((at, act)) = self.world.acts.iter_mut().find(|(_, act)| matches!(act, Act::Begin(..))) {
            (*at, *act) = (5.0, Act::Begin(job, 60.0));
        }
    }

    fn turns(&mut self) {
        let job = self.train_as(Want { gpus: (2, 4), ..Want::ANY }, Some(Shape::Turns));
        let r = &mut self.world.jobs[job].recipe;
        r.step = self.random.scaled(0.8, 8.0);
        r.gap = 0.1 * r.step;
        r.headroom = 50.0;
        r.batch_cores *= 0.05;
    }

    fn pipeline(&mut self) {
        let hosts = self.some_hosts(0.6, 0.4);
        let job = self.train_as(Want { gpus: (4, 8), hosts, ..Want::ANY }, Some(Shape::Pipeline));
        for share in 0..self.world.jobs[job].shares.len() {
            self.world.jobs[job].shares[share] = self.random.between(0.55, 1.0);
        }
    }

    fn rollout(&mut self) {
        let hosts = self.some_hosts(0.7, 0.3);
        let (long, trains) = (self.random.scaled(8.0, 150.0), self.random.whole(2, 20));
        self.train_as(Want { gpus: (2, 8), hosts, ..Want::ANY }, Some(Shape::Rollout { long, trains }));
    }

    fn long_steps(&mut self) {
        let job = self.train(Want { gpus: (2, 8), ..Want::ANY });
        let r = &mut self.world.jobs[job].recipe;
        let times = self.random.between(15.0, 30.0) / r.step;
        for part in [&mut r.step, &mut r.optimizer, &mut r.gap, &mut r.copy, &mut r.exchange, &mut r.hidden] {
            *part *= times;
        }
        r.exchange_bytes *= times;
        r.batch_cores *= times;
        r.batch_bytes *= times;
    }

    fn inference(&mut self) {
        let model = self.model(None);
        let count = self.random.pick(&[1, 2, 4, 8]);
        let h = self.host(model, count);
        let together = self.random.chance(0.4);
        let (load, lull) = (self.random.between(0.05, 0.9), self.random.scaled(5.0, 200.0));
        let groups: Vec<Vec<usize>> =
            if together { vec![(0..count).collect()] } else { (0..count).map(|g| vec![g]).collect() };
        for gpus in groups {
            let mut recipe = self.recipe(model, gpus.len(), 1, Shape::Serve { load, lull }, false);
            recipe.step = self.random.scaled(0.1, 4.0);
            recipe.habits.clear();
            recipe.batch_bytes = 0.0;
            recipe.batch_cores = 0.0;
            recipe.memory = Memory::Flat(self.random.between(0.8, 0.96));
            let members = self.members(&[h], &gpus);
            let job = self.job(members, recipe, None);
            self.even_out(job);
        }
    }

    fn notebook(&mut self) {
        let (think, cell) = (self.random.scaled(40.0, 500.0), self.random.scaled(4.0, 120.0));
        let job = self.train_as(Want { gpus: (1, 2), ..Want::ANY }, Some(Shape::Notebook { think, cell }));
        self.world.jobs[job].recipe.habits.clear();
        self.world.jobs[job].recipe.step = self.random.scaled(0.1, 1.0);
    }

    fn prepare(&mut self) {
        let (rest, work) = (self.random.scaled(40.0, 400.0), self.random.scaled(60.0, 500.0));
        self.train_as(Want { gpus: (1, 8), ..Want::ANY }, Some(Shape::Prepare { rest, work }));
    }

    fn hot(&mut self) {
        let job = self.train(Want::ANY);
        self.world.jobs[job].recipe.load.heavy = self.random.between(0.85, 1.05);
        self.even_out(job);
        for host in &mut self.world.hosts {
            for card in &mut host.cards {
                // Always close to the temperature at which it would throttle.
                let target = card.model.soft - self.random.between(1.5, 5.0);
                card.cooling = (target - card.ambient) / card.limit.min(card.load.heavy * card.model.limit);
            }
        }
    }

    fn capped(&mut self) {
        let hosts = self.some_hosts(0.6, 0.3);
        let job = self.train(Want { gpus: (2, 8), hosts, ..Want::ANY });
        self.world.jobs[job].recipe.load.heavy = self.random.between(0.9, 1.1);
        self.even_out(job);
        let share = self.random.between(0.5, 0.85);
        let later = self.random.chance(0.4).then(|| self.random.between(900.0, 2000.0));
        for h in 0..self.world.hosts.len() {
            for g in 0..self.world.hosts[h].cards.len() {
                let limit = (self.world.hosts[h].cards[g].model.limit * share).round();
                self.at(later.unwrap_or(0.0), Act::Limit(h, g, limit));
            }
        }
    }

    fn split(&mut self, model: &'static Model, h: usize, gpus: &[usize], begin: Option<f64>) -> usize {
        let recipe = self.recipe(model, gpus.len(), 1, Shape::Data, false);
        let members = self.members(&[h], gpus);
        let job = self.job(members, recipe, begin);
        self.even_out(job);
        job
    }

    fn two_jobs(&mut self) {
        let model = self.model(None);
        let h = self.host(model, 8);
        let at = self.random.pick(&[2, 4, 6]);
        let gpus: Vec<usize> = (0..8).collect();
        self.split(model, h, &gpus[..at], None);
        let begin = self.random.chance(0.7).then(|| self.random.between(100.0, 1500.0));
        self.split(model, h, &gpus[at..], begin);
    }

    fn two_models(&mut self) {
        let (one, two) = (self.model(None), self.model(None));
        let h = self.host(one, 4);
        let altered = self.altered;
        let more: Vec<Card> = (0..4).map(|_| Card::new(two, &mut self.random, altered)).collect();
        let host = self.world.hosts.remove(h);
        let cards: Vec<Card> = host.cards.into_iter().chain(more).collect();
        let rebuilt = Host::new(host.name, cards, host.eyes, &mut self.random);
        self.world.hosts.push(rebuilt);
        let all = self.random.chance(0.5);
        let gpus: Vec<usize> = (0..8).collect();
        if all {
            self.split(one, h, &gpus, None);
        } else {
            self.split(one, h, &gpus[..4], None);
            self.split(two, h, &gpus[4..], None);
        }
    }

    fn unused(&mut self) {
        let model = self.model(None);
        let h = self.host(model, 8);
        let used = self.random.pick(&[1, 2, 4]);
        let gpus: Vec<usize> = (0..used).collect();
        self.split(model, h, &gpus, None);
    }

    /// A job with more GPUs than it uses.
    fn reserved(&mut self) {
        let model = self.model(None);
        let h = self.host(model, 8);
        let used = self.random.pick(&[1, 2, 4]);
        let begin = self.random.between(10.0, 900.0);
        let gpus: Vec<usize> = (0..used).collect();
        let job = self.split(model, h, &gpus, Some(begin));
        self.world.jobs[job].reserved = vec![(h, (0..8).collect())];
        self.world.told_jobs = true;
        let mut label = self.label("unused", "reserved", Some(job), begin, self.world.seconds);
        label.places = vec![(h, (used as u32..8).collect())];
        label.note = true;
        self.add(label);
    }

    /// A job that uses all its GPUs after minutes without one.
    fn reserved_and_used(&mut self) {
        let model = self.model(None);
        let h = self.host(model, 8);
        let gpus: Vec<usize> = (0..8).collect();
        let begin = self.random.between(10.0, 900.0);
        let job = self.split(model, h, &gpus, Some(begin));
        self.world.jobs[job].recipe.start = self.random.between(60.0, 500.0);
        self.world.jobs[job].reserved = vec![(h, (0..8).collect())];
        self.world.told_jobs = true;
    }

    /// Sets the interval of samples that W&B has: 15 or 30 s.
    fn read_rarely(&mut self) {
        self.eyes.interval = self.random.pick(&[15.0, 30.0]);
    }

    /// Two jobs on one machine from the start, each on half of its GPUs. Returns the first.
    fn halves(&mut self) -> usize {
        let model = self.model(None);
        let h = self.host(model, 8);
        let first = self.split(model, h, &[0, 1, 2, 3], None);
        let begin = self.random.chance(0.5).then(|| self.random.between(100.0, 900.0));
        self.split(model, h, &[4, 5, 6, 7], begin);
        first
    }

    /// One of two jobs of a machine hangs, and the other one goes on.
    fn split_hang(&mut self) {
        let job = self.halves();
        self.stop(job, Kind::Spin);
        self.only_if_told_apart();
    }

    /// Two jobs that begin at once look like one where neither runs nor processes are known.
    fn only_if_told_apart(&mut self) {
        let known = self.world.told_jobs || self.eyes.processes;
        self.world.labels.iter_mut().for_each(|label| label.optional |= !known);
    }

    fn split_straggler(&mut self) {
        let job = self.halves();
        self.slow_member(job, false);
        self.only_if_told_apart();
    }

    /// A GPU is reset after a crash, and its clock stays low.
    fn stuck_after_reset(&mut self) {
        let job = self.train(Want { gpus: (4, 8), even: true, ..Want::ANY });
        let t = self.moment();
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let start = self.world.jobs[job].recipe.start;
        let speed = self.random.between(0.45, 0.8);
        let clock = (self.world.hosts[h].cards[g].work_clock().0 * speed / 15.0).round() * 15.0;
        self.at(t, Act::End(job));
        self.at(t + 5.0, Act::Stuck(h, g, Some(clock)));
        let again = t + self.random.between(30.0, 300.0);
        self.at(again, Act::Begin(job, start));
        let mut label = self.label("straggler", "clock after a reset", Some(job), again + start, self.world.seconds);
        label.places = vec![(h, vec![g as u32])];
        // Nothing is known of the new work from before: it is enough to list the GPU.
        (label.or, label.note, label.device) = (Some("uneven"), true, true);
        self.add(label);
    }

    /// A GPU whose NVLinks are down before its job begins.
    fn links_down_from_start(&mut self) {
        let job = self.train(Want { gpus: (8, 8), nvlink: Some(true), even: true, ..Want::ANY });
        self.world.hosts.iter_mut().for_each(|host| host.eyes.nvlink = true);
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        self.at(0.0, Act::Links(h, g, 0.0, 0.0));
        let mut label = self.label("slow_link", "links down from the start", Some(job), 0.0, self.world.seconds);
        label.places = vec![(h, vec![g as u32])];
        (label.device, label.note) = (true, true);
        self.add(label);
    }

    /// A job ends, and memory of some of its GPUs stays in use without a process that anybody sees.
    fn zombie(&mut self) {
        let job = self.train(Want::ANY);
        let t = self.moment().min(self.world.seconds - 1500.0);
        let count = self.world.jobs[job].members.len();
        let left = self.random.whole(1, count);
        let members: Vec<Member> = self.world.jobs[job].members[..left].to_vec();
        self.at(t, Act::End(job));
        for member in &members {
            let memory = self.world.hosts[member.host].cards[member.gpu].model.memory;
            let bytes = memory * self.random.between(0.1, 0.9);
            self.at(t, Act::Zombie(member.host, member.gpu, bytes));
        }
        let mut label = self.label("idle", "memory without a process", Some(job), t, self.world.seconds);
        label.places = vec![(members[0].host, members.iter().map(|m| m.gpu as u32).collect())];
        label.note = true;
        self.add(label);
    }

    /// Reads GPUs by DCGM's exporter alone: its counters, every 10 to 30 s, and nothing of the machine.
    fn read_by_dcgm(&mut self) {
        self.eyes.interval = self.random.pick(&[10.0, 15.0, 30.0]);
        self.eyes.dcgm = true;
        self.eyes.nvlink = self.random.chance(0.5);
        self.world.told_jobs = false;
    }

    /// A job on each GPU of a machine, which begin and end at their own times.
    fn jobs_by_gpu(&mut self) {
        let model = self.model(None);
        let h = self.host(model, 8);
        // Enough for all jobs together.
        let host = &mut self.world.hosts[h];
        (host.cores, host.disk, host.network) = (512.0, 100e9, 200e9);
        for g in 0..8 {
            let mut t = self.random.between(1.0, 900.0);
            while t < self.world.seconds {
                let job = self.split(model, h, &[g], Some(t));
                let lasts = self.world.jobs[job].recipe.start + self.random.scaled(120.0, 2400.0);
                self.at(t + lasts, Act::End(job));
                t += lasts + self.random.scaled(5.0, 600.0);
            }
        }
    }

    /// Somebody reads or writes many files: the page cache takes all free memory, and the kernel reclaims it all the time.
    fn page_cache(&mut self) {
        let job = self.train(Want::ANY);
        self.world.jobs[job].recipe.batch_bytes = 0.0;
        let h = self.world.jobs[job].hosts[0];
        let mut t = self.random.between(100.0, 900.0);
        while t < self.world.seconds {
            let lasts = self.random.scaled(60.0, 900.0);
            let all = 0.95 * self.world.hosts[h].disk;
            self.at(t, Act::DiskOthers(h, all));
            self.at(t, Act::Storm(h, true));
            self.at(t + lasts, Act::DiskOthers(h, 0.0));
            self.at(t + lasts, Act::Storm(h, false));
            t += lasts + self.random.between(100.0, 900.0);
        }
    }

    /// A rank ends and starts again, and the others wait for it.
    fn rank_restarted(&mut self) {
        let hosts = self.some_hosts(0.7, 0.25);
        let job = self.train(Want { gpus: (2, 8), hosts, ..Want::ANY });
        let mut t = self.random.between(300.0, 900.0);
        while t < self.world.seconds {
            let (at, _) = self.victim(job);
            let lasts = self.random.scaled(15.0, 150.0);
            self.at(t, Act::Respawn(job, at, lasts));
            t += lasts + self.random.scaled(300.0, 1500.0);
        }
    }

    /// An operator changes the power limit of all GPUs, several times.
    fn caps_by_the_hour(&mut self) {
        let hosts = self.some_hosts(0.6, 0.3);
        let job = self.train(Want { gpus: (2, 8), hosts, ..Want::ANY });
        self.world.jobs[job].recipe.load.heavy = self.random.between(0.9, 1.1);
        self.even_out(job);
        let mut t = self.random.between(300.0, 900.0);
        while t < self.world.seconds {
            let share = self.random.pick(&[0.5, 0.6, 0.75, 0.9, 1.0]);
            for h in 0..self.world.hosts.len() {
                for g in 0..self.world.hosts[h].cards.len() {
                    let limit = (self.world.hosts[h].cards[g].model.limit * share).round();
                    // One command after the other.
                    self.at(t + 0.5 * g as f64, Act::Limit(h, g, limit));
                }
            }
            t += self.random.scaled(300.0, 1500.0);
        }
    }

    /// All GPUs of a machine have half of the lanes, since its boot: slots of this kind.
    fn narrow_slots(&mut self) {
        let job = self.train(Want { gpus: (2, 8), ..Want::ANY });
        self.world.hosts.iter_mut().for_each(|host| host.eyes.lanes = true);
        for member in self.world.jobs[job].members.clone() {
            self.at(0.0, Act::Lanes(member.host, member.gpu, 8.0));
        }
    }

    /// Two jobs on the same GPUs.
    fn shared_gpus(&mut self) {
        let model = self.model(None);
        let count = self.random.pick(&[1, 2, 4]);
        let h = self.host(model, count);
        let gpus: Vec<usize> = (0..count).collect();
        for begin in [None, Some(self.random.between(100.0, 1200.0))] {
            let job = self.split(model, h, &gpus, begin);
            self.world.jobs[job].recipe.memory = Memory::Flat(self.random.between(0.2, 0.45));
            self.world.jobs[job].recipe.spins = false;
        }
    }

    fn in_a_row(&mut self) {
        let model = self.model(None);
        let count = self.random.pick(&[1, 4, 8]);
        let h = self.host(model, count);
        let gpus: Vec<usize> = (0..count).collect();
        let mut t = self.random.between(5.0, 60.0);
        while t < self.world.seconds {
            let job = self.split(model, h, &gpus, Some(t));
            let lasts = self.world.jobs[job].recipe.start + self.random.scaled(60.0, 900.0);
            self.at(t + lasts, Act::End(job));
            t += lasts + self.random.scaled(2.0, 200.0);
        }
    }

    fn crash(&mut self) {
        let hosts = self.some_hosts(0.6, 0.4);
        let job = self.train(Want { hosts, ..Want::ANY });
        let start = self.world.jobs[job].recipe.start;
        let mut t = self.random.between(300.0, 900.0);
        while t < self.world.seconds {
            self.at(t, Act::End(job));
            self.at(t + 5.0, Act::Begin(job, start));
            t += start + self.random.scaled(60.0, 1200.0);
        }
    }

    fn xids(&mut self) {
        let job = self.train(Want::ANY);
        self.world.hosts.iter_mut().for_each(|host| host.eyes.xid = true);
        let start = self.world.jobs[job].recipe.start;
        let mut t = self.random.between(200.0, 900.0);
        while t < self.world.seconds {
            let (_, victim) = self.victim(job);
            let xid = self.random.pick(&[13.0, 31.0, 43.0, 45.0, 68.0]);
            self.at(t, Act::Xid(victim.host, victim.gpu, xid));
            if xid != 45.0 {
                self.at(t + 2.0, Act::End(job));
                self.at(t + 15.0, Act::Begin(job, start));
            }
            t += self.random.scaled(200.0, 1500.0);
        }
    }

    fn blind(&mut self) {
        let hosts = self.some_hosts(0.7, 0.3);
        let job = self.train(Want { hosts, ..Want::ANY });
        let h = self.world.jobs[job].hosts[0];
        let mut t = self.random.between(200.0, 1200.0);
        while t < self.world.seconds {
            self.at(t, Act::Blind(h, true));
            let lasts = self.random.scaled(8.0, 240.0);
            self.at(t + lasts, Act::Blind(h, false));
            t += lasts + self.random.between(200.0, 1500.0);
        }
    }

    fn host_plateau(&mut self) {
        let job = self.train(Want::ANY);
        let h = self.world.jobs[job].hosts[0];
        let host = &self.world.hosts[h];
        let used = host.base_memory + self.world.jobs[job].recipe.resident * host.cards.len() as f64;
        let more = (self.random.between(0.8, 0.94) * host.memory - used).max(0.0);
        // A data set is read into memory, more and more slowly, until it is complete.
        let (mut t, mut left) = (self.random.between(100.0, 900.0), more);
        while left > 0.02 * more {
            let part = 0.35 * left;
            self.at(t, Act::Other(h, part / 60.0));
            left -= part;
            t += 60.0;
        }
        self.at(t, Act::Other(h, 0.0));
    }

    fn uneven(&mut self) {
        let job = self.train(Want { gpus: (4, 8), ..Want::ANY });
        let (at, _) = self.victim(job);
        for member in 0..self.world.jobs[job].shares.len() {
            self.world.jobs[job].shares[member] = self.random.between(0.85, 1.0);
        }
        self.world.jobs[job].shares[at] = 1.15;
    }

    fn few_corrected(&mut self) {
        let job = self.train(Want::ANY);
        let (_, victim) = self.victim(job);
        let rate = self.random.between(0.05, 0.6);
        self.at(0.0, Act::Correcting(victim.host, victim.gpu, rate));
    }

    fn goodbye(&mut self) {
        let job = self.train(Want { gpus: (2, 8), hosts: (2, 4), ..Want::ANY });
        let t = self.moment();
        self.at(t, Act::End(job));
        let h = self.world.jobs[job].hosts[1];
        let after = self.random.between(5.0, 200.0);
        self.at(t + after, Act::Goodbye(h));
    }

    fn busy_disk(&mut self) {
        let job = self.train(Want::ANY);
        // Others use the disk, and the job has its data in memory.
        self.world.jobs[job].recipe.batch_bytes = 0.0;
        let h = self.world.jobs[job].hosts[0];
        let mut t = self.random.between(100.0, 900.0);
        while t < self.world.seconds {
            let all = self.world.hosts[h].disk;
            self.at(t, Act::DiskOthers(h, all));
            let lasts = self.random.scaled(60.0, 900.0);
            self.at(t + lasts, Act::DiskOthers(h, 0.0));
            t += lasts + self.random.between(100.0, 900.0);
        }
    }

    fn busy_cpu(&mut self) {
        let job = self.train(Want::ANY);
        self.world.jobs[job].recipe.headroom = 4.0;
        let h = self.world.jobs[job].hosts[0];
        let mut t = self.random.between(100.0, 900.0);
        while t < self.world.seconds {
            let r = &self.world.jobs[job].recipe;
            let members = self.world.hosts[h].cards.len() as f64;
            let own = self.world.jobs[job].need() * r.batch_cores * members + members * r.cores + 1.0;
            let hog = (self.world.hosts[h].cores * 0.97 - own).max(0.0);
            self.at(t, Act::Hog(h, hog));
            let lasts = self.random.scaled(60.0, 900.0);
            self.at(t + lasts, Act::Hog(h, 0.0));
            t += lasts + self.random.between(100.0, 900.0);
        }
    }

    fn restarted(&mut self) {
        let job = self.train(Want::ANY);
        let h = self.world.jobs[job].hosts[0];
        let mut t = self.random.between(200.0, 900.0);
        while t < self.world.seconds {
            self.at(t, Act::Restart(h));
            t += self.random.between(200.0, 1500.0);
        }
    }

    fn brief_heat(&mut self) {
        let job = self.train(Want::ANY);
        let (_, victim) = self.victim(job);
        let (h, g) = (victim.host, victim.gpu);
        let mut t = self.random.between(200.0, 900.0);
        while t < self.world.seconds {
            self.at(t, Act::Brake(h, g, true));
            self.at(t + self.eyes.interval.max(2.0), Act::Brake(h, g, false));
            t += self.random.between(60.0, 900.0);
        }
    }

    /// Longer texts, larger batches, another stage of the schedule: equal for all members.
    fn work_changes(&mut self) {
        let hosts = self.some_hosts(0.7, 0.2);
        let job = self.train(Want { hosts, ..Want::ANY });
        let mut t = self.random.between(400.0, 1200.0);
        let mut last = 1.0;
        while t < self.world.seconds {
            let times = self.random.scaled(0.4, 2.5);
            let heavy = self.random.between(0.6, 1.05);
            self.at(t, Act::Work(job, times / last, heavy));
            last = times;
            t += self.random.scaled(200.0, 1500.0);
        }
    }

    /// The member with more work changes every few seconds, as texts are routed to experts.
    fn experts(&mut self) {
        let job = self.train(Want { gpus: (4, 8), ..Want::ANY });
        self.world.jobs[job].recipe.own_jitter = self.random.between(0.05, 0.12);
    }

    /// Only one process reads and distributes data: it uses more CPU time than the others.
    fn lone_loader(&mut self) {
        let job = self.train(Want { gpus: (2, 8), ..Want::ANY });
        self.world.jobs[job].shares[0] = 0.9;
        self.world.jobs[job].recipe.batch_cores *= 2.0;
        self.even_out(job);
    }

    fn healthy(&mut self) {
        let hosts = self.some_hosts(0.6, 0.25);
        match self.random.whole(0, 9) {
            0 => self.inference(),
            1 => self.notebook(),
            2 => self.two_jobs(),
            3 => self.in_a_row(),
            _ => {
                self.train(Want { hosts, ..Want::ANY });
            }
        }
    }
}
