//! Markers of records.

use inventory::{Kernel, KernelSample};
use shared::answer::markers::Marker;
use shared::record::Record;

/// The marker of a record; None if it is of another kind, or cannot be read.
pub fn of_record(record: &Record) -> Option<Marker> {
    let body = Some(&record.body).filter(|_| record.kind == super::RECORD)?;
    let marker: Marker = serde_json::from_slice(body).ok()?;
    Some(Marker { begun: record.t, ..marker })
}

/// Adds the kernel's usage at the arrival of the marker.
pub fn take_sample(marker: &mut Marker, sample: Option<KernelSample>, kernel: Option<Kernel>) {
    if let Some(sample) = sample {
        (marker.cpu_seconds, marker.memory) = (Some(sample.cpu_seconds), sample.memory);
    }
    if let Some(kernel) = kernel {
        (marker.limit, marker.cores) = (kernel.limit, kernel.cores);
    }
}
