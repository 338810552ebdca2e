//! The training jobs of a machine, on its page.

use super::no_faults;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::{Server, watchglass};

const LINK: &str = "document.documentElement.dataset.link";

#[test]
fn a_training_job_is_listed_and_a_click_shows_its_span() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("plain letters");
    let server = Server::start(["--collectors", "cpu", "--data-dir", data]);
    let job = |words: &[&str]| {
        let words = [&["run", "--data-dir", data], words].concat();
        watchglass(words).env_remove("WATCHGLASS_RUN_ID").output().expect("it ran");
    };
    job(&["--id", "good", "--name", "<b>lr</b>", "--", "true"]);
    job(&["--id", "bad", "--", "sh", "-c", "exit 3"]);
    let browser = Browser::start();
    browser.open(&server.url);
    browser.until(&format!("{LINK} === 'live'"));
    browser.until("document.querySelector('.runs .n')?.innerText === '2'");
    assert_eq!(browser.eval("document.querySelector('.runs .gist').innerText"), "sh: failed (exit 3)");
    browser.click(".runs summary");
    browser.until("document.querySelectorAll('.runs tbody tr').length === 2");
    let row = |id: &str| format!("document.querySelector('[data-run={id}]')");
    assert_eq!(browser.eval(&format!("{}.dataset.state", row("bad"))), "failed");
    assert_eq!(browser.eval(&format!("{}.cells[0].innerText", row("good"))), "<b>lr</b>", "a name is text");
    browser.screenshot("runs-dark");
    browser.click("[data-run=bad] button");
    browser.until(&format!("{LINK} === 'frozen'"));
    no_faults(&browser);
}
