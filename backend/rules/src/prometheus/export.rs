//! The built-in rules as a file of Prometheus rules, for servers that scrape Watchglass or take its remote write. Names
//! and units are those of `/metrics`. Conditions on internal state, such as the outcome of a run, are listed and left
//! out.

use crate::builtin::rules;
use shared::alert::Rule;
use shared::catalog::prometheus::{Family, labels};
use shared::catalog::{Catalog, Metric, job};
use shared::rule::{Across, By, Comparison, Condition, Function, Tag, Threshold, Value, check, duration_text};
use shared::run::RunState;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lookback for a series that stopped.
const LOOKED_BACK: &str = "1h";

/// A series of every machine: its presence shows that the machine reports.
const PRESENCE_SERIES: &str = "watchglass_cpu_utilization_ratio";

/// An event ends after this time.
const EVENT_QUIET: &str = "1h";

/// The file. Rows with tags missing from the catalog are left out, as are those without an expression.
pub fn export(catalog: &Catalog) -> String {
    let mut out = String::from(
        "# The built-in rules of Watchglass, as far as Prometheus can tell them: for a server that scrapes /metrics or takes\n\
         # remote write. Thresholds that only hold with hysteresis are kept by keep_firing_for, of Prometheus 2.42 and later.\n\
         # This file is generated: UPDATE=1 cargo test -p watchglass-tests prometheus_rules\n\
         groups:\n  - name: watchglass\n    rules:\n",
    );
    let mut left_out = Vec::new();
    for rule in rules(&BTreeMap::new()) {
        match check(&rule, catalog).and_then(|condition| expression(&condition, catalog)) {
            Ok(told) => row(&mut out, &rule, &told),
            Err(why) => left_out.push((rule.name, why)),
        }
    }
    out.push_str("# Not in it:\n");
    for (name, why) in left_out {
        let _ = writeln!(out, "# - {name}: {why}");
    }
    out
}

/// A condition in Prometheus.
struct ExportedCondition {
    expr: String,
    hold: u32,
    keep: String,
}

fn row(out: &mut String, rule: &Rule, told: &ExportedCondition) {
    let words = rule.name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.map(|word| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..])).collect();
    let _ = writeln!(out, "      - alert: Watchglass{name}");
    let _ = writeln!(out, "        expr: {}", quoted(&told.expr));
    if told.hold > 0 {
        let _ = writeln!(out, "        for: {}", duration_text(told.hold));
    }
    if !told.keep.is_empty() {
        let _ = writeln!(out, "        keep_firing_for: {}", told.keep);
    }
    let _ = writeln!(out, "        labels:\n          severity: {}", rule.severity.as_str());
    let label = if told.expr.contains("run_info") { "run" } else { "source" };
    let summary = format!("{}: {{{{ $labels.{label} }}}}", rule.name);
    let _ = writeln!(out, "        annotations:\n          summary: {}", quoted(&summary));
    if let Some(note) = &rule.note {
        let _ = writeln!(out, "          description: {}", quoted(note));
    }
}

/// A YAML string in single quotes, where only quotes need escaping.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// # Errors
/// The reason why Prometheus cannot express it.
fn expression(condition: &Condition, catalog: &Catalog) -> Result<ExportedCondition, String> {
    let held = |expr: String, hold: u32| Ok(ExportedCondition { expr, hold, keep: String::new() });
    match condition {
        Condition::Threshold(threshold) => compared(threshold, catalog),
        Condition::Missing { tag, hold } => {
            let name = series(tag, catalog)?.0;
            held(
                format!("last_over_time({name}[{LOOKED_BACK}]) unless {name} and on (source) {PRESENCE_SERIES}"),
                *hold,
            )
        }
        Condition::NotANumber { tag, hold } => {
            let family = Family::from_metric(&Metric::from(&job::NOT_A_NUMBER)).name;
            held(format!("{family}{{{}=\"{}\"}} > 0", job::NAME, tag.instance), *hold)
        }
        Condition::Reaches { tag, limit, within } => {
            let (name, family) = series(tag, catalog)?;
            let limit = number(family.value(*limit));
            let hours = duration_text((within / 8).max(3_600));
            Ok(ExportedCondition {
                expr: format!("predict_linear({name}[{hours}], {within}) >= {limit}"),
                hold: 300,
                keep: "15m".into(),
            })
        }
        Condition::Increases { tag } => {
            let expr = format!("increase({}[5m]) > 0", series(tag, catalog)?.0);
            Ok(ExportedCondition { expr, hold: 0, keep: EVENT_QUIET.into() })
        }
        Condition::SourceLost(hold) => {
            held(format!("last_over_time({PRESENCE_SERIES}[{LOOKED_BACK}]) unless {PRESENCE_SERIES}"), *hold)
        }
        Condition::CollectorFailed(hold) => {
            let metric = catalog
                .metrics
                .iter()
                .find(|metric| metric.tag.strip_prefix("monitor.").is_some_and(|rest| rest.ends_with(".ok")));
            let metric = metric.ok_or("there is no such metric")?;
            held(format!("{} == 0", Family::from_metric(metric).name), *hold)
        }
        Condition::Finding { what, hold } => held(open_findings(what), *hold),
        // Ended runs have no series.
        Condition::Run(states) if states.contains(&RunState::Unreachable) => {
            held(format!("watchglass_run_info{{state=\"{}\"}} == 1", RunState::Unreachable.name()), 0)
        }
        Condition::Run(_) | Condition::RunLonger(_) | Condition::RunSilent(_) | Condition::RunIdle(_) => {
            Err("only Watchglass knows the state and end of a run".into())
        }
        Condition::HubBehind | Condition::HistoryFailed | Condition::GpuHours(_) => {
            Err("it is internal state of Watchglass".into())
        }
        _ => Err("it is an event, not a series".into()),
    }
}

/// Open findings: each has a series while it is open.
fn open_findings(what: &[String]) -> String {
    let label = |word: &str| match word {
        "note" | "warning" | "critical" => "severity",
        word if word.contains('.') => "rule",
        _ => "kind",
    };
    let (not, is): (Vec<&str>, Vec<&str>) = what.iter().map(String::as_str).partition(|word| word.starts_with('!'));
    let not: Vec<&str> = not.iter().map(|word| word.trim_start_matches('!')).collect();
    let mut without = Vec::new();
    for one in ["severity", "rule", "kind"] {
        let words: Vec<&str> = not.iter().filter(|word| label(word) == one).copied().collect();
        without.extend((!words.is_empty()).then(|| format!("{one}!~\"{}\"", words.join("|"))));
    }
    let rows = is.iter().map(|word| {
        let this = if *word == "*" { Vec::new() } else { vec![format!("{}=\"{word}\"", label(word))] };
        format!("watchglass_finding{{{}}}", [this, without.clone()].concat().join(","))
    });
    let rows: Vec<String> = rows.collect();
    match rows.as_slice() {
        [] => format!("watchglass_finding{{{}}} == 1", without.join(",")),
        rows => rows.iter().map(|row| format!("{row} == 1")).collect::<Vec<_>>().join(" or "),
    }
}

fn compared(threshold: &Threshold, catalog: &Catalog) -> Result<ExportedCondition, String> {
    let mut expr = comparison(&threshold.first, catalog)?;
    if let Some(second) = &threshold.and {
        let _ = write!(expr, " and {}", comparison(second, catalog)?);
    }
    Ok(ExportedCondition { expr, hold: threshold.hold, keep: duration_text(threshold.clear()) })
}

fn comparison(one: &Comparison, catalog: &Catalog) -> Result<String, String> {
    let (name, family) = series(one.value.tag(), catalog)?;
    let limit = match &one.value {
        // A rate is in the base unit already.
        Value::In(Function::Rate, ..) => one.limit,
        Value::Over(Across::Share(..), ..) => one.limit / 100.0,
        Value::OfMean(..) => one.limit,
        _ => family.value(one.limit),
    };
    let value = match &one.value {
        Value::Of(_) => name,
        Value::OfMean(_, seconds) => format!("{name} / avg_over_time({name}[{}])", duration_text(*seconds)),
        Value::In(function, _, seconds) => {
            let function = match function {
                Function::Rate => "rate",
                Function::Increase => "increase",
                Function::Change => "delta",
                Function::Mean => "avg_over_time",
                Function::Min => "min_over_time",
                Function::Max => "max_over_time",
            };
            format!("{function}({name}[{}])", duration_text(*seconds))
        }
        Value::Over(over, by, _) => {
            let label = match by {
                By::Source => "source",
                By::Gpu => "source, gpu",
                By::Run => return Err("Prometheus does not know which series belong to a run".into()),
            };
            match over {
                Across::Mean => format!("avg by ({label}) ({name})"),
                Across::Min => format!("min by ({label}) ({name})"),
                Across::Max => format!("max by ({label}) ({name})"),
                Across::Spread => format!("(max by ({label}) ({name}) - min by ({label}) ({name}))"),
                Across::Share(op, of) => {
                    let limit = number(family.value(*of));
                    format!("avg by ({label}) ({name} {} bool {limit})", op.sign())
                }
            }
        }
    };
    Ok(format!("{value} {} {}", one.op.sign(), number(limit)))
}

/// The metric name of a tag with the labels that it fixes, and its family.
fn series(tag: &Tag, catalog: &Catalog) -> Result<(String, Family), String> {
    if tag.template == job::VALUE.tag && !tag.instance.contains('*') {
        // The row may not exist now.
        let (name, instance) = tag.instance.split_at(tag.instance.find('{').unwrap_or(tag.instance.len()));
        let row = Metric { tag: format!("{}{name}{}", job::PREFIX, job::LABELS), ..Metric::from(&job::VALUE) };
        let pairs = labels(&row, instance).into_iter().map(|(name, value)| format!("{name}=\"{value}\""));
        let family = Family::from_metric(&row);
        return Ok((format!("{}{{{}}}", family.name, pairs.collect::<Vec<_>>().join(",")), family));
    }
    let metric = catalog.metrics.iter().find(|metric| metric.tag == tag.template);
    let metric = metric.ok_or_else(|| format!("there is no metric {}", tag.template))?;
    let family = Family::from_metric(metric);
    let fixed = !tag.instance.is_empty() && !tag.instance.contains('*');
    let pairs: Vec<String> = match fixed {
        true => labels(metric, &tag.instance).iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect(),
        false => Vec::new(),
    };
    let name = if pairs.is_empty() { family.name.clone() } else { format!("{}{{{}}}", family.name, pairs.join(",")) };
    Ok((name, family))
}

/// A number without rounding errors.
fn number(value: f64) -> String {
    let rounded = (value * 1e9).round() / 1e9;
    format!("{rounded}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::{catalog, import};

    fn exported(when: &str) -> Result<String, String> {
        let rule = Rule { name: "a".into(), when: when.into(), ..Rule::default() };
        let condition = check(&rule, &catalog())?;
        expression(&condition, &catalog()).map(|told| told.expr)
    }

    #[test]
    fn conditions_are_expressions_in_base_units() {
        for (when, expr) in [
            ("gpu.3.temp > 85 C for 2m", "watchglass_gpu_temperature_celsius{gpu=\"3\"} > 85"),
            ("gpu.*.gpu < 5 % for 1m", "watchglass_gpu_utilization_ratio < 0.05"),
            ("job.loss > 3", "watchglass_job_value{name=\"loss\"} > 3"),
            ("job.train/loss is not a number", "watchglass_job_not_a_number{name=\"train/loss\"} > 0"),
            (
                "job.tokens_per_s < 0.8 x its mean over 1h",
                "watchglass_job_value{name=\"tokens_per_s\"} / avg_over_time(watchglass_job_value{name=\"tokens_per_s\"}[1h]) < 0.8",
            ),
            ("rate(network.sent, 1m) > 1.5 GB/s", "rate(watchglass_network_transmit_bytes_total[1m]) > 1500000000"),
            ("mean over source of gpu.*.gpu < 50 for 10m", "avg by (source) (watchglass_gpu_utilization_ratio) < 0.5"),
            (
                "share < 5 over source of gpu.*.gpu > 50 for 1h",
                "avg by (source) (watchglass_gpu_utilization_ratio < bool 0.05) > 0.5",
            ),
            (
                "disk.*.usagePercent reaches 100 % within 8h",
                "predict_linear(watchglass_filesystem_used_ratio[1h], 28800) >= 1",
            ),
            ("memory.oom_kills increases", "increase(watchglass_memory_oom_kills_total[5m]) > 0"),
        ] {
            assert_eq!(exported(when).as_deref(), Ok(expr), "{when}");
        }
        let found = "watchglass_finding{severity=\"critical\",kind!~\"host_lost\"} == 1";
        assert_eq!(exported("finding critical, !host_lost").as_deref(), Ok(found));
        let found = "watchglass_finding{rule=\"hang.spin\"} == 1 or watchglass_finding{kind=\"idle\"} == 1";
        assert_eq!(exported("finding hang.spin, idle for 2m").as_deref(), Ok(found));
        assert_eq!(exported("run unreachable, lost").as_deref(), Ok("watchglass_run_info{state=\"unreachable\"} == 1"));
        assert!(exported("run crashed").is_err_and(|why| why.contains("only Watchglass knows")));
        assert!(exported("mean over run of gpu.*.gpu < 50 for 10m").is_err_and(|why| why.contains("belong to a run")));
    }

    #[test]
    fn what_is_given_away_is_read_again() {
        let file = export(&catalog());
        let again = import(&file, &catalog());
        // Rules that compare a value with a number survive the round trip.
        let of = |name: &str| again.rules.iter().find(|(rule, _)| rule.name == name).map(|(rule, _)| rule.when.clone());
        assert_eq!(
            of("WatchglassCPUStolen"),
            Some("system.cpu_steal_percent > 10 % for 10m, until <= 10 % for 2m".into())
        );
        assert!(file.contains("# - run crashed: "), "{file}");
    }
}
