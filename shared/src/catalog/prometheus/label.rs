//! Instances as labels, and back.

use super::{ENDPOINT, EXPORTED, SOURCE};
use crate::catalog::tag;
use std::borrow::Cow;

/// The label of a rank's series.
const RANK: &str = "rank";

type Label<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The labels of parts that have a name; the others have numbers.
const BLOCK: &str = "block";
const POD: &str = "pod";

/// Name of the label for the placeholder of a template.
pub fn name(template: &str) -> Option<&str> {
    let (before, after, _) = tag::split(template)?;
    let placeholder = &template[before.len() + 1..template.len() - after.len() - 1];
    let family = template.split('.').next().unwrap_or(template);
    Some(match (family, placeholder) {
        ("cpu" | "trn", "i") => "core",
        ("gpu", "process" | "block" | "pod" | "i.xgmi.j" | "i.xcc.j") => "gpu",
        ("kernel", _) => "kernel",
        (family, "i") => family,
        (_, "dev") => "device",
        (_, "path") => "mountpoint",
        // `endpoint` already names the origin of a scraped series.
        (_, "endpoint") => "target",
        (_, placeholder) => placeholder,
    })
}

/// An instance may name a part: `0.mig.3` is a device that MIG cut from a GPU, `0.proc.4711` a process on it, `0.xcp.1`
/// a partition of an AMD GPU, `0.xgmi.3` one of its links, `0.xcc.5` one of its dies, `0.ecc.gfx` one of its blocks,
/// `0.pod.space/name` a pod that holds it, and `0a1b2c3d.gpu.0` a GPU of a kernel.
fn parts_of(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "gpu" => &[
            ("pid", ".proc."),
            ("mig", ".mig."),
            ("partition", ".xcp."),
            ("link", ".xgmi."),
            ("xcc", ".xcc."),
            (BLOCK, ".ecc."),
            (POD, ".pod."),
        ],
        "kernel" => &[("gpu", ".gpu.")],
        _ => &[],
    }
}

/// Labels of an instance of a template.
pub fn parse_labels<'a>(template: &'a str, instance: &'a str) -> Vec<Label<'a>> {
    let Some(name) = name(template) else {
        // A rank's series has its number or its label.
        let label = tag::label(template, instance);
        let rank = |label: &'a str| label.strip_prefix("rank_").filter(|_| tag::rank(label).is_some()).unwrap_or(label);
        return label.map(|label| (RANK.into(), rank(label).into())).into_iter().collect();
    };
    let (mut whole, mut parts) = (instance, Vec::new());
    for (part, word) in parts_of(name) {
        let is_of_name = |b: u8| match *part {
            BLOCK => b.is_ascii_lowercase() || b == b'_',
            POD => b.is_ascii_lowercase() || matches!(b, b'-' | b'.' | b'/'),
            _ => false,
        };
        let is_part = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || is_of_name(b));
        if let Some((before, number)) = whole.rsplit_once(word)
            && is_part(number)
            && (name == "kernel" || before.starts_with(|c: char| c.is_ascii_hexdigit()))
        {
            parts.push(((*part).into(), number.into()));
            whole = before;
        }
    }
    std::iter::once((name.into(), whole.into())).chain(parts.into_iter().rev()).collect()
}

/// The instance of a template that has these labels.
pub fn instance(template: &str, labels: &[(&str, &str)]) -> Option<String> {
    let value = |name: &str| labels.iter().find(|(label, _)| *label == name).map(|(_, value)| *value);
    let Some(name) = name(template) else {
        let label = |rank: &str| match rank.parse::<u32>() {
            Ok(number) => format!("{}rank_{number}", tag::LABEL),
            Err(_) => format!("{}{rank}", tag::LABEL),
        };
        return Some(value(RANK).map(label).unwrap_or_default());
    };
    let mut instance = value(name).filter(|value| !value.is_empty())?.to_string();
    for (part, word) in parts_of(name).iter().rev() {
        if let Some(number) = value(part) {
            instance.push_str(word);
            instance.push_str(number);
        }
    }
    Some(instance)
}

/// A scraped label's name without its prefix.
pub fn plain(mut name: &str) -> &str {
    while let Some(rest) = name.strip_prefix(EXPORTED) {
        name = rest;
    }
    name
}

/// Labels of a scraped series as its tag has them: sorted, escaped, in braces; empty if there are none. `row` is the
/// label that its row has already.
pub fn written(labels: &[(&str, &str)], row: Option<&str>) -> String {
    let own = labels.iter().filter(|(name, _)| *name != SOURCE && *name != ENDPOINT && Some(*name) != row);
    let mut own: Vec<(&str, &str)> = own
        .map(|&(name, value)| match plain(name) {
            SOURCE | ENDPOINT => (name.strip_prefix(EXPORTED).unwrap_or(name), value),
            _ => (name, value),
        })
        .collect();
    own.sort_unstable();
    tag::label_text(&own)
}
