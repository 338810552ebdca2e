//! The ways of the page through Jupyter and the proxy before it, and the programs that run for it.

use super::{PAGE, in_page, lab, tab, until};
use watchglass_tests::browser::Browser;
use watchglass_tests::certificate::Authority;
use watchglass_tests::jupyter::{BASE, Home, Jupyter};
use watchglass_tests::programs::{self, Program};
use watchglass_tests::waiting::until_so;

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
    // It is the page of the one program that Jupyter started, on a Unix socket.
    let programs = home.programs();
    assert_eq!(programs.len(), 1, "{programs:?}");
    assert!(programs[0].1.contains("--unix") && !programs[0].1.contains("--port"), "{programs:?}");
    // A killed Jupyter ends no child by itself.
    jupyter.kill();
    until_so("no process stays", || home.programs().is_empty());
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
    // The program that samples holds the folder; the other relays.
    let samples = |pid: u32| {
        let list = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut paths = list.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        paths.any(|path| path.starts_with(home.at("state")))
    };
    let writers = || home.programs().into_iter().filter(|(pid, _)| samples(*pid)).count();
    // The one that relays opens the folder for a moment when it looks whether the other one still runs.
    until_so("one of them samples", || writers() == 1);
    first.kill();
    until_so("one process stays", || home.programs().len() == 1);
    until_so("it samples itself now", || writers() == 1);
    until(&two, &home, "document.documentElement.dataset.link === 'live'");
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_a_program_that_is_killed_is_started_again_and_ends_with_jupyter() {
    let home = Home::new();
    let jupyter = home.jupyter();
    let browser = lab(&home, &jupyter, None);
    tab(&browser, &home);
    in_page(&browser, "(page.__kept = true)");
    let first = home.programs()[0].0;
    let killed = programs::run("kill", &["-KILL", &first.to_string()], "");
    assert!(killed.status.success(), "{killed:?}");
    until_so("another one runs", || home.programs().iter().any(|(pid, _)| *pid != first));
    until(&browser, &home, &format!("{PAGE}.documentElement.dataset.link === 'live'"));
    assert_eq!(in_page(&browser, "page.__kept"), true, "the page was not loaded again");
    jupyter.end();
    until_so("no process stays", || home.programs().is_empty());
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_the_page_is_live_under_a_foreign_name_and_by_tls() {
    let home = Home::new();
    let authority = Authority::new();
    let (certificate, key) = authority.sign("hub.example", &home.at("run"));
    let far = "--ServerApp.allow_remote_access=True".to_string();
    let secure = [
        far.clone(),
        format!("--ServerApp.certfile={}", certificate.display()),
        format!("--ServerApp.keyfile={}", key.display()),
    ];
    for (scheme, settings) in [("http", &[far][..]), ("https", &secure[..])] {
        let jupyter = home.jupyter_with(settings);
        let browser = Browser::start();
        browser.cdp("Security.setIgnoreCertificateErrors", serde_json::json!({ "ignore": true }));
        browser.open(&format!("{scheme}://hub.example:{}{BASE}watchglass/?token=t", jupyter.addr().port()));
        until(&browser, &home, "document.documentElement.dataset.link === 'live'");
        let way = "(chip => chip ? chip.innerText : '')(document.querySelector('.link [data-way]'))";
        assert!(!browser.eval(way).to_string().contains("by "), "{scheme}: it is a WebSocket");
    }
}

/// A typical nginx before Jupyter: with the public name, but without the lines for WebSockets.
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
    // By an event stream, or by polling where jupyter-server-proxy is too old for streams.
    until(&browser, &home, "document.querySelector('.link [data-way]').innerText.includes('over ')");
    until(&browser, &home, "document.querySelectorAll('[data-panel]').length > 3");
}
