//! The page as a part of JupyterLab.

use super::{BOOK, PAGE, idle, in_page, lab, run, tab, until};
use watchglass_tests::browser::Browser;
use watchglass_tests::jupyter::Home;

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_the_page_follows_the_notebook_in_front_and_its_name_which_is_text() {
    let home = Home::new();
    for name in ["a.ipynb", "b.ipynb"] {
        home.notebook(name, &["x = 1"]);
    }
    let jupyter = home.jupyter();
    let browser = lab(&home, &jupyter, Some("a.ipynb"));
    idle(&browser, &home, BOOK);
    let open = "window.jupyterapp.commands.execute('docmanager:open', { path: 'b.ipynb' })";
    browser.eval(&format!("({open}, 1)"));
    let book = |name: &str| {
        format!("[...window.jupyterapp.shell.widgets('main')].find(w => w.context && w.context.path === {name:?})")
    };
    until(&browser, &home, &format!("!!{}", book("b.ipynb")));
    idle(&browser, &home, &book("b.ipynb"));
    tab(&browser, &home);
    let front = |name: &str| {
        let book = book(name);
        browser.eval(&format!("(window.jupyterapp.shell.activateById({book}.id), 1)"));
        until(&browser, &home, &format!("window.jupyterapp.shell.currentWidget === {book}"));
        run(&browser, "watchglass:open");
        let kernel = format!("{book}.sessionContext.session.kernel.id");
        let shown = format!("{PAGE}.querySelector('[data-kernel]')");
        let named = format!("{shown}.innerText.includes({name:?})");
        until(&browser, &home, &format!("{shown}.dataset.kernel === {kernel} && {named}"));
    };
    front("b.ipynb");
    front("a.ipynb");
    assert_eq!(home.programs().len(), 1, "two notebooks, one collector: {:?}", home.programs());
    // A kernel knows only the name that its notebook had at the start.
    let hostile = "<img src=x onerror=alert(1)>.ipynb";
    browser.eval(&format!("({}.context.rename({hostile:?}), 1)", book("a.ipynb")));
    until(&browser, &home, &format!("!!{}", book(hostile)));
    front(hostile);
    assert_eq!(in_page(&browser, "page.document.querySelectorAll('img').length"), 0);
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_a_page_that_nobody_sees_costs_no_stream() {
    let home = Home::new();
    let jupyter = home.jupyter();
    let browser = Browser::start();
    let count = "window.__last = 0; const Real = WebSocket; window.WebSocket = class extends Real { constructor(...all) { \
                 super(...all); this.addEventListener('message', () => { window.__last = performance.now() }) } };";
    browser.before_each_page(count);
    browser.open(&jupyter.url("lab?reset"));
    until(&browser, &home, "!!document.querySelector('#watchglass-side, [data-id=\"watchglass-side\"]')");
    // The sidebar has a page, which is loaded only when it is shown.
    assert_eq!(browser.eval("[...document.querySelectorAll('.wg-Page iframe[src]')].length"), 0);
    browser.eval("(window.jupyterapp.shell.activateById('watchglass-side'), 1)");
    until(&browser, &home, &format!("{PAGE}.documentElement.dataset.link === 'live'"));
    assert_eq!(in_page(&browser, "page.location.search.includes('view=compact')"), true);
    let hears = format!("{PAGE}.defaultView.performance.now() - {PAGE}.defaultView.__last < 2000");
    until(&browser, &home, &hears);
    let side = "document.querySelector('.wg-Page iframe').contentWindow";
    browser.eval("(window.jupyterapp.shell.collapseRight(), 1)");
    // A tick arrives each second while it is visible.
    until(&browser, &home, &format!("{side}.performance.now() - {side}.__last > 5000"));
    browser.eval("(window.jupyterapp.shell.activateById('watchglass-side'), 1)");
    until(&browser, &home, &hears);
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_the_status_bar_says_what_the_kernel_holds_of_memory_and_of_gpus() {
    let home = Home::new();
    home.notebook("a.ipynb", &["x = 1"]);
    let jupyter = home.jupyter();
    let browser = Browser::start();
    // There is no GPU here: the server's answer about GPUs is replaced, all else is its own.
    browser.before_each_page(
        "window.__held = []; const real = window.fetch; window.fetch = (asked, ...more) => \
         /api.v1.query.tag=kernel[.]/.test(asked.url || asked) \
         ? Promise.resolve(new Response(JSON.stringify({ series: window.__held.map((bytes, gpu) => \
         ({ tag: `kernel.x.gpu.${gpu}.memory`, points: [[1, 0], [2, bytes]] })) }))) : real(asked, ...more);",
    );
    browser.open(&jupyter.url("lab/tree/a.ipynb?reset"));
    let says = |what: &str| {
        let text = "(item => item ? item.textContent : '')(document.querySelector('.wg-Status'))";
        until(&browser, &home, &format!("{what}.test({text})"));
    };
    says("/^Kernel [\\d.]+ [MG]iB( of [\\d.]+ [MG]iB)?$/");
    browser.eval("(window.__held = [1.5 * 2 ** 30], 1)");
    says("/^Kernel .* · GPU 0 1[.]5 GiB$/");
    browser.eval("(window.__held = [1.5 * 2 ** 30, 256 * 2 ** 20], 1)");
    says("/^Kernel .* · 2 GPUs 1[.]8 GiB$/");
}
