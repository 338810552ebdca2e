//! File systems that are ours alone.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Gives this process mounts of its own, which end with it.
///
/// # Errors
/// Why it cannot be done, in words.
#[cfg(target_os = "linux")]
pub fn own_namespace() -> Result<(), String> {
    // SAFETY: takes no pointers, and changes what this process alone sees.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(format!("it takes root to mount a file system ({})", std::io::Error::last_os_error()));
    }
    run("mount", &["--make-rprivate", "/"])
}

/// Other systems have none.
#[cfg(not(target_os = "linux"))]
pub fn own_namespace() -> Result<(), String> {
    Err("it takes Linux to mount a file system for one process alone".into())
}

/// A mounted file system in a temporary folder, unmounted and removed when dropped.
pub struct Mount {
    folder: TempDir,
}

impl Mount {
    /// A file system in memory.
    ///
    /// # Errors
    /// Why it cannot be mounted, in words.
    pub fn memory(size: &str) -> Result<Self, String> {
        let mount = Self::empty()?;
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "torture", &text(&mount.path())])?;
        Ok(mount)
    }

    /// A file system on a disk that is a file; none of it is synced unless somebody asks for it.
    ///
    /// # Errors
    /// Likewise.
    pub fn disk(bytes: u64) -> Result<Self, String> {
        let mount = Self::empty()?;
        let disk = mount.folder.path().join("disk");
        let file = std::fs::File::create(&disk).and_then(|file| file.set_len(bytes));
        file.map_err(|e| format!("{}: {e}", disk.display()))?;
        run("mkfs.ext4", &["-q", "-F", &text(&disk)])?;
        mount.again()?;
        Ok(mount)
    }

    fn empty() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mount = Mount { folder };
        std::fs::create_dir(mount.path()).map_err(|e| e.to_string())?;
        Ok(mount)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// Mounts the disk, after [`Mount::unmount`] where it was mounted before; what its journal holds is made up for.
    ///
    /// # Errors
    /// Likewise.
    pub fn again(&self) -> Result<(), String> {
        // Its journal is written when somebody syncs, or every minute: far less often than by default.
        let options = "loop,commit=60";
        run("mount", &["-t", "ext4", "-o", options, &text(&self.folder.path().join("disk")), &text(&self.path())])
    }

    /// Unmounts it; nothing may be using it.
    ///
    /// # Errors
    /// Likewise.
    pub fn unmount(&self) -> Result<(), String> {
        run("umount", &[&text(&self.path())])
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // What is not mounted now cannot be unmounted.
        let _ = run("umount", &["--quiet", "--lazy", &text(&self.path())]);
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    #[allow(clippy::disallowed_methods, reason = "the torture mounts file systems itself")]
    let output = std::process::Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {}", words.trim())) }
}
