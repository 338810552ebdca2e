//! Sends the state of the machines that this hub holds.

use super::message::{GossipMessage, MachineLine};
use crate::MAX_BUS_MESSAGE;
use shared::catalog::fleet::Grain;
use shared::wire::{IndexEntry, SourceId, encode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stream::live::{Live, Overview, OverviewPlace};
use watch::findings::{FindingEntry, FindingRegistry};

/// Interval at which everything is sent again.
const WHOLE_EVERY: Duration = Duration::from_secs(10);
/// Entries per message, and findings: each is far below a hundredth of the maximum message size.
const LINES: usize = 200;
const FINDINGS: usize = 50;
/// Maximum number of findings per beat, and of IDs of open findings.
const MOST_FINDINGS: usize = 2_000;
/// Maximum size of a finding that is sent, bytes.
const MAX_FINDING_BYTES: usize = MAX_BUS_MESSAGE / FINDINGS - 64;

/// State of the sender: what the other hubs have received.
pub(super) struct GossipSender {
    live: Arc<Live>,
    findings: Arc<FindingRegistry>,
    said: BTreeMap<SourceId, (IndexEntry, u64)>,
    overviews: [(Overview, OverviewPlace); 2],
    told: u64,
    whole_at: Option<Instant>,
}

impl GossipSender {
    pub fn new(live: Arc<Live>, findings: Arc<FindingRegistry>) -> Self {
        let overviews = [Grain::Sources, Grain::Gpus].map(|grain| (live.own_overview(grain), OverviewPlace::default()));
        GossipSender { live, findings, said: BTreeMap::new(), overviews, told: 0, whole_at: None }
    }

    /// Sends everything again at the next beat.
    pub fn anew(&mut self) {
        self.whole_at = None;
    }

    /// Time until the next beat; it depends on the number of machines.
    pub fn interval(&self) -> Duration {
        self.overviews[0].0.interval().max(Duration::from_secs(1))
    }

    /// The messages of the next beat. Takes milliseconds for a thousand machines.
    pub fn beat(&mut self, anew: bool) -> Vec<Vec<u8>> {
        let whole = anew || self.whole_at.is_none_or(|at| at.elapsed() >= WHOLE_EVERY);
        if whole {
            self.whole_at = Some(Instant::now());
            self.said.clear();
            self.overviews.iter_mut().for_each(|(_, place)| *place = OverviewPlace::default());
        }
        self.overviews.iter().for_each(|(overview, _)| overview.beat(&self.live));
        let mut words = Vec::new();
        self.lines(&mut words);
        for (overview, place) in &mut self.overviews {
            if let Some((messages, frames)) = overview.next(place) {
                words.extend(messages.iter().map(|message| GossipMessage::Overview(encode(message))));
                words.push(GossipMessage::Overview(frames.to_vec()));
            }
        }
        self.found(whole, &mut words);
        let dismissed = self.findings.to_others();
        if !dismissed.is_empty() {
            words.push(GossipMessage::Dismissed(dismissed));
        }
        let interval = self.interval().as_millis() as u64;
        let all = [GossipMessage::Begin { whole, interval }].into_iter().chain(words).chain([GossipMessage::End]);
        all.map(|word| word.bytes()).collect()
    }

    fn lines(&mut self, words: &mut Vec<GossipMessage>) {
        let sources = self.live.store().sources();
        let mut lines = Vec::new();
        let mut left: BTreeSet<SourceId> = self.said.keys().copied().collect();
        for source in sources.iter().filter(|source| self.live.holds(source.id) && self.live.is_shown(source.id)) {
            left.remove(&source.id);
            let state = self.live.source(source.id);
            let (connection_state, since) = state.connection_state();
            let entry = source.entry(connection_state, since, state.labels());
            let record = self.live.store().last_record(source.id);
            let line = (entry, record);
            if self.said.get(&source.id) != Some(&line) {
                lines.push(MachineLine { entry: line.0.clone(), figures: state.figures(), record });
                self.said.insert(source.id, line);
            }
        }
        if !left.is_empty() {
            self.said.retain(|id, _| !left.contains(id));
            words.push(GossipMessage::Left(left.into_iter().collect()));
        }
        words.extend(lines.chunks(LINES).map(|lines| GossipMessage::Lines(lines.to_vec())));
    }

    fn found(&mut self, whole: bool, words: &mut Vec<GossipMessage>) {
        let (changed, newest) = self.findings.changed_since(self.told);
        let begins = std::mem::replace(&mut self.told, newest) == 0;
        let mut changed: Vec<FindingEntry> = changed;
        if whole {
            let open = self.findings.open();
            let ids = open.iter().take(MOST_FINDINGS).map(|entry| entry.finding.id.clone()).collect();
            let known: BTreeSet<String> = changed.iter().map(|entry| entry.finding.id.clone()).collect();
            changed.extend(open.into_iter().filter(|entry| !known.contains(&entry.finding.id)));
            words.push(GossipMessage::Open(ids));
        }
        if begins {
            // Findings that ended long ago come last: nobody waits for them.
            changed.sort_by_key(|entry| std::cmp::Reverse(entry.finding.until.unwrap_or(i64::MAX)));
        }
        let text =
            |entry: &FindingEntry| serde_json::to_string(entry).ok().filter(|text| text.len() <= MAX_FINDING_BYTES);
        let texts: Vec<String> = changed.iter().take(MOST_FINDINGS).filter_map(text).collect();
        words.extend(texts.chunks(FINDINGS).map(|texts| GossipMessage::Findings(texts.to_vec())));
    }
}
