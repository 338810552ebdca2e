//! AWS Trainium and Inferentia through `neuron-monitor`, a tool that runs permanently and prints one report per line.
//!
//! Memory is summed over the runtimes of the watched processes, or over all if none is watched. A report stays valid
//! until the next one, for at most three of its periods.

mod report;

use self::report::NeuronReport;
use crate::host::process::Watched;
use crate::read::exec::{self, Stream};
use crate::read::pids::Pids;
use crate::{CollectError, Collector, OpenError, OpenErrorKind, OptionRow, Options, Out, Part, Roots};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const NAME: &str = "neuron-monitor";
const DIRS: &[&str] = &["/opt/aws/neuron/bin"];
const REMEDY: &str = "install the package aws-neuronx-tools, or set command under [collectors.trainium]";

/// Configuration of the tool: the groups that have metrics here, at the tool's shortest period.
const CONFIG: &str = r#"{
  "period": "1s",
  "neuron_runtimes": [{"tag_filter": ".*", "metrics": [{"type": "neuroncore_counters"}, {"type": "memory_used"}]}],
  "system_metrics": []
}"#;

/// Time without output after which the tool is restarted. A user's configuration may set long periods.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
const SILENCE_TIMEOUT_OF_USERS: Duration = Duration::from_secs(600);

/// Time to wait for the first report before it counts as missing.
const FIRST_REPORT_TIMEOUT: Duration = Duration::from_secs(15);

/// Periods after which a report is too old.
const MAX_AGE_PERIODS: f64 = 3.0;

static COMMAND: OptionRow = OptionRow::path("command", "neuron-monitor executable to use instead of the one in PATH");

static TOOL_CONFIG: OptionRow =
    OptionRow::path("config", "Configuration for neuron-monitor instead of the built-in one");

/// Keys below `[collectors.trainium]`.
pub(crate) static OPTIONS: &[&OptionRow] = &[&COMMAND, &TOOL_CONFIG];

/// Opens the collector, if the tool is installed.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let configured = options.own.path(&COMMAND);
    let tool = exec::find(&[NAME], DIRS, configured).map_err(|mut error| {
        if error.remedy.is_empty() {
            error.remedy = REMEDY.into();
        }
        error
    })?;
    let mut tried = vec![tool.display().to_string()];
    let (config, ours, silence) = match options.own.path(&TOOL_CONFIG) {
        Some(path) => {
            File::open(path).map_err(|error| missing_config(path, &error))?;
            tried.push(path.display().to_string());
            (Some(path.to_path_buf()), None, SILENCE_TIMEOUT_OF_USERS)
        }
        None => {
            let ours = in_memory(CONFIG);
            (ours.as_ref().map(|(_, path)| path.clone()), ours, SILENCE_TIMEOUT)
        }
    };
    let config = config.map(|path| path.display().to_string());
    let args: Vec<&str> = config.iter().flat_map(|path| ["-c", path]).collect();
    let stream = Stream::start(&tool, &args, silence);
    let trainium = Trainium {
        stream,
        tool,
        _config: ours.map(|(file, _)| file),
        watched: (!options.pids.is_empty()).then(|| Watched::new(roots, &options.pids)),
        pids: Pids::new(&roots.proc, "neuron"),
        since: Instant::now(),
        newest: None,
        unread: None,
    };
    Ok(Part::only(tried, trainium))
}

fn missing_config(path: &Path, error: &std::io::Error) -> OpenError {
    let error = OpenError::from_io(path, error);
    match error.kind {
        OpenErrorKind::Absent => OpenError {
            kind: OpenErrorKind::Failed,
            remedy: "correct config under [collectors.trainium], or remove it".into(),
            ..error
        },
        _ => error,
    }
}

/// A file in memory only, and the path by which the tool reads it. So no file remains, however the program ends.
#[cfg(target_os = "linux")]
fn in_memory(text: &str) -> Option<(File, PathBuf)> {
    use std::io::Write;
    use std::os::fd::{AsRawFd, FromRawFd};
    // Called by number: glibc before 2.27 has no function for it, and the program must start there, too.
    // SAFETY: the name is a C string, and the call has no other requirements.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_create, c"neuron-monitor.json".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return None; // Then the tool runs with its own defaults, every 5 s.
    }
    // SAFETY: the descriptor was just created and has no other owner.
    let mut file = unsafe { File::from_raw_fd(fd as i32) };
    file.write_all(text.as_bytes()).ok()?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Some((file, path.into()))
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &str) -> Option<(File, PathBuf)> {
    None
}

struct Trainium {
    stream: Stream,
    tool: PathBuf,
    /// Our configuration lives as long as the tool may read it.
    _config: Option<File>,
    /// None if no process is watched; then all runtimes count.
    watched: Option<Watched>,
    /// Maps the tool's PIDs to processes here.
    pids: Pids,
    /// Time of the last report, or of the start.
    since: Instant,
    newest: Option<NeuronReport>,
    /// The last output that was no report.
    unread: Option<String>,
}

impl Collector for Trainium {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        self.listen();
        let age = self.since.elapsed();
        let Some(report) = self.newest.as_ref().filter(|report| age <= report.period.mul_f64(MAX_AGE_PERIODS)) else {
            return self.silent(age);
        };
        report.put(out);
        match &report.trouble {
            None => Ok(()),
            Some(reason) if report.is_empty() => Err(CollectError::failed(reason.as_str())),
            Some(reason) => Err(CollectError::partial(reason.as_str())),
        }
    }
}

impl Trainium {
    /// Takes the newest line that is a report.
    fn listen(&mut self) {
        let lines = self.stream.take();
        let watched = self.watched.as_mut().filter(|_| !lines.is_empty()).map(Watched::pids);
        for line in lines.into_iter().rev() {
            let own = &mut self.pids;
            let counts = |pid| watched.as_ref().is_none_or(|pids| pids.contains(&pid) && own.is_own(pid));
            if let Some(report) = NeuronReport::read(&line.text, counts) {
                self.since = line.at;
                self.newest = Some(report);
                self.unread = None;
                return;
            }
            let begin = String::from_utf8_lossy(&line.text[..line.text.len().min(1000)]).into_owned();
            self.unread.get_or_insert(begin);
        }
    }

    fn silent(&self, age: Duration) -> Result<(), CollectError> {
        if let Some(reason) = self.stream.trouble() {
            return Err(CollectError::failed(reason));
        }
        let tool = self.tool.display();
        match &self.unread {
            Some(text) => Err(CollectError::failed(format!("{tool} printed no report but: {}", exec::short(text)))),
            // The first report takes some seconds.
            None if self.newest.is_none() && age < FIRST_REPORT_TIMEOUT => Ok(()),
            None => Err(CollectError::failed(format!("{tool} has printed no report for {} s", age.as_secs()))),
        }
    }
}

#[cfg(test)]
mod tests;
