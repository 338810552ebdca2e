//! Decides which panels, tiles and sections there are, from the catalog's layout and the series of a source.

use super::source::Source;
use super::{Store, is_missing};
use shared::catalog::{self, Layout, Tile};
use shared::wire::{Check, CheckState};

/// Largest number of panels that are open at first.
const MAX_OPEN_PANELS: usize = 24;
/// Largest number of panels on top, the wide one included.
const MAX_TOP_PANELS: usize = 7;
/// Maximum number of charts that a person moves to the front.
const MAX_FRONT_PANELS: usize = 24;
/// Largest number of tiles.
const MAX_TILES: usize = 4;

/// Id of the section with the process table, which has no charts.
pub const PROCESSES: &str = "processes";

/// The id of a heat map is the id of its chart and this suffix.
pub const HEAT_SUFFIX: &str = ".heat";

/// A chart on the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Id of the chart.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// True for the first chart when it takes the whole width.
    pub wide: bool,
}

/// A family or a check that is not available, or not completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Id of the section or check.
    pub id: String,
    /// Title of the section or check.
    pub title: String,
    /// The collector's name, by which the book has a section; empty for checks that are no collector's.
    pub collector: String,
    /// State of the check.
    pub state: CheckState,
    /// Reason for the state, in words.
    pub reason: String,
    /// Remedy, as a text for a person.
    pub remedy: String,
}

impl Absent {
    /// The reason and the remedy as one line of text.
    pub fn why(&self) -> String {
        let (reason, remedy) = (self.reason.trim_end(), self.remedy.trim());
        let remedy = if remedy.is_empty() { "run watchglass doctor for details" } else { remedy };
        match reason {
            "" => remedy.to_string(),
            _ if reason.ends_with('.') => format!("{reason} {remedy}"),
            _ => format!("{reason}; {remedy}"),
        }
    }

    /// Identifies the line when a person dismisses it.
    pub fn dismissal_key(&self) -> String {
        format!("{} {}", self.id, self.why())
    }

    /// Whether the family exists and has a problem, and is not just absent.
    pub fn is_trouble(&self) -> bool {
        matches!(self.state, CheckState::Hung | CheckState::Failed | CheckState::Partial)
    }
}

/// A family of charts below the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Id of the section.
    pub id: String,
    /// Title of the section.
    pub title: String,
    /// Charts of the family that are not on top.
    pub panels: Vec<Panel>,
    /// True when the section is open at first.
    pub open: bool,
}

/// All parts of the page, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Ids of the tiles.
    pub tiles: Vec<String>,
    /// Families of the top that have no chart, or that have a problem.
    pub absent: Vec<Absent>,
    /// Charts on top: the wide one and up to six more.
    pub top: Vec<Panel>,
    /// Number of series in the first chart when they are drawn as a band, else None.
    pub many: Option<usize>,
    /// Number of charts with data that a person hid.
    pub hidden: usize,
    /// The other charts by family, and the process table. The table is first if there are devices beside the host, else
    /// last.
    pub sections: Vec<Section>,
    /// All checks that give no values on this machine.
    pub missing: Vec<Absent>,
}

impl Plan {
    /// These charts and nothing else: there is no room for more.
    pub fn alone(self, charts: &[String]) -> Plan {
        let top = self.top.into_iter().filter(|panel| charts.contains(&panel.id)).collect();
        Plan { top, ..Plan::default() }
    }
}

/// Charts that are not in their usual place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// Those that are left out.
    pub hide: &'a [String],
    /// Those that a person, or the page's notebook, put before all others.
    pub front: &'a [String],
    /// Those that prove the finding on the page, the strongest first: they follow, and the first chart of all is wide
    /// then.
    pub proof: &'a [String],
}

/// Makes the plan for a source; empty while there is no source.
pub fn plan(store: &Store, source: Option<&Source>, choice: Choice) -> Plan {
    let Choice { hide, front, proof } = choice;
    let layout = &store.catalog.layout;
    let Some(source) = source else { return Plan::default() };
    let waiting = source.charts.is_empty();
    let absent: Vec<Absent> = layout.sections.iter().filter_map(|s| trouble(layout, source, s)).collect();
    let has = |id: &str| source.charts.get(id).is_some_and(|m| !m.lines.is_empty());
    let section_of = |id: &str| layout.charts.iter().find(|c| c.id == id).map(|c| c.section.as_str());
    // Before the first sample, empty charts represent the families that a collector provides.
    let sought =
        |s: &catalog::Section| source.checks.is_empty() || source.checks.iter().any(|c| s.checks.contains(&c.id));
    let known = |id: &str| layout.sections.iter().any(|s| s.id == id && sought(s));
    let expected = |id: &str| waiting && section_of(id).is_some_and(|s| known(s) && !absent.iter().any(|a| a.id == s));
    let hides = |id: &str| hide.iter().any(|h| h == id);
    let shown = |id: &str| has(id) || expected(id);
    // The wide chart does not depend on hidden ones.
    let wide = layout.wide.iter().find(|id| shown(id));
    // For more than eight devices a heat map is first, followed by the same chart as a band and the charts that explain
    // it.
    let many = |id: &str| source.charts.get(id).is_some_and(|m| m.lines.len() > 8);
    let kin = |id: &&String| section_of(id) == wide.and_then(|w| section_of(w));
    let beside: Vec<&String> = layout.beside.iter().filter(kin).collect();
    let (devices, heat_of) = (!beside.is_empty(), |id: &str| id.to_string() + HEAT_SUFFIX);
    let heat = wide.filter(|id| many(id) && devices);
    let beside = beside.into_iter().filter(|id| heat.is_some() && shown(id));
    let lead: Vec<&String> = wide.into_iter().chain(beside).collect();
    let rest = layout.lead.iter().filter(|id| shown(id) && !lead.contains(id));
    let top = lead.iter().copied().chain(rest).filter(|id| !hides(id));
    let top: Vec<&String> = top.take(MAX_TOP_PANELS).collect();
    // The wide chart does not depend on charts in front of it either.
    let chosen = first_ones(choice, |id| has(id) && !hides(id));
    let behind = top.iter().copied().filter(|id| !chosen.contains(id));
    let top: Vec<&String> = chosen.iter().copied().chain(behind).collect();
    let first = wide.filter(|id| top.contains(id)).and_then(|id| source.charts.get(id)).map(|m| m.lines.len());
    let proves = proof.iter().any(|id| chosen.contains(&id));
    let panel = |id: &str| Panel {
        id: id.to_string(),
        title: layout.charts.iter().find(|c| c.id == id).map_or_else(String::new, |c| c.title.clone()),
        wide: Some(id)
            == if proves { chosen.first().copied() } else { wide.filter(|_| heat.is_none()) }.map(String::as_str),
    };
    let map =
        heat.map(|id| panel(id)).map(|p| Panel { id: heat_of(&p.id), title: p.title + " by device", wide: false });
    let map = map.filter(|p| !hides(&p.id));
    let mut open = top.len();
    let charts = layout
        .sections
        .iter()
        .filter_map(|s| {
            let ids = layout.charts.iter().filter(|c| c.section == s.id && !top.contains(&&c.id));
            // A scraped endpoint may bring a thousand charts, so nothing is searched by id here.
            let panel = |c: &catalog::Chart| Panel { id: c.id.clone(), title: c.title.clone(), wide: false };
            let panels: Vec<Panel> = ids.filter(|c| has(&c.id) && !hides(&c.id)).map(panel).collect();
            let fits = !s.checks.is_empty() && open + panels.len() <= MAX_OPEN_PANELS;
            open += if fits { panels.len() } else { 0 };
            let (id, title) = (s.id.clone(), s.title.clone());
            (!panels.is_empty()).then_some(Section { id, title, panels, open: fits })
        })
        .collect::<Vec<_>>();
    let table = Section { id: PROCESSES.into(), title: "Processes".into(), panels: Vec::new(), open: false };
    let (first_of_all, last_of_all) = if devices { (Some(table), None) } else { (None, Some(table)) };
    let hidden = hide.iter().filter(|id| has(id.strip_suffix(HEAT_SUFFIX).unwrap_or(id))).count();
    let leads = |id: &str| layout.lead.iter().take(MAX_TOP_PANELS).any(|c| section_of(c) == Some(id));
    Plan {
        tiles: tiles(layout.tiles.iter().filter(|t| tile_has_data(store, source, t, &expected)).collect()),
        absent: absent.iter().filter(|a| leads(&a.id)).cloned().collect(),
        top: {
            let mut all: Vec<Panel> = top.into_iter().map(|id| panel(id)).collect();
            let at = front.iter().position(|id| map.as_ref().is_some_and(|map| map.id == *id));
            let before = |at: usize| front[..at].iter().filter(|id| chosen.contains(id)).count();
            map.into_iter().for_each(|map| all.insert(at.map_or(chosen.len(), before), map));
            all
        },
        many: first.filter(|n| charts::Chart::for_series(*n).traits().shows == charts::Shows::Outliers),
        hidden,
        sections: first_of_all.into_iter().chain(charts).chain(last_of_all).collect(),
        missing: missing(layout, source),
    }
}

/// The charts before all others, each once: those that the user put there, then those that prove the finding.
fn first_ones<'a>(choice: Choice<'a>, fits: impl Fn(&str) -> bool) -> Vec<&'a String> {
    let mut chosen: Vec<&String> = Vec::new();
    for id in choice.front.iter().chain(choice.proof).filter(|id| fits(id)) {
        if chosen.len() < MAX_FRONT_PANELS && !chosen.contains(&id) {
            chosen.push(id);
        }
    }
    chosen
}

/// Reason why a family has no chart, or its problem; None if there is none.
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
    // Among equally bad checks the first one is used, which is that of the most common hardware.
    let check = checks.reduce(|a, b| if rank(b.state) > rank(a.state) { b } else { a })?;
    let (id, title) = (section.id.clone(), section.title.clone());
    Some(absent(check, id, title, check.id.clone()))
}

fn missing(layout: &Layout, source: &Source) -> Vec<Absent> {
    // Checks without a family, such as the database of a hub, are listed even if they work in part. They are shown
    // nowhere else.
    let family = |c: &Check| layout.sections.iter().any(|s| s.checks.contains(&c.id));
    let gone = source.checks.iter().filter(|c| is_missing(c.state) || (c.state == CheckState::Partial && !family(c)));
    gone.map(|c| absent(c, c.id.clone(), c.id.clone(), if family(c) { c.id.clone() } else { String::new() })).collect()
}

fn absent(check: &Check, id: String, title: String, collector: String) -> Absent {
    let (reason, remedy) = (check.reason.clone(), check.remedy.clone());
    Absent { id, title, collector, state: check.state, reason, remedy }
}

/// The first four tiles. A tile with the same metrics as the next one sums up others: it takes the last place or none.
fn tiles(all: Vec<&Tile>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for (i, tile) in all.iter().enumerate() {
        let sums_up = all.get(i + 1).is_some_and(|next| next.metrics == tile.metrics);
        if list.len() + 1 == MAX_TILES || (!sums_up && list.len() < MAX_TILES) {
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
        top_of(devices, &[&gpu::UTILIZATION, &gpu::POWER_WATTS, &gpu::TEMP, &gpu::MEMORY_ALLOCATED_BYTES])
    }

    fn top_of(devices: u32, rows: &[&MetricDef]) -> Vec<(String, bool)> {
        let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let def = |tag, i: u32| Some(SeriesDef { metric: catalog.position(tag)?, instance: i.to_string() });
        let defs = rows.iter().flat_map(|r| (0..devices).filter_map(|i| def(r.tag, i))).collect();
        let mut source = Source::new(wire::Source::new(0, "here".into(), 1000, Vec::new()));
        source.announce(0, defs, &catalog);
        let store = Store { catalog, ..Store::default() };
        plan(&store, Some(&source), Choice::default()).top.into_iter().map(|p| (p.id, p.wide)).collect()
    }

    #[test]
    fn what_is_no_familys_is_told_in_part_too() {
        let mut source = Source::new(wire::Source::new(0, "here".into(), 1000, Vec::new()));
        let check = |id: &str, state| Check {
            id: id.into(),
            state,
            tried: Vec::new(),
            found: String::new(),
            reason: "why".into(),
            remedy: String::new(),
        };
        source.checks = vec![
            check("cpu", CheckState::Partial),
            check("memory", CheckState::Failed),
            check("cluster", CheckState::Partial),
            check("remote_write", CheckState::Ok),
        ];
        let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let store = Store { catalog, ..Store::default() };
        let missing = plan(&store, Some(&source), Choice::default()).missing;
        assert_eq!(missing.iter().map(|absent| absent.id.as_str()).collect::<Vec<_>>(), ["memory", "cluster"]);
    }

    #[test]
    fn without_a_gpu_the_cores_lead_as_one_wide_chart_however_many_they_are() {
        let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let metric = catalog.position(cpu::CORE_PERCENT.tag).unwrap();
        let defs = (0..96).map(|i| SeriesDef { metric, instance: i.to_string() }).collect();
        let mut source = Source::new(wire::Source::new(0, "here".into(), 1000, Vec::new()));
        source.announce(0, defs, &catalog);
        let store = Store { catalog, ..Store::default() };
        let plan = plan(&store, Some(&source), Choice::default());
        assert_eq!(plan.top.iter().map(|p| (p.id.as_str(), p.wide)).collect::<Vec<_>>(), [("cpu.cores", true)]);
        assert_eq!(plan.many, Some(96));
    }

    #[test]
    fn what_a_person_puts_first_stands_first_in_its_order() {
        let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
        let mut source = Source::new(wire::Source::new(0, "here".into(), 1000, Vec::new()));
        let def = |tag| SeriesDef { metric: catalog.position(tag).unwrap(), instance: String::new() };
        let tags = ["system.cpu_percent", "memory.used", "disk.in", "network.recv", "swap.used"];
        source.announce(0, tags.map(def).to_vec(), &catalog);
        let store = Store { catalog, ..Store::default() };
        let list = |ids: &[&str]| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>();
        let top = |hide: &[&str], front: &[&str], proof: &[&str]| {
            let (hide, front, proof) = (&list(hide)[..], &list(front)[..], &list(proof)[..]);
            plan(&store, Some(&source), Choice { hide, front, proof }).top
        };
        let ids = |hide: &[&str], front: &[&str]| -> Vec<String> {
            top(hide, front, &[]).into_iter().map(|p| p.id).collect()
        };
        assert_eq!(ids(&[], &[]), ["cpu", "memory", "disk", "network"]);
        assert_eq!(ids(&[], &["network", "swap", "network", "gone"]), ["network", "swap", "cpu", "memory", "disk"]);
        assert_eq!(ids(&["network"], &["network", "memory"]), ["memory", "cpu", "disk"]);
        let wide = |front: &[&str], proof: &[&str]| {
            top(&[], front, proof).into_iter().map(|p| p.id + if p.wide { ", wide" } else { "" }).collect::<Vec<_>>()
        };
        assert_eq!(wide(&[], &["swap", "disk", "gone"]), ["swap, wide", "disk", "cpu", "memory", "network"]);
        assert_eq!(wide(&["disk"], &["swap", "disk"]), ["disk, wide", "swap", "cpu", "memory", "network"]);
        assert_eq!(wide(&[], &["gone"]), wide(&[], &[]), "what is not measured here leads nothing");
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
            (&[&ipu::UTILIZATION, &ipu::POWER, &cpu::CORE_PERCENT], &["ipu.heat", "ipu", "ipu.power"]),
            (&[&trainium::UTILIZATION], &["trn.heat", "trn"]),
        ] {
            let top = top_of(9, rows);
            assert_eq!(ids(&top)[..expected.len()], *expected);
            assert_eq!(ids(&top_of(8, rows))[0], expected[1]);
        }
    }
}
