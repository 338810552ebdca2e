//! A program on some GPUs, step by step. Each member processes its pieces of work at its own speed, and waits for the
//! slowest at synchronization points. It moves data as fast as the slowest link.

use super::card::{Load, Parts, What};
use super::random::Random;
use std::collections::VecDeque;

/// One GPU of a job, and its process.
#[derive(Clone, Debug)]
pub struct Member {
    pub host: usize,
    pub gpu: usize,
    pub pid: u32,
}

/// Parallelism of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// All members compute the same, then exchange gradients.
    Data,
    /// The same, with exchanges within the step.
    Sharded,
    /// Each member computes one stage and passes its output on.
    Pipeline,
    /// One after the other: a model split over GPUs by layers.
    Turns,
    /// Generates texts of varying length, then trains on them.
    Rollout { long: f64, trains: usize },
    /// Serves requests: share of the time with requests, and length of bursts and lulls.
    Serve { load: f64, lull: f64 },
    /// A user runs cells and thinks in between.
    Notebook { think: f64, cell: f64 },
    /// A part of each round runs on the CPU alone.
    Prepare { rest: f64, work: f64 },
    /// Holds GPUs without work.
    Held,
}

/// Periodic events of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HabitKind {
    /// All stop and write to the disk.
    Save,
    /// One writes, the others wait in the next exchange.
    SaveOne,
    /// All stop and write over the network.
    SaveNetwork,
    /// All stop, write over the network for a moment, and wait for a file server that does not answer.
    SaveStalls,
    /// A short stop, and the disk is written beside the work.
    SaveBeside,
    EvalAll,
    /// One member evaluates, the others wait in the next exchange.
    EvalOne,
    /// Evaluation on the CPU.
    EvalCpu,
    Recompile,
}

#[derive(Clone, Copy, Debug)]
pub struct Habit {
    pub kind: HabitKind,
    pub every: f64,
    pub seconds: f64,
    pub next: f64,
}

/// Course of the memory of the GPUs.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// To a share within seconds, then constant.
    Flat(f64),
    /// Evenly up and suddenly down, between two shares: data that is buffered and processed together.
    Saw { low: f64, high: f64, period: f64 },
    /// More and more slowly up, and suddenly down. Longest texts are met more rarely, and their memory is released at
    /// times.
    Records { low: f64, high: f64, period: f64 },
    /// In steps, up to a share.
    Steps { first: f64, last: f64, every: f64, count: f64 },
    /// More and more slowly towards a share.
    Toward { first: f64, last: f64, tau: f64 },
}

impl Memory {
    /// Share of the card's memory, `age` seconds after the work began.
    pub fn share(self, age: f64) -> f64 {
        match self {
            Memory::Flat(share) => share * (1.0 - 0.25 * (-age / 8.0).exp()),
            Memory::Saw { low, high, period } => low + (high - low) * (age / period).fract(),
            Memory::Records { low, high, period } => {
                low + (high - low) * (1.0 + 30.0 * (age / period).fract()).ln() / 31f64.ln()
            }
            Memory::Steps { first, last, every, count } => {
                first + (last - first) * ((age / every).floor() / count).min(1.0)
            }
            Memory::Toward { first, last, tau } => last - (last - first) * (-age / tau).exp(),
        }
    }
}

/// Resources that a job uses beside the GPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Effect {
    /// Cores per member; None: as in a step.
    cores: Option<f64>,
    /// Bytes per second written by the first machine, and sent by each.
    write: f64,
    send: f64,
}

#[derive(Clone, Debug)]
struct Section {
    whats: Vec<What>,
    /// Seconds at full speed, by piece of work, for each member.
    amounts: Vec<f64>,
    /// A member that is done waits in a kernel, else without one.
    spins: bool,
    effect: Effect,
}

/// Relative speed of a member, 1 for full speed.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    pub tensor: f64,
    pub stream: f64,
    pub cpu: f64,
    pub copy: f64,
    /// Share of the time with launched work.
    pub launch: f64,
}

/// Parameters of a job.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub shape: Shape,
    /// Seconds of tensor work in a step.
    pub step: f64,
    /// Seconds of memory work, of the program's own thread, and of copying in a step.
    pub optimizer: f64,
    pub gap: f64,
    pub copy: f64,
    /// Seconds of an exchange over sound links, and how many of them overlap with the work.
    pub exchange: f64,
    pub hidden: f64,
    /// Bytes of an exchange that each member sends; bytes of a batch that it receives.
    pub exchange_bytes: f64,
    pub copy_bytes: f64,
    /// Deviation of the length of a step, and of a member's part in it; share of long steps, and their length.
    pub jitter: f64,
    pub own_jitter: f64,
    pub odd: f64,
    pub odd_times: f64,
    /// Members wait in a kernel.
    pub spins: bool,
    /// Cores used by a member's own thread in a step.
    pub cores: f64,
    /// Core seconds and bytes of a batch, production speed relative to the need, number of buffered batches, and
    /// whether they are read over the network.
    pub batch_cores: f64,
    pub batch_bytes: f64,
    pub headroom: f64,
    pub kept: f64,
    pub remote: bool,
    pub load: Load,
    pub memory: Memory,
    /// Memory on the machine, bytes per member.
    pub resident: f64,
    /// Seconds from its start to its first step.
    pub start: f64,
    pub habits: Vec<Habit>,
}

impl Recipe {
    /// Scales a step and its batches by `times`, and its power by `heavy`.
    pub fn change_work(&mut self, times: f64, heavy: f64) {
        for part in [&mut self.step, &mut self.optimizer, &mut self.copy, &mut self.batch_cores, &mut self.batch_bytes]
        {
            *part *= times;
        }
        self.load.heavy = heavy;
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// Not started or ended.
    Off,
    /// Since, until.
    Starting(f64, f64),
    Running,
}

/// Cause of a hang.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hang {
    /// All wait in a kernel.
    Spin,
    /// This member has stopped, with this many cores busy; the others wait for it.
    Odd(usize, f64),
    /// All wait without a kernel.
    Idle,
}

pub struct Job {
    pub name: String,
    pub members: Vec<Member>,
    /// The machines, each once, and the position of each member's machine among them.
    pub hosts: Vec<usize>,
    pub place: Vec<usize>,
    pub recipe: Recipe,
    /// Share of work of each member: 1 where it is even.
    pub shares: Vec<f64>,
    /// Relative speed of each member's own thread.
    pub own_cpu: Vec<f64>,
    pub stage: Stage,
    pub known: bool,
    /// GPUs that a scheduler reserved for it, by machine.
    pub reserved: Vec<(usize, Vec<u32>)>,
    pub leak: f64,
    pub leaked: f64,
    pub host_leak: f64,
    pub host_leaked: f64,
    pub hang: Option<Hang>,
    pub hung_since: Option<f64>,
    pub running_since: f64,
    pub last_work: f64,
    pub parts: Vec<Parts>,
    /// Core seconds, bytes written, sent and read in the interval, by machine.
    pub cores: Vec<f64>,
    pub written: Vec<f64>,
    pub sent: Vec<f64>,
    pub batches: Vec<f64>,
    /// Steps done in the interval.
    pub steps: f64,
    stock: Vec<(f64, f64)>,
    queue: VecDeque<Section>,
    current: Option<Section>,
    cursor: Vec<(usize, f64)>,
    /// Its processes wait for a file server until then.
    pub stalled_until: f64,
    writes_until: f64,
    write_rate: f64,
    tensor_rate: f64,
    comm_rate: f64,
}

impl Job {
    pub fn new(name: String, members: Vec<Member>, recipe: Recipe) -> Self {
        let mut hosts: Vec<usize> = members.iter().map(|m| m.host).collect();
        hosts.dedup();
        let place = members.iter().map(|m| hosts.iter().position(|&h| h == m.host).unwrap_or(0)).collect();
        let (n, h) = (members.len(), hosts.len());
        let kept = recipe.kept;
        Job {
            name,
            members,
            place,
            shares: vec![1.0; n],
            own_cpu: vec![1.0; n],
            recipe,
            stage: Stage::Off,
            known: true,
            reserved: Vec::new(),
            leak: 0.0,
            leaked: 0.0,
            host_leak: 0.0,
            host_leaked: 0.0,
            hang: None,
            hung_since: None,
            running_since: 0.0,
            last_work: 0.0,
            parts: vec![Parts::default(); n],
            cores: vec![0.0; h],
            written: vec![0.0; h],
            sent: vec![0.0; h],
            batches: vec![0.0; h],
            steps: 0.0,
            stock: vec![(kept, 0.0); h],
            hosts,
            queue: VecDeque::new(),
            current: None,
            cursor: vec![(0, 0.0); n],
            stalled_until: 0.0,
            writes_until: 0.0,
            write_rate: 0.0,
            tensor_rate: 0.0,
            comm_rate: 0.0,
        }
    }

    /// Batches per second that the members on a machine need without any delay.
    pub fn need(&self) -> f64 {
        let r = &self.recipe;
        1.0 / (r.step + r.optimizer + r.gap + r.copy + (r.exchange - r.hidden).max(0.0))
    }

    /// Batches per second that the members on a machine consume at the speed of its cards.
    pub fn pace(&self, speed: (f64, f64)) -> f64 {
        let r = &self.recipe;
        let work = r.step / speed.0 + r.optimizer / speed.1;
        1.0 / (work + r.gap + r.copy + (r.exchange - r.hidden).max(0.0))
    }

    /// Starts the job, with the first step `start` later; 0: it was running before the trace began.
    pub fn begin(&mut self, t: f64, start: f64) {
        self.queue.clear();
        self.current = None;
        (self.hang, self.hung_since, self.leaked, self.host_leaked) = (None, None, 0.0, 0.0);
        for pid in self.members.iter_mut().map(|m| &mut m.pid) {
            *pid += 1000;
        }
        for habit in &mut self.recipe.habits {
            habit.next = habit.next.max(t + start + 0.3 * habit.every);
        }
        self.stage = Stage::Starting(t, t + start);
        if start <= 0.0 {
            self.stage = Stage::Running;
            self.running_since = t - 3600.0;
            self.last_work = t;
        }
    }

    pub fn end(&mut self) {
        self.stage = Stage::Off;
        self.queue.clear();
        self.current = None;
        (self.leak, self.leaked, self.host_leak, self.host_leaked) = (0.0, 0.0, 0.0, 0.0);
        (self.hang, self.hung_since) = (None, None);
        self.writes_until = 0.0;
    }

    /// Stops the job after its current work.
    pub fn stall(&mut self, hang: Hang) {
        self.queue.clear();
        self.hang = Some(hang);
    }

    /// Starts one member of a running job again, which takes `seconds`. The others wait for it.
    pub fn respawn(&mut self, member: usize, seconds: f64) {
        if self.stage != Stage::Running {
            return;
        }
        self.queue.clear();
        self.current = None;
        self.members[member].pid += 1000;
        let waits = vec![(What::Rest, self.one(member, seconds))];
        self.push(waits, self.recipe.spins, Effect { cores: Some(1.0), ..Effect::default() });
    }

    /// Memory of a member on its card at `t`, as a share of the card's memory.
    pub fn memory(&self, member: usize, t: f64) -> f64 {
        let own = 0.985 + 0.03 * ((member * 7 % 11) as f64 / 11.0);
        match self.stage {
            Stage::Off => 0.0,
            Stage::Starting(since, until) => {
                let at = ((t - since) / (until - since).max(1.0)).clamp(0.0, 1.0);
                self.recipe.memory.share(0.0) * 0.8 * own * ((at - 0.4) / 0.6).clamp(0.02, 1.0)
            }
            Stage::Running => (self.recipe.memory.share(t - self.running_since) * own).min(0.985),
        }
    }

    /// Works from `from` to `to`. `ring` is the duration of an exchange relative to sound links; `supply` the batches
    /// per second that each machine can produce.
    pub fn advance(
        &mut self,
        (from, to): (f64, f64),
        speeds: &[Speed],
        ring: f64,
        supply: &[f64],
        random: &mut Random,
    ) {
        self.parts.fill(Parts::default());
        for sums in [&mut self.cores, &mut self.written, &mut self.sent, &mut self.batches] {
            sums.fill(0.0);
        }
        self.steps = 0.0;
        let mut now = from;
        if let Stage::Starting(_, until) = self.stage {
            let end = until.min(to);
            for (member, parts) in self.parts.iter_mut().enumerate() {
                parts.rest += (end - now).max(0.0);
                self.cores[self.place[member]] += 1.1 * (end - now).max(0.0);
            }
            now = end;
            if until <= to {
                self.stage = Stage::Running;
                self.running_since = until;
            }
        }
        if self.stage != Stage::Running {
            return;
        }
        while now < to {
            if self.current.is_none() {
                if self.queue.is_empty() {
                    self.plan(now, ring, supply, random);
                }
                self.take();
            }
            now = self.work(now, to, speeds);
        }
        if self.writes_until > from {
            self.written[0] += self.write_rate * (self.writes_until.min(to) - from);
        }
    }

    fn take(&mut self) {
        let Some(section) = self.queue.pop_front() else { return };
        for (member, cursor) in self.cursor.iter_mut().enumerate() {
            *cursor = (0, section.amounts[member]);
        }
        self.current = Some(section);
    }

    /// Works on the current section until it ends or `to`. Returns the time at which it stopped.
    fn work(&mut self, now: f64, to: f64, speeds: &[Speed]) -> f64 {
        let Some(section) = self.current.take() else { return to };
        let count = self.members.len();
        let (mut end, mut done) = (now, true);
        let mut ends = vec![now; count];
        for (member, speed) in speeds.iter().enumerate() {
            let (mut piece, mut left) = self.cursor[member];
            let mut at = now;
            while piece < section.whats.len() {
                let what = section.whats[piece];
                let rate = match what {
                    What::Tensor => speed.tensor * speed.launch,
                    What::Stream => speed.stream,
                    What::Cpu => speed.cpu,
                    What::Copy => speed.copy,
                    _ => 1.0,
                };
                let takes = left / rate;
                let spent = takes.min(to - at);
                let parts = &mut self.parts[member];
                if what == What::Tensor && speed.launch < 1.0 {
                    parts.add(What::Tensor, spent * speed.launch);
                    parts.add(What::Rest, spent * (1.0 - speed.launch));
                } else {
                    parts.add(what, spent);
                }
                match what {
                    What::Tensor => parts.peers += spent * self.tensor_rate,
                    What::Comm => parts.peers += spent * self.comm_rate,
                    What::Copy => parts.host += spent * rate * self.recipe.copy_bytes / self.recipe.copy.max(1e-6),
                    _ => {}
                }
                if matches!(what, What::Tensor | What::Stream) && spent > 0.0 {
                    self.last_work = at + spent;
                }
                if takes > spent {
                    left -= spent * rate;
                    at = to;
                    done = false;
                    break;
                }
                at += takes;
                piece += 1;
                left = section.amounts.get(piece * count + member).copied().unwrap_or(0.0);
            }
            self.cursor[member] = (piece, left);
            ends[member] = at;
            end = end.max(at);
        }
        let until = if done { end } else { to };
        for (member, end) in ends.into_iter().enumerate() {
            let wait = until - end;
            self.parts[member].add(if section.spins { What::Spin } else { What::Rest }, wait);
            let cores = section.effect.cores.unwrap_or(self.recipe.cores);
            self.cores[self.place[member]] += cores * (until - now);
        }
        if section.effect.write > 0.0 {
            self.written[0] += section.effect.write * (until - now);
        }
        if section.effect.send > 0.0 {
            self.sent.iter_mut().for_each(|sent| *sent += section.effect.send * (until - now));
        }
        if !done {
            self.current = Some(section);
        }
        // A section of zero length would never end.
        until.max(now + 1e-6)
    }

    fn push(&mut self, pieces: Vec<(What, Vec<f64>)>, spins: bool, effect: Effect) {
        let (mut whats, mut amounts) = (Vec::with_capacity(pieces.len()), Vec::new());
        for (what, seconds) in pieces {
            whats.push(what);
            amounts.extend(seconds);
        }
        self.queue.push_back(Section { whats, amounts, spins, effect });
    }

    fn all(&self, seconds: f64) -> Vec<f64> {
        vec![seconds; self.members.len()]
    }

    fn one(&self, member: usize, seconds: f64) -> Vec<f64> {
        (0..self.members.len()).map(|m| if m == member { seconds } else { 0.0 }).collect()
    }

    fn stop(&mut self, now: f64, hang: Hang) {
        let forever = 1e9;
        let (what, amounts, spins, cores) = match hang {
            Hang::Spin => (What::Spin, self.all(forever), true, Some(self.recipe.cores)),
            Hang::Odd(member, own) => {
                let others = self.members.len() as f64 - 1.0;
                let cores = (others * self.recipe.cores + own) / (others + 1.0);
                (What::Rest, self.one(member, forever), true, Some(cores))
            }
            Hang::Idle => (What::Rest, self.all(forever), false, Some(0.02)),
        };
        self.push(vec![(what, amounts)], spins, Effect { cores, ..Effect::default() });
        self.hung_since = Some(now);
    }

    fn plan(&mut self, now: f64, ring: f64, supply: &[f64], random: &mut Random) {
        if let Some(hang) = self.hang {
            return self.stop(now, hang);
        }
        if let Some(at) = self.recipe.habits.iter().position(|habit| habit.next <= now) {
            let habit = self.recipe.habits[at];
            self.recipe.habits[at].next = now + habit.every * random.about_one(0.05);
            let seconds = habit.seconds * random.about_one(0.1);
            return self.habit(habit.kind, seconds, now, random);
        }
        let load_of_hour = |t: f64| 0.75 + 0.25 * (t / 1900.0).sin();
        match self.recipe.shape {
            Shape::Data | Shape::Sharded | Shape::Pipeline | Shape::Turns => self.step(now, ring, supply, random),
            Shape::Rollout { long, trains } => {
                let lengths = (0..self.members.len()).map(|_| long * random.about_one(0.3)).collect();
                let spins = self.recipe.spins && random.chance(0.2);
                self.push(vec![(What::Stream, lengths)], spins, Effect { cores: Some(1.0), ..Effect::default() });
                for _ in 0..trains {
                    self.step(now, ring, supply, random);
                }
            }
            Shape::Serve { load, lull } => {
                let (step, quiet) = (self.recipe.step * random.about_one(0.4), load * load_of_hour(now));
                let wait = if random.chance(0.02) { lull * random.about_one(0.8) } else { step * (1.0 / quiet - 1.0) };
                let wait = random.until(wait.max(1e-3));
                let pieces = vec![
                    (What::Rest, self.all(wait)),
                    (What::Copy, self.all(self.recipe.copy)),
                    (What::Tensor, self.all(step * 0.3)),
                    (What::Stream, self.all(step * 0.7)),
                ];
                self.push(pieces, true, Effect { cores: Some(0.8), ..Effect::default() });
            }
            Shape::Notebook { think, cell } => {
                let (think, cell) = (think * random.about_one(0.7), cell * random.about_one(0.9));
                self.push(
                    vec![(What::Rest, self.all(think))],
                    false,
                    Effect { cores: Some(0.02), ..Effect::default() },
                );
                let steps = (cell / self.recipe.step).ceil().clamp(1.0, 3000.0) as usize;
                for _ in 0..steps {
                    self.step(now, ring, supply, random);
                }
            }
            Shape::Prepare { rest, work } => {
                let cores = Some(6.0 * random.about_one(0.3));
                let rest = rest * random.about_one(0.3);
                self.push(vec![(What::Rest, self.all(rest))], false, Effect { cores, ..Effect::default() });
                let steps = (work / self.recipe.step).ceil().max(1.0) as usize;
                for _ in 0..steps {
                    self.step(now, ring, supply, random);
                }
            }
            Shape::Held => {
                self.push(vec![(What::Rest, self.all(60.0))], false, Effect { cores: Some(0.01), ..Effect::default() });
            }
        }
    }

    /// Takes the next batch of the machine. Returns the seconds until it is ready.
    fn batch(&mut self, host: usize, now: f64, supply: f64) -> f64 {
        let (stock, at) = self.stock[host];
        let stock = (stock + supply * (now - at).max(0.0)).min(self.recipe.kept);
        self.batches[host] += 1.0;
        let wait = if stock >= 1.0 { 0.0 } else { ((1.0 - stock) / supply.max(1e-6)).min(60.0) };
        self.stock[host] = if stock >= 1.0 { (stock - 1.0, now.max(at)) } else { (0.0, now.max(at) + wait) };
        wait
    }

    /// Each member works while the others wait: forward through the layers, then back.
    fn take_turns(&mut self, r: &Recipe, long: f64, data: Vec<f64>, random: &mut Random) {
        let count = self.members.len();
        let order: Vec<(usize, f64)> =
            (0..count).map(|m| (m, 0.33)).chain((0..count).rev().map(|m| (m, 0.67))).collect();
        let gap = r.gap * random.about_one(0.1);
        self.push(vec![(What::Cpu, self.all(gap)), (What::Rest, data)], false, Effect::default());
        for (member, share) in order {
            let seconds = r.step * share * long * self.shares[member] / count as f64;
            let pieces = vec![
                (What::Copy, self.one(member, r.copy / count as f64)),
                (What::Tensor, self.one(member, seconds)),
                (What::Stream, self.one(member, r.optimizer * share / count as f64)),
            ];
            self.push(pieces, false, Effect::default());
        }
    }

    fn step(&mut self, now: f64, ring: f64, supply: &[f64], random: &mut Random) {
        self.steps += 1.0;
        let count = self.members.len();
        let r = self.recipe.clone();
        let mut long = random.about_one(r.jitter);
        if random.chance(r.odd) {
            long *= 1.0 + (r.odd_times - 1.0) * random.unit();
        }
        let waits: Vec<f64> = (0..self.hosts.len()).map(|h| self.batch(h, now, supply[h])).collect();
        let data: Vec<f64> = self.place.iter().map(|&h| waits[h]).collect();
        let shares = self.shares.clone();
        let own = |share: f64, random: &mut Random| -> Vec<f64> {
            (0..count).map(|m| r.step * share * long * shares[m] * random.about_one(r.own_jitter)).collect()
        };
        let whole = r.exchange * ring;
        let hidden = r.hidden.min(whole);
        let shown = if count > 1 { (whole - hidden).max(0.002 * r.step) } else { 0.0 };
        let rate = r.exchange_bytes / whole.max(1e-6);
        if count > 1 {
            self.tensor_rate = rate * hidden / (r.step * long).max(1e-6);
            self.comm_rate = rate;
        }
        let plain = Effect::default();
        match r.shape {
            Shape::Turns => {
                self.take_turns(&r, long, data, random);
            }
            Shape::Pipeline => {
                let fill = r.step / (4.0 * count as f64);
                let before: Vec<f64> = (0..count).map(|m| m as f64 * fill).collect();
                let after: Vec<f64> = (0..count).map(|m| (count - 1 - m) as f64 * fill).collect();
                let gap = r.gap * random.about_one(0.1);
                let first = vec![
                    (What::Stream, self.all(r.optimizer)),
                    (What::Cpu, self.all(gap)),
                    (What::Rest, data),
                    (What::Spin, before),
                    (What::Tensor, own(0.25, random)),
                ];
                let (second, third) = (own(0.25, random), own(0.25, random));
                let last = vec![(What::Tensor, own(0.25, random)), (What::Spin, after)];
                self.push(first, r.spins, plain);
                self.push(vec![(What::Tensor, second)], r.spins, plain);
                self.push(vec![(What::Tensor, third)], r.spins, plain);
                self.push(last, r.spins, plain);
                self.push(vec![(What::Comm, self.all(shown))], true, plain);
            }
            _ => {
                let sections: usize = if r.shape == Shape::Sharded { 3 } else { 1 };
                let share = 1.0 / sections as f64;
                let gap = r.gap * random.about_one(0.1);
                for section in 0..sections {
                    let work = own(share, random);
                    let pieces = if section == 0 {
                        vec![
                            (What::Stream, self.all(r.optimizer)),
                            (What::Cpu, self.all(gap)),
                            (What::Rest, data.clone()),
                            (What::Copy, self.all(r.copy)),
                            (What::Tensor, work),
                        ]
                    } else {
                        vec![(What::Tensor, work)]
                    };
                    self.push(pieces, r.spins, plain);
                    if count > 1 {
                        self.push(vec![(What::Comm, self.all(shown * share))], true, plain);
                    }
                }
            }
        }
    }

    fn habit(&mut self, kind: HabitKind, seconds: f64, now: f64, random: &mut Random) {
        let bytes = 0.15e9 * (4.0 + random.unit());
        match kind {
            HabitKind::Save => {
                let effect = Effect { cores: Some(0.6), write: bytes * 2.0, send: 0.0 };
                self.push(vec![(What::Rest, self.all(seconds))], false, effect);
            }
            HabitKind::SaveOne => {
                let effect = Effect { cores: Some(1.0), write: bytes * 2.0, send: 0.0 };
                self.push(vec![(What::Rest, self.one(0, seconds))], true, effect);
            }
            HabitKind::SaveNetwork => {
                let effect = Effect { cores: Some(0.6), write: 0.0, send: bytes };
                self.push(vec![(What::Rest, self.all(seconds))], false, effect);
            }
            HabitKind::SaveStalls => {
                let sends = Effect { cores: Some(0.6), write: 0.0, send: bytes };
                self.push(vec![(What::Rest, self.all(0.1 * seconds))], false, sends);
                let waits = Effect { cores: Some(0.02), ..Effect::default() };
                self.push(vec![(What::Rest, self.all(0.9 * seconds))], false, waits);
                self.stalled_until = now + seconds;
            }
            HabitKind::SaveBeside => {
                self.writes_until = now + seconds;
                self.write_rate = bytes;
                self.push(vec![(What::Copy, self.all((seconds * 0.05).min(6.0)))], false, Effect::default());
            }
            HabitKind::EvalAll => {
                let step = (self.recipe.step * 0.4).max(0.4);
                for _ in 0..(seconds / step).ceil() as usize {
                    let work = (0..self.members.len()).map(|_| step * 0.8 * random.about_one(0.2)).collect();
                    let rest = self.all(step * 0.15);
                    self.push(vec![(What::Tensor, work), (What::Rest, rest)], false, Effect::default());
                }
            }
            HabitKind::EvalOne => {
                let step = (self.recipe.step * 0.4).max(0.4);
                for _ in 0..(seconds / step).ceil() as usize {
                    let pieces = vec![
                        (What::Tensor, self.one(0, step * 0.7 * random.about_one(0.2))),
                        (What::Rest, self.one(0, step * 0.3)),
                    ];
                    self.push(pieces, true, Effect::default());
                }
            }
            HabitKind::EvalCpu => {
                let effect = Effect { cores: Some(3.0 + 5.0 * random.unit()), ..Effect::default() };
                self.push(vec![(What::Rest, self.all(seconds))], false, effect);
            }
            HabitKind::Recompile => {
                let effect = Effect { cores: Some(2.0 + 6.0 * random.unit()), ..Effect::default() };
                let spread = (0..self.members.len()).map(|_| seconds * (0.9 + 0.1 * random.unit())).collect();
                self.push(vec![(What::Rest, spread)], self.recipe.spins, effect);
            }
        }
    }
}
