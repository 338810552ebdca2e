//! Output of a run, below its charts: the newest lines, or those at the crosshair. Hidden from accounts that may not
//! read it.

use crate::browser::{document, offset};
use crate::fetch;
use crate::state::{LinkState, Page};
use crate::widgets::parts::{If, flag, text};
use charts::axis;
use leptos::html;
use leptos::prelude::*;
use shared::answer::logs::{LogList, LogRow};
use shared::output::{OutputStream, TextLook, parts};
use std::collections::BTreeSet;
use std::sync::Arc;
use viewer::runs::Whole;

/// Number of lines that are requested and shown at once.
const LINES: usize = 500;
/// Seconds between two polls while the run is open, and once it has settled.
const REFRESH_SECONDS: u32 = 2;
const OVER_SECONDS: u32 = 60;
/// Distance from the end of the list within which it scrolls with new lines, in pixels.
const AT_END: i32 = 24;

/// A line as it is listed.
#[derive(Clone, Debug, PartialEq)]
struct PrintedLine {
    key: String,
    t: i64,
    n: f64,
    rank: Option<u32>,
    who: String,
    stream: String,
    text: String,
    lost: Option<f64>,
}

impl PrintedLine {
    fn from_row(line: LogRow) -> PrintedLine {
        let stream = line.stream.map(|stream| stream.name().to_string()).unwrap_or_default();
        let cut = if line.cut { " …" } else { "" };
        let label = line.label.filter(|label| !label.is_empty());
        PrintedLine {
            key: format!("{} {} {} {}", line.source, line.began.ms(), line.pid, line.n),
            t: line.t.ms(),
            n: line.n as f64,
            rank: line.rank,
            who: match (label, line.rank) {
                (Some(label), _) => label,
                (None, Some(rank)) => format!("rank {rank}"),
                (None, None) => stream.clone(),
            },
            stream,
            text: line.text.unwrap_or_default() + cut,
            lost: line.lost.map(|lost| lost as f64),
        }
    }
}

/// The requested lines.
#[derive(Clone, Debug, Default, PartialEq)]
struct Filter {
    rank: String,
    label: String,
    stream: String,
    text: String,
}

impl Filter {
    fn is_any(&self) -> bool {
        *self != Filter::default()
    }

    /// The path of the request; up to a time where one is given, ms.
    fn path(&self, id: &str, to: Option<i64>) -> String {
        let coded = |text: &str| String::from(js_sys::encode_uri_component(text));
        let mut path = format!("api/v1/runs/{}/logs?format=json&limit={LINES}", coded(id));
        let all = [("rank", &self.rank), ("label", &self.label), ("stream", &self.stream), ("text", &self.text)];
        for (name, value) in all {
            if !value.is_empty() {
                path += &format!("&{name}={}", coded(value));
            }
        }
        if let Some(to) = to {
            path += &format!("&to={}", to as f64 / 1_000.0);
        }
        path
    }
}

/// The shown lines of a run, and the filter; copies share the same signals.
#[derive(Clone, Copy)]
struct Lines {
    page: Page,
    whole: RwSignal<Option<Whole>>,
    /// The crosshair, ms since the epoch.
    at: RwSignal<Option<i64>>,
    id: Memo<String>,
    rows: RwSignal<Arc<Vec<PrintedLine>>>,
    filter: RwSignal<Filter>,
    /// Machines that did not send their lines, and why.
    missing: RwSignal<String>,
    /// The newest are shown, unless one has scrolled away,
    at_end: RwSignal<bool>,
    /// or the crosshair is before them.
    earlier: RwSignal<Option<i64>>,
    /// Seconds since the last request; None for a request at once.
    since: StoredValue<Option<u32>>,
    is_asked: StoredValue<bool>,
    /// The line at the crosshair, which is shown and marked.
    near: Memo<Option<String>>,
}

impl Lines {
    fn new(page: Page, whole: RwSignal<Option<Whole>>, at: RwSignal<Option<i64>>) -> Lines {
        let rows = RwSignal::new(Arc::new(Vec::<PrintedLine>::new()));
        let id = move |whole: &Option<Whole>| whole.as_ref().map(|whole| whole.run.id.clone()).unwrap_or_default();
        Lines {
            page,
            whole,
            at,
            id: Memo::new(move |_| whole.with(id)),
            rows,
            filter: RwSignal::new(Filter::default()),
            missing: RwSignal::new(String::new()),
            at_end: RwSignal::new(true),
            earlier: RwSignal::new(None),
            since: StoredValue::new(None),
            is_asked: StoredValue::new(false),
            near: Memo::new(move |_| {
                let at = at.get()?;
                rows.with(|rows| rows.iter().rev().find(|row| row.t <= at).map(|row| row.key.clone()))
            }),
        }
    }

    /// Requests the lines, unless a request is open.
    fn ask(self) {
        let Lines { id, rows, filter, missing, earlier, since, is_asked, .. } = self;
        let (id, wanted, to) = (id.get_untracked(), filter.get_untracked(), earlier.get_untracked());
        if id.is_empty() || is_asked.get_value() {
            return;
        }
        is_asked.set_value(true);
        fetch::ask("GET", &wanted.path(&id, to), None, move |answer| {
            // The page may be closed by now, or the request outdated.
            is_asked.try_update_value(|asked| *asked = false);
            let is_wanted = filter.try_with_untracked(|now| *now == wanted) == Some(true)
                && earlier.try_with_untracked(|now| *now == to) == Some(true);
            if !is_wanted {
                since.try_update_value(|since| *since = None);
                return;
            }
            let read = answer.read::<LogList>();
            let said = match &read {
                Ok(list) if list.missing.is_empty() => String::new(),
                Ok(list) => {
                    let silent: Vec<&str> = list.missing.iter().map(|one| one.source.as_str()).collect();
                    format!("lines of {} are missing at the moment", silent.join(", "))
                }
                Err(why) if answer.is_ok() || answer.status == 503 => why.clone(),
                // The account may not read the output, so no error is shown.
                Err(_) => String::new(),
            };
            if missing.try_with_untracked(|old| *old != said) == Some(true) {
                missing.set(said);
            }
            let Ok(list) = read else { return };
            let new: Vec<PrintedLine> = list.lines.into_iter().map(PrintedLine::from_row).collect();
            if rows.try_with_untracked(|old| **old != new) == Some(true) {
                rows.set(Arc::new(new));
            }
        });
    }

    /// Polls while the run is open and its newest lines are shown, and at once after a change of the filter.
    fn refresh(self) {
        let Lines { page, whole, id, filter, at_end, earlier, since, is_asked, .. } = self;
        Effect::new(move || {
            page.beat.track();
            let now = page.server_now();
            let is_settled =
                whole.with_untracked(|whole| whole.as_ref().is_some_and(|whole| whole.run.is_settled(now)));
            let wait = if is_settled { OVER_SECONDS } else { REFRESH_SECONDS };
            let follows = at_end.get_untracked() && earlier.get_untracked().is_none();
            let due = match since.get_value() {
                None => true,
                Some(since) => since >= wait && follows && page.state.get_untracked() == LinkState::Live,
            };
            if !due || document().hidden() {
                return since.update_value(|since| *since = since.map(|n| n + 1));
            }
            since.set_value(Some(0));
            self.ask();
        });
        Effect::new(move || {
            filter.track();
            earlier.track();
            id.track();
            self.ask();
            // While a request is open, the next one follows after its answer.
            since.set_value(if is_asked.get_value() { Some(0) } else { None });
        });
    }

    /// Has the lines around the crosshair shown.
    fn follow_crosshair(self) {
        let Lines { at, rows, earlier, .. } = self;
        Effect::new(move || {
            let (at, shown) = (at.get(), earlier.get_untracked());
            let Some(at) = at else {
                if shown.is_some() {
                    earlier.set(None);
                }
                return;
            };
            let is_outside = rows.with_untracked(|rows| {
                let is_before = rows.first().is_some_and(|first| at < first.t) && rows.len() >= LINES;
                is_before || shown.is_some() && rows.last().is_none_or(|last| at > last.t)
            });
            if is_outside && shown != Some(at) {
                earlier.set(Some(at));
            }
        });
    }

    /// Number and kind of the shown lines, in words.
    fn in_words(self) -> String {
        let Lines { rows, filter, earlier, .. } = self;
        let count = rows.with(|rows| rows.iter().filter(|row| row.lost.is_none()).count());
        match (count, earlier.with(Option::is_some)) {
            (0, _) if filter.with(Filter::is_any) => "no matching line".to_string(),
            (0, _) => String::new(),
            (n, true) => format!("{n} lines up to the crosshair"),
            (LINES, false) => format!("the last {LINES} lines"),
            (1, false) => "1 line".into(),
            (n, false) => format!("{n} lines"),
        }
    }
}

/// The lines of a run.
#[component]
pub fn PrintedLines(
    /// The run.
    whole: RwSignal<Option<Whole>>,
    /// The crosshair, ms since the epoch.
    at: RwSignal<Option<i64>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let lines = Lines::new(page, whole, at);
    let Lines { rows, filter, missing, at_end, near, .. } = lines;
    let list = NodeRef::<html::Ol>::new();
    lines.refresh();
    lines.follow_crosshair();
    Effect::new(move || {
        rows.track();
        near.track();
        let Some(list) = list.get() else { return };
        request_animation_frame(move || {
            let marked = list.query_selector("[data-near]").ok().flatten();
            match marked.and_then(|row| wasm_bindgen::JsCast::dyn_into::<web_sys::HtmlElement>(row).ok()) {
                Some(row) => list.set_scroll_top(row.offset_top() - list.offset_top() - list.client_height() / 2),
                None if at_end.try_get_untracked() == Some(true) => list.set_scroll_top(list.scroll_height()),
                None => {}
            }
        });
    });
    let scrolled = move |_| {
        if let Some(list) = list.get_untracked() {
            at_end.set(list.scroll_top() + list.client_height() + AT_END >= list.scroll_height());
        }
    };
    let is_there = flag(move || {
        rows.with(|rows| !rows.is_empty()) || filter.with(Filter::is_any) || missing.with(|said| !said.is_empty())
    });
    let said = text(move || lines.in_words());
    let row = move |row: PrintedLine| {
        let (key, t) = (row.key.clone(), row.t);
        let is_near = move || near.with(|near| near.as_ref() == Some(&key)).then_some("");
        let body = match row.lost {
            Some(lost) => view! { <pre class="lost">{format!("{lost} lines dropped")}</pre> }.into_any(),
            None => view! { <pre>{inked(&row.text)}</pre> }.into_any(),
        };
        view! {
            <li data-line=row.n data-rank=row.rank data-stream=row.stream data-near=is_near>
                <time title=axis::moment(t + offset(t)) on:click=move |_| at.set(Some(t))>{axis::clock(t + offset(t), true)}</time>
                <span>{row.who}</span>
                {body}
            </li>
        }
    };
    view! {
        <If when=is_there>
            <section class="panel printed" data-logs aria-label="Output">
                <header>
                    <h2>"Output"</h2><span class="u">{said}</span><span class="wrong">{missing}</span>
                    <Search whole filter/>
                </header>
                <ol node_ref=list on:scroll=scrolled tabindex="0">
                    <For each=move || rows.get().as_ref().clone() key=|row| row.key.clone() children=row/>
                </ol>
            </section>
        </If>
    }
}

/// Prefix of the values of the choice that are labels of processes; the others are ranks.
const LABEL_PREFIX: &str = "label:";

/// The filter of lines: by rank or label, by stream, by text.
#[component]
fn Search(whole: RwSignal<Option<Whole>>, filter: RwSignal<Filter>) -> impl IntoView {
    let ranks = move || {
        let (ranks, labels) = whole.with(|whole| {
            let processes = || whole.iter().flat_map(|whole| &whole.processes);
            let ranks: BTreeSet<u32> = processes().filter_map(|one| one.rank).collect();
            let labels: BTreeSet<String> =
                processes().map(|one| one.label.clone()).filter(|label| !label.is_empty()).collect();
            (ranks, labels)
        });
        let ranks = ranks.into_iter().map(|rank| (rank.to_string(), format!("rank {rank}")));
        let labels = labels.into_iter().map(|label| (format!("{LABEL_PREFIX}{label}"), label));
        ranks.chain(labels).map(|(value, name)| view! { <option value=value>{name}</option> }).collect_view()
    };
    let set = move |change: fn(&mut Filter, String)| {
        move |event| filter.update(|filter| change(filter, event_target_value(&event)))
    };
    view! {
        <select aria-label="Process" on:change=set(|filter, chosen| match chosen.strip_prefix(LABEL_PREFIX) {
            Some(label) => (filter.rank, filter.label) = (String::new(), label.into()),
            None => (filter.rank, filter.label) = (chosen, String::new()),
        })>
            <option value="">"all processes"</option>{ranks}
        </select>
        <select aria-label="Stream" on:change=set(|filter, stream| filter.stream = stream)>
            <option value="">"all streams"</option>
            {OutputStream::ALL.map(|stream| view! { <option value=stream.name()>{stream.name()}</option> }).collect_view()}
        </select>
        <input type="search" placeholder="Text" aria-label="Text" on:change=set(|filter, text| filter.text = text)/>
    }
}

/// A text in the colors of the job, without other markup.
fn inked(text: &str) -> Vec<AnyView> {
    const CLASSES: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
    let part = |(look, part): (TextLook, &str)| {
        let class = look.color.and_then(|color| CLASSES.get(usize::from(color)).copied());
        let text = part.to_string();
        match (class, look.bold) {
            (None, false) => text.into_any(),
            (class, false) => view! { <span class=class>{text}</span> }.into_any(),
            (class, true) => view! { <b class=class>{text}</b> }.into_any(),
        }
    };
    parts(text).into_iter().map(part).collect()
}
