//! Background color of the terminal: a query is sent, and the answer is filtered out of the keys.
//!
//! The answer may come seconds later over a slow link, or never, so nothing waits for it. It is removed from the typed
//! keys: `ESC ] 11 ; rgb:ffff/ffff/ffff`, and a bell or `ESC \\` at its end.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// The query (OSC 11).
pub const QUESTION: &str = "\u{1b}]11;?\u{7}";
/// The first bytes of an answer come together. A key that may be its start is held back for this time.
const KEY_TIMEOUT: Duration = Duration::from_millis(50);
/// Time without a key after which an unfinished answer is discarded.
const BROKEN: Duration = Duration::from_secs(1);
/// Time after the query in which a lone Escape may start an answer. Afterwards it is never held back.
pub const AWAITED: Duration = Duration::from_secs(5);
/// Maximum keys of an answer.
const MAX_LETTERS: usize = 64;
/// Start of an answer, after its Escape.
const BEGIN: &str = "]11;";

/// Filters the answer out of the keys.
#[derive(Default)]
pub struct Ear {
    /// Keys that may be part of an answer.
    held: Vec<KeyEvent>,
    /// The same as text, without Escapes.
    text: String,
}

/// An event of the terminal.
#[derive(Debug)]
pub enum TerminalEvent {
    /// A key was typed, or the size changed.
    Typed(Event),
    /// Whether its background is light.
    Ground(bool),
}

/// Result of one event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Typed keys, and other events.
    pub typed: Vec<Event>,
    /// Whether the background is light, if the answer is complete.
    pub is_light: Option<bool>,
}

impl Ear {
    /// Time to wait for the key after the held ones; none if none is held.
    pub fn patience(&self) -> Option<Duration> {
        let patience = if self.text.len() < BEGIN.len() { KEY_TIMEOUT } else { BROKEN };
        (!self.held.is_empty()).then_some(patience)
    }

    /// Returns the held keys, because no further key followed: a person typed them. An unfinished answer is discarded.
    pub fn silence(&mut self) -> Vec<Event> {
        let (held, text) = (std::mem::take(&mut self.held), std::mem::take(&mut self.text));
        if text.len() >= BEGIN.len() { Vec::new() } else { held.into_iter().map(Event::Key).collect() }
    }

    /// Processes an event. `awaits`: whether a lone Escape may start an answer.
    pub fn handle(&mut self, event: Event, awaits: bool) -> Heard {
        let Event::Key(key) = event else { return Heard { typed: vec![event], is_light: None } };
        let escaped = key.modifiers.contains(KeyModifiers::ALT);
        let begins = match key.code {
            KeyCode::Esc => awaits,
            KeyCode::Char(']') => escaped,
            _ => false,
        };
        if self.held.is_empty() && !begins {
            return Heard { typed: vec![event], is_light: None };
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_body = self.text.len() >= BEGIN.len();
        let ends = match key.code {
            KeyCode::Char('g') => control,
            KeyCode::Char('\\') => true,
            _ => false,
        };
        match key.code {
            _ if is_body && (ends || self.held.len() >= MAX_LETTERS) => {
                self.held.clear();
                return Heard { typed: Vec::new(), is_light: is_light(&std::mem::take(&mut self.text)) };
            }
            // First part of an end in two parts (`ESC \`), or the start of an answer.
            KeyCode::Esc if is_body || self.held.is_empty() => {}
            KeyCode::Char(letter) if !control && (is_body || BEGIN[self.text.len()..].starts_with(letter)) => {
                self.text.push(letter);
            }
            _ => {
                let mut typed = self.silence();
                typed.push(event);
                return Heard { typed, is_light: None };
            }
        }
        self.held.push(key);
        Heard::default()
    }
}

/// Whether a color such as `]11;rgb:ffff/ffff/ffff` (one to four digits each) is light; none if it is no color.
fn is_light(text: &str) -> Option<bool> {
    let (kind, digits) = text.strip_prefix(BEGIN)?.split_once(':')?;
    let share = |digits: &str| {
        let most = 16_u32.checked_pow(digits.len() as u32).filter(|most| (16..=65_536).contains(most))? - 1;
        Some(f64::from(u32::from_str_radix(digits, 16).ok()?) / f64::from(most))
    };
    let parts: Vec<f64> = digits.split('/').take(3).map(share).collect::<Option<_>>()?;
    // Luma weights of Rec. 709.
    let [r, g, b] = parts[..] else { return None };
    ["rgb", "rgba"].contains(&kind).then_some(0.2126 * r + 0.7152 * g + 0.0722 * b > 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key events of these bytes, read together or one by one (`alone`).
    fn keys(bytes: &str, alone: bool) -> Vec<Event> {
        let mut all = Vec::new();
        let mut escaped = false;
        for c in bytes.chars() {
            let (code, mut modifiers) = match c {
                '\u{1b}' => (KeyCode::Esc, KeyModifiers::NONE),
                '\u{7}' => (KeyCode::Char('g'), KeyModifiers::CONTROL),
                c => (KeyCode::Char(c), KeyModifiers::NONE),
            };
            if code == KeyCode::Esc && !alone {
                escaped = true;
                continue;
            }
            if std::mem::take(&mut escaped) {
                modifiers |= KeyModifiers::ALT;
            }
            all.push(Event::Key(KeyEvent::new(code, modifiers)));
        }
        all
    }

    fn feed_events(events: Vec<Event>, awaits: bool) -> (Vec<Event>, Option<bool>) {
        let mut ear = Ear::default();
        let (mut typed, mut light) = (Vec::new(), None);
        for event in events {
            let heard = ear.handle(event, awaits);
            typed.extend(heard.typed);
            light = light.or(heard.is_light);
        }
        typed.extend(ear.silence());
        (typed, light)
    }

    #[test]
    fn an_answer_is_heard_and_never_typed() {
        for (answer, light) in [
            ("\u{1b}]11;rgb:ffff/ffff/ffff\u{7}", Some(true)),
            ("\u{1b}]11;rgb:ffff/FFFF/ffff\u{1b}\\", Some(true)),
            ("\u{1b}]11;rgb:1e/1e/2e\u{1b}\\", Some(false)),
            ("\u{1b}]11;rgba:0000/0000/0000/ffff\u{7}", Some(false)),
            ("\u{1b}]11;nothing\u{7}", None),
        ] {
            for alone in [false, true] {
                assert_eq!(feed_events(keys(answer, alone), true), (Vec::new(), light), "{answer:?} {alone}");
                let between = [keys("q", false), keys(answer, alone), keys("j?", false)].concat();
                assert_eq!(feed_events(between, true), (keys("qj?", false), light), "{answer:?} {alone}");
            }
        }
    }

    #[test]
    fn what_is_typed_is_never_eaten() {
        for text in ["\u{1b}", "\u{1b}]", "\u{1b}]1", "]11;", "\u{1b}]12", "\u{1b}\u{1b}[1", "\u{1b}q", "1/gpu"] {
            for (alone, awaits) in [(false, true), (true, true), (true, false)] {
                let all = keys(text, alone);
                assert_eq!(feed_events(all.clone(), awaits), (all, None), "{text:?} {alone} {awaits}");
            }
        }
        let endless = feed_events(keys(&format!("\u{1b}]11;{}", "7".repeat(200)), false), true);
        assert!(endless.0.len() > 100, "a person types on: {endless:?}");
    }
}
