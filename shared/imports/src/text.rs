//! Makes texts from a file safe for display: they may hold characters that control a terminal.

/// Largest number of characters of one text that are shown.
const MAX_TEXT_CHARS: usize = 1000;
/// Largest number of texts of one file that are shown.
const MAX_TEXTS: usize = 50;

/// The text with escapes for characters that cannot be seen: control characters, marks that change the direction of
/// writing, line ends.
pub fn safe(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut out = String::with_capacity(text.len().min(MAX_TEXT_CHARS));
    for (letter, c) in text.chars().enumerate() {
        match c {
            _ if letter == MAX_TEXT_CHARS => {
                out.push_str("...");
                break;
            }
            c if hidden(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Makes a list of texts safe; only the first [`MAX_TEXTS`] are kept, with a note about the others.
pub fn all_safe(texts: &[String]) -> Vec<String> {
    let mut all: Vec<String> = texts.iter().take(MAX_TEXTS).map(|text| safe(text)).collect();
    let more = texts.len().saturating_sub(MAX_TEXTS);
    all.extend((more > 0).then(|| format!("and {more} more notes")));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_an_escape() {
        assert_eq!(
            safe("a \u{1b}]0;x\u{7}b\r\nc\u{9b}d\u{202e}e é 热"),
            "a \\u{1b}]0;x\\u{7}b\\r\\nc\\u{9b}d\\u{202e}e é 热"
        );
        assert_eq!(safe(&"x".repeat(5000)).len(), MAX_TEXT_CHARS + 3);
        assert_eq!(all_safe(&vec!["n".into(); 70]).last().map(String::as_str), Some("and 20 more notes"));
    }
}
