//! Tests the pages of a hub's people: members, keys, the user's own account, views, share links, audit and usage. The
//! hub is a script, as in `people`.

use super::no_faults;
use super::people::{HUB, fill, sign_in};
use watchglass_tests::browser::Browser;
use watchglass_tests::crowd::Crowd;

/// Answers of the hub of `people` for more paths: `shared::{team, me, views, audit}`.
pub(super) const TEAM: &str = r##"
const more = window.__more = {
  members: [{ id: "p1", name: "amira", role: "admin", disabled: false, seen: Date.now() / 1000 },
    { id: "p2", name: "chen", role: "member", disabled: false, seen: Date.now() / 1000 - 7200 },
    { id: "p3", name: "priya", role: "viewer", disabled: true }],
  invites: [], services: [{ id: "s1", name: "ci", role: "member", disabled: false, keys: 1, made: 1700000000 }],
  keys: [{ id: "k2", name: "nightly", team: "main", service: "ci", scopes: ["runs:write"], made: 1700000000,
    ends: Date.now() / 1000 + 86400 * 6, used: null, network: null }],
  joins: [{ id: "j7", made: 1700000000, ends: null, left: 14, used: 2, labels: { rack: "r8" }, by_name: true, ephemeral: false, approve: false, as: null }],
  own: [], sessions: [
    { id: "c1", kind: "password", made: 1700000000, seen: Date.now() / 1000, ends: Date.now() / 1000 + 99999, network: "10.2.4.17",
      agent: "Mozilla/5.0 (X11; Linux x86_64) Chrome/141.0 Safari/537.36", current: true },
    { id: "c2", kind: "code", made: 1700000000, seen: 1700000000, ends: Date.now() / 1000 + 99999, network: "10.2.9.1", agent: "curl/8", current: false }],
  views: [{ id: "all", team: null, owner: null, own: false, scope: "builtin", name: "All nodes", query: "w=5m&page=fleet", version: 1, updated: 1, default: true },
    { id: "v1", team: "t1", owner: "amira", own: true, scope: "team", name: "rack 2", query: "w=5m&page=fleet&find=rack:r02", version: 3, updated: 1, default: false }],
  shares: [{ id: "h1", team: "t1", name: "wall", by: "chen", sources: ["node-01", "node-02"], span: null, window: 300, note: "lab",
    made: 1700000000, ends: Date.now() / 1000 + 86400 * 23, opens: 3, opened: Date.now() / 1000 - 720 }],
  team: { id: "t1", name: "main", role: "admin", members_invite: false, share_links: true, user_names: true, default_view: null },
};
// A page here detects accounts as by a hub's greeting: its first socket is refused.
const Socket = window.WebSocket;
window.WebSocket = class extends Socket {
  constructor(url) { if (!window.__asked.some(a => a[1].startsWith("api/v1/session"))) throw new DOMException("401"); super(url); }
};
const hubs = window.fetch;
window.fetch = (path, init) => {
  const url = String(path), method = (init && init.method) || "GET", at = url.split("?")[0];
  const body = init && init.body ? JSON.parse(init.body) : null, last = at.split("/").pop();
  const answer = (status, body) => { window.__asked.push([method, url, JSON.parse((init && init.body) || "null")]);
    return Promise.resolve(new Response(JSON.stringify(body), { status })); };
  const end = list => { more[list] = more[list].filter(x => x.id !== last); return answer(200, {}); };
  const make = (list, made, told) => { more[list].push(made); return answer(201, told); };
  const now = Math.floor(Date.now() / 1000), spot = method + " " + at.replace("api/v1/", "");
  switch (spot) {
    case "GET teams/t1": return answer(200, { ...more.team, members: more.members, sources: [] });
    case "PATCH teams/t1": Object.assign(more.team, body); return answer(200, more.team);
    case "GET teams/t1/invites": return answer(200, { invites: more.invites });
    case "POST teams/t1/invites": return make("invites", { id: "i1", role: body.role, email: body.email || null, by: "amira", made: now, ends: now + 604800 },
      { id: "i1", url: "/#invite=c0de" });
    case "GET teams/t1/services": return answer(200, { services: more.services });
    case "POST teams/t1/services": return make("services", { id: "s2", name: body.name, role: body.role, disabled: false, keys: 0, made: now }, { id: "s2" });
    case "PATCH teams/t1/services/s1": Object.assign(more.services[0], body); return answer(200, more.services[0]);
    case "POST teams/t1/services/s1/keys": return make("keys", { id: "k3", name: body.name, team: "main", service: "ci", scopes: body.scopes, made: now,
      ends: now + 7776000, used: null }, { id: "k3", key: "wg_s_k3_secret" });
    case "GET teams/t1/keys": return answer(200, { keys: more.keys });
    case "GET teams/t1/join": return answer(200, { joins: more.joins });
    case "GET me": return answer(200, { id: "p1", name: "amira", email: "amira@example.org", email_vouched: true,
      tell_finished: true, tell_crashed: false, hub_admin: true, password: true,
      teams: [{ id: "t1", name: "main", role: "admin" }], created: 1700000000 });
    case "PUT me/password": return body.old === "correct horse battery" ? answer(200, {}) : answer(403, { error: "The old password is wrong." });
    case "GET me/identities": return answer(200, { identities: [{ id: "w1", kind: "password", issuer: "password", subject: "amira" }] });
    case "GET me/sessions": return answer(200, { sessions: more.sessions });
    case "GET me/keys": return answer(200, { keys: more.own });
    case "GET views": return answer(200, { views: more.views });
    case "POST views": return make("views", { id: "v2", team: "t1", owner: "amira", own: true, scope: body.scope, name: body.name, query: body.query,
      version: 1, updated: now, default: false }, { id: "v2" });
    case "PUT views/v1": Object.assign(more.views[1], body, { version: body.version + 1 }); return answer(200, more.views[1]);
    case "GET shares": return answer(200, { shares: more.shares });
    case "POST shares": return make("shares", { ...more.shares[0], id: "h2", name: "a page", note: body.note || "" }, { id: "h2", url: "https://hub.example/#share=c0de" });
    case "POST shares/open": if (body.code !== "c0de") return answer(404, { error: "This link has ended." });
      sessionStorage.share = "yes"; return answer(200, { account: null, teams: [], share: "h1", shared: { id: "h1", query: "w=5m&page=fleet" }, ways: [], setup: false });
    case "GET session": if (sessionStorage.share !== "yes") break;
      return answer(200, { account: null, teams: [], share: "h1", ways: ["password"], setup: false,
        shared: { id: "h1", name: "wall", by: "chen", query: "w=5m&page=fleet", span: null, window: 300, ends: now + 86400 } });
    case "GET audit": return answer(200, { unwritten: 40, more: !url.includes("before"), entries: url.includes("before")
      ? [{ id: 1, t: 1700000000, who: "chen", by: "s", network: "10.2.0.0", action: "team.role", object: "priya", before: "member", after: "viewer", result: "ok" }]
      : [{ id: 3, t: now, who: "amira", by: "s", network: "10.2.4.17", action: "key.add", object: "nightly", before: null, after: "runs:write", result: "ok" },
        { id: 2, t: now - 60, who: "nobody", by: "", network: "10.8.0.3", action: "sign-in", object: "tomas", before: null, after: null, result: "wrong password" }] });
    case "GET usage/runs": { const row = (of, gpu_hours, partial) => ({ of, name: null, runs: 2, gpu_hours, measured_gpu_hours: gpu_hours,
        idle_gpu_hours: gpu_hours / 4, energy_kwh: 1.5, cost: gpu_hours * 2, partial });
      const [by, rows] = url.includes("by=project") ? ["project", [row("vision", 48, true)]] : ["day", [row("2026-11-21", 8, false), row("2026-11-22", 40, true)]];
      return answer(200, { by, from: "2026-10-24", to: "2026-11-22", rows, total: row("", 48, true), left_out: 0, currency: "EUR",
        limit: { month: "2026-11", used: 48, limit: 100 } }); }
    case "GET usage": return answer(200, { left_out: 12, usage: url.includes("by=source")
      ? [{ day: "2026-11-22", team: "main", kind: "source", subject: "a", name: "node-01", values: { samples: 10 } },
        { day: "2026-11-22", team: "main", kind: "source", subject: "b", name: "node-02", values: { samples: 90 } }]
      : [{ day: "2026-11-21", team: "main", kind: "day", subject: "", name: "", values: { samples: 40, bytes_in: 1048576, series: 500 } },
        { day: "2026-11-22", team: "main", kind: "day", subject: "", name: "", values: { samples: 60, bytes_in: 1048576, series: 400 } }] });
    case "POST session/invite": if (body.code !== "c0de") return answer(403, { error: "This invitation was taken or has ended." });
      if (sessionStorage.signed !== "yes" && !body.password) return answer(400, { error: "A name and a password are needed." });
      window.__asked.push([method, url, body]); sessionStorage.signed = "yes"; return hubs("api/v1/session");
    case "POST session/reset": sessionStorage.signed = "yes"; return hubs("api/v1/session");
  }
  if (method === "PUT" && at.startsWith("api/v1/teams/t1/members/")) {
    const member = more.members.find(m => m.id === last); Object.assign(member, body); return answer(200, member);
  }
  if (method === "DELETE") for (const [path, list] of [["/members/", "members"], ["/invites/", "invites"], ["/keys/", "keys"], ["/services/", "services"],
    ["/join/", "joins"], ["/sessions/", "sessions"], ["/shares/", "shares"], ["/views/", "views"]]) if (at.includes(path)) return end(list);
  return hubs(path, init);
};
"##;

/// A hub with its one admin signed in, on a page of it.
pub(super) fn at(page: &str) -> (Crowd, Browser) {
    let (crowd, browser) = outside();
    sign_in(&browser, &format!("{}?page={page}", crowd.url));
    (crowd, browser)
}

/// A hub without a signed-in user.
fn outside() -> (Crowd, Browser) {
    let crowd = Crowd::new(6);
    let browser = Browser::start();
    browser.before_each_page(HUB);
    browser.before_each_page(TEAM);
    (crowd, browser)
}

fn row(table: &str, id: &str) -> String {
    format!("document.querySelector('#{table} tr[data-row={id}]')")
}

/// An expression: the body of the last request with this method whose address ends with `end`.
fn sent(method: &str, end: &str) -> String {
    format!("(window.__asked.filter(a => a[0] === {method:?} && a[1].split('?')[0].endsWith({end:?})).pop() || [])[2]")
}

#[test]
fn people_are_invited_by_a_link_get_roles_and_are_removed() {
    let (_crowd, browser) = at("team");
    browser.until(&format!("{}.innerText.includes('amira')", row("members", "p1")));
    assert_eq!(browser.eval("document.querySelector('[data-row=p1] [data-do=remove]')"), serde_json::Value::Null);
    assert_eq!(browser.eval("document.querySelector('[data-row=p3]').innerText.includes('disabled')"), true);
    // With only one team, no team name is shown.
    assert_eq!(browser.eval("/main/i.test(document.querySelector('header.bar').innerText)"), false);
    browser.eval("(s => { s.value = 'viewer'; s.dispatchEvent(new Event('change', { bubbles: true })); })(document.querySelector('[data-row=p2] select'))");
    browser.until(&format!("({}) && {}.role === 'viewer'", sent("PUT", "/members/p2"), sent("PUT", "/members/p2")));
    browser.click("[data-do=invite]");
    fill(&browser, "form[data-form=invite-somebody] [name=email]", "lena@example.org");
    browser.screenshot("invite-dark");
    browser.strike("Enter", 0);
    browser.until(
        "document.getElementById('secret') && document.getElementById('secret').innerText.endsWith('/#invite=c0de')",
    );
    assert_eq!(browser.eval("document.getElementById('secret').innerText.startsWith(location.origin)"), true);
    browser.click("[data-do=have]");
    browser.until(&format!("{} && {0}.innerText.includes('lena@example.org')", row("invites", "i1")));
    browser.screenshot("team-dark");
    browser.click("#invites [data-do=take-back]");
    browser.until("!document.getElementById('invites')");
    browser.click("[data-row=p2] [data-do=remove]");
    browser.until("document.querySelector('form[data-form=remove]')");
    browser.click("form[data-form=remove] button");
    browser.until(&format!("!{}", row("members", "p2")));
    browser.until("!document.getElementById('deed').open");
    no_faults(&browser);
}

#[test]
fn keys_are_made_with_what_they_may_shown_once_and_ended() {
    let (_crowd, browser) = at("keys");
    browser.until(&format!("{} && {0}.innerText.includes('runs:write')", row("keys", "k2")));
    browser.until(&format!("{} && {0}.innerText.includes('2 of 16')", row("joins", "j7")));
    browser.click("#services [data-do=new-key]");
    fill(&browser, "form[data-form=key] [name=name]", "deploy");
    browser.strike("Enter", 0);
    browser.until("document.querySelector('form[data-form=key] .wrong').innerText.includes('at least one')");
    browser.click("form[data-form=key] [name='data:read']");
    browser.click("form[data-form=key] button");
    browser
        .until("document.getElementById('secret') && document.getElementById('secret').innerText === 'wg_s_k3_secret'");
    browser.screenshot("key-dark");
    let body = sent("POST", "/services/s1/keys");
    assert_eq!(browser.eval(&format!("{body}.scopes.join() + ' ' + {body}.expires")), "data:read 90d");
    browser.click("[data-do=have]");
    browser.until(&row("keys", "k3"));
    browser.screenshot("keys-dark");
    browser.click("#keys [data-row=k3] [data-do=end]");
    browser.until("document.querySelector('form[data-form=end-key] button')");
    browser.click("form[data-form=end-key] button");
    browser.until(&format!("!{}", row("keys", "k3")));
    // A key of a service is revoked where it was created.
    assert_eq!(
        browser.eval("window.__asked.some(a => a[0] === 'DELETE' && a[1] === 'api/v1/teams/t1/services/s1/keys/k3')"),
        true
    );
    browser.until("!document.getElementById('deed').open");
    browser.click("#services [data-do=disable]");
    browser.until(&format!("{}.innerText.includes('its keys are disabled')", row("services", "s1")));
    no_faults(&browser);
}

#[test]
fn an_account_changes_its_password_ends_sessions_and_makes_keys() {
    let (_crowd, browser) = at("me");
    browser.until(&format!("{} && {0}.innerText.includes('Chrome on Linux')", row("sessions", "c1")));
    let labels = "[...document.querySelectorAll('.tick:has([name^=tell_])')].map(l => l.innerText.trim()).join()";
    browser.until(&format!("{labels} === 'My runs finished,My runs crashed'"));
    browser.click("[data-row=c2] [data-do=end]");
    browser.until(&format!("!{}", row("sessions", "c2")));
    browser.click("[data-do=password]");
    fill(&browser, "form[data-form=password] [name=old]", "wrong");
    fill(&browser, "form[data-form=password] [name=new]", "a new long password");
    fill(&browser, "form[data-form=password] [name=same]", "another");
    browser.strike("Enter", 0);
    browser.until("document.querySelector('form[data-form=password] .wrong').innerText.includes('differ')");
    fill(&browser, "form[data-form=password] [name=same]", "a new long password");
    browser.strike("Enter", 0);
    browser.until("document.querySelector('form[data-form=password] .wrong').innerText.includes('old password')");
    fill(&browser, "form[data-form=password] [name=old]", "correct horse battery");
    browser.strike("Enter", 0);
    browser.until("!document.getElementById('deed').open");
    browser.screenshot("me-dark");
    no_faults(&browser);
}

#[test]
fn an_invitation_makes_an_account_or_is_taken_by_who_is_signed_in() {
    let (crowd, browser) = outside();
    browser.open(&format!("{}#invite=c0de", crowd.url));
    browser.until("document.querySelector('form[data-form=invite] [name=name]')");
    assert_eq!(browser.eval("location.hash"), "");
    fill(&browser, "form [name=name]", "amira");
    fill(&browser, "form [name=password]", "correct horse battery");
    fill(&browser, "form [name=same]", "correct horse battery");
    browser.click("form[data-form=invite] button");
    browser.until(r#"document.documentElement.dataset.role === "hub-admin""#);
    // For a signed-in user the code alone is enough.
    browser.open(&format!("{}?theme=dark#invite=c0de", crowd.url));
    browser.until(
        "document.querySelector('form[data-form=invite]') && document.body.innerText.includes('You were invited as')",
    );
    browser.click("form[data-form=invite] button");
    browser.until("!document.querySelector('form[data-form=invite]') && document.querySelector('main.fleet')");
    assert_eq!(browser.eval(&format!("JSON.stringify({})", sent("POST", "session/invite"))), r#"{"code":"c0de"}"#);
    browser.open(&format!("{}?theme=light#reset=c0de", crowd.url));
    browser.until("document.querySelector('form[data-form=reset]') && !document.querySelector('form [name=name]')");
    no_faults(&browser);
}

#[test]
fn a_view_is_saved_opened_and_says_that_it_was_changed() {
    let (crowd, browser) = at("fleet");
    browser.until("document.querySelector('.views summary')");
    browser.click(".views summary");
    browser.until("document.querySelector('.views [data-row=v1]')");
    browser.screenshot("views-dark");
    browser.click(".views [data-row=v1] [data-do=open-view]");
    browser.until(
        "location.search.includes('view=v1') && new URLSearchParams(location.search).get('find') === 'rack:r02'",
    );
    browser.until("document.querySelector('.views summary') && document.querySelector('.views summary').innerText.includes('rack 2')");
    assert_eq!(browser.eval("!!document.querySelector('.views .changed')"), false);
    // A dot marks a changed filter, and Save stores it.
    fill(&browser, "#filter", "rack:r01");
    browser.until("document.querySelector('.views .changed')");
    browser.click(".views summary");
    browser.until("document.querySelector('[data-do=save-view]')");
    browser.click("[data-do=save-view]");
    browser.until("!document.querySelector('.views .changed')");
    let body = sent("PUT", "/views/v1");
    assert_eq!(
        browser.eval(&format!("{body}.version + ' ' + new URLSearchParams({body}.query).get('find')")),
        "3 rack:r01"
    );
    browser.click("[data-do=save-as]");
    fill(&browser, "form[data-form=view] [name=name]", "mine");
    browser.strike("Enter", 0);
    browser.until("location.search.includes('view=v2')");
    drop(crowd);
    no_faults(&browser);
}

#[test]
fn the_menu_of_views_stands_on_the_page_of_a_machine_too_and_keeps_what_it_shows() {
    let (crowd, browser) = outside();
    sign_in(&browser, &format!("{}?source=node-01", crowd.url));
    browser.until("document.querySelector('.bar .views summary') && document.querySelector('main#page')");
    browser.click(".views summary");
    browser.until("document.querySelector('.views [data-row=v1]')");
    browser.click(".views [data-do=save-as]");
    fill(&browser, "form[data-form=view] [name=name]", "node one");
    browser.strike("Enter", 0);
    browser.until("location.search.includes('view=v2')");
    let query = format!("new URLSearchParams({}.query).get('source')", sent("POST", "/views"));
    assert_eq!(browser.eval(&query), "node-01");
    browser.until("document.querySelector('.views summary').innerText.includes('node one')");
    drop(crowd);
}

#[test]
fn what_is_shown_is_shared_by_a_link_which_shows_it_and_nothing_else() {
    let (crowd, browser) = at("fleet");
    browser.until("document.querySelector('.views summary')");
    browser.click(".views summary");
    browser.until("document.querySelector('.views [data-do=share]')");
    browser.click(".views [data-do=share]");
    fill(&browser, "form[data-form=share] [name=note]", "for the wall");
    browser.strike("Enter", 0);
    browser.until(
        "document.getElementById('secret') && document.getElementById('secret').innerText.includes('#share=c0de')",
    );
    assert_eq!(browser.eval(&format!("{}.query.includes('page=fleet')", sent("POST", "/shares"))), true);
    browser.open(&format!("{}?page=links", crowd.url));
    browser.until(&format!("{} && {0}.innerText.includes('node-01 and 1 more, live')", row("shares", "h1")));
    browser.screenshot("links-dark");
    browser.click("[data-row=h1] [data-do=end]");
    browser.until("document.querySelector('form[data-form=end-share] button')");
    browser.click("form[data-form=end-share] button");
    browser.until(&format!("!{}", row("shares", "h1")));
    // Another user opens it.
    browser.eval("sessionStorage.signed = 'no'");
    browser.open(&format!("{}?theme=dark#share=wrong", crowd.url));
    browser
        .until("document.querySelector('.wrong') && document.querySelector('.wrong').innerText.includes('has ended')");
    assert_eq!(browser.eval("location.hash"), "", "a code stays in no address, whether it holds or not");
    browser.open(&format!("{}?theme=light#share=c0de", crowd.url));
    browser.until("location.search.includes('share=h1') && !location.hash");
    browser.until("document.querySelector('[data-shared]') && document.querySelector('[data-shared]').innerText.includes('Shared by chen')");
    assert_eq!(browser.eval("document.documentElement.dataset.role"), "share");
    // The findings are asked for as by the link, which is one of several in the browser.
    browser.until(
        "window.__asked.some(([method, path]) => method === 'GET' && /api.v1.findings[?].*share=h1/.test(path))",
    );
    let seen =
        "['.nav', '.views', '.person'].filter(s => (e => e && e.checkVisibility())(document.querySelector(s))).join()";
    assert_eq!(browser.eval(seen), "");
    browser.screenshot("shared-dark");
}

#[test]
fn the_audit_log_and_what_was_used_are_read() {
    let (crowd, browser) = at("audit");
    browser.until("document.querySelectorAll('#audit tbody tr').length === 2");
    assert_eq!(browser.eval("document.querySelector('#audit tbody').innerText.includes('nightly: runs:write')"), true);
    browser.until("document.querySelector('[data-say=unwritten]').innerText.includes('40 more failed sign-ins')");
    browser.screenshot("audit-dark");
    browser.click("[data-do=older]");
    browser.until("document.querySelectorAll('#audit tbody tr').length === 3");
    assert_eq!(
        browser.eval("document.querySelector('#audit tr[data-row=\"1\"]').innerText.includes('member to viewer')"),
        true
    );
    browser.until("!document.querySelector('[data-do=older]')");
    fill(&browser, ".people [name=who]", "amira");
    browser.strike("Enter", 0);
    browser.until("window.__asked.some(a => a[1].includes('who=amira'))");
    browser.open(&format!("{}?page=usage", crowd.url));
    browser.until("document.querySelectorAll('#usage tbody tr').length === 2");
    let data = "document.querySelector('[aria-label=\"Total of data\"] .tile .number').innerText";
    assert_eq!(browser.eval(data), "100");
    browser.until("document.querySelectorAll('#gpu-time tbody tr').length === 2");
    let tile = |id: &str| browser.eval(&format!("document.querySelector('[data-tile={id}] .number').innerText"));
    assert_eq!((tile("gpu-hours"), tile("idle"), tile("cost")), ("48".into(), "12".into(), "≥ 96 EUR".into()));
    assert_eq!(tile("limit"), "48 of 100");
    browser.click("[data-do=gpu-time-limit]");
    fill(&browser, "form[data-form=gpu-hours] [name=gpu_hours]", "1.5");
    browser.strike("Enter", 0);
    browser.until("document.querySelector('form[data-form=gpu-hours]').innerText.includes('whole number of hours')");
    fill(&browser, "form[data-form=gpu-hours] [name=gpu_hours]", "250");
    browser.strike("Enter", 0);
    browser.until("!document.querySelector('form[data-form=gpu-hours]')");
    assert_eq!(browser.eval(&sent("PATCH", "/teams/t1")), serde_json::json!({ "gpu_hours": 250 }));
    let first = "document.querySelector('#gpu-time tbody tr').innerText.replace(/\\s+/g, ' ').trim()";
    assert_eq!(browser.eval(first), "2026-11-22 2 40 10 ≥ 1.5 ≥ 80 EUR", "the newest day first");
    browser.until("document.querySelector('[data-say=partial]')");
    browser.click("[data-do=gpu-time-by][data-choice=project]");
    browser.until("document.querySelector('#gpu-time tbody tr').innerText.startsWith('vision')");
    browser.click("[data-do=gpu-time-span][data-choice='-6d']");
    let csv = "document.querySelector('[data-do=gpu-time-csv]').getAttribute('href')";
    browser.until(&format!("{csv}.includes('by=project&from=-6d') && {csv}.endsWith('format=csv')"));
    assert_eq!(browser.eval("document.querySelector('#usage tbody th').innerText.trim()"), "2026-11-22");
    browser.click(".people [data-do=by]:nth-child(2)");
    browser.until("document.querySelector('#usage tbody th').innerText.trim() === 'node-02'");
    assert_eq!(
        browser.eval("document.querySelector('[data-do=csv]').getAttribute('href').endsWith('by=source&format=csv')"),
        true
    );
    browser.until("document.querySelector('[data-say=left-out]').innerText.includes('12 rows were dropped')");
    browser.screenshot("usage-dark");
    no_faults(&browser);
}
