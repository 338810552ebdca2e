//! Takes the messages of a server, or of the module that reads a file, into the state.

use super::{LinkState, Page};
use crate::browser::now;
use crate::store::Changed;
use leptos::prelude::*;
use shared::finding::FINDING_KIND;
use shared::wire::{self, Hello, PROTOCOL, PageMessage, ServerMessage, SourceId};

/// The task that a message leaves to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// There is nothing to do.
    Control,
    /// The link counts and acknowledges the ticks.
    Ticks,
    /// The server has answered the open request, so the next one may be sent.
    Answered,
    /// The bytes were invalid, or a tick is missing. The link reconnects and requests everything again.
    Broken,
}

impl Page {
    /// Takes in a message.
    pub fn receive(self, bytes: &[u8]) -> Received {
        match wire::decode_server(bytes) {
            Ok(wire::Received::Ticks(source, frames)) => {
                let applied = self.store.write_value().ticks(source, &frames);
                if self.shows(source) {
                    self.told.set_value(now());
                }
                match applied {
                    Ok(true) => self.sampled(source),
                    Ok(false) => {}
                    Err(_) => return self.broken(),
                }
                Received::Ticks
            }
            Ok(wire::Received::Overview(grain, frames)) => {
                let applied = self.store.write_value().fleet.apply(grain, &frames);
                match applied {
                    Ok(_) => self.surveyed(),
                    Err(_) => return self.broken(),
                }
                Received::Ticks
            }
            Ok(wire::Received::Control(message)) => self.control(message),
            Err(_) => self.broken(),
        }
    }

    fn broken(self) -> Received {
        self.store.write_value().take(ServerMessage::Resync);
        Received::Broken
    }

    /// True when a machine is the one that is shown.
    fn shows(&self, source: SourceId) -> bool {
        let store = self.store.read_value();
        self.view.with_untracked(|v| store.source(v.source.as_deref()).is_some_and(|s| s.info.id == source))
    }

    fn sampled(self, source: SourceId) {
        if self.state.get_untracked() != LinkState::Live {
            self.live();
            // The page may lack history that it requested while the connection was down.
            self.load();
        }
        let back = self.store.write_value().sources.get_mut(&source).and_then(|s| s.hand_back());
        if let Some((from, to)) = back {
            self.ask(PageMessage::History { source, from, to });
            // Missing history is requested here too, since no other event may follow while the view rests.
            self.load();
        }
        self.changed(Changed { ticks: true, ..Changed::default() });
    }

    /// The server has shown that it is there.
    fn live(self) {
        self.goodbye.set(String::new());
        self.state.set(LinkState::Live);
        self.changed(Changed { plan: true, ..Changed::default() });
    }

    /// An overview has new values.
    fn surveyed(self) {
        if self.state.get_untracked() != LinkState::Live {
            self.live();
        }
        self.changed(Changed { fleet: true, ..Changed::default() });
    }

    /// Stores the number of machines. Without machines, no other message would show that the server responds.
    pub(super) fn count(self) {
        let count = self.store.read_value().index.len();
        if self.machines.get_untracked() != Some(count) {
            self.machines.set(Some(count));
        }
        if count == 0 && self.state.get_untracked() != LinkState::Live && !self.is_recorded() {
            self.live();
        }
    }

    fn control(self, message: ServerMessage) -> Received {
        match &message {
            ServerMessage::Processes(table) => {
                self.processes.set(Some(table.clone()));
                return Received::Control;
            }
            ServerMessage::Past(past) => {
                self.past.set(Some(past.clone()));
                return Received::Control;
            }
            ServerMessage::Records { records, .. } if self.over.get_untracked() => {
                let told = records.iter().filter(|record| record.kind == FINDING_KIND);
                let told: Vec<String> = told.filter_map(|record| String::from_utf8(record.body.clone()).ok()).collect();
                if !told.is_empty() {
                    self.file_findings.update(|all| all.extend(told));
                }
            }
            ServerMessage::Hello(hello) => self.greeted(hello),
            // Old samples are samples that arrive.
            ServerMessage::Columns(columns) if self.shows(columns.source) => self.told.set_value(now()),
            ServerMessage::Minutes(minutes) if self.shows(minutes.source) => self.told.set_value(now()),
            ServerMessage::Heartbeat { now: theirs } => {
                // It is sent where nothing else waits to be sent.
                self.idle.set_value(*theirs);
                self.ahead.set_value(theirs - now());
                // The server responds without a tick, so its stored samples of the machine are shown.
                if self.state.get_untracked() != LinkState::Live && self.has_samples() {
                    self.live();
                }
            }
            ServerMessage::Goodbye { reason } => {
                self.goodbye.set(reason.clone());
                if self.accounts.get_untracked() {
                    self.turned_away.update(|n| *n += 1);
                }
            }
            _ => {}
        }
        let answered =
            matches!(message, ServerMessage::HistoryEnd { more: false, .. } | ServerMessage::MinutesEnd { .. });
        let hello = matches!(message, ServerMessage::Hello(_));
        let changed = self.store.write_value().take(message);
        self.changed(changed);
        if answered && self.is_recorded() {
            // A recording has history only, so its end makes the page live.
            self.live();
        }
        if hello {
            self.fit();
        }
        if !answered {
            return Received::Control;
        }
        self.load();
        Received::Answered
    }

    fn greeted(self, hello: &Hello) {
        self.ahead.set_value(hello.now - now());
        self.accounts.set(hello.accounts);
        let known = self.player.with_untracked(|p| p.as_ref().map(|p| p.recorded.clone()));
        if let Some(recorded) = hello.recorded.clone().filter(|recorded| known.as_ref() != Some(recorded)) {
            self.recorded(recorded);
        }
        if hello.protocol != PROTOCOL {
            self.goodbye.set(format!("The server is now version {}: reload the page.", hello.version));
            self.state.set(LinkState::Lost);
        }
    }

    fn has_samples(&self) -> bool {
        let store = self.store.read_value();
        self.view.with_untracked(|v| store.source(v.source.as_deref()).is_some_and(|s| s.last_t().is_some()))
    }
}
