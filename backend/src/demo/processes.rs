//! The process table of a simulated machine: a trainer and its loaders for each GPU, and usual system processes.

use super::drive::Drive;
use super::host::{Host, Kind};
use super::job::Phase;
use super::noise::Key;
use shared::processes::{Process, ProcessTable};

const MIB: f64 = (1 << 20) as f64;
/// Loaders of each trainer.
const LOADERS: u32 = 4;
/// Share of the trainer in the memory of one GPU's processes; the loaders get the rest.
const TRAINER_SHARE: f64 = 0.6;
/// GPUs that can read and write at full speed at once.
const MAX_AT_ONCE: f64 = 16.0;

/// Name, user, PID, parent, CPU (percent), resident set (MiB), threads of processes without the job.
const OTHERS: &[(&str, &str, u32, u32, f64, f64, u32)] = &[
    ("systemd", "root", 1, 0, 0.1, 14.0, 1),
    ("systemd-journal", "root", 812, 1, 0.3, 118.0, 1),
    ("sshd", "root", 1_404, 1, 0.0, 9.0, 1),
    ("containerd", "root", 1_511, 1, 0.6, 71.0, 38),
    ("dockerd", "root", 1_620, 1, 0.4, 112.0, 44),
    ("nvidia-persiste", "nvidia-persiste", 1_702, 1, 0.0, 3.0, 1),
    ("nv-hostengine", "root", 1_733, 1, 1.4, 46.0, 11),
    ("slurmd", "root", 1_810, 1, 0.1, 17.0, 5),
    ("slurmstepd", "root", 3_902, 1, 0.1, 11.0, 6),
    ("node_exporter", "prometheus", 1_866, 1, 0.7, 28.0, 9),
    ("jupyter-lab", "jonas", 2_950, 1, 0.4, 164.0, 9),
    ("python3", "jonas", 2_988, 2_950, 1.8, 2_270.0, 17),
    ("tmux: server", "mara", 3_510, 1, 0.0, 7.0, 1),
    ("bash", "mara", 3_511, 3_510, 0.0, 6.0, 1),
    ("htop", "mara", 3_544, 3_511, 2.2, 9.0, 1),
];
/// Interval between two starts of the machine, milliseconds.
const BOOT_EVERY_MS: i64 = 14 * 86_400_000;
/// CPU from which a process of the job counts as running, percent of one core.
const RUNS_FROM_PERCENT: f64 = 50.0;
/// Owner of the job, and the PID of its starter.
pub(super) const USER: &str = "mara";
const STEP: u32 = 3_902;

/// GPU memory of a process (bytes), and its share of the multiprocessors (percent).
pub(super) type Held = (u64, f32);

/// The table at an instant; `held` is the job's use of each GPU, None for a lost one.
pub(super) fn table(key: Key, at: &Drive, host: &Host, held: &[Option<Held>]) -> ProcessTable {
    let mut rows: Vec<Process> = OTHERS.iter().map(|row| other(key, at, *row)).collect();
    if at.phase != Phase::Dead {
        job(key, at, host, held, &mut rows);
    }
    rows.sort_by(|a, b| b.cpu.unwrap_or(0.0).total_cmp(&a.cpu.unwrap_or(0.0)).then(b.rss.cmp(&a.rss)));
    ProcessTable { t: at.t, total: rows.len() as u32, whole: true, rows }
}

fn other(key: Key, at: &Drive, row: (&str, &str, u32, u32, f64, f64, u32)) -> Process {
    let (name, user, pid, parent, cpu, resident, threads) = row;
    let sway = 1.0 + 0.5 * key.derive(u64::from(pid)).jitter(at.t, 5_000);
    Process {
        pid,
        parent,
        user: user.into(),
        name: name.into(),
        cpu: Some((cpu * sway) as f32),
        rss: (resident * MIB) as u64,
        threads,
        read: Some(0.0),
        written: Some(0.0),
        started: Some(at.t.div_euclid(BOOT_EVERY_MS) * BOOT_EVERY_MS + i64::from(pid) * 10),
        state: Some('S'),
        ..Process::default()
    }
}

/// PID of the launcher of a run.
pub(super) fn launcher_pid(key: Key, run: i64) -> u32 {
    10_000 + (key.derive(1).unit(run) * 900_000.0) as u32
}

/// PID of the trainer of a GPU that a launcher has started.
pub(super) fn trainer_pid(launcher: u32, gpu: u32) -> u32 {
    launcher + 1 + gpu * (LOADERS + 1)
}

/// A launcher, and for each GPU a trainer with its loaders.
fn job(key: Key, at: &Drive, host: &Host, held: &[Option<Held>], rows: &mut Vec<Process>) {
    let (n, run) = (held.len() as u32, key.derive(1));
    let first = launcher_pid(key, at.run);
    let container = format!("{:012x}", (run.derive(2).unit(at.run) * (1u64 << 48) as f64) as u64);
    let resident = host.resident(at) * host.memory() / f64::from(n);
    let process = |pid, parent, name: &str, threads, cpu: f64, rss: f64| Process {
        pid,
        parent,
        user: USER.into(),
        name: name.into(),
        cpu: Some(cpu as f32),
        rss: rss as u64,
        threads,
        watched: true,
        read: Some(0.0),
        written: Some(0.0),
        container: container.clone(),
        started: Some((at.t - at.age).div_euclid(1_000) * 1_000),
        state: Some(if cpu >= RUNS_FROM_PERCENT { 'R' } else { 'S' }),
        ..Process::default()
    };
    rows.push(process(first, STEP, "torchrun", 1, 0.2, 210.0 * MIB));
    let at_once = MAX_AT_ONCE.min(f64::from(n)) / f64::from(n);
    let (started, trained, saved) = match at.phase {
        _ if at.hung => (0.0, 0.0, 0.0),
        Phase::StartUp => (260.0 * at_once, 0.0, 0.0),
        Phase::Train => (0.0, 24.0 * (1.0 - at.dip), 0.0),
        Phase::Evaluate => (0.0, 30.0, 0.0),
        Phase::Checkpoint => (0.0, 0.0, 380.0 * at_once),
        Phase::Idle | Phase::Dead => (0.0, 0.0, 0.0),
    };
    let rate = |mib: f64| Some((mib * MIB) as f32);
    for (i, held) in (0..n).zip(held) {
        let pid = trainer_pid(first, i);
        // Processes differ slightly.
        let resident = resident * (1.0 + 0.008 * run.derive(u64::from(i)).jitter(at.run, 1));
        let cpu = host.busy(Kind::Rank, i, n, at);
        rows.push(Process {
            read: rate(started),
            written: rate(saved),
            gpu_memory: held.map(|(bytes, _)| bytes),
            gpu_share: held.map(|(_, share)| share),
            gpus: held.map(|_| i).into_iter().collect(),
            ..process(pid, first, "python3", 41 - LOADERS, cpu, TRAINER_SHARE * resident)
        });
        for j in 0..LOADERS {
            let cpu = host.busy(Kind::Loader, i * LOADERS + j, n * LOADERS, at);
            let rss = (1.0 - TRAINER_SHARE) * resident / f64::from(LOADERS);
            rows.push(Process {
                read: rate(trained / f64::from(LOADERS)),
                ..process(pid + 1 + j, pid, "pt_data_worker", 1, cpu, rss)
            });
        }
    }
}
