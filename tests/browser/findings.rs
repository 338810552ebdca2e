//! Findings on the page: the headline, the list, and one finding with its evidence. A script replaces the server's
//! findings, so that they are known. All charts are of a real server.

use super::{live, no_faults, nothing_moved, span};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

/// Answers of `api/v1/findings`: the contents of `window.__findings`, selected as the server does. `__raise` makes a
/// finding in the shape of `shared::finding`, which began this many seconds ago.
const FINDING_ANSWERS: &str = r##"
const now = () => Math.floor(Date.now() / 1000), clock = t => new Date(t * 1000).toISOString().slice(11, 16) + " UTC";
window.__findings = [];
window.__asked = [];
window.__raise = (kind, severity, gpu, ago, more) => {
  // The next page of the same browser has the same ones.
  const base = +(sessionStorage.base ||= now()), since = base - ago, source = (more && more.source) || "demo-01";
  const evidence = (tag, words, value, level) => ({ tag, source, instance: String(gpu), words, value, level,
    from: (since - 60) * 1000, to: now() * 1000 });
  const words = at => (more && more.sentence)
    || `GPU ${gpu} of ${source} runs at 1,410 MHz since ${at}; its peers at 1,755 MHz, by heat (88 °C).`;
  const one = { id: `${kind}:${source}:${gpu}:${since}`, kind, rule: kind + ".one", severity, subject: [{ source, gpus: [gpu] }],
    affects: [], device: null, since, told: since + 20, until: null,
    sentence: words(clock(since)), sentence_template: words("{since}"),
    evidence: [evidence("gpu.{i}.smClock", "clock 1,410 MHz, others 1,755", 1410, 1755), evidence("gpu.{i}.temp", "88 °C", 88, null),
      evidence("gpu.{i}.memoryTemp", "temperature of its memory is absent", null, null)],
    changed: [{ source, tag: "gpu.{i}.powerWatts", instance: String(gpu), before: 650, after: 400, score: 9, first: true }],
    because: null, confidence: 0.984, ...more };
  delete one.source;
  window.__findings.push(one);
  return one.id;
};
const before = window.fetch;
window.fetch = async (path, init) => {
  const url = new URL(String(path), location.href);
  if (!url.pathname.endsWith("/api/v1/findings")) return before(path, init);
  window.__asked.push(url.search);
  const asked = url.searchParams, from = asked.get("from") || "0", to = asked.get("to");
  const begin = from.startsWith("-") ? now() + parseFloat(from) : +from, end = to ? +to : now();
  const wanted = one => (!asked.get("active") || one.until === null) && one.since <= end && (one.until ?? Infinity) >= begin
    && (!asked.get("source") || [...one.subject, ...one.affects].some(place => place.source === asked.get("source")));
  const findings = window.__findings.filter(wanted).sort((a, b) => b.told - a.told);
  const rules = [{ rule: "hang.spin", state: "watching", words: "" }, { rule: "hang.odd", state: "weaker", words: "weaker without NVLink counters" },
    { rule: "slow_link.pcie", state: "needs", words: "needs gpu.{i}.pcieLinkWidth" }];
  return new Response(JSON.stringify({ at: now(), findings, rules }), { status: 200 });
};
"##;

/// Some findings, from the first answer on.
const WRONG: &str = r#"
const root = __raise("throttle", "warning", 3, 150, { affects: [{ source: "demo-01", gpus: [0, 1, 2, 4, 5, 6, 7] }] });
__raise("straggler", "warning", 3, 140, { because: root });
__raise("slow_link", "note", 5, 100, {});
__raise("starvation", "warning", 6, 90, { sentence: "GPU 6 waits for <b>its</b> data: 31 % busy, others 99 %." });
__raise("ecc", "critical", 1, 1000, { until: Math.floor(Date.now() / 1000) - 900 });
"#;

const LINE: &str = "document.querySelector('main > .say[data-finding]')";
const ROWS: &str = "[...document.querySelectorAll('.findings-list .finding')]";

/// A page of a demo with eight GPUs whose server reports no findings, or some.
fn page(query: &str, wrong: &str) -> (&'static Server, Browser) {
    let server = super::demo("8");
    let browser = Browser::start();
    browser.before_each_page(&format!("{FINDING_ANSWERS}{wrong}"));
    browser.open(&format!("{}{query}", server.url));
    (server, browser)
}

fn read_text(browser: &Browser, expression: &str) -> String {
    browser.eval(expression).as_str().unwrap_or_default().to_string()
}

#[test]
fn nothing_stands_on_the_page_where_nothing_is_wrong_and_one_line_in_the_list() {
    let (_server, browser) = page("", "");
    live(&browser);
    browser.until("__asked.length >= 2");
    assert!(read_text(&browser, "__asked[0]").contains("source=demo-01&from=-"), "{}", browser.eval("__asked[0]"));
    assert_eq!(
        browser.eval(&format!("[{LINE}, document.querySelector('.count').innerText]")),
        serde_json::json!([null, ""])
    );
    assert_eq!(browser.eval("/nothing is wrong/i.test(document.body.innerText)"), false, "there is no praise");
    browser.press("f");
    browser.until("document.querySelector('.calm-line')?.innerText.trim() === '● Nothing is wrong.'");
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('page')"), "findings");
    assert_eq!(browser.eval(&format!("{ROWS}.length")), 0);
    browser.until("document.querySelector('.rules .gist').innerText === '1 active, 1 weaker, 1 without data'");
    browser.click(".rules summary");
    browser.until(
        "document.querySelector('[data-rule=\"slow_link.pcie\"] + dd').innerText === 'needs gpu.{i}.pcieLinkWidth'",
    );
    browser.eval("(history.back(), 0)");
    live(&browser);
    no_faults(&browser);
}

#[test]
fn the_most_severe_leads_the_page_and_its_button_shows_how_it_began() {
    let (_server, browser) = page("?w=1m", WRONG);
    live(&browser);
    browser.until(LINE);
    let head = read_text(&browser, &format!("{LINE}.querySelector('b').innerText"));
    let since = browser.eval("__findings[0].since").as_i64().expect("a time");
    let clock = read_text(
        &browser,
        "(d => [d.getHours(), d.getMinutes()].map(n => String(n).padStart(2, '0')).join(':'))(new Date(__findings[0].since * 1000))",
    );
    assert_eq!(head, format!("GPU 3 of demo-01 runs at 1,410 MHz since {clock};"), "the first clause, in local time");
    let below = read_text(&browser, &format!("{LINE}.querySelector('.below').innerText"));
    assert!(below.starts_with(&format!("warning: throttle, since {clock}, ")), "{below}");
    assert!(
        below.ends_with("; GPUs 0–2, 4–7 of demo-01 are waiting for it and 1 more"),
        "a note and what follows do not count: {below}"
    );
    browser.until(&format!("{LINE}.querySelector('.sketch path.own')?.getAttribute('d').length > 20"));
    assert!(
        read_text(&browser, &format!("{LINE}.querySelector('.sides p:nth-child(2)').innerText")).starts_with("GPU 3")
    );
    browser.screenshot("finding-host-dark");
    assert_eq!(read_text(&browser, &format!("{LINE}.querySelector('button').innerText")), format!("Show {clock}"));
    // The charts of the evidence lead the page, the first of them over its whole width.
    let lead =
        "[...document.querySelectorAll('.charts article.chart')].slice(0, 2).map(one => one.dataset.panel).join()";
    browser.until(&format!("{lead} === 'gpu.clock.sm,gpu.temp'"));
    assert_eq!(browser.eval("document.querySelector('article.hero').dataset.panel"), "gpu.clock.sm");
    // Tiles name the device of the sentence.
    let note = "document.querySelector('.tile .note.odd')?.innerText";
    browser.until(&format!("{note}?.startsWith('GPU 3, ')"));
    browser.eval("(scrollTo(0, document.body.scrollHeight), 0)");
    browser.click("[data-do=show-finding]");
    browser.until("document.activeElement.closest('article')?.dataset.panel === 'gpu.clock.sm'");
    let seen =
        "(r => r.top >= document.querySelector('.bar').getBoundingClientRect().bottom && r.bottom <= innerHeight)";
    browser.until(&format!("{seen}(document.querySelector('article.hero').getBoundingClientRect())"));
    browser.until("document.documentElement.dataset.link === 'frozen'");
    let (from, to) = span(&browser);
    assert!(from < since as f64 - 50.0 && to > since as f64 + 100.0, "{from} to {to}, onset {since}");
    browser.until("__asked[__asked.length - 1].includes('&to=')");
    browser.until(&format!("{LINE}?.querySelector('b').innerText === {head:?}"));
    // The onset is a line in all charts, and its time a lane under the first one.
    let amber = r#"(c => { const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] > 150 && data[i] > data[i + 2] + 80 && data[i + 1] > data[i + 2]) n++; return n; })"#;
    for id in ["cpu", "gpu.memory"] {
        let canvas = format!("document.querySelector('article[data-panel=\"{id}\"] canvas')");
        browser.until(&format!("{canvas} && {amber}({canvas}) > 40"));
    }
    // Its device has one color in every chart, also in those that prove nothing.
    let odd = r#"(c => { const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, columns = new Set();
        const odd = getComputedStyle(document.documentElement).getPropertyValue("--odd").match(/[0-9a-f]{2}/g).map(one => parseInt(one, 16));
        const near = (i, ...color) => color.every((v, k) => Math.abs(data[i + k] - v) < 24);
        for (let i = 0; i < data.length; i += 4) if (near(i, ...odd)) columns.add(i / 4 % c.width); return columns.size; })"#;
    for id in ["gpu.clock.sm", "gpu.temp", "gpu", "gpu.memory", "gpu.power"] {
        let canvas = format!("document.querySelector('article[data-panel=\"{id}\"] canvas')");
        browser.eval(&format!("({canvas}.scrollIntoView({{ block: 'center' }}), 0)"));
        browser.until(&format!("{odd}({canvas}) > 60"));
    }
    no_faults(&browser);
}

#[test]
fn a_finding_that_comes_and_ends_is_told_once_and_nothing_jumps() {
    let (_server, browser) = page("?w=5m", "");
    live(&browser);
    browser.until("__asked.length >= 2");
    browser.eval("(__raise('throttle', 'warning', 3, 30, {}), 0)");
    browser.until(LINE);
    browser.until("document.getElementById('heard').innerText.startsWith('Warning: GPU 3 of demo-01')");
    assert_eq!(browser.eval("document.getElementById('alarm').innerText"), "");
    browser.eval("(__raise('ecc', 'critical', 1, 5, {}), 0)");
    browser.until(&format!("{LINE}.classList.contains('is-critical')"));
    browser.until("document.getElementById('alarm').innerText.startsWith('Critical: GPU 1')");
    // One number counts the open ones, and its list has each once.
    assert_eq!(browser.eval("[...document.querySelectorAll('.bar .count')].map(one => one.innerText).join()"), "2");
    assert_eq!(browser.eval("document.querySelector('.bell summary').getAttribute('aria-label')"), "Open: 2 findings");
    let listed =
        "[...document.querySelectorAll('.bell [data-finding]')].map(one => one.dataset.finding.split(':')[0]).join()";
    assert_eq!(browser.eval(listed), "ecc,throttle");
    browser.eval("(__findings.forEach(one => one.until = Math.floor(Date.now() / 1000)), 0)");
    browser.until(&format!("!{LINE}"));
    browser.until("document.getElementById('heard').innerText.startsWith('Resolved: GPU')");
    nothing_moved(&browser);
    no_faults(&browser);
}

#[test]
fn a_chart_keeps_the_focus_when_a_finding_that_comes_moves_it() {
    let (_server, browser) = page("?w=5m", "");
    live(&browser);
    browser.until("__asked.length >= 2");
    let first = "document.querySelector('section.charts > article').dataset.panel";
    let has_focus = |chart: &str| format!("document.activeElement.matches(\"article[data-panel='{chart}'] .plot\")");
    // The first one is not wide any more, and made anew. The proof comes up from below.
    for chart in ["gpu", "gpu.clock.sm", "gpu.power"] {
        browser.focus(&format!("article[data-panel='{chart}'] .plot"));
        browser.eval("(__raise('throttle', 'warning', 3, 30, {}), 0)");
        browser.until(&format!("{first} === 'gpu.clock.sm'"));
        browser.until(&has_focus(chart));
        browser.press("m");
        browser.until(&format!("document.querySelector(\"article[data-panel='{chart}'] #menu:not([hidden])\")"));
        browser.press("Escape");
        browser.focus(&format!("article[data-panel='{chart}'] .plot"));
        browser.eval("(__findings.forEach(one => one.until = Math.floor(Date.now() / 1000)), 0)");
        browser.until(&format!("{first} === 'gpu'"));
        browser.until(&has_focus(chart));
    }
    no_faults(&browser);
}

#[test]
fn the_end_of_a_job_leads_the_page_until_somebody_has_seen_it() {
    let ended = r#"__raise("gpu_memory", "critical", 7, 2000, { rule: "gpu_memory.ended", until: Math.floor(Date.now() / 1000) - 900,
        sentence: "The job ended: GPU 7 was full; all 8 GPUs have been idle since" });"#;
    let (_server, browser) = page("?w=5m", ended);
    live(&browser);
    // Another job works in its place by now, and its time lies before the span.
    browser.until(&format!("{LINE}?.innerText.includes('The job ended: GPU 7 was full')"));
    browser.click("[data-do=seen]");
    browser.until(&format!("!{LINE}"));
    browser.reload();
    live(&browser);
    browser.until("__asked.length >= 2");
    assert_eq!(browser.eval(LINE), serde_json::Value::Null);
    no_faults(&browser);
}

#[test]
fn the_list_has_causes_with_what_follows_and_one_finding_with_its_evidence() {
    let (_server, browser) = page("", WRONG);
    live(&browser);
    browser.until(LINE);
    browser.press("f");
    browser.until(&format!("{ROWS}.length === 5"));
    assert_eq!(
        browser.eval("new URLSearchParams(location.search).get('finding')?.split(':')[0]"),
        "throttle",
        "that which led"
    );
    let order = browser.eval(&format!(
        "{ROWS}.map(row => [row.dataset.finding.split(':')[0], row.dataset.follows, row.dataset.over].join(' '))"
    ));
    let expected = [
        "throttle false false",
        "straggler true false",
        "starvation false false",
        "slow_link false false",
        "ecc false true",
    ];
    assert_eq!(order, serde_json::json!(expected));
    assert_eq!(browser.eval("document.querySelector('.findings-list h3').innerText"), "Resolved in the last 12 h");
    let sentence = format!("{ROWS}[2].querySelector('.sentence').innerText");
    assert_eq!(
        read_text(&browser, &sentence),
        "GPU 6 waits for <b>its</b> data: 31 % busy, others 99 %.",
        "it is text"
    );
    assert!(
        read_text(&browser, &format!("{ROWS}[2].querySelector('.below').innerText"))
            .starts_with("warning: starvation, since ")
    );

    // The evidence as charts: the affected GPU against its peers.
    browser.until("document.querySelectorAll('.proofs figure').length === 2");
    browser.until("[...document.querySelectorAll('.proofs figure')].every(f => f.dataset.lines === '8' && f.dataset.subjects === '1')");
    assert_eq!(
        read_text(&browser, "document.querySelector('.proofs figcaption').innerText"),
        "GPU SM clock GHz; dashed: usually 1.75"
    );
    assert!(
        read_text(&browser, "document.querySelector('.proofs canvas').getAttribute('aria-label')")
            .ends_with("GPU 3 against 7 others")
    );
    assert_eq!(browser.eval("document.querySelectorAll('.evidence li a').length"), 3, "what is absent leads nowhere");
    let moved = "GPU power: 650 W to 400 W GPU 3 of demo-01, changed first";
    browser.until(&format!("document.querySelector('.changed li').innerText.replaceAll('\u{a0}', ' ') === {moved:?}"));
    assert!(read_text(&browser, "document.querySelector('.finding-one').innerText").contains("at least 98.4 %"));
    browser.screenshot("findings-dark");

    // Keys move the selection, and the finding beside the list follows.
    let chosen = "new URLSearchParams(location.search).get('finding').split(':')[0]";
    let shown = "document.querySelector('.finding-one').dataset.finding.split(':')[0]";
    for (key, id) in [("ArrowDown", "straggler"), ("j", "starvation"), ("k", "straggler")] {
        browser.press(key);
        browser.until(&format!(
            "{chosen} === {id:?} && {shown} === {id:?} && document.activeElement.dataset.finding.startsWith({id:?})"
        ));
    }
    browser.until("document.querySelector('.finding-one').innerText.includes('Because: GPU 3')");

    // A link opens that chart first, at that span, with the device followed; Back leads here again.
    browser.eval("(document.querySelector('.evidence a').click(), 0)");
    browser.until("document.documentElement.dataset.link === 'frozen'");
    browser.until("document.querySelector('.charts article.chart')?.dataset.panel === 'gpu.clock.sm'");
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('pin')"), "GPU 3");
    browser.eval("(history.back(), 0)");
    browser.until(&format!("{ROWS}.length === 5 && {shown} === 'straggler'"));
    no_faults(&browser);
}

#[test]
fn on_a_phone_the_list_leads_to_one_and_back() {
    let (server, browser) = page("", WRONG);
    browser.size(390, 844);
    browser.open(&format!("{}?page=findings", server.url));
    browser.until(&format!("{ROWS}.length === 5"));
    let seen = |selector: &str| format!("document.querySelector('{selector}')?.getClientRects().length > 0");
    browser.until(&format!("{} && !({})", seen(".findings-list"), seen(".finding-one")));
    assert!(
        browser.eval(&format!("Math.min(...{ROWS}.map(row => row.getBoundingClientRect().height))")).as_f64()
            >= Some(48.0)
    );
    browser.screenshot("findings-phone");
    browser.eval(&format!("({ROWS}[2].click(), 0)"));
    browser.until(&format!("!({}) && {}", seen(".findings-list"), seen(".finding-one")));
    browser.until("document.querySelector('.proofs canvas')");
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= 390"), true);
    browser.screenshot("finding-phone");
    browser.eval("(history.back(), 0)");
    browser.until(&format!("{} && !({})", seen(".findings-list"), seen(".finding-one")));
    no_faults(&browser);
}

#[test]
fn keys_lead_from_mark_to_mark_in_all_charts() {
    let (_server, browser) = page("?w=1m", WRONG);
    live(&browser);
    browser.until(LINE);
    let told = |mark: &str| format!("document.getElementById('said').innerText.startsWith({mark:?})");
    let tip = "document.getElementById('tip')";
    let at = |i: u8| {
        let time =
            "(d => [d.getHours(), d.getMinutes(), d.getSeconds()].map(n => String(n).padStart(2, '0')).join(':'))";
        format!("!{tip}.hidden && {tip}.innerText.includes({time}(new Date(__findings[{i}].since * 1000)))")
    };
    // The latest onset is before the shown minute: the charts move there.
    browser.press("(");
    browser.until("document.documentElement.dataset.link === 'frozen'");
    browser.until(&told("starvation, "));
    browser.until(&at(3));
    let (from, to) = span(&browser);
    let since = browser.eval("__findings[3].since").as_f64().expect("a time");
    assert!(from < since && since < to, "{from} to {to} has no {since}");
    browser.press("(");
    browser.until(&told("throttle, "));
    browser.until(&at(0));
    browser.press(")");
    browser.until(&told("starvation, "));
    browser.until(&at(3));
    // Nothing began after that.
    let before = browser.eval("location.search");
    browser.press(")");
    browser.until(&at(3));
    assert_eq!(browser.eval("location.search"), before);
    no_faults(&browser);
}

/// The pixels of the map in the color of critical findings: their number, and their extent in CSS pixels.
const RED: &str = r#"(c => { if (!c || !c.width) return { n: 0 };
    const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, scale = c.clientWidth / c.width;
    let n = 0, right = 0, bottom = 0;
    for (let i = 0; i < d.length; i += 4) if (d[i] > 200 && d[i + 1] < 130 && d[i + 2] < 130) {
      n++; right = Math.max(right, i / 4 % c.width); bottom = Math.max(bottom, Math.floor(i / 4 / c.width)); }
    return { n, right: right * scale, bottom: bottom * scale }; })(document.querySelector('#map canvas'))"#;

#[test]
fn the_page_of_all_machines_leads_to_the_finding() {
    let server = Server::start(["demo", "--hosts", "8", "--gpus", "8"]);
    let browser = Browser::start();
    let wrong = r#"__raise("straggler", "critical", 5, 400, { source: "demo-03", affects: [{ source: "demo-04", gpus: [0, 1, 2, 3, 4, 5, 6, 7] }, { source: "demo-05", gpus: [0] }] });"#;
    browser.before_each_page(&format!("{FINDING_ANSWERS}{wrong}"));
    browser.open(&server.url);
    browser.until(&format!("{LINE}?.innerText.includes('9 GPUs on 2 machines are waiting for it')"));
    assert_eq!(browser.eval("__asked[0]"), "?active=1");
    browser.until("[...document.querySelectorAll('.count')].map(one => one.innerText).join() === '1'");
    browser.until("document.querySelectorAll('.say').length === 1");
    // The device has a frame on the map, in the color of critical findings.
    browser.until(&format!("{RED}.n > 60"));
    browser.screenshot("finding-fleet-dark");
    let tip = "document.getElementById('tip').innerText";
    let shown = format!("{tip}.startsWith('demo-03') && {tip}.includes('critical: GPU 5 of demo-03 runs at')");
    // The map may still move between the two.
    let corner = || {
        let [left, top, ..] = browser.rect("#map");
        let end = |of: &str| browser.until(&format!("{RED}.n > 60 && {RED}.{of}")).as_f64().expect("a place");
        (left + end("right") - 4.0, top + end("bottom") - 4.0)
    };
    super::fleet::point(&browser, corner, &shown);
    // Machines that wait for it have nothing wrong.
    browser.until("document.getElementById('map').getAttribute('aria-label') === 'Machines: demo-03 has a problem.'");
    browser.move_to((5.0, 5.0));
    browser.focus("#map");
    // Two machines are in a column.
    for (key, host) in [("ArrowDown", "demo-01"), ("ArrowRight", "demo-03")] {
        browser.press(key);
        browser.until(&format!("document.getElementById('said').innerText.startsWith('{host}: live')"));
    }
    assert!(
        read_text(&browser, "document.getElementById('said').innerText")
            .contains("; critical: GPU 5 of demo-03 runs at")
    );
    // A finding that is over has no frame.
    browser.eval("(__findings[0].until = Math.floor(Date.now() / 1000), 0)");
    browser.until(&format!("{RED}.n === 0"));
    browser.eval("(__findings[0].until = null, 0)");
    browser.until(&format!("{RED}.n > 60"));
    browser.click("[data-do=open-finding]");
    browser.until("document.querySelector('.finding-one')?.dataset.finding.startsWith('straggler:demo-03:5:')");
    no_faults(&browser);
}

#[test]
fn what_a_server_finds_leads_its_page_with_the_evidence_drawn() {
    let server = Server::start(["demo", "--gpus", "8", "--fail", "throttle"]);
    super::has_finding(&server);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.until(LINE);
    let told = |of: &str| read_text(&browser, &format!("{LINE}.querySelector('{of}').innerText"));
    let sentence = told("p");
    assert!(sentence.starts_with("GPU ") && !sentence.contains("{since}") && !sentence.contains("UTC"), "{sentence}");
    let below =
        read_text(&browser, &format!("[...{LINE}.querySelectorAll('.below')].map(one => one.innerText).join()"));
    assert!(below.starts_with("Next: ") && below.contains("since "), "{below}");
    browser.press("f");
    browser.until(&format!("{ROWS}.length > 0"));
    browser.until("document.querySelector('.proofs figure')?.dataset.lines === '8'");
    browser.until("document.querySelectorAll('.evidence li').length > 1");
    browser.until("document.querySelectorAll('.rules dt').length > 5");
    no_faults(&browser);
}

#[test]
fn a_file_that_is_dropped_tells_what_was_wrong_in_it() {
    let server = Server::start(["--collectors", "cpu"]);
    let browser = Browser::start();
    browser.open(&server.url);
    browser.until("document.documentElement.dataset.link === 'live'");
    browser.script(
        "const rows = ['time,source,tag,value'];
         for (let s = 0; s < 200; s++) for (const gpu of [0, 1, 2]) {
           // The second one is hot from the hundredth second on.
           const hot = gpu === 1 && s >= 100;
           for (const [name, value] of [['gpu', 97], ['powerWatts', 600 + s % 7], ['temp', hot ? 88 : 60],
             ['smClock', hot ? 1200 : 1755], ['throttleReasons', hot ? 32 : 0]])
             rows.push(`${1714566896 + s},node-7,gpu.${gpu}.${name},${value}`);
         }
         const data = new DataTransfer();
         data.items.add(new File([rows.join('\\n')], 'night.csv'));
         document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));",
    );
    browser.until("document.documentElement.dataset.link === 'recorded'");
    browser.until(&format!(
        "{LINE}?.querySelector('b').innerText.startsWith('GPU 1 has been thermally throttled since ')"
    ));
    // Its evidence is drawn from the file's own samples.
    browser.until(&format!("{LINE}.querySelector('.sketch path.own')?.getAttribute('d').length > 20"));
    let sides = format!("{LINE}.querySelector('.sides').innerText.replace(/\\s+/g, ' ')");
    assert_eq!(read_text(&browser, &sides), "GPU SM clock, GHz GPU 1 1.2 others 1.75");
    browser.click("[data-do=show-finding]");
    browser.until("document.documentElement.dataset.link === 'frozen'");
    let (from, to) = span(&browser);
    assert!(from < 1_714_566_996.0 && to > 1_714_566_996.0, "{from} to {to}");

    // The list is another page, and the file stays open.
    browser.press("f");
    browser.until(&format!("{ROWS}.length === 1 && location.search.includes('page=findings')"));
    let figures = "[...document.querySelectorAll('.proofs figure')]";
    browser.until(&format!(
        "{figures}.map(f => f.dataset.tag).join(' ') === 'gpu.{{i}}.smClock gpu.{{i}}.temp' && \
         {figures}.every(f => f.dataset.lines === '3' && f.dataset.subjects === '1')"
    ));
    assert_eq!(
        read_text(&browser, "document.querySelector('.proofs figcaption').innerText"),
        "GPU SM clock GHz; dashed: usually 1.75"
    );
    assert_eq!(browser.eval("document.querySelectorAll('[data-tab]').length"), 0, "a file has no rules");
    browser.screenshot("findings-file-dark");
    // A condition leads to its chart at its span, and Back returns here.
    browser.click(".evidence li[data-tag='gpu.{i}.temp'] a");
    browser.until("document.querySelector('.charts article.chart')?.dataset.panel === 'gpu.temp'");
    assert_eq!(
        browser.eval("[document.documentElement.dataset.link, new URLSearchParams(location.search).get('pin')].join()"),
        "frozen,GPU 1"
    );
    browser.until("Number(document.querySelector('.charts article.chart').dataset.samples) > 100");
    browser.eval("(history.back(), 0)");
    browser.until(&format!("{ROWS}.length === 1 && document.querySelector('.player')"));
    let asked = "performance.getEntriesByType('resource').filter(e => e.name.includes('/query?')).length";
    assert_eq!(browser.eval(asked), 0, "no server is asked of a file");
    no_faults(&browser);
}
