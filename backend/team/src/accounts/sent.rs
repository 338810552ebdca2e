//! Spans of each machine in the sample store, whichever hub of a cluster sent them.

use super::{Accounts, Denied};
use records::{coverage, sources};
use std::collections::{BTreeMap, HashSet};

/// First and last sequences, both included, ascending.
type Spans = Vec<(u64, u64)>;

/// Stored spans of a machine: older ones have left the history of every hub.
const MAX_SPANS: usize = 256;

impl Accounts {
    /// The spans of these machines in the sample store; empty for a machine without a record.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn sent(&self, machines: &[String]) -> Result<BTreeMap<String, Spans>, Denied> {
        let (mut all, mut many) = (BTreeMap::new(), Vec::new());
        {
            let mut on = self.read().await?;
            for machine in machines {
                let mut spans = coverage::list(&mut on, machine).await?;
                if spans.len() > MAX_SPANS {
                    spans.drain(..spans.len() - MAX_SPANS);
                    many.push((machine, spans[0].0));
                }
                let spans = spans.into_iter().map(|(first, last)| (first.max(0) as u64, last.max(0) as u64));
                all.insert(machine.clone(), spans.collect());
            }
        }
        if !many.is_empty() {
            let mut note = self.records().note().await?;
            for (machine, first) in many {
                coverage::drop_below(&mut note, machine, first).await?;
            }
            note.commit().await?;
        }
        Ok(all)
    }

    /// Adds spans that are in the sample store now. Those of a removed machine are ignored.
    ///
    /// # Errors
    /// [`Denied`]; then nothing is stored.
    pub async fn add_sent(&self, taken: &BTreeMap<String, Spans>) -> Result<(), Denied> {
        let mut note = self.records().note().await?;
        let there: HashSet<String> = sources::homes(&mut note).await?.into_iter().map(|(id, _)| id).collect();
        for (machine, spans) in taken.iter().filter(|(machine, _)| there.contains(*machine)) {
            for (first, last) in spans {
                let number = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
                coverage::add(&mut note, machine, number(*first), number(*last)).await?;
            }
        }
        Ok(note.commit().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Database;
    use std::sync::Arc;
    use stream::clock::System;

    #[tokio::test]
    async fn what_was_sent_is_known_to_all_and_a_machine_that_is_gone_keeps_nobody_from_saying_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::from_settings(folder.path(), None, None).expect("a file");
        let accounts = Accounts::open_in(&database, Arc::new(System)).await.expect("opened");
        accounts.own_machine("here").await.expect("entered");
        let taken = |first, last| {
            BTreeMap::from([("here".to_string(), vec![(first, last)]), ("gone".to_string(), vec![(first, last)])])
        };
        for (first, last) in [(1, 15), (31, 45), (16, 20)] {
            accounts.add_sent(&taken(first, last)).await.expect("written");
        }
        let known = || async { accounts.sent(&["here".into(), "gone".into()]).await.expect("read") };
        assert_eq!(known().await["here"], [(1, 20), (31, 45)]);
        assert_eq!(known().await["gone"], []);
        for n in 0..MAX_SPANS as u64 {
            accounts
                .add_sent(&BTreeMap::from([("here".into(), vec![(100 + 3 * n, 100 + 3 * n)])]))
                .await
                .expect("written");
        }
        assert_eq!(known().await["here"].first(), Some(&(100, 100)), "the oldest leave the table");
    }
}
