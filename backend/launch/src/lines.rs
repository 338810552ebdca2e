//! Splits the output of a job into lines, without control sequences other than colors and with secrets redacted.

use shared::output::{MAX_LINE_BYTES, MAX_LINES_A_SECOND};
use shared::redact::{HIDDEN, Redactor};
use std::ops::Range;

/// Bytes of a line that are processed, escape sequences included.
const MAX_RAW_BYTES: usize = 2 * MAX_LINE_BYTES;

/// Maximum length of a color sequence, bytes.
const MAX_COLOR_BYTES: usize = 32;

/// Maximum bytes per second that are stored: more would take disk throughput from the job.
const MAX_BYTES_A_SECOND: u64 = 8 << 20;

/// Assembles the bytes of one stream into lines.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Bytes of the unfinished line.
    raw: Vec<u8>,
    /// Whether bytes of that line were dropped.
    cut: bool,
    /// Secret detection; earlier lines may mark text in the next one as secret.
    redactor: Redactor,
}

impl Assembler {
    /// Adds bytes. `whole` is called for each line that ends in them, with its bytes and whether it is cut.
    pub fn take(&mut self, mut bytes: &[u8], mut whole: impl FnMut(&[u8], bool, &mut Redactor)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end]);
            whole(&self.raw, self.cut, &mut self.redactor);
            self.raw.clear();
            self.cut = false;
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
    }

    /// The last line, which has no line end.
    pub fn rest(&mut self) -> Option<(Vec<u8>, bool, &mut Redactor)> {
        let cut = std::mem::take(&mut self.cut);
        Some((std::mem::take(&mut self.raw), cut, &mut self.redactor)).filter(|(raw, ..)| !raw.is_empty())
    }

    fn add(&mut self, part: &[u8]) {
        if part.is_empty() {
            return;
        }
        // Text after a carriage return replaces the text before it, so only the last state of a progress bar counts.
        if self.raw.ends_with(b"\r") && part.iter().any(|byte| *byte != b'\r') {
            self.raw.clear();
            self.cut = false;
        }
        let written = part.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
        let part = match part[..written].iter().rposition(|byte| *byte == b'\r') {
            Some(at) => {
                self.raw.clear();
                self.cut = false;
                &part[at + 1..]
            }
            None => part,
        };
        let room = MAX_RAW_BYTES - self.raw.len();
        self.raw.extend_from_slice(&part[..part.len().min(room)]);
        if part.len() > room {
            self.cut = true;
            // Keeps the carriage return, so that the next text replaces this line.
            if part.ends_with(b"\r") {
                self.raw.pop();
                self.raw.push(b'\r');
            }
        }
    }
}

/// Returns the text of a line in its stored form, and whether it is cut.
pub fn text(raw: &[u8], mut cut: bool, redactor: &mut Redactor) -> (String, bool) {
    let (mut plain, mut colors) = shown(&String::from_utf8_lossy(raw));
    if cut {
        // Half of a secret would not be recognized as one, so the last word is dropped.
        let whole = plain.rfind(char::is_whitespace).unwrap_or(0);
        plain.truncate(whole);
    }
    let hidden = redactor.secrets(&plain);
    colors.retain(|(at, _)| *at <= plain.len());
    let mut text = String::with_capacity(plain.len());
    let (mut at, mut colors, mut hidden) = (0, colors.into_iter().peekable(), hidden.into_iter().peekable());
    let ends = |part: Option<&Range<usize>>| part.map_or(usize::MAX, |part| part.start);
    loop {
        let until = colors.peek().map_or(plain.len(), |(at, _)| *at).min(ends(hidden.peek()));
        if text.len() + (until - at) > MAX_LINE_BYTES {
            let room = MAX_LINE_BYTES - text.len();
            let end = (at..=at + room).rev().find(|end| plain.is_char_boundary(*end)).unwrap_or(at);
            text.push_str(&plain[at..end]);
            cut = true;
            break;
        }
        text.push_str(&plain[at..until]);
        at = until;
        let added = match (hidden.next_if(|part| part.start <= at), colors.peek()) {
            (Some(part), _) => {
                at = part.end;
                text.push_str(HIDDEN);
                // Color sequences inside the secret follow it.
                while let Some((_, color)) = colors.next_if(|(in_it, _)| *in_it < at) {
                    text.push_str(&color);
                }
                true
            }
            (None, Some(_)) => colors.next().map(|(_, color)| text.push_str(&color)).is_some(),
            (None, None) => false,
        };
        if !added {
            break;
        }
        if text.len() > MAX_LINE_BYTES {
            text.truncate((0..=MAX_LINE_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0));
            // An incomplete sequence at the cut is dropped.
            if let Some(escape) = text.rfind('\u{1b}').filter(|escape| !text[*escape..].contains('m')) {
                text.truncate(escape);
            }
            cut = true;
            break;
        }
    }
    (text, cut)
}

/// Returns the text that a terminal would show, and the color sequences with their positions in it.
fn shown(raw: &str) -> (String, Vec<(usize, String)>) {
    let (mut plain, mut colors) = (String::with_capacity(raw.len()), Vec::new());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => colors.extend(sequence(&mut chars).map(|color| (plain.len(), color))),
                // Strings for the terminal itself, such as its title, are skipped to their end.
                Some(']' | 'P' | 'X' | '^' | '_') => skip_text(&mut chars),
                Some(' '..='/') => while chars.next().is_some_and(|c| (' '..='/').contains(&c)) {},
                _ => {}
            },
            '\u{9b}' => colors.extend(sequence(&mut chars).map(|color| (plain.len(), color))),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_text(&mut chars),
            '\u{8}' => _ = plain.pop(),
            '\t' => plain.push('\t'),
            c if c.is_control() => {}
            // These characters change the direction of writing.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => plain.push(c),
        }
    }
    // Backspaces may have shortened the text, so color positions are moved back to a valid one.
    let end = plain.len();
    colors
        .iter_mut()
        .for_each(|(at, _)| *at = (0..=(*at).min(end)).rev().find(|at| plain.is_char_boundary(*at)).unwrap_or(0));
    colors.sort_by_key(|(at, _)| *at);
    (plain, colors)
}

/// Reads a control sequence to its end. Returns its text if it sets colors.
fn sequence(chars: &mut std::iter::Peekable<std::str::Chars>) -> Option<String> {
    let mut parameters = String::new();
    loop {
        match chars.next()? {
            'm' => break,
            c @ ('0'..='9' | ';' | ':') => parameters.push(c),
            ' '..='?' => parameters.push('?'),
            _ => return None,
        }
    }
    (parameters.len() <= MAX_COLOR_BYTES && !parameters.contains('?')).then(|| format!("\u{1b}[{parameters}m"))
}

fn skip_text(chars: &mut std::iter::Peekable<std::str::Chars>) {
    while let Some(c) = chars.next() {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                _ = chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Limits the lines that are stored per second for one process.
#[derive(Debug, Default)]
pub struct Gate {
    second: i64,
    lines: u64,
    bytes: u64,
}

impl Gate {
    /// Whether a line of `bytes` bytes may be stored at `now`, milliseconds since the Unix epoch.
    pub fn lets(&mut self, now: i64, bytes: usize) -> bool {
        if self.second != now.div_euclid(1_000) {
            *self = Gate { second: now.div_euclid(1_000), lines: 0, bytes: 0 };
        }
        let lets = self.lines < MAX_LINES_A_SECOND && self.bytes < MAX_BYTES_A_SECOND;
        if lets {
            self.lines += 1;
            self.bytes += bytes as u64;
        }
        lets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(parts: &[&[u8]]) -> Vec<(String, bool)> {
        let (mut assembler, mut found) = (Assembler::default(), Vec::new());
        for part in parts {
            assembler.take(part, |raw, cut, redactor| found.push(text(raw, cut, redactor)));
        }
        found.extend(assembler.rest().map(|(raw, cut, redactor)| text(&raw, cut, redactor)));
        found
    }

    fn texts(parts: &[&[u8]]) -> Vec<String> {
        lines(parts).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn lines_are_put_together_however_they_come() {
        assert_eq!(texts(&[b"one\ntw", b"o\r\n\n", b"three"]), ["one", "two", "", "three"]);
        assert_eq!(texts(&[b"10 %\r20 %", b"\r30 %\r", b"\r40 %", b"\r\nnext\r", b"\n"]), ["40 %", "next"]);
        assert_eq!(texts(&[b"10 %\r", b"20 %\r", b"\ndone\n"]), ["20 %", "done"]);
        assert_eq!(texts(&[b"a\xffb \xe6\x95", b"\xb0\n"]), ["a\u{fffd}b 数"]);
    }

    #[test]
    fn of_escapes_colors_alone_are_left() {
        assert_eq!(texts(&[b"\x1b[1;31mred\x1b[0m \x1b[2K\x1b[10;2Hx\n"]), ["\u{1b}[1;31mred\u{1b}[0m x"]);
        assert_eq!(texts(&[b"\x1b]0;title\x07a\x1b]8;;http://evil\x1b\\b\x1b(Bc\x1bPq#0\x1b\\d\n"]), ["abcd"]);
        assert_eq!(
            texts(&[b"a\x00\x07\x0bb\tc\x7f\n", "x\u{202e}y\u{9b}2Jz\u{9b}3mw\n".as_bytes()]),
            ["ab\tc", "xyz\u{1b}[3mw"]
        );
        assert_eq!(texts(&[b"\x1b[?25lspin |\x08/\x08-\n"]), ["spin -"]);
        assert_eq!(texts(&[b"\x1b[38;2;1;2;3mx\x1b[>4;1my\x1b[", b"31", b"mz\n"]), ["\u{1b}[38;2;1;2;3mxy\u{1b}[31mz"]);
        assert_eq!(texts(&[b"\x1b]0;never ended\n", b"<b>&amp;\n"]), ["", "<b>&amp;"]);
    }

    #[test]
    fn secrets_are_hidden_through_colors_and_never_halved() {
        assert_eq!(
            texts(&[b"\x1b[33mpass\x1b[0mword=\x1b[1mhun\x1b[2mter2\x1b[0m ok\n"]),
            ["\u{1b}[33mpass\u{1b}[0mword=…\u{1b}[1m\u{1b}[2m\u{1b}[0m ok"]
        );
        let key = "hf_0123456789abcdef0123456789abcdef0123";
        for before in MAX_LINE_BYTES - 60..MAX_LINE_BYTES + 10 {
            let line = format!("{} {key} end\n", "x ".repeat(before / 2));
            let (text, cut) = lines(&[line.as_bytes()]).remove(0);
            assert!(!text.contains("hf_") && text.len() <= MAX_LINE_BYTES, "{before}");
            assert_eq!(cut, line.len() - key.len() + HIDDEN.len() - 1 > MAX_LINE_BYTES, "{before}");
        }
        for before in MAX_RAW_BYTES - 60..MAX_RAW_BYTES + 10 {
            // The line has no text but the key.
            let line = format!("{} {key} end\n", "\u{1b}[1m".repeat(before / 4));
            let (text, _) = lines(&[line.as_bytes()]).remove(0);
            assert!(!text.contains("hf_"), "{before}");
        }
    }

    #[test]
    fn a_line_without_end_takes_a_bounded_room() {
        let (mut assembler, mut count) = (Assembler::default(), 0);
        for _ in 0..1_000 {
            assembler.take(&[b'x'; 4096], |_, _, _| count += 1);
        }
        assert!(assembler.raw.capacity() <= 4 * MAX_RAW_BYTES && count == 0);
        let (raw, cut, redactor) = assembler.rest().expect("a line");
        assert_eq!(text(&raw, cut, redactor), (String::new(), true), "one word without end may be a key");
        let line = ["é ".repeat(MAX_LINE_BYTES), "\n".into()].concat();
        let (text, cut) = lines(&[line.as_bytes()]).remove(0);
        assert!(cut && text.len() <= MAX_LINE_BYTES && text.len() > MAX_LINE_BYTES - 4, "{}", text.len());
    }

    #[test]
    fn a_second_has_ten_thousand_lines() {
        let mut gate = Gate::default();
        let kept = (0..50_000).filter(|_| gate.lets(7_999, 10)).count() as u64;
        assert_eq!(kept, MAX_LINES_A_SECOND);
        assert!(gate.lets(8_000, 10));
        let kept = (0..10_000).filter(|_| gate.lets(9_000, 4_096)).count() as u64;
        assert_eq!(kept, MAX_BYTES_A_SECOND / 4_096);
    }
}
