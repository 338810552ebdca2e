//! The socket for datagrams on which launchers tell. It stands in a folder of ours, open to its owner alone.

use shared::run::{Begun, MAX_MESSAGE_BYTES, MAX_TAGS, MAX_TEXT_BYTES, Told, check_id};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::UnixDatagram;

/// The socket; its file goes with it.
#[derive(Debug)]
pub struct RunSocket {
    socket: UnixDatagram,
    path: PathBuf,
}

impl RunSocket {
    /// Listens; what lies there was left by a process that ended. The data folder is this process's own.
    ///
    /// # Errors
    /// The socket, or its folder, cannot be made.
    pub fn bind(path: &Path) -> io::Result<RunSocket> {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = RunSocket { socket: UnixDatagram::bind(path)?, path: path.into() };
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
        Ok(socket)
    }

    /// The next message that can be read; what cannot is left out.
    pub(super) async fn next(&self) -> Told {
        let mut bytes = vec![0; MAX_MESSAGE_BYTES + 1];
        loop {
            match self.socket.recv(&mut bytes).await {
                Ok(read) => match parse(&bytes[..read]) {
                    Some(told) => return told,
                    None => tracing::debug!("a message on the socket of runs cannot be read"),
                },
                // It is not read any more: what is told then is found in the folder at the next start.
                Err(error) => {
                    tracing::warn!(%error, "the socket of runs cannot be read");
                    return std::future::pending().await;
                }
            }
        }
    }
}

impl Drop for RunSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What is told, when it keeps to the bounds.
pub(super) fn parse(bytes: &[u8]) -> Option<Told> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    let told: Told = serde_json::from_slice(bytes).ok()?;
    let begun = match &told {
        Told::Begin(begun) => begun,
        Told::End(over) => &over.begun,
    };
    keeps_bounds(begun).then_some(told)
}

fn keeps_bounds(begun: &Begun) -> bool {
    let about = &begun.about;
    let texts = [&about.name, &about.project, &about.group, &about.job_type, &about.notes, &about.label];
    let short = |text: &String| text.len() <= MAX_TEXT_BYTES;
    check_id(&begun.run).is_ok()
        && texts.into_iter().flatten().all(short)
        && short(&about.program)
        && about.tags.len() <= MAX_TAGS
        && about.tags.iter().all(|(name, value)| short(name) && short(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::About;

    #[test]
    fn what_keeps_no_bound_is_no_message() {
        let begun = |run: &str, name: &str| {
            let about = About { name: Some(name.into()), ..About::default() };
            let begun = Begun { run: run.into(), t: 1, pid: 7, start: None, namespace: None, joined: false, about };
            serde_json::to_vec(&Told::Begin(begun)).expect("JSON")
        };
        assert!(parse(&begun("abc", "first")).is_some());
        let wrong: [&[u8]; 6] = [
            b"",
            b"epoch 3",
            b"{\"event\":\"begin\"}",
            &begun("../a", "first"),
            &begun("abc", &"x".repeat(MAX_TEXT_BYTES + 1)),
            &begun("abc", &"x".repeat(MAX_MESSAGE_BYTES)),
        ];
        for bytes in wrong {
            assert!(parse(bytes).is_none(), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
