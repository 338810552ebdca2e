//! Tests the comparison with an earlier period and with another metric, and the list of what changed.

use super::{demo, demo_of, live, no_faults, plot_at, start, still};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

const QUERY: &str = "new URLSearchParams(location.search)";
/// An expression for the sum of all colors in the wide chart.
const INK: &str = r#"(c => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.reduce((a, b) => a + b))
    (document.querySelector("article.hero canvas"))"#;

#[test]
fn the_span_before_lies_under_the_lines_and_stands_in_the_tooltip() {
    let (_server, browser) = start("?w=5m");
    browser.press(" ");
    browser.until(&format!("{QUERY}.has('from')"));
    still(&browser, INK);
    let ink = browser.eval(INK);
    browser.press("c");
    browser.until(&format!("{QUERY}.get('vs') === 'before'"));
    browser.until(r#"document.getElementById("versus").value === "before""#);
    browser.until(&format!("{INK} !== {ink}"));
    browser.move_to(plot_at(&browser, 0.5, 0.5));
    browser.until(r##"/^was \d/.test(document.querySelector("#tip .row i").textContent)"##);
    browser.reload();
    browser.until(r#"document.getElementById("versus") && document.getElementById("versus").value === "before""#);
    browser.press("c");
    browser.until(&format!("!{QUERY}.has('vs')"));
    no_faults(&browser);
}

#[test]
fn an_earlier_period_is_offered_where_history_reaches_it() {
    let offered = |server: &Server| {
        let browser = Browser::start();
        browser.open(&format!("{}?w=5m", server.url));
        live(&browser);
        browser.until(r#"document.getElementById("versus").options.length > 2"#);
        let values = r#"[...document.getElementById("versus").options].map(o => o.value)"#;
        serde_json::from_value::<Vec<String>>(browser.eval(values)).expect("names")
    };
    assert_eq!(offered(demo("8")), ["", "before", "1h"], "12 hours do not hold a day");
    assert_eq!(offered(&demo_of(&["--retention", "2d"])), ["", "before", "1h", "1d"]);
}

#[test]
fn another_chart_lies_over_this_one_with_its_axis_said() {
    let (_server, browser) = start("?w=5m");
    browser.click("article.hero h3 button");
    browser.until(r##"document.querySelector("#menu:not([hidden]) select").options.length > 10"##);
    browser.eval(
        r#"(s => { s.value = "gpu.power"; s.dispatchEvent(new Event("change", { bubbles: true })); })(document.getElementById("over"))"#,
    );
    browser.until(&format!("{QUERY}.get('over') === 'gpu~gpu.power'"));
    browser.until(r#"/dashed: GPU power, 0 to \d+ W/.test(document.querySelector("article.hero .note").textContent)"#);
    browser.move_to(plot_at(&browser, 0.5, 0.5));
    browser.until(r##"document.querySelectorAll("#tip .row").length === 16"##);
    browser.until(r#"document.getElementById("menu").hidden"#);
    no_faults(&browser);
}

#[test]
fn what_changed_is_ranked_and_opens_its_chart() {
    // One GPU falls behind some minutes before the page is opened.
    let server = Server::start(["demo", "--gpus", "8", "--fail", "straggler"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=5m", server.url));
    live(&browser);
    browser.press("d");
    let open = r##"document.querySelector("#sheet:not([hidden]) h2 [aria-pressed=true]").textContent"##;
    browser.until(&format!("{open} === 'Changes'"));
    // The list is rebuilt when the history has arrived.
    browser.until(r##"document.querySelector("#sheet ol + p").textContent !== "Loading history." "##);
    browser.until(r##"document.querySelector("#sheet .score")"##);
    let scores = browser.eval(r##"[...document.querySelectorAll("#sheet .score")].map(s => parseInt(s.textContent))"##);
    let scores: Vec<i64> = serde_json::from_value(scores).expect("numbers");
    assert!(scores.windows(2).all(|w| w[0] >= w[1]), "{scores:?}");
    assert!(!scores.is_empty(), "one of the GPUs fell behind");
    browser.click("#sheet li:last-child button");
    browser.until(r#"document.querySelector("article.found")"#);
    browser.until(
        r#"(r => r.top < innerHeight && r.bottom > 0)(document.querySelector("article.found").getBoundingClientRect())"#,
    );
    // It does not cover the charts that it describes.
    let apart = r#"[...document.querySelectorAll("article.chart")].every(a =>
        a.getBoundingClientRect().right <= document.getElementById("sheet").getBoundingClientRect().left)"#;
    browser.until(apart);
    browser.press("Escape");
    browser.until(r#"document.getElementById("sheet").hidden"#);
    no_faults(&browser);
}

#[test]
fn who_differs_is_named_with_the_range_of_the_others() {
    let server = Server::start(["demo", "--gpus", "8", "--fail", "straggler"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=1m", server.url));
    live(&browser);
    browser.press("w");
    let rows = r##"[...document.querySelectorAll("#sheet li")].map(l => l.innerText.replace(/\s+/g, " "))"##;
    let straggler = r"/^GPU SM clock ?GPU \d 1\.[34]\d*, others 1\.9\d*(–1\.9\d*)? GHz/";
    browser.until(&format!("{rows}.some(text => {straggler}.test(text))"));
    // The label of a line is never truncated, and in one row all numbers have the same digits.
    let cut =
        r##"[...document.querySelectorAll("#sheet li small")].filter(s => s.scrollWidth > s.clientWidth).length"##;
    assert_eq!(browser.eval(cut), 0);
    browser.until(&format!(r"{rows}.some(text => /^GPU SM clock ?GPU \d 1\.\d\d, others 1\.\d\d GHz/.test(text))"));
    // The dot is beyond the bar.
    let marks = r##"(s => [s.querySelector("rect").x.baseVal.value, s.querySelector("circle").cx.baseVal.value])(
        [...document.querySelectorAll("#sheet li")].find(l => l.innerText.startsWith("GPU SM clock")).querySelector("svg"))"##;
    let marks: Vec<f64> = serde_json::from_value(browser.eval(marks)).expect("two numbers");
    assert!(marks[1] < marks[0], "{marks:?}");
    browser.click("#sheet li button");
    browser.until(r#"document.querySelector("article.found")"#);
    no_faults(&browser);
}
