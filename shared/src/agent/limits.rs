//! Limits of the messages between an agent and its hub: sizes, intervals, and the characters of texts.

/// Maximum bytes of one message, in both directions. Longer rows, series and fills are split into several messages.
pub const MAX_MESSAGE: usize = 512 << 10;

/// Messages of ticks and records that an agent may send without an [`HubMessage::Ack`]. Then it pauses, and later sends
/// several ticks in one message.
pub const CREDIT: u32 = 8;

/// Each end sends something at least this often, milliseconds.
pub const HEARTBEAT_MS: u64 = 5_000;

/// A link that receives nothing for this long is closed, milliseconds.
pub const SILENCE_MS: u64 = 15_000;

/// Maximum number of ranges in [`AgentHello::offers`]; beyond it, the oldest are offered joined.
pub const MAX_OFFERS: usize = 1_024;

/// Maximum ticks in one block of a fill: an hour at ten a second is 36,000.
pub const MAX_FILL_TICKS: u32 = 1 << 16;

/// Maximum bytes of one block of a fill, all its messages together. A longer block is split into blocks of fewer ticks.
pub const MAX_FILL_BYTES: usize = 4 << 20;

/// Series ids of an agent are below this.
pub const MAX_SERIES_IDS: u32 = 1 << 17;

/// Maximum number of labels of a source.
pub const MAX_LABELS: usize = 32;
/// Maximum length of a label's key, in bytes, of `[a-z0-9._/-]`.
pub const MAX_LABEL_KEY_BYTES: usize = 63;
/// Maximum length of a label's value, in bytes.
pub const MAX_LABEL_VALUE_BYTES: usize = 256;
/// Maximum number of facts of a source.
pub const MAX_FACTS: usize = 64;
/// Maximum length of the key or value of a fact, in bytes.
pub const MAX_FACT_BYTES: usize = 256;
/// Maximum length of a machine's name, in bytes, of letters, digits and `.-_`.
pub const MAX_NAME_BYTES: usize = 63;
/// Maximum length of the instance of a series, in bytes.
pub const MAX_INSTANCE_BYTES: usize = 1 << 10;
/// Maximum length of the title or help of a row or chart, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 10;

/// Whether a key and a value can be a label.
pub fn is_label(key: &str, value: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._/-".contains(&b);
    !key.is_empty()
        && key.len() <= MAX_LABEL_KEY_BYTES
        && key.bytes().all(letter)
        && value.len() <= MAX_LABEL_VALUE_BYTES
        && is_text(value)
}

/// Whether a text can be the name of a machine.
pub fn is_name(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b".-_".contains(&b);
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(letter)
}

/// Whether a text holds no control sequence of a terminal or a browser: no control characters, and none that changes
/// the direction of writing.
pub fn is_text(text: &str) -> bool {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.chars().any(|c| c.is_control() || turns(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_and_labels_hold_no_control_characters() {
        assert!(is_text("Überlast 90 %") && !is_text("a\u{1b}[2J") && !is_text("a\nb") && !is_text("\u{202e}gpj.exe"));
        assert!(is_name("gpu-7.rack_2") && !is_name("") && !is_name("a b") && !is_name(&"n".repeat(64)));
        assert!(is_label("k8s.node/name", "A 100") && !is_label("Tier", "x") && !is_label("", "x"));
        assert!(!is_label("tier", &"x".repeat(257)) && !is_label("tier", "\t"));
    }
}
