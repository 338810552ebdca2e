//! The page of one machine: tiles, the charts on top, the families below, and the missing metrics.

use super::cells::{Cells, KernelLine};
use super::findings::say::FindingLine;
use super::notes::MachineNotes;
use super::processes::Processes;
use super::runs::panel::{Jobs, Runs};
use super::sections::{AbsentLine, ChartCard, Compared, Family, Hidden, Missing, ReadOnce};
use crate::gestures::pointer;
use crate::panels::board::Board;
use crate::panels::panel::TileCard;
use crate::shortcuts::{self, Action};
use crate::state::{Dialog, Page};
use crate::store::plan::{Absent, PROCESSES};
use crate::widgets::clock::Zone;
use leptos::html;
use leptos::prelude::*;
use shared::unit::{duration, rough_duration};

/// The page of one machine.
#[component]
pub fn Overview() -> impl IntoView {
    let board = expect_context::<Board>();
    let page = board.page;
    let main = NodeRef::<html::Main>::new();
    main.on_load(move |main| pointer::listen(board, &main));
    provide_context(Jobs::follow(page));
    let lines = move |trouble: bool| {
        let each = move || {
            let fits = |absent: &&Absent| absent.is_trouble() == trouble && !page.is_dismissed(&absent.dismissal_key());
            page.plan.with(|p| p.absent.iter().filter(fits).cloned().collect::<Vec<_>>())
        };
        let key = |absent: &Absent| (absent.id.clone(), absent.reason.clone());
        view! { <For each=each key=key children=|absent| view! { <AbsentLine absent/> }/> }
    };
    let end = Signal::derive(move || {
        page.plan.track();
        page.view.track();
        page.span().1
    });
    // Warnings arrive later. They hang from the bar over an empty strip, so that nothing moves. Content that is there
    // from the start, or follows a user action, has its own row.
    view! {
        <main node_ref=main id="page">
            <div class="lines" role="status">{lines(true)}</div>
            <div class="notices" role="status">
                <KernelLine/>
                {lines(false)}
                <ReadOnce/>
                <Hidden/>
                <Compared/>
            </div>
            <section class="tiles" aria-label="Now">
                <For
                    each=move || page.plan.with(|p| p.tiles.clone())
                    key=Clone::clone
                    children=|id| view! { <TileCard id/> }
                />
            </section>
            <FindingLine/>
            <section class="charts" id="charts" aria-label="Charts" tabindex="-1">
                <For
                    each=move || page.plan.with(|p| p.top.clone())
                    key=|panel| (panel.id.clone(), panel.wide)
                    children=|panel| view! { <ChartCard panel/> }
                />
            </section>
            <section class="sections" aria-label="More">
                <Cells/>
                <Runs/>
                <MachineNotes/>
                <For
                    each=move || page.plan.with(|p| p.sections.clone())
                    key=|section| section.id.clone()
                    children=|section| match section.id.as_str() {
                        PROCESSES => view! { <Processes/> }.into_any(),
                        _ => view! { <Family section/> }.into_any(),
                    }
                />
                <Missing/>
            </section>
            <footer class="foot">
                <For each=move || words(page) key=Clone::clone children=|word| view! { <span>{word}</span> }/>
                <Show when=move || page.plan.with(|p| !p.sections.is_empty())>
                <Zone at=end is_file=page.over/>
                <button data-do="layouts" title=shortcuts::title("Saved layouts", &[Action::Layouts]) on:click=move |_| page.dialog.set(Some(Dialog::Layouts))>
                    {move || page.view.with(|v| v.layout.as_ref().map_or("Layouts…".into(), |name| format!("Layout: {name}")))}
                </button>
                </Show>
            </footer>
        </main>
    }
}

/// The texts at the foot of the page: version, sample interval, and retention.
fn words(page: Page) -> Vec<String> {
    page.plan.track();
    let store = page.store.read_value();
    let (Some(hello), Some(source)) = (&store.hello, store.sources.values().next()) else { return Vec::new() };
    let every = duration(source.info.interval);
    let kept = rough_duration(hello.retention);
    vec![format!("Watchglass {}", hello.version), format!("one sample every {every}"), format!("{kept} kept")]
}
