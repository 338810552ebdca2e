//! Texts of tools, and the class of a failure that each names.

use shared::failure::FailureClass;
use shared::failure::FailureClass::{
    CudaError, DataMissing, DiskFull, Exception, ImportError, NcclError, NcclTimeout, OutOfGpuMemory, OutOfHostMemory,
    Permission, Stopped, Unknown,
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
    (&["pytorchstreamwriter failed"], DiskFull),
    (&["disk is full"], DiskFull),
    (&["enospc"], DiskFull),
    (&["enforce fail at inline_container", "unexpected pos"], DiskFull),
    (&["not enough free disk space"], DiskFull),
    (&["not enough disk space"], DiskFull),
    (&["errno 28]"], DiskFull),
    (&["errno 122]"], DiskFull),
    (&["oom when allocating tensor", "device:cpu"], OutOfHostMemory),
    (&["oom when allocating tensor"], OutOfGpuMemory),
    (&["resource_exhausted:", "memory"], OutOfGpuMemory),
    (&["resource_exhausted:", "allocat"], OutOfGpuMemory),
    (&["resource_exhausted:", "hbm"], OutOfGpuMemory),
    (&["torch.outofmemoryerror"], OutOfGpuMemory),
    (&["torch.cuda.outofmemoryerror"], OutOfGpuMemory),
    (&["out of memory. tried to allocate"], OutOfGpuMemory),
    (&["cuda out of memory"], OutOfGpuMemory),
    (&["hip out of memory"], OutOfGpuMemory),
    (&["cuda error: out of memory"], OutOfGpuMemory),
    (&["cuda error", "out of memory"], OutOfGpuMemory),
    (&["cuda driver error: out of memory"], OutOfGpuMemory),
    (&["cuda failure", "out of memory"], OutOfGpuMemory),
    (&["hip error", "out of memory"], OutOfGpuMemory),
    (&["hiperroroutofmemory"], OutOfGpuMemory),
    (&["triton error", "out of memory"], OutOfGpuMemory),
    (&["cudamalloc", "out of memory"], OutOfGpuMemory),
    (&["hipmalloc", "out of memory"], OutOfGpuMemory),
    (&["cumemalloc", "out of memory"], OutOfGpuMemory),
    (&["backend out of memory"], OutOfGpuMemory),
    (&["out of memory error on gpu"], OutOfGpuMemory),
    (&["out of memory allocating"], OutOfGpuMemory),
    (&["out_of_device_memory"], OutOfGpuMemory),
    (&["amount of gpu memory", "could not be allocated"], OutOfGpuMemory),
    (&["failed to allocate memory for requested buffer"], OutOfGpuMemory),
    (&["no available memory for the cache blocks"], OutOfGpuMemory),
    (&["larger than the available kv cache memory"], OutOfGpuMemory),
    (&["that can be stored in kv cache"], OutOfGpuMemory),
    (&["free memory on device", "less than desired"], OutOfGpuMemory),
    (&["cuda_error_out_of_memory"], OutOfGpuMemory),
    (&["cudaerrormemoryallocation"], OutOfGpuMemory),
    (&["_status_alloc_failed"], OutOfGpuMemory),
    (&["miopenstatusallocfailed"], OutOfGpuMemory),
    (&["oom_kill event"], OutOfHostMemory),
    (&["oom-kill event"], OutOfHostMemory),
    (&["out-of-memory handler"], OutOfHostMemory),
    (&["dataloader worker", "killed by signal: killed"], OutOfHostMemory),
    (&["dataloader worker", "killed by signal: bus error"], OutOfHostMemory),
    (&["srun: error", "out of memory"], OutOfHostMemory),
    (&["exceeded memory limit"], OutOfHostMemory),
    (&["exceeded job memory limit"], OutOfHostMemory),
    (&["exceeded step memory limit"], OutOfHostMemory),
    (&["exceeds job hard limit", "h_vmem"], OutOfHostMemory),
    (&["job killed: mem"], OutOfHostMemory),
    (&["job killed: vmem"], OutOfHostMemory),
    (&["oomkilled"], OutOfHostMemory),
    (&["java.lang.outofmemoryerror"], OutOfHostMemory),
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
    (&["due to a collective timeout"], NcclTimeout),
    (&["watchdog got stuck"], NcclTimeout),
    (&["heartbeat monitor timed out"], NcclTimeout),
    (&["barrier timed out"], NcclTimeout),
    (&["timed out", "in store based barrier"], NcclTimeout),
    (&["timed out waiting", "operation to complete"], NcclTimeout),
    (&["monitoredbarrier", "timed out"], NcclTimeout),
    (&["monitoredbarrier", "failed to pass"], NcclTimeout),
    (&["due to time limit"], Stopped),
    (&["due to preemption"], Stopped),
    (&["due to job requeue"], Stopped),
    (&["due to node failure"], Stopped),
    (&["this job is preempted"], Stopped),
    (&["job killed: walltime"], Stopped),
    (&["exceeds job hard limit", "h_rt"], Stopped),
    (&["term_runlimit"], Stopped),
    (&["term_cpulimit"], Stopped),
    (&["term_preempt"], Stopped),
    (&["term_owner"], Stopped),
    (&["term_admin"], Stopped),
    (&["*** job", "cancelled at"], Stopped),
    (&["dataloader worker", "killed by signal: terminated"], Stopped),
    (&["sigtermexception"], Stopped),
    // Versions that do not fit, in errors of CUDA.
    (&["driver version is insufficient"], ImportError),
    (&["cudaerrorinsufficientdriver"], ImportError),
    (&["unsupported display driver"], ImportError),
    (&["driver/library version mismatch"], ImportError),
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
    (&["cudaerror"], CudaError),
    (&["hiperror"], CudaError),
    (&["triton error"], CudaError),
    (&["hsa_status_error"], CudaError),
    (&["hipblas_status_"], CudaError),
    (&["rocblas_status_"], CudaError),
    (&["miopenstatus"], CudaError),
    (&["cusparse_status_"], CudaError),
    (&["curand_status_"], CudaError),
    (&["cufft error"], CudaError),
    (&["cudnn launch failure"], CudaError),
    (&["cudnn failed to initialize"], CudaError),
    (&["dnn library initialization failed"], CudaError),
    (&["nvml_success == r"], CudaError),
    (&["cudagetdevicecount"], CudaError),
    (&["gpu is lost"], CudaError),
    (&["found no nvidia driver"], CudaError),
    (&["no cuda gpus are available"], CudaError),
    (&["no cuda-capable device"], CudaError),
];

/// Causes, if the line is an exception.
const CAUSES: &[Pattern] = &[
    (&["unhandledcudaerror"], CudaError),
    (&["unhandled cuda error"], CudaError),
    // TensorFlow names the device in a later line.
    (&["resourceexhaustederror"], OutOfGpuMemory),
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
    (&["is out of date"], ImportError),
    (&["operator ", "does not exist"], ImportError),
    (&["version incompatibility"], ImportError),
    (&["was compiled against"], ImportError),
    (&["torch was compiled with"], ImportError),
    (&["compiled using numpy 1.x"], ImportError),
    (&["cudamismatch"], ImportError),
    (&["cuda setup failed"], ImportError),
    (&["cannot load symbol"], ImportError),
    (&["working triton installation"], ImportError),
    (&["mismatches the version that was used to compile"], ImportError),
    (&["not compiled with cuda enabled"], ImportError),
    (&["may indicate binary incompatibility"], ImportError),
    (&["failed to import"], ImportError),
    (&["have failed or timed out"], NcclError),
    (&["nccl", "timed out"], NcclTimeout),
    (&["ncclremoteerror"], NcclError),
    (&["ncclsystemerror"], NcclError),
    (&["ncclinternalerror"], NcclError),
    (&["nccl error"], NcclError),
    (&["nccl warn", "failed"], NcclError),
    (&["nccl warn", "got completion"], NcclError),
    (&["nccl warn", "connection closed"], NcclError),
    (&["nccl communicator was aborted"], NcclError),
    (&["setting up nccl communicator"], NcclError),
    (&["nccl operation", "failed"], NcclError),
    (&["horovodinternalerror"], NcclError),
    (&["gloo connectfullmesh failed"], NcclError),
    (&["distributed service detected fatal errors"], NcclError),
    (&["failed to connect to all addresses"], NcclError),
    (&["deadline_exceeded"], NcclError),
    (&["orte has lost communication"], NcclError),
    (&["transport retry count exceeded"], NcclError),
    (&["distbackenderror"], NcclError),
    (&["distnetworkerror"], NcclError),
    (&["diststoreerror"], NcclError),
    (&["rendezvous", "error"], NcclError),
    (&["socket has timed out"], NcclError),
    (&["waiting for clients"], NcclError),
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
    (&["cannot connect to host"], NcclError),
    (&["server disconnected"], NcclError),
    (&["closed connection without response"], NcclError),
    (&["check your connection"], NcclError),
    (&["certificate_verify_failed"], NcclError),
    (&["urlopen error"], NcclError),
    (&["socket.timeout"], NcclError),
    (&["connecttimeout"], NcclError),
    (&["readtimeout"], NcclError),
    (&["read timed out"], NcclError),
    (&["too many requests"], NcclError),
    (&["429 client error"], NcclError),
    (&["http error 50"], NcclError),
    (&["500 internal server error"], NcclError),
    (&["502 bad gateway"], NcclError),
    (&["503 service unavailable"], NcclError),
    (&["504 gateway time"], NcclError),
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
    (&["forbidden"], Permission),
    (&["http error 401"], Permission),
    (&["http error 403"], Permission),
    (&["authentication failed"], Permission),
    (&["authenticationerror"], Permission),
    (&["credentialserror"], Permission),
    (&["expiredtoken"], Permission),
    (&["invalid user token"], Permission),
    (&["filenotfounderror"], DataMissing),
    (&["no such file or directory"], DataMissing),
    (&["404 client error"], DataMissing),
    (&["404 not found"], DataMissing),
    (&["http error 404"], DataMissing),
    (&["(404) when calling"], DataMissing),
    (&["nosuchbucket"], DataMissing),
    (&["is not a valid model identifier"], DataMissing),
    (&["is not a local folder"], DataMissing),
    (&["path", "does not exist"], DataMissing),
    (&["directory", "does not exist"], DataMissing),
    (&["folder", "does not exist"], DataMissing),
    (&[" file", "does not exist"], DataMissing),
    (&["checkpoint", "not found"], DataMissing),
    (&["dataset not found"], DataMissing),
    (&["found 0 files"], DataMissing),
    (&["found 0 images"], DataMissing),
    (&["errno 5]"], DataMissing),
    (&["stale file handle"], DataMissing),
    (&["datasetnotfounderror"], DataMissing),
    (&["repositorynotfounderror"], DataMissing),
    (&["entrynotfounderror"], DataMissing),
    (&["notfounderror"], DataMissing),
    (&["does not appear to have a file named"], DataMissing),
    (&["no file named"], DataMissing),
    (&["unable to open file"], DataMissing),
    (&["unable to synchronously open file"], DataMissing),
    (&["file signature not found"], DataMissing),
    (&["magic bytes not found"], DataMissing),
    (&["no data left in file"], DataMissing),
    (&["could not be opened successfully"], DataMissing),
    (&["while decompressing"], DataMissing),
    (&["badgzipfile"], DataMissing),
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
    (&["nccl warn"], NcclError),
    (&["ran out of memory trying to allocate"], OutOfGpuMemory),
    // A bus error is mostly a page of shared memory that the machine could not give.
    (&["bus error"], OutOfHostMemory),
    (&["received sigterm"], Stopped),
    (&["death signal"], Stopped),
];

/// Names of exceptions by which a launcher says that its process failed, and what that tells: a process that ended may
/// have been killed.
const LAUNCHERS: [(&str, FailureClass); 9] = [
    ("childfailederror", Unknown),
    ("processexitedexception", Unknown),
    ("brokenprocesspool", Unknown),
    ("workercrashederror", Unknown),
    ("actordiederror", Unknown),
    ("rayactorerror", Unknown),
    ("calledprocesserror", Exception),
    ("processraisedexception", Exception),
    ("raytaskerror", Exception),
];

/// Words by which a process says that another one is gone, without its reason.
const GONE: [&[&str]; 2] = [&["dataloader worker", "exited unexpectedly"], &["died with <signals"]];

/// Words by which ranks say that they have lost another one.
const LOST_PEER: [&str; 7] = [
    "remote process exited",
    "ncclremoteerror",
    "connection reset by peer",
    "connection closed by peer",
    "broken pipe",
    "communicator was aborted",
    "socket timeout",
];

/// Words between two exceptions of the same program.
const CHAIN: [&str; 2] = ["another exception occurred", "direct cause of the following exception"];

/// Lines that report what others did, or that a program goes on after.
const NOISE: [&str; 17] = [
    "nccl info",
    "warning:",
    "[warning]",
    "userwarning",
    "futurewarning",
    "retrying",
    " - warning - ",
    "[w ",
    "closing signal",
    "traceback (most recent call last)",
    "this is not a failure",
    "failed call to cuinit",
    "for debugging consider passing",
    "to enable device-side assertions",
    "corrupt jpeg data",
    "corrupt exif",
    "extraneous bytes before marker",
];

/// Begins of lines that tools print at an end, after its cause.
const FOOTERS: [&str; 5] = ["wandb:", "srun:", "slurmstepd:", "mpirun:", "mpirun "];

/// Maximum length of the prefix of a line, bytes.
const MAX_PREFIX_BYTES: usize = 80;

/// A line without the prefixes of Ray and vLLM: `(EngineCore pid=7) ERROR 05-07 02:14:18 [core.py:396] ValueError: ...`.
pub(super) fn without_prefix(line: &str) -> &str {
    fn behind<'a>(line: &'a str, end: &str) -> Option<(&'a str, &'a str)> {
        line.split_once(end).filter(|(before, _)| before.len() <= MAX_PREFIX_BYTES)
    }
    let line = match behind(line, ") ") {
        Some((before, rest)) if before.starts_with('(') && before.contains("pid=") => rest,
        _ => line,
    };
    match behind(line, "] ") {
        Some((before, rest)) if before.starts_with("ERROR ") && before.contains(".py:") => rest,
        _ => line,
    }
}

/// Whether a line says nothing about the end.
pub(super) fn is_noise(line: &str) -> bool {
    let line = line.to_lowercase();
    NOISE.iter().any(|part| line.contains(part))
}

/// Whether a line says that a rank has lost another one, which may have failed before.
pub(super) fn is_lost_peer(line: &str) -> bool {
    let line = line.to_lowercase();
    LOST_PEER.iter().any(|part| line.contains(part))
}

/// Whether the next exception is that of the same program, on the way out.
pub(super) fn is_chain(line: &str) -> bool {
    CHAIN.iter().any(|part| line.contains(part))
}

/// Whether a line is a notice or a warning of glog: `W0409 07:28:49.530000 1359 api.py:719] ...`, `[W1101 ...`.
pub(super) fn is_mild(line: &str) -> bool {
    let line = line.strip_prefix('[').unwrap_or(line);
    let Some(rest) = line.strip_prefix(['I', 'W']) else { return false };
    let day = rest.split(' ').next().unwrap_or_default();
    (3..=4).contains(&day.len()) && day.bytes().all(|byte| byte.is_ascii_digit()) && rest.contains(']')
}

/// Whether a line belongs to the report of an error, without naming it: frames, code of frames, tables, and what tools
/// print at an end. A bar of progress begins with a space, too.
pub(super) fn is_trouble(line: &str) -> bool {
    let is_bar = line.contains("%|");
    let is_of_report = line.starts_with([' ', '\t', '|']) || line.starts_with("frame #") || line.contains("exception");
    let is_rule = line.contains("^^^") || !line.contains(char::is_alphanumeric);
    !is_bar && (is_of_report || is_rule || FOOTERS.iter().any(|begin| line.starts_with(begin)))
}

/// Place of a line in a traceback of Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TracebackPlace {
    Outside,
    /// A frame or its code, whose texts are no messages.
    Within,
    /// The line after the last frame: it names the exception.
    End,
}

/// Follows tracebacks from line to line.
#[derive(Debug, Default)]
pub(super) struct Tracebacks {
    is_within: bool,
}

impl Tracebacks {
    /// The place of the next line.
    pub fn place_of(&mut self, line: &str) -> TracebackPlace {
        let is_frame = line.contains("File \"") && line.contains("\", line ");
        let is_code = self.is_within && line.starts_with("    ");
        if is_frame || is_code || line.starts_with(['│', '╭', '╰']) {
            self.is_within |= is_frame;
            return TracebackPlace::Within;
        }
        let is_end = self.is_within && !line.starts_with(char::is_whitespace);
        self.is_within &= !is_end;
        if is_end { TracebackPlace::End } else { TracebackPlace::Outside }
    }
}

/// The exception in the line that ends a traceback, whatever its name, in lower case: `queue.Empty`, `zlib.error: ...`.
fn raised(line: &str) -> Option<String> {
    const SHELL_WORDS: [&str; 3] = ["Killed", "Terminated", "Aborted"];
    let name = line.split(": ").next()?.trim_end().trim_end_matches(':');
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_class = name.contains('.') || name.starts_with(|c: char| c.is_ascii_uppercase());
    (is_class && name.split('.').all(is_part) && !SHELL_WORDS.contains(&name)).then(|| name.to_lowercase())
}

/// The exception that a line names, in lower case: `ValueError` of `ValueError: no rows`, also after the prefix of a
/// logger. In the middle of a line, `Error: 0.12` is a figure.
fn exception(line: &str) -> Option<String> {
    const MAX_WORDS_BEFORE: usize = 12;
    const ENDS: [&str; 8] =
        ["Error", "Exception", "Interrupt", "Failure", "Exhausted", "Conflict", "NotFound", "BadZipFile"];
    let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS_BEFORE + 1).collect();
    let is_number = |at: usize| words.get(at).is_some_and(|word| word.trim_end_matches(',').parse::<f64>().is_ok());
    let is_name = |at: usize, word: &str| {
        let name = word.rsplit('.').next().unwrap_or_default();
        let fits = |end: &str| name.ends_with(end) && (at == 0 || name.len() > end.len() && !is_number(at + 1));
        name.starts_with(|c: char| c.is_ascii_uppercase()) && ENDS.iter().any(|end| fits(end))
    };
    words.iter().enumerate().take(MAX_WORDS_BEFORE).find_map(|(at, word)| {
        let bare = word.trim_end_matches(':');
        // In the middle of a line only a name with a colon is the begin of a message.
        let is_begin = bare.len() < word.len() || at == 0 && words.len() == 1;
        let name = bare.split('(').next().unwrap_or(bare);
        (is_begin && is_name(at, name)).then(|| name.to_lowercase())
    })
}

fn find(patterns: &[Pattern], line: &str) -> Option<FailureClass> {
    patterns.iter().find(|(parts, _)| parts.iter().all(|part| line.contains(part))).map(|(_, class)| *class)
}

/// The class that a line names, if it names one.
pub(super) fn hit(line: &str, place: TracebackPlace) -> Option<Hit> {
    let ending = || if place == TracebackPlace::End { raised(line) } else { None };
    let (name, low) = (exception(line).or_else(ending), line.to_lowercase());
    let is_named = |end: &str| name.as_ref().is_some_and(|name| name.ends_with(end));
    if GONE.iter().any(|parts| parts.iter().all(|part| low.contains(part))) {
        return Some(Hit { class: Unknown, weight: Weight::Launcher });
    }
    if let Some((_, class)) = LAUNCHERS.iter().find(|(launcher, _)| is_named(launcher)) {
        return Some(Hit { class: *class, weight: Weight::Launcher });
    }
    // NCCL explains such an error of CUDA in a later line, and it may be a lack of memory.
    let is_explained = low.contains("unhandledcudaerror") || low.contains("unhandled cuda error");
    if let Some(class) = find(ROOTS, &low).filter(|class| *class != CudaError || !is_explained) {
        return Some(Hit { class, weight: Weight::Root });
    }
    // Exceptions of memory may have no text.
    if is_named("memoryerror") {
        let class = if is_named("outofmemoryerror") { OutOfGpuMemory } else { OutOfHostMemory };
        return Some(Hit { class, weight: Weight::Root });
    }
    if let Some(class) = find(CAUSES, &low) {
        // NCCL reports in lines of its own, before an exception or without one.
        let is_said = name.is_some() || low.contains("nccl") && matches!(class, NcclError | CudaError);
        let weight = if is_said { Weight::Cause } else { Weight::Complaint };
        return Some(Hit { class, weight });
    }
    // The C++ runtime reports an exception, whose text follows.
    if low.contains("terminate called after throwing") {
        return Some(Hit { class: Exception, weight: Weight::Launcher });
    }
    if let Some(class) = find(COMPLAINTS, &low) {
        return Some(Hit { class, weight: Weight::Complaint });
    }
    name.map(|_| Hit { class: Exception, weight: Weight::Exception })
}
