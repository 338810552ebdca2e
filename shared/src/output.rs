//! Output of a training job, line by line, as `watchglass run --logs` stores it: in separate files, and in no record.
//!
//! The folder `run-logs` of a data folder has a folder for each run, and in it files `BEGAN-PID.NUMBER.jsonl` for each
//! process that was launched; `BEGAN` and `PID` are those of its [`Begun`](crate::run::Begun). Each row of a file is an
//! [`OutputLine`] in JSON. A row that cannot be read, such as the last of a killed writer, is left out.

use serde::{Deserialize, Serialize};

/// Name of the folder in the data folder.
pub const FOLDER: &str = "run-logs";

/// Ending of the files.
pub const ENDING: &str = "jsonl";

/// Maximum bytes of all files of a run on one machine; beyond it, the oldest files are deleted.
pub const MAX_RUN_BYTES: u64 = 256 << 20;

/// Maximum bytes of a file.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// Maximum length of a line's text, bytes.
pub const MAX_LINE_BYTES: usize = 4 << 10;

/// Maximum lines a second that are kept of one process; further ones are counted.
pub const MAX_LINES_A_SECOND: u64 = 10_000;

/// Lines of a process that are kept as long as its run is.
pub const LAST_LINES: usize = 100;

/// Process (its start and PID) and number of a file with this name. None if the name is not of such a file.
pub fn process_file(name: &str) -> Option<((i64, u32), u32)> {
    let (process, number) = name.strip_suffix(ENDING)?.strip_suffix('.')?.split_once('.')?;
    let (began, pid) = process.split_once('-')?;
    Some(((began.parse().ok()?, pid.parse().ok()?), number.parse().ok()?))
}

/// Stream of a line.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    #[default]
    Out,
    /// Standard error.
    Err,
    /// A terminal, where both are one stream.
    Tty,
}

impl OutputStream {
    /// All of them.
    pub const ALL: [OutputStream; 3] = [OutputStream::Out, OutputStream::Err, OutputStream::Tty];

    /// Its name in requests and answers.
    pub const fn name(self) -> &'static str {
        match self {
            OutputStream::Out => "out",
            OutputStream::Err => "err",
            OutputStream::Tty => "tty",
        }
    }

    /// The stream with this name.
    pub fn named(name: &str) -> Option<OutputStream> {
        OutputStream::ALL.into_iter().find(|stream| stream.name() == name)
    }
}

/// A line as it is stored: secrets are redacted, and only escape sequences for colors are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLine {
    /// When it ended, milliseconds since the Unix epoch.
    pub t: i64,
    /// Its number among the lines of its process, from 1. Missing numbers are lines that were not kept.
    pub n: u64,
    /// Its stream.
    #[serde(rename = "s")]
    pub stream: OutputStream,
    /// Its text, at most [`MAX_LINE_BYTES`].
    #[serde(rename = "x")]
    pub text: String,
    /// It was longer.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Not a line: this many lines up to this number were not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A hub's request for lines of a run to the machine that has them. The answer is a [`LinesPart`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesAsked {
    /// Id of the run.
    pub run: String,
    /// Start and end, milliseconds since the Unix epoch.
    pub span: (i64, i64),
    /// Only lines of this rank.
    pub rank: Option<u32>,
    /// Only lines of this process: its start and PID; together with `rank`, lines of either.
    pub process: Option<(i64, u32)>,
    /// Only lines of this stream.
    pub stream: Option<OutputStream>,
    /// Only lines with this text, in lower case; empty: all.
    pub text: String,
    /// Maximum number of lines.
    pub limit: u32,
    /// The newest of them, before the marks; else the oldest after the marks.
    pub newest: bool,
    /// Read positions: processes, and numbers of their lines.
    pub marks: Vec<LineMark>,
}

/// A process, by its start (milliseconds since the Unix epoch) and its number, and the number of one of its lines.
pub type LineMark = (i64, u32, u64);

/// Maximum bytes of a part.
pub const MAX_PART_BYTES: usize = 128 << 10;

/// A part of the output of a run on a machine; JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesPart {
    /// Lines in the order of their times, each with its process.
    pub rows: Vec<(i64, u32, OutputLine)>,
    /// Read positions after these lines.
    pub marks: Vec<LineMark>,
    /// There may be more lines after them.
    pub more: bool,
}

/// The text without its colors.
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\u{1b}') {
        shown.push_str(before);
        rest = escape.split_once('m').map_or("", |(_, behind)| behind);
    }
    shown + rest
}

/// Style of a part of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextLook {
    /// One of the eight colors of terminals: black, red, green, yellow, blue, magenta, cyan, white.
    pub color: Option<u8>,
    /// It is bold.
    pub bold: bool,
}

impl TextLook {
    /// The style after a sequence with these parameters. Backgrounds and colors beyond the sixteen are left out.
    fn after(self, parameters: &str) -> TextLook {
        let mut look = self;
        let mut codes =
            parameters.split([';', ':']).map(|code| if code.is_empty() { 0 } else { code.parse().unwrap_or(u16::MAX) });
        while let Some(code) = codes.next() {
            match code {
                0 => look = TextLook::default(),
                1 => look.bold = true,
                22 => look.bold = false,
                39 => look.color = None,
                30..=37 => look.color = Some((code - 30) as u8),
                90..=97 => look.color = Some((code - 90) as u8),
                38 | 48 => {
                    let named = match codes.next() {
                        Some(5) => codes.next().filter(|n| *n < 16).map(|n| (n % 8) as u8),
                        Some(2) => codes.nth(2).and(None),
                        _ => None,
                    };
                    if code == 38 {
                        look.color = named;
                    }
                }
                _ => {}
            }
        }
        look
    }
}

/// The parts of a text, each with its style.
pub fn parts(text: &str) -> Vec<(TextLook, &str)> {
    let (mut found, mut look) = (Vec::new(), TextLook::default());
    let mut rest = text;
    while !rest.is_empty() {
        let (part, behind) = rest.split_once('\u{1b}').unwrap_or((rest, ""));
        if !part.is_empty() {
            found.push((look, part));
        }
        let (sequence, behind) = behind.split_once('m').unwrap_or_default();
        look = look.after(sequence.trim_start_matches('['));
        rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_colors_that_the_job_gave_them() {
        let of = |text: &'static str| {
            parts(text).into_iter().map(|(look, part)| (look.color, look.bold, part)).collect::<Vec<_>>()
        };
        assert_eq!(
            of("a \u{1b}[1;31mred\u{1b}[22m b\u{1b}[m c"),
            [(None, false, "a "), (Some(1), true, "red"), (Some(1), false, " b"), (None, false, " c")]
        );
        assert_eq!(
            of("\u{1b}[38;5;12mx\u{1b}[38;2;1;2;31my\u{1b}[92;48;5;1mz\u{1b}[39mw"),
            [(Some(4), false, "x"), (None, false, "y"), (Some(2), false, "z"), (None, false, "w")]
        );
        assert_eq!((of("<b>"), of(""), of("\u{1b}[31")), (vec![(None, false, "<b>")], vec![], vec![]));
    }

    #[test]
    fn streams_have_their_names_and_text_loses_its_colors() {
        for stream in OutputStream::ALL {
            assert_eq!(OutputStream::named(stream.name()), Some(stream));
        }
        assert_eq!(OutputStream::named("stdout"), None);
        assert_eq!(plain("a \u{1b}[1;31mred\u{1b}[0m b"), "a red b");
        assert_eq!(plain("plain"), "plain");
    }
}
