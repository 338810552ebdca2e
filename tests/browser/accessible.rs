//! Checks the page for users who cannot see, with axe-core: each state, in both themes, on a screen and on a phone.

use super::{live, no_faults, people, team, teams};
use shared::standing::Standing;
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
    crowd.stand(1, Standing::Unreachable);
    crowd.stand(2, Standing::Stopped("it was told to".into()));
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

            browser.eval(r#"document.querySelector("article.hero .plot").focus()"#);
            browser.press("m");
            browser.until(r##"document.querySelector("#menu:not([hidden])")"##);
            fine(&browser, &state("a chart's menu"));
            browser.click("#menu [data-do=table]");
            browser.until("document.getElementById('dialog').open");
            fine(&browser, &state("a chart as a table"));
            browser.press("Escape");

            browser.press("d");
            browser.until("!document.getElementById('sheet').hidden");
            fine(&browser, &state("what changed"));
            browser.press("Escape");

            browser.press("l");
            browser.until(r#"document.documentElement.dataset.link === "frozen""#);
            browser.eval(r#"document.querySelector("article.hero .plot").focus()"#);
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
