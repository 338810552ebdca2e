//! Tests the connection: live, and live again after a break.

use super::{LIVE, live, no_faults};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::{Server, free_port};

#[test]
fn the_page_is_live_and_stays_alive() {
    let server = Server::start([]);
    let browser = Browser::start();
    browser.prefer("dark");
    browser.open(&server.url);
    let first = browser.until("window.__live").as_f64().expect("a time");
    eprintln!("live with 20 panels {first:.0} ms after the navigation began; the goal is 1000 ms");

    let newest = r#"Math.max(...[...document.querySelectorAll("article[data-panel]")].map(p => +p.dataset.samples))"#;
    let before = browser.eval(newest);
    browser.until(&format!("{newest} >= {before} + 3"));
    let ink = r#"[...document.querySelectorAll("article[data-panel][data-state=live] canvas")]
        .filter(c => c.width && c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(v => v)).length"#;
    browser.until(&format!("{ink} >= 3"));
    browser.screenshot("dark");
    no_faults(&browser);
}

#[test]
fn the_page_calls_nobody_else() {
    let server = super::machine();
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    let foreign = r#"performance.getEntriesByType("resource").map(e => e.name)
        .filter(name => new URL(name).host !== location.host)"#;
    assert_eq!(browser.eval(foreign), serde_json::json!([]));
    let loaded = browser.eval(r#"performance.getEntriesByType("resource").map(e => e.name).join(" ")"#);
    assert!(loaded.as_str().is_some_and(|names| names.contains(".wasm")), "requests are seen at all: {loaded}");
    no_faults(&browser);
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let port = free_port();
    let server = Server::start_on(port, []);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.eval("window.__same = true");
    drop(server);
    browser.until(r#"document.documentElement.dataset.link === "reconnecting""#);
    let _again = Server::start_on(port, []);
    live(&browser);
    assert_eq!(browser.eval("window.__same"), true, "without loading the page again");
    let errors = browser.eval(r#"window.__faults.filter(text => !text.startsWith("console"))"#);
    assert_eq!(errors, serde_json::json!([]));
    // Until the first tick some panels are drawn from earlier samples. Panels of rates then wait for the second tick.
    browser.until(&format!("{LIVE} >= 20 && document.documentElement.dataset.link === 'live'"));
}

#[test]
fn a_server_that_was_stopped_is_not_called_lost() {
    let server = Server::start([]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    server.end();
    browser.until("(b => b && b.innerText.includes('The server was stopped'))(document.querySelector('.banner'))");
    assert_eq!(browser.eval("document.querySelectorAll('article.chart').length > 5"), true, "what was there stays");
}
