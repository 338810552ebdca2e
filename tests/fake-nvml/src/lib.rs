//! NVML without a GPU: a shared library that answers from a scenario, and the handle by which tests control it.
//!
//! The real wrapper loads the library, so that tests cover everything between a driver and a reading. A scenario is
//! JSON: `{"driver_version", "cuda_version", "gpus": [...]}`. Each GPU has the form of [`scenario::Gpu`]. A value that
//! is `null` or missing is not supported by the card. The other keys are `init`, `faults` and `xids`, see
//! [`scenario::Scenario`]. The scenario is read from the file that `FAKE_NVML_SCENARIO` names, else from
//! `scenario.json` in the library's folder. [`Fake`] replaces it while the library runs. Functions that are not
//! exported here are missing on purpose.
//!
//! Reading order: [`scenario`], `state`, `exports`. Tests need only [`Fake`].

pub mod scenario;

#[cfg(unix)]
mod control;
#[cfg(unix)]
mod exports;
mod state;

#[cfg(unix)]
pub use control::Fake;
