//! Compares earlier reads of a ledger through a server with later ones.

use crate::ledger::Ledger;
use crate::server::Server;
use std::collections::{BTreeMap, BTreeSet};

/// Samples by time (ms since the epoch) and tag.
type Samples = BTreeMap<(i64, String), f64>;

/// Path at which a server exports its ledger, without the start of the span.
const ALL: &str = "/api/v1/export?format=csv&tag=openmetrics.books.*";

/// The samples that were seen, and the faults that were found.
#[derive(Debug, Default)]
pub struct Audit {
    seen: Samples,
    /// Times of samples that were seen once and were missing later, in ms since the epoch.
    pub lost: BTreeSet<i64>,
    /// Times with two samples of one series, and times of scrapes that are stored at two instants.
    pub doubled: BTreeSet<i64>,
    /// Times with a value that was not served, or that differs from an earlier read.
    pub wrong: BTreeSet<i64>,
    /// Number of stored samples.
    pub stored: usize,
}

impl Audit {
    /// Number of samples that were seen.
    pub fn seen(&self) -> usize {
        self.seen.len()
    }

    /// Time of the newest sample that was seen, ms since the epoch; None before the first.
    pub fn newest(&self) -> Option<i64> {
        self.seen.keys().next_back().map(|(t, _)| *t)
    }

    /// True when nothing was lost, doubled or changed.
    pub fn sound(&self) -> bool {
        self.lost.is_empty() && self.doubled.is_empty() && self.wrong.is_empty()
    }

    /// Reads the last `seconds` seconds from a running server. Samples in this read must also be in later ones.
    pub fn read_last(&mut self, server: &Server, seconds: u64) {
        self.note(&shown(server, &format!("-{seconds}s")));
    }

    /// Records an export in CSV like [`read_last`](Self::read_last).
    pub fn note(&mut self, csv: &str) {
        let now = self.read(csv);
        for (place, value) in now {
            if *self.seen.entry(place.clone()).or_insert(value) != value {
                self.wrong.insert(place.0);
            }
        }
    }

    /// Compares all samples of a server with those that were seen until `until` (ms since the epoch), and with those
    /// that the ledger served. Samples after `until` count from now on only if they are still there.
    pub fn settle(&mut self, server: &Server, ledger: &Ledger, until: i64) {
        self.compare(&shown(server, "0"), ledger, until);
    }

    /// Compares an export in CSV like [`settle`](Self::settle).
    pub fn compare(&mut self, csv: &str, ledger: &Ledger, until: i64) {
        let all = self.read(csv);
        self.stored = all.len();
        self.seen.retain(|place, _| place.0 <= until || all.contains_key(place));
        for (place, value) in &self.seen {
            match all.get(place) {
                None => self.lost.insert(place.0),
                Some(stored) => stored != value && self.wrong.insert(place.0),
            };
        }
        let mut scrapes: BTreeMap<i64, [Option<f64>; 3]> = BTreeMap::new();
        for ((t, tag), value) in &all {
            let at = ["ledger_total", "wave", "noise"].iter().position(|name| tag.contains(name));
            scrapes.entry(*t).or_default()[at.expect("a series of the ledger")] = Some(*value);
        }
        // Each scrape must be there once, at one instant, with the three values that were served.
        let mut last = 0.0;
        for (t, values) in scrapes {
            let n = values[0].unwrap_or(0.0);
            if n <= last {
                self.doubled.insert(t);
            }
            let served = [n, Ledger::wave(n as u64), Ledger::noise(n as u64)];
            if n > ledger.served() as f64 || values != served.map(Some) {
                self.wrong.insert(t);
            }
            last = n;
        }
    }

    fn read(&mut self, csv: &str) -> Samples {
        let mut all = Samples::new();
        for line in csv.lines().skip(1) {
            // A tag with labels is quoted, but none here contains a comma.
            let cells: Vec<&str> = line.split(',').collect();
            let [time, _, tag, value] = cells[..] else { panic!("{line}") };
            let [time, value] = [time, value].map(|text| text.parse::<f64>().unwrap_or_else(|_| panic!("{line}")));
            let t = (time * 1e3).round() as i64;
            if all.insert((t, tag.into()), value).is_some() {
                self.doubled.insert(t);
            }
        }
        all
    }
}

/// The ledger's samples on a server, as CSV; empty before the first.
fn shown(server: &Server, from: &str) -> String {
    let answer = server.get(&format!("{ALL}&from={from}"), &[]);
    // Before the first scrape the tags of the endpoint are unknown.
    assert!(answer.status == 200 || answer.status == 404, "{}", answer.body);
    if answer.status == 404 { String::new() } else { answer.body }
}
