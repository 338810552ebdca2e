//! Paths: the workspace, the cache of tools, the folders of the builds.

use std::collections::hash_map::DefaultHasher;
use std::fs::{File, TryLockError};
use std::hash::Hasher;
use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folder that caches tools and sysroots between runs: `watchglass` in XDG_CACHE_HOME, else in ~/.cache, else in
/// LOCALAPPDATA.
pub fn cache() -> Result<PathBuf, String> {
    let absolute = |key: &str| std::env::var_os(key).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .or_else(|| absolute("LOCALAPPDATA"))
        .map(|base| base.join("watchglass"))
        .ok_or_else(|| "no cache folder: set HOME or XDG_CACHE_HOME to an absolute path".to_owned())
}

/// The folder of a tool with this version.
pub fn tool(name: &str, version: &str) -> Result<PathBuf, String> {
    Ok(cache()?.join("tools").join(format!("{name}-{version}")))
}

/// Path of the program, built with a profile.
pub fn program(profile: &str) -> PathBuf {
    target().join(profile).join(format!("watchglass{}", std::env::consts::EXE_SUFFIX))
}

/// Cargo's target folder for native builds.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The target folder of the page. It is separate, because another compiler may build the page, and both would
/// invalidate each other's output.
pub fn page_target() -> PathBuf {
    target().join("page")
}

/// The folder with the built page, in which the build script of the crate `page` looks for it.
pub fn dist() -> PathBuf {
    root().join("frontend").join("dist")
}

/// The folder with the files that people install.
pub fn dist_out() -> PathBuf {
    root().join("dist")
}

/// Writes a file, and creates its folder if needed.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|e| format!("{} could not be made: {e}", folder.display()))?;
    std::fs::write(path, text).map_err(|e| format!("{} could not be written: {e}", path.display()))
}

/// Reads a file of the workspace.
pub fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{} could not be read: {e}", path.display()))
}

/// Removes a folder and all below it. A missing folder is not an error.
pub fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} could not be removed: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes a file. A missing file is not an error.
pub fn remove_file(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} could not be removed: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// A hash of texts and of files with their paths. The order of the files does not matter.
pub fn digest(texts: &[&str], mut files: Vec<PathBuf>) -> Result<String, String> {
    files.sort();
    let mut hasher = DefaultHasher::new();
    texts.iter().for_each(|text| hasher.write(text.as_bytes()));
    for file in files {
        let bytes = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        hasher.write(file.as_os_str().as_encoded_bytes());
        hasher.write_usize(bytes.len());
        hasher.write(&bytes);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Adds the files below a folder that `wanted` accepts. It is called for files and folders.
pub fn list(folder: &Path, wanted: &dyn Fn(&Path) -> bool, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
        let path = entry.path();
        match path.is_dir() {
            _ if !wanted(&path) => {}
            true => list(&path, wanted, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// Locks the file `guard`, and waits while another run holds the lock. The lock is released when the result is dropped,
/// or with the process.
pub fn alone(guard: &Path) -> Result<File, String> {
    let failed = |e: std::io::Error| {
        let help = "choose folders that you may write: XDG_CACHE_HOME for tools, CARGO_TARGET_DIR for builds";
        format!("{} could not be made: {e}; {help}", guard.display())
    };
    std::fs::create_dir_all(guard.parent().unwrap_or(guard)).map_err(failed)?;
    let file = File::options().append(true).create(true).open(guard).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            eprintln!("    another run is at it: waiting for {}", guard.display());
            file.lock().map_err(failed).map(|()| file)
        }
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

/// Copies a folder and all below it.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |path: &Path, e: std::io::Error| format!("{} could not be copied: {e}", path.display());
    std::fs::create_dir_all(to).map_err(|e| failed(to, e))?;
    for entry in std::fs::read_dir(from).map_err(|e| failed(from, e))?.flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            std::fs::copy(&path, &to).map_err(|e| failed(&path, e))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{File, TryLockError, alone, remove};

    #[test]
    fn two_are_never_at_the_same() {
        let guard = std::env::temp_dir().join(format!("watchglass-alone-{}", std::process::id())).join("guard");
        let first = alone(&guard).expect("nobody else is");
        let second = File::open(&guard).expect("a file");
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        let same = guard.clone();
        let waits = std::thread::spawn(move || alone(&same));
        drop(first);
        assert!(waits.join().expect("it ends").is_ok());
        remove(guard.parent().expect("a folder")).expect("own folder");
    }
}
