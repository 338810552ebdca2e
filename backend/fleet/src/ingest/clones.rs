//! Cloned machines that share a key and are linked in turn, each for a while. Their links never overlap, so only their
//! boot IDs distinguish them.

use super::Arrival;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Number of alternating boots within this time that means two machines.
const CLONE_TURNS: usize = 3;
const CLONE_WINDOW: Duration = Duration::from_secs(600);

/// A process that was linked.
#[derive(Clone, Debug)]
struct LinkedProcess {
    at: Duration,
    boot: [u8; 32],
    /// Its host and network of origin.
    who: String,
}

/// The boots of one source.
#[derive(Debug, Default)]
struct Boots {
    /// Their common key: a machine that joins again has another one.
    key: String,
    /// One entry per change of the boot, the newest last.
    seen: VecDeque<LinkedProcess>,
    /// Descriptions of both machines, once detected.
    clones: Option<(String, String)>,
}

/// The boots of all sources.
#[derive(Debug, Default)]
pub(super) struct Clones(Mutex<BTreeMap<String, Boots>>);

impl Clones {
    /// Records that a process is linked, at this time of the steady clock. Returns a sentence if its key may not be
    /// used, because another machine has it too: an earlier boot has returned, and repeatedly. That stays so until an
    /// admin makes one of them join again. A machine that restarts often is no clone: each time it has another boot.
    pub fn linked(&self, arrival: &Arrival, boot: Option<[u8; 32]>, host: &str, now: Duration) -> Option<String> {
        let boot = boot?;
        let mut all = self.0.lock();
        let recent = |boots: &Boots| boots.seen.back().is_some_and(|seen| now.saturating_sub(seen.at) < CLONE_WINDOW);
        all.retain(|source, boots| *source == arrival.source || boots.clones.is_some() || recent(boots));
        let boots = all.entry(arrival.source.clone()).or_default();
        if boots.key != arrival.key {
            *boots = Boots { key: arrival.key.clone(), ..Boots::default() };
        }
        if boots.seen.back().is_none_or(|last| last.boot != boot) {
            boots.seen.push_back(LinkedProcess { at: now, boot, who: format!("{host} ({})", arrival.from) });
        }
        // The boot before the first change counts as well, whatever its age.
        while boots.seen.get(1).is_some_and(|seen| now.saturating_sub(seen.at) >= CLONE_WINDOW)
            || boots.seen.len() > CLONE_TURNS + 1
        {
            boots.seen.pop_front();
        }
        let newest = boots.seen.back()?;
        let is_back = boots.seen.iter().rev().skip(1).any(|seen| seen.boot == newest.boot);
        if boots.clones.is_none() && boots.seen.len() > CLONE_TURNS && is_back {
            let other = boots.seen.iter().rev().find(|seen| seen.boot != newest.boot)?;
            boots.clones = Some((other.who.clone(), newest.who.clone()));
        }
        let (one, other) = boots.clones.as_ref()?;
        Some(format!(
            "two machines use this key in turn, {one} and {other}; start one of them with --new-identity and a new \
            join line, and the other with a line of watchglass agents join --as {}",
            arrival.name
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn arrival(key: &str) -> Arrival {
        let (source, from) = ("abc".to_owned(), "10.0.0.5".to_owned());
        Arrival { source, key: key.into(), from, name: "node-7".into(), labels: Vec::new(), relayed: false }
    }

    /// The sentence after the last of these boots, which are `apart` minutes apart.
    fn clone_sentence(clones: &Clones, boots: &[u8], apart: u32) -> Option<String> {
        let link = |(n, boot): (u32, &u8)| {
            clones.linked(&arrival("k1"), Some([*boot; 32]), &format!("host-{boot}"), MINUTE * apart * n)
        };
        (0..).zip(boots).map(link).last().flatten()
    }

    #[test]
    fn boots_that_take_turns_are_two_machines_until_one_of_them_joins_anew() {
        let clones = Clones::default();
        let why = clone_sentence(&clones, &[1, 2, 1, 2], 3).expect("two machines");
        assert!(why.contains("host-1 (10.0.0.5) and host-2 (10.0.0.5)") && why.contains("--as node-7"), "{why}");
        let linked = |key: &str, boot: u8| clones.linked(&arrival(key), Some([boot; 32]), "host", MINUTE * 600);
        assert_eq!(linked("k1", 1), Some(why.clone()), "the other is refused as well, hours later too");
        assert_eq!(linked("k2", 1), None, "an admin has given it a key of its own");
        assert_eq!(linked("k2", 2), None);
    }

    #[test]
    fn one_that_starts_again_and_again_or_links_often_or_changes_slowly_is_one_machine() {
        assert_eq!(clone_sentence(&Clones::default(), &[1, 2, 3, 4, 5, 6], 1), None);
        assert_eq!(clone_sentence(&Clones::default(), &[1, 1, 1, 1, 1, 2, 2], 1), None);
        assert_eq!(clone_sentence(&Clones::default(), &[1, 2, 1, 2, 1], 6), None);
        assert_eq!(Clones::default().linked(&arrival("k1"), None, "host", MINUTE), None);
    }
}
