//! State of a channel: recent notices, and alerts queued for a digest or for the end of quiet hours.

use super::Hours;
use serde::{Deserialize, Serialize};
use shared::alert::{Channel, MAX_NAMED};
use std::collections::{BTreeMap, BTreeSet};

/// Time window for counting notices, and interval of digests, milliseconds.
const STORM_MS: i64 = 600_000;

/// Interval of sending all firing alerts to an Alertmanager, milliseconds.
pub(super) const STANDING_MS: i64 = 60_000;

/// Maximum number of alerts named in a digest of a storm.
const WORST: usize = 5;

/// Reason for a summary of alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    Storm,
    Quiet,
}

impl Sum {
    pub fn words(self) -> &'static str {
        match self {
            Sum::Storm => "Many alerts in 10 min",
            Sum::Quiet => "During quiet hours",
        }
    }

    pub fn named(self) -> usize {
        match self {
            Sum::Storm => WORST,
            Sum::Quiet => MAX_NAMED,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ChannelProgress {
    /// Times of notices in the last 10 min.
    sent: Vec<i64>,
    /// Times of suppressed notices in the last 10 min of a storm.
    unsaid: Vec<i64>,
    /// Time of the next digest; 0: there is no storm.
    digest: i64,
    summed: BTreeSet<String>,
    /// Alerts queued until the end of quiet hours.
    quiet: BTreeSet<String>,
    /// End of the quiet hours, milliseconds since the Unix epoch.
    quiet_end: i64,
    seq: u64,
    /// Last time all firing alerts were sent.
    standing: i64,
}

#[derive(Debug)]
struct KeptChannel {
    channel: Channel,
    hours: Option<Hours>,
}

#[derive(Debug, Default)]
pub struct Channels {
    kept: BTreeMap<String, KeptChannel>,
    rows: BTreeMap<String, ChannelProgress>,
    dirty: BTreeSet<String>,
}

impl Channels {
    pub fn set(&mut self, channels: &[Channel]) -> Vec<(String, String)> {
        let mut wrong = Vec::new();
        self.kept.clear();
        for channel in channels {
            let hours = match Hours::new(&channel.quiet, channel.zone.as_deref()) {
                Ok(hours) => (!channel.quiet.is_empty()).then_some(hours),
                Err(why) => {
                    wrong.push((channel.name.clone(), why));
                    None
                }
            };
            self.kept.insert(channel.name.clone(), KeptChannel { channel: channel.clone(), hours });
        }
        let gone: Vec<String> = self.rows.keys().filter(|name| !self.knows(name)).cloned().collect();
        for name in gone {
            self.rows.remove(&name);
            self.dirty.insert(name);
        }
        wrong
    }

    pub fn knows(&self, name: &str) -> bool {
        self.kept.contains_key(name)
    }

    pub fn is_kind(&self, name: &str, kind: &str) -> bool {
        self.kept.get(name).is_some_and(|k| k.channel.kind == kind)
    }

    pub fn defaults(&self) -> Vec<String> {
        self.kept.values().filter(|k| k.channel.is_default).map(|k| k.channel.name.clone()).collect()
    }

    fn row(&mut self, name: &str) -> &mut ChannelProgress {
        self.dirty.insert(name.to_string());
        self.rows.entry(name.to_string()).or_default()
    }

    /// End of the current quiet hours, seconds since the Unix epoch.
    pub fn quiet_until(&self, name: &str, now: i64) -> Option<i64> {
        self.kept.get(name)?.hours.as_ref()?.until(now / 1000)
    }

    pub fn wait(&mut self, name: &str, alert: &str, end: i64) {
        let row = self.row(name);
        row.quiet.insert(alert.to_string());
        row.quiet_end = end * 1000;
    }

    pub fn sum(&mut self, name: &str, alert: &str) {
        self.row(name).summed.insert(alert.to_string());
    }

    /// Whether an alert is queued in a summary of any channel.
    pub fn waits_for(&self, alert: &str) -> bool {
        self.rows.values().any(|row| row.summed.contains(alert) || row.quiet.contains(alert))
    }

    /// Whether one more notice exceeds the limit; the first such notice begins a storm.
    pub fn storms(&mut self, name: &str, now: i64, most: usize) -> bool {
        let row = self.row(name);
        row.sent.retain(|t| (0..STORM_MS).contains(&(now - t)));
        if row.digest == 0 && row.sent.len() >= most {
            row.digest = row.sent.first().copied().unwrap_or(now) + STORM_MS;
            row.unsaid.clear();
        }
        if row.digest != 0 {
            row.unsaid.push(now);
            // Counts above twice the limit make no difference.
            if row.unsaid.len() > 2 * most.max(1) {
                row.unsaid.remove(0);
            }
        }
        row.digest != 0
    }

    pub fn count(&mut self, name: &str, now: i64) {
        self.row(name).sent.push(now);
    }

    /// Moves the next digests before a clock that was set back by this much. The other times are tested for that where
    /// they are used.
    pub fn go_back(&mut self, by: i64) {
        for (name, row) in self.rows.iter_mut().filter(|(_, row)| row.digest != 0) {
            row.digest = (row.digest - by).max(1);
            self.dirty.insert(name.clone());
        }
    }

    pub fn next_seq(&mut self, name: &str) -> u64 {
        let row = self.row(name);
        row.seq += 1;
        row.seq
    }

    /// The due summaries: channel, reason, and alerts.
    pub fn due(&mut self, now: i64, most: usize) -> Vec<(String, Sum, Vec<String>)> {
        let mut out = Vec::new();
        for name in self.kept.keys().cloned().collect::<Vec<_>>() {
            let quiet = self.quiet_until(&name, now).is_some();
            let Some(row) = self.rows.get_mut(&name) else { continue };
            if !quiet && !row.quiet.is_empty() {
                out.push((name.clone(), Sum::Quiet, std::mem::take(&mut row.quiet).into_iter().collect()));
                self.dirty.insert(name.clone());
            }
            if row.digest != 0 && now >= row.digest && !quiet {
                row.unsaid.retain(|t| (0..STORM_MS).contains(&(now - t)));
                let goes_on = row.unsaid.len() >= most;
                row.digest = if goes_on { now + STORM_MS } else { 0 };
                let ids: Vec<String> = std::mem::take(&mut row.summed).into_iter().collect();
                out.push((name.clone(), Sum::Storm, ids));
                self.dirty.insert(name);
            }
        }
        out
    }

    /// Channels that receive all firing alerts now.
    pub fn standing(&mut self, now: i64, every: i64) -> Vec<String> {
        let names: Vec<String> = self.kept.keys().filter(|n| self.is_kind(n, "alertmanager")).cloned().collect();
        names
            .into_iter()
            .filter(|name| {
                let last = self.rows.get(name).map_or(0, |row| row.standing);
                let due = now - last >= every || now < last;
                if due {
                    self.row(name).standing = now;
                }
                due
            })
            .collect()
    }

    pub fn next_due(&self) -> Option<i64> {
        let sums = self.rows.values().flat_map(|row| {
            [(row.digest != 0).then_some(row.digest), (!row.quiet.is_empty()).then_some(row.quiet_end)]
        });
        let standing = self
            .kept
            .keys()
            .filter(|n| self.is_kind(n, "alertmanager"))
            .map(|name| Some(self.rows.get(name).map_or(0, |row| row.standing + STANDING_MS)));
        sums.chain(standing).flatten().min()
    }

    /// Changed rows; None: the channel is gone.
    pub fn changed(&mut self) -> Vec<(String, Option<Vec<u8>>)> {
        let bytes = |name: &String| self.rows.get(name).and_then(|row| postcard::to_stdvec(row).ok());
        std::mem::take(&mut self.dirty).into_iter().map(|name| (name.clone(), bytes(&name))).collect()
    }

    pub fn restore(&mut self, name: &str, bytes: &[u8], now: i64) {
        if let Ok(mut row) = postcard::from_bytes::<ChannelProgress>(bytes) {
            // Later than that, the clock was set back meanwhile.
            row.digest = row.digest.min(now + STORM_MS);
            self.rows.insert(name.to_string(), row);
        }
    }
}
