//! What launchers and scripts send on the socket: how much of it is taken, and what is answered.

use super::permit::without_claims;
use super::socket::{Message, RunSocket, SentBy};
use super::spool::Untold;
use super::track::{TOO_MANY_MARKERS, Tracker};
use crate::code_alerts::{Calls, TOO_MANY_CALLS};
use crate::markers::Markers;
use shared::alert::CodeAlert;
use shared::new_marker::NewMarker;
use shared::run::{TAKEN, TellAnswer, Told};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most messages a second: a record is written for each.
const MAX_MESSAGES: governor::Quota = governor::Quota::per_second(std::num::NonZeroU32::new(100).expect("not zero"));

/// The most of another user who tells of runs, who may begin one of many ranks at once, and of one who puts markers and alerts.
const TOLD_BY_OTHERS: governor::Quota = governor::Quota::per_second(std::num::NonZeroU32::new(1).expect("not zero"))
    .allow_burst(std::num::NonZeroU32::new(600).expect("not zero"));
const MARKED_BY_OTHERS: governor::Quota =
    governor::Quota::per_second(std::num::NonZeroU32::new(100).expect("not zero"));

/// Likewise of markers of all runs together, and of alerts: each run has less.
const MAX_MARKERS: governor::Quota = governor::Quota::per_second(std::num::NonZeroU32::new(500).expect("not zero"));

/// What a message was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// A process that began or ended.
    Told,
    Other,
}

/// What is needed to take messages.
pub(super) struct Messages {
    pub socket: RunSocket,
    /// The data folder.
    folder: PathBuf,
    /// What launchers wrote into it.
    pub untold: Option<Untold>,
    markers: Arc<Markers>,
    calls: Arc<Calls>,
    pub limit: governor::DefaultDirectRateLimiter,
    markers_limit: governor::DefaultDirectRateLimiter,
    calls_limit: governor::DefaultDirectRateLimiter,
    others: Limits,
}

/// Limits of each user: of what is told, and of the rest.
type Limits = [governor::DefaultKeyedRateLimiter<Option<u32>>; 2];

fn is_too_much(limits: &Limits, sender: &SentBy, message: &Message) -> bool {
    let [told, rest] = limits;
    let limit = if matches!(message, Message::Told(_)) { told } else { rest };
    limit.check_key(&sender.from.uid).is_err()
}

impl Messages {
    pub fn new(
        socket: RunSocket,
        folder: &Path,
        untold: Option<Untold>,
        (markers, calls): (Arc<Markers>, Arc<Calls>),
    ) -> Messages {
        Messages {
            socket,
            folder: folder.to_path_buf(),
            untold,
            markers,
            calls,
            limit: governor::RateLimiter::direct(MAX_MESSAGES),
            markers_limit: governor::RateLimiter::direct(MAX_MARKERS),
            calls_limit: governor::RateLimiter::direct(MAX_MARKERS),
            others: [TOLD_BY_OTHERS, MARKED_BY_OTHERS].map(governor::RateLimiter::keyed),
        }
    }

    /// Takes one message, and answers it. A sender without an answer keeps what it has to tell.
    pub fn receive(&self, tracker: &mut Tracker, message: Message, sender: &SentBy) -> Received {
        if sender.is_other && is_too_much(&self.others, sender, &message) {
            tracker.drop_one();
            return Received::Other;
        }
        if let Err(why) = tracker.permits(sender, &message) {
            self.socket.refuse(sender, &why);
            return Received::Other;
        }
        match message {
            Message::Told(told) if sender.is_other || self.limit.check().is_ok() => {
                self.told(tracker, *told, sender);
                return Received::Told;
            }
            Message::Told(_) => tracker.drop_one(),
            Message::Logs(run) => {
                let run = tracker.owners.id(&run, Some(&sender.user));
                let answer = log_folder(&self.folder).map(|folder| format!("{folder}\n{run}"));
                let answer = answer.unwrap_or_else(|error| {
                    tracing::warn!(%error, "what runs print is not kept: there is no folder for it");
                    format!("the server cannot create its folder: {error}")
                });
                self.socket.answer(&sender.from, &answer);
            }
            Message::Marker(new) => self.marker(tracker, *new, sender),
            Message::Alert(said) => self.alert(tracker, *said, sender),
        }
        Received::Other
    }

    fn told(&self, tracker: &mut Tracker, told: Told, sender: &SentBy) {
        let now = tracker.live.clock.wall();
        let (is_taken, listed) = tracker.told(if sender.is_other { without_claims(told, now) } else { told });
        if is_taken {
            let place = self.untold.as_ref().filter(|_| !sender.is_other).and_then(|untold| untold.path().to_str());
            let answer = TellAnswer { taken: true, listed, folder: place.map(Into::into) };
            self.socket.answer(&sender.from, &serde_json::to_string(&answer).expect("texts only"));
        }
    }

    fn marker(&self, tracker: &mut Tracker, mut new: NewMarker, sender: &SentBy) {
        if sender.is_other {
            // It is theirs alone: it stands for no marker of somebody else.
            new.id = new.id.map(|id| format!("{}.{id}", sender.user));
            new.run = new.run.map(|run| tracker.owners.id(&run, Some(&sender.user)));
        }
        let answer = match self.markers_limit.check() {
            Ok(()) => tracker.marker(&self.markers, new, sender.from.pid),
            Err(_) => {
                self.markers.drop_one();
                Err(TOO_MANY_MARKERS.into())
            }
        };
        self.socket.answer(&sender.from, answer.as_ref().map_or_else(String::as_str, |()| TAKEN));
    }

    fn alert(&self, tracker: &Tracker, mut said: CodeAlert, sender: &SentBy) {
        if sender.is_other {
            said.run = said.run.map(|run| tracker.owners.id(&run, Some(&sender.user)));
        }
        let answer = match self.calls_limit.check() {
            Ok(()) => tracker.alert(&self.calls, said, sender.from.pid),
            Err(_) => {
                self.calls.drop_one();
                Err(TOO_MANY_CALLS.into())
            }
        };
        self.socket.answer(&sender.from, answer.as_ref().map_or_else(String::as_str, |()| TAKEN));
    }
}

/// The folder in which launchers keep what their jobs print; it is made.
fn log_folder(folder: &Path) -> std::io::Result<String> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = folder.canonicalize()?.join(shared::output::FOLDER);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    folder.into_os_string().into_string().map_err(|_| std::io::Error::other("its path is not valid text"))
}
