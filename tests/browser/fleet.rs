//! Tests the page of many machines: the map, states, filter, keys, table, comparison.

use super::no_faults;
use shared::connection_state::ConnectionState;
use watchglass_tests::browser::Browser;
use watchglass_tests::crowd::Crowd;
use watchglass_tests::server::Server;
use watchglass_tests::waiting::{MAX_WAIT, until_or};

const LIVE: &str = r#"document.documentElement.dataset.link === "live""#;
const SAY: &str = r#"(s => s ? s.innerText : "")(document.querySelector(".say"))"#;
/// An expression for the machines of the table in their order.
const ROWS: &str = r#"[...document.querySelectorAll('#hosts tbody tr')].map(r => r.dataset.row).join()"#;
/// Polls of the page per second of the machines.
const ASKED_A_SECOND: usize = 4;
/// An expression for the number of pixels of the map that are not background.
const INK: &str = r#"(c => { if (!c || !c.width) return 0;
    const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, at = i => d[i] << 16 | d[i + 1] << 8 | d[i + 2];
    const ground = at((c.width * c.height - 1) * 4); let n = 0;
    for (let i = 0; i < d.length; i += 4) if (at(i) !== ground) n++; return n; })(document.querySelector('#map canvas'))"#;

/// A page of `hosts` machines whose map is drawn.
fn open(hosts: usize, query: &str) -> (Crowd, Browser) {
    let crowd = Crowd::new(hosts);
    let browser = Browser::start();
    browser.open(&format!("{}{query}", crowd.url));
    drawn(&crowd, &browser, hosts);
    (crowd, browser)
}

#[track_caller]
fn drawn(crowd: &Crowd, browser: &Browser, hosts: usize) {
    until(crowd, browser, &format!(r#"{LIVE} && +document.querySelector("main.fleet").dataset.hosts === {hosts}"#));
    until(crowd, browser, &format!("{INK} > 2000"));
}

/// Advances the machines second by second until an expression is true.
#[track_caller]
fn until(crowd: &Crowd, browser: &Browser, expression: &str) {
    let mut asked = 0;
    until_or(
        2 * MAX_WAIT,
        || {
            // An element is missing while its part of the page is loaded.
            let is_so = browser.peek(&format!("!!({expression})")) == true;
            // A page of a thousand machines needs some time for a second of them.
            if !is_so && asked % ASKED_A_SECOND == 0 {
                crowd.pass(1);
            }
            asked += 1;
            is_so.then_some(())
        },
        || format!("{expression}\n{}", browser.peek("document.body.innerText.slice(0, 600)")),
    );
}

/// Moves the mouse over the map, to a place that `place` finds anew each time, until an expression is true. The map may
/// still move between the two. Returns the place.
#[track_caller]
pub(super) fn point(browser: &Browser, place: impl Fn() -> (f64, f64), expression: &str) -> (f64, f64) {
    let shows = || {
        let at = place();
        browser.move_to(at);
        // The tooltip follows with the next frame.
        let frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
        browser.peek(frames);
        (browser.peek(expression) == true).then_some(at)
    };
    until_or(MAX_WAIT, shows, || format!("{expression}\n{}", browser.peek("document.getElementById('tip').innerText")))
}

#[test]
fn several_machines_open_as_a_fleet_and_a_click_on_one_opens_its_page() {
    let (crowd, browser) = open(64, "");
    until(&crowd, &browser, r#"document.querySelector(".mapcard h2").innerText === "64 hosts, 512 GPUs""#);
    // Findings and alerts are read after the machines.
    until(
        &crowd,
        &browser,
        &format!("{SAY}.startsWith('●') && {SAY}.includes('All is well') && {SAY}.includes('GPUs are busy')"),
    );
    let [_, top, _, high] = browser.rect("#map");
    assert!(top + high < 900.0, "the map stands on the first screen");
    // The first machine is below the name of its rack, and the racks are side by side.
    let rack = |n: f64| {
        let [left, top, width, _] = browser.rect("#map");
        (left + width / 8.0 * n + 40.0, top + 36.0)
    };
    let named = |name: &str| {
        format!("(tip => !tip.hidden && tip.innerText.includes('{name}'))(document.getElementById('tip'))")
    };
    point(&browser, || rack(0.0), &named("node-01"));
    browser.screenshot("fleet-64-dark");
    // Column heads are aligned with the end of their figures.
    let apart = r#"(() => {
        const edge = e => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect().right; };
        const heads = document.querySelector('#hosts thead tr').children, cells = document.querySelector('#hosts tbody tr').children;
        return [...heads].map((head, i) => Math.abs(edge(head.querySelector("button") || head) - edge(cells[i]))).slice(3);
    })()"#;
    browser.until(&format!("(apart => apart.length > 4 && Math.max(...apart) < 1.5)({apart})"));
    // The machine under the pointer is checked before the click: new values may have moved the map.
    let next = point(&browser, || rack(1.0), &named("node-09"));
    browser.click_at(next, 0);
    browser.until("location.search.includes('source=node-09')");
    until(&crowd, &browser, &format!("{LIVE} && document.querySelectorAll('article.chart').length > 2"));
    assert_eq!(browser.eval("document.querySelector('h1').textContent"), "node-09");
    browser.strike("g", 0);
    browser.strike("f", 0);
    browser.until("location.search.includes('page=fleet')");
    drawn(&crowd, &browser, 64);
    no_faults(&browser);
}

/// Holds the answers about findings and alerts until `__tell` is called with the number of firing alerts.
const HOLD_ANSWERS: &str = r#"
const before = window.fetch, told = new Promise(done => { window.__tell = done; });
window.fetch = async (path, init) => {
  const name = new URL(String(path), location.href).pathname;
  if (!/api.v1.(findings|alerts)$/.test(name)) return before(path, init);
  const firing = await told, alerts = [], trouble = [];
  return new Response(JSON.stringify({ at: 1, findings: [], rules: [], alerts, trouble, firing, more: false }), { status: 200 });
};
"#;

#[test]
fn all_is_well_is_said_only_once_findings_and_alerts_are_known_and_nothing_fires() {
    let crowd = Crowd::new(8);
    for (firing, said) in
        [(0, "All is well: all 8 machines are online"), (2, "2 alerts fire: all 8 machines are online")]
    {
        let browser = Browser::start();
        browser.before_each_page(HOLD_ANSWERS);
        browser.open(&crowd.url);
        drawn(&crowd, &browser, 8);
        until(&crowd, &browser, &format!("{SAY}.includes('All 8 machines are online')"));
        let before = browser.eval(SAY);
        let before = before.as_str().expect("a sentence");
        assert!(before.contains("being read") && !before.contains("well") && before.starts_with("◌"), "{before}");
        browser.eval(&format!("__tell({firing})"));
        until(&crowd, &browser, &format!("{SAY}.includes('{said}')"));
        assert_eq!(browser.eval(r#"document.querySelector(".say").dataset.calm"#), (firing == 0).to_string());
        assert_eq!(browser.eval("!!document.querySelector('.say [data-do=alerts]')"), firing > 0);
        no_faults(&browser);
    }
}

#[test]
fn the_table_sorts_both_ways_and_says_when_no_machine_fits() {
    let (crowd, browser) = open(6, "?page=fleet");
    let all = |turned: bool| {
        let mut names: Vec<String> = (1..=6).map(|n| format!("node-0{n}")).collect();
        if turned {
            names.reverse();
        }
        format!("{ROWS} === '{}'", names.join(","))
    };
    browser.click("#hosts [data-column=name] button");
    until(&crowd, &browser, &all(false));
    browser.click("#hosts [data-column=name] button");
    until(&crowd, &browser, &all(true));
    assert_eq!(
        browser.eval("document.querySelector('#hosts [data-column=name]').getAttribute('aria-sort')"),
        "descending"
    );
    // A checked row stays checked while values change, and a focused link keeps the focus.
    browser.focus("#hosts tr[data-row=node-02] a");
    crowd.pass(3);
    until(&crowd, &browser, &format!("{ROWS}.length > 0"));
    assert_eq!(browser.eval("document.activeElement.closest('tr')?.dataset.row"), "node-02");
    browser.eval("(f => { f.value = 'nobody'; f.dispatchEvent(new Event('input', { bubbles: true })); })(document.querySelector('#filter'))");
    until(&crowd, &browser, "!document.querySelector('#hosts tbody tr')");
    browser.until("document.body.innerText.includes('No machine fits')");
    no_faults(&browser);
}

#[test]
fn each_state_has_its_word_and_the_sentence_names_who_is_missing() {
    let (crowd, browser) = open(16, "");
    crowd.stand(1, ConnectionState::Unreachable);
    until(&crowd, &browser, &format!("{SAY}.includes('node-02 has been lost')"));
    assert_eq!(browser.eval(r#"document.querySelector(".say").dataset.calm"#), "false");
    crowd.stand(2, ConnectionState::Stopped("it was told to".into()));
    crowd.stand(3, ConnectionState::Filling { missing: 600_000, rate: 40.0 });
    crowd.stand(4, ConnectionState::Refused("its key was ended".into()));
    crowd.stand(5, ConnectionState::Late);
    let state = |host: &str, word: &str| {
        format!(r#"(r => r && r.dataset.state === {word:?})(document.querySelector("tr[data-row={host}]"))"#)
    };
    for (host, word) in [
        ("node-02", "unreachable"),
        ("node-03", "stopped"),
        ("node-04", "filling"),
        ("node-05", "refused"),
        ("node-06", "late"),
    ] {
        until(&crowd, &browser, &state(host, word));
    }
    until(&crowd, &browser, &format!("{SAY}.includes('3 machines do not respond')"));
    let rows = r#"[...document.querySelectorAll('#hosts tbody tr')].map(r => r.dataset.row + " " + r.querySelector(".state").innerText.trim())"#;
    until(&crowd, &browser, &format!("{rows}[0].startsWith('node-05') && {rows}[0].includes('its key was ended')"));
    // The link to all lost machines.
    browser.click("[data-do=lost]");
    browser.until(&format!("{rows}.length === 1 && {rows}[0].startsWith('node-02')"));
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('find')"), "state:lost");
    browser.click("[data-do=all]");
    browser.until(&format!("{rows}.length === 16"));
    no_faults(&browser);
}

#[test]
fn the_finder_filters_the_table_sorts_and_keys_walk_the_map() {
    let (crowd, browser) = open(32, "");
    let rows = r#"[...document.querySelectorAll('#hosts tbody tr')].map(r => r.dataset.row)"#;
    browser.strike("/", 0);
    browser.until("document.activeElement.id === 'filter'");
    browser.insert("rack:r02");
    browser.until(&format!("{rows}.length === 8 && {rows}.includes('node-09')"));
    until(&crowd, &browser, r#"document.querySelector(".chip b").innerText === "8 hosts""#);
    browser.reload();
    drawn(&crowd, &browser, 32);
    browser.until(&format!("{rows}.length === 8"));
    browser.click("[data-do=all]");
    browser.until(&format!("{rows}.length === 24"));
    // The busiest first, then the first by name.
    until(&crowd, &browser, "document.querySelector('#hosts th:nth-child(4) button')");
    browser.click("#hosts th:nth-child(4) button");
    browser.until(r#"document.querySelector('#hosts th:nth-child(4)').getAttribute("aria-sort") === "descending""#);
    let busy =
        |row: &str| format!(r#"parseFloat(document.querySelector('#hosts tbody tr{row} td:nth-child(4)').innerText)"#);
    // Both are read at once: new values come each second.
    until(&crowd, &browser, &format!("{} > {}", busy(""), busy(":nth-child(24)")));
    browser.focus("#map");
    // The tooltip follows with the next frame. Each key leads to another machine.
    let named = "(document.getElementById('tip').innerText.match(/node-[0-9]+/) || [''])[0]";
    let mut at = serde_json::json!("");
    for key in ["ArrowRight", "ArrowDown", "ArrowRight"] {
        browser.press(key);
        at = browser.until(&format!("{named} !== {at} && {named}"));
    }
    browser.until("document.getElementById('said').innerText.includes('node-')");
    browser.strike("Enter", 0);
    browser.until(&format!("location.search.includes('source=' + {at})"));
    no_faults(&browser);
}

#[test]
fn two_machines_are_compared_on_one_chart() {
    let server = Server::start(["demo", "--hosts", "6", "--gpus", "2"]);
    let browser = Browser::start();
    browser.open(&server.url);
    browser.until(&format!("{LIVE} && document.querySelectorAll('#hosts tbody tr').length === 6"));
    for host in ["demo-02", "demo-05"] {
        browser.eval(&format!("document.querySelector('tr[data-row={host}] input').click()"));
    }
    browser.click("[data-do=compare]");
    browser.until("location.search.includes('page=compare')");
    let values = r#"[...document.querySelectorAll("article[data-row=gpu] .key li")].map(l => l.innerText)"#;
    browser.until(&format!(
        "{values}.length === 2 && {values}.every(v => /[0-9]/.test(v.split('demo-0').pop().slice(1)))"
    ));
    assert_eq!(browser.eval(&format!("{values}[0].includes('demo-02') && {values}[1].includes('demo-05')")), true);
    let ink = r#"(c => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let all = new Set();
        for (let i = 0; i < d.length; i += 4) all.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return all.size; })
        (document.querySelector("article[data-row=gpu] canvas"))"#;
    browser.until(&format!("{ink} > 10"));
    browser.screenshot("compare-dark");
    no_faults(&browser);
}

#[test]
fn two_machines_are_shown_calmly_by_their_charts() {
    let server = Server::start(["demo", "--hosts", "2", "--gpus", "4"]);
    let browser = Browser::start();
    browser.prefer("light");
    browser.open(&server.url);
    browser.until(&format!("{LIVE} && document.querySelectorAll('.few article').length === 2"));
    let values = r#"[...document.querySelectorAll(".few h3 b")].filter(b => /[0-9]/.test(b.innerText)).length"#;
    browser.until(&format!("{values} === 6"));
    assert_eq!(browser.eval("document.querySelector('#map')"), serde_json::Value::Null);
    browser.screenshot("fleet-2-light");
    // The filter works as it does with many.
    let cards = "[...document.querySelectorAll('.few article')].map(one => one.dataset.host).join()";
    browser.strike("/", 0);
    browser.until("document.activeElement.id === 'filter'");
    browser.insert("demo-02");
    browser.until(&format!("{cards} === 'demo-02' && document.querySelector('.chip b').innerText === '1 host'"));
    browser.open(&format!("{}?page=fleet&find=state:late", server.url));
    browser.until("document.querySelector('.few')?.innerText.includes('No machine fits')");
    assert_eq!(browser.eval(cards), "");
    browser.click("[data-do=all]");
    browser.until(&format!("{cards} === 'demo-01,demo-02'"));
    no_faults(&browser);
}

#[test]
fn a_thousand_machines_stand_on_one_screen_and_a_phone_shows_them_too() {
    let (crowd, browser) = open(1_000, "");
    until(&crowd, &browser, r#"document.querySelector(".mapcard h2").innerText === "1,000 hosts, 8,000 GPUs""#);
    let [_, top, _, high] = browser.rect("#map");
    assert!(top + high < 900.0, "the map ends at {}", top + high);
    crowd.stand(500, ConnectionState::Unreachable);
    until(&crowd, &browser, &format!("{SAY}.includes('node-0501')"));
    browser.screenshot("fleet-1000-dark");
    assert_eq!(browser.eval("document.querySelectorAll('#hosts tbody tr').length"), 24);
    browser.size(390, 844);
    until(&crowd, &browser, "document.documentElement.scrollWidth <= 390");
    until(&crowd, &browser, &format!("{INK} > 2000"));
    no_faults(&browser);
}

#[test]
fn a_fleet_that_is_cut_off_keeps_what_it_showed_and_says_of_when() {
    let (crowd, browser) = open(8, "");
    let url = crowd.url.clone();
    drop(crowd);
    browser.until(r#"document.documentElement.dataset.link === "reconnecting""#);
    browser.until(r#"document.querySelector(".mapcard .u").innerText.startsWith("at ")"#);
    assert_eq!(browser.eval(r#"document.querySelector("main.fleet").dataset.hosts"#), "8", "{url}");
}

#[test]
fn from_a_machine_the_bar_leads_to_another_one_and_says_how_each_stands() {
    let server = Server::start(["demo", "--hosts", "3", "--gpus", "2"]);
    let browser = Browser::start();
    browser.open(&format!("{}?source=demo-02", server.url));
    browser.until("document.querySelector('[data-do=machines]')?.innerText.trim() === 'demo-02'");
    browser.click("[data-do=machines]");
    let lines = "[...document.querySelectorAll('#hits li')].map(l => l.innerText.replace(/\\s+/g, ' '))";
    browser.until(&format!(
        "{lines}.length === 3 && {lines}[1].includes('shown here') && {lines}.every(l => l.includes('machine'))"
    ));
    browser.until("document.activeElement.id === 'find'");
    // Not its number alone, which may also match an hour or a process.
    browser.insert("demo-03");
    browser.until(&format!("{lines}.length === 1"));
    browser.eval("void (window.__before = true)");
    browser.press("Enter");
    // The page of before has the new name, too, for a moment.
    browser.until("!window.__before && document.querySelector('[data-do=machines]')?.innerText.trim() === 'demo-03'");
    // Training jobs are found from any page.
    browser.press("/");
    browser.until("document.activeElement.id === 'find'");
    browser.insert("pretrain");
    browser.until(&format!("/^pretrain .* run$/.test({lines}[0])"));
    browser.press("Enter");
    browser.until("new URLSearchParams(location.search).get('page') === 'run' && document.querySelector('.run-head')");
}
