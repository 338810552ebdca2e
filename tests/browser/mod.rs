//! Tests the page in a real browser, served by the real binary.

mod accessible;
mod alerts;
mod base;
#[cfg(target_os = "linux")]
mod cells;
mod compare;
mod contexts;
mod days;
mod docs;
mod findings;
mod fleet;
mod forgery;
mod keys;
mod layout;
mod link;
mod notes;
mod parts;
mod people;
mod processes;
mod providers;
mod recording;
mod runs;
mod series;
mod served;
mod states;
mod take;
mod team;
mod teams;
mod touch;
mod turns;
mod view;
mod zoom;

use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;
use watchglass_tests::waiting::{MAX_WAIT, until_or};

/// Number of panels that a machine without a GPU shows.
const PANELS: usize = 20;

/// An expression for the number of panels with fresh samples.
const LIVE: &str =
    r#"document.querySelectorAll('article[data-panel][data-state="live"]:not([data-samples="0"])').length"#;

/// Waits until the page is live and its panels are drawn from samples.
#[track_caller]
fn live(browser: &Browser) {
    browser.until(r#"document.documentElement.dataset.link === "live""#);
    browser.until(&format!("{LIVE} >= {PANELS}"));
}

#[track_caller]
fn no_faults(browser: &Browser) {
    assert_eq!(browser.faults(), [""; 0], "the page ran into errors");
}

/// A server of this machine with some history. Many tests share it, and none changes it.
fn machine() -> &'static Server {
    Server::shared(&[])
}

/// A demo with `gpus` GPUs that has simulated all of its past, so that all history can be requested. Many tests share
/// it, and none changes it.
fn demo(gpus: &str) -> &'static Server {
    let server = Server::shared(&["demo", "--gpus", gpus]);
    has_history(server);
    server
}

/// A demo for one test with these flags, which has simulated all of its past.
fn demo_of(flags: &[&str]) -> Server {
    let server = Server::start(["demo"].into_iter().chain(flags.iter().copied()));
    has_history(&server);
    server
}

#[track_caller]
fn has_history(server: &Server) {
    let there = || server.log().contains("of history in").then_some(());
    until_or(3 * MAX_WAIT, there, || format!("no history: {}", server.log()));
}

/// Waits until a demo with a fault has found it. It learns from its simulated past first, which takes minutes on a loaded
/// machine.
#[track_caller]
fn has_finding(server: &Server) {
    let found = || {
        let answer = server.get("/api/v1/findings?active=1", &[]).body;
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
        answer["findings"].as_array().filter(|all| !all.is_empty()).map(|_| ())
    };
    until_or(9 * MAX_WAIT, found, || format!("nothing is found: {}", server.log()));
}

/// A live page of the demo with eight GPUs, with all samples of its span; `query` is added to its address.
#[track_caller]
fn start(query: &str) -> (&'static Server, Browser) {
    let server = demo("8");
    let browser = Browser::start();
    browser.open(&format!("{}{query}", server.url));
    live(&browser);
    whole(&browser);
    (server, browser)
}

/// A page of the demo with eight GPUs that stands still at some seconds of an hour ago. They were simulated before the
/// page, without a gap; of what followed, a loaded machine may lack some.
#[track_caller]
fn past(seconds: u64) -> (&'static Server, Browser) {
    let server = demo("8");
    let to = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs() - 3_600;
    let browser = Browser::start();
    browser.open(&format!("{}?from={}&to={to}", server.url, to - seconds));
    browser.until(r#"document.documentElement.dataset.link === "frozen""#);
    whole(&browser);
    let drawn = r#"document.querySelectorAll('article[data-panel]:not([data-samples="0"])').length"#;
    browser.until(&format!("{drawn} >= {PANELS}"));
    (server, browser)
}

/// Waits until the history of the span that a page was opened with has arrived and is drawn. The newest samples come
/// before it. A count of samples does not tell this: on a loaded machine the demo skips a tick now and then.
#[track_caller]
fn whole(browser: &Browser) {
    browser.until("document.documentElement.dataset.history === ''");
    // The content of a message is drawn with the next frame.
    browser.script("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))));");
}

/// Waits until an expression has had one value for ten frames: then all drawing is done.
#[track_caller]
fn still(browser: &Browser, expression: &str) {
    browser.script(&format!(
        "let last, frames = 0;
         return new Promise(done => {{ const look = () => {{
             const now = JSON.stringify({expression});
             frames = now === last ? frames + 1 : 0;
             last = now;
             if (frames < 10) requestAnimationFrame(look); else done(true);
         }}; look(); }});"
    ));
}

/// Asserts that no layout shift has happened since the page was opened. The link state in the bar varies in length, and
/// the finder beside it gives way.
#[track_caller]
fn nothing_moved(browser: &Browser) {
    let moved = "window.__shifted.filter(one => !/^(finder|link)\\b/.test(one))";
    assert_eq!(browser.eval(moved), serde_json::json!([]));
}

/// A place on the plot of the wide chart in CSS pixels, from shares of its span and of its height (0 to 1).
fn plot_at(browser: &Browser, share: f64, height: f64) -> (f64, f64) {
    let [left, top, width, high] = browser.rect("article.hero .plot");
    let gutter = |name: &str| {
        let value = browser.eval(&format!(
            "parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--gutter-{name}'))"
        ));
        value.as_f64().expect("a length")
    };
    let (l, r) = (gutter("l"), gutter("r"));
    (left + l + (width - l - r) * share, top + high * height)
}

/// The span in the address in Unix seconds. The address may follow the view a moment later.
#[track_caller]
fn span(browser: &Browser) -> (f64, f64) {
    browser.until("['from', 'to'].every(name => new URLSearchParams(location.search).has(name))");
    let side = |name: &str| browser.eval(&format!("+new URLSearchParams(location.search).get('{name}')"));
    (side("from").as_f64().expect("a time"), side("to").as_f64().expect("a time"))
}
