//! Measures the cost of a thousand connected agents on a hub. The real hub uses its certificate. The agents, made of
//! the protocol alone, run in another process over real sockets. The clock is the real one, so only some minutes of a
//! quarter are measured.

use crate::cost::{Ended, cpu_of, server};
use crate::history::rss;
use crate::record::Recording;
use crate::table::Table;
use api::Operation;
use futures_util::{SinkExt, StreamExt};
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use shared::agent::{self, AgentHello, AgentMessage, HubMessage, Offer, PROTOCOL_NAME};
use shared::catalog::{Metric, cpu};
use shared::series::SeriesDef;
use shared::tick::TickState;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stream::clock::{Clock, System};
use stream::store::QUARTER;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{interval_at, sleep};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use watchglass_tests::certificate::Authority;
use watchglass_tests::hub::{machines, people};

/// Agents of the goal, series of each, and the number of these that change.
const AGENTS: usize = 1_000;
const SERIES: usize = 500;
const MOVING_SERIES: usize = 150;
/// Pause between two new connections: a hub accepts 50 per second.
const OPENING: Duration = Duration::from_millis(25);
/// Duration of the measurement.
const MEASURED: Duration = Duration::from_secs(60);
/// Agents send within this many ms after the second, as a hub of a thousand requests it.
const SPREAD: u64 = 250;

/// Measures all figures of this file.
pub fn measure(table: &mut Table, procfs: &Recording) {
    let mut state = TickState::default();
    state.extend(procfs.steps.iter().copied());
    let size = |(second, tick): (i64, &Vec<f64>)| {
        let frame = state.encode(second * 1_000, false, tick);
        agent::encode_ticks([&frame[..]]).len()
    };
    // The first frame has all values.
    let sizes: Vec<usize> = (0..).zip(&procfs.ticks).map(size).skip(1).collect();
    let wire = sizes.iter().sum::<usize>() as f64 / sizes.len().max(1) as f64;
    let on = format!("{} series of /proc recorded here; WebSocket, TLS and TCP heads not counted", procfs.steps.len());
    table.at_most("a tick of an agent on the wire", wire, "B", 150.0, "150 B", "Netdata 11 B a sample", &on);
    let rows = ["CPU of a hub with 1,000 agents, live alone", "... its memory", "... first answer after kill -9"];
    let goals = ["6 %", "1 GiB", "10 s"];
    match hub() {
        Ok(figures) => {
            let on = format!(
                "{AGENTS} x {SERIES} series, {MOVING_SERIES} walk at random; TLS, {:.0} ticks a second, {} s",
                figures.ticks,
                MEASURED.as_secs()
            );
            table.at_most(rows[0], figures.cpu, "% of a core", 6.0, goals[0], "Netdata 1 core", &on);
            table.at_most(
                rows[1],
                figures.mib,
                "MiB",
                1_024.0,
                goals[1],
                "Netdata 10 GiB",
                "before the first quarter is cut",
            );
            let on = format!("{:.0} s of ticks in its log, times {:.1} for a quarter", figures.logged, figures.scale());
            table.at_most(rows[2], figures.start * figures.scale(), "s", 10.0, goals[2], "", &on);
        }
        Err(why) => rows.into_iter().zip(goals).for_each(|(row, goal)| table.missing(row, goal, &why)),
    }
}

/// Cost of the agents on their hub.
struct Figures {
    /// CPU of the hub in percent of a core.
    cpu: f64,
    mib: f64,
    /// Acknowledged ticks per second.
    ticks: f64,
    /// Seconds of ticks in the log when the hub was killed.
    logged: f64,
    /// Seconds from the restart to the first answer.
    start: f64,
}

impl Figures {
    /// Ratio of a whole quarter of an hour to the logged time.
    fn scale(&self) -> f64 {
        (QUARTER as f64 / 1_000.0 / self.logged).max(1.0)
    }
}

/// Starts the hub of a folder, and waits until it prints its address.
pub fn start(folder: &Path, (chain, key): &(PathBuf, PathBuf)) -> Result<(Ended, SocketAddr), String> {
    let words = |error: std::io::Error| error.to_string();
    #[allow(clippy::disallowed_methods, reason = "the bench starts the hub itself")]
    let hub = Command::new(server()?)
        .args(["hub", "--no-local", "--bind", "127.0.0.1", "--port", "0", "--data-dir"])
        .arg(folder)
        .arg("--tls-cert")
        .arg(chain)
        .arg("--tls-key")
        .arg(key)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(words)?;
    let mut hub = Ended(hub);
    let mut url = String::new();
    BufReader::new(hub.0.stdout.take().ok_or("the hub has no output")?).read_line(&mut url).map_err(words)?;
    let address = url.trim().trim_start_matches("https://").trim_end_matches('/').parse();
    Ok((hub, address.map_err(|_| format!("the hub said {url:?}"))?))
}

fn hub() -> Result<Figures, String> {
    let words = |error: std::io::Error| error.to_string();
    let temp = tempfile::tempdir().map_err(words)?;
    let (data, authority) = (temp.path().join("hub"), Authority::new());
    std::fs::create_dir(&data).map_err(words)?;
    let (certificate, ca) = (authority.sign("localhost", temp.path()), authority.write(temp.path()));
    let keys = machines(&data, &people(&data)["join"], AGENTS);
    let list = temp.path().join("keys");
    std::fs::write(&list, keys.join("\n")).map_err(words)?;
    let (hub, address) = start(&data, &certificate)?;
    let process = hub.0.id().to_string();

    // The quarter of an hour must not end meanwhile: its end is measured separately.
    let needed = OPENING * AGENTS as u32 + MEASURED + Duration::from_secs(30);
    let left = Duration::from_millis((QUARTER - System.wall().rem_euclid(QUARTER)) as u64);
    if left < needed {
        std::thread::sleep(left + Duration::from_secs(5));
    }
    let begun = Instant::now();
    let mut agents = Linked::start(address, &list, Some(&ca))?;
    // The opening of the connections is not measured.
    std::thread::sleep(Duration::from_secs(5));
    let (since, before, cpu) = (Instant::now(), agents.ticks()?, cpu_of(&process));
    std::thread::sleep(MEASURED);
    let (seconds, after, cpu) = (since.elapsed().as_secs_f64(), agents.ticks()?, cpu_of(&process) - cpu);
    let mib = rss(&process).ok_or("the hub has ended")?;
    // The hub ends by SIGKILL. On average an agent has sent ticks for half of the time in which connections were
    // opened.
    let logged = (begun.elapsed() - OPENING * AGENTS as u32 / 2).as_secs_f64();
    drop(hub);
    drop(agents);
    let starts = Instant::now();
    let (_hub, _) = start(&data, &certificate)?;
    Ok(Figures {
        cpu: cpu.as_secs_f64() / seconds * 100.0,
        mib,
        ticks: (after - before) as f64 / seconds,
        logged,
        start: starts.elapsed().as_secs_f64(),
    })
}

/// Agents in a process of their own, so that only the hub is measured.
pub struct Linked {
    _process: Ended,
    ask: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Linked {
    /// Starts one agent for each line of a list of keys, and waits until all are welcome. With a certificate authority
    /// they use TLS.
    pub fn start(address: SocketAddr, list: &Path, ca: Option<&Path>) -> Result<Linked, String> {
        let words = |error: std::io::Error| error.to_string();
        let exe = std::env::current_exe().map_err(words)?;
        #[allow(clippy::disallowed_methods, reason = "a process of its own, so that only the hub counts")]
        let mut command = Command::new(exe);
        command.arg("agents").arg(address.to_string()).arg(list).args(ca);
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(words)?;
        let mut process = Ended(process);
        let (Some(ask), Some(told)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err("the agents have no pipes".into());
        };
        let mut linked = Linked { _process: process, ask, told: BufReader::new(told) };
        linked.answer()?;
        Ok(linked)
    }

    /// Number of acknowledged ticks.
    pub fn ticks(&mut self) -> Result<u64, String> {
        writeln!(self.ask).map_err(|error| error.to_string())?;
        self.answer()
    }

    fn answer(&mut self) -> Result<u64, String> {
        let mut line = String::new();
        self.told.read_line(&mut line).map_err(|error| error.to_string())?;
        line.trim().parse().map_err(|_| "the agents were not all taken".to_string())
    }
}

/// The child process of [`Linked`]. It opens all connections and prints a line when all are welcome. For each line of
/// its input it then prints the number of acknowledged ticks.
#[allow(clippy::print_stdout, reason = "its lines are read by the parent")]
pub fn agents(args: &[String]) -> ExitCode {
    let (address, list, ca) = match args {
        [address, list] => (address, list, None),
        [address, list, ca] => (address, list, Some(ca)),
        _ => return ExitCode::FAILURE,
    };
    let (Ok(address), Ok(keys)) = (address.parse::<SocketAddr>(), std::fs::read_to_string(list)) else {
        return ExitCode::FAILURE;
    };
    let tls = ca.map(|ca| trusting(Path::new(ca)));
    if matches!(tls, Some(None)) {
        return ExitCode::FAILURE;
    }
    let tls = tls.flatten();
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let acknowledged = Arc::new(AtomicU64::new(0));
    let counted = acknowledged.clone();
    let ready = runtime.block_on(async move {
        let welcome = Arc::new(Semaphore::new(0));
        let count = keys.lines().count() as u32;
        for (n, key) in (0u64..).zip(keys.lines().map(str::to_string)) {
            let (tls, welcome, acknowledged) = (tls.clone(), welcome.clone(), acknowledged.clone());
            tokio::spawn(async move {
                let failed = link(address, tls, n, &key, &welcome, &acknowledged).await;
                eprintln!("agent {n} has ended: {failed:?}");
                welcome.close();
            });
            sleep(OPENING).await;
        }
        welcome.acquire_many(count).await.ok()?.forget();
        println!("0");
        std::thread::spawn(move || {
            for _ in std::io::stdin().lines() {
                println!("{}", counted.load(Ordering::Relaxed));
            }
            // The parent process has ended.
            std::process::exit(0)
        });
        std::future::pending::<Option<()>>().await
    });
    if ready.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn trusting(ca: &Path) -> Option<Arc<rustls::ClientConfig>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(ca).ok()?).ok()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    Some(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// One agent. It sends its series, and then a tick per second.
async fn link(
    address: SocketAddr,
    tls: Option<Arc<rustls::ClientConfig>>,
    n: u64,
    key: &str,
    welcome: &Semaphore,
    acknowledged: &AtomicU64,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let scheme = if tls.is_some() { "wss" } else { "ws" };
    let stream: Box<dyn Stream> = match tls {
        Some(tls) => {
            let connector = tokio_rustls::TlsConnector::from(tls);
            Box::new(connector.connect(ServerName::try_from("localhost")?, stream).await?)
        }
        None => Box::new(stream),
    };
    let mut request =
        format!("{scheme}://localhost:{}{}", address.port(), Operation::LinkAgent.path()).into_client_request()?;
    request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}"))?);
    request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL_NAME));
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await?;
    let now = System.wall();
    let first = (now / 100) as u64;
    let hello = AgentHello {
        instance: n,
        folder: n,
        boot: None,
        machine: None,
        host: format!("node-{n}"),
        version: env!("CARGO_PKG_VERSION").into(),
        started: now,
        interval: 1_000,
        facts: Vec::new(),
        labels: Vec::new(),
        now,
        life: first,
        seq: 0,
        record: 0,
        retention: 43_200_000,
        memory: false,
        // It stores only samples that it sends, so none is missing.
        offers: vec![Offer { first: first + 1, last: u64::MAX, from: now, to: i64::MAX }],
    };
    let metric = Metric::from(&cpu::CORE_PERCENT);
    let (row, steps) = (0, metric.steps);
    let defs = (0..SERIES).map(|n| (n as u32, SeriesDef { metric: row, instance: n.to_string() })).collect();
    let mut state = TickState::after(first, now);
    state.extend(std::iter::repeat_n(steps, SERIES));
    for message in [
        AgentMessage::Hello(Box::new(hello)),
        AgentMessage::Rows { rows: vec![(row, metric)], charts: Vec::new() },
        AgentMessage::Series { defs },
    ] {
        socket.send(Message::Binary(agent::encode(&message).into())).await?;
    }
    socket.send(Message::Binary(agent::encode_ticks([&state.keyframe()[..]]).into())).await?;
    let to_second = Duration::from_millis(1_000 - System.wall().rem_euclid(1_000) as u64);
    let spread = Duration::from_millis(n * 7_919 % (SPREAD + 1));
    let mut ticks = interval_at(tokio::time::Instant::now() + to_second + spread, Duration::from_secs(1));
    let (mut values, mut chance, mut messages) = (vec![50.0; SERIES], 0x9e37_79b9_7f4a_7c15 ^ (n + 1), 0);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                for value in &mut values[..MOVING_SERIES] {
                    chance ^= chance << 13;
                    chance ^= chance >> 7;
                    chance ^= chance << 17;
                    let step = (chance % 201) as f64 - 100.0;
                    *value = ((*value * 100.0 + step).round().clamp(0.0, 10_000.0)) / 100.0;
                }
                let frame = state.encode(System.wall(), false, &values);
                socket.send(Message::Binary(agent::encode_ticks([&frame[..]]).into())).await?;
            }
            message = socket.next() => {
                let Message::Binary(bytes) = message.ok_or("the hub closed it")?? else { continue };
                match agent::decode_hub(&bytes)? {
                    Some(HubMessage::Welcome(_)) => welcome.add_permits(1),
                    Some(HubMessage::Ack { messages: all, .. }) => {
                        acknowledged.fetch_add(u64::from(all - messages), Ordering::Relaxed);
                        messages = all;
                    }
                    Some(HubMessage::Goodbye { reason, .. }) => return Err(reason.into()),
                    _ => {}
                }
            }
        }
    }
}
