//! Classes of failures of training jobs, named by the words that people search for.

use serde::{Deserialize, Serialize};

/// Class of the cause that ended a training job.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// A GPU had too little free memory.
    OutOfGpuMemory,
    /// The machine, the container or its shared memory had too little free memory.
    OutOfHostMemory,
    /// A collective operation took longer than its timeout.
    NcclTimeout,
    /// NCCL, or a connection to another machine or service, failed.
    NcclError,
    /// A CUDA or HIP call, or one of their libraries, failed.
    CudaError,
    /// A file or a data set is missing or unreadable.
    DataMissing,
    /// A file or a service refused access.
    Permission,
    /// A module is missing, or versions do not fit.
    ImportError,
    /// The code of the job raised an exception.
    Exception,
    /// The scheduler or a person ended it.
    Stopped,
    /// A disk or a quota is full.
    DiskFull,
    /// Nothing known about its end names a cause.
    #[serde(other)]
    Unknown,
}

impl FailureClass {
    /// All classes.
    pub const ALL: [FailureClass; 12] = [
        FailureClass::OutOfGpuMemory,
        FailureClass::OutOfHostMemory,
        FailureClass::NcclTimeout,
        FailureClass::NcclError,
        FailureClass::CudaError,
        FailureClass::DataMissing,
        FailureClass::Permission,
        FailureClass::ImportError,
        FailureClass::Exception,
        FailureClass::Stopped,
        FailureClass::DiskFull,
        FailureClass::Unknown,
    ];

    /// Its name in requests, answers and rules.
    pub const fn name(self) -> &'static str {
        match self {
            FailureClass::OutOfGpuMemory => "out_of_gpu_memory",
            FailureClass::OutOfHostMemory => "out_of_host_memory",
            FailureClass::NcclTimeout => "nccl_timeout",
            FailureClass::NcclError => "nccl_error",
            FailureClass::CudaError => "cuda_error",
            FailureClass::DataMissing => "data_missing",
            FailureClass::Permission => "permission",
            FailureClass::ImportError => "import_error",
            FailureClass::Exception => "exception",
            FailureClass::Stopped => "stopped",
            FailureClass::DiskFull => "disk_full",
            FailureClass::Unknown => "unknown",
        }
    }

    /// Its name for people.
    pub const fn words(self) -> &'static str {
        match self {
            FailureClass::OutOfGpuMemory => "out of GPU memory",
            FailureClass::OutOfHostMemory => "out of host memory",
            FailureClass::NcclTimeout => "NCCL timeout",
            FailureClass::NcclError => "NCCL or network error",
            FailureClass::CudaError => "CUDA error",
            FailureClass::DataMissing => "data or file missing",
            FailureClass::Permission => "permission denied",
            FailureClass::ImportError => "import or version error",
            FailureClass::Exception => "exception in the code",
            FailureClass::Stopped => "stopped by scheduler or user",
            FailureClass::DiskFull => "disk full",
            FailureClass::Unknown => "unknown cause",
        }
    }

    /// The class with this name.
    pub fn named(name: &str) -> Option<FailureClass> {
        FailureClass::ALL.into_iter().find(|class| class.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_one_name_in_requests_and_in_records() {
        for class in FailureClass::ALL {
            assert_eq!(FailureClass::named(class.name()), Some(class));
            assert_eq!(serde_json::to_value(class).expect("a text"), class.name());
        }
        let later: FailureClass = serde_json::from_str("\"of_a_later_version\"").expect("a class");
        assert_eq!((later, FailureClass::named("segfault")), (FailureClass::Unknown, None));
    }
}
