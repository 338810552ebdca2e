//! `agent.json` in the data folder: who this agent is on each of its hubs. It holds keys, so nobody else may read it. Where it
//! cannot be written, the agent goes on with what it has in memory, and tries again.

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The name of the file.
pub const AGENT_FILE: &str = "agent.json";
/// It is far shorter: a longer one is none of ours.
const MAX_BYTES: u64 = 1 << 20;
/// Lives of which a hub knows the ticks under other numbers; beyond them the oldest are forgotten.
const MAX_SHIFTS: usize = 64;

/// Ticks that a hub is told of under other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shift {
    /// Sequence of the first here.
    pub first: u64,
    /// Sequence of the last here.
    pub last: u64,
    /// What is added to each.
    pub add: u64,
}

/// Who this agent is on a hub. Its debug form tells no key.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Known {
    /// The hub's first address.
    pub hub: String,
    /// Id of the source.
    pub source: String,
    /// Its name there, when it was told last.
    pub name: String,
    /// The agent's key.
    pub key: String,
    /// The pin under which it joined.
    #[serde(default)]
    pub pin: Option<String>,
    /// Hash of the machine id then.
    #[serde(default)]
    pub machine: Option<String>,
    /// Which join key it used: the begin of its hash.
    #[serde(default)]
    pub join: Option<String>,
    /// Sequences below this are another machine's affair.
    #[serde(default)]
    pub from: u64,
    /// Rising.
    #[serde(default)]
    pub shifts: Vec<Shift>,
}

impl Known {
    /// A source of a hub, for another hub, which has the same numbers.
    pub fn of_relay(source: &str) -> Self {
        Known {
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

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({} as {}, key ***)", self.hub, self.name)
    }
}

/// By what a join key is told from another one without being kept.
pub(super) fn mark(join: &str) -> String {
    hex::encode(&Sha256::digest(join.as_bytes())[..8])
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    /// A random number of the folder.
    folder: u64,
    hubs: Vec<Known>,
}

/// The file, and what is in it.
pub struct AgentFile {
    path: Option<PathBuf>,
    content: Mutex<Content>,
    /// Why it could not be written last; none where all is written.
    unwritten: Mutex<Option<String>>,
}

impl AgentFile {
    /// Reads the file of a data folder; without a folder all is kept in memory. `folder` is a random number, taken for a
    /// folder that has none.
    ///
    /// # Errors
    /// It is there and cannot be read: a sentence. To go on would be to join as another machine.
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

    /// The random number of the folder, or of the process where nothing is kept.
    pub(super) fn folder(&self) -> u64 {
        self.content().folder
    }

    /// Who we are on a hub.
    pub(super) fn known(&self, hub: &str) -> Option<Known> {
        self.content().hubs.iter().find(|known| known.hub == hub).cloned()
    }

    /// Whether we have a key of a hub.
    pub fn knows(&self, hub: &str) -> bool {
        self.known(hub).is_some()
    }

    /// Keeps who we are on a hub, in the place of what was known.
    pub(super) fn keep(&self, known: Known) {
        let mut content = self.content();
        content.hubs.retain(|old| old.hub != known.hub);
        content.hubs.push(known);
        self.write(&content);
    }

    /// Changes what is known of a hub, where something is.
    pub(super) fn change(&self, hub: &str, change: impl FnOnce(&mut Known)) {
        let mut content = self.content();
        if let Some(known) = content.hubs.iter_mut().find(|known| known.hub == hub) {
            change(known);
            let more = known.shifts.len().saturating_sub(MAX_SHIFTS);
            known.shifts.drain(..more);
            self.write(&content);
        }
    }

    /// Tries once more where it could not be written; why it still cannot.
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
    // What serde says of a text may repeat a part of it, and there are keys in it.
    serde_json::from_str(&text).map_err(|error| format!("line {}: it is not in the format of an agent", error.line()))
}

/// Writes it beside its place, and puts it there once it is on the disk.
fn write(path: &Path, content: &Content) -> io::Result<()> {
    let part = path.with_extension("json.part");
    let text = serde_json::to_vec_pretty(content).map_err(io::Error::other)?;
    let written = (|| {
        // Nobody else uses the folder: what a kill left is ours.
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

    fn known(hub: &str) -> Known {
        Known {
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
