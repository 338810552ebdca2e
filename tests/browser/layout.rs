//! Where things stand: every width, nothing that jumps, what a family says while it is folded.

use super::{live, no_faults};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

#[test]
fn the_page_fits_every_width_from_a_small_phone_to_a_wall() {
    let server = Server::start(["demo", "--gpus", "8"]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    for (width, height) in [(320, 640), (390, 844), (768, 1024), (1080, 800), (1440, 900), (1920, 1080), (3840, 2160)] {
        browser.size(width, height);
        browser.until(&format!("innerWidth === {width} && document.documentElement.scrollWidth <= {width}"));
        // What sticks out of the bar cannot be pressed.
        let outside = r#"[...document.querySelectorAll(".bar button, .bar select, .bar input")]
            .map(e => e.getBoundingClientRect()).filter(r => r.width && (r.left < 0 || r.right > innerWidth)).length"#;
        browser.until(&format!("{outside} === 0"));
        let bar = browser.rect(".bar")[3];
        assert!(bar <= if width <= 900 { 88.0 } else { 56.0 }, "the bar is {bar} px high at {width}");
        let tiles = browser
            .eval(r#"new Set([...document.querySelectorAll(".tile")].map(t => t.getBoundingClientRect().top)).size"#);
        assert_eq!(tiles, if width <= 1300 { 2 } else { 1 }, "rows of tiles at {width}");
    }
    // The tools of a narrow page lie behind a button.
    browser.size(390, 844);
    browser.until(r#"getComputedStyle(document.getElementById("tools")).display === "none""#);
    browser.click(r#"button[data-do="tools"]"#);
    browser.until(r#"getComputedStyle(document.getElementById("tools")).display === "flex""#);
    no_faults(&browser);
}

#[test]
fn a_wall_shows_the_seven_without_scrolling() {
    let server = Server::start(["demo", "--gpus", "8"]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    for (width, height) in [(1920, 1080), (2560, 1440), (3840, 2160)] {
        browser.size(width, height);
        browser.until(&format!("innerWidth === {width}"));
        let end =
            r#"[...document.querySelectorAll(".charts article.chart")].map(c => c.getBoundingClientRect().bottom)"#;
        browser.until(&format!("{end}.length === 7 && Math.max(...{end}) <= innerHeight"));
    }
    no_faults(&browser);
}

#[test]
fn canvases_have_the_fonts_of_the_page_and_digits_of_one_width() {
    let server = Server::start(["demo", "--gpus", "1"]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.until("document.fonts.check('12px Inter') && document.fonts.status === 'loaded'");
    // Letters are drawn once, apart from the charts: those of the next new number tell.
    browser.eval(
        r#"((of, draw) => { of.fillText = function (...all) { window.__font = this.font; draw.apply(this, all); }; return 0; })(
            CanvasRenderingContext2D.prototype, CanvasRenderingContext2D.prototype.fillText)"#,
    );
    let font = "window.__font";
    browser.until(&format!(r#"/^(500 )?12px Inter/.test({font})"#));
    let widths = format!(
        r#"(c => {{ c.font = {font}; return new Set([..."0123456789"].map(d => c.measureText(d).width)).size; }})(
            document.createElement("canvas").getContext("2d"))"#
    );
    assert_eq!(browser.eval(&widths), 1, "digits differ in width");
    no_faults(&browser);
}

#[test]
fn paper_is_white_and_has_no_buttons() {
    let server = Server::start(["demo", "--gpus", "1"]);
    let browser = Browser::start();
    browser.prefer("dark");
    browser.open(&server.url);
    live(&browser);
    let theme = "document.documentElement.dataset.theme";
    assert_eq!(browser.eval(theme), "dark");
    browser.eval("(dispatchEvent(new Event('beforeprint')), 0)");
    browser.until(&format!(r#"{theme} === "light""#));
    browser.cdp("Emulation.setEmulatedMedia", serde_json::json!({ "media": "print" }));
    browser.until(r#"[".windows", ".icons", ".tools"].every(s => getComputedStyle(document.querySelector(s)).display === "none")"#);
    browser.cdp("Emulation.setEmulatedMedia", serde_json::json!({ "media": "" }));
    browser.prefer("dark");
    browser.eval("(dispatchEvent(new Event('afterprint')), 0)");
    browser.until(&format!(r#"{theme} === "dark""#));
    no_faults(&browser);
}

#[test]
fn nothing_jumps_while_data_arrives() {
    let server = Server::start(["demo", "--gpus", "8"]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    let tiles = r#"[...document.querySelectorAll(".tile canvas, article.hero .plot")].map(c => c.getBoundingClientRect().width).join(" ")"#;
    let before = browser.eval(tiles);
    let ticks = r#"+document.querySelector("article.hero").dataset.samples"#;
    let first = browser.eval("window.__shift").as_f64().expect("a sum");
    // Numbers of other lengths come and go.
    browser.eval(r#"(window.__then = performance.now(), 0)"#);
    browser.until("performance.now() - window.__then > 6000");
    assert!(browser.eval(ticks).as_u64() > Some(200));
    let shift = browser.eval("window.__shift").as_f64().expect("a sum");
    eprintln!("layout shift from the first paint on: {shift:.4}");
    let after = shift - first;
    assert!(after < 0.001, "after the first data things moved by {after}: {}", browser.eval("window.__shifted"));
    assert!(shift < 0.02, "things moved: {shift}; tiles {before} before, {} after", browser.eval(tiles));
}

#[test]
fn families_are_open_as_far_as_twenty_four_charts_go_and_the_rest_says_what_is_in_it() {
    let server = Server::start(["demo", "--gpus", "8"]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    let open = r#"document.querySelectorAll("article.chart").length"#;
    browser.until(&format!("{open} > 10"));
    assert!(browser.eval(open).as_u64() <= Some(24), "{}", browser.eval(open));
    let folded = r#"[...document.querySelectorAll("details.fold[data-charts]:not([open])")]"#;
    browser.until(&format!("{folded}.length > 0"));
    browser.until(&format!(
        "{folded}.every(f => +f.querySelector('.n').textContent > 0 && f.querySelector('.gist').textContent.length > 3)"
    ));
    // The line of what is not available gives a reason for each.
    browser.eval(r#"(document.querySelector(".why summary").click(), 0)"#);
    browser.until(r#"[...document.querySelectorAll(".why dd")].every(d => d.textContent.length > 10)"#);
    no_faults(&browser);
}
