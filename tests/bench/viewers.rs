//! Measures the cost of ten thousand viewers on the server, with real sockets on loopback in another process.

use crate::cost::{Ended, cpu_of, server};
use crate::history::rss;
use crate::table::Table;
use futures_util::{SinkExt, StreamExt};
use shared::catalog::fleet::Grain;
use shared::wire::{self, CREDIT, OVERVIEW, PROTOCOL, PageMessage, TICKS};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use watchglass_tests::crowd::Crowd;

/// Number of viewers in the goal.
const VIEWERS: usize = 10_000;
/// Number of viewers from one address of loopback, which has fewer ports than there are viewers.
const VIEWERS_EACH: usize = 5_000;
/// Number of connections that are opened at the same time.
const OPENING: usize = 64;
/// Duration of the measurement.
const MEASURED: Duration = Duration::from_secs(20);

/// Machines over which the viewers of machines are spread, and machines of the overview.
const MACHINES: usize = 100;
const FLEET: usize = 1_000;

/// Measures pages and scripts of one machine, and pages of many machines.
pub fn measure(table: &mut Table) {
    let forms = [
        ("binary", "pages at 1 Hz".to_string()),
        ("json", "JSON viewers at 1 Hz".to_string()),
        ("machines", format!("pages, {} on each of {MACHINES} machines", VIEWERS / MACHINES)),
        ("overview", format!("pages of the overview of {FLEET} machines")),
    ];
    for (form, name) in forms {
        let (cpu, memory) = (format!("CPU of {VIEWERS} {name}"), format!("memory of one of {VIEWERS} {name}"));
        match viewers(form) {
            Ok(figures) => {
                let on =
                    format!("of a core; {:.0} messages a second, {:.0} s", figures.messages, MEASURED.as_secs_f64());
                table.at_most(&cpu, figures.cpu, "%", 10.0, "10 %", "Centrifugo 80", &on);
                table.at_most(&memory, figures.kib, "KiB", 4.0, "4 KiB", "Centrifugo 30", "RSS of the server");
            }
            Err(why) => {
                table.missing(&cpu, "10 %", &why);
                table.missing(&memory, "4 KiB", &why);
            }
        }
    }
}

/// The command of the server for viewers of this form.
fn served(form: &str) -> Result<Command, String> {
    let hosts = match form {
        "machines" => MACHINES,
        "overview" => FLEET,
        _ => {
            #[allow(clippy::disallowed_methods, reason = "the bench starts the server itself")]
            let mut command = Command::new(server()?);
            command.args(["--port", "0", "--memory"]);
            return Ok(command);
        }
    };
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    #[allow(clippy::disallowed_methods, reason = "a process of its own, so that only the server counts")]
    let mut command = Command::new(exe);
    command.arg("crowd").arg(hosts.to_string());
    Ok(command)
}

/// The child process of [`viewers`] for many machines: serves this many machines with made-up values, and prints its
/// address. Their samples cost next to nothing, and no agent is connected.
#[allow(clippy::print_stdout, reason = "its line is read by the parent")]
pub fn crowd(args: &[String]) -> ExitCode {
    let Some(hosts) = args.first().and_then(|hosts| hosts.parse().ok()) else { return ExitCode::FAILURE };
    let crowd = Crowd::new(hosts);
    println!("{}", crowd.url);
    loop {
        let begun = Instant::now();
        crowd.pass(1);
        std::thread::sleep(Duration::from_secs(1).saturating_sub(begun.elapsed()));
    }
}

/// Cost of the viewers on their server.
struct Figures {
    /// CPU of the server in percent of a core.
    cpu: f64,
    kib: f64,
    /// Messages that the viewers received per second.
    messages: f64,
}

fn viewers(form: &str) -> Result<Figures, String> {
    let words = |error: std::io::Error| error.to_string();
    let served = served(form)?.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(words)?;
    let mut served = Ended(served);
    let said = served.0.stdout.take().ok_or("the server has no output")?;
    let mut url = String::new();
    BufReader::new(said).read_line(&mut url).map_err(words)?;
    let address = url.trim().trim_start_matches("http://").trim_end_matches('/').to_string();
    // The start of the server is not measured.
    std::thread::sleep(Duration::from_secs(5));
    let process = served.0.id().to_string();
    let alone = (cpu_of(&process), rss(&process).ok_or("the server has ended")?);
    std::thread::sleep(Duration::from_secs(5));
    let alone = ((cpu_of(&process) - alone.0).as_secs_f64() / 5.0, alone.1);

    let exe = std::env::current_exe().map_err(words)?;
    #[allow(clippy::disallowed_methods, reason = "a process of its own, so that only the server counts")]
    let watching = Command::new(exe)
        .args(["viewers", form, &address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(words)?;
    let mut watching = Ended(watching);
    let (Some(mut ask), Some(told)) = (watching.0.stdin.take(), watching.0.stdout.take()) else {
        return Err("the viewers have no pipes".into());
    };
    let mut told = BufReader::new(told);
    let mut answer = || -> Result<u64, String> {
        let mut line = String::new();
        told.read_line(&mut line).map_err(words)?;
        line.trim().parse().map_err(|_| "the viewers were not all served".to_string())
    };
    answer()?;
    // Opening the connections is not measured.
    std::thread::sleep(Duration::from_secs(5));
    let mut count = || -> Result<u64, String> {
        writeln!(ask).map_err(words)?;
        answer()
    };
    let (begun, messages, before) = (Instant::now(), count()?, cpu_of(&process));
    std::thread::sleep(MEASURED);
    let (seconds, messages, after) = (begun.elapsed().as_secs_f64(), count()? - messages, cpu_of(&process));
    // The figure is converted from MiB to KiB.
    let kib = (rss(&process).ok_or("the server has ended")? - alone.1) * 1024.0 / VIEWERS as f64;
    let cpu = (after - before).as_secs_f64() / seconds - alone.0;
    Ok(Figures { cpu: cpu * 100.0, kib, messages: messages as f64 / seconds })
}

/// The child process of [`viewers`]. It opens all viewers and prints a line when each has had a tick. For each line of
/// its input it then prints the number of received messages.
#[allow(clippy::print_stdout, reason = "its lines are read by the parent")]
pub fn watch(args: &[String]) -> ExitCode {
    let [form, address] = args else { return ExitCode::FAILURE };
    let Ok(address) = address.parse::<SocketAddr>() else { return ExitCode::FAILURE };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let form: Arc<str> = form.as_str().into();
    let messages = Arc::new(AtomicU64::new(0));
    let counted = messages.clone();
    let ready = runtime.block_on(async move {
        let (opening, served) = (Arc::new(Semaphore::new(OPENING)), Arc::new(Semaphore::new(0)));
        for n in 0..VIEWERS {
            let Ok(turn) = opening.clone().acquire_owned().await else { return None };
            let (form, messages, served) = (form.clone(), messages.clone(), served.clone());
            tokio::spawn(async move {
                let failed = viewer(address, n, &form, &messages, &served, turn).await;
                eprintln!("viewer {n} has ended: {failed:?}");
                served.close();
            });
        }
        served.acquire_many(VIEWERS as u32).await.ok()?.forget();
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

/// One viewer. It behaves as a page: it reads all messages and acknowledges them by half of its credit.
async fn viewer(
    address: SocketAddr,
    n: usize,
    form: &str,
    messages: &AtomicU64,
    served: &Semaphore,
    turn: tokio::sync::OwnedSemaphorePermit,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(Ipv4Addr::new(127, 0, 0, 2 + (n / VIEWERS_EACH) as u8).into(), 0))?;
    let stream = socket.connect(address).await?;
    let json = form == "json";
    let config =
        WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(0).max_write_buffer_size(4 << 10);
    let url = format!("ws://{address}/api/v1/live{}", if json { "?format=json" } else { "" });
    let (mut socket, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
    if !json {
        let sources = match form {
            "machines" => vec![format!("node-{:03}", n % MACHINES + 1)],
            "overview" => Vec::new(),
            _ => vec![String::new()],
        };
        let open = PageMessage::Open { protocol: PROTOCOL, window: 60_000, resume: None, sources };
        socket.send(Message::Binary(wire::encode(&open).into())).await?;
        if form == "overview" {
            let overview = PageMessage::Overview { grain: Grain::Sources, on: true };
            socket.send(Message::Binary(wire::encode(&overview).into())).await?;
        }
    }
    let (mut turn, mut taken) = (Some(turn), 0);
    while let Some(message) = socket.next().await {
        let tick = match message? {
            Message::Binary(bytes) => matches!(bytes.first(), Some(&(TICKS | OVERVIEW))),
            Message::Text(_) => true,
            _ => false,
        };
        if !tick {
            continue;
        }
        messages.fetch_add(1, Ordering::Relaxed);
        taken += 1;
        if turn.take().is_some() {
            served.add_permits(1);
        }
        if !json && taken % (CREDIT / 2) == 0 {
            socket.send(Message::Binary(wire::encode(&PageMessage::Ack { messages: taken }).into())).await?;
        }
    }
    Err("the server closed it".into())
}
