//! Texts of tools, and the class of a failure that each names.

use shared::failure::FailureClass;
use shared::failure::FailureClass::{
    CudaError, DataMissing, DiskFull, Exception, ImportError, NcclError, NcclTimeout, OutOfGpuMemory, OutOfHostMemory,
    Permission, Stopped,
};

/// How much a line counts against others of the same output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// A launcher reports that its process failed.
    Launcher,
    /// A complaint of a program, which may go on.
    Complaint,
    /// An exception.
    Exception,
    /// An exception whose text names the cause.
    Cause,
    /// A cause that nothing else explains: resources are gone, or a device failed.
    Root,
}

/// The class and the weight of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub class: FailureClass,
    pub weight: Weight,
}

/// A pattern: all its parts are in the line, in lower case.
type Pattern = (&'static [&'static str], FailureClass);

/// Roots, the most specific first: `CUDA error: out of memory` is no CUDA error.
const ROOTS: &[Pattern] = &[
    // Shared memory is memory, although its errors are those of a file system.
    (&["/dev/shm", "no space left on device"], OutOfHostMemory),
    (&["unable to write to file </torch_"], OutOfHostMemory),
    (&["shared memory segment", "no space left on device"], OutOfHostMemory),
    (&["insufficient shared memory"], OutOfHostMemory),
    (&["no space left on device"], DiskFull),
    (&["disk quota exceeded"], DiskFull),
    (&["storagefull"], DiskFull),
    (&["file write failed"], DiskFull),
    (&["enforce fail at inline_container", "unexpected pos"], DiskFull),
    (&["not enough free disk space"], DiskFull),
    (&["errno 28]"], DiskFull),
    (&["errno 122]"], DiskFull),
    (&["oom when allocating tensor", "device:cpu"], OutOfHostMemory),
    (&["oom when allocating tensor"], OutOfGpuMemory),
    (&["resource_exhausted: out of memory"], OutOfGpuMemory),
    (&["resource_exhausted: failed to allocate request"], OutOfGpuMemory),
    (&["torch.outofmemoryerror"], OutOfGpuMemory),
    (&["torch.cuda.outofmemoryerror"], OutOfGpuMemory),
    (&["out of memory. tried to allocate"], OutOfGpuMemory),
    (&["cuda out of memory"], OutOfGpuMemory),
    (&["hip out of memory"], OutOfGpuMemory),
    (&["cuda error: out of memory"], OutOfGpuMemory),
    (&["cuda error", "out of memory"], OutOfGpuMemory),
    (&["cuda driver error: out of memory"], OutOfGpuMemory),
    (&["cuda failure", "out of memory"], OutOfGpuMemory),
    (&["cuda_error_out_of_memory"], OutOfGpuMemory),
    (&["cudaerrormemoryallocation"], OutOfGpuMemory),
    (&["cublas_status_alloc_failed"], OutOfGpuMemory),
    (&["cudnn_status_alloc_failed"], OutOfGpuMemory),
    (&["oom_kill event"], OutOfHostMemory),
    (&["oom-kill event"], OutOfHostMemory),
    (&["out-of-memory handler"], OutOfHostMemory),
    (&["dataloader worker", "killed by signal: killed"], OutOfHostMemory),
    (&["dataloader worker", "killed by signal: bus error"], OutOfHostMemory),
    (&["srun: error", "out of memory"], OutOfHostMemory),
    (&["exceeded memory limit"], OutOfHostMemory),
    (&["exceeded job memory limit"], OutOfHostMemory),
    (&["term_memlimit"], OutOfHostMemory),
    (&["out of memory: killed process"], OutOfHostMemory),
    (&["std::bad_alloc"], OutOfHostMemory),
    (&["cannot allocate memory"], OutOfHostMemory),
    (&["can't allocate memory"], OutOfHostMemory),
    (&["errno 12]"], OutOfHostMemory),
    (&["not enough memory: you tried to allocate"], OutOfHostMemory),
    (&["arraymemoryerror"], OutOfHostMemory),
    (&["memoryerror: unable to allocate"], OutOfHostMemory),
    (&["low on memory"], OutOfHostMemory),
    (&["collective operation timeout"], NcclTimeout),
    (&["heartbeat monitor timed out"], NcclTimeout),
    (&["timed out waiting", "operation to complete"], NcclTimeout),
    (&["monitoredbarrier", "timed out"], NcclTimeout),
    (&["monitoredbarrier", "failed to pass"], NcclTimeout),
    (&["due to time limit"], Stopped),
    (&["due to preemption"], Stopped),
    (&["due to job requeue"], Stopped),
    (&["due to node failure"], Stopped),
    (&["this job is preempted"], Stopped),
    (&["job killed: walltime"], Stopped),
    (&["term_runlimit"], Stopped),
    (&["device-side assert"], CudaError),
    (&["illegal memory access"], CudaError),
    (&["uncorrectable ecc"], CudaError),
    (&["unspecified launch failure"], CudaError),
    (&["block: [", "thread: [", "assertion"], CudaError),
    (&["memory access fault by gpu"], CudaError),
    (&["cuda error"], CudaError),
    (&["cuda runtime error"], CudaError),
    (&["cuda failure"], CudaError),
    (&["hip error"], CudaError),
    (&["cuda_error_"], CudaError),
    (&["cublas_status_"], CudaError),
    (&["cudnn_status_"], CudaError),
    (&["cudnn error"], CudaError),
    (&["cusolver_status_"], CudaError),
    (&["no cuda gpus are available"], CudaError),
    (&["no cuda-capable device"], CudaError),
    (&["ncclunhandledcudaerror"], CudaError),
    (&["unhandled cuda error"], CudaError),
];

/// Causes, if the line is an exception.
const CAUSES: &[Pattern] = &[
    (&["cannot open shared object file"], ImportError),
    (&["undefined symbol"], ImportError),
    (&["no module named"], ImportError),
    (&["modulenotfounderror"], ImportError),
    (&["importerror"], ImportError),
    (&["cannot import name"], ImportError),
    (&["version `glibc", "not found"], ImportError),
    (&["attributeerror: module '", "has no attribute"], ImportError),
    (&["versionconflict"], ImportError),
    (&["packagenotfounderror"], ImportError),
    (&["distributionnotfound"], ImportError),
    (&["is required for a normal functioning of this module"], ImportError),
    (&["is too old"], ImportError),
    (&["mismatches the version that was used to compile"], ImportError),
    (&["not compiled with cuda enabled"], ImportError),
    (&["may indicate binary incompatibility"], ImportError),
    (&["failed to import"], ImportError),
    (&["ncclremoteerror"], NcclError),
    (&["ncclsystemerror"], NcclError),
    (&["ncclinternalerror"], NcclError),
    (&["nccl error"], NcclError),
    (&["nccl warn", "failed"], NcclError),
    (&["nccl warn", "got completion"], NcclError),
    (&["nccl warn", "connection closed"], NcclError),
    (&["distbackenderror"], NcclError),
    (&["distnetworkerror"], NcclError),
    (&["diststoreerror"], NcclError),
    (&["rendezvous"], NcclError),
    (&["address already in use"], NcclError),
    (&["eaddrinuse"], NcclError),
    (&["connection reset by peer"], NcclError),
    (&["connection refused"], NcclError),
    (&["connection closed by peer"], NcclError),
    (&["connection timed out"], NcclError),
    (&["broken pipe"], NcclError),
    (&["socket timeout"], NcclError),
    (&["no route to host"], NcclError),
    (&["network is unreachable"], NcclError),
    (&["name resolution"], NcclError),
    (&["name or service not known"], NcclError),
    (&["max retries exceeded"], NcclError),
    (&["connectionerror"], NcclError),
    (&["couldn't connect to"], NcclError),
    (&["read timed out"], NcclError),
    (&["500 server error"], NcclError),
    (&["502 server error"], NcclError),
    (&["503 server error"], NcclError),
    (&["504 server error"], NcclError),
    (&["permissionerror"], Permission),
    (&["permission denied"], Permission),
    (&["operation not permitted"], Permission),
    (&["read-only file system"], Permission),
    (&["401 client error"], Permission),
    (&["403 client error"], Permission),
    (&["gatedrepoerror"], Permission),
    (&["gated repo"], Permission),
    (&["access denied"], Permission),
    (&["accessdenied"], Permission),
    (&["unauthorized"], Permission),
    (&["filenotfounderror"], DataMissing),
    (&["no such file or directory"], DataMissing),
    (&["datasetnotfounderror"], DataMissing),
    (&["repositorynotfounderror"], DataMissing),
    (&["entrynotfounderror"], DataMissing),
    (&["notfounderror"], DataMissing),
    (&["does not appear to have a file named"], DataMissing),
    (&["no file named"], DataMissing),
    (&["unable to open file"], DataMissing),
    (&["pytorchstreamreader failed"], DataMissing),
    (&["header or archive is corrupted"], DataMissing),
    (&["ran out of input"], DataMissing),
    (&["badzipfile"], DataMissing),
    (&["cannot identify image file"], DataMissing),
    (&["file is truncated"], DataMissing),
    (&["unexpected end of"], DataMissing),
    (&["end-of-stream marker"], DataMissing),
    (&["invalid load key"], DataMissing),
    (&["corrupt"], DataMissing),
    (&["unpicklingerror"], DataMissing),
    (&["while deserializing header"], DataMissing),
    (&["num_samples=0"], DataMissing),
    (&["isadirectoryerror"], DataMissing),
    (&["notadirectoryerror"], DataMissing),
    (&["nosuchkey"], DataMissing),
    (&["keyboardinterrupt"], Stopped),
    (&["got signal: 15"], Stopped),
    (&["got signal: 2"], Stopped),
    (&["got signal: 1"], Stopped),
];

/// Causes that programs without exceptions print.
const COMPLAINTS: &[Pattern] = &[
    (&["can't open file"], DataMissing),
    (&["command not found"], DataMissing),
    (&["cancelled at"], Stopped),
    (&["force terminated job"], Stopped),
    (&["error: unrecognized arguments"], Exception),
    (&["error: the following arguments are required"], Exception),
    (&["error: argument "], Exception),
    (&["panicked at"], Exception),
    (&["terminate called after throwing"], Exception),
];

/// Names of exceptions by which a launcher says that its process failed.
const LAUNCHERS: [&str; 5] =
    ["childfailederror", "calledprocesserror", "processraisedexception", "raytaskerror", "processexitedexception"];

/// Lines that report what others did, or that a program goes on after.
const NOISE: [&str; 10] = [
    "nccl info",
    "warning:",
    "[warning]",
    "userwarning",
    "futurewarning",
    "retrying",
    " - warning - ",
    "[w socket.cpp",
    "closing signal",
    "traceback (most recent call last)",
];

/// Whether a line says nothing about the end.
pub(super) fn is_noise(line: &str) -> bool {
    let line = line.to_lowercase();
    NOISE.iter().any(|part| line.contains(part))
}

/// Whether a line belongs to the report of an error, without naming it: frames, and code of frames.
pub(super) fn is_trouble(line: &str) -> bool {
    line.starts_with([' ', '\t', '│', '╭', '╰']) || line.starts_with("frame #") || line.contains("exception")
}

/// The exception that a line names, in lower case: `ValueError` of `ValueError: no rows`, also after the prefix of a
/// logger.
fn exception(line: &str) -> Option<String> {
    const MAX_WORDS_BEFORE: usize = 6;
    let is_name = |word: &&str| {
        let name = word.rsplit('.').next().unwrap_or_default();
        let ends = ["Error", "Exception", "Interrupt", "Failure", "Exhausted", "Conflict", "NotFound", "BadZipFile"];
        name.starts_with(|c: char| c.is_ascii_uppercase()) && ends.iter().any(|end| name.ends_with(end))
    };
    let words = line.split_whitespace().take(MAX_WORDS_BEFORE).enumerate();
    let named = words.filter_map(|(at, word)| {
        let bare = word.trim_end_matches(':');
        // In the middle of a line only a name with a colon is the begin of a message.
        (bare.len() < word.len() || at == 0 && line.trim() == word).then_some(bare)
    });
    let name = named.map(|word| word.split('(').next().unwrap_or(word)).find(is_name)?;
    Some(name.to_lowercase())
}

fn find(patterns: &[Pattern], line: &str) -> Option<FailureClass> {
    patterns.iter().find(|(parts, _)| parts.iter().all(|part| line.contains(part))).map(|(_, class)| *class)
}

/// The class that a line names, if it names one.
pub(super) fn hit(line: &str) -> Option<Hit> {
    let (name, low) = (exception(line), line.to_lowercase());
    if name.as_ref().is_some_and(|name| LAUNCHERS.iter().any(|launcher| name.ends_with(launcher))) {
        return Some(Hit { class: Exception, weight: Weight::Launcher });
    }
    if let Some(class) = find(ROOTS, &low) {
        return Some(Hit { class, weight: Weight::Root });
    }
    // A bare `MemoryError` has no text.
    if name.as_deref() == Some("memoryerror") {
        return Some(Hit { class: OutOfHostMemory, weight: Weight::Root });
    }
    if let Some(class) = find(CAUSES, &low) {
        // NCCL reports in lines of its own, before an exception or without one.
        let is_said = name.is_some() || low.contains("nccl") && class == NcclError;
        let weight = if is_said { Weight::Cause } else { Weight::Complaint };
        return Some(Hit { class, weight });
    }
    if let Some(class) = find(COMPLAINTS, &low) {
        return Some(Hit { class, weight: Weight::Complaint });
    }
    name.map(|_| Hit { class: Exception, weight: Weight::Exception })
}
