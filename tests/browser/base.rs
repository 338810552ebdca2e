//! Below a proxy's path.

use super::{live, no_faults};
use watchglass_tests::browser::Browser;
use watchglass_tests::proxy::Proxy;
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
