//! Detects kernels among processes by their arguments.

use crate::host::linux::process::stat::Stat;
use crate::read::procfs::fill;
use inventory::NoKernel;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Number of times that a process is checked. Between fork and exec it still has the arguments of its parent.
const MAX_CHECKS: u8 = 2;
/// Number of searches of new processes after which all are checked, because PIDs are reused.
const FULL_LOOK_PERIOD: u32 = 24;
/// Maximum number of ancestors checked for a process.
const MAX_ABOVE: usize = 32;
/// Maximum length of a kernel ID, bytes.
const MAX_ID_BYTES: usize = 64;
/// Options of kernels for the connection file, without dashes.
const CONNECTION_OPTIONS: [&[u8]; 5] =
    [b"f", b"conn", b"connection-file", b"connection_file", b"IPKernelApp.connection_file"];
/// Maximum stored length of a notebook's path, bytes.
const MAX_PATH_BYTES: usize = 512;

/// A detected kernel.
#[derive(Debug)]
pub(super) struct FoundKernel {
    pub id: String,
    pub pid: u32,
    pub start: u64,
    pub path: Option<String>,
}

/// Searches new processes for kernels.
pub(super) struct Finder {
    proc: PathBuf,
    uid: u32,
    /// Processes that are no kernels, and how often each was checked.
    others: HashMap<u32, u8>,
    /// IDs found in the last search.
    known: HashSet<String>,
    looks: u32,
    buffer: Vec<u8>,
}

impl Finder {
    pub fn new(proc: PathBuf) -> Self {
        Finder { proc, uid: own_uid(), others: HashMap::new(), known: HashSet::new(), looks: 0, buffer: Vec::new() }
    }

    /// Kernels among new processes, and those found before.
    ///
    /// # Errors
    /// The processes cannot be listed.
    pub fn find_kernels(&mut self) -> io::Result<Vec<FoundKernel>> {
        if self.looks.is_multiple_of(FULL_LOOK_PERIOD) {
            self.others.clear();
        }
        self.looks += 1;
        let listed = std::fs::read_dir(&self.proc)?;
        let (mut found, mut others) = (Vec::new(), HashMap::new());
        for pid in listed.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            let seen = self.others.get(&pid).copied().unwrap_or_default();
            if seen < MAX_CHECKS
                && let Some(kernel) = kernel(&self.proc, pid, self.uid, &mut self.buffer)
            {
                found.push(kernel);
            } else {
                others.insert(pid, MAX_CHECKS.min(seen + 1));
            }
        }
        self.others = others;
        self.known = found.iter().map(|found| found.id.clone()).collect();
        Ok(found)
    }

    /// Whether the last search found a kernel with this ID.
    pub fn knows(&self, id: &str) -> bool {
        self.known.contains(id)
    }

    /// Makes the next search check all processes.
    pub fn look_anew(&mut self) {
        self.looks = 0;
    }
}

/// The kernel that a process belongs to: itself, or its nearest ancestor that is one.
pub(super) fn above(proc: &Path, pid: u32) -> Result<FoundKernel, NoKernel> {
    let (uid, mut buffer) = (own_uid(), Vec::new());
    let owner = std::fs::metadata(proc.join(pid.to_string())).map_err(|_| NoKernel::NoProcess)?.uid();
    if owner != uid {
        return Err(NoKernel::OtherUser);
    }
    let (mut next, mut best) = (pid, None::<FoundKernel>);
    for _ in 0..MAX_ABOVE {
        let Some(stat) = Stat::read(proc, next, &mut buffer) else { break };
        match (kernel(proc, next, uid, &mut buffer), &best) {
            // Children of a kernel have its arguments, so the topmost process with the ID is the kernel.
            (Some(found), None) => best = Some(found),
            (Some(found), Some(below)) if found.id == below.id => best = Some(found),
            (_, Some(_)) => break,
            (None, None) => {}
        }
        next = stat.parent;
        if next <= 1 {
            break;
        }
    }
    best.ok_or(NoKernel::NotOne)
}

fn own_uid() -> u32 {
    // SAFETY: the call takes no argument, returns a number and cannot fail.
    unsafe { libc::geteuid() }
}

/// A process of this user that is a kernel, or a child of one with inherited arguments.
fn kernel(proc: &Path, pid: u32, uid: u32, buffer: &mut Vec<u8>) -> Option<FoundKernel> {
    let dir = proc.join(pid.to_string());
    if std::fs::metadata(&dir).ok()?.uid() != uid {
        return None;
    }
    let n = fill(&File::open(dir.join("cmdline")).ok()?, buffer).ok()?;
    let id = id_in(&buffer[..n])?;
    let stat = Stat::read(proc, pid, buffer).filter(|stat| !stat.ended)?;
    let path = File::open(dir.join("environ")).and_then(|file| fill(&file, buffer)).ok();
    let path = path.and_then(|n| session_name(&buffer[..n]));
    // The rest of the two files may contain secrets, so it is erased.
    buffer.fill(0);
    Some(FoundKernel { id, pid, start: stat.start, path })
}

/// The kernel ID from the arguments of a process (each ends with a zero byte): the name of its connection file. Jupyter
/// servers use a UUID. Others use names of their own: `kernel-v2-123abc.json` of VS Code, `kernel-123.json` of a
/// console, `tmpabc.json` of papermill and nbclient. Such a file counts only if the file
/// name in another argument contains "kernel".
fn id_in(arguments: &[u8]) -> Option<String> {
    let words = || arguments.split(|byte| *byte == 0);
    let by_server = words().find_map(|word| {
        let id = file_name(word).strip_prefix(b"kernel-")?.strip_suffix(b".json")?;
        is_uuid(id).then(|| String::from_utf8_lossy(id).to_ascii_lowercase())
    });
    by_server.or_else(|| {
        let file = connection_file(words())?;
        let is_kernel = |word: &[u8]| file_name(word).windows(6).any(|part| part == b"kernel");
        let id = file_name(file).strip_suffix(b".json")?;
        let id = id.strip_prefix(b"kernel-").unwrap_or(id);
        let fits = (1..=MAX_ID_BYTES).contains(&id.len())
            && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
        (fits && words().any(|word| !word.ends_with(file) && is_kernel(word)))
            .then(|| String::from_utf8_lossy(id).into_owned())
    })
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// The file of an option, as the next word or after `=`.
fn connection_file<'a>(words: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    let mut is_next = false;
    for word in words {
        if std::mem::take(&mut is_next) {
            return Some(word);
        }
        let dashes = word.iter().take_while(|byte| **byte == b'-').count();
        let name = &word[dashes..];
        let (name, value) = match name.iter().position(|byte| *byte == b'=') {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        if dashes > 0 && CONNECTION_OPTIONS.contains(&name) {
            match value {
                Some(file) => return Some(file),
                None => is_next = true,
            }
        }
    }
    None
}

/// Whether a text is a UUID in its usual form.
fn is_uuid(text: &[u8]) -> bool {
    let dashes = [8, 13, 18, 23];
    let fits = |(at, byte): (usize, &u8)| if dashes.contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.iter().enumerate().all(fits)
}

/// The notebook's path, from the environment that Jupyter set for its kernel.
fn session_name(environment: &[u8]) -> Option<String> {
    let value = environment.split(|byte| *byte == 0).find_map(|word| word.strip_prefix(b"JPY_SESSION_NAME="))?;
    let text: String = String::from_utf8_lossy(value).chars().filter(|letter| !letter.is_control()).collect();
    let end = (0..=MAX_PATH_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at))?;
    Some(text[..end].to_string()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

    #[test]
    fn a_kernel_is_known_by_the_file_that_it_is_given() {
        let of = |words: &[&str]| id_in(words.join("\0").as_bytes());
        let file = format!("/run/user/1/jupyter/kernel-{ID}.json");
        assert_eq!(of(&["python", "-m", "ipykernel_launcher", "-f", &file]), Some(ID.into()));
        assert_eq!(of(&["R", &format!("--conn=/x/kernel-{}.json", ID.to_uppercase())]), Some(ID.into()));
        for other in ["kernel-4711.json", &format!("kernel-{ID}.json.bak"), &format!("my-kernel-{ID}.json"), ID, ""] {
            assert_eq!(of(&["python", other]), None, "{other}");
        }
    }

    #[test]
    fn kernels_that_no_server_started_have_ids_of_their_own() {
        let of = |line: &str| id_in(line.replace(' ', "\0").as_bytes());
        for (line, id) in [
            (
                "python -m ipykernel_launcher --f=/run/user/1/jupyter/runtime/kernel-v31a2b3c4d5e6f7.json",
                "v31a2b3c4d5e6f7",
            ),
            ("/usr/bin/python3 -m ipykernel_launcher --ip=127.0.0.1 -f /r/kernel-v2-29684vbBr.json", "v2-29684vbBr"),
            ("python -m ipykernel -f /tmp/tmp9z_x2j.json --HistoryManager.hist_file=:memory:", "tmp9z_x2j"),
            ("python -m ipykernel_launcher -f /tmp/tmpab12.json", "tmpab12"),
            ("python /usr/lib/site-packages/ipykernel_launcher.py -f /r/kernel-4711.json", "4711"),
            ("python -m spyder_kernels.console -- -f /r/kernel-0a1b2c3d4e5f.json", "0a1b2c3d4e5f"),
            ("R --slave -e IRkernel::main() --args --conn=/r/kernel-x_1.json", "x_1"),
            ("python -m colab_kernel_launcher -f /home/u/.local/share/jupyter/runtime/kernel-a1.json", "a1"),
        ] {
            assert_eq!(of(line).as_deref(), Some(id), "{line}");
        }
        for other in [
            "python train.py -f config.json",
            "vim /r/kernel-4711.json",
            "jupyter console --existing kernel-4711.json",
            "python -m ipykernel_launcher",
            "python -m ipykernel_launcher -f",
            "python -m ipykernel_launcher -f /r/kernel-.json",
            "python -m ipykernel_launcher -f /r/a%20b.json",
            "python make.py -f /r/kernel-4711.json",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn of_the_environment_the_notebook_alone_is_kept() {
        let of = |text: &[u8]| session_name(text);
        assert_eq!(of(b"KEY=secret\0JPY_SESSION_NAME=/home/a/b c.ipynb\0X=1"), Some("/home/a/b c.ipynb".into()));
        assert_eq!(of(b"JPY_SESSION_NAME=a\x1b[31m\nb\0"), Some("a[31mb".into()));
        assert_eq!(of(b"JPY_SESSION_NAME=\0"), None);
        assert_eq!(of("JPY_SESSION_NAME=é".as_bytes()), Some("é".into()));
        let long = format!("JPY_SESSION_NAME={}", "é".repeat(MAX_PATH_BYTES));
        assert_eq!(of(long.as_bytes()).map(|path| path.len()), Some(MAX_PATH_BYTES));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text: Vec<u8>) {
            let _ = (id_in(&text), session_name(&text));
        }
    }
}
