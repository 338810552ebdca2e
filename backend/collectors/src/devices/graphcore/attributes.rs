//! Attributes of a device in the output of Graphcore's tools: keys with values that include their unit, as text or
//! JSON.

use serde_json::Value;
use shared::catalog::{MetricDef, ipu};

/// One device.
#[derive(Debug)]
pub(super) struct Device {
    /// The tool's device ID.
    pub id: u32,
    /// PID of the process that uses it.
    pub user: Option<u32>,
    /// Its numeric attributes.
    pub attributes: Vec<IpuAttribute>,
}

/// A number and the metric that it belongs to.
#[derive(Debug)]
pub(super) struct IpuAttribute {
    pub row: &'static MetricDef,
    /// For metrics with free text: the device ID, and the part of the key that the metric's tag lacks.
    pub instance: Option<String>,
    pub value: f64,
}

/// Key suffixes whose numbers identify a part and measure nothing, and their metrics.
static IDENTIFIERS: &[(&str, &MetricDef)] =
    &[("id", &ipu::ID), ("index", &ipu::INDEX), ("node", &ipu::NODE), ("slot", &ipu::SLOT)];

/// A key with a metric of its own: its unit, its metric, and the range of plausible values.
type Varying = (&'static str, &'static str, &'static MetricDef, std::ops::RangeInclusive<f64>);
static VARYING: &[Varying] = &[
    ("average board temp", "C", &ipu::BOARD_TEMP, -40.0..=150.0),
    ("average die temp", "C", &ipu::DIE_TEMP, -40.0..=150.0),
    ("clock", "MHz", &ipu::CLOCK, 0.0..=1e5),
    ("ipu power", "W", &ipu::POWER, 0.0..=1e4),
    ("total board power", "W", &ipu::BOARD_POWER, 0.0..=1e4),
    ("ipu utilisation", "%", &ipu::UTILIZATION, 0.0..=100.0),
    ("ipu utilisation (session)", "%", &ipu::SESSION_UTILIZATION, 0.0..=100.0),
];

/// Maximum numbers of devices and of attributes per device. The limits prevent series from malformed output.
const MAX_DEVICES: usize = 256;
const MAX_ATTRIBUTES: usize = 128;

/// Texts that may look like numbers.
const PRIVATE: &[&str] = &["user name", "user executable", "board serial number"];

/// Devices in the output of `gc-info -i` or `gc-inventory`, text or JSON; empty if it is neither.
///
/// An unterminated last line is skipped, because it may contain a part of a number.
pub(super) fn devices(output: &[u8]) -> Vec<Device> {
    let text = String::from_utf8_lossy(output);
    // Lines before JSON are warnings.
    let json = text.split_inclusive('\n').scan(0, |at, line| {
        let begin = std::mem::replace(at, *at + line.len());
        Some((begin, line))
    });
    let json = json.filter(|(_, line)| line.trim_start().starts_with(['{', '['])).map(|(at, _)| &text[at..]).next();
    let mut devices = match json.and_then(|json| serde_json::Deserializer::from_str(json).into_iter::<Value>().next()) {
        Some(Ok(json)) => in_json(&json),
        _ => in_text(&text),
    };
    devices.truncate(MAX_DEVICES);
    devices
}

fn in_text(text: &str) -> Vec<Device> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut devices: Vec<Vec<(&str, &str)>> = Vec::new();
    for (key, value) in whole.lines().filter_map(|line| line.split_once(':')) {
        let (key, value) = (key.trim(), value.trim());
        if key == "id" {
            devices.push(Vec::new());
        }
        if let Some(device) = devices.last_mut().filter(|_| !value.is_empty()) {
            device.push((key, value));
        }
    }
    devices.into_iter().filter_map(|pairs| device(pairs.into_iter())).collect()
}

/// Objects with an `id` at any depth: the tools wrap them in lists of devices or of cards.
fn in_json(json: &Value) -> Vec<Device> {
    match json {
        Value::Array(list) => list.iter().flat_map(in_json).collect(),
        Value::Object(map) if map.contains_key("id") => {
            let texts: Vec<(&str, String)> = map
                .iter()
                .filter_map(|(key, value)| match value {
                    Value::String(text) => Some((key.trim(), text.clone())),
                    Value::Number(number) => Some((key.trim(), number.to_string())),
                    _ => None,
                })
                .collect();
            device(texts.iter().map(|(key, text)| (*key, text.as_str()))).into_iter().collect()
        }
        Value::Object(map) => map.values().flat_map(in_json).collect(),
        _ => Vec::new(),
    }
}

fn device<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Option<Device> {
    let whole = |key| pairs.clone().find(|pair| pair.0 == key).and_then(|pair| pair.1.trim().parse::<u32>().ok());
    let id: u32 = whole("id")?;
    let user = whole("user process id");
    let attributes = pairs.filter_map(|(key, value)| attribute(id, key, value)).take(MAX_ATTRIBUTES).collect();
    Some(Device { id, user, attributes })
}

/// The numeric attribute of a key; none for text, `N/A`, a missing unit, or an implausible value.
fn attribute(id: u32, key: &str, value: &str) -> Option<IpuAttribute> {
    if let Some((_, unit, row, possible)) = VARYING.iter().find(|known| known.0 == key) {
        let value = with_unit(value, unit).filter(|value| possible.contains(value))?;
        return Some(IpuAttribute { row, instance: None, value });
    }
    // The metrics' tags end with these words themselves.
    if let Some(before) = key.strip_suffix("speed") {
        let value = with_unit(value, "GT/s")?;
        return Some(IpuAttribute { row: &ipu::LINK_SPEED, instance: Some(format!("{id}.{before}")), value });
    }
    if PRIVATE.contains(&key) {
        return None;
    }
    let value = number(value)?;
    let identifier = IDENTIFIERS.iter().find_map(|(end, row)| {
        let before = key.strip_suffix(end).filter(|before| before.is_empty() || before.ends_with(' '))?;
        Some((*row, before))
    });
    let (row, rest) = identifier.unwrap_or((&ipu::OTHER, key));
    Some(IpuAttribute { row, instance: Some(format!("{id}.{rest}")), value })
}

fn with_unit(value: &str, unit: &str) -> Option<f64> {
    number(value.trim().strip_suffix(unit)?)
}

/// A decimal number. Other forms that Rust would parse (`inf`, `nan`) are rejected.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

/// Single devices in the output of `gc-info -l`. Groups of several IPUs have IDs too, and are left out.
pub(super) fn listed(text: &str) -> Vec<u32> {
    let single = |line: &&str| line.starts_with("-+-") && !line.contains("Multi IPU");
    let id = |line: &str| line.split_once("Id: [")?.1.split_once(']')?.0.trim().parse().ok();
    text.lines().map(str::trim_start).filter(single).filter_map(id).collect()
}
