//! Files that a user names. Only plain files are read ([`open`]), so that no pipe blocks. Written files appear only
//! when complete, and never where another user's link leads ([`Whole`]).
//!
//! A link is detected only at the last name of a path: a user who may change a folder above it can redirect all
//! programs that use the path.

mod whole;

pub use whole::{Whole, is_stdout};

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a plain file to read it; links are followed. Anything else is rejected at once, without waiting.
///
/// # Errors
/// The error of the system; a sentence if the path names a folder, a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Also checked before it is opened: opening a device may start it.
    plain(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.read(true).open(path)?;
    plain(&file.metadata()?)?;
    Ok(file)
}

fn plain(found: &Metadata) -> io::Result<()> {
    match () {
        () if found.is_file() => Ok(()),
        () if found.is_dir() => Err(io::Error::other("it is a folder; name a file in it")),
        () => {
            Err(io::Error::other("it is a pipe, a socket or a device; save its output to a file, and name that file"))
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_plain_file_is_read_and_nothing_else_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").expect("written");
        symlink(at("file"), at("link")).expect("linked");
        whole::tests::fifo(&at("pipe"));
        symlink(at("pipe"), at("to-pipe")).expect("linked");
        for name in ["file", "link"] {
            let mut text = String::new();
            open(&at(name)).expect("opened").read_to_string(&mut text).expect("read");
            assert_eq!(text, "text");
        }
        for path in [at("pipe"), at("to-pipe"), "/dev/zero".into(), "/dev/tty".into()] {
            let refused = open(&path).expect_err("refused").to_string();
            assert!(refused.contains("to a file"), "{refused}");
        }
        assert!(open(folder.path()).expect_err("refused").to_string().contains("folder"));
        assert_eq!(open(&at("none")).expect_err("nothing").kind(), io::ErrorKind::NotFound);
    }
}
