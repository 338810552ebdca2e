//! Notification of sockets when a session, a key or a right ends: each holds a receiver while it is open. Ends are
//! remembered for a while. So an end between the read of the records and the start of the watch is not missed.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use tokio::sync::watch;

/// Maximum number of remembered ends, for watches that start a moment later.
const MAX_ENDS: usize = 1_024;

/// Reason to close a socket that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its session was signed out, or ended by a newer one.
    SignedOut,
    /// The password was changed.
    Password,
    /// A way to sign in was removed.
    Identity,
    /// The rights of the account have changed; a new connection gets the remaining ones.
    Rights,
    /// The account was disabled.
    Disabled,
    /// The account was removed.
    Removed,
    /// The key was ended.
    Key,
    /// The link was revoked.
    Share,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ended::SignedOut => "signed out",
            Ended::Password => "the password was changed; sign in again",
            Ended::Identity => "a sign-in method was removed; sign in again",
            Ended::Rights => "your rights have changed",
            Ended::Disabled => "this account was disabled",
            Ended::Removed => "this account was removed",
            Ended::Key => "this key was revoked",
            Ended::Share => "this link was revoked",
        })
    }
}

/// The holder of a socket: a session or a key, and its owner: an account, or a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyHolder {
    pub own: String,
    pub of: String,
    /// Number of ends that it has seen.
    pub since: u64,
}

/// The holders whose rights end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// One session or key.
    One(String),
    /// All of an account or a source, but one.
    AllOf(String, Option<String>),
}

impl Ends {
    fn concerns(&self, own: &str, of: &str) -> bool {
        match self {
            Ends::One(one) => one == own,
            Ends::AllOf(all, but) => all == of && but.as_deref() != Some(own),
        }
    }
}

/// The watchers, by holder.
#[derive(Debug)]
pub(super) struct Watchers<E>(Mutex<Held<E>>);

#[derive(Debug)]
struct Held<E> {
    /// Number of ends so far.
    ends: u64,
    recent: VecDeque<(Ends, E)>,
    senders: HashMap<(String, String), watch::Sender<Option<E>>>,
    /// Number of senders at which those without a receiver are removed next.
    sweep_at: usize,
}

impl<E: Clone> Watchers<E> {
    pub(super) fn new() -> Self {
        let (recent, senders) = (VecDeque::with_capacity(MAX_ENDS), HashMap::new());
        Watchers(Mutex::new(Held { ends: 0, recent, senders, sweep_at: 256 }))
    }

    fn held(&self) -> MutexGuard<'_, Held<E>> {
        self.0.lock()
    }

    /// Number of ends so far: to be read before the records are.
    pub(super) fn now(&self) -> u64 {
        self.held().ends
    }

    /// A receiver of the reason to close; `lost` when too many ends have happened since the records were read.
    pub(super) fn watch(&self, holder: &KeyHolder, lost: E) -> watch::Receiver<Option<E>> {
        let mut held = self.held();
        let missed = usize::try_from(held.ends.saturating_sub(holder.since)).unwrap_or(usize::MAX);
        if missed > held.recent.len() {
            return watch::channel(Some(lost)).1;
        }
        let recent = held.recent.iter().rev().take(missed);
        let ended = recent.filter(|(ends, _)| ends.concerns(&holder.own, &holder.of)).last();
        if let Some((_, why)) = ended {
            return watch::channel(Some(why.clone())).1;
        }
        if held.senders.len() >= held.sweep_at {
            held.senders.retain(|_, sender| sender.receiver_count() > 0);
            held.sweep_at = (held.senders.len() * 2).max(256);
        }
        let key = (holder.own.clone(), holder.of.clone());
        held.senders.entry(key).or_insert_with(|| watch::channel(None).0).subscribe()
    }

    /// Notifies all affected watchers; to be called after the commit of the change.
    pub(super) fn end(&self, ends: Ends, why: E) {
        let mut held = self.held();
        held.ends += 1;
        if held.recent.len() == MAX_ENDS {
            held.recent.pop_front();
        }
        held.recent.push_back((ends.clone(), why.clone()));
        held.senders.retain(|(own, of), sender| {
            let concerned = ends.concerns(own, of);
            if concerned {
                sender.send_replace(Some(why.clone()));
            }
            !concerned
        });
    }

    /// The holders that are watched.
    pub(super) fn watched(&self) -> Vec<String> {
        let held = self.held();
        let watched = held.senders.iter().filter(|(_, sender)| sender.receiver_count() > 0);
        watched.map(|((own, _), _)| own.clone()).collect()
    }

    /// Whether there is a watcher for an account or a source.
    pub(super) fn is_watched(&self, of: &str) -> bool {
        self.held().senders.iter().any(|((_, whose), sender)| whose == of && sender.receiver_count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(own: &str, of: &str, since: u64) -> KeyHolder {
        KeyHolder { own: own.into(), of: of.into(), since }
    }

    #[test]
    fn exactly_those_whom_it_concerns_are_told() {
        let watchers = Watchers::new();
        let (a, b) =
            (watchers.watch(&holder("a", "mara", 0), Ended::Key), watchers.watch(&holder("b", "mara", 0), Ended::Key));
        let (c, also_a) =
            (watchers.watch(&holder("c", "tom", 0), Ended::Key), watchers.watch(&holder("a", "mara", 0), Ended::Key));
        watchers.end(Ends::One("a".into()), Ended::SignedOut);
        assert_eq!((*a.borrow(), *also_a.borrow()), (Some(Ended::SignedOut), Some(Ended::SignedOut)));
        assert_eq!((*b.borrow(), *c.borrow()), (None, None));
        watchers.end(Ends::AllOf("mara".into(), Some("b".into())), Ended::Password);
        assert_eq!(*b.borrow(), None, "the session that changed the password goes on");
        watchers.end(Ends::AllOf("mara".into(), None), Ended::Disabled);
        assert_eq!((*b.borrow(), *c.borrow()), (Some(Ended::Disabled), None));
        assert!(!watchers.is_watched("mara") && watchers.is_watched("tom"));
        drop(c);
        assert!(!watchers.is_watched("tom"));
    }

    #[test]
    fn an_end_between_the_look_and_the_watch_is_not_missed() {
        let watchers = Watchers::new();
        let looked = watchers.now();
        watchers.end(Ends::One("a".into()), Ended::Key);
        assert_eq!(*watchers.watch(&holder("a", "", looked), Ended::Rights).borrow(), Some(Ended::Key));
        assert_eq!(*watchers.watch(&holder("b", "", looked), Ended::Rights).borrow(), None);
        assert_eq!(*watchers.watch(&holder("a", "", watchers.now()), Ended::Rights).borrow(), None, "seen already");
        for i in 0..MAX_ENDS {
            watchers.end(Ends::One(format!("other {i}")), Ended::Key);
        }
        assert_eq!(
            *watchers.watch(&holder("b", "", looked), Ended::Rights).borrow(),
            Some(Ended::Rights),
            "too long ago"
        );
    }

    #[test]
    fn who_has_gone_is_forgotten() {
        let watchers = Watchers::new();
        for i in 0..10_000 {
            drop(watchers.watch(&holder(&i.to_string(), "", 0), Ended::Key));
        }
        assert!(watchers.held().senders.len() <= 256);
    }
}
