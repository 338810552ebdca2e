//! Tests the error states of the page. Each describes the fault and the remedy in words, and ends by itself.

use super::{live, no_faults, nothing_moved};
use shared::wire::CheckState;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::{Server, free_port};
use watchglass_tests::stage::Stage;

const LINK: &str = "document.documentElement.dataset.link";
const BANNER: &str = r#"(b => b ? b.innerText : "")(document.querySelector(".banner"))"#;
/// An expression for the text of the lines above the charts.
const LINES: &str = r#"[...document.querySelectorAll(".absent")].map(a => a.innerText).join("\n")"#;
/// An expression for the samples of the wide chart, or of the heat map in its place.
const SAMPLES: &str = r#"+document.querySelector(".charts article.chart")?.dataset.samples"#;
/// An expression for the length of the span that the chart on top shows.
const SPAN: &str = "document.querySelector('article.hero')?.dataset.window";
const WORDS_IN_PLOT: &str = r#"getComputedStyle(document.querySelector("article.hero .plot"), "::after").content"#;

fn open(stage: &Stage, query: &str) -> Browser {
    let browser = Browser::start();
    browser.open(&format!("{}{query}", stage.url));
    browser
}

/// Makes a tick each second until an expression is true.
#[track_caller]
fn run_until(stage: &Stage, browser: &Browser, expression: &str) {
    stage.run_until(expression, || browser.peek(&format!("!!({expression})")) == true);
}

#[test]
fn before_the_first_sample_the_page_stands_there_empty_and_nothing_moves_when_it_comes() {
    let stage = Stage::empty(8);
    let browser = open(&stage, "");
    browser.until(r#"document.querySelectorAll(".tile").length === 4"#);
    browser.until(r#"document.querySelector("article.hero").dataset.state === "empty""#);
    assert_eq!(browser.eval(LINK), "connecting");
    assert!(browser.eval(WORDS_IN_PLOT).as_str().is_some_and(|w| w.contains("Collecting")));
    assert_eq!(browser.eval(r#"document.querySelector(".tile .number").innerText"#), "–");
    run_until(&stage, &browser, &format!(r#"{LINK} === "live" && {SAMPLES} >= 3"#));
    assert_eq!(browser.eval(WORDS_IN_PLOT), "none");
    nothing_moved(&browser);
    no_faults(&browser);
}

#[test]
fn without_a_gpu_the_cores_lead_and_one_line_says_why_and_what_to_type() {
    let stage = Stage::with_past(0);
    stage.check(
        "nvidia",
        CheckState::Absent,
        "libnvidia-ml.so.1 was not found",
        "install NVIDIA's driver, or set library under [collectors.nvidia]",
    );
    let browser = open(&stage, "");
    browser.until(r#"document.querySelector('article.hero[data-panel="cpu.cores"][data-state="live"]')"#);
    browser.until(r#"/median, p10–p90 of 96/.test(document.querySelector("article.hero .note").innerText)"#);
    browser.until(&format!("{LINES}.includes('No GPU here: libnvidia-ml.so.1 was not found')"));
    browser.until(&format!("{LINES}.includes('set library under [collectors.nvidia]')"));
    assert_eq!(browser.eval(r#"document.querySelector(".tile h2 span").innerText"#), "CPU");
    // It has a row of its own and wraps on a phone. Once dismissed it stays hidden while its text is the same.
    browser.size(390, 844);
    browser.until("innerWidth === 390");
    let cut = r#"(s => s.scrollWidth > s.clientWidth || s.getClientRects().length < 1)(document.querySelector(".notices article > span:not(.shape)"))"#;
    assert_eq!(browser.eval(cut), false, "the line is cut");
    let [_, top, _, height] = browser.rect(".notices article");
    assert!(top + height <= browser.rect(".tile")[1], "it covers a tile");
    browser.click(".notices [data-do=dismiss-line]");
    browser.until("!document.querySelector('.notices article')");
    browser.reload();
    browser.until(r#"document.querySelector('article.hero[data-panel="cpu.cores"][data-state="live"]')"#);
    assert_eq!(browser.eval("document.querySelector('.notices article') === null"), true);
    stage.check("nvidia", CheckState::Absent, "the library has another version", "install the same version");
    browser.until(&format!("{LINES}.includes('another version')"));
    no_faults(&browser);
}

#[test]
fn what_may_not_be_read_says_the_command() {
    let stage = Stage::with_past(0);
    let command = "sudo usermod -aG render $USER, then log in again";
    stage.check("amd", CheckState::Denied, "/dev/kfd may not be read by this user", command);
    let browser = open(&stage, "");
    browser.until(&format!("{LINES}.includes('No permission to read GPU: /dev/kfd')"));
    assert!(browser.eval(LINES).as_str().is_some_and(|l| l.contains(command)));
    browser.until(r#"document.querySelector(".why summary").innerText.includes("1 without permission")"#);
    no_faults(&browser);
}

#[test]
fn a_collector_that_hangs_is_named_until_it_answers_again() {
    let stage = Stage::with_past(8);
    let browser = open(&stage, "");
    browser.until(&format!("{LINK} && {SAMPLES} > 200"));
    // It is announced.
    browser.until(r#"document.querySelector(".lines").getAttribute("role") === "status""#);
    let hung = "nvidia: no response for more than 10 s; its values are absent until it responds";
    stage.check("nvidia", CheckState::Hung, hung, "");
    browser.until(&format!("{LINES}.includes('GPU hangs: nvidia: no response')"));
    browser.until(r#"document.querySelector(".absent.trouble .shape").innerText === "▲""#);
    // The line is attached to the bar and covers no text.
    let [_, top, _, height] = browser.rect(".absent");
    assert!(top + height <= browser.rect(".tile h2")[1], "it covers a title");
    stage.check("nvidia", CheckState::Ok, "", "");
    browser.until(&format!("{LINES} === ''"));
    nothing_moved(&browser);
    no_faults(&browser);
}

#[test]
fn a_lost_gpu_is_counted_out_and_named() {
    let stage = Stage::with_past(8);
    stage.lose(Some("7"));
    stage.pass(8);
    let browser = open(&stage, "");
    let tile = |part: &str| format!(r#"document.querySelector(".tile {part}").innerText"#);
    browser.until(&format!(r#"{} === "mean of 7 of 8""#, tile(".corner")));
    browser.until(&format!(r#"{} === "▲ GPU 7 has no data""#, tile(".note")));
    stage.lose(None);
    run_until(&stage, &browser, &format!(r#"{} === "mean of 8" && !{}.includes("▲")"#, tile(".corner"), tile(".note")));
    // The check of the demo describes the fault and the remedy.
    let server = Server::start(["demo", "--gpus", "8", "--fail", "lost"]);
    browser.open(&server.url);
    browser.until(&format!("/GPU incomplete: GPU \\d does not respond.*XID 79.*restart/.test({LINES})"));
    no_faults(&browser);
}

#[test]
fn a_server_that_went_and_came_back_with_its_folder_has_lost_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("a plain path");
    let port = free_port();
    let server = Server::start_on(port, ["--data-dir", folder]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.until(&format!("{SAMPLES} >= 5"));
    browser.eval("window.__same = true");
    assert!(server.end().success());
    browser.until(&format!(r#"{LINK} === "reconnecting" && {BANNER}.includes("nothing is lost")"#));
    let before = browser.eval(SAMPLES).as_u64().expect("a count");
    let _again = Server::start_on(port, ["--data-dir", folder]);
    live(&browser);
    // The new run of the server shows the stored samples of the old one, and its own.
    browser.until(&format!("{SAMPLES} >= {}", before + 2));
    browser.until(&format!("{BANNER} === ''"));
    assert_eq!(browser.eval("window.__same"), true, "without loading the page again");
}

#[test]
fn a_tab_that_slept_for_hours_gets_all_that_it_missed() {
    let stage = Stage::with_past(1);
    let browser = open(&stage, "?w=6h");
    browser.until(&format!("{SAMPLES} === 400"));
    let hide = |hidden: bool| {
        browser.eval(&format!(
            "(Object.defineProperty(document, 'hidden', {{ get: () => {hidden}, configurable: true }}),
              document.dispatchEvent(new Event('visibilitychange')), 0)"
        ));
    };
    hide(true);
    let asked = browser.eval("window.__sent.length");
    stage.pass(3 * 3_600);
    assert_eq!(browser.eval("window.__sent.length"), asked, "it asks for nothing while nobody looks");
    assert_eq!(browser.eval(SAMPLES), 400);
    hide(false);
    browser.until(&format!("{SAMPLES} === {}", 400 + 3 * 3_600));
    run_until(&stage, &browser, &format!(r#"{LINK} === "live" && {SAMPLES} > {}"#, 400 + 3 * 3_600));
    no_faults(&browser);
}

#[test]
fn a_clock_that_is_set_stops_nothing() {
    let stage = Stage::with_past(1);
    let browser = open(&stage, "?w=5m");
    run_until(&stage, &browser, &format!(r#"{LINK} === "live" && {SAMPLES} > 290"#));
    // The browser's clock is set ahead by two hours. The page uses the server's clock.
    browser.eval("(Date.now = (then => () => then() + 7200000)(Date.now), 0)");
    run_until(&stage, &browser, "performance.now() - (window.__then ??= performance.now()) > 3000");
    run_until(&stage, &browser, &format!(r#"{LINK} === "live" && {SAMPLES} > 290"#));
    // The machine's clock is set an hour ahead and back. Samples are shown at the machine's times.
    for by in [3_600_000, -3_600_000] {
        stage.set_clock(by);
        stage.pass(10);
        run_until(&stage, &browser, &format!(r#"{LINK} === "live" && {SAMPLES} >= 10"#));
    }
    no_faults(&browser);
}

#[test]
fn a_machine_that_sends_nothing_is_silent_and_not_live() {
    let stage = Stage::with_past(8);
    let browser = open(&stage, "");
    run_until(&stage, &browser, &format!(r#"{LINK} === "live""#));
    stage.stand_still(60);
    browser.until(&format!(r#"{LINK} === "silent""#));
    browser.until(&format!("/No data: no samples since \\d+:\\d\\d:\\d\\d/.test({BANNER})"));
    assert_eq!(browser.eval(r#"document.querySelector(".link [role=status]").innerText"#), "SILENT");
    browser.until(r#"document.querySelector("article.hero").dataset.state === "stale""#);
    // A page that is opened now sees the old samples too.
    browser.reload();
    browser.until(&format!(r#"{LINK} === "silent" && {SAMPLES} > 200"#));
    stage.pass(60);
    run_until(&stage, &browser, &format!(r#"{LINK} === "live" && {BANNER} === """#));
    no_faults(&browser);
}

/// Delays each message for which `held` (of its bytes) is true, and all that follow it in order, until `__pass` is
/// called.
const HOLD_MESSAGES: &str = r#"
let passed = false;
const queue = [], set = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage").set;
window.__pass = () => { passed = true; queue.splice(0).forEach(one => one()); };
Object.defineProperty(WebSocket.prototype, "onmessage", { configurable: true, set(take) {
  set.call(this, take && (event => {
    const bytes = new Uint8Array(event.data), late = () => take.call(this, event);
    if (!passed && held(bytes)) queue.push(late); else late();
  }));
} });
"#;

#[test]
fn while_its_history_is_on_its_way_a_machine_that_stops_is_not_silent_yet() {
    let stage = Stage::with_past(8);
    let browser = Browser::start();
    // Parts of history, and the ends of answers.
    browser.before_each_page(&format!("const held = b => b[0] === 0 && (b[1] === 5 || b[1] === 6);{HOLD_MESSAGES}"));
    browser.open(&stage.url);
    // Its newest samples are there, and do not wait for the history.
    browser.until(&format!(r#"{LINK} === "live" && document.documentElement.dataset.history === "loading""#));
    // The machine stops meanwhile. The server's heartbeat reports its silence, and the earlier samples have not
    // arrived.
    stage.stand_still(60);
    let begun = browser.eval("performance.now()").as_f64().expect("a time");
    browser.until(&format!("performance.now() - {begun} > 8000"));
    assert_eq!((browser.eval(LINK), browser.eval(BANNER)), ("loading".into(), "".into()));
    assert_eq!(browser.eval(r#"document.querySelector(".link [role=status]").innerText"#), "LOADING");
    browser.eval("__pass()");
    browser.until(&format!(r#"{LINK} === "silent""#));
    stage.pass(60);
    run_until(&stage, &browser, &format!(r#"{LINK} === "live""#));
    no_faults(&browser);
}

#[test]
fn a_slow_socket_is_not_called_blocked() {
    let stage = Stage::with_past(1);
    let browser = Browser::start();
    // The whole connection is slow: an answer takes 2 s, and the first message 7 s.
    let slow = r#"const held = () => true, before = window.fetch, wait = ms => new Promise(done => setTimeout(done, ms));
        window.__sockets = 0;
        setTimeout(() => window.__pass(), 7000);
        window.fetch = async (path, init) => (await wait(2000), before(path, init));
        window.WebSocket = class extends WebSocket { constructor(...all) { super(...all); window.__sockets += 1; } };"#;
    browser.before_each_page(&format!("{HOLD_MESSAGES}{slow}"));
    browser.open(&stage.url);
    run_until(&stage, &browser, &format!(r#"{LINK} === "live""#));
    assert_eq!(browser.eval("window.__sockets"), 1, "the socket that is slow is waited for");
    assert_eq!(browser.eval("document.querySelector('[data-way]')"), serde_json::Value::Null);
    no_faults(&browser);
}

#[test]
fn the_window_of_a_machine_that_was_just_begun_grows_with_it() {
    let stage = Stage::with_past(1);
    let shown = |query: &str| {
        let browser = open(&stage, query);
        run_until(&stage, &browser, &format!(r#"{LINK} === "live" && {SAMPLES} > 0"#));
        browser
    };
    // It has 400 s: the usual window is full, a longer one is not.
    // Older samples come after the newest ones.
    shown("").until(&format!("{SPAN} === '5m'"));
    shown("?w=1h").until(&format!("{SPAN} === '1h'"));
    let young = Stage::empty(1);
    young.pass(32);
    let browser = open(&young, "");
    // Time stands until the page is there, however long it loads.
    browser.until(&format!("{SAMPLES} >= 30 && /^3[0-9]s$/.test({SPAN})"));
    run_until(&young, &browser, &format!(r#"{LINK} === "live" && /^4[0-9]s$/.test({SPAN})"#));
    no_faults(&browser);
    young.pass(400);
    let later = open(&young, "");
    run_until(&young, &later, &format!(r#"{LINK} === "live" && {SPAN} === "5m""#));
    no_faults(&later);
}

#[test]
fn many_series_are_explained_once() {
    let stage = Stage::with_past(64);
    let browser = open(&stage, "");
    browser.until(&format!("/64 lines are shown as a summary.*median/.test({LINES})"));
    browser.click(".once button");
    browser.until("!document.querySelector('.once')");
    browser.reload();
    browser.until(&format!("{SAMPLES} > 200"));
    assert_eq!(browser.eval("document.querySelector('.once') === null"), true, "once");
    no_faults(&browser);
}

#[test]
fn an_address_that_cannot_be_shown_is_said_with_the_way_back() {
    let stage = Stage::with_past(1);
    for (query, words) in [
        ("?w=9y", "w=9y is not a window"),
        ("?from=soon&to=1795219500", "from=soon is not a time"),
        ("?from=1795219500&to=1795219200", "to= is before from="),
        ("?source=nobody", "there is no machine “nobody” here, this is stage"),
    ] {
        let browser = open(&stage, query);
        run_until(&stage, &browser, &format!(r#"{LINK} === "live" && {BANNER}.includes("{words}")"#));
        browser.click(r#".banner [data-do="right"]"#);
        browser.until(&format!("{BANNER} === ''"));
        browser.until(r#"!/nobody|9y|from/.test(location.search)"#);
        no_faults(&browser);
    }
    // A span without history is empty, and names the way out.
    let browser = open(&stage, "?from=1500000000&to=1500000300");
    run_until(&stage, &browser, &format!(r#"{LINK} === "frozen" && document.querySelector("article.hero")"#));
    browser.until(&format!("{WORDS_IN_PLOT}.includes('goes on live')"));
    browser.press("Escape");
    run_until(&stage, &browser, &format!(r#"{LINK} === "live""#));
}

/// A module with one function that is `unreachable`, which is how a panic ends.
const TRAP: &str = "void WebAssembly.instantiate(new Uint8Array([0,97,115,109,1,0,0,0, 1,4,1,96,0,0, 3,2,1,0, 7,5,1,1,116,0,0, \
                    10,5,1,3,0,0,11])).then(m => setTimeout(m.instance.exports.t))";

#[test]
fn a_page_that_traps_is_loaded_again_once_and_says_so() {
    let stage = Stage::with_past(1);
    let browser = open(&stage, "?w=15m");
    let hidden = |id: &str| browser.eval(&format!("document.getElementById({id:?}).hidden"));
    // A machine whose time stands is live for six seconds of the page.
    run_until(&stage, &browser, &format!("{LINK} === 'live'"));
    let address = browser.eval("location.href");
    assert_eq!((hidden("stopped"), hidden("reloaded")), (true.into(), true.into()));
    // Another error does not stop the page.
    browser.eval("setTimeout(() => { window.__thrown = 1; throw Error('not ours'); }) && null");
    browser.until("window.__thrown");
    assert_eq!((hidden("stopped"), hidden("reloaded")), (true.into(), true.into()));
    browser.eval(TRAP);
    browser.until("document.getElementById('reloaded')?.hidden === false");
    run_until(&stage, &browser, &format!("{LINK} === 'live'"));
    assert_eq!(browser.eval("location.href"), address);
    assert_eq!((hidden("stopped"), browser.eval("'__thrown' in window")), (true.into(), false.into()));
    // A second crash must not reload the page forever.
    browser.eval(TRAP);
    browser.until("!document.getElementById('stopped').hidden");
    let said = browser.eval("document.getElementById('stopped').innerText");
    assert!(said.as_str().is_some_and(|said| said.contains("Reload")), "{said}");
    // After a reload by the user, the page does not repeat a message that they saw.
    browser.reload();
    run_until(&stage, &browser, &format!("{LINK} === 'live'"));
    assert_eq!((hidden("stopped"), hidden("reloaded")), (true.into(), true.into()));
}

#[test]
fn a_script_that_is_refused_is_said_so() {
    let server = super::machine();
    let browser = Browser::start();
    let refused =
        "(p => p && getComputedStyle(p).visibility === 'visible' && p.innerText)(document.getElementById('refused'))";
    browser.cdp("Network.enable", serde_json::json!({}));
    for file in ["*page-*.js", "*page-*.wasm"] {
        browser.cdp("Network.setBlockedURLs", serde_json::json!({ "urls": [file] }));
        browser.open(&server.url);
        let said = "document.getElementById('stopped').hidden === false";
        browser.until(&format!("{said} || ({refused} || '').includes('refuses them')"));
    }
    browser.cdp("Network.setBlockedURLs", serde_json::json!({ "urls": [] }));
    browser.open(&server.url);
    browser.until(&format!("{LINK} === 'live' && !document.getElementById('refused')"));
}

#[test]
fn before_the_first_sample_there_is_no_number_at_an_axis_and_what_has_no_history_is_hatched() {
    // There are no samples from before the start of this server, so nearly all of twelve hours is hatched.
    let server = Server::start([]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=12h", server.url));
    super::live(&browser);
    // A row of pixels between two lines of the grid, to the right of the numbers.
    let colors = r#"(c => { const k = c.width / c.getBoundingClientRect().width;
        const row = c.getContext("2d").getImageData(80 * k, Math.round(c.height * .31), 120 * k, 1).data;
        return new Set(Array.from({ length: row.length / 4 }, (_, i) => row.slice(4 * i, 4 * i + 4).join())).size; })(
        document.querySelector('article[data-panel="cpu"] canvas'))"#;
    browser.until(&format!("{colors} > 1"));
    browser.eval("(document.querySelector('[data-window-choice=\"1m\"]').click(), 0)");
    browser.until("+document.querySelector('article[data-panel=cpu]').dataset.samples >= 3");
    super::no_faults(&browser);
}
