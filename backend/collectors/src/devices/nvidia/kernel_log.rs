//! Critical errors (XID) in the kernel's log, for GPUs without driver events, and for errors without an event.
//!
//! Example: `NVRM: Xid (PCI:0000:65:00): 79, pid=4711, GPU has fallen off the bus.`
//!
//! `/dev/kmsg` returns one record per read and never blocks. Without a new record this is one call of a microsecond.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Buffer size for a record; the kernel's own are shorter.
const RECORD_BYTES: usize = 8 << 10;
/// Maximum records per reading; the rest follows at the next one.
const MAX_RECORDS: usize = 1_000;
/// Lines with one GPU and number that are closer than this belong to one error, microseconds.
const ONE_ERROR_MICROS: u64 = 1_000_000;
/// NVIDIA uses no XID numbers from here on.
const MAX_XID: u64 = 10_000;

/// PCI address of a GPU: domain, bus and device.
pub(super) type PciPlace = [u32; 3];

/// The log, read from the time of opening on.
#[derive(Debug, Default)]
pub(super) struct KernelLog {
    /// None if there is no log, or it may not be read.
    file: Option<File>,
    /// Reason why it may not be read, with a remedy. Cleared once reported.
    denied: Option<String>,
    /// Time of the last report of each error, in the kernel's clock.
    told: HashMap<(PciPlace, u64), u64>,
}

/// An error of the log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoggedError {
    /// The GPU.
    pub place: PciPlace,
    /// The XID.
    pub number: u64,
    /// The text behind the number; the log limits its size.
    pub message: String,
}

impl KernelLog {
    /// Opens `kmsg` in this folder.
    pub fn open(dev: &Path) -> KernelLog {
        let path = dev.join("kmsg");
        match from_its_end(&path) {
            Ok(file) => KernelLog { file: Some(file), ..KernelLog::default() },
            Err(error) => KernelLog { denied: denied(&path, &error), ..KernelLog::default() },
        }
    }

    /// A log that may not be read, with this reason.
    #[cfg(test)]
    pub fn denied(reason: &str) -> KernelLog {
        KernelLog { denied: Some(reason.into()), ..KernelLog::default() }
    }

    /// Whether errors can be read.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Returns once the reason why it may not be read, with a remedy.
    pub fn say_denied(&mut self) -> Option<String> {
        self.denied.take()
    }

    /// Errors since the last reading.
    pub fn read(&mut self) -> Vec<LoggedError> {
        let mut errors = Vec::new();
        let Some(file) = &mut self.file else { return errors };
        let mut buffer = [0; RECORD_BYTES];
        for _ in 0..MAX_RECORDS {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    let text = String::from_utf8_lossy(&buffer[..n]);
                    for (micros, error) in text.lines().filter_map(error_in) {
                        let before = self.told.insert((error.place, error.number), micros);
                        if before.is_none_or(|before| micros.saturating_sub(before) >= ONE_ERROR_MICROS) {
                            errors.push(error);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Unread records were overwritten (EPIPE), or a record is longer than any of the driver.
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::InvalidInput) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.file = None;
                    break;
                }
            }
        }
        errors
    }
}

/// Opens the file at its end, so that only new records are read.
#[cfg(target_os = "linux")]
fn from_its_end(path: &Path) -> io::Result<File> {
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
    let about = path.metadata()?;
    // In containers the file may be another device, such as a console or an always empty one.
    if about.file_type().is_char_device() && about.rdev() != libc::makedev(1, 11) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

/// Only Linux has this file.
#[cfg(not(target_os = "linux"))]
fn from_its_end(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::NotFound.into())
}

fn denied(path: &Path, error: &io::Error) -> Option<String> {
    (error.kind() == io::ErrorKind::PermissionDenied).then(|| {
        format!(
            "critical errors (XID) are not recorded: the driver does not report them to this process, and the kernel \
            log cannot be read ({}: {error}); allow it with sudo sysctl kernel.dmesg_restrict=0, or the capability \
            CAP_SYSLOG",
            path.display()
        )
    })
}

/// Microseconds since boot, and the error of a record that reports one:
/// `3,1234,5678901,-;NVRM: Xid (PCI:0000:65:00 GPU-I:05): 94, pid=7194, Contained: SM (0x1).`
fn error_in(record: &str) -> Option<(u64, LoggedError)> {
    let (head, message) = record.split_once(';')?;
    let mut head = head.split(',');
    let (priority, _, micros) = (head.next()?, head.next()?, head.next()?);
    // Records above 7 are from programs, not from the kernel.
    if priority.parse::<u32>().ok()? > 7 {
        return None;
    }
    let (place, rest) = message.strip_prefix("NVRM: Xid (")?.split_once("): ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    let number = digits.parse().ok().filter(|number| *number < MAX_XID)?;
    let message = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches([',', ' ']).into();
    let place = self::place(place.strip_prefix("PCI:").unwrap_or(place))?;
    Some((micros.parse().ok()?, LoggedError { place, number, message }))
}

/// Parses `0000:65:00`, `00000000:65:00.0` and `0000:65:00 GPU-I:05`.
pub(super) fn place(text: &str) -> Option<PciPlace> {
    let mut parts = text.split([' ', '.']).next()?.split(':').map(|part| u32::from_str_radix(part, 16).ok());
    let place = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(place)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    #[test]
    fn records_are_read_as_the_driver_writes_them() {
        for (record, expected) in [
            ("3,1,77,-;NVRM: Xid (PCI:0000:65:00): 79, pid=4711, GPU has fallen off the bus.", Some((0x65, 79))),
            ("4,1,77,-;NVRM: Xid (PCI:0000:c1:00): 31, pid=79749, name=exe, Ch 0000000a, intr 0", Some((0xc1, 31))),
            ("3,1,77,c;NVRM: Xid (PCI:0000:07:00 GPU-I:05): 94, pid=7194, Contained: SM (0x1).", Some((7, 94))),
            ("3,1,77,-;NVRM: Xid (0000:01:00): 13, 0003 00000000 0000A0C0", Some((1, 13))),
            ("3,1,77,-;NVRM: Xid (PCI:0000:01:00.0): 62", Some((1, 62))),
            // A record that a program has written to the kernel's log.
            ("11,1,77,-;NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus.", None),
            ("6,1,77,-;NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.", None),
            ("3,1,77,-;NVRM: Xid (PCI:0000:65:00): none", None),
            ("3,1,77,-;NVRM: Xid (PCI:0000:65): 79", None),
            ("3,1,77,-;NVRM: Xid (PCI:0000:65:00): 123456", None),
            (" SUBSYSTEM=pci", None),
            ("", None),
        ] {
            let expected = expected.map(|(bus, number)| (77, [0, bus, 0], number));
            let read = error_in(record).map(|(micros, error)| (micros, error.place, error.number));
            assert_eq!(read, expected, "{record}");
        }
        assert_eq!(place("00000009:C1:00.0"), Some([9, 0xc1, 0]));
        let message = |record: &str| error_in(record).map(|(_, error)| error.message);
        let record = "3,1,77,-;NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (x)";
        assert_eq!(message(record).as_deref(), Some("GPU recovery action changed from 0x0 (None) to 0x1 (x)"));
        assert_eq!(message("3,1,77,-;NVRM: Xid (PCI:0000:01:00.0): 62").as_deref(), Some(""));
    }

    /// A log written by tests.
    struct Log {
        dir: tempfile::TempDir,
        log: KernelLog,
    }

    impl Log {
        fn new() -> Log {
            let dir = tempfile::tempdir().expect("a folder");
            let before = "3,1,5,-;NVRM: Xid (PCI:0000:65:00): 48, before\n";
            std::fs::write(dir.path().join("kmsg"), before).expect("a file");
            Log { log: KernelLog::open(dir.path()), dir }
        }

        /// GPUs and numbers of the errors since the last reading.
        fn read(&mut self) -> Vec<(PciPlace, u64)> {
            self.log.read().into_iter().map(|error| (error.place, error.number)).collect()
        }

        fn write(&self, text: &str) {
            let path = self.dir.path().join("kmsg");
            let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("a file");
            file.write_all(text.as_bytes()).expect("lines");
        }
    }

    #[test]
    fn what_stood_there_before_is_not_read_and_lines_of_one_error_count_once() {
        let mut log = Log::new();
        assert!(log.log.is_open());
        assert_eq!(log.read(), []);
        let xid = |second: u64, bus: &str, number: u32| {
            format!("3,9,{}000000,-;NVRM: Xid (PCI:0000:{bus}:00): {number}, pid=1, text\n SUBSYSTEM=pci\n", second)
        };
        log.write(&(xid(20, "65", 13) + &xid(20, "65", 13) + &xid(20, "66", 13) + &xid(20, "65", 43)));
        assert_eq!(log.read(), [([0, 0x65, 0], 13), ([0, 0x66, 0], 13), ([0, 0x65, 0], 43)]);
        assert_eq!(log.read(), []);
        log.write(&xid(21, "65", 13));
        assert_eq!(log.read(), [([0, 0x65, 0], 13)]);
    }

    #[test]
    fn a_log_that_may_not_be_read_is_said_once_and_one_that_is_not_there_never() {
        let path = Path::new("/dev/kmsg");
        for error in [libc::EPERM, libc::EACCES] {
            let denied = denied(path, &io::Error::from_raw_os_error(error)).unwrap();
            assert!(denied.contains("/dev/kmsg") && denied.contains("sudo sysctl kernel.dmesg_restrict=0"), "{denied}");
            let mut log = KernelLog { denied: Some(denied.clone()), ..KernelLog::default() };
            assert_eq!((log.say_denied(), log.say_denied()), (Some(denied), None));
            assert_eq!((log.is_open(), log.read()), (false, Vec::new()));
        }
        assert_eq!(denied(path, &io::Error::from_raw_os_error(libc::ENOENT)), None);
        let other = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", other.path().join("kmsg")).unwrap();
        for dev in [Path::new("/nowhere"), other.path()] {
            let mut none = KernelLog::open(dev);
            assert_eq!((none.is_open(), none.say_denied()), (false, None), "{dev:?}");
        }
    }

    #[test]
    fn the_kernels_own_log_never_keeps_us_waiting() {
        let mut log = KernelLog::open(Path::new("/dev"));
        let begin = std::time::Instant::now();
        (0..100).for_each(|_| drop(log.read()));
        assert!(begin.elapsed() < std::time::Duration::from_secs(5));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", words in "[0-9]{1,3},1,[0-9]{1,22},-;NVRM: Xid \\([A-Z:0-9 ]{0,20}\\): [0-9]{0,25}") {
            let _ = (error_in(&text), error_in(&words), place(&text));
        }
    }
}
