//! The rights of a viewer's socket or a long response: a session, a key or a link. When they end or shrink, the socket
//! closes within a second and the response ends. When they grow, the socket applies it.

use shared::scope::{Bounds, Scope};
use std::sync::Arc;
use std::time::Duration;
use stream::clock::Clock;
use team::accounts::{Accounts, Denied, Ended, Principal, Who};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, sleep_until};

/// Time between two marks that a session is in use: an open socket counts as use.
const USE_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum time between two checks of a session's end: the wall clock may step.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Time until the rights are read again after the database could not be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time to deliver the reason of the end to a viewer that reads nothing.
const LAST_WORDS: Duration = Duration::from_millis(700);

/// A change of a viewer's rights.
pub(super) enum Changed {
    /// The rights have ended, with the reason.
    Ended(String),
    /// The viewer sees this scope from now on, which is more than before.
    Sees(Scope),
}

/// The rights of a viewer's socket. In a server without accounts they cannot end.
pub(super) struct Rights {
    held: Option<Held>,
    /// Whether the viewer is the owner of a server without accounts.
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
    /// Pending check whether the database is reachable. It is a task, as the future that waits for it may be dropped.
    asked: Option<JoinHandle<bool>>,
    /// Time of the next read of the rights; None: nothing has changed since the last one.
    read_at: Option<Instant>,
    /// Pending read of the rights. It is a task for the same reason: a busy viewer would begin it again and again.
    judged: Option<JoinHandle<Result<Option<Principal>, Denied>>>,
}

impl Rights {
    /// The rights of a reader without accounts; `is_owner`: it is the owner of the server.
    pub fn unbound(is_owner: bool) -> Self {
        Rights { held: None, is_owner }
    }

    /// The rights of a principal with its current scope.
    pub fn new(accounts: &Accounts, clock: Arc<dyn Clock>, principal: Principal, scope: Scope) -> Self {
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
            read_at: None,
            judged: None,
        };
        Rights { held: Some(held), is_owner: false }
    }

    /// Sources that may be seen.
    pub fn scope(&self) -> Scope {
        self.held.as_ref().map_or(Scope::All, |held| held.scope.clone())
    }

    /// Times that may be seen.
    pub fn bounds(&self) -> Bounds {
        self.held.as_ref().map_or(Bounds::All, |held| held.principal.bounds)
    }

    /// Whether processes may be seen at all.
    pub fn sees_processes(&self) -> bool {
        self.bounds() == Bounds::All
    }

    /// Whether the viewer may see the arguments of processes of a source, named by its key.
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

    /// Resolves when something changes. It is cancel-safe.
    pub async fn changed(&mut self) -> Changed {
        let Some(held) = &mut self.held else { return std::future::pending().await };
        loop {
            // The future may be dropped at any time, so all that is pending is kept in fields.
            tokio::select! {
                biased;
                why = gone(&mut held.ended) => return Changed::Ended(why),
                () = over(&*held.clock, held.principal.ends) => return Changed::Ended("your session has expired; \
                    sign in again".into()),
                news = held.sources.changed() => {
                    // All senders are gone: the server shuts down, which the viewer learns by another channel.
                    if news.is_err() {
                        return std::future::pending().await;
                    }
                    held.read_at = Some(Instant::now());
                }
                judged = judgment(&mut held.judged) => {
                    held.judged = None;
                    match judged {
                        Ok(principal) => if let Some(changed) = held.changed_scope(principal) {
                            return changed;
                        },
                        // Nobody announces this change again: forgetting it would leave a revoked right in force.
                        Err(_) => held.read_at = held.read_at.or(Some(Instant::now() + RETRY_INTERVAL)),
                    }
                }
                () = due(held.read_at), if held.judged.is_none() => {
                    held.read_at = None;
                    let (accounts, principal) = (held.accounts.clone(), held.principal.clone());
                    held.judged = Some(tokio::spawn(async move { accounts.judge_again(&principal).await }));
                }
                known = answered(&mut held.asked) => {
                    held.asked = None;
                    // Revocations by another replica or by a command would not be noticed.
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

    /// Resolves with the reason once the rights have ended.
    pub async fn ended(mut self) -> String {
        loop {
            if let Changed::Ended(why) = self.changed().await {
                return why;
            }
        }
    }

    /// Resolves some time after the end, for a viewer that reads nothing.
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
    /// The change from the last scope to that of the present rights.
    fn changed_scope(&mut self, judged: Option<Principal>) -> Option<Changed> {
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

/// The reason of an end that others caused.
fn over_for(principal: &Principal) -> Ended {
    match principal.who {
        Who::Key { .. } => Ended::Key,
        Who::Share { .. } => Ended::Share,
        Who::Account { .. } | Who::Local { .. } => Ended::SignedOut,
    }
}

/// The result of the check, once it is there. Dropping this future does not stop the check.
async fn answered(asked: &mut Option<JoinHandle<bool>>) -> bool {
    match asked {
        Some(asked) => asked.await.unwrap_or(false),
        None => std::future::pending().await,
    }
}

/// The present rights, once they are read. An unreachable database changes no right; it is reported within a minute.
async fn judgment(
    judged: &mut Option<JoinHandle<Result<Option<Principal>, Denied>>>,
) -> Result<Option<Principal>, Denied> {
    match judged {
        Some(judged) => judged.await.unwrap_or(Err(Denied::Unavailable)),
        None => std::future::pending().await,
    }
}

/// Resolves at a time; never without one.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) if at <= Instant::now() => {}
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The reason of the end, once the rights have ended.
async fn gone(ended: &mut watch::Receiver<Option<Ended>>) -> String {
    match ended.wait_for(Option::is_some).await {
        Ok(why) => why.as_ref().map(ToString::to_string).unwrap_or_default(),
        // The sender is gone, so nothing is granted any more.
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
    use shared::people::NewPerson;
    use shared::role::Role;
    use shared::secret::Secret;
    use shared::session::SignIn;
    use shared::team::TeamChange;
    use stream::clock;
    use team::accounts::Network;

    /// Accounts in a folder, and a viewer who is signed in.
    async fn with_viewer(folder: &std::path::Path) -> (Accounts, Principal) {
        let accounts = Accounts::open(folder, Arc::new(clock::System)).await.expect("a database");
        let (name, password) = ("mara".to_string(), Secret::new("zebra lamp cactus 93"));
        let person = NewPerson {
            name: name.clone(),
            password: Some(password.clone()),
            hub_admin: false,
            team: None,
            role: Some(Role::Viewer),
        };
        accounts.add_person(&Principal::local(0), &person).await.expect("an account");
        let begun = accounts.sign_in(&SignIn { name, password }, &Network::local(), None).await.expect("signed in");
        (accounts, begun.principal)
    }

    /// Hides names from the viewers of the team, who have fewer rights then.
    async fn hide_names(accounts: &Accounts) {
        let change = TeamChange { user_names: Some(false), ..TeamChange::default() };
        accounts.change_team(&Principal::local(0), "main", &change).await.expect("changed");
    }

    fn why(changed: Changed) -> String {
        match changed {
            Changed::Ended(why) => why,
            Changed::Sees(_) => panic!("nothing more is seen"),
        }
    }

    #[tokio::test]
    async fn fewer_rights_count_also_for_a_viewer_who_is_busy_all_the_time() {
        let folder = tempfile::tempdir().expect("made");
        let (accounts, viewer) = with_viewer(folder.path()).await;
        let mut rights = Rights::new(&accounts, Arc::new(clock::System), viewer.clone(), viewer.scope());
        hide_names(&accounts).await;
        let begun = Instant::now();
        let ended = loop {
            tokio::select! {
                biased;
                changed = rights.changed() => break why(changed),
                () = tokio::task::yield_now() => {}
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "the rights are never read to the end");
        };
        assert_eq!(ended, Ended::Rights.to_string());
    }

    #[tokio::test]
    async fn fewer_rights_count_also_if_the_database_was_busy_when_they_changed() {
        let folder = tempfile::tempdir().expect("made");
        let (accounts, viewer) = with_viewer(folder.path()).await;
        let mut rights = Rights::new(&accounts, Arc::new(clock::System), viewer.clone(), viewer.scope());
        hide_names(&accounts).await;
        // These are all connections that read.
        let mut busy = Vec::new();
        for _ in 0..4 {
            busy.push(accounts.records().read().await.expect("a connection"));
        }
        tokio::time::pause();
        let early = tokio::time::timeout(Duration::from_secs(11), rights.changed()).await;
        assert!(early.is_err(), "nothing can be read");
        tokio::time::resume();
        drop(busy);
        let changed = tokio::time::timeout(Duration::from_secs(20), rights.changed()).await.expect("it is read again");
        assert_eq!(why(changed), Ended::Rights.to_string());
    }

    #[tokio::test]
    async fn who_cannot_be_judged_any_more_is_let_go_within_a_minute() {
        let folder = tempfile::tempdir().expect("made");
        let clock = Arc::new(clock::System);
        let accounts = Accounts::open(folder.path(), clock.clone()).await.expect("a database");
        let mut rights = Rights::new(&accounts, clock, Principal::local(0), Scope::All);
        // Like an unreachable PostgreSQL, it answers nothing from here on.
        accounts.close().await;
        tokio::time::pause();
        let begun = Instant::now();
        // The caller drops the future at every tick, and nothing is lost.
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
