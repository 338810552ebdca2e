//! Which GPU a number stands for: its UUID, PCI address and name. They are facts of the instance and no part of its tag,
//! since a series goes on under its number.

use super::App;
use crate::export::openmetrics::escape;
use std::fmt::Write;

/// The labels of a GPU of a source; none where it is not measured here, or nothing is known of it.
pub(super) fn labels(app: &App, source: u16, number: &str) -> Vec<(&'static str, String)> {
    let known = app.hub.gpus.get().filter(|(own, _)| *own == source).map(|(_, numbers)| numbers.known());
    let gpu = known.into_iter().flatten().find(|(known, _)| known.to_string() == number);
    gpu.map(|(_, labels)| labels).unwrap_or_default()
}

/// The row of each GPU for Prometheus, to be joined by the labels `source` and `gpu`.
pub(super) fn rows(app: &App, text: &mut String) {
    let Some((source, numbers)) = app.hub.gpus.get() else { return };
    let Some(source) = app.hub.store().sources().into_iter().find(|s| s.id == *source) else { return };
    let known = numbers.known();
    if !known.is_empty() {
        text.push_str("# HELP watchglass_gpu_info Which GPU a number stands for.\n# TYPE watchglass_gpu_info gauge\n");
    }
    for (number, labels) in known {
        let _ = write!(text, "watchglass_gpu_info{{source=\"{}\",gpu=\"{number}\"", escape(&source.name, true));
        for (label, value) in labels {
            let _ = write!(text, ",{label}=\"{}\"", escape(&value, true));
        }
        text.push_str("} 1\n");
    }
}
