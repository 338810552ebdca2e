//! The program `watchglass`: arguments in, exit status out.
//!
//! Status 0: ended on request. 1: failure. 2: wrong usage or configuration. 3: cannot bind. 4: the data folder cannot
//! be used. 5: a hub refuses for lack of a role. 6: a hub needs a key.

use crate::build_info::BUILD;
use crate::config::{self, AdminTask, AgentTask, Command, Config, Fleet, LocalAuth};
use crate::control::{self, Bound};
use crate::data::Data;
use crate::doctor;
use crate::http::listen::relay;
use crate::modes;
use crate::remote::MAX_KEY_BYTES;
use crate::stderr::Stderr;
use crate::terminal::{complain, has_colors};
use parking_lot::Mutex;
use shared::controls::escaped_json;
use shared::embedded::EmbeddedPage;
use shared::recording::Recording;
use shared::run::{self, About};
use shared::wire::CheckState;
use signals::{Asked, Parent};
use std::io::{self, BufRead, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use stream::clock::{self, Clock};
use system::file::{Whole, is_stdout};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use uplink::settings::KeyFrom;

/// Time between two checks whether the process that holds the data folder still runs.
const HOLDER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Timeout for open connections to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The same with links to hubs, which send their queues first: [`uplink::END_TIMEOUT`] and a margin.
const LINKED_CLOSE_TIMEOUT: Duration = uplink::END_TIMEOUT.saturating_add(CLOSE_TIMEOUT);
/// Timeout for a hub to close its clients and to end.
const HUB_CLOSE_TIMEOUT: Duration = Duration::from_secs(14);

/// Timeout for the last lines of the log.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

/// Minimum number of threads of a server: two of the runtime, the sampler's, the archive's, two of the history's log,
/// one for reads, and one for blocking work.
const MIN_THREADS: usize = 8;

mod log_filter;
mod mcp;
mod record;
mod signals;
mod top;

/// Runs the command of the command line; `page` is the page to serve.
pub fn main(page: EmbeddedPage) -> ExitCode {
    signals::keep_from_ending();
    let command = config::parse(std::env::args_os(), &|name| std::env::var(name).ok(), &config::read_file);
    match command {
        Ok(Command::Serve(config)) => serve(config, Shown::Machine, page),
        Ok(Command::Hub(config)) => serve(config, Shown::Team, page),
        Ok(Command::Agent { config, task: AgentTask::Run }) => agent(config),
        Ok(Command::Agent { config, task: AgentTask::Unit }) => {
            let program = std::env::current_exe().unwrap_or_else(|_| "/usr/local/bin/watchglass".into());
            print_text(&uplink::unit(config.hubs.first(), config.plain_http, &program))
        }
        Ok(Command::Agent { config, task: AgentTask::Status }) => status(&config),
        Ok(Command::Administer { config, wanted }) => administer(&config, &wanted),
        Ok(Command::Demo { config, fleet }) => serve(config, Shown::Fleet(fleet), page),
        Ok(Command::Run { config, task, about }) => launch(&config, *task, *about),
        Ok(Command::Mark { config, task }) => mark(&config, task),
        Ok(Command::Log { config, task }) => log_values(&config, task),
        Ok(Command::Alert { config, task }) => alert(&config, task),
        Ok(Command::Top { config, top }) => top::run(config, &top),
        Ok(Command::Mcp { config, entry }) => mcp::run(&config, entry.as_deref()),
        Ok(Command::Recording { config, task }) => record::run(config, task, page),
        Ok(Command::Export { config, export }) => write_stored(&config, &export),
        Ok(Command::Findings { config, task }) => list_findings(&config, &task),
        Ok(Command::Doctor { config, json, bundle }) => doctor(&config, json, bundle.as_deref()),
        Ok(Command::PrintConfig(config)) => print_text(&config.to_toml()),
        // Only this function knows both the text and whether the program has the page.
        Ok(Command::Say(text)) => {
            print_text(&text.replace(&BUILD.to_string(), &BUILD.of_program(!page.files.is_empty())))
        }
        Ok(Command::Manual(folder)) => match config::packages::write_pages(&folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&format!("watchglass: cannot write into {}: {error}", folder.display()));
                ExitCode::from(1)
            }
        },
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(error.status())
        }
    }
}

/// Sockets of services that accept jobs of other users, if their settings allow it.
#[cfg(unix)]
const SERVICES: [&str; 2] = ["/run/watchglass/run.sock", "/run/watchglass-agent/run.sock"];

/// Possible sockets of this machine's server for reports of runs, best first.
#[cfg(unix)]
fn run_sockets(config: &Config) -> Vec<PathBuf> {
    let named = std::env::var_os(run::SOCKET).map(PathBuf::from);
    let folder = config.data_dir.as_deref().filter(|_| !config.memory);
    let own = folder.map(control::runs_places).unwrap_or_default();
    named.into_iter().chain(config.runs.socket.clone()).chain(own).chain(SERVICES.map(PathBuf::from)).collect()
}

/// `watchglass mark`.
#[cfg(unix)]
fn mark(config: &Config, task: config::MarkTask) -> ExitCode {
    sent(launch::mark::send(&run_sockets(config), &task.mark()))
}

/// `watchglass log`.
#[cfg(unix)]
fn log_values(config: &Config, task: config::LogTask) -> ExitCode {
    sent(launch::mark::send_values(&run_sockets(config), &task.values()))
}

/// Result of a marker or of values. Without a server it is a success, so that scripts go on.
#[cfg(unix)]
fn sent(marked: launch::mark::Marked) -> ExitCode {
    use launch::mark::Marked;
    match marked {
        Marked::Taken => ExitCode::SUCCESS,
        Marked::Nobody(sentence) => {
            complain(&format!("watchglass: {sentence}"));
            ExitCode::SUCCESS
        }
        Marked::Refused(sentence) => {
            complain(&format!("watchglass: {sentence}"));
            ExitCode::from(1)
        }
    }
}

/// `watchglass mark`.
#[cfg(not(unix))]
fn mark(_: &Config, _: config::MarkTask) -> ExitCode {
    complain("watchglass: mark is not supported on this system; nothing was marked");
    ExitCode::SUCCESS
}

/// `watchglass log`.
#[cfg(not(unix))]
fn log_values(_: &Config, _: config::LogTask) -> ExitCode {
    complain("watchglass: log is not supported on this system; POST to api/v1/values");
    ExitCode::SUCCESS
}

/// `watchglass alert`. Without a server the exit status reports it.
#[cfg(unix)]
fn alert(config: &Config, task: config::AlertTask) -> ExitCode {
    use launch::mark::{Marked, ToldAlert, send_alert};
    let (alert, text, severity, wait, run) = task.into_parts();
    match send_alert(&run_sockets(config), &ToldAlert { alert, text, severity, wait, run }) {
        Marked::Taken => ExitCode::SUCCESS,
        Marked::Nobody(sentence) | Marked::Refused(sentence) => {
            complain(&format!("watchglass: {sentence}"));
            ExitCode::from(1)
        }
    }
}

/// `watchglass alert`.
#[cfg(not(unix))]
fn alert(_: &Config, _: config::AlertTask) -> ExitCode {
    complain("watchglass: alert is not supported on this system; POST to api/v1/alerts");
    ExitCode::from(1)
}

/// `watchglass run`.
#[cfg(unix)]
fn launch(config: &Config, task: config::RunTask, about: About) -> ExitCode {
    let folder = config.data_dir.as_deref().filter(|_| !config.memory);
    let sockets = run_sockets(config);
    let slurm = std::env::var("SLURM_JOB_ID").ok().filter(|id| run::check_id(id).is_ok());
    let spool = folder.map(|folder| folder.join(jobs::runs::SPOOL_FOLDER));
    let variable = |name: &str| std::env::var(name).ok();
    let (step, reserved) = (launch::slurm::Step::from_variables(variable), launch::reserved::by_slurm(variable));
    let (command, id, logs) = (task.command, task.id, task.logs);
    let stacks = (task.stacks || config.insight.stacks).then(|| config.insight.py_spy());
    let job = launch::Job { command, id, about, slurm, step, reserved, sockets, spool, logs, stacks };
    let inherited = std::env::var(run::RUN_ID).ok();
    let say = |sentence: &str| complain(&format!("watchglass: {sentence}"));
    match launch::run(job, inherited, || clock::System.wall(), say) {
        launch::Ended::Status(status) => std::process::exit(status),
        launch::Ended::Signal(signal) => launch::process::end_by(signal),
        launch::Ended::NotStarted(status, sentence) => {
            say(&sentence);
            std::process::exit(status)
        }
    }
}

/// `watchglass run`.
#[cfg(not(unix))]
fn launch(_: &Config, _: config::RunTask, _: About) -> ExitCode {
    complain("watchglass: run is not supported on this system; start the command without it");
    ExitCode::from(1)
}

/// `watchglass agent --status`.
fn status(config: &Config) -> ExitCode {
    match modes::links::status(config) {
        Ok((text, true)) => print_text(&text),
        Ok((text, false)) => {
            print_text(&text);
            ExitCode::from(1)
        }
        Err((status, sentence)) => {
            complain(&format!("watchglass: {sentence}"));
            ExitCode::from(status)
        }
    }
}

/// `watchglass user`, `key`, `team` and the other commands that administer a hub.
fn administer(config: &Config, wanted: &config::Administration) -> ExitCode {
    let log = tracing_subscriber::fmt().with_env_filter(log_filter::filter(&config.log)).with_writer(io::stderr);
    log.with_ansi(log_has_colors()).init();
    if let AdminTask::Logs(task) = &wanted.task {
        // A closed pipe ends the output.
        let mut say = |text: &str| crate::terminal::say_to_reader(text);
        return match crate::admin::logs(config, wanted.hub.as_ref(), task, &mut say) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failed) => {
                complain(&format!("watchglass: {failed}"));
                ExitCode::from(failed.status())
            }
        };
    }
    match crate::admin::run(config, wanted) {
        Ok(printed) => {
            if !printed.note.is_empty() {
                complain(&printed.note);
            }
            let said = print_text(&printed.output);
            if printed.status == 0 { said } else { ExitCode::from(printed.status) }
        }
        Err(failed) => {
            complain(&format!("watchglass: {failed}"));
            ExitCode::from(failed.status())
        }
    }
}

/// `watchglass export`.
fn write_stored(config: &Config, wanted: &config::Export) -> ExitCode {
    if let Some(folder) = &wanted.dashboards {
        return match crate::export::command::write_dashboards(folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failed) => {
                complain(&format!("watchglass: {failed}"));
                ExitCode::from(failed.status())
            }
        };
    }
    let Some(folder) = config.data_dir.as_deref().filter(|_| !config.memory) else {
        complain("watchglass: there is no data folder; name that of the server with --data-dir");
        return ExitCode::from(4);
    };
    match crate::export::command::run(folder, wanted, clock::System.wall()) {
        Ok(notes) => {
            notes.iter().for_each(|note| complain(&format!("watchglass: {note}")));
            ExitCode::SUCCESS
        }
        Err(failed) => {
            complain(&format!("watchglass: {failed}"));
            ExitCode::from(failed.status())
        }
    }
}

/// `watchglass findings`.
fn list_findings(config: &Config, task: &config::FindingsTask) -> ExitCode {
    match crate::findings::run(config, task) {
        Ok(listed) => {
            listed.notes.iter().for_each(|note| complain(&format!("watchglass: {note}")));
            let said = print_text(&listed.text);
            if listed.found { ExitCode::from(1) } else { said }
        }
        Err(failed) => {
            complain(&format!("watchglass: {}", failed.sentence));
            ExitCode::from(failed.status)
        }
    }
}

/// Prints to standard output.
fn print_text(text: &str) -> ExitCode {
    match crate::terminal::print_text(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("watchglass: standard output cannot be written: {error}"));
            ExitCode::from(1)
        }
    }
}

fn log_has_colors() -> bool {
    has_colors(io::IsTerminal::is_terminal(&io::stderr()), &|name| std::env::var(name).ok())
}

fn log(config: &Config, stderr: &Stderr) {
    let color = log_has_colors();
    let stderr = stderr.clone();
    let log =
        tracing_subscriber::fmt().with_env_filter(log_filter::filter(&config.log)).with_writer(move || stderr.clone());
    log.with_ansi(color).init();
}

fn doctor(config: &Config, json: bool, bundle: Option<&Path>) -> ExitCode {
    let tail = doctor::Tail::default();
    if bundle.is_some() {
        let held = tail.clone();
        let log = tracing_subscriber::fmt().with_env_filter(log_filter::filter(&config.log)).with_ansi(false);
        log.with_writer(move || held.clone()).init();
    }
    let mut examination = doctor::examine(config, modes::machine::plan(config));
    let roads = match uplink::walk_all(&config.uplink_settings(), config.data_dir.as_deref().filter(|_| !config.memory))
    {
        Ok(roads) => roads,
        Err(sentence) => {
            complain(&format!("watchglass: {sentence}"));
            return ExitCode::from(1);
        }
    };
    let servers = match modes::servers::examine(config) {
        Ok(servers) => servers,
        Err(sentence) => {
            complain(&format!("watchglass: {sentence}"));
            return ExitCode::from(1);
        }
    };
    let wrong = servers.iter().filter(|server| server.state != CheckState::Ok);
    examination.faults.extend(wrong.map(|server| (server.id.clone(), format!("{}: {}", server.id, server.reason))));
    for (hub, steps) in &roads {
        let ends = steps.iter().filter_map(|step| step.found.as_ref().err());
        examination.faults.extend(ends.map(|why| (hub.clone(), format!("the hub {hub}: {why}"))));
    }
    let text = match json {
        true => {
            let hubs: Vec<_> = roads.iter().map(|(hub, steps)| uplink::json(hub, steps)).collect();
            let all = serde_json::json!({ "checks": examination.checks, "hubs": hubs, "servers": servers });
            format!("{}\n", escaped_json(all.to_string()))
        }
        false => {
            let roads = roads.iter().map(|(hub, steps)| uplink::report(hub, steps));
            std::iter::once(doctor::report(&examination)).chain([doctor::servers(&servers)]).chain(roads).collect()
        }
    };
    let said = print_text(&text);
    if let Some(path) = bundle {
        let (facts, configuration) = (collectors::facts(&config.roots()), config.to_toml());
        let whole = doctor::Bundle {
            examination: &examination,
            facts: &facts,
            configuration: &configuration,
            log: &tail.text(),
        };
        let names = doctor::names(config, &|name| std::env::var(name).ok());
        let text = whole.write(&names);
        let written =
            Whole::create(path).and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.finish()));
        if let Err(error) = written {
            complain(&format!("watchglass: {} cannot be written: {error}", path.display()));
            return ExitCode::from(1);
        }
        if !is_stdout(path) {
            complain(&format!("The report is in {}. Read it before you share it.", path.display()));
        }
    }
    if examination.healthy() { said } else { ExitCode::from(1) }
}

/// Contents of the page.
enum Shown {
    /// This machine.
    Machine,
    /// The machines of a team.
    Team,
    /// A simulated fleet.
    Fleet(Fleet),
    /// A recording.
    Recording(Box<Recording>),
}

/// Whether the system grants the threads of a server: without them the runtime panics.
fn threads() -> io::Result<()> {
    let gate = Mutex::new(());
    std::thread::scope(|scope| {
        let _all_at_once = gate.lock();
        (0..MIN_THREADS).try_for_each(|_| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()));
            thread.map(drop)
        })
    })
}

fn serve(config: Config, shown: Shown, page: EmbeddedPage) -> ExitCode {
    run(config, async |config, stderr| serve_until_asked(config, shown, page, stderr).await)
}

fn agent(config: Config) -> ExitCode {
    run(config, async |config, stderr| send_until_asked(config, stderr).await)
}

/// Runs a mode, with a log and a runtime.
fn run(mut config: Config, work: impl AsyncFnOnce(Config, &Stderr) -> ExitCode) -> ExitCode {
    if let Err(error) = read_keys(&mut config) {
        complain(&format!("watchglass: the key cannot be read from standard input: {error}"));
        return ExitCode::from(2);
    }
    let stderr = match threads().and_then(|()| Stderr::start()) {
        Ok(stderr) => stderr,
        Err(error) => {
            complain(&format!("watchglass: the system does not allow {MIN_THREADS} threads: {error}"));
            complain("Raise the process limit (ulimit -u, a container's pids) or the memory limit (ulimit -v).");
            return ExitCode::from(1);
        }
    };
    log(&config, &stderr);
    // Two threads carry thousands of viewers; history is decoded on the blocking pool, which is empty when idle.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).max_blocking_threads(8).enable_all().build();
    let status = match runtime {
        Ok(runtime) => {
            let status = runtime.block_on(work(config, &stderr));
            // Hung collectors have their own threads, which are never joined.
            runtime.shutdown_timeout(Duration::from_millis(200));
            status
        }
        Err(error) => {
            stderr.line(&format!("watchglass: cannot start: {error}"));
            ExitCode::from(1)
        }
    };
    stderr.flush(LOG_FLUSH_TIMEOUT);
    status
}

/// Reads the key of `--key -`: a line of standard input.
fn read_keys(config: &mut Config) -> io::Result<()> {
    for hub in config.hubs.iter_mut().filter(|hub| hub.key == Some(KeyFrom::Stdin)) {
        let mut line = String::new();
        io::stdin().lock().take(MAX_KEY_BYTES).read_line(&mut line)?;
        match line.trim() {
            "" => return Err(io::Error::other("the file is empty")),
            key => hub.key = Some(KeyFrom::Given(key.into())),
        }
    }
    Ok(())
}

/// Prints the sentences of a failure, and returns its exit status.
fn failed(stderr: &Stderr, status: u8, sentences: &str) -> ExitCode {
    stderr.line(&format!("watchglass: {sentences}"));
    ExitCode::from(status)
}

/// Checks the settings of the hubs, if there are any. A failure is printed, and returned as the exit status.
fn check_hubs(config: &Config, stderr: &Stderr, check: fn(&Config) -> Result<(), String>) -> Result<(), ExitCode> {
    if config.hubs.is_empty() {
        return Ok(());
    }
    check(config).map_err(|sentence| failed(stderr, 2, &sentence))
}

/// Opens the data folder, and checks the settings of the hubs. A failure is printed, and returned as the exit status.
fn open_data(config: &Config, stderr: &Stderr) -> Result<Option<Data>, ExitCode> {
    let data = crate::data::open(config).map_err(|sentences| failed(stderr, 4, &sentences))?;
    check_hubs(config, stderr, modes::links::check)?;
    Ok(data)
}

async fn send_until_asked(config: Config, stderr: &Stderr) -> ExitCode {
    let data = match open_data(&config, stderr) {
        Ok(data) => data,
        Err(status) => return status,
    };
    for url in config.hubs.iter().flat_map(|hub| &hub.urls).filter(|url| !url.tls && !url.is_local()) {
        tracing::warn!("{url}: keys and samples travel unencrypted");
    }
    let (stopping, stop) = watch::channel(false);
    let (linked, link) = oneshot::channel();
    let running = tokio::spawn(modes::agent::run(config, data, linked, stop));
    tokio::spawn(async move {
        if let Ok(line) = link.await {
            tell(line);
        }
    });
    until_asked(running, stopping, None, LINKED_CLOSE_TIMEOUT).await
}

/// Opens the accounts of a hub, and prints how to make the first admin and how the first machine joins.
async fn open_hub(
    config: &Config,
    data: Option<Data>,
    address: Option<SocketAddr>,
    stderr: &Stderr,
) -> Result<modes::hub::Opened, ExitCode> {
    let Some(data) = data else {
        stderr.line("watchglass: a hub stores accounts and history on disk; name a folder with --data-dir DIR");
        return Err(ExitCode::from(4));
    };
    let Some(address) = address else {
        stderr.line("watchglass: a hub needs an address to listen on; name one with --bind");
        return Err(ExitCode::from(3));
    };
    match modes::hub::open(config, data, address).await {
        Ok(hub) => {
            hub.sentences.iter().for_each(|sentence| stderr.line(sentence.reveal()));
            Ok(hub)
        }
        Err((status, sentence)) => {
            stderr.line(&format!("watchglass: {sentence}"));
            Err(ExitCode::from(status))
        }
    }
}

/// Binds the addresses and the configured socket. On failure prints the reason and returns the exit status.
async fn listen(config: &Config, stderr: &Stderr) -> Result<(Vec<TcpListener>, Option<Bound>), ExitCode> {
    let listeners = modes::bind(config).await.map_err(|error| {
        let port = config.port;
        stderr.line(&format!("watchglass: cannot listen on port {port}: {error}"));
        if error.kind() == io::ErrorKind::AddrInUse {
            stderr.line("Another program uses it, perhaps another Watchglass. Use any free port with --port 0.");
        }
        ExitCode::from(3)
    })?;
    let unix = config.unix.as_deref().map(control::claim).transpose().map_err(|sentence| {
        stderr.line(&format!("watchglass: {sentence}"));
        ExitCode::from(3)
    })?;
    Ok((listeners, unix))
}

async fn serve_until_asked(config: Config, shown: Shown, page: EmbeddedPage, stderr: &Stderr) -> ExitCode {
    let parent = config.exit_with_parent.then(Parent::now);
    if config.join && (config.unix.is_none() || config.memory) {
        stderr.line("watchglass: --join: name a socket with --unix PATH, and leave out --memory");
        return ExitCode::from(2);
    }
    let (listeners, unix) = match listen(&config, stderr).await {
        Ok(bound) => bound,
        Err(status) => return status,
    };
    let mut told = false;
    if let Some(unix) = unix.as_ref().filter(|_| config.join) {
        tokio::select! {
            joined = join(&config, unix) => told = joined,
            asked = signals::ending(parent) => return exit_status(&asked, parent),
        }
    }
    let address = listeners.first().and_then(|listener| listener.local_addr().ok());
    // Before the address is printed: the first request is answered from the complete history.
    let data = match shown {
        Shown::Machine | Shown::Team => open_data(&config, stderr),
        Shown::Fleet(_) => check_hubs(&config, stderr, modes::links::check_simulated).map(|()| None),
        Shown::Recording(_) => Ok(None),
    };
    let data = match data {
        Ok(data) => data,
        Err(status) => return status,
    };
    let (data, hub) = match shown {
        Shown::Team => match open_hub(&config, data, address, stderr).await {
            Ok(hub) => (None, Some(hub)),
            Err(status) => return status,
        },
        _ => (data, None),
    };
    // A hub authenticates by accounts.
    if hub.is_none() && config.local_auth == LocalAuth::Off {
        tracing::warn!("--local-auth off: every user of this machine can read");
    } else if hub.is_none() && cfg!(not(target_os = "linux")) {
        tracing::warn!("this system cannot tell who calls: every user of this machine can read");
    }
    let scheme = if config.tls_cert.is_some() && hub.is_some() { "https" } else { "http" };
    if page.files.is_empty() {
        tracing::warn!("this program was built without the page: build it with `cargo xtask build`");
    }
    let address = match address {
        Some(address) => format!("{scheme}://{address}{}", config.base_path),
        None => unix_line(&config),
    };
    let most = match (hub.is_some(), config.hubs.is_empty()) {
        (true, _) => HUB_CLOSE_TIMEOUT,
        (false, true) => CLOSE_TIMEOUT,
        (false, false) => LINKED_CLOSE_TIMEOUT,
    };
    let (stopping, stop) = watch::channel(false);
    let (answering, answers) = oneshot::channel();
    let serving = modes::Serving { page, listeners, unix, within: None, stop, answering };
    let running = tokio::spawn(async move {
        match shown {
            Shown::Machine => modes::machine::run(config, data, serving).await,
            Shown::Team => {
                let hub = hub.expect("it was opened above");
                modes::hub::run(config, hub, serving).await;
            }
            Shown::Fleet(fleet) => modes::demo::run(config, fleet, serving).await,
            Shown::Recording(recording) => modes::replay::run(config, *recording, serving).await,
        }
    });
    tokio::spawn(async move {
        if answers.await.is_ok() && !told {
            tell(address);
        }
    });
    until_asked(running, stopping, parent, most).await
}

/// The first line of a server without a port.
fn unix_line(config: &Config) -> String {
    format!("unix:{}", config.unix.as_deref().unwrap_or(Path::new("")).display())
}

/// Proxies the page of the process that holds the data folder until that ends; returns whether there was one.
async fn join(config: &Config, unix: &Bound) -> bool {
    let Some(folder) = config.data_dir.clone().filter(|folder| folder.is_dir()) else { return false };
    if !crate::data::is_held(&folder) {
        return false;
    }
    tracing::info!("another Watchglass has the data folder {}: showing its page", folder.display());
    tell(unix_line(config));
    let places = control::places(&folder, control::FolderSocket::Page);
    let held = async {
        while crate::data::is_held(&folder) {
            tokio::time::sleep(HOLDER_CHECK_INTERVAL).await;
        }
    };
    tokio::select! {
        () = relay(unix, &places) => {}
        () = held => tracing::info!("it has ended: measuring"),
    }
    true
}

/// Waits for a signal or the parent's end, and then for the running work to end, for at most `most`. A second signal
/// ends it at once.
async fn until_asked(
    mut running: tokio::task::JoinHandle<()>,
    stopping: watch::Sender<bool>,
    parent: Option<Parent>,
    most: Duration,
) -> ExitCode {
    let asked = tokio::select! {
        asked = signals::ending(parent) => asked,
        _ = &mut running => {
            tracing::error!("the server has failed; the log above says why");
            return ExitCode::from(1);
        }
    };
    tracing::info!("{}: {}", asked.name, asked.meaning);
    let _ = stopping.send(true);
    // Every connection holds a receiver until it is closed.
    let ended = async { (running.await, stopping.closed().await).0 };
    tokio::select! {
        ended = tokio::time::timeout(most, ended) => if let Ok(Err(error)) = ended {
            tracing::error!(%error, "the server failed");
            return ExitCode::from(1);
        },
        again = signals::ending(None) => tracing::info!("{}: asked once more: ending at once", again.name),
    }
    exit_status(&asked, parent)
}

/// The exit status of an orderly end. Under a parent it is that of a signal: proxies that start programs read 0 as a
/// server that is no longer needed.
fn exit_status(asked: &Asked, parent: Option<Parent>) -> ExitCode {
    match (asked.wanted, parent) {
        (true, None) => ExitCode::SUCCESS,
        (true, Some(_)) => ExitCode::from(143),
        (false, _) => ExitCode::from(1),
    }
}

/// Prints the first line from a separate thread: standard output may have no reader.
fn tell(line: String) {
    let tell = move || {
        if let Err(error) = crate::terminal::print_text(&format!("{line}\n")) {
            tracing::warn!(%error, "standard output cannot be written: {line}");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("stdout".into()).spawn(tell) {
        tracing::warn!(%error, "the first line cannot be printed");
    }
}
