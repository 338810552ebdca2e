//! Tests of the memory collector with machines made of files.

use crate::machine::{Machine, readings, value};

const GIB: u64 = 1 << 30;
const TAGS_OF_A_LIMIT: [&str; 4] =
    ["memory.used", "memory.working_set_percent", "memory_percent", "proc.memory.availableMB"];

/// 64 GiB, of which 48 are available; 8 GiB of swap, of which 6 are free.
fn machine() -> Machine {
    let machine = Machine::new();
    let mut text = String::new();
    for (name, mib) in [
        ("MemTotal", 65536),
        ("MemFree", 1024),
        ("MemAvailable", 49152),
        ("Buffers", 512),
        ("Cached", 40960),
        ("SwapCached", 0),
        ("Active", 9),
        ("SwapTotal", 8192),
        ("SwapFree", 6144),
        ("Dirty", 3),
        ("Writeback", 1),
        ("AnonPages", 5),
        ("Shmem", 256),
        ("Slab", 128),
    ] {
        text += &format!("{name}: {} kB\n", mib << 10);
    }
    machine.write("proc/meminfo", text);
    machine
}

fn limit(machine: &Machine, group: &str, max: &str, current: u64, inactive_file: u64) {
    let dir = format!("sys/fs/cgroup{group}");
    machine.write(&format!("{dir}/memory.max"), format!("{max}\n"));
    machine.write(&format!("{dir}/memory.current"), format!("{current}\n"));
    machine.write(&format!("{dir}/memory.stat"), format!("anon 1\nfile 2\ninactive_file {inactive_file}\n"));
}

#[test]
pub fn the_whole_host() {
    let machine = machine();
    const MIB: f64 = (1 << 20) as f64;
    let expected = readings([
        ("memory.buffers", 512.0 * MIB),
        ("memory.cached", 40.0 * GIB as f64),
        ("memory.dirty", 4.0 * MIB),
        ("memory.free", 1024.0 * MIB),
        ("memory.shared", 256.0 * MIB),
        ("memory.slab", 128.0 * MIB),
        ("memory.total", 64.0 * GIB as f64),
        ("memory.used", 16.0 * GIB as f64),
        ("memory.working_set_percent", 25.0),
        ("memory_percent", 25.0),
        ("proc.memory.availableMB", 49152.0),
        ("swap.total", 8.0 * GIB as f64),
        ("swap.used", 2.0 * GIB as f64),
        ("swap.used_percent", 25.0),
    ]);
    assert_eq!(machine.open("memory").next(), expected);
    // Only version 1 groups, and groups without a limit, change nothing.
    machine.write("proc/self/cgroup", "4:memory:/job\n");
    limit(&machine, "/job", "1000", 1, 0);
    assert_eq!(machine.open("memory").next(), expected);
    machine.write("proc/self/cgroup", "4:memory:/\n0::/slice/job\n");
    limit(&machine, "/slice/job", "max", 1, 0);
    assert_eq!(machine.open("memory").next(), expected);
}

/// A GH200 after the form of the kernel and of NVIDIA's open driver: 64 GiB of the machine on node 0, and 96 GiB of its
/// GPU on node 1, which has no processors. 80 GiB of the GPU are free.
fn gh200() -> Machine {
    let machine = machine();
    let kib = |gib: u64| gib << 20;
    let host = std::fs::read_to_string(machine.path("proc/meminfo")).expect("it was written");
    let both = host
        .replace(&format!("MemTotal: {}", kib(64)), &format!("MemTotal: {}", kib(160)))
        .replace(&format!("MemFree: {}", kib(1)), &format!("MemFree: {}", kib(81)))
        .replace(&format!("MemAvailable: {}", kib(48)), &format!("MemAvailable: {}", kib(129)));
    let node = |number: u64, total: u64, free: u64, file: u64| {
        format!(
            "Node {number} MemTotal:       {} kB\nNode {number} MemFree:        {} kB\n\
             Node {number} MemUsed:        {} kB\nNode {number} Active:          9 kB\n\
             Node {number} Active(file):   {} kB\nNode {number} Inactive(file): 0 kB\n\
             Node {number} SReclaimable:   0 kB\n",
            kib(total),
            kib(free),
            kib(total - free),
            kib(file),
        )
    };
    machine
        .write("proc/meminfo", both)
        .write(
            "proc/driver/nvidia/gpus/0009:01:00.0/numa_status",
            "Node:      1\nStatus:    online\nAddress:   2000000000\nSize:      1800000000\n",
        )
        .write("sys/devices/system/node/node0/cpulist", "0-71\n")
        .write("sys/devices/system/node/node0/meminfo", node(0, 64, 1, 40))
        .write("sys/devices/system/node/node1/cpulist", "\n")
        .write("sys/devices/system/node/node1/meminfo", node(1, 96, 80, 1));
    machine
}

#[test]
fn memory_of_a_gpu_that_the_kernel_counts_is_left_out() {
    let machine = gh200();
    let names = ["memory.total", "memory.free", "proc.memory.availableMB", "memory.used", "memory_percent"];
    let of = |now: &crate::machine::Readings| names.map(|name| value(now, name));
    let own = [64.0 * GIB as f64, 1.0 * GIB as f64, 49152.0, 16.0 * GIB as f64, 25.0].map(Some);
    let mut memory = machine.open("memory");
    assert_eq!(of(&memory.next()), own);
    assert!(memory.trouble().is_none());
    let said = &memory.parts[0].0.tried;
    assert!(said.iter().any(|line| line.contains("NUMA node 1: memory of the GPU at 0009:01:00.0")), "{said:?}");
    let facts = collectors::facts(&machine.roots());
    assert!(facts.contains(&("memory".into(), "64 GiB".into())), "{facts:?}");
    // A limit above the machine's own memory has no effect.
    machine.write("proc/self/cgroup", "0::/job\n");
    limit(&machine, "/job", &(100 * GIB).to_string(), GIB, 0);
    assert_eq!(of(&machine.open("memory").next()), own);
    machine.remove("proc/self/cgroup");
    // Without the node's values the machine's own are unknown.
    machine.write("sys/devices/system/node/node1/meminfo", "Node 1 MemFree: 4 kB\n");
    let mut memory = machine.open("memory");
    assert_eq!(of(&memory.next()), [None; 5]);
    assert!(memory.trouble().is_some_and(|(reason, partial)| reason.contains("node1/meminfo") && partial));
}

#[test]
fn a_node_that_is_offline_or_has_processors_is_no_gpu() {
    let total = |machine: &Machine| value(&machine.open("memory").next(), "memory.total");
    let all = Some(160.0 * GIB as f64);
    let machine = gh200();
    machine.write("sys/devices/system/node/node1/cpulist", "72-143\n");
    assert_eq!(total(&machine), all);
    let machine = gh200();
    machine.remove("sys/devices/system/node/node1");
    assert_eq!(total(&machine), all);
    let machine = gh200();
    machine.write("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      -1\nStatus:    disabled\n");
    assert_eq!(total(&machine), all);
    // The driver starts later.
    let machine = gh200();
    machine.remove("proc/driver/nvidia");
    let mut memory = machine.open("memory");
    assert_eq!(value(&memory.next(), "memory.total"), all);
    machine.write("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      1\nStatus:    online\n");
    assert_eq!(value(&memory.after(10.0), "memory.total"), Some(64.0 * GIB as f64));
}

/// In the kernel's form, shortened.
fn vmstat(paged_in: u64, swapped_out: u64, faults: u64, kills: u64) -> String {
    format!(
        "nr_free_pages 1197277\nnr_zone_inactive_anon 121917\nnuma_hit 110384838\npgpgin {paged_in}\npgpgout 41\n\
         pswpin 8\npswpout {swapped_out}\npgalloc_dma 0\npgfault 38441236\npgmajfault {faults}\n\
         pgscan_kswapd 12\noom_kill {kills}\nnuma_pte_updates 0\nthp_fault_alloc 3\n"
    )
}

#[test]
pub fn paging_counts_from_the_start() {
    let machine = Machine::new();
    machine.write("proc/meminfo", "MemTotal: 1024 kB\n").write("proc/vmstat", vmstat(5_000, 100, 70, 2));
    let mut memory = machine.open("memory");
    let names =
        ["memory.paged_in", "memory.paged_out", "swap.in", "swap.out", "memory.major_faults", "memory.oom_kills"];
    let now = memory.next();
    assert_eq!(names.map(|name| value(&now, name)), [Some(0.0); 6]);
    machine.write("proc/vmstat", vmstat(5_300, 103, 75, 3));
    let now = memory.next();
    assert_eq!(names.map(|name| value(&now, name)), [None; 6], "it is read every 5 s");
    assert!(value(&now, "memory.total").is_some());
    let now = memory.after(4.0);
    // SAFETY: the call takes a number and returns one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as f64;
    let grown = [300.0 * 1024.0, 0.0, 0.0, 3.0 * page, 5.0, 1.0];
    assert_eq!(names.map(|name| value(&now, name)), grown.map(Some));
    assert_eq!(memory.trouble(), None);
    // Kernels before 4.13 count no kills, and a sandboxed kernel counts nothing at all.
    machine.write("proc/vmstat", "pgpgin 5300\npgpgout many\n");
    let now = memory.after(5.0);
    assert_eq!(names.map(|name| value(&now, name).is_some()), [true, false, false, false, false, false]);
    machine.remove("proc/vmstat");
    let now = machine.open("memory").next();
    assert_eq!(names.map(|name| value(&now, name)), [None; 6]);
}

#[test]
fn the_smallest_limit_up_to_the_visible_root_binds() {
    let machine = machine();
    machine.write("proc/self/cgroup", "0::/pod/job/leaf\n");
    limit(&machine, "/pod/job/leaf", "max", GIB, 0);
    limit(&machine, "/pod/job", &(16 * GIB).to_string(), 9 * GIB, 0);
    limit(&machine, "/pod", &(8 * GIB).to_string(), 6 * GIB, 4 * GIB);
    limit(&machine, "", &(32 * GIB).to_string(), 20 * GIB, 0);
    let now = machine.open("memory").next();
    assert_eq!(value(&now, "memory.total"), Some(8.0 * GIB as f64));
    assert_eq!(value(&now, "memory.used"), Some(2.0 * GIB as f64));
    assert_eq!(value(&now, "memory_percent"), Some(75.0), "page cache included");
    assert_eq!(value(&now, "memory.working_set_percent"), Some(25.0), "without inactive page cache");
    assert_eq!(value(&now, "proc.memory.availableMB"), Some(2048.0));
    assert_eq!(value(&now, "memory.cached"), Some(40.0 * GIB as f64), "of the host");
}

#[test]
fn the_limit_of_our_own_unit_is_not_the_machines() {
    let machine = machine();
    machine.write("proc/self/cgroup", "0::/system.slice/watchglass.service\n");
    limit(&machine, "/system.slice/watchglass.service", &(GIB / 2).to_string(), GIB / 4, 0);
    machine.write("proc/700/stat", "700 (systemd) S 1 700 700 0 -1 4194560 0\n");
    machine.write("proc/701/stat", "701 (jupyterhub-sing) S 1 701 701 0 -1 4194560 0\n");
    let total = |parent: u32, session: u32| {
        machine.write("proc/self/stat", format!("812 (watch) glass) S {parent} 812 {session} 0 -1 4194560 0\n"));
        value(&machine.open("memory").next(), "memory.total")
    };
    let (all, limited) = (Some(64.0 * GIB as f64), Some(GIB as f64 / 2.0));
    assert_eq!(total(1, 812), all, "the machine's systemd started it");
    assert_eq!(total(700, 812), all, "a person's systemd started it");
    assert_eq!(total(701, 812), limited, "it runs in the unit of another program");
    assert_eq!(total(1, 701), limited, "it is left over from another program");
    // Limits above the unit hold for more than this program.
    limit(&machine, "/system.slice", &(8 * GIB).to_string(), GIB, 0);
    assert_eq!(total(1, 812), Some(8.0 * GIB as f64));
    machine.write("proc/self/cgroup", "0::/system.slice/watchglass.scope\n");
    limit(&machine, "/system.slice/watchglass.scope", &(GIB / 2).to_string(), GIB / 4, 0);
    assert_eq!(total(1, 812), limited, "whoever starts a scope chooses its limit");
}

#[test]
fn the_limit_of_our_container_is_not_that_of_the_machine_mounted_into_it() {
    let machine = machine();
    machine.write("proc/self/cgroup", "4:memory:/kubepods/burstable/pod1/agent\n");
    let group = "sys/fs/cgroup/memory/kubepods/burstable/pod1/agent";
    machine.write(&format!("{group}/memory.limit_in_bytes"), format!("{}\n", GIB / 2));
    machine.write(&format!("{group}/memory.usage_in_bytes"), format!("{}\n", GIB / 4));
    machine.write(&format!("{group}/memory.stat"), "total_inactive_file 0\n");
    let total = || value(&machine.open("memory").next(), "memory.total");
    assert_eq!(total(), Some(GIB as f64 / 2.0));
    machine.write("proc/1/cgroup", "4:memory:/\n0::/init.scope\n");
    assert_eq!(total(), Some(64.0 * GIB as f64), "the first process is in no container");
}

#[test]
fn beside_version_1_the_groups_stand_in_a_folder_of_their_own() {
    let machine = machine();
    machine.write("proc/self/cgroup", "1:cpu:/\n0::/job\n");
    machine.write("sys/fs/cgroup/unified/cgroup.controllers", "memory\n");
    limit(&machine, "/unified/job", &GIB.to_string(), GIB / 2, 0);
    assert_eq!(value(&machine.open("memory").next(), "memory_percent"), Some(50.0));
}

#[test]
fn use_above_the_limit_leaves_nothing_available() {
    let machine = machine();
    machine.write("proc/self/cgroup", "0::/\n");
    limit(&machine, "", &GIB.to_string(), GIB + 4096, 0);
    assert_eq!(value(&machine.open("memory").next(), "proc.memory.availableMB"), Some(0.0));
}

#[test]
fn a_limit_without_a_reading_is_not_replaced_by_the_hosts() {
    let machine = machine();
    machine.write("proc/self/cgroup", "0::/\n");
    limit(&machine, "", &GIB.to_string(), 0, 0);
    machine.write("sys/fs/cgroup/memory.current", "nothing\n");
    let mut memory = machine.open("memory");
    let now = memory.next();
    assert!(TAGS_OF_A_LIMIT.iter().all(|tag| value(&now, tag).is_none()), "{now:?}");
    assert_eq!(value(&now, "swap.used_percent"), Some(25.0));
    let (reason, partial) = memory.trouble().unwrap();
    assert!(reason.ends_with("memory.current: not a number") && partial, "{reason}");
}

#[test]
fn a_limit_that_is_lifted_is_noticed() {
    let machine = machine();
    machine.write("proc/self/cgroup", "0::/\n");
    limit(&machine, "", &GIB.to_string(), GIB / 4, 0);
    let mut memory = machine.open("memory");
    assert_eq!(value(&memory.next(), "memory.total"), Some(GIB as f64));
    machine.write("sys/fs/cgroup/memory.max", "max\n");
    assert_eq!(value(&memory.after(10.0), "memory.total"), Some(64.0 * GIB as f64));
}

#[test]
fn without_swap_its_share_is_zero_and_without_available_nothing_is_made_up() {
    let machine = Machine::new();
    machine.write("proc/meminfo", "MemTotal: 1024 kB\nMemFree: 512 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
    let expected = [
        ("memory.free", 524_288.0),
        ("memory.total", 1_048_576.0),
        ("swap.total", 0.0),
        ("swap.used", 0.0),
        ("swap.used_percent", 0.0),
    ];
    assert_eq!(machine.open("memory").next(), readings(expected));
}

#[test]
fn a_limit_of_version_1_counts_and_one_above_the_machines_memory_does_not() {
    for (limit, total) in [(512u64 << 20, 512u64 << 20), (4 << 40, 1 << 30)] {
        let machine = Machine::new();
        machine.write("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
        machine.write("proc/self/cgroup", "4:memory:/job\n");
        machine.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", format!("{limit}\n"));
        machine.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", format!("{}\n", 256 << 20));
        machine.write("sys/fs/cgroup/memory/job/memory.stat", format!("total_inactive_file {}\n", 128 << 20));
        let now = machine.open("memory").next();
        assert_eq!(value(&now, "memory.total"), Some(total as f64), "{limit}");
        let percent = value(&now, "memory_percent");
        assert_eq!(percent, Some(50.0), "{limit}: {now:?}");
    }
}
