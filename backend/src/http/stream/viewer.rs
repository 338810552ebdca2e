//! A page on its socket or a fallback: it gets the messages of its [`Viewer`], as fast as it reads them.

use super::carrier::{Carrier, End, Opcode, SocketEvent};
use super::{ended, send};
use crate::http::App;
use crate::http::rights::{Changed, Rights};
use axum::body::Bytes;
use fleet::drain::Drain;
use shared::wire::{self, HEARTBEAT_MS, PageMessage, ServerMessage, SourceId, decode_page};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use stream::live::{Live, Outgoing, Overview, Viewer};
use stream::names::hide_in_processes;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Faster ticks are merged: a page gets at most two messages of ticks a second.
const MIN_SPACING: Duration = Duration::from_millis(500);
/// Timeout of the message before the close.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the next block; the disk is not read on the threads that serve the stream.
async fn read(next: Outgoing) -> Result<(Option<Bytes>, Option<Outgoing>), End> {
    match next.waits() {
        true => tokio::task::spawn_blocking(move || next.read()).await.map_err(|_| End::Gone),
        false => Ok(next.read()),
    }
}

pub(super) async fn page<C: Carrier>(mut carrier: C, app: Arc<App>, mut rights: Rights) {
    let cut = rights.cut();
    let ended = tokio::select! {
        ended = follow(&mut carrier, &app, &mut rights) => ended,
        // It reads nothing, not even the reason of the close.
        () = cut => return,
    };
    if let Err(End::Told(code, reason)) = ended {
        // The reason is sent as a message first: proxies drop close codes. The timeout covers pages that read nothing.
        let _ =
            timeout(GOODBYE_TIMEOUT, send(&mut carrier, &app.live, Opcode::Binary, &Viewer::goodbye(&reason))).await;
        Box::pin(carrier.close(code, &reason)).await;
    }
}

type PendingAnswer<'a> = Pin<Box<dyn Future<Output = Bytes> + Send + 'a>>;

/// Requests of a page in progress: the newest request replaces the one before.
#[derive(Default)]
struct Asked<'a> {
    processes: Option<PendingAnswer<'a>>,
    runs: Option<PendingAnswer<'a>>,
}

/// Reads a message of a page. Requests for processes and runs are answered here, at once or once the answer is made;
/// any other message is returned.
async fn answered<'a, C: Carrier>(
    carrier: &mut C,
    app: &'a Arc<App>,
    viewer: &Viewer,
    rights: &Rights,
    bytes: &[u8],
    asked: &mut Asked<'a>,
) -> Result<Option<PageMessage>, End> {
    let message = decode_page(bytes)
        .map_err(|why| End::Told(CloseCode::Invalid, format!("this is not a message of a page: {why}")))?;
    let asks = matches!(message, PageMessage::Past { .. } | PageMessage::Processes { .. } | PageMessage::Runs);
    if asks && !rights.sees_processes() {
        return Err(End::Told(CloseCode::Policy, "a share link does not include processes and runs".into()));
    }
    let source = viewer.sources().first().copied();
    match message {
        PageMessage::Past { pid, name, from, to } => {
            let past = |source: SourceId| app.live.source(source).processes.past(pid, &name, (from, to));
            let past = source.map(past).unwrap_or_default();
            send(carrier, &app.live, Opcode::Binary, &wire::encode(&ServerMessage::Past(past)).into()).await?;
        }
        // Another machine may be slow, and ticks do not wait for it.
        PageMessage::Processes { at } => asked.processes = Some(Box::pin(processes(app, source, at, rights))),
        PageMessage::Runs => asked.runs = Some(Box::pin(runs(app.clone(), source))),
        message => return Ok(Some(message)),
    }
    Ok(None)
}

/// Serves a page until its connection ends.
async fn follow<C: Carrier>(carrier: &mut C, app: &Arc<App>, rights: &mut Rights) -> Result<(), End> {
    let live = &app.live;
    let viewer = Viewer::new(live.clone(), rights.scope()).with_accounts(app.hub.is_some());
    let mut viewer = viewer.within(rights.bounds());
    // The page's first message names its source.
    let mut news = live.subscribe(&[]);
    let (heartbeat, place) = (Duration::from_millis(HEARTBEAT_MS), Drain::place());
    let (mut said, mut ready) = (Instant::now(), Instant::now());
    let mut more = false;
    let mut asked = Asked::default();
    loop {
        ended(app, place)?;
        let now = Instant::now();
        if more && now >= ready {
            more = false;
            if tell(carrier, app, &mut viewer).await? {
                said = Instant::now();
                ready = said + MIN_SPACING;
            }
        } else if !more && now >= said + heartbeat {
            send(carrier, live, Opcode::Binary, &viewer.heartbeat()).await?;
            said = now;
            // A source without ticks may have new checks, and other sources new facts.
            more = true;
        }
        let wake = if more { ready } else { said + heartbeat };
        let event = tokio::select! {
            biased;
            table = answer(&mut asked.processes) => {
                asked.processes = None;
                send(carrier, live, Opcode::Binary, &table).await?;
                continue;
            }
            runs = answer(&mut asked.runs) => {
                asked.runs = None;
                send(carrier, live, Opcode::Binary, &runs).await?;
                continue;
            }
            changed = rights.changed() => match changed {
                Changed::Ended(why) => return Err(End::Told(CloseCode::Policy, why)),
                Changed::Sees(scope) => {
                    for overview in viewer.widen(scope) {
                        tokio::spawn(beats(live.clone(), Arc::downgrade(&overview)));
                    }
                    news = viewer.wakes();
                    SocketEvent::News
                }
            },
            event = carrier.next(&mut news, Some(wake)) => event?,
        };
        match event {
            SocketEvent::News => more = true,
            SocketEvent::Time => {}
            SocketEvent::Said(Message::Binary(bytes)) => {
                let message = answered(carrier, app, &viewer, rights, &bytes, &mut asked).await?;
                let Some(message) = message else { continue };
                let question = !matches!(message, PageMessage::Ack { .. });
                let follows = matches!(message, PageMessage::Open { .. } | PageMessage::Overview { .. });
                let held = viewer.held();
                viewer.receive(message).map_err(|why| End::Told(CloseCode::Policy, why))?;
                if follows {
                    news = viewer.wakes();
                }
                if let Some(overview) = viewer.begun() {
                    tokio::spawn(beats(live.clone(), Arc::downgrade(&overview)));
                }
                more |= question || held;
                // Answers to the page do not wait for the next tick.
                if question {
                    ready = Instant::now();
                }
            }
            SocketEvent::Said(_) => {
                let sentence = "this stream is binary; scripts use ?format=json";
                return Err(End::Told(CloseCode::Unsupported, sentence.into()));
            }
        }
    }
}

/// The message with a process table of a source; empty if there is none.
fn processes<'a>(
    app: &'a App,
    source: Option<SourceId>,
    at: Option<i64>,
    rights: &Rights,
) -> impl Future<Output = Bytes> + Send + use<'a> {
    let key = source.and_then(|source| Some(app.live.store().source(source)?.0.key.clone())).unwrap_or_default();
    let (hides_names, with_arguments) = (rights.scope().hides_names_of(&key), rights.sees_arguments(key));
    async move {
        let table = match source {
            Some(source) => app.processes(source, at).await.ok(),
            None => None,
        };
        let mut table = table.map(|table| (*table).clone()).unwrap_or_default();
        if !with_arguments.await {
            table.rows.iter_mut().for_each(|row| row.args.clear());
        }
        if hides_names {
            hide_in_processes(&mut table);
        }
        wire::encode(&ServerMessage::Processes(table)).into()
    }
}

/// The message with the runs of a source that are active or ended recently; empty if there are none or all response
/// slots are taken.
async fn runs(app: Arc<App>, source: Option<SourceId>) -> Bytes {
    let source = source.and_then(|source| app.live.store().source(source).map(|(source, _)| source.clone()));
    let lines = match source.zip(app.answers.history.take().ok()) {
        Some((source, slot)) => slot.blocking(move || app.run_lines(source)).await.unwrap_or_default(),
        None => Vec::new(),
    };
    wire::encode(&ServerMessage::Runs(lines)).into()
}

/// Resolves with the answer to a pending request; never without one.
async fn answer<F: Future<Output = Bytes> + Unpin>(asked: &mut Option<F>) -> Bytes {
    match asked {
        Some(asked) => asked.await,
        None => std::future::pending().await,
    }
}

/// Updates an overview until it has no reader. It is made off the threads that serve the stream.
async fn beats(live: Arc<Live>, overview: Weak<Overview>) {
    loop {
        let begun = Instant::now();
        let Some(overview) = overview.upgrade() else { return };
        let live = live.clone();
        let beat = move || {
            overview.beat(&live);
            overview.interval()
        };
        let Ok(interval) = tokio::task::spawn_blocking(beat).await else { return };
        tokio::time::sleep_until(begun + interval).await;
    }
}

/// Sends all pending messages to a page; returns whether there were any.
async fn tell<C: Carrier>(carrier: &mut C, app: &App, viewer: &mut Viewer) -> Result<bool, End> {
    let live = &app.live;
    let mut any = false;
    // Data of another replica is fetched as long as a page shows it.
    live.want(&viewer.sources());
    while let Some(next) = viewer.next_message() {
        let (bytes, rest) = match next {
            Outgoing::Message(bytes) => {
                send(carrier, live, Opcode::Binary, &bytes).await?;
                any = true;
                continue;
            }
            // On the heap, and only while there is history to send: thousands of pages only follow.
            history => {
                Box::pin(async {
                    let _permit = app.history_messages.acquire().await;
                    let (bytes, rest) = read(history).await?;
                    if let Some(bytes) = &bytes {
                        send(carrier, live, Opcode::Binary, bytes).await?;
                    }
                    Ok((bytes.is_some(), rest))
                })
                .await?
            }
        };
        any |= bytes;
        rest.into_iter().for_each(|rest| viewer.put_back(rest));
    }
    Ok(any)
}
