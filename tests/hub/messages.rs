//! Every message of a page's socket, sent with every kind of credential: the answer, and the recipients of each
//! message.

use super::admission::{EVERY_LETTER, KEYS, everybody};
use super::sockets::send_message;
use futures_util::StreamExt;
use shared::catalog::fleet::Grain;
use shared::wire::{self, PROTOCOL, PageMessage, Received, ServerMessage};
use std::collections::{BTreeMap, BTreeSet};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use watchglass_tests::hub::Hub;
use watchglass_tests::waiting::MAX_WAIT;

/// Credentials that may open a socket at all. The others are rejected as for any request.
const READERS: &str = "SVMAOHpd";

/// Messages of a page. For each: credentials that receive data of the machine, those that receive nothing as for an
/// unknown machine, and those whose socket is closed.
const EXPECTED: &[(&str, &str, &str, &str)] = &[
    ("open", "SVMAHpd", "O", ""),
    ("history", "SVMAOHpd", "", ""),
    ("ack", "SVMAOHpd", "", ""),
    ("processes", "VMAHpd", "O", "S"),
    ("minutes", "SVMAOHpd", "", ""),
    ("overview", "SVMAHpd", "O", ""),
    ("past", "VMAOHpd", "", "S"),
    ("runs", "VMAOHpd", "", "S"),
];

/// The name of a message. A new one has no name yet, and no row above.
fn name_of(message: &PageMessage) -> &'static str {
    match message {
        PageMessage::Open { .. } => "open",
        PageMessage::History { .. } => "history",
        PageMessage::Ack { .. } => "ack",
        PageMessage::Processes { .. } => "processes",
        PageMessage::Minutes { .. } => "minutes",
        PageMessage::Overview { .. } => "overview",
        PageMessage::Past { .. } => "past",
        PageMessage::Runs => "runs",
    }
}

/// Credentials that may receive a message of the server, and whether it contains data of a machine.
fn may_be_sent(message: &ServerMessage) -> (&'static str, bool) {
    match message {
        ServerMessage::Hello(_)
        | ServerMessage::Catalog(_)
        | ServerMessage::Resync
        | ServerMessage::Heartbeat { .. }
        | ServerMessage::Goodbye { .. }
        | ServerMessage::Rows { .. }
        // The end is also reported for unknown objects.
        | ServerMessage::HistoryEnd { .. }
        | ServerMessage::MinutesEnd { .. } => (READERS, false),
        ServerMessage::Sources(all) | ServerMessage::Changed(all) => (READERS, !all.is_empty()),
        ServerMessage::Cells { cells, .. } => (READERS, !cells.is_empty()),
        ServerMessage::Series { .. }
        | ServerMessage::Checks { .. }
        | ServerMessage::Columns(_)
        | ServerMessage::Minutes(_)
        | ServerMessage::Records { .. }
        | ServerMessage::Facts { .. }
        | ServerMessage::Refilled { .. } => (READERS, true),
        ServerMessage::Processes(table) => ("VMAOHpd", !table.rows.is_empty()),
        ServerMessage::Past(past) => ("VMAOHpd", !past.points.is_empty()),
        ServerMessage::Runs(runs) => ("VMAOHpd", !runs.is_empty()),
    }
}

/// One message of each kind.
fn messages() -> Vec<PageMessage> {
    let (source, from, to) = (0, 1, i64::MAX / 4);
    vec![
        PageMessage::Open { protocol: PROTOCOL, window: 600_000, resume: None, sources: vec![String::new()] },
        PageMessage::History { source, from, to },
        PageMessage::Ack { messages: 0 },
        PageMessage::Processes { at: None },
        PageMessage::Minutes { source, from, to },
        PageMessage::Overview { grain: Grain::Sources, on: true },
        PageMessage::Past { pid: std::process::id(), name: String::new(), from, to },
        PageMessage::Runs,
    ]
}

/// The result of a message.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Something,
    Nothing,
    Closed,
}

/// Opens a stream by a header line; an error with the status when it is rejected.
async fn connect(hub: &Hub, letter: char, header: Option<&str>) -> Result<super::sockets::Stream, u16> {
    let mut request = format!("ws://{}/api/v1/live", hub.server.addr()).into_client_request().expect("an address");
    let origin = (!KEYS.contains(letter)).then(|| hub.origin());
    for line in header.into_iter().chain(origin.as_deref()) {
        let (name, value) = line.split_once(": ").expect("a header line");
        let name: tokio_tungstenite::tungstenite::http::HeaderName = name.parse().expect("a name");
        request.headers_mut().insert(name, value.parse().expect("a value"));
    }
    match tokio_tungstenite::connect_async(request).await {
        Ok((stream, _)) => Ok(stream),
        Err(Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(other) => panic!("{letter}: {other}"),
    }
}

/// The result if this server message answers the page's message.
fn answers(asked: &str, told: &ServerMessage) -> Option<Came> {
    let something = |there: bool| Some(if there { Came::Something } else { Came::Nothing });
    match (asked, told) {
        ("open", ServerMessage::Sources(all)) => something(!all.is_empty()),
        ("overview", ServerMessage::Cells { cells, .. }) => something(!cells.is_empty()),
        ("processes", ServerMessage::Processes(table)) => something(!table.rows.is_empty()),
        ("history", ServerMessage::HistoryEnd { from: 1, .. }) => something(true),
        ("minutes", ServerMessage::MinutesEnd { from: 1, .. }) => something(true),
        // It has no answer: the socket stays open.
        ("ack", ServerMessage::HistoryEnd { from: 2, .. }) => something(true),
        ("past", ServerMessage::Past(_)) => something(true),
        ("runs", ServerMessage::Runs(_)) => something(true),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_is_answered_to_those_whom_the_table_names_and_to_nobody_else() {
    let hub = Hub::start(["--interval", "100ms"]);
    let said: BTreeSet<&str> = messages().iter().map(name_of).collect();
    let written: BTreeSet<&str> = EXPECTED.iter().map(|(word, ..)| *word).collect();
    assert_eq!(said, written, "every message has its line here");
    let mut faults = Vec::new();
    // The cast's link was created before the hub's own machine existed.
    let link = super::shares::link(&hub, "w=5m");
    for (letter, header) in everybody(&hub) {
        let header = if letter == 'S' { Some(link.clone()) } else { header };
        assert!(EVERY_LETTER.contains(letter));
        for message in messages() {
            let asked = name_of(&message);
            let (_, something, nothing, closed) = EXPECTED.iter().find(|line| line.0 == asked).expect("a line");
            let stream = connect(&hub, letter, header.as_deref()).await;
            let mut stream = match (stream, READERS.contains(letter)) {
                (Ok(stream), true) => stream,
                (Err(401 | 403 | 429), false) => continue,
                (stream, _) => {
                    faults.push(format!("{letter} opens a socket: {:?}", stream.map(|_| "it is let in")));
                    continue;
                }
            };
            let expected = match letter {
                _ if something.contains(letter) => Came::Something,
                _ if nothing.contains(letter) => Came::Nothing,
                _ if closed.contains(letter) => Came::Closed,
                _ => panic!("{letter} has no place in the line of {asked}"),
            };
            let mut told = BTreeMap::<String, usize>::new();
            let came = async {
                if asked != "open" {
                    let PageMessage::Open { .. } = &messages()[0] else { panic!("the first opens") };
                    send_message(&mut stream, &messages()[0]).await;
                }
                send_message(&mut stream, &message).await;
                if asked == "ack" {
                    send_message(&mut stream, &PageMessage::History { source: 0, from: 2, to: 3 }).await;
                }
                loop {
                    let bytes = match stream.next().await {
                        Some(Ok(Message::Binary(bytes))) => bytes,
                        Some(Ok(Message::Close(Some(frame)))) if u16::from(frame.code) == 1008 => return Came::Closed,
                        Some(Ok(_)) => continue,
                        end => panic!("{letter} {asked}: {end:?}"),
                    };
                    let told_now = match wire::decode_server(&bytes).expect("a message") {
                        Received::Control(message) => message,
                        _ if letter == 'O' => panic!("ticks for who sees no machine"),
                        _ => continue,
                    };
                    let (who, tells) = may_be_sent(&told_now);
                    *told.entry(format!("{told_now:.20?}")).or_default() += 1;
                    assert!(who.contains(letter) && (letter != 'O' || !tells), "{letter} {asked}: {told_now:.200?}");
                    match answers(asked, &told_now) {
                        // The first table, and the first values of a process, take a moment.
                        Some(Came::Nothing) if expected == Came::Something => send_message(&mut stream, &message).await,
                        Some(came) => return came,
                        None => {}
                    }
                }
            };
            match tokio::time::timeout(2 * MAX_WAIT, came).await {
                Ok(came) if came == expected => {}
                Ok(came) => faults.push(format!("{letter} {asked}: {came:?}")),
                Err(_) => faults.push(format!("{letter} {asked}: no answer; it was sent {told:?}")),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
