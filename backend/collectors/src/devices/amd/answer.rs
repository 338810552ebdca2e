//! Requests to AMD's command line tools, and their values of one GPU.

use super::accelerator::AcceleratorReading;
use crate::Out;
use crate::devices::gpu_reading::GpuReading;
use serde_json::Value;

/// One command line of a tool, and the parser of its output.
pub(super) struct AmdForm {
    pub args: &'static [&'static str],
    pub document: fn(&[u8]) -> Option<Value>,
}

/// Values of one GPU from a tool.
pub(super) struct AmdGpu {
    /// The tool's GPU number, or the number of `cardN`.
    pub number: u32,
    /// PCI address if the tool prints it, else the tool's own number.
    pub identity: String,
    pub reading: GpuReading,
    pub more: AcceleratorReading,
}

impl AmdGpu {
    /// Puts its values under a number.
    pub fn put(&self, i: u32, out: &mut Out) {
        self.reading.put(i, out);
        self.more.put(i, out);
    }
}
