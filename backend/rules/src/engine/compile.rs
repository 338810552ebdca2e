//! Compiled form of rules for the engine.

use super::{Machine, Series};
use shared::alert::Rule;
use shared::catalog::{Catalog, Metric, MetricDef, glob, gpu, job};
use shared::rule::{Across, By, Comparison, Condition, Op, Tag, Threshold, Value};
use std::collections::BTreeMap;

/// A GPU with less use is idle, percent.
const IDLE: f64 = 5.0;

/// A GPU with more memory in use is held, bytes. A driver and a display use less.
const HELD_BYTES: f64 = 1_073_741_824.0;

/// Keys of `on` that are facts of a run.
const OF_RUNS: [&str; 6] = ["run", "project", "job_type", "user", "group", FAILURE];

/// Key of `on` for the class of a run's failure.
const FAILURE: &str = "failure";

pub struct Compiled {
    pub rule: Rule,
    pub condition: Condition,
    /// The threshold evaluated for series. `run idle` and similar conditions are translated into it.
    pub threshold: Option<Threshold>,
    pub on: Vec<(String, Vec<Pattern>)>,
    /// Number of its subjects.
    pub subjects: u32,
    /// Number of subjects over the limit.
    pub left: u64,
}

/// One of the patterns of `on`.
pub struct Pattern {
    not: bool,
    text: String,
}

fn tag_of(row: &MetricDef, instance: &str) -> Tag {
    let row = Metric::from(row);
    Tag { template: row.tag, instance: instance.into(), unit: row.unit, kind: row.kind, title: row.title }
}

/// The series of a job's value that tell whether it is a number.
fn odd(value: &Tag) -> Tag {
    let prefix = job::NOT_A_NUMBER.tag.trim_start_matches(job::PREFIX).trim_end_matches(job::LABELS);
    let instance = format!("{prefix}{{*{}=\"{}\"*", job::NAME, value.instance);
    Tag { instance, ..value.clone() }
}

/// Whether a value matches no negated pattern, and any of the others if there are some.
pub fn fits(patterns: &[Pattern], value: Option<&str>) -> bool {
    let value = value.unwrap_or("");
    let is = |p: &&Pattern| glob(&p.text, value);
    let mut wanted = patterns.iter().filter(|p| !p.not).peekable();
    let any = wanted.peek().is_none() || (!value.is_empty() && wanted.any(|p| is(&p)));
    any && !patterns.iter().filter(|p| p.not).any(|p| is(&p))
}

impl Compiled {
    pub fn new(rule: &Rule, catalog: &Catalog) -> Result<Self, String> {
        let condition = shared::rule::check(rule, catalog)?;
        let below = |value, limit, op| Comparison { value, op, limit };
        let threshold = match &condition {
            Condition::Threshold(threshold) => Some(threshold.clone()),
            Condition::NotANumber { tag, hold } => Some(Threshold {
                first: below(Value::Of(odd(tag)), 0.0, Op::Above),
                and: None,
                hold: *hold,
                until: None,
            }),
            Condition::HeldIdle(hold) => Some(Threshold {
                first: below(Value::Of(tag_of(&gpu::UTILIZATION, "*")), IDLE, Op::Below),
                and: Some(below(Value::Of(tag_of(&gpu::MEMORY_ALLOCATED_BYTES, "*")), HELD_BYTES, Op::Above)),
                hold: *hold,
                until: None,
            }),
            Condition::RunIdle(hold) => Some(Threshold {
                first: below(Value::Over(Across::Mean, By::Run, tag_of(&gpu::UTILIZATION, "*")), IDLE, Op::Below),
                and: None,
                hold: *hold,
                until: None,
            }),
            Condition::CollectorFailed(hold) => Some(Threshold {
                first: below(
                    Value::Of(Tag {
                        template: String::new(),
                        instance: "*".into(),
                        unit: shared::unit::Unit::State,
                        kind: shared::catalog::Kind::State,
                        title: "collector".into(),
                    }),
                    1.0,
                    Op::Below,
                ),
                and: None,
                hold: *hold,
                until: None,
            }),
            _ => None,
        };
        let on = rule.on.iter().map(|(key, patterns)| {
            let one = |text: &str| {
                let text = text.trim();
                Pattern { not: text.starts_with('!'), text: text.trim_start_matches('!').to_string() }
            };
            (key.clone(), patterns.split(',').map(one).collect())
        });
        Ok(Compiled { rule: rule.clone(), threshold, on: on.collect(), condition, subjects: 0, left: 0 })
    }

    /// Whether the state under that rule stays valid.
    pub fn is_same(&self, other: &Compiled) -> bool {
        self.condition == other.condition && self.rule.on == other.rule.on
    }

    /// The tag whose series are its subjects, if any.
    fn tag(&self) -> Option<&Tag> {
        match (&self.threshold, &self.condition) {
            (Some(threshold), _) => Some(threshold.first.value.tag()),
            (None, Condition::Missing { tag, .. } | Condition::Reaches { tag, .. } | Condition::Increases { tag }) => {
                Some(tag)
            }
            _ => None,
        }
    }

    /// Whether it watches that series.
    pub fn watches(&self, series: &Series) -> bool {
        match &self.condition {
            Condition::CollectorFailed(_) => {
                series.row.template.strip_prefix("monitor.").is_some_and(|rest| rest.strip_suffix(".ok").is_some())
            }
            _ => self.tag().is_some_and(|tag| tag.fits(&series.row.template, &series.instance)),
        }
    }

    /// The grouping of its series.
    pub fn by(&self) -> Option<By> {
        match self.threshold.as_ref()?.first.value {
            Value::Over(_, by, _) => Some(by),
            _ => None,
        }
    }

    /// Whether its subjects depend on runs.
    pub fn needs_runs(&self) -> bool {
        self.by() == Some(By::Run) || self.on.iter().any(|(key, _)| OF_RUNS.contains(&key.as_str()))
    }

    pub fn admits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.on.iter().all(|(key, patterns)| fits(patterns, labels.get(key).map(String::as_str)))
    }

    /// Whether it depends on the class of a run's failure.
    pub fn needs_class(&self) -> bool {
        self.on.iter().any(|(key, _)| key == FAILURE)
    }

    /// Whether its machine conditions (name and labels) match this machine.
    pub fn admits_machine(&self, machine: &Machine) -> bool {
        self.on.iter().all(|(key, patterns)| match key.as_str() {
            "source" => fits(patterns, Some(&machine.name)),
            "gpu" => true,
            key if OF_RUNS.contains(&key) => true,
            key => fits(patterns, machine.labels.get(key).map(String::as_str)),
        })
    }
}
