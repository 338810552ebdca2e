//! Tests of network file systems, with files in the form of the kernel and of Lustre's client.

use crate::machine::{Machine, readings, value};
use collectors::OpenErrorKind;

/// Statistics of a local file system and of two NFS mounts, one with two connections.
fn mountstats(operations: u64, rtt: u64, execute: u64) -> String {
    let (sent, bytes, in_use) = (operations + 2, operations * 1_048_576, 12 * operations);
    format!(
        "device /dev/sda1 mounted on / with fstype ext4\n\
device 10.0.0.1:/export/data mounted on /mnt/training\\040data with fstype nfs4 statvers=1.1\n\
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,nconnect=2\n\
\tage:\t4711\n\
\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27\n\
\tbytes:\t900 800 0 0 {bytes} 500 3 4\n\
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\
\txprt:\ttcp 772 0 2 0 1 {operations} {operations} 0 {in_use} 0 64 5 6\n\
\txprt:\ttcp 773 0 2 0 1 {operations} {operations} 0 {in_use} 0 32 5 6\n\
\tper-op statistics\n\
\t        NULL: 1 1 0 44 24 0 0 0 0\n\
\t        READ: {operations} {sent} 0 100 200 7 {rtt} {execute} 0\n\
\t       WRITE: 10 10 0 100 200 7 0 90000 0\n\
\t      COMMIT: 0 0 0 0 0 0 0 90000 0\n\
device home:/home mounted on /home with fstype nfs statvers=1.1\n\
\tbytes:\t1 2 3 4 5 6 7 8\n\
\tper-op statistics\n\
\t     GETATTR: 7 7 0 1 1 0 0 0\n"
    )
}

#[test]
pub fn nfs_mounts_are_read_by_the_kernels_counts() {
    let machine = Machine::new();
    machine.write("proc/self/mountstats", mountstats(100, 500, 800));
    let mut mounts = machine.open("mount");
    let of = |name: &str| format!("mount./mnt/training data.{name}");
    let totals = |operations: f64| {
        [
            (of("operations"), operations + 11.0),
            (of("read"), operations * 1_048_576.0),
            (of("written"), 500.0),
            (of("retransmits"), 2.0),
            (of("slots"), 96.0),
            ("mount./home.operations".into(), 7.0),
            ("mount./home.read".into(), 5.0),
            ("mount./home.written".into(), 6.0),
            ("mount./home.retransmits".into(), 0.0),
        ]
    };
    assert_eq!(mounts.next(), readings(totals(100.0)), "means need two readings");
    machine.write("proc/self/mountstats", mountstats(300, 2_500, 10_800));
    let means = [
        (of("rttMicros"), 10_000.0),
        (of("waiting"), 5.0),
        (of("slotsUsed"), 12.0),
        ("mount./home.waiting".into(), 0.0),
    ];
    assert_eq!(mounts.after(2.0), readings(totals(300.0).into_iter().chain(means)));
    // It was mounted anew.
    machine.write("proc/self/mountstats", mountstats(3, 10, 10));
    assert_eq!(value(&mounts.next(), &of("waiting")), None);
}

#[test]
fn slots_in_use_of_nfs_over_rdma_are_read() {
    let machine = Machine::new();
    let stats = |sends: u64, in_use: u64| {
        format!(
            "device 10.0.0.1:/fast mounted on /fast with fstype nfs4 statvers=1.1\n\
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\
\txprt:\trdma 0 0 1 0 3 {sends} {sends} 0 {in_use} 7 11 12 13 14 15 16 17 18 19 20 21\n\
\tper-op statistics\n\
\t        READ: {sends} {sends} 0 100 200 7 50 60 0\n"
        )
    };
    machine.write("proc/self/mountstats", stats(100, 300));
    let mut mounts = machine.open("mount");
    mounts.next();
    machine.write("proc/self/mountstats", stats(200, 900));
    let next = mounts.next();
    assert_eq!(value(&next, "mount./fast.slotsUsed"), Some(6.0));
    assert_eq!(value(&next, "mount./fast.slots"), None, "the number there is another one");
}

#[test]
pub fn lustre_mounts_are_read_by_the_clients_counts() {
    // Newer clients write the plural.
    for unit in ["usec", "usecs"] {
        lustre_mounts_are_read_in(unit);
    }
}

fn lustre_mounts_are_read_in(unit: &str) {
    let machine = Machine::new();
    let stats = |reads: u64, micros: u64| {
        format!(
            "snapshot_time             1603740123.123456 secs.nsecs\n\
read_bytes                {reads} samples [bytes] 4096 1048576 {}\n\
write_bytes               4 samples [bytes] 1 9 30\n\
read                      {reads} samples [{unit}] 5 900 {micros}\n\
write                     4 samples [{unit}] 5 900 4000\n\
open                      3 samples [{unit}] 5 900 1000\n\
getattr                   5 samples [reqs]\n",
            reads * 1_000_000
        )
    };
    let file = "proc/fs/lustre/llite/scratch-ffff9a8b/stats";
    machine.write(file, stats(10, 30_000));
    let mountinfo = "90 25 0:51 / /scratch rw - lustre 10.0.0.1@tcp:/scratch/project rw,flock\n";
    machine.write("proc/self/mountinfo", mountinfo);
    let mut mounts = machine.open("mount");
    mounts.next();
    machine.write(file, stats(20, 2_030_000));
    let expected = [
        ("mount./scratch.operations", 32.0),
        ("mount./scratch.read", 20_000_000.0),
        ("mount./scratch.written", 30.0),
        ("mount./scratch.rttMicros", 200_000.0),
        ("mount./scratch.waiting", 2.0),
    ];
    assert_eq!(mounts.next(), readings(expected), "{unit}");
}

#[test]
fn in_a_container_the_mounts_of_the_machine_are_read() {
    let machine = Machine::new();
    machine.write("proc/self/mountstats", "device overlay mounted on / with fstype overlay\n");
    machine.write("proc/1/cgroup", "0::/init.scope\n").write("proc/1/mountstats", mountstats(100, 500, 800));
    assert_eq!(value(&machine.open("mount").next(), "mount./home.operations"), Some(7.0));
    // Without root only the container's own can be read.
    machine.remove("proc/1/mountstats");
    assert!(machine.try_open("mount").is_err());
}

#[test]
fn a_machine_without_network_file_systems_says_so() {
    let machine = Machine::new();
    machine.write("proc/self/mountstats", "device /dev/sda1 mounted on / with fstype ext4\n");
    let error = machine.try_open("mount").err().unwrap();
    assert_eq!((error.kind, error.reason.as_str()), (OpenErrorKind::Absent, "no NFS or Lustre is mounted"));
}
