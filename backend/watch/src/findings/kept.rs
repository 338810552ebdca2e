//! Findings as a file in the data folder: one line for each raise, change or end.

use super::registry::{FindingEntry, FindingRegistry};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Name of the file in the data folder.
const FILE: &str = "findings.jsonl";

/// Maximum bytes that are read. Above half of it the file is rewritten.
const MAX_BYTES: u64 = 64 << 20;

/// The file. If it cannot be written, findings are kept until this program ends, which is logged once.
#[derive(Debug)]
pub struct KeptFindings {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    failing: bool,
}

impl KeptFindings {
    /// Reads the file of a data folder into the registry, and rewrites it without replaced lines. The last line of each
    /// finding counts. Unreadable lines, as the last one after a power cut, are skipped.
    pub fn open(folder: &Path, registry: &FindingRegistry) -> Self {
        let path = folder.join(FILE);
        let mut by_id = HashMap::new();
        if let Ok(file) = File::open(&path) {
            for line in BufReader::new(file.take(MAX_BYTES)).split(b'\n').map_while(Result::ok) {
                if let Ok(entry) = serde_json::from_slice::<FindingEntry>(&line) {
                    by_id.insert(entry.finding.id.clone(), entry);
                }
            }
        }
        registry.restore(by_id.into_values());
        // Rewritten now, so that the first finding of this run is appended as a line: it is in the file once it is
        // shown.
        let mut kept = KeptFindings { path, file: None, bytes: MAX_BYTES, failing: false };
        kept.write(&[], || registry.all());
        kept
    }

    /// Writes the changed entries; `all` returns all entries, for a rewrite of a file that has grown too long.
    pub fn write(&mut self, changed: &[FindingEntry], all: impl FnOnce() -> Vec<FindingEntry>) {
        let written = match self.bytes > MAX_BYTES / 2 {
            true => self.write_anew(&all()),
            false => self.append(changed),
        };
        match written {
            Ok(()) => self.failing = false,
            Err(error) => {
                // The missing lines are written with all others once it works again.
                (self.bytes, self.file) = (MAX_BYTES, None);
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(%error, "{} cannot be written: findings are lost at a restart", self.path.display());
                }
            }
        }
    }

    fn append(&mut self, changed: &[FindingEntry]) -> io::Result<()> {
        let text = lines(changed)?;
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(OpenOptions::new().append(true).create(true).open(&self.path)?),
        };
        file.write_all(&text)?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    fn write_anew(&mut self, all: &[FindingEntry]) -> io::Result<()> {
        let (text, new) = (lines(all)?, self.path.with_extension("new"));
        let mut file = File::create(&new)?;
        file.write_all(&text)?;
        file.sync_data()?;
        fs::rename(&new, &self.path)?;
        (self.bytes, self.file) = (text.len() as u64, None);
        Ok(())
    }
}

fn lines(entries: &[FindingEntry]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut text, entry)?;
        text.push(b'\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::testing::finding;
    use super::*;

    fn entry(kind: &str, until: Option<i64>) -> FindingEntry {
        FindingEntry { finding: finding(kind, "a", 10, until), machines: [("a".into(), "key".into())].into() }
    }

    /// The file of a folder, and the entries of a registry after opening it, by id.
    fn opened(folder: &Path) -> (KeptFindings, Vec<FindingEntry>) {
        let registry = FindingRegistry::default();
        let kept = KeptFindings::open(folder, &registry);
        let mut all = registry.all();
        all.sort_by(|a, b| a.finding.id.cmp(&b.finding.id));
        (kept, all)
    }

    #[test]
    fn the_last_line_of_each_counts_and_a_torn_one_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut kept, none) = opened(folder.path());
        assert_eq!(none, []);
        kept.write(&[entry("hang", None), entry("idle", None)], Vec::new);
        kept.write(&[entry("hang", Some(99))], Vec::new);
        let path = folder.path().join(FILE);
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(b"{\"id\":\"to").expect("written");
        let wanted = [entry("hang", Some(99)), entry("idle", None)];
        assert_eq!(opened(folder.path()).1, wanted);
        // Opening the file left one line of each.
        assert_eq!(fs::read(&path).expect("there").split(|byte| *byte == b'\n').count(), 3);
        assert_eq!(opened(folder.path()).1, wanted);
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing_and_is_caught_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("later");
        let (mut kept, _) = opened(&inner);
        kept.write(&[entry("hang", None)], || vec![entry("hang", None)]);
        fs::create_dir(&inner).expect("made");
        kept.write(&[entry("idle", None)], || vec![entry("hang", None), entry("idle", None)]);
        assert_eq!(opened(&inner).1.len(), 2);
    }
}
