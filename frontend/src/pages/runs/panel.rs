//! The training jobs of the machine that is shown: lanes under its first chart, and a list in a section that folds. A
//! click on a job leads to its page; a click on its duration shows its span in all charts.

use super::parts::{listed, shape, state_word};
use crate::access::Access;
use crate::pages::poll::{PollAnswer, poll};
use crate::state::{LinkState, Page};
use crate::widgets::clock::clock;
use crate::widgets::icons::Triangle;
use crate::widgets::parts::{If, flag, text};
use leptos::html;
use leptos::prelude::*;
use shared::unit::rough_duration;
use viewer::runs::Listed;

/// The id of the section.
const RUNS: &str = "runs";
/// Seconds between two polls of the list.
const REFRESH_SECONDS: u32 = 15;
/// Most runs that are listed.
const MAX_LISTED: usize = 50;
/// Most lanes under the chart: the newest that reach into the span. They take their room from the chart, so that
/// nothing else moves when a job begins.
const MAX_LANES: usize = 3;
/// A bar shorter than `SHORT_BAR` has its name after its end, or before its begin where the end is beyond `LATE_END`. Both are
/// in thousandths of the span.
const SHORT_BAR: i32 = 120;
const LATE_END: i32 = 750;
/// Margin of the span that a click shows: a tenth of the run on either side.
const MARGIN_DIVISOR: i64 = 10;

/// Most of all machines.
const MAX_OF_FLEET: usize = 100;

/// The jobs of the machine, or of all machines, newest first.
#[derive(Clone, Copy)]
pub struct Jobs(RwSignal<Vec<Listed>>);

impl Jobs {
    /// Polls the jobs of the machine as long as the calling component exists.
    pub fn follow(page: Page) -> Jobs {
        // Between a file and a server there is no machine.
        let machine = move || Some(page.machine()).filter(|name| !name.is_empty());
        Jobs::asked(page, move || {
            let machine = String::from(js_sys::encode_uri_component(&machine()?));
            Some(format!("api/v1/runs?limit={MAX_LISTED}&source={machine}"))
        })
    }

    /// The same for all machines, each with its usage.
    pub fn of_fleet(page: Page) -> Jobs {
        Jobs::asked(page, || Some(format!("api/v1/runs?sums=true&limit={MAX_OF_FLEET}")))
    }

    /// Open jobs, the newest first: name and machines.
    pub fn open(self) -> Vec<(String, Vec<String>)> {
        let open = |run: &Listed| run.ended.is_none().then(|| (run.name.clone(), run.hosts.clone()));
        self.with(|runs| runs.iter().filter_map(open).collect())
    }

    /// Reads the list.
    pub(super) fn with<T>(self, read: impl FnOnce(&[Listed]) -> T) -> T {
        self.0.with(|runs| read(runs))
    }

    fn asked(page: Page, path: impl Fn() -> Option<String> + 'static) -> Jobs {
        let runs = RwSignal::new(Vec::<Listed>::new());
        // Those of the server are none of a file that is opened over it.
        Effect::new(move || {
            if page.over.get() {
                runs.set(Vec::new());
            }
        });
        let path = move || {
            let live = page.state.get() == LinkState::Live && !page.is_recorded() && !page.over.get();
            if live { path() } else { None }
        };
        poll(page, expect_context::<Access>(), REFRESH_SECONDS, path, move |polled| {
            let PollAnswer::Told(body) = polled else { return };
            let Ok(new) = listed(body) else { return };
            if !new.is_empty() {
                page.has_runs.set(true);
            }
            if runs.with_untracked(|old| *old != new) {
                runs.set(new);
            }
        });
        Jobs(runs)
    }
}

/// A lane for each job that reaches into the span of the charts, from its begin to its end, on the chart's own axis of
/// time.
#[component]
pub fn Lanes() -> impl IntoView {
    let page = expect_context::<Page>();
    let Jobs(runs) = expect_context::<Jobs>();
    let shown = Memo::new(move |_| {
        page.beat.track();
        page.view.track();
        let (from, to) = page.span();
        let now = page.server_now();
        let place =
            |t: i64| ((t - from) as f64 / (to - from).max(1) as f64 * 1_000.0).clamp(0.0, 1_000.0).round() as i32;
        let reaches = |run: &&Listed| run.began < to && run.ended.unwrap_or(now) > from;
        runs.with(|runs| {
            let lanes = runs.iter().filter(reaches).take(MAX_LANES);
            lanes.map(|run| (run.clone(), place(run.began), place(run.ended.unwrap_or(now)))).collect::<Vec<_>>()
        })
    });
    let lane = move |(run, begin, end): (Listed, i32, i32)| {
        let percent = |part: i32| format!("{}%", f64::from(part) / 10.0);
        let (left, wide) = (percent(begin), percent((end - begin).max(2)));
        let (from_left, from_right) = match end - begin {
            ..SHORT_BAR if end < LATE_END => (percent(end), String::new()),
            ..SHORT_BAR => (String::new(), percent(1_000 - begin)),
            _ => (percent(begin), String::new()),
        };
        let to = page.address_of_runs(std::slice::from_ref(&run.id));
        let title = format!("{}: {}", run.name, run.sentence);
        view! {
            <a class="lane" href=to title=title data-run=run.id.clone() data-state=run.state.name()>
                <span class="kind">"run"</span>
                <span class="track"><i class=shape(run.state) style:left=left style:width=wide></i><span class="who" style:left=from_left style:right=from_right>{run.name.clone()}</span></span>
                <span class="how"><span class=shape(run.state) aria-hidden="true">{run.state.shape().to_string()}</span>" "{state_word(run.state)}</span>
            </a>
        }
    };
    view! {
        <If when=flag(move || shown.with(|shown| !shown.is_empty()))>
            <section class="run-lanes" aria-label="Training jobs in this span">
                {move || shown.get().into_iter().map(lane).collect_view()}
            </section>
        </If>
    }
}

/// The list in a section that folds; nothing while there are no runs.
#[component]
pub fn Runs() -> impl IntoView {
    let page = expect_context::<Page>();
    let Jobs(runs) = expect_context::<Jobs>();
    let open = Memo::new(move |_| page.is_open(RUNS, false));
    let gist = text(move || {
        runs.with(|runs| runs.first().map_or(String::new(), |run| format!("{}: {}", run.name, run.sentence)))
    });
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
                                <th scope="col">"Ranks"</th>
                                <th scope="col">"Duration"</th>
                                <th scope="col">"Started"</th>
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
    let to = page.address_of_runs(std::slice::from_ref(&run.id));
    let Listed { id, name, project, state, sentence, began, ended, ranks, .. } = run;
    let took = text(move || {
        page.beat.track();
        rough_duration(ended.unwrap_or_else(|| page.server_now()) - began)
    });
    let show = move |_| {
        let to = ended.unwrap_or_else(|| page.server_now());
        let margin = (to - began) / MARGIN_DIVISOR;
        page.begin_step();
        page.show(began - margin, to + margin);
    };
    view! {
        <tr data-run=id data-state=state.name()>
            <td class="l cmd"><a href=to><b>{name}</b></a></td>
            <td class="l"><span class=shape(state) aria-hidden="true">{state.shape().to_string()}</span>" "{sentence}</td>
            <td>{(ranks > 0).then_some(ranks)}</td>
            <td><button class="pid" title="Show its span in all charts" on:click=show>{took}</button></td>
            <td>{clock(began / 1_000)}</td>
            <td class="l">{project}</td>
        </tr>
    }
}
