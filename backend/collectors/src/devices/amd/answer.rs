//! What AMD's command line tools are asked, and what they say of one GPU.

use crate::devices::gpu_reading::GpuReading;
use serde_json::Value;

/// One way to ask a tool, and how its answer becomes a document.
pub(super) struct AmdForm {
    pub args: &'static [&'static str],
    pub document: fn(&[u8]) -> Option<Value>,
}

/// What a tool said of one GPU.
pub(super) struct AmdGpu {
    /// The tool's number, or that of `cardN`.
    pub number: u32,
    /// PCI address where the tool tells it, else the tool's own number.
    pub identity: String,
    pub reading: GpuReading,
}
