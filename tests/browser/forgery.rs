//! A foreign page must not make a real browser act for a user who is signed in to a hub. `hub::forgery` tests the same
//! without a browser, by hand-made headers.

use super::people::fill;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use watchglass_tests::browser::Browser;
use watchglass_tests::hub::{Hub, PASSWORD};

/// The foreign page: a form, requests of a script, and a socket, each recorded when it is over.
const FOREIGN: &str = r#"<!doctype html><title>Win a GPU</title><iframe name="frame"></iframe>
<form method="post" enctype="text/plain" target="frame" action="HUB/api/v1/teams/main/join">
<input name='{"uses": 1, "expires": "24h", "labels": {"a": "' value='"}}'></form>
<script>
const done = window.done = {}, hub = "HUB";
const note = (name, promise) => promise.then(value => { done[name] = String(value); }, () => { done[name] = "refused"; });
const ask = (path, init) => fetch(hub + path, { credentials: "include", ...init });
const json = { "Content-Type": "application/json" };
addEventListener("load", () => {
  document.querySelector("iframe").onload = () => { done.form = "sent"; };
  document.querySelector("form").submit();
  note("plain", ask("/api/v1/teams/main/join", { method: "POST", mode: "no-cors", body: "{}" }).then(a => a.type));
  note("json", ask("/api/v1/teams/main/join", { method: "POST", headers: json, body: "{}" }).then(a => a.status));
  note("out", ask("/api/v1/session", { method: "DELETE" }).then(a => a.status));
  note("read", ask("/api/v1/me").then(a => a.text()));
  note("socket", new Promise((open, refused) => {
    const socket = new WebSocket(hub.replace("http", "ws") + "/api/v1/live");
    socket.onopen = open; socket.onerror = refused; }));
});
</script>"#;

/// Serves one page at all paths, on a port of its own.
fn serve(page: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("a port");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            // A browser opens connections that it may not use.
            let page = page.clone();
            std::thread::spawn(move || {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n", page.len());
                if matches!(stream.read(&mut [0; 4096]), Ok(1..)) {
                    let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{page}").as_bytes());
                }
            });
        }
    });
    addr
}

#[test]
fn a_foreign_page_changes_reads_and_opens_nothing_though_its_browser_is_signed_in() {
    let hub = Hub::start(["--no-local"]);
    let url = format!("http://{}", hub.server.addr());
    // The context of a test blocks third-party cookies, and so would hide the hub's own check.
    let browser = Browser::alone();
    browser.open(&url);
    fill(&browser, "form[data-form=sign-in] [name=name]", "ada");
    fill(&browser, "form[data-form=sign-in] [name=password]", PASSWORD);
    browser.click("form[data-form=sign-in] button");
    browser.until(r#"document.documentElement.dataset.role === "admin""#);
    let joins = || hub.send("GET", "/api/v1/teams/main/join", &[&hub.cookie("ada")], "").body;
    let before = joins();

    let foreign = serve(FOREIGN.replace("HUB", &url));
    // Another port is another origin of the same site, to which cookies are sent. Another name is another site.
    for name in ["127.0.0.1", "localhost"] {
        browser.open(&format!("http://{name}:{}/", foreign.port()));
        browser.until("window.done && Object.keys(window.done).length === 6");
        let done = browser.eval("JSON.stringify(window.done, Object.keys(window.done).sort())");
        // A request without CORS arrives. The foreign page cannot even see that it was answered.
        let expected =
            r#"{"form":"sent","json":"refused","out":"refused","plain":"refused","read":"refused","socket":"refused"}"#;
        assert_eq!(done, expected, "{name}");
        assert_eq!(joins(), before, "{name}: nothing was made");
    }

    // The user is still signed in, and our own page may do what others may not.
    browser.open(&url);
    browser.until(r#"document.documentElement.dataset.role === "admin""#);
    browser.eval(
        "fetch('api/v1/teams/main/join', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })
           .then(answer => { window.made = answer.status; }) && 0",
    );
    browser.until("window.made === 201");
    assert_ne!(joins(), before);
}
