//! Finds a vendor's tool, and checks whether it may be run.

use crate::{OpenError, OpenErrorKind};
use std::path::{Path, PathBuf};

/// Finds a tool: at the path in the configuration, else each name in `PATH`, then in `dirs`. Starts nothing.
///
/// # Errors
/// Absent if it is nowhere; failed if the configuration names a missing file. Denied if this user may not execute it,
/// or is root and others could have placed it there. The caller fills an empty remedy.
pub(crate) fn find(names: &[&str], dirs: &[&str], configured: Option<&Path>) -> Result<PathBuf, OpenError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).chain(dirs.iter().map(PathBuf::from)).collect();
    find_in(names, &dirs, configured, is_root())
}

/// `root`: run no file that another user could have placed there, unless the configuration names it.
fn find_in(names: &[&str], dirs: &[PathBuf], configured: Option<&Path>, root: bool) -> Result<PathBuf, OpenError> {
    let denied = |path: &Path| OpenError {
        kind: OpenErrorKind::Denied,
        tried: vec![path.display().to_string()],
        reason: format!("this user has no permission to execute {}", path.display()),
        remedy: format!("sudo chmod a+rx {}", path.display()),
    };
    if let Some(path) = configured {
        return match executable(path) {
            Some(true) => Ok(path.to_path_buf()),
            Some(false) => Err(denied(path)),
            None => Err(OpenError {
                kind: OpenErrorKind::Failed,
                tried: vec![path.display().to_string()],
                reason: format!("{} was not found", path.display()),
                remedy: "correct the path in the configuration, or remove it".into(),
            }),
        };
    }
    // A relative folder in PATH would depend on the working folder of the server.
    let files = names.iter().flat_map(|name| {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        dirs.iter().filter(|dir| dir.is_absolute()).map(move |dir| dir.join(&name))
    });
    let mut refused = None;
    for file in files.clone() {
        match executable(&file) {
            Some(true) => match others_place(&file).filter(|_| root) {
                None => return Ok(file),
                Some(place) => refused = refused.or(Some(unsafe_for_root(&file, &place))),
            },
            Some(false) => refused = refused.or(Some(denied(&file))),
            None => {}
        }
    }
    match refused {
        Some(error) => Err(error),
        None => {
            let reason = format!("{} was not found", names.join(" or "));
            Err(OpenError::absent(files.map(|f| f.display().to_string()).collect::<Vec<_>>(), reason, ""))
        }
    }
}

/// Whether a file may be executed; none if there is no such file.
fn executable(path: &Path) -> Option<bool> {
    let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file())?;
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0);
    #[cfg(not(unix))]
    Some(meta.len() > 0)
}

fn unsafe_for_root(file: &Path, place: &Path) -> OpenError {
    let (shown, place) = (file.display(), place.display());
    OpenError {
        kind: OpenErrorKind::Denied,
        tried: vec![shown.to_string()],
        reason: format!("{shown} is not executed as root: users other than root can change {place}"),
        remedy: format!(
            "sudo chown root {place} && sudo chmod go-w {place}; or remove its folder from PATH, or run Watchglass \
            without root"
        ),
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    // SAFETY: a plain system call without arguments that cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// The first of a file and its parent folders that others than root can change, following links.
#[cfg(unix)]
fn others_place(file: &Path) -> Option<PathBuf> {
    let changes = |place: &&Path| std::fs::metadata(place).map_or(true, |meta| others_change(&meta));
    let mut at = file.to_path_buf();
    // As many links as the kernel follows.
    for _ in 0..40 {
        let folder = at.parent()?;
        let real = std::fs::canonicalize(folder).ok()?;
        if let Some(place) = folder.ancestors().chain(real.ancestors()).find(changes) {
            return Some(place.to_path_buf());
        }
        match std::fs::read_link(&at) {
            Ok(link) => at = real.join(link),
            Err(_) => return Some(at).filter(|at| changes(&at.as_path())),
        }
    }
    Some(at)
}

#[cfg(not(unix))]
fn others_place(_: &Path) -> Option<PathBuf> {
    None
}

/// Whether others than root can change a file, or the content of a folder. In a folder with the sticky bit (`/tmp`)
/// they can only change their own files, which are detected by owner.
#[cfg(unix)]
fn others_change(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let group = if meta.gid() == 0 { 0 } else { 0o020 };
    let sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
    meta.uid() != 0 || (meta.mode() & (0o002 | group) != 0 && !sticky)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_tool::place;

    #[test]
    fn a_tool_is_found_where_it_is_or_the_reason_says_where_it_was_looked_for() {
        let dir = tempfile::tempdir().unwrap();
        let tool = place(dir.path(), "gc-info", "");
        let dirs = [PathBuf::from("relative"), "/nowhere".into(), dir.path().into()];
        assert_eq!(find_in(&["gc-x", "gc-info"], &dirs, None, false).unwrap(), tool);
        assert_eq!(find_in(&["gc-x"], &dirs, Some(&tool), false).unwrap(), tool);
        let missing = find_in(&["gc-x", "gc-y"], &dirs[..2], None, false).unwrap_err();
        assert_eq!((missing.kind, missing.reason.as_str()), (OpenErrorKind::Absent, "gc-x or gc-y was not found"));
        assert_eq!(missing.tried, ["/nowhere/gc-x", "/nowhere/gc-y"]);
        let missing = find_in(&["gc-info"], &dirs, Some(Path::new("/nowhere/tool")), false).unwrap_err();
        assert_eq!((missing.kind, missing.reason.as_str()), (OpenErrorKind::Failed, "/nowhere/tool was not found"));
    }

    #[cfg(unix)]
    #[test]
    fn a_tool_that_may_not_be_executed_is_denied() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tool"), "text").unwrap();
        let denied = find_in(&["tool"], &[dir.path().into()], None, false).unwrap_err();
        assert_eq!(denied.kind, OpenErrorKind::Denied);
        assert!(denied.remedy.starts_with("sudo chmod a+rx "), "{}", denied.remedy);
    }

    /// Files of a test belong to its user, so a system file represents one that only root can change.
    #[cfg(target_os = "linux")]
    #[test]
    fn root_runs_nothing_that_others_could_have_put_there() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (open, within) = (dir.path().join("open"), dir.path().join("open/within"));
        std::fs::create_dir_all(&within).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let tool = within.join("smi");
        std::fs::write(&tool, "").unwrap();
        std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
        let only = std::slice::from_ref(&within);
        assert_eq!(find_in(&["smi"], only, None, false).unwrap(), tool, "this user runs what he likes");
        assert_eq!(find_in(&["smi"], only, Some(&tool), true).unwrap(), tool, "it was named");
        let error = find_in(&["smi"], only, None, true).unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::Denied);
        assert!(error.reason.contains(&format!("{} is not executed as root", tool.display())), "{}", error.reason);
        assert!(error.remedy.contains("chmod go-w") && error.remedy.contains("PATH"), "{}", error.remedy);
        // A safe folder may be a link of root's own (`/bin`). The tool in the open folder is skipped.
        let safe = [PathBuf::from("/bin"), "/usr/bin".into()];
        let both: Vec<PathBuf> = [within.clone()].into_iter().chain(safe).collect();
        std::fs::copy(&tool, within.join("sh")).unwrap();
        let found = find_in(&["sh"], &both, None, true).unwrap();
        assert!(!found.starts_with(dir.path()), "{}", found.display());
        assert_eq!(others_place(Path::new("/proc/self/environ")).is_some(), !is_root(), "it is its reader's");
    }
}
