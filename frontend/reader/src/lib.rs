//! Opens files for the page. It is a separate WebAssembly module, which a worker of the page (worker.js) loads when the
//! first file is opened, because most visits open none.
//!
//! It returns the messages that a server would send, so the page handles both in the same way.
//! [`ServerMessage::Goodbye`] says why a file cannot be opened. No file can stop the page: each file is opened in an
//! instance with its own memory, which is freed with the instance. The page calls the functions of [`border`] only.

pub mod border;

use shared::catalog::{Catalog, VOCABULARY};
use shared::wire::ServerMessage;

/// The messages for a file with this name. A goodbye is the only message when nothing of the file can be shown. `tell`
/// gets the share of the file that was read, 0 to 1.
pub fn messages(file: &[u8], name: &str, tell: &mut dyn FnMut(f64)) -> Vec<ServerMessage> {
    let vocabulary = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
    match imports::from_bytes(file, name, vocabulary, tell) {
        Ok(recording) => recording.messages(),
        Err(error) => vec![ServerMessage::Goodbye { reason: error.to_string() }],
    }
}
