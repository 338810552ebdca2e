//! Tests the test browser itself: each page is as in a new profile, and an ended browser fails the tests that wait for
//! it.

use super::machine;
use std::panic::{AssertUnwindSafe, catch_unwind};
use watchglass_tests::browser::Browser;

/// Data that a page has stored: cookies, storage of both kinds, databases, and caches.
const STORED_DATA: &str = "Promise.all([indexedDB.databases(), caches.keys()])
    .then(all => [document.cookie, localStorage.length, sessionStorage.length, ...all.map(one => one.length)].join())";

#[test]
fn a_page_finds_nothing_of_another_one_and_hears_nothing_of_it() {
    let [first, second] = [Browser::start(), Browser::start()];
    first.open(&machine().url);
    first.eval("document.cookie = 'a=b; max-age=900'");
    first.eval("localStorage.a = sessionStorage.a = 'b'");
    first.eval("caches.open('a').then(() => 0)");
    first.eval("new Promise(done => { indexedDB.open('a').onsuccess = () => done(0) })");
    first.prefer("dark");
    assert!(first.eval(STORED_DATA).as_str().is_some_and(|kept| kept.starts_with("a=b,") && kept.ends_with(",1,1")));
    second.prefer("light");
    second.open(&machine().url);
    second.eval("(new BroadcastChannel('a').onmessage = () => { window.__heard = 1 }, 0)");
    assert!(second.eval(STORED_DATA).as_str().is_some_and(|kept| kept.starts_with(',') && kept.ends_with(",0,0")));
    assert_eq!(second.eval("localStorage.a ?? sessionStorage.a ?? null"), serde_json::Value::Null);
    first.eval("(new BroadcastChannel('a').postMessage(1), 0)");
    super::live(&second);
    assert_eq!(second.eval("window.__heard ?? null"), serde_json::Value::Null);
    // Files come from the server again, and each page is in front.
    let files = "performance.getEntriesByType('resource').filter(e => /\\.(js|wasm)$/.test(e.name) && e.transferSize === 0).length";
    assert_eq!(second.eval(files), 0);
    for browser in [&first, &second] {
        assert_eq!(browser.eval("document.hasFocus() && document.visibilityState === 'visible'"), true);
    }
    assert_eq!(first.eval("matchMedia('(prefers-color-scheme: dark)').matches"), true);
}

#[test]
fn a_click_on_an_element_that_is_made_anew_under_the_button_is_repeated() {
    let browser = Browser::start();
    browser.open("about:blank");
    browser.script(
        "window.__clicks = 0;
         const make = () => {
           const one = document.createElement('button');
           one.textContent = 'press';
           one.onclick = () => { window.__clicks += 1; };
           document.body.replaceChildren(one);
         };
         make();
         addEventListener('pointerdown', make, { once: true });",
    );
    browser.click("button");
    browser.until("window.__clicks === 1");
}

/// The message of a failed test. It must not have waited for what does not come.
#[track_caller]
fn failure(test: impl FnOnce()) -> String {
    let begin = std::time::Instant::now();
    let failure = catch_unwind(AssertUnwindSafe(test)).expect_err("it fails");
    assert!(begin.elapsed() < watchglass_tests::waiting::MAX_WAIT, "{:?}", begin.elapsed());
    failure.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_page_that_crashes_and_a_browser_that_ends_fail_whoever_waits_for_them_at_once() {
    let browser = Browser::alone();
    let why = failure(|| drop(browser.cdp("Page.crash", serde_json::json!({}))));
    assert!(why.contains("Page.crash: the page has crashed"), "{why}");
    let why = failure(|| drop(browser.eval("1")));
    assert!(why.contains("the page has crashed"), "{why}");
    let browser = Browser::alone();
    let why = failure(|| drop(browser.cdp("Browser.crash", serde_json::json!({}))));
    assert!(why.contains("Browser.crash: Chromium has ended"), "{why}");
}
