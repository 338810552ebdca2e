//! W&B's `wandb-events.jsonl`: a line per instant with all its samples, with W&B's tags and units. With several
//! machines each is a writer of a shared run: its name is the label behind the tag.

use super::select::{MAX_HELD_SAMPLES, Selection};
use super::text::{number, quoted, seconds};
use shared::catalog::wandb;
use shared::series::SeriesId;
use shared::wire::SourceId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Output form of one series.
struct Column {
    source: SourceId,
    id: SeriesId,
    /// `,"system.gpu.0.temp":`
    name: String,
    /// Divisor of its values.
    over: f64,
}

/// Lines in order of time, window by window, so that only one window is in memory.
pub(super) struct Events {
    selection: Arc<Selection>,
    columns: Vec<Column>,
    /// First instant that is not written yet, and the last.
    left: (i64, i64),
    /// The first of all.
    begin: i64,
    /// Length of a window, ms.
    window: i64,
}

impl Events {
    pub fn new(selection: Arc<Selection>) -> Self {
        let first = selection.wanted.first().map(|w| w.source);
        let several = selection.wanted.iter().any(|w| Some(w.source) != first);
        let column = |w: &super::Wanted| {
            let label = if several { format!("/l:{}", w.host) } else { String::new() };
            let name = format!(",{}:", quoted(&format!("system.{}{label}", w.tag)));
            Column { source: w.source, id: w.id, name, over: wandb::sent_over(selection.metric(w)) }
        };
        let columns: Vec<Column> = selection.wanted.iter().map(column).collect();
        let spans = selection.wanted.iter().map(|w| w.span);
        let (begin, end) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, -1));
        let interval = selection.parts.values().map(|part| part.interval).min().unwrap_or(1);
        let window = (MAX_HELD_SAMPLES / columns.len().max(1) as i64).max(1).saturating_mul(interval);
        Events { selection, columns, left: (begin, end), begin, window }
    }

    /// The lines of the next window with a sample; false when there is none.
    pub fn write(&mut self, text: &mut String) -> bool {
        while self.left.0 <= self.left.1 {
            let from = self.left.0;
            let to = from.saturating_add(self.window - 1).min(self.left.1);
            self.left.0 = to + 1;
            let mut lines: BTreeMap<i64, Vec<(usize, f64)>> = BTreeMap::new();
            for (source, part) in &self.selection.parts {
                let own: Vec<usize> = (0..self.columns.len()).filter(|i| self.columns[*i].source == *source).collect();
                let ids: Vec<SeriesId> = own.iter().map(|i| self.columns[*i].id).collect();
                for stretch in part.stretches.iter().filter_map(|stretch| stretch.part(from, to)) {
                    for (column, samples) in own.iter().zip(stretch.samples(&ids)) {
                        samples.into_iter().for_each(|(t, v)| lines.entry(t).or_default().push((*column, v)));
                    }
                }
            }
            for (t, mut values) in lines {
                values.sort_by_key(|(column, _)| *column);
                values.dedup_by_key(|(column, _)| *column);
                text.push_str("{\"_wandb\":true,\"_timestamp\":");
                seconds(text, t);
                text.push_str(",\"_runtime\":");
                seconds(text, t - self.begin);
                for (column, value) in values {
                    let Column { name, over, .. } = &self.columns[column];
                    text.push_str(name);
                    number(text, value / over);
                }
                text.push_str("}\n");
            }
            if !text.is_empty() {
                return true;
            }
        }
        false
    }
}
