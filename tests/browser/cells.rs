//! The page beside a notebook: its kernel and the runs of its cells.

use super::no_faults;
use serde_json::json;
use std::process::Stdio;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::{Server, ask_with, watchglass_by};

const LINK: &str = "document.documentElement.dataset.link";
const KERNEL: &str = "7c0ffee5-4e5f-6071-8293-a4b5c6d7e8f9";

#[test]
fn runs_of_cells_are_listed_and_a_click_marks_one_in_all_charts() {
    let server = Server::start(["--memory", "--interval", "200ms", "--collectors", "kernels,cpu"]);
    // A shell in place of the kernel, with an argument of a kernel.
    let mut shell = watchglass_by("read line", ["-f", &format!("/run/kernel-{KERNEL}.json")]);
    let mut kernel =
        shell.env("JPY_SESSION_NAME", "/home/a/<i>train.ipynb").stdin(Stdio::piped()).spawn().expect("a shell");
    let post = |seq: u64, n: u64, phase: &str, ok: bool| {
        let error = (!ok).then_some("<b>KeyError</b>");
        let marker = json!({
            "kind": "cell", "kernel": KERNEL, "seq": seq, "phase": phase, "cell": format!("c{n}"), "n": n,
            "ok": ok, "error": error,
        });
        let body = marker.to_string();
        let lines = format!(
            "POST /api/v1/markers HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            server.addr(),
            body.len()
        );
        let answer = ask_with(server.addr(), &lines, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    post(1, 7, "start", true);
    post(2, 7, "end", true);
    post(3, 8, "start", true);
    post(4, 8, "end", false);
    post(5, 9, "start", true);
    let browser = Browser::start();
    browser.open(&format!("{}?kernel={KERNEL}&w=1m", server.url));
    browser.until(&format!("{LINK} === 'live'"));
    browser.until("document.querySelectorAll('.cells tbody tr').length === 3");
    let states = "[...document.querySelectorAll('.cells tbody tr')].map(row => row.dataset.cellState).join()";
    assert_eq!(browser.eval(states), "running,failed,ok", "the newest first, each with its word");
    let text = browser.eval("document.querySelector('.cells tbody').innerText");
    assert!(text.as_str().is_some_and(|text| text.contains("<b>KeyError</b>")), "what failed is text: {text}");
    browser.until("document.querySelector('[data-kernel]')?.innerText.includes('busy, cell [9]')");
    let line = browser.eval("document.querySelector('[data-kernel]').innerText");
    assert!(line.as_str().is_some_and(|line| line.contains("<i>train.ipynb")), "{line}");
    // The kernel's own charts come first, from its first reading on.
    browser.until("document.querySelector('article[data-panel]').dataset.panel.startsWith('kernel')");
    browser.screenshot("cells-dark");
    browser.click(".cells tbody tr:nth-child(2) button");
    browser.until(&format!("{LINK} === 'frozen'"));
    assert_eq!(browser.eval("document.querySelector('.cells [aria-pressed=true]').innerText"), "[8]");
    // Beside a notebook the page is narrow, and shows the kernel, its charts and its cells alone.
    for width in [250, 360] {
        browser.size(width, 700);
        browser.open(&format!("{}?kernel={KERNEL}&view=compact", server.url));
        browser.until("document.querySelectorAll('.cells tbody tr').length === 3");
        browser.until("document.querySelector('article[data-panel=\"kernel.memory\"]')");
        browser.until(&format!("innerWidth === {width} && document.documentElement.scrollWidth <= {width}"));
        let seen = "[...document.querySelectorAll('.bar, .tile, .say, .absent:not(.kernel), article.chart:not([data-panel^=\"kernel\"]), .fold:not(.cells)')]
            .filter(one => one.getClientRects().length).map(one => one.className)";
        assert_eq!(browser.eval(seen), json!([]), "at {width}");
        // No figure is cut, and the line about the kernel is one line.
        let cut = "[...document.querySelectorAll('.cells td:not(.cmd), .kernel .says > span')].filter(one => one.getClientRects().length)
            .filter(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth || one.getBoundingClientRect().right > innerWidth).map(one => one.innerText)";
        browser.until(&format!("({cut}).length === 0"));
        browser.until("document.querySelector('.kernel .says').innerText.includes('busy, cell [9]')");
        assert!(browser.rect(".kernel")[3] < 32.0, "{:?}", browser.rect(".kernel"));
        let plot = browser.rect("article[data-panel=\"kernel.memory\"] .plot")[2];
        assert!(plot > f64::from(width) * 0.85, "{plot} of {width}");
        browser.screenshot(&format!("cells-side-{width}"));
    }
    browser.click("[data-do=show-machine]");
    browser.until("document.querySelector('.tile') && document.querySelector('article[data-panel=cpu]')");
    browser.click("[data-do=show-kernel]");
    browser
        .until("!document.querySelector('.tile') && document.querySelector('article[data-panel=\"kernel.memory\"]')");
    no_faults(&browser);
    kernel.kill().expect("it runs");
    kernel.wait().expect("it ended");
}
