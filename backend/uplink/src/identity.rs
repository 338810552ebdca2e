//! `agent.json` in the data folder: identity of this agent at each of its hubs. It contains keys, so only its owner may
//! read it. If it cannot be written, the agent continues with the values in memory, and retries.

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The name of the file.
pub const AGENT_FILE: &str = "agent.json";
/// Maximum size: ours is far shorter, so a longer file is rejected.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of identities at one hub of machines that endpoints told of. Above it the oldest are dropped; such a
/// machine joins again when it is told of.
const MAX_FOUND: usize = 1_024;
/// Separates a hub's address from the host of such a machine; no address has it.
const FOUND: char = '#';
/// Maximum number of lives with other numbers in the hub; above it the oldest are dropped.
const MAX_SHIFTS: usize = 64;

/// Ticks that have other sequence numbers in the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shift {
    /// First sequence, in our numbers.
    pub first: u64,
    /// Last sequence, in our numbers.
    pub last: u64,
    /// Offset that is added to each.
    pub add: u64,
}

/// Identity of this agent at a hub. Its debug form omits the key.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct AgentIdentity {
    /// The hub's first address; for a machine that an endpoint tells of, see [`of_found`].
    pub hub: String,
    /// ID of the source.
    pub source: String,
    /// Its name at the hub, as last received.
    pub name: String,
    /// The agent's key.
    pub key: String,
    /// The pin under which it joined.
    #[serde(default)]
    pub pin: Option<String>,
    /// Hash of the machine ID at that time.
    #[serde(default)]
    pub machine: Option<String>,
    /// The join key that it used: the begin of its hash.
    #[serde(default)]
    pub join: Option<String>,
    /// Sequences below this belong to another machine.
    #[serde(default)]
    pub from: u64,
    /// Sorted by sequence.
    #[serde(default)]
    pub shifts: Vec<Shift>,
}

impl AgentIdentity {
    /// A source that a hub relays to another hub, which uses the same numbers.
    pub fn of_relay(source: &str) -> Self {
        AgentIdentity {
            hub: String::new(),
            source: source.into(),
            name: String::new(),
            key: String::new(),
            pin: None,
            machine: None,
            join: None,
            from: 0,
            shifts: Vec::new(),
        }
    }
}

impl fmt::Debug for AgentIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({} as {}, key ***)", self.hub, self.name)
    }
}

/// Prefix of the hash of a join key, which distinguishes keys without storing them.
pub(super) fn mark(join: &str) -> String {
    hex::encode(&Sha256::digest(join.as_bytes())[..8])
}

/// The key of the identity of a machine that an endpoint tells of under this host name.
pub(super) fn of_found(hub: &str, host: &str) -> String {
    format!("{hub}{FOUND}{host}")
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    /// Random number of the folder.
    folder: u64,
    hubs: Vec<AgentIdentity>,
}

impl Content {
    /// Drops the oldest identities at a hub above the limit.
    fn bound(&mut self, hub: &str) {
        let found = |known: &AgentIdentity| known.hub.split_once(FOUND).is_some_and(|(of, _)| of == hub);
        let mut more = self.hubs.iter().filter(|known| found(known)).count().saturating_sub(MAX_FOUND);
        self.hubs.retain(|known| {
            let is_dropped = more > 0 && found(known);
            more -= usize::from(is_dropped);
            !is_dropped
        });
    }
}

/// The file, and its content.
pub struct AgentFile {
    path: Option<PathBuf>,
    content: Mutex<Content>,
    /// Reason why the last write failed; None if everything is written.
    unwritten: Mutex<Option<String>>,
}

impl AgentFile {
    /// Reads the file of a data folder; without a folder everything is kept in memory. `folder` is a random number for
    /// a folder that has none.
    ///
    /// # Errors
    /// It exists and cannot be read: a sentence. To continue would mean to join as another machine.
    pub fn open(data: Option<&Path>, folder: u64) -> Result<Self, String> {
        let path = data.map(|data| data.join(AGENT_FILE));
        let content = match &path {
            None => Content::default(),
            Some(path) => read(path).map_err(|why| {
                format!(
                    "{} cannot be read: {why}. Repair it, or remove it and join again with a join line",
                    path.display()
                )
            })?,
        };
        let content = Content { folder: if content.folder == 0 { folder } else { content.folder }, ..content };
        Ok(AgentFile { path, content: Mutex::new(content), unwritten: Mutex::default() })
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock()
    }

    /// Random number of the folder, or of the process if nothing is stored.
    pub(super) fn folder(&self) -> u64 {
        self.content().folder
    }

    /// Our identity at a hub.
    pub(super) fn known(&self, hub: &str) -> Option<AgentIdentity> {
        self.content().hubs.iter().find(|known| known.hub == hub).cloned()
    }

    /// Whether there is a key for a hub.
    pub fn knows(&self, hub: &str) -> bool {
        self.known(hub).is_some()
    }

    /// Stores our identity at a hub, and replaces the previous one.
    pub(super) fn keep(&self, known: AgentIdentity) {
        let mut content = self.content();
        content.hubs.retain(|old| old.hub != known.hub);
        let hub = known.hub.split(FOUND).next().unwrap_or_default().to_string();
        content.hubs.push(known);
        content.bound(&hub);
        self.write(&content);
    }

    /// Changes the identity at a hub, if there is one.
    pub(super) fn change(&self, hub: &str, change: impl FnOnce(&mut AgentIdentity)) {
        let mut content = self.content();
        if let Some(known) = content.hubs.iter_mut().find(|known| known.hub == hub) {
            change(known);
            let more = known.shifts.len().saturating_sub(MAX_SHIFTS);
            known.shifts.drain(..more);
            self.write(&content);
        }
    }

    /// Retries a failed write; returns the reason if it fails again.
    pub(super) fn again(&self) -> Option<String> {
        if self.unwritten().is_some() {
            self.write(&self.content());
        }
        self.unwritten().clone()
    }

    fn unwritten(&self) -> MutexGuard<'_, Option<String>> {
        self.unwritten.lock()
    }

    fn write(&self, content: &Content) {
        let Some(path) = &self.path else { return };
        let error = write(path, content).err().map(|error| error.to_string());
        let before = std::mem::replace(&mut *self.unwritten(), error.clone());
        match error {
            Some(error) if before.is_none() => {
                tracing::warn!(
                    "{} cannot be written: {error}. Its keys are in memory alone; tried again each minute",
                    path.display()
                );
            }
            None if before.is_some() => tracing::info!("{} is written", path.display()),
            _ => {}
        }
    }
}

fn read(path: &Path) -> Result<Content, String> {
    let file = match system::file::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
        other => other.map_err(|error| error.to_string())?,
    };
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(|error| error.to_string())?;
    // serde's error may quote the text, which contains keys.
    serde_json::from_str(&text).map_err(|error| format!("line {}: it is not in the format of an agent", error.line()))
}

/// Writes a temporary file beside it, and renames that once it is on the disk.
fn write(path: &Path, content: &Content) -> io::Result<()> {
    let part = path.with_extension("json.part");
    let text = serde_json::to_vec_pretty(content).map_err(io::Error::other)?;
    let written = (|| {
        // No other process uses the folder: this file is left from a killed one.
        let _ = std::fs::remove_file(&part);
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.write(true).create_new(true).open(&part)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&part, path)?;
        // The name is on the disk once its folder is.
        path.parent().map_or(Ok(()), |folder| File::open(folder).and_then(|folder| folder.sync_all()))
    })();
    written.inspect_err(|_| drop(std::fs::remove_file(&part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(hub: &str) -> AgentIdentity {
        AgentIdentity {
            hub: hub.into(),
            source: "abc".into(),
            name: "node-7".into(),
            key: "wg_a_s3cret".into(),
            pin: None,
            machine: None,
            join: Some(mark("wg_j_1")),
            from: 0,
            shifts: Vec::new(),
        }
    }

    #[test]
    fn who_we_are_outlasts_the_process_and_nobody_else_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = AgentFile::open(Some(folder.path()), 7).expect("none yet");
        assert!(!file.knows("https://a"));
        file.keep(known("https://a"));
        file.keep(known("https://b"));
        file.change("https://a", |known| known.shifts.push(Shift { first: 1, last: 2, add: 3 }));
        drop(file);
        let file = AgentFile::open(Some(folder.path()), 8).expect("read");
        assert_eq!(file.folder(), 7);
        assert_eq!(
            file.known("https://a").map(|known| (known.key, known.shifts.len())),
            Some(("wg_a_s3cret".into(), 1))
        );
        assert!(file.knows("https://b") && !file.knows("https://c"));
        assert!(!format!("{:?}", known("https://a")).contains("s3cret"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(folder.path().join(AGENT_FILE)).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 1, "nothing else is left");
    }

    #[test]
    fn machines_of_endpoints_are_kept_beside_the_own_one_and_the_oldest_above_the_limit_are_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = AgentFile::open(Some(folder.path()), 7).expect("none yet");
        file.keep(known("https://a"));
        let host = |at: usize| of_found("https://a", &format!("node-{at}"));
        {
            let mut content = file.content();
            content.hubs.extend((0..MAX_FOUND).map(|at| known(&host(at))));
            let shift = Shift { first: u64::MAX / 2, last: u64::MAX / 2, add: u64::MAX / 2 };
            content.hubs.iter_mut().for_each(|known| known.shifts = vec![shift; MAX_SHIFTS]);
        }
        file.keep(known(&host(MAX_FOUND)));
        let file = AgentFile::open(Some(folder.path()), 8).expect("the longest is read");
        assert!(file.knows("https://a") && file.knows(&host(1)) && file.knows(&host(MAX_FOUND)));
        assert!(!file.knows(&host(0)));
    }

    #[test]
    fn where_it_cannot_be_written_it_is_kept_in_memory_and_tried_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let file = AgentFile::open(Some(&data), 7).expect("none yet");
        file.keep(known("https://a"));
        assert!(file.knows("https://a") && file.again().is_some());
        std::fs::create_dir(&data).expect("made");
        assert_eq!(file.again(), None);
        assert!(AgentFile::open(Some(&data), 8).expect("read").knows("https://a"));
    }

    #[test]
    fn one_that_cannot_be_read_is_no_new_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(AGENT_FILE), "{\"hubs\": \"wg_a_s3cret\"").expect("written");
        let why = AgentFile::open(Some(folder.path()), 7).err().expect("refused");
        assert!(why.contains("join again") && !why.contains("s3cret"), "{why}");
    }
}
