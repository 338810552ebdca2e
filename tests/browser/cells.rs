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
    // Beside a notebook the page is narrow.
    browser.size(360, 700);
    browser.open(&format!("{}?kernel={KERNEL}&view=compact", server.url));
    browser.until("document.querySelectorAll('.cells tbody tr').length === 3");
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= 360"), true);
    browser.screenshot("cells-compact");
    no_faults(&browser);
    kernel.kill().expect("it runs");
    kernel.wait().expect("it ended");
}
