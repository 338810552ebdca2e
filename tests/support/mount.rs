//! File systems that only this process, or only one of its threads, can see.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Gives this thread and its future children mounts of their own, which end with them.
///
/// # Errors
/// Returns the reason in words when this fails.
#[cfg(target_os = "linux")]
pub fn own_namespace() -> Result<(), String> {
    // SAFETY: takes no pointers, and changes only the mount namespace of this thread.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(format!("it takes root to mount a file system ({})", std::io::Error::last_os_error()));
    }
    run("mount", &["--make-rprivate", "/"])
}

/// Other systems have no mount namespaces.
#[cfg(not(target_os = "linux"))]
pub fn own_namespace() -> Result<(), String> {
    Err("it takes Linux to mount a file system for one process alone".into())
}

/// A mounted file system in a temporary folder. It is unmounted and removed when dropped.
pub struct Mount {
    folder: TempDir,
}

impl Mount {
    /// Mounts a file system in memory. `size` is a size for mount, such as `8m`.
    ///
    /// # Errors
    /// Returns the reason in words when it cannot be mounted.
    pub fn memory(size: &str) -> Result<Self, String> {
        let mount = Self::empty()?;
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "torture", &text(&mount.path())])?;
        Ok(mount)
    }

    /// Mounts a file system on a disk that is a file of `bytes` bytes. Nothing is synced without an explicit sync.
    ///
    /// # Errors
    /// Returns the reason in words when it cannot be mounted.
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

    /// Mount point.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// Mounts the disk, for example after [`Mount::unmount`]. The changes in its journal are applied.
    ///
    /// # Errors
    /// Returns the reason in words when it cannot be mounted.
    pub fn again(&self) -> Result<(), String> {
        // The journal is written on a sync, or every minute, which is far less often than by default.
        let options = "loop,commit=60";
        run("mount", &["-t", "ext4", "-o", options, &text(&self.folder.path().join("disk")), &text(&self.path())])
    }

    /// Unmounts the file system. Nothing may be using it.
    ///
    /// # Errors
    /// Returns the reason in words when it cannot be unmounted.
    pub fn unmount(&self) -> Result<(), String> {
        run("umount", &[&text(&self.path())])
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // This fails when the file system is not mounted.
        let _ = run("umount", &["--quiet", "--lazy", &text(&self.path())]);
    }
}

/// Writes a file until the disk is full.
pub fn fill(path: &Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    loop {
        match file.write(&[1; 4096]) {
            Ok(n) if n > 0 => {}
            Err(error) if error.kind() != std::io::ErrorKind::StorageFull => return Err(error),
            _ => return Ok(()),
        }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    #[allow(clippy::disallowed_methods, reason = "tests mount file systems themselves")]
    let output = std::process::Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {}", words.trim())) }
}
