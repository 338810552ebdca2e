//! Opens files for the page: a WebAssembly module of its own that the page loads when the first file is dropped on it,
//! because most visits open none.
//!
//! It answers with the very messages that a server would send, so that they take the same way through the page. What it
//! cannot open is told by a [`ServerMessage::Goodbye`]. Whatever a file makes it do, the page goes on: it is another
//! instance with a memory of its own, which is gone when the page lets go of it. [`border`] is all that the page sees.

pub mod border;

use shared::catalog::{Catalog, VOCABULARY};
use shared::wire::ServerMessage;

/// The messages for a file of this name; a goodbye alone when nothing of it can be shown.
pub fn messages(file: &[u8], name: &str) -> Vec<ServerMessage> {
    let vocabulary = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
    match runs::from_bytes(file, name, vocabulary) {
        Ok(recording) => recording.messages(),
        Err(error) => vec![ServerMessage::Goodbye { reason: error.to_string() }],
    }
}
