//! Opens files for the page: a WebAssembly module of its own that the page loads when the first file is dropped on it,
//! because most visits open none.
//!
//! It answers with the very messages that a server would send, so that they take the same way through the page. What it
//! cannot open is told by a [`ServerMessage::Goodbye`]. Whatever a file makes it do, the page goes on: it is another
//! instance with a memory of its own, which is gone when the page lets go of it. [`border`] is all that the page sees.

pub mod border;

use shared::recording::{Recording, TITLE};
use shared::wire::ServerMessage;

/// The messages for a file of this name; a goodbye alone, whose reason goes behind the name, when nothing of it can be
/// shown.
pub fn messages(file: Vec<u8>, name: &str) -> Vec<ServerMessage> {
    opened(file, name).unwrap_or_else(|reason| vec![ServerMessage::Goodbye { reason }])
}

fn opened(file: Vec<u8>, name: &str) -> Result<Vec<ServerMessage>, String> {
    let mut recording = Recording::open(file).map_err(|error| {
        format!(
            "is {error}. A page opens recordings of watchglass record; W&B's files and CSV open with watchglass import"
        )
    })?;
    if recording.span().is_none() {
        return Err(format!("holds no sample that can be read. {}", recording.notes.join("; ")).trim_end().into());
    }
    if !recording.about.iter().any(|(fact, _)| fact == TITLE) {
        recording.about.push((TITLE.into(), name.into()));
    }
    Ok(recording.messages())
}
