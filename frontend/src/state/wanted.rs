//! What the page shows and does not have: put as questions to the server.

use super::Page;
use leptos::prelude::*;
use shared::window::LONGEST_OF_SAMPLES;
use shared::wire::PageMessage;

/// So much more of an earlier period is asked for than is seen, ms.
const AHEAD_MS: i64 = 3_600_000;

impl Page {
    /// Has the server asked.
    pub fn ask(self, message: PageMessage) {
        self.outbox.update(|all| all.push(message));
    }

    /// Asks for the history that the view needs and the page has not.
    pub fn load(self) {
        let (from, to) = self.span();
        let earlier = self.view.with_untracked(|v| v.versus).map(|ms| if ms == 0 { to - from } else { ms });
        match earlier {
            // Live, the earlier span moves on.
            Some(ms) => self.want(&[(from, to), (from - ms, (to - ms + AHEAD_MS).min(to))]),
            None => self.want(&[(from, to)]),
        }
    }

    /// Asks for the history of spans that the page has not: samples, or minutes where a span is longer than is drawn from
    /// samples. One question at a time; with each answer it is asked for what is missing then.
    pub fn want(self, spans: &[(i64, i64)]) {
        let recorded = self.is_recorded();
        let missing = {
            let mut store = self.store.write_value();
            let source = self.view.with_untracked(|v| store.source_mut(v.source.as_deref()));
            source.and_then(|s| {
                let (source, newest) = (s.info.id, s.last_t()?);
                if spans.iter().all(|(from, to)| to - from <= LONGEST_OF_SAMPLES) || recorded {
                    let (from, to) = s.ask(spans)?;
                    return Some(PageMessage::History { source, from, to });
                }
                let (from, to) = s.ask_days(spans.iter().map(|span| span.0).min()?, newest)?;
                Some(PageMessage::Minutes { source, from, to })
            })
        };
        if let Some(message) = missing {
            self.ask(message);
        }
    }
}
