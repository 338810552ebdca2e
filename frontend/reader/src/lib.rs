//! Opens files for the page. It is a separate WebAssembly module, which a worker of the page (worker.js) loads when the
//! first file is opened, because most visits open none.
//!
//! It returns the messages that a server would send, so the page handles both in the same way.
//! [`ServerMessage::Goodbye`] has the reason why a file cannot be opened. No file can stop the page: each file is
//! opened in an instance with its own memory, which is freed with the instance. The page calls the functions of
//! [`border`] only.

pub mod border;

use insight::Settings;
use insight::recording::look_through;
use shared::catalog::{Catalog, VOCABULARY};
use shared::finding::{FINDING_KIND, Finding};
use shared::record::Record;
use shared::recording::Recording;
use shared::wire::ServerMessage;

/// The messages for a file with this name. A goodbye is the only message when nothing of the file can be shown. `tell`
/// gets the share of the file that was read, 0 to 1.
pub fn messages(file: &[u8], name: &str, tell: &mut dyn FnMut(f64)) -> Vec<ServerMessage> {
    let vocabulary = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
    match imports::from_bytes(file, name, vocabulary, tell) {
        Ok(mut recording) => {
            tell_findings(&mut recording);
            recording.messages()
        }
        Err(error) => vec![ServerMessage::Goodbye { reason: error.to_string() }],
    }
}

/// Adds the faults of a recording as records of their machines, at the time of the report.
fn tell_findings(recording: &mut Recording) {
    for finding in look_through(recording, Settings::default()).into_iter().map(Finding::into_answer) {
        let Some(place) = finding.subject.first() else { continue };
        let machine = recording.machines.iter_mut().find(|machine| machine.info.name == place.source);
        let (Some(machine), Ok(body)) = (machine, serde_json::to_vec(&finding)) else { continue };
        let n = machine.records.last().map_or(1, |last| last.n + 1);
        let (t, kind) = (finding.told * 1000, FINDING_KIND.into());
        machine.records.push(Record { n, t, kind, body });
    }
}
