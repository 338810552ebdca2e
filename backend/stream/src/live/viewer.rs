//! Messages to one page that follows the stream.
//!
//! There is no queue: when the page is ready for more, the viewer takes the frames after its position from the store. A
//! slow page gets several at once. A page whose position is no longer in memory gets a resync. So a sleeping page costs
//! only its viewer.

use super::hidden::{HiddenSeries, ShownTicks};
use super::minutes::Stretches;
use super::named::{KnownTable, MAX_ROWS, Named};
use super::outgoing::BlockPart;
use super::{KnownIndex, Live, Outgoing, Overview, OverviewPlace, Wakes};
use crate::names;
use crate::store::{Block, Cursor, Frame, News, Placed};
use bytes::Bytes;
use shared::catalog::{Catalog, Layout};
use shared::record::Record;
use shared::scope::{Bounds, Scope};
use shared::series::SeriesId;
use shared::wire::{
    self, CREDIT, Hello, IndexEntry, MAX_MESSAGE, MAX_OPENED, PROTOCOL, PageMessage, Resume, ServerMessage, SourceId,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Number of newest ticks sent before all earlier history, so that rates and ages are known at once.
const FIRST_TICKS: usize = 10;

/// Maximum number of entries of the index in one message: their texts together are far below [`MAX_MESSAGE`].
const MAX_LINES: usize = 1_000;

/// A source that a page follows.
struct Followed {
    cursor: Cursor,
    /// The version of its checks that was sent,
    checks: u64,
    /// that of its facts,
    facts: u64,
    /// and the number of the last span of late samples that was sent.
    refills: u64,
    /// State of the page's own frames if some series are hidden; none: nothing is hidden, and the frames are the shared
    /// ones.
    shown: Option<Box<ShownTicks>>,
}

/// Messages of one page: those sent, and those to be sent.
pub struct Viewer {
    live: Arc<Live>,
    scope: Scope,
    accounts: bool,
    bounds: Bounds,
    opened: bool,
    /// Empty before the page has opened the stream, and if it follows no source.
    followed: Vec<Followed>,
    /// Overviews that the page follows.
    overviews: Vec<(Arc<Overview>, OverviewPlace)>,
    /// A new overview that the caller has yet to update at each beat.
    begun: Option<Arc<Overview>>,
    /// Next position in turn among sources and overviews.
    turn: usize,
    /// Messages to send: those of the opening, or one message of ticks.
    waiting: VecDeque<Outgoing>,
    /// History to send: its blocks are read in turn, the newest first. It takes long over a slow connection, so new
    /// ticks go before the next message of it.
    behind: VecDeque<Outgoing>,
    sent: u32,
    acknowledged: u32,
    window: i64,
    table: KnownTable,
    index: KnownIndex,
}

impl Viewer {
    /// A viewer that is not opened yet; sources outside the scope do not exist for it.
    pub fn new(live: Arc<Live>, scope: Scope) -> Self {
        Viewer {
            live,
            scope,
            accounts: false,
            bounds: Bounds::All,
            opened: false,
            followed: Vec::new(),
            overviews: Vec::new(),
            begun: None,
            turn: 0,
            waiting: VecDeque::new(),
            behind: VecDeque::new(),
            sent: 0,
            acknowledged: 0,
            window: 0,
            table: KnownTable::default(),
            index: KnownIndex::default(),
        }
    }

    /// Extends the scope of the page. Returns the overviews to be [updated](Overview::beat) from now on.
    pub fn widen(&mut self, scope: Scope) -> Vec<Arc<Overview>> {
        // Sources that existed before and were hidden are new, too: all entries are sent again.
        (self.scope, self.index) = (scope, KnownIndex::default());
        let mut begun = Vec::new();
        for (overview, place) in &mut self.overviews {
            let (wider, new) = self.live.overview(overview.grain(), &self.scope);
            (*overview, *place) = (wider.clone(), OverviewPlace::default());
            begun.extend(new.then_some(wider));
        }
        begun
    }

    /// The scope of the page.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Sets whether the page learns that there are accounts, which it then requests.
    pub fn with_accounts(mut self, accounts: bool) -> Self {
        self.accounts = accounts;
        self
    }

    /// Restricts the page to these times, as a share link does.
    pub fn within(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The part of a span that may be shown; empty if there is none.
    fn shown(&self, from: i64, to: i64) -> (i64, i64) {
        self.bounds.within(self.live.clock.wall(), from, to).unwrap_or((1, 0))
    }

    /// The sources that the page follows; none before it has opened the stream.
    pub fn sources(&self) -> Vec<SourceId> {
        self.followed.iter().map(|followed| followed.cursor.source()).collect()
    }

    /// The notifications that the page waits for; before it follows a source, those of any source.
    pub fn wakes(&self) -> Wakes {
        let sources = self.sources();
        match &self.overviews[..] {
            [] => self.live.subscribe(&sources),
            some => {
                let sources = sources.iter().map(|source| self.live.source(*source).subscribe());
                Wakes::new(sources.chain(some.iter().map(|(overview, _)| overview.subscribe())).collect())
            }
        }
    }

    /// A new overview that the page requested as its first reader: the caller [updates](Overview::beat) it from now on.
    pub fn begun(&mut self) -> Option<Arc<Overview>> {
        self.begun.take()
    }

    /// Handles a message of the page.
    ///
    /// # Errors
    /// One sentence for the person at the page; the connection then ends.
    pub fn receive(&mut self, message: PageMessage) -> Result<(), String> {
        match message {
            PageMessage::Open { protocol, .. } if protocol != PROTOCOL => {
                Err("the page has another version than the server; reload it".into())
            }
            PageMessage::Open { .. } if self.opened => Err("the stream is open already".into()),
            PageMessage::Open { sources, .. } if sources.len() > MAX_OPENED => {
                Err(format!("a page can open at most {MAX_OPENED} machines"))
            }
            PageMessage::Open { window, resume, sources, .. } => {
                self.opened = true;
                let most = if let Bounds::Window(length) = self.bounds { length } else { i64::MAX };
                self.window = window.clamp(0, self.live.retention.min(most));
                // The series hidden before the reconnect are not known any more.
                let resume = resume.filter(|resume| resume.boot == self.live.boot && !self.scope.hides_any());
                let help = self.greet(&sources, resume.as_ref().map(|resume| resume.rows));
                self.follow(&sources, resume);
                self.waiting.extend(help);
                Ok(())
            }
            PageMessage::Overview { .. } if !self.opened => Err("a page must open the stream first".into()),
            PageMessage::Overview { grain, on } => {
                self.overviews.retain(|(overview, _)| overview.grain() != grain);
                // An overview shows the present, not the span.
                if on && !matches!(self.bounds, Bounds::Span(..)) {
                    let (overview, new) = self.live.overview(grain, &self.scope);
                    self.begun = new.then(|| overview.clone());
                    self.overviews.push((overview, OverviewPlace::default()));
                }
                Ok(())
            }
            PageMessage::History { source, from, to } => {
                // One request at a time: its answer is bounded by the retention.
                if self.sends_history() {
                    return Ok(());
                }
                self.send_span(source, from, to);
                Ok(())
            }
            PageMessage::Minutes { source, from, to } => {
                if self.sends_history() {
                    return Ok(());
                }
                let seen = self.sees(source);
                // A fixed span is short enough to send its samples.
                let seen = seen && !matches!(self.bounds, Bounds::Span(..));
                let within = self.shown(from, to);
                let stretches = seen.then(|| Stretches::new(&self.live.store(), source, within.0, within.1)).flatten();
                let hidden = self.hidden(source);
                self.behind.extend(stretches.map(|all| Outgoing::Minutes(Box::new(all.without(hidden)))));
                let end = wire::encode(&ServerMessage::MinutesEnd { source, from, to });
                self.behind.push_back(Outgoing::Message(end.into()));
                Ok(())
            }
            PageMessage::Ack { messages } => {
                if messages > self.sent {
                    return Err("the page acknowledged data that was not sent".into());
                }
                self.acknowledged = self.acknowledged.max(messages);
                Ok(())
            }
            // The connection answers these itself: the viewer follows nothing of them.
            PageMessage::Processes { .. } | PageMessage::Past { .. } | PageMessage::Runs => Ok(()),
        }
    }

    /// The series of a source that are hidden from the page.
    fn hidden(&self, source: SourceId) -> HiddenSeries {
        HiddenSeries::from_scope(&self.live.store(), source, &self.scope)
    }

    /// Follows these machines. A page of a fleet follows few at a time: the others cost nothing.
    fn follow(&mut self, texts: &[String], resume: Option<Resume>) {
        let mut sources = self.live.store().sources();
        sources.retain(|source| self.scope.sees(&source.key));
        for text in texts {
            let shown = sources.iter().find(|source| source.is_called(text)).or(sources.first());
            let Some(shown) = shown.map(|shown| shown.id) else { return };
            if self.followed.iter().any(|followed| followed.cursor.source() == shown) {
                continue;
            }
            if let Bounds::Span(from, _) = self.bounds {
                self.show_span(shown, from);
                continue;
            }
            let place = resume.as_ref().and_then(|resume| resume.places.iter().find(|(id, ..)| *id == shown));
            let cursor = match place {
                Some((_, seq, known)) => Cursor::resumed(shown, *seq, *known as usize),
                None => Cursor::new(shown),
            };
            let refills = self.live.refills(shown, u64::MAX).1;
            let shown = self.scope.hides_any().then(Box::default);
            let cursor = if shown.is_some() { cursor.with_state() } else { cursor };
            self.followed.push(Followed { cursor, checks: u64::MAX, facts: 0, refills, shown });
            if place.is_none() {
                self.begin(self.followed.len() - 1);
            }
        }
    }

    /// Longest retention of the machines that a page shows, milliseconds; if it shows none, the longest of all.
    fn retention(&self, shown: &[String]) -> i64 {
        let store = self.live.store();
        let all = store.sources();
        let sees = |text: &String| all.iter().find(|source| self.scope.sees(&source.key) && source.is_called(text));
        let longest = shown.iter().filter_map(sees).map(|source| store.retention(source.id)).max();
        longest.unwrap_or(self.live.retention).min(self.live.retention)
    }

    /// Queues the first messages to a page, with the table and the index of sources, unless the page resumes and knows
    /// this number of `rows`. Returns the message to send after the newest ticks.
    fn greet(&mut self, shown: &[String], rows: Option<u32>) -> Option<Outgoing> {
        let retention = self.retention(shown);
        self.queue_message(&ServerMessage::Hello(Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            boot: self.live.boot,
            now: self.live.clock.wall(),
            retention,
            simulated: self.live.provenance.simulated,
            recorded: self.live.provenance.recorded.clone(),
            accounts: self.accounts,
        }));
        let (catalog, fixed, version) = {
            let store = self.live.store();
            (store.catalog().clone(), store.fixed_rows(), store.replaced_rows(0).1)
        };
        let mut help = None;
        if let Some(rows) = rows {
            self.table.rows = rows as usize;
        } else {
            let (mut metrics, charts) = catalog.part(0, MAX_ROWS.min(fixed), |_| true);
            // Two thirds of it are help texts, which nobody reads in the first second, so it is sent after the newest
            // ticks. It is sent before the history ends, so a page that resumes has it already.
            let whole = ServerMessage::Rows { first: 0, metrics: metrics.clone(), charts: Vec::new() };
            help = Some(Outgoing::Message(wire::encode(&whole).into()));
            metrics.iter_mut().for_each(|metric| metric.help.clear());
            self.table = KnownTable { rows: metrics.len(), version, ..KnownTable::default() };
            let layout = Layout { charts, ..catalog.layout.clone() };
            self.queue_message(&ServerMessage::Catalog(Catalog { metrics, layout }));
        }
        self.live.find_late();
        let mut all = self.live.index(&self.scope, &mut self.index);
        let rest = all.split_off(all.len().min(MAX_LINES));
        self.queue_message(&ServerMessage::Sources(all));
        self.say_changed(&rest);
        help
    }

    /// Whether a source exists for the page.
    fn sees(&self, source: SourceId) -> bool {
        self.live.store().source(source).is_some_and(|(info, _)| self.scope.sees(&info.key))
    }

    fn say_changed(&mut self, lines: &[IndexEntry]) {
        lines.chunks(MAX_LINES).for_each(|some| self.queue_message(&ServerMessage::Changed(some.to_vec())));
    }

    /// Whether requested history is still to be sent.
    fn sends_history(&self) -> bool {
        self.waiting.iter().chain(&self.behind).any(|next| !matches!(next, Outgoing::Message(_)))
    }

    fn queue_message(&mut self, message: &ServerMessage) {
        self.waiting.push_back(Outgoing::Message(wire::encode(message).into()));
    }

    /// Queues these blocks of a span, the newest first. The span that is complete by then is sent after the first block,
    /// the second, the fourth and so on: the page begins its lines again at each. Late samples reach the page when their
    /// hour is merged.
    fn queue_history(&mut self, source: SourceId, mut blocks: Vec<Block>, (from, to): (i64, i64)) {
        let damages = self.live.store().damages().clone();
        let hidden = self.hidden(source);
        let within = match self.bounds {
            Bounds::All => None,
            _ => Some(self.shown(i64::MIN, i64::MAX)),
        };
        let end =
            |from, more| Outgoing::Message(wire::encode(&ServerMessage::HistoryEnd { source, from, to, more }).into());
        blocks.retain(|block| !block.late());
        let all = blocks.len();
        for (left, block) in blocks.into_iter().enumerate().rev() {
            let begins = block.from().max(from);
            let part = BlockPart::new(source, block, damages.clone()).within(within).without(hidden.clone());
            self.behind.push_back(Outgoing::Block(part));
            self.behind.extend((left > 0 && (all - left).is_power_of_two()).then(|| end(begins, true)));
        }
        self.behind.push_back(end(from, false));
    }

    /// Queues the visible samples of a span. Unsealed ticks follow one by one, except for a fixed span, which has no
    /// later ticks.
    fn send_span(&mut self, source: SourceId, from: i64, to: i64) {
        let shown = self.shown(from, to);
        let seen = shown.0 <= shown.1 && self.sees(source);
        let snapshot = if seen { self.live.store().snapshot(source, shown.0, shown.1) } else { None };
        let fixed = matches!(self.bounds, Bounds::Span(..));
        let blocks = match snapshot {
            Some(snapshot) if fixed => snapshot.blocks_of(&(0..=u64::MAX)),
            Some(snapshot) => snapshot.blocks().to_vec(),
            None => Vec::new(),
        };
        self.queue_history(source, blocks, (from, to));
    }

    /// Sends a fixed span of a source, and no ticks after it.
    fn show_span(&mut self, source: SourceId, from: i64) {
        let (named, facts) = {
            let store = self.live.store();
            let ids: Vec<SeriesId> = (0..).take(store.series(source, 0).len()).collect();
            let facts = store.source(source).map(|(info, _)| info.facts.clone());
            (Named::from_ids(&store, source, &ids, self.table.version), facts)
        };
        self.announce_series(source, named);
        self.queue_message(&ServerMessage::Facts { source, facts: facts.unwrap_or_default() });
        self.send_span(source, from, i64::MAX);
    }

    /// Sends the series, a keyframe followed by the newest ticks, then the sealed blocks of the window and all unsealed
    /// ticks.
    fn begin(&mut self, at: usize) {
        let from = self.live.clock.wall() - self.window;
        let Some(Followed { cursor, shown, .. }) = self.followed.get_mut(at) else { return };
        let source = cursor.source();
        let (opening, named, hidden, frames, records) = {
            let store = self.live.store();
            let Some((opening, series)) = cursor.begin_now(&store, from, FIRST_TICKS) else { return };
            // Under the same lock: a redefinition of a series after it must not be sent before these.
            let News::Ticks(frames, _) = cursor.news(&store) else { return };
            let named = Named::from_ids(&store, source, &series, self.table.version);
            (opening, named, HiddenSeries::from_scope(&store, source, &self.scope), frames, cursor.records(&store))
        };
        let (mut keyframe, blocks) = opening.read(cursor);
        if let Some(shown) = shown {
            keyframe = shown.begin(cursor, hidden);
        }
        self.announce_series(source, named);
        self.announce_about(at);
        let keyframe = wire::encode_ticks(source, [&keyframe[..]]);
        self.waiting.push_back(Outgoing::Message(keyframe.into()));
        self.sent += 1;
        self.send_ticks(at, frames, &records);
        self.queue_history(source, blocks, (from, i64::MAX));
    }

    /// Sends rows that the page does not know, then the series that use them.
    fn announce_series(&mut self, source: SourceId, named: Named) {
        let (hidden, mut table) = (self.hidden(source), std::mem::take(&mut self.table));
        named.without(&hidden).messages(source, &mut table, |message| self.queue_message(&message));
        self.table = table;
    }

    /// Sends the facts of a source, the state of its collectors, and spans of late samples, if they have changed.
    fn announce_about(&mut self, at: usize) {
        let Some(followed) = self.followed.get_mut(at) else { return };
        let source = followed.cursor.source();
        let ((checks, version), facts) = {
            let store = self.live.store();
            let info = store.source(source).filter(|(_, facts)| *facts != followed.facts);
            (store.checks(source), info.map(|(info, facts)| (info.clone(), facts)))
        };
        let known = std::mem::replace(&mut followed.checks, version);
        let (spans, newest) = self.live.refills(source, followed.refills);
        followed.refills = newest;
        if let Some((info, facts)) = facts {
            followed.facts = facts;
            self.queue_message(&ServerMessage::Facts { source, facts: info.facts.clone() });
        }
        // Checks contain paths, addresses and names of users of a machine, so a share link gets none of them.
        if known != version && self.bounds == Bounds::All {
            let checks = if self.hides_names(source) { names::hide_in_checks(&checks) } else { checks.to_vec() };
            self.queue_message(&ServerMessage::Checks { source, checks });
        }
        for (from, to) in spans {
            self.queue_message(&ServerMessage::Refilled { source, from, to });
        }
    }

    /// Sends entries of the index that the page does not know.
    fn announce_index(&mut self) {
        self.live.find_late();
        let new = self.live.index(&self.scope, &mut self.index);
        self.say_changed(&new);
    }

    fn streams(&self) -> usize {
        self.followed.len() + self.overviews.len()
    }

    /// Whether the page has used up its credit.
    pub fn held(&self) -> bool {
        self.sent - self.acknowledged >= CREDIT * self.streams().max(1) as u32
    }

    /// The next message to send; none until the next notification or acknowledgment.
    pub fn next_message(&mut self) -> Option<Outgoing> {
        if self.waiting.is_empty() {
            match self.held() {
                true if self.behind.is_empty() => {
                    self.live.counts.held_back.fetch_add(1, Ordering::Relaxed);
                }
                true => {}
                false => self.advance(),
            }
        }
        let next = self.waiting.pop_front().or_else(|| self.behind.pop_front());
        if next.is_none() {
            // Thousands of pages follow, and most have nothing waiting: the memory of a long history is released.
            self.waiting.shrink_to(1);
            self.behind.shrink_to_fit();
        }
        next
    }

    /// Puts back the rest of a message of history, to be sent before the rest of it.
    pub fn put_back(&mut self, rest: Outgoing) {
        self.behind.push_front(rest);
    }

    /// Queues news of one source or overview at a time, in turn.
    fn advance(&mut self) {
        if !self.opened {
            return;
        }
        self.announce_index();
        for _ in 0..self.streams() {
            if !self.waiting.is_empty() {
                return;
            }
            self.turn = (self.turn + 1) % self.streams();
            match self.turn.checked_sub(self.followed.len()) {
                None => self.advance_source(self.turn),
                Some(at) => self.advance_overview(at),
            }
        }
    }

    /// Queues the newest values of an overview.
    fn advance_overview(&mut self, at: usize) {
        let new = self.overviews.get_mut(at).and_then(|(overview, place)| overview.next(place));
        let Some((messages, frames)) = new else { return };
        messages.iter().for_each(|message| self.queue_message(message));
        self.waiting.push_back(Outgoing::Message(frames));
        self.sent += 1;
    }

    /// Queues news of a source, as far as it fits one message of ticks.
    fn advance_source(&mut self, at: usize) {
        let Some(Followed { cursor, shown, .. }) = self.followed.get_mut(at) else { return };
        let source = cursor.source();
        let (news, named, records) = {
            let store = self.live.store();
            let (news, records) = (cursor.news(&store), cursor.records(&store));
            let series = if let News::Ticks(_, series) = &news { &series[..] } else { &[] };
            let named = (!series.is_empty()).then(|| Named::from_ids(&store, source, series, self.table.version));
            if let Some(shown) = shown.as_mut().filter(|_| !series.is_empty()) {
                shown.announce(cursor, series, HiddenSeries::from_scope(&store, source, &self.scope));
            }
            (news, named, records)
        };
        let frames = match news {
            News::Ticks(frames, _) => frames,
            News::Lost => {
                self.live.counts.resyncs.fetch_add(1, Ordering::Relaxed);
                self.announce_about(at);
                self.queue_message(&ServerMessage::Resync);
                // The page drops everything that it follows, and the history that it waits for.
                self.behind.clear();
                return (0..self.followed.len()).for_each(|at| self.begin(at));
            }
        };
        self.announce_about(at);
        if let Some(named) = named {
            self.announce_series(source, named);
        }
        self.send_ticks(at, frames, &records);
    }

    /// Whether names of people are hidden from the page in the data of a source.
    fn hides_names(&self, source: SourceId) -> bool {
        // Most readers see all names and need no look into the store.
        let hides = |key: &str| self.scope.hides_names_of(key);
        self.scope.hides_names() && self.live.store().source(source).is_none_or(|(source, _)| hides(&source.key))
    }

    /// Queues ticks of a source and the records between them, as far as they fit one message of ticks.
    fn send_ticks(&mut self, at: usize, mut frames: Vec<Arc<Frame>>, records: &[Placed]) {
        let Some(Followed { cursor, shown, .. }) = self.followed.get_mut(at) else { return };
        let source = cursor.source();
        // Records are sent in order with ticks: those placed before the page's position first, then ticks up to the
        // next record.
        let due = records.iter().take_while(|one| one.after <= cursor.seq()).count();
        let until = records.get(due).map_or(u64::MAX, |one| one.after);
        let records: Vec<Record> = records[..due].iter().map(|one| (*one.record).clone()).collect();
        let mut size = 0;
        let fits = frames.iter().take_while(|frame| {
            size += frame.message.len();
            size <= MAX_MESSAGE
        });
        frames.truncate(fits.count().max(1));
        frames.retain(|frame| frame.seq <= until);
        records.iter().for_each(|record| cursor.take_record(record));
        let mut take = |frame: &Arc<Frame>| {
            cursor.take(frame);
            shown.as_mut().map(|shown| shown.take(cursor, frame.clock_step))
        };
        let own: Vec<Vec<u8>> = frames.iter().filter_map(&mut take).collect();
        let ticks: Option<Bytes> = match &frames[..] {
            [] => None,
            _ if shown.is_some() => Some(wire::encode_ticks(source, own.iter().map(Vec::as_slice)).into()),
            [frame] => Some(frame.message.clone()),
            frames => Some(wire::encode_ticks(source, frames.iter().map(|frame| frame.bytes())).into()),
        };
        // Records contain names of runs, users and notes, and texts of markers: a share link gets none of them.
        let records = match (self.bounds, self.hides_names(source)) {
            (Bounds::All, false) => records,
            (Bounds::All, true) => records.iter().map(names::hide_in_record).collect(),
            _ => Vec::new(),
        };
        for message in wire::record_messages(source, records) {
            self.queue_message(&message);
        }
        if let Some(ticks) = ticks {
            self.waiting.push_back(Outgoing::Message(ticks));
            self.sent += 1;
        }
    }

    /// The message before the connection is closed.
    pub fn goodbye(reason: &str) -> Bytes {
        wire::encode(&ServerMessage::Goodbye { reason: reason.into() }).into()
    }

    /// The message that shows a page that the server is alive when there are no ticks.
    pub fn heartbeat(&self) -> Bytes {
        wire::encode(&ServerMessage::Heartbeat { now: self.live.clock.wall() }).into()
    }
}

#[cfg(test)]
mod bounded;
#[cfg(test)]
mod churn;
#[cfg(test)]
mod tests;
