//! Messages of launchers and scripts on the socket: rate limits, and answers.

use super::permit::without_claims;
use super::socket::{Message, RunSocket, SentBy};
use super::spool::Spool;
use super::track::{TOO_MANY_MARKERS, Tracker};
use crate::code_alerts::{Calls, TOO_MANY_CALLS};
use crate::markers::Markers;
use crate::values;
use launch::peer::Sender;
use shared::alert::CodeAlert;
use shared::new_marker::NewMarker;
use shared::new_values::NewValues;
use shared::run::{StacksAsked, TAKEN, TellAnswer, Told};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum rate of messages: each one writes a record.
const MAX_MESSAGES: governor::Quota = governor::Quota::per_second(std::num::NonZeroU32::new(100).expect("not zero"));

/// Maximum rates of another user: of reports about runs, whose many ranks may begin at once; and of markers and alerts.
const TOLD_BY_OTHERS: governor::Quota = governor::Quota::per_second(std::num::NonZeroU32::new(1).expect("not zero"))
    .allow_burst(std::num::NonZeroU32::new(600).expect("not zero"));
const MARKED_BY_OTHERS: governor::Quota =
    governor::Quota::per_second(std::num::NonZeroU32::new(100).expect("not zero"));

/// Maximum rate of markers over all runs, and of alerts: each run has a lower limit.
const MAX_MARKERS: governor::Quota = governor::Quota::per_second(std::num::NonZeroU32::new(500).expect("not zero"));

/// Maximum rate of messages with values: of all processes, and of another user's. Each process has a lower limit, and no
/// message writes a record.
const MAX_VALUES: governor::Quota = governor::Quota::per_second(std::num::NonZeroU32::new(5_000).expect("not zero"));
const VALUES_BY_OTHERS: governor::Quota =
    governor::Quota::per_second(std::num::NonZeroU32::new(1_000).expect("not zero"));

/// Kind of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// Begin or end of a process.
    Told,
    Other,
}

/// State for receiving messages.
pub(super) struct Messages {
    pub socket: RunSocket,
    /// The data folder.
    folder: PathBuf,
    /// Spool folder of launchers.
    pub spool: Option<Spool>,
    markers: Arc<Markers>,
    calls: Arc<Calls>,
    pub limit: governor::DefaultDirectRateLimiter,
    markers_limit: governor::DefaultDirectRateLimiter,
    calls_limit: governor::DefaultDirectRateLimiter,
    values_limit: governor::DefaultDirectRateLimiter,
    others: Limits,
}

/// Rate limits of each user: of reports, of markers and alerts, and of values.
type Limits = [governor::DefaultKeyedRateLimiter<Option<u32>>; 3];

fn is_too_much(limits: &Limits, sender: &SentBy, message: &Message) -> bool {
    let [told, rest, values] = limits;
    let limit = match message {
        Message::Told(_) => told,
        Message::Values(_) => values,
        _ => rest,
    };
    limit.check_key(&sender.from.uid).is_err()
}

impl Messages {
    pub fn new(
        socket: RunSocket,
        folder: &Path,
        spool: Option<Spool>,
        (markers, calls): (Arc<Markers>, Arc<Calls>),
    ) -> Messages {
        Messages {
            socket,
            folder: folder.to_path_buf(),
            spool,
            markers,
            calls,
            limit: governor::RateLimiter::direct(MAX_MESSAGES),
            markers_limit: governor::RateLimiter::direct(MAX_MARKERS),
            calls_limit: governor::RateLimiter::direct(MAX_MARKERS),
            values_limit: governor::RateLimiter::direct(MAX_VALUES),
            others: [TOLD_BY_OTHERS, MARKED_BY_OTHERS, VALUES_BY_OTHERS].map(governor::RateLimiter::keyed),
        }
    }

    /// Handles one message, and answers it. A sender that receives no answer keeps its message.
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
                self.receive_report(tracker, *told, sender);
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
            Message::NewId(run) => {
                let id = tracker.owners.new_id(&run, &sender.user, tracker.live.clock.wall());
                self.socket.answer(&sender.from, &id);
            }
            Message::Stacks(run) => {
                tracker.registry().stacks.offer(&tracker.owners.id(&run, Some(&sender.user)), sender.from);
            }
            Message::Marker(new) => self.marker(tracker, *new, sender),
            Message::Alert(said) => self.alert(tracker, *said, sender),
            Message::Values(new) => self.values(tracker, *new, sender),
        }
        Received::Other
    }

    /// Sends requests for stacks to their launchers.
    pub fn send_requests(&self, requests: &[(Sender, StacksAsked)]) {
        for (launcher, asked) in requests {
            self.socket.answer(launcher, &serde_json::to_string(asked).expect("numbers only"));
        }
    }

    fn receive_report(&self, tracker: &mut Tracker, told: Told, sender: &SentBy) {
        let now = tracker.live.clock.wall();
        let (is_taken, listed) = tracker.receive_report(if sender.is_other { without_claims(told, now) } else { told });
        if is_taken {
            let place = self.spool.as_ref().filter(|_| !sender.is_other).and_then(|spool| spool.path().to_str());
            let answer = TellAnswer { taken: true, listed, folder: place.map(Into::into) };
            self.socket.answer(&sender.from, &serde_json::to_string(&answer).expect("texts only"));
        }
    }

    fn marker(&self, tracker: &mut Tracker, mut new: NewMarker, sender: &SentBy) {
        if sender.is_other {
            // The ID belongs to this user: it cannot replace a marker of another user.
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

    fn values(&self, tracker: &Tracker, mut new: NewValues, sender: &SentBy) {
        if sender.is_other {
            new.run = new.run.map(|run| tracker.owners.id(&run, Some(&sender.user)));
        }
        let count = new.values.len() as u64;
        let answer = match self.values_limit.check() {
            Ok(()) => tracker.values(new, sender.from.pid),
            Err(_) => {
                tracker.drop_values(count);
                Err(values::too_many(count))
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

/// Creates the folder in which launchers store the output of their jobs.
fn log_folder(folder: &Path) -> std::io::Result<String> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = folder.canonicalize()?.join(shared::output::FOLDER);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    folder.into_os_string().into_string().map_err(|_| std::io::Error::other("its path is not valid text"))
}
