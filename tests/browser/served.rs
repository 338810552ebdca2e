//! Tests the files of the page as they are served: compressed, with a strict policy, and cached forever where the name
//! has a hash.

use watchglass_tests::server::{Server, ServerAnswer};

/// Maximum compressed size of the page in bytes, as users build it.
const MAX_PAGE_BYTES: usize = 1_950_000;

/// The text before the address of the module that opens files.
const READER: &str = "<meta name=\"reader\" content=\"";

/// All addresses in the page's elements and in its loader.
fn addresses(html: &str) -> Vec<&str> {
    let quoted = |open: &str, close: char| quoted(html, open, close);
    let reader = quoted(READER, '"');
    let mut all =
        [quoted("href=\"", '"'), quoted("src=\"", '"'), quoted("from '", '\''), quoted("path: '", '\''), reader]
            .concat();
    all.retain(|address| !address.starts_with('#')); // Such an address is a place in the page itself.
    all.sort_unstable();
    all.dedup();
    all
}

fn quoted<'a>(html: &'a str, open: &str, close: char) -> Vec<&'a str> {
    let parts = html.split(open).skip(1);
    parts.filter_map(|rest| rest.split_once(close).map(|(address, _)| address)).collect()
}

fn length(answer: &ServerAnswer) -> usize {
    answer.header("content-length").parse().expect("a length")
}

#[test]
fn every_file_of_the_page_is_packed_and_kept_for_ever() {
    let server = super::machine();
    let page = server.get("/", &[]);
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), "no-cache", "the page itself names the newest files");
    let addresses = addresses(&page.body);
    assert!(addresses.len() >= 5, "style, icon, script, wasm and what opens files: {addresses:?}");
    let mut weight = length(&server.get("/", &["Accept-Encoding: br"]));
    for address in addresses {
        let path = address.strip_prefix('.').expect("addresses are relative");
        let plain = server.get(path, &[]);
        assert_eq!((plain.status, plain.header("content-encoding")), (200, ""), "{path}");
        assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable", "{path}");
        assert!(!plain.header("content-type").contains("octet-stream"), "{path} has a type of its own");
        if path.ends_with(".woff2") {
            assert!(length(&plain) <= 60_000, "{path} weighs {}", length(&plain));
            continue; // Fonts are compressed by their own format.
        }
        let sizes = ["gzip", "br"].map(|coding| {
            let packed = server.get(path, &[&format!("Accept-Encoding: {coding}")]);
            assert_eq!(packed.header("content-encoding"), coding, "{path}");
            assert_eq!(packed.header("content-type"), plain.header("content-type"), "{path}");
            length(&packed)
        });
        assert!(sizes.iter().all(|size| *size < length(&plain)), "{path}: {} {sizes:?}", length(&plain));
        if !quoted(&page.body, READER, '"').contains(&address) {
            weight += sizes[1];
        }
    }
    // This bound catches unintended growth. `cargo xtask dist --check` sets another one for the released page, whose
    // goal the bench checks.
    let most = std::env::var("WATCHGLASS_PAGE_BYTES").ok().and_then(|bytes| bytes.parse().ok());
    let most: usize = most.unwrap_or(MAX_PAGE_BYTES);
    assert!(weight < most, "the page weighs {weight} bytes, and may weigh {most}");
    parts(server, &page.body);
    assert_eq!(server.get("/page-0000000000000000.js", &[]).status, 404);
}

/// Asserts that each part is packed and kept for ever, too, and that the page names none: it is loaded without them.
fn parts(server: &Server, html: &str) {
    assert!(!html.contains("part-"), "a part would be loaded at once");
    let loader = addresses(html).into_iter().find(|address| address.ends_with("_parts.js")).expect("a loader");
    let loader = server.get(loader.strip_prefix('.').expect("addresses are relative"), &[]).body;
    let parts = [quoted(&loader, "new URL(\"", '"'), quoted(&loader, "new URL('", '\'')].concat();
    assert!(parts.len() >= 9, "a part for each of the pages and tools, and what they share: {parts:?}");
    for part in parts {
        let packed = server.get(part.strip_prefix('.').expect("addresses are relative"), &["Accept-Encoding: br"]);
        let kind = if part.ends_with(".wasm") { "application/wasm" } else { "application/octet-stream" };
        assert_eq!((packed.status, packed.header("content-type")), (200, kind), "{part}");
        assert_eq!(packed.header("content-encoding"), "br", "{part}");
        assert_eq!(packed.header("cache-control"), "public, max-age=31536000, immutable", "{part}");
    }
}

#[test]
fn only_the_scripts_of_the_page_may_run() {
    let server = super::machine();
    let page = server.get("/", &[]);
    let policy = page.header("content-security-policy");
    let scripts = policy.split(';').map(str::trim).find(|part| part.starts_with("script-src ")).expect("a policy");
    let inline = page.body.matches("<script").count() - page.body.matches("<script src").count();
    assert_eq!(scripts.matches("'sha256-").count(), inline, "{scripts}");
    assert!(!scripts.contains("unsafe-inline") && !scripts.contains("'unsafe-eval'"), "{scripts}");
    assert!(!page.body.contains(" style=\"") && !page.body.contains(" onload="), "the policy refuses both");
}
