//! Finds the visible data that the page lacks, and requests them from the server.

use super::Page;
use leptos::prelude::*;
use shared::window::MAX_SAMPLES_SPAN_MS;
use shared::wire::PageMessage;

/// Extra time in ms that a request for an earlier period covers beyond the visible span.
const READ_AHEAD_MS: i64 = 3_600_000;

impl Page {
    /// Queues a request to the server in the outbox.
    pub fn ask(self, message: PageMessage) {
        self.outbox.update(|all| all.push(message));
    }

    /// Asks for the history that the view needs and the page does not have.
    pub fn load(self) {
        let (from, to) = self.span();
        let earlier = self.view.with_untracked(|v| v.versus).map(|ms| if ms == 0 { to - from } else { ms });
        match earlier {
            // A live page moves on, and the earlier span with it.
            Some(ms) => self.want(&[(from, to), (from - ms, (to - ms + READ_AHEAD_MS).min(to))]),
            None => self.want(&[(from, to)]),
        }
    }

    /// Requests missing history of spans (ms since the epoch): samples, or minutes for spans that are too long for
    /// samples. One request is open at a time; each response leads to the next request.
    pub fn want(self, spans: &[(i64, i64)]) {
        let recorded = self.is_recorded();
        let missing = {
            let mut store = self.store.write_value();
            let source = self.view.with_untracked(|v| store.source_mut(v.source.as_deref()));
            source.and_then(|s| {
                let (source, newest) = (s.info.id, s.last_t()?);
                if spans.iter().all(|(from, to)| to - from <= MAX_SAMPLES_SPAN_MS) || recorded {
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
