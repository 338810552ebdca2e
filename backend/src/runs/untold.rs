//! What launchers wrote down because nobody was there to be told.

use super::socket::parse;
use crate::config::user::login_of;
use shared::run::{MAX_MESSAGE_BYTES, Told};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Name of the folder in the data folder.
pub const FOLDER: &str = "runs";

/// The most files that are read at a start; the others wait for the next.
const MAX_FILES: usize = 1_000;

/// Takes what is in the folder, which is removed from it. What cannot be read is left there.
pub(super) fn take(folder: &Path) -> Vec<Told> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path());
    let told = files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).take(MAX_FILES);
    told.filter_map(|path| {
        let mut bytes = Vec::new();
        let file = File::open(&path).ok()?;
        let owner = file.metadata().ok()?.uid();
        file.take(MAX_MESSAGE_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
        let mut told = parse(&bytes);
        match &mut told {
            Some(told) => {
                told.set_user(&login_of(owner));
                fs::remove_file(&path).ok()?;
            }
            None => tracing::warn!("{} tells of no run that can be read; remove it", path.display()),
        }
        told
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::Begun;

    #[test]
    fn what_was_written_is_taken_once_and_what_cannot_be_read_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let begun = Begun { run: "abc".into(), t: 1, pid: 7, ..Begun::default() };
        let mut told = Told::Begin(begun);
        fs::write(folder.path().join("abc-7.json"), serde_json::to_vec(&told).expect("JSON")).expect("written");
        told.set_user(&login_of(crate::config::user::own_uid()));
        fs::write(folder.path().join("bad.json"), "{").expect("written");
        fs::write(folder.path().join("abc-7.new"), "half").expect("written");
        assert_eq!(take(folder.path()), [told]);
        assert_eq!(take(folder.path()), []);
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 2);
        assert_eq!(take(Path::new("/no/such/folder")), []);
    }
}
