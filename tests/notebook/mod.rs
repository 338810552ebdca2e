//! Tests in a real JupyterLab in a real browser. `cargo xtask test` prepares both where Python and Node.js are
//! available.

mod cells;
mod roads;
mod sidebar;

use serde_json::Value;
use std::time::Duration;
use watchglass_tests::browser::Browser;
use watchglass_tests::jupyter::{Home, Jupyter};
use watchglass_tests::waiting::until_or;

/// Maximum time in which Lab and a kernel start on a loaded machine.
const START_TIMEOUT: Duration = Duration::from_secs(120);

#[track_caller]
fn until(browser: &Browser, home: &Home, what: &str) -> Value {
    until_or(
        START_TIMEOUT,
        || {
            let found = browser.peek(what);
            Some(found).filter(|found| !matches!(found, Value::Null | Value::Bool(false)))
        },
        || format!("{what}\n{}\n{}", browser.peek("document.body.innerText.slice(0, 2000)"), home.log()),
    )
}

/// Opens Lab, with a notebook where one is given.
fn lab(home: &Home, jupyter: &Jupyter, notebook: Option<&str>) -> Browser {
    let browser = Browser::start();
    let path = notebook.map_or("lab?reset".to_string(), |name| format!("lab/tree/{name}?reset"));
    browser.open(&jupyter.url(&path));
    until(&browser, home, "!!window.jupyterapp && !!document.querySelector('.jp-LauncherCard, .jp-Notebook .jp-Cell')");
    browser
}

fn run(browser: &Browser, command: &str) {
    browser.eval(&format!("(window.jupyterapp.commands.execute({command:?}), 1)"));
}

/// The open notebook.
const BOOK: &str = "[...window.jupyterapp.shell.widgets('main')].find(w => w.sessionContext)";

/// The page in the visible tab.
const PAGE: &str = "[...document.querySelectorAll('.wg-Page iframe')].find(f => f.offsetParent).contentDocument";

/// Runs the code in the frame of the page: `page` is its window.
fn in_page(browser: &Browser, code: &str) -> Value {
    browser.eval(&format!("(page => {code})({PAGE}.defaultView)"))
}

/// Opens the tab with the page, and waits until it is live.
fn tab(browser: &Browser, home: &Home) {
    until(browser, home, "window.jupyterapp.commands.isVisible('watchglass:open')");
    run(browser, "watchglass:open");
    until(browser, home, &format!("{PAGE}.documentElement.dataset.link === 'live'"));
}

/// Waits until the kernel of a notebook is idle.
fn idle(browser: &Browser, home: &Home, book: &str) {
    until(browser, home, &format!("{book}.sessionContext.session.kernel.status === 'idle'"));
}

/// Shows the notebook, and runs its cell at this place.
fn run_cell(browser: &Browser, home: &Home, at: usize) {
    browser
        .eval(&format!("(window.jupyterapp.shell.activateById({BOOK}.id), {BOOK}.content.activeCellIndex = {at}, 1)"));
    until(browser, home, &format!("window.jupyterapp.shell.currentWidget === {BOOK}"));
    run(browser, "notebook:run-cell");
}
