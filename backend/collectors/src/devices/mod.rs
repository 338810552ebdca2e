//! Accelerators, one folder per vendor, and the parts common to GPUs of all vendors: numbers and readings.

pub(crate) mod amd;
pub(crate) mod apple;
pub(crate) mod ascend;
mod gpu_reading;
pub(crate) mod graphcore;
pub(crate) mod intel;
pub(crate) mod nvidia;
pub(crate) mod tpu;
pub(crate) mod trainium;
