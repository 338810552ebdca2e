//! The part of this machine that a scheduler reserved for a job.
//!
//! Slurm describes it in the environment of the job. The kubelet writes the limits of a container into its control
//! group (version 2); requests without a limit are known only to the API server. The numbers of `GPU_DEVICE_ORDINAL` and
//! `CUDA_VISIBLE_DEVICES` are not read, because they count within the reserved GPUs.

use super::memory::memory_limit;
use super::pod::is_pod_folder;
use shared::run::Reserved;
use std::fs;
use std::path::Path;
use system::cgroup;

/// Maximum number of GPUs of a machine.
const MAX_GPUS: usize = 64;

/// Maximum number of CPUs of a machine.
const MAX_CPUS: u64 = 65_536;

/// Maximum memory of a machine, MiB.
const MAX_MIB: u64 = 1 << 30;

/// Latest time that is accepted, Unix seconds: the end of the year 9999.
const MAX_TIME_S: i64 = 253_402_300_799;

/// Length that Slurm gives a job without a time limit, milliseconds: 365 days.
const UNLIMITED_MS: i64 = 365 * 24 * 3_600 * 1_000;

/// The part of this machine that Slurm reserved for our step, else for our job, by its environment. None outside of a
/// job, and if no variable can be read.
pub fn by_slurm(variable: impl Fn(&str) -> Option<String>) -> Option<Reserved> {
    variable("SLURM_JOB_ID")?;
    let number = |name: &str, most: u64| {
        let number = variable(name)?.parse::<u64>().ok()?;
        (1..=most).contains(&number).then_some(number)
    };
    let time = |name: &str| {
        let seconds = variable(name)?.parse::<i64>().ok()?;
        (1..=MAX_TIME_S).contains(&seconds).then_some(seconds * 1_000)
    };
    let list = variable("SLURM_STEP_GPUS").or_else(|| variable("SLURM_JOB_GPUS")).unwrap_or_default();
    let mut gpus = numbers(&list).unwrap_or_default();
    let count = gpus.len() as u64;
    // Slurm names parts of divided GPUs (MIG) by their UUIDs. It numbers all parts of the machine in the other list then.
    if variable("CUDA_VISIBLE_DEVICES").is_some_and(|list| list.contains("MIG-")) {
        gpus.clear();
    }
    let cpus = number("SLURM_CPUS_ON_NODE", MAX_CPUS);
    // Memory of 0 means all memory of the machine.
    let mib = number("SLURM_MEM_PER_NODE", MAX_MIB)
        .or_else(|| Some(number("SLURM_MEM_PER_CPU", MAX_MIB)? * cpus?))
        .or_else(|| Some(number("SLURM_MEM_PER_GPU", MAX_MIB)? * count))
        .filter(|mib| (1..=MAX_MIB).contains(mib));
    let (since, until) = (time("SLURM_JOB_START_TIME"), time("SLURM_JOB_END_TIME"));
    checked(Reserved {
        by: "slurm".into(),
        gpus,
        millicores: cpus.map(|cpus| cpus * 1_000),
        memory_bytes: mib.map(|mib| mib << 20),
        since,
        until: until.filter(|until| since.is_none_or(|since| until - since != UNLIMITED_MS)),
    })
}

/// Numbers that are separated by commas, sorted. None if one is unreadable, or if there are too many.
fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut numbers: Vec<u32> = list.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    (numbers.len() <= MAX_GPUS).then_some(numbers)
}

/// None if nothing of it is known.
fn checked(reserved: Reserved) -> Option<Reserved> {
    let nothing = Reserved { by: reserved.by.clone(), ..Reserved::default() };
    (reserved != nothing).then_some(reserved)
}

/// The part of this machine that Kubernetes reserved for the container of a process in a pod, with these GPUs. None if
/// the container has no limits and no GPU. `tree` has the control groups: the machine's, or those of our container.
pub fn by_kubernetes(pid: u32, gpus: Vec<u32>, tree: &Path) -> Option<Reserved> {
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let (millicores, memory_bytes) = limits(&own, tree);
    checked(Reserved { by: "kubernetes".into(), gpus, millicores, memory_bytes, ..Reserved::default() })
}

/// CPU limit (thousandths of a core) and memory limit (bytes) of a container below `root`. `own` is the text of
/// `/proc/PID/cgroup`. From within a container, no group above its own is visible. Otherwise the groups of the pod and
/// below count, because the kubelet also limits all pods together.
fn limits(own: &str, root: &Path) -> (Option<u64>, Option<u64>) {
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::/")) else { return (None, None) };
    let Some(group) = cgroup::find(root, path) else { return (None, None) };
    let is_of_pod = |folder: &Path| {
        let below = folder.strip_prefix(root);
        below.is_ok_and(|below| below.iter().any(|part| part.to_str().is_some_and(is_pod_folder)))
    };
    let is_in_pod = is_of_pod(&group);
    let mut folders: Vec<_> = group.ancestors().map(Path::to_path_buf).collect();
    folders.retain(|folder| folder.starts_with(root) && (!is_in_pod || is_of_pod(folder)));
    let millicores = folders.iter().filter_map(|folder| cpu_limit(&fs::read_to_string(folder.join("cpu.max")).ok()?));
    let memory = folders.iter().filter_map(|folder| memory_limit(&fs::read_to_string(folder.join("memory.max")).ok()?));
    (millicores.min(), memory.min())
}

/// Thousandths of a core in a `cpu.max`: quota and period in microseconds. `max` is no limit.
fn cpu_limit(text: &str) -> Option<u64> {
    let mut parts = text.split_ascii_whitespace().map(|part| part.parse::<u64>().ok());
    let (quota, period) = (parts.next()??, parts.next().flatten().unwrap_or(100_000));
    let millicores = quota.checked_mul(1_000)?.checked_div(period)?;
    (1..=MAX_CPUS * 1_000).contains(&millicores).then_some(millicores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserved(variables: &[(&str, &str)]) -> Option<Reserved> {
        by_slurm(|name| {
            let job = ("SLURM_JOB_ID", "42");
            let known = variables.iter().chain([&job]).find(|(known, _)| *known == name);
            known.map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn slurm_tells_gpus_cores_memory_and_the_time_limit() {
        let all = reserved(&[
            ("SLURM_STEP_GPUS", "3,2"),
            ("SLURM_JOB_GPUS", "0,1,2,3"),
            ("SLURM_CPUS_ON_NODE", "16"),
            ("SLURM_MEM_PER_NODE", "65536"),
            ("SLURM_JOB_START_TIME", "1790000000"),
            ("SLURM_JOB_END_TIME", "1790003600"),
        ])
        .expect("a job");
        let expected = Reserved {
            by: "slurm".into(),
            gpus: vec![2, 3],
            millicores: Some(16_000),
            memory_bytes: Some(64 << 30),
            since: Some(1_790_000_000_000),
            until: Some(1_790_003_600_000),
        };
        assert_eq!(all, expected);
        let memory = |variables: &[(&str, &str)]| reserved(variables).and_then(|one| one.memory_bytes);
        assert_eq!(memory(&[("SLURM_CPUS_ON_NODE", "4"), ("SLURM_MEM_PER_CPU", "2048")]), Some(8 << 30));
        assert_eq!(memory(&[("SLURM_JOB_GPUS", "0,1"), ("SLURM_MEM_PER_GPU", "1024")]), Some(2 << 30));
        assert_eq!(memory(&[("SLURM_CPUS_ON_NODE", "4"), ("SLURM_MEM_PER_NODE", "0")]), None, "all memory");
        let more = [("SLURM_CPUS_ON_NODE", "65536"), ("SLURM_MEM_PER_CPU", "1073741824")];
        assert_eq!(memory(&more), None, "more than any machine has");
    }

    #[test]
    fn numbers_of_parts_are_no_numbers_of_gpus() {
        let of = |seen: &str| {
            let all = [("SLURM_JOB_GPUS", "8,9"), ("SLURM_MEM_PER_GPU", "1024"), ("CUDA_VISIBLE_DEVICES", seen)];
            let all = reserved(&all).expect("a job");
            (all.gpus, all.memory_bytes)
        };
        let parts = "MIG-8932f937-d72c-4106-c12f-20bd9faed9f6,MIG-GPU-5e1c/1/0";
        assert_eq!(of(parts), (vec![], Some(2 << 30)));
        for whole in ["0,1", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,GPU-5e1c", ""] {
            assert_eq!(of(whole), (vec![8, 9], Some(2 << 30)), "{whole}");
        }
    }

    #[test]
    fn a_job_without_a_time_limit_asked_for_no_time() {
        let until = |start: &str, end: &str| {
            let times = [("SLURM_JOB_START_TIME", start), ("SLURM_JOB_END_TIME", end)];
            reserved(&times).expect("a job").until
        };
        assert_eq!(until("1790000000", "1821536000"), None, "Slurm's year");
        assert_eq!(until("1790000000", "1821535940"), Some(1_821_535_940_000), "a limit of a minute less");
        let end = reserved(&[("SLURM_JOB_END_TIME", "1821536000")]).expect("a job");
        assert_eq!(end.until, Some(1_821_536_000_000));
    }

    #[test]
    fn unreadable_variables_and_processes_outside_of_jobs_have_no_reservation() {
        for none in ["", "GPU-5f0c", "0,x", "-1", &(0..=MAX_GPUS).map(|n| n.to_string()).collect::<Vec<_>>().join(",")]
        {
            assert_eq!(reserved(&[("SLURM_JOB_GPUS", none)]), None, "{none}");
        }
        let wrong = [("SLURM_CPUS_ON_NODE", "-3"), ("SLURM_MEM_PER_NODE", "99999999999"), ("SLURM_JOB_END_TIME", "x")];
        assert_eq!(reserved(&wrong), None);
        assert_eq!(by_slurm(|name| (name == "SLURM_JOB_GPUS").then(|| "0".into())), None, "no job");
    }

    #[test]
    fn the_limits_of_a_container_are_those_of_its_pod_and_below() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("written");
        };
        let pod = "kubepods.slice/kubepods-pod0d6eb1a6_2d3c_4b9f_8f3e_9a1c2d3e4f50.slice";
        let own = format!("0::/{pod}/cri-containerd-8f0c.scope\n");
        write("kubepods.slice/memory.max", "34359738368\n");
        write("kubepods.slice/cpu.max", "800000 100000\n");
        assert_eq!(limits(&own, root), (None, None), "a limit of all pods together");
        write(&format!("{pod}/memory.max"), "17179869184\n");
        write(&format!("{pod}/cri-containerd-8f0c.scope/memory.max"), "8589934592\n");
        write(&format!("{pod}/cri-containerd-8f0c.scope/cpu.max"), "250000 100000\n");
        assert_eq!(limits(&own, root), (Some(2_500), Some(8 << 30)));
        write(&format!("{pod}/cri-containerd-8f0c.scope/cpu.max"), "max 100000\n");
        assert_eq!(limits(&own, root), (None, Some(8 << 30)));
        // As an agent in a container reads it.
        let beside = own.replace("kubepods.slice/", "../../");
        assert_eq!(limits(&beside, root), (None, Some(8 << 30)));
        assert_eq!(limits(&beside.replace("8f0c", "9a1d"), root), (None, None));
        // From within the container, its group is the root.
        let inner = tempfile::tempdir().expect("a folder");
        fs::write(inner.path().join("cpu.max"), "100000 100000\n").expect("written");
        assert_eq!(limits("0::/\n", inner.path()), (Some(1_000), None));
        assert_eq!((cpu_limit("5 0"), cpu_limit(""), cpu_limit("18446744073709551615 1")), (None, None, None));
    }
}
