//! Spooled reports: launchers write them to files when no server answers.

use super::socket::bounded;
use launch::folder::Folder;
use launch::tell::{is_this, machine};
use shared::run::{KEPT_ENDINGS, Kept, MAX_MESSAGE_BYTES, Told};
use std::path::Path;
use system::user::{login_of, own_uid};

/// Name of the spool folder in the data folder.
pub const FOLDER: &str = "runs";

/// Maximum number of files per read; the others wait for the next one.
const MAX_FILES: usize = 1_000;

/// Bytes of a file that name its machine.
const MACHINE_BYTES: usize = 1 << 10;

/// A spool folder of launchers.
#[derive(Debug)]
pub(super) struct Spool {
    folder: Folder,
    /// Names of the user of this program, and of root.
    trusted: [String; 2],
    /// Launchers of other machines may also write there.
    is_shared: bool,
}

impl Spool {
    /// The folder of a server; it is created.
    pub fn of_server(path: &Path, trusted: [String; 2]) -> Option<Spool> {
        let opened = Folder::make(path);
        let folder =
            opened.inspect_err(|error| tracing::warn!(%error, "{} is not looked into", path.display())).ok()?;
        Some(Spool { folder, trusted, is_shared: false })
    }

    /// The folder in which the launchers of this user write without a server, if it exists. A home directory may be
    /// shared by several machines.
    pub fn of_user(path: &Path, trusted: [String; 2]) -> Option<Spool> {
        let folder = Some(path).filter(|path| path.is_dir()).and_then(|path| Folder::make(path).ok())?;
        Some(Spool { folder, trusted, is_shared: true })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The reports in it, with their file names. `says` enables warnings about unreadable files.
    pub fn read(&self, says: bool) -> Vec<(String, Told)> {
        let is_one = |name: &str| KEPT_ENDINGS.iter().any(|ending| name.ends_with(ending));
        let Ok(files) = self.folder.files(is_one) else { return Vec::new() };
        let here = machine();
        let one = |name: String| {
            let read = self.folder.read(&name, MAX_MESSAGE_BYTES + MACHINE_BYTES);
            let kept = read.ok().and_then(|(bytes, owner)| Some((serde_json::from_slice::<Kept>(&bytes).ok()?, owner)));
            if kept.as_ref().is_some_and(|(kept, _)| self.is_shared && !is_this(&kept.machine, &here)) {
                return None;
            }
            let told = kept.and_then(|(kept, owner)| self.owned(bounded(kept.told)?, owner));
            if told.is_none() && says {
                tracing::warn!("{} tells of no run that can be read; remove it", self.path().join(&name).display());
            }
            Some((name, told?))
        };
        files.into_iter().take(MAX_FILES).filter_map(|file| one(file.name)).collect()
    }

    /// Sets the user of a process to the owner of its file. A file of root in this folder counts as ours.
    fn owned(&self, mut told: Told, owner: u32) -> Option<Told> {
        let is_trusted = told.begun().about.user.as_ref().is_some_and(|user| self.trusted.contains(user));
        if owner != own_uid() || !is_trusted {
            told.set_user(&login_of(owner));
        }
        Some(told)
    }

    /// Removes a file that was taken.
    pub fn remove(&self, name: &str) {
        if let Err(error) = self.folder.remove(name) {
            tracing::warn!(%error, "{} cannot be removed", self.path().join(name).display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::Begun;
    use std::fs;

    #[test]
    fn what_was_written_is_read_until_it_is_removed_and_what_cannot_be_read_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs");
        let trusted = || [login_of(own_uid()), "root".into()];
        assert!(Spool::of_user(&path, trusted()).is_none() && !path.exists());
        let spool = Spool::of_server(&path, trusted()).expect("a folder");
        let begun = Begun { run: "abc".into(), t: 1, pid: 7, ..Begun::default() };
        let told = |user: &str| {
            let mut told = Told::Begin(begun.clone());
            told.set_user(user);
            told
        };
        let write = |name: &str, machine, told| {
            let kept = serde_json::to_vec(&Kept { machine, told }).expect("JSON");
            fs::write(path.join(name), kept).expect("written");
        };
        let own = login_of(own_uid());
        write("abc-7.json", machine(), told("somebody"));
        write("abc-8.sending", machine(), told("root"));
        write("abc-9.json", [Some("elsewhere".into()), None], told(&own));
        fs::write(path.join("bad.json"), "{").expect("written");
        fs::write(path.join("abc-7.new"), "half").expect("written");
        std::os::unix::fs::symlink(path.join("abc-7.json"), path.join("link.json")).expect("a link");
        let mut read = spool.read(true);
        read.sort_by(|a, b| a.0.cmp(&b.0));
        let named = |name: &str, user: &str| (name.to_string(), told(user));
        let all = [named("abc-7.json", &own), named("abc-8.sending", "root"), named("abc-9.json", &own)];
        assert_eq!(read, all, "whose file it is says whose process");
        let shared = Spool::of_user(&path, trusted()).expect("a folder");
        assert_eq!(shared.read(false).len(), 2, "another machine's is left to it");
        read.iter().for_each(|(name, _)| spool.remove(name));
        assert_eq!(spool.read(true), []);
        assert_eq!(fs::read_dir(&path).expect("there").count(), 3);
    }
}
