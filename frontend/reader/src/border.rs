//! What the page calls, without glue in between: it makes [`room`], writes the file and behind it the name there, says
//! [`open`], and takes message after message from where [`next`] says, as many bytes as [`length`] says.

use shared::wire::{self, ServerMessage};
use std::cell::RefCell;

#[derive(Default)]
struct State {
    room: Vec<u8>,
    /// The next one last.
    messages: Vec<ServerMessage>,
    message: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(what: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(what)
}

/// Room for so many bytes: where it begins.
// SAFETY: no other function of the module has the name; natively, where libraries have functions, it has none.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    with(|state| {
        state.room = vec![0; bytes];
        state.room.as_mut_ptr()
    })
}

/// Opens what stands in the room, whose last so many bytes are the file's name.
// SAFETY: as for `room`.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn open(name: usize) {
    with(|state| {
        let mut file = std::mem::take(&mut state.room);
        let name = file.split_off(file.len().saturating_sub(name));
        state.messages = crate::messages(file, &String::from_utf8_lossy(&name));
        state.messages.reverse();
    });
}

/// Where the next message stands, until the one behind it is asked for; null behind the last.
// SAFETY: as for `room`.
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

/// How many bytes the message has that was asked for last.
// SAFETY: as for `room`.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn length() -> usize {
    with(|state| state.message.len())
}
