//! Tests the page below the path of a proxy.

use super::{live, no_faults};
use watchglass_tests::browser::Browser;
use watchglass_tests::proxy::{Proxy, Sockets};
use watchglass_tests::server::Server;

#[test]
fn the_page_works_below_a_path_that_a_proxy_strips() {
    let server = Server::start([]);
    let proxy = Proxy::start("/a/b", server.addr());
    let browser = Browser::start();
    browser.open(&format!("http://{}/a/b/?w=1h", proxy.addr));
    live(&browser);
    assert_eq!(browser.eval("location.pathname"), "/a/b/");
    assert_eq!(proxy.strays(), [""; 0], "addresses are relative");
    no_faults(&browser);
}

#[test]
fn the_last_slash_is_put_where_a_proxy_leaves_it_out() {
    let server = Server::start([]);
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
    no_faults(&browser);
}

#[test]
fn a_way_that_lets_no_websocket_through_is_named_within_five_seconds() {
    for (sockets, word) in
        [(Sockets::Refuse, "refused"), (Sockets::Downgrade, "refused"), (Sockets::Swallow, "swallows")]
    {
        let server = Server::start([]);
        let proxy = Proxy::with_sockets("/a", server.addr(), sockets);
        let browser = Browser::start();
        browser.open(&format!("http://{}/a/", proxy.addr));
        let banner = "(b => b ? b.innerText : '')(document.querySelector('.banner'))";
        let said = format!("{banner}.includes('No live data') && {banner}.includes({word:?})");
        browser.until("document.querySelector('.bar')");
        let begun = browser.eval("performance.now()").as_f64().expect("a time");
        browser.until(&said);
        let took = browser.eval("performance.now()").as_f64().expect("a time") - begun;
        eprintln!("{sockets:?}: said after {took:.0} ms; the goal is 5,000 ms");
        drop(server);
        // Without the server there is nothing to blame the way for.
        browser.until(&format!("!{banner}.includes('No live data')"));
    }
}
