//! Reads and writes of a Linux host's disks.
//!
//! The totals count *real disks*: entries of /sys/block that have a `device` link. Partitions, device mapper, RAID,
//! loop and zram are layered on them (or on memory) and would count the same bytes again. The device behind a watched
//! path is always listed, but is not part of a total.
//!
//! For an NVMe disk with native multipath (`nvme0n1`), some kernels count the disk, some its hidden paths (`nvme0c0n1`,
//! `nvme0c1n1`), and some both. So the larger of disk and paths is used.

use super::mounts::{self, Number};
use crate::host::total::Total;
use crate::read::Sources;
use crate::read::procfs::{HotFile, fields, lines, number};
use crate::read::sysfs;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::disk;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

const SECTORS_PER_MIB: f64 = 2048.0;

/// Interval of searching the devices behind the watched paths.
const PATHS_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of devices. Removed devices are kept so that their totals continue.
const MAX_DEVICES: usize = 1000;

/// Opens the collector.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let path = roots.proc.join("diskstats");
    let file = HotFile::open(&path).map_err(|error| OpenError::from_io(&path, &error))?;
    let tried = vec![path.display().to_string(), roots.sys.join("block").display().to_string()];
    let disks = Disks {
        file,
        block: roots.sys.join("block"),
        mountinfo: roots.proc.join("self/mountinfo"),
        paths: options.disk_paths.clone(),
        watched: Vec::new(),
        looked: None,
        devices: Vec::new(),
        read: 0,
        written: 0,
        before: None,
    };
    Ok(Part::only(tried, disks))
}

struct Disks {
    file: HotFile,
    block: PathBuf,
    mountinfo: PathBuf,
    paths: Vec<PathBuf>,
    /// Devices behind the watched paths.
    watched: Vec<Number>,
    looked: Option<Duration>,
    /// In the order of the file.
    devices: Vec<Device>,
    /// Sectors of all real disks since the start.
    read: u64,
    written: u64,
    before: Option<Duration>,
}

struct Device {
    name: String,
    number: Number,
    kind: Kind,
    seen: bool,
    read: Total,
    written: Total,
    busy: Total,
    /// Busy time since the previous reading, milliseconds.
    busy_ms: u64,
    /// Whether there was a reading, and one before that.
    is_read: bool,
    was_read: bool,
    /// Sectors read and written since the start by its hidden paths.
    of_paths: [u64; 2],
    /// Busy time of its busiest path since the previous reading, milliseconds.
    path_busy: u64,
    /// Sectors read and written that are already part of the totals.
    entered: [u64; 2],
}

/// Role of a device in the totals.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Real,
    /// A hidden path to the disk of this name.
    PathOf(String),
    /// A device that is layered on others.
    Other,
}

impl Collector for Disks {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.look_at_the_paths(out.at());
        let mut sources = Sources::default();
        let passed = self.before.replace(out.at()).map(|before| out.at().saturating_sub(before));
        let text = match self.file.read() {
            Ok(text) => text,
            Err(error) => {
                self.before = None;
                return Err(CollectError::failed(format!("{}: {error}", self.file.path().display())));
            }
        };
        sources.answered();
        self.devices.iter_mut().for_each(|device| device.seen = false);
        let mut next = 0;
        for line in lines(text).filter(|line| !line.is_empty()) {
            let Some(line) = Line::parse(line) else {
                sources.failed(|| format!("{}: a line cannot be parsed", self.block.display()));
                continue;
            };
            let at = find(&self.devices, next, &line).unwrap_or_else(|| {
                self.devices.push(Device::new(&line, &self.block));
                self.devices.len() - 1
            });
            next = at + 1;
            self.devices[at].take(&line);
        }
        self.join_paths();
        for device in self.devices.iter_mut().filter(|device| device.seen) {
            let is_real = device.kind == Kind::Real;
            if is_real {
                let [read, written] = device.enter();
                self.read = self.read.saturating_add(read);
                self.written = self.written.saturating_add(written);
            }
            if is_real || self.watched.contains(&device.number) {
                let [read, written] = device.sectors();
                out.put(&disk::DEVICE_READ, &*device.name, read as f64 / SECTORS_PER_MIB);
                out.put(&disk::DEVICE_WRITTEN, &*device.name, written as f64 / SECTORS_PER_MIB);
                let busy = device.busy_ms.max(device.path_busy);
                let busy = passed.filter(|_| device.was_read).and_then(|passed| percent(busy, passed));
                out.put_some(&disk::DEVICE_BUSY, &*device.name, busy);
            }
        }
        for device in self.devices.iter_mut().filter(|device| !device.seen) {
            device.read.forget();
            device.written.forget();
            device.busy.forget();
            device.is_read = false;
        }
        if self.devices.len() > MAX_DEVICES {
            self.devices.retain(|device| device.seen);
        }
        if self.devices.iter().any(|device| device.kind == Kind::Real && device.seen) {
            out.put(&disk::READ, (), self.read as f64 / SECTORS_PER_MIB);
            out.put(&disk::WRITTEN, (), self.written as f64 / SECTORS_PER_MIB);
        }
        sources.outcome()
    }
}

impl Disks {
    /// Adds the counts of hidden paths to their disks.
    fn join_paths(&mut self) {
        let paths: Vec<(String, [u64; 2], u64)> = self.devices.iter().filter_map(Device::path).collect();
        if paths.is_empty() {
            return;
        }
        for device in self.devices.iter_mut().filter(|device| device.kind == Kind::Real) {
            let mut own = paths.iter().filter(|(disk, ..)| *disk == device.name).peekable();
            if own.peek().is_none() {
                continue;
            }
            (device.of_paths, device.path_busy) = ([0, 0], 0);
            for (_, [read, written], busy) in own {
                device.of_paths[0] += read;
                device.of_paths[1] += written;
                device.path_busy = device.path_busy.max(*busy);
            }
        }
    }

    fn look_at_the_paths(&mut self, now: Duration) {
        if self.looked.is_some_and(|then| now.saturating_sub(then) < PATHS_INTERVAL) {
            return;
        }
        self.looked = Some(now);
        let mounts = mounts::parse(&std::fs::read(&self.mountinfo).unwrap_or_default());
        self.watched.clear();
        for path in &self.paths {
            let Some(mount) = mounts::find_mount(&mounts, path) else { continue };
            // btrfs and similar file systems have a device number of their own; the source names the device.
            let number = if mount.number.0 == 0 { number_of(&mount.source) } else { Some(mount.number) };
            self.watched.extend(number);
        }
    }
}

/// Number of a device below /dev; reading it never hangs.
fn number_of(source: &str) -> Option<Number> {
    let found = source.starts_with("/dev/").then(|| std::fs::metadata(source).ok()).flatten()?;
    Some((u64::from(libc::major(found.rdev())), u64::from(libc::minor(found.rdev()))))
}

/// Devices keep their order, so the next one is usually right.
fn find(devices: &[Device], next: usize, line: &Line<'_>) -> Option<usize> {
    let is = |device: &Device| device.number == line.number && device.name.as_bytes() == line.name;
    if devices.get(next).is_some_and(is) { Some(next) } else { devices.iter().position(is) }
}

impl Device {
    fn new(line: &Line<'_>, block: &std::path::Path) -> Device {
        let name = String::from_utf8_lossy(line.name).into_owned();
        // /sys replaces the slash of names such as `cciss/c0d0` with an exclamation mark.
        let entry = block.join(name.replace('/', "!"));
        let hidden = sysfs::text(&entry.join("hidden")).is_some_and(|text| text == "1");
        let kind = match entry.join("device").exists() {
            false => Kind::Other,
            true if hidden => disk_of(&name).map_or(Kind::Other, Kind::PathOf),
            true => Kind::Real,
        };
        Device {
            name,
            number: line.number,
            kind,
            seen: false,
            read: Total::default(),
            written: Total::default(),
            busy: Total::default(),
            busy_ms: 0,
            is_read: false,
            was_read: false,
            of_paths: [0, 0],
            path_busy: 0,
            entered: [0, 0],
        }
    }

    fn take(&mut self, line: &Line<'_>) {
        // Busy time begins at the first reading of a device, or the first after its return.
        self.was_read = std::mem::replace(&mut self.is_read, true);
        self.seen = true;
        self.read.add(line.read);
        self.written.add(line.written);
        self.busy_ms = self.busy.add(line.busy_ms);
    }

    /// The disk that this path leads to, and its traffic: sectors since the start, busy milliseconds since the previous
    /// reading.
    fn path(&self) -> Option<(String, [u64; 2], u64)> {
        match &self.kind {
            Kind::PathOf(disk) => Some((disk.clone(), [self.read.sum(), self.written.sum()], self.busy_ms)),
            Kind::Real | Kind::Other => None,
        }
    }

    /// Sectors read and written since the start.
    fn sectors(&self) -> [u64; 2] {
        [self.read.sum().max(self.of_paths[0]), self.written.sum().max(self.of_paths[1])]
    }

    /// Returns the sectors read and written that are not yet part of the totals, and marks them as added.
    fn enter(&mut self) -> [u64; 2] {
        let now = self.sectors();
        let before = std::mem::replace(&mut self.entered, now);
        [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])]
    }
}

/// The disk of a hidden path: `nvme0n1` for `nvme0c2n1`. The number after `c` is the controller's.
fn disk_of(path: &str) -> Option<String> {
    let (head, rest) = path.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    let numbers = [head, controller, namespace];
    let all = numbers.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    all.then(|| format!("nvme{head}n{namespace}"))
}

/// One line of /proc/diskstats.
struct Line<'a> {
    number: Number,
    name: &'a [u8],
    read: u64,
    written: u64,
    busy_ms: u64,
}

impl Line<'_> {
    /// Fields: major, minor, name, then for reads: count, merged, sectors, time; the same for writes; requests in
    /// flight, time with requests in flight.
    fn parse(line: &[u8]) -> Option<Line<'_>> {
        let mut fields = fields(line);
        let numbers = (number(fields.next()?)?, number(fields.next()?)?);
        let name = fields.next()?;
        let read = number(fields.nth(2)?)?;
        let written = number(fields.nth(3)?)?;
        let busy_ms = number(fields.nth(2)?)?;
        Some(Line { number: numbers, name, read, written, busy_ms })
    }
}

/// The kernel counts whole milliseconds at its own times, so a busy disk may be slightly above 100.
fn percent(busy_ms: u64, passed: Duration) -> Option<f64> {
    let passed = passed.as_secs_f64() * 1000.0;
    (passed > 0.0).then(|| (100.0 * busy_ms as f64 / passed).min(100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read_by_position() {
        let line = b" 254       0 vda 1 2 30 4 5 6 70 8 9 100 11 12 13 14 15 16 17";
        let line = Line::parse(line).unwrap();
        assert_eq!(
            (line.number, line.name, line.read, line.written, line.busy_ms),
            ((254, 0), &b"vda"[..], 30, 70, 100)
        );
        assert!(Line::parse(b"254 0 vda 1 2 3").is_none());
    }

    #[test]
    fn a_hidden_path_leads_to_its_disk() {
        for (path, disk) in [("nvme0c0n1", "nvme0n1"), ("nvme12c3n45", "nvme12n45")] {
            assert_eq!(disk_of(path).as_deref(), Some(disk));
        }
        for other in ["nvme0n1", "nvme0cn1", "nvme0c0", "sda", "nvme0c0n1p1", "nvmec0n1"] {
            assert_eq!(disk_of(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, words in "( *[0-9a-z]{1,22}){0,20}") {
            Line::parse(&text);
            Line::parse(words.as_bytes());
        }
    }
}
