//! Samples of one request: some series over some ticks.

use super::message::{Label, Sample, TimeSeries, WriteRequest};
use super::span::TickSpan;
use shared::catalog::prometheus::{Family, SOURCE};
use shared::series::SeriesId;
use std::sync::Arc;

/// Maximum number of samples in one request: receivers accept this many at once, and a refused request loses no more.
const MAX_SAMPLES: usize = 20_000;

/// Names of a source's series on the other server, by id; none for a series without a row.
#[derive(Default)]
pub struct Names(Vec<Option<Named>>);

struct Named {
    labels: Vec<Label>,
    family: Arc<Family>,
}

/// The samples of one request.
pub struct Batch {
    /// The bytes of the request's body.
    pub body: Vec<u8>,
    /// Number of its samples.
    pub samples: u64,
    /// The series behind its last one.
    pub to: SeriesId,
}

impl Names {
    /// Series whose labels are known.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Names the next series, or one that has changed: its family, and its labels besides those of family and source.
    pub fn set(&mut self, id: SeriesId, source: &str, series: Option<(Arc<Family>, Vec<Label>)>) {
        let named = series.map(|(family, mut labels)| {
            let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
            labels.extend([label("__name__", &family.name), label(SOURCE, source)]);
            // An empty label means no label, and a receiver may refuse unsorted labels.
            labels.retain(|label| !label.value.is_empty());
            labels.sort_by(|a, b| a.name.cmp(&b.name));
            Named { labels, family }
        });
        match self.0.get_mut(id as usize) {
            Some(known) => *known = named,
            None => self.0.push(named),
        }
    }

    /// The samples of a span from series `from` on, up to series `to` if it is given, else as many as fit; `pack` makes
    /// the bytes.
    pub fn batch(
        &mut self,
        span: &TickSpan,
        from: SeriesId,
        to: Option<SeriesId>,
        pack: impl Fn(&WriteRequest) -> Vec<u8>,
    ) -> Batch {
        let end = to.unwrap_or(SeriesId::MAX).min(self.0.len() as SeriesId);
        let (mut request, mut ids) = (WriteRequest::default(), Vec::new());
        let (mut id, mut samples) = (from, 0);
        while id < end && (to.is_some() || samples < MAX_SAMPLES) {
            if let Some(series) = &mut self.0[id as usize] {
                let own = span.samples(id);
                if !own.is_empty() {
                    samples += own.len();
                    // Lent to the request: the labels of thousands of series are not copied for each.
                    let labels = std::mem::take(&mut series.labels);
                    let family = &series.family;
                    let sample = |(timestamp, value)| Sample { value: family.value(value), timestamp };
                    let samples = own.into_iter().map(sample).collect();
                    request.timeseries.push(TimeSeries { labels, samples });
                    ids.push(id);
                }
            }
            id += 1;
        }
        let body = pack(&request);
        for (id, lent) in ids.into_iter().zip(request.timeseries) {
            if let Some(series) = &mut self.0[id as usize] {
                series.labels = lent.labels;
            }
        }
        Batch { body, samples: samples as u64, to: id }
    }
}
