//! What a viewer's socket or a long answer rests on: a session, a key or a link. When that ends, or may see less, the socket
//! closes within a second, and the answer breaks off; when it may see more, the socket shows it.

use shared::scope::{Bounds, Scope};
use std::sync::Arc;
use std::time::Duration;
use stream::clock::Clock;
use team::accounts::{Accounts, Ended, Principal, Who};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, sleep_until};

/// Time between two marks that a session is in use: what a socket shows counts as use.
const USE_INTERVAL: Duration = Duration::from_secs(60);
/// The longest time after which the end of a session is looked at anew: the wall clock may step.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// How long a viewer that takes nothing may still be told why it ends.
const LAST_WORDS: Duration = Duration::from_millis(700);

/// What has changed for a viewer.
pub(super) enum Changed {
    /// It has to go, and why.
    Ended(String),
    /// It sees this from now on, which is more than before.
    Sees(Scope),
}

/// What a viewer's socket rests on; in a server without accounts nothing that could end.
pub(super) struct Rights {
    held: Option<Held>,
    /// Whether it is who runs a server without accounts.
    is_owner: bool,
}

struct Held {
    accounts: Accounts,
    clock: Arc<dyn Clock>,
    principal: Principal,
    scope: Scope,
    ended: watch::Receiver<Option<Ended>>,
    sources: watch::Receiver<u64>,
    used: Interval,
    /// Whether the database is there to say what has ended: on its way, because who waits for us comes and goes.
    asked: Option<JoinHandle<bool>>,
    /// Sources have changed, and what may be seen was not looked at since.
    stale: bool,
}

impl Rights {
    /// Those of whoever reads without accounts; whether it is who runs the server.
    pub fn unbound(is_owner: bool) -> Self {
        Rights { held: None, is_owner }
    }

    /// Those of a principal who sees this now.
    pub fn of(accounts: &Accounts, clock: Arc<dyn Clock>, principal: Principal, scope: Scope) -> Self {
        let mut used = interval_at(Instant::now() + USE_INTERVAL, USE_INTERVAL);
        used.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (ended, sources) = (accounts.watch(&principal), accounts.sources_changed());
        let held = Held {
            accounts: accounts.clone(),
            clock,
            principal,
            scope,
            ended,
            sources,
            used,
            asked: None,
            stale: false,
        };
        Rights { held: Some(held), is_owner: false }
    }

    /// What may be seen.
    pub fn scope(&self) -> Scope {
        self.held.as_ref().map_or(Scope::All, |held| held.scope.clone())
    }

    /// Which times may be seen.
    pub fn bounds(&self) -> Bounds {
        self.held.as_ref().map_or(Bounds::All, |held| held.principal.bounds)
    }

    /// Whether processes may be seen at all.
    pub fn sees_processes(&self) -> bool {
        self.bounds() == Bounds::All
    }

    /// Whether the arguments of processes of a source, by its key, are there for who looks.
    pub fn sees_arguments(&self, source: String) -> impl Future<Output = bool> + Send + use<> {
        let held = self.held.as_ref().map(|held| (held.accounts.clone(), held.principal.clone()));
        let is_owner = self.is_owner;
        async move {
            match held {
                Some((accounts, who)) => accounts.shows_arguments(&who, &source).await.unwrap_or(false),
                None => is_owner,
            }
        }
    }

    /// Resolves when something changes. It may be dropped before that, and nothing is lost.
    pub async fn changed(&mut self) -> Changed {
        let Some(held) = &mut self.held else { return std::future::pending().await };
        loop {
            // What waits for us may be dropped at any time: so it is a note that is looked at, not the news itself.
            if held.stale {
                let changed = held.look().await;
                held.stale = false;
                if let Some(changed) = changed {
                    return changed;
                }
            }
            tokio::select! {
                biased;
                why = gone(&mut held.ended) => return Changed::Ended(why),
                () = over(&*held.clock, held.principal.ends) => return Changed::Ended("your session has expired; \
                    sign in again".into()),
                news = held.sources.changed() => {
                    // Nobody is left who could tell: the server ends, which the viewer hears elsewhere.
                    if news.is_err() {
                        return std::future::pending().await;
                    }
                    held.stale = true;
                }
                known = answered(&mut held.asked) => {
                    held.asked = None;
                    // What was taken back by another hub, or by a command, would not be heard of.
                    if !known {
                        return Changed::Ended("the database of the hub is unavailable; the hub retries".into());
                    }
                }
                _ = held.used.tick(), if held.asked.is_none() => {
                    let (accounts, principal) = (held.accounts.clone(), held.principal.clone());
                    held.asked = Some(tokio::spawn(async move { accounts.touch(&principal).await.is_ok() }));
                }
            }
        }
    }

    /// Resolves with why it has ended, once it has.
    pub async fn ended(mut self) -> String {
        loop {
            if let Changed::Ended(why) = self.changed().await {
                return why;
            }
        }
    }

    /// Resolves some time after the end, for a viewer that takes no words.
    pub fn cut(&self) -> impl Future<Output = ()> + use<> {
        let held = self.held.as_ref().map(|held| (held.ended.clone(), held.clock.clone(), held.principal.ends));
        async move {
            let Some((mut ended, clock, ends)) = held else { return std::future::pending().await };
            tokio::select! {
                _ = gone(&mut ended) => {}
                () = over(&*clock, ends) => {}
            }
            sleep(LAST_WORDS).await;
        }
    }
}

impl Held {
    /// What may be seen now, where that is not what was seen before.
    async fn look(&mut self) -> Option<Changed> {
        // A database that is away changes no right, and is told of within a minute.
        let judged = self.accounts.judge_again(&self.principal).await.ok()?;
        let Some(principal) = judged else { return Some(Changed::Ended(over_for(&self.principal).to_string())) };
        let scope = principal.scope();
        if !self.principal.may_the_same(&principal) || !scope.includes(&self.scope) {
            return Some(Changed::Ended(Ended::Rights.to_string()));
        }
        if scope == self.scope {
            return None;
        }
        self.scope = scope.clone();
        Some(Changed::Sees(scope))
    }
}

/// Why somebody may nothing any more, when others have ended it.
fn over_for(principal: &Principal) -> Ended {
    match principal.who {
        Who::Key { .. } => Ended::Key,
        Who::Share { .. } => Ended::Share,
        Who::Account { .. } | Who::Local { .. } => Ended::SignedOut,
    }
}

/// What was asked, once it is known; it is asked on when this is dropped.
async fn answered(asked: &mut Option<JoinHandle<bool>>) -> bool {
    match asked {
        Some(asked) => asked.await.unwrap_or(false),
        None => std::future::pending().await,
    }
}

/// Why it has ended, once it has.
async fn gone(ended: &mut watch::Receiver<Option<Ended>>) -> String {
    match ended.wait_for(Option::is_some).await {
        Ok(why) => why.as_ref().map(ToString::to_string).unwrap_or_default(),
        // Who would tell is gone, so nothing is granted any more.
        Err(_) => Ended::Rights.to_string(),
    }
}

/// Resolves at a time of the wall clock.
async fn over(clock: &dyn Clock, ends: Option<i64>) {
    let Some(ends) = ends else { return std::future::pending().await };
    loop {
        let left = u64::try_from(ends - clock.wall()).unwrap_or(0);
        if left == 0 {
            return;
        }
        sleep_until(Instant::now() + Duration::from_millis(left).min(LOOK_INTERVAL)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::clock;

    #[tokio::test]
    async fn who_cannot_be_judged_any_more_is_let_go_within_a_minute() {
        let folder = tempfile::tempdir().expect("made");
        let clock = Arc::new(clock::System);
        let accounts = Accounts::open(folder.path(), clock.clone()).await.expect("a database");
        let mut rights = Rights::of(&accounts, clock, Principal::local(0), Scope::All);
        // As a PostgreSQL that is away, it answers nothing any more.
        accounts.close().await;
        tokio::time::pause();
        let begun = Instant::now();
        // Who waits for it drops it at every tick, and nothing is lost.
        let why = loop {
            tokio::select! {
                changed = rights.changed() => match changed {
                    Changed::Ended(why) => break why,
                    Changed::Sees(_) => panic!("nothing more is seen"),
                },
                () = sleep(Duration::from_secs(1)) => {}
            }
            assert!(begun.elapsed() < USE_INTERVAL * 2, "it goes on");
        };
        assert!(why.contains("database of the hub is unavailable"), "{why}");
    }
}
