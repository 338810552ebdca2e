//! Tests zooming: drag, wheel, pan, steps back, typed spans. The page must not request data that it already has.

use super::{live, no_faults, plot_at, span, start};
use serde_json::json;
use std::time::Instant;
use watchglass_tests::browser::{Browser, CTRL, SHIFT};

const FROZEN: &str = r#"document.documentElement.dataset.link === "frozen""#;
/// An expression for the number of history requests since the page was loaded.
const ASKED: &str = "window.__sent.filter(kind => kind === 1).length";

/// Waits until the address has a span that begins at `from` and has this `length`, with an error of at most `within`;
/// all in seconds.
#[track_caller]
fn comes_to(browser: &Browser, from: f64, length: f64, within: f64) -> (f64, f64) {
    let near = |value: &str, wanted: f64| format!("Math.abs({value} - {wanted}) <= {within}");
    let (from, length) = (near("a", from), near("b - a", length));
    browser.until(&format!(
        "((a, b) => {from} && {length})(...['from', 'to'].map(k => +new URLSearchParams(location.search).get(k)))"
    ));
    span(browser)
}

#[track_caller]
fn near(a: f64, b: f64, within: f64) {
    assert!((a - b).abs() <= within, "{a} is not {b}, give or take {within}");
}

#[test]
fn zoom_and_pan_inside_what_is_loaded_ask_for_nothing() {
    let (_server, browser) = start("?w=15m");
    assert!(browser.eval("window.__sent.includes(0)").as_bool() == Some(true), "messages are seen at all");
    let asked = browser.eval(ASKED);
    let begun = Instant::now();
    browser.drag(plot_at(&browser, 0.3, 0.5), plot_at(&browser, 0.6, 0.5), 0);
    // A live view moves on while the button is held.
    let took = begun.elapsed().as_secs_f64();
    browser.until(FROZEN);
    let first = span(&browser);
    let length = first.1 - first.0;
    near(length, 270.0, 8.0 + took);
    browser.until(r#"new Set([...document.querySelectorAll("article.chart")].map(p => p.dataset.window)).size === 1"#);
    assert_ne!(browser.eval(r#"document.querySelector("article.chart").dataset.window"#), "15m");

    browser.drag(plot_at(&browser, 0.5, 0.5), plot_at(&browser, 0.9, 0.6), 0);
    let second = comes_to(&browser, first.0 + length * 0.5, length * 0.4, 4.0);

    browser.drag(plot_at(&browser, 0.2, 0.5), plot_at(&browser, 0.7, 0.5), SHIFT);
    let panned = comes_to(&browser, second.0 - length * 0.2, length * 0.4, 4.0);
    near(panned.1 - panned.0, second.1 - second.0, 0.01);

    browser.wheel(plot_at(&browser, 0.25, 0.5), -240.0, CTRL);
    // The wheel multiplies the length by e^(-0.002 * 240), around the pointer.
    let length = (panned.1 - panned.0) * 0.619;
    comes_to(&browser, panned.0 + (panned.1 - panned.0 - length) * 0.25, length, 3.0);

    for before in [panned, second, first] {
        browser.press("Backspace");
        browser.until(&format!("+new URLSearchParams(location.search).get('from') === {}", before.0));
    }
    browser.press("Backspace");
    live(&browser);
    browser.until(r#"document.querySelector("article.chart").dataset.window === "15m""#);
    assert_eq!(browser.eval(ASKED), asked, "everything was there");
    no_faults(&browser);
}

#[test]
fn a_double_click_goes_one_step_back_and_escape_all_the_way() {
    let (_server, browser) = start("?w=15m");
    browser.drag(plot_at(&browser, 0.2, 0.5), plot_at(&browser, 0.8, 0.5), 0);
    let first = span(&browser);
    let length = first.1 - first.0;
    browser.drag(plot_at(&browser, 0.2, 0.5), plot_at(&browser, 0.8, 0.5), 0);
    comes_to(&browser, first.0 + length * 0.2, length * 0.6, 6.0);
    browser.double_click_at(plot_at(&browser, 0.4, 0.5));
    browser.until(&format!("+new URLSearchParams(location.search).get('from') === {}", first.0));
    browser.press("Escape");
    live(&browser);
    browser.until("!new URLSearchParams(location.search).has('from')");
}

#[test]
fn the_browsers_own_buttons_go_back_and_forward_through_what_was_chosen() {
    let (_server, browser) = start("?w=15m");
    let before = browser.eval("history.length").as_u64().expect("a number");
    browser.drag(plot_at(&browser, 0.2, 0.5), plot_at(&browser, 0.8, 0.5), 0);
    browser.until("new URLSearchParams(location.search).has('to')");
    let first = span(&browser);
    // Many turns of the wheel, and many frames of a drag, are one step each. Turns are one as long as no pause is
    // between them, so a script makes them: on a loaded machine a test would pause.
    let (x, y) = plot_at(&browser, 0.25, 0.5);
    browser.script(&format!(
        "for (let turn = 0; turn < 4; turn++) document.elementFromPoint({x}, {y}).dispatchEvent(new WheelEvent('wheel',
           {{ deltaY: -60, ctrlKey: true, clientX: {x}, clientY: {y}, bubbles: true, cancelable: true }}));"
    ));
    browser.until(&format!("+new URLSearchParams(location.search).get('to') !== {}", first.1));
    browser.drag(plot_at(&browser, 0.2, 0.5), plot_at(&browser, 0.7, 0.5), SHIFT);
    browser.press("c");
    browser.until("new URLSearchParams(location.search).has('vs')");
    assert_eq!(browser.eval("history.length"), before + 4, "a zoom, a wheel, a move, a choice");
    let last = span(&browser);
    for step in ["!new URLSearchParams(location.search).has('vs')".to_string(), String::new(), String::new()] {
        browser.eval("history.back()");
        if !step.is_empty() {
            browser.until(&step);
        }
    }
    browser.until(&format!("+new URLSearchParams(location.search).get('from') === {}", first.0));
    browser.until(FROZEN);
    browser.eval("history.back()");
    live(&browser);
    browser.until(r#"document.querySelector("article.chart").dataset.window === "15m""#);
    browser.eval("history.go(4)");
    browser.until(&format!("+new URLSearchParams(location.search).get('from') === {}", last.0));
    browser.until(FROZEN);
    browser.until("new URLSearchParams(location.search).has('vs')");
    // The page follows, not only the address.
    browser.until("document.querySelector('article.chart').dataset.window !== '15m'");
    // After a reload, a step back is still one step.
    browser.reload();
    browser.until(FROZEN);
    browser.press("Backspace");
    browser.until("!new URLSearchParams(location.search).has('vs')");
    no_faults(&browser);
}

#[test]
fn escape_lets_go_of_a_drag() {
    let (_server, browser) = start("?w=5m");
    let (from, to) = (plot_at(&browser, 0.3, 0.5), plot_at(&browser, 0.6, 0.5));
    let hold = |kind: &str, (x, y): (f64, f64)| {
        browser.cdp(
            "Input.dispatchMouseEvent",
            json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 }),
        )
    };
    for leave in [false, true] {
        hold("mousePressed", from);
        hold("mouseMoved", to);
        browser.until(r##"document.querySelector("#page[data-select]")"##);
        browser.press("Escape");
        if leave {
            hold("mouseMoved", from);
        }
        hold("mouseReleased", to);
        browser.until(r##"!document.querySelector("#page[data-select]")"##);
        assert_eq!(browser.eval("location.search.includes('from')"), false, "nothing was zoomed to");
        assert_ne!(browser.eval("document.documentElement.dataset.link"), "frozen");
    }
    browser.drag(from, to, 0);
    browser.until("location.search.includes('from')");
    no_faults(&browser);
}

#[test]
fn what_stands_still_loses_nothing_and_says_what_it_shows() {
    let (_server, browser) = start("?w=1m");
    let samples = r#"+document.querySelector("article.hero").dataset.samples"#;
    browser.press(" ");
    browser.until(FROZEN);
    super::still(&browser, samples);
    let shown = browser.eval(samples);
    let words = r#"document.querySelector("button.link").innerText"#;
    // After midnight the day stands before the times.
    browser.until(&format!(r#"/FROZEN\s+(\d+ \w+ )?\d\d:\d\d:\d\d–\d\d:\d\d:\d\d, \d+ s new/.test({words})"#));
    assert_eq!(browser.eval(samples), shown, "it stands still");
    browser.until(&format!(r#"+/, (\d+) s new/.exec({words})[1] >= 4"#));
    browser.press("Escape");
    live(&browser);
    // Every sample of the minute is there, including those of the time in which nothing was drawn. The server tells how many
    // there are: on a loaded machine the demo skips a tick now and then.
    browser.press(" ");
    browser.until(FROZEN);
    let (from, to) = span(&browser);
    let csv = format!("api/v1/export?format=csv&tag=gpu.0.gpu&from={from}&to={to}");
    let csv = browser.script(&format!("return fetch('{csv}').then(answer => answer.text())"));
    let ticks = csv.as_str().expect("text").lines().count() - 1;
    assert!(ticks > 5, "{csv}");
    browser.until(&format!("Math.abs({samples} - {ticks}) <= 1"));
    assert_eq!(browser.eval(ASKED), 0, "and none had to be asked for");
}

#[test]
fn spans_are_typed() {
    let (_server, browser) = start("");
    let window = r#"document.querySelector("article.chart").dataset.window"#;
    let field = "(document.getElementById('range').focus(), document.getElementById('range').select())";
    browser.click("[data-do=tools]");
    browser.eval(field);
    browser.type_line("90s");
    browser.until(&format!(r#"{window} === "90s""#));
    browser.until(r#"new URLSearchParams(location.search).get("w") === "90s""#);
    // The keys apply to the page again.
    browser.press("1");
    browser.until(&format!(r#"{window} === "1m""#));

    browser.eval(field);
    browser.type_line("soon");
    browser.until(r#"document.getElementById("wrong").textContent.includes("14:00-14:20")"#);
    assert_eq!(browser.eval(window), "1m");
    let times =
        browser.eval(r#"[120, 60].map(ago => new Date(Date.now() - ago * 1000).toTimeString().slice(0, 8)).join("-")"#);
    browser.eval(field);
    browser.type_line(times.as_str().expect("a span"));
    browser.until(FROZEN);
    browser.until(&format!(r#"{window} === "1m""#));
    browser.until(r#"document.getElementById("wrong").textContent === """#);
    let words = browser.eval(r#"document.querySelector("button.link").innerText"#).to_string();
    let (from, to) = times.as_str().and_then(|t| t.split_once('-')).expect("two times");
    assert!(words.contains(&format!("{from}–{to}")), "{words}");
    no_faults(&browser);
}

#[test]
fn links_have_unix_seconds_and_old_ones_with_milliseconds_show_the_same() {
    let (server, browser) = start("");
    let now = browser.eval("Math.floor(Date.now() / 1000)").as_u64().expect("a time");
    let words = r#"document.querySelector("button.link small").innerText.slice(0, 17)"#;
    let mut said = Vec::new();
    for query in [format!("from={}&to={}", now - 100, now - 40), format!("from={}000&to={}000", now - 100, now - 40)] {
        browser.open(&format!("{}?{query}", server.url));
        browser.until(FROZEN);
        super::whole(&browser);
        said.push(browser.eval(words));
    }
    assert_eq!(said[0], said[1]);
    // The address of the page has times in the format of the API.
    browser.press("t");
    browser.until(&format!("+new URLSearchParams(location.search).get('from') === {}", now - 100));
}
