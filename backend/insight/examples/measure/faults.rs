//! Faults of the traces, each with its label.

use super::job::{Hang, Job, Member, Memory, Recipe, Shape};
use super::maker::{Maker, Want};
use super::world::{Act, Label, Port, Watch};

/// How a job hangs.
pub enum Kind {
    Spin,
    Odd,
    Idle,
}

impl Maker {
    pub fn hang(&mut self, kind: Kind) {
        let hosts = self.some_hosts(0.65, 0.25);
        let job = self.train(Want { gpus: (2, 8), hosts, ..Want::ANY });
        self.stop(job, kind);
    }

    /// A job hangs.
    pub fn stop(&mut self, job: usize, kind: Kind) {
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

    pub fn straggler(&mut self, mild: bool) {
        let hosts = self.some_hosts(0.7, 0.2);
        let job = self.train(Want { gpus: (4, 8), hosts, even: true, ..Want::ANY });
        self.slow_member(job, mild);
    }

    /// One member of a job becomes slower.
    pub fn slow_member(&mut self, job: usize, mild: bool) {
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

    pub fn starvation(&mut self, mild: bool) {
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

    pub fn heat(&mut self, mild: bool) {
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

    pub fn power(&mut self, mild: bool) {
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

    pub fn uncorrected(&mut self) {
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

    pub fn corrected(&mut self, mild: bool) {
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

    pub fn lost(&mut self) {
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

    pub fn lanes(&mut self, boot: bool) {
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

    pub fn r#gen(&mut self) {
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

    pub fn fallback(&mut self) {
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

    pub fn ring(&mut self) {
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

    pub fn net(&mut self) {
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

    pub fn port(&mut self) {
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

    pub fn leak(&mut self, mild: bool) {
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

    pub fn host_leak(&mut self, mild: bool) {
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

    pub fn oom(&mut self) {
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

    pub fn held(&mut self) {
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

    pub fn disk_full(&mut self) {
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

    pub fn host_lost(&mut self) {
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

    /// A job with more GPUs than it uses.
    pub fn reserved(&mut self) {
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

    /// One of two jobs of a machine hangs, and the other one goes on.
    pub fn split_hang(&mut self) {
        let job = self.halves();
        self.stop(job, Kind::Spin);
        self.only_if_told_apart();
    }

    pub fn split_straggler(&mut self) {
        let job = self.halves();
        self.slow_member(job, false);
        self.only_if_told_apart();
    }

    /// A GPU is reset after a crash, and its clock stays low.
    pub fn stuck_after_reset(&mut self) {
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
    pub fn links_down_from_start(&mut self) {
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
    pub fn zombie(&mut self) {
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
}
