//! The calls for one GPU in one tick. Each is made when it is due, and none after the GPU is known to be lost.

use super::reading::{NvidiaReading, ValueSubject};
use super::retry::{MUST_BE_RESET, NvmlFailure, Retry, failure};
use nvml_wrapper::error::NvmlError;
use shared::catalog::MetricDef;

/// The calls that can fail independently; see [`Retry`].
#[derive(Clone, Copy)]
pub(super) enum Call {
    Utilization,
    Memory,
    Temperature,
    Fields,
    Power,
    Energy,
    SmClock,
    MemoryClock,
    GraphicsClock,
    Corrected,
    Uncorrected,
    Fan,
    Encoder,
    Decoder,
    Throttle,
    Compute,
    Graphics,
    Shared,
    Shares,
    Profile,
}

impl Call {
    /// Number of calls.
    pub const COUNT: usize = Call::Profile as usize + 1;

    /// Whether the call names a part of the GPU by number. Then an invalid-argument error means that the GPU has no
    /// such part. Driver 580 reports this for the fan of a board without one.
    fn names_a_part(self) -> bool {
        matches!(
            self,
            Call::Temperature
                | Call::SmClock
                | Call::MemoryClock
                | Call::GraphicsClock
                | Call::Corrected
                | Call::Uncorrected
                | Call::Fan
        )
    }

    fn name(self) -> &'static str {
        match self {
            Call::Utilization => "utilization",
            Call::Memory => "memory",
            Call::Temperature => "temperature",
            Call::Fields => "field values",
            Call::Power => "power",
            Call::Energy => "energy",
            Call::SmClock | Call::MemoryClock | Call::GraphicsClock => "a clock",
            Call::Corrected | Call::Uncorrected => "memory errors",
            Call::Fan => "fan",
            Call::Encoder => "encoder",
            Call::Decoder => "decoder",
            Call::Throttle => "throttle reasons",
            Call::Compute | Call::Graphics | Call::Shared => "processes",
            Call::Shares => "shares of processes",
            Call::Profile => "profiling counters",
        }
    }
}

/// Makes the due calls of one tick, and none after the GPU is known to be lost.
pub(super) struct Asker {
    pub retries: [Retry; Call::COUNT],
    pub reading: NvidiaReading,
    /// The call whose failure is in the reading.
    pub failed: Option<Call>,
}

impl Asker {
    /// No call was made yet in this tick.
    pub fn new(retries: [Retry; Call::COUNT]) -> Self {
        Asker { retries, reading: NvidiaReading::default(), failed: None }
    }

    /// Makes a call if it is due.
    pub fn ask<T>(&mut self, call: Call, ask: impl FnOnce() -> Result<T, NvmlError>) -> Option<T> {
        let retry = &mut self.retries[call as usize];
        if self.reading.stopped() || !retry.due() {
            return None;
        }
        match ask() {
            Ok(value) => {
                retry.worked();
                self.reading.answered = true;
                Some(value)
            }
            Err(error) => {
                retry.failed();
                let failure = match &error {
                    NvmlError::InvalidArg if call.names_a_part() => NvmlFailure::Unsupported,
                    error => failure(error),
                };
                if failure != NvmlFailure::Unsupported {
                    let reason = match failure {
                        NvmlFailure::Reset => format!("{}: {MUST_BE_RESET}", call.name()),
                        _ => format!("{}: {error}", call.name()),
                    };
                    self.reading.fail(failure, reason);
                    if self.reading.stopped() || self.failed.is_none() {
                        self.failed = Some(call);
                    }
                }
                None
            }
        }
    }

    /// Puts a computed value of the whole GPU, if there is one.
    pub fn put_rounded(&mut self, def: &'static MetricDef, computed: Option<f64>) {
        self.put(def, computed.map(|value| def.rounded(value)));
    }

    /// Puts a value of the whole GPU, if there is one.
    pub fn put(&mut self, def: &'static MetricDef, value: Option<f64>) {
        self.reading.put(def, ValueSubject::Gpu, value);
    }
}
