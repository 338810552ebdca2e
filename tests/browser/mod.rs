//! The page in a real browser, served by the real binary.

mod accessible;
mod base;
mod link;
mod processes;
mod served;
mod view;

use watchglass_tests::browser::Browser;

/// How many panels a machine without a GPU shows from its own samples.
const PANELS: usize = 20;

/// Panels with fresh samples.
const LIVE: &str =
    r#"document.querySelectorAll('article[data-panel][data-state="live"]:not([data-samples="0"])').length"#;

/// Waits until the page is live with its panels drawn from samples.
#[track_caller]
fn live(browser: &Browser) {
    browser.until(r#"document.documentElement.dataset.link === "live""#);
    browser.until(&format!("{LIVE} >= {PANELS}"));
}

#[track_caller]
fn no_faults(browser: &Browser) {
    assert_eq!(browser.faults(), [""; 0], "the page ran into errors");
}
