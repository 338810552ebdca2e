//! The binary `watchglass`: arguments in, exit status out.
//!
//! Status 0: asked to end. 1: failure. 2: wrong usage or configuration. 3: cannot bind. 4: the data folder cannot be used.

use backend::clock::{self, Clock};
use backend::config::{self, Command, Config, Fleet, LocalAuth};
use backend::doctor;
use backend::file::{Whole, is_stdout};
use shared::recording::Recording;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tokio::sync::watch;

/// How long open connections may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

mod tape;

fn main() -> ExitCode {
    let command = config::parse(std::env::args_os(), &|name| std::env::var(name).ok(), &config::read_file);
    match command {
        Ok(Command::Serve(config)) => serve(config, Shown::Machine),
        Ok(Command::Demo { config, fleet }) => serve(config, Shown::Fleet(fleet)),
        Ok(Command::Tape { config, tape }) => tape::run(config, tape),
        Ok(Command::Export { config, export }) => write_stored(&config, &export),
        Ok(Command::Doctor { config, json, bundle }) => doctor(&config, json, bundle.as_deref()),
        Ok(Command::PrintConfig(config)) => say(&config.to_toml()),
        Ok(Command::Say(text)) => say(&text),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.status())
        }
    }
}

/// `watchglass export`.
fn write_stored(config: &Config, wanted: &config::Export) -> ExitCode {
    let Some(folder) = config.data_dir.as_deref().filter(|_| !config.memory) else {
        eprintln!("watchglass: there is no data folder; name the server's with --data-dir");
        return ExitCode::from(4);
    };
    match backend::export::command::run(folder, wanted, clock::System.wall()) {
        Ok(notes) => {
            notes.iter().for_each(|note| eprintln!("watchglass: {note}"));
            ExitCode::SUCCESS
        }
        Err(failed) => {
            eprintln!("watchglass: {failed}");
            ExitCode::from(failed.status())
        }
    }
}

/// Writes to standard output; a reader that has gone is no error.
fn say(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn filter(config: &Config) -> tracing_subscriber::EnvFilter {
    use tracing_subscriber::EnvFilter;
    EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"))
}

fn log(config: &Config) {
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log = tracing_subscriber::fmt().with_env_filter(filter(config)).with_writer(std::io::stderr);
    log.with_ansi(colour).init();
}

fn doctor(config: &Config, json: bool, bundle: Option<&Path>) -> ExitCode {
    let tail = doctor::Tail::default();
    if bundle.is_some() {
        let held = tail.clone();
        let log = tracing_subscriber::fmt().with_env_filter(filter(config)).with_ansi(false);
        log.with_writer(move || held.clone()).init();
    }
    let examination = doctor::examine(config, backend::plan(config));
    let text = match json {
        true => format!("{}\n", serde_json::json!({ "checks": examination.checks })),
        false => doctor::report(&examination),
    };
    say(&text);
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
            eprintln!("watchglass: cannot write {}: {error}", path.display());
            return ExitCode::from(1);
        }
        if !is_stdout(path) {
            eprintln!("The report is in {}. Read it before you pass it on.", path.display());
        }
    }
    if examination.healthy() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// What the page shows.
enum Shown {
    /// This machine.
    Machine,
    /// A simulated fleet.
    Fleet(Fleet),
    /// A recording.
    Recording(Box<Recording>),
}

fn serve(config: Config, shown: Shown) -> ExitCode {
    log(&config);
    // Two threads carry thousands of viewers; history is decoded on the blocking pool, which is empty when idle.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).max_blocking_threads(8).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("watchglass: cannot start: {error}");
            return ExitCode::from(1);
        }
    };
    let status = runtime.block_on(serve_until_asked(config, shown));
    // Hung collectors sit on threads of their own: nobody waits for them.
    runtime.shutdown_timeout(Duration::from_millis(200));
    status
}

async fn serve_until_asked(config: Config, shown: Shown) -> ExitCode {
    let listeners = match backend::bind(&config).await {
        Ok(listeners) => listeners,
        Err(error) => {
            let port = config.port;
            eprintln!("watchglass: cannot listen on port {port}: {error}");
            if error.kind() == std::io::ErrorKind::AddrInUse {
                eprintln!("Another program holds it, perhaps another Watchglass. Take any free port with --port 0.");
            }
            return ExitCode::from(3);
        }
    };
    let Some(address) = listeners.first().and_then(|l| l.local_addr().ok()) else {
        eprintln!("watchglass: there is no address to listen on");
        return ExitCode::from(3);
    };
    // Before the address is told: what asks at once is answered with all there is.
    let data = match shown {
        Shown::Machine => backend::data::open(&config),
        Shown::Fleet(_) | Shown::Recording(_) => Ok(None),
    };
    let data = match data {
        Ok(data) => data,
        Err(sentences) => {
            eprintln!("watchglass: {sentences}");
            return ExitCode::from(4);
        }
    };
    say(&format!("http://{address}{}\n", config.base_path));
    let _ = std::io::stdout().flush();
    if config.local_auth == LocalAuth::Off {
        tracing::warn!("--local-auth off: every user of this machine can read");
    } else if cfg!(not(target_os = "linux")) {
        tracing::warn!("this system cannot tell who calls: every user of this machine can read");
    }
    let (stopping, stop) = watch::channel(false);
    let mut running = tokio::spawn(async move {
        match shown {
            Shown::Machine => backend::run(config, data, listeners, stop).await,
            Shown::Fleet(fleet) => backend::run_demo(config, fleet, listeners, stop).await,
            Shown::Recording(recording) => backend::run_recording(config, *recording, listeners, stop).await,
        }
    });
    let name = tokio::select! {
        name = asked_to_end() => name,
        _ = &mut running => {
            tracing::error!("the server has failed; the log above says why");
            return ExitCode::from(1);
        }
    };
    tracing::info!("{name}: ending");
    let _ = stopping.send(true);
    // Every connection holds a receiver until it has said goodbye.
    let ended = async { (running.await, stopping.closed().await).0 };
    match tokio::time::timeout(PATIENCE, ended).await {
        Ok(Err(error)) => {
            tracing::error!(%error, "the server failed");
            ExitCode::from(1)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Resolves with the name of the signal.
#[cfg(unix)]
async fn asked_to_end() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = tokio::signal::ctrl_c() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        },
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
            "SIGINT"
        }
    }
}

/// Resolves with the name of the signal.
#[cfg(not(unix))]
async fn asked_to_end() -> &'static str {
    let _ = tokio::signal::ctrl_c().await;
    "Ctrl-C"
}
