//! The tools: a table of GET requests, and the explanation of a metric.

use crate::Server;
use crate::fit::{Rows, fit, shorten};
use api::Operation;
use api::parameter::{
    ACTIVE, FINDING_KIND, FROM, FUNCTION, LIMIT, LINE_TEXT, MATCH, OUTPUT_STREAM, PROCESS_LABEL, PROJECT, Parameter,
    ParameterKind, RANK, RUN, SEARCH, SOURCE, SOURCES, STATES, STEP, TAG, TO, USER,
};
use serde_json::{Map, Value, json};
use shared::catalog::{Catalog, VOCABULARY};
use shared::session::Problem;
use std::collections::BTreeSet;

/// Maximum number of values of a repeated argument.
const MAX_VALUES: usize = 16;
/// Maximum number of metrics in an explanation by a word.
const MAX_METRICS: usize = 20;
/// Fields that only the page draws.
const DRAWN: &[&str] = &["spark", "sentence_template"];

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its purpose, for the assistant.
    meaning: &'static str,
    /// Its request.
    operation: Operation,
    /// The request for one object, whose ID is the argument `run`.
    one: Option<Operation>,
    /// Its arguments, except for the ID.
    takes: &'static [Parameter],
    /// Names of required arguments.
    needs: &'static [&'static str],
    /// Parameters that are sent if the argument is absent, or has no argument.
    defaults: &'static [(&'static str, &'static str)],
    /// How to get a shorter answer.
    narrower: &'static str,
    /// The rows that stay in an answer that is too long.
    stays: Rows,
    /// Remedy if the server forbids it; empty if its own sentence has one.
    forbidden: &'static str,
}

/// The fields that few tools have.
const NONE: Tool = Tool {
    name: "",
    meaning: "",
    operation: Operation::ListSources,
    one: None,
    takes: &[],
    needs: &[],
    defaults: &[],
    narrower: "",
    stays: Rows::First,
    forbidden: "",
};

/// All tools.
pub const TOOLS: [Tool; 8] = [
    Tool {
        name: "list_machines",
        meaning: "Lists the machines with their hardware, labels, state of the link (live, late, unreachable, stopped) \
            and time of the last sample",
        operation: Operation::ListSources,
        narrower: "Ask the other tools with source.",
        ..NONE
    },
    Tool {
        name: "list_findings",
        meaning: "Lists detected problems: slow, hot, lost or idle GPUs, hangs, full memory, failing links. Each has a \
            sentence, its evidence, what changed at that time, and the next step. Begin with this tool",
        operation: Operation::ListFindings,
        takes: &[SOURCES, FINDING_KIND, ACTIVE, FROM, TO],
        narrower: "Name a source or a kind, or set active to true.",
        ..NONE
    },
    Tool {
        name: "list_changes",
        meaning: "Lists the series that differ most between a time span and the one before it, by default the last \
            five minutes: before, after and a score",
        operation: Operation::ListChanges,
        takes: &[SOURCE, FROM, TO],
        narrower: "Name a source; the largest changes come first.",
        ..NONE
    },
    Tool {
        name: "query_samples",
        meaning: "Returns a series over time as buckets with min, max, mean, last and count; by default the last 15 \
            minutes in buckets of one minute. Counters need fn=rate",
        operation: Operation::QuerySamples,
        takes: &[TAG, SOURCES, RUN, FROM, TO, STEP, FUNCTION],
        needs: &[TAG.name],
        defaults: &[("from", "-15m"), ("step", "1m")],
        narrower: "Name fewer tags or one source, a later from, or a longer step.",
        ..NONE
    },
    Tool {
        name: "list_runs",
        meaning: "Lists training jobs, newest first: state, first failed rank and its cause, GPU hours, utilization. \
            With run it returns one job with all its processes",
        operation: Operation::ListRuns,
        one: Some(Operation::GetRun),
        takes: &[STATES, PROJECT, USER, SOURCE, SEARCH, FROM, TO, LIMIT],
        defaults: &[("sums", "true"), ("limit", "20")],
        narrower: "Set limit, name a state or a project, or one run.",
        ..NONE
    },
    Tool {
        name: "list_run_output",
        meaning: "Returns lines that a training job has printed, if it was started with watchglass run --logs and the \
            caller may read them",
        operation: Operation::ListRunLogs,
        one: Some(Operation::ListRunLogs),
        takes: &[FROM, TO, RANK, PROCESS_LABEL, OUTPUT_STREAM, LINE_TEXT, LIMIT],
        needs: &["run"],
        defaults: &[("format", "json"), ("limit", "100")],
        narrower: "Set limit, name a rank, or search with text.",
        stays: Rows::Last,
        forbidden: "output cannot be read with a key: start watchglass mcp without --hub on the machine of the job",
    },
    Tool {
        name: "explain_metric",
        meaning: "Explains a metric by its tag, as gpu.0.smActive: meaning, source, unit, range, and the machines that \
            have it. With another word, as clock, it lists the metrics with that word",
        operation: Operation::ListMetrics,
        takes: &[EXPLAINED],
        needs: &[EXPLAINED.name],
        narrower: "Name the whole tag.",
        ..NONE
    },
    Tool {
        name: "run_doctor",
        meaning: "Lists the collectors of a machine: what is measured, what is not, why, and how to fix it",
        operation: Operation::ListChecks,
        takes: &[SOURCE],
        narrower: "Name a source.",
        ..NONE
    },
];

/// The argument of `explain_metric`.
const EXPLAINED: Parameter =
    Parameter { name: "metric", kind: ParameterKind::Text, repeated: false, meaning: "Tag, or a word of its title" };
/// The argument that names one run.
const ONE: Parameter = RUN;

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The tools as the protocol describes them.
pub fn list() -> Value {
    let one = |tool: &Tool| {
        json!({
            "name": tool.name,
            "description": format!("{}.", tool.meaning),
            "inputSchema": tool.schema(),
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    };
    TOOLS.iter().map(one).collect()
}

impl Tool {
    /// Its requests.
    #[cfg(test)]
    pub fn operations(&self) -> impl Iterator<Item = Operation> {
        std::iter::once(self.operation).chain(self.one)
    }

    fn arguments(&self) -> impl Iterator<Item = &Parameter> {
        self.one.map(|_| &ONE).into_iter().chain(self.takes)
    }

    fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .arguments()
            .map(|parameter| {
                let mut one = match parameter.kind {
                    ParameterKind::Number(least) => json!({ "type": "integer", "minimum": least }),
                    ParameterKind::Choice(words) => json!({ "type": "string", "enum": words }),
                    _ => json!({ "type": "string" }),
                };
                if parameter.repeated {
                    one = json!({ "type": "array", "items": one, "maxItems": MAX_VALUES });
                }
                one["description"] = parameter.meaning.into();
                (parameter.name.to_string(), one)
            })
            .collect();
        json!({ "type": "object", "properties": properties, "required": self.needs, "additionalProperties": false })
    }

    /// The text of the answer.
    ///
    /// # Errors
    /// A sentence for the assistant: what is wrong, and what to do.
    pub fn call(&self, arguments: &Map<String, Value>, server: &dyn Server) -> Result<String, String> {
        let given = self.read(arguments)?;
        if self.operation == Operation::ListMetrics {
            return explain(&given[0].1, server).map(|answer| fit(answer, self.narrower, self.stays));
        }
        let run = given.iter().find(|(parameter, _)| self.one.is_some() && **parameter == ONE);
        let (operation, parts) = match (self.one, run) {
            (Some(one), Some((_, run))) => (one, vec![run.as_str()]),
            _ => (self.operation, Vec::new()),
        };
        let is_given = |name: &str| given.iter().any(|(parameter, _)| parameter.name == name);
        let known = operation.row().parameters;
        let default = |(name, value): &(&str, &str)| {
            let parameter = known.iter().find(|parameter| parameter.name == *name && !is_given(name))?;
            Some((*parameter, Some(value.to_string())))
        };
        let mut parameters: Vec<_> = self.defaults.iter().filter_map(default).collect();
        for (parameter, value) in given.iter().filter(|(parameter, _)| parts.is_empty() || **parameter != ONE) {
            if !operation.takes(parameter.name) {
                return Err(format!("{} cannot be combined with run; leave one of them out", parameter.name));
            }
            parameters.push((**parameter, Some(value.clone())));
        }
        let mut answer = get(server, &operation.asking(&parts, &parameters), self.forbidden)?;
        shorten(&mut answer, DRAWN);
        Ok(fit(answer, self.narrower, self.stays))
    }

    /// The arguments as parameters with their values.
    fn read<'a>(&'a self, arguments: &Map<String, Value>) -> Result<Vec<(&'a Parameter, String)>, String> {
        let mut given = Vec::new();
        for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
            let parameter = self.arguments().find(|parameter| parameter.name == name).ok_or_else(|| {
                let names: Vec<&str> = self.arguments().map(|parameter| parameter.name).collect();
                match names.is_empty() {
                    true => format!("{} takes no arguments; leave out {name:?}", self.name),
                    false => format!("{} has no argument {name:?}; it takes {}", self.name, names.join(", ")),
                }
            })?;
            let values = match value {
                Value::Array(values) if parameter.repeated => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            if values.len() > MAX_VALUES {
                return Err(format!("{name} has more than {MAX_VALUES} values; use a pattern with *"));
            }
            for value in values {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => return Err(format!("{name} must be a text or a number")),
                };
                given.push((parameter, text));
            }
        }
        match self.needs.iter().find(|name| !given.iter().any(|(parameter, _)| parameter.name == **name)) {
            Some(name) => Err(format!("{} needs the argument {name}", self.name)),
            None => Ok(given),
        }
    }
}

/// The JSON of a response; `forbidden` is the remedy if the server forbids it.
fn get(server: &dyn Server, path: &str, forbidden: &str) -> Result<Value, String> {
    let (status, body) = server.get(path).map_err(|why| format!("Watchglass does not respond: {why}"))?;
    if status == 200 {
        return serde_json::from_slice(&body).map_err(|_| "the server is not Watchglass: it returned no JSON".into());
    }
    let sentence = serde_json::from_slice::<Problem>(&body).map(|problem| problem.error);
    let sentence = sentence.unwrap_or_else(|_| format!("the server answered with status {status}"));
    Err(match status {
        401 => format!("{sentence}; the person who starts watchglass mcp must name a valid key with --key-file FILE"),
        403 if !forbidden.is_empty() => format!("{sentence}; {forbidden}"),
        _ => sentence,
    })
}

/// The rows of the catalog for a tag, or those with a word; and the machines with such a series.
fn explain(text: &str, server: &dyn Server) -> Result<Value, String> {
    let catalog = get(server, &Operation::ListMetrics.at(&[]), "")?;
    let series = get(server, &Operation::ListSeries.asking(&[], &[(MATCH, Some(text.to_string()))]), "")?;
    let series = series["series"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = |field: &str| series.iter().filter_map(|row| row[field].as_str().map(String::from)).collect();
    let (mut templates, sources): (BTreeSet<String>, BTreeSet<String>) = (texts("metric"), texts("source"));
    let vocabulary = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
    let known = vocabulary.known(text).and_then(|known| vocabulary.metrics.get(usize::from(known.metric)));
    templates.extend(known.map(|metric| metric.tag.clone()));
    let word = text.to_lowercase();
    let all = catalog["metrics"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |row: &Value, field: &str| row[field].as_str().is_some_and(|text| text.to_lowercase().contains(&word));
    let named = |row: &&Value| match templates.is_empty() {
        true => has(row, "tag") || has(row, "title"),
        false => row["tag"].as_str().is_some_and(|tag| templates.contains(tag)),
    };
    let metrics: Vec<&Value> = all.iter().filter(named).take(MAX_METRICS).collect();
    match metrics.is_empty() {
        true => Err(format!("no metric has the tag or the word {text:?}; try a shorter word, as gpu, clock or memory")),
        false => Ok(json!({ "metrics": metrics, "machines": sources, "series": series.len() })),
    }
}
