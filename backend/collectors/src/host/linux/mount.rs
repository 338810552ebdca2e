//! Network file systems by mount: NFS by `/proc/self/mountstats`, Lustre by the statistics of its client, llite.
//!
//! No mount is accessed, because one whose server is away hangs. All counts are the kernel's and grow from the mount on.

use super::mounts;
use crate::read::procfs::{HotFile, fields, lines, number, trim};
use crate::read::sysfs;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::mount as rows;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of mounts that get series; a machine with automatic mounts may have thousands.
const MAX_MOUNTS: usize = 64;
const MICROS_PER_MILLI: f64 = 1000.0;

/// Opens the collector where a network file system is mounted.
pub(crate) fn open(_: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let path = statistics(roots);
    let mut stats = HotFile::of_long_records(&path);
    let has_nfs = stats.read().is_ok_and(|text| !nfs(text).is_empty());
    let lustre = [roots.proc.join("fs/lustre/llite"), roots.sys.join("kernel/debug/lustre/llite")];
    let tried: Vec<String> = std::iter::once(&path).chain(&lustre).map(|path| path.display().to_string()).collect();
    if !has_nfs && lustre.iter().all(|dir| sysfs::names(dir).is_empty()) {
        return Err(OpenError::absent(tried, "no NFS or Lustre is mounted", ""));
    }
    let mounts = roots.process().join("mountinfo");
    Ok(Part::only(tried, Mounts { stats, lustre, mounts, before: BTreeMap::new(), at: None }))
}

/// The file of the machine's mounts. A container has mounts of its own; those of the first process only root may read.
fn statistics(roots: &Roots) -> PathBuf {
    let machine = roots.process().join("mountstats");
    if std::fs::File::open(&machine).is_ok() { machine } else { roots.proc.join("self/mountstats") }
}

/// Counts of a mount since it was mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    operations: u64,
    read: Option<u64>,
    written: Option<u64>,
    /// Time of the requests that are timed, ms, and their number.
    rtt: (f64, u64),
    /// Time for which requests other than writes were queued or under way, ms.
    waited: f64,
    retransmits: Option<u64>,
    /// Sends, sum of the slots in use at each, and the highest number of slots; RDMA does not tell that.
    slots: Option<(u64, u64, Option<u64>)>,
}

struct Mounts {
    stats: HotFile,
    lustre: [PathBuf; 2],
    mounts: PathBuf,
    before: BTreeMap<String, Counts>,
    at: Option<Duration>,
}

impl Collector for Mounts {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let mut now = self.stats.read().map(nfs).unwrap_or_default();
        now.extend(self.lustre.iter().flat_map(|dir| lustre(dir, &self.mounts)));
        let left_out = now.len().saturating_sub(MAX_MOUNTS);
        while now.len() > MAX_MOUNTS {
            now.pop_last();
        }
        let seconds = self.at.replace(out.at()).map(|then| out.at().saturating_sub(then).as_secs_f64());
        for (mount, counts) in &now {
            counts.put(mount, out);
            if let Some((before, seconds)) = self.before.get(mount).zip(seconds.filter(|seconds| *seconds > 0.0)) {
                counts.put_since(before, mount, seconds, out);
            }
        }
        self.before = now;
        match left_out {
            0 => Ok(()),
            n => Err(CollectError::partial(format!("{n} more mounts are left out, over the limit of {MAX_MOUNTS}"))),
        }
    }
}

impl Counts {
    fn put(&self, mount: &str, out: &mut Out) {
        let whole = |count: Option<u64>| count.map(|count| count as f64);
        out.put(&rows::OPERATIONS, mount, self.operations as f64);
        out.put_some(&rows::READ, mount, whole(self.read));
        out.put_some(&rows::WRITTEN, mount, whole(self.written));
        out.put_some(&rows::RETRANSMITS, mount, whole(self.retransmits));
        out.put_some(&rows::SLOTS, mount, whole(self.slots.and_then(|(.., most)| most)));
    }

    /// Puts means of the time since the counts before. A mount that was mounted anew has none.
    fn put_since(&self, before: &Counts, mount: &str, seconds: f64, out: &mut Out) {
        if self.operations < before.operations {
            return;
        }
        let timed = self.rtt.1.saturating_sub(before.rtt.1) as f64;
        let millis = self.rtt.0 - before.rtt.0;
        out.put_rounded(&rows::RTT, mount, (timed > 0.0 && millis >= 0.0).then(|| MICROS_PER_MILLI * millis / timed));
        let waited = self.waited - before.waited;
        out.put_rounded(&rows::WAITING, mount, (waited >= 0.0).then_some(waited / MICROS_PER_MILLI / seconds));
        let used = self.slots.zip(before.slots).and_then(|((sends, used, _), (sends_before, used_before, _))| {
            let sent = sends.checked_sub(sends_before).filter(|sent| *sent > 0)?;
            Some(used.checked_sub(used_before)? as f64 / sent as f64)
        });
        out.put_rounded(&rows::SLOTS_USED, mount, used);
    }
}

/// The NFS mounts of a `mountstats` text. A later mount at one place hides the earlier ones.
fn nfs(text: &[u8]) -> BTreeMap<String, Counts> {
    let (mut all, mut current) = (BTreeMap::new(), None::<(String, Counts)>);
    for line in lines(text) {
        if let Some(mount) = line.strip_prefix(b"device ") {
            all.extend(current.take());
            current = place(mount).map(|place| (place, Counts { retransmits: Some(0), ..Counts::default() }));
        } else if let Some((_, counts)) = &mut current {
            counts.line(line);
        }
    }
    all.extend(current);
    all
}

/// `server:/export mounted on /data with fstype nfs4 statvers=1.1`: the place of an NFS mount.
fn place(line: &[u8]) -> Option<String> {
    let words: Vec<&[u8]> = fields(trim(line)).collect();
    let at = words.windows(2).position(|pair| pair == [b"mounted".as_slice(), b"on"])?;
    let kind = words.windows(2).position(|pair| pair == [b"with".as_slice(), b"fstype"])?;
    matches!(*words.get(kind + 2)?, b"nfs" | b"nfs4").then_some(())?;
    Some(mounts::unescape(words.get(at + 2)?))
}

impl Counts {
    /// Adds a line of an NFS mount.
    fn line(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        let Some(colon) = line.iter().position(|&b| b == b':') else { return };
        let (name, rest) = (&line[..colon], line[colon + 1..].trim_ascii());
        let numbers = || -> Vec<u64> { fields(rest).map_while(number).collect() };
        match name {
            b"bytes" => {
                let bytes = numbers();
                (self.read, self.written) = (bytes.get(4).copied(), bytes.get(5).copied());
            }
            b"xprt" => self.transport(rest),
            // Operations have names of capital letters.
            name if !name.is_empty()
                && name.iter().all(|b| b.is_ascii_uppercase() || *b == b'_' || b.is_ascii_digit()) =>
            {
                let [operations, sent, _, _, _, _, rtt, execute, ..] = numbers()[..] else { return };
                self.operations += operations;
                self.retransmits = self.retransmits.map(|count| count + sent.saturating_sub(operations));
                self.rtt = (self.rtt.0 + rtt as f64, self.rtt.1 + operations);
                if !matches!(name, b"WRITE" | b"COMMIT") {
                    self.waited += execute as f64;
                }
            }
            _ => {}
        }
    }

    /// Adds a connection: `tcp` or `rdma` with its numbers. `tcp` of version 1.1 has the number of slots, where `rdma` has
    /// other ones.
    fn transport(&mut self, rest: &[u8]) {
        let mut words = fields(rest);
        let has_most = match words.next() {
            Some(b"tcp") => true,
            Some(b"rdma") => false,
            _ => return,
        };
        let numbers: Vec<u64> = words.map_while(number).collect();
        let (Some(sends), Some(used)) = (numbers.get(5), numbers.get(8)) else { return };
        let most = numbers.get(10).filter(|_| has_most);
        let (all_sends, all_used, all_most) = self.slots.unwrap_or((0, 0, Some(0)));
        let all_most = all_most.zip(most).map(|(all, most)| all + most);
        self.slots = Some((all_sends + sends, all_used + used, all_most));
    }
}

/// The Lustre mounts with statistics in a folder. Their names are those of the file system and of the client:
/// `scratch-ffff8800`.
fn lustre(dir: &Path, mountinfo: &Path) -> Vec<(String, Counts)> {
    let names = sysfs::names(dir);
    if names.is_empty() {
        return Vec::new();
    }
    let mounted = std::fs::read(mountinfo).map(|text| mounts::parse(&text)).unwrap_or_default();
    let of = |name: String| {
        let text = std::fs::read(dir.join(&name).join("stats")).ok()?;
        let file_system = name.rsplit_once('-').map_or(name.as_str(), |(name, _)| name);
        // The source is `10.0.0.1@tcp:/scratch`, perhaps with a folder behind it.
        let is_its =
            |source: &str| source.split_once(":/").is_some_and(|(_, path)| path.split('/').next() == Some(file_system));
        let point = mounted.iter().rfind(|mount| is_its(&mount.source)).map(|mount| mount.point.display().to_string());
        Some((point.unwrap_or_else(|| file_system.to_string()), llite(&text)))
    };
    names.into_iter().filter_map(of).collect()
}

/// Counts of llite's statistics: `read_bytes 100 samples [bytes] 1 1048576 123456789`, and from 2.13 on
/// `read 100 samples [usec] 5 900 12345`, whose unit newer clients write `[usecs]`.
fn llite(text: &[u8]) -> Counts {
    let mut counts = Counts::default();
    for line in lines(text) {
        let words: Vec<&[u8]> = fields(line).collect();
        let [name, samples, b"samples", unit, rest @ ..] = &words[..] else { continue };
        let Some(samples) = number(samples) else { continue };
        let sum = rest.get(2).and_then(|sum| number(sum));
        match (*name, *unit) {
            (b"read_bytes", _) => counts.read = sum,
            (b"write_bytes", _) => counts.written = sum,
            (name, unit) => {
                counts.operations += samples;
                let is_time = matches!(unit, b"[usec]" | b"[usecs]");
                let millis = sum.filter(|_| is_time).map(|micros| micros as f64 / MICROS_PER_MILLI);
                if let Some(millis) = millis.filter(|_| matches!(name, b"read" | b"write")) {
                    counts.rtt = (counts.rtt.0 + millis, counts.rtt.1 + samples);
                }
                counts.waited += millis.filter(|_| matches!(name, b"read" | b"open")).unwrap_or_default();
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, words in "(device a mounted on /b with fstype nfs4\n)?[A-Z:a-z 0-9\n]{0,80}") {
            nfs(&text);
            nfs(words.as_bytes());
            llite(words.as_bytes());
        }
    }
}
