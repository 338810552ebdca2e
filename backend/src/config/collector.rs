//! `[collectors.NAME]` and `--collectors`: enabled collectors, their intervals, and the options that each declares for
//! itself.

use super::option::OptionKind;
use super::value;
use collectors::{COLLECTORS, OptionRow};
use settings::kinds::{Field, list, single, texts};
use settings::{Fault, FileError, KeyKind, Takes, Written, deserialized, nearest, table, table_of, unknown_key};
use std::collections::BTreeMap;
use std::time::Duration;
use toml::de::DeValue;
use toml::{Spanned, Table, Value};

/// Settings of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorConfig {
    /// Its name in the registration table.
    pub name: String,
    /// False when it is disabled.
    pub enabled: bool,
    /// Time between its readings when it is longer than the interval; none: every tick.
    pub every: Option<Duration>,
    /// Timeout of one reading; none: [`collectors::deadline`] of the interval.
    pub deadline: Option<Duration>,
    /// The set values of the options that it declares, by key.
    pub own: BTreeMap<&'static str, Vec<String>>,
}

impl CollectorConfig {
    /// Default settings of a collector.
    pub fn new(name: &str) -> Self {
        CollectorConfig { name: name.into(), enabled: true, every: None, deadline: None, own: BTreeMap::new() }
    }
}

/// Default settings of all collectors.
pub fn defaults() -> Vec<CollectorConfig> {
    COLLECTORS.iter().map(|entry| CollectorConfig::new(entry.name)).collect()
}

/// The options that a collector declares for itself.
pub fn own_options(collector: &str) -> &'static [&'static OptionRow] {
    COLLECTORS.iter().find(|entry| entry.name == collector).map_or(&[], |entry| entry.options)
}

table! {
    /// Options that every collector has, in the file only.
    pub COMMON: FileTable<CollectorConfig> = { unnamed, any_values } {
        /// Enable the collector
        enabled: text(value::switch);
        /// Time between its readings, if longer than the interval
        every: text(value::every), like "\"5s\"";
        /// Timeout after which a reading counts as hung
        deadline: text(value::deadline), like "\"10s\"";
    }
}

fn unnamed() -> CollectorConfig {
    CollectorConfig::new("")
}

fn any_values(_: &CollectorConfig) -> Result<(), Fault> {
    Ok(())
}

/// The tables `[collectors.NAME]`, and the flag that selects collectors.
pub struct Collectors<C: 'static>(Field<C, Vec<CollectorConfig>>);

/// Stores the settings of collectors in this field.
pub const fn collector_tables<C>(field: Field<C, Vec<CollectorConfig>>) -> Collectors<C> {
    Collectors(field)
}

impl<C> KeyKind<C> for Collectors<C> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let collectors = (self.0.at)(at);
        for (name, settings) in table_of(value)?.1 {
            let (at, name) = (settings.span().start, name.get_ref());
            match collectors.iter_mut().find(|collector| collector.name == *name) {
                Some(collector) => read_one(collector, settings)?,
                None => return Err(FileError::new(at, unknown_collector(name, &names(collectors)))),
            }
        }
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        let all = (self.0.get)(of).iter().map(|collector| (collector.name.clone(), Value::Table(show_one(collector))));
        Some(Value::Table(all.collect()))
    }
}

impl<C> OptionKind<C> for Collectors<C> {
    fn takes(&self) -> Takes {
        Takes::Many
    }

    fn has_hyphens(&self) -> bool {
        true
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    /// `cpu,memory` selects those two, `-disk` removes one, `+disk` adds it again. A list with all three kinds selects
    /// first, then adds, and removes last.
    fn set(&self, at: &mut C, texts: &[String]) -> Result<(), String> {
        let collectors = (self.0.at)(at);
        let bare = |text: &String| text.strip_prefix(['-', '+']).unwrap_or(text).to_string();
        let known = names(collectors);
        if let Some(name) = texts.iter().map(bare).find(|name| !known.contains(&name.as_str())) {
            return Err(unknown_collector(&name, &known));
        }
        let signed = |sign: char| move |name: &str| texts.iter().any(|text| text.strip_prefix(sign) == Some(name));
        let keeps_some = texts.iter().any(|text| !text.starts_with(['-', '+']));
        for collector in collectors {
            let name = collector.name.as_str();
            if keeps_some {
                collector.enabled = texts.iter().any(|text| text == name);
            }
            collector.enabled |= signed('+')(name);
            collector.enabled &= !signed('-')(name);
        }
        Ok(())
    }
}

fn names(collectors: &[CollectorConfig]) -> Vec<&str> {
    collectors.iter().map(|collector| collector.name.as_str()).collect()
}

fn unknown_collector(name: &str, known: &[&str]) -> String {
    format!("there is no collector {name:?}{}", nearest(name, known))
}

/// Reads one `[collectors.NAME]`.
fn read_one(collector: &mut CollectorConfig, settings: Spanned<DeValue<'_>>) -> Result<(), FileError> {
    let own = own_options(&collector.name);
    let (at, settings) = table_of(settings)?;
    for (key, value) in settings {
        let name = key.get_ref().as_ref();
        if let Some(row) = COMMON.keys.iter().find(|row| row.name == name) {
            row.kind.read(collector, value)?;
        } else if let Some(row) = own.iter().find(|row| row.key == name) {
            read_own(row, collector, value)?;
        } else {
            let mut owners: Vec<_> = COLLECTORS.iter().filter(|entry| entry.option(name).is_some()).collect();
            owners.sort_unstable_by_key(|entry| entry.name);
            if !owners.is_empty() {
                let owners: Vec<String> = owners.iter().map(|entry| format!("[collectors.{}]", entry.name)).collect();
                return Err(FileError::new(at, format!("`{name}` belongs below {}", owners.join(" or "))));
            }
            let known: Vec<&str> =
                COMMON.keys.iter().map(|row| row.name).chain(own.iter().map(|row| row.key)).collect();
            return Err(FileError::new(key.span().start, unknown_key(name, &known)));
        }
    }
    Ok(())
}

/// Reads an option that the collector declares for itself.
fn read_own(
    row: &'static OptionRow,
    collector: &mut CollectorConfig,
    value: Spanned<DeValue<'_>>,
) -> Result<(), FileError> {
    let at = value.span().start;
    let texts = texts::<String>(deserialized(value)?).and_then(|texts| match row.is_list {
        true => list(row.parse, &texts),
        false => Ok(vec![(row.parse)(single(&texts)?)?]),
    });
    let texts = texts.map_err(|message| FileError::new(at, message))?;
    // An empty list equals no key.
    if !texts.is_empty() {
        collector.own.insert(row.key, texts);
    }
    Ok(())
}

fn show_one(collector: &CollectorConfig) -> Table {
    let common = COMMON.print(collector).into_iter();
    let own = own_options(&collector.name).iter().filter(|row| row.moved_to.is_none()).filter_map(|row| {
        let texts = collector.own.get(row.key).map(Vec::as_slice);
        let value = match row.is_list {
            true => Value::Array(texts.unwrap_or_default().iter().map(Written::show).collect()),
            false => Written::show(texts?.first()?),
        };
        Some((row.key.to_string(), value))
    });
    common.chain(own).collect()
}
