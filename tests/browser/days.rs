//! Windows of days, where history is kept for so long; closer ones come as samples.

use super::{demo_of, no_faults, plot_at};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

const CHOICES: &str =
    r#"[...document.querySelectorAll("[data-window-choice]")].map(b => b.dataset.windowChoice).join()"#;
/// Questions of that kind since the page was loaded: 1 for samples, 4 for minutes.
fn asked(kind: u32) -> String {
    format!("window.__sent.filter(kind => kind === {kind}).length")
}

/// That the wide chart shows so many ticks.
fn shows(window: &str, least: u32, most: u32) -> String {
    format!(
        r#"(p => p.dataset.window === "{window}" && +p.dataset.samples >= {least} && +p.dataset.samples <= {most})(document.querySelector("article.hero"))"#
    )
}

#[test]
fn three_days_are_drawn_from_minutes_and_six_hours_of_them_from_samples() {
    // A tick a minute: as many as half a day of seconds has would take a test too long to simulate.
    let server = demo_of(&["--gpus", "1", "--interval", "60s", "--retention", "3d"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=1d", server.url));
    browser.until(&format!(r#"{CHOICES}.endsWith("12h,1d,3d")"#));
    browser.until(&shows("1d", 1_435, 1_441));
    browser.press("9");
    browser.until(&shows("3d", 4_300, 4_321));
    let days = browser.eval(&asked(4));
    // Two days back, 6 hours of 72.
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
