//! Sign-in by a provider through the page of a real hub: the redirect to the provider, the way back, and the messages
//! for failures.

use super::people::fill;
use watchglass_tests::browser::Browser;
use watchglass_tests::hub::{Hub, PASSWORD};
use watchglass_tests::provider::{Provider, Signed, hub_of};

const BUTTON: &str = "form[data-form=sign-in] [data-provider=lab]";

/// A hub that accepts new people of a provider `lab` as viewers, and a browser. `ways` is the beginning of its
/// configuration.
fn start(ways: &str) -> (Provider, Hub, Browser, String) {
    let provider = Provider::start();
    let hub = hub_of(&format!("[sign_in]\nnew_accounts = \"viewer\"\n{ways}\n{}", provider.table("lab")));
    provider.script(|script| script.back_to = Some(hub.server.addr()));
    let url = format!("http://{}/", hub.server.addr());
    (provider, hub, Browser::start(), url)
}

/// A page's first socket is rejected while no user is signed in, which a browser reports as an error.
#[track_caller]
fn no_faults(browser: &Browser) {
    let faults: Vec<String> = browser.faults().into_iter().filter(|fault| !fault.contains("/api/v1/live")).collect();
    assert_eq!(faults, [""; 0], "the page ran into errors");
}

fn role(browser: &Browser, role: &str) {
    browser.until(&format!("document.documentElement.dataset.role === {role:?}"));
}

#[test]
fn the_provider_sends_one_back_to_the_page_that_was_wanted_or_with_a_sentence() {
    let (provider, _hub, browser, url) = start("");
    browser.open(&format!("{url}?page=fleet&find=rack:r1"));
    browser.until(&format!("document.querySelector({BUTTON:?})"));
    assert_eq!(browser.eval(&format!("document.querySelector({BUTTON:?}).innerText")), "Sign in with lab");
    for (theme, width, height) in [("light", 1440, 900), ("dark", 1440, 900), ("dark", 390, 844)] {
        browser.prefer(theme);
        browser.size(width, height);
        browser.reload();
        browser.until(&format!("document.querySelector({BUTTON:?})"));
        browser.screenshot(&format!("signin-provider-{theme}-{width}"));
    }
    browser.click(BUTTON);
    role(&browser, "viewer");
    assert_eq!(browser.eval("location.pathname + location.hash"), "/");
    let wanted = "['page', 'find'].map(name => new URLSearchParams(location.search).get(name)).join()";
    assert_eq!(browser.eval(wanted), "fleet,rack:r1");
    browser.until("document.querySelector('.person').textContent.includes('nora')");
    no_faults(&browser);

    browser.click(".person summary");
    browser.click("[data-do=sign-out]");
    provider.script(|script| script.signed = Signed::NotAtAll);
    browser.until(&format!("document.querySelector({BUTTON:?})"));
    browser.click(BUTTON);
    browser.until("document.querySelector('.wrong') && document.querySelector('.wrong').innerText.includes('The response of the provider is invalid')");
    assert_eq!(browser.eval("location.hash"), "", "the word leaves the address");
    role(&browser, "none");
    browser.screenshot("signin-refused-dark-390");
    // A forged address can at most choose one of our sentences.
    browser.open(&format!("{url}?w=5m#refused=%3Cb%3EPay%20here"));
    browser.until(&format!("document.querySelector({BUTTON:?})"));
    assert_eq!(browser.eval("document.querySelector('.wrong').innerText + location.hash"), "");
    // The other way to sign in is not affected.
    fill(&browser, "form [name=name]", "vera");
    fill(&browser, "form [name=password]", PASSWORD);
    browser.click("form[data-form=sign-in] .primary");
    role(&browser, "viewer");
}

#[test]
fn without_passwords_nothing_asks_for_one() {
    let (_provider, _hub, browser, url) = start("password = false");
    browser.open(&url);
    browser.until(&format!("document.querySelector({BUTTON:?})"));
    let shown =
        "[...document.querySelectorAll('form[data-form=sign-in] :is(input, button)')].map(e => e.innerText).join()";
    assert_eq!(browser.eval(shown), "Sign in with lab");
    assert_eq!(browser.eval("document.body.innerText.includes('Forgot your password')"), false);
    browser.click(BUTTON);
    role(&browser, "viewer");
    no_faults(&browser);
}

#[test]
fn another_way_to_sign_in_is_added_and_the_last_one_cannot_be_removed() {
    let (_provider, _hub, browser, url) = start("");
    browser.open(&format!("{url}?page=me"));
    fill(&browser, "form[data-form=sign-in] [name=name]", "ada");
    fill(&browser, "form[data-form=sign-in] [name=password]", PASSWORD);
    browser.click("form[data-form=sign-in] .primary");
    let rows =
        |count: usize| browser.until(&format!("document.querySelectorAll('#identities tbody tr').length === {count}"));
    rows(1);
    assert_eq!(browser.eval("document.querySelectorAll('#identities [data-do=end]').length"), 0);
    browser.click("[data-link=lab]");
    rows(2);
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('page')"), "me", "back where it was pressed");
    for (theme, width, height) in [("light", 1440, 900), ("dark", 1440, 900), ("dark", 390, 844)] {
        browser.prefer(theme);
        browser.size(width, height);
        browser.reload();
        rows(2);
        browser.until("document.querySelector('[data-link=lab]').innerText === 'Add lab'");
        browser.screenshot(&format!("me-identities-{theme}-{width}"));
    }
    browser.eval("[...document.querySelectorAll('#identities tbody tr')].find(r => r.innerText.includes('password')).querySelector('[data-do=end]').click()");
    browser.until("document.querySelector('form[data-form=end-identity] button')");
    browser.click("form[data-form=end-identity] button");
    rows(1);
    browser.until("document.querySelectorAll('#identities [data-do=end]').length === 0");
    browser.until("!document.getElementById('deed').open");
    browser.click(".person summary");
    browser.click("[data-do=sign-out]");
    browser.until(&format!("document.querySelector({BUTTON:?})"));
    browser.click(BUTTON);
    role(&browser, "admin");
    no_faults(&browser);
}

#[test]
fn who_was_brought_by_a_provider_sets_a_first_password_on_the_page() {
    let (_provider, hub, browser, url) = start("");
    browser.open(&format!("{url}?page=me"));
    browser.until(&format!("document.querySelector({BUTTON:?})"));
    browser.click(BUTTON);
    browser.until("document.querySelector('[data-do=password]').innerText.trim() === 'Set password…'");
    browser.click("[data-do=password]");
    browser.until("document.querySelectorAll('form[data-form=password] input').length === 2");
    fill(&browser, "form[data-form=password] [name=new]", PASSWORD);
    fill(&browser, "form[data-form=password] [name=same]", PASSWORD);
    browser.click("form[data-form=password] button");
    browser.until("document.querySelector('[data-do=password]').innerText.trim() === 'Change password…'");
    browser.until("document.querySelectorAll('#identities tbody tr').length === 2");
    assert_eq!(browser.eval("document.querySelector('#identities tbody').innerText.includes('lab')"), true);
    let body = format!("{{\"name\":\"nora\",\"password\":\"{PASSWORD}\"}}");
    let headers = [&*hub.origin(), "Content-Type: application/json"];
    assert_eq!(hub.send("POST", "/api/v1/session", &headers, &body).status, 200);
    no_faults(&browser);
}

#[test]
fn an_invitation_is_taken_by_a_provider_which_alone_is_asked_where_no_passwords_are_taken() {
    let (_provider, hub, browser, url) = start("password = false");
    let headers = [&hub.cookie("ada"), &hub.origin(), "Content-Type: application/json"];
    let made = hub.send("POST", "/api/v1/teams/main/invites", &headers, "{\"role\":\"member\"}");
    let code = made.body.split("#invite=").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    browser.open(&format!("{url}#invite={code}"));
    browser.until("document.querySelector('form[data-form=invite] [data-provider=lab]')");
    browser.until("document.querySelector('form[data-form=invite]').innerText.includes('Sign in to join')");
    assert_eq!(browser.eval("document.querySelectorAll('form[data-form=invite] input').length"), 0);
    browser.screenshot("invite-provider");
    browser.click("form[data-form=invite] [data-provider=lab]");
    role(&browser, "member");
    assert_eq!(browser.eval("location.hash"), "");
    no_faults(&browser);
}
