//! Metrics that are scraped from endpoints with Prometheus or OpenMetrics text.
//!
//! A name that an endpoint prints becomes a row at run time, `openmetrics.{endpoint}.{sample}` with the placeholder
//! `{labels}` after it. The placeholder is for the sorted labels in their braces, or for nothing. Until then, such a
//! tag uses the row here.

use super::{MetricDef, Range};
use crate::unit::Unit;

/// Any sample of any endpoint; template of the rows that are created at run time.
pub static SAMPLE: MetricDef = MetricDef::gauge("openmetrics.{sample}", Unit::Count)
    .title("Scraped samples")
    .on("openmetrics", "{sample}")
    .range(Range::Fit)
    .steps(0.0)
    .help("A sample as the endpoint printed it: the endpoint's name in the configuration, the sample's name, and its labels in braces when it has any. W&B numbers label sets in order of appearance instead (openmetrics.{endpoint}.{sample}.0), and such tags are read too.");

/// The only row.
pub static ROWS: &[&MetricDef] = &[&SAMPLE];
