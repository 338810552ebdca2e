//! The calls that the worker of the page makes, without generated glue code. It calls [`room`] for memory, writes the
//! file and after it the file's name there, and calls [`open`]. Then it calls [`next`] for the address of each message
//! and [`length`] for its size in bytes.

use shared::wire::{self, ServerMessage};
use std::cell::RefCell;

// SAFETY: the worker gives the module this function, which takes the share of the file that was read.
#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    safe fn progress(share: f64);
}

#[cfg(not(target_family = "wasm"))]
fn progress(_: f64) {}

#[derive(Default)]
struct ReaderState {
    room: Vec<u8>,
    /// Messages that the page has not taken yet; the next one is last.
    messages: Vec<ServerMessage>,
    message: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<ReaderState> = RefCell::default();
}

fn with<T>(what: impl FnOnce(&mut ReaderState) -> T) -> T {
    STATE.with_borrow_mut(what)
}

/// Allocates memory for `bytes` bytes and returns its address.
// SAFETY: no other function of the module has this name. Natively, where a library has a function of this name, the
// name is mangled.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    with(|state| {
        state.room = vec![0; bytes];
        state.room.as_mut_ptr()
    })
}

/// Opens the file in the memory that [`room`] returned. The last `name` bytes there are the file's name in UTF-8.
// SAFETY: the reason is the same as for `room`.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn open(name: usize) {
    with(|state| {
        let room = std::mem::take(&mut state.room);
        let (file, name) = room.split_at(room.len().saturating_sub(name));
        state.messages = crate::messages(file, &String::from_utf8_lossy(name), &mut |share| progress(share));
        state.messages.reverse();
    });
}

/// Address of the next message, valid until the next call; null after the last message.
// SAFETY: the reason is the same as for `room`.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn next() -> *const u8 {
    with(|state| match state.messages.pop() {
        Some(message) => {
            state.message = wire::encode(&message);
            state.message.as_ptr()
        }
        None => std::ptr::null(),
    })
}

/// Size in bytes of the message that [`next`] returned last.
// SAFETY: the reason is the same as for `room`.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn length() -> usize {
    with(|state| state.message.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::wire::{Received, decode_server};

    /// All messages for a file, taken by the calls that the page makes.
    fn messages(name: &str, file: &[u8]) -> Vec<ServerMessage> {
        let given = [file, name.as_bytes()].concat();
        let at = room(given.len());
        // SAFETY: the memory has this size, and nothing else touches it before `open`.
        unsafe { std::ptr::copy_nonoverlapping(given.as_ptr(), at, given.len()) };
        open(name.len());
        let mut messages = Vec::new();
        loop {
            let at = next();
            if at.is_null() {
                return messages;
            }
            // SAFETY: the message stays valid until the next call of `next`.
            let bytes = unsafe { std::slice::from_raw_parts(at, length()) };
            match decode_server(bytes).expect("a message") {
                Received::Control(message) => messages.push(message),
                Received::Ticks(..) | Received::Overview(..) => panic!("nothing is live in a file"),
            }
        }
    }

    #[test]
    fn a_file_becomes_what_a_server_would_say() {
        let table = "time,source,tag,value\n1714566896,node-7,gpu.0.temp,63\n1714566897,node-7,gpu.0.temp,64\n";
        let said = messages("a table.csv", table.as_bytes());
        let [ServerMessage::Hello(hello), ServerMessage::Catalog(_), ServerMessage::Sources(sources), rest @ ..] =
            &said[..]
        else {
            panic!("{said:?}")
        };
        let recorded = hello.recorded.as_ref().expect("nothing of it is live");
        assert_eq!(
            (recorded.from, recorded.to, recorded.title.as_str()),
            (1_714_566_896_000, 1_714_566_897_000, "a table.csv")
        );
        assert_eq!(sources[0].name, "node-7");
        let [
            ServerMessage::Facts { .. },
            ServerMessage::Series { .. },
            ServerMessage::Columns(columns),
            ServerMessage::HistoryEnd { .. },
        ] = rest
        else {
            panic!("{rest:?}")
        };
        assert_eq!(columns.ticks, 2);
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told_with_it() {
        let mut table = String::from("time,source,tag,value\n");
        for second in 0..200 {
            for gpu in 0..3 {
                // The second one is gone from the hundredth second on.
                if gpu == 1 && second >= 100 {
                    continue;
                }
                for (name, value) in [("gpu", 97), ("powerWatts", 600 + second % 7), ("temp", 60)] {
                    table += &format!("{},node-7,gpu.{gpu}.{name},{value}\n", 1_714_566_896 + second);
                }
            }
        }
        let said = messages("night.csv", table.as_bytes());
        let records = said.iter().find_map(|message| match message {
            ServerMessage::Records { records, .. } => Some(records),
            _ => None,
        });
        let records = records.expect("a GPU was lost");
        assert_eq!((records[0].kind.as_str(), records[0].t), ("finding", 1_714_566_896_000 + 102_000));
        let told: shared::finding::Finding = serde_json::from_slice(&records[0].body).expect("a finding");
        assert_eq!((told.rule.as_str(), &told.subject[0].gpus[..]), ("lost_gpu", &[1][..]));
        assert!(told.sentence.contains("GPU 1") && told.sentence.contains("12:36 UTC"), "{}", told.sentence);
        assert!(told.sentence_template.is_some_and(|text| text.contains("{since}") && !text.contains("UTC")));
    }

    #[test]
    fn what_cannot_be_opened_is_said_and_the_next_file_opens() {
        for file in [&b""[..], b"hello", &[0; 500]] {
            let said = messages("notes.txt", file);
            let [ServerMessage::Goodbye { reason }] = &said[..] else { panic!("{said:?}") };
            assert!(reason.contains("what can be opened is a recording of watchglass record"), "{reason}");
        }
        assert!(messages("x.csv", b"time,tag,value\n1,gpu.0.temp,63\n").len() > 1);
    }
}
