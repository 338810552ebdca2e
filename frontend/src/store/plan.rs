//! Which panels, tiles and sections there are: the layout of the catalogue against the series of a source.

use super::source::Source;
use super::{Store, is_missing};
use shared::catalog::{self, Layout, Tile};
use shared::wire::CheckState;

/// Panels that are open at first, at most.
const OPEN: usize = 24;
/// Panels on top, the wide one included.
const TOP: usize = 7;
/// Tiles.
const TILES: usize = 4;

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

/// A family that is not here, or not wholly, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Id of the section or check.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How it stands.
    pub state: CheckState,
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
    /// Families of the top that are folded into a line, or have trouble.
    pub absent: Vec<Absent>,
    /// The wide chart and six more.
    pub top: Vec<Panel>,
    /// Series of the first chart, where they are too many to be drawn one by one.
    pub many: Option<usize>,
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
    let absent: Vec<Absent> = layout.sections.iter().filter_map(|s| trouble(layout, source, s)).collect();
    let has = |id: &str| source.charts.get(id).is_some_and(|m| !m.lines.is_empty());
    let section_of = |id: &str| layout.charts.iter().find(|c| c.id == id).map(|c| c.section.as_str());
    // Before the first sample what is to be expected stands there empty: what some collector looks for here.
    let sought =
        |s: &catalog::Section| source.checks.is_empty() || source.checks.iter().any(|c| s.checks.contains(&c.id));
    let known = |id: &str| layout.sections.iter().any(|s| s.id == id && sought(s));
    let expected = |id: &str| waiting && section_of(id).is_some_and(|s| known(s) && !absent.iter().any(|a| a.id == s));
    let shown = |id: &str| !hide.iter().any(|h| h == id) && (has(id) || expected(id));
    let wide = layout.wide.iter().find(|id| shown(id));
    // Of more than eight devices a heat map leads, and what it shows in one stands beside it with what explains it.
    let many = |id: &str| source.charts.get(id).is_some_and(|m| m.lines.len() > 8);
    let kin = |id: &&String| section_of(id) == wide.and_then(|w| section_of(w));
    let beside: Vec<&String> = layout.beside.iter().filter(kin).collect();
    let heat = wide.filter(|id| many(id) && !beside.is_empty());
    let beside = beside.into_iter().filter(|id| heat.is_some() && shown(id));
    let lead: Vec<&String> = wide.into_iter().chain(beside).collect();
    let rest = layout.lead.iter().filter(|id| shown(id) && !lead.contains(id));
    let top: Vec<&String> = lead.iter().copied().chain(rest).take(TOP).collect();
    let first = top.first().and_then(|id| source.charts.get(*id)).map(|m| m.lines.len());
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
            let panel = |c: &catalog::Chart| Panel { id: c.id.clone(), title: c.title.clone(), wide: false };
            let panels: Vec<Panel> = ids.filter(|c| has(&c.id) && !hide.contains(&c.id)).map(panel).collect();
            let fits = open + panels.len() <= OPEN;
            open += if fits { panels.len() } else { 0 };
            let (id, title) = (s.id.clone(), s.title.clone());
            (!panels.is_empty()).then_some(Section { id, title, panels, open: fits })
        })
        .collect();
    let leads = |id: &str| layout.lead.iter().take(TOP).any(|c| section_of(c) == Some(id));
    Plan {
        tiles: tiles(layout.tiles.iter().filter(|t| tile_has_data(store, source, t, &expected)).collect()),
        absent: absent.iter().filter(|a| leads(&a.id)).cloned().collect(),
        top: map.into_iter().chain(top.into_iter().map(|id| panel(id))).collect(),
        many: first.filter(|n| charts::Chart::for_series(*n) == charts::Chart::Band),
        sections,
        missing: missing(source),
    }
}

/// Why a family has no chart, or trouble with those that it has.
fn trouble(layout: &Layout, source: &Source, section: &catalog::Section) -> Option<Absent> {
    let mut charts = layout.charts.iter().filter(|c| c.section == section.id);
    let here = charts.any(|c| source.charts.get(&c.id).is_some_and(|m| !m.lines.is_empty()));
    let rank = |state: CheckState| match state {
        CheckState::Hung => 5,
        CheckState::Failed => 4,
        CheckState::Partial => 3,
        CheckState::Denied if !here => 2,
        CheckState::Absent if !here => 1,
        _ => 0,
    };
    let checks = source.checks.iter().filter(|c| section.checks.contains(&c.id) && rank(c.state) > 0);
    // Of equal ones the first: the most common kind.
    let check = checks.reduce(|a, b| if rank(b.state) > rank(a.state) { b } else { a })?;
    let (id, title) = (section.id.clone(), section.title.clone());
    Some(Absent { id, title, state: check.state, reason: check.reason.clone(), remedy: check.remedy.clone() })
}

fn missing(source: &Source) -> Vec<Absent> {
    let gone = source.checks.iter().filter(|c| is_missing(c.state));
    gone.map(|c| Absent {
        id: c.id.clone(),
        title: c.id.clone(),
        state: c.state,
        reason: c.reason.clone(),
        remedy: c.remedy.clone(),
    })
    .collect()
}

/// The first four. One that shows the same as the next sums up what else there is no room for: it stands last or not at
/// all.
fn tiles(all: Vec<&Tile>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for (i, tile) in all.iter().enumerate() {
        let sums_up = all.get(i + 1).is_some_and(|next| next.metrics == tile.metrics);
        if list.len() + 1 == TILES || (!sums_up && list.len() < TILES) {
            list.push(tile.id.clone());
        }
    }
    list
}

fn tile_has_data(store: &Store, source: &Source, tile: &Tile, expected: &dyn Fn(&str) -> bool) -> bool {
    let position = |tag: &String| store.catalog.position(tag);
    let has = |m: u16| source.defs.iter().any(|d| d.metric == m);
    let comes = |m: u16| store.catalog.metrics.get(usize::from(m)).is_some_and(|m| expected(&m.chart));
    tile.metrics.iter().filter_map(position).any(|m| has(m) || comes(m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{Catalog, MetricDef, VOCABULARY, cpu, gpu, ipu, tpu, trainium};
    use shared::series::SeriesDef;
    use shared::wire;

    fn top(devices: u32) -> Vec<(String, bool)> {
        top_of(devices, &[&gpu::UTILISATION, &gpu::POWER_WATTS, &gpu::TEMP, &gpu::MEMORY_ALLOCATED_BYTES])
    }

    fn top_of(devices: u32, rows: &[&MetricDef]) -> Vec<(String, bool)> {
        let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let def = |tag, i: u32| Some(SeriesDef { metric: catalog.position(tag)?, instance: i.to_string() });
        let defs = rows.iter().flat_map(|r| (0..devices).filter_map(|i| def(r.tag, i))).collect();
        let mut source = Source::new(wire::Source { id: 0, name: "here".into(), interval: 1000, facts: Vec::new() });
        source.announce(0, defs, &catalog);
        let store = Store { catalog, ..Store::default() };
        plan(&store, Some(&source), &[]).top.into_iter().map(|p| (p.id, p.wide)).collect()
    }

    #[test]
    fn without_a_gpu_the_cores_lead_as_one_wide_chart_however_many_they_are() {
        let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let metric = catalog.position(cpu::CORE_PERCENT.tag).unwrap();
        let defs = (0..96).map(|i| SeriesDef { metric, instance: i.to_string() }).collect();
        let mut source = Source::new(wire::Source { id: 0, name: "here".into(), interval: 1000, facts: Vec::new() });
        source.announce(0, defs, &catalog);
        let store = Store { catalog, ..Store::default() };
        let plan = plan(&store, Some(&source), &[]);
        assert_eq!(plan.top.iter().map(|p| (p.id.as_str(), p.wide)).collect::<Vec<_>>(), [("cpu.cores", true)]);
        assert_eq!(plan.many, Some(96));
    }

    #[test]
    fn a_tile_that_sums_up_stands_last_or_not_at_all() {
        let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let named = |ids: &[&str]| {
            let all = ids.iter().map(|id| catalog.layout.tiles.iter().find(|t| t.id == *id).unwrap());
            tiles(all.collect())
        };
        assert_eq!(named(&["gpu", "gpu-memory", "gpu-power", "host", "cpu", "memory"])[2..], ["gpu-power", "host"]);
        assert_eq!(named(&["host", "cpu", "memory", "disk", "network"]), ["cpu", "memory", "disk", "network"]);
        assert_eq!(named(&["host", "cpu"]), ["cpu"]);
    }

    #[test]
    fn above_eight_devices_a_heat_map_leads_and_nothing_is_wide() {
        let ids = |list: &[(String, bool)]| list.iter().map(|p| p.0.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&top(9)), ["gpu.heat", "gpu", "gpu.power", "gpu.temp", "gpu.memory"]);
        assert!(top(9).iter().all(|p| !p.1));
        assert_eq!(ids(&top(8)), ["gpu", "gpu.memory", "gpu.power", "gpu.temp"]);
        assert!(top(8)[0].1);
        for (rows, expected) in [
            (&[&tpu::TENSORCORE, &tpu::HBM_USAGE, &cpu::CORE_PERCENT][..], &["tpu.heat", "tpu", "tpu.memory"][..]),
            (&[&ipu::UTILISATION, &ipu::POWER, &cpu::CORE_PERCENT], &["ipu.heat", "ipu", "ipu.power"]),
            (&[&trainium::UTILISATION], &["trn.heat", "trn"]),
        ] {
            let top = top_of(9, rows);
            assert_eq!(ids(&top)[..expected.len()], *expected);
            assert_eq!(ids(&top_of(8, rows))[0], expected[1]);
        }
    }
}
