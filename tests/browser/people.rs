//! Tests people and their machines on the page: sign-in, the first admin, confirmation of the password, and adding and
//! naming machines. The hub is a script in front of a server without accounts, so that a test can choose each of its
//! answers.

use super::no_faults;
use watchglass_tests::browser::Browser;
use watchglass_tests::crowd::Crowd;

/// A hub in a page: it answers in the shapes of `shared::session`, rejects sockets while no user is signed in, and
/// records the requests.
pub(super) const HUB: &str = r##"
window.__asked = [];
const hub = window.__hub = { old: true, accounts: sessionStorage.fresh !== "yes",
  agents: [
    { id: "aaaabbbbccccddddeeeeffffgg", name: "node-01", team: "t1", state: "live", since: 1, host: "node-01.lab",
      platform: "Linux", version: "0.2.0", labels: { rack: "r1" }, joined: 1, seen: 1, key: "k1" },
    { id: "hhhhiiiijjjjkkkkllllmmmmnn", name: "node-99", team: "t1", state: "pending", host: "node-99.lab", labels: {}, joined: 2 },
  ] };
const session = () => ({ account: sessionStorage.signed === "yes" ? { id: "p1", name: "amira", hub_admin: true } : null,
  teams: sessionStorage.signed === "yes" ? [{ id: "t1", name: "main", role: "admin" }] : [],
  share: null, ways: ["password", "keycloak", "github"], setup: !hub.accounts, plain_http: false });
const real = window.fetch;
window.fetch = (path, init) => {
  const url = String(path), method = (init && init.method) || "GET";
  if (!url.startsWith("api/v1/")) return real.call(window, path, init);
  const body = init && init.body ? JSON.parse(init.body) : null;
  window.__asked.push([method, url, body]);
  const answer = (status, body) => Promise.resolve(new Response(JSON.stringify(body), { status }));
  const agent = () => hub.agents.find(a => url.includes(a.id));
  switch (method + " " + url.replace(/[a-z]{26}/, "ID")) {
    case "GET api/v1/session": return answer(200, session());
    case "POST api/v1/session/setup":
      if (body.code !== "abc123") return answer(403, { error: "This code is not the newest; a start of the hub prints one." });
      hub.accounts = true; sessionStorage.fresh = "no"; sessionStorage.signed = "yes"; return answer(200, session());
    case "POST api/v1/session":
      if (body.password !== "correct horse battery") return answer(401, { error: "Name or password is wrong.", sign_in: true });
      sessionStorage.signed = "yes"; return answer(200, session());
    case "DELETE api/v1/session": sessionStorage.signed = "no"; return answer(200, {});
    case "POST api/v1/session/again":
      if (body.password !== "correct horse battery") return answer(403, { error: "The password is wrong." });
      hub.old = false; return answer(200, session());
    case "GET api/v1/teams/t1/agents": return answer(200, { agents: hub.agents });
    case "POST api/v1/teams/t1/join":
      if (hub.old) return answer(403, { error: "Sign in again.", again: true });
      return answer(201, { id: "j1", key: "wg_j_1_secret", line: "watchglass agent --hub https://hub.example --key wg_j_1_secret" });
    case "POST api/v1/teams/t1/agents/ID/approve": agent().state = "live"; return answer(200, agent());
    case "PATCH api/v1/teams/t1/agents/ID": Object.assign(agent(), body); return answer(200, agent());
    case "DELETE api/v1/teams/t1/agents/ID": agent().state = "revoked"; return answer(200, {});
    case "DELETE api/v1/sources/ID": hub.agents = hub.agents.filter(a => !url.includes(a.id)); return answer(200, {});
  }
  return answer(404, { error: "There is no such path." });
};
window.WebSocket = class extends WebSocket {
  constructor(url) { if (sessionStorage.signed !== "yes" && sessionStorage.share !== "yes") throw new DOMException("401"); super(url); }
};
"##;

const SIGN_IN: &str = r#"document.querySelector("form[data-form=sign-in]")"#;

fn hub() -> (Crowd, Browser) {
    let crowd = Crowd::new(6);
    let browser = Browser::start();
    browser.before_each_page(HUB);
    (crowd, browser)
}

/// Types into a field in place of its text. A field of a dialog that is not open yet cannot have the focus, so this
/// waits for it.
#[track_caller]
pub(super) fn fill(browser: &Browser, field: &str, text: &str) {
    browser.until(&format!(
        "(f => f && (f.focus(), f.select(), document.activeElement === f))(document.querySelector({field:?}))"
    ));
    browser.insert(text);
}

/// Opens a page, and signs the one admin in.
#[track_caller]
pub(super) fn sign_in(browser: &Browser, url: &str) {
    browser.open(url);
    browser.until(SIGN_IN);
    fill(browser, "form [name=name]", "amira");
    fill(browser, "form [name=password]", "correct horse battery");
    browser.click("form[data-form=sign-in] button");
    browser.until(r#"document.documentElement.dataset.role === "hub-admin""#);
}

#[test]
fn nobody_sees_a_machine_before_signing_in_and_the_wanted_page_comes_after() {
    let (crowd, browser) = hub();
    browser.open(&format!("{}?page=fleet&find=node-03", crowd.url));
    browser.until(SIGN_IN);
    assert_eq!(browser.eval("document.documentElement.dataset.role"), "none");
    browser.until("document.activeElement.name === 'name'");
    fill(&browser, "form [name=name]", "amira");
    fill(&browser, "form [name=password]", "wrong");
    browser.click("form[data-form=sign-in] button");
    browser.until("document.querySelector('.wrong').innerText.includes('is wrong')");
    browser.screenshot("signin-dark");
    fill(&browser, "form [name=password]", "correct horse battery");
    browser.click("form[data-form=sign-in] button");
    browser.until("document.querySelectorAll('#hosts tbody tr').length === 1");
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('find')"), "node-03");
    assert_eq!(browser.eval("document.documentElement.dataset.team"), "main");

    // Signed out again: the shown data is gone.
    browser.click(".person summary");
    browser.click("[data-do=sign-out]");
    browser.until(SIGN_IN);
    assert_eq!(browser.eval("document.body.innerText.includes('node-03')"), false);
    browser.until("document.body.innerText.includes('this page is restored')");
    assert_eq!(browser.eval("document.querySelector('form [name=name]').value"), "amira");
    no_faults(&browser);
}

#[test]
fn the_first_admin_needs_the_code_which_leaves_the_address_at_once() {
    let (crowd, browser) = hub();
    browser.open(&crowd.url);
    browser.eval("sessionStorage.fresh = 'yes'");
    browser.reload();
    browser.until("document.body.innerText.includes('has no account yet')");
    browser.open(&format!("{}?w=15m#setup=abc123", crowd.url));
    browser.until("document.querySelector('form[data-form=setup]')");
    assert_eq!(browser.eval("location.hash + location.search"), "?w=15m");
    fill(&browser, "form [name=name]", "amira");
    fill(&browser, "form [name=password]", "short");
    fill(&browser, "form [name=same]", "short");
    browser.click("form[data-form=setup] button");
    browser.until("document.querySelector('.wrong').innerText.includes('12 characters')");
    for field in ["password", "same"] {
        fill(&browser, &format!("form [name={field}]"), "correct horse battery");
    }
    browser.click("form[data-form=setup] button");
    browser.until(r#"document.documentElement.dataset.role === "hub-admin" && document.querySelector(".fleet")"#);
    let sent = browser.eval("window.__asked.find(a => a[1].endsWith('setup'))[2].code");
    assert_eq!(sent, "abc123");
    no_faults(&browser);
}

#[test]
fn a_line_is_made_after_the_password_again_and_a_new_machine_stands_there_with_its_first_values() {
    let (crowd, browser) = hub();
    sign_in(&browser, &format!("{}?page=machines", crowd.url));
    browser.until("document.querySelectorAll('#agents tbody tr').length === 2");
    browser.click("[data-do=add]");
    browser.until("document.getElementById('join').open");
    browser.until("document.querySelector('.steps [data-row]').innerText.includes('node-99')");
    browser.click(".join [data-do=join]");
    browser.until("document.getElementById('again').open");
    fill(&browser, "#again input", "no");
    browser.strike("Enter", 0);
    browser.until("document.querySelector('#again .wrong').innerText.includes('wrong')");
    fill(&browser, "#again input", "correct horse battery");
    browser.strike("Enter", 0);
    browser.until("!document.getElementById('again').open");
    browser.until("document.getElementById('join-line').innerText.includes('--key wg_j_1_secret')");
    browser.click("[data-do=copy]");
    browser.until("document.querySelector('[data-do=copy]').innerText === 'Copied'");
    crowd.join("node-07");
    crowd.pass(2);
    browser.until("document.querySelector('[data-came=node-07]').innerText.includes('joined')");
    let first = "document.querySelector('[data-came=node-07]').innerText";
    browser.until(&format!("{first}.includes('8 GPUs') && {first}.includes('%')"));
    browser.screenshot("join-dark");
    browser.click(".steps [data-do=approve]");
    browser.until("!document.querySelector('.steps [data-row]')");
    no_faults(&browser);
}

#[test]
fn machines_are_renamed_labeled_revoked_and_removed() {
    let (crowd, browser) = hub();
    sign_in(&browser, &format!("{}?page=machines", crowd.url));
    let row = |name: &str| {
        format!("[...document.querySelectorAll('#agents tbody tr')].find(r => r.innerText.includes({name:?}))")
    };
    browser.until(&row("node-99"));
    browser.screenshot("machines-dark");
    browser.click("tr[data-row^=hhhh] [data-do=approve]");
    browser.until("document.querySelector('tr[data-row^=hhhh]').dataset.state === 'live'");
    browser.click("tr[data-row^=hhhh] [data-do=rename]");
    browser.until("document.activeElement.name === 'value'");
    fill(&browser, "form[data-form=rename] input", "gpu-7");
    browser.strike("Enter", 0);
    browser.until(&row("gpu-7"));
    browser.click("tr[data-row^=hhhh] [data-do=label]");
    browser.until("document.querySelector('form[data-form=label] input')");
    fill(&browser, "form[data-form=label] input", "rack");
    browser.strike("Enter", 0);
    browser.until("document.querySelector('form[data-form=label] .wrong').innerText.includes('key=value')");
    fill(&browser, "form[data-form=label] input", "rack=r7 room=2");
    browser.strike("Enter", 0);
    browser.until(&row("rack:r7 room:2"));
    browser.click("tr[data-row^=hhhh] [data-do=revoke]");
    browser.until("document.querySelector('form[data-form=revoke]')");
    browser.click("form[data-form=revoke] button");
    browser.until("document.querySelector('tr[data-row^=hhhh]').dataset.state === 'revoked'");
    browser.click("tr[data-row^=hhhh] [data-do=remove]");
    browser.until("document.querySelector('form[data-form=remove] input')");
    fill(&browser, "form[data-form=remove] input", "gpu-7");
    browser.strike("Enter", 0);
    browser.until("document.querySelectorAll('#agents tbody tr').length === 1");
    no_faults(&browser);
}
