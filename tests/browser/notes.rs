//! Notes and changes of runs, written on the page by keys and forms.

use super::no_faults;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::{Server, watchglass};
use watchglass_tests::waiting::until;

const DIALOG: &str = "#note-dialog[open] textarea";

fn typed(browser: &Browser, field: &str, value: &str) {
    browser.script(&format!(
        "const field = document.querySelector({field:?}); field.value = {value:?}; \
         field.dispatchEvent(new Event('input', {{ bubbles: true }}));"
    ));
}

#[test]
fn a_key_writes_a_note_that_is_listed_found_edited_and_removed() {
    let server = Server::start(["--collectors", "cpu,memory", "--memory", "--interval", "200ms"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=1m", server.url));
    browser.until("document.documentElement.dataset.link === 'live'");
    browser.press("n");
    browser.until(&format!("document.querySelector('{DIALOG}')"));
    // A letter in the field is text, and no key of the page.
    let theme = browser.eval("document.documentElement.dataset.theme");
    browser.focus(DIALOG);
    browser.press("t");
    assert_eq!(browser.eval("document.documentElement.dataset.theme"), theme);
    typed(&browser, DIALOG, "new <b>PSU</b>\nin rack 3");
    browser.click("#note-dialog[open] form .btn.primary");
    browser.until("!document.querySelector('#note-dialog[open]')");
    browser.until("document.querySelector('[data-section=notes]')");
    browser.click("[data-section=notes] summary");
    let text = "document.querySelector('[data-note] .text')?.textContent";
    browser.until(&format!("{text} === 'new <b>PSU</b>\\nin rack 3'"));
    browser.press("/");
    browser.until("document.activeElement.id === 'find'");
    browser.insert("rack");
    browser.until("[...document.querySelectorAll('#hits .n')].some(kind => kind.textContent === 'note')");
    browser.press("Escape");
    browser.until("!document.querySelector('#find')");
    browser.click("[data-do=edit-note]");
    browser.until(&format!("document.querySelector('{DIALOG}')?.value.includes('PSU')"));
    typed(&browser, DIALOG, "another text");
    browser.click("#note-dialog[open] form .btn.primary");
    browser.until(&format!("{text} === 'another text'"));
    browser.click("[data-do=remove-note]");
    browser.until("document.querySelector('#note-removal[open] .btn.primary')");
    browser.click("#note-removal[open] form .btn.primary");
    browser.until("!document.querySelector('[data-note]')");
    no_faults(&browser);
}

#[test]
fn a_run_is_edited_and_deleted_on_its_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("plain letters");
    let server = Server::start(["--collectors", "cpu", "--interval", "200ms", "--data-dir", data]);
    let mut job =
        watchglass(["run", "--data-dir", data, "--id", "one", "--name", "first", "--tag", "lr=1", "--", "true"]);
    job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
    job.output().expect("it ran");
    until("its end", || server.get("/api/v1/runs", &[]).body.contains("\"finished\"").then_some(()));
    let browser = Browser::start();
    browser.open(&format!("{}?page=run&run=one", server.url));
    browser.until("document.querySelector('.run-head h2')?.textContent === 'first'");
    browser.click("[data-do=edit-run]");
    let form = "#run-dialog[open]";
    browser.until(&format!("document.querySelector('{form} [name=tags]')?.value === 'lr=1'"));
    typed(&browser, &format!("{form} [name=name]"), "second");
    typed(&browser, &format!("{form} [name=tags]"), "lr=2\nseed=7");
    typed(&browser, &format!("{form} [name=notes]"), "the best so far");
    browser.click(&format!("{form} form .btn.primary"));
    browser.until("document.querySelector('.run-head h2')?.textContent === 'second'");
    browser.until("document.querySelector('[data-notes]')?.textContent === 'the best so far'");
    let run = server.get("/api/v1/runs/one", &[]).body;
    assert!(run.contains("\"seed\":\"7\"") && run.contains("\"lr\":\"2\""), "{run}");
    browser.press("n");
    browser.until(&format!("document.querySelector('{DIALOG}')"));
    typed(&browser, DIALOG, "about this run");
    browser.click("#note-dialog[open] form .btn.primary");
    browser.until("document.querySelector('.run-notes [data-note] .text')?.textContent === 'about this run'");
    browser.click("[data-do=delete-run]");
    browser.until(&format!("document.querySelector('{form} .btn.primary')"));
    assert!(server.get("/api/v1/runs", &[]).body.contains("\"one\""), "nothing is deleted before the answer");
    browser.click(&format!("{form} form .btn.primary"));
    browser.until("document.querySelector('.runs-page')");
    assert!(!server.get("/api/v1/runs", &[]).body.contains("\"one\""));
    no_faults(&browser);
}
