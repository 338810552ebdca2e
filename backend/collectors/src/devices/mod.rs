//! Accelerators, one folder for each vendor, and what GPUs of all vendors share: their numbers and their common readings.

pub(crate) mod amd;
pub(crate) mod apple;
mod gpu_reading;
pub(crate) mod graphcore;
pub(crate) mod intel;
pub(crate) mod nvidia;
pub(crate) mod tpu;
pub(crate) mod trainium;
