//! One machine: tiles, the wide chart and six more, the families, what is absent.

use crate::page::{Page, page};
use crate::panels::panel::{panel_card, tile_card};
use crate::panels::processes::processes;
use crate::panels::sections::{absent_line, fold, missing, once};
use crate::store::plan::{Absent, Panel};
use crate::widgets::{dom, live};
use leptos::tachys::html::InertElement;

// The lines hang from the bar, over nothing that is read: what comes while the page runs moves nothing.
const PAGE: &str = "<main id=page>\
    <div class=lines role=status><slot class=absent></slot><slot class=once></slot></div>\
    <section class=tiles aria-label=Now><slot></slot></section>\
    <section class=charts id=charts aria-label=Charts tabindex=-1><slot></slot></section>\
    <section class=sections aria-label=More><slot class=families></slot><slot class=processes></slot><slot class=missing></slot></section>\
    <footer class=foot><slot></slot></footer>\
</main>";

/// The page of a machine.
pub fn overview() -> InertElement {
    live::standing(PAGE, "#page", |main| {
        let page = page();
        let slot = |selector: &str| dom::find(main, selector);
        let reason = |a: &Absent| format!("{} {}", a.id, a.reason);
        live::each(&slot(".absent"), move || page.plan.with(|p| p.absent.clone()), reason, absent_line);
        once(&slot(".once"));
        live::each(&slot(".tiles slot"), move || page.plan.with(|p| p.tiles.clone()), Clone::clone, tile_card);
        let key = |p: &Panel| format!("{} {}", p.id, p.wide);
        live::each(&slot(".charts slot"), move || page.plan.with(|p| p.top.clone()), key, panel_card);
        live::each(&slot(".families"), move || page.plan.with(|p| p.sections.clone()), |s| s.id.clone(), fold);
        live::when(&slot(".processes"), || true, processes);
        missing(&slot(".missing"));
        live::each(
            &slot(".foot slot"),
            move || words(page),
            Clone::clone,
            |word: String| {
                let span = live::made("<span></span>");
                span.set_text_content(Some(&word));
                span
            },
        );
    })
}

/// Version and how much is kept.
fn words(page: Page) -> Vec<String> {
    page.plan.track();
    let store = page.store.borrow();
    let (Some(hello), Some(source)) = (&store.hello, store.sources.values().next()) else { return Vec::new() };
    let every = charts::axis::duration(source.info.interval);
    let kept = charts::axis::duration(hello.retention);
    vec![format!("Watchglass {}", hello.version), format!("a sample every {every}"), format!("{kept} kept")]
}
