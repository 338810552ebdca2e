//! Translation of W&B settings: the keys of a `wandb/settings` file that choose the measured machine and processes.

use collectors::openmetrics::{Endpoint, Filter};
use serde_json::Value;
use std::collections::BTreeMap;
use toml::Table;

/// Converts a value of W&B; none if it cannot be read.
type ReadValue = fn(&str) -> Option<toml::Value>;

/// The known settings: W&B's key, our key, and the conversion of the value.
const KNOWN_SETTINGS: &[(&str, &str, ReadValue)] = &[
    ("x_stats_pid", "pid", |text| Some(toml::Value::Array(vec![number(text)?]))),
    ("x_stats_gpu_device_ids", "gpu", numbers),
    ("x_stats_sampling_interval", "interval", |text| Some(seconds(text)?.into())),
    ("x_stats_disk_paths", "disk_paths", texts),
];

/// W&B's keys for endpoints of Prometheus pages: names and addresses, filters, and headers.
const ENDPOINTS: &str = "x_stats_open_metrics_endpoints";
const FILTERS: &str = "x_stats_open_metrics_filters";
const HEADERS: &str = "x_stats_open_metrics_http_headers";

/// Our configuration as TOML, with a comment for each setting of the machine without an equivalent here. `text` is the
/// file.
///
/// # Errors
/// A sentence: it is no such file, or a value cannot be read.
pub fn translated(text: &str) -> Result<String, String> {
    let mut ours = Table::new();
    let mut notes = Vec::new();
    let theirs = settings(text)?;
    for (name, value) in &theirs {
        if let Some((_, key, read)) = KNOWN_SETTINGS.iter().find(|(known, ..)| known == name) {
            let value = read(value).ok_or_else(|| format!("{name} is {value:?}, which cannot be read"))?;
            ours.insert((*key).into(), value);
        } else if name.starts_with("x_stats_") && ![ENDPOINTS, FILTERS, HEADERS].contains(&name.as_str()) {
            notes.push(format!("# {name} has no like here\n"));
        }
    }
    if let Some(endpoints) = theirs.get(ENDPOINTS) {
        let (filters, left_out) = filters_of(theirs.get(FILTERS))?;
        notes.extend(left_out);
        ours.insert("openmetrics".into(), endpoints_of(endpoints, &filters, theirs.get(HEADERS))?);
    }
    Ok(notes.concat() + &toml::to_string(&ours).map_err(|error| error.to_string())?)
}

/// Names and values of all sections: lines `name = value` or `name: value`; an indented line continues the value.
fn settings(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';', '[']) && !line.starts_with(char::is_whitespace) {
            last = None;
        } else if line.starts_with(char::is_whitespace)
            && let Some(value) = last.as_ref().and_then(|name| all.get_mut(name))
        {
            *value += trimmed;
        } else {
            let pair = trimmed.split_once(['=', ':']);
            let (name, value) = pair.ok_or_else(|| format!("line {}: write NAME = VALUE", at + 1))?;
            // Older versions wrote a prefix of two underscores.
            let name = name.trim().trim_start_matches('_');
            let name = if name.starts_with("stats_") { format!("x_{name}") } else { name.to_string() };
            all.insert(name.clone(), value.trim().to_string());
            last = Some(name);
        }
    }
    Ok(all)
}

fn number(text: &str) -> Option<toml::Value> {
    Some(text.parse::<u32>().ok()?.to_string().parse::<i64>().ok()?.into())
}

/// `[0, 1]`, `(0, 1)` or `0, 1`.
fn parts(text: &str) -> Vec<String> {
    let inner = text.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
    let part = |part: &str| part.trim().trim_matches(['"', '\'']).to_string();
    inner.split(',').map(part).filter(|part| !part.is_empty()).collect()
}

fn numbers(text: &str) -> Option<toml::Value> {
    parts(text).iter().map(|part| number(part)).collect::<Option<Vec<_>>>().map(toml::Value::Array)
}

fn texts(text: &str) -> Option<toml::Value> {
    Some(toml::Value::Array(parts(text).into_iter().map(toml::Value::String).collect()))
}

/// Seconds as a duration in our syntax: `15s`, `500ms`.
fn seconds(text: &str) -> Option<String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds > 0.0)?;
    Some(match seconds.fract() == 0.0 {
        true => format!("{seconds:.0}s"),
        false => format!("{:.0}ms", seconds * 1_000.0),
    })
}

/// A table as JSON, or as a Python literal.
fn object(name: &str, text: &str) -> Result<serde_json::Map<String, Value>, String> {
    let read = serde_json::from_str(text).or_else(|_| serde_json::from_str(&text.replace('\'', "\"")));
    match read {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(format!(
            "{name} is {text:?}, which is not JSON; write it like {{\"dcgm\": \"http://localhost:9400/metrics\"}}"
        )),
    }
}

/// A table as JSON, or a list of names without values.
fn table_or_list(name: &str, text: Option<&String>) -> Result<serde_json::Map<String, Value>, String> {
    match text {
        Some(text) if text.trim_start().starts_with('{') => object(name, text),
        Some(text) => Ok(parts(text).into_iter().map(|part| (part, Value::Null)).collect()),
        None => Ok(serde_json::Map::new()),
    }
}

/// W&B's filters, which have the meaning of ours: an expression that is searched in `ENDPOINT.METRIC`, and expressions
/// of labels. The second part is a comment for each that is no expression.
fn filters_of(text: Option<&String>) -> Result<(Table, Vec<String>), String> {
    let (mut filters, mut left_out) = (Table::new(), Vec::new());
    for (name, labels) in table_or_list(FILTERS, text)? {
        let labels = labels.as_object().into_iter().flatten();
        let labels: Vec<(String, String)> =
            labels.filter_map(|(label, value)| Some((label.clone(), value.as_str()?.to_string()))).collect();
        let filter = Filter { name: name.clone(), labels: labels.clone() };
        match filter.check() {
            Ok(()) => {
                let labels = labels.into_iter().map(|(label, value)| (label, value.into()));
                filters.insert(name, toml::Value::Table(labels.collect()));
            }
            Err(why) => left_out.push(format!("# a filter was left out: {}\n", why.replace('\n', " "))),
        }
    }
    Ok((filters, left_out))
}

/// One table for each endpoint. All filters apply to each, as in W&B.
fn endpoints_of(endpoints: &str, filters: &Table, headers: Option<&String>) -> Result<toml::Value, String> {
    let headers = table_or_list(HEADERS, headers)?;
    let mut all = Vec::new();
    for (name, url) in object(ENDPOINTS, endpoints)? {
        let url = url.as_str().ok_or_else(|| format!("{ENDPOINTS}: {name} has no address"))?;
        let ours: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' })
            .take(64)
            .collect();
        let endpoint =
            Endpoint { name: ours.clone(), url: url.into(), filters: Vec::new(), headers: Vec::new(), every: None };
        endpoint.check().map_err(|why| format!("{ENDPOINTS}: {name:?}: {why}"))?;
        let mut table = Table::from_iter([("name".into(), ours.into()), ("url".into(), url.into())]);
        if !filters.is_empty() {
            table.insert("filters".into(), filters.clone().into());
        }
        if !headers.is_empty() {
            let texts = headers.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into())));
            table.insert("headers".into(), toml::Value::Table(texts.collect()));
        }
        all.push(toml::Value::Table(table));
    }
    Ok(toml::Value::Array(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_machine_become_a_file_that_is_read() {
        let file = "[default]\nentity = lab\nx_stats_pid = 4711\nx_stats_sampling_interval = 0.5\n\
                    _stats_gpu_device_ids = [0, 2]\nx_stats_disk_paths: (\"/\", \"/data\")\n\
                    x_stats_open_metrics_endpoints = {\"dcgm\": \"http://localhost:9400/metrics\",\n  'x': 'http://localhost:1/metrics'}\n";
        let file = file.replace("'x': 'http://localhost:1/metrics'", "\"node\": \"http://localhost:9100/metrics\"");
        let filters = "x_stats_open_metrics_filters = {\"dcgm.DCGM_FI_DEV_GPU_TEMP\": {\"pod\": \"train-.*\"}, \".*\": {}}\n\
                       x_stats_buffer_size = 5\n";
        let made = translated(&(file + filters)).expect("settings");
        assert!(made.starts_with("# x_stats_buffer_size has no like here\n"), "{made}");
        let table: Table = made.parse().expect("TOML");
        assert_eq!(table["pid"].to_string(), "[4711]");
        assert_eq!(table["gpu"].to_string(), "[0, 2]");
        assert_eq!(
            (table["interval"].as_str(), table["disk_paths"].to_string().as_str()),
            (Some("500ms"), "[\"/\", \"/data\"]")
        );
        let endpoints = table["openmetrics"].as_array().expect("a list");
        assert_eq!(endpoints.len(), 2);
        assert_eq!(endpoints[0]["name"].as_str(), Some("dcgm"));
        for endpoint in endpoints {
            assert_eq!(endpoint["filters"]["dcgm.DCGM_FI_DEV_GPU_TEMP"]["pod"].as_str(), Some("train-.*"));
            assert!(endpoint["filters"].get(".*").is_some(), "a filter is what it is there");
        }
    }

    #[test]
    fn any_of_their_filters_gives_a_configuration_that_is_taken() {
        let of = |filters: &str| {
            let text = format!(
                "x_stats_open_metrics_endpoints = {{\"a\": \"http://localhost:1/metrics\"}}\n{FILTERS} = {filters}\n"
            );
            let made = translated(&text).unwrap_or_else(|why| panic!("{filters}: {why}"));
            let table: Table = made.parse().unwrap_or_else(|why| panic!("{made}: {why}"));
            let mut config = crate::config::Config::default();
            crate::config::file::apply("made", &made, &mut config).unwrap_or_else(|why| panic!("{made}: {why}"));
            let filters = table["openmetrics"][0].get("filters");
            (filters.map(|filters| filters.as_table().expect("a table").clone()), made)
        };
        for filter in
            ["a.*", ".*", "a\\\\..*", "^a[.]b_(c|d)$", "sgl_engine.*", "(?i)A", "node|a", "*", "a(", "[", "(?=x)y", ""]
        {
            let (kept, made) = of(&format!("{{\"{filter}\": {{}}}}"));
            let is_expression = !["*", "a(", "[", "(?=x)y"].contains(&filter);
            assert_eq!(kept.is_some(), is_expression, "{filter}: {made}");
            assert_eq!(made.contains("# a filter was left out"), !is_expression, "{filter}: {made}");
        }
        let (kept, _) = of("[\"a.x\", \"b\"]");
        assert_eq!(kept.map(|kept| kept.keys().cloned().collect::<Vec<_>>()), Some(vec!["a.x".into(), "b".into()]));
        let (kept, _) = of("{\"a.x\": {\"gpu\": \"[01]\"}, \"y\": {\"pod\": \"(\"}}");
        assert_eq!(kept.map(|kept| kept.len()), Some(1), "a label that is no expression takes its filter along");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        assert_eq!(translated("[default]\nentity = lab\n").as_deref(), Ok(""));
        assert!(translated("nonsense").expect_err("no setting").contains("line 1"));
        assert!(translated("x_stats_pid = me").expect_err("no number").contains("x_stats_pid"));
        assert!(translated("x_stats_open_metrics_endpoints = 5").expect_err("no table").contains("JSON"));
    }
}
