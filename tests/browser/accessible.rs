//! The page without a mouse and without eyes: what axe-core finds, in both themes, on a screen and on a phone.

use super::{live, no_faults};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

/// What axe-core calls serious or critical: rule, and where.
const SERIOUS: &str = r#"
return axe.run(document, { resultTypes: ["violations"] }).then(found => found.violations
  .filter(fault => fault.impact === "serious" || fault.impact === "critical")
  .flatMap(fault => fault.nodes.map(node => fault.id + ": " + node.target.join(" ") + ": " + node.failureSummary)));
"#;

#[test]
fn axe_finds_nothing_serious() {
    let Ok(path) = std::env::var("WATCHGLASS_AXE") else {
        eprintln!("skipped: WATCHGLASS_AXE names no axe.min.js; `cargo xtask test` fetches it");
        return;
    };
    let axe = std::fs::read_to_string(path).expect("WATCHGLASS_AXE is a file");
    let server = Server::start([]);
    let browser = Browser::start();
    for theme in ["dark", "light"] {
        browser.prefer(theme);
        for (width, height) in [(1440, 900), (390, 844)] {
            browser.size(width, height);
            browser.open(&server.url);
            live(&browser);
            browser.script(&axe);
            let faults = browser.script(SERIOUS);
            let faults: Vec<&str> = faults.as_array().into_iter().flatten().filter_map(|f| f.as_str()).collect();
            assert_eq!(faults, [""; 0], "{theme}, {width} x {height}");
        }
    }
    no_faults(&browser);
}
