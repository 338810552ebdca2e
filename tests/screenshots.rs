//! Takes the pictures of the page for the README from a simulated machine: `cargo xtask screenshots`.

use std::path::PathBuf;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;
use watchglass_tests::waiting::{MAX_WAIT, until_or};

/// Name of the picture, number of GPUs, theme, width and height in CSS pixels.
const PICTURES: [(&str, &str, &str, u32, u32); 4] = [
    ("page-dark", "8", "dark", 1440, 900),
    ("page-light", "8", "light", 1440, 900),
    ("page-64", "64", "dark", 1440, 900),
    ("page-phone", "8", "dark", 390, 844),
];
/// Maximum size of a picture in bytes. All readers of the README load it.
const MAX_PICTURE_BYTES: usize = 300_000;
/// Minimum history in a picture, in seconds.
const MIN_HISTORY_SECONDS: u64 = 240;

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("the folder for the pictures"));
    for (name, gpus, theme, width, height) in PICTURES {
        let server = Server::start(["demo", "--gpus", gpus, "--seed", "3", "--fail", "straggler"]);
        let browser = Browser::alone();
        browser.prefer(theme);
        browser.size(width, height);
        browser.cdp("Emulation.setScrollbarsHidden", serde_json::json!({ "hidden": true }));
        browser.open(&server.url);
        browser.until(r#"document.documentElement.dataset.link === "live" && document.fonts.status === "loaded""#);
        // The scroll bar is hidden, so it must take no space.
        browser.eval("(document.documentElement.style.scrollbarGutter = 'auto', 0)");
        // The hint that appears once must not be in a picture.
        browser.until(&format!("(b => b ? b.click() : true)(document.querySelector('.once button')) && +document.querySelector('.charts .chart').dataset.samples >= {MIN_HISTORY_SECONDS}"));
        // The finding leads the page. The demo learns from its simulated past first, which takes minutes on a loaded machine.
        let leads =
            || browser.peek("!!document.querySelector('[data-do=show-finding]')").as_bool().filter(|leads| *leads);
        until_or(9 * MAX_WAIT, leads, || format!("{name}: nothing is found: {}", server.log()));
        // After two frames everything is drawn, and then moves to its place.
        let frames = "return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))";
        browser.script(frames);
        browser.until("document.getAnimations().every(one => one.effect.getComputedTiming().endTime === Infinity)");
        browser.script(frames);
        let picture = browser.picture();
        assert!(picture.len() <= MAX_PICTURE_BYTES, "{name} has {} bytes", picture.len());
        let path = folder.join(name).with_extension("png");
        std::fs::write(&path, &picture).expect("the folder can be written");
        eprintln!("{}: {width} x {height}, {} kB", path.display(), picture.len() / 1000);
    }
}
