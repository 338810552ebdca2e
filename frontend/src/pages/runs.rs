//! The training jobs of the machine that is shown: how each does, or how it ended. A click shows its span in all charts.

use super::team::list::clock;
use crate::fetch::{self, Json};
use crate::state::{LinkState, Page};
use crate::widgets::icons::Triangle;
use charts::axis::duration;
use leptos::html;
use leptos::prelude::*;
use shared::run::RunState;

/// The id of the section.
const RUNS: &str = "runs";
/// Seconds between two questions for the list.
const REFRESH_SECONDS: u32 = 15;
/// Most runs that are listed.
const MAX_LISTED: usize = 50;
/// How much longer than the run the span is that a click shows: a tenth on either side.
const MARGIN: i64 = 10;

/// A run, as it is listed.
#[derive(Clone, Debug, PartialEq)]
struct Listed {
    id: String,
    name: String,
    project: String,
    state: RunState,
    sentence: String,
    /// Begin and end, ms since the epoch; no end while it runs.
    began: i64,
    ended: Option<i64>,
}

impl Listed {
    fn read(run: &Json) -> Option<Listed> {
        let ms = |name: &str| run.get(name).number().map(|seconds| (seconds * 1000.0) as i64);
        let texts = [run.get("name").text(), run.get("program").text(), run.get("id").text()];
        Some(Listed {
            id: run.get("id").text(),
            name: texts.into_iter().find(|text| !text.is_empty())?,
            project: run.get("project").text(),
            state: RunState::named(&run.get("state").text())?,
            sentence: run.get("sentence").text(),
            began: ms("began")?,
            ended: ms("ended"),
        })
    }
}

/// The list in a section that folds; nothing while there are no runs.
#[component]
pub fn Runs() -> impl IntoView {
    let page = expect_context::<Page>();
    let runs = RwSignal::new(Vec::<Listed>::new());
    // Seconds since the last question; None where nothing is answered: by a share link, or by an older server.
    let asked = StoredValue::new(Some(REFRESH_SECONDS));
    Effect::new(move || {
        page.beat.track();
        let live = page.state.get() == LinkState::Live && !page.is_recorded();
        let Some(since) = asked.get_value().filter(|_| live) else { return };
        if since < REFRESH_SECONDS {
            return asked.set_value(Some(since + 1));
        }
        asked.set_value(Some(0));
        let machine = js_sys::encode_uri_component(&page.machine());
        fetch::ask("GET", &format!("api/v1/runs?limit={MAX_LISTED}&source={machine}"), None, move |answer| {
            match answer.status {
                200 => {
                    let new: Vec<Listed> = answer.body.get("runs").list().iter().filter_map(Listed::read).collect();
                    if runs.with_untracked(|old| *old != new) {
                        runs.set(new);
                    }
                }
                400..500 => asked.set_value(None),
                _ => {} // It is asked again.
            }
        });
    });
    let open = Memo::new(move |_| page.is_open(RUNS, false));
    let gist = move || runs.with(|runs| runs.first().map(|run| format!("{}: {}", run.name, run.sentence)));
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| {
        let now = details.get_untracked().is_some_and(|details| details.open());
        if now != open.get_untracked() {
            page.fold(RUNS, false, now);
        }
    };
    let rows = move || open.get().then(|| runs.get().into_iter().map(|run| row(page, run)).collect_view());
    view! {
        <Show when=move || runs.with(|runs| !runs.is_empty())>
            <details node_ref=details class="fold runs" open=move || open.get() data-section=RUNS on:toggle=toggled>
                <summary>
                    <Triangle/>
                    <span class="name">"Training jobs"</span>
                    <span class="n">{move || runs.with(Vec::len)}</span>
                    <span class="gist">{gist}</span>
                </summary>
                <div class="scroll">
                    <table>
                        <thead>
                            <tr>
                                <th class="l" scope="col">"Name"</th>
                                <th class="l" scope="col">"State"</th>
                                <th scope="col">"Took"</th>
                                <th scope="col">"Began"</th>
                                <th class="l" scope="col">"Project"</th>
                            </tr>
                        </thead>
                        <tbody>{rows}</tbody>
                    </table>
                </div>
            </details>
        </Show>
    }
}

fn row(page: Page, run: Listed) -> impl IntoView {
    let Listed { id, name, project, state, sentence, began, ended } = run;
    let took = move || {
        page.beat.track();
        duration(ended.unwrap_or_else(|| page.server_now()) - began)
    };
    let show = move |_| {
        let to = ended.unwrap_or_else(|| page.server_now());
        let margin = (to - began) / MARGIN;
        page.begin_step();
        page.show(began - margin, to + margin);
    };
    let shape = match state {
        RunState::Running | RunState::Finished => "shape is-ok",
        RunState::Failed | RunState::Crashed | RunState::OutOfMemory => "shape is-bad",
        RunState::Unreachable | RunState::Cancelled | RunState::Ended => "shape",
    };
    view! {
        <tr data-run=id data-state=state.name()>
            <td class="l cmd"><button class="pid" title="Show its span in all charts" on:click=show><b>{name}</b></button></td>
            <td class="l"><span class=shape aria-hidden="true">{state.shape().to_string()}</span>" "{sentence}</td>
            <td>{took}</td>
            <td>{clock(began / 1_000)}</td>
            <td class="l">{project}</td>
        </tr>
    }
}
