//! Stored state of notices, so that a start neither loses nor repeats one.

use super::{Group, GroupKey, Live, Notices, SEP};
use crate::{StateRow, Transition, What};
use shared::alert::{Alert, AlertState};
use shared::rule::Nature;
use std::collections::BTreeMap;

impl Notices {
    /// Parts of the state that changed since the last call.
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

    /// Restores the state after a start, once rules and channels are set. It takes all current rows, and all alerts
    /// that fire or ended in the last 24 h. A firing alert without a row is treated as new.
    pub fn restore(&mut self, rows: &[StateRow], alerts: &[Alert], now: i64) {
        for row in rows {
            let (Some(bytes), Some((sort, rest))) = (&row.bytes, row.key.split_once(SEP)) else { continue };
            match (sort, rest.split_once(SEP)) {
                ("g", Some((channel, group))) => {
                    if let Ok(mut read) = postcard::from_bytes::<Group>(bytes) {
                        // The clock was set back meanwhile.
                        if read.last > now {
                            read.go_back(read.last - now);
                        }
                        self.groups.insert((channel.to_string(), group.to_string()), read);
                    }
                }
                ("c", None) => self.channels.restore(rest, bytes, now),
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
                // Firing alerts inhibit again as before; notices already sent are not repeated.
                let event =
                    self.rules.get(&alert.rule).is_some_and(|k| k.nature == Nature::Run || k.nature == Nature::Xid);
                let what = if known { What::Changed } else { What::Fired };
                self.apply(&Transition { what, alert: alert.clone(), event, flapping: false }, now);
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
