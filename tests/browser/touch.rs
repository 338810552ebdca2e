//! Tests touch: one finger scrolls, a resting finger moves the crosshair, two fingers zoom.

use super::{live, no_faults, plot_at};
use serde_json::json;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

const LINK: &str = "document.documentElement.dataset.link";

fn phone() -> (&'static Server, Browser) {
    let server = super::demo("8");
    let browser = Browser::start();
    browser.size(390, 844);
    browser.cdp("Emulation.setTouchEmulationEnabled", json!({ "enabled": true, "maxTouchPoints": 2 }));
    browser.open(&server.url);
    live(&browser);
    super::whole(&browser);
    (server, browser)
}

/// From now on no finger rests: on a loaded machine, the next event of a moving one may come later than a resting
/// finger counts as one, 400 ms.
fn never_rests(browser: &Browser) {
    browser.eval(
        "void (window.setTimeout = (real => (f, ms, ...more) => real(f, ms === 400 ? 1e6 : ms, ...more))(setTimeout))",
    );
}

#[test]
fn one_finger_scrolls_and_leaves_the_view_alone() {
    let (_server, browser) = phone();
    never_rests(&browser);
    let (x, y) = plot_at(&browser, 0.5, 0.6);
    browser.touch("touchStart", &[(x, y)]);
    for step in 1..=10 {
        browser.touch("touchMove", &[(x, y - f64::from(step) * 25.0)]);
    }
    browser.touch("touchEnd", &[]);
    browser.until("scrollY > 100");
    assert_ne!(browser.eval(LINK), "frozen");
    assert_eq!(browser.eval(r#"document.getElementById("tip").hidden"#), true);
}

#[test]
fn a_resting_finger_shows_the_values_and_a_tap_lets_them_go() {
    let (_server, browser) = phone();
    let (x, y) = plot_at(&browser, 0.4, 0.5);
    browser.touch("touchStart", &[(x, y)]);
    browser.until(r##"document.querySelector("#tip:not([hidden])")"##);
    let when = r##"document.querySelector("#tip .when span").textContent"##;
    let before = browser.eval(when);
    for step in 1..=5 {
        browser.touch("touchMove", &[(x + f64::from(step) * 12.0, y)]);
    }
    browser.until(&format!("{when} !== {before}"));
    browser.touch("touchEnd", &[]);
    assert_eq!(browser.eval(r#"document.getElementById("tip").hidden"#), false, "it stays to be read");
    assert_eq!(browser.eval("scrollY"), 0);
    never_rests(&browser);
    browser.touch("touchStart", &[(x, y)]);
    browser.touch("touchEnd", &[]);
    browser.until(r#"document.getElementById("tip").hidden"#);
    no_faults(&browser);
}

#[test]
fn a_tap_on_a_label_isolates_its_series() {
    let (_server, browser) = phone();
    // A label is at the height of its value, which depends on the simulated job. The address follows a tap at once. Charts
    // are drawn over several frames where one frame is too short, and a label of several lines is several ones after that.
    let isolated = r#"new Promise(told => { let frames = 0; const look = () => {
        const isolated = new URLSearchParams(location.search).has("only");
        if (isolated || ++frames > 20) told(isolated); else requestAnimationFrame(look);
    }; look(); })"#;
    let rows = (browser.rect("article.hero .plot")[3] / 7.0) as u32;
    // The first tap on a label that series share parts it: their own ones are above and below. And what comes above the plot
    // moves it. So the plot is looked up before each tap, and all rows are tried twice.
    let tapped = (0..2 * rows).any(|tap| {
        let [left, top, width, _] = browser.rect("article.hero .plot");
        let down = 7.0 * f64::from(tap % rows) + 3.5;
        browser.touch("touchStart", &[(left + width - 30.0, top + down)]);
        browser.touch("touchEnd", &[]);
        browser.eval(isolated) == true
    });
    assert!(tapped, "no label takes a tap");
    browser.until(r#"document.querySelector("article.hero .note").textContent.includes("7 hidden")"#);
    no_faults(&browser);
}

#[test]
fn two_fingers_zoom_and_what_they_hold_stays_under_them() {
    let (_server, browser) = phone();
    let [a, b, c, d] = [0.4, 0.6, 0.1, 0.9].map(|share| plot_at(&browser, share, 0.5));
    browser.touch("touchStart", &[a]);
    browser.touch("touchStart", &[a, b]);
    for step in 1..=6 {
        let share = f64::from(step) / 6.0;
        let between = |p: (f64, f64), q: (f64, f64)| (p.0 + (q.0 - p.0) * share, p.1);
        browser.touch("touchMove", &[between(a, c), between(b, d)]);
    }
    browser.touch("touchEnd", &[]);
    browser.until(&format!(r#"{LINK} === "frozen""#));
    // The fingers moved a fifth of five minutes to four fifths of the plot. The address follows a moment later.
    browser.until("(p => Math.abs(p.get('to') - p.get('from') - 75) < 8)(new URLSearchParams(location.search))");
    // A phone has no space for both texts: a frozen page shows its span in place of the machine's name.
    browser.until(r#"/\d\d:\d\d:\d\d–\d\d:\d\d:\d\d/.test(document.querySelector("button.link").innerText)"#);
    let bar = browser.eval(r#"document.querySelector("button.link").getBoundingClientRect().right <= innerWidth"#);
    assert_eq!(bar, true);
    no_faults(&browser);
}
