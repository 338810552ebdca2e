//! How far the other server has got, in a small file that outlives us.
//!
//! What is in a request is written down before the request leaves. After a kill the same request is sent once more, with
//! the same samples, so that a server that had taken it sees nothing new, and one that had not lacks nothing.

use serde::{Deserialize, Serialize};
use shared::series::SeriesId;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often it is synced to the disk at most.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// How far one source's ticks were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Sequence of the last tick of which every series was taken; 0: none.
    pub seq: u64,
    /// What is on its way of the ticks behind it.
    pub flight: Option<Flight>,
}

/// A request on its way: samples of some series over some ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    /// Sequence of its last tick.
    pub through: u64,
    /// Its first series; those before it were taken.
    pub from: SeriesId,
    /// The series behind its last one.
    pub to: SeriesId,
}

/// The progress of all sources by name, and where they are kept.
pub struct ProgressFile {
    file: Option<PathBuf>,
    kept: Kept,
    /// When the disk had it for certain.
    synced: Option<Instant>,
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// Of which server these are the progress.
    url: String,
    sources: BTreeMap<String, Progress>,
    /// Ticks before these places that came late and were not taken yet: first and last sequences, rising.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    late: BTreeMap<String, Vec<(u64, u64)>>,
    /// What was taken last and may be lost with the server: first and last sequences, and whether they came late.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unsettled: BTreeMap<String, Vec<(u64, u64, bool)>>,
}

impl ProgressFile {
    /// Reads what a folder has of this server; nothing without a folder. Of another server nothing is known.
    pub fn open(folder: Option<&Path>, url: &str) -> Self {
        let file = folder.map(|folder| folder.join("remote-write.json"));
        let read = file.as_deref().and_then(|file| match std::fs::read(file) {
            Ok(bytes) => serde_json::from_slice::<Kept>(&bytes)
                .inspect_err(|error| tracing::warn!(file = %file.display(), %error, "not read; sending begins anew"))
                .ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "not read; sending begins anew");
                None
            }
        });
        let kept = read.filter(|kept| kept.url == url).unwrap_or(Kept { url: url.into(), ..Kept::default() });
        ProgressFile { file, kept, synced: None }
    }

    /// How far this source's ticks were taken.
    pub fn get(&self, source: &str) -> Progress {
        self.kept.sources.get(source).copied().unwrap_or_default()
    }

    /// Takes a new place and writes it down.
    ///
    /// # Errors
    /// It could not be written; it holds for this run.
    pub fn set(&mut self, source: &str, place: Progress) -> io::Result<()> {
        match self.kept.sources.get_mut(source) {
            Some(kept) => *kept = place,
            None => drop(self.kept.sources.insert(source.into(), place)),
        }
        self.write()
    }

    /// What of a source came late and was not taken yet: first and last sequences, rising.
    pub fn late(&self, source: &str) -> &[(u64, u64)] {
        self.kept.late.get(source).map_or(&[], Vec::as_slice)
    }

    /// Takes other ranges that came late and writes them down.
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

    /// What of a source was taken last, and may be lost with the server: first and last sequences, and whether they came late.
    pub fn unsettled(&self, source: &str) -> &[(u64, u64, bool)] {
        self.kept.unsettled.get(source).map_or(&[], Vec::as_slice)
    }

    /// Takes what may be lost with the server. It is written down with the place that comes next.
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
        // A kill takes nothing that was written; a power cut takes what was not synced, and that is sent once more. Of a
        // thousand machines there are hundreds of these a second.
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
