//! Tests recordings in the page, replayed by a server or dropped on a page.

use super::{live, machine, no_faults};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use watchglass_tests::browser::Browser;
use watchglass_tests::proxy::Proxy;
use watchglass_tests::server::{Server, free_port, run};

const LINK: &str = "document.documentElement.dataset.link";
const SLIDER: &str = ".player input";
/// An expression for the number of samples in the window, over all panels.
const SAMPLES: &str =
    r#"[...document.querySelectorAll("article[data-panel]")].reduce((n, p) => n + Number(p.dataset.samples), 0)"#;
const MACHINE: &str = r#"document.querySelector(".source .source-name").innerText"#;

/// An expression for the number of times that the page has loaded the worker that opens files.
const READERS: &str =
    "performance.getEntriesByType('resource').filter(e => /\\/reader-[0-9a-f]+\\.js$/.test(e.name)).length";
const BANNER: &str = r#"(document.querySelector(".banner") || { innerText: "" }).innerText"#;

/// A demo of twenty minutes, which many tests share and none changes.
fn short_demo() -> &'static Server {
    let server = Server::shared(&["demo", "--gpus", "1", "--retention", "20m"]);
    super::has_history(server);
    server
}

/// An expression for the bytes of the recorded demo; `minutes` is its length. A server gives two recordings at a time,
/// so one is made for all tests.
fn recorded(minutes: u32) -> String {
    static ALL: Mutex<BTreeMap<u32, String>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock();
    all.entry(minutes).or_insert_with(|| record(minutes)).clone()
}

fn record(minutes: u32) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.watchglass");
    let port = short_demo().addr().port().to_string();
    let from = format!("-{minutes}m");
    let made = run(["record", path.to_str().expect("a plain path"), "--port", &port, "--from", &from]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = hex::encode(std::fs::read(&path).expect("a file"));
    format!("Promise.resolve(new Uint8Array('{text}'.match(/../g).map(h => parseInt(h, 16))))")
}

/// Moves the slider to a position, 0 to 1000.
fn slide(browser: &Browser, position: u32) {
    browser.script(&format!(
        "const s = document.querySelector('{SLIDER}'); s.value = {position}; s.dispatchEvent(new Event('input', {{ bubbles: true }}));"
    ));
}

/// Drops a file on the page as a person would. `bytes` is an expression for its content.
fn drop_file(browser: &Browser, name: &str, bytes: &str) {
    browser.script(&format!(
        "(async () => {{
           const data = new DataTransfer();
           data.items.add(new File([await {bytes}], '{name}'));
           document.body.dispatchEvent(new DragEvent('drop', {{ dataTransfer: data, bubbles: true, cancelable: true }}));
         }})();"
    ));
}

#[test]
fn a_replayed_recording_has_a_clock_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.watchglass");
    let file = file.to_str().expect("a plain path");
    {
        let server = super::demo_of(&["--retention", "20m"]);
        let port = server.addr().port().to_string();
        let recorded = run(["record", file, "--port", &port, "--from", "-10m"]);
        assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    }
    let server = Server::start(["replay", file]);
    let browser = Browser::start();
    browser.open(&server.url);
    browser.until(&format!(r#"{LINK} === "recorded""#));
    // The recording comes in parts.
    browser.until("+document.querySelector('article.hero').dataset.samples > 520");
    // The recording is at its end, in a window that fits it, so that all of it is visible.
    let window = browser.eval("document.querySelector('article.hero').dataset.window");
    assert!(window.as_str().is_some_and(|window| window.starts_with("10m") || window.starts_with("9m")), "{window}");
    assert_eq!(browser.eval(&format!("document.querySelector('{SLIDER}').value")), "1000");
    super::still(&browser, SAMPLES);
    let all = browser.eval(SAMPLES).as_u64().expect("a count");
    // Half way, the second half is not drawn.
    slide(&browser, 500);
    browser.until(&format!("{SAMPLES} < {} && {SAMPLES} > {}", all * 3 / 4, all / 4));
    let clock = "document.querySelector('.player time').innerText";
    let before = browser.eval(clock);
    browser.click(r#".player [data-do="play"]"#);
    browser.until(&format!("{clock} !== {before}"));
    browser.click(r#".player [data-do="play"]"#);
    browser.until(r#"document.querySelector('.player [data-do="play"]').getAttribute("aria-label") === "Play""#);
    let half = browser.eval(clock);
    // Keys move by a tenth of the window forward and back.
    browser.script("document.activeElement.blur();");
    browser.press("l");
    browser.until(&format!("{clock} !== {half}"));
    browser.press("j");
    browser.until(&format!("{clock} === {half}"));
    no_faults(&browser);
}

#[test]
fn a_recording_dropped_on_a_live_page_is_shown_there_and_sent_nowhere() {
    let bytes = recorded(5);
    let live_server = machine();
    let browser = Browser::start();
    browser.cdp("Emulation.setTimezoneOverride", serde_json::json!({ "timezoneId": "Asia/Kolkata" }));
    browser.open(&live_server.url);
    live(&browser);
    browser.until("document.querySelector('button[data-zone]')");
    assert_eq!(browser.eval(READERS), 0, "most visits open no file");
    drop_file(&browser, "notes.txt", "Promise.resolve('hello')");
    browser.until(&format!(
        r#"{BANNER}.includes("Not a recording: notes.txt: ") && {BANNER}.includes("what can be opened")"#
    ));
    // The reader of files came when it was needed.
    browser.until(&format!("{READERS} === 1"));
    // A file that cannot be opened changes nothing.
    browser.until(&format!("{LINK} === 'live'"));
    drop_file(&browser, "run.watchglass", &bytes);
    browser.until(&format!(r#"{LINK} === "recorded""#));
    browser.until(&format!(r#"{MACHINE} === "demo-01""#));
    browser.until(&format!("{SAMPLES} > 1000"));
    // A reload would close the file, so the zone has no switch.
    browser.until("document.querySelector('span[data-zone]')?.dataset.zone === 'UTC+5:30'");
    assert_eq!(browser.eval("document.querySelector('[data-do=zone]')"), serde_json::Value::Null);
    assert!(browser.eval("document.querySelector('.simulated') !== null").as_bool().expect("a truth"));
    let sent = browser
        .eval("performance.getEntriesByType('resource').map(e => e.name).filter(n => n.includes('record')).length");
    assert_eq!(sent, 0, "nothing was asked of a server");
    // A truncated file shows its valid part, and the page names the missing one.
    let half = format!("{bytes}.then(b => b.slice(0, b.length * 0.7))");
    drop_file(&browser, "half.watchglass", &half);
    browser.until(r#"document.querySelector(".player .note") && document.querySelector(".player .note").innerText.includes("missing")"#);
    // When the file is closed, the page is that of the server again.
    browser.click(".player [data-do=close-file]");
    live(&browser);
    assert_eq!(browser.eval("document.querySelector('.player')"), serde_json::Value::Null);
    no_faults(&browser);
}

#[test]
fn a_file_that_is_dropped_while_the_server_is_away_costs_nothing_and_opens_when_it_is_back() {
    let bytes = recorded(2);
    let port = free_port();
    let mut server = Server::start_on(port, ["demo", "--gpus", "1"]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.until(&format!("{SAMPLES} > 100"));
    server.end();
    browser.until(&format!(r#"{LINK} !== "live""#));
    drop_file(&browser, "run.watchglass", &bytes);
    browser.until(&format!(r#"{BANNER}.includes("run.watchglass") && {BANNER}.includes("could not be loaded")"#));
    assert_eq!(browser.eval(&format!("{SAMPLES} > 100")), true, "what was shown is shown");
    server = Server::start_on(port, ["demo", "--gpus", "1"]);
    live(&browser);
    drop_file(&browser, "run.watchglass", &bytes);
    browser.until(&format!(r#"{LINK} === "recorded""#));
    browser.until(&format!("{SAMPLES} > 100"));
    server.end();
}

#[test]
fn a_run_of_w_and_b_that_is_dropped_is_shown() {
    let server = machine();
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    let lines = r#"Array.from({ length: 40 }, (_, i) => JSON.stringify({
        _wandb: true, _timestamp: 1714566896.5 + i * 15, _runtime: i * 15,
        "system.gpu.0.temp": 60 + i, "system.gpu.0.gpu": i, "system.cpu/l:rank_1": 3 })).join("\n")"#;
    drop_file(&browser, "wandb-events.jsonl", lines);
    browser.until(&format!(r#"{LINK} === "recorded""#));
    browser.until(&format!("{SAMPLES} >= 80"));
    assert_eq!(browser.eval(MACHINE), "wandb-events", "the file names no machine");
    // A label counts as a machine.
    browser.click("[data-do=machines]");
    browser.until("[...document.querySelectorAll('#hits li')].some(line => line.innerText.includes('rank_1'))");
    browser.press("Escape");
    // Keys that lead to other pages do not close the file.
    for key in ["f", "r"] {
        browser.press("g");
        browser.press(key);
    }
    browser.click("[data-do=machines]");
    browser.until("[...document.querySelectorAll('#hits li')].some(line => line.innerText.includes('rank_1'))");
    // It is shown from the file, which stays open.
    browser
        .script("[...document.querySelectorAll('#hits li')].find(line => line.innerText.includes('rank_1')).click()");
    browser.until(&format!(r#"{LINK} === "recorded" && {MACHINE}.includes("rank_1") && {SAMPLES} > 0"#));
    assert!(browser.eval("document.querySelector('.player').innerText").to_string().contains("wandb-events.jsonl"));
    no_faults(&browser);
}

#[test]
fn each_machine_of_a_file_has_its_own_values() {
    let browser = Browser::start();
    browser.open(&machine().url);
    live(&browser);
    // Their series have the same numbers.
    let table = "['time,source,tag,value', ...[0, 1, 2, 3, 4, 5].flatMap(s => [['node-a', 100], ['node-b', 300]].map(([node, watts]) =>
        [1714566890 + s, node, 'gpu.0.powerWatts', watts].join()))].join('\\n')";
    drop_file(&browser, "two.csv", table);
    browser.until(&format!(r#"{LINK} === "recorded" && {SAMPLES} === 6"#));
    let most = "document.querySelector('article[data-panel=\"gpu.power\"] .sum-max')?.textContent";
    for (name, watts) in [("node-b", "300"), ("node-a", "100"), ("node-b", "300")] {
        let line =
            format!("[...document.querySelectorAll('#hits li')].find(line => line.innerText.includes('{name}'))");
        browser.click("[data-do=machines]");
        browser.until(&line);
        browser.script(&format!("{line}.click()"));
        browser.until(&format!("{MACHINE} === '{name}' && {most} === '{watts}'"));
    }
    no_faults(&browser);
}

#[test]
fn a_file_that_makes_its_reader_stop_costs_the_page_nothing() {
    let server = machine();
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    // No known file stops the reader, so the test uses a module that stops at any file.
    browser.script(
        "window.Worker = class { postMessage() { setTimeout(() => this.onmessage({ data: 'stopped' })) } terminate() {} };",
    );
    drop_file(&browser, "strange.watchglass", "Promise.resolve('hello')");
    browser.until(&format!(r#"{BANNER}.includes("strange.watchglass") && {BANNER}.includes("the reader crashed")"#));
    // A longer window has samples that were not read yet, however long the server has run.
    let before = browser.eval(SAMPLES).as_u64().expect("a count");
    browser.press("4");
    browser.until("location.search.includes('w=1h')");
    live(&browser);
    browser.until(&format!("{SAMPLES} !== {before}"));
    no_faults(&browser);
}

#[test]
fn of_two_files_that_come_at_once_the_later_is_shown_and_nothing_of_the_other() {
    const PROCESSES: &str = r#"document.querySelectorAll(".processes tbody td.cmd").length"#;
    let server = machine();
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.eval(r#"(document.querySelector(".processes summary").click(), true)"#);
    browser.until(&format!("{PROCESSES} > 3"));
    browser.script(
        "const table = (machine, tag) => ['time,source,tag,value', ...[6, 7, 8].map(s => [171456689 + '' + s, machine, tag, 63])];
         const text = { 'a.csv': table('node-a', 'gpu.0.temp'), 'b.csv': table('node-b', 'gpu.0.powerWatts') };
         for (const name of Object.keys(text)) {
           const data = new DataTransfer();
           data.items.add(new File([text[name].join('\\n')], name));
           document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
         }",
    );
    browser.until(&format!(r#"{LINK} === "recorded" && {MACHINE} === "node-b" && {SAMPLES} === 3"#));
    let charts = "[...document.querySelectorAll('article.chart')].map(chart => chart.dataset.panel).join()";
    assert_eq!(browser.eval(charts), "gpu.power", "its own chart, and nothing of the other file");
    assert_eq!(browser.eval(PROCESSES), 0, "no process of the machine before");
    no_faults(&browser);
}

/// A table of 60 MB, as an expression for its content.
const LARGE: &str = r#"(async () => {
    const rows = t => Array.from({ length: 40 }, (_, g) => `${t},node-7,gpu.${g % 8}.${["gpu", "temp", "powerWatts", "sm_clock", "memory"][g >> 3]},63`);
    const part = Array.from({ length: 1000 }, (_, t) => rows(1714560000 + t).join("\n")).join("\n");
    return new Blob(["time,source,tag,value\n", ...Array.from({ length: 50 }, () => part + "\n")]);
})()"#;

/// Drops what a reader says once it has done a fifth, until `__pass` is called: on a loaded machine a file may be open
/// before its button is pressed.
const HOLD_READER: &str = r#"
let passed = false;
const set = Object.getOwnPropertyDescriptor(Worker.prototype, "onmessage").set;
window.__pass = () => { passed = true; };
Object.defineProperty(Worker.prototype, "onmessage", { configurable: true, set(take) {
  let share = 0;
  set.call(this, take && (event => {
    if (!passed && share > 0.2) return;
    if (typeof event.data === "number") share = event.data;
    take.call(this, event);
  }));
} });
"#;

#[test]
fn a_large_file_shows_how_far_it_is_and_is_given_up_by_a_button_while_the_page_goes_on() {
    let server = super::demo("1");
    let browser = Browser::start();
    browser.before_each_page(HOLD_READER);
    browser.open(&server.url);
    live(&browser);
    drop_file(&browser, "large.csv", LARGE);
    browser.until("document.querySelector('.opening progress')?.value > 0.2");
    assert_eq!(browser.eval("document.querySelector('.opening b').innerText"), "large.csv");
    // The page is that of the server.
    assert_ne!(browser.eval(LINK), "recorded");
    browser.click(".opening [data-do=cancel-file]");
    browser.until("!document.querySelector('.opening')");
    live(&browser);
    // The same file opens when it is not canceled.
    browser.eval("__pass()");
    drop_file(&browser, "large.csv", LARGE);
    for share in [0.3, 0.6, 0.9] {
        browser
            .until(&format!("{LINK} === 'recorded' || document.querySelector('.opening progress')?.value > {share}"));
    }
    browser.until(&format!(r#"{LINK} === "recorded" && {MACHINE} === "node-7""#));
    browser.until(&format!("{SAMPLES} >= 1000 && !document.querySelector('.opening')"));
    no_faults(&browser);
}

#[test]
fn a_file_lies_under_what_is_live_until_it_is_taken_away() {
    let bytes = recorded(5);
    let server = Server::start(["demo", "--gpus", "2", "--retention", "20m"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=1m", server.url));
    live(&browser);
    drop_file(&browser, "run.watchglass", &bytes);
    browser.until(&format!(r#"{LINK} === "recorded" && {SAMPLES} > 50"#));
    browser.click(".player [data-do=compare-file]:not(:disabled)");
    live(&browser);
    browser.until("document.querySelector('.compared').innerText.includes('faint lines are')");
    assert_eq!(browser.eval("document.querySelector('.player')"), serde_json::Value::Null);
    // The tooltip has the values of both: of GPU 0, which both have, and of GPU 1, which the file lacks.
    browser.move_to(super::plot_at(&browser, 0.5, 0.5));
    let rows = r##"[...document.querySelectorAll("#tip .row")].map(r => r.innerText.replace(/\s+/g, " ")).join("; ")"##;
    browser.until(&format!(r"/GPU 0 [0-9.]+ was [0-9.]+/.test({rows}) && /GPU 1 [0-9.]+($|;)/.test({rows})"));
    browser.click(".compared button");
    browser.until(&format!("!document.querySelector('.compared') && !{rows}.includes('was')"));
    no_faults(&browser);
}

/// Holds what a reader brings after its first messages, until `__pass` is called.
const HOLD_REST: &str = r#"
let passed = false, lists = 0;
const queue = [], set = Object.getOwnPropertyDescriptor(Worker.prototype, "onmessage").set;
window.__pass = () => { passed = true; queue.splice(0).forEach(one => one()); };
Object.defineProperty(Worker.prototype, "onmessage", { configurable: true, set(take) {
  set.call(this, take && (event => {
    const late = () => take.call(this, event);
    if (Array.isArray(event.data) && ++lists > 1 && !passed) queue.push(late); else late();
  }));
} });
"#;

#[test]
fn a_file_that_is_still_being_read_is_not_compared() {
    let bytes = recorded(2);
    let browser = Browser::start();
    browser.before_each_page(HOLD_REST);
    browser.open(&format!("{}?w=1m", short_demo().url));
    live(&browser);
    drop_file(&browser, "run.watchglass", &bytes);
    browser.until(&format!(r#"{LINK} === "recorded" && {SAMPLES} > 50"#));
    // The rest would come into the live data.
    assert_eq!(browser.eval("document.querySelector('.player [data-do=compare-file]').disabled"), true);
    browser.eval("__pass()");
    browser.click(".player [data-do=compare-file]:not(:disabled)");
    browser.until("document.querySelector('.compared').innerText.includes('faint lines are')");
    live(&browser);
    no_faults(&browser);
}

#[test]
fn a_file_is_opened_below_a_path_that_a_proxy_strips() {
    let bytes = recorded(2);
    let server = machine();
    let proxy = Proxy::start("/a/b", server.addr());
    let browser = Browser::start();
    browser.open(&format!("http://{}/a/b/", proxy.addr));
    live(&browser);
    drop_file(&browser, "run.watchglass", &bytes);
    browser.until(&format!(r#"{LINK} === "recorded""#));
    assert_eq!(proxy.strays(), [""; 0], "its address is relative");
    no_faults(&browser);
}

#[test]
fn what_is_shown_is_saved_by_a_key_and_a_file_is_chosen_by_another() {
    let server = short_demo();
    let browser = Browser::start();
    browser.open(&format!("{}?w=5m", server.url));
    live(&browser);
    // A test cannot answer the browser's dialogs, so the test keeps the address of the link and the field that chooses
    // a file.
    browser.script(
        "HTMLAnchorElement.prototype.click = function () { window.__saved = this.href; window.__named = this.download; };
         HTMLInputElement.prototype.click = function () { window.__chooser = this; };",
    );
    browser.press("r");
    browser.until("/api.v1.record.from=\\d+(\\.\\d+)?&to=\\d+(\\.\\d+)?$/.test(window.__saved)");
    assert_eq!(
        browser.eval("(u => Math.round(u.get('to') - u.get('from')))(new URL(window.__saved).searchParams)"),
        300
    );
    assert_eq!(browser.eval("/^demo-01-recording-[0-9]{10}[.]watchglass$/.test(window.__named)"), true);
    browser.press("o");
    browser.until("window.__chooser && window.__chooser.type === 'file'");
    // The chosen file is the one that was saved.
    browser.script(
        "(async () => {
           const data = new DataTransfer();
           data.items.add(new File([await (await fetch(window.__saved)).arrayBuffer()], 'run.watchglass'));
           window.__chooser.files = data.files;
           window.__chooser.dispatchEvent(new Event('change'));
         })();",
    );
    browser.until(&format!(r#"{LINK} === "recorded""#));
    browser.until(&format!("{SAMPLES} > 1000"));
    no_faults(&browser);
}
