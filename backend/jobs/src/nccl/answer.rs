//! Reads answers of NCCL: the text of 2.24 and later, and the JSON of 2.28.7 and later.

use serde::Deserialize;
use shared::nccl::{MAX_RANKS, NcclLack, NcclRank, NcclReport};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Ranks of a communicator that lack the same.
struct Lacking {
    communicator: u64,
    lack: NcclLack,
    ranks: Vec<NcclRank>,
    /// Number of these ranks, of which not all may be listed.
    count: usize,
}

impl Lacking {
    fn report(mut self) -> NcclReport {
        self.ranks.sort();
        self.ranks.dedup_by_key(|one| one.rank);
        let further = self.count.max(self.ranks.len()).saturating_sub(self.ranks.len().min(MAX_RANKS));
        self.ranks.truncate(MAX_RANKS);
        let further = u32::try_from(further).unwrap_or(u32::MAX);
        NcclReport { communicator: self.communicator, lack: self.lack, ranks: self.ranks, further }
    }
}

/// The report of an answer: ranks that do not answer, else those that are behind. The fewest ranks count, because all
/// others wait for them.
pub(super) fn read(answer: &[u8]) -> Option<NcclReport> {
    let text = String::from_utf8_lossy(answer);
    let all = if text.trim_start().starts_with('{') { of_json(&text)? } else { of_text(&text) };
    let named = all.into_iter().filter(|one| !one.ranks.is_empty());
    named.min_by_key(|one| (one.lack != NcclLack::Silent, one.count.max(one.ranks.len()))).map(Lacking::report)
}

/// State of the listed ranks in a part of the text.
#[derive(Clone, Copy)]
enum Listed {
    Silent,
    /// They have issued so many operations.
    Issued(u64),
    Other,
}

fn of_text(text: &str) -> Vec<Lacking> {
    let mut all: Vec<Lacking> = Vec::new();
    // The present list of counts: number of ranks and ranks, by operations.
    let mut counts: BTreeMap<u64, (usize, Vec<NcclRank>)> = BTreeMap::new();
    let (mut communicator, mut listed) = (0, Listed::Other);
    for line in text.lines() {
        let words = line.trim();
        if line.starts_with('#') {
            all.extend(behind(communicator, std::mem::take(&mut counts)));
            communicator = hash(words.split(['(', ')']).nth(1).unwrap_or_default()).unwrap_or_default();
            listed = if words.ends_with("INCOMPLETE") { Listed::Silent } else { Listed::Other };
        } else if words.starts_with("Communicator ranks have different") {
            all.extend(behind(communicator, std::mem::take(&mut counts)));
            listed = Listed::Other;
        } else if let Some((count, of)) = launched(words) {
            listed = Listed::Issued(of);
            counts.entry(of).or_default().0 += count;
        } else if words.ends_with("have status") || words.contains(" reported ") || words.contains("has status") {
            listed = Listed::Other;
        }
        match (listed, rank(words)) {
            (Listed::Silent, Some(rank)) => add_silent(&mut all, communicator, [rank]),
            (Listed::Silent, None) => add_silent(&mut all, communicator, missing_ranks(words)),
            (Listed::Issued(of), Some(rank)) => counts.entry(of).or_default().1.push(rank),
            _ => {}
        }
    }
    all.extend(behind(communicator, counts));
    all
}

/// Adds ranks of a communicator that do not answer.
fn add_silent(all: &mut Vec<Lacking>, communicator: u64, ranks: impl IntoIterator<Item = NcclRank>) {
    let silent = |one: &&mut Lacking| one.communicator == communicator && one.lack == NcclLack::Silent;
    match all.iter_mut().find(silent) {
        Some(known) => known.ranks.extend(ranks),
        None => {
            let ranks: Vec<NcclRank> = ranks.into_iter().collect();
            all.push(Lacking { communicator, lack: NcclLack::Silent, count: ranks.len(), ranks });
        }
    }
}

/// The ranks that are behind the most advanced ones, furthest first.
fn behind(communicator: u64, counts: BTreeMap<u64, (usize, Vec<NcclRank>)>) -> Option<Lacking> {
    let of = *counts.keys().next_back()?;
    let (issued, (count, ranks)) = counts.into_iter().next().filter(|(issued, _)| *issued < of)?;
    Some(Lacking { communicator, lack: NcclLack::Behind { issued, of }, count: count.max(ranks.len()), ranks })
}

/// Ranks and operations of `6 ranks have launched up to operation 6649`, `Rank 7 has launched up to operation 60 -- ...`
/// and `... not launched any operations`.
fn launched(words: &str) -> Option<(usize, u64)> {
    let (who, what) = words.split_once(" launched ").or_else(|| words.split_once(" not launched "))?;
    let of = match what.strip_prefix("up to operation ") {
        Some(rest) => rest.split(' ').next()?.parse().ok()?,
        None => what.starts_with("any operations").then_some(0)?,
    };
    let first = who.split(' ').next()?;
    let count = if first == "Rank" { 1 } else { first.parse().ok()? };
    Some((count, of))
}

/// The rank of `Rank 5 -- GPU 5 managed by process 483077 on node 172.16.64.210`.
fn rank(words: &str) -> Option<NcclRank> {
    let rest = words.strip_prefix("Rank ")?;
    let rank = rest.split(' ').next()?.parse().ok()?;
    let process = rest.split_once(" managed by process ").and_then(|(_, of)| {
        let (pid, node) = of.split_once(" on node ")?;
        Some((pid.parse().ok()?, node.trim().parse().ok()?))
    });
    Some(NcclRank { rank, process })
}

/// The ranks of `The missing ranks: 21,22`: NCCL 2.24 lists them without their processes.
fn missing_ranks(words: &str) -> Vec<NcclRank> {
    let list = words.strip_prefix("The missing rank").and_then(|rest| rest.trim_start_matches('s').strip_prefix(": "));
    let number = |rank: &str| Some(NcclRank { rank: rank.trim().parse().ok()?, process: None });
    list.map(|list| list.split(',').filter_map(number).collect()).unwrap_or_default()
}

fn hash(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

#[derive(Deserialize)]
struct Document {
    communicators: Vec<Communicator>,
}

#[derive(Deserialize)]
struct Communicator {
    hash: String,
    #[serde(default)]
    ranks: Vec<Rank>,
    #[serde(default)]
    missing_ranks: Vec<Rank>,
}

/// A rank that answered, or one that is missing: their statuses differ.
#[derive(Deserialize)]
struct Rank {
    rank: u32,
    #[serde(default)]
    host: String,
    #[serde(default)]
    pid: i64,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    collective_counts: BTreeMap<String, u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    unresponsive: bool,
    considered_dead: bool,
}

impl Rank {
    fn named(&self) -> NcclRank {
        let process = u32::try_from(self.pid).ok().zip(self.host.parse::<IpAddr>().ok());
        NcclRank { rank: self.rank, process }
    }
}

fn of_json(text: &str) -> Option<Vec<Lacking>> {
    let document: Document = serde_json::from_str(text).ok()?;
    let mut all = Vec::new();
    for Communicator { hash: of, ranks, missing_ranks } in document.communicators {
        let communicator = hash(&of).unwrap_or_default();
        let silent = missing_ranks.iter().filter(|one| one.status.unresponsive || one.status.considered_dead);
        let silent: Vec<NcclRank> = silent.map(Rank::named).collect();
        all.push(Lacking { communicator, lack: NcclLack::Silent, count: silent.len(), ranks: silent });
        let mut operations: BTreeMap<&str, BTreeMap<u64, (usize, Vec<NcclRank>)>> = BTreeMap::new();
        for (one, (operation, issued)) in
            ranks.iter().flat_map(|one| one.collective_counts.iter().map(move |count| (one, count)))
        {
            let at = operations.entry(operation).or_default().entry(*issued).or_default();
            at.0 += 1;
            at.1.push(one.named());
        }
        all.extend(operations.into_values().filter_map(|counts| behind(communicator, counts)));
    }
    Some(all)
}
