//! The stream for scripts: each tick as one JSON text, made once for all of them.
//!
//! A [`Broadcast`] follows every source while there are scripts, and keeps the newest texts of each. A script has no
//! queue, only a position. If that position was dropped, it continues with the newest text, and `t` shows the jump.

use super::carrier::{Carrier, End, Opcode, SocketEvent};
use super::{ended, send};
use crate::http::App;
use crate::http::rights::{Changed, Rights};
use axum::body::Bytes;
use fleet::drain::Drain;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::Value;
use shared::catalog::glob;
use shared::json::{Number, Seconds};
use shared::record::Record;
use shared::scope::Scope;
use shared::wire::{Source, SourceId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;
use stream::live::{Live, Reader, Wakes};
use stream::names::hide_in_json;
use stream::store::{Cursor, Frame, News, Store};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Ticks of each source that are kept as texts, with the records between them.
const KEPT_TICKS: usize = 4;
/// Maximum number of machines that a script follows: more would be megabytes of text per second.
pub(super) const MAX_SCRIPT_SOURCES: usize = 64;
/// Above that number of machines their ticks are gathered for this long.
const MANY_SPACING: Duration = Duration::from_millis(100);
/// Maximum number of texts that are kept of a source, records included.
const MAX_KEPT_TEXTS: usize = 64;

/// The newest texts of every source.
pub(in crate::http) struct Broadcast {
    /// By source.
    texts: Mutex<Vec<SourceTexts>>,
    newest: watch::Sender<u64>,
}

/// The newest texts of a source.
struct SourceTexts {
    key: String,
    name: String,
    /// The newest first, each with a flag: it is a tick.
    texts: VecDeque<(Bytes, bool)>,
    /// Number of texts so far, including dropped ones.
    count: u64,
}

impl Broadcast {
    /// The broadcast shared by all scripts of a server; it ends with the last of them.
    fn new(app: &Arc<App>) -> Arc<Self> {
        let mut shared = app.broadcast.lock();
        if let Some(broadcast) = shared.upgrade() {
            return broadcast;
        }
        let broadcast = Arc::new(Broadcast { texts: Mutex::default(), newest: watch::Sender::new(0) });
        *shared = Arc::downgrade(&broadcast);
        tokio::spawn(follow(app.live.clone(), Arc::downgrade(&broadcast)));
        broadcast
    }

    fn texts(&self) -> MutexGuard<'_, Vec<SourceTexts>> {
        self.texts.lock()
    }

    /// Adds new sources.
    fn add(&self, sources: impl Iterator<Item = (String, String)>) {
        let new = sources.map(|(key, name)| SourceTexts { key, name, texts: VecDeque::new(), count: 0 });
        self.texts().extend(new);
    }

    /// Adds the newest text of a source; `tick`: it is a tick and no record.
    fn publish(&self, source: usize, text: Bytes, tick: bool) {
        let own = &mut self.texts()[source];
        own.texts.push_front((text, tick));
        own.count += 1;
        let ticks = own.texts.iter().enumerate().filter(|(_, (_, tick))| *tick);
        let oldest = ticks.map(|(at, _)| at).nth(KEPT_TICKS - 1).map_or(MAX_KEPT_TEXTS, |at| at + 1);
        own.texts.truncate(oldest.min(MAX_KEPT_TEXTS));
    }

    /// The next text for a script.
    fn next(&self, listener: &mut Listener) -> Option<Bytes> {
        let texts = self.texts();
        listener.match_sources(&texts);
        texts.iter().zip(&mut listener.had).find_map(|(own, had)| {
            let had = had.as_mut()?;
            let missing = usize::try_from(own.count - *had).unwrap_or(usize::MAX);
            // It begins with the newest tick, and returns to it if the next text was dropped.
            let begins = *had == 0 || missing > own.texts.len();
            let newest = || own.texts.iter().position(|(_, tick)| *tick).map_or(1, |at| at + 1);
            let missing = if begins { newest().min(missing) } else { missing };
            let (text, tick) = own.texts.get(missing.checked_sub(1)?)?;
            *had = own.count - missing as u64 + 1;
            match !tick && listener.scope.hides_names_of(&own.key) {
                true => Some(hide_in_json(text).into()),
                false => Some(text.clone()),
            }
        })
    }
}

/// Selection and position of one script.
struct Listener {
    /// Patterns of the sources' names; empty for all.
    patterns: Vec<String>,
    /// Sources that it may see.
    scope: Scope,
    /// By source, the number of texts sent; none for sources that it does not want.
    had: Vec<Option<u64>>,
    /// Number of sources that were matched already.
    looked: usize,
}

impl Listener {
    fn new(patterns: Vec<String>, scope: Scope) -> Self {
        Listener { patterns, scope, had: Vec::new(), looked: 0 }
    }

    /// Applies a larger scope.
    fn widen(&mut self, scope: Scope) {
        (self.scope, self.looked) = (scope, 0);
    }

    /// The machines that it names, by their numbers: data of them that other replicas hold is fetched. A script
    /// without names gets the data that is here anyway.
    fn named(&self) -> Vec<SourceId> {
        let wanted = (0..).zip(&self.had).filter(|(_, had)| had.is_some() && !self.patterns.is_empty());
        wanted.map(|(source, _)| source).take(MAX_SCRIPT_SOURCES).collect()
    }

    /// Matches the sources that were not matched yet.
    fn match_sources(&mut self, texts: &[SourceTexts]) {
        for (at, own) in texts.iter().enumerate().skip(self.looked) {
            let called = || self.patterns.iter().any(|text| glob(text, &own.name) || *text == own.key);
            let wants = self.scope.sees(&own.key) && (self.patterns.is_empty() || called());
            let wanted = wants.then_some(0);
            match self.had.get_mut(at) {
                Some(had) => *had = had.or(wanted),
                None => self.had.push(wanted),
            }
        }
        self.looked = texts.len();
    }
}

/// Follows all sources and publishes their ticks, until no script is connected.
async fn follow(live: Arc<Live>, broadcast: Weak<Broadcast>) {
    let (mut newest, mut followed) = (live.subscribe(&[]), Vec::new());
    loop {
        let (live, to) = (live.clone(), broadcast.clone());
        // The ticks of a fleet are megabytes of text: they are made off the threads that serve the stream.
        let caught_up = tokio::task::spawn_blocking(move || {
            let any = catch_up(&live, &mut followed, &to);
            any.map(|()| followed)
        });
        match caught_up.await {
            Ok(Some(rest)) => followed = rest,
            Ok(None) | Err(_) => return,
        }
        if newest.next().await.is_err() {
            return;
        }
        // With many machines some machine always ticks.
        if followed.len() > MAX_SCRIPT_SOURCES {
            tokio::time::sleep(MANY_SPACING).await;
        }
    }
}

/// Publishes new ticks of each source; none when no script is connected.
fn catch_up(live: &Arc<Live>, followed: &mut Vec<Followed>, broadcast: &Weak<Broadcast>) -> Option<()> {
    let known = followed.len();
    followed.extend(Reader::new(live.clone(), Scope::All).sources().into_iter().skip(known).map(Followed::new));
    let broadcast = broadcast.upgrade()?;
    broadcast.add(followed[known..].iter().map(|one| (one.key.clone(), one.name.clone())));
    for (at, one) in followed.iter_mut().enumerate() {
        let (news, records) = {
            let store = live.store();
            (one.news(&store), one.cursor.records(&store))
        };
        let mut records = records.into_iter().peekable();
        match news {
            None => broadcast.publish(at, one.text(), true),
            Some(frames) => {
                for (left, frame) in frames.iter().enumerate().map(|(i, frame)| (frames.len() - i, frame)) {
                    while let Some(placed) = records.next_if(|placed| placed.after < frame.seq) {
                        broadcast.publish(at, one.record(&placed.record), false);
                    }
                    one.cursor.take(frame);
                    if left <= KEPT_TICKS {
                        broadcast.publish(at, one.text(), true);
                    }
                }
            }
        }
        while let Some(placed) = records.next_if(|placed| placed.after <= one.cursor.seq()) {
            broadcast.publish(at, one.record(&placed.record), false);
        }
    }
    broadcast.newest.send_modify(|n| *n += 1);
    Some(())
}

/// A source that is followed for all scripts.
struct Followed {
    key: String,
    name: String,
    cursor: Cursor,
    /// The tag of each series, by its id.
    tags: Vec<String>,
}

impl Followed {
    fn new(source: Arc<Source>) -> Self {
        Followed {
            key: source.key.clone(),
            name: source.name.clone(),
            cursor: Cursor::new(source.id).with_state(),
            tags: Vec::new(),
        }
    }

    /// The new ticks; none if it continues with the newest, which the cursor then holds. A source is followed from its
    /// newest tick on.
    fn news(&mut self, store: &Store) -> Option<Vec<Arc<Frame>>> {
        let (frames, series) = match self.cursor.news(store) {
            News::Ticks(frames, series) if self.cursor.seq() > 0 => (Some(frames), series),
            News::Ticks(..) | News::Lost => (None, self.cursor.begin_newest(store)),
        };
        for id in series {
            let def = store.series(self.cursor.source(), id as usize).first();
            let tag = def.map_or(String::new(), |def| store.catalog().tag(def));
            match self.tags.get_mut(id as usize) {
                Some(known) => *known = tag,
                None => self.tags.push(tag),
            }
        }
        // A source may have no tick yet.
        if self.cursor.seq() == 0 { Some(Vec::new()) } else { frames }
    }

    /// The text of a record, and advances the cursor past it.
    fn record(&mut self, record: &Record) -> Bytes {
        self.cursor.take_record(record);
        let body = serde_json::from_slice(&record.body).unwrap_or_else(|_| Value::from(&record.body[..]));
        let Record { n, t, kind, .. } = record;
        let text =
            RecordText { type_: RecordType::Record, source: &self.name, t: Seconds(*t), record: kind, n: *n, body };
        written(&text)
    }

    fn text(&self) -> Bytes {
        let (t, values) = self.cursor.state().map_or((0, &[][..]), |state| (state.t(), state.values()));
        let present = self.tags.iter().zip(values).filter(|(_, v)| v.is_finite());
        let values = present.map(|(tag, &v)| (tag.as_str(), Number(v))).collect();
        written(&TickText { source: &self.name, t: Seconds(t), values })
    }
}

/// A tick in the format for scripts. It has no `type`.
#[derive(Serialize)]
struct TickText<'a> {
    source: &'a str,
    t: Seconds,
    /// By tag. Unknown values are absent.
    values: BTreeMap<&'a str, Number>,
}

/// A record in the format for scripts.
#[derive(Serialize)]
struct RecordText<'a> {
    #[serde(rename = "type")]
    type_: RecordType,
    source: &'a str,
    t: Seconds,
    /// Its kind.
    record: &'a str,
    n: u64,
    /// Its JSON, or the numbers of its bytes.
    body: Value,
}

/// Distinguishes a record from a tick.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum RecordType {
    Record,
}

fn written(text: &impl Serialize) -> Bytes {
    serde_json::to_vec(text).expect("texts, numbers and JSON").into()
}

pub(super) async fn script<C: Carrier>(mut socket: C, app: Arc<App>, patterns: Vec<String>, mut rights: Rights) {
    let broadcast = Broadcast::new(&app);
    let listener = Listener::new(patterns, rights.scope());
    let cut = rights.cut();
    let ended = tokio::select! {
        ended = listen(&mut socket, &app, &broadcast, listener, &mut rights) => ended,
        () = cut => return,
    };
    if let Err(End::Told(code, reason)) = ended {
        Box::pin(socket.close(code, &reason)).await;
    }
}

/// Serves a script until its connection ends.
async fn listen<C: Carrier>(
    socket: &mut C,
    app: &App,
    broadcast: &Broadcast,
    mut listener: Listener,
    rights: &mut Rights,
) -> Result<(), End> {
    let (mut news, place) = (Wakes::from(broadcast.newest.subscribe()), Drain::place());
    loop {
        ended(app, place)?;
        while let Some(text) = broadcast.next(&mut listener) {
            send(socket, &app.live, Opcode::Text, &text).await?;
        }
        app.live.want(&listener.named());
        // Scripts send no messages.
        loop {
            let event = tokio::select! {
                biased;
                changed = rights.changed() => match changed {
                    Changed::Ended(why) => return Err(End::Told(CloseCode::Policy, why)),
                    // It gets machines that joined later, like a page.
                    Changed::Sees(scope) => {
                        listener.widen(scope);
                        continue;
                    }
                },
                event = socket.next(&mut news, None) => event?,
            };
            if !matches!(event, SocketEvent::Said(_)) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json as object};
    use stream::testing::fleeting::Fleeting;

    #[test]
    fn records_go_with_the_ticks_around_them_and_take_no_ticks_place() {
        let broadcast = Broadcast { texts: Mutex::default(), newest: watch::Sender::new(0) };
        let text = |n: usize| Bytes::from(n.to_string());
        broadcast.add(std::iter::once(("a".to_string(), "a".to_string())));
        broadcast.publish(0, text(0), true);
        let (mut early, mut late) = (Listener::new(Vec::new(), Scope::All), Listener::new(Vec::new(), Scope::All));
        assert_eq!(broadcast.next(&mut early), Some(text(0)));
        (1..11).for_each(|n| broadcast.publish(0, text(n), false));
        broadcast.publish(0, text(11), true);
        broadcast.publish(0, text(12), false);
        let rest = |listener: &mut Listener| std::iter::from_fn(|| broadcast.next(listener)).collect::<Vec<_>>();
        assert_eq!(rest(&mut early), (1..13).map(text).collect::<Vec<_>>(), "ten records in one round");
        assert_eq!(rest(&mut late), [text(11), text(12)], "from the newest tick on");
        (13..13 + 2 * MAX_KEPT_TEXTS).for_each(|n| broadcast.publish(0, text(n), false));
        assert!(broadcast.texts()[0].texts.len() <= MAX_KEPT_TEXTS);
    }

    #[test]
    fn a_script_is_told_each_tick_and_one_that_is_late_the_newest() {
        let broadcast = Broadcast { texts: Mutex::default(), newest: watch::Sender::new(0) };
        let text = |n: usize| Bytes::from(n.to_string());
        broadcast.add(["a", "b"].map(|name| (format!("key of {name}"), name.to_string())).into_iter());
        let (mut early, mut late) = (Listener::new(Vec::new(), Scope::All), Listener::new(Vec::new(), Scope::All));
        let mut other = Listener::new(vec!["a*".into()], Scope::All);
        broadcast.publish(1, text(0), true);
        assert_eq!((broadcast.next(&mut early), broadcast.next(&mut early)), (Some(text(0)), None));
        for n in 1..10 {
            broadcast.publish(1, text(n), true);
            assert_eq!((broadcast.next(&mut early), broadcast.next(&mut early)), (Some(text(n)), None));
        }
        assert_eq!((broadcast.next(&mut late), broadcast.next(&mut late)), (Some(text(9)), None), "from the newest on");
        for n in 10..10 + KEPT_TICKS {
            broadcast.publish(1, text(n), true);
        }
        assert_eq!(
            (0..KEPT_TICKS).filter_map(|_| broadcast.next(&mut late)).collect::<Vec<_>>(),
            (10..10 + KEPT_TICKS).map(text).collect::<Vec<_>>()
        );
        for n in 20..20 + KEPT_TICKS + 1 {
            broadcast.publish(1, text(n), true);
        }
        assert_eq!((broadcast.next(&mut late), broadcast.next(&mut late)), (Some(text(20 + KEPT_TICKS)), None));
        assert_eq!(broadcast.texts()[1].texts.len(), KEPT_TICKS);
        assert_eq!(broadcast.next(&mut other), None, "it wants another source");
        broadcast.publish(0, text(30), true);
        assert_eq!((broadcast.next(&mut other), broadcast.next(&mut other)), (Some(text(30)), None));
    }

    /// The newest text equals the content of the source's newest tick.
    fn says_the_newest(broadcast: &Broadcast, fleeting: &Fleeting) {
        let tick = fleeting.ticks - 1;
        let text = broadcast.next(&mut Listener::new(Vec::new(), Scope::All)).expect("a text");
        let said: Value = serde_json::from_slice(&text).expect("JSON");
        let tag = |n| fleeting.live.store().catalog().tag(&Fleeting::def(n));
        let values: Map<String, Value> = Fleeting::values(tick).map(|(n, v)| (tag(n), object!(Number(v)))).collect();
        let expected = object!({ "source": "here", "t": Seconds(Fleeting::time(tick)), "values": values });
        assert_eq!(said, expected, "tick {tick}");
    }

    #[test]
    fn a_script_is_told_records_between_the_ticks() {
        let broadcast = Arc::new(Broadcast { texts: Mutex::default(), newest: watch::Sender::new(0) });
        let (mut fleeting, mut followed, mut script) =
            (Fleeting::empty(), Vec::new(), Listener::new(Vec::new(), Scope::All));
        fleeting.tick();
        catch_up(&fleeting.live, &mut followed, &Arc::downgrade(&broadcast)).expect("it listens");
        assert!(broadcast.next(&mut script).is_some());
        for (kind, body) in [("marker", &b"{\"text\":\"x\"}"[..]), ("logs", &[0, 1])] {
            fleeting.live.append_record(0, Fleeting::time(0) + 500, kind, body.to_vec()).expect("it is open");
        }
        fleeting.tick();
        catch_up(&fleeting.live, &mut followed, &Arc::downgrade(&broadcast)).expect("it listens");
        let mut next = || broadcast.next(&mut script).map(|text| serde_json::from_slice::<Value>(&text).expect("JSON"));
        let t = Seconds(Fleeting::time(0) + 500);
        let record = |n: u64, kind: &str, body: Value| object!({ "type": "record", "source": "here", "t": t, "record": kind, "n": n, "body": body });
        assert_eq!(next(), Some(record(1, "marker", object!({ "text": "x" }))));
        assert_eq!(next(), Some(record(2, "logs", object!([0, 1]))));
        assert!(next().is_some_and(|tick| tick.get("values").is_some()));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_script_is_told_no_series_under_the_name_of_another_whose_id_it_has() {
        // Read once at each tick, and once after several, sometimes a few more than are kept.
        for pauses in [&[1][..], &[2, 1, 5, 3], &[7, 40, 1]] {
            let broadcast = Arc::new(Broadcast { texts: Mutex::default(), newest: watch::Sender::new(0) });
            let (mut fleeting, mut followed) = (Fleeting::empty(), Vec::new());
            for pause in pauses.iter().cycle() {
                (0..*pause).for_each(|_| fleeting.tick());
                catch_up(&fleeting.live, &mut followed, &Arc::downgrade(&broadcast)).expect("it listens");
                says_the_newest(&broadcast, &fleeting);
                if fleeting.ticks > 150 {
                    break;
                }
            }
            assert!(fleeting.reused());
        }
    }
}
