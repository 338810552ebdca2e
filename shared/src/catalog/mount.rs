//! Network file systems by mount: NFS and Lustre.

use super::{Draw, MetricDef};
use crate::unit::Unit;

/// Requests.
pub static OPERATIONS: MetricDef = MetricDef::counter("mount.{path}.operations", Unit::Count)
    .title("Requests by mount")
    .on("mount.operations", "{path}")
    .help("Requests to the file server of the mount since it was mounted. NFS: operations of /proc/self/mountstats. Lustre: samples of llite's stats.");

/// Read data.
pub static READ: MetricDef = MetricDef::counter("mount.{path}.read", Unit::Bytes)
    .title("Read by mount")
    .on("mount.read", "{path}")
    .help("Bytes read from the file server of the mount since it was mounted; what the page cache gave is not among them with NFS. NFS: serverreadbytes of /proc/self/mountstats. Lustre: read_bytes of llite's stats.");

/// Written data.
pub static WRITTEN: MetricDef = MetricDef::counter("mount.{path}.written", Unit::Bytes)
    .title("Written by mount")
    .on("mount.written", "{path}")
    .help("Bytes written to the file server of the mount since it was mounted. NFS: serverwritebytes of /proc/self/mountstats. Lustre: write_bytes of llite's stats.");

/// Time of a request.
pub static RTT: MetricDef = MetricDef::gauge("mount.{path}.rttMicros", Unit::Microseconds)
    .title("Time of a request by mount")
    .on("mount.rtt", "{path}")
    .help("Mean time from sending a request to the file server until its answer, since the previous sample; absent without a request. NFS: growth of the round trip times by that of operations, /proc/self/mountstats. Lustre: of read and write in llite's stats, from 2.13 on.");

/// Requests under way.
pub static WAITING: MetricDef = MetricDef::gauge("mount.{path}.waiting", Unit::Count)
    .title("Requests under way by mount")
    .on("mount.waiting", "{path}")
    .steps(100.0)
    .help("Mean number of requests, other than writes, that were queued or under way since the previous sample. 1 means that somebody waits for this mount all the time. NFS: growth of the execution times of all operations but WRITE and COMMIT, by time, /proc/self/mountstats. Lustre: of read and open in llite's stats.");

/// Requests sent again.
pub static RETRANSMITS: MetricDef = MetricDef::counter("mount.{path}.retransmits", Unit::Count)
    .title("Requests sent again by mount")
    .on("mount.retransmits", "{path}")
    .help("Requests that were sent again because the file server did not answer, since the mount. NFS: transmissions beyond operations in /proc/self/mountstats.");

/// Slots in use.
pub static SLOTS_USED: MetricDef = MetricDef::gauge("mount.{path}.slotsUsed", Unit::Count)
    .title("NFS slots in use by mount")
    .on("mount.slots", "{path}")
    .steps(100.0)
    .help("Mean number of slots that were in use when a request was sent, since the previous sample; at the number of slots further requests queue. NFS: growth of the transport's req_u by that of sends, /proc/self/mountstats, all connections together.");

/// Slots.
pub static SLOTS: MetricDef = MetricDef::gauge("mount.{path}.slots", Unit::Count)
    .title("NFS slots by mount")
    .on("mount.slots", "{path} all")
    .draw(Draw::Limit)
    .help("Highest number of slots that the connections of the mount had so far; the kernel adds some as needed. NFS: max_slots of the transports in /proc/self/mountstats; RDMA does not tell it.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&OPERATIONS, &READ, &WRITTEN, &RTT, &WAITING, &RETRANSMITS, &SLOTS_USED, &SLOTS];
