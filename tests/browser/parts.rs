//! Tests the parts of the page that are loaded when they are first shown.

use super::{live, machine, no_faults, start, still};
use serde_json::json;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

/// An expression for the names of the parts that were requested.
const REQUESTED: &str = r#"performance.getEntriesByType("resource").map(e => /\/part-(.*)-[0-9a-f]{16}\.(wasm|bin)$/.exec(e.name)).filter(Boolean).map(m => m[1])"#;
/// The words of a part that did not load.
const FAILED: &str = "(p => p ? p.innerText : '')(document.querySelector('.part.failed'))";

/// Waits until an element is there, and asserts that the part was requested for it and was not there before.
#[track_caller]
fn opens(browser: &Browser, part: &str, act: impl FnOnce(), shown: &str) {
    let has = format!("{REQUESTED}.includes({part:?})");
    assert_eq!(browser.eval(&has), false, "{part} is requested too soon");
    act();
    browser.until(&format!("document.querySelector({shown:?})"));
    // The part is a file of its own. The browser may count it a moment after it is there.
    browser.until(&has);
}

#[test]
fn the_page_of_one_machine_starts_without_any_part_and_each_tool_loads_its_own() {
    let (_server, browser) = start("");
    browser.until("document.documentElement.dataset.history === ''");
    still(&browser, super::LIVE);
    assert_eq!(browser.eval(REQUESTED), json!([]));
    opens(&browser, "finder", || browser.press("/"), "#find:focus");
    browser.press("Escape");
    opens(&browser, "menus", || browser.click("article.hero h3 button"), "#menu button[data-do=table]:focus");
    browser.press("Escape");
    // The other tools are in the same file.
    browser.press("d");
    browser.until("document.querySelector('#sheet:not([hidden]) p')");
    browser.press("Escape");
    browser.press("?");
    browser.until("document.querySelector('.body.keys')");
    browser.until(&format!("{REQUESTED}.filter(part => !part.startsWith('shared')).sort().join() === 'finder,menus'"));
    no_faults(&browser);
}

#[test]
fn each_page_loads_its_own_part() {
    let server = machine();
    let pages = ["fleet", "runs", "alerts", "findings"];
    for page in pages {
        let browser = Browser::start();
        browser.open(&format!("{}?page={page}", server.url));
        browser.until("document.querySelector('main#page') && document.querySelector('header.bar')");
        let parts = format!("{REQUESTED}.filter(part => !part.startsWith('shared'))");
        browser.until(&format!("{parts}.length > 0"));
        assert_eq!(browser.eval(&parts), json!([page]), "{page}");
        // Back on the page of the machine, all is there.
        browser.open(&server.url);
        live(&browser);
        no_faults(&browser);
    }
}

#[test]
fn a_part_that_does_not_arrive_is_said_and_another_try_loads_it() {
    let (_server, browser) = start("");
    let block = |urls: &[&str]| browser.cdp("Network.setBlockedURLs", json!({ "urls": urls }));
    browser.cdp("Network.enable", json!({}));
    block(&["*/part-finder-*"]);
    browser.press("/");
    browser.until(&format!("{FAILED}.startsWith('This part of the page did not load.')"));
    // The page itself goes on.
    live(&browser);
    // The server still has this page, so that a reload would not help.
    assert_eq!(browser.eval("sessionStorage.getItem('watchglass.updated')"), json!(null));
    browser.click(".part.failed button");
    browser.until(&format!("{FAILED} !== ''"));
    block(&[]);
    browser.click(".part.failed button");
    browser.until("document.querySelector('#find:focus')");
    assert_eq!(browser.eval(FAILED), "");
}

#[test]
fn where_the_server_has_another_page_by_now_a_missing_part_reloads_the_page_once() {
    let server = Server::start([]);
    let browser = Browser::start();
    // Stands for a newer server: its page names other files.
    browser.before_each_page(
        r#"const real = window.fetch;
        window.fetch = (what, how) => {
          if (what === './') return Promise.resolve(new Response('<link rel="modulepreload" href="./page-other.js">'));
          if (String(what).includes('/part-')) return Promise.resolve(new Response('', { status: 404 }));
          return real(what, how);
        };"#,
    );
    browser.open(&server.url);
    live(&browser);
    browser.eval("void (window.__before = true)");
    browser.press("/");
    browser.until("!window.__before");
    live(&browser);
    // The second one is not answered by another reload.
    browser.eval("void (window.__before = true)");
    browser.press("/");
    browser.until(&format!("{FAILED}.startsWith('This part of the page did not load.')"));
    still(&browser, super::LIVE);
    assert_eq!(browser.eval("window.__before"), true);
}
