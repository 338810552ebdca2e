//! Makes a trace: its machines and jobs, and when something happens to them.

use super::card::{Card, Load, MODELS, Model};
use super::job::{Habit, HabitKind, Job, Member, Memory, Recipe, Shape};
use super::random::{Altered, Random};
use super::world::{Act, Eyes, Host, Label, Port, World};

/// A trace in the making.
pub struct Maker {
    pub world: World,
    pub random: Random,
    pub altered: Altered,
    pub eyes: Eyes,
    /// Number of machines of a job across machines; None: random.
    pub machines: Option<usize>,
}

/// Requirements for the job of a trace.
#[derive(Clone, Copy)]
pub struct Want {
    pub gpus: (usize, usize),
    pub hosts: (usize, usize),
    pub nvlink: Option<bool>,
    pub even: bool,
    pub exchange: bool,
}

impl Want {
    pub const ANY: Want = Want { gpus: (1, 8), hosts: (1, 1), nvlink: None, even: false, exchange: false };
}

impl Maker {
    pub fn new(name: &str, mut random: Random, altered: Altered) -> Self {
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

    pub fn at(&mut self, t: f64, act: Act) {
        self.world.acts.push((t, act));
    }

    pub fn model(&mut self, nvlink: Option<bool>) -> &'static Model {
        loop {
            let model = &MODELS[self.random.whole(0, MODELS.len() - 1)];
            // DCGM reads the GPUs of data centers by NVIDIA.
            let readable = !self.eyes.dcgm || !(model.amd || model.fan);
            if readable && nvlink.is_none_or(|wanted| (model.nvlink > 0.0) == wanted) {
                return model;
            }
        }
    }

    pub fn host(&mut self, model: &'static Model, count: usize) -> usize {
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

    pub fn recipe(&mut self, model: &Model, count: usize, hosts: usize, shape: Shape, exchange: bool) -> Recipe {
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

    pub fn members(&mut self, hosts: &[usize], gpus: &[usize]) -> Vec<Member> {
        let first = 2000 + 20_000 * self.world.jobs.len() as u32;
        let member = |host: usize, gpu: usize| Member { host, gpu, pid: first + gpu as u32 + 1 };
        hosts.iter().flat_map(|&host| gpus.iter().map(move |&gpu| member(host, gpu))).collect()
    }

    pub fn job(&mut self, members: Vec<Member>, recipe: Recipe, begin: Option<f64>) -> usize {
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
    pub fn train(&mut self, want: Want) -> usize {
        self.train_as(want, None)
    }

    pub fn train_as(&mut self, want: Want, shape: Option<Shape>) -> usize {
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
    pub fn even_out(&mut self, job: usize) {
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
    pub fn moment(&mut self) -> f64 {
        let seconds = self.world.seconds;
        if self.random.chance(0.12) {
            self.random.between(300.0, 600.0)
        } else {
            self.random.between(0.25, 0.6) * seconds
        }
    }

    pub fn label(&mut self, kind: &'static str, name: &'static str, job: Option<usize>, onset: f64, end: f64) -> Label {
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

    pub fn places_of(&self, job: usize) -> Vec<(usize, Vec<u32>)> {
        let job = &self.world.jobs[job];
        let gpus = |h: usize| job.members.iter().filter(|m| m.host == h).map(|m| m.gpu as u32).collect();
        job.hosts.iter().map(|&h| (h, gpus(h))).collect()
    }

    pub fn add(&mut self, label: Label) -> usize {
        self.world.labels.push(label);
        self.world.labels.len() - 1
    }

    pub fn victim(&mut self, job: usize) -> (usize, Member) {
        let at = self.random.whole(0, self.world.jobs[job].members.len() - 1);
        (at, self.world.jobs[job].members[at].clone())
    }

    pub fn some_hosts(&mut self, one: f64, few: f64) -> (usize, usize) {
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

    /// Limits a disk to `allowed` of the `needed` bytes per second: by itself, or by writes of others.
    pub fn limit_disk(&mut self, h: usize, (t, end): (f64, f64), needed: f64, allowed: f64) {
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

    pub fn split(&mut self, model: &'static Model, h: usize, gpus: &[usize], begin: Option<f64>) -> usize {
        let recipe = self.recipe(model, gpus.len(), 1, Shape::Data, false);
        let members = self.members(&[h], gpus);
        let job = self.job(members, recipe, begin);
        self.even_out(job);
        job
    }

    /// Sets the interval of samples that W&B has: 15 or 30 s.
    pub fn read_rarely(&mut self) {
        self.eyes.interval = self.random.pick(&[15.0, 30.0]);
    }

    /// Two jobs on one machine from the start, each on half of its GPUs. Returns the first.
    pub fn halves(&mut self) -> usize {
        let model = self.model(None);
        let h = self.host(model, 8);
        let first = self.split(model, h, &[0, 1, 2, 3], None);
        let begin = self.random.chance(0.5).then(|| self.random.between(100.0, 900.0));
        self.split(model, h, &[4, 5, 6, 7], begin);
        first
    }

    /// Two jobs that begin at once look like one where neither runs nor processes are known.
    pub fn only_if_told_apart(&mut self) {
        let known = self.world.told_jobs || self.eyes.processes;
        self.world.labels.iter_mut().for_each(|label| label.optional |= !known);
    }

    /// Reads GPUs by DCGM's exporter alone: its counters, every 10 to 30 s, and nothing of the machine.
    pub fn read_by_dcgm(&mut self) {
        self.eyes.interval = self.random.pick(&[10.0, 15.0, 30.0]);
        self.eyes.dcgm = true;
        self.eyes.nvlink = self.random.chance(0.5);
        self.world.told_jobs = false;
    }
}
