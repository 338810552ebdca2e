//! Against an earlier period, against another metric, and what changed.

use super::{no_faults, plot_at, start};

const QUERY: &str = "new URLSearchParams(location.search)";
/// All colours of the wide chart's lines, added up.
const INK: &str = r#"(c => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.reduce((a, b) => a + b))
    (document.querySelector("article.hero canvas"))"#;

#[test]
fn the_span_before_lies_under_the_lines_and_stands_in_the_tooltip() {
    let (_server, browser) = start("?w=5m");
    browser.press(" ");
    browser.until(&format!("{QUERY}.has('from')"));
    // Drawn to its end: the same twice.
    browser.until(&format!("(v => {{ const same = window.__ink === v; window.__ink = v; return same; }})({INK})"));
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
    let (_server, browser) = start("?w=5m");
    // A minute of high load within what the demo tells of itself: where nothing moved, that is said.
    browser.press("d");
    browser.until(r##"document.querySelector("#sheet:not([hidden]) h2").textContent === "What changed""##);
    browser.until(r##"document.querySelector("#sheet li button, #sheet p + p, #sheet ol + p")"##);
    let scores = browser.eval(r##"[...document.querySelectorAll("#sheet .score")].map(s => parseInt(s.textContent))"##);
    let scores: Vec<i64> = serde_json::from_value(scores).expect("numbers");
    assert!(scores.windows(2).all(|w| w[0] >= w[1]), "{scores:?}");
    assert!(!scores.is_empty(), "in ten minutes of the demo something moved");
    browser.click("#sheet li:last-child button");
    browser.until(r#"document.querySelector("article.found")"#);
    browser.until(
        r#"(r => r.top < innerHeight && r.bottom > 0)(document.querySelector("article.found").getBoundingClientRect())"#,
    );
    browser.press("Escape");
    browser.until(r#"document.getElementById("sheet").hidden"#);
    no_faults(&browser);
}
