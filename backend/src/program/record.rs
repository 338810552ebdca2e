//! `watchglass record`, `replay` and `import`.

use super::{Shown, serve};
use crate::config::{Config, RecordingTask, When, translated};
use crate::terminal::complain;
use api::Operation;
use api::parameter::{FROM, TO};
use history::Folder;
use shared::embedded::EmbeddedPage;
use shared::recording::Recording;
use shared::unit::instant::seconds;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use stream::clock::{self, Clock};
use stream::recording;
use stream::store::{Limits, Store};
use system::file::{self, Whole, is_stdout};

/// Runs the task.
pub fn run(config: Config, task: RecordingTask, page: EmbeddedPage) -> ExitCode {
    let done = match task {
        RecordingTask::Show(file) => {
            return open(&file)
                .map_or_else(failed, |recording| serve(config, Shown::Recording(Box::new(recording)), page));
        }
        RecordingTask::Convert { file, output } => open(&file).and_then(|recording| convert(&recording, &output)),
        RecordingTask::Settings(file) => settings(&file),
        RecordingTask::Record { file, from, to } => record(&config, &file, from, to),
    };
    done.map_or_else(failed, |()| ExitCode::SUCCESS)
}

fn failed(sentence: String) -> ExitCode {
    complain(&format!("watchglass: {sentence}"));
    ExitCode::from(1)
}

/// Opens a recording or a file of another program; prints damaged parts.
fn open(file: &Path) -> Result<Recording, String> {
    let opened = imports::open(file, file::open, collectors::catalog());
    let recording = opened.map_err(|error| format!("{} cannot be opened: {error}", file.display()))?;
    for note in &recording.notes {
        complain(&format!("watchglass: {}: {note}", file.display()));
    }
    Ok(recording)
}

/// Maximum size of a settings file, bytes.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

fn settings(file: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("{} cannot be read: {error}", file.display());
    let mut text = String::new();
    file::open(file).map_err(cannot)?.take(MAX_SETTINGS_BYTES).read_to_string(&mut text).map_err(cannot)?;
    let ours = translated(&text).map_err(|why| format!("{}: {why}", file.display()))?;
    if ours.is_empty() {
        complain(&format!("watchglass: {} has no settings for a machine", file.display()));
    }
    // The reader may have gone.
    let _ = io::stdout().write_all(ours.as_bytes());
    Ok(())
}

fn convert(recording: &Recording, output: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("{} cannot be written: {error}", output.display());
    let whole = recording.write(Whole::create(output).map_err(cannot)?).map_err(cannot)?;
    whole.finish().map_err(cannot)?;
    if !is_stdout(output) {
        complain(&format!("The recording is in {}. Show it with: watchglass replay {0}", output.display()));
    }
    Ok(())
}

/// Records the stored history of this machine's server; without a server, that of the data folder.
fn record(config: &Config, file: &Path, from: Option<When>, to: When) -> Result<(), String> {
    let port = if config.port == 0 { 7171 } else { config.port };
    let connect = |ip: &IpAddr| {
        let address = SocketAddr::new(*ip, port);
        TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok().map(|stream| (address, stream))
    };
    let folder = config.data_dir.as_deref().filter(|folder| !config.memory && folder.is_dir());
    if let Some((address, stream)) = config.bind.iter().find_map(connect) {
        let now = clock::System.wall();
        let (from, to) = (from.map(|from| seconds(from.begin(now))), seconds(to.end(now)));
        let parameters = [(FROM, from), (TO, Some(to))];
        let path = Operation::RecordSamples.asking(&[], &parameters);
        let mut answer = ask(stream, address, &format!("{}{path}", config.base_path))?;
        return write(file, || answer.piece());
    }
    let Some(folder) = folder else {
        let other = "and there is no data folder to read; start a server, or name its --port or --data-dir";
        return Err(format!("no Watchglass responds on port {port} of this machine, {other}"));
    };
    let unread =
        |error: &dyn std::fmt::Display| format!("the data folder {} cannot be read: {error}", folder.display());
    let found = Folder::read_only(folder).map_err(|error| unread(&error))?;
    found.report.damages.iter().for_each(|damage| complain(&format!("watchglass: skipped: {damage}")));
    let limits = Limits { retention: i64::MAX / 4, bytes: usize::MAX };
    let (store, _) = Store::of_found(Arc::new(collectors::catalog()), &found, limits, None);
    let now = clock::System.wall();
    if from.is_some_and(|from| from.begin(now) > to.end(now)) {
        return Err("--from is later than --to".into());
    }
    let from = from.map_or(i64::MIN / 4, |from| from.begin(now));
    let recorder = recording::Recorder::new(&store, &store.sources(), from, to.end(now), false);
    let mut recorder = recorder.map_err(|nothing| format!("{nothing}: {}", folder.display()))?;
    write(file, || recorder.piece())
}

/// Writes a recording piece by piece; the file appears at its name once it is complete.
fn write(file: &Path, mut piece: impl FnMut() -> io::Result<Option<Vec<u8>>>) -> Result<(), String> {
    let cannot = |error: io::Error| format!("{} cannot be written: {error}", file.display());
    let mut whole = Whole::create(file).map_err(cannot)?;
    let mut len = 0;
    while let Some(piece) = piece().map_err(|error| format!("the recording ended early: {error}"))? {
        whole.write_all(&piece).map_err(cannot)?;
        len += piece.len();
    }
    whole.finish().map_err(cannot)?;
    if !is_stdout(file) {
        complain(&format!("The recording is in {} ({len} bytes). Show it with: watchglass replay {0}", file.display()));
    }
    Ok(())
}

/// The server's response, piece by piece.
struct RecordAnswer(BufReader<TcpStream>);

/// Requests a path.
///
/// # Errors
/// A sentence: the server is unreachable, or its own error.
fn ask(stream: TcpStream, address: SocketAddr, path: &str) -> Result<RecordAnswer, String> {
    let broken = |error: io::Error| format!("{address} does not respond: {error}");
    stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(broken)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    (&stream).write_all(request.as_bytes()).map_err(broken)?;
    let mut reader = BufReader::new(stream);
    let (mut status, mut line) = (String::new(), String::new());
    reader.read_line(&mut status).map_err(broken)?;
    while reader.read_line(&mut line).map_err(broken)? > 2 {
        line.clear();
    }
    if status.split(' ').nth(1) == Some("200") {
        return Ok(RecordAnswer(reader));
    }
    let mut text = String::new();
    let _ = reader.take(64 * 1024).read_to_string(&mut text); // A partial reason is enough.
    let reason =
        serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|v| Some(v.get("error")?.as_str()?.to_string()));
    Err(reason
        .unwrap_or_else(|| format!("{address} is not a Watchglass that can record: it answered {:?}", status.trim())))
}

impl RecordAnswer {
    /// The next chunk; none after the last one. Without a last chunk the response is truncated.
    fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let len = usize::from_str_radix(line.trim(), 16).ok().filter(|len| *len <= 1 << 30);
        let len = len.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut piece = vec![0; len + 2];
        self.0.read_exact(&mut piece)?;
        piece.truncate(len);
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}
