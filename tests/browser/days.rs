//! Tests windows of days, where the retention is long enough. Shorter spans come as samples.

use super::{demo_of, no_faults, plot_at};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

const CHOICES: &str =
    r#"[...document.querySelectorAll("[data-window-choice]")].map(b => b.dataset.windowChoice).join()"#;
/// An expression for the number of requests of a kind since the page was loaded: 1 for samples, 4 for minutes.
fn asked(kind: u32) -> String {
    format!("window.__sent.filter(kind => kind === {kind}).length")
}

/// An expression that is true when the wide chart shows this window with `least` to `most` samples.
fn shows(window: &str, least: u32, most: u32) -> String {
    format!(
        r#"(p => p.dataset.window === "{window}" && +p.dataset.samples >= {least} && +p.dataset.samples <= {most})(document.querySelector("article.hero"))"#
    )
}

#[test]
fn three_days_are_drawn_from_minutes_and_six_hours_of_them_from_samples() {
    // The demo has one tick a minute, because simulating three days of seconds would take too long.
    let server = demo_of(&["--gpus", "1", "--interval", "60s", "--retention", "3d"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=1d", server.url));
    browser.until(&format!(r#"{CHOICES}.endsWith("12h,1d,3d")"#));
    browser.until(&shows("1d", 1_435, 1_441));
    browser.press("9");
    browser.until(&shows("3d", 4_300, 4_321));
    let days = browser.eval(&asked(4));
    // The drag selects 6 hours of the 72, two days back.
    let before = browser.eval(&asked(1)).as_u64().expect("a count");
    browser.drag(plot_at(&browser, 0.3, 0.5), plot_at(&browser, 0.3 + 6.0 / 72.0, 0.5), 0);
    browser.until(
        r#"(p => +p.dataset.samples >= 340 && +p.dataset.samples <= 380)(document.querySelector("article.hero"))"#,
    );
    browser.until(&format!("{} > {before}", asked(1)));
    browser.press("Backspace");
    browser.until(&shows("3d", 4_300, 4_321));
    assert_eq!(browser.eval(&asked(4)), days, "the days are there");
    no_faults(&browser);
}

#[test]
fn a_window_longer_than_history_is_said_and_not_offered() {
    let server = Server::start(["--retention", "1d"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=3d", server.url));
    browser.until(&format!(r#"{CHOICES}.endsWith("12h,1d")"#));
    browser.until(r#"document.body.innerText.includes("history is kept for 1d")"#);
    browser.until(r#"document.querySelector("article.chart").dataset.window === "1d""#);
    no_faults(&browser);
}
