//! Activity of the traces that only looks like a fault.

use super::card::Card;
use super::job::{Habit, HabitKind, Memory, Shape};
use super::maker::{Maker, Want};
use super::random::Random;
use super::world::{Act, Host};

impl Maker {
    pub fn habit(&mut self, kind: HabitKind, least: f64, most: f64) {
        let hosts = self.some_hosts(0.7, 0.25);
        let job = self.train(Want { gpus: (2, 8), hosts, ..Want::ANY });
        let every = self.random.scaled(300.0, 1500.0);
        let seconds = self.random.scaled(least, most).min(0.6 * every);
        let next = self.random.between(60.0, every);
        self.world.jobs[job].recipe.habits = vec![Habit { kind, every, seconds, next }];
    }

    /// One member takes longer than any collective should, on one of several machines. No run shows that they work on
    /// one job, as for recordings, and for agents that may not read environments.
    pub fn elsewhere(&mut self, kind: HabitKind, least: f64, most: f64) {
        self.world.seconds = self.world.seconds.max(1.5 * 3600.0);
        let few = self.random.chance(0.6);
        let job = self.train(Want { gpus: (1, 8), hosts: if few { (2, 2) } else { (3, 5) }, ..Want::ANY });
        self.world.told_jobs = false;
        let seconds = self.random.scaled(least, most);
        let every = seconds + self.random.scaled(300.0, 1800.0);
        let next = self.random.between(60.0, every);
        self.world.jobs[job].recipe.habits = vec![Habit { kind, every, seconds, next }];
    }

    pub fn memory(&mut self, make: fn(&mut Random) -> Memory) {
        let job = self.train(Want::ANY);
        self.world.jobs[job].recipe.memory = make(&mut self.random);
        // The rise is visible from its begin.
        if let Some((at, act)) = self.world.acts.iter_mut().find(|(_, act)| matches!(act, Act::Begin(..))) {
            (*at, *act) = (5.0, Act::Begin(job, 60.0));
        }
    }

    pub fn turns(&mut self) {
        let job = self.train_as(Want { gpus: (2, 4), ..Want::ANY }, Some(Shape::Turns));
        let r = &mut self.world.jobs[job].recipe;
        r.step = self.random.scaled(0.8, 8.0);
        r.gap = 0.1 * r.step;
        r.headroom = 50.0;
        r.batch_cores *= 0.05;
    }

    pub fn pipeline(&mut self) {
        let hosts = self.some_hosts(0.6, 0.4);
        let job = self.train_as(Want { gpus: (4, 8), hosts, ..Want::ANY }, Some(Shape::Pipeline));
        for share in 0..self.world.jobs[job].shares.len() {
            self.world.jobs[job].shares[share] = self.random.between(0.55, 1.0);
        }
    }

    pub fn rollout(&mut self) {
        let hosts = self.some_hosts(0.7, 0.3);
        let (long, trains) = (self.random.scaled(8.0, 150.0), self.random.whole(2, 20));
        self.train_as(Want { gpus: (2, 8), hosts, ..Want::ANY }, Some(Shape::Rollout { long, trains }));
    }

    pub fn long_steps(&mut self) {
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

    pub fn inference(&mut self) {
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

    pub fn notebook(&mut self) {
        let (think, cell) = (self.random.scaled(40.0, 500.0), self.random.scaled(4.0, 120.0));
        let job = self.train_as(Want { gpus: (1, 2), ..Want::ANY }, Some(Shape::Notebook { think, cell }));
        self.world.jobs[job].recipe.habits.clear();
        self.world.jobs[job].recipe.step = self.random.scaled(0.1, 1.0);
    }

    pub fn prepare(&mut self) {
        let (rest, work) = (self.random.scaled(40.0, 400.0), self.random.scaled(60.0, 500.0));
        self.train_as(Want { gpus: (1, 8), ..Want::ANY }, Some(Shape::Prepare { rest, work }));
    }

    pub fn hot(&mut self) {
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

    pub fn capped(&mut self) {
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

    pub fn two_jobs(&mut self) {
        let model = self.model(None);
        let h = self.host(model, 8);
        let at = self.random.pick(&[2, 4, 6]);
        let gpus: Vec<usize> = (0..8).collect();
        self.split(model, h, &gpus[..at], None);
        let begin = self.random.chance(0.7).then(|| self.random.between(100.0, 1500.0));
        self.split(model, h, &gpus[at..], begin);
    }

    pub fn two_models(&mut self) {
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

    pub fn unused(&mut self) {
        let model = self.model(None);
        let h = self.host(model, 8);
        let used = self.random.pick(&[1, 2, 4]);
        let gpus: Vec<usize> = (0..used).collect();
        self.split(model, h, &gpus, None);
    }

    /// A job that uses all its GPUs after minutes without one.
    pub fn reserved_and_used(&mut self) {
        let model = self.model(None);
        let h = self.host(model, 8);
        let gpus: Vec<usize> = (0..8).collect();
        let begin = self.random.between(10.0, 900.0);
        let job = self.split(model, h, &gpus, Some(begin));
        self.world.jobs[job].recipe.start = self.random.between(60.0, 500.0);
        self.world.jobs[job].reserved = vec![(h, (0..8).collect())];
        self.world.told_jobs = true;
    }

    /// A job on each GPU of a machine, which begin and end at their own times.
    pub fn jobs_by_gpu(&mut self) {
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
    pub fn page_cache(&mut self) {
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
    pub fn rank_restarted(&mut self) {
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
    pub fn caps_by_the_hour(&mut self) {
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
    pub fn narrow_slots(&mut self) {
        let job = self.train(Want { gpus: (2, 8), ..Want::ANY });
        self.world.hosts.iter_mut().for_each(|host| host.eyes.lanes = true);
        for member in self.world.jobs[job].members.clone() {
            self.at(0.0, Act::Lanes(member.host, member.gpu, 8.0));
        }
    }

    /// Two jobs on the same GPUs.
    pub fn shared_gpus(&mut self) {
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

    pub fn in_a_row(&mut self) {
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

    pub fn crash(&mut self) {
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

    pub fn xids(&mut self) {
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

    pub fn blind(&mut self) {
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

    pub fn host_plateau(&mut self) {
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

    pub fn uneven(&mut self) {
        let job = self.train(Want { gpus: (4, 8), ..Want::ANY });
        let (at, _) = self.victim(job);
        for member in 0..self.world.jobs[job].shares.len() {
            self.world.jobs[job].shares[member] = self.random.between(0.85, 1.0);
        }
        self.world.jobs[job].shares[at] = 1.15;
    }

    pub fn few_corrected(&mut self) {
        let job = self.train(Want::ANY);
        let (_, victim) = self.victim(job);
        let rate = self.random.between(0.05, 0.6);
        self.at(0.0, Act::Correcting(victim.host, victim.gpu, rate));
    }

    pub fn goodbye(&mut self) {
        let job = self.train(Want { gpus: (2, 8), hosts: (2, 4), ..Want::ANY });
        let t = self.moment();
        self.at(t, Act::End(job));
        let h = self.world.jobs[job].hosts[1];
        let after = self.random.between(5.0, 200.0);
        self.at(t + after, Act::Goodbye(h));
    }

    pub fn busy_disk(&mut self) {
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

    pub fn busy_cpu(&mut self) {
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

    pub fn restarted(&mut self) {
        let job = self.train(Want::ANY);
        let h = self.world.jobs[job].hosts[0];
        let mut t = self.random.between(200.0, 900.0);
        while t < self.world.seconds {
            self.at(t, Act::Restart(h));
            t += self.random.between(200.0, 1500.0);
        }
    }

    pub fn brief_heat(&mut self) {
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
    pub fn work_changes(&mut self) {
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
    pub fn experts(&mut self) {
        let job = self.train(Want { gpus: (4, 8), ..Want::ANY });
        self.world.jobs[job].recipe.own_jitter = self.random.between(0.05, 0.12);
    }

    /// Only one process reads and distributes data: it uses more CPU time than the others.
    pub fn lone_loader(&mut self) {
        let job = self.train(Want { gpus: (2, 8), ..Want::ANY });
        self.world.jobs[job].shares[0] = 0.9;
        self.world.jobs[job].recipe.batch_cores *= 2.0;
        self.even_out(job);
    }

    pub fn healthy(&mut self) {
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
