//! Characters that control a terminal, or the direction of the text around them. Names of processes, labels and notes
//! may contain them. Output to a terminal, or to a pipe that ends at one, shows them and does not execute them.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character is one of them: a control character of ASCII or Latin-1, or one that turns the direction of
/// writing. Tab and newline are not among them.
pub fn is_active(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    );
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// The text with U+FFFD in their place.
pub fn replaced(text: &str) -> Cow<'_, str> {
    match text.contains(is_active) {
        true => text.replace(is_active, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// JSON with escapes in their place. A parser reads the same document: they occur only in strings, where the serializer
/// has already escaped those below U+0020.
pub fn escaped_json(json: String) -> String {
    if !json.contains(is_active) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_active(c) {
            // All of them have four digits.
            true => _ = write!(out, "\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const WILD: &str =
        "a\u{1b}[2J\u{7}\u{7f}\u{80}\u{9b}31m\u{9f}\u{202e}gpj\u{2066}\u{2069}\u{200f}\u{feff} é 热 \"\\";

    #[test]
    fn json_has_escapes_of_four_digits() {
        let json = "{\"a\": \"\u{9b}31m\u{7f}\u{202e}gpj\u{feff} é 热 \\u001b\\n\"}\n".to_string();
        let escaped = "{\"a\": \"\\u009b31m\\u007f\\u202egpj\\ufeff é 热 \\u001b\\n\"}\n";
        assert_eq!(escaped_json(json), escaped);
        assert_eq!(escaped_json("[1]".into()), "[1]");
    }

    #[test]
    fn text_shows_that_something_stood_there() {
        let shown = replaced(WILD);
        assert!(
            !shown.contains(is_active) && shown.starts_with("a\u{fffd}[2J\u{fffd}") && shown.ends_with("é 热 \"\\")
        );
        assert!(matches!(replaced("plain é\n\t"), Cow::Borrowed(_)));
    }
}
