//! A thread pool for calls into a library that may never return.
//!
//! Usually one thread runs all jobs in order. If it is stalled with jobs in the queue, another thread is started and
//! runs those. An idle thread ends if another one is idle. A call that hangs keeps its thread, but nothing ever waits
//! for it, neither the next tick nor the end of the program.
//!
//! The program has two such pools, with the same rule and different ways to wait. Here a collector waits for its own
//! calls and then returns. The sampler's pool (`backend/src/sampler/worker.rs`) reads whole collectors. The sampler
//! cannot use this pool: it sleeps on one channel for readings, late answers and opened collectors, and takes back jobs
//! that were not started.
//!
//! Calls outside of a library need no pool. A tool is killed at its timeout ([`exec`](super::exec)), and a request to
//! another server has limits of its own.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which the threads may stall with queued jobs before another thread is started.
const STALL_TIMEOUT: Duration = Duration::from_millis(40);

/// Maximum number of threads; more hanging calls are not expected, and further jobs wait.
const MAX_THREADS: usize = 64;

/// Stack size of threads that enter drivers; only the used part takes memory.
const STACK_BYTES: usize = 1 << 20;

type Job<T> = Box<dyn FnOnce() -> T + Send>;

/// A job that ended.
pub(crate) struct Finished<T> {
    /// Key of the submitted job.
    pub key: usize,
    /// Its result; none if it panicked.
    pub result: Option<T>,
}

struct Queue<T> {
    /// Round, key, job.
    jobs: VecDeque<(u64, usize, Job<T>)>,
    finished: Vec<Finished<T>>,
    /// Unfinished jobs of the newest round.
    open: usize,
    round: u64,
    threads: usize,
    idle: usize,
    /// Number of times that a job was started or finished.
    steps: u64,
    closed: bool,
}

struct Shared<T> {
    /// Time for which the threads may stall with queued jobs.
    stall: Duration,
    queue: Mutex<Queue<T>>,
    work: Condvar,
    progress: Condvar,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock()
    }
}

/// The threads of one library, and their name in debuggers.
pub(crate) struct ThreadPool<T>(Arc<Shared<T>>, &'static str);

impl<T: Send + 'static> ThreadPool<T> {
    /// An empty pool.
    pub fn new(name: &'static str) -> Self {
        Self::with_stall(name, STALL_TIMEOUT)
    }

    fn with_stall(name: &'static str, stall: Duration) -> Self {
        let queue = Queue {
            jobs: VecDeque::new(),
            finished: Vec::new(),
            open: 0,
            round: 0,
            threads: 0,
            idle: 0,
            steps: 0,
            closed: false,
        };
        let shared = Shared { stall, queue: Mutex::new(queue), work: Condvar::new(), progress: Condvar::new() };
        ThreadPool(Arc::new(shared), name)
    }

    /// Begins a round. Returns the jobs that finished since the last one. Unfinished jobs continue, but nothing waits
    /// for them any more.
    pub fn begin(&self) -> Vec<Finished<T>> {
        let mut queue = self.0.lock();
        queue.round += 1;
        queue.open = 0;
        std::mem::take(&mut queue.finished)
    }

    /// Adds a job to the round.
    pub fn submit(&self, key: usize, job: impl FnOnce() -> T + Send + 'static) {
        let mut queue = self.0.lock();
        queue.open += 1;
        let round = queue.round;
        queue.jobs.push_back((round, key, Box::new(job)));
    }

    /// Adds a job that nothing waits for. It starts at once, also between two rounds.
    pub fn submit_behind(&self, key: usize, job: impl FnOnce() -> T + Send + 'static) {
        self.submit(key, job);
        self.wake(&mut self.0.lock());
    }

    /// Runs the round until all of its jobs have finished, at most for `patience`. Returns the finished ones.
    pub fn run(&self, patience: Duration) -> Vec<Finished<T>> {
        let end = Instant::now() + patience;
        let mut queue = self.0.lock();
        self.wake(&mut queue);
        while queue.open > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let steps = queue.steps;
            let _ = self.0.progress.wait_for(&mut queue, left.min(self.0.stall));
            if queue.steps == steps && !queue.jobs.is_empty() {
                self.start(&mut queue);
                self.0.work.notify_one();
            }
        }
        std::mem::take(&mut queue.finished)
    }

    fn wake(&self, queue: &mut Queue<T>) {
        if queue.idle == 0 && !queue.jobs.is_empty() {
            self.start(queue);
        }
        self.0.work.notify_one();
    }

    fn start(&self, queue: &mut Queue<T>) {
        if queue.threads >= MAX_THREADS {
            return;
        }
        let shared = self.0.clone();
        let thread = std::thread::Builder::new().name(self.1.into()).stack_size(STACK_BYTES);
        // Without a thread the round ends without results, and the next one retries.
        queue.threads += usize::from(thread.spawn(move || work(&shared)).is_ok());
    }
}

impl<T> Drop for ThreadPool<T> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

fn work<T>(shared: &Shared<T>) {
    let mut queue = shared.lock();
    loop {
        if queue.closed {
            break;
        }
        let Some((round, key, job)) = queue.jobs.pop_front() else {
            if queue.idle > 0 {
                break;
            }
            queue.idle += 1;
            shared.work.wait(&mut queue);
            queue.idle -= 1;
            continue;
        };
        queue.steps += 1;
        drop(queue);
        let result = catch_unwind(AssertUnwindSafe(job)).ok();
        queue = shared.lock();
        queue.steps += 1;
        queue.open -= usize::from(round == queue.round);
        queue.finished.push(Finished { key, result });
        shared.progress.notify_one();
    }
    queue.threads -= 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, sync_channel};

    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    fn keys<T>(finished: &[Finished<T>]) -> Vec<usize> {
        let mut keys: Vec<usize> = finished.iter().map(|f| f.key).collect();
        keys.sort_unstable();
        keys
    }

    fn hang(gate: Receiver<()>) -> impl FnOnce() -> u32 + Send {
        move || {
            let _ = gate.recv();
            7
        }
    }

    #[test]
    fn a_job_that_hangs_holds_up_no_other() {
        let pool = ThreadPool::new("test");
        let (open, gate) = sync_channel(1);
        pool.begin();
        pool.submit(0, hang(gate));
        (1..8).for_each(|key| pool.submit(key, move || key as u32));
        // On a loaded machine the other jobs may take longer than one wait.
        let end = Instant::now() + TEST_TIMEOUT;
        let mut finished = Vec::new();
        while finished.len() < 7 && Instant::now() < end {
            finished.extend(pool.run(Duration::from_millis(300)));
        }
        assert_eq!(keys(&finished), (1..8).collect::<Vec<_>>());
        // The next round runs at once, on the remaining thread.
        assert!(pool.begin().is_empty());
        pool.submit(1, || 1);
        assert_eq!(keys(&pool.run(TEST_TIMEOUT)), [1]);
        open.send(()).unwrap();
        let end = Instant::now() + TEST_TIMEOUT;
        let late = loop {
            let finished = pool.begin();
            if !finished.is_empty() || Instant::now() > end {
                break finished;
            }
            std::thread::yield_now();
        };
        assert_eq!((keys(&late), late[0].result), (vec![0], Some(7)));
    }

    #[test]
    fn one_thread_is_enough_while_nothing_hangs() {
        // A loaded machine may stall the thread for longer than the usual time.
        let pool = ThreadPool::with_stall("test", TEST_TIMEOUT);
        for _ in 0..50 {
            pool.begin();
            (0..8).for_each(|key| pool.submit(key, || std::thread::current().id()));
            assert_eq!(pool.run(TEST_TIMEOUT).len(), 8);
        }
        assert_eq!(pool.0.lock().threads, 1);
    }

    #[test]
    fn a_job_that_panics_is_given_back_without_a_result() {
        let pool = ThreadPool::new("test");
        pool.begin();
        pool.submit(3, || panic!("planned"));
        pool.submit(4, || 4);
        let finished = pool.run(TEST_TIMEOUT);
        assert_eq!(keys(&finished), [3, 4]);
        assert_eq!(finished.iter().filter(|f| f.result.is_none()).count(), 1);
    }
}
