//! Endpoints to scrape, `--openmetrics NAME=URL` and `[[openmetrics]]`. Values of headers are secret: no error and no
//! print-out repeats them.

use super::file_error::{FileError, deserialized};
use super::option::{Field, OptionKind, list};
use super::written::Takes;
use super::{ConfigError, show_duration, value};
use collectors::openmetrics::{Endpoint, Filter};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::de::DeValue;
use toml::{Spanned, Table, Value};

/// The list of endpoints.
pub struct Endpoints<C: 'static> {
    /// Where they are kept.
    pub field: Field<C, Vec<Endpoint>>,
}

impl<C> OptionKind<C> for Endpoints<C> {
    fn takes(&self) -> Takes {
        Takes::Many
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("name", "Your name for the endpoint: letters, digits, `_` and `-`"),
            ("url", "Its address, http or https"),
            ("filters", "Regular expressions of the names to keep, or a table from each to those of label values"),
            ("headers", "Headers that are sent along; their values are never logged and never printed"),
            ("every", "Time between its readings, if it is to be longer than the interval"),
        ]
    }

    fn is_secret(&self) -> bool {
        true
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if text.is_empty() { Ok(()) } else { flag(text).map(drop) }
    }

    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String> {
        *(self.field.at)(at) = list(flag, texts)?;
        Ok(())
    }

    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let all: Vec<Checked> = deserialized(value)?;
        *(self.field.at)(at) = all.into_iter().map(|checked| checked.0).collect();
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        let endpoints = (self.field.get)(of);
        (!endpoints.is_empty()).then(|| print(endpoints))
    }
}

/// One endpoint on the command line: `NAME=URL`.
fn flag(text: &str) -> Result<Endpoint, String> {
    let wrong = || "write a name and an address, like node=http://127.0.0.1:9100/metrics".to_string();
    let (name, url) = text.split_once('=').ok_or_else(wrong)?;
    checked(Endpoint { name: name.into(), url: url.into(), filters: Vec::new(), headers: Vec::new(), every: None })
}

fn checked(endpoint: Endpoint) -> Result<Endpoint, String> {
    endpoint.check().map(|()| endpoint)
}

/// Two endpoints of one name could not be told apart in tags.
pub fn told_apart(endpoints: &[Endpoint]) -> Result<(), ConfigError> {
    let twice = endpoints.iter().enumerate().find(|(i, e)| endpoints[..*i].iter().any(|other| other.name == e.name));
    match twice {
        Some((_, endpoint)) => Err(ConfigError::new(format!(
            "openmetrics: two endpoints have the name {:?}; give each its own name",
            endpoint.name
        ))),
        None => Ok(()),
    }
}

/// One `[[openmetrics]]` of the file.
#[derive(Deserialize)]
#[serde(try_from = "Raw")]
struct Checked(Endpoint);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    url: String,
    filters: Option<Value>,
    headers: Option<BTreeMap<String, Value>>,
    every: Option<String>,
}

impl TryFrom<Raw> for Checked {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let header = |(name, value): (String, Value)| match value {
            Value::String(value) => Ok((name, value)),
            other => {
                Err(format!("the value of header {name:?} is a {}; write it in quotation marks", other.type_str()))
            }
        };
        let headers = raw.headers.unwrap_or_default().into_iter().map(header).collect::<Result<_, _>>()?;
        let every: Option<Duration> = raw.every.as_deref().map(value::every).transpose()?;
        let filters = raw.filters.map(filters).transpose()?.unwrap_or_default();
        checked(Endpoint { name: raw.name, url: raw.url, filters, headers, every }).map(Checked)
    }
}

/// A list of expressions, or a table from each to its labels: `{ "DCGM_.*" = { gpu = "[01]" } }`.
fn filters(value: Value) -> Result<Vec<Filter>, String> {
    let wrong =
        || "filters must be a list of expressions, or a table like { \"DCGM_.*\" = { gpu = \"[01]\" } }".to_string();
    let text = |value: Value| value.as_str().map(str::to_string).ok_or_else(wrong);
    match value {
        Value::String(name) => Ok(vec![Filter { name, labels: Vec::new() }]),
        Value::Array(list) => {
            list.into_iter().map(|value| Ok(Filter { name: text(value)?, labels: Vec::new() })).collect()
        }
        Value::Table(table) => {
            let filter = |(name, labels): (String, Value)| {
                let Value::Table(labels) = labels else { return Err(wrong()) };
                let labels = labels.into_iter().map(|(label, value)| Ok((label, text(value)?)));
                Ok(Filter { name, labels: labels.collect::<Result<_, String>>()? })
            };
            table.into_iter().map(filter).collect()
        }
        _ => Err(wrong()),
    }
}

/// The endpoints as they stand in a file, secrets as `***`.
fn print(endpoints: &[Endpoint]) -> Value {
    let table = |endpoint: &Endpoint| {
        let mut own = Table::new();
        own.insert("name".into(), endpoint.name.as_str().into());
        own.insert("url".into(), endpoint.shown_url().into());
        if endpoint.filters.iter().any(|filter| !filter.labels.is_empty()) {
            let labels = |filter: &Filter| filter.labels.iter().map(|(l, r)| (l.clone(), r.as_str().into())).collect();
            let all = endpoint.filters.iter().map(|f| (f.name.clone(), Value::Table(labels(f))));
            own.insert("filters".into(), Value::Table(all.collect()));
        } else if !endpoint.filters.is_empty() {
            let all = endpoint.filters.iter().map(|f| Value::from(f.name.as_str()));
            own.insert("filters".into(), Value::Array(all.collect()));
        }
        if !endpoint.headers.is_empty() {
            let hidden = endpoint.headers.iter().map(|(name, _)| (name.clone(), "***".into()));
            own.insert("headers".into(), Value::Table(hidden.collect()));
        }
        if let Some(every) = endpoint.every {
            own.insert("every".into(), show_duration(every).into());
        }
        Value::Table(own)
    };
    Value::Array(endpoints.iter().map(table).collect())
}
