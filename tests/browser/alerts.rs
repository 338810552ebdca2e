//! Alerts on the page: the bell, the list, a single alert, a rule that is written over a chart, notifications, and
//! silences. A script replaces the server's answers, so that they are known. The charts are of a real server.

use super::{live, no_faults};
use serde_json::json;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

/// Answers of the paths of alerts, in the shapes of `shared::alert`. `__raise` makes an alert that began this many
/// seconds ago. `__done` has the requested changes.
pub(super) const ALERT_ANSWERS: &str = r##"
const ms = () => Date.now(), base = +(sessionStorage.alertBase ||= ms());
window.__alerts = []; window.__done = []; window.__checks = []; window.__asked = [];
window.__raise = (id, severity, state, ago, more) => {
  const began = base / 1000 - ago, gpu = (more && more.gpu) || "3";
  const one = { id, rule: "hot", name: "Hot GPUs", subject: "demo-01 gpu." + gpu + ".temp", severity, state, began, fired: began + 120,
    ended: state === "resolved" ? began + 60 : null, value: 88, worst: 89.1,
    sentence: `demo-01 GPU ${gpu} at 89.1 °C, above 85 °C for 2 min`,
    labels: { source: "demo-01", gpu, tag: `gpu.${gpu}.temp`, project: "llm" }, ...more };
  delete one.gpu;
  window.__alerts.push(one);
};
const rule = (id, name, when, origin, more) => ({ rule: { id, name, severity: "warning", when, on: {}, resolved: true, quiet: true, enabled: true, origin, by: "", version: 1, ...more },
  words: when, firing: 0, last: null, trouble: "" });
window.__rules = [
  { ...rule("01HOT", "Hot GPUs", "gpu.*.temp > 85 C for 2m, until < 82 C for 30s", "made", { to: ["lab-slack"], on: { project: "llm" }, version: 4 }), words: "GPU temperature above 85 °C for 2 min, until below 82 °C", firing: 1 },
  { ...rule("01FILE", "Slow run", "mean over run of gpu.*.gpu < 50 for 10m", "file"), trouble: "more than 10,000 series; the first are watched" },
  { ...rule("run-crashed", "run crashed", "run crashed", "built_in", { severity: "critical" }), words: "a run crashed", last: Math.floor(base / 1000) - 7200 }];
window.__silences = [
  { id: "01SIL", match: { rule: "Hot GPUs", source: "demo-01" }, from: Math.floor(base / 1000) - 3600, to: Math.floor(base / 1000) + 3600 * 3, comment: "new <b>fan</b> tonight", by: "sofia", held: 3 },
  { id: "01OLD", match: { rule: "machine lost", project: "lm" }, from: Math.floor(base / 1000) - 90000, to: Math.floor(base / 1000) - 80000, comment: "switch changed", by: "chen", held: 4 }];
const channel = (id, name, kind, target, delivery, more) => ({ id, name, kind, target, is_default: true, delivery: { state: "ok", words: "accepted in 180 ms", at: Math.floor(base / 1000) - 200, waiting: 0, oldest: null, sent: 41, lost: 0, ...delivery }, ...more });
window.__channels = [
  channel("01CHA", "lab-slack", "slack", "…h4Fz", {}, { quiet: [{ days: "mon-fri", from: "22:00", to: "07:00" }], zone: "Europe/Berlin" }),
  channel("01CHB", "pager", "webhook", "pager.example.org", { state: "retrying", words: "502, tried 4 times, again in 40 s", waiting: 2, oldest: Math.floor(base / 1000) - 300, lost: 1 }),
  channel("01CHC", "ops", "email", "ops@example.org", { state: "failed", words: "404: the address is gone; replace it" }, { is_default: false })];
window.__notices = [
  { id: "s1", channel: "lab-slack", at: Math.floor(base / 1000) - 60, title: "demo-01 GPU 3 at 89.1 °C", state: "sent", words: "accepted in 180 ms" },
  { id: "s2", channel: "pager", at: Math.floor(base / 1000) - 90, title: "demo-01 GPU 3 at 89.1 °C", state: "retrying", words: "502, again in 40 s" }];
const before = window.fetch;
window.fetch = async (path, init) => {
  const url = new URL(String(path), location.href), method = (init && init.method) || "GET";
  const found = url.pathname.match(/\/api\/v1\/(alerts|rules|silences|channels)(\/.*)?$/);
  if (!found) return before(path, init);
  const [, what, rest] = found, say = (body, status) => new Response(JSON.stringify(body), { status: status || 200 });
  const sent = init && init.body ? JSON.parse(init.body) : null;
  if (method === "GET") window.__asked.push(what + (rest || "") + url.search);
  if (method !== "GET" && rest !== "/check") window.__done.push([method, what + (rest || ""), sent]);
  const firing = window.__alerts.filter(one => one.state === "firing" && !one.held).length;
  if (what === "alerts" && method === "GET" && rest) {
    const one = window.__older && rest === "/" + window.__older.id ? window.__older : window.__alerts.find(one => rest === "/" + one.id);
    return one ? say({ ...one, events: [] }) : say({ error: "there is no such alert" }, 404);
  }
  if (what === "alerts" && method === "GET") {
    const open = url.searchParams.get("state") === "firing", source = url.searchParams.get("source");
    const fits = one => (!open || one.state === "firing") && (!source || one.labels.source === source);
    return say({ alerts: window.__alerts.filter(fits), firing, more: false, trouble: window.__trouble || [] });
  }
  if (what === "alerts") {
    const one = window.__alerts.find(one => rest === "/" + one.id + "/ack");
    one.acked = { by: "amira", at: Math.floor(ms() / 1000) };
    return say(one);
  }
  if (rest === "/check") {
    const wrong = window.__wrong && window.__wrong(sent.rule);
    if (wrong) return say({ error: wrong }, 400);
    window.__checks.push(sent);
    const fired = [[4, 5, 86.1], [8, 9, 88.8], [11.9, null, 89.1]].map(([h, min, worst], i) => ({ subject: `demo-01 GPU ${i}`, source: "demo-01",
      from: ms() / 1000 - (12 - h) * 3600, to: min && ms() / 1000 - (12 - h) * 3600 + min * 60, worst }));
    return say({ words: sent.rule.when, sentence: "would have fired 3 times in the last 12 h, for 20 min together", fired, times: 3, subjects: 8 });
  }
  if (rest && rest.endsWith("/test")) return say({ ok: true, sentence: "accepted with 200 in 164 ms over IPv4" });
  if (what === "silences" && method === "DELETE") window.__silences.find(one => rest === "/" + one.id).to = Math.floor(ms() / 1000) - 1;
  if (what === "rules" && method === "POST") window.__rules.unshift({ rule: { ...sent, id: "01NEW", origin: "made", version: 1 }, words: sent.when, firing: 0, last: null, trouble: "" });
  if (what === "rules" && method === "PUT") Object.assign(window.__rules.find(row => rest === "/" + row.rule.id).rule, sent);
  if (method !== "GET") return say({ id: "01NEW" }, method === "POST" ? 201 : 200);
  if (what === "rules") return say({ rules: window.__rules });
  if (what === "silences") return say({ silences: window.__silences });
  return say({ channels: window.__channels, sent: window.__notices });
};
"##;

/// Some that fire, one that is suppressed, one that is pending, and one that is over.
pub(super) const FIRING: &str = r#"
__raise("ALERTA", "warning", "firing", 400, {});
__raise("ALERTB", "critical", "firing", 60, { gpu: "5", name: "run crashed", rule: "run-crashed", sentence: "llama <i>70b</i> crashed: out of memory" });
__raise("ALERTC", "warning", "firing", 900, { gpu: "1", held: "silenced by sofia until 18:00" });
__raise("ALERTD", "warning", "pending", 30, { gpu: "2" });
__raise("ALERTE", "info", "resolved", 3000, { gpu: "4", name: "run finished" });
"#;

const ROWS: &str = "[...document.querySelectorAll('.findings-list [data-alert]')]";

fn page(query: &str, script: &str) -> (&'static Server, Browser) {
    let server = super::demo("8");
    let browser = Browser::start();
    browser.before_each_page(&format!("{ALERT_ANSWERS}{script}"));
    browser.open(&format!("{}{query}", server.url));
    (server, browser)
}

fn read_text(browser: &Browser, expression: &str) -> String {
    browser.eval(expression).as_str().unwrap_or_default().to_string()
}

#[test]
fn the_bell_counts_what_fires_lists_it_and_tells_it_once() {
    let (_server, browser) = page("", FIRING);
    live(&browser);
    browser.until("document.documentElement.dataset.alerts === '2'");
    assert_eq!(
        read_text(&browser, "document.querySelector('.bell summary').getAttribute('aria-label')"),
        "Open: 2 alerts"
    );
    assert_eq!(read_text(&browser, "document.querySelector('.bell .count').innerText"), "2");
    assert_eq!(browser.eval("document.getElementById('rung').innerText"), "", "what was there is no news");
    browser.click(".bell summary");
    let listed = browser.eval("[...document.querySelectorAll('.bell [data-alert]')].map(one => one.dataset.alert)");
    assert_eq!(listed, json!(["ALERTB", "ALERTA", "ALERTC"]), "the worst first, then what is held back");
    browser.screenshot("alerts-bell-dark");
    browser.press("Escape");
    browser.until("!document.querySelector('.bell').open");
    browser.eval("(__raise('ALERTF', 'critical', 'firing', 1, { gpu: '6' }), 0)");
    browser.until("document.getElementById('rung').innerText.startsWith('critical alert: demo-01 GPU 6')");
    browser.eval("(__alerts.forEach(one => { one.state = 'resolved'; one.ended = Date.now(); }), 0)");
    browser.until("document.getElementById('rung').innerText === '3 alerts have ended.'");
    browser.until("document.documentElement.dataset.alerts === '0'");
    assert_eq!(
        read_text(&browser, "document.querySelector('.bell summary').getAttribute('aria-label')"),
        "Nothing is open"
    );
    no_faults(&browser);
}

#[test]
fn the_list_is_walked_and_filtered_and_one_is_taken_on_and_silenced_by_keys() {
    let (_server, browser) = page("", FIRING);
    live(&browser);
    browser.press("a");
    browser.until(&format!("{ROWS}.length === 5"));
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('page')"), "alerts");
    let of = |name: &str| browser.eval(&format!("{ROWS}.map(row => row.dataset.{name})"));
    assert_eq!(of("alert"), json!(["ALERTB", "ALERTA", "ALERTC", "ALERTD", "ALERTE"]));
    assert_eq!(of("state"), json!(["firing", "firing", "silenced", "pending", "resolved"]));
    assert_eq!(of("severity"), json!(["critical", "warning", "warning", "warning", "info"]));
    assert_eq!(of("rule"), json!(["run-crashed", "hot", "hot", "hot", "hot"]));
    let first = format!("{ROWS}[0].querySelector('.sentence').innerText");
    assert_eq!(read_text(&browser, &first), "llama <i>70b</i> crashed: out of memory", "it is text");
    let held = read_text(&browser, &format!("{ROWS}[2].querySelector('.below').innerText"));
    assert!(held.ends_with("silenced: silenced by sofia until 18:00"), "{held}");

    // One is shown beside the list, and follows the selection.
    let shown = "document.querySelector('.finding-one').dataset.alert";
    browser.until(&format!("{shown} === 'ALERTB'"));
    browser.press("j");
    browser.until(&format!("{shown} === 'ALERTA' && document.activeElement.dataset.alert === 'ALERTA'"));
    browser.until("document.querySelector('.finding-one .proofs canvas')");
    browser.screenshot("alerts-list-dark");
    browser.press("e");
    browser.until("__done.some(([method, path]) => method === 'POST' && path === 'alerts/ALERTA/ack')");
    browser.until("document.querySelector('.finding-one').innerText.includes('acknowledged by amira at')");
    assert_eq!(browser.eval("document.querySelector('[data-do=ack]')"), json!(null));

    // A key opens the choice of the duration, another makes it an hour.
    browser.press("s");
    browser.until("document.querySelector('dialog[open] [data-form=silence]')");
    assert_eq!(
        read_text(&browser, "document.querySelector('dialog[open] h2').innerText"),
        "Silence Hot GPUs of GPU 3, demo-01, gpu.3.temp?"
    );
    browser.click("dialog[open] .btn.primary");
    browser.until("!document.querySelector('dialog[open]')");
    let silence = browser.until("__done.find(([method, path]) => method === 'POST' && path === 'silences')?.[2]");
    assert_eq!(silence["match"], json!({ "gpu": "3", "rule": "Hot GPUs", "source": "demo-01", "tag": "gpu.3.temp" }));
    let length = silence["to"].as_i64().zip(silence["from"].as_i64()).map(|(to, from)| to - from);
    assert_eq!(length, Some(3_600));

    browser.click("[data-choice=silenced]");
    browser.until(&format!("{ROWS}.length === 1 && {ROWS}[0].dataset.alert === 'ALERTC'"));
    browser.click("[data-choice='']");
    browser.click(".alert-filter input");
    browser.insert("gpu:5 crashed");
    browser.until(&format!("{ROWS}.length === 1 && {ROWS}[0].dataset.alert === 'ALERTB'"));
    browser.until("new URLSearchParams(location.search).get('find') === 'gpu:5 crashed'");
    no_faults(&browser);
}

#[test]
fn an_alert_opens_the_board_at_its_span_with_its_series_followed_and_its_lane() {
    let (_server, browser) = page("?page=alerts&alert=ALERTA", FIRING);
    browser.until("document.querySelector('[data-do=open-alert]')?.getAttribute('href').includes('pin=')");
    let (from, began) = (browser.eval("__alerts[0].began").as_f64(), "__alerts[0].began");
    browser.click("[data-do=open-alert]");
    browser.until("document.documentElement.dataset.link === 'frozen'");
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('pin')"), "GPU 3");
    // The charts follow with the next frame.
    browser.until("document.querySelector('.charts article.chart')?.dataset.panel === 'gpu.temp'");
    assert_eq!(browser.eval(&format!("+new URLSearchParams(location.search).get('from') < {began}")), true, "{from:?}");
    browser.until("__asked.some(path => path.startsWith('alerts?source=demo-01&from='))");
    browser.until("__asked.some(path => path === 'rules')");
    browser.screenshot("alerts-lanes-dark");
    no_faults(&browser);
}

#[test]
fn an_alert_that_is_older_than_the_list_is_asked_for_by_its_id() {
    let older = "__raise('OLDER', 'critical', 'resolved', 900000, {}); window.__older = __alerts.pop();";
    let (_server, browser) = page("?page=alerts&alert=OLDER", &format!("{FIRING}{older}"));
    browser.until("document.querySelector('.finding-one')?.dataset.alert === 'OLDER'");
    no_faults(&browser);
}

#[test]
fn a_rule_is_made_over_a_chart_by_dragging_a_line() {
    let (_server, browser) = page("", FIRING);
    live(&browser);
    // The menu of a chart leads to a draft of a rule for it.
    browser.eval("(document.querySelector('article[data-panel=\"gpu.temp\"] h3 button').click(), 0)");
    browser.until("document.querySelector('#menu [data-do=alert]')");
    browser.click("#menu [data-do=alert]");
    browser.until("document.querySelector('.written')");
    let draft = || read_text(&browser, "new URLSearchParams(location.search).get('alert')");
    assert!(draft().starts_with("gpu.*.temp > ") && draft().contains(" C for 2m, until < "), "{}", draft());
    browser.until("document.querySelector('.rule-plot [role=slider]')");
    browser.until("document.querySelector('.written').dataset.checked === '3'");
    assert_eq!(
        read_text(&browser, "document.querySelector('.verdict').innerText"),
        "It would have fired 3 times in the last 12 h, for 20 min together."
    );
    assert_eq!(browser.eval("document.querySelectorAll('.fired li').length"), 3);
    assert_eq!(browser.eval("document.querySelectorAll('.rule-plot .flag').length"), 3);
    browser.screenshot("alerts-rule-dark");

    // The line is dragged down by a pointer, and up again by a key.
    let now = || {
        browser
            .eval("+document.querySelector('[role=slider]').getAttribute('aria-valuenow')")
            .as_f64()
            .unwrap_or(f64::NAN)
    };
    let (before, [left, top, width, _]) = (now(), browser.rect("[role=slider]"));
    let (x, checks) = (left + width / 2.0, browser.eval("__checks.length"));
    browser.drag((x, top), (x, top + 60.0), 0);
    let dragged = now();
    assert!(dragged < before - 1.0, "{before} to {dragged}");
    // The address and the check may follow a moment later.
    browser.until(&format!("new URLSearchParams(location.search).get('alert').startsWith('gpu.*.temp > {dragged} C')"));
    // The draft checks the data that are shown.
    let seen = "new URLSearchParams(location.search).get('alert').split('~.')[0]";
    browser.until(&format!("__checks.length > {checks} && __checks.at(-1).rule.when === {seen}"));
    browser.press("ArrowUp");
    browser.until(&format!("+document.querySelector('[role=slider]').getAttribute('aria-valuenow') > {dragged}"));
    let spoken = read_text(&browser, "document.querySelector('[role=slider]').getAttribute('aria-valuetext')");
    assert!(spoken.starts_with("above ") && spoken.ends_with(" °C"), "{spoken}");

    // The fields of the sentence are the same rule.
    browser.eval("(s => { s.value = '5m'; s.dispatchEvent(new Event('change', { bubbles: true })); return 0; })(document.querySelector('.tok[name=hold]'))");
    browser.until("new URLSearchParams(location.search).get('alert').includes(' for 5m, until')");
    browser.eval("(s => { s.value = 'critical'; s.dispatchEvent(new Event('change', { bubbles: true })); return 0; })(document.querySelector('.tok[name=severity]'))");
    browser.until("[...document.querySelector('.tok[name=to]').options].some(one => one.value === 'pager')");
    browser.eval("(s => { s.value = 'pager'; s.dispatchEvent(new Event('change', { bubbles: true })); return 0; })(document.querySelector('.tok[name=to]'))");
    browser.until("document.querySelector('[data-do=test-rule]')?.innerText === 'Test: notify pager'");
    browser.click("[data-do=test-rule]");
    browser
        .until("document.querySelector('.written .did').innerText === 'pager: accepted with 200 in 164 ms over IPv4'");
    browser.click("[data-do=save-rule]");
    browser.until("!document.querySelector('.written')");
    let made = browser.eval("__done.find(([method, path]) => method === 'POST' && path === 'rules')[2]");
    assert_eq!((&made["severity"], &made["to"]), (&json!("critical"), &json!(["pager"])));
    assert!(made["name"].as_str().is_some_and(|name| name.starts_with("GPU temperature above ")), "{made}");
    assert!(
        made["when"].as_str().is_some_and(|when| when.contains(" for 5m, until < ") && when.ends_with(" for 1m")),
        "{made}"
    );
    browser.until("document.querySelector('#rules tr[data-rule=\"01NEW\"]')");
    no_faults(&browser);
}

#[test]
fn a_draft_in_a_link_is_the_draft_and_what_is_wrong_with_it_is_said() {
    let wrong = "window.__wrong = rule => rule.when.startsWith('run c') && '`run crahsed` is no state of a run; did you mean crashed?';";
    let link = "?page=alerts&tab=rules&alert=run+crahsed~.name%3DEnds+badly~.on.project%3Dllm";
    let (_server, browser) = page(link, &format!("{FIRING}{wrong}"));
    browser.until("document.querySelector('.written .wrong').innerText.includes('did you mean crashed?')");
    assert_eq!(browser.eval("document.querySelector('.tok[name=when]').value"), "run crahsed");
    assert_eq!(browser.eval("document.querySelector('.tok[name=name]').value"), "Ends badly");
    assert_eq!(browser.eval("document.querySelector('.tok[name=project]').value"), "llm");
    assert_eq!(browser.eval("document.querySelector('.rule-plot')"), json!(null), "there is no line to drag");
    browser.click("[data-do=discard]");
    browser.until("!document.querySelector('.written')");
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('alert')"), json!(null));
    no_faults(&browser);
}

#[test]
fn the_rules_are_listed_with_who_may_change_them_and_one_is_switched_off() {
    let (_server, browser) = page("?page=alerts&tab=rules", FIRING);
    let rows = "[...document.querySelectorAll('#rules tbody tr')]";
    browser.until(&format!("{rows}.length === 3"));
    assert_eq!(
        browser.eval(&format!("{rows}.map(row => [row.dataset.rule, row.dataset.state, [...row.querySelectorAll('.deeds button')].map(b => b.innerText).join()])")),
        json!([["01HOT", "firing", "Edit,Off,Remove…"], ["01FILE", "quiet", ""], ["run-crashed", "quiet", "Off"]])
    );
    assert!(read_text(&browser, &format!("{rows}[1].innerText")).contains("more than 10,000 series"));
    browser.screenshot("alerts-rules-dark");
    browser.click("tr[data-rule=run-crashed] [data-do=switch-rule]");
    browser.until(&format!("{rows}[2].dataset.state === 'off'"));
    let put = browser.eval("__done.find(([method]) => method === 'PUT')");
    assert_eq!(
        (&put[1], &put[2]["enabled"], &put[2]["version"]),
        (&json!("rules/run-crashed"), &json!(false), &json!(1))
    );
    browser.click("tr[data-rule='01HOT'] [data-do=edit-rule]");
    browser.until("document.querySelector('.written h2')?.innerText === 'Edit rule'");
    browser.click("[data-do=save-rule]");
    browser.until("__done.some(([method, path, rule]) => method === 'PUT' && path === 'rules/01HOT' && rule.version === 4 && rule.on.project === 'llm' && rule.to[0] === 'lab-slack')");
    no_faults(&browser);
}

#[test]
fn a_channel_is_tested_made_and_changed_and_its_secret_is_never_shown() {
    let (_server, browser) = page("?page=alerts&tab=deliveries", FIRING);
    let rows = "[...document.querySelectorAll('[data-channel]')]";
    browser.until(&format!("{rows}.length === 4"));
    assert_eq!(
        browser.eval(&format!("{rows}.map(row => [row.dataset.channel, row.dataset.delivery])")),
        json!([["lab-slack", "ok"], ["pager", "retrying"], ["ops", "failed"], ["browser", ""]])
    );
    let pager = read_text(&browser, &format!("{rows}[1].innerText"));
    assert!(
        pager.contains("502, tried 4 times")
            && pager.contains("2 queued, the oldest from ")
            && pager.contains("1 failed"),
        "{pager}"
    );
    assert!(
        read_text(&browser, "document.querySelector('.quiet-hours').innerText")
            .contains("lab-slack waits from 22:00 to 07:00 (mon-fri), Europe/Berlin.")
    );
    assert_eq!(browser.eval("document.querySelectorAll('#sent tbody tr').length"), 2);
    browser.screenshot("alerts-deliveries-dark");
    browser.click("[data-channel=pager] [data-do=test-channel]");
    browser.until(
        "document.querySelector('[data-channel=pager] .did').innerText === 'accepted with 200 in 164 ms over IPv4'",
    );

    browser.eval("(s => { s.value = 'ntfy'; s.dispatchEvent(new Event('change', { bubbles: true })); return 0; })(document.getElementById('add-channel'))");
    browser.until("document.querySelector('dialog[open] [data-form=channel]')");
    let fields =
        browser.eval("[...document.querySelectorAll('dialog[open] [name]')].map(one => one.name + ':' + one.type)");
    let expected = [
        "name:text",
        "address:password",
        "topic:text",
        "secret:password",
        "default:select-one",
        "quiet_from:text",
        "quiet_to:text",
        "days:text",
        "zone:text",
    ];
    assert_eq!(fields, json!(expected));
    let fill = |name: &str, value: &str| {
        browser.eval(&format!("(i => {{ i.value = {value:?}; i.dispatchEvent(new Event('input', {{ bubbles: true }})); return 0; }})(document.querySelector('dialog[open] [name={name}]'))"));
    };
    fill("address", "https://ntfy.example.org");
    fill("topic", "lab");
    fill("quiet_from", "22:00");
    browser.click("dialog[open] .btn.primary");
    browser.until("document.querySelector('dialog[open] .wrong').innerText.includes('Give the channel a name')");
    fill("name", "phone");
    browser.click("dialog[open] .btn.primary");
    browser.until(
        "document.querySelector('dialog[open] .wrong').innerText.includes('Enter a start and an end of quiet hours')",
    );
    fill("quiet_to", "07:00");
    browser.click("dialog[open] .btn.primary");
    browser.until("!document.querySelector('dialog[open]')");
    let made = browser.eval("__done.find(([method, path]) => method === 'POST' && path === 'channels')[2]");
    assert_eq!(
        made,
        json!({ "name": "phone", "kind": "ntfy", "address": "https://ntfy.example.org", "topic": "lab", "is_default": true,
            "quiet": [{ "days": "", "from": "22:00", "to": "07:00" }] })
    );
    browser.click("[data-channel=lab-slack] [data-do=edit-channel]");
    browser.until("document.querySelector('dialog[open] [name=address]')");
    assert_eq!(
        browser.eval("document.querySelector('dialog[open] [name=address]').value"),
        "",
        "a secret is not shown"
    );
    browser.click("dialog[open] .btn.primary");
    browser.until("__done.some(([method, path, body]) => method === 'PUT' && path === 'channels/01CHA' && !('address' in body) && body.zone === 'Europe/Berlin')");
    no_faults(&browser);
}

#[test]
fn an_answer_that_cannot_be_read_is_said_and_is_no_empty_list() {
    let broken = "delete window.__channels[1].delivery.sent; window.__notices[0].at = 'noon';";
    let (_server, browser) = page("?page=alerts&tab=deliveries", broken);
    let wrong = "document.querySelector('.deliveries .wrong').innerText";
    browser.until(&format!("{wrong}.includes('at `channels.1.delivery.sent`')"));
    let said = read_text(&browser, "document.querySelector('.deliveries').innerText");
    for untrue in
        ["Alerts are shown in this page only", "Nothing has been sent", "No channel has quiet hours", "24 h, nothing"]
    {
        assert!(!said.contains(untrue), "{said}");
    }
    let logged = browser.eval("window.__faults.some(text => text.includes('channels.1.delivery.sent'))");
    assert_eq!(logged, true, "who develops sees it, too");

    // The answer is read as soon as possible.
    browser.eval("(window.__channels[1].delivery.sent = 1, window.__notices[0].at = 1700000000, 0)");
    browser.until("document.querySelectorAll('[data-channel]').length === 4");
    assert_eq!(browser.eval(wrong), "");
}

#[test]
fn a_silence_is_made_ended_and_made_again() {
    let (_server, browser) = page("?page=alerts&tab=silences", FIRING);
    let rows = "[...document.querySelectorAll('#silences tbody tr')]";
    browser.until(&format!("{rows}.length === 2"));
    assert_eq!(
        browser.eval(&format!("{rows}.map(row => row.querySelector('.deeds').innerText)")),
        json!(["End now", "Renew…"])
    );
    assert!(read_text(&browser, &format!("{rows}[0].innerText")).contains("new <b>fan</b> tonight"), "it is text");
    browser.screenshot("alerts-silences-dark");
    browser.press("s");
    browser.until("document.querySelector('dialog[open] [data-form=silence]')");
    browser.click("dialog[open] .btn.primary");
    browser.until("document.querySelector('dialog[open] .wrong').innerText.startsWith('Fill in at least one field')");
    browser.eval("(i => { i.value = 'node-*'; i.dispatchEvent(new Event('input', { bubbles: true })); return 0; })(document.querySelector('dialog[open] [name=source]'))");
    browser.eval("(i => { i.value = 'tomorrow'; i.dispatchEvent(new Event('change', { bubbles: true })); return 0; })(document.querySelector('dialog[open] [name=length]'))");
    browser.click("dialog[open] .btn.primary");
    let made = browser.until("__done.find(([method, path]) => method === 'POST' && path === 'silences')?.[2]");
    assert_eq!(made["match"], json!({ "source": "node-*" }));
    assert_eq!(
        browser.eval(&format!("(d => d.getHours() * 60 + d.getMinutes())(new Date({} * 1000))", made["to"])),
        480
    );
    browser.click("tr[data-row='01SIL'] [data-do=end]");
    browser.until("document.querySelector('tr[data-row=\"01SIL\"] [data-do=again]')");
    // One that was made elsewhere keeps labels that have no field.
    browser.click("tr[data-row='01OLD'] [data-do=again]");
    browser.until("document.querySelector('dialog[open]')?.innerText.includes('project must be lm.')");
    browser.click("dialog[open] .btn.primary");
    let again = browser.until("__done.filter(([method, path]) => method === 'POST' && path === 'silences')[1]?.[2]");
    assert_eq!(again["match"], json!({ "project": "lm", "rule": "machine lost" }));
    no_faults(&browser);
}

#[test]
fn on_a_phone_an_alert_has_the_page_to_itself_and_the_line_follows_a_finger() {
    let (server, browser) = page("", FIRING);
    browser.size(390, 844);
    browser.open(&format!("{}?page=alerts", server.url));
    browser.until(&format!("{ROWS}.length === 5"));
    let seen = |selector: &str| format!("document.querySelector('{selector}')?.getClientRects().length > 0");
    browser.until(&format!("{} && !({})", seen(".findings-list"), seen(".finding-one")));
    browser.screenshot("alerts-phone");
    browser.eval(&format!("({ROWS}[1].click(), 0)"));
    browser.until(&format!("!({}) && {}", seen(".findings-list"), seen(".finding-one")));
    browser.screenshot("alerts-phone-one");
    for tab in ["", "&tab=rules&alert=gpu.*.temp+%3E+85+C+for+2m", "&tab=deliveries", "&tab=silences"] {
        browser.open(&format!("{}?page=alerts{tab}", server.url));
        browser.until("document.querySelector('.alerts-page .panel')");
        browser.until("__asked.length > 1");
        assert_eq!(browser.eval("document.documentElement.scrollWidth <= 390"), true, "{tab}");
    }
    browser.open(&format!("{}?page=alerts&tab=rules&alert=gpu.*.temp+%3E+85+C+for+2m", server.url));
    browser
        .until("document.querySelector('.written').dataset.checked === '3' && document.querySelector('[role=slider]')");
    let [left, top, width, _] = browser.rect("[role=slider]");
    let now = "+document.querySelector('[role=slider]').getAttribute('aria-valuenow')";
    browser.touch("touchStart", &[(left + width / 2.0, top)]);
    browser.touch("touchMove", &[(left + width / 2.0, top + 40.0)]);
    browser.touch("touchEnd", &[]);
    browser.until(&format!("{now} < 85"));
    browser.screenshot("alerts-phone-rule");
    no_faults(&browser);
}
