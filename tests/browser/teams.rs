//! Tests the administration of teams, machines and accounts of a hub on the page. The hub is a script, as in `people`.

use super::no_faults;
use super::people::fill;
use super::team::at;
use watchglass_tests::browser::Browser;
use watchglass_tests::hub::{Hub, PASSWORD};

/// Answers of the hub of `team` for more paths: `shared::team` of several teams, and accounts.
pub(super) const TEAMS: &str = r##"
const several = window.__several = {
  teams: [{ id: "t1", name: "main", role: "admin", members_invite: false, share_links: true, user_names: true, default_view: null }],
  sources: [{ id: "a1", name: "node-01", home: true }, { id: "a2", name: "node-02", home: false }],
  accounts: [{ id: "p1", name: "amira", hub_admin: true, disabled: false, teams: [{ id: "t1", name: "main", role: "admin" }], created: 1700000000 },
    { id: "p2", name: "chen", hub_admin: false, disabled: false, teams: [{ id: "t1", name: "main", role: "member" }], created: 1700000000 },
    { id: "p3", name: "priya", hub_admin: false, disabled: true, teams: [{ id: "t1", name: "main", role: "viewer" }], created: 1700000000 }],
};
if (sessionStorage.two === "yes") several.teams.push({ id: "t2", name: "vision", role: "admin", members_invite: true, share_links: true, user_names: true, default_view: null });
const oneTeam = window.fetch;
window.fetch = async (path, init) => {
  const url = String(path), method = (init && init.method) || "GET", at = url.split("?")[0];
  const body = init && init.body ? JSON.parse(init.body) : null, last = at.split("/").pop();
  const answer = (status, told) => { window.__asked.push([method, url, body]); return new Response(JSON.stringify(told), { status }); };
  switch (method + " " + at.replace("api/v1/", "")) {
    case "GET session": {
      const told = await (await oneTeam(path, init)).json();
      if (told.account) told.teams = several.teams.map(({ id, name, role }) => ({ id, name, role }));
      return new Response(JSON.stringify(told), { status: 200 });
    }
    case "GET teams": return answer(200, { teams: several.teams });
    case "POST teams": several.teams.push({ id: "t2", name: body.name, role: "admin", members_invite: false, share_links: true, user_names: true, default_view: null });
      return answer(201, several.teams[1]);
    case "PATCH teams/t2": Object.assign(several.teams[1], body); return answer(200, several.teams[1]);
    case "DELETE teams/t2": if (body.name !== several.teams[1].name) return answer(400, { error: "Type the team's name." });
      several.teams.pop(); return answer(200, {});
    case "GET teams/t1": return answer(200, { ...(await (await oneTeam(path, init)).json()), sources: several.sources });
    case "GET sources": return answer(200, { sources: ["node-01", "node-02", "node-03"].map((name, id) =>
      ({ id, key: name, name, interval: 1, facts: {}, last: 1700000000, state: "live", since: 1700000000, labels: {}, series: 4, retention: 3600 })) });
    case "PUT sources/node-03/grants": several.sources.push({ id: "a3", name: "node-03", home: false }); return answer(200, { teams: [] });
    case "PUT sources/a2/grants": several.sources.splice(1, 1); return answer(200, { teams: [] });
    case "GET accounts": return answer(200, { accounts: several.accounts });
    case "PATCH accounts/p2": Object.assign(several.accounts[1], body); return answer(200, several.accounts[1]);
    case "PATCH accounts/p3": Object.assign(several.accounts[2], body); return answer(200, several.accounts[2]);
    case "POST accounts/p2/erase": several.accounts.splice(1, 1); return answer(200, { name: "erased-1a2b3c4d", rows: 12 });
    case "DELETE accounts/p3": several.accounts = several.accounts.filter(one => one.id !== last); return answer(200, {});
  }
  return oneTeam(path, init);
};
"##;

/// An expression: the body, as text, of the last request with this method whose address ends with `end`.
fn sent(method: &str, end: &str) -> String {
    format!(
        "JSON.stringify((window.__asked.filter(a => a[0] === {method:?} && a[1].split('?')[0].endsWith({end:?})).pop() || [])[2])"
    )
}

/// Opens the form of an action, types into its first field, and sends it.
#[track_caller]
fn deed(browser: &Browser, button: &str, form: &str, typed: Option<&str>) {
    browser.until(&format!("document.querySelector({button:?})"));
    browser.click(button);
    browser.until(&format!("document.querySelector('form[data-form={form}]')"));
    if let Some(text) = typed {
        fill(browser, &format!("form[data-form={form}] input"), text);
    }
    browser.click(&format!("form[data-form={form}] button"));
    browser.until("!document.getElementById('deed').open");
}

#[test]
fn teams_are_made_renamed_and_removed_and_with_one_of_them_none_is_shown() {
    let (_crowd, browser) = at("team");
    browser.before_each_page(TEAMS);
    browser.reload();
    browser.until("document.querySelector('#accounts tbody tr')");
    assert_eq!(browser.eval("document.querySelector('#teams, #seen, .ways select')"), serde_json::Value::Null);
    assert_eq!(browser.eval("/main/.test(document.getElementById('page').innerText)"), false, "no team by its name");
    deed(&browser, "[data-do=new-team]", "new-team", Some("vision"));
    assert_eq!(browser.eval(&sent("POST", "/teams")), "{\"name\":\"vision\"}");
    browser.until("document.querySelector('#teams [data-row=t2]')");
    browser.until("document.querySelectorAll('.ways select option').length === 2");
    browser.eval("document.getElementById('teams').scrollIntoView({ block: 'center' })");
    browser.screenshot("teams-dark");
    deed(&browser, "#teams [data-row=t2] [data-do=rename]", "rename-team", Some("sight"));
    browser.until("document.querySelector('#teams [data-row=t2]').innerText.includes('sight')");
    deed(&browser, "#teams [data-row=t2] [data-do=remove]", "remove-team", Some("sight"));
    assert_eq!(browser.eval(&sent("DELETE", "/teams/t2")), "{\"name\":\"sight\"}");
    browser.until("!document.getElementById('teams')");
    no_faults(&browser);
}

#[test]
fn a_team_is_let_see_a_machine_and_loses_it() {
    let (_crowd, browser) = at("team");
    browser.before_each_page(TEAMS);
    browser.eval("sessionStorage.two = 'yes'");
    browser.reload();
    browser.until("document.querySelector('#seen [data-row=a2]')");
    assert_eq!(
        browser.eval("document.querySelector('#seen [data-row=a1] [data-do]')"),
        serde_json::Value::Null,
        "what joined here stays"
    );
    deed(&browser, "[data-do=grant]", "grant", None);
    assert_eq!(browser.eval(&sent("PUT", "/sources/node-03/grants")), "{\"add\":[\"main\"]}");
    browser.until("document.querySelector('#seen [data-row=a3]')");
    deed(&browser, "#seen [data-row=a2] [data-do=revoke-grant]", "revoke-grant", None);
    assert_eq!(browser.eval(&sent("PUT", "/sources/a2/grants")), "{\"remove\":[\"main\"]}");
    browser.until("!document.querySelector('#seen [data-row=a2]')");
    no_faults(&browser);
}

#[test]
fn accounts_are_disabled_promoted_removed_and_erased() {
    let (_crowd, browser) = at("team");
    browser.before_each_page(TEAMS);
    browser.reload();
    let row = |id: &str| format!("document.querySelector('#accounts [data-row={id}]')");
    browser.until(&row("p3"));
    assert_eq!(browser.eval(&format!("{}.querySelector('[data-do]')", row("p1"))), serde_json::Value::Null, "oneself");
    deed(&browser, "#accounts [data-row=p3] [data-do=enable]", "enable", None);
    assert_eq!(browser.eval(&sent("PATCH", "/accounts/p3")), "{\"disabled\":false}");
    browser.until(&format!("{}.innerText.includes('viewer')", row("p3")));
    deed(&browser, "#accounts [data-row=p2] [data-do=promote]", "promote", None);
    browser.until(&format!("{}.innerText.includes('hub admin')", row("p2")));
    deed(&browser, "#accounts [data-row=p2] [data-do=erase-account]", "erase-account", None);
    browser.until(&format!("!{}", row("p2")));
    deed(&browser, "#accounts [data-row=p3] [data-do=delete]", "delete", None);
    // With one person there is no list of accounts.
    browser.until("!document.getElementById('accounts')");
    no_faults(&browser);
}

/// The page of a hub's admin, on a real hub.
pub(super) fn at_real_hub() -> (Hub, Browser) {
    let hub = Hub::start(["--no-local"]);
    let browser = Browser::start();
    browser.open(&format!("http://{}/?page=team", hub.server.addr()));
    fill(&browser, "form[data-form=sign-in] [name=name]", "root");
    fill(&browser, "form[data-form=sign-in] [name=password]", PASSWORD);
    browser.click("form[data-form=sign-in] .primary");
    browser.until("document.querySelector('#members tbody tr') && document.querySelector('#accounts tbody tr')");
    (hub, browser)
}

/// The row of a table that contains a name.
fn named(table: &str, name: &str) -> String {
    format!(
        "[...document.querySelectorAll('#{table} tbody tr')].find(r => r.querySelector('th').innerText.trim().startsWith({name:?}))"
    )
}

/// Opens the form of an action of a named row, and sends it with this text in its first field.
#[track_caller]
fn deed_of(browser: &Browser, (table, name): (&str, &str), what: &str, typed: Option<&str>) {
    browser.until(&named(table, name));
    browser.eval(&format!("{}.querySelector('[data-do={what}]').click()", named(table, name)));
    let form = if table == "teams" { format!("{what}-team") } else { what.to_string() };
    let field = format!("form[data-form={form}] input");
    browser.until(&format!("document.querySelector('form[data-form={form}] button')"));
    if let Some(text) = typed {
        fill(browser, &field, text);
    }
    browser.click(&format!("form[data-form={form}] button"));
    browser.until("!document.getElementById('deed').open");
}

#[test]
fn on_a_real_hub_teams_accounts_and_logins_are_what_its_admin_made_them() {
    let (hub, browser) = at_real_hub();
    let told = |path: &str| {
        let answer = hub.send("GET", path, &[&hub.cookie("root")], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str::<serde_json::Value>(&answer.body).expect("JSON")
    };
    browser.until("document.querySelectorAll('#teams tbody tr').length === 2");
    deed(&browser, "[data-do=new-team]", "new-team", Some("vision"));
    deed_of(&browser, ("teams", "vision"), "rename", Some("sight"));
    browser.until(&named("teams", "sight"));
    let names = |list: &serde_json::Value| {
        list.as_array()
            .into_iter()
            .flatten()
            .map(|one| one["name"].as_str().unwrap_or("").to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&told("/api/v1/teams")["teams"]), ["main", "other", "sight"]);
    deed_of(&browser, ("teams", "sight"), "remove", Some("sight"));
    browser.until(&format!("!({})", named("teams", "sight")));
    assert_eq!(names(&told("/api/v1/teams")["teams"]), ["main", "other"]);

    deed_of(&browser, ("members", "mike"), "logins", Some("mike mschulz"));
    browser.until(&format!("{}.innerText.includes('mike mschulz')", named("members", "mike")));
    let mike = told("/api/v1/teams/main")["members"].as_array().expect("people").clone();
    let mike = mike.iter().find(|one| one["name"] == "mike").expect("mike")["logins"].clone();
    assert_eq!(mike, serde_json::json!(["mike", "mschulz"]));

    deed_of(&browser, ("accounts", "vera"), "disable", None);
    browser.until(&format!("{}.innerText.includes('disabled')", named("accounts", "vera")));
    assert_eq!(hub.send("GET", "/api/v1/me", &[&hub.cookie("vera")], "").status, 401, "at once");
    deed_of(&browser, ("accounts", "vera"), "delete", None);
    browser.until(&format!("!({})", named("accounts", "vera")));
    assert!(!names(&told("/api/v1/accounts")["accounts"]).contains(&"vera".to_string()));
    browser.screenshot("teams-real-dark");
}

#[test]
fn the_admin_of_a_hub_reads_how_many_machines_were_turned_away_and_why() {
    let (hub, browser) = at_real_hub();
    browser.open(&format!("http://{}/?page=machines", hub.server.addr()));
    browser.until("document.getElementById('agents')");
    assert_eq!(browser.eval("document.querySelector('[data-say=turned-away]')"), serde_json::Value::Null);
    let head = ["Authorization: Bearer wg_a_none", "Sec-WebSocket-Protocol: watchglass.agent.1"];
    assert_eq!(hub.send("GET", "/api/v1/ingest", &head, "").status, 401);
    browser.reload();
    browser.until("document.querySelector('[data-say=turned-away]')?.innerText.endsWith('1 invalid key.')");
}
