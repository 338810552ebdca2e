//! The training jobs of all machines as lanes over the last hours. Jobs of one name and user share a lane, each as its
//! use of the GPUs over its life.

use super::panel::Jobs;
use super::parts::{figure, shape, state_word};
use crate::address::Route;
use crate::browser::offset;
use crate::state::Page;
use crate::store::fleet::words::count;
use crate::widgets::parts::{Each, If, flag, text};
use crate::widgets::spark::Small;
use charts::axis::clock;
use leptos::prelude::*;
use shared::run::RunState;
use viewer::runs::Listed;
use viewer::runs::lanes::{lane_of, lanes};

/// Span of the lanes, in ms.
const SPAN: i64 = 12 * 3_600_000;
/// Lanes that are shown; further jobs are counted.
const MAX_LANES: usize = 12;
/// Times that are written below the lanes.
const TIMES: i64 = 6;

/// The lanes, below a heading; nothing while there are none.
#[component]
pub fn FleetLanes() -> impl IntoView {
    let page = expect_context::<Page>();
    let jobs = expect_context::<Jobs>();
    // A lane need not move with each second.
    let to = Memo::new(move |_| {
        page.beat.track();
        page.server_now() / 10_000 * 10_000 + 10_000
    });
    let span = move || (to.get() - SPAN, to.get());
    let keys = Memo::new(move |_| jobs.with(|runs| lanes(runs, span())));
    let shown = Signal::derive(move || keys.with(|keys| keys.iter().take(MAX_LANES).cloned().collect::<Vec<_>>()));
    let further = move || keys.with(Vec::len).saturating_sub(MAX_LANES);
    let said = move || {
        let running = jobs.with(|runs| runs.iter().filter(|run| run.ended.is_none()).count());
        format!("12 h; {running} running")
    };
    let lane = Callback::new(move |key: String| view! { <Lane key to/> }.into_any());
    let time = move |at: i64| {
        // Whole hours of the reader.
        let (from, every) = (to.get() - SPAN, SPAN / TIMES);
        let t = (from + offset(from)).div_euclid(every) * every + every * at - offset(from);
        let left = format!("{:.2}%", (t - from) as f64 / SPAN as f64 * 100.0);
        view! { <span style:left=left>{clock(t + offset(t), false)}</span> }
    };
    view! {
        <If when=flag(move || keys.with(|keys| !keys.is_empty()))>
            <section class="panel fleet-runs" aria-label="Runs">
                <header>
                    <h2>"Runs"</h2>
                    <span class="u">{text(said)}</span>
                    <a class="end" href=page.address_of(Some(Route::Runs), &[])>"All runs"</a>
                </header>
                <ol><Each keys=shown row=lane/></ol>
                <div class="times" aria-hidden="true">{move || (1..=TIMES).map(time).collect_view()}</div>
                <If when=flag(move || further() > 0)>
                    <p class="below">{text(move || format!("{} more: see all runs", count(further(), "job", "jobs")))}</p>
                </If>
            </section>
        </If>
    }
}

#[component]
fn Lane(key: String, to: Memo<i64>) -> impl IntoView {
    let page = expect_context::<Page>();
    let jobs = expect_context::<Jobs>();
    let own = Memo::new(move |_| {
        jobs.with(|runs| runs.iter().filter(|run| lane_of(run) == key).cloned().collect::<Vec<Listed>>())
    });
    // The list has the newest first.
    let of = move |read: fn(&Listed) -> String| text(move || own.with(|own| own.first().map(read).unwrap_or_default()));
    let link = text(move || {
        own.with(|own| own.first().map(|run| page.address_of_runs(std::slice::from_ref(&run.id))).unwrap_or_default())
    });
    let jobs = move || {
        let now = page.server_now();
        own.get().into_iter().map(|run| job(page, run, (to.get() - SPAN, to.get()), now)).collect_view()
    };
    view! {
        <li data-run=of(|run| run.id.clone()) data-state=of(|run| run.state.name().to_string())>
            <span class="who">
                <span class=of(|run| shape(run.state).to_string()) aria-hidden="true">{of(|run| run.state.shape().to_string())}</span>
                " "<a class="source-name" href=link>{of(|run| run.name.clone())}</a>" "<span class="u">{of(|run| run.user.clone())}</span>
            </span>
            <span class="lives">{jobs}</span>
            <b class="n">{of(|run| figure(run.figures.utilization.map(f64::round), "%"))}</b>
            <span class="n u">{of(|run| run.figures.gpus.map_or_else(String::new, |n| count(n as usize, "GPU", "GPUs")))}</span>
        </li>
    }
}

/// One job in its lane. A job that began before the span is cut off at its edge.
fn job(page: Page, run: Listed, (from, to): (i64, i64), now: i64) -> impl IntoView {
    let place = |t: i64| (t - from) as f64 / (to - from) as f64 * 100.0;
    let (begin, end) = (place(run.began), place(run.ended.unwrap_or(now)));
    let (left, wide) = (format!("{begin:.3}%"), format!("{:.3}%", (end - begin).max(0.15)));
    let is_bad = shape(run.state).ends_with("is-bad");
    let told = is_bad.then(|| {
        // The label is on the side with room for it.
        let (left, right) = match end > 85.0 {
            true => (String::new(), format!("{:.3}%", 100.0 - begin)),
            false => (format!("{end:.3}%"), String::new()),
        };
        view! { <span class="fell" style:left=left style:right=right><span class="shape is-bad" aria-hidden="true">"■"</span>" "{state_word(run.state)}</span> }
    });
    let to = page.address_of_runs(std::slice::from_ref(&run.id));
    let class = match run.state {
        RunState::Running => "life runs",
        _ if is_bad => "life is-bad",
        _ => "life",
    };
    let title = format!("{}: {}", run.name, run.sentence);
    view! {
        <a class=class href=to title=title style:left=left style:width=wide data-run=run.id>
            {(!run.spark.is_empty()).then(|| view! { <Small values=run.spark.clone() most=100.0/> })}
        </a>
        {told}
    }
}
