//! An established link: live ticks first, missing ones after them.
//!
//! One task reads the hub's messages, the other writes. The writer has no queue of ticks. Like a page's connection, it
//! reads the ticks after its position from the store, and pauses there when its credit is used up. Between two ticks it
//! sends other messages: records, answers, and one part at a time of the requested history.

use super::fill::{self, Answered, Size, Want};
use super::hello::{Introduction, LinkSocket, Origin, UplinkEnd, goodbye, next};
use super::identity::Shift;
use super::names::TableTold;
use super::reports;
use super::road::{RoadEnd, Stage};
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use jobs::runs::RunRegistry;
use shared::agent::{
    AgentMessage, ByeReason, CREDIT, FillDamage, FillPart, FillState, HEARTBEAT_MS, HubMessage, MAX_MESSAGE, Question,
    SILENCE_MS, Welcome, encode, encode_damage, encode_fill, encode_records, encode_ticks,
};
use shared::record::Record;
use shared::tick::TickState;
use shared::wire::{Check, CheckState, SourceId};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use stream::live::{Live, UplinkState};
use stream::store::{Cursor, News};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;

/// ID of a hub's check of its remote-write endpoint.
const SAMPLE_STORE: &str = "remote_write";
/// Maximum time of one message: even the slowest link transfers it in that time.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout for sending the queue before the last message, and for the last message. Together they are within
/// [`END_TIMEOUT`](super::END_TIMEOUT).
const FLUSH_TIMEOUT: Duration = Duration::from_secs(4);
const BYE_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of the hub's messages that wait for the writer.
const MAX_WAITING: usize = 64;
/// Minimum interval of messages with several ticks.
const JOINED_INTERVAL: Duration = Duration::from_millis(500);
/// Number of clock questions after the welcome, each sent when the previous answer arrives, with its arrival time; then
/// one per interval.
const CLOCK_AT_ONCE: u32 = 9;
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum time to wait for the answer to a clock question.
const CLOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of a part of a fill, bytes: at first, and the bounds of the size that a quarter of a second transfers.
const FIRST_FILL_BYTES: usize = 16 << 10;
const LEAST_FILL_BYTES: usize = 4 << 10;
const MOST_FILL_BYTES: usize = 256 << 10;
/// Approximate size of the records in one message, bytes.
const RECORD_BYTES: usize = 128 << 10;
/// Divergence of the wall clock and the monotonic clock that means that the machine slept.
const SLEEP_DIVERGENCE: Duration = Duration::from_secs(10);

/// Parameters of a link.
pub(super) struct LinkParts {
    pub live: Arc<Live>,
    pub source: SourceId,
    pub runs: Arc<RunRegistry>,
    pub told: Arc<Introduction>,
    pub shifts: Vec<Shift>,
    /// Delay after a tick, so that not all agents send at once.
    pub spread: Duration,
    /// The state of the link is published here.
    pub shown: Arc<UplinkState>,
}

/// Serves the hub until the link ends.
pub(super) async fn serve(
    link: LinkParts,
    socket: LinkSocket,
    welcome: &Welcome,
    stop: watch::Receiver<bool>,
) -> UplinkEnd {
    let (sink, mut stream) = socket.split();
    let (tell, heard) = mpsc::channel(MAX_WAITING);
    let reading = async {
        loop {
            match timeout(Duration::from_millis(SILENCE_MS), next(&mut stream)).await {
                Ok(Ok(HubMessage::Goodbye { code, reason, wait })) => return goodbye(code, reason, wait),
                // The writer has ended, and returns the reason itself.
                Ok(Ok(message)) => drop(tell.send(message).await),
                Ok(Err(end)) => return end,
                Err(_) => return lost(format!("no message for {} s", SILENCE_MS / 1_000)),
            }
        }
    };
    let (writer, stopping) = (Writer::new(link, sink, welcome), stop.clone());
    let end = tokio::select! {
        end = reading => end,
        end = writer.run(heard, stop) => end,
    };
    // The hub closes its end after our goodbye.
    if *stopping.borrow() { UplinkEnd::Stopped } else { end }
}

/// Reason why this process ends, as far as it is known; `program` is the path of its executable.
pub(super) fn bye(program: Option<&Path>) -> ByeReason {
    // Linux reports this path for an executable that was replaced, as after an upgrade.
    match program.is_some_and(|program| program.to_string_lossy().ends_with(" (deleted)")) {
        true => ByeReason::Upgrading,
        false => ByeReason::Stopping,
    }
}

fn lost(why: impl Into<String>) -> UplinkEnd {
    UplinkEnd::Lost(RoadEnd::new(Stage::Key, why))
}

/// An answer to a request for missing ticks, in progress.
struct Filling {
    id: u32,
    parts: mpsc::Receiver<FillPart>,
    ended: tokio::task::JoinHandle<Answered>,
}

/// State of the clock questions.
struct ClockAsked {
    id: u32,
    /// Arrival of the last answer, by our clock.
    arrived: Option<i64>,
    /// Time of the next question.
    due: Instant,
}

struct Writer {
    link: LinkParts,
    sink: SplitSink<LinkSocket, Message>,
    cursor: Cursor,
    table: TableTold,
    /// Number of messages with ticks or records, as the hub counts them.
    sent: u32,
    acknowledged: u32,
    /// Versions of the last sent checks of collectors and facts of the source, as the store counts them.
    checks: u64,
    facts: u64,
    record: u64,
    /// Records that were no longer in memory when the link began.
    old_records: Option<mpsc::Receiver<Vec<Record>>>,
    clock: ClockAsked,
    filling: Option<Filling>,
    fill_size: Size,
    answers: Option<(u32, tokio::task::JoinHandle<Vec<u8>>)>,
    /// Time of the last message, and of the last one with several ticks.
    spoke: Instant,
    joined: Option<Instant>,
    /// Time at which the new ticks must be sent.
    due: Option<Instant>,
}

impl Writer {
    fn new(link: LinkParts, sink: SplitSink<LinkSocket, Message>, welcome: &Welcome) -> Self {
        let (now, facts) = (Instant::now(), facts_of(&link));
        Writer {
            cursor: Cursor::new(link.source),
            table: TableTold::default(),
            sent: 0,
            acknowledged: 0,
            checks: u64::MAX,
            facts,
            record: welcome.record,
            old_records: None,
            clock: ClockAsked { id: 0, arrived: None, due: now },
            filling: None,
            fill_size: Arc::new(AtomicUsize::new(FIRST_FILL_BYTES)),
            answers: None,
            spoke: now,
            joined: None,
            due: Some(now),
            link,
            sink,
        }
    }

    /// Writes until the link ends.
    async fn run(mut self, mut heard: mpsc::Receiver<HubMessage>, mut stop: watch::Receiver<bool>) -> UplinkEnd {
        match self.go_on(&mut heard, &mut stop).await {
            Err(UplinkEnd::Stopped) => {
                match timeout(FLUSH_TIMEOUT, self.flush(&mut heard)).await {
                    Ok(Ok(())) => {}
                    // The link is gone, and the last message would not arrive.
                    Ok(Err(_)) => return UplinkEnd::Stopped,
                    Err(_) => tracing::warn!("the hub did not accept all records and samples before the stop"),
                }
                let bye = async {
                    let bye = encode(&AgentMessage::Bye(bye(std::env::current_exe().ok().as_deref())));
                    let _ = self.sink.send(Message::Binary(bye.into())).await;
                    let _ = self.sink.close().await;
                    // Closing a socket with unread data would discard the last sent data.
                    while heard.recv().await.is_some() {}
                };
                let _ = timeout(BYE_TIMEOUT, bye).await;
                UplinkEnd::Stopped
            }
            Err(end) => end,
            Ok(never) => match never {},
        }
    }

    async fn go_on(
        &mut self,
        heard: &mut mpsc::Receiver<HubMessage>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<std::convert::Infallible, UplinkEnd> {
        let mut news = self.link.live.subscribe(&[self.link.source]);
        let (began, steady) = (Instant::now(), self.link.live.clock.steady());
        self.read_old_records();
        self.begin().await?;
        loop {
            if *stop.borrow() {
                return Err(UplinkEnd::Stopped);
            }
            if self.due.is_some_and(|due| due <= Instant::now()) {
                self.ticks().await?;
                self.records().await?;
            }
            let beat = self.spoke + Duration::from_millis(HEARTBEAT_MS - 500);
            let wake = beat.min(self.clock.due).min(self.due.unwrap_or(beat));
            tokio::select! {
                // In this order: a tick waits only for the socket.
                biased;
                _ = stop.changed() => return Err(UplinkEnd::Stopped),
                message = heard.recv() => match message {
                    Some(message) => self.take(message).await?,
                    None => return Err(lost("the hub has closed the link")),
                },
                changed = news.next(), if self.due.is_none() => match changed {
                    Ok(()) => self.due = Some(Instant::now() + self.link.spread),
                    Err(_) => return Err(UplinkEnd::Stopped),
                },
                records = old(&mut self.old_records), if !self.held() => match records {
                    Some(records) => self.send_records(records).await?,
                    None => {
                        self.old_records = None;
                        self.records().await?;
                    }
                },
                bytes = answer(&mut self.answers) => {
                    let (id, bytes) = bytes;
                    self.answers = None;
                    self.send_message(&AgentMessage::Answer { id, bytes }).await?;
                }
                part = part(&mut self.filling) => self.fill(part).await?,
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    let slept = self.link.live.clock.steady().saturating_sub(steady).saturating_sub(now - began);
                    if slept > SLEEP_DIVERGENCE {
                        return Err(lost("this machine was suspended"));
                    }
                    if now >= self.clock.due {
                        self.ask_clock().await?;
                    }
                    if now >= self.spoke + Duration::from_millis(HEARTBEAT_MS - 500) {
                        self.send_message(&AgentMessage::Heartbeat).await?;
                    }
                }
            }
        }
    }

    /// Sends the ticks and records that wait: an agent that stops may never return to send them.
    async fn flush(&mut self, heard: &mut mpsc::Receiver<HubMessage>) -> Result<(), UplinkEnd> {
        loop {
            if self.held() {
                // Only an acknowledgment gives credit; questions are not answered any more.
                match heard.recv().await {
                    Some(message @ HubMessage::Ack { .. }) => self.take(message).await?,
                    Some(_) => {}
                    None => return Err(lost("the hub has closed the link")),
                }
            } else if self.old_records.is_some() {
                match old(&mut self.old_records).await {
                    Some(records) => self.send_records(records).await?,
                    None => self.old_records = None,
                }
            } else {
                // The pause between joined ticks saves messages, and would only delay the end.
                self.joined = None;
                self.ticks().await?;
                self.records().await?;
                if self.due.is_none() && !self.held() {
                    return Ok(());
                }
            }
        }
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<(), UplinkEnd> {
        self.link.shown.counts.bytes.fetch_add(bytes.len() as u64, Relaxed);
        let sent = timeout(MESSAGE_TIMEOUT, self.sink.send(Message::Binary(bytes.into()))).await;
        self.spoke = Instant::now();
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(lost(format!("the link was lost: {error}"))),
            Err(_) => Err(lost(format!("the hub has received nothing for {} s", MESSAGE_TIMEOUT.as_secs()))),
        }
    }

    async fn send_message(&mut self, message: &AgentMessage) -> Result<(), UplinkEnd> {
        self.send(encode(message)).await
    }

    /// Whether the credit is used up.
    fn held(&self) -> bool {
        self.sent.wrapping_sub(self.acknowledged) >= CREDIT
    }

    /// Handles a message of the hub.
    async fn take(&mut self, message: HubMessage) -> Result<(), UplinkEnd> {
        match message {
            HubMessage::Ack { messages, seq, .. } => {
                if messages.wrapping_sub(self.acknowledged) > self.sent.wrapping_sub(self.acknowledged) {
                    return Err(lost("the hub acknowledges ticks that were not sent"));
                }
                let was_held = self.held();
                self.acknowledged = messages;
                self.link.shown.counts.acknowledged.store(seq, Relaxed);
                if was_held && self.due.is_none() {
                    self.due = Some(Instant::now());
                }
            }
            HubMessage::Clock { id, .. } if id == self.clock.id => {
                self.clock.arrived = Some(self.link.live.clock.wall());
                let now = Instant::now();
                self.clock.due = if id < CLOCK_AT_ONCE { now } else { now + CLOCK_INTERVAL };
            }
            HubMessage::Want { id, first, last } => self.want(Want { id, first, last }),
            HubMessage::Ask { id, what } => self.asked(id, what).await?,
            HubMessage::Welcome(_) | HubMessage::Clock { .. } | HubMessage::Heartbeat | HubMessage::Goodbye { .. } => {}
        }
        Ok(())
    }

    async fn ask_clock(&mut self) -> Result<(), UplinkEnd> {
        self.clock.id = self.clock.id.wrapping_add(1);
        self.clock.due = Instant::now() + if self.clock.id < CLOCK_AT_ONCE { CLOCK_TIMEOUT } else { CLOCK_INTERVAL };
        let (id, sent, arrived) = (self.clock.id, self.link.live.clock.wall(), self.clock.arrived.take());
        self.send_message(&AgentMessage::Clock { id, sent, arrived }).await
    }

    /// Sends names, a keyframe before the newest tick, and that tick. Before the first tick since the start it sends
    /// only a keyframe, on which that tick builds. The values of the tick before it are on the disk, and are sent when
    /// the hub requests them.
    async fn begin(&mut self) -> Result<(), UplinkEnd> {
        let (names, ticks, newest) = {
            let store = self.link.live.store();
            let series = self.cursor.begin_newest(&store);
            let names = self.table.names(&store, self.link.source, &series);
            let newest = store.state(self.link.source).filter(|state| state.seq() > 0);
            let has_ticked = store.has_ticked(self.link.source);
            let frames = |state: &TickState| match has_ticked {
                true => vec![empty(state).keyframe(), whole(state)],
                false => vec![state.keyframe()],
            };
            (names, u64::from(has_ticked), newest.map(|state| (state.seq(), frames(state))))
        };
        for message in names.messages() {
            self.send_message(&message).await?;
        }
        self.checks().await?;
        if let Some((seq, frames)) = newest {
            self.send(encode_ticks(frames.iter().map(Vec::as_slice))).await?;
            self.sent = self.sent.wrapping_add(1);
            self.link.shown.counts.ticks.fetch_add(ticks, Relaxed);
            self.link.shown.counts.sent.store(seq, Relaxed);
        }
        Ok(())
    }

    /// Sends the ticks after our position, as many as fit one message, unless the credit is used up.
    async fn ticks(&mut self) -> Result<(), UplinkEnd> {
        self.due = None;
        if self.held() {
            return Ok(());
        }
        let (frames, names) = {
            let store = self.link.live.store();
            match self.cursor.news(&store) {
                News::Ticks(frames, series) => (Some(frames), self.table.names(&store, self.link.source, &series)),
                News::Lost => (None, self.table.names(&store, self.link.source, &[])),
            }
        };
        for message in names.messages() {
            self.send_message(&message).await?;
        }
        let Some(mut frames) = frames else {
            // The hub requests the skipped ticks later.
            self.link.shown.counts.skipped.fetch_add(1, Relaxed);
            return self.begin().await;
        };
        let again = self.joined.map(|joined| joined + JOINED_INTERVAL).filter(|again| *again > Instant::now());
        if let Some(again) = again.filter(|_| frames.len() > 1) {
            self.due = Some(again);
            return Ok(());
        }
        let (waiting, mut size) = (frames.len(), 1);
        let fits = frames.iter().take_while(|frame| {
            size += frame.bytes().len() + 5;
            size <= MAX_MESSAGE
        });
        frames.truncate(fits.count());
        if frames.is_empty() && waiting > 0 {
            return Err(lost("a tick exceeds the size limit of a message"));
        }
        if let Some(newest) = frames.last() {
            let bytes = encode_ticks(frames.iter().map(|frame| frame.bytes()));
            frames.iter().for_each(|frame| self.cursor.take(frame));
            self.link.shown.counts.ticks.fetch_add(frames.len() as u64, Relaxed);
            let seq = newest.seq;
            self.send(bytes).await?;
            self.sent = self.sent.wrapping_add(1);
            self.link.shown.counts.sent.store(seq, Relaxed);
        }
        let now = Instant::now();
        self.joined = (frames.len() > 1).then_some(now);
        if frames.len() < waiting {
            self.due = Some(now + JOINED_INTERVAL);
        }
        self.checks().await
    }

    /// Sends the state of the collectors and the remarks about the machine, if they have changed.
    async fn checks(&mut self) -> Result<(), UplinkEnd> {
        let (checks, version, facts) = {
            let store = self.link.live.store();
            let (checks, version) = store.checks(self.link.source);
            // A relaying hub's own checks are no facts about the machine. The exception is its check of remote write
            // for that machine's samples, which only this hub does.
            let sends = |check: &&Check| {
                check.id == SAMPLE_STORE && matches!(check.state, CheckState::Failed | CheckState::Partial)
            };
            let relayed = (self.link.told.origin == Origin::Relayed).then(|| {
                let own = store.own_checks(self.link.source);
                let of_hub = checks[own.len().min(checks.len())..].iter().filter(sends).cloned();
                own.iter().cloned().chain(of_hub).collect()
            });
            (
                relayed.unwrap_or_else(|| checks.to_vec()),
                version,
                store.source(self.link.source).map_or(0, |(_, version)| version),
            )
        };
        if std::mem::replace(&mut self.checks, version) != version {
            self.send_message(&AgentMessage::Checks(checks)).await?;
        }
        if std::mem::replace(&mut self.facts, facts) != facts {
            let (facts, labels) = self.link.told.facts(&self.link.live, self.link.source);
            let host = self.link.told.evidence.host.clone();
            self.send_message(&AgentMessage::Facts { host, facts, labels }).await?;
        }
        Ok(())
    }

    /// Starts to read the records that the hub lacks and that are no longer in memory.
    fn read_old_records(&mut self) {
        let snapshot = {
            let store = self.link.live.store();
            let oldest = store.records_since(self.link.source, 0).first().map(|placed| placed.record.n);
            let all =
                oldest.unwrap_or(u64::MAX) <= self.record + 1 || store.last_record(self.link.source) <= self.record;
            (!all).then(|| store.records(self.link.source, i64::MIN, i64::MAX)).flatten()
        };
        let Some(snapshot) = snapshot else { return };
        let (give, take) = mpsc::channel(1);
        let since = self.record;
        tokio::task::spawn_blocking(move || {
            for part in snapshot {
                let records: Vec<Record> =
                    part.iter().filter(|record| record.n > since).map(|record| (**record).clone()).collect();
                for records in records.chunks(64) {
                    if give.blocking_send(records.to_vec()).is_err() {
                        return;
                    }
                }
            }
        });
        self.old_records = Some(take);
    }

    /// Sends the records in memory that the hub lacks, as far as the credit allows.
    async fn records(&mut self) -> Result<(), UplinkEnd> {
        while self.old_records.is_none() && !self.held() {
            let placed = self.link.live.store().records_since(self.link.source, self.record);
            let mut bytes = 0;
            let fits = placed.iter().take_while(|placed| {
                let room = bytes < RECORD_BYTES;
                bytes += placed.record.size();
                room
            });
            let records: Vec<Record> = fits.map(|placed| (*placed.record).clone()).collect();
            if records.is_empty() {
                return Ok(());
            }
            self.send_records(records).await?;
        }
        Ok(())
    }

    async fn send_records(&mut self, records: Vec<Record>) -> Result<(), UplinkEnd> {
        let records: Vec<Record> = records.into_iter().filter(|record| record.n > self.record).collect();
        let mut rest = &records[..];
        while let Some(first) = rest.first() {
            let mut bytes = first.size();
            let fits = rest[1..].iter().take_while(|record| {
                bytes += record.size();
                bytes <= RECORD_BYTES
            });
            let (now, later) = rest.split_at(1 + fits.count());
            self.record = now[now.len() - 1].n;
            self.send(encode_records(now)).await?;
            self.sent = self.sent.wrapping_add(1);
            rest = later;
        }
        Ok(())
    }

    /// Starts to answer a request for missing ticks. A new request replaces the previous one.
    fn want(&mut self, want: Want) {
        let (give, parts) = mpsc::channel(1);
        let (live, source, shifts) = (self.link.live.clone(), self.link.source, self.link.shifts.clone());
        let size = self.fill_size.clone();
        let ended = tokio::task::spawn_blocking(move || {
            fill::answer(&live, source, want, &shifts, &size, &mut |part| give.blocking_send(part).is_ok())
        });
        self.link.shown.counts.fills.fetch_add(1, Relaxed);
        self.filling = Some(Filling { id: want.id, parts, ended });
    }

    /// Sends a part of an answer, or its end.
    async fn fill(&mut self, part: Option<FillPart>) -> Result<(), UplinkEnd> {
        let Some(part) = part else {
            let Some(filling) = self.filling.take() else { return Ok(()) };
            let none = Answered { state: FillState::Gone, damaged: 0 };
            let (id, Answered { state, damaged }) = (filling.id, filling.ended.await.unwrap_or(none));
            if damaged > 0 {
                self.send(encode_damage(&FillDamage { id, places: damaged })).await?;
            }
            return self.send_message(&AgentMessage::FillEnd { id, state }).await;
        };
        let bytes = encode_fill(&part);
        let (size, begin) = (bytes.len(), Instant::now());
        self.link.shown.counts.fill_bytes.fetch_add(size as u64, Relaxed);
        self.send(bytes).await?;
        // The next part has the size that a quarter of a second transfers, by the measured rate.
        let took = begin.elapsed().as_secs_f64().max(1e-4);
        let carried = (size as f64 / took / 4.0) as usize;
        let before = self.fill_size.load(Relaxed);
        self.fill_size.store(carried.clamp(LEAST_FILL_BYTES, (before * 2).min(MOST_FILL_BYTES)), Relaxed);
        Ok(())
    }

    /// Answers a question with the data of our own page.
    async fn asked(&mut self, id: u32, what: Question) -> Result<(), UplinkEnd> {
        // One question at a time: a further one gets an empty answer.
        if self.answers.is_some() {
            return self.send_message(&AgentMessage::Answer { id, bytes: Vec::new() }).await;
        }
        let (live, source, runs) = (self.link.live.clone(), self.link.source, self.link.runs.clone());
        let read = tokio::task::spawn_blocking(move || reports::answer(&live, source, &runs, what));
        self.answers = Some((id, read));
        Ok(())
    }
}

/// The version of the facts about the machine.
fn facts_of(link: &LinkParts) -> u64 {
    link.live.store().source(link.source).map_or(0, |(_, version)| version)
}

/// An initial state without values, before a tick.
fn empty(state: &TickState) -> TickState {
    let mut empty = TickState::after(state.seq() - 1, state.t());
    empty.extend(state.steps().iter().copied());
    empty
}

/// The newest tick as a frame that follows an [empty] state.
fn whole(state: &TickState) -> Vec<u8> {
    empty(state).encode_at(state.seq(), state.t(), false, state.values())
}

async fn old(records: &mut Option<mpsc::Receiver<Vec<Record>>>) -> Option<Vec<Record>> {
    match records {
        Some(records) => records.recv().await,
        None => std::future::pending().await,
    }
}

async fn part(filling: &mut Option<Filling>) -> Option<FillPart> {
    match filling {
        Some(filling) => filling.parts.recv().await,
        None => std::future::pending().await,
    }
}

async fn answer(asked: &mut Option<(u32, tokio::task::JoinHandle<Vec<u8>>)>) -> (u32, Vec<u8>) {
    match asked {
        Some((id, read)) => (*id, read.await.unwrap_or_default()),
        None => std::future::pending().await,
    }
}
