//! Dashboards for Grafana, made of the catalog: a machine, all machines, and the training jobs. They read what
//! Prometheus scrapes from `/metrics`.

use serde_json::{Value, json};
use shared::catalog::fleet::{Aggregate, FleetRow, Grain, rows};
use shared::catalog::prometheus::{Family, Type};
use shared::catalog::{Catalog, Draw, Metric};
use std::collections::BTreeSet;

/// Columns of Grafana's grid, and those of a panel: three stand beside each other.
const GRID_COLUMNS: u32 = 24;
const PANEL_COLUMNS: u32 = 8;
/// Height of a panel in rows of the grid.
const PANEL_ROWS: u32 = 8;
/// The version of Grafana's schema that these files have: Grafana reads older ones and brings them up to date.
const SCHEMA_VERSION: u32 = 39;

/// The dashboards, each as the name of its file and its JSON.
pub fn dashboards(catalog: &Catalog) -> [(&'static str, String); 3] {
    let text = |dashboard: Value| format!("{dashboard:#}\n");
    [
        ("watchglass-machine.json", text(machine(catalog))),
        ("watchglass-fleet.json", text(fleet(catalog))),
        ("watchglass-runs.json", text(runs())),
    ]
}

/// A query of a panel: its expression, and the text of a line; empty for Grafana's own.
struct Query {
    expression: String,
    legend: &'static str,
}

/// A chart of a dashboard.
struct Chart {
    title: String,
    /// Grafana's name of the unit.
    unit: &'static str,
    queries: Vec<Query>,
    /// The kind of panel, as Grafana names it.
    kind: &'static str,
}

impl Chart {
    fn lines(title: &str, unit: &'static str, queries: Vec<Query>) -> Chart {
        Chart { title: title.to_string(), unit, queries, kind: "timeseries" }
    }

    /// Its JSON, at a place of the grid.
    fn json(&self, id: u32, (x, y): (u32, u32)) -> Value {
        let letters = 'A'..='Z';
        let targets = self.queries.iter().zip(letters).map(|(query, letter)| {
            let is_now = self.kind != "timeseries";
            json!({
                "refId": letter.to_string(),
                "expr": query.expression,
                "legendFormat": if query.legend.is_empty() { "__auto" } else { query.legend },
                "instant": is_now,
                "range": !is_now,
                "format": if self.kind == "table" { "table" } else { "time_series" },
                "datasource": datasource(),
            })
        });
        json!({
            "id": id,
            "type": self.kind,
            "title": self.title,
            "datasource": datasource(),
            "gridPos": { "x": x, "y": y, "w": PANEL_COLUMNS, "h": PANEL_ROWS },
            "fieldConfig": { "defaults": { "unit": self.unit, "custom": {} }, "overrides": [] },
            "options": { "legend": { "displayMode": "list", "placement": "bottom" }, "tooltip": { "mode": "multi", "sort": "desc" } },
            "targets": targets.collect::<Vec<_>>(),
        })
    }
}

/// The data source that a reader chooses on the dashboard.
fn datasource() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// Rows of charts below their titles. The first row is open; charts of the others are read when they are opened.
fn panels(sections: Vec<(String, Vec<Chart>)>) -> Vec<Value> {
    let (mut all, mut id, mut y) = (Vec::new(), 0, 0);
    let mut next = || {
        id += 1;
        id
    };
    for (at, (title, charts)) in sections.into_iter().enumerate() {
        let row = next();
        let head = y;
        y += 1;
        let in_row = GRID_COLUMNS / PANEL_COLUMNS;
        let place = |n: u32| (n % in_row * PANEL_COLUMNS, y + n / in_row * PANEL_ROWS);
        let own: Vec<Value> = (0..).zip(&charts).map(|(n, chart)| chart.json(next(), place(n))).collect();
        let is_open = at == 0;
        y += if is_open { (charts.len() as u32).div_ceil(in_row) * PANEL_ROWS } else { 0 };
        let (below, inside) = if is_open { (own, Vec::new()) } else { (Vec::new(), own) };
        all.push(json!({
            "id": row,
            "type": "row",
            "title": title,
            "collapsed": !is_open,
            "gridPos": { "x": 0, "y": head, "w": GRID_COLUMNS, "h": 1 },
            "panels": inside,
        }));
        all.extend(below);
    }
    all
}

/// A whole dashboard. `variables` are the choices on top: name, title, and the query of their values.
fn dashboard(uid: &str, title: &str, variables: &[(&str, &str, &str)], panels: Vec<Value>) -> Value {
    let source = json!({ "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus" });
    let chosen = variables.iter().map(|(name, label, query)| {
        json!({
            "name": name,
            "label": label,
            "type": "query",
            "datasource": datasource(),
            "query": { "query": query, "refId": "values" },
            "definition": query,
            "refresh": 2,
            "sort": 1,
        })
    });
    json!({
        "uid": uid,
        "title": title,
        "tags": ["watchglass"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": true,
        "refresh": "10s",
        "time": { "from": "now-1h", "to": "now" },
        "timezone": "browser",
        "graphTooltip": 1,
        "templating": { "list": std::iter::once(source).chain(chosen).collect::<Vec<_>>() },
        "panels": panels,
    })
}

/// The current value of a family, or the rate of a counter, chosen by labels.
fn value(family: &Family, labels: &str) -> String {
    match family.kind {
        Type::Counter => format!("rate({}{{{labels}}}[$__rate_interval])", family.name),
        Type::Gauge | Type::Unknown => format!("{}{{{labels}}}", family.name),
    }
}

/// Grafana's name of the unit of [`value`].
fn unit(family: &Family) -> &'static str {
    let is_rate = family.kind == Type::Counter;
    match (family.unit, is_rate) {
        ("ratio", _) | ("seconds", true) => "percentunit",
        ("bytes", false) => "bytes",
        ("bytes", true) | ("bytes_per_second", _) => "binBps",
        ("seconds", false) => "s",
        ("joules", true) | ("watts", _) => "watt",
        ("joules", false) => "joule",
        ("celsius", _) => "celsius",
        ("hertz", _) => "hertz",
        (_, true) => "cps",
        _ => "short",
    }
}

/// One machine: the sections and charts of its page.
fn machine(catalog: &Catalog) -> Value {
    // Rows that come at run time have names of their own: values of jobs are on the dashboard of runs.
    let drawn = |metric: &&Metric| metric.draw != Draw::Hidden && !metric.tag.contains("{value}");
    let section = |section: &shared::catalog::Section| {
        let charts = catalog.layout.charts.iter().filter(|chart| chart.section == section.id);
        let charts = charts.filter_map(|chart| {
            let own = catalog.metrics.iter().filter(drawn).filter(|metric| metric.chart == chart.id);
            let families: Vec<Family> = own.map(Family::from_metric).collect();
            let unit = families.first().map(unit)?;
            let queries = families.iter().map(|family| value(family, "source=\"$source\"")).collect::<BTreeSet<_>>();
            let queries = queries.into_iter().map(|expression| Query { expression, legend: "" }).collect();
            Some(Chart::lines(&chart.title, unit, queries))
        });
        (section.title.clone(), charts.collect::<Vec<_>>())
    };
    let sections = catalog.layout.sections.iter().map(section).filter(|(_, charts)| !charts.is_empty());
    let variables = [("source", "Machine", "label_values(watchglass_memory_total_bytes, source)")];
    dashboard("watchglass-machine", "Watchglass: a machine", &variables, panels(sections.collect()))
}

/// All machines: the rows of the fleet's overview, a line each, then those of each GPU.
fn fleet(catalog: &Catalog) -> Value {
    let family = |row: &FleetRow| {
        let metric = catalog.metrics.iter().find(|metric| row.of.first().is_some_and(|def| def.tag == metric.tag))?;
        Some(Family::from_metric(metric))
    };
    let of_machines = |row: &&FleetRow| {
        let function = match row.aggregate {
            Aggregate::Mean => "avg",
            Aggregate::Min => "min",
            Aggregate::Max => "max",
            Aggregate::Sum => "sum",
            Aggregate::Each | Aggregate::ConnectionState => return None,
        };
        let family = family(row)?;
        let expression = format!("{function} by (source) ({})", value(&family, "source=~\"$source\""));
        Some(Chart::lines(row.title, unit(&family), vec![Query { expression, legend: "{{source}}" }]))
    };
    let of_gpus = |row: &&FleetRow| {
        let family = family(row)?;
        let query = Query { expression: value(&family, "source=~\"$source\""), legend: "{{source}} GPU {{gpu}}" };
        Some(Chart::lines(row.title, unit(&family), vec![query]))
    };
    let now = |title: &str, kind, expression: &str| Chart {
        title: title.to_string(),
        unit: "short",
        queries: vec![Query { expression: expression.to_string(), legend: "" }],
        kind,
    };
    let state = vec![
        now("Machines", "stat", "count(count by (source) (watchglass_memory_total_bytes))"),
        now("GPUs", "stat", "count(watchglass_gpu_utilization_ratio)"),
        now("Findings", "table", "watchglass_finding"),
    ];
    let machines = rows(Grain::Sources).iter().copied().filter_map(|row| of_machines(&row));
    let gpus = rows(Grain::Gpus).iter().copied().filter_map(|row| of_gpus(&row));
    let sections =
        vec![("Now".into(), state), ("By machine".into(), machines.collect()), ("By GPU".into(), gpus.collect())];
    let variables = [("source", "Machines", "label_values(watchglass_memory_total_bytes, source)")];
    let mut whole = dashboard("watchglass-fleet", "Watchglass: all machines", &variables, panels(sections));
    // All machines at first, and any choice of them.
    let chosen = &mut whole["templating"]["list"][1];
    (chosen["multi"], chosen["includeAll"], chosen["allValue"]) = (true.into(), true.into(), ".*".into());
    whole
}

/// The training jobs: what each uses, and the values that it logs.
fn runs() -> Value {
    // Several ranks may hold one GPU, and Prometheus refuses a join with more than one row for it.
    let join = "on (source, gpu) group_left (run) max by (source, gpu, run) (watchglass_gpu_run{run=\"$run\"})";
    let of_gpus = |function: &str, metric: &str| format!("{function} by (run) ({metric} * {join})");
    let chart = |title: &str, unit, function: &str, metric: &str| {
        let query = Query { expression: of_gpus(function, metric), legend: "{{run}}" };
        Chart::lines(title, unit, vec![query])
    };
    let each = |title: &str, unit, metric: &str| {
        let query = Query { expression: format!("{metric} * {join}"), legend: "{{source}} GPU {{gpu}}" };
        Chart::lines(title, unit, vec![query])
    };
    let list = Chart {
        title: "Runs".into(),
        unit: "short",
        queries: vec![Query { expression: "watchglass_run_info".into(), legend: "" }],
        kind: "table",
    };
    let values = Query { expression: "watchglass_job_value{run=\"$run\"}".into(), legend: "{{name}} rank {{rank}}" };
    let sections = vec![
        (
            "Run".to_string(),
            vec![
                list,
                Chart::lines("Values that the job logs", "short", vec![values]),
                chart("GPU utilization, mean", "percentunit", "avg", "watchglass_gpu_utilization_ratio"),
                chart("GPU power, all", "watt", "sum", "watchglass_gpu_power_watts"),
                chart("GPU memory in use, all", "bytes", "sum", "watchglass_gpu_memory_used_bytes"),
                chart("GPU temperature, hottest", "celsius", "max", "watchglass_gpu_temperature_celsius"),
            ],
        ),
        (
            "By GPU".to_string(),
            vec![
                each("GPU utilization", "percentunit", "watchglass_gpu_utilization_ratio"),
                each("GPU power", "watt", "watchglass_gpu_power_watts"),
                each("GPU memory in use", "bytes", "watchglass_gpu_memory_used_bytes"),
            ],
        ),
    ];
    let variables = [("run", "Run", "label_values(watchglass_run_info, run)")];
    dashboard("watchglass-runs", "Watchglass: training jobs", &variables, panels(sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{cpu, gpu, memory, network};

    fn catalog() -> Catalog {
        Catalog::new(gpu::ROWS.iter().chain(cpu::ROWS).chain(memory::ROWS).chain(network::ROWS).copied())
    }

    /// All panels of a dashboard, those in closed rows too.
    fn all(dashboard: &Value) -> Vec<Value> {
        let list = |of: &Value| of["panels"].as_array().cloned().unwrap_or_default();
        list(dashboard).into_iter().flat_map(|panel| list(&panel).into_iter().chain([panel])).collect()
    }

    #[test]
    fn each_dashboard_has_panels_with_ids_places_and_queries() {
        let made = dashboards(&catalog());
        for (name, text) in &made {
            let read: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(format!("{}.json", read["uid"].as_str().unwrap_or_default()), *name);
            let panels = all(&read);
            let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
            assert_eq!(ids.len(), panels.len(), "{name}: ids are unique");
            for panel in panels.iter().filter(|panel| panel["type"] != "row") {
                let right = panel["gridPos"]["x"].as_u64().zip(panel["gridPos"]["w"].as_u64()).map(|(x, w)| x + w);
                assert!(right.is_some_and(|right| right <= 24), "{panel}");
                let targets = panel["targets"].as_array().expect("a list");
                assert!(
                    !targets.is_empty() && targets.iter().all(|t| t["expr"].as_str().is_some_and(|e| !e.is_empty()))
                );
            }
        }
        let text = &made[0].1;
        assert!(
            text.contains("rate(watchglass_network_receive_bytes_total{source=\\\"$source\\\"}[$__rate_interval])")
        );
        assert!(text.contains("\"watchglass_gpu_temperature_celsius{source=\\\"$source\\\"}\""));
        assert!(made[1].1.contains("sum by (source) (watchglass_gpu_power_watts{source=~\\\"$source\\\"})"));
    }

    #[test]
    fn a_gpu_that_two_ranks_hold_is_joined_with_their_run_once() {
        let runs: Value = serde_json::from_str(&dashboards(&catalog())[2].1).expect("JSON");
        let queries = all(&runs).into_iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
        let joins: Vec<String> = queries
            .filter_map(|query| query["expr"].as_str().map(String::from))
            .filter(|expression| expression.contains("watchglass_gpu_run"))
            .collect();
        assert_eq!(joins.len(), 7, "{joins:?}");
        let one = "group_left (run) max by (source, gpu, run) (watchglass_gpu_run{run=\"$run\"})";
        assert!(joins.iter().all(|expression| expression.contains(one)), "{joins:?}");
    }

    #[test]
    fn a_rate_has_the_unit_of_its_increase_a_second() {
        let catalog = catalog();
        let of = |tag: &str| {
            let metric = catalog.metrics.iter().find(|metric| metric.tag == tag).expect("a row");
            unit(&Family::from_metric(metric))
        };
        let tags = [
            "network.recv",
            "gpu.{i}.temp",
            "gpu.{i}.powerWatts",
            "system.cpu_percent",
            "memory.total",
            "gpu.{i}.energyJoules",
        ];
        let units = ["binBps", "celsius", "watt", "percentunit", "bytes", "watt"];
        assert_eq!(tags.map(of), units);
    }
}
