//! Which panels, tiles and sections there are: the layout of the catalogue against the series of a source.

use super::source::Source;
use super::{Store, is_missing};
use shared::catalog::{Layout, Tile};
use shared::wire::Check;

/// Panels that are open at first, at most.
const OPEN: usize = 24;
/// Panels on top, the wide one included.
const TOP: usize = 7;

/// What the id of a chart's heat map has behind the chart's own.
pub const HEAT: &str = ".heat";

/// A chart on the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Id of the chart.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The first: it takes the whole width.
    pub wide: bool,
}

/// A family that is not here, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Id of the section or check.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Why.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

/// A family below the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its charts that are not on top.
    pub panels: Vec<Panel>,
    /// Whether it is open at first.
    pub open: bool,
}

/// What stands on the page, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Ids of the tiles.
    pub tiles: Vec<String>,
    /// Families of the top that are folded into a line.
    pub absent: Vec<Absent>,
    /// The wide chart and six more.
    pub top: Vec<Panel>,
    /// The rest by family.
    pub sections: Vec<Section>,
    /// Everything that is not available here.
    pub missing: Vec<Absent>,
}

/// The plan for a source; empty until the layout is known. Charts in `hide` are left out.
pub fn plan(store: &Store, source: Option<&Source>, hide: &[String]) -> Plan {
    let layout = &store.catalog.layout;
    let Some(source) = source else { return Plan::default() };
    let waiting = source.charts.is_empty();
    let absent: Vec<Absent> = layout.sections.iter().filter_map(|s| absent(layout, source, s)).collect();
    let has = |id: &str| source.charts.get(id).is_some_and(|m| !m.lines.is_empty());
    let section_of = |id: &str| layout.charts.iter().find(|c| c.id == id).map(|c| c.section.as_str());
    // Before the first sample the charts that are to be expected stand there empty.
    let shown = |id: &str| {
        !hide.iter().any(|h| h == id)
            && (has(id) || (waiting && section_of(id).is_some_and(|s| !absent.iter().any(|a| a.id == s))))
    };
    let wide = layout.wide.iter().find(|id| shown(id));
    // Of more than eight a heat map leads, and what it shows in one stands beside it with what explains it.
    let many = |id: &str| source.charts.get(id).is_some_and(|m| m.lines.len() > 8);
    let heat = wide.filter(|id| many(id));
    let beside = layout.beside.iter().filter(|id| heat.is_some() && shown(id));
    let lead: Vec<&String> = wide.into_iter().chain(beside).collect();
    let rest = layout.lead.iter().filter(|id| shown(id) && !lead.contains(id));
    let top: Vec<&String> = lead.iter().copied().chain(rest).take(TOP).collect();
    let panel = |id: &str| Panel {
        id: id.to_string(),
        title: layout.charts.iter().find(|c| c.id == id).map_or_else(String::new, |c| c.title.clone()),
        wide: heat.is_none() && Some(id) == wide.map(String::as_str),
    };
    let map = heat.map(|id| panel(id)).map(|p| Panel { id: p.id + HEAT, title: p.title + " by device", wide: false });
    let mut open = top.len();
    let sections = layout
        .sections
        .iter()
        .filter_map(|s| {
            let ids = layout.charts.iter().filter(|c| c.section == s.id && !top.contains(&&c.id));
            // A scraped endpoint may bring a thousand charts: nothing is looked up by id here.
            let panel = |c: &shared::catalog::Chart| Panel { id: c.id.clone(), title: c.title.clone(), wide: false };
            let panels: Vec<Panel> = ids.filter(|c| has(&c.id) && !hide.contains(&c.id)).map(panel).collect();
            let fits = open + panels.len() <= OPEN;
            open += if fits { panels.len() } else { 0 };
            let (id, title) = (s.id.clone(), s.title.clone());
            (!panels.is_empty()).then_some(Section { id, title, panels, open: fits })
        })
        .collect();
    let leads = |id: &str| layout.lead.iter().take(TOP).any(|c| section_of(c) == Some(id));
    Plan {
        tiles: layout.tiles.iter().filter(|t| tile_has_data(store, source, t)).take(4).map(|t| t.id.clone()).collect(),
        absent: absent.iter().filter(|a| leads(&a.id)).cloned().collect(),
        top: map.into_iter().chain(top.into_iter().map(|id| panel(id))).collect(),
        sections,
        missing: missing(source),
    }
}

fn absent(layout: &Layout, source: &Source, section: &shared::catalog::Section) -> Option<Absent> {
    let mut charts = layout.charts.iter().filter(|c| c.section == section.id);
    if charts.any(|c| source.charts.get(&c.id).is_some_and(|m| !m.lines.is_empty())) {
        return None;
    }
    let checks: Vec<&Check> = source.checks.iter().filter(|c| section.checks.contains(&c.id)).collect();
    let check = checks.iter().find(|c| is_missing(c.state))?;
    Some(Absent {
        id: section.id.clone(),
        title: section.title.clone(),
        reason: check.reason.clone(),
        remedy: check.remedy.clone(),
    })
}

fn missing(source: &Source) -> Vec<Absent> {
    let gone = source.checks.iter().filter(|c| is_missing(c.state));
    gone.map(|c| Absent { id: c.id.clone(), title: c.id.clone(), reason: c.reason.clone(), remedy: c.remedy.clone() })
        .collect()
}

fn tile_has_data(store: &Store, source: &Source, tile: &Tile) -> bool {
    let waiting = source.charts.is_empty();
    let has = |tag: &String| {
        let metric = store.catalog.position(tag);
        metric.is_some_and(|m| source.defs.iter().any(|d| d.metric == m))
    };
    !waiting && tile.metrics.iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{Catalog, VOCABULARY, gpu};
    use shared::series::SeriesDef;
    use shared::wire;

    fn top(gpus: u32) -> Vec<(String, bool)> {
        let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let rows = [&gpu::UTILISATION, &gpu::POWER_WATTS, &gpu::TEMP, &gpu::MEMORY_ALLOCATED_BYTES];
        let def = |tag, i: u32| Some(SeriesDef { metric: catalog.position(tag)?, instance: i.to_string() });
        let defs = rows.iter().flat_map(|r| (0..gpus).filter_map(|i| def(r.tag, i))).collect();
        let mut source = Source::new(wire::Source { id: 0, name: "here".into(), interval: 1000, facts: Vec::new() });
        source.announce(0, defs, &catalog);
        let store = Store { catalog, ..Store::default() };
        plan(&store, Some(&source), &[]).top.into_iter().map(|p| (p.id, p.wide)).collect()
    }

    #[test]
    fn above_eight_devices_a_heat_map_leads_and_nothing_is_wide() {
        let ids = |list: &[(String, bool)]| list.iter().map(|p| p.0.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&top(9)), ["gpu.heat", "gpu", "gpu.power", "gpu.temp", "gpu.memory"]);
        assert!(top(9).iter().all(|p| !p.1));
        assert_eq!(ids(&top(8)), ["gpu", "gpu.memory", "gpu.power", "gpu.temp"]);
        assert!(top(8)[0].1);
    }
}
