//! Checks the page for users who cannot see, with axe-core: each state, in both themes, on a screen and on a phone.

use super::{live, no_faults, people, team, teams};
use shared::connection_state::ConnectionState;
use watchglass_tests::browser::Browser;
use watchglass_tests::crowd::Crowd;
use watchglass_tests::server::Server;

/// A script that returns rule and element of each fault that axe-core rates serious or critical. It also finds elements
/// outside of all landmarks, and a skip link without a target. It waits for elements that fade in.
const SERIOUS: &str = r#"
const coming = document.getAnimations().filter(one => Number.isFinite(one.effect.getComputedTiming().endTime));
return Promise.all(coming.map(one => one.finished.catch(() => null)))
  .then(() => axe.run(document, { resultTypes: ["violations"] })).then(found => found.violations
  .filter(fault => ["serious", "critical"].includes(fault.impact) || ["region", "skip-link"].includes(fault.id))
  .flatMap(fault => fault.nodes.map(node => fault.id + ": " + node.target.join(" ") + ": " + node.failureSummary)));
"#;

#[track_caller]
fn fine(browser: &Browser, state: &str) {
    let faults = browser.script(SERIOUS);
    let faults: Vec<&str> = faults.as_array().into_iter().flatten().filter_map(|f| f.as_str()).collect();
    assert_eq!(faults, [""; 0], "{state}");
}

#[test]
fn the_first_key_leads_past_the_bar_to_the_charts_under_a_heading_with_the_machines_name() {
    let server = super::demo("1");
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    assert_eq!(browser.eval("[...document.querySelectorAll('h1')].map(h => h.textContent).join()"), "demo-01");
    browser.strike("Tab", 0);
    browser.until("document.activeElement.matches('.skip') && document.activeElement.getBoundingClientRect().top >= 0");
    browser.strike("Enter", 0);
    browser.strike("Tab", 0);
    browser.until("document.activeElement.closest('.charts article')");
    no_faults(&browser);
}

#[test]
fn the_skip_link_has_a_target_on_each_page_and_hidden_words_stand_in_a_landmark() {
    let server = super::demo("1");
    let browser = Browser::start();
    for query in ["", "?page=fleet", "?page=runs", "?page=findings", "?page=alerts"] {
        browser.open(&format!("{}{query}", server.url));
        browser.until("document.querySelector('#page')");
        let to = "document.querySelector('.skip').getAttribute('href')";
        browser.until(&format!("document.querySelector({to})"));
        let wanted = if query.is_empty() { "#charts" } else { "#page" };
        assert_eq!(browser.eval(to), wanted, "{query}");
        assert_eq!(browser.eval("!!document.querySelector('#how').closest('main, aside, [role=region]')"), true);
        no_faults(&browser);
    }
}

/// An expression for the controls that are less than 24 px high or wide, each with its size. A link within a sentence is as high as
/// the sentence, and what is hidden is none.
const SMALL: &str = r#"[...document.querySelectorAll("a[href], button, input, select, summary")].filter(one => {
    // A press on its label is a press on a field.
    const box = (one.closest("label") || one).getBoundingClientRect();
    if (!one.checkVisibility({ visibilityProperty: true }) || one.closest(".away, .skip, [inert]") || !box.width) return false;
    const around = one.matches("a") && one.closest("p, li, dd, td, th, figcaption, h2, h3, span");
    const words = around && around.textContent.trim().length > one.textContent.trim().length;
    return !words && Math.min(box.width, box.height) < 24;
  }).map(one => { const box = one.getBoundingClientRect();
    return [one.tagName.toLowerCase(), one.dataset.do || one.className || one.id || one.innerText.slice(0, 20), Math.round(box.width) + "x" + Math.round(box.height)].join(" "); })"#;

/// Those of a page, each after the state of the page.
fn small_ones(browser: &Browser, state: &str) -> Vec<String> {
    let small = browser.eval(&format!("[...new Set({SMALL})]"));
    let small: Vec<String> = serde_json::from_value(small).expect("a list of words");
    small.into_iter().map(|one| format!("{state}: {one}")).collect()
}

#[test]
fn each_control_of_each_page_can_be_hit() {
    let server = super::demo("8");
    let own = Server::start([]);
    let crowd = Crowd::new(6);
    let mut small: Vec<String> = Vec::new();
    for (width, height) in [(1440, 900), (390, 844)] {
        let state = |name: &str| format!("{name}, {width} x {height}");
        let browser = Browser::start();
        browser.size(width, height);
        browser.open(&server.url);
        live(&browser);
        small.extend(small_ones(&browser, &state("a machine")));
        for key in ["?", "/", "d"] {
            browser.press(key);
            browser.until("document.querySelector('dialog[open], #sheet:not([hidden])')");
            small.extend(small_ones(&browser, &state(key)));
            browser.press("Escape");
        }
        browser.focus("article.hero .plot");
        browser.press("m");
        browser.until(r##"document.querySelector("#menu:not([hidden])")"##);
        small.extend(small_ones(&browser, &state("a chart's menu")));
        for page in ["findings", "alerts", "alerts&tab=rules", "alerts&tab=deliveries", "alerts&tab=silences", "runs"] {
            browser.open(&format!("{}?page={page}", server.url));
            browser.until("document.documentElement.dataset.link === 'live' && document.querySelector('main')");
            small.extend(small_ones(&browser, &state(page)));
        }
        browser.open(&own.url);
        live(&browser);
        browser.eval(r#"(d => d.open || d.querySelector("summary").click())(document.querySelector(".processes"))"#);
        browser.until(r#"document.querySelector(".processes tbody tr")"#);
        small.extend(small_ones(&browser, &state("processes")));
        browser.open(&crowd.url);
        browser.until("document.querySelectorAll('#hosts tbody tr').length === 6");
        small.extend(small_ones(&browser, &state("many machines")));
        let hub = Browser::start();
        hub.size(width, height);
        for script in [people::HUB, team::TEAM, teams::TEAMS] {
            hub.before_each_page(script);
        }
        people::sign_in(&hub, &format!("{}?page=machines", crowd.url));
        for page in ["machines", "team", "keys", "links", "audit", "usage", "me"] {
            hub.open(&format!("{}?page={page}", crowd.url));
            hub.until("document.querySelector('main tbody tr')");
            small.extend(small_ones(&hub, &state(page)));
        }
    }
    assert_eq!(small, [""; 0]);
}

#[test]
fn forced_colors_reach_charts_and_what_is_chosen_has_a_line() {
    let server = super::demo("8");
    let browser = Browser::start();
    let media = |forced: &str| {
        let features = serde_json::json!([{ "name": "forced-colors", "value": forced }, { "name": "prefers-color-scheme", "value": "dark" }]);
        browser.cdp("Emulation.setEmulatedMedia", serde_json::json!({ "features": features }));
    };
    media("none");
    browser.open(&server.url);
    live(&browser);
    let ground = "(c => [...c.getContext('2d').getImageData(1, 1, 1, 1).data].slice(0, 3).join())(document.querySelector('article.hero canvas'))";
    browser.until(&format!("{ground} === '21,26,33'"));
    media("active");
    let forced = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).join()";
    browser.until(&format!("{ground} === {forced} && {forced} !== '21,26,33'"));
    let lines = |selector: &str| format!("getComputedStyle(document.querySelector({selector:?})).outlineStyle");
    assert_eq!(browser.eval(&lines(".windows [aria-pressed=true]")), "solid");
    assert_ne!(
        browser.eval("getComputedStyle(document.querySelector('.windows [aria-pressed=true]')).outlineColor"),
        browser.eval("getComputedStyle(document.querySelector('.windows [aria-pressed=false]')).outlineColor")
    );
    browser.screenshot("forced-colors");
    media("none");
    browser.until(&format!("{ground} === '21,26,33'"));
    no_faults(&browser);
}

#[test]
fn a_reader_hears_where_keys_lead() {
    let (_server, browser) = super::start("?w=5m");
    let said = |words: &str| browser.until(&format!("document.getElementById('said').innerText{words}"));
    browser.press("3");
    said(" === 'live, the last 15m'");
    browser.press("[");
    said(".includes(' to ')");
    browser.press("d");
    said(".endsWith('what changed is listed beside the charts')");
    browser.press("Escape");
    browser.press("Escape");
    said(" === 'live, the last 15m'");
    // A page that is loaded is named by its title.
    browser.press("f");
    browser.until("document.title.startsWith('Findings')");
    browser.press("a");
    browser.until("document.title.startsWith('Alerts')");
    no_faults(&browser);
}

fn axe() -> String {
    let path = std::env::var("WATCHGLASS_AXE").expect("WATCHGLASS_AXE names axe.min.js");
    std::fs::read_to_string(path).expect("WATCHGLASS_AXE is a file")
}

#[test]
#[ignore = "needs WATCHGLASS_AXE, the path of an axe.min.js"]
fn with_axe_nothing_serious_is_found_on_the_members_page_of_a_real_hub() {
    let axe = axe();
    let (_hub, browser) = teams::at_real_hub();
    for theme in ["dark", "light"] {
        browser.prefer(theme);
        for (width, height) in [(1440, 900), (390, 844)] {
            browser.size(width, height);
            browser.reload();
            browser.until("document.querySelector('#accounts tbody tr') && document.querySelector('#teams tbody tr')");
            browser.script(&axe);
            fine(&browser, &format!("members, {theme}, {width} x {height}"));
        }
    }
}

#[test]
#[ignore = "needs WATCHGLASS_AXE, the path of an axe.min.js"]
fn with_axe_nothing_serious_is_found() {
    let axe = axe();
    // This server has an error line below the bar.
    let server = Server::start(["demo", "--gpus", "8", "--fail", "lost"]);
    // Simulated machines have no processes.
    let own = Server::start([]);
    // Most of its machines are healthy, some are not.
    let crowd = Crowd::new(24);
    crowd.stand(1, ConnectionState::Unreachable);
    crowd.stand(2, ConnectionState::Stopped("it was told to".into()));
    let browser = Browser::start();
    for theme in ["dark", "light"] {
        browser.prefer(theme);
        for (width, height) in [(1440, 900), (390, 844)] {
            let state = |name: &str| format!("{name}, {theme}, {width} x {height}");
            browser.size(width, height);
            browser.open(&server.url);
            live(&browser);
            browser.script(&axe);
            fine(&browser, &state("live"));

            browser.press("?");
            browser.until("document.getElementById('dialog').open");
            fine(&browser, &state("the list of keys"));
            browser.press("Escape");

            browser.focus("article.hero .plot");
            browser.press("m");
            browser.until(r##"document.querySelector("#menu:not([hidden])")"##);
            fine(&browser, &state("a chart's menu"));
            // By key: a line that comes above the charts moves the menu below a pointer.
            browser.until("document.activeElement.matches('#menu [data-do=table]')");
            browser.strike("Enter", 0);
            browser.until("document.getElementById('dialog').open");
            fine(&browser, &state("a chart as a table"));
            browser.press("Escape");

            browser.press("d");
            browser.until("!document.getElementById('sheet').hidden");
            fine(&browser, &state("what changed"));
            browser.press("Escape");

            browser.press("l");
            browser.until(r#"document.documentElement.dataset.link === "frozen""#);
            browser.focus("article.hero .plot");
            browser.press("End");
            browser.press("Enter");
            browser.until(r##"document.querySelector("#tip.pinned")"##);
            fine(&browser, &state("frozen"));

            browser.open(&own.url);
            live(&browser);
            browser.script(&axe);
            // The browser keeps open sections from one visit to the next.
            browser
                .eval(r#"(d => d.open || d.querySelector("summary").click())(document.querySelector(".processes"))"#);
            browser.until(r#"document.querySelector(".processes tbody tr")"#);
            fine(&browser, &state("processes"));

            browser.open(&crowd.url);
            browser.until("document.querySelectorAll('#hosts tbody tr').length === 24");
            browser.script(&axe);
            fine(&browser, &state("many machines"));
            browser.open(&format!("{}?page=compare&source=node-01&with=node-04", crowd.url));
            browser.until("document.querySelectorAll('article[data-row=gpu] .key li').length === 2");
            browser.script(&axe);
            fine(&browser, &state("machines compared"));

            let hub = Browser::start();
            hub.prefer(theme);
            hub.size(width, height);
            hub.before_each_page(people::HUB);
            hub.before_each_page(team::TEAM);
            hub.before_each_page(teams::TEAMS);
            hub.open(&format!("{}?page=machines", crowd.url));
            hub.until("document.querySelector('form[data-form=sign-in]')");
            hub.script(&axe);
            fine(&hub, &state("nobody is signed in"));
            people::sign_in(&hub, &format!("{}?page=machines", crowd.url));
            hub.until("document.querySelector('#agents tbody tr')");
            hub.script(&axe);
            fine(&hub, &state("machines of a team"));
            hub.click("[data-do=add]");
            hub.until("document.getElementById('join').open");
            fine(&hub, &state("adding machines"));
            hub.eval("sessionStorage.two = 'yes'");
            for (page, table) in [
                ("team", "teams"),
                ("keys", "services"),
                ("links", "shares"),
                ("audit", "audit"),
                ("usage", "usage"),
                ("me", "sessions"),
            ] {
                hub.open(&format!("{}?page={page}", crowd.url));
                hub.until(&format!("document.querySelector('#{table} tbody tr')"));
                hub.script(&axe);
                fine(&hub, &state(page));
            }
            hub.click("[data-do=password]");
            hub.until("document.getElementById('deed').open");
            fine(&hub, &state("a form"));
            hub.open(&format!("{}?page=fleet", crowd.url));
            hub.until("document.querySelector('.views summary')");
            hub.click(".views summary");
            hub.until("document.querySelector('.views [data-row=v1]')");
            hub.script(&axe);
            fine(&hub, &state("saved views"));
        }
    }
    no_faults(&browser);
}
