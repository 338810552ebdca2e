//! The page of one training job: its state or end, its resources and their use, its charts over its own time, and its
//! ranks.

use super::edit::EditRun;
use super::parts::{energy, figure, percent, sentence, shape, size, where_it_ran};
use super::printed::PrintedLines;
use super::ranks::{Multiples, RankLanes};
use crate::access::Access;
use crate::address::{Route, View};
use crate::browser::{self, document};
use crate::fetch;
use crate::pages::notes::{self, RunNotes};
use crate::panels::board::Board;
use crate::panels::curves::Curves;
use crate::state::{LinkState, NoteDraft, Page};
use crate::store::fleet::words::count;
use crate::widgets::clock::clock;
use crate::widgets::parts::{Each, If, flag, text};
use charts::marks::CellMark;
use charts::order;
use leptos::ev;
use leptos::prelude::*;
use shared::alert::{Alert, Alerts};
use shared::answer::markers::{self, MarkerList};
use shared::failure::FailureClass;
use shared::note::SavedNote;
use shared::unit::{duration, number, rough_duration};
use std::sync::Arc;
use viewer::curves::CurveChart;
use viewer::runs::{Figures, Measured, STEPS, Whole};

/// Seconds between two polls while the run is open, and once it has settled: late samples may arrive.
const REFRESH_SECONDS: u32 = 5;
const OVER_SECONDS: u32 = 60;
/// Markers that are listed; all are drawn.
const MAX_LISTED: usize = 100;
/// Kind of a person's note among the markers.
const NOTE: &str = "written note";
/// Margin of the span on a machine's page: a tenth of the run on either side.
const MARGIN_DIVISOR: i64 = 10;

/// The data of a run, and the error of its request.
#[derive(Clone, Copy)]
pub struct AskedRun {
    /// The run.
    pub whole: RwSignal<Option<Whole>>,
    /// Why there is none; empty while it is requested.
    pub wrong: RwSignal<String>,
    /// Requests it again at the next beat.
    pub again: Callback<()>,
}

impl AskedRun {
    /// Polls a run as long as the calling component exists.
    pub fn follow(page: Page, id: String) -> AskedRun {
        let (whole, wrong) = (RwSignal::new(None::<Whole>), RwSignal::new(String::new()));
        let since = StoredValue::new(None::<u32>);
        let path = format!("api/v1/runs/{}", String::from(js_sys::encode_uri_component(&id)));
        Effect::new(move || {
            page.beat.track();
            let now = page.server_now();
            let is_settled =
                whole.with_untracked(|whole| whole.as_ref().is_some_and(|whole| whole.run.is_settled(now)));
            let wait = if is_settled { OVER_SECONDS } else { REFRESH_SECONDS };
            let due = since.get_value().is_none_or(|since| since >= wait && page.state.get() == LinkState::Live);
            if !due || document().hidden() {
                return since.update_value(|since| *since = since.map(|n| n + 1));
            }
            since.set_value(Some(0));
            fetch::ask("GET", &path, None, move |answer| {
                let read =
                    answer.read_by(|body| Ok(Whole::new(body.read()?, body.read()?, body.read()?, page.server_now())));
                // The page may have gone meanwhile.
                match read {
                    Ok(new) if whole.try_with_untracked(|old| old.as_ref() != Some(&new)) == Some(true) => {
                        wrong.set(String::new());
                        whole.set(Some(new));
                    }
                    Ok(_) => {}
                    Err(why) => drop(wrong.try_set(why)),
                }
            });
        });
        AskedRun { whole, wrong, again: Callback::new(move |()| since.set_value(None)) }
    }
}

/// The path from the list to a run: its project, group and type, each a filter of the list.
#[component]
pub fn Crumbs(
    /// The run.
    #[prop(into)]
    whole: Signal<Option<Whole>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let list = move |find: String| {
        let theme = page.view_now().theme;
        page.query(&View { place: Some(Route::Runs), find, theme, window: page.view_now().window, ..View::default() })
    };
    let parts = move || {
        whole.with(|whole| {
            let Some(run) = whole.as_ref().map(|whole| &whole.run) else { return Vec::new() };
            let all = [("project", &run.project), ("group", &run.group), ("type", &run.job_type), ("user", &run.user)];
            all.into_iter()
                // A word with a space would be two words of the filter.
                .filter(|(_, name)| !name.is_empty())
                .map(|(word, name)| (name.clone(), (!name.contains(' ')).then(|| format!("{word}:{name}"))))
                .collect::<Vec<_>>()
        })
    };
    let part = move |(name, find): (String, Option<String>)| match find {
        Some(find) => view! { " / "<a href=list(find)>{name}</a> }.into_any(),
        None => view! { " / "{name} }.into_any(),
    };
    view! {
        <p class="crumbs">
            <a href=list(String::new())>"Runs"</a>
            {move || parts().into_iter().map(part).collect_view()}
        </p>
    }
}

/// The name of the run, its state, and the links to its machine, to other runs and to its report.
#[component]
fn Head(whole: RwSignal<Option<Whole>>, again: Callback<()>) -> impl IntoView {
    let page = expect_context::<Page>();
    let of = move |read: fn(&Whole) -> String| {
        text(move || whole.with(|whole| whole.as_ref().map(read).unwrap_or_default()))
    };
    let machine = text(move || {
        whole.with(|whole| {
            let Some(run) = whole.as_ref().map(|whole| &whole.run) else { return String::new() };
            let to = run.ended.unwrap_or_else(|| page.server_now());
            let margin = (to - run.began) / MARGIN_DIVISOR;
            let span = (run.began - margin, to + margin);
            let theme = page.view_now().theme;
            page.query(&View {
                source: run.hosts.first().cloned(),
                frozen: Some(span),
                theme,
                window: page.view_now().window,
                ..View::default()
            })
        })
    });
    let report = text(move || {
        let id = whole.with(|whole| whole.as_ref().map(|whole| whole.run.id.clone()).unwrap_or_default());
        format!("api/v1/runs/{}/report", String::from(js_sys::encode_uri_component(&id)))
    });
    let alike = text(move || {
        let class = whole.with(|whole| whole.as_ref().and_then(|whole| whole.run.failure));
        let find = class.map(|class| format!("failure:{}", class.name())).unwrap_or_default();
        let view = page.view_now();
        page.query(&View { place: Some(Route::Runs), find, theme: view.theme, window: view.window, ..View::default() })
    });
    let compare = text(move || {
        let view = page.view_now();
        let find = whole.with(|whole| whole.as_ref().map(|whole| whole.run.project.clone()).unwrap_or_default());
        let find = if find.is_empty() || find.contains(' ') { String::new() } else { format!("project:{find}") };
        page.query(&View {
            place: Some(Route::Runs),
            find,
            theme: view.theme,
            window: view.window,
            runs: view.runs,
            ..View::default()
        })
    });
    view! {
        <header class="run-head" data-run=of(|w| w.run.id.clone()) data-state=of(|w| w.run.state.name().to_string())>
            <div>
                <Crumbs whole/>
                <h2 class="source-name">{of(|w| w.run.name.clone())}</h2>
                <p class="how">
                    <span class=of(|w| shape(w.run.state).to_string()) aria-hidden="true">{of(|w| w.run.state.shape().to_string())}</span>
                    " "<b>{of(|w| sentence(&w.run.sentence))}</b>
                    <span class="u">{of(steps)}</span>
                </p>
                <If when=flag(move || whole.with(|w| w.as_ref().is_some_and(|w| w.run.failure.is_some())))>
                    <p class="u">"Failure: "<a data-failure=of(|w| w.run.failure.map_or("", FailureClass::name).into()) href=alike>{of(|w| w.run.failure_words().into())}</a></p>
                </If>
                <If when=flag(move || whole.with(|w| w.as_ref().is_some_and(|w| w.words.is_some())))>
                    <p class="words"><q data-words>{of(|w| w.words.clone().unwrap_or_default())}</q></p>
                </If>
                <If when=flag(move || whole.with(|w| w.as_ref().is_some_and(|w| !w.notes.is_empty())))>
                    <p class="notes" data-notes="true">{of(|w| w.notes.clone())}</p>
                </If>
            </div>
            <div class="acts">
                <span class="u">{of(|w| where_it_ran(&w.run))}</span>
                <a class="btn" data-do="machine" href=machine>"On its machine"</a>
                <a class="btn" data-do="compare" href=compare>"Compare…"</a>
                <a class="btn" data-do="report" href=report target="_blank" rel="noopener">"Report"</a>
                <EditRun whole again/>
            </div>
        </header>
    }
}

/// The page of one run.
#[component]
pub fn OnePage(
    /// Its id.
    id: String,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let AskedRun { whole, wrong, again } = AskedRun::follow(page, id.clone());
    let notes = notes::of_run(page, expect_context::<Access>(), &id);
    let at = RwSignal::new(None::<i64>);
    let marks = Markers::follow(page, id.clone(), whole, notes);
    listen(page, marks, (whole, at), id);
    let of = move |read: fn(&Whole) -> String| {
        text(move || whole.with(|whole| whole.as_ref().map(read).unwrap_or_default()))
    };
    let is_known = flag(move || whole.with(Option::is_some));
    Effect::new(move || {
        let name = whole.with(|whole| whole.as_ref().map(|whole| whole.run.name.clone()));
        name.into_iter().for_each(|name| document().set_title(&format!("{name} – Watchglass")));
    });
    let ids = Memo::new(move |_| {
        whole.with(|whole| {
            let all =
                whole.as_ref().map(|whole| whole.measures.iter().map(|measure| measure.id.clone()).collect::<Vec<_>>());
            all.unwrap_or_default()
        })
    });
    let measure = move |id: String| {
        Signal::derive(move || whole.with(|whole| whole.as_ref()?.measures.iter().find(|m| m.id == id).cloned()))
    };
    let kept = of(|whole| whole.is_kept.to_string());
    let chart = Callback::new(move |id: String| {
        // Only the first chart has names: in the others they would be under the lines.
        let leads = ids.with_untracked(|ids| ids.first() == Some(&id));
        let marks = if leads { marks.drawn } else { marks.lines };
        view! { <MeasureCard measured=measure(id) marks at kept/> }.into_any()
    });
    let first = measure("gpu".into());
    let has_ranks = flag(move || first.with(|m| m.as_ref().is_some_and(|m| m.chart.curves.len() > 1)));
    view! {
        <main id="page" class="fleet run-page" data-state=of(|w| w.run.state.name().to_string())>
            <p class="wrong" role="status">{text(move || wrong.get())}</p>
            <If when=flag(move || !is_known.get() && wrong.with(String::is_empty))>
                <p class="below pad" role="status">"Loading the run…"</p>
            </If>
            <If when=is_known>
                <Head whole again/>
                <Strip whole/>
                <If when=flag(move || whole.with(|w| w.as_ref().is_some_and(|w| w.left_out > 0)))>
                    <p class="below">{of(|w| format!("{} of its processes are not shown (over the limit).", w.left_out))}</p>
                </If>
                <div class="run-body" class:has-ranks=has_ranks>
                    <div class="run-charts">
                        <If when=flag(move || ids.with(Vec::is_empty))>
                            <p class="panel below">"No samples of this run are stored: it was too short, or its retention has ended."</p>
                        </If>
                        <Each keys=ids row=chart/>
                    </div>
                    <If when=has_ranks>
                        <Multiples measured=first whole/>
                    </If>
                </div>
                <PrintedLines whole at/>
                <If when=flag(move || marks.count_told() > 0)>
                    <MarkerList marks at/>
                </If>
                <If when=flag(move || notes.with(|notes| !notes.is_empty()))>
                    <RunNotes notes at/>
                </If>
                <RankLanes whole/>
            </If>
        </main>
    }
}

/// Listens for the keys of the page: to the marker beside an instant, and for a note about the run of this ID.
fn listen(page: Page, marks: Markers, (whole, at): (RwSignal<Option<Whole>>, RwSignal<Option<i64>>), id: String) {
    let (board, id) = (expect_context::<Board>(), StoredValue::new(id));
    let keys = window_event_listener(ev::keydown, move |event| {
        if is_note_key(page, &event) {
            event.prevent_default();
            return write_note(page, whole, at, id.get_value());
        }
        let found = marks.beside(&event, at.get_untracked());
        if let Some(mark) = found {
            event.prevent_default();
            board.said.set(format!("{}, {}", mark.text, clock(mark.t / 1_000)));
            at.set(Some(mark.t));
        }
    });
    on_cleanup(move || keys.remove());
}

/// Whether a key writes a note: nobody types, no dialog is open, and the page is not that of a share link.
fn is_note_key(page: Page, event: &ev::KeyboardEvent) -> bool {
    let focused = browser::focused().map(|element| element.tag_name());
    let types = focused.is_some_and(|tag| matches!(tag.as_str(), "INPUT" | "SELECT" | "TEXTAREA"));
    let held = event.ctrl_key() || event.meta_key() || event.alt_key();
    let open = page.dialog.with_untracked(Option::is_some) || page.note.with_untracked(Option::is_some);
    let is_link = page.view.with_untracked(|view| view.share.is_some());
    event.key().eq_ignore_ascii_case("n") && !types && !held && !open && !is_link
}

/// Begins a note about a run, at the instant of its charts, else about the whole run.
fn write_note(page: Page, whole: RwSignal<Option<Whole>>, at: RwSignal<Option<i64>>, run: String) {
    let Some((began, ended)) = whole.with_untracked(|whole| whole.as_ref().map(|w| (w.run.began, w.run.ended))) else {
        return;
    };
    let (t, end) = at.get_untracked().map_or((began, ended), |at| (at, None));
    page.note.set(Some(NoteDraft { t, end, run: Some(run), ..NoteDraft::default() }));
}

/// Progress by its markers: ` 1,240 steps, 4.1 a second`.
fn steps(whole: &Whole) -> String {
    let Some(step) = whole.step else { return String::new() };
    let rate = whole.per_second.map(|rate| format!(", {} per second", number(rate))).unwrap_or_default();
    format!(" {}{rate}", count(step as usize, "step", "steps"))
}

/// Mean CPU time of a run, in cores, of those that a scheduler reserved, and its peak.
fn cores_used(whole: &Whole, _: i64) -> (String, String, String) {
    let figures = &whole.run.figures;
    let reserved = figures.reserved.cores.map_or_else(String::new, |cores| format!("of {}", number(cores.0)));
    let peak = figures.cores_peak.map_or_else(|| "not measured".into(), |peak| format!("peak {}", number(peak)));
    (figures.cores_mean.map_or_else(|| "–".into(), number), reserved, peak)
}

/// GPU-hours of a run, and the GPUs that it held.
fn gpu_hours(whole: &Whole, _: i64) -> (String, String, String) {
    let figures = &whole.run.figures;
    let gpus =
        figures.gpus.map_or_else(|| "no known GPU".into(), |n| format!("of {}", count(n as usize, "GPU", "GPUs")));
    let assumed = if figures.assumed { ", assumed" } else { "" };
    let reserved = figures.reserved.gpus.map_or_else(String::new, |gpus| format!(", {gpus} reserved"));
    (figure(figures.gpu_hours, ""), String::new(), gpus + assumed + &reserved)
}

/// True where a run held GPUs or had some reserved: without, figures of GPUs would all be empty.
fn has_gpus(figures: &Figures) -> bool {
    figures.gpus.is_some_and(|gpus| gpus > 0.0) || figures.reserved.gpus.is_some_and(|gpus| gpus > 0)
}

/// The figures of a run, beside each other.
#[component]
fn Strip(#[prop(into)] whole: Signal<Option<Whole>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let tile = move |id: &'static str, title: Signal<String>, read: fn(&Whole, i64) -> (String, String, String)| {
        let said = Memo::new(move |_| {
            page.beat.track();
            whole.with(|whole| whole.as_ref().map(|whole| read(whole, page.server_now())).unwrap_or_default())
        });
        view! {
            <div data-figure=id>
                <h3>{title}</h3>
                <p class="value"><b>{text(move || said.get().0)}</b>" "<span class="u">{text(move || said.get().1)}</span></p>
                <p class="u note">{text(move || said.get().2)}</p>
            </div>
        }
    };
    let fixed = |title: &'static str| Signal::derive(move || title.to_string());
    let lasted = text(move || {
        whole.with(|whole| match whole.as_ref().is_some_and(|whole| whole.run.ended.is_none()) {
            true => "Running for",
            false => "Duration",
        })
    });
    let known = move |is: fn(&Figures) -> bool| {
        flag(move || whole.with(|whole| whole.as_ref().is_some_and(|whole| is(&whole.run.figures))))
    };
    view! {
        <section class="strip" aria-label="Summary">
            {tile("lasted", lasted, |w, now| {
                let limit = w.run.figures.reserved.limit_seconds.map(|limit| rough_duration((limit.0 * 1_000.0) as i64));
                let limit = limit.map_or_else(String::new, |limit| format!(", limit {limit}"));
                (rough_duration(w.run.lasted(now)), String::new(), format!("since {}{limit}", clock(w.run.began / 1_000)))
            })}
            <If when=known(has_gpus)>
                {tile("gpu_hours", fixed("GPU-hours"), gpu_hours)}
            </If>
            <If when=flag(move || whole.with(|w| w.as_ref().is_some_and(|w| w.run.figures.cost.is_some())))>
                {tile("cost", fixed("Cost"), |w, _| {
                    let cost = w.run.figures.cost.map(|cost| (cost * 100.0).round() / 100.0);
                    (figure(cost, ""), w.run.figures.currency.clone(), "of GPUs and energy".into())
                })}
            </If>
            <If when=known(has_gpus)>
                {tile("energy", fixed("Energy"), |w, _| {
                    let (number, unit) = energy(&w.run.figures);
                    let note = match (w.run.figures.energy_kwh, w.run.figures.estimated) {
                        (None, _) => "not counted",
                        (_, true) => "of its GPUs, power × time",
                        (_, false) => "of its GPUs",
                    };
                    (number, unit.into(), note.into())
                })}
                {tile("mean", fixed("Mean utilization"), |w, _| {
                    let mean = w.run.figures.utilization.map(|mean| (mean * 10.0).round() / 10.0);
                    (figure(mean, ""), mean.map_or("", |_| "%").into(), "of the reserved time".into())
                })}
                {tile("idle", fixed("Idle"), |w, _| {
                    let hours = w.run.figures.idle.zip(w.run.figures.gpu_hours).map(|(idle, hours)| idle * hours);
                    let note = hours.map_or_else(|| "below 5 %".into(), |hours| format!("{} below 5 %", figure(Some(hours), "GPU-h")));
                    (percent(w.run.figures.idle), String::new(), note)
                })}
                {tile("memory", fixed("Peak memory"), |w, _| (size(w.run.figures.memory_peak), String::new(), "of one GPU".into()))}
            </If>
            <If when=known(|f| f.cores_mean.is_some() || f.reserved.cores.is_some())>
                {tile("cores", fixed("Cores used"), cores_used)}
            </If>
            <If when=known(|f| f.host_memory_peak.is_some() || f.reserved.memory_bytes.is_some())>
                {tile("host_memory", fixed("Peak host memory"), |w, _| {
                    let reserved = w.run.figures.reserved.memory_bytes;
                    let reserved = reserved.map_or_else(String::new, |bytes| format!("of {}", size(Some(bytes.0))));
                    (size(w.run.figures.host_memory_peak), reserved, "of its processes".into())
                })}
            </If>
            <If when=known(has_gpus)>
                {tile("coverage", fixed("Measured"), |w, _| (percent(w.run.figures.coverage), String::new(), "of the GPU time".into()))}
            </If>
        </section>
    }
}

/// One chart of a run.
#[component]
fn MeasureCard(
    #[prop(into)] measured: Signal<Option<Measured>>,
    marks: RwSignal<Arc<Vec<CellMark>>>,
    at: RwSignal<Option<i64>>,
    #[prop(into)] kept: Signal<String>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let pinned = Memo::new(move |_| page.view.with(|view| view.pin.clone()));
    let chart = Memo::new(move |_| {
        measured.with(|m| m.as_ref().map(|m| Arc::new(pinned.with(|names| m.chart.highlighting(names)))))
    });
    let is_kept = move || kept.get() == "true";
    let title = text(move || measured.with(|m| m.as_ref().map(|m| m.title.clone()).unwrap_or_default()));
    let said = text(move || {
        measured.with(|m| {
            let Some(m) = m.as_ref() else { return String::new() };
            let symbol = m.chart.symbol();
            let lines = m.chart.curves.len();
            let of = match (m.of_gpus.as_str(), lines) {
                _ if m.id == STEPS => "by markers".to_string(),
                _ if is_kept() => format!("mean; 1 point = {}", duration(m.chart.step)),
                ("", 1) => "of the machine".to_string(),
                ("", n) => format!("{n} machines"),
                (_, 1) => "one rank".to_string(),
                (_, n @ 2..=8) => format!("{n} ranks"),
                (_, n) => format!("median, p10–p90 of {n} ranks"),
            };
            let how = match m.of_gpus.as_str() {
                _ if is_kept() => "",
                "sum" => ", sum of a rank's GPUs",
                "max" => ", the largest of a rank's GPUs",
                _ => "",
            };
            format!("{symbol}{}{of}{how}", if symbol.is_empty() { "" } else { "; " })
        })
    });
    let id = text(move || measured.with(|m| m.as_ref().map(|m| m.id.clone()).unwrap_or_default()));
    let lines = text(move || measured.with(|m| m.as_ref().map_or(0, |m| m.chart.curves.len()).to_string()));
    let label = text(move || format!("{}: {}", title.get(), said.get()));
    let drawn = flag(move || chart.with(Option::is_some));
    view! {
        <article class="panel" data-measure=id data-lines=lines>
            <header><h2>{title}</h2><span class="u">{said}</span></header>
            <div class="lines-plot tall">
                <If when=drawn>
                    <Curves chart=Signal::derive(move || chart.get().unwrap_or_else(CurveChart::nothing)) marks at label/>
                </If>
            </div>
        </article>
    }
}

/// A marker, as it is listed: id, time, kind and text.
#[derive(Clone, Debug, PartialEq)]
struct Marker {
    id: String,
    t: i64,
    kind: String,
    text: String,
}

/// Kind of an alert from code among the markers.
const ALERT: &str = "alert";

impl Marker {
    fn from_answer(marker: markers::Marker) -> Option<Marker> {
        let step = marker.step.map(|step| format!("step {}", number(step as f64)));
        let words: Vec<String> = marker.text.filter(|text| !text.is_empty()).into_iter().chain(step).collect();
        let text = if words.is_empty() { marker.kind.clone() } else { words.join(", ") };
        Some(Marker { id: marker.id?, t: marker.t?.ms(), kind: marker.kind, text })
    }

    /// An alert from code, as a flag beside the markers.
    fn of_code(alert: Alert) -> Marker {
        Marker { id: alert.id, t: alert.began, kind: ALERT.into(), text: format!("alert: {}", alert.sentence) }
    }

    fn of_note(note: &SavedNote) -> Marker {
        Marker { id: note.id.clone(), t: note.t.ms(), kind: NOTE.into(), text: note.title().into() }
    }

    /// Whether a program sent it.
    fn is_told(&self) -> bool {
        self.kind != NOTE
    }

    fn drawn(&self) -> CellMark {
        let failed = self.kind == ALERT;
        CellMark { from: self.t, to: self.t, name: self.text.clone(), failed, strong: false, fault: false }
    }
}

/// The markers of a run: as they are listed, and as charts draw them.
#[derive(Clone, Copy)]
struct Markers {
    listed: RwSignal<Vec<Marker>>,
    drawn: RwSignal<Arc<Vec<CellMark>>>,
    /// The same without their names.
    lines: RwSignal<Arc<Vec<CellMark>>>,
}

impl Markers {
    /// Requests them after each poll of the run.
    fn follow(page: Page, id: String, whole: RwSignal<Option<Whole>>, notes: RwSignal<Vec<SavedNote>>) -> Markers {
        let (listed, drawn) = (RwSignal::new(Vec::new()), RwSignal::new(Arc::new(Vec::new())));
        let lines = RwSignal::new(Arc::new(Vec::new()));
        Effect::new(move || {
            notes.track();
            let Some((from, to)) = whole.with(|whole| whole.as_ref().map(|w| (w.run.began, w.run.ended))) else {
                return;
            };
            let to = to.unwrap_or_else(|| page.server_now()) / 1_000 + 1;
            let id = String::from(js_sys::encode_uri_component(&id));
            let path = format!("api/v1/markers?run={id}&from={}&to={to}", from / 1_000);
            fetch::ask("GET", &path, None, move |answer| {
                // Without permission to read markers or alerts, the lists are empty.
                let read = answer.read::<MarkerList>().unwrap_or_default().markers;
                let marked: Vec<Marker> =
                    read.into_iter().filter_map(Marker::from_answer).filter(|one| one.kind != "cell").collect();
                let path = format!("api/v1/alerts?run={id}&rule=from-code");
                fetch::ask("GET", &path, None, move |answer| {
                    let said = answer.read::<Alerts>().unwrap_or_default().alerts;
                    let mut new: Vec<Marker> = said.into_iter().map(Marker::of_code).chain(marked).collect();
                    new.extend(notes.with_untracked(|notes| notes.iter().map(Marker::of_note).collect::<Vec<_>>()));
                    order::sort_by_key(&mut new, |one| one.t);
                    if listed.try_with_untracked(|old| *old != new) == Some(true) {
                        let marks: Vec<CellMark> = new.iter().map(Marker::drawn).collect();
                        lines.set(Arc::new(
                            marks.iter().map(|mark| CellMark { name: String::new(), ..mark.clone() }).collect(),
                        ));
                        drawn.set(Arc::new(marks));
                        listed.set(new);
                    }
                });
            });
        });
        Markers { listed, drawn, lines }
    }

    /// Number of markers without the notes of people, which have a list of their own.
    fn count_told(self) -> usize {
        self.listed.with(|listed| listed.iter().filter(|one| one.is_told()).count())
    }

    /// The marker to which a key leads from an instant, ms since the epoch: `(` to the one before, `)` to the next.
    /// Nobody types at the time.
    fn beside(self, event: &ev::KeyboardEvent, at: Option<i64>) -> Option<Marker> {
        let focused = browser::focused().map(|element| element.tag_name());
        if focused.is_some_and(|tag| matches!(tag.as_str(), "INPUT" | "SELECT" | "TEXTAREA")) {
            return None;
        }
        self.listed.with_untracked(|all| match (event.key().as_str(), at) {
            ("(", at) => all.iter().rev().find(|one| at.is_none_or(|at| one.t < at)).cloned(),
            (")", at) => all.iter().find(|one| at.is_none_or(|at| one.t > at)).cloned(),
            _ => None,
        })
    }
}

/// The list of markers; a click sets the crosshair there.
#[component]
fn MarkerList(marks: Markers, at: RwSignal<Option<i64>>) -> impl IntoView {
    let row = move |one: Marker| {
        let t = one.t;
        view! {
            <li data-marker=one.id>
                <button class="plain" on:click=move |_| at.set(Some(t))>{clock(t / 1_000)}</button>" "<span class="source-name">{one.text}</span>
            </li>
        }
    };
    let heading = text(move || count(marks.count_told(), "marker", "markers"));
    view! {
        <section class="panel markers" aria-label="Markers">
            <header><h2>"Markers"</h2><span class="u">{heading}</span></header>
            <ol>{move || marks.listed.get().into_iter().rev().filter(Marker::is_told).take(MAX_LISTED).map(row).collect_view()}</ol>
        </section>
    }
}
