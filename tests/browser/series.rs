//! Tests the crosshair, its tooltip, and the operations on single series.

use super::{live, no_faults, plot_at, still};
use serde_json::json;
use watchglass_tests::browser::{Browser, CTRL, SHIFT};
use watchglass_tests::server::Server;
use watchglass_tests::waiting::{MAX_WAIT, until_or};

const NOTE: &str = r#"document.querySelector("article.hero .note").innerText"#;
const QUERY: &str = "new URLSearchParams(location.search)";
const TIP: &str = r##"document.querySelector("#tip:not([hidden])")"##;
const ROWS: &str = r##"[...document.querySelectorAll("#tip > .row")].map(r => +r.querySelector("b").textContent)"##;
/// An expression for the layer over the data: one number for each chart on the screen.
const OVER_LAYER: &str = r#"[...document.querySelectorAll("article.chart")]
    .filter(p => p.getBoundingClientRect().bottom < innerHeight)
    .map(p => { const c = p.querySelectorAll("canvas")[1]; const m = Math.round(c.width * 0.45);
        return c.getContext("2d").getImageData(m - 40, 0, 80, c.height).data.reduce((a, b) => a + b, 0); })"#;

/// Place of the label of a series in the wide chart; `row` counts lines of 14 pixels from the top.
fn label(browser: &Browser, row: f64) -> (f64, f64) {
    let [left, top, width, _] = browser.rect("article.hero .plot");
    (left + width - 60.0, top + 10.0 + row * 14.0)
}

/// Points at a label of the wide chart, and waits until each series has its own.
fn unfold(browser: &Browser, label: (f64, f64)) {
    browser.move_to(label);
    // The chart under the pointer is drawn first: one frame ends, the next draws it.
    browser.script(
        "return new Promise(done => { let frames = 0;
            const look = () => ++frames > 4 ? done(1) : requestAnimationFrame(look); look(); })",
    );
}

/// Clicks at the labels of the wide chart, one line of text after another from a `row` on, until an expression is true.
/// A label is at the height of its value, which depends on the simulated job.
#[track_caller]
fn click_label(browser: &Browser, row: u8, held: u8, chosen: &str) {
    let rows = (browser.rect("article.hero .plot")[3] / 14.0) as u8;
    // The address follows a moment later, where it has changed often.
    let follows = format!(
        "new Promise(done => {{ let frames = 0;
            const look = () => {chosen} || ++frames > 30 ? done({chosen}) : requestAnimationFrame(look); look(); }})"
    );
    let clicked = (0..rows).any(|n| {
        let place = label(browser, f64::from((row + n) % rows));
        unfold(browser, place);
        browser.click_at(place, held);
        browser.eval(&follows) == true
    });
    assert!(clicked, "no label is clicked: {chosen}");
}

fn demo(gpus: &str) -> (&'static Server, Browser) {
    let server = super::demo(gpus);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    super::whole(&browser);
    (server, browser)
}

#[test]
fn the_crosshair_is_in_every_chart_and_its_tooltip_is_sorted() {
    let (_server, browser) = demo("8");
    browser.press(" ");
    browser.until(r#"document.documentElement.dataset.link === "frozen""#);
    let before = browser.eval(OVER_LAYER);
    browser.move_to(plot_at(&browser, 0.5, 0.5));
    browser.until(TIP);
    let [left, _, width, _] = browser.rect("article.hero .plot");
    browser.move_to((left + width * 0.45, plot_at(&browser, 0.5, 0.5).1));
    browser.until(&format!("{OVER_LAYER}.every((ink, i) => ink !== {before}[i])"));
    assert!(before.as_array().is_some_and(|charts| charts.len() >= 3), "charts are on the screen");
    browser.until(&format!("{ROWS}.length === 8"));
    let rows: Vec<f64> = serde_json::from_value(browser.eval(ROWS)).expect("numbers");
    assert!(rows.len() == 8 && rows.windows(2).all(|w| w[0] >= w[1]), "{rows:?}");
    no_faults(&browser);
}

#[test]
fn many_series_are_eight_rows_and_a_sentence_until_they_are_pinned() {
    let (_server, browser) = demo("64");
    let place = r#"[...document.querySelectorAll("article.chart")].find(p => p.dataset.panel === "gpu.power")"#;
    let rect = browser.eval(&format!(
        "(({place}).scrollIntoView({{ block: 'center' }}), (r => [r.left, r.top, r.width, r.height])({place}.querySelector('.plot').getBoundingClientRect()))"
    ));
    let at = |share: f64| {
        let side = |i: usize| rect[i].as_f64().expect("a length");
        (side(0) + side(2) * share, side(1) + side(3) * 0.4)
    };
    browser.move_to(at(0.4));
    browser.until(
        r##"/^… 56 more \(min .+, median .+, max .+\)$/.test(document.querySelector("#tip .rest").textContent)"##,
    );
    assert_eq!(browser.eval(&format!("{ROWS}.length")), 8);
    browser.click_at(at(0.4), 0);
    browser.until(&format!(r##"document.querySelector("#tip.pinned") && {ROWS}.length === 64"##));
    let when = r##"document.querySelector("#tip .when").innerText"##;
    let pinned = browser.eval(when);
    browser.move_to(at(0.6));
    browser.move_to(at(0.5));
    assert_eq!(browser.eval(when), pinned, "it stays");
    assert!(browser.eval(r##"(t => t.scrollHeight > t.clientHeight)(document.querySelector("#tip"))"##) == json!(true));
    no_faults(&browser);
}

#[test]
fn a_page_that_scrolls_leaves_no_values_behind_and_takes_kept_ones_along() {
    let (_server, browser) = demo("8");
    browser.press(" ");
    let place = plot_at(&browser, 0.5, 0.5);
    browser.move_to(place);
    browser.until(TIP);
    browser.wheel(place, 60.0, 0);
    browser.until(r#"document.getElementById("tip").hidden"#);
    // The wheel scrolls over some frames.
    still(&browser, "scrollY");
    let place = plot_at(&browser, 0.5, 0.5);
    browser.click_at(place, 0);
    browser.until(r##"document.querySelector("#tip.pinned")"##);
    let top = r##"document.querySelector("#tip").getBoundingClientRect().top"##;
    let before = browser.eval(top);
    browser.wheel(place, -40.0, 0);
    browser.until(&format!("Math.abs({top} - {before} - 40) <= 1"));
    no_faults(&browser);
}

#[test]
fn keys_move_the_crosshair_and_say_where_it_is() {
    let (_server, browser) = super::past(300);
    browser.focus("article.hero .plot");
    browser.press("End");
    browser.until(TIP);
    let when = r##"document.querySelector("#tip .when span").textContent"##;
    let seconds = |text: serde_json::Value| {
        let parts: Vec<i64> = text.as_str().expect("a time").split(':').filter_map(|p| p.parse().ok()).collect();
        parts[0] * 3600 + parts[1] * 60 + parts[2]
    };
    let end = seconds(browser.eval(when));
    for (key, back) in [("ArrowLeft", 1), ("ArrowLeft", 2), ("ArrowRight", 1)] {
        browser.press(key);
        browser.until(&format!(
            r#"(t => ({end} - t + 86400) % 86400)({when}.split(":").reduce((a, p) => a * 60 + +p, 0)) === {back}"#
        ));
    }
    browser.until(r#"/^\d\d:\d\d:\d\d, GPU \d, \d+/.test(document.getElementById("said").textContent)"#);
    browser.press("Enter");
    browser.until(r##"document.querySelector("#tip.pinned")"##);
    no_faults(&browser);
}

#[test]
fn series_are_isolated_hidden_and_followed_and_a_second_tab_shows_the_same() {
    let (_server, browser) = demo("8");
    // Lines at the same height share a label until the pointer is over it.
    click_label(&browser, 2, 0, &format!("{QUERY}.getAll('only').length === 1"));
    browser.until(&format!("{NOTE}.includes('7 hidden')"));
    let only = browser.eval(&format!("{QUERY}.get('only')")).as_str().expect("a series").to_string();
    assert!(only.starts_with("gpu~GPU "), "{only}");
    click_label(&browser, 5, SHIFT, &format!("/^GPU \\d$/.test({QUERY}.get('pin'))"));

    let second = Browser::start();
    second.open(browser.eval("location.href").as_str().expect("an address"));
    live(&second);
    second.until(&format!("{NOTE}.includes('7 hidden')"));
    second.until(&format!("{QUERY}.get('only') === {only:?}"));
    drop(second);

    // The tools for single series restore all of them.
    browser.click("article.hero h3 button");
    browser.click("#menu button[data-do=series]");
    browser.until(&format!("!{NOTE}.includes('hidden') && !{QUERY}.has('only') && !{QUERY}.has('pin')"));
    for hidden in [1, 2] {
        click_label(&browser, hidden * 3, CTRL, &format!("{QUERY}.getAll('off').length === {hidden}"));
        browser.until(&format!("{NOTE}.includes('{hidden} hidden')"));
    }
    no_faults(&browser);
}

/// Two counts of pixels in the wide chart's data: pale over 24 pixels of height, as a band is, and strong as a line. The
/// soft edge of a line is pale, too, but lower, how steep the line may be.
const INKS: &str = r##"(canvas => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const card = getComputedStyle(canvas.closest("article")).backgroundColor.match(/\d+/g).map(Number);
    let band = 0, strong = 0;
    for (let x = 0; x < width; x++) {
        let run = 0;
        for (let y = 0; y < height; y++) {
            const at = 4 * (y * width + x);
            const far = Math.max(...[0, 1, 2].map(k => Math.abs(data[at + k] - card[k]))) * data[at + 3] / 255;
            if (far > 60) strong++;
            run = far > 8 && far <= 60 ? run + 1 : 0;
            if (run === 24) band += 24;
            else if (run > 24) band++;
        }
    }
    return [band, strong];
})(document.querySelector("article.hero canvas"))"##;

#[test]
fn over_hours_means_are_lines_and_extremes_a_pale_band() {
    let (server, browser) = super::start("?w=1m");
    // On a machine that is slow, the hours before the page follow while it is shown.
    let all = ["full retention", "all of the past that is kept was simulated"];
    let there = || all.iter().any(|words| server.log().contains(words)).then_some(());
    until_or(5 * MAX_WAIT, there, || format!("not all history: {}", server.log()));
    let inks = || serde_json::from_value::<[f64; 2]>(browser.eval(INKS)).expect("two counts");
    browser.press(" ");
    browser.until(r#"document.documentElement.dataset.link === "frozen""#);
    still(&browser, INKS);
    let [near, _] = inks();
    browser.press("Escape");
    browser.press("7");
    browser.until(r#"/means of/.test(document.querySelector("article.hero .note").textContent)"#);
    // The hours arrive in parts, also while the view stands still: there are more than eleven of them. A loaded machine
    // may lack some seconds of the last one.
    browser.until(r#"+document.querySelector("article.hero").dataset.samples >= 40_000"#);
    browser.press(" ");
    browser.until(r#"document.documentElement.dataset.link === "frozen""#);
    still(&browser, INKS);
    let [far, lines] = inks();
    // Each step of twelve hours contains pauses, so the band reaches down to them. A second has one value and no band.
    assert!(far > 20.0 * near && far > lines / 3.0, "pale near {near}, pale far {far}, lines {lines}");
    no_faults(&browser);
}
