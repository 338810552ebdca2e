//! Values of one GPU of any vendor except NVIDIA in one tick, checked and put under the common metrics.

use crate::Out;
use shared::catalog::{MetricDef, gpu};

/// Values of one GPU in the units of the metrics. Values that it did not report are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GpuReading {
    /// Utilization, percent.
    pub utilization: Option<f64>,
    /// Memory read or written, percent of the time.
    pub activity: Option<f64>,
    /// AMD's memory overdrive, percent.
    pub overdrive: Option<f64>,
    /// Memory in use, percent. Used only if the bytes are absent.
    pub memory_percent: Option<f64>,
    /// Memory in use, bytes.
    pub memory_used: Option<f64>,
    /// Total memory, bytes.
    pub memory_total: Option<f64>,
    /// Power, watts.
    pub power: Option<f64>,
    /// Power limit, watts.
    pub power_limit: Option<f64>,
    /// Energy since an arbitrary start, joules.
    pub energy: Option<f64>,
    /// Temperature, degrees Celsius.
    pub temp: Option<f64>,
    /// Temperature of the memory, degrees Celsius.
    pub memory_temp: Option<f64>,
    /// AMD's shader clock, MHz.
    pub shader_clock: Option<f64>,
    /// Memory clock, MHz.
    pub memory_clock: Option<f64>,
    /// Actual or mean frequency on Intel and Apple, MHz.
    pub frequency: Option<f64>,
    /// Fan, percent.
    pub fan_percent: Option<f64>,
    /// Fan, revolutions per minute.
    pub fan_rpm: Option<f64>,
    /// Corrected memory errors.
    pub corrected: Option<f64>,
    /// Uncorrected memory errors.
    pub uncorrected: Option<f64>,
}

impl GpuReading {
    /// Whether no value was reported.
    pub fn is_empty(&self) -> bool {
        *self == GpuReading::default()
    }

    /// Puts the plausible values: during a reset a device reports impossible numbers.
    pub fn put(&self, i: u32, out: &mut Out) {
        let mut put = |row: &'static MetricDef, value: Option<f64>, from: f64, to: f64| {
            let value = value.filter(|value| (from..=to).contains(value));
            out.put_some(row, i, value);
            value
        };
        const ANY: f64 = f64::MAX;
        put(&gpu::UTILIZATION, self.utilization, 0.0, 100.0);
        put(&gpu::MEMORY_READ_WRITE_ACTIVITY, self.activity, 0.0, 100.0);
        put(&gpu::MEMORY_OVERDRIVE, self.overdrive, 0.0, 100.0);
        let total = put(&gpu::MEMORY_TOTAL_BYTES, self.memory_total, 1.0, ANY);
        let used = put(&gpu::MEMORY_ALLOCATED_BYTES, self.memory_used, 0.0, total.unwrap_or(ANY));
        let percent = used.zip(total).map(|(used, total)| gpu::MEMORY_ALLOCATED.rounded(100.0 * used / total));
        put(&gpu::MEMORY_ALLOCATED, percent.or(self.memory_percent), 0.0, 100.0);
        let power = put(&gpu::POWER_WATTS, self.power, 0.0, 2000.0);
        // A limit of zero means that none is set.
        let limit = put(&gpu::POWER_LIMIT_WATTS, self.power_limit, 0.001, 4000.0);
        let share = power.zip(limit).map(|(power, limit)| gpu::POWER_PERCENT.rounded(100.0 * power / limit));
        put(&gpu::POWER_PERCENT, share, 0.0, ANY);
        put(&gpu::ENERGY_JOULES, self.energy, 0.0, ANY);
        put(&gpu::TEMP, self.temp, -40.0, 150.0);
        put(&gpu::MEMORY_TEMP, self.memory_temp, -40.0, 150.0);
        put(&gpu::SM_CLOCK, self.shader_clock, 0.0, 10_000.0);
        put(&gpu::MEMORY_CLOCK, self.memory_clock, 0.0, 20_000.0);
        put(&gpu::FREQUENCY, self.frequency, 0.0, 10_000.0);
        put(&gpu::FAN_SPEED, self.fan_percent, 0.0, 100.0);
        put(&gpu::FAN_RPM, self.fan_rpm, 0.0, 50_000.0);
        put(&gpu::CORRECTED_ERRORS, self.corrected, 0.0, ANY);
        put(&gpu::UNCORRECTED_ERRORS, self.uncorrected, 0.0, ANY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_gpu_has_is_not_put() {
        let reading = GpuReading {
            utilization: Some(65535.0),
            memory_used: Some(2048.0),
            memory_total: Some(0.0),
            power: Some(-3.0),
            power_limit: Some(0.0),
            temp: Some(151.0),
            memory_temp: Some(f64::NAN),
            fan_rpm: Some(0.0),
            ..GpuReading::default()
        };
        let mut out = Out::default();
        out.begin(std::time::Duration::ZERO);
        reading.put(3, &mut out);
        assert_eq!(
            out.present(),
            [("gpu.3.fanRpm".to_string(), 0.0), ("gpu.3.memoryAllocatedBytes".to_string(), 2048.0)]
        );
    }
}
