//! The text of the page: one family after the other, in one of the two formats.

use super::SERIES_AT_ONCE;
use super::current::Current;
use crate::export::openmetrics::{Exposed, Families, can_be};
use crate::export::text::number;
use shared::catalog::Catalog;
use shared::catalog::prometheus::Type;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

/// Bytes after which a chunk of the page is sent.
pub(super) const PIECE_BYTES: usize = 256 * 1024;

/// Families of our own that are written already, by the name of their samples, and whether they are counters.
fn blocks(own: &str) -> BTreeMap<String, (String, bool)> {
    let mut blocks = BTreeMap::new();
    for block in own.split_inclusive('\n').collect::<Vec<_>>().chunk_by(|_, next| !next.starts_with("# HELP ")) {
        let word = |line: &str, at: usize| line.split([' ', '{']).nth(at).unwrap_or("").to_string();
        let kind = block.iter().find(|line| line.starts_with("# TYPE ")).map(|line| word(line.trim_end(), 3));
        if let Some(sample) = block.iter().find(|line| !line.starts_with('#')) {
            blocks.insert(word(sample, 0), (block.concat(), kind.as_deref() == Some("counter")));
        }
    }
    blocks
}

/// The family that counts the series that this page cannot express.
pub(super) const UNEXPOSED_FAMILY: &str = "watchglass_self_unexposed_series";
pub(super) const UNEXPOSED_HELP: &str = "Series left out because the format cannot express them: an invalid or duplicate name or \
    label, or, in OpenMetrics, a counter below zero.";

/// The page in progress: family by family, in the order of their names, since a family's samples must stand together.
pub(super) struct Exposition {
    catalog: Arc<Catalog>,
    open: bool,
    current: Vec<Current>,
    /// Number of current values that were exposed or left out.
    pub(super) seen: usize,
    /// Families that are written already, by the name of their samples, and whether they are counters.
    blocks: BTreeMap<String, (String, bool)>,
    families: Families,
    keys: HashSet<String>,
    /// Family, position in `current`, key and value of each exposed sample.
    exposed: VecDeque<(String, usize, String, f64)>,
    /// The family that was written last.
    family: String,
}

impl Exposition {
    /// `own` are families that are written already. Samples of another Watchglass under the same names are written
    /// with them.
    pub(super) fn new(catalog: Arc<Catalog>, current: Vec<Current>, own: &str, open: bool) -> Self {
        let mut blocks = blocks(own);
        blocks.insert(UNEXPOSED_FAMILY.into(), (String::new(), false));
        let mut families = Families::default();
        blocks.iter().for_each(|(name, (_, counts))| families.take(name, *counts));
        let (keys, exposed, family) = (HashSet::new(), VecDeque::new(), String::new());
        Exposition { catalog, open, current, seen: 0, blocks, families, keys, exposed, family }
    }

    /// Selects the series that can be expressed among some more; returns whether there may be more.
    pub(super) fn expose(&mut self) -> bool {
        let part = self.seen..self.current.len().min(self.seen + SERIES_AT_ONCE);
        if part.is_empty() {
            return false;
        }
        self.seen = part.end;
        for at in part {
            let (host, def, v) = &self.current[at];
            let Some(series) = Exposed::from_def(&self.catalog, def) else { continue };
            let block = self.blocks.get(&series.family.name);
            let kind = if block.is_some_and(|(_, counts)| *counts) { Type::Counter } else { series.family.kind };
            let (key, value) = (series.key(host), series.family.value(*v));
            let said = (block.is_some() || self.families.has_room(&series)) && can_be(kind, value, self.open);
            if said && self.keys.insert(key.clone()) {
                self.families.add(&series);
                self.exposed.push_back((series.family.name.clone(), at, key, value));
            }
        }
        if self.seen == self.current.len() {
            self.end_exposing();
        }
        true
    }

    /// All series are checked.
    fn end_exposing(&mut self) {
        self.keys.clear();
        self.exposed.make_contiguous().sort_by(|(a, ..), (b, ..)| a.cmp(b));
    }

    /// The next chunk of the page, once all is exposed, and whether more follow.
    pub(super) fn piece(&mut self) -> (String, bool) {
        let mut text = String::with_capacity(64 * 1024);
        if self.family.is_empty() {
            let left = self.current.len() - self.exposed.len();
            let block = format!(
                "# HELP {UNEXPOSED_FAMILY} {UNEXPOSED_HELP}\n# TYPE {UNEXPOSED_FAMILY} gauge\n{UNEXPOSED_FAMILY} {left}\n"
            );
            self.blocks.insert(UNEXPOSED_FAMILY.into(), (block, false));
        }
        while text.len() < PIECE_BYTES {
            let Some((family, at, key, value)) = self.exposed.pop_front() else {
                self.blocks.values().for_each(|(block, _)| text.push_str(block));
                text.push_str(if self.open { "# EOF\n" } else { "" });
                return (text, false);
            };
            if self.family != family {
                match (self.blocks.remove(&family), Exposed::from_def(&self.catalog, &self.current[at].1)) {
                    (Some((block, _)), _) => text.push_str(&block),
                    (None, Some(series)) => self.families.head(&mut text, &series, self.open),
                    (None, None) => {}
                }
                self.family = family;
            }
            text.push_str(&key);
            text.push(' ');
            number(&mut text, value);
            text.push('\n');
        }
        (text, true)
    }
}
