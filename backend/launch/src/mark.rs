//! `watchglass mark`, `watchglass log` and `watchglass alert`: one datagram to the server of this machine, which answers whether it was
//! accepted.

use super::peer::Server;
use serde::Serialize;
use shared::alert::AlertSeverity;
use shared::new_values::{MAX_VALUES_BYTES, NewValues};
use shared::run::{MAX_MARKER_BYTES, Mark, TAKEN};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Timeout of the answer to a marker. This process lives until then, because the server identifies the sender by it.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout of the answer to an alert. It is short because the caller has work to go on with.
const ALERT_TIMEOUT: Duration = Duration::from_millis(800);

/// JSON form of an alert on the socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToldAlert {
    /// Its title.
    pub alert: String,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[allow(missing_docs, reason = "see AlertSeverity")]
    pub severity: AlertSeverity,
    /// Interval in which repeats are grouped, as `30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// ID of the run that it belongs to. The run that the kernel's credentials identify takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// Result of sending a marker or an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// It was accepted.
    Taken,
    /// No server listens, or none answers; the sentence is the reason.
    Nobody(String),
    /// The server rejected it; the sentence is the reason.
    Refused(String),
}

/// Sends a marker to the first of these sockets that has a listener.
pub fn send(sockets: &[PathBuf], mark: &Mark) -> Marked {
    ask(sockets, (mark, MAX_MARKER_BYTES), TIMEOUT, ("marker", "the marker is lost"))
}

/// Sends values of a job in the same way.
pub fn send_values(sockets: &[PathBuf], values: &NewValues) -> Marked {
    ask(sockets, (values, MAX_VALUES_BYTES), TIMEOUT, ("message", "the values are lost"))
}

/// Sends an alert in the same way. A text that is too long for a datagram is cut.
pub fn send_alert(sockets: &[PathBuf], alert: &ToldAlert) -> Marked {
    let mut alert = alert.clone();
    // A letter may take six bytes when escaped, so the length is measured on the serialized message.
    while serde_json::to_vec(&alert).is_ok_and(|message| message.len() > MAX_MARKER_BYTES) {
        let Some(text) = alert.text.as_mut().filter(|text| !text.is_empty()) else { break };
        text.truncate(text.floor_char_boundary(text.len() * 9 / 10));
    }
    ask(sockets, (&alert, MAX_MARKER_BYTES), ALERT_TIMEOUT, ("alert", "the alert is lost"))
}

/// Sends a message of at most `most` bytes and waits for its answer, at most `timeout` in all. `what` names the message,
/// and `nothing` is the consequence if no server listens; both are texts for people.
fn ask(
    sockets: &[PathBuf],
    (message, most): (&impl Serialize, usize),
    timeout: Duration,
    (what, nothing): (&str, &str),
) -> Marked {
    let until = Instant::now() + timeout;
    let message = serde_json::to_vec(message).unwrap_or_default();
    if message.len() > most {
        return Marked::Refused(format!("this {what} is too long"));
    }
    let sent = |path: &PathBuf| Server::at(path).and_then(|server| server.send(&message).map(|()| server)).ok();
    let Some(server) = sockets.iter().find_map(sent) else {
        return Marked::Nobody(format!("no watchglass listens on this machine; {nothing}"));
    };
    match server.answer(until) {
        Ok((answer, _)) if answer == TAKEN => Marked::Taken,
        Ok((sentence, _)) => Marked::Refused(sentence),
        Err(_) => Marked::Nobody(format!("the server does not respond; it may have received the {what}")),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use shared::new_values::JobNumber;
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
        let served = serve(TAKEN);
        let long = ToldAlert { alert: "loss is NaN".into(), text: Some("é\n".repeat(2_000)), ..ToldAlert::default() };
        assert_eq!(send_alert(std::slice::from_ref(&path), &long), Marked::Taken);
        let told = served.join().expect("no panic");
        assert!(told.starts_with(r#"{"alert":"loss is NaN","text":"é\n"#) && told.len() <= MAX_MARKER_BYTES, "{told}");
        let served = serve("too many");
        assert_eq!(send(&[path], &mark), Marked::Refused("too many".into()));
        served.join().expect("no panic");
    }

    #[test]
    fn values_are_one_message_with_what_json_has_not_as_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sock");
        let values = [("loss".to_string(), JobNumber(f64::NAN)), ("lr".to_string(), JobNumber(1e-4))].into();
        let new = NewValues { values, step: Some(1_200), ..NewValues::default() };
        let Marked::Nobody(sentence) = send_values(std::slice::from_ref(&path), &new) else { panic!("it listens") };
        assert_eq!(sentence, "no watchglass listens on this machine; the values are lost");
        let server = UnixDatagram::bind(&path).expect("a socket");
        let served = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            let (read, from) = server.recv_from(&mut bytes).expect("values");
            server.send_to_addr(TAKEN.as_bytes(), &from).expect("it waits");
            String::from_utf8_lossy(&bytes[..read]).into_owned()
        });
        assert_eq!(send_values(std::slice::from_ref(&path), &new), Marked::Taken);
        assert_eq!(served.join().expect("no panic"), r#"{"values":{"loss":"NaN","lr":0.0001},"step":1200}"#);
        let many = (0..200).map(|n| (format!("{n:0>60}"), JobNumber(0.1))).collect();
        let long = NewValues { values: many, ..NewValues::default() };
        assert_eq!(send_values(&[path], &long), Marked::Refused("this message is too long".into()));
    }

    #[test]
    fn a_server_that_does_not_read_or_answer_costs_an_alert_less_than_a_second() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sock");
        let _deaf = UnixDatagram::bind(&path).expect("a socket");
        let alert = ToldAlert { alert: "loss is NaN".into(), ..ToldAlert::default() };
        let begin = Instant::now();
        let Marked::Nobody(sentence) = send_alert(&[path.clone(), path.clone()], &alert) else { panic!("it answered") };
        assert!(sentence.contains("it may have received the alert"), "{sentence}");
        let filler = UnixDatagram::unbound().expect("a socket");
        filler.set_nonblocking(true).expect("a socket");
        while filler.send_to(b"x", &path).is_ok() {}
        let Marked::Nobody(sentence) = send_alert(&[path.clone(), path], &alert) else { panic!("it answered") };
        assert!(sentence.contains("the alert is lost"), "{sentence}");
        // A loaded machine needs only part of the 20 s. A wait without a timeout would never end.
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }
}
