//! What the page holds: sources with their series, sealed chunks as they came over the wire (still compressed), the
//! head of newest ticks, and ways to read them. No browser here: it compiles and is tested natively.
//!
//! [`source`] one machine; [`trace`] one series reduced to columns, fed as ticks come; [`presence`] how many instants a
//! chart has; [`reading`] the newest value of a series; [`plan`] which panels, tiles and sections there are.

pub mod plan;
pub mod presence;
pub mod reading;
pub mod source;
pub mod trace;

use shared::catalog::Catalog;
use shared::wire::{CheckState, Hello, Resume, ServerMessage, SourceId};
use source::Source;
use std::collections::BTreeMap;

/// What a message changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// A tick arrived: there is something new to draw.
    pub ticks: bool,
    /// Series, checks, sources or the catalogue: the plan may be another.
    pub plan: bool,
    /// Older history arrived: what was reduced is incomplete.
    pub history: bool,
}

/// Everything that the server told.
#[derive(Default)]
pub struct Store {
    /// First message of the connection.
    pub hello: Option<Hello>,
    /// Metrics and layout.
    pub catalog: Catalog,
    /// Machines by number.
    pub sources: BTreeMap<SourceId, Source>,
}

impl Store {
    /// The source of that name, else the first.
    pub fn source(&self, name: Option<&str>) -> Option<&Source> {
        self.sources.values().find(|s| Some(s.info.name.as_str()) == name).or_else(|| self.sources.values().next())
    }

    /// Takes a control message in.
    pub fn take(&mut self, message: ServerMessage) -> Changed {
        let mut changed = Changed::default();
        match message {
            ServerMessage::Hello(hello) => {
                if self.hello.as_ref().is_some_and(|h| h.boot != hello.boot) {
                    self.sources.clear();
                }
                self.hello = Some(hello);
            }
            ServerMessage::Catalog(catalog) => {
                self.catalog = catalog;
                changed.plan = true;
            }
            ServerMessage::Sources(list) => {
                self.sources.retain(|id, _| list.iter().any(|s| s.id == *id));
                for info in list {
                    let source = self.sources.entry(info.id).or_insert_with(|| Source::new(info.clone()));
                    source.info = info;
                }
                changed.plan = true;
            }
            ServerMessage::Series { source, first, defs } => {
                if let Some(s) = self.sources.get_mut(&source) {
                    s.announce(first, defs, &self.catalog);
                    changed.plan = true;
                }
            }
            ServerMessage::Checks { source, checks } => {
                if let Some(s) = self.sources.get_mut(&source) {
                    s.checks = checks;
                    changed.plan = true;
                }
            }
            ServerMessage::Columns(columns) => {
                if let Some(s) = self.sources.get_mut(&columns.source) {
                    s.keep(columns);
                }
            }
            ServerMessage::HistoryEnd { source, from } => {
                if let Some(s) = self.sources.get_mut(&source) {
                    changed.history = s.history_end(from);
                }
            }
            ServerMessage::Resync => {
                self.sources.values_mut().for_each(|s| *s = Source::new(s.info.clone()));
                changed.plan = true;
            }
            ServerMessage::Heartbeat { .. } | ServerMessage::Goodbye { .. } => {}
        }
        changed
    }

    /// Takes tick frames in; false when they do not fit, and everything must come anew.
    pub fn ticks(&mut self, source: SourceId, frames: &[&[u8]]) -> Result<bool, shared::tick::FrameError> {
        let Some(s) = self.sources.get_mut(&source) else { return Ok(false) };
        let mut any = false;
        for frame in frames {
            any |= s.apply(frame)?;
        }
        let keep = self.hello.as_ref().map_or(43_200_000, |h| h.retention);
        s.forget(keep);
        Ok(any)
    }

    /// Where this page stands, to go on from there.
    pub fn places(&self) -> Option<Resume> {
        let places: Vec<_> =
            self.sources.iter().filter_map(|(id, s)| Some((*id, s.last_seq()?, s.defs.len() as u32))).collect();
        let boot = self.hello.as_ref()?.boot;
        (!places.is_empty()).then_some(Resume { boot, places })
    }
}

/// True for a state in which a collector gives no value and will give none by itself.
pub fn is_missing(state: CheckState) -> bool {
    matches!(state, CheckState::Absent | CheckState::Denied | CheckState::Failed | CheckState::Hung)
}
