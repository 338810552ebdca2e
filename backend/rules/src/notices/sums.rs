//! Many alerts in one notice: digests of storms, summaries of quiet hours, and all firing alerts.

use super::channel::{self, STANDING_MS};
use super::{Due, Notices, text, worst_first};
use shared::alert::{Alert, AlertState, Notice, NoticeKind};
use shared::rule::Op;
use std::collections::BTreeMap;

impl Notices {
    /// Due digests of storms, and summaries of quiet hours.
    pub(super) fn sum_up(&mut self, now: i64) -> Vec<Due> {
        let mut out = Vec::new();
        for (channel, why, ids) in self.channels.due(now, self.setup.storm) {
            let mut alerts: Vec<&Alert> = ids.iter().filter_map(|id| self.alerts.get(id)).map(|l| &l.alert).collect();
            if alerts.is_empty() {
                continue;
            }
            alerts.sort_by(|a, b| worst_first(a, b, Op::Above));
            let stand = alerts.iter().filter(|a| a.state == AlertState::Firing).count();
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            alerts.iter().for_each(|a| *counts.entry(a.name.clone()).or_default() += 1);
            let all = match alerts.len() {
                1 => "1 alert".to_string(),
                n => format!("{n} alerts"),
            };
            if why == channel::Sum::Quiet {
                // It is notified now, and its end will be, too.
                for (key, group) in self.groups.iter_mut().filter(|((name, _), _)| *name == channel) {
                    let members = group.members.iter_mut().filter(|(id, member)| member.summed && ids.contains(*id));
                    for (_, member) in members {
                        member.summed = false;
                        self.dirty.insert(key.clone());
                    }
                }
            }
            let seq = self.channels.next_seq(&channel);
            let group = "digest".to_string();
            out.push(Due {
                notice: Notice {
                    id: self.setup.id_of((&channel, &group), seq, now),
                    kind: NoticeKind::Digest,
                    seq,
                    severity: alerts.iter().map(|a| a.severity).max().unwrap_or_default(),
                    rule: String::new(),
                    title: format!("{}: {all}, {stand} still firing", why.words()),
                    note: String::new(),
                    more: alerts.len().saturating_sub(why.named()) as u64,
                    alerts: alerts.into_iter().take(why.named()).cloned().collect(),
                    counts: counts.into_iter().collect(),
                    link: self.link(""),
                    charts: None,
                    help: None,
                    team: self.setup.team.clone(),
                    host: self.setup.host.clone(),
                    at: now / 1000,
                    group,
                },
                channel,
            });
        }
        out
    }

    /// All firing alerts, for channels that group and repeat on their own.
    pub(super) fn standing(&mut self, now: i64) -> Vec<Due> {
        let mut out = Vec::new();
        for channel in self.channels.standing(now, STANDING_MS) {
            let mut alerts = Vec::new();
            let (mut over, mut sent) = (Vec::new(), Vec::new());
            for (key, group) in self.groups.iter().filter(|(key, _)| key.0 == channel) {
                for (id, member) in &group.members {
                    let Some(live) = self.alerts.get(id) else { continue };
                    let inhibited = self.holds_back(&live.alert, now).is_some_and(|(_, silence)| silence.is_none());
                    let mut alert = live.alert.clone();
                    if alert.state == AlertState::Resolved && (inhibited || member.told) {
                        over.push((key.clone(), id.clone()));
                    } else if alert.state == AlertState::Resolved {
                        // An Alertmanager notifies nobody of an alert that it has only seen ended. Its end follows.
                        (alert.state, alert.ended) = (AlertState::Firing, None);
                    }
                    if !inhibited {
                        alerts.push(alert);
                    }
                    if !inhibited && !member.told {
                        sent.push((key.clone(), id.clone()));
                    }
                }
            }
            for part in parts(alerts) {
                let seq = self.channels.next_seq(&channel);
                let fires = part.iter().any(|a| a.state == AlertState::Firing);
                let group = text::STANDING.to_string();
                out.push(Due {
                    notice: Notice {
                        id: self.setup.id_of((&channel, &group), seq, now),
                        kind: if fires { NoticeKind::Firing } else { NoticeKind::Resolved },
                        seq,
                        severity: part.iter().map(|a| a.severity).max().unwrap_or_default(),
                        rule: String::new(),
                        title: format!("{} alerts", part.len()),
                        note: String::new(),
                        alerts: part,
                        more: 0,
                        counts: Vec::new(),
                        link: self.link(""),
                        charts: None,
                        help: None,
                        team: self.setup.team.clone(),
                        host: self.setup.host.clone(),
                        at: now / 1000,
                        group,
                    },
                    channel: channel.clone(),
                });
            }
            for (key, id) in sent {
                self.mark(&key, &id, false);
                self.dirty.insert(key);
            }
            for (key, id) in over {
                if let Some(group) = self.groups.get_mut(&key) {
                    group.members.remove(&id);
                    self.dirty.insert(key);
                }
            }
        }
        out
    }
}

/// Splits alerts into parts that fit one message each.
fn parts(alerts: Vec<Alert>) -> Vec<Vec<Alert>> {
    let mut parts: Vec<Vec<Alert>> = Vec::new();
    let mut bytes = 0;
    for alert in alerts {
        let own = text::bytes_of(&alert);
        match parts.last_mut() {
            Some(part) if bytes + own <= text::STANDING_BYTES => part.push(alert),
            _ => {
                bytes = 0;
                parts.push(vec![alert]);
            }
        }
        bytes += own;
    }
    parts
}
