//! Position of the other server, in a small file that survives a restart.
//!
//! The range of a request is written before the request is sent. After a kill the same request is repeated with the
//! same samples. A server that had taken it gets nothing new, and one that had not lacks nothing.

use serde::{Deserialize, Serialize};
use shared::series::SeriesId;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Minimum time between two syncs to the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Position of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Sequence of the last tick of which every series was taken; 0: none.
    pub seq: u64,
    /// The request in flight of the ticks behind it.
    pub flight: Option<Flight>,
}

/// A request in flight: samples of some series over some ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    /// Sequence of its last tick.
    pub through: u64,
    /// Its first series; those before it were taken.
    pub from: SeriesId,
    /// The series behind its last one.
    pub to: SeriesId,
}

/// The positions of all sources by name, and their file.
pub struct ProgressFile {
    file: Option<PathBuf>,
    kept: StoredProgress,
    /// Time of the last sync.
    synced: Option<Instant>,
}

#[derive(Default, Serialize, Deserialize)]
struct StoredProgress {
    /// The server of these positions.
    url: String,
    sources: BTreeMap<String, Progress>,
    /// Late ticks before these positions that were not taken yet: first and last sequences, rising.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    late: BTreeMap<String, Vec<(u64, u64)>>,
    /// Recently taken ticks that may be lost with the server: first and last sequences, and whether they were late.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unsettled: BTreeMap<String, Vec<(u64, u64, bool)>>,
}

impl ProgressFile {
    /// Reads the positions of this server from a folder; empty without a folder. Those of another server are ignored.
    pub fn open(folder: Option<&Path>, url: &str) -> Self {
        let file = folder.map(|folder| folder.join("remote-write.json"));
        let read = file.as_deref().and_then(|file| match std::fs::read(file) {
            Ok(bytes) => serde_json::from_slice::<StoredProgress>(&bytes)
                .inspect_err(|error| tracing::warn!(file = %file.display(), %error, "not read; sending begins anew"))
                .ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "not read; sending begins anew");
                None
            }
        });
        let kept = read
            .filter(|kept| kept.url == url)
            .unwrap_or(StoredProgress { url: url.into(), ..StoredProgress::default() });
        ProgressFile { file, kept, synced: None }
    }

    /// Position of this source.
    pub fn get(&self, source: &str) -> Progress {
        self.kept.sources.get(source).copied().unwrap_or_default()
    }

    /// Sets a position and writes the file.
    ///
    /// # Errors
    /// It could not be written; the position is valid for this run.
    pub fn set(&mut self, source: &str, place: Progress) -> io::Result<()> {
        match self.kept.sources.get_mut(source) {
            Some(kept) => *kept = place,
            None => drop(self.kept.sources.insert(source.into(), place)),
        }
        self.write()
    }

    /// Late ticks of a source that were not taken yet: first and last sequences, rising.
    pub fn late(&self, source: &str) -> &[(u64, u64)] {
        self.kept.late.get(source).map_or(&[], Vec::as_slice)
    }

    /// Sets the late ranges and writes the file.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_late(&mut self, source: &str, late: Vec<(u64, u64)>) -> io::Result<()> {
        match late.is_empty() {
            true => drop(self.kept.late.remove(source)),
            false => drop(self.kept.late.insert(source.into(), late)),
        }
        self.write()
    }

    /// Recently taken ticks that may be lost with the server: first and last sequences, and whether they were late.
    pub fn unsettled(&self, source: &str) -> &[(u64, u64, bool)] {
        self.kept.unsettled.get(source).map_or(&[], Vec::as_slice)
    }

    /// Sets the ranges that may be lost with the server. They are written with the next position.
    pub fn hold_unsettled(&mut self, source: &str, ranges: Vec<(u64, u64, bool)>) {
        match ranges.is_empty() {
            true => drop(self.kept.unsettled.remove(source)),
            false => drop(self.kept.unsettled.insert(source.into(), ranges)),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let text = serde_json::to_vec(&self.kept)?;
        let fresh = file.with_extension("tmp");
        let mut out = File::create(&fresh)?;
        out.write_all(&text)?;
        // A kill loses nothing that was written. A power cut loses unsynced data, which is then sent again. A thousand
        // machines cause hundreds of writes a second.
        if self.synced.is_none_or(|synced| synced.elapsed() >= SYNC_INTERVAL) {
            out.sync_data()?;
            self.synced = Some(Instant::now());
        }
        std::fs::rename(fresh, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_outlives_us_and_belongs_to_its_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Some(folder.path());
        let place = Progress { seq: 15, flight: Some(Flight { through: 30, from: 0, to: 100 }) };
        let mut progress = ProgressFile::open(path, "http://a/");
        assert_eq!(progress.get("h"), Progress::default());
        progress.hold_unsettled("h", vec![(1, 15, false)]);
        progress.set("h", place).expect("written");
        assert_eq!(ProgressFile::open(path, "http://a/").unsettled("h"), [(1, 15, false)]);
        assert_eq!(ProgressFile::open(path, "http://a/").get("h"), place);
        assert_eq!(ProgressFile::open(path, "http://a/").get("other"), Progress::default());
        assert_eq!(ProgressFile::open(path, "http://b/").get("h"), Progress::default());
        let file = folder.path().join("remote-write.json");
        let text = std::fs::read(&file).expect("there");
        for cut in 0..text.len() {
            std::fs::write(&file, &text[..cut]).expect("cut");
            assert_eq!(ProgressFile::open(path, "http://a/").get("h"), Progress::default());
        }
    }

    #[test]
    fn without_a_folder_it_holds_for_this_run() {
        let mut progress = ProgressFile::open(None, "http://a/");
        progress.set("h", Progress { seq: 3, flight: None }).expect("nothing is written");
        assert_eq!(progress.get("h").seq, 3);
    }
}
