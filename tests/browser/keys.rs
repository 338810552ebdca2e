//! Tests the page without a mouse: every chart and control by keys, the texts for screen readers, and the focus.

use super::{live, no_faults};
use watchglass_tests::browser::{Browser, SHIFT};
use watchglass_tests::server::Server;

/// An expression for the panel whose plot has the focus; empty for none.
const HERE: &str = r#"(document.activeElement.classList.contains("plot") ? document.activeElement.closest("article").dataset.panel : "")"#;
const SAID_TEXT: &str = r#"document.getElementById("said").textContent"#;
const WHEN: &str = r##"document.querySelector("#tip:not([hidden]) .when span").textContent"##;
/// An expression for the time at the crosshair, in seconds of the day.
const SECONDS: &str = r##"document.querySelector("#tip:not([hidden]) .when span").textContent.split(":").reduce((a, p) => a * 60 + +p, 0)"##;
const LINK: &str = "document.documentElement.dataset.link";
const WINDOW: &str = r#"document.querySelector("article.chart").dataset.window"#;

fn demo(query: &str) -> Browser {
    super::start(query).1
}

/// Presses Tab until an expression is true.
#[track_caller]
fn tab_to(browser: &Browser, wanted: &str) {
    for _ in 0..40 {
        browser.strike("Tab", 0);
        if browser.eval(wanted) == true {
            return;
        }
    }
    panic!("not reached in 40 stops: {wanted}; at {}", browser.eval("document.activeElement.outerHTML.slice(0, 200)"));
}

#[test]
fn one_chart_is_a_stop_and_the_arrows_go_through_all() {
    let (_server, browser) = super::past(60);
    tab_to(&browser, &format!("{HERE} !== ''"));
    let ids = browser.eval(r#"[...document.querySelectorAll("article.chart")].map(a => a.dataset.panel)"#);
    let ids: Vec<String> = serde_json::from_value(ids).expect("names");
    assert_eq!(browser.eval(HERE), ids[0].as_str());
    assert_eq!(browser.eval(r#"document.querySelectorAll(".plot[tabindex='0']").length"#), 1);
    // The focus ring must be visible.
    assert_eq!(browser.eval("getComputedStyle(document.activeElement).outlineStyle"), "solid");
    assert_eq!(browser.eval("getComputedStyle(document.activeElement).outlineWidth"), "2px");
    // Every chart is read at the crosshair, also charts below the edge of the screen.
    browser.press("End");
    browser.until(WHEN);
    let when = browser.eval(SECONDS);
    for id in &ids[1..] {
        browser.press("ArrowDown");
        browser.until(&format!("{HERE} === {id:?}"));
        browser
            .until(r#"(r => r.top >= 0 && r.bottom <= innerHeight)(document.activeElement.getBoundingClientRect())"#);
        // A chart that is measured seldom is read at its own sample.
        browser.until(&format!("(apart => Math.min(apart, 86400 - apart) < 10)(Math.abs({SECONDS} - {when}))"));
    }
    browser.press("ArrowUp");
    browser.until(&format!("{HERE} === {:?}", ids[ids.len() - 2]));
    // Tab leaves the charts, and Shift-Tab returns to the last chart.
    browser.strike("Tab", 0);
    browser.until(&format!("{HERE} === ''"));
    browser.strike("Tab", SHIFT);
    browser.until(&format!("{HERE} === {:?}", ids[ids.len() - 2]));
    no_faults(&browser);
}

#[test]
fn readings_are_said_in_one_place_and_not_faster_than_they_can_be_heard() {
    let (_server, browser) = super::past(60);
    tab_to(&browser, &format!("{HERE} !== ''"));
    assert_eq!(browser.eval(r#"document.getElementById("said").getAttribute("role")"#), "status");
    browser.eval(
        r#"(window.__said = [], new MutationObserver(() => window.__said.push([performance.now(), document.getElementById("said").textContent]))
            .observe(document.getElementById("said"), { childList: true, characterData: true, subtree: true }))"#,
    );
    browser.press("End");
    for _ in 0..30 {
        browser.press("ArrowLeft");
    }
    browser.until(&format!("{WHEN} && window.__said.length > 0 && {SAID_TEXT}.startsWith({WHEN})"));
    browser.until(&format!(r#"/^\d\d:\d\d:\d\d, GPU \d, \d+(\.\d+)? percent; GPU \d, /.test({SAID_TEXT})"#));
    let gaps = browser.eval("window.__said.slice(1).map((s, i) => s[0] - window.__said[i][0])");
    let gaps: Vec<f64> = serde_json::from_value(gaps).expect("times");
    assert!(gaps.iter().all(|gap| *gap > 200.0), "{gaps:?}");
    // Shift moves by ten samples; Home and End go to the ends.
    let before = browser.eval(SECONDS);
    browser.press("End");
    // Midnight may lie between the two.
    browser.until(&format!("({SECONDS} - {before} + 86400) % 86400 >= 25"));
    let end = browser.eval(SECONDS);
    browser.press("Home");
    browser.until(&format!("({end} - {SECONDS} + 86400) % 86400 >= 55"));
    browser.strike("ArrowRight", SHIFT);
    browser.until(&format!("({end} - {SECONDS} + 86400) % 86400 <= 51"));
    browser.strike("Enter", 0);
    browser.until(r##"document.querySelector("#tip.pinned")"##);
    no_faults(&browser);
}

#[test]
fn the_view_is_changed_by_keys_alone() {
    let browser = demo("");
    for (key, window) in ["1m", "5m", "15m", "1h", "3h", "6h", "12h"].iter().enumerate() {
        browser.press(&(key + 1).to_string());
        browser.until(&format!("{WINDOW} === {window:?}"));
    }
    browser.press("3");
    browser.until(&format!("{WINDOW} === '15m'"));
    browser.press("l");
    browser.until(&format!("{LINK} === 'frozen'"));
    let to = "+new URLSearchParams(location.search).get('to')";
    let before = browser.until(to).as_f64().expect("a time");
    browser.press("[");
    browser.until(&format!("Math.abs({before} - {to} - 450) < 2"));
    browser.press("]");
    browser.until(&format!("Math.abs({before} - {to}) < 2"));
    browser.press("+");
    browser.until(&format!("{WINDOW} === '7m30s'"));
    browser.press("-");
    browser.until(&format!("{WINDOW} === '15m'"));
    // Capital letters mean the same.
    browser.strike("L", 0);
    live(&browser);
    let theme = browser.eval("document.documentElement.dataset.theme");
    browser.press("t");
    browser.until(&format!("document.documentElement.dataset.theme !== {theme}"));
    browser.strike("/", 0);
    browser.until("document.activeElement.id === 'find'");
    browser.strike("Escape", 0);
    browser.until("!document.getElementById('dialog').open");
    no_faults(&browser);
}

#[test]
fn a_question_mark_lists_the_keys_and_keeps_the_focus_within() {
    let browser = demo("");
    tab_to(&browser, &format!("{HERE} !== ''"));
    let here = browser.eval(HERE);
    browser.strike("?", 0);
    browser.until("document.getElementById('dialog').open && document.querySelector('#dialog kbd')");
    let keys = browser.eval(r##"[...document.querySelectorAll("#dialog kbd")].map(k => k.textContent).join(" ")"##);
    let keys = keys.as_str().expect("keys");
    for key in ["Tab", "↑", "↓", "←", "→", "Home", "End", "Enter", "M", "I", "/", "+", "-", "[", "]", "L", "T", "?"]
    {
        assert!(keys.split(' ').any(|k| k == key), "{key} is not in: {keys}");
    }
    assert!(keys.contains(" 1–"), "the windows are not in: {keys}");
    for held in [0, 0, 0, SHIFT, SHIFT] {
        browser.strike("Tab", held);
        // After the last stop the browser's own bar may have the focus, but never the page behind the list.
        let within = "document.activeElement === document.body || document.getElementById('dialog').contains(document.activeElement)";
        assert_eq!(browser.eval(within), true);
    }
    // The page ignores keys that are meant for the list.
    let theme = browser.eval("document.documentElement.dataset.theme");
    browser.strike("t", 0);
    assert_eq!(browser.eval("document.documentElement.dataset.theme"), theme);
    browser.strike("Escape", 0);
    browser.until("!document.getElementById('dialog').open");
    browser.until(&format!("{HERE} === {here}"));
    // Escape closed the list and did no more.
    browser.until(&format!("{LINK} === 'live'"));
    no_faults(&browser);
}

#[test]
fn a_chart_s_menu_opens_by_key_and_gives_the_focus_back() {
    let browser = demo("");
    tab_to(&browser, &format!("{HERE} !== ''"));
    let title = r#"document.querySelector("article.hero h3 button")"#;
    browser.strike("m", 0);
    browser.until(r##"document.querySelector("article.hero #menu:not([hidden])")"##);
    assert_eq!(browser.eval(&format!("{title}.ariaExpanded")), "true");
    browser.until(r##"document.activeElement.closest("#menu")"##);
    browser.strike("Escape", 0);
    browser.until(&format!("document.getElementById('menu').hidden && document.activeElement === {title}"));
    browser.strike("Enter", 0);
    browser.until(r##"document.activeElement.closest("#menu")"##);
    // Tab moves through the whole menu and out of it, which closes the menu.
    tab_to(&browser, "document.getElementById('menu').hidden");
    assert_eq!(browser.eval(HERE), browser.eval(r#"document.querySelector("article.hero").dataset.panel"#));
    no_faults(&browser);
}

#[test]
fn nothing_moves_where_less_motion_is_wanted() {
    let server = super::machine();
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    let moves = r#"(document.documentElement.dataset.link = "reconnecting",
        getComputedStyle(document.querySelector(".link .dot")).animationName)"#;
    assert_eq!(browser.eval(moves), "turn");
    let feature = serde_json::json!({ "name": "prefers-reduced-motion", "value": "reduce" });
    browser.cdp("Emulation.setEmulatedMedia", serde_json::json!({ "features": [feature] }));
    browser.until(&format!("{moves} === 'none'"));
}

#[test]
fn a_chart_says_in_a_sentence_what_it_shows_and_leads_with_what_is_odd() {
    let server = Server::start(["demo", "--gpus", "8", "--fail", "straggler"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=1m", server.url));
    live(&browser);
    // All GPUs of a job with a straggler are busy: those that wait for it spin, and use less power.
    let label = "document.querySelector('article[data-panel=\"gpu.power\"] .plot').getAttribute('aria-label')";
    browser.until(&format!(r"/^GPU power: 8 GPUs, \d+ watts, GPU \d (lowest|highest) with \d+$/.test({label})"));
    // A chart far from the screen is not drawn, and has only its title until it comes near.
    let live = "[...document.querySelectorAll('article.chart')].filter(one => one.dataset.state === 'live').map(one => one.dataset.panel)";
    // Only elements with a description take the keys.
    let bare = "[...document.querySelectorAll('[role=application]')].filter(e => !e.getAttribute('aria-label').includes(': ')).length";
    assert_eq!(browser.eval(bare), 0);
    let charts: Vec<String> = serde_json::from_value(browser.eval(live)).expect("names");
    assert!(charts.len() > 8, "{charts:?} have data");
    // A finding that comes moves some of them, and samples that are late make them stale.
    for chart in charts {
        let plot = format!("document.querySelector('article[data-panel=\"{chart}\"] .plot')");
        browser.script(&format!("{plot}.scrollIntoView({{ block: 'center' }})"));
        browser.until(&format!("{plot}.getAttribute('aria-label').includes(': ')"));
        browser.until(&format!("{plot}.getAttribute('role') === 'application'"));
    }
    assert_eq!(browser.eval(bare), 0);
    no_faults(&browser);
}

#[test]
fn a_symptom_finds_the_finding_and_times_are_typed_as_people_write_them() {
    let server = Server::start(["demo", "--gpus", "8", "--fail", "straggler"]);
    super::has_finding(&server);
    let browser = Browser::start();
    browser.open(&format!("{}?w=1m", server.url));
    live(&browser);
    browser.until("document.querySelector('main > .say[data-finding]')");
    let hits = "[...document.querySelectorAll('#hits li')].map(l => l.innerText.replace(/\\s+/g, ' '))";
    let ask = |text: &str| {
        browser.press("/");
        browser.until("document.activeElement.id === 'find'");
        browser.insert(text);
    };
    // Three letters within a word do not match: "oom" is in "Zoom in".
    ask("oom");
    browser.until(&format!("{hits}.some(hit => /GPU memory.*chart/i.test(hit))"));
    assert_eq!(browser.eval(&format!("{hits}.some(hit => /zoom|closer|wider/i.test(hit))")), false);
    browser.strike("Escape", 0);
    for text in ["2:15pm", "5 minutes ago", "14:05"] {
        ask(text);
        browser.until(&format!("/around .*time/.test({hits}[0])"));
        browser.strike("Escape", 0);
    }
    ask("straggler");
    browser.until(&format!("/finding$/.test({hits}[0])"));
    browser.press("Enter");
    browser.until("new URLSearchParams(location.search).get('page') === 'findings'");
    browser.until("new URLSearchParams(location.search).get('finding')");
    no_faults(&browser);
}

#[test]
fn letters_typed_while_the_search_loads_are_its_first() {
    let browser = demo("");
    for key in ["/", "o", "o", "m"] {
        browser.strike(key, 0);
    }
    browser.until("document.getElementById('find') && document.getElementById('find').value === 'oom'");
    browser.insert("s");
    browser.until("document.getElementById('find').value === 'ooms'");
    browser.strike("Escape", 0);
    browser.until("!document.getElementById('dialog').open");
    browser.strike("/", 0);
    browser.until("document.activeElement.id === 'find' && document.activeElement.value === ''");
}

#[test]
fn anything_is_found_by_a_few_letters() {
    let browser = demo("");
    let ask = |text: &str| {
        browser.press("/");
        browser.until("document.activeElement.id === 'find'");
        browser.insert(text);
    };
    let first = "(l => l ? l.innerText.replace(/\\s+/g, ' ') : '')(document.querySelector('#hits li'))";
    // A chart by the name that Prometheus gives its metric; its section unfolds, and it has the focus.
    ask("tcp_retransmits");
    browser.until(&format!("/retransmit.*chart/i.test({first})"));
    browser.press("Enter");
    browser.until("!document.getElementById('dialog').open");
    browser.until("(a => a && /retrans/.test(a.dataset.panel))(document.activeElement.closest('article.chart'))");
    // A time, and a span in words.
    ask("last hour");
    browser.until(&format!("/the last 1h.*time/.test({first})"));
    browser.press("Enter");
    browser.until("document.querySelector('article.chart').dataset.window === '1h'");
    // Commands of the page, chosen with the arrows.
    ask("dark or");
    browser.until(&format!("/dark or light.*action/i.test({first})"));
    let before = browser.eval("document.documentElement.dataset.theme");
    browser.press("Enter");
    browser.until(&format!("document.documentElement.dataset.theme !== {before}"));
    // One finding after another, in the dialog that stays open.
    ask("zzz");
    browser.until("document.querySelector('#dialog .find .did').innerText.includes('No results')");
    let hits = "[...document.querySelectorAll('#hits li')].map(l => l.innerText.replace(/\\s+/g, ' '))";
    let finds = |text: &str, wanted: &str| {
        browser.eval("(document.getElementById('find').focus(), document.activeElement.select(), 0)");
        browser.insert(text);
        browser.until(&format!("{hits}.some(hit => {wanted}.test(hit))"));
    };
    // Metrics without and with the number of a device, and as W&B writes them.
    for name in ["gpu.power", "gpu.0.powerWatts", "system.gpu.0.powerWatts", "watchglass_gpu_power"] {
        finds(name, "/^GPU power.*chart$/i");
    }
    // Words of descriptions and sections, and entries of the menus.
    finds("dcgm", "/DCGM.*chart$/");
    finds("gpu, more", "/^GPU, more.*section$/");
    finds("hide", "/^Hide this chart.*action$/");
    for (words, action) in [
        ("freeze", "Pause or resume"),
        ("outliers", "Outliers"),
        ("open a rec", "Open a recording"),
        ("zoom out", "Zoom out"),
    ] {
        finds(words, &format!("/^{action}.*action$/"));
    }
    // Processes by name, number and user; times.
    finds("mara", "/mara process$/");
    for (words, time) in
        [("14:05", "around .* 14:05"), ("-30m", "the last 30m"), ("yesterday 9:00", "around .* 0?9:00")]
    {
        finds(words, &format!("/^{time}.*time$/"));
    }
    // A section that is folded at first is unfolded.
    let section = |open: bool| format!("document.querySelector('details[data-section=\"gpu.more\"]').open === {open}");
    browser.until(&section(false));
    finds("gpu, more", "/^GPU, more.*section$/");
    browser
        .eval("([...document.querySelectorAll('#hits li')].find(l => /section$/.test(l.innerText.trim())).click(), 0)");
    browser.until("!document.getElementById('dialog').open");
    browser.until(&section(true));
    // The menu of a chart opens at the place of the request.
    ask("hide this");
    browser.until(&format!("/hide this chart.*action/i.test({first})"));
    browser.press("Enter");
    browser.until("document.querySelector('#menu:not([hidden]) [data-do=hide]')");
    browser.press("Escape");
    browser.until("document.getElementById('menu').hidden");
    // A command freezes the page.
    ask("freeze");
    browser.until(&format!("/^pause or resume.*action/i.test({first})"));
    browser.press("Enter");
    browser.until("document.querySelector('.bar .link').innerText.includes('FROZEN')");
    no_faults(&browser);
}
