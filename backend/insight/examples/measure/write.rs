//! Writes a trace as event lines for `watchglass import` and `watchglass findings`: one line per tick. With several
//! machines each tag has the machine's name as its label.

use super::world::{Sink, World};
use serde_json::{Map, Value, json};
use shared::catalog::Metric;
use shared::processes::ProcessTable;
use shared::series::SeriesId;
use std::collections::HashMap;
use std::io::{self, Write};

pub struct Lines<W> {
    out: W,
    label: bool,
    names: HashMap<u32, String>,
    tags: HashMap<(u32, SeriesId), String>,
    /// The first write error; later output is dropped.
    failed: Option<io::Error>,
}

impl<W: Write> Lines<W> {
    pub fn new(out: W, world: &World) -> Self {
        Lines { out, label: world.hosts.len() > 1, names: HashMap::new(), tags: HashMap::new(), failed: None }
    }

    /// Flushes the file. Returns the first write error, if any.
    pub fn end(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

impl<W: Write> Sink for Lines<W> {
    fn source(&mut self, source: u32, name: &str, _interval_ms: i64) {
        self.names.insert(source, name.to_owned());
    }

    fn series(&mut self, source: u32, id: SeriesId, metric: &Metric, instance: &str) {
        let tag = match metric.tag.split_once('{') {
            Some((before, rest)) => {
                format!("{before}{instance}{}", rest.split_once('}').map_or("", |(_, after)| after))
            }
            None => metric.tag.clone(),
        };
        let label = if self.label { format!("/l:{}", self.names[&source]) } else { String::new() };
        self.tags.insert((source, id), tag + &label);
    }

    fn tick(&mut self, source: u32, t: i64, samples: &[(SeriesId, f64)]) {
        let mut line = Map::new();
        line.insert("_timestamp".into(), json!(t as f64 / 1000.0));
        for &(id, value) in samples {
            line.insert(self.tags[&(source, id)].clone(), json!(value));
        }
        if self.failed.is_none()
            && let Err(error) = writeln!(self.out, "{}", Value::Object(line))
        {
            self.failed = Some(error);
        }
    }

    fn processes(&mut self, _source: u32, _table: &ProcessTable) {}
    fn jobs(&mut self, _jobs: &[insight::Job]) {}
    fn goodbye(&mut self, _source: u32, _t: i64) {}
    fn record_reason(&mut self, _source: u32, _t: i64, _collector: &str, _reason: &str) {}
    fn now(&mut self, _now: i64) {}
}

/// The true faults of a trace, as JSON: times in seconds since the Unix epoch.
pub fn truth(seed: u64, world: &World) -> Value {
    let time = |t: f64| super::world::BEGIN as f64 / 1000.0 + t;
    let labels: Vec<Value> = world
        .labels
        .iter()
        .map(|l| {
            let places: Vec<Value> =
                l.places.iter().map(|(h, gpus)| json!({"source": world.hosts[*h].name, "gpus": gpus})).collect();
            json!({
                "kind": l.kind, "name": l.name, "subject": places, "onset": time(l.onset), "end": time(l.end),
                "severity": if l.mild { "mild" } else { "strong" }, "optional": l.optional,
            })
        })
        .collect();
    json!({"seed": seed, "name": world.name, "gpu_hours": world.gpu_seconds / 3600.0, "labels": labels})
}
