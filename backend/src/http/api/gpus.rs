//! Identity of a GPU: UUID, PCI address and name. They belong to the instance and not to its tag, since a series
//! continues under its number.

use crate::export::openmetrics::escape;
use crate::http::App;
use shared::wire::SourceId;
use std::fmt::Write;
use stream::live::Reader;

/// The labels of a GPU of a source; empty without known facts.
pub(in crate::http) fn labels(app: &App, source: SourceId, number: &str) -> Vec<(&'static str, String)> {
    let known = app.live.source(source).gpus.known();
    let gpu = known.into_iter().find(|(known, _)| known.to_string() == number);
    gpu.map(|(_, labels)| labels).unwrap_or_default()
}

/// Help of `watchglass_gpu_info`.
pub(in crate::http) const GPU_INFO: &str = "UUID, PCI address and name of a GPU.";

/// The row of each GPU for Prometheus, to be joined by the labels `source` and `gpu`.
pub(in crate::http) fn rows(app: &App, reader: &Reader, text: &mut String) {
    let sources = reader.sources();
    let known = sources.iter().flat_map(|source| {
        let known = app.live.source(source.id).gpus.known();
        known.into_iter().map(|(number, labels)| (source.name.as_str(), number, labels))
    });
    let mut head = format!("# HELP watchglass_gpu_info {GPU_INFO}\n# TYPE watchglass_gpu_info gauge\n");
    for (source, number, labels) in known {
        text.push_str(&std::mem::take(&mut head));
        let _ = write!(text, "watchglass_gpu_info{{source=\"{}\",gpu=\"{number}\"", escape(source, true));
        for (label, value) in labels {
            let _ = write!(text, ",{label}=\"{}\"", escape(&value, true));
        }
        text.push_str("} 1\n");
    }
}
