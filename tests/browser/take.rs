//! Tests the exports of a chart: its table, a picture, its samples, the link.

use super::{live, no_faults};
use serde_json::json;
use std::path::Path;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;
use watchglass_tests::waiting::until;

const DID: &str = r##"(document.querySelector("#menu .did") || {}).textContent"##;

/// A live page of a demo that many tests share.
fn demo(gpus: &str) -> Browser {
    demo_in(Browser::start(), gpus)
}

/// A live page of a demo, with all samples of its minute.
fn demo_in(browser: Browser, gpus: &str) -> Browser {
    let server = super::demo(gpus);
    browser.open(&format!("{}?w=1m", server.url));
    live(&browser);
    super::whole(&browser);
    browser
}

fn open_menu(browser: &Browser, panel: &str) {
    browser.focus(&format!("article[data-panel='{panel}'] .plot"));
    browser.strike("m", 0);
    browser.until(r##"document.querySelector("#menu:not([hidden]) .take")"##);
}

/// Waits until the browser has saved a file with this extension, and returns its bytes.
fn saved(folder: &Path, kind: &str) -> Vec<u8> {
    until(&format!("a .{kind} that was saved"), || {
        let mut all = std::fs::read_dir(folder).expect("a folder").flatten().map(|f| f.path());
        let found = all.find(|p| p.extension().is_some_and(|e| e == kind))?;
        Some(std::fs::read(found).expect("a saved file")).filter(|bytes| !bytes.is_empty())
    })
}

#[test]
fn a_chart_is_a_table() {
    let browser = demo("8");
    browser.press(" ");
    browser.until(r#"document.documentElement.dataset.link === "frozen""#);
    open_menu(&browser, "gpu");
    browser.click("#menu [data-do=table]");
    browser.until("document.getElementById('dialog').open");
    let table = browser.eval(
        r##"(t => ({ caption: t.caption.textContent, rows: t.tBodies[0].rows.length,
            head: [...t.tHead.rows[0].cells].map(c => [c.tagName, c.scope, c.textContent]),
            first: [...t.tBodies[0].rows[0].cells].map(c => [c.tagName, c.scope, c.textContent]) }))
            (document.querySelector("#dialog table"))"##,
    );
    assert_eq!(table["head"][0], json!(["TH", "col", "Time"]));
    assert_eq!(table["head"][8], json!(["TH", "col", "GPU 7"]));
    assert_eq!(table["head"].as_array().map(Vec::len), Some(9));
    assert_eq!(table["first"][0][0], "TH");
    assert_eq!(table["first"][0][1], "row");
    let caption = table["caption"].as_str().expect("words");
    assert!(caption.contains('–') && caption.contains('%') && !caption.contains("use CSV for all"), "{caption}");
    let samples = browser.eval(r#"+document.querySelector("article[data-panel=gpu]").dataset.samples"#);
    assert!(samples.as_u64().is_some_and(|n| n > 20));
    assert_eq!(table["rows"], samples, "a row a sample");
    // The first row has the newest values, as the labels do.
    let newest = table["first"][1][2].as_str().expect("a value").parse::<f64>();
    assert!(newest.is_ok(), "{table}");
    browser.click("#dialog [data-do=copy-table]");
    browser.until(r##"document.querySelector("#dialog .did").textContent === "Table copied""##);
    browser.strike("Escape", 0);
    browser.until("!document.getElementById('dialog').open");
    no_faults(&browser);
}

#[test]
fn a_large_table_is_bounded_and_says_so() {
    let browser = demo("64");
    browser.press("2");
    browser.until(r#"+document.querySelector("article[data-panel='gpu.power']").dataset.samples >= 250"#);
    open_menu(&browser, "gpu.power");
    browser.click("#menu [data-do=table]");
    browser.until("document.getElementById('dialog').open");
    let caption = browser.eval(r##"document.querySelector("#dialog caption").textContent"##);
    let caption = caption.as_str().expect("words");
    assert!(caption.contains("24 of 64 series, use CSV for all"), "{caption}");
    assert_eq!(browser.eval(r##"document.querySelectorAll("#dialog tbody tr:first-child td").length"##), 24);
    no_faults(&browser);
}

#[test]
fn a_chart_leaves_as_a_picture_with_its_words() {
    let browser = demo("8");
    let folder = tempfile::tempdir().expect("a folder");
    browser.save_to(folder.path());
    open_menu(&browser, "gpu");
    browser.click("#menu [data-do=svg]");
    browser.until(&format!("/^Saved .+gpu(-[0-9]{{2,4}}){{6}}\\.svg$/.test({DID})"));
    let svg = String::from_utf8(saved(folder.path(), "svg")).expect("text");
    let source = browser.eval(r#"document.title.split(" – ")[0]"#);
    for word in ["GPU utilization", "GPU 0", "GPU 7", source.as_str().expect("a name"), "–"] {
        assert!(svg.contains(word), "no {word:?} in {}", &svg[..svg.len().min(2000)]);
    }
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains(r#"width="960" height="316""#));
    let wrong =
        format!("new DOMParser().parseFromString({}, 'image/svg+xml').querySelector('parsererror')", json!(svg));
    assert_eq!(browser.eval(&wrong), json!(null), "a browser reads it");

    browser.click("#menu [data-do=png]");
    browser.until(&format!("/^Saved .+\\.png$/.test({DID})"));
    let png = saved(folder.path(), "png");
    assert_eq!(&png[1..4], b"PNG");
    let side = |at: usize| u32::from_be_bytes([png[at], png[at + 1], png[at + 2], png[at + 3]]);
    assert_eq!((side(16), side(20)), (1920, 632), "two pixels for one");
    browser.screenshot("menu");
    no_faults(&browser);
}

#[test]
fn every_sample_is_in_the_csv_and_the_link_shows_the_same() {
    // All pages of a Chromium share its clipboard.
    let browser = demo_in(Browser::alone(), "8");
    browser.press(" ");
    browser.until(r#"document.documentElement.dataset.link === "frozen""#);
    browser.until(r#"new URLSearchParams(location.search).has("to")"#);
    open_menu(&browser, "gpu.power");
    let address = browser.eval(r##"document.querySelector("#menu a[download]").getAttribute("href")"##);
    let address = address.as_str().expect("an address");
    assert!(address.starts_with("api/v1/export?") && address.contains("tag=gpu.*.powerWatts"), "{address}");
    let csv = browser.script(&format!("return fetch({address:?}).then(r => r.text())"));
    let csv = csv.as_str().expect("text");
    let samples = browser.eval(r#"+document.querySelector("article[data-panel='gpu.power']").dataset.samples"#);
    let samples = samples.as_u64().expect("a count");
    let lines = csv.lines().count() as u64;
    assert!(lines > 8 * samples && lines <= 8 * (samples + 1) + 1, "{lines} lines for {samples} instants of 8 GPUs");

    browser.click("#menu [data-do=link]");
    browser.until(&format!("{DID} === 'Link copied'"));
    assert_eq!(browser.eval(r##"document.querySelector("#menu .did").getAttribute("role")"##), "status");
    // The address is pasted into the field for a span.
    browser.click("[data-do=tools]");
    browser.focus("#range");
    browser.cdp(
        "Input.dispatchKeyEvent",
        json!({ "type": "keyDown", "key": "v", "code": "KeyV", "modifiers": 2, "commands": ["paste"] }),
    );
    browser.until("document.getElementById('range').value.startsWith('http')");
    assert_eq!(browser.eval("document.getElementById('range').value"), browser.eval("location.href"));
}

#[test]
fn a_link_says_this_moment_and_a_live_link_does_not() {
    let browser = demo("8");
    let copy = "() => { window.__copied = document.querySelector('textarea.away').value; return true; }";
    browser.eval(&format!("(document.execCommand = {copy}, 0)"));
    open_menu(&browser, "gpu.power");
    browser.click("#menu [data-do=link]");
    browser.until(&format!("{DID} === 'Link copied'"));
    let span = "(p => +p.get('to') - +p.get('from'))(new URL(window.__copied).searchParams)";
    assert_eq!(browser.eval(span), 60, "the window of a minute stands still");
    // And this page goes on.
    browser.until("document.documentElement.dataset.link === 'live'");
    browser.click("#menu [data-do=live-link]");
    browser.until(&format!("{DID} === 'Live link copied'"));
    assert_eq!(browser.eval("new URL(window.__copied).searchParams.has('from')"), false);
}

#[test]
fn what_is_done_on_labels_is_in_the_menu_too() {
    let browser = demo("8");
    let query = "new URLSearchParams(location.search)";
    open_menu(&browser, "gpu");
    browser.focus("#one");
    browser.strike("ArrowDown", 0);
    browser.until("document.getElementById('one').value === '1'");
    for (what, param, kept, said) in [
        ("alone", "only", "gpu~GPU 1", "GPU 1: alone"),
        ("alone", "only", "", "GPU 1: default"),
        ("off", "off", "gpu~GPU 1", "GPU 1: hidden"),
        ("pin", "pin", "GPU 1", "GPU 1: followed"),
    ] {
        browser.focus(&format!("#menu [data-do={what}]"));
        browser.strike("Enter", 0);
        browser.until(&format!("({query}.get('{param}') || '') === '{kept}'"));
        browser.until(&format!("{DID} === '{said}'"));
    }
    browser.click("#menu [data-do=series]");
    browser.until(&format!("!{query}.has('off') && !{query}.has('pin')"));
    no_faults(&browser);
}

#[test]
fn a_recording_gives_its_samples_without_a_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.watchglass").display().to_string();
    let server = super::demo_of(&["--gpus", "2"]);
    let port = server.addr().port().to_string();
    let made = watchglass_tests::server::run(["record", &file, "--port", &port, "--from", "-2m"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    drop(server);
    let server = Server::start(["replay", &file]);
    let browser = Browser::start();
    browser.open(&server.url);
    browser.save_to(folder.path());
    browser.until(r#"document.documentElement.dataset.link === "recorded""#);
    browser.press("End");
    // Samples that come after this are in the file or not.
    let samples = browser.until(r#"+document.querySelector("article[data-panel='gpu.power']").dataset.samples"#);
    open_menu(&browser, "gpu.power");
    browser.click("#menu button[data-do=csv]");
    let csv = String::from_utf8(saved(folder.path(), "csv")).expect("text");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("time,source,tag,value"));
    assert!(lines.clone().count() as u64 + 2 >= 2 * samples.as_u64().expect("a count"), "{csv}");
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert!(cells.len() == 4 && cells[2].ends_with(".powerWatts"), "{line}");
        assert!(cells[0].parse::<f64>().is_ok_and(|t| t > 1.6e9) && cells[3].parse::<f64>().is_ok(), "{line}");
    }
    no_faults(&browser);
}

#[test]
fn a_chart_and_a_section_say_what_they_show_with_names_to_copy() {
    let browser = demo("8");
    let copy = "() => { window.__copied = document.querySelector('textarea.away').value; return true; }";
    browser.eval(&format!("(document.execCommand = {copy}, 0)"));
    open_menu(&browser, "gpu.power");
    browser.click("#menu [data-do=about]");
    browser.until("document.getElementById('dialog').open");
    let text = "document.querySelector('#dialog .about').innerText";
    for part in
        ["NVML", "watts", "gpu.{i}.powerWatts", "watchglass_gpu_power_watts{gpu}", "gpu.{i}.enforcedPowerLimitWatts"]
    {
        browser.until(&format!("{text}.includes({part:?})"));
    }
    assert_eq!(browser.eval(&format!("{text}.includes('gpu.{{i}}.temp')")), false, "of this chart alone");
    browser.eval("[...document.querySelectorAll('#dialog dd')].find(d => d.innerText.includes('watchglass_gpu_power_watts')).querySelector('button').click()");
    browser.until("window.__copied === 'watchglass_gpu_power_watts{gpu}'");
    browser.until("document.querySelector('#dialog .did').innerText.startsWith('Copied')");
    browser.press("Escape");
    browser.until("!document.getElementById('dialog').open");
    // By a key at the pointer, and of a whole section.
    browser.eval("document.activeElement.blur()");
    browser.move_to(super::plot_at(&browser, 0.5, 0.5));
    browser.press("i");
    browser.until("document.getElementById('dialog').open");
    browser.until(&format!("{text}.includes('gpu.{{i}}.gpu')"));
    browser.press("Escape");
    browser.until("!document.getElementById('dialog').open");
    browser.click("details[open] > [data-do=about-section]");
    browser.until("document.querySelectorAll('#dialog .about section').length > 2");
}
