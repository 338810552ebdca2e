//! Output for people: text from arguments, files and devices never controls the terminal.

use std::borrow::Cow;
use std::io::{self, Write};

/// The text with all terminal controls made visible: control characters except line feed and tab, and those that
/// change the direction of writing, as `\u001b`. JSON stays JSON.
pub fn visible(text: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        let turns =
            matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        (c.is_control() && c != '\n' && c != '\t') || turns
    };
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { shown += &format!("\\u{:04x}", u32::from(c)) } else { shown.push(c) }
    }
    shown.into()
}

/// Prints to standard output. A closed pipe is no error; a full disk is.
///
/// # Errors
/// The error of the system.
pub fn print_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(visible(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints to standard output; returns whether it has a reader.
pub fn say_to_reader(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(visible(text).as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Prints a line to standard error before an exit. A failure here cannot be reported.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{}", visible(text));
}

/// Whether lines on standard error have colors: it is a terminal that has some, and nobody has switched them off.
pub fn has_colors(is_terminal: bool, env: &dyn Fn(&str) -> Option<String>) -> bool {
    let var = |name: &str| env(name).filter(|text| !text.is_empty());
    is_terminal && var("NO_COLOR").is_none() && var("TERM").as_deref() != Some("dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_the_terminal_and_all_else_stays() {
        assert!(matches!(visible("plain, ä, 数, tab\tline\n"), Cow::Borrowed(_)));
        assert_eq!(visible("\u{1b}[31mred\u{7}\r\n"), "\\u001b[31mred\\u0007\\u000d\n");
        assert_eq!(visible("\u{9b}2J\u{7f}"), "\\u009b2J\\u007f", "C1 controls act too");
        assert_eq!(visible("a\u{202e}b\u{2066}"), "a\\u202eb\\u2066");
    }

    #[test]
    fn colors_are_for_terminals_that_have_them_and_want_them() {
        let of = |is_terminal, vars: &[(&str, &str)]| {
            has_colors(is_terminal, &|name| {
                vars.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            })
        };
        assert!(of(true, &[]) && of(true, &[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(!of(true, &[("NO_COLOR", "1")]) && !of(true, &[("TERM", "dumb")]) && !of(false, &[("TERM", "xterm")]));
    }
}
