//! Keyboard events of a key that is pressed and released.

use serde_json::{Value, json};

/// Keys that are not characters, or whose character has a name: their Windows key code, which browsers use, and their
/// text.
const NAMED: [(&str, u32, &str); 6] = [
    ("Tab", 9, ""),
    ("Enter", 13, "\r"),
    ("Escape", 27, ""),
    ("Space", 32, " "),
    ("ArrowRight", 39, ""),
    ("ArrowDown", 40, ""),
];

/// The events of a key, and of the shift key where `held` is [`SHIFT`](crate::browser::SHIFT), for
/// `Input.dispatchKeyEvent`. The key is one character or one of `Tab`, `Enter`, `Escape`, `Space`, `ArrowRight`,
/// `ArrowDown`.
pub fn strike(key: &str, held: u8) -> Vec<Value> {
    let named = NAMED.iter().find(|(name, ..)| *name == key);
    let first = key.chars().next().unwrap_or_default();
    let (name, physical, number, text) = match named {
        Some((_, number, " ")) => (" ", key.to_string(), *number, " "),
        Some((_, number, text)) => (key, key.to_string(), *number, *text),
        None if first.is_ascii_digit() => (key, format!("Digit{first}"), first as u32, key),
        None if first.is_ascii_alphabetic() => {
            let capital = first.to_ascii_uppercase();
            (key, format!("Key{capital}"), capital as u32, key)
        }
        None => (key, if "/?".contains(first) { "Slash" } else { "" }.to_string(), 191, key),
    };
    let event = |kind: &str, name: &str, physical: &str, number: u32, held: u8| json!({ "type": kind, "key": name, "code": physical, "windowsVirtualKeyCode": number, "modifiers": held });
    let mut down = event(if text.is_empty() { "rawKeyDown" } else { "keyDown" }, name, &physical, number, held);
    if !text.is_empty() {
        down["text"] = text.into();
    }
    let mut events = vec![down, event("keyUp", name, &physical, number, held)];
    if held != 0 {
        events.insert(0, event("rawKeyDown", "Shift", "ShiftLeft", 16, held));
        events.push(event("keyUp", "Shift", "ShiftLeft", 16, 0));
    }
    events
}
