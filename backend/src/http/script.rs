//! The stream for scripts: each tick as one JSON text, made once for all of them.
//!
//! A [`Teller`] follows every source while there are scripts, and keeps the newest texts of each. A script has no queue:
//! it holds its place, and where that is gone it goes on from the newest, which the jump in `t` shows.

use super::App;
use super::api::{number, seconds};
use super::live::{ended, send};
use super::socket::{End, Event, Kind, Socket};
use crate::live::Hub;
use crate::store::{Frame, Since, Store};
use axum::body::Bytes;
use serde_json::{Map, Value, json as object};
use shared::tick::TickState;
use shared::wire::SourceId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Texts that are kept of each source.
const KEPT: usize = 4;

/// The newest texts of every source.
pub(super) struct Teller {
    told: Mutex<Vec<Told>>,
    newest: watch::Sender<u64>,
}

/// The newest texts of a source.
#[derive(Default)]
struct Told {
    texts: VecDeque<Bytes>,
    /// How many there have been.
    count: u64,
}

impl Teller {
    /// The one that all scripts of a server share; it ends with the last of them.
    fn of(app: &Arc<App>) -> Arc<Self> {
        let mut shared = app.teller.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(teller) = shared.upgrade() {
            return teller;
        }
        let teller = Arc::new(Teller { told: Mutex::default(), newest: watch::Sender::new(0) });
        *shared = Arc::downgrade(&teller);
        tokio::spawn(follow(app.hub.clone(), Arc::downgrade(&teller)));
        teller
    }

    fn told(&self) -> MutexGuard<'_, Vec<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, source: usize, text: Bytes) {
        let mut told = self.told();
        if told.len() <= source {
            told.resize_with(source + 1, Told::default);
        }
        let told = &mut told[source];
        told.texts.truncate(KEPT - 1);
        told.texts.push_front(text);
        told.count += 1;
    }

    /// The next text for a script that has had this many of each source.
    fn next(&self, had: &mut Vec<u64>) -> Option<Bytes> {
        let told = self.told();
        had.resize(told.len(), 0);
        told.iter().zip(had).find_map(|(told, had)| {
            let missing = usize::try_from(told.count - *had).unwrap_or(usize::MAX);
            // It begins with the newest, and goes on from it where the next one is gone.
            let missing = if *had == 0 || missing > told.texts.len() { 1.min(missing) } else { missing };
            let text = told.texts.get(missing.checked_sub(1)?)?;
            *had = told.count - missing as u64 + 1;
            Some(text.clone())
        })
    }
}

/// Follows all sources for a teller, until nobody listens to it any more.
async fn follow(hub: Arc<Hub>, teller: Weak<Teller>) {
    let (mut newest, mut followed) = (hub.subscribe(), Vec::new());
    loop {
        let (hub, to) = (hub.clone(), teller.clone());
        // The ticks of a fleet are megabytes of text: not on the threads that serve the stream.
        let told = tokio::task::spawn_blocking(move || {
            let any = catch_up(&hub, &mut followed, &to);
            any.map(|()| followed)
        });
        match told.await {
            Ok(Some(rest)) => followed = rest,
            Ok(None) | Err(_) => return,
        }
        if newest.changed().await.is_err() {
            return;
        }
    }
}

/// Tells what is new in each source; none when nobody listens.
fn catch_up(hub: &Hub, followed: &mut Vec<Followed>, teller: &Weak<Teller>) -> Option<()> {
    let sources = hub.store().sources().into_iter().skip(followed.len());
    followed.extend(sources.map(|info| Followed { source: info.id, name: info.name, ..Followed::default() }));
    let teller = teller.upgrade()?;
    for (at, one) in followed.iter_mut().enumerate() {
        let news = one.news(&hub.store());
        match news {
            News::Newest => teller.tell(at, one.text()),
            News::Frames(frames) => {
                for (left, frame) in frames.iter().enumerate().map(|(i, frame)| (frames.len() - i, frame)) {
                    one.state.apply(frame.bytes()).expect("the store's frames follow the store's state");
                    if left <= KEPT {
                        teller.tell(at, one.text());
                    }
                }
            }
        }
    }
    teller.newest.send_modify(|n| *n += 1);
    Some(())
}

/// A source as it is followed.
#[derive(Default)]
struct Followed {
    source: SourceId,
    name: String,
    state: TickState,
    tags: Vec<String>,
}

/// What has yet to be told of a source.
enum News {
    /// The tick that the state now holds.
    Newest,
    /// The ticks that follow the state.
    Frames(Vec<Arc<Frame>>),
}

impl Followed {
    /// What is new. A source is followed from its newest tick on.
    fn news(&mut self, store: &Store) -> News {
        match store.renamed(self.source, self.state.seq()) {
            Some(renamed) => {
                for id in renamed {
                    let Some(tag) = self.tags.get_mut(id as usize) else { continue };
                    let Some(def) = store.series(self.source, id as usize).first() else { continue };
                    *tag = store.catalog().tag(def);
                    self.state.redefine(id, store.catalog().metric(def).map_or(0.0, |m| m.steps));
                }
            }
            // Which numbers stand for other series is not known any more.
            None => (self.state, self.tags) = (TickState::default(), Vec::new()),
        }
        let defs = store.series(self.source, self.tags.len());
        self.state.extend(defs.iter().map(|d| store.catalog().metric(d).map_or(0.0, |m| m.steps)));
        self.tags.extend(defs.iter().map(|d| store.catalog().tag(d)));
        match store.since(self.source, self.state.seq()) {
            Since::Frames(frames) if frames.is_empty() || self.state.seq() > 0 => News::Frames(frames),
            _ => match store.state(self.source) {
                Some(state) => {
                    self.state = state.clone();
                    News::Newest
                }
                None => News::Frames(Vec::new()),
            },
        }
    }

    fn text(&self) -> Bytes {
        let present = self.tags.iter().zip(self.state.values()).filter(|(_, v)| v.is_finite());
        let values: Map<String, Value> = present.map(|(tag, &v)| (tag.clone(), number(v))).collect();
        object!({ "source": self.name, "t": seconds(self.state.t()), "values": values }).to_string().into()
    }
}

pub(super) async fn script<S: AsyncRead + AsyncWrite + Unpin>(mut socket: Socket<S>, app: Arc<App>) {
    let teller = Teller::of(&app);
    if let Err(End::Told(code, reason)) = listen(&mut socket, &app, &teller).await {
        Box::pin(socket.close(code, &reason)).await;
    }
}

/// Serves a script until its connection ends.
async fn listen<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut Socket<S>,
    app: &App,
    teller: &Teller,
) -> Result<(), End> {
    let (mut news, mut had) = (teller.newest.subscribe(), Vec::new());
    loop {
        ended(app)?;
        while let Some(text) = teller.next(&mut had) {
            send(socket, &app.hub, Kind::Text, &text).await?;
        }
        // A script has nothing to say.
        while let Event::Said(_) = socket.next(&mut news, None).await? {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_told_each_tick_and_one_that_is_late_the_newest() {
        let teller = Teller { told: Mutex::default(), newest: watch::Sender::new(0) };
        let text = |n: usize| Bytes::from(n.to_string());
        let (mut early, mut late) = (Vec::new(), Vec::new());
        teller.tell(1, text(0));
        assert_eq!((teller.next(&mut early), teller.next(&mut early)), (Some(text(0)), None));
        for n in 1..10 {
            teller.tell(1, text(n));
            assert_eq!((teller.next(&mut early), teller.next(&mut early)), (Some(text(n)), None));
        }
        assert_eq!((teller.next(&mut late), teller.next(&mut late)), (Some(text(9)), None), "from the newest on");
        for n in 10..10 + KEPT {
            teller.tell(1, text(n));
        }
        assert_eq!(
            (0..KEPT).filter_map(|_| teller.next(&mut late)).collect::<Vec<_>>(),
            (10..10 + KEPT).map(text).collect::<Vec<_>>()
        );
        for n in 20..20 + KEPT + 1 {
            teller.tell(1, text(n));
        }
        assert_eq!((teller.next(&mut late), teller.next(&mut late)), (Some(text(20 + KEPT)), None));
        assert_eq!(teller.told()[1].texts.len(), KEPT);
    }
}
