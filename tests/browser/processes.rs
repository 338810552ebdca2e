//! The process table of the page.

use super::{live, no_faults};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

const NAMES: &str = r#"[...document.querySelectorAll(".processes tbody td.cmd b")].map(b => b.textContent)"#;

#[test]
fn the_table_is_asked_for_when_it_is_opened_sorted_and_rolled_up() {
    let server = Server::start([]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    assert_eq!(browser.eval(&format!("{NAMES}.length")), 0, "a closed table is not asked for");
    // Clicked in the page itself: sections above may still be opening, and a pointer would land beside it.
    let press = |selector: &str| browser.eval(&format!(r#"(document.querySelector("{selector}").click(), true)"#));
    press(".processes summary");
    browser.until(r#"document.querySelector(".processes").open"#);
    browser.until(&format!("{NAMES}.length > 3"));
    press(".processes th:nth-child(5) button");
    browser.until(r#"document.querySelector(".processes th:nth-child(5)").getAttribute("aria-sort") === "descending""#);
    let sizes = browser.eval(
        r#"[...document.querySelectorAll(".processes tbody tr td:nth-child(5)")].slice(0, 5).map(td => {
            const [n, unit] = td.textContent.replace(",", "").split(" ");
            return n * { B: 1, KiB: 2**10, MiB: 2**20, GiB: 2**30, TiB: 2**40 }[unit];
        })"#,
    );
    let sizes: Vec<f64> = sizes.as_array().expect("sizes").iter().filter_map(|v| v.as_f64()).collect();
    assert!(sizes.len() > 3 && sizes.windows(2).all(|w| w[0] >= w[1]), "{sizes:?}");
    press(".processes .choices button:nth-child(2)");
    browser.until(r#"document.querySelector(".processes .choices button:nth-child(2)").ariaPressed === "true""#);
    browser.until(&format!("{NAMES}.length > 0"));
    no_faults(&browser);
}
