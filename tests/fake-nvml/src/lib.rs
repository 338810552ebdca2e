//! NVML without a GPU: a shared library that answers from a scenario, and the handle by which tests steer it.
//!
//! The library is loaded by the real wrapper, so that all that stands between a driver and a reading is under test. A
//! scenario is JSON: `{"driver_version", "cuda_version", "gpus": [...]}` in the form of [`scenario::Gpu`], `null` or a
//! missing key for what the card does not support, and beside them `init`, `faults` and `xids`, see
//! [`scenario::Scenario`]. It is read from the file that `FAKE_NVML_SCENARIO` names, else from `scenario.json` beside
//! the library; [`Fake`] replaces it while the library runs. What is not exported here stays missing on purpose.
//!
//! Reading order: [`scenario`], `state`, `exports`; tests need [`Fake`] alone.

pub mod scenario;

#[cfg(unix)]
mod control;
#[cfg(unix)]
mod exports;
mod state;

#[cfg(unix)]
pub use control::Fake;
