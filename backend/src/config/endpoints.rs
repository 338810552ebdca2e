//! Endpoints to scrape, `--openmetrics NAME=URL` and `[[openmetrics]]`. Values of headers are secret: no error and no
//! print-out repeats them.

use super::option::OptionKind;
use super::secret::show_url;
use super::{ConfigError, value};
use collectors::openmetrics::{Endpoint, Filter};
use settings::kinds::{Field, TableSlot, any_pair, list};
use settings::{Fault, FileError, Inner, KeyKind, Takes, table};
use toml::de::DeValue;
use toml::{Spanned, Value};

table! {
    /// An endpoint as it stands in a file.
    ENDPOINT: FileTable<Endpoint> = { unnamed, check } {
        /// Your name for the endpoint: letters, digits, `_` and `-`
        name: text(settings::value::any), required like "\"node\"";
        /// Address of the endpoint, http or https
        url: text_shown(settings::value::any, show_url), required like "\"http://127.0.0.1:9100/metrics\"";
        /// Regular expressions of metric names to keep, or a table that maps each to regular expressions of label
        /// values [default: all]
        filters: own(filters, show_filters), like "{ \"DCGM_.*\" = { gpu = \"[01]\" } }";
        /// Additional headers of each request; their values are never logged or printed
        headers: secret_map(any_pair), like "{ Authorization = \"Bearer ...\" }";
        /// Time between its readings, if longer than the interval
        every: text(value::every), like "\"15s\"";
    }
}

fn unnamed() -> Endpoint {
    Endpoint { name: String::new(), url: String::new(), filters: Vec::new(), headers: Vec::new(), every: None }
}

fn check(endpoint: &Endpoint) -> Result<(), Fault> {
    Ok(endpoint.check()?)
}

/// The list of endpoints.
pub struct Endpoints<C: 'static>(Field<C, Vec<Endpoint>>);

/// Stores the endpoints in this field.
pub const fn endpoint_tables<C>(field: Field<C, Vec<Endpoint>>) -> Endpoints<C> {
    Endpoints(field)
}

impl<C> KeyKind<C> for Endpoints<C> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        (self.0.at)(at).read_tables(&ENDPOINT, value)
    }

    fn show(&self, of: &C) -> Option<Value> {
        (self.0.get)(of).show_tables(&ENDPOINT)
    }

    fn inner(&self) -> Option<Inner> {
        Some(Inner { is_list: true, keys: ENDPOINT.texts() })
    }
}

impl<C> OptionKind<C> for Endpoints<C> {
    fn takes(&self) -> Takes {
        Takes::Many
    }

    fn is_secret(&self) -> bool {
        true
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if text.is_empty() { Ok(()) } else { flag(text).map(drop) }
    }

    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String> {
        *(self.0.at)(at) = list(flag, texts)?;
        Ok(())
    }
}

/// One endpoint on the command line: `NAME=URL`.
fn flag(text: &str) -> Result<Endpoint, String> {
    let wrong = || "write a name and an address, like node=http://127.0.0.1:9100/metrics".to_string();
    let (name, url) = text.split_once('=').ok_or_else(wrong)?;
    let endpoint = Endpoint { name: name.into(), url: url.into(), ..unnamed() };
    endpoint.check().map(|()| endpoint)
}

/// Refuses two endpoints of one name: their tags would collide.
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

#[allow(clippy::ptr_arg, reason = "a kind of a key takes the field as it is")]
fn show_filters(filters: &Vec<Filter>) -> Option<Value> {
    let labels = |filter: &Filter| filter.labels.iter().map(|(l, r)| (l.clone(), r.as_str().into())).collect();
    match filters.iter().any(|filter| !filter.labels.is_empty()) {
        true => Some(Value::Table(filters.iter().map(|f| (f.name.clone(), Value::Table(labels(f)))).collect())),
        false if filters.is_empty() => None,
        false => Some(Value::Array(filters.iter().map(|f| Value::from(f.name.as_str())).collect())),
    }
}
