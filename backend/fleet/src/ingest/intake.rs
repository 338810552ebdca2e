//! Processes the messages of one link. It has no socket and waits for nothing but the store. The code for fetched
//! samples is in `fills.rs`.

mod fills;

use super::append::{self, LinkTick, MAX_GATHERED_BYTES};
use super::clock::AgentClock;
use super::coverage::{self, Span};
use super::end::LinkEnd;
use super::fetch::{Fetch, FillBlock};
use super::limits::{self, Cause, Refusals, Used};
use super::map::Map;
use super::names::NAME;
use super::records::{self, WaitingRecords};
use super::remarks::{self, Meeting};
use super::{Arrival, Inner};
use parking_lot::{Mutex, MutexGuard};
use shared::agent::{AgentHello, AgentMessage, FromAgent, HubMessage, Welcome, close, decode_agent};
use shared::catalog::link::CLOCK_SKEW;
use shared::catalog::{Chart, Metric};
use shared::connection_state::ConnectionState;
use shared::record::Record;
use shared::series::SeriesDef;
use shared::tick::{Applied, TickState};
use shared::wire::{Check, SourceId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::live::{LinkFigures, Live};
use stream::store::{MAX_SEQUENCE, Store};
use team::accounts::{Era, Heard};
use tokio::time::Instant;

/// Interval of the search for missing ticks, and minimum time since the last one.
const LOOK_INTERVAL: Duration = Duration::from_secs(600);
const MIN_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Ranges that another hub did not have are requested again after this time: the machine's agent may have sent them by
/// then.
const ABSENT_INTERVAL: Duration = Duration::from_secs(10);
/// Nothing is fetched before the agent's clock is known, or this time has passed.
const CLOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum transit time of a hello, milliseconds.
const FAR_MS: u64 = 10_000;
/// Maximum number of holes that are announced to readers.
const MAX_HOLES_TOLD: usize = 1_024;
/// Sequences below this come from before a life began by the clock: they may mean other ticks than the hub's.
const FIRST_BY_CLOCK: u64 = 1_000_000_000;

/// State of one link, without the socket.
pub(super) struct Intake {
    ingest: Arc<Inner>,
    pub source: SourceId,
    /// Another hub relays its own ticks over this link.
    relayed: bool,
    name: String,
    host: String,
    version: String,
    interval: i64,
    /// The agent's IDs, steps and timestamps.
    state: TickState,
    map: Map,
    used: Arc<Mutex<Used>>,
    clock: AgentClock,
    /// Row of the clock offset, with its version.
    skew_row: Option<(u16, u64)>,
    /// A new era that must be stored.
    pub era: Option<Era>,
    erased: Vec<Span>,
    refusals: Arc<Refusals>,
    /// Number of messages with ticks or records since the welcome.
    pub messages: u32,
    /// Everything up to these is in the log.
    logged: (u64, u64),
    fetch: Fetch,
    /// First sequence of the agent's life.
    life: u64,
    /// The agent's report about its collectors, and our own remarks about the machine.
    told: Vec<Check>,
    remarks: Vec<Check>,
    meeting: Meeting,
    /// Records that arrived before its clock was known.
    waiting: WaitingRecords,
    /// Ticks of the current message, which are not appended yet.
    ticks: Vec<LinkTick>,
    /// According to its hello, the agent's clock has changed: timestamps have no meaning before it is measured.
    is_off: bool,
    /// A keyframe has arrived, and no tick since.
    is_keyed: bool,
    /// The tick before was dropped, and must be fetched.
    left_out: bool,
    /// Whether a tick has arrived over this link,
    ticked: bool,
    /// and the delay of the newest one after its timestamp, milliseconds.
    behind: Option<u64>,
    began: Duration,
    /// Time of the last search for missing ticks; None if a new one is due.
    looked: Option<Duration>,
    /// Number of known damages at that time.
    damages: u64,
    /// Pages show that it is being filled.
    filling: bool,
    /// The last tick of the newest block, and the shift of its timestamps.
    shifted: Option<(u64, i64)>,
    /// Time range of late samples since the last announcement to readers.
    refilled: Option<(i64, i64)>,
}

/// Stored state of a source.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Clock corrections, by sequence.
    pub eras: Vec<Era>,
    /// Removed ticks, which must not come back.
    pub erased: Vec<Span>,
}

/// Result of a message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Taken {
    /// Message to send.
    pub answer: Option<HubMessage>,
    /// The message must be acknowledged after this time.
    pub credit: Option<Duration>,
    /// The link must not read for this time.
    pub hold: Duration,
    /// Ticks to append.
    pub ticks: Vec<LinkTick>,
    /// Block to check, and then to pass to [`filled`](Intake::filled).
    pub block: Option<FillBlock>,
    /// An answer to a request has ended.
    pub fetched: bool,
    /// The agent's answer to the question of this number.
    pub told: Option<(u32, Vec<u8>)>,
}

impl Intake {
    /// Creates the intake from an agent's hello, and the welcome.
    ///
    /// # Errors
    /// The source exceeds a limit.
    pub fn begin(
        ingest: Arc<Inner>,
        arrival: &Arrival,
        mut hello: AgentHello,
        past: Past,
    ) -> Result<(Self, HubMessage), LinkEnd> {
        let unplaced = ingest.refusals(None);
        limits::check(&mut hello, &unplaced).map_err(|why| {
            unplaced.add(Cause::Link, 1);
            LinkEnd::frame_error(why)
        })?;
        let live = ingest.live.clone();
        let facts = facts(&arrival.name, &hello.host, std::mem::take(&mut hello.facts));
        let (source, holds, record) =
            place(&live, &arrival.source, hello.interval, facts).inspect_err(|_| unplaced.add(Cause::Link, 1))?;
        let welcome = HubMessage::Welcome(Welcome {
            version: env!("CARGO_PKG_VERSION").into(),
            name: arrival.name.clone(),
            now: live.clock.wall(),
            holds,
            record,
            spread: spread(ingest.presence.links()),
            max_series: ingest.limits.series,
            max_rows: ingest.limits.rows,
        });
        let steady = live.clock.steady();
        let mut offers = hello.offers;
        offers.retain(|offer| holds == 0 || offer.first >= FIRST_BY_CLOCK.min(hello.life));
        let newest = live.store().state(source).map_or(0, TickState::t);
        let meeting = Meeting { had: (holds, newest), started: hello.started, oldest: offers.first().copied() };
        let clock = AgentClock::new(past.eras);
        let ahead = hello.now.saturating_add(clock.shift()).saturating_sub(live.clock.wall());
        let intake = Intake {
            source,
            relayed: arrival.relayed,
            name: arrival.name.clone(),
            host: hello.host,
            version: hello.version,
            interval: hello.interval,
            state: TickState::default(),
            map: Map::new(source, ingest.limits),
            used: ingest.used(source),
            clock,
            skew_row: None,
            era: None,
            erased: past.erased,
            refusals: ingest.refusals(Some(source)),
            messages: 0,
            logged: (holds, record),
            fetch: Fetch::new(offers),
            life: hello.life,
            told: Vec::new(),
            remarks: Vec::new(),
            meeting,
            waiting: WaitingRecords::default(),
            ticks: Vec::new(),
            is_off: ahead.unsigned_abs() > FAR_MS && !arrival.relayed,
            is_keyed: false,
            left_out: false,
            ticked: false,
            behind: None,
            began: steady,
            looked: None,
            damages: 0,
            filling: false,
            shifted: None,
            refilled: None,
            ingest,
        };
        let called = (arrival.name.as_str(), arrival.labels.as_slice());
        // Labels and state of a relayed machine come from the hub that holds it.
        if !intake.relayed {
            intake.ingest.names.met(&intake.ingest.live, source, called, hello.labels);
        }
        Ok((intake, welcome))
    }

    /// Processes a message.
    ///
    /// # Errors
    /// The link must end.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Taken, LinkEnd> {
        self.ingest.totals.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.ingest.live.source(self.source).taken.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let message = decode_agent(bytes).map_err(|error| LinkEnd::frame_error(error.to_string()))?;
        let now = self.ingest.live.clock.steady();
        let ticks = match message {
            FromAgent::Ticks(frames) => {
                let mut ticks = 0;
                for frame in frames {
                    let frame = frame.map_err(|error| LinkEnd::frame_error(error.to_string()))?;
                    ticks += u64::from(self.frame(frame)?);
                }
                ticks
            }
            FromAgent::Records(records) => {
                self.records(records);
                0
            }
            FromAgent::Control(message) => {
                let taken = self.control(message)?;
                return Ok(Taken { hold: self.count_bytes(bytes.len()), ..taken });
            }
            FromAgent::Fill(part) => {
                let block = self.fetch.part(part, bytes.len()).map_err(|_| self.unasked())?;
                self.ingest.totals.fill_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                self.ingest.turns.came(bytes.len(), Instant::now());
                return Ok(Taken { block, ..Taken::default() });
            }
            FromAgent::Damage(damage) => {
                self.fetch.is_open_as(damage.id).then_some(()).ok_or_else(|| self.unasked())?;
                self.refusals.add(Cause::Damaged, u64::from(damage.places));
                return Ok(Taken { hold: self.count_bytes(bytes.len()), ..Taken::default() });
            }
            FromAgent::Unknown => return Ok(Taken { hold: self.count_bytes(bytes.len()), ..Taken::default() }),
        };
        self.messages += 1;
        let wait = self.used().pace.message(ticks, bytes.len(), now);
        self.refusals.add(Cause::Pace, u64::from(!wait.is_zero()));
        Ok(Taken { credit: Some(wait), ticks: std::mem::take(&mut self.ticks), ..Taken::default() })
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock()
    }

    /// Counts received bytes without an acknowledgment; returns the time for which the link must not read.
    pub fn count_bytes(&self, bytes: usize) -> Duration {
        let wait = self.used().pace.count_bytes(bytes, self.ingest.live.clock.steady());
        self.refusals.add(Cause::Pace, u64::from(!wait.is_zero()));
        wait
    }

    /// Counts that the link was ended for its content.
    pub fn ended(&self) {
        self.refusals.add(Cause::Ended, 1);
    }

    fn unasked(&self) -> LinkEnd {
        self.refusals.add(Cause::Fill, 1);
        LinkEnd::frame_error("the agent sent ticks that were not requested")
    }

    fn control(&mut self, message: AgentMessage) -> Result<Taken, LinkEnd> {
        let live = self.ingest.live.clone();
        match message {
            AgentMessage::Hello(_) => return Err(LinkEnd::frame_error("the agent sent two hellos")),
            AgentMessage::Rows { rows, charts } => {
                let used = self.used.clone();
                let brought = &mut used.lock().rows;
                let told = (rows, charts);
                self.map.rows(&mut live.store(), &self.ingest.vocabulary, told, brought, &self.refusals)?;
            }
            AgentMessage::Series { defs } => self.map.series(defs, &mut self.state, &self.refusals)?,
            AgentMessage::Checks(mut checks) => {
                checks.truncate(limits::MAX_CHECKS);
                checks.retain(|check| {
                    let sound = limits::is_check(check);
                    self.refusals.add(Cause::Text, u64::from(!sound));
                    sound
                });
                self.told = checks;
                self.remark(true);
            }
            AgentMessage::Facts { host, facts: told, labels } => {
                if limits::is_fact(&host) {
                    self.host = host;
                }
                let told = limits::facts(told, &self.refusals);
                let called = || self.ingest.names.name(self.source);
                let name = if self.relayed { self.name.clone() } else { called() };
                live.store().renew(self.source, self.interval, facts(&name, &self.host, told));
                if !self.relayed {
                    self.ingest.names.set_labels(&live, self.source, limits::labels(labels, &self.refusals));
                }
            }
            AgentMessage::Clock { id, sent, arrived } => {
                let now = live.clock.wall();
                // Timestamps of a relaying hub are already corrected.
                if !self.relayed {
                    self.clock.asked(id, sent, arrived, (now, now));
                    let era = self.clock.part(self.state.seq(), self.interval);
                    self.begin_era(era);
                }
                let answer = HubMessage::Clock { id, sent, received: now, answered: now };
                return Ok(Taken { answer: Some(answer), ..Taken::default() });
            }
            AgentMessage::Answer { id, bytes } => return Ok(Taken { told: Some((id, bytes)), ..Taken::default() }),
            AgentMessage::Heartbeat => {}
            AgentMessage::FillEnd { id, state } => {
                self.fetch.end(id, state).map_err(|_| self.unasked())?;
                self.ingest.totals.fills.fetch_add(1, Ordering::Relaxed);
                if let Some((from, to)) = self.refilled.take() {
                    live.refilled(self.source, from, to);
                }
                self.find_missing();
                return Ok(Taken { fetched: true, ..Taken::default() });
            }
            AgentMessage::Bye(reason) => return Err(LinkEnd::Bye(reason)),
        }
        Ok(Taken::default())
    }

    /// Begins a new era of the agent's clock.
    fn begin_era(&mut self, era: Option<Era>) {
        if let Some(era) = era {
            tracing::info!(
                machine = self.name,
                shift_ms = era.shift_ms,
                "the clock of the machine is wrong: its timestamps jump"
            );
            self.era = Some(era);
        }
    }

    fn knows_clock(&self) -> bool {
        self.relayed
            || self.clock.is_known()
            || self.ingest.live.clock.steady().saturating_sub(self.began) >= CLOCK_TIMEOUT
    }

    fn records(&mut self, new: Vec<Record>) {
        let records = self.waiting.take(new, self.knows_clock());
        records::keep(&self.ingest, self.source, self.clock.shift(), records, &self.refusals);
    }

    /// Shows the remarks about the machine if they have changed.
    fn remark(&mut self, is_new: bool) {
        let lost = remarks::lost(&self.name, &self.meeting, self.clock.shift()).filter(|_| self.knows_clock());
        let limited = remarks::limited(&self.refusals.all());
        let damaged = remarks::damaged(&self.name, self.refusals.count_of(Cause::Damaged));
        let all = remarks::clock(self.clock.shift()).into_iter().chain(lost).chain(limited).chain(damaged);
        // For a relayed machine, the hub that holds it adds the remarks.
        let remarks: Vec<Check> = all.filter(|_| !self.relayed).collect();
        if is_new || remarks != self.remarks {
            let all = [&self.told[..], &remarks].concat();
            self.remarks = remarks;
            self.ingest.live.store().set_checks(self.source, all);
        }
    }

    /// The current shift of the agent's timestamps, milliseconds.
    pub fn shift(&self) -> i64 {
        self.clock.shift()
    }

    /// The agent's report about its machine.
    pub fn report(&self) -> Heard {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Heard { host: text(&self.host), version: text(&self.version), ..Heard::default() }
    }

    /// Processes a frame; true if it is a tick.
    fn frame(&mut self, frame: &[u8]) -> Result<bool, LinkEnd> {
        let before = (self.state.seq(), self.state.t());
        let (clock_step, skipped) = match self.state.apply(frame)? {
            Applied::Tick { clock_step, skipped } => (clock_step, skipped),
            Applied::Keyframe => {
                (self.looked, self.is_keyed) = (None, true);
                return Ok(false);
            }
        };
        let (seq, t) = (self.state.seq(), self.state.t());
        if seq > MAX_SEQUENCE {
            return Err(LinkEnd::frame_error("the number of the tick is too high"));
        }
        if skipped > 0 || std::mem::take(&mut self.left_out) {
            self.looked = None;
        }
        // An agent of version 0.1.0 or earlier that has just started sends the last tick of its earlier life first.
        // Only its disk has the values of that tick, so it is skipped here and fetched with the missing ones.
        if std::mem::take(&mut self.is_keyed) && !self.state.values().iter().any(|value| value.is_finite()) {
            self.left_out = true;
            return Ok(true);
        }
        self.ticked = true;
        if clock_step && !self.relayed {
            let passed = (seq - before.0) as i64;
            let by = t.saturating_sub(before.1).saturating_sub(passed.saturating_mul(self.interval));
            let era = self.clock.stepped(seq, by, self.interval);
            self.begin_era(era);
        }
        let live = &self.ingest.live;
        let (now, steady) = (live.clock.wall(), live.clock.steady());
        if self.is_off {
            // The offset will be known soon. Ticks until then are fetched later.
            if !self.knows_clock() {
                return Ok(true);
            }
            (self.is_off, self.looked) = (false, None);
        }
        let t = t.saturating_add(self.clock.shift());
        self.behind = u64::try_from(now.saturating_sub(t)).ok();
        let values = {
            let mut store = live.store();
            let newest = store.state(self.source).map_or(u64::MAX, TickState::seq);
            if seq <= self.ticks.last().map_or(newest, |tick| tick.seq.max(newest)) {
                self.ingest.totals.duplicates.fetch_add(1, Ordering::Relaxed);
                return Ok(true);
            }
            if !limits::is_time(t, now, store.retention(self.source)) {
                self.refusals.add(Cause::Time, 1);
                return Ok(true);
            }
            let pace = &mut self.used.lock().pace;
            let mut values = self.map.values(&mut store, self.state.values(), pace, steady, &self.refusals);
            if let Some(skew) = self.clock.skew() {
                put_skew(&mut store, self.source, &mut self.skew_row, skew.skew_ms, &mut values);
            }
            values
        };
        self.ticks.push(LinkTick { seq, t, clock_step, values });
        let held: usize = self.ticks.iter().map(|tick| size_of_val(&tick.values[..])).sum();
        if held > MAX_GATHERED_BYTES {
            append::append_alone(&self.ingest, self.source, &std::mem::take(&mut self.ticks));
        }
        Ok(true)
    }

    /// Runs the periodic work, once per second.
    ///
    /// # Errors
    /// The link must end: the requested data arrives too slowly.
    pub fn upkeep(&mut self) -> Result<(), LinkEnd> {
        let now = self.ingest.live.clock.steady();
        if self.fetch.is_slow(now) {
            self.refusals.add(Cause::Fill, 1);
            return Err(LinkEnd::frame_error("the requested ticks arrive slower than 1 KiB a second"));
        }
        let again = self.relayed && !self.fetch.absent.is_empty();
        let interval = if again { ABSENT_INTERVAL } else { LOOK_INTERVAL };
        let due = self.looked.is_none_or(|looked| {
            let damaged = self.ingest.live.store().damages().count() != self.damages;
            now.saturating_sub(looked) >= if damaged { MIN_LOOK_INTERVAL } else { interval }
        });
        if self.ticked && due {
            if again {
                self.fetch.absent.clear();
            }
            self.find_missing();
        }
        let missing = coverage::missing(&self.fetch.holes, self.interval);
        let rate = self.fetch.rate(now);
        // The tick in transit is not missing.
        let filling = missing > 2 * self.interval || self.fetch.is_open();
        if filling || self.filling {
            let connection_state =
                if filling { ConnectionState::Filling { missing, rate } } else { ConnectionState::Live };
            if !self.relayed {
                self.ingest.live.set_connection_state(self.source, connection_state);
            }
            self.filling = filling;
        }
        self.records(Vec::new());
        self.remark(false);
        self.note();
        if self.relayed && self.looked.is_some() {
            self.ingest.live.set_brought(self.source, true);
        }
        Ok(())
    }

    /// Whether a reader waits for data of another hub.
    pub fn is_awaited(&self) -> bool {
        self.relayed && (self.looked.is_none() || !self.fetch.holes.is_empty())
    }

    /// Acknowledgment of everything processed so far.
    pub fn acknowledgement(&mut self) -> HubMessage {
        let live = &self.ingest.live;
        if live.is_logged() {
            let store = live.store();
            self.logged = (store.state(self.source).map_or(0, TickState::seq), store.last_record(self.source));
        }
        HubMessage::Ack { messages: self.messages, seq: self.logged.0, record: self.logged.1 }
    }

    /// Publishes the state of the link for the API.
    pub fn note(&self) {
        let live = &self.ingest.live;
        let holes = self.fetch.holes.iter().map(|hole| (hole.from, hole.to)).take(MAX_HOLES_TOLD).collect();
        if self.relayed {
            let known = live.source(self.source).figures();
            return live.set_link_figures(self.source, LinkFigures { holes, ..known });
        }
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        live.set_link_figures(
            self.source,
            LinkFigures {
                behind_ms: self.behind,
                skew_ms: self.clock.skew().map(|measured| measured.skew_ms),
                version: text(&self.version),
                host: text(&self.host),
                refused: self.refusals.all(),
                holes,
            },
        );
    }
}

/// Adds the clock offset of a source, in milliseconds, to the values of a tick. Its row is looked up again if the
/// version has changed.
fn put_skew(store: &mut Store, source: SourceId, known: &mut Option<(u16, u64)>, skew_ms: i64, values: &mut Vec<f64>) {
    let row = &CLOCK_SKEW;
    let metric = known.filter(|(metric, version)| store.row_version(*metric) == *version).or_else(|| {
        let chart = Chart { id: row.chart.into(), title: row.title.into(), section: "system".into() };
        let metric = store.add_row_of(Some(source), Metric::from(row), chart)?;
        Some((metric, store.row_version(metric)))
    });
    *known = metric;
    let id = metric.and_then(|(metric, _)| store.intern(source, SeriesDef { metric, instance: String::new() }));
    let Some(id) = id.map(|id| id as usize) else { return };
    values.resize(values.len().max(id + 1), f64::NAN);
    values[id] = skew_ms as f64 / 1_000.0;
}

/// The source of an agent, created if it is new; with the numbers of its last tick and of its last record.
fn place(
    live: &Live,
    source: &str,
    interval: i64,
    facts: Vec<(String, String)>,
) -> Result<(SourceId, u64, u64), LinkEnd> {
    let mut store = live.store();
    let source = match store.named(source) {
        Some(source) => {
            store.renew(source, interval, facts);
            source
        }
        None if store.sources().len() >= limits::MAX_SOURCES => {
            return Err(LinkEnd::from_close(close::LIMIT, "the limit of machines on this hub is reached; remove some"));
        }
        None => store.add_source(source.to_owned(), interval, facts),
    };
    Ok((source, store.state(source).map_or(0, TickState::seq), store.last_record(source)))
}

/// Facts of a machine for the page: its name here, its host name, and those that it reports.
fn facts(name: &str, host: &str, told: Vec<(String, String)>) -> Vec<(String, String)> {
    const HOST: &str = "host.name";
    let own = [(NAME, name), (HOST, host)].into_iter().filter(|(_, value)| !value.is_empty());
    let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
    own.chain(told.into_iter().filter(|(key, _)| key != NAME && key != HOST)).collect()
}

/// Time over which agents spread their ticks, milliseconds, for this number of links.
fn spread(links: usize) -> u32 {
    if links < 200 { 0 } else { (links as u32 / 4).min(250) }
}
