//! Tests the controls of the view: window, freezing, theme, size, reload.

use super::{demo, live, machine, no_faults, still};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

const LINK: &str = "document.documentElement.dataset.link";
/// The button that shows the state of the link, and that freezes or resumes the view.
const LINK_BUTTON: &str = "button.link";
const THEME_BUTTON: &str = r#"button[aria-label="Theme"]"#;
const THEME: &str = "document.documentElement.dataset.theme";

/// An expression that is true when all panels show this window.
fn all_show(window: &str) -> String {
    format!(r#"[...document.querySelectorAll("article[data-panel]")].every(p => p.dataset.window === "{window}")"#)
}

#[test]
fn each_window_can_be_chosen_and_survives_a_reload() {
    // A machine with a past: the default window of a new one grows until it is full.
    let server = demo("1");
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    for window in ["1m", "15m", "1h", "3h", "6h", "12h", "5m"] {
        browser.click(&format!(r#"[data-window-choice="{window}"]"#));
        browser.until(&all_show(window));
        browser.until(&format!(r#"new URLSearchParams(location.search).get("w") === "{window}""#));
    }
    browser.click(r#"[data-window-choice="1h"]"#);
    browser.until(&all_show("1h"));
    browser.reload();
    live(&browser);
    browser.until(&all_show("1h"));
    no_faults(&browser);
}

#[test]
fn samples_survive_a_reload() {
    let server = Server::start([]);
    let browser = Browser::start();
    let most = r#"Math.max(0, ...[...document.querySelectorAll("article[data-panel]")].map(p => +p.dataset.samples))"#;
    browser.open(&server.url);
    browser.until(&format!("{most} >= 4"));
    let before = browser.eval(most).as_u64().expect("a count");
    browser.reload();
    live(&browser);
    // The newest samples come first, and those before them after that.
    browser.until(&format!("{most} >= {before}"));
}

#[test]
fn the_view_stands_still_and_runs_again() {
    let server = machine();
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.click(LINK_BUTTON);
    browser.until(&format!(r#"{LINK} === "frozen""#));
    browser.until(r#"new URLSearchParams(location.search).has("from")"#);
    browser.reload();
    browser.until(&format!(r#"{LINK} === "frozen""#));
    browser.press("Escape");
    live(&browser);
    assert_eq!(browser.eval(r#"new URLSearchParams(location.search).has("from")"#), false);
    no_faults(&browser);
}

#[test]
fn the_numbers_on_top_stand_still_with_the_charts() {
    const NUMBERS: &str = r#"[...document.querySelectorAll(".tile .number")].map(n => n.textContent).join(" ")"#;
    const NEW: &str = r#"/, ([3-9]|\d\d+) s new$/.test(document.querySelector("[data-do=freeze] small").textContent)"#;
    // Each second of the demo has other values.
    let server = super::demo("8");
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.press(" ");
    browser.until(&format!(r#"{LINK} === "frozen""#));
    // The frame after the key draws the last change.
    still(&browser, NUMBERS);
    let numbers = browser.eval(NUMBERS);
    browser.until(NEW);
    assert_eq!(browser.eval(NUMBERS), numbers);
    browser.press("Escape");
    browser.until(&format!("{NUMBERS} !== {numbers}"));
    no_faults(&browser);
}

#[test]
fn the_theme_follows_the_system_until_a_person_chooses() {
    let server = machine();
    let browser = Browser::start();
    for theme in ["dark", "light"] {
        browser.prefer(theme);
        browser.open(&server.url);
        live(&browser);
        assert_eq!(browser.eval(THEME), theme);
    }
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = browser.eval(paper);
    browser.screenshot("light");
    browser.click(THEME_BUTTON);
    browser.until(&format!(r#"{THEME} === "dark""#));
    browser.until(&format!("{paper} !== {light}"));
    browser.reload();
    live(&browser);
    assert_eq!(browser.eval(THEME), "dark", "the choice survives a reload");
    no_faults(&browser);
}

#[test]
fn the_page_fits_a_phone_and_a_wall() {
    let server = machine();
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    // A phone's browser widens the page when an element sticks out. Then innerWidth never gets the wanted value.
    for (width, height) in [(390, 844), (360, 640), (2560, 1440), (1440, 900)] {
        browser.size(width, height);
        browser.until(&format!("innerWidth === {width}"));
        let overflow = "document.documentElement.scrollWidth > innerWidth";
        browser.until(&format!("!({overflow})"));
        // A canvas of the old size would be stretched or cut off.
        browser.until(
            r#"[...document.querySelectorAll("article[data-panel] canvas")].filter(c => c.clientWidth && c.width)
                .every(c => c.getBoundingClientRect().right <= innerWidth + 1)"#,
        );
        if width == 390 {
            browser.screenshot("phone");
        }
    }
    live(&browser);
    no_faults(&browser);
}

#[test]
fn clocks_have_the_form_of_the_browsers_locale() {
    let server = super::demo("2");
    let browser = Browser::start();
    for (locale, form) in [("en-US", "[1-9][0-2]?:[0-9]{2}:[0-9]{2} [AP]M"), ("de-DE", "[0-9]{2}:[0-9]{2}:[0-9]{2}")] {
        browser.cdp("Emulation.setLocaleOverride", serde_json::json!({ "locale": locale }));
        browser.open(&server.url);
        super::live(&browser);
        browser.press(" ");
        // After midnight the day stands before the times.
        browser.until(&format!(
            "/^([0-9]+ [A-Z][a-z]+ )?{form}–{form}/.test(document.querySelector('.link small')?.innerText.trim())"
        ));
    }
    no_faults(&browser);
}

#[test]
fn all_times_are_in_one_zone_that_is_said_once_and_can_be_utc() {
    let server = super::demo("8");
    let browser = Browser::start();
    browser.cdp("Emulation.setTimezoneOverride", serde_json::json!({ "timezoneId": "Asia/Kolkata" }));
    let now = now_ms();
    let told = format!(
        r#"const before = window.fetch;
        window.fetch = async (path, init) => new URL(String(path), location.href).pathname.includes("/api/v1/alerts")
          ? new Response(JSON.stringify({{ at: 1, events: [], trouble: [], firing: 1, more: false, alerts: [{{ id: "A", rule: "r", name: "gone", subject: "demo-01",
              severity: "warning", state: "firing", began: {now} / 1000, fired: {now} / 1000, ended: null, value: null, worst: null,
              sentence: "no data since " + new Date({now}).toISOString().slice(11, 16) + " UTC", labels: {{}}, count: 1,
              held: "silenced by sofia until " + new Date({now}).toISOString().slice(11, 16) + " UTC" }}] }}), {{ status: 200 }})
          : before(path, init);"#
    );
    browser.before_each_page(&told);
    let clock = |zone: &str| {
        format!(
            "new Date({now}).toLocaleTimeString('en-GB', {{ timeZone: '{zone}', hour: '2-digit', minute: '2-digit' }})"
        )
    };
    for (zone, name) in [("Asia/Kolkata", "UTC+5:30"), ("UTC", "UTC")] {
        browser.open(&server.url);
        super::live(&browser);
        browser.until(&format!("document.querySelectorAll('[data-zone]').length === 1 && document.querySelector('[data-zone]').innerText === 'Times in {name}'"));
        browser.open(&format!("{}?page=alerts", server.url));
        browser.until(&format!(
            "document.querySelector('.findings-list [data-alert] .sentence')?.innerText.startsWith('no data since ' + {})",
            clock(zone)
        ));
        for word in ["since", "until"] {
            browser.until(&format!(
                "document.querySelector('.findings-list [data-alert] .below')?.innerText.includes('{word} ' + {})",
                clock(zone)
            ));
        }
        assert_eq!(browser.eval("/[0-9] UTC/.test(document.querySelector('main').innerText)"), false);
        browser.until(&format!("document.querySelectorAll('[data-zone]').length === 1 && document.querySelector('[data-zone]').dataset.zone === '{name}'"));
        if zone != "UTC" {
            browser.click("[data-do=zone]");
        }
    }
    browser.until("document.querySelector('[data-do=zone]')");
    browser.click("[data-do=zone]");
    browser.until("document.querySelector('[data-zone]')?.dataset.zone === 'UTC+5:30'");
    no_faults(&browser);
}

/// Now, ms since the epoch.
fn now_ms() -> u128 {
    std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_millis()
}

#[test]
fn a_server_without_accounts_has_saved_views_too() {
    let server = Server::start(["--collectors", "cpu,memory", "--memory"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=15m", server.url));
    browser.until(&format!("{LINK} === 'live'"));
    browser.until("document.querySelector('.bar [data-do=views]')");
    browser.click("[data-do=views]");
    browser
        .until("document.querySelector('.views[open]') && document.querySelectorAll('.views [data-row]').length === 3");
    browser.click(".views [data-do=save-as]");
    browser.until("document.querySelector('form[data-form=view] [name=name]')");
    assert_eq!(browser.eval("document.querySelector('form[data-form=view] [name=scope]')"), serde_json::Value::Null);
    browser.script(
        "const field = document.querySelector('form[data-form=view] [name=name]'); field.value = 'a quarter'; \
         field.dispatchEvent(new Event('input', { bubbles: true })); field.focus();",
    );
    browser.strike("Enter", 0);
    browser.until("new URLSearchParams(location.search).get('view')");
    browser.until("document.querySelector('.views summary').innerText.includes('a quarter')");
    assert_eq!(browser.eval("document.querySelector('.views [data-do=share]')"), serde_json::Value::Null);
    browser.reload();
    browser.until(&format!("{LINK} === 'live'"));
    browser.until("document.querySelector('.views summary')?.innerText.includes('a quarter')");
    no_faults(&browser);
}
