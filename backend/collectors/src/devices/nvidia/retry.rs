//! Retry of a failed call: after 1, 5, then every 30 ticks, without end.

use nvml_wrapper::error::NvmlError;

/// Ticks from a failure to the next attempt.
const RETRY_TICKS: [u8; 3] = [1, 5, 30];

/// Message for a GPU that must be reset.
pub(super) const MUST_BE_RESET: &str = "the driver requires a reset of the GPU (sudo nvidia-smi --gpu-reset -i N \
    once it is unused, or restart the machine); values that it still reports are read";

/// Retry state of one call on one GPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retry {
    failures: u8,
    wait: u8,
}

impl Retry {
    /// Whether to call in this tick.
    pub fn due(&mut self) -> bool {
        let due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        due
    }

    /// Whether its last call failed.
    pub fn fails(&self) -> bool {
        self.failures > 0
    }

    /// The call worked.
    pub fn worked(&mut self) {
        *self = Retry::default();
    }

    /// The call failed.
    pub fn failed(&mut self) {
        self.wait = RETRY_TICKS[usize::from(self.failures).min(RETRY_TICKS.len() - 1)] - 1;
        self.failures = self.failures.saturating_add(1);
    }
}

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NvmlFailure {
    /// This card, mode or driver does not support the call; normal.
    Unsupported,
    /// The GPU is off the bus.
    Lost,
    /// The GPU must be reset. Values that do not need its engines are still reported.
    Reset,
    /// The driver gave up waiting for the GPU.
    Silent,
    /// The driver rejects all calls of this process, as in a container that lost its device group.
    Shut,
    /// This user lacks permission.
    Denied,
    /// Anything else.
    Other,
}

/// Classifies an error.
pub(super) fn failure(error: &NvmlError) -> NvmlFailure {
    match error {
        // 25 and 26: the driver has another version of the call's struct, or has removed the call.
        NvmlError::NotSupported
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound
        | NvmlError::NotFound
        | NvmlError::NoData
        | NvmlError::UnexpectedVariant(25 | 26) => NvmlFailure::Unsupported,
        NvmlError::GpuLost => NvmlFailure::Lost,
        NvmlError::ResetRequired => NvmlFailure::Reset,
        NvmlError::Timeout | NvmlError::IrqIssue => NvmlFailure::Silent,
        NvmlError::Unknown | NvmlError::OperatingSystem | NvmlError::Uninitialized => NvmlFailure::Shut,
        NvmlError::NoPermission => NvmlFailure::Denied,
        _ => NvmlFailure::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_fails_is_made_less_and_less_often_but_never_not_at_all() {
        let mut retry = Retry::default();
        let tries: Vec<u32> = (0..100)
            .filter(|_| {
                let due = retry.due();
                if due {
                    retry.failed();
                }
                due
            })
            .collect();
        assert_eq!(tries, [0, 1, 6, 36, 66, 96]);
        while !retry.due() {}
        retry.worked();
        assert!(retry.due() && retry.due());
    }
}
