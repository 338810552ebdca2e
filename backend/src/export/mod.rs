//! Stored samples as text: responses to queries, and exports as CSV, JSON lines and OpenMetrics, over HTTP and on the
//! command line.
//!
//! Reading order: an [`Ask`] chooses series of a store ([`select`]); a [`Selection`] is read series by series, in
//! batches whose size does not depend on the span (`read.rs`); a [`Form`] writes them, and [`Pieces`] returns the text
//! in chunks. So a response of any length needs the memory of a few batches. This module reads no clock and no socket.

pub mod command;
mod count;
mod events;
mod fit;
mod forms;
pub mod openmetrics;
mod read;
mod select;
pub mod text;

pub use count::Count;
pub use fit::{Look, Patterns, Search, Wanted};
pub use forms::Form;
pub use select::{Ask, Refused, Selection, chosen, fitting, select};

use events::Events;
use read::{Reading, Values};
use select::SourceRecords;
use shared::note::SavedNote;
use std::sync::Arc;
use stream::names::hide_in_record;

/// An export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `time,source,tag,value`; with a step `time,source,tag,min,max,mean,last,count`.
    Csv,
    /// One JSON object a line; after the samples the records of the same machines and span, which the other formats
    /// leave out. With a step or as rates there are none.
    Json,
    /// OpenMetrics 1.0 with time stamps, under Prometheus' names.
    OpenMetrics,
    /// The lines of W&B's `wandb-events.jsonl`.
    WandbJsonl,
}

impl Format {
    /// All formats by name.
    pub const ALL: [(&'static str, Format); 4] = [
        ("csv", Format::Csv),
        ("json", Format::Json),
        ("openmetrics", Format::OpenMetrics),
        ("wandb-jsonl", Format::WandbJsonl),
    ];

    /// The format of this name.
    ///
    /// # Errors
    /// The rest of a sentence that gives the remedy.
    pub fn from_name(name: &str) -> Result<Format, String> {
        let names = Self::ALL.map(|(name, _)| name).join(", ");
        let found = Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format);
        found.ok_or_else(|| format!("is one of {names}, not {name:?}"))
    }

    /// The writer of this format. It sorts the selection in the order of output.
    ///
    /// # Errors
    /// The format cannot express it.
    pub fn form(self, selection: &mut Selection) -> Result<Box<dyn Form + Send>, Refused> {
        Ok(match self {
            Format::Csv => Box::new(forms::Csv::default()),
            Format::Json => Box::new(forms::JsonLines::default()),
            Format::OpenMetrics if selection.ask.step.is_some() || selection.ask.rate => {
                return Err(Refused::Wrong(
                    "openmetrics exports samples without aggregation; leave out step and fn, or use csv or json".into(),
                ));
            }
            Format::OpenMetrics => Box::new(forms::Open::new(selection)),
            Format::WandbJsonl if selection.ask.step.is_some() || selection.ask.rate => {
                return Err(Refused::Wrong(
                    "wandb-jsonl exports samples without aggregation; leave out step and fn, or use csv or json".into(),
                ));
            }
            Format::WandbJsonl => Box::new(forms::EventLines),
        })
    }
}

/// The format of a query's response. `older` is another server's data from before our history, as JSON. `holes` are
/// the spans of samples still in transit, milliseconds since the Unix epoch.
pub fn query(selection: &Selection, older: Option<String>, holes: &[(i64, i64)]) -> Box<dyn Form + Send> {
    Box::new(forms::Query::new(selection, older, holes))
}

/// Size of a chunk, bytes.
const PIECE_BYTES: usize = 128 * 1024;

/// The text of a selection in a format, in chunks.
pub struct Pieces {
    selection: Arc<Selection>,
    form: Box<dyn Form + Send>,
    reading: Reading,
    /// Lines by time, if the format has them.
    events: Option<Events>,
    /// The series that is being written.
    values: Option<Values>,
    /// Notes of people, until they are written.
    notes: Vec<SavedNote>,
    begun: bool,
    ended: bool,
}

impl Pieces {
    /// Nothing is read yet.
    pub fn new(selection: impl Into<Arc<Selection>>, form: Box<dyn Form + Send>) -> Self {
        let selection: Arc<Selection> = selection.into();
        let reading = Reading::new(selection.clone());
        let events = form.by_time().then(|| Events::new(selection.clone()));
        Pieces { selection, form, reading, events, values: None, notes: Vec::new(), begun: false, ended: false }
    }

    /// With these notes behind the records.
    pub fn with_notes(self, notes: Vec<SavedNote>) -> Self {
        Pieces { notes, ..self }
    }

    /// Whether everything was returned.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Writes the next records; false when there are none.
    fn write_records(&mut self, text: &mut String) -> bool {
        let mut left = self.selection.records.lock();
        while let Some(SourceRecords { name, is_nameless, left: snapshot }) = left.first_mut() {
            match snapshot.next() {
                Some(records) => {
                    records.iter().for_each(|record| match *is_nameless {
                        true => self.form.record(text, name, &hide_in_record(record)),
                        false => self.form.record(text, name, record),
                    });
                    return true;
                }
                None => drop(left.remove(0)),
            }
        }
        drop(left);
        let notes = std::mem::take(&mut self.notes);
        notes.iter().for_each(|note| self.form.note(text, note));
        !notes.is_empty()
    }

    /// Writes values of the current series until the chunk is full; false at the end of the series.
    fn fill(&mut self, text: &mut String) -> bool {
        let form = &mut self.form;
        match &mut self.values {
            None => return false,
            Some(Values::Points(points)) => {
                for (t, v) in points {
                    form.point(text, t, v);
                    if text.len() >= PIECE_BYTES {
                        return true;
                    }
                }
            }
            Some(Values::Buckets(buckets)) => {
                for bucket in buckets {
                    form.bucket(text, &bucket);
                    if text.len() >= PIECE_BYTES {
                        return true;
                    }
                }
            }
        }
        self.values = None;
        form.series_end(text);
        false
    }
}

impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let mut text = String::with_capacity(PIECE_BYTES + 4096);
        if let Some(events) = &mut self.events {
            self.ended = !events.write(&mut text);
            return Some(text);
        }
        if !std::mem::replace(&mut self.begun, true) {
            self.form.begin(&mut text, &self.selection);
        }
        while !self.fill(&mut text) {
            match self.reading.next() {
                Some((wanted, values)) => {
                    self.form.series(&mut text, &self.selection, wanted);
                    self.values = Some(values);
                }
                // Records come last, some at a time.
                None if self.form.has_records() && self.write_records(&mut text) => break,
                None => {
                    self.form.end(&mut text);
                    self.ended = true;
                    break;
                }
            }
        }
        Some(text)
    }
}

#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod tests;
