//! One machine: tiles, the wide chart and six more, the families, what is absent.

use crate::page::page;
use crate::panels::panel::{PanelCard, TileCard};
use crate::panels::processes::Processes;
use crate::panels::sections::{AbsentLine, Fold, Missing, Once};
use crate::widgets::live::each;
use leptos::prelude::*;

/// The page of a machine.
#[component]
pub fn Overview() -> impl IntoView {
    let page = page();
    let tiles = Memo::new(move |_| page.plan.with(|p| p.tiles.clone()));
    let absent = Memo::new(move |_| page.plan.with(|p| p.absent.clone()));
    let top = Memo::new(move |_| page.plan.with(|p| p.top.clone()));
    let sections = Memo::new(move |_| page.plan.with(|p| p.sections.clone()));
    view! {
        // They hang from the bar, over nothing that is read: what comes while the page runs moves nothing.
        <div class="lines" role="status">
            {each(move || absent.get(), |a| format!("{} {}", a.id, a.reason), |absent| view! { <AbsentLine absent/> }.into_any())}
            <Once/>
        </div>
        <section class="tiles" aria-label="Now">
            {each(move || tiles.get(), Clone::clone, |id| view! { <TileCard id/> }.into_any())}
        </section>
        <section class="charts" id="charts" aria-label="Charts" tabindex="-1">
            {each(move || top.get(), |p| format!("{} {}", p.id, p.wide), |panel| view! { <PanelCard panel/> }.into_any())}
        </section>
        <section class="sections" aria-label="More">
            {each(move || sections.get(), |s| s.id.clone(), |section| view! { <Fold section/> }.into_any())}
            <Processes/>
            <Missing/>
        </section>
        <Foot/>
    }
}

/// Version and how much is kept.
#[component]
fn Foot() -> impl IntoView {
    let page = page();
    let words = Memo::new(move |_| {
        page.plan.track();
        let store = page.store.borrow();
        let hello = store.hello.as_ref()?;
        let source = store.sources.values().next()?;
        let every = charts::axis::duration(source.info.interval);
        let kept = charts::axis::duration(hello.retention);
        Some([format!("Watchglass {}", hello.version), format!("a sample every {every}"), format!("{kept} kept")])
    });
    view! {
        <footer class="foot">
            {each(
                move || words.get().into_iter().flatten().collect(),
                Clone::clone,
                |word| view! { <span>{word}</span> }.into_any(),
            )}
        </footer>
    }
}
