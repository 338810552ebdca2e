//! Tests the page below the path of a proxy.

use super::{live, machine, no_faults};
use watchglass_tests::browser::Browser;
use watchglass_tests::proxy::{Proxy, Sockets};
use watchglass_tests::server::Server;

#[test]
fn the_page_works_below_a_path_that_a_proxy_strips() {
    let server = machine();
    let proxy = Proxy::start("/a/b", server.addr());
    let browser = Browser::start();
    browser.open(&format!("http://{}/a/b/?w=1h", proxy.addr));
    live(&browser);
    assert_eq!(browser.eval("location.pathname"), "/a/b/");
    // A part that is loaded later is found below the path, too.
    browser.press("/");
    browser.until("document.querySelector('#find')");
    assert_eq!(proxy.strays(), [""; 0], "addresses are relative");
    no_faults(&browser);
}

#[test]
fn the_last_slash_is_put_where_a_proxy_leaves_it_out() {
    let server = machine();
    let proxy = Proxy::start("/a/b", server.addr());
    let browser = Browser::start();
    browser.open(&format!("http://{}/a/b?w=1h#x", proxy.addr));
    live(&browser);
    assert_eq!(browser.eval("location.pathname + location.hash"), "/a/b/#x");
    assert_eq!(browser.eval(r#"document.querySelector("article[data-panel]").dataset.window"#), "1h");
}

#[test]
fn the_page_works_below_a_base_path_that_is_not_stripped() {
    let server = Server::start(["--base-path", "/a/b/"]);
    let browser = Browser::start();
    browser.open(&format!("http://{}/a/b/", server.addr()));
    live(&browser);
    browser.press("/");
    browser.until("document.querySelector('#find')");
    no_faults(&browser);
}

const BANNER: &str = "(b => b ? b.innerText : '')(document.querySelector('.banner'))";
/// Keeps what the banner has said: it says some of it for a few seconds only.
const KEEP_BANNERS: &str = r#"
window.__banners = [""];
new MutationObserver(() => {
  const text = document.querySelector(".banner")?.innerText ?? "";
  if (text !== window.__banners.at(-1)) window.__banners.push(text);
}).observe(document, { childList: true, characterData: true, subtree: true });
"#;
const CHIP: &str = "(b => b ? b.innerText : '')(document.querySelector('.link [data-way]'))";

/// A page behind such a proxy, from its start until it is live. Also the time that this took after its bar was there,
/// ms.
fn lives_through(sockets: Sockets, way: &str) -> (Server, Proxy, Browser) {
    let server = Server::start([]);
    let proxy = Proxy::with_sockets("/a", server.addr(), sockets);
    let browser = Browser::start();
    browser.before_each_page(KEEP_BANNERS);
    browser.open(&format!("http://{}/a/", proxy.addr));
    browser.until("document.querySelector('.bar')");
    let begun = browser.eval("performance.now()").as_f64().expect("a time");
    if sockets == Sockets::Swallow {
        browser.until("__banners.some(all => all.includes('No live data') && all.includes('WebSockets time out'))");
        let took = browser.eval("performance.now()").as_f64().expect("a time") - begun;
        eprintln!("{sockets:?}: said after {took:.0} ms; the goal is 5,000 ms");
    }
    live(&browser);
    browser.until(&format!("{CHIP}.includes({way:?}) && {CHIP}.includes('WebSockets are blocked')"));
    let took = browser.eval("performance.now()").as_f64().expect("a time") - begun;
    eprintln!("{sockets:?}: live after {took:.0} ms; the goal is 10,000 ms");
    (server, proxy, browser)
}

#[test]
fn where_no_websocket_passes_the_page_is_live_by_an_event_stream_and_says_so() {
    for sockets in [Sockets::Refuse, Sockets::Fail, Sockets::Cut, Sockets::Downgrade, Sockets::Swallow] {
        let (server, _proxy, browser) = lives_through(sockets, "over server-sent events");
        browser.until("document.querySelector('.link').title.startsWith('live over server-sent events')");
        assert_eq!(browser.eval(&format!("{BANNER}.includes('No live data')")), false);
        // Requests of the page succeed: they are sent by POST.
        browser.eval("document.querySelector('.processes summary').click()");
        browser.until("document.querySelectorAll('.processes tbody td.cmd').length > 0");
        drop(server);
        // While the server is down, the page does not blame the connection.
        browser.until("document.documentElement.dataset.link === 'reconnecting'");
        browser.until(&format!("!{BANNER}.includes('No live data')"));
    }
}

#[test]
fn where_event_streams_are_held_back_too_the_page_polls_and_a_socket_is_taken_once_one_passes() {
    let (_server, proxy, browser) = lives_through(Sockets::HoldEvents, "over polling");
    browser.eval("document.querySelector('.processes summary').click()");
    browser.until("document.querySelectorAll('.processes tbody td.cmd').length > 0");
    browser.screenshot("live-by-polling");
    // The next page of this session uses the working transport at once.
    browser.reload();
    live(&browser);
    browser.until(&format!("{CHIP}.includes('over polling')"));
    // Five minutes later the page tries a WebSocket in addition.
    proxy.set(Sockets::Pass);
    browser.eval("void (Date.now = (now => () => now() + 301_000)(Date.now.bind(Date)))");
    browser.until(&format!("{CHIP} === '' && document.documentElement.dataset.link === 'live'"));
    browser.reload();
    live(&browser);
    assert_eq!(browser.eval(CHIP), "");
}

#[test]
fn a_proxy_that_hides_the_name_of_the_server_is_told_of_in_words() {
    let server = machine();
    let browser = Browser::start();
    // As with nginx's proxy_pass alone: our Host is the server's own, the page's Origin is the proxy's.
    let proxy = Proxy::with_sockets("", server.addr(), Sockets::OwnHost);
    browser.open(&format!("http://{}/", proxy.addr));
    browser.until("!document.getElementById('stopped').hidden");
    let said = browser.eval("document.getElementById('stopped').innerText");
    assert!(said.as_str().is_some_and(|said| said.contains("proxy_set_header Host")), "{said}");
}
