//! One machine: tiles, the wide chart and six more, the families, what is absent.

use crate::page::page;
use crate::panels::panel::{PanelCard, TileCard};
use crate::panels::processes::Processes;
use crate::panels::sections::{AbsentLine, Fold, Missing, Once};
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
        <section class="tiles" aria-label="Now">
            <For each=move || tiles.get() key=Clone::clone let:id>
                <TileCard id/>
            </For>
        </section>
        <section class="charts" aria-label="Charts">
            <For each=move || absent.get() key=|a| (a.id.clone(), a.reason.clone()) let:absent>
                <AbsentLine absent/>
            </For>
            <Once/>
            <For each=move || top.get() key=|p| (p.id.clone(), p.wide) let:panel>
                <PanelCard panel/>
            </For>
        </section>
        <section class="sections" aria-label="More">
            <For each=move || sections.get() key=|s| s.id.clone() let:section>
                <Fold section/>
            </For>
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
            <For each=move || words.get().into_iter().flatten() key=Clone::clone let:word>
                <span>{word}</span>
            </For>
        </footer>
    }
}
