//! Cards: charts of one's own, with series that a person chose from other charts. A card is part of the address and of
//! a layout, as text: its name and the tags of its series, separated by `~`.
//!
//! A card becomes a chart of the catalog with the id `own.NAME`. Series of a second unit are another chart, which is
//! drawn over the first one.

use crate::store::Store;
use crate::store::source::{Members, Source};
use crate::store::trace::unit;
use shared::catalog::Chart;
use shared::series::SeriesId;
use shared::unit::Unit;

/// Maximum number of series of a card, and of cards.
pub const MAX_SERIES: usize = 8;
const MAX_CARDS: usize = 24;
/// Maximum length of the name of a card, characters.
pub const MAX_NAME_CHARS: usize = 40;
/// Prefix of the id of a card's chart.
const PREFIX: &str = "own.";
/// Suffix of the id of the chart with the series of the second unit.
const OVER_SUFFIX: &str = ".over";

/// A card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// Its name, unique among the cards of a view.
    pub name: String,
    /// Tags of its series, as `gpu.3.temp`.
    pub tags: Vec<String>,
}

impl Card {
    /// Reads the text of a card; None if it has no name or no series.
    pub fn read(text: &str) -> Option<Card> {
        let mut parts = text.split('~').map(unescaped).filter(|part| !part.is_empty());
        let card = Card { name: parts.next()?, tags: parts.take(MAX_SERIES).collect() };
        (!card.tags.is_empty()).then_some(card)
    }

    /// Its text.
    pub fn text(&self) -> String {
        let parts: Vec<String> = std::iter::once(&self.name).chain(&self.tags).map(|part| escaped(part)).collect();
        parts.join("~")
    }

    /// Id of its chart.
    pub fn id(&self) -> String {
        PREFIX.to_string() + &escaped(&self.name)
    }

    /// Id of the chart with its series of the second unit.
    pub fn over(&self) -> String {
        self.id() + OVER_SUFFIX
    }

    /// Adds series. Returns whether the card has two units.
    ///
    /// # Errors
    /// A sentence, when they are too many or of too many units.
    pub fn add(&mut self, store: &Store, source: &Source, series: &[SeriesId]) -> Result<bool, String> {
        let mut more = self.clone();
        for id in series {
            let tag = source.defs.get(*id as usize).map(|def| store.catalog.tag(def)).unwrap_or_default();
            if !tag.is_empty() && !more.tags.contains(&tag) {
                more.tags.push(tag);
            }
        }
        if more.tags.len() > MAX_SERIES {
            return Err(format!("A card has at most {MAX_SERIES} series: hide some of this chart first."));
        }
        let mut units: Vec<Unit> = found(&more, store, source).into_iter().map(|(_, unit)| unit).collect();
        units.sort_by_key(|unit| unit.name());
        units.dedup();
        if units.len() > 2 {
            return Err("A card has at most two units.".into());
        }
        *self = more;
        Ok(units.len() == 2)
    }
}

/// Whether a chart is that of a card.
pub fn is_own(chart: &str) -> bool {
    chart.starts_with(PREFIX)
}

/// The cards of a view, from their texts; later ones with a known name are left out.
pub fn cards(texts: &[String]) -> Vec<Card> {
    let mut all: Vec<Card> = Vec::new();
    for card in texts.iter().filter_map(|text| Card::read(text)).take(MAX_CARDS) {
        if all.iter().all(|known| known.name != card.name) {
            all.push(card);
        }
    }
    all
}

/// The name of a new card.
pub const NEW_NAME: &str = "Card";

/// A name that no card has yet: this one, or this one and a number.
pub fn free_name(cards: &[Card], name: &str) -> String {
    let plain = name.replace(|c: char| c.is_control(), " ");
    let name: String = plain.trim().chars().take(MAX_NAME_CHARS - 3).collect();
    let is_free = |name: &str| cards.iter().all(|card| card.name != name);
    let numbered = (2..).map(|n| format!("{name} {n}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| is_free(name)).unwrap_or(name)
}

/// Makes the charts of these cards, in place of those before.
pub fn put(store: &mut Store, cards: &[Card]) {
    store.catalog.layout.charts.retain(|chart| !is_own(&chart.id));
    for source in store.sources.values_mut() {
        source.charts.retain(|id, _| !is_own(id));
    }
    for card in cards {
        let (id, over) = (card.id(), card.over());
        let mut has_over = false;
        let all: Vec<_> = store.sources.iter().map(|(source, s)| (*source, found(card, store, s))).collect();
        for (source, series) in all {
            let Some((_, first)) = series.first().copied() else { continue };
            let (own, other): (Vec<_>, Vec<_>) = series.into_iter().partition(|(_, unit)| *unit == first);
            let lines = |series: Vec<(SeriesId, Unit)>| series.into_iter().map(|(id, _)| id).collect();
            let Some(source) = store.sources.get_mut(&source) else { continue };
            has_over |= !other.is_empty();
            for (id, series) in [(&id, own), (&over, other)].into_iter().filter(|(_, series)| !series.is_empty()) {
                source.charts.insert(id.clone(), Members { lines: lines(series), limits: Vec::new() });
            }
        }
        let chart = |id: &str, title: String| Chart { id: id.to_string(), title, section: String::new() };
        store.catalog.layout.charts.push(chart(&id, card.name.clone()));
        if has_over {
            store.catalog.layout.charts.push(chart(&over, format!("{}, second unit", card.name)));
        }
    }
}

/// The series of a card on a machine, with their units, in the order of the card.
fn found(card: &Card, store: &Store, source: &Source) -> Vec<(SeriesId, Unit)> {
    let mut all = Vec::new();
    for (id, def) in (0..).zip(&source.defs) {
        let Some(metric) = store.catalog.metric(def) else { continue };
        let tag = store.catalog.tag(def);
        if let Some(at) = card.tags.iter().position(|own| *own == tag) {
            all.push((at, (id, unit(metric))));
        }
    }
    charts::order::sort_by(&mut all, |a, b| a.0.cmp(&b.0));
    all.into_iter().map(|(_, series)| series).collect()
}

/// Characters that separate something in an address or in a layout.
const SEPARATORS: [(char, &str); 4] = [('%', "%25"), ('~', "%7E"), (',', "%2C"), (';', "%3B")];

fn escaped(text: &str) -> String {
    SEPARATORS.iter().fold(text.to_string(), |text, (letter, code)| text.replace(*letter, code))
}

fn unescaped(text: &str) -> String {
    SEPARATORS.iter().rev().fold(text.to_string(), |text, (letter, code)| text.replace(code, &letter.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::plan;
    use shared::catalog::{Catalog, cpu, gpu};
    use shared::series::SeriesDef;
    use shared::wire::{self, ServerMessage};

    /// A machine with two GPUs and its CPU.
    fn store() -> Store {
        let mut store = Store::default();
        let catalog = Catalog::new(gpu::ROWS.iter().chain(cpu::ROWS).copied());
        let def = |tag: &str, instance: &str| SeriesDef {
            metric: catalog.position(tag).expect("a row"),
            instance: instance.into(),
        };
        let defs = vec![
            def("gpu.{i}.temp", "0"),
            def("gpu.{i}.temp", "1"),
            def("gpu.{i}.powerWatts", "1"),
            def("system.cpu_percent", ""),
        ];
        store.take(ServerMessage::Catalog(catalog));
        let mut source = Source::new(wire::Source::new(0, "a".into(), 1_000, Vec::new()));
        source.announce(0, defs, &store.catalog);
        store.sources.insert(0, source);
        store
    }

    #[test]
    fn a_card_is_text_that_reads_as_the_same_card() {
        let card =
            Card { name: "50 % ~ a, b; c".into(), tags: vec!["disk./mnt/a,b.usagePercent".into(), "cpu".into()] };
        assert_eq!(Card::read(&card.text()), Some(card.clone()));
        assert!(!card.text().contains([',', ';']) && !card.id().contains([',', ';', '~']), "lists keep it whole");
        for wrong in ["", "~", "name", "name~", "~~cpu"] {
            assert_eq!(Card::read(wrong), None, "{wrong}");
        }
        let twice = [card.text(), card.text(), "other~cpu".to_string()];
        assert_eq!(cards(&twice).len(), 2);
        assert_eq!(free_name(&cards(&twice), "other"), "other 2");
    }

    #[test]
    fn series_of_several_charts_are_one_chart_and_those_of_a_second_unit_are_drawn_over_it() {
        let mut store = store();
        let mut card = Card { name: "GPU 1".into(), tags: Vec::new() };
        let source = &store.sources[&0];
        assert_eq!(card.add(&store, source, &[1, 0]), Ok(false));
        assert_eq!(card.add(&store, source, &[2, 1]), Ok(true), "it has a second unit");
        assert_eq!(card.tags, ["gpu.1.temp", "gpu.0.temp", "gpu.1.powerWatts"]);
        let same = card.clone();
        assert_eq!(card.add(&store, source, &[3]), Err("A card has at most two units.".into()));
        assert_eq!(card, same, "it is as it was");
        put(&mut store, std::slice::from_ref(&card));
        let lines = |store: &Store, id: &str| store.sources[&0].charts.get(id).map(|m| m.lines.clone());
        assert_eq!(lines(&store, "own.GPU 1"), Some(vec![1, 0]), "in the order in which they were chosen");
        assert_eq!(lines(&store, "own.GPU 1.over"), Some(vec![2]));
        let front = [card.id()];
        let choice = plan::Choice { front: &front, ..plan::Choice::default() };
        let plan = plan::plan(&store, store.source(None), choice);
        assert_eq!((plan.top[0].id.as_str(), plan.top[0].title.as_str()), ("own.GPU 1", "GPU 1"));
        put(&mut store, &[]);
        assert_eq!(lines(&store, "own.GPU 1"), None);
        assert!(store.catalog.layout.charts.iter().all(|chart| !is_own(&chart.id)));
    }

    #[test]
    fn a_machine_without_these_series_has_no_such_chart() {
        let mut store = store();
        put(&mut store, &[Card { name: "other".into(), tags: vec!["gpu.7.temp".into()] }]);
        assert!(store.sources[&0].charts.keys().all(|id| !is_own(id)));
        let source = &store.sources[&0];
        let mut card = Card::default();
        assert!(card.add(&store, source, &[0, 1, 2, 0, 1]).is_ok(), "one series counts once");
    }
}
