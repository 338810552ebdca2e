//! Tests the process table of the page.

use super::{demo, live, no_faults};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::Server;

const NAMES: &str = r#"[...document.querySelectorAll(".processes tbody td.cmd b")].map(b => b.textContent)"#;

/// Clicks by a script, because sections above may still be opening, and a pointer would then miss.
fn press(browser: &Browser, selector: &str) {
    browser.eval(&format!(r#"(document.querySelector("{selector}").click(), true)"#));
}

/// The numbers in a column, up to the first cell without one.
fn column(browser: &Browser, n: usize) -> Vec<f64> {
    let cells = format!(
        r#"[...document.querySelectorAll(".processes tbody td:nth-child({n}):not(.rest)")]
            .map(td => parseFloat(td.textContent.replace(",", ""))).filter(n => n === n)"#
    );
    browser.eval(&cells).as_array().expect("numbers").iter().filter_map(|v| v.as_f64()).collect()
}

fn unfold(browser: &Browser) {
    press(browser, ".processes summary");
    browser.until(r#"document.querySelector(".processes").open"#);
    browser.until(&format!("{NAMES}.length > 3"));
}

/// Types into the filter as a person does.
fn filter(browser: &Browser, words: &str) {
    browser.until(
        r#"(f => f && (f.focus(), f.select(), document.activeElement === f))(document.querySelector(".processes input"))"#,
    );
    browser.insert(words);
}

#[test]
fn the_table_is_asked_for_when_it_is_opened_and_sorted_both_ways() {
    let server = super::machine();
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    assert_eq!(browser.eval(&format!("{NAMES}.length")), 0, "a closed table is not asked for");
    let last = r#"document.querySelector(".sections > details:nth-last-of-type(2)").matches(".processes")"#;
    // Without a GPU it stands behind the charts, which come one after another.
    browser.until(last);
    unfold(&browser);
    let sorted = r#"[...document.querySelectorAll(".processes th")].map(th => th.getAttribute("aria-sort") ?? "")"#;
    for n in 1..=9 {
        let numbers = ![1, 3].contains(&n);
        let first = if [1, 2, 3].contains(&n) { "ascending" } else { "descending" };
        let second = if first == "ascending" { "descending" } else { "ascending" };
        for order in [first, second] {
            press(&browser, &format!(".processes th:nth-child({n}) button"));
            browser.until(&format!("{sorted}[{}] === '{order}'", n - 1));
            assert_eq!(browser.eval(&format!("{sorted}.filter(s => s).length")), 1);
            let values = column(&browser, n);
            let fits = |w: &[f64]| if order == "ascending" { w[0] <= w[1] } else { w[0] >= w[1] };
            assert!(!numbers || values.windows(2).all(fits), "column {n}, {order}: {values:?}");
        }
    }
    no_faults(&browser);
}

#[test]
fn processes_of_a_gpu_machine_stand_near_its_gpus_and_are_found_folded_and_counted() {
    let server = demo("8");
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    // Only the runs of the machine, which come when they are known, stand before them.
    let first = r#"document.querySelector(".sections > details:not(.runs)").matches(".processes")"#;
    assert_eq!(browser.eval(first), true);
    unfold(&browser);
    // At first 24 of 56 processes are shown.
    browser.until(&format!("{NAMES}.length === 24"));
    browser.until(r#"document.querySelector(".processes td.rest").textContent === "… 32 more show all""#);
    press(&browser, ".processes td.rest button");
    browser.until(&format!("{NAMES}.length === 56"));
    press(&browser, ".processes td.rest button");
    browser.until(&format!("{NAMES}.length === 24"));
    // A trainer on each GPU, which holds most of its memory; whole numbers throughout.
    filter(&browser, "python mara");
    browser.until(&format!("{NAMES}.length === 8"));
    assert!(column(&browser, 8).iter().all(|mib| (60_000.0..81_559.0).contains(mib)));
    let whole = r#"[...document.querySelectorAll(".processes tbody td:is(:nth-child(5), :nth-child(8)):not(.rest)")]
        .every(td => /^[0-9,]+$/.test(td.textContent))"#;
    assert_eq!(browser.eval(whole), true);
    // All columns group thousands in the same way.
    let alike = r#"[...document.querySelectorAll(".processes tbody td:is(:nth-child(4), :nth-child(5), :nth-child(7), :nth-child(8), :nth-child(9))")]
        .every(td => /^(–|\d{1,3}(,\d{3})*(\.\d)?)$/.test(td.textContent))"#;
    filter(&browser, " ");
    browser.until(&format!("{NAMES}.length === 24 && {alike}"));
    filter(&browser, "python mara");
    browser.until(&format!("{NAMES}.length === 8"));
    // One of them, by its PID.
    let pid = column(&browser, 2)[0].to_string();
    filter(&browser, &pid);
    browser.until(&format!("{NAMES}.length === 1"));
    filter(&browser, "nothing of the kind");
    browser.until(r#"document.querySelector(".processes td.rest").textContent === "No process matches.""#);
    filter(&browser, " ");
    // One user.
    let choose = |user: &str| {
        browser.eval(&format!(
            r#"(s => (s.value = "{user}", s.dispatchEvent(new Event("change")), 0))(document.querySelector(".processes select"))"#
        ))
    };
    choose("jonas");
    browser.until(&format!("{NAMES}.length === 2"));
    choose("");
    // The tree: the job is one line. When it is expanded, its trainers are indented below it.
    press(&browser, ".processes .choices button:nth-child(2)");
    browser.until(&format!("{NAMES}.includes('slurmstepd') && !{NAMES}.includes('torchrun')"));
    let twig = r#"[...document.querySelectorAll(".processes .twig")].find(b => b.textContent === "NAME")"#;
    for (parent, child, n) in [("slurmstepd", "torchrun", 1), ("torchrun", "python3", 8)] {
        browser.eval(&format!("({}.focus(), document.activeElement.click(), 0)", twig.replace("NAME", parent)));
        browser.until(&format!("{NAMES}.filter(n => n === '{child}').length >= {n}"));
        browser.until(&format!("document.activeElement.textContent === '{parent}'"));
        browser.until("document.activeElement.ariaExpanded === 'true'");
    }
    let left = |name: &str| format!("{}.getBoundingClientRect().left", twig.replace("NAME", name));
    assert_eq!(browser.eval(&format!("{} > {}", left("torchrun"), left("slurmstepd"))), true);
    // On a phone the user column is hidden in favor of the numbers.
    let shown =
        "[2, 3, 4].map(n => document.querySelector(`.processes tbody tr td:nth-child(${n})`).checkVisibility()).join()";
    assert_eq!(browser.eval(shown), "true,true,true");
    browser.size(390, 844);
    browser.until(&format!("{shown} === 'true,false,true'"));
    no_faults(&browser);
}

#[test]
fn the_finder_leads_to_the_process_that_was_chosen() {
    let server = demo("8");
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.press("/");
    browser.until("document.activeElement.id === 'find'");
    browser.insert("torchrun");
    browser.until("document.querySelector('#hits .n')?.textContent === 'process'");
    browser.press("Enter");
    browser.until(&format!("JSON.stringify({NAMES}) === '[\"torchrun\"]'"));
    browser.until(r#"document.querySelector(".processes input").value.startsWith("torchrun ")"#);
    no_faults(&browser);
}

#[test]
fn a_process_is_drawn_over_time_by_a_click_on_its_number() {
    let server = super::demo_of(&["--gpus", "2"]);
    let browser = Browser::start();
    browser.open(&format!("{}?w=1h", server.url));
    live(&browser);
    unfold(&browser);
    press(&browser, ".processes [data-do=past]");
    // Two lines of several points each, with their maximums in words.
    browser.until("[...document.querySelectorAll('.past path')].filter(p => p.getAttribute('d').split('L').length > 5).length === 2");
    browser.until(r"/CPU last [0-9.,]+, most [0-9.,]+ % of a core/.test(document.querySelector('.past').innerText.replace(/\s+/g, ' '))");
    press(&browser, ".processes [data-do=past][aria-expanded=true]");
    browser.until("!document.querySelector('.past')");
    no_faults(&browser);
}

#[test]
fn arguments_are_shown_and_searched_only_where_they_were_asked_for() {
    for asked in [false, true] {
        let flags: &[&str] = if asked { &["--show-args", "--retention", "7h"] } else { &["--retention", "7h"] };
        let server = Server::start(flags.iter().copied());
        let browser = Browser::start();
        browser.open(&server.url);
        live(&browser);
        unfold(&browser);
        let own = format!(
            "[...document.querySelectorAll('.processes tbody tr')].find(r => r.querySelector('.pid')?.innerText === '{}')",
            server.id()
        );
        filter(&browser, &server.id().to_string());
        browser.until(&format!("!!{own}"));
        if asked {
            browser.until(&format!("{own}?.querySelector('.cmd').title.includes('--retention 7h')"));
            filter(&browser, "retention 7h");
            browser.until(&format!("!!{own}"));
        } else {
            assert_eq!(browser.eval(&format!("{own}.querySelector('.cmd').title")), "");
        }
        no_faults(&browser);
    }
}
