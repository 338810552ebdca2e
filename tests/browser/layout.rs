//! Tests the layout: every width, no layout shifts, and the summary of a collapsed family.

use super::{demo, live, no_faults, nothing_moved, start, still};
use serde_json::json;
use watchglass_tests::browser::Browser;
use watchglass_tests::server::{Server, free_port};

#[test]
fn the_page_fits_every_width_from_a_small_phone_to_a_wall() {
    let (_server, browser) = start("");
    for (width, height) in [(320, 640), (390, 844), (768, 1024), (1080, 800), (1440, 900), (1920, 1080), (3840, 2160)] {
        browser.size(width, height);
        browser.until(&format!("innerWidth === {width} && document.documentElement.scrollWidth <= {width}"));
        // A control that sticks out of the bar cannot be pressed.
        let outside = r#"[...document.querySelectorAll(".bar button, .bar select, .bar input")]
            .map(e => e.getBoundingClientRect()).filter(r => r.width && (r.left < 0 || r.right > innerWidth)).length"#;
        browser.until(&format!("{outside} === 0"));
        let bar = browser.rect(".bar")[3];
        assert!(bar <= if width <= 900 { 88.0 } else { 56.0 }, "the bar is {bar} px high at {width}");
        let tiles = browser
            .eval(r#"new Set([...document.querySelectorAll(".tile")].map(t => t.getBoundingClientRect().top)).size"#);
        assert_eq!(tiles, if width <= 1300 { 2 } else { 1 }, "rows of tiles at {width}");
    }
    // The tools of a narrow page are behind a button.
    browser.size(390, 844);
    browser.until(r#"getComputedStyle(document.getElementById("tools")).display === "none""#);
    browser.click(r#"button[data-do="tools"]"#);
    browser.until(r#"getComputedStyle(document.getElementById("tools")).display === "flex""#);
    no_faults(&browser);
}

#[test]
fn a_wall_shows_the_seven_without_scrolling() {
    // With many devices there are also a heat map and a hint that was not dismissed yet.
    for (gpus, charts) in [("8", 7), ("64", 8)] {
        let server = demo(gpus);
        let browser = Browser::start();
        browser.open(&server.url);
        live(&browser);
        browser.until(&format!("document.querySelectorAll('.once').length === {}", charts - 7));
        for (width, height) in [(1920, 1080), (2560, 1440), (3840, 2160)] {
            browser.size(width, height);
            browser.until(&format!("innerWidth === {width}"));
            let end =
                r#"[...document.querySelectorAll(".charts article.chart")].map(c => c.getBoundingClientRect().bottom)"#;
            browser.until(&format!("{end}.length === {charts} && Math.max(...{end}) <= innerHeight"));
        }
        no_faults(&browser);
    }
}

#[test]
fn canvases_have_the_fonts_of_the_page_and_digits_of_one_width() {
    let server = demo("1");
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    browser.until("document.fonts.check('12px Inter') && document.fonts.status === 'loaded'");
    // The browser draws each text once on a separate canvas. The next new number shows the font.
    browser.eval(
        r#"((of, draw) => { of.fillText = function (...all) { window.__font = this.font; draw.apply(this, all); }; return 0; })(
            CanvasRenderingContext2D.prototype, CanvasRenderingContext2D.prototype.fillText)"#,
    );
    let font = "window.__font";
    browser.until(&format!(r#"/^(500 )?12px Inter/.test({font})"#));
    let widths = format!(
        r#"(c => {{ c.font = {font}; return new Set([..."0123456789"].map(d => c.measureText(d).width)).size; }})(
            document.createElement("canvas").getContext("2d"))"#
    );
    assert_eq!(browser.eval(&widths), 1, "digits differ in width");
    no_faults(&browser);
}

#[test]
fn paper_is_white_and_has_no_buttons() {
    let server = demo("1");
    let browser = Browser::start();
    browser.prefer("dark");
    browser.open(&server.url);
    live(&browser);
    let theme = "document.documentElement.dataset.theme";
    assert_eq!(browser.eval(theme), "dark");
    browser.eval("(dispatchEvent(new Event('beforeprint')), 0)");
    browser.until(&format!(r#"{theme} === "light""#));
    browser.cdp("Emulation.setEmulatedMedia", serde_json::json!({ "media": "print" }));
    browser.until(r#"[".windows", ".icons", ".tools"].every(s => !document.querySelector(s).getClientRects().length)"#);
    browser.cdp("Emulation.setEmulatedMedia", serde_json::json!({ "media": "" }));
    browser.prefer("dark");
    browser.eval("(dispatchEvent(new Event('afterprint')), 0)");
    browser.until(&format!(r#"{theme} === "dark""#));
    no_faults(&browser);
}

#[test]
fn on_paper_the_map_of_a_fleet_has_all_its_machines() {
    let server = Server::start(["demo", "--hosts", "64", "--gpus", "8"]);
    let browser = Browser::start();
    browser.open(&server.url);
    browser.until("document.documentElement.dataset.link === 'live'");
    browser.until("+document.querySelector('main.fleet')?.dataset.hosts === 64");
    browser.until("document.querySelector('.map canvas')?.getBoundingClientRect().height > 100");
    browser.cdp("Emulation.setEmulatedMedia", serde_json::json!({ "media": "print" }));
    browser.eval("(dispatchEvent(new Event('beforeprint')), 0)");
    let words = browser.eval("document.body.dataset.paper");
    assert!(words.as_str().is_some_and(|words| words.starts_with("64 machines, ")), "{words}");
    // The map is drawn at once, as printing requires: the cells of the last machine of the last rack are in the lower
    // right.
    let ink = r#"(c => { const w = c.width, h = c.height;
        const part = c.getContext("2d").getImageData(w * .8, h - h / 12, w * .2, h / 12).data;
        return part.filter((v, at) => at % 4 === 3 && v > 0).length; })(document.querySelector(".map canvas"))"#;
    assert!(browser.eval(ink).as_u64().is_some_and(|n| n > 50), "{:?}", browser.eval(ink));
    let ratio = "(c => c.width / c.height * c.getBoundingClientRect().height / c.getBoundingClientRect().width)";
    let ratio = browser.eval(&format!("{ratio}(document.querySelector('.map canvas'))"));
    assert!(ratio.as_f64().is_some_and(|ratio| (ratio - 1.0).abs() < 0.02), "it is stretched: {ratio}");
    no_faults(&browser);
}

#[test]
fn on_paper_each_chart_is_drawn_whole_under_the_machine_and_the_span() {
    let (_server, browser) = start("?w=5m");
    let out_of_sight = r#"[...document.querySelectorAll("article.chart")].pop()"#;
    browser.eval("(dispatchEvent(new Event('beforeprint')), 0)");
    let words = browser.eval("document.body.dataset.paper");
    let words = words.as_str().expect("a title");
    assert!(words.starts_with("demo-01, ") && words.contains('–'), "{words}");
    // The page is as wide as a sheet, and charts that were never on the screen are drawn too.
    assert_eq!(browser.eval("Math.round(document.querySelector('main').getBoundingClientRect().width)"), 940);
    let ink = format!(
        r#"(c => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(v => v > 0))
            ({out_of_sight}.querySelector("canvas"))"#
    );
    assert_eq!(browser.eval(&ink), true, "the last chart is empty");
    let dots = format!("(c => c.width / c.getBoundingClientRect().width)({out_of_sight}.querySelector('canvas'))");
    assert!(browser.eval(&dots).as_f64().is_some_and(|d| d > 1.9), "as coarse as a screen");
    let wider =
        "[...document.querySelectorAll('article.chart')].filter(a => a.getBoundingClientRect().right > 940).length";
    assert_eq!(browser.eval(wider), 0);
    browser.eval("(dispatchEvent(new Event('afterprint')), 0)");
    browser.until("document.body.dataset.paper === undefined && document.querySelector('main').clientWidth > 1300");
    let pages = browser.cdp("Page.printToPDF", serde_json::json!({ "printBackground": false }));
    assert!(pages["data"].as_str().is_some_and(|data| data.len() > 50_000), "a sheet with hardly anything on it");
    browser.until("document.body.dataset.paper === undefined");
    no_faults(&browser);
}

#[test]
fn nothing_jumps_while_data_arrives() {
    // Its past is still being simulated when the page is opened.
    let server = Server::start(["demo", "--gpus", "8"]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    let tiles = r#"[...document.querySelectorAll(".tile canvas, article.hero .plot")].map(c => c.getBoundingClientRect().width).join(" ")"#;
    let before = browser.eval(tiles);
    let ticks = r#"+document.querySelector("article.hero").dataset.samples"#;
    // Within this time, numbers of different lengths appear.
    browser.until(&format!("performance.now() > 10000 && {ticks} > 200"));
    assert_eq!(browser.eval(tiles), before);
    nothing_moved(&browser);
}

#[test]
fn nothing_jumps_when_the_server_goes_and_comes_back() {
    let port = free_port();
    let server = Server::start_on(port, ["demo", "--gpus", "8"]);
    let browser = Browser::start();
    browser.open(&server.url);
    live(&browser);
    assert!(server.end().success());
    browser.until(r#"document.documentElement.dataset.link === "reconnecting" && document.querySelector(".banner")"#);
    browser.until(r#"/last sample/.test(document.querySelector("article.hero .age").textContent)"#);
    let _again = Server::start_on(port, ["demo", "--gpus", "8"]);
    live(&browser);
    browser.until(r#"!document.querySelector(".banner")"#);
    nothing_moved(&browser);
}

#[test]
fn families_are_open_as_far_as_twenty_four_charts_go_and_the_rest_says_what_is_in_it() {
    let (_server, browser) = start("");
    let open = r#"document.querySelectorAll("article.chart").length"#;
    browser.until(&format!("{open} > 10"));
    assert!(browser.eval(open).as_u64() <= Some(24), "{}", browser.eval(open));
    let folded = r#"[...document.querySelectorAll("details.fold[data-charts]:not([open])")]"#;
    browser.until(&format!("{folded}.length > 0"));
    browser.until(&format!(
        "{folded}.every(f => +f.querySelector('.n').textContent > 0 && f.querySelector('.gist').textContent.length > 3)"
    ));
    // The line of unavailable data has a reason for each entry.
    browser.until(r#"document.querySelector(".why summary")"#);
    browser.eval(r#"(document.querySelector(".why summary").click(), 0)"#);
    browser.until(r#"[...document.querySelectorAll(".why dd")].every(d => d.textContent.length > 10)"#);
    no_faults(&browser);
}

#[test]
fn on_a_gpu_machine_clocks_activity_and_links_are_open_and_uptime_is_a_number() {
    let (_server, browser) = super::start("");
    let open = |id: &str| format!(r#"document.querySelector('details[data-section="{id}"]').open"#);
    for (id, wanted) in [("gpu.clock", true), ("gpu.sm", true), ("gpu.link", true), ("gpu.more", false)] {
        browser.until(&format!("{} === {wanted}", open(id)));
    }
    let gist = r#"document.querySelector('details[data-section="system"]:not([open]) .gist').textContent"#;
    browser.until(&format!("/^Uptime [0-9]+ (d|h|min).*, Runnable tasks [0-9]+, Tasks [0-9]+$/.test({gist})"));
    no_faults(&browser);
}

#[test]
fn folds_are_kept_in_the_link_and_in_the_browser() {
    let (server, browser) = super::start("");
    let open = |id: &str| format!(r#"document.querySelector('details[data-section="{id}"]')?.open"#);
    let press = |id: &str| {
        let summary = format!(r#"document.querySelector('[data-section="{id}"] summary')"#);
        browser.until(&summary);
        browser.eval(&format!("({summary}.click(), 0)"));
    };
    press("gpu.link");
    press("processes");
    press("gpu.more");
    browser.until("location.search.includes('open=processes%2Cgpu.more&shut=gpu.link')");
    let folds =
        format!("!{} && {} && {} && {}", open("gpu.link"), open("processes"), open("gpu.more"), open("gpu.clock"));
    browser.reload();
    super::live(&browser);
    browser.until(&folds);
    // The next visit without a link shows the same layout, and its address contains it.
    browser.open(&server.url);
    super::live(&browser);
    browser.until(&folds);
    browser.until("location.search.includes('shut=gpu.link')");
    // A link takes precedence.
    browser.open(&format!("{}?open=gpu.errors", server.url));
    super::live(&browser);
    browser.until(&format!("{} && !{} && {}", open("gpu.link"), open("processes"), open("gpu.errors")));
    no_faults(&browser);
}

#[test]
fn a_chart_is_hidden_by_its_menu_and_a_line_brings_it_back() {
    let (_server, browser) = super::start("");
    let there = |id: &str| format!(r#"!!document.querySelector('article.chart[data-panel="{id}"]')"#);
    for id in ["gpu.power", "gpu"] {
        browser.until(&there(id));
        browser.click(&format!("article[data-panel='{id}'] h3 button"));
        browser.until("document.querySelector('#menu [data-do=hide]')");
        browser.click("#menu [data-do=hide]");
        browser.until(&format!("!{}", there(id)));
        browser.until("document.activeElement.matches('.absent.hidden button')");
    }
    let words = "document.querySelector('.absent.hidden')?.innerText";
    browser.until(&format!("{words}.includes('2 charts are hidden')"));
    browser.until("location.search.includes('hide=gpu.power%2Cgpu')");
    // Back is one step, and a reloaded page shows the same.
    browser.eval("(history.back(), 0)");
    browser.until(&format!("{} && {words}.includes('1 chart is hidden')", there("gpu")));
    browser.reload();
    super::live(&browser);
    browser.until(&format!("{words}.includes('1 chart is hidden') && !{}", there("gpu.power")));
    browser.click(".absent.hidden button");
    browser.until(&format!("{} && !document.querySelector('.absent.hidden')", there("gpu.power")));
    no_faults(&browser);
}

#[test]
fn charts_stand_as_a_person_puts_them_in_a_layout_that_is_kept_and_in_the_link() {
    let (server, browser) = super::start("");
    let order = "[...document.querySelectorAll('.charts article.chart')].map(a => a.dataset.panel).join()";
    // Series, checks and rows arrive one after another.
    still(&browser, order);
    let before = browser.eval(order).as_str().expect("a list").to_string();
    let all: Vec<&str> = before.split(',').collect();
    let choose = |chart: &str, what: &str| {
        let open = format!("document.querySelector('#menu[data-chart=\"{chart}\"]:not([hidden]) [data-do={what}]')");
        // By a script, because charts below may still be moving, and a pointer would then miss.
        let press = |selector: &str| browser.eval(&format!("(document.querySelector(`{selector}`).click(), 0)"));
        press(&format!("article[data-panel='{chart}'] h3 button"));
        browser.until(&open);
        press(&format!("#menu [data-do={what}]"));
    };
    choose(all[3], "earlier");
    browser.until(&format!("{order}.startsWith('{},{},{},{}')", all[0], all[1], all[3], all[2]));
    choose(all[3], "first");
    browser.until(&format!("{order}.startsWith('{},{},{},{}')", all[3], all[0], all[1], all[2]));
    browser.until(&format!("location.search.includes('front={}')", all[3]));
    // The layout is saved under a name, the page returns to its default, and the layout is restored by its name.
    browser.press("v");
    browser.until("document.getElementById('layout')");
    browser.focus("#layout");
    browser.insert("third first");
    browser.click("[data-do=keep-layout]");
    browser.until("location.search.includes('layout=third')");
    browser.click(".layouts [data-do=layout]");
    browser.until(&format!("{order} === '{before}' && !location.search.includes('front=')"));
    browser.press("Escape");
    browser.until("!document.getElementById('dialog').open");
    // The link of the layout shows it in a browser that keeps it, and the next visit has the list.
    browser.open(&format!("{}?front={},{}&layout=sent", server.url, all[2], all[1]));
    super::live(&browser);
    browser.until(&format!("{order}.startsWith('{},{},{}')", all[2], all[1], all[0]));
    browser.until("document.querySelector('[data-do=layouts]').innerText === 'Layout: sent'");
    browser.click("[data-do=layouts]");
    browser.until("document.querySelectorAll('.layouts li').length === 2");
    browser.click(".layouts li:nth-child(2) [data-do=layout]");
    browser.until(&format!("{order}.startsWith('{},{}')", all[3], all[0]));
    browser.click(".layouts li:nth-child(2) [data-do=forget]");
    browser.until("document.querySelectorAll('.layouts li').length === 1");
    browser.press("Escape");
    browser.until("!document.getElementById('dialog').open");
    choose(all[3], "own-place");
    browser.until(&format!("{order} === '{before}'"));
    no_faults(&browser);
}

#[test]
fn the_figures_of_a_chart_have_one_space_between_them() {
    let (_server, browser) = super::start("");
    let wide = r#"[...document.querySelectorAll("article.chart .figures")].filter(f => f.offsetWidth)"#;
    browser.until(&format!("{wide}.length > 5"));
    // The gaps before the labels are equal, regardless of the widths of the numbers.
    let uneven = format!(
        r#"{wide}.filter(f => {{
            const [a, b, c] = [...f.querySelectorAll("span")].map(s => s.getBoundingClientRect());
            const words = [...f.querySelectorAll("i")].map(i => i.getBoundingClientRect());
            return Math.abs((words[1].left - a.right) - (words[2].left - b.right)) > 1 || c.right - b.right < 10;
        }}).length"#
    );
    browser.until(&format!("{uneven} === 0"));
    no_faults(&browser);
}

#[test]
fn the_figures_of_the_machine_are_there_before_the_code_of_the_page_and_go_when_it_is_live() {
    let server = demo("8");
    let browser = Browser::start();
    browser.cdp("Network.enable", json!({}));
    let block = |urls: &[&str]| browser.cdp("Network.setBlockedURLs", json!({ "urls": urls }));
    block(&["*.wasm"]);
    browser.before_each_page("window.__seen = new Set();");
    browser.open(&server.url);
    let figures =
        "[...document.querySelectorAll('#now .tile .number')].filter(n => /[0-9]/.test(n.textContent)).length";
    browser.until(&format!("{figures} === 4"));
    // They are read again, as long as the page is not there.
    browser.until("__seen.add(document.getElementById('now').innerText).size > 1");
    let place = |of: &str| browser.rect(of);
    let first = place("#now .tile");
    block(&[]);
    browser.open(&server.url);
    live(&browser);
    assert_eq!(browser.eval("document.getElementById('now')"), serde_json::Value::Null);
    let tile = place(".tile");
    assert_eq!((first[0], first[1], first[2]), (tile[0], tile[1], tile[2]), "nothing moves when the page takes over");
    // An address that shows something else has no figures of now.
    block(&["*.wasm"]);
    for query in ["page=runs", "from=1700000000&to=1700000300", "view=compact"] {
        browser.open(&format!("{}?{query}", server.url));
        browser.until("document.readyState === 'complete'");
        assert_eq!(browser.eval("performance.getEntriesByName(new URL('api/v1/now?', location.href).href).length"), 0);
    }
}

#[test]
fn a_card_of_ones_own_has_series_of_several_charts_in_the_address_and_in_a_layout() {
    let server = demo("8");
    let browser = Browser::start();
    browser.open(&format!("{}?only=gpu.temp~GPU+3&only=gpu.power~GPU+3&only=gpu.memory~GPU+3", server.url));
    live(&browser);
    // By a script, because charts may still be moving, and a pointer would then miss. Another chart's menu may close with
    // the first click.
    let menu = |chart: &str, has: &str| {
        let title = format!("document.querySelector(\"article[data-panel='{chart}'] h3 button\")");
        browser.until(&format!("document.querySelector('{has}') || ({title}.click(), null)"));
    };
    let add = |chart: &str, to: &str, said: &str| {
        menu(chart, "#card");
        browser.eval(&format!(
            "(s => {{ s.value = [...s.options].find(o => o.textContent === {to:?}).value; s.dispatchEvent(new Event('change')); return 0; }})(document.getElementById('card'))"
        ));
        browser.until(&format!("document.querySelector('#menu .did').innerText.startsWith({said:?})"));
        browser.press("Escape");
    };
    add("gpu.temp", "a new card", "Added to the card Card");
    let card = "article.chart[data-panel='own.Card']";
    browser.until(&format!("document.querySelector(\"{card}\")?.dataset.state === 'live'"));
    add("gpu.power", "Card", "Added to the card Card");
    browser
        .until(&format!("document.querySelector(\"{card} header\").innerText.includes('dashed: Card, second unit')"));
    add("gpu.memory", "Card", "A card has at most two units.");
    // Another name keeps its series; the link has all of it.
    menu("own.Card", "#card-name");
    browser.eval("(i => { i.value = 'Hot GPU'; i.dispatchEvent(new Event('change')); return 0; })(document.getElementById('card-name'))");
    let card = "article.chart[data-panel='own.Hot GPU']";
    browser.until(&format!(
        "document.querySelector(\"{card} header\")?.innerText.includes('dashed: Hot GPU, second unit')"
    ));
    let address = browser.eval("location.href");
    browser.open("about:blank");
    browser.open(address.as_str().expect("an address"));
    browser.until(&format!("document.querySelector(\"{card}\")?.dataset.state === 'live'"));
    browser.until(&format!(
        "document.querySelector(\"{card} header\").innerText.includes('dashed: Hot GPU, second unit')"
    ));
    menu("own.Hot GPU", "[data-do=remove-card]");
    browser.eval("(document.querySelector('[data-do=remove-card]').click(), 0)");
    browser.until(&format!("!document.querySelector(\"{card}\")"));
    assert_eq!(browser.eval("new URLSearchParams(location.search).has('card')"), false);
    no_faults(&browser);
}
