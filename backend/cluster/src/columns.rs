//! A row of the fleet's overview over time for machines of other hubs. Each holder is asked for some machines per
//! request.

use super::calls::{Call, CallReply};
use super::{BusError, Cluster};
use shared::wire::SourceId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use stream::live::RowColumns;

/// Maximum number of values in one answer: 9 bytes each at most, so that the answer is one message.
const MAX_VALUES: usize = 100_000;
/// Maximum time for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One value per step; None where there is none.
type ColumnValues = Vec<Option<f64>>;

/// Whether the answer for so many machines fits one message.
fn fits(columns: &RowColumns, sources: usize) -> bool {
    let values = columns.count.checked_mul(sources).is_some_and(|values| values <= MAX_VALUES);
    values && columns.step > 0 && columns.from <= columns.to
}

impl Cluster {
    /// Number of machines per request; at least one.
    pub fn most_columns(&self, columns: &RowColumns) -> usize {
        (MAX_VALUES / columns.count.max(1)).max(1)
    }

    /// The values of these machines, from the hubs that hold them. For each machine without values, the reason: a
    /// sentence without a full stop.
    pub async fn columns(
        &self,
        columns: &RowColumns,
        sources: &[SourceId],
    ) -> HashMap<SourceId, Result<ColumnValues, String>> {
        let mut hubs: BTreeMap<String, Vec<(SourceId, String)>> = BTreeMap::new();
        let mut told = HashMap::new();
        for source in sources {
            let key =
                self.others.live.store().source(*source).map(|(source, _)| source.key.clone()).unwrap_or_default();
            match self.others.holders.find(&key).filter(|held| held.alive) {
                Some(held) => hubs.entry(held.hub).or_default().push((*source, key)),
                None => drop(told.insert(*source, Err("no hub holds its link".to_string()))),
            }
        }
        let asked = hubs.into_iter().map(|(hub, own)| async move {
            let keys = own.iter().map(|(_, key)| key.clone()).collect();
            let call = Call::Columns { columns: columns.clone(), sources: keys };
            let answer = match self.others.call(&hub, &call, TIMEOUT).await {
                Ok(CallReply::Columns(values)) if values.len() == own.len() => Ok(values),
                Ok(_) => Err(BusError::Late.to_string()),
                Err(why) => Err(why.to_string()),
            };
            (own, answer)
        });
        for (own, answer) in futures_util::future::join_all(asked).await {
            match answer {
                Ok(values) => {
                    let none = || Err("the other hub no longer has it".to_string());
                    let one = values.into_iter().map(|values| values.ok_or(()).or_else(|()| none()));
                    told.extend(own.into_iter().map(|(source, _)| source).zip(one));
                }
                Err(why) => told.extend(own.into_iter().map(|(source, _)| (source, Err(why.clone())))),
            }
        }
        told
    }

    /// The answer to another hub's request.
    pub(super) async fn read_columns(self: &Arc<Self>, columns: RowColumns, sources: Vec<String>) -> CallReply {
        if !fits(&columns, sources.len()) {
            return CallReply::Busy;
        }
        let own = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let of = |key: &String| {
                let source = own.held_here(key)?;
                let source = own.others.live.store().source(source).map(|(source, _)| source.clone())?;
                let values = columns.read(&own.others.live, &source);
                (values.len() == columns.count).then_some(values)
            };
            sources.iter().map(of).collect()
        });
        read.await.map_or(CallReply::Busy, CallReply::Columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_for_one_answer_is_not_read() {
        let columns = |count, step| RowColumns { row: "cpu".into(), from: 0, to: 9, step, count, whole: true };
        assert!(fits(&columns(4_000, 1), 25) && fits(&columns(0, 1), usize::MAX));
        for (columns, sources) in [
            (columns(4_000, 1), 26),
            (columns(usize::MAX, 1), 2),
            (columns(1, 0), 1),
            (RowColumns { from: 10, ..columns(1, 1) }, 1),
        ] {
            assert!(!fits(&columns, sources), "{columns:?} {sources}");
        }
        let reply = CallReply::Columns(vec![Some(vec![Some(1.5); MAX_VALUES])]);
        assert!(super::super::encode(&reply).len() < super::super::MAX_BUS_MESSAGE);
    }
}
