//! `watchglass top`: the dashboard in a terminal, of a server or of collectors in this process.

use super::signals;
use crate::config::{Config, Fleet, Origin, Top};
use crate::control;
use crate::follow::{Happened, StreamPlace, StreamWish, follow};
use crate::modes::{self, Serving};
use crate::remote;
use crate::terminal::complain;
use shared::embedded::EmbeddedPage;
use shared::wire;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};
use top::follow::{Ends, Input, MAX_WAITING, Wish};
use top::palette::{Depth, Palette};
use top::{Form, Options};

/// Maximum number of queued requests.
const MAX_WISHES: usize = 64;
/// Simulated history before the start: a longer one takes time to make.
const DEMO_RETENTION: Duration = Duration::from_secs(3600);

/// Shows the dashboard until it is closed.
pub fn run(config: Config, top: &Top) -> ExitCode {
    match show(config, top) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            complain(&format!("watchglass: {sentence}"));
            ExitCode::from(1)
        }
    }
}

/// The stream, with the work of this process for it, and a sentence about it.
struct OpenedStream {
    place: StreamPlace,
    origin: &'static str,
    /// The work of this process, and the sender that stops it.
    within: Option<(Runtime, watch::Sender<bool>)>,
}

fn show(config: Config, top: &Top) -> Result<(), String> {
    let env = |name: &str| std::env::var(name).ok();
    let flags = &top.flags;
    let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    let dumb = env("TERM").is_some_and(|term| term == "dumb");
    let form = match (flags.plain, flags.json, flags.once || !is_terminal || dumb) {
        (Some(every), ..) => Form::Plain(every),
        (_, true, _) => Form::Json,
        (_, _, true) => Form::Once,
        _ => Form::Screen,
    };
    let palette = Palette::from_env(&env, flags.ascii);
    let chosen = (flags.light || flags.dark).then_some(flags.light);
    let palette = Palette { light: chosen.unwrap_or(palette.light), ..palette };
    let found = find(config, &top.origin)?;
    let (inputs, taken) = sync_channel(MAX_WAITING);
    let (wish, wished) = mpsc::channel(MAX_WISHES);
    let theirs = inputs.clone();
    let place = found.place;
    let client = move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(deliver(place, theirs, wished));
    };
    std::thread::Builder::new().name("stream".into()).spawn(client).map_err(|error| no_thread(&error))?;
    let say = move |wanted: Wish| {
        let wanted = match wanted {
            Wish::Say(message) => StreamWish::Send(wire::encode(&message)),
            Wish::Reopen => StreamWish::Reopen,
        };
        // A stalled connection is replaced by a new one.
        wish.try_send(wanted).is_ok()
    };
    // With a user-defined palette of sixteen colors, ours do not depend on the background.
    let ask = chosen.is_none() && palette.depth > Depth::Sixteen;
    let options = Options { source: flags.source.clone(), mouse: flags.mouse, ask, form };
    let ends = Ends { terminal: inputs, inputs: taken, wish: Box::new(say) };
    let shown = top::follow::run(&options, palette, found.origin, ends);
    if let Some((runtime, stopping)) = found.within {
        let _ = stopping.send(true);
        runtime.shutdown_timeout(Duration::from_millis(200));
    }
    shown
}

fn no_thread(error: &io::Error) -> String {
    format!("the system does not allow another thread: {error}")
}

/// Passes on events of the stream and signals.
async fn deliver(place: StreamPlace, inputs: SyncSender<Input>, wished: mpsc::Receiver<StreamWish>) {
    let theirs = inputs.clone();
    let happened = move |happened| {
        let input = match happened {
            Happened::Connected => Input::Connected,
            Happened::Message(bytes) => Input::Message(bytes),
            Happened::Lost(why, again) => Input::Lost { why, again },
        };
        theirs.send(input).is_ok()
    };
    let end = inputs.clone();
    tokio::select! {
        () = async {
            follow(place, happened, wished).await;
            // The last event was sent; the user may still read.
            std::future::pending().await
        } => {}
        _ = signals::ending(None) => drop(end.send(Input::End)),
        () = stopped(&inputs) => {}
    }
}

/// Passes on that the program must stop, or was suspended.
async fn stopped(inputs: &SyncSender<Input>) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [libc::SIGTSTP, libc::SIGCONT].map(SignalKind::from_raw);
        if let [Ok(mut stop), Ok(mut go_on)] = kinds.map(signal) {
            loop {
                let input = tokio::select! {
                    _ = stop.recv() => Input::Suspend,
                    _ = go_on.recv() => Input::Resumed,
                };
                if inputs.send(input).is_err() {
                    return;
                }
            }
        }
    }
    let _ = inputs;
    std::future::pending().await
}

/// Finds the stream; without a server this process collects.
fn find(mut config: Config, origin: &Origin) -> Result<OpenedStream, String> {
    let elsewhere = |place| OpenedStream { place, origin: "", within: None };
    match origin {
        Origin::Server(entry) => {
            let key = entry.key.as_ref().map(|from| remote::key(from, Some("the keyboard"))).transpose()?;
            Ok(elsewhere(StreamPlace::server(entry, &config.proxies, key)?))
        }
        Origin::Unix(path) => Ok(elsewhere(StreamPlace::Unix(path.clone()))),
        Origin::Demo(gpus) => {
            let fleet = Fleet { gpus: *gpus, hosts: 1, fail: None, seed: 1 };
            config.retention = DEMO_RETENTION;
            within("", |serving| modes::demo::run(config, fleet, serving))
        }
        Origin::File(path) => {
            let opened = imports::open(path, system::file::open, collectors::catalog());
            let recording = opened.map_err(|error| format!("{} cannot be opened: {error}", path.display()))?;
            if recording.describe().is_none() {
                return Err(format!("{} has no samples", path.display()));
            }
            within("", |serving| modes::replay::run(config, recording, serving))
        }
        Origin::Here => match server_here(&config)? {
            Some(place) => Ok(elsewhere(place)),
            None => {
                // It writes nothing and sends nothing.
                (config.memory, config.remote_write, config.hubs) = (true, None, Vec::new());
                let origin = "standalone: history starts now and is not saved  ? keys  q quit";
                within(origin, |serving| modes::machine::run(config, None, serving))
            }
        },
    }
}

/// The server that holds the data folder, if one runs and shares its page.
fn server_here(config: &Config) -> Result<Option<StreamPlace>, String> {
    let Some(folder) = config.data_dir.as_deref().filter(|folder| folder.is_dir()) else { return Ok(None) };
    let mut places = Vec::new();
    let sockets = control::places(folder, control::FolderSocket::Control).into_iter();
    places.extend(sockets.filter(|socket| socket.exists()).map(StreamPlace::Unix));
    if crate::data::is_held(folder) {
        let entry = crate::config::entry_here(config);
        places.push(StreamPlace::server(&entry, &config.proxies, None)?);
    }
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| no_thread(&error))?;
    Ok(places.into_iter().find(|place| runtime.block_on(place.answers())))
}

/// Runs a mode in this process, for itself alone.
fn within<F: Future<Output = ()> + Send + 'static>(
    origin: &'static str,
    mode: impl FnOnce(Serving) -> F,
) -> Result<OpenedStream, String> {
    let runtime = Builder::new_multi_thread().worker_threads(2).max_blocking_threads(8).enable_all().build();
    let runtime = runtime.map_err(|error| no_thread(&error))?;
    let (stopping, stop) = watch::channel(false);
    let (answering, _) = oneshot::channel();
    let (connections, within) = mpsc::channel(1);
    runtime.spawn(mode(Serving {
        page: EmbeddedPage::NONE,
        listeners: Vec::new(),
        unix: None,
        within: Some(within),
        stop,
        answering,
    }));
    Ok(OpenedStream { place: StreamPlace::Within(connections), origin, within: Some((runtime, stopping)) })
}
