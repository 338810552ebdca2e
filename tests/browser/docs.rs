//! Tests the documentation that the binary serves: at every width, with search, under the policy of the page.

use super::{live, machine};
use watchglass_tests::browser::Browser;
use watchglass_tests::proxy::Proxy;
use watchglass_tests::server::Server;

/// Whether the text is wider than the window.
const WIDER: &str = "document.documentElement.scrollWidth > document.documentElement.clientWidth";

#[test]
fn a_page_of_the_book_is_found_by_search_at_every_width() {
    let browser = Browser::start();
    browser.open(&format!("http://{}/docs", machine().addr()));
    browser.until("document.querySelector('#mdbook-sidebar a.active') && location.pathname === '/docs/'");
    browser.press("/");
    browser.until("document.activeElement.id === 'mdbook-searchbar'");
    // The search begins when a key is released or when its index arrives, whichever is later. An inserted text
    // releases no key.
    browser.insert("checkpoin");
    browser.strike("t", 0);
    browser.until("document.querySelectorAll('#mdbook-searchresults li a').length > 0");
    browser.press("Enter");
    browser.until("location.pathname.endsWith('.html') && document.querySelector('main h1')");
    browser.until("document.querySelectorAll('main mark').length > 0");
    for (width, height) in [(1440, 900), (390, 844), (250, 400)] {
        browser.size(width, height);
        browser.reload();
        browser.until("document.querySelector('main h1')");
        assert_eq!(browser.eval(WIDER), false, "{width} px: {}", browser.eval("location.href"));
    }
    browser.click("#book-menu");
    browser.until("document.activeElement.closest('#mdbook-sidebar')");
    browser.press("Escape");
    browser.until("document.activeElement.id === 'book-menu'");
    // mdBook's search hides a field by a style attribute when it closes. The policy blocks that, without a visible
    // effect.
    let mut faults = browser.faults();
    faults.retain(|fault| !(fault.contains("/docs/searcher-") && fault.contains("inline style")));
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn every_page_of_the_book_has_its_links() {
    let server = machine();
    let contents = server.get("/docs/toc.html", &[]);
    let mut pages: Vec<String> =
        links(&contents.body).filter(|link| link.ends_with(".html")).map(|link| format!("/docs/{link}")).collect();
    assert!(pages.len() > 40, "{pages:?}");
    pages.push("/docs/".into());
    let style = links(&contents.body).find(|link| link.ends_with(".css")).expect("the contents have a style");
    let style = server.get(&format!("/docs/{style}"), &[]);
    for font in style.body.split("url(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert_eq!(
            server.get(&resolved("docs/theme", font), &[]).status,
            200,
            "{font}: the page has it by another name"
        );
    }
    for page in &pages {
        let answer = server.get(page, &[]);
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/html; charset=utf-8"), "{page}");
        assert!(!answer.body.contains(" style="), "{page}: the policy refuses style attributes");
        assert!(!answer.body.contains("<script>"), "{page}: the policy refuses scripts in a page");
        let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in links(&answer.body).filter(|link| !link.contains(':') && !link.starts_with('#')) {
            let path = resolved(folder, link.split('#').next().unwrap_or_default());
            let there = server.get(&path, &[]);
            assert_eq!(there.status, 200, "{page}: {link}");
            if let Some((_, anchor)) = link.split_once('#') {
                assert!(there.body.contains(&format!("id=\"{anchor}\"")), "{page}: {link}: no such heading");
            }
        }
    }
}

#[test]
fn the_book_stands_below_the_path_of_a_proxy_or_of_the_server() {
    let server = machine();
    let proxy = Proxy::start("/a/b", server.addr());
    let own = Server::start(["--base-path", "/a/b/"]);
    for addr in [proxy.addr.to_string(), own.addr().to_string()] {
        let browser = Browser::start();
        browser.open(&format!("http://{addr}/a/b/docs"));
        browser.until("location.pathname === '/a/b/docs/' && document.querySelector('#mdbook-sidebar a.active')");
        browser.click(".bar .back");
        live(&browser);
        assert_eq!(browser.eval("location.pathname"), "/a/b/");
    }
    assert_eq!(proxy.strays(), [""; 0], "addresses are relative");
}

fn links(html: &str) -> impl Iterator<Item = &str> {
    html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next())
}

fn resolved(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "" | "." => {}
            part => parts.push(part),
        }
    }
    let slash = if link.is_empty() || link.ends_with('/') { "/" } else { "" };
    format!("/{}{slash}", parts.join("/"))
}
