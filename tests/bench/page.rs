//! Measures the page in a real browser: its size, the time to its charts, and the cost of its panels compared with
//! uPlot on the same data. The scenarios are the scripts in `redraw/`.

use crate::table::Table;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;
use watchglass_tests::waiting::{MAX_WAIT, until_or};

/// Time of one frame on a 60 Hz screen in ms.
const FRAME_MS: f64 = 16.7;
/// Maximum time for a scenario. One of them takes 12 h of ticks through the page.
const SCENARIO: Duration = Duration::from_secs(600);

/// A scenario: name of its script, description, goal in ms and as text, and the goal for our time as a share of
/// uPlot's.
type Scenario = (&'static str, &'static str, f64, &'static str, Option<(f64, &'static str)>);

const SCENARIOS: [Scenario; 5] = [
    ("one", "redraw, 24 x 43,200 points", FRAME_MS, "16.7 ms", Some((0.6, "0.6"))),
    // The page itself draws only the charts near the view. 200 charts of the smaller size fill three quarters of a 4K
    // screen.
    ("small", "a tick of 200 live charts in view, 300 x 100", 10.0, "10 ms", Some((1.0, "1"))),
    ("live", "the same, 600 x 200: twelve screens of 1080 lines", 10.0, "10 ms", Some((1.0, "1"))),
    ("zoom", "zoom of 24 charts over 12 h raw", 20.0, "20 ms", Some((1.0, "1"))),
    ("hover", "hover over 24 charts", 4.0, "4 ms", None),
];

/// Measures everything. `redraw` is the folder with our drawing as wasm and with uPlot; None when there is none.
pub fn measure(table: &mut Table, redraw: Option<&Path>) {
    let server = Server::start([]);
    let weight = weight(&server);
    if weight.page == 0 {
        table.missing("page, brotli", "400 KB", "this binary has no page: cargo xtask bench builds it");
        return;
    }
    let mut weigh = |what, bytes: usize, most: f64, goal, note| {
        table.at_most(what, bytes as f64 / 1000.0, "kB", most, goal, "", note);
    };
    weigh("page, brotli", weight.page, 400.0, "400 KB", "all files but those below");
    weigh("its wasm, brotli", weight.wasm, 300.0, "300 KB", "of the page of one machine");
    weigh(
        "... of all that is opened later",
        weight.parts,
        500.0,
        "500 KB",
        "other pages and tools, each loaded when it is opened",
    );
    weigh("its font", weight.font, 60.0, "60 KB", "the page does not wait for it");
    weigh("what opens files", weight.reader, 250.0, "250 KB", "loaded when a recording is opened");
    let browser = Browser::alone();
    first_chart(table, &server, &browser);
    over_networks(table);
    match redraw {
        Some(folder) => drawing(table, &browser, folder),
        None => table.missing(
            "redraw, 24 x 43,200 points",
            "16.7 ms",
            "run it by cargo xtask bench; it needs npm for uPlot",
        ),
    }
}

/// Transferred bytes of the page in a browser that accepts brotli; all 0 when the page was not built.
#[derive(Default)]
struct Weight {
    /// Bytes that the page needs before it starts.
    page: usize,
    /// The wasm among them.
    wasm: usize,
    /// The parts, which are loaded when they are opened.
    parts: usize,
    /// The font and its license, which are loaded later.
    font: usize,
    /// The module that opens files, which is loaded with the first file.
    reader: usize,
}

/// Requests each file of the built page from a server.
fn weight(server: &Server) -> Weight {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../frontend/dist");
    let mut weight = Weight::default();
    for path in files_below(&dist) {
        let name = path.strip_prefix(&dist).expect("it is below").to_string_lossy().into_owned();
        let answer = server.get(&format!("/{name}"), &["Accept-Encoding: br"]);
        let part = match name.as_str() {
            name if name.starts_with("fonts/") => &mut weight.font,
            name if name.starts_with("reader-") => &mut weight.reader,
            name if name.starts_with("part-") => &mut weight.parts,
            _ => &mut weight.page,
        };
        let bytes: usize = answer.header("content-length").parse().expect("a length");
        *part += bytes;
        if name.starts_with("page-") && name.ends_with(".wasm") {
            weight.wasm += bytes;
        }
    }
    weight
}

/// All files below a folder; none where it is missing.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Time from the start of navigation until 20 charts are drawn from real samples: median of five loads with an empty
/// cache.
fn first_chart(table: &mut Table, server: &Server, browser: &Browser) {
    browser.open(&server.url);
    browser.until("window.__live");
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            browser.open("about:blank");
            browser.open(&server.url);
            browser.until("window.__live").as_f64().unwrap_or(f64::NAN)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let what = "navigation to 20 drawn charts";
    table.at_most(what, times[2], "ms", 1000.0, "1 s", "", "headless, median of 5 loads");
}

/// A network as Chromium emulates it: its name, its latency in ms, and its rates down and up in bit/s (None:
/// unlimited). Also the goals for the first number and for four live charts, in ms and as text.
struct Network {
    name: &'static str,
    limits: Option<(u32, u32, u32)>,
    first: (f64, &'static str),
    four: (f64, &'static str),
}

const NETWORKS: [Network; 3] = [
    Network {
        name: "Fast 3G",
        limits: Some((150, 1_600_000, 750_000)),
        first: (2_500.0, "2.5 s"),
        four: (5_000.0, "5 s"),
    },
    Network {
        name: "20 Mbit/s",
        limits: Some((20, 20_000_000, 10_000_000)),
        first: (1_000.0, "1 s"),
        four: (1_200.0, "1.2 s"),
    },
    Network { name: "this machine", limits: None, first: (500.0, "0.5 s"), four: (600.0, "0.6 s") },
];

/// Records when the first figure stands on the page and when the fourth chart is live, in ms since the start of
/// navigation.
const WATCH: &str = r#"
window.__first = window.__four = null;
const watch = () => {
  const panels = document.querySelectorAll('article[data-panel][data-state="live"]:not([data-samples="0"])').length;
  if ([...document.querySelectorAll('.tile .number')].some(n => /[0-9]/.test(n.textContent))) window.__first ??= performance.now();
  if (panels >= 4 && document.documentElement.dataset.link === "live") window.__four = performance.now();
  else requestAnimationFrame(watch);
};
requestAnimationFrame(watch);
"#;

/// Time to the first number and to four live charts, for a machine with eight GPUs and history, over three networks.
/// Each is the median of three loads with an empty cache.
fn over_networks(table: &mut Table) {
    let server = Server::start(["demo", "--gpus", "8"]);
    until_or(3 * MAX_WAIT, || server.log().contains("of the past").then_some(()), || server.log());
    let browser = Browser::alone();
    browser.before_each_page(WATCH);
    browser.cdp("Network.enable", json!({}));
    browser.cdp("Network.setCacheDisabled", json!({ "cacheDisabled": true }));
    for network in NETWORKS {
        // Chromium takes bytes per second; -1 is unlimited.
        let rate = |bits: u32| i64::from(bits / 8);
        let (latency, down, up) = network.limits.map_or((0, -1, -1), |(ms, down, up)| (ms, rate(down), rate(up)));
        let mut times: Vec<[f64; 2]> = (0..3)
            .map(|_| {
                browser.open("about:blank");
                let limits = json!({
                    "offline": false, "latency": latency, "downloadThroughput": down, "uploadThroughput": up
                });
                browser.cdp("Network.emulateNetworkConditions", limits);
                browser.open(&server.url);
                browser.until("window.__four");
                ["window.__first", "window.__four"].map(|what| browser.eval(what).as_f64().unwrap_or(f64::NAN))
            })
            .collect();
        let mut median = |at: usize| {
            times.sort_by(|a, b| a[at].total_cmp(&b[at]));
            times[1][at]
        };
        let on = match network.limits {
            Some((ms, down, _)) => format!("{} Mbit/s, {ms} ms; Chromium, 8 GPUs, median of 3", f64::from(down) / 1e6),
            None => "Chromium, 8 GPUs, median of 3".to_string(),
        };
        let rows = [("first number", network.first), ("four live charts", network.four)];
        for (at, (what, (most, goal))) in rows.into_iter().enumerate() {
            table.at_most(&format!("{what}, {}", network.name), median(at), "ms", most, goal, "", &on);
        }
    }
}

fn drawing(table: &mut Table, browser: &Browser, folder: &Path) {
    let Ok(address) = serve(folder.to_path_buf()) else {
        table.missing("redraw, 24 x 43,200 points", "16.7 ms", "no port for the bench's own files");
        return;
    };
    let run = |name: &str| run(browser, &format!("http://{address}/index.html?{name}"));
    let number = |result: &Value, key: &str| result[key].as_f64().unwrap_or(f64::NAN);
    let on = "headless without a GPU, script and raster, median";
    for (name, what, most, goal, share) in SCENARIOS {
        let result = run(name);
        let peer = format!("uPlot 1.6 {} ms", shared::unit::number(number(&result, "theirs")));
        table.at_most(what, number(&result, "ours"), "ms", most, goal, &peer, on);
        if let Some((most, goal)) = share {
            table.at_most(
                "... against uPlot, pair by pair",
                number(&result, "ratio"),
                "of its time",
                most,
                goal,
                "",
                on,
            );
        }
    }
    let pan = run("pan");
    let what = "64 GPUs x 12 metrics x 12 h, a frame while it is moved";
    let on = "12 charts of 64 series, an hour moved by half a minute a frame; 95 of 100 frames";
    table.at_most(what, number(&pan, "worst"), "ms", FRAME_MS, "16.7 ms", "", on);
    table.at_most("... first drawing of the 12 h", number(&pan, "load"), "ms", 1000.0, "1 s", "", on);
    let memory = run("memory");
    let on = format!(
        "wasm and scripts without garbage, furthest from its third and fourth hour: {} MB, at last {} MB; 24 charts of 8 series",
        shared::unit::number(number(&memory, "begin")),
        shared::unit::number(number(&memory, "end")),
    );
    let change = number(&memory, "change") * 100.0;
    table.at_most("change of the tab over 12 h of ticks", change, "%", 5.0, "5 %", "", &on);
}

/// The result that a scenario writes into the title of its page; null when it takes too long.
fn run(browser: &Browser, url: &str) -> Value {
    browser.open(url);
    let started = Instant::now();
    while started.elapsed() < SCENARIO {
        // A busy page responds late.
        let title = browser.eval("document.title");
        if let Ok(result) = serde_json::from_str(title.as_str().unwrap_or_default()) {
            return result;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Value::Null
}

/// Serves the files of one folder on loopback while the bench runs.
pub fn serve(folder: PathBuf) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let mut head = BufReader::new(&stream);
            let _ = head.read_line(&mut line);
            let mut rest = String::new();
            while head.read_line(&mut rest).is_ok_and(|n| n > 2) {
                rest.clear();
            }
            let path = line.split(' ').nth(1).unwrap_or("");
            let name = path.split('?').next().unwrap_or("").trim_start_matches('/').to_string();
            let mime = match name.rsplit('.').next() {
                Some("js") => "text/javascript",
                Some("wasm") => "application/wasm",
                Some("css") => "text/css",
                _ => "text/html",
            };
            let body = if name.contains("..") { None } else { std::fs::read(folder.join(&name)).ok() };
            let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
            let body = body.unwrap_or_default();
            // The browser may have closed the connection.
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&body);
        }
    });
    Ok(address)
}
