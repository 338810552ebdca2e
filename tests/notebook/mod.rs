//! Beside a real JupyterLab in a real browser. `cargo xtask test` prepares both where Python and Node.js are there.

use serde_json::Value;
use std::time::{Duration, Instant};
use watchglass_tests::browser::Browser;
use watchglass_tests::jupyter::{BASE, Home, Jupyter};
use watchglass_tests::programs::Program;
use watchglass_tests::waiting::until_so;

/// What Lab and a kernel may take to start on a machine with much load.
const LONG: Duration = Duration::from_secs(120);

#[track_caller]
fn until(browser: &Browser, home: &Home, what: &str) -> Value {
    let begin = Instant::now();
    loop {
        let found = browser.eval(&format!("(() => {{ try {{ return {what} }} catch (e) {{ return null }} }})()"));
        if !matches!(found, Value::Null | Value::Bool(false)) {
            return found;
        }
        if begin.elapsed() > LONG {
            let text = browser.eval("document.body.innerText.slice(0, 2000)");
            panic!("not in {LONG:?}: {what}\n{text}\n{}", home.log());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Opens Lab, with a notebook where one is named.
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

/// The notebook that is open.
const BOOK: &str = "[...window.jupyterapp.shell.widgets('main')].find(w => w.sessionContext)";

/// The page in the tab that is shown.
const PAGE: &str = "[...document.querySelectorAll('.wg-Page iframe')].find(f => f.offsetParent).contentDocument";

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_a_card_opens_the_page_which_is_live_below_any_path_through_the_proxy() {
    let home = Home::new();
    let jupyter = home.jupyter();
    let browser = lab(&home, &jupyter, None);
    until(&browser, &home, "!!document.querySelector('.wg-Status')");
    let card = "[...document.querySelectorAll('.jp-LauncherCard')].find(c => c.innerText.includes('Watchglass'))";
    until(&browser, &home, &format!("!!{card}"));
    browser.eval(&format!("({card}.click(), 1)"));
    until(&browser, &home, &format!("{PAGE}.documentElement.dataset.link === 'live'"));
    until(&browser, &home, &format!("{PAGE}.querySelectorAll('[data-panel]').length > 3"));
    // It is the page of the one program that Jupyter started, at a Unix socket.
    let programs = home.programs();
    assert_eq!(programs.len(), 1, "{programs:?}");
    assert!(programs[0].1.contains("--unix") && !programs[0].1.contains("--port"), "{programs:?}");
    // Killed, Jupyter ends nothing by itself.
    jupyter.kill();
    until_so("no process stays", || home.programs().is_empty());
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_a_line_stands_under_each_cell_and_what_a_notebook_shows_is_saved_with_it() {
    let home = Home::new();
    let cells = [
        "%load_ext watchglass",
        "import time; time.sleep(1.5); x = bytearray(1)",
        "%%watch\ny = 1",
        "%watchglass",
        "import watchglass as w; w.figure('cpu.*.cpu_percent', last='1m')",
    ];
    home.notebook("train.ipynb", &cells);
    let jupyter = home.jupyter();
    let browser = lab(&home, &jupyter, Some("train.ipynb"));
    until(&browser, &home, &format!("{BOOK}.sessionContext.session.kernel.status === 'idle'"));
    browser.click(".jp-Notebook .jp-Cell .cm-content");
    until(&browser, &home, &format!("window.jupyterapp.shell.currentWidget === {BOOK}"));
    run(&browser, "notebook:run-all-cells");
    until(&browser, &home, "[...document.querySelectorAll('.wg-Line')].some(l => l.textContent.startsWith('[2] '))");
    until(&browser, &home, "document.querySelectorAll('.jp-OutputArea-output iframe').length === 1");
    until(
        &browser,
        &home,
        "document.querySelectorAll('.jp-OutputArea-output svg, .jp-OutputArea-output img').length >= 1",
    );
    run(&browser, "docmanager:save");
    let saved = || std::fs::read_to_string(home.at("work/train.ipynb")).unwrap_or_default();
    until_so("it is saved", || saved().contains("Watchglass: /user/ada/watchglass/"));
    let book: Value = serde_json::from_str(&saved()).expect("a notebook");
    let text = |at: usize| book["cells"][at]["outputs"].to_string();
    assert!(text(4).contains("image/svg+xml") && text(4).contains("<title>"), "a figure stays: {}", text(4));
    assert!(text(2).contains("[3] "), "what %%watch says is kept: {}", text(2));
    assert!(!text(1).contains("watchglass"), "a line under a cell is no output of it: {}", text(1));
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_two_of_one_person_have_one_collector_and_one_goes_on_for_the_other() {
    let home = Home::new();
    let (first, second) = (home.jupyter(), home.jupyter());
    let of = |jupyter: &Jupyter| {
        let browser = Browser::start();
        browser.open(&jupyter.url("watchglass/"));
        until(&browser, &home, "document.documentElement.dataset.link === 'live'");
        browser
    };
    let (_one, two) = (of(&first), of(&second));
    assert_eq!(home.programs().len(), 2);
    // Who samples holds the folder; the other relays.
    let samples = |pid: u32| {
        let list = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut paths = list.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        paths.any(|path| path.starts_with(home.at("state")))
    };
    let writers = || home.programs().into_iter().filter(|(pid, _)| samples(*pid)).count();
    assert_eq!(writers(), 1);
    first.kill();
    until_so("one process stays", || home.programs().len() == 1);
    until_so("it samples itself now", || writers() == 1);
    until(&two, &home, "document.documentElement.dataset.link === 'live'");
}

/// nginx before Jupyter as it is mostly written: with the name that people type, without the lines for WebSockets.
fn nginx(home: &Home, jupyter: &Jupyter) -> Program {
    let (folder, addr, to) = (home.at("nginx"), Program::free(), jupyter.addr());
    std::fs::create_dir(&folder).expect("made");
    let here = folder.display();
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = kinds.iter().map(|kind| format!("  {kind}_temp_path {here}/{kind};\n")).collect();
    let settings = format!(
        "daemon off;\nmaster_process off;\npid {here}/pid;\nerror_log {here}/errors;\nevents {{}}\nhttp {{\n  access_log off;\n\
         {temporary}  server {{\n    listen {addr};\n    location / {{ proxy_pass http://{to}; proxy_set_header Host \
         $http_host; }}\n  }}\n}}\n"
    );
    let (file, errors) = (folder.join("settings"), format!("{here}/errors"));
    std::fs::write(&file, settings).expect("written");
    Program::start_in(&folder, addr, "nginx", &["-c", file.to_str().expect("plain"), "-e", &errors])
}

#[test]
#[ignore = "it needs JupyterLab and Debian's nginx; run by cargo xtask test"]
fn with_jupyter_behind_nginx_that_passes_no_sockets_the_page_is_live_all_the_same() {
    let home = Home::new();
    let jupyter = home.jupyter();
    let nginx = nginx(&home, &jupyter);
    let browser = Browser::start();
    browser.open(&format!("http://{}{BASE}watchglass/?token=t", nginx.addr));
    until(&browser, &home, "document.documentElement.dataset.link === 'live'");
    // By an event stream; by polling where jupyter-server-proxy is older than its streams are.
    until(&browser, &home, "document.querySelector('.link [data-way]').innerText.includes('by ')");
    until(&browser, &home, "document.querySelectorAll('[data-panel]').length > 3");
}
