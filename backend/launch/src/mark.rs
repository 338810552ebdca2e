//! `watchglass mark`: one datagram to the server of this machine, which says whether it was taken.

use shared::run::{MAX_MARKER_BYTES, Mark, TAKEN};
use std::path::PathBuf;
use std::time::Duration;

/// How long is waited for the answer. Until then this process lives, by which the server sees whose marker it is.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What became of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// It was taken.
    Taken,
    /// Nobody listens, or nobody answers; the sentence says which.
    Nobody(String),
    /// The server does not take it; the sentence says why.
    Refused(String),
}

/// Sends a marker to the first of these sockets on which somebody listens.
pub fn send(sockets: &[PathBuf], mark: &Mark) -> Marked {
    let message = serde_json::to_vec(mark).unwrap_or_default();
    if message.len() > MAX_MARKER_BYTES {
        return Marked::Refused("this text is too long for a marker".into());
    }
    let socket = match super::named_socket(TIMEOUT) {
        Ok(socket) => socket,
        Err(error) => return Marked::Nobody(format!("this system grants no socket: {error}; nothing is marked")),
    };
    if !sockets.iter().any(|path| socket.send_to(&message, path).is_ok()) {
        return Marked::Nobody("no watchglass listens on this machine; nothing is marked".into());
    }
    let mut answer = [0; MAX_MARKER_BYTES];
    match socket.recv(&mut answer).map(|read| String::from_utf8_lossy(&answer[..read]).into_owned()) {
        Ok(answer) if answer == TAKEN => Marked::Taken,
        Ok(sentence) => Marked::Refused(sentence),
        Err(_) => Marked::Nobody("the server does not answer; whether it has the marker is not known".into()),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn who_listens_answers_and_where_nobody_does_that_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let (none, path) = (folder.path().join("none"), folder.path().join("run.sock"));
        let mark = Mark { text: "epoch 3".into(), step: Some(1200), kind: "note".into(), ..Mark::default() };
        let Marked::Nobody(sentence) = send(std::slice::from_ref(&none), &mark) else { panic!("somebody listens") };
        assert!(sentence.contains("no watchglass listens"), "{sentence}");
        let server = UnixDatagram::bind(&path).expect("a socket");
        let serve = move |answer: &'static str| {
            let server = server.try_clone().expect("a socket");
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                let (read, from) = server.recv_from(&mut bytes).expect("a marker");
                server.send_to_addr(answer.as_bytes(), &from).expect("it waits");
                String::from_utf8_lossy(&bytes[..read]).into_owned()
            })
        };
        let served = serve(TAKEN);
        assert_eq!(send(&[none, path.clone()], &mark), Marked::Taken);
        assert_eq!(served.join().expect("no panic"), r#"{"text":"epoch 3","step":1200,"kind":"note"}"#);
        let served = serve("too many");
        assert_eq!(send(&[path], &mark), Marked::Refused("too many".into()));
        served.join().expect("no panic");
    }
}
