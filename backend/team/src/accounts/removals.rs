//! The list of removed machines, in a file beside their samples: a database restored from an older copy contains them
//! again.

use super::{Accounts, Denied, Principal};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The file in the data folder that lists removed machines, one id a line.
pub const REMOVALS_FILE: &str = "removed-machines";
/// Maximum bytes read and written: 150,000 machines.
const MAX_BYTES: u64 = 4 << 20;

/// The ids of removed machines in a data folder.
pub struct RemovalList {
    file: PathBuf,
    ids: Mutex<BTreeSet<String>>,
}

impl RemovalList {
    /// The list of a data folder, which is empty where there is no file.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let file = folder.join(REMOVALS_FILE);
        let mut text = String::new();
        match std::fs::File::open(&file) {
            Ok(opened) => drop(opened.take(MAX_BYTES).read_to_string(&mut text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let ids = text.lines().filter(|id| !id.is_empty()).map(str::to_owned).collect();
        Ok(RemovalList { file, ids: Mutex::new(ids) })
    }

    /// All ids of the list.
    pub fn ids(&self) -> BTreeSet<String> {
        self.ids.lock().clone()
    }

    /// Adds new ids, and writes them to the file.
    ///
    /// # Errors
    /// They could not be written; the next call tries again.
    pub fn add(&self, removed: &[String]) -> io::Result<()> {
        let known = self.ids();
        let new: Vec<&String> = removed.iter().filter(|id| !known.contains(*id)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file)?;
        let lines: String = new.iter().map(|id| format!("{id}\n")).collect();
        // A line cut by a crash is the id of no machine. Later lines start on a line of their own.
        let lines = format!("\n{lines}");
        if file.metadata()?.len() + lines.len() as u64 > MAX_BYTES {
            return Err(io::Error::other("the limit of machines is reached"));
        }
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        self.ids.lock().extend(new.into_iter().cloned());
        Ok(())
    }
}

impl Accounts {
    /// Removes listed machines again that a restored database contains. Returns all removed machines, by id.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn remove_again(&self, by: &Principal, list: &RemovalList) -> Result<Vec<String>, Denied> {
        let mut removed: BTreeSet<String> = self.removed().await?.into_iter().collect();
        for id in list.ids().into_iter().filter(|id| !removed.contains(id)).collect::<Vec<_>>() {
            // The name of a machine may be the id of another.
            if self.find(&id).await?.as_ref() == Some(&id) {
                tracing::warn!(machine = id, "the database has a machine again that was removed: it is removed again");
                self.remove(by, &id).await?;
            }
            removed.insert(id);
        }
        Ok(removed.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_outlives_us_and_a_line_that_was_cut_takes_no_other_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = RemovalList::open(folder.path()).expect("none is empty");
        assert!(list.ids().is_empty());
        list.add(&["a".repeat(26), "b".repeat(26)]).expect("written");
        list.add(&["a".repeat(26)]).expect("it is known");
        let file = folder.path().join(REMOVALS_FILE);
        let text = std::fs::read_to_string(&file).expect("there");
        assert_eq!(text.matches('a').count(), 26);
        std::fs::write(&file, &text[..text.len() - 5]).expect("cut");
        let list = RemovalList::open(folder.path()).expect("read");
        list.add(&["c".repeat(26)]).expect("written");
        let ids = RemovalList::open(folder.path()).expect("read").ids();
        assert!(ids.contains(&"a".repeat(26)) && ids.contains(&"c".repeat(26)), "{ids:?}");
    }
}
