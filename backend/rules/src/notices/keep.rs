//! What is kept of notices, so that a start neither loses nor repeats one.

use super::{Group, GroupKey, Live, Notices, SEP};
use crate::{StateRow, Transition, What};
use shared::alert::{Alert, AlertState};
use shared::rule::Nature;
use std::collections::BTreeMap;

impl Notices {
    /// Parts of the state that changed since it was asked last.
    pub fn changed_rows(&mut self) -> Vec<StateRow> {
        let mut rows: Vec<StateRow> = Vec::new();
        for key in std::mem::take(&mut self.dirty) {
            let group = self.groups.get(&key);
            let bytes = group.filter(|g| g.seq > 0 || !g.members.is_empty()).and_then(|g| postcard::to_stdvec(g).ok());
            rows.push(StateRow { key: format!("g{SEP}{}{SEP}{}", key.0, key.1), bytes });
        }
        for (name, bytes) in self.channels.changed() {
            rows.push(StateRow { key: format!("c{SEP}{name}"), bytes });
        }
        rows
    }

    /// After a start, once rules and channels are set: all rows that stand, and all alerts that fire or that ended in the
    /// last 24 h. What fires and was in nobody's row is told as if it were new.
    pub fn restore(&mut self, rows: &[StateRow], alerts: &[Alert], now: i64) {
        for row in rows {
            let (Some(bytes), Some((sort, rest))) = (&row.bytes, row.key.split_once(SEP)) else { continue };
            match (sort, rest.split_once(SEP)) {
                ("g", Some((channel, group))) => {
                    if let Ok(read) = postcard::from_bytes::<Group>(bytes) {
                        self.groups.insert((channel.to_string(), group.to_string()), read);
                    }
                }
                ("c", None) => self.channels.restore(rest, bytes),
                _ => {}
            }
        }
        let mut of: BTreeMap<String, Vec<GroupKey>> = BTreeMap::new();
        for (key, group) in &self.groups {
            group.members.keys().for_each(|id| of.entry(id.clone()).or_default().push(key.clone()));
        }
        for alert in alerts {
            let groups = of.remove(&alert.id).unwrap_or_default();
            let known = !groups.is_empty() || self.channels.waits_for(&alert.id);
            if known {
                self.alerts.insert(alert.id.clone(), Live { alert: alert.clone(), silence: None, groups });
            }
            if alert.state == AlertState::Firing {
                // The same words again hold back what they held back; what was told stays told.
                let event =
                    self.rules.get(&alert.rule).is_some_and(|k| k.nature == Nature::Run || k.nature == Nature::Xid);
                let what = if known { What::Changed } else { What::Fired };
                self.hear(&Transition { what, alert: alert.clone(), event, flapping: false }, now);
            }
        }
        for (key, group) in &mut self.groups {
            let before = group.members.len();
            group.members.retain(|id, _| self.alerts.contains_key(id));
            if before != group.members.len() {
                self.dirty.insert(key.clone());
            }
        }
    }
}
