//! The ground of the terminal: it is asked for its color, and its answer is heard among the keys.
//!
//! The answer comes when it comes, over a slow link seconds later, or never. So nothing waits for it, and it is taken out of
//! what is typed: `ESC ] 11 ; rgb:ffff/ffff/ffff`, and a bell or `ESC \\` at its end.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// The question.
pub const QUESTION: &str = "\u{1b}]11;?\u{7}";
/// The begin of an answer comes at once: a key that may be it is held back for so long.
const HELD: Duration = Duration::from_millis(50);
/// What has begun like an answer is given up after so long without a letter.
const BROKEN: Duration = Duration::from_secs(1);
/// How long a lone Escape may be the begin of an answer. It is never held back afterwards.
pub const AWAITED: Duration = Duration::from_secs(5);
/// Letters of an answer at most.
const MAX_LETTERS: usize = 64;
/// How an answer begins, after its Escape.
const BEGIN: &str = "]11;";

/// Listens for the answer.
#[derive(Default)]
pub struct Ear {
    /// What may be an answer so far.
    held: Vec<KeyEvent>,
    /// The same as text, without Escapes.
    text: String,
}

/// Something that the terminal tells.
#[derive(Debug)]
pub enum Told {
    /// A person typed, or the size is another.
    Typed(Event),
    /// Whether its ground is light.
    Ground(bool),
}

/// What was heard.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// What a person typed, and what else happened.
    pub typed: Vec<Event>,
    /// The answer: whether the ground is light.
    pub is_light: Option<bool>,
}

impl Ear {
    /// How long what is held back waits for more; none where nothing is.
    pub fn patience(&self) -> Option<Duration> {
        let patience = if self.text.len() < BEGIN.len() { HELD } else { BROKEN };
        (!self.held.is_empty()).then_some(patience)
    }

    /// Nothing followed on what was held back: a person typed it. The rest of an answer is none.
    pub fn silence(&mut self) -> Vec<Event> {
        let (held, text) = (std::mem::take(&mut self.held), std::mem::take(&mut self.text));
        if text.len() >= BEGIN.len() { Vec::new() } else { held.into_iter().map(Event::Key).collect() }
    }

    /// Hears what comes. `awaits` says that a lone Escape may be the begin of an answer.
    pub fn hear(&mut self, event: Event, awaits: bool) -> Heard {
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
            // Of an end in two parts this is the first one.
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

/// Whether a color such as `]11;rgb:ffff/ffff/ffff`, with one to four digits each, is light; none when it is no color.
fn is_light(text: &str) -> Option<bool> {
    let (kind, digits) = text.strip_prefix(BEGIN)?.split_once(':')?;
    let share = |digits: &str| {
        let most = 16_u32.checked_pow(digits.len() as u32).filter(|most| (16..=65_536).contains(most))? - 1;
        Some(f64::from(u32::from_str_radix(digits, 16).ok()?) / f64::from(most))
    };
    let parts: Vec<f64> = digits.split('/').take(3).map(share).collect::<Option<_>>()?;
    // How bright each color seems to the eye, of Rec. 709.
    let [r, g, b] = parts[..] else { return None };
    ["rgb", "rgba"].contains(&kind).then_some(0.2126 * r + 0.7152 * g + 0.0722 * b > 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes as keys of these bytes, as they are read at once, or each alone.
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

    fn heard(events: Vec<Event>, awaits: bool) -> (Vec<Event>, Option<bool>) {
        let mut ear = Ear::default();
        let (mut typed, mut light) = (Vec::new(), None);
        for event in events {
            let heard = ear.hear(event, awaits);
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
                assert_eq!(heard(keys(answer, alone), true), (Vec::new(), light), "{answer:?} {alone}");
                let between = [keys("q", false), keys(answer, alone), keys("j?", false)].concat();
                assert_eq!(heard(between, true), (keys("qj?", false), light), "{answer:?} {alone}");
            }
        }
    }

    #[test]
    fn what_is_typed_is_never_eaten() {
        for text in ["\u{1b}", "\u{1b}]", "\u{1b}]1", "]11;", "\u{1b}]12", "\u{1b}\u{1b}[1", "\u{1b}q", "1/gpu"] {
            for (alone, awaits) in [(false, true), (true, true), (true, false)] {
                let all = keys(text, alone);
                assert_eq!(heard(all.clone(), awaits), (all, None), "{text:?} {alone} {awaits}");
            }
        }
        let endless = heard(keys(&format!("\u{1b}]11;{}", "7".repeat(200)), false), true);
        assert!(endless.0.len() > 100, "a person types on: {endless:?}");
    }
}
