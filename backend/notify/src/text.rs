//! The texts of a notice: cleaning, cutting, and the plain text that most sinks share.
//!
//! Titles and notes are already filled in (`shared::rule::fill`). Texts here are data: placeholders in them are never
//! filled in. They are cleaned here again, since some of them come from code.

use shared::alert::{Alert, AlertState, MAX_NAMED, MAX_TEXT_BYTES, MAX_TITLE_BYTES, Notice, NoticeKind};

/// Maximum bytes of a subject's line.
const MAX_LINE_BYTES: usize = 300;

/// Letters that change the direction of text, or are invisible and parsed by programs alone.
fn hidden(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'
        | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn ends_line(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A text as one line: line ends and tabs become one space. Other control characters and those that change the
/// direction of text are dropped.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if ends_line(letter) || letter == '\t' {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !letter.is_control() && !hidden(letter) {
            out.push(letter);
        }
    }
    out.trim().to_string()
}

/// A text of several lines, each of them [clean]; at most one empty line between two.
pub fn lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    for line in text.split(ends_line).map(clean) {
        if line.is_empty() && (out.is_empty() || out.ends_with("\n\n")) {
            continue;
        }
        out.push_str(&line);
        out.push('\n');
    }
    out.trim_end().to_string()
}

/// A text cut to this number of bytes, between letters, with "…" at the cut; "…" has 3 bytes.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_string();
    }
    let mut end = most.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text[..end].trim_end())
}

/// A time in UTC, from milliseconds since the Unix epoch: the time of day, with its date if that is not the date of
/// `now`.
pub fn moment(ms: i64, now: i64) -> String {
    format!("{} UTC", moment_without_zone(ms, now))
}

/// The same for a sentence that adds the zone itself.
fn moment_without_zone(ms: i64, now: i64) -> String {
    const DAY: i64 = 86_400_000;
    let text = shared::date::text(ms);
    let (date, time) = text.split_once(' ').unwrap_or((&text, ""));
    let time = time.get(..5).unwrap_or(time);
    if ms.div_euclid(DAY) == now.div_euclid(DAY) { time.into() } else { format!("{date} {time}") }
}

/// A time in RFC 3339, in UTC, from milliseconds since the Unix epoch.
pub(crate) fn rfc3339(ms: i64) -> String {
    let seconds = ms.div_euclid(1_000) * 1_000;
    let text = shared::date::text(seconds);
    let text = text.get(..19).unwrap_or(&text).replace(' ', "T");
    format!("{text}.{:03}Z", ms - seconds)
}

/// The content of a notice, in parts that are clean and not escaped. Sinks add their own marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plain {
    /// The severity or state in one word, and the title: `[critical] node-12 GPU 5 at 89.1 °C`.
    pub title: String,
    /// One line for each rule, for a digest.
    pub counts: Vec<String>,
    /// A sentence for each named alert, worst first, with the alert's own text in further lines.
    pub subjects: Vec<String>,
    /// Number of alerts that are not named.
    pub unnamed: u64,
    /// Action to take; may have several lines, may be empty.
    pub note: String,
    /// The page that shows the alert.
    pub link: Option<String>,
    /// The run or the charts that the only alert is about.
    pub charts: Option<String>,
    /// The help address of the rule.
    pub help: Option<String>,
    /// The sender: the team, and the host if there is no link.
    pub from: String,
}

/// The word in front of a title.
pub fn mark(notice: &Notice) -> &'static str {
    match notice.kind {
        NoticeKind::Firing => notice.severity.as_str(),
        NoticeKind::Resolved => "resolved",
        NoticeKind::Digest => "digest",
        NoticeKind::Test => "test",
    }
}

/// The content of a notice.
pub fn plain(notice: &Notice) -> Plain {
    let now = notice.at.saturating_mul(1_000);
    let title = cut(&clean(&notice.title), MAX_TITLE_BYTES);
    // The word in front of the title says that already.
    let over = title.strip_prefix("Resolved: ").filter(|_| notice.kind == NoticeKind::Resolved);
    let title = over.map_or(title.clone(), str::to_owned);
    let counts = notice.counts.iter().take(MAX_NAMED);
    let counts = counts.map(|(rule, count)| format!("{count} × {}", cut(&clean(rule), MAX_TITLE_BYTES))).collect();
    let mut subjects: Vec<String> = notice.alerts.iter().take(MAX_NAMED).map(|alert| line(alert, now)).collect();
    for (alert, subject) in notice.alerts.iter().zip(&mut subjects) {
        // A single alert has its whole text, each of several one line.
        let text = match notice.alerts.len() {
            1 => cut(&lines(&alert.text), MAX_TEXT_BYTES),
            _ => cut(&clean(&alert.text), MAX_LINE_BYTES),
        };
        // Without another note, the text of a single alert is the note.
        if !text.is_empty() && text != lines(&notice.note) {
            *subject = format!("{subject}\n{text}");
        }
    }
    // A title that is the only sentence is not repeated.
    if let Some(rest) = subjects.first().filter(|_| subjects.len() == 1).and_then(|only| only.strip_prefix(&title)) {
        match rest.strip_prefix('\n') {
            Some(text) => subjects = vec![text.to_string()],
            None if rest.is_empty() => subjects.clear(),
            None => {}
        }
    }
    let unnamed = notice.more + notice.alerts.len().saturating_sub(MAX_NAMED) as u64;
    let team = clean(&notice.team);
    let from = match (team.is_empty(), notice.link.is_some()) {
        (true, true) => "Watchglass".to_string(),
        (false, true) => format!("Watchglass, team {team}"),
        (true, false) => format!("Watchglass on {}", clean(&notice.host)),
        (false, false) => format!("Watchglass on {}, team {team}", clean(&notice.host)),
    };
    Plain {
        title: format!("[{}] {title}", mark(notice)),
        counts,
        subjects,
        unnamed,
        note: cut(&lines(&notice.note), MAX_TEXT_BYTES),
        link: notice.link.as_deref().and_then(web),
        charts: notice.charts.as_deref().and_then(web),
        help: notice.help.as_deref().and_then(web),
        from,
    }
}

/// An address that may be part of a message: http or https, without letters that end it or are invisible.
fn web(address: &str) -> Option<String> {
    let parsed = url::Url::parse(address).ok()?;
    let fits =
        matches!(parsed.scheme(), "http" | "https") && parsed.username().is_empty() && parsed.password().is_none();
    fits.then(|| parsed.to_string()).filter(|text| text.len() <= 2_000)
}

fn line(alert: &Alert, now: i64) -> String {
    let said = if alert.sentence.is_empty() { &alert.subject } else { &alert.sentence };
    let mut line = cut(&clean(said), MAX_LINE_BYTES);
    if alert.count > 1 {
        line.push_str(&format!(" (reported {} times)", alert.count));
    }
    match (alert.state, alert.ended, alert.unknown_since) {
        (AlertState::Resolved, Some(ended), _) => {
            let (from, to) = (moment_without_zone(alert.began, now), moment(ended, now));
            line.push_str(&format!(" ({from} to {to})"));
        }
        (AlertState::Firing, _, Some(since)) => line.push_str(&format!(" (no data since {})", moment(since, now))),
        _ => {}
    }
    line
}

impl Plain {
    /// The addresses with their names.
    pub fn links(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let links = [("Open", &self.link), ("Charts", &self.charts), ("Help", &self.help)];
        links.into_iter().filter_map(|(name, address)| Some((name, address.as_deref()?)))
    }

    /// The same text without addresses.
    pub fn without_links(&self) -> Plain {
        Plain { link: None, charts: None, help: None, ..self.clone() }
    }

    /// Everything below the title, as blocks of plain text without marks: the alerts, the note, the help address, the
    /// charts, the link, the sender. None is empty.
    pub fn blocks(&self) -> Vec<String> {
        let mut blocks = vec![self.counts.join("\n"), self.name_subjects(), self.note.clone()];
        blocks.extend(self.help.as_ref().map(|help| format!("Help: {help}")));
        blocks.extend(self.charts.as_ref().map(|charts| format!("Charts: {charts}")));
        blocks.extend(self.link.clone());
        blocks.push(self.from.clone());
        blocks.retain(|block| !block.is_empty());
        blocks
    }

    /// The subjects, and the number of further ones.
    pub fn name_subjects(&self) -> String {
        let mut said = self.subjects.join("\n");
        if self.unnamed > 0 {
            let and = if said.is_empty() { "" } else { "\n" };
            said.push_str(&format!("{and}… and {} more", self.unnamed));
        }
        said
    }

    /// The text written by `write`, with a measure of at most `most`. If it is too long, the note is cut first, then
    /// subjects from the end, then the rest. Texts are cut before they are escaped, so no escape is cut in two.
    pub(crate) fn fitted(
        mut self,
        most: usize,
        measure: fn(&str) -> usize,
        write: impl Fn(&Plain) -> String,
    ) -> String {
        loop {
            let text = write(&self);
            if measure(&text) <= most {
                return text;
            }
            let half = |text: &str| cut(text, text.len() / 2);
            if self.note.len() > 300 {
                self.note = half(&self.note);
            } else if let Some(long) = self.subjects.iter_mut().find(|subject| subject.len() > 2 * MAX_LINE_BYTES) {
                *long = half(long);
            } else if self.subjects.len() > 1 {
                self.subjects.pop();
                self.unnamed += 1;
            } else if self.counts.len() > 3 {
                self.counts.pop();
            } else if self.help.is_some() || !self.note.is_empty() {
                (self.help, self.note) = (None, String::new());
            } else if self.charts.is_some() {
                self.charts = None;
            } else if self.link.is_some() {
                self.link = None;
            } else if self.title.len() > 20 {
                self.title = half(&self.title);
                self.subjects.iter_mut().chain(&mut self.counts).for_each(|line| *line = half(line));
            } else {
                return cut(&text, most);
            }
        }
    }
}

/// Length in UTF-16 units.
pub(crate) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Escapes Markdown marks by a backslash, so that they are shown as they are. Marks at the start of a line only are
/// escaped there alone.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        for (at, letter) in line.char_indices() {
            let first = line[..at].trim().is_empty();
            // `1.` starts a list.
            let item = letter == '.' && !first && line[..at].trim().bytes().all(|byte| byte.is_ascii_digit());
            if "\\`*_~|[]()<>!".contains(letter) || (first && "#-+=".contains(letter)) || item {
                out.push('\\');
            }
            out.push(letter);
        }
    }
    out
}

/// Separates each `@` from its name by an invisible letter, so that it mentions nobody.
pub(crate) fn uncalled(text: &str) -> String {
    text.replace('@', "@\u{200b}")
}
