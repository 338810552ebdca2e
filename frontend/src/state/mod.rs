//! The state that the whole page shares: store, view, state of the link. It does not depend on the parts that draw,
//! send requests or read keys; these parts follow it.
//!
//! Signals carry what changes seldom (view, link, plan). Samples are never signals: a message requests the next frame,
//! and the board draws that. [`view`] changes the shown span, [`folds`] the folded and hidden parts, [`notices`] the
//! dismissed messages. [`recorded`] plays a recording, [`received`] reads the messages of the server, [`wanted`]
//! requests missing history. [`findings`] and [`alerts`] keep the findings and alerts, [`place`] the shown page.

mod alerts;
mod findings;
mod folds;
mod notebook;
mod notes;
mod notices;
mod place;
mod received;
mod recorded;
mod steps;
mod view;
mod wanted;

pub use alerts::OpenAlerts;
pub use findings::{Findings, mark as finding_mark};
pub use notebook::{CellRun, KernelState, Notebook, file_name};
pub use notes::{NoteDraft, mark as note_mark};
pub use place::FEW_MACHINES;
pub use received::Received;
pub use recorded::Beside;

use crate::address::{self, Tone, View};
use crate::browser::{self, now, preferred};
use crate::card;
use crate::player::Player;
use crate::store::plan::{self, Plan};
use crate::store::{Changed, Store};
use charts::marks::CellMark;
use leptos::prelude::*;
use shared::note::SavedNote;
use shared::processes::{ProcessPast, ProcessTable};
use shared::window;
use shared::wire::PageMessage;
use std::rc::Rc;
use steps::Steps;
use viewer::alerts::Alerted;
use viewer::findings::evidence::Subjects;
use viewer::flow::Flow;

/// State of the link to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// No sample has arrived yet.
    Connecting,
    /// Samples arrive.
    Live,
    /// The connection broke, and the page tries to connect again.
    Reconnecting,
    /// Many attempts failed, or the server refused the page.
    Lost,
}

/// The instant that all charts show, at the place of the pointer or of the keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Hover {
    /// Id of the chart that is pointed at.
    pub panel: String,
    /// The instant, ms since the epoch.
    pub t: i64,
    /// Place of a resting pointer in the span, 0 to 1. None when the instant stays the same while time passes.
    pub share: Option<f64>,
    /// Height on the plot, in CSS pixels from its top.
    pub y: f64,
    /// Top of the plot in the window, in CSS pixels.
    pub top: f64,
    /// True when the instant stays after the pointer has left.
    pub pinned: bool,
}

/// The list that is open beside the charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sheet {
    /// Changes against the previous span.
    Changed,
    /// Devices that differ from their peers.
    Differs,
}

/// A file that is being opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// Its name.
    pub name: String,
    /// The share of the work that is done, 0 to 1.
    pub share: f64,
}

/// The content of the dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dialog {
    /// The list of all keys.
    Keys,
    /// The field that finds anything.
    Find,
    /// The layouts that this browser keeps.
    Layouts,
    /// The table of the chart with this id.
    Table(String),
    /// Description of the chart with this id.
    About(String),
    /// Description of the charts of the section with this id.
    AboutSection(String),
}

/// State of the menu of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// Id of the chart to which the menu belongs, or belonged last.
    pub chart: String,
    /// True while the menu is open.
    pub open: bool,
}

/// The state of the page; copies share it. Components find it in their context.
#[derive(Clone, Copy)]
pub struct Page {
    /// All data from the server.
    pub store: StoredValue<Store>,
    /// The view that the user chose.
    pub view: RwSignal<View>,
    /// State of the link to the server.
    pub state: RwSignal<LinkState>,
    /// The server's reason for the end of the connection; empty when there is none.
    pub goodbye: RwSignal<String>,
    /// The plan: panels, sections and tiles.
    pub plan: RwSignal<Plan>,
    /// Number of machines that the server knows; None before its first message about it.
    pub machines: RwSignal<Option<usize>>,
    /// Names of the ticked machines of the fleet.
    pub ticked: RwSignal<Vec<String>>,
    /// True when the server has accounts.
    pub accounts: RwSignal<bool>,
    /// Increases when the server refused a socket, or closed one with a reason: the user may have to sign in.
    pub turned_away: RwSignal<u32>,
    /// True while the gate is in place of the page, so that no socket is opened.
    pub shut: RwSignal<bool>,
    /// True when the address had no parameters, so that the team's default view opens.
    pub bare: StoredValue<bool>,
    /// Fires when the index of machines or an overview of them has changed.
    pub fleet: Trigger,
    /// The newest process table that arrived; None before the first.
    pub processes: RwSignal<Option<ProcessTable>>,
    /// The process over time that arrived last; None before the first.
    pub past: RwSignal<Option<ProcessPast>>,
    /// True once a training job is known, so that there is a link to their page.
    pub has_runs: RwSignal<bool>,
    /// The notebook beside the page.
    pub notebook: RwSignal<Notebook>,
    /// Runs of its cells as charts draw them, in order of time.
    pub marks: StoredValue<Rc<[CellMark]>, LocalStorage>,
    /// Notes about the shown machine, in order of time.
    pub notes: RwSignal<Vec<SavedNote>>,
    /// The note that is being written; None closes its dialog.
    pub note: RwSignal<Option<NoteDraft>>,
    /// The findings of the last response.
    pub findings: RwSignal<Findings>,
    /// The findings in a file, each as JSON.
    pub file_findings: RwSignal<Vec<String>>,
    /// The findings of the shown machine as charts draw them, in order of time.
    faults: StoredValue<Rc<[CellMark]>, LocalStorage>,
    /// Subjects of the finding that leads the page; empty without one.
    pub subjects: StoredValue<Rc<Subjects>, LocalStorage>,
    /// The open alerts of the last response.
    pub alerts: RwSignal<OpenAlerts>,
    /// Increases when the user changes an alert or rule, so that all alert data are requested at once.
    pub alert_changes: RwSignal<u32>,
    /// Alerts as the charts of the shown machine draw them.
    pub alerted: StoredValue<Rc<Alerted>, LocalStorage>,
    /// Search text of the processes; empty for all.
    pub seek: RwSignal<String>,
    /// The theme in use.
    pub tone: RwSignal<Tone>,
    /// Changes once a second, for texts that count seconds.
    pub beat: RwSignal<u32>,
    /// The clock of the recording that is shown; None while the page is live.
    pub player: RwSignal<Option<Player>>,
    /// True when a file is shown, and no request is sent to a server.
    pub over: RwSignal<bool>,
    /// The recording that is drawn under the live data; None without one.
    pub beside: StoredValue<Option<Beside>>,
    /// Its title, and the instant of its clock.
    pub compared: RwSignal<Option<String>>,
    /// The file that is being opened; None when none is.
    pub opening: RwSignal<Option<Opening>>,
    /// Why a file was not opened, as the begin of the message and its rest; empty without an error.
    pub refused: RwSignal<(&'static str, String)>,
    /// The messages that the user has dismissed.
    pub dismissed: RwSignal<Vec<String>>,
    /// Message of a transport that a proxy blocks while the server responds; empty without a problem.
    pub blocked: RwSignal<&'static str>,
    /// Name of the transport where no WebSocket passes; empty where one does.
    pub way: RwSignal<&'static str>,
    /// Why parts of the address cannot be shown; empty when all can.
    pub wrong: RwSignal<String>,
    /// State of the samples of the shown machine while the server responds.
    pub flow: RwSignal<Flow>,
    /// True while the history of the shown span is loading.
    pub loading: RwSignal<bool>,
    /// The menu of the charts; None until it is opened for the first time.
    pub menu: RwSignal<Option<Menu>>,
    /// The content of the dialog; None while the dialog is closed.
    pub dialog: RwSignal<Option<Dialog>>,
    /// Letters typed into the search while it was loading.
    pub typed_early: StoredValue<String>,
    /// The list that is open beside the charts; None while none is.
    pub sheet: RwSignal<Option<Sheet>>,
    /// True while a narrow page shows the tools of the bar.
    pub tools: RwSignal<bool>,
    /// Server clock minus this machine's clock in ms.
    pub ahead: StoredValue<i64>,
    /// The instant that all charts show; None for none.
    pub hover: StoredValue<Option<Hover>>,
    /// Whether the store has charts of cards.
    has_cards: StoredValue<bool>,
    /// Fires when the next frame has something to draw; the board follows it.
    pub frame: Trigger,
    /// Fires when older history arrived, so that rankings and counts over a span may change.
    pub history: Trigger,
    /// Queue of requests to the server. The link sends them.
    pub outbox: RwSignal<Vec<PageMessage>>,
    /// When samples of the shown machine arrived last, new or old, ms since the epoch by this machine's clock.
    told: StoredValue<i64>,
    /// Time of the server's last message that it had no more data, ms since the epoch by the server's clock.
    pub idle: StoredValue<i64>,
    scheduled: StoredValue<bool>,
    replanned: StoredValue<bool>,
    steps: StoredValue<Steps>,
}

/// The shortest span of a live page whose machine was not measured before, ms.
const SHORTEST_MS: i64 = 20_000;

/// Messages with old ticks follow each other within this time, in ms.
const HISTORY_PAUSE_MS: i64 = 1_500;

impl Page {
    /// The view of the address, and a sentence for each part that is invalid.
    fn read_address() -> (address::View, Vec<String>) {
        Self::read_query(&browser::window().location().search().unwrap_or_default())
    }

    /// The view of an address, and its errors.
    fn read_query(query: &str) -> (address::View, Vec<String>) {
        let mut pairs = Vec::new();
        if let Ok(params) = web_sys::UrlSearchParams::new_with_str(query) {
            for name in shared::address::names() {
                pairs.extend(params.get_all(name).iter().filter_map(|v| Some((name.to_string(), v.as_string()?))));
            }
        }
        address::read(pairs)
    }

    /// Makes the state of the page from its address.
    pub fn from_address() -> Self {
        let (view, wrong) = Self::read_address();
        Page {
            store: StoredValue::new(Store::default()),
            tone: RwSignal::new(view.theme.unwrap_or_else(preferred)),
            view: RwSignal::new(view),
            state: RwSignal::new(LinkState::Connecting),
            goodbye: RwSignal::default(),
            plan: RwSignal::default(),
            machines: RwSignal::new(None),
            ticked: RwSignal::default(),
            accounts: RwSignal::new(false),
            turned_away: RwSignal::new(0),
            shut: RwSignal::new(false),
            bare: StoredValue::new(browser::window().location().search().is_ok_and(|search| search.is_empty())),
            fleet: Trigger::new(),
            processes: RwSignal::new(None),
            past: RwSignal::new(None),
            has_runs: RwSignal::new(false),
            notebook: RwSignal::default(),
            marks: StoredValue::new_local(Rc::default()),
            notes: RwSignal::new(Vec::new()),
            note: RwSignal::new(None),
            findings: RwSignal::default(),
            file_findings: RwSignal::default(),
            faults: StoredValue::new_local(Rc::default()),
            subjects: StoredValue::new_local(Rc::default()),
            alerts: RwSignal::default(),
            alert_changes: RwSignal::new(0),
            alerted: StoredValue::new_local(Rc::default()),
            seek: RwSignal::default(),
            beat: RwSignal::new(0),
            player: RwSignal::new(None),
            over: RwSignal::new(false),
            beside: StoredValue::new(None),
            compared: RwSignal::new(None),
            opening: RwSignal::new(None),
            refused: RwSignal::default(),
            dismissed: RwSignal::new(notices::kept()),
            blocked: RwSignal::new(""),
            way: RwSignal::new(""),
            wrong: RwSignal::new(wrong.join("; ")),
            flow: RwSignal::default(),
            loading: RwSignal::new(false),
            menu: RwSignal::new(None),
            dialog: RwSignal::new(None),
            sheet: RwSignal::new(None),
            tools: RwSignal::new(false),
            ahead: StoredValue::new(0),
            hover: StoredValue::new(None),
            has_cards: StoredValue::new(false),
            frame: Trigger::new(),
            typed_early: StoredValue::default(),
            history: Trigger::new(),
            outbox: RwSignal::default(),
            told: StoredValue::new(0),
            idle: StoredValue::new(0),
            scheduled: StoredValue::new(false),
            replanned: StoredValue::new(false),
            steps: StoredValue::new(Steps::begin()),
        }
    }

    /// The server's clock, or that of the recording; ms since the epoch.
    pub fn server_now(&self) -> i64 {
        self.player.with_untracked(|p| p.as_ref().map(|p| p.t)).unwrap_or_else(|| now() + self.ahead.get_value())
    }

    /// The right edge while live: the newest tick, or now when ticks stay away; ms since the epoch.
    pub fn newest(&self) -> i64 {
        let now = self.server_now();
        let store = self.store.read_value();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        match source.and_then(|s| Some((s.last_t()?, s.info.interval))) {
            // The estimate of the server's clock is late by the travel time of the greeting, so a tick may seem early.
            Some((t, interval)) if (t - interval..=t + interval * 2).contains(&now) => t,
            _ => now,
        }
    }

    /// The clock by which the age of samples is measured: the server's, or the newest tick's time while old ticks
    /// arrive.
    pub fn reads_as_now(&self) -> i64 {
        let clock = self.server_now();
        if !self.is_told() {
            return clock;
        }
        let store = self.store.read_value();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        source.and_then(|s| s.last_t().filter(|t| clock - t > s.info.interval * 2)).unwrap_or(clock)
    }

    /// True while ticks are arriving. When these are old ones, history is still loading, and nothing counts as late.
    pub fn is_told(&self) -> bool {
        now() - self.told.get_value() < HISTORY_PAUSE_MS
    }

    /// The span that is shown, ms since the epoch: the frozen one, else the window up to the newest tick.
    pub fn span(&self) -> (i64, i64) {
        let (window, frozen) = self.view.with_untracked(|v| (v.window, v.frozen));
        frozen.unwrap_or_else(|| {
            let end = self.newest();
            (end - self.reach(window, end), end)
        })
    }

    /// Length of a live window in ms. The default window of a new machine grows from [`SHORTEST_MS`] on, also if the user
    /// chose it; other windows show their empty part, too.
    fn reach(&self, window: i64, end: i64) -> i64 {
        if window != window::DEFAULT.ms || self.is_recorded() || !self.is_of_one_machine() {
            return window;
        }
        let store = self.store.read_value();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        let begin = source.and_then(|s| s.begins_within(end - window, end));
        begin.map_or(window, |begin| (end - begin).clamp(SHORTEST_MS, window))
    }

    /// Shows the changes of a message with the next frame.
    pub fn changed(self, what: Changed) {
        if what.plan {
            // The plan is made with the next frame. Series, checks and rows arrive one after another, and the page must
            // not change once for each.
            self.replanned.set_value(true);
        }
        if what.history {
            self.history.notify();
        }
        if what.fleet {
            self.count();
            self.fleet.notify();
        }
        if what.ticks || what.plan || what.history || what.fleet {
            self.redraw();
        }
    }

    /// Rebuilds the plan. A restarted server sends its greeting first, then its machines, then their metrics; until
    /// then the old plan stays.
    fn replan(self) {
        self.recall_folds();
        let cards = self.view.with_untracked(|v| card::cards(&v.cards));
        if !cards.is_empty() || self.has_cards.get_value() {
            card::put(&mut self.store.write_value(), &cards);
            self.has_cards.set_value(!cards.is_empty());
        }
        let plan = {
            let store = self.store.read_value();
            let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
            let comes_back = matches!(self.state.get_untracked(), LinkState::Reconnecting | LinkState::Lost);
            if source.is_none_or(|s| comes_back && s.charts.is_empty()) {
                return;
            }
            let (front, proof) = (self.front(), self.proof());
            let plan = self.view.with_untracked(|v| {
                plan::plan(&store, source, plan::Choice { hide: &v.hide, front: &front, proof: &proof })
            });
            match self.side() {
                Some(charts) => plan.alone(&charts),
                None => plan,
            }
        };
        if self.plan.with_untracked(|p| *p != plan) {
            if self.plan.with_untracked(|p| !p.top.is_empty() && p.top != plan.top) {
                browser::slide("section.charts > article");
            }
            // A chart that leads, or leads no more, moves or is made anew.
            browser::keep_focus(|lost| {
                let chart = lost.closest("article.chart").ok()??.get_attribute("data-panel")?;
                let again = browser::all("article.chart")
                    .into_iter()
                    .find(|one| one.get_attribute("data-panel").as_ref() == Some(&chart))?;
                again.query_selector(".plot").ok()?
            });
            self.plan.set(plan);
        }
    }

    /// Has everything in view drawn in the next frame.
    pub fn redraw(self) {
        if !std::mem::replace(&mut *self.scheduled.write_value(), true) {
            self.frame.notify();
        }
    }

    /// True when something changed that the next frame draws.
    pub fn is_due(self) -> bool {
        self.scheduled.get_value()
    }

    /// Called at the start of a frame: makes the plan if needed, and sets the clock of a recording.
    pub fn begin_frame(self) {
        self.scheduled.set_value(false);
        if std::mem::take(&mut *self.replanned.write_value()) {
            self.replan();
        }
        if let Some(t) = self.player.with_untracked(|p| p.as_ref().map(|p| p.t)) {
            self.store.write_value().sources.values_mut().for_each(|source| source.until = t);
        }
    }

    /// Drops all data, because the user is signed out.
    pub fn forget(self) {
        *self.store.write_value() = Store::default();
        self.machines.set(None);
        self.plan.set(Plan::default());
        self.processes.set(None);
        self.hover.set_value(None);
        self.dialog.set(None);
        self.fleet.notify();
        self.redraw();
    }

    /// A copy of the view.
    pub fn view_now(&self) -> View {
        self.view.get_untracked()
    }

    /// The title of a chart in the plan, even when its section is folded; None when the plan has no such chart.
    pub fn title_of(&self, id: &str) -> Option<String> {
        self.plan.with_untracked(|p| {
            let mut all = p.top.iter().chain(p.sections.iter().flat_map(|s| &s.panels));
            all.find(|c| c.id == id).map(|c| c.title.clone())
        })
    }

    /// Title of a section of the page; None when it is not there.
    pub fn title_of_section(&self, id: &str) -> Option<String> {
        self.plan.with_untracked(|p| p.sections.iter().find(|s| s.id == id).map(|s| s.title.clone()))
    }

    /// True when the plan has this chart, even when its section is folded.
    pub fn is_planned(&self, id: &str) -> bool {
        self.title_of(id).is_some()
    }

    /// Opens a list beside the charts, or closes it when it is open.
    pub fn toggle_sheet(self, sheet: Sheet) {
        self.sheet.update(|open| *open = if *open == Some(sheet) { None } else { Some(sheet) });
    }

    /// Opens the menu of a chart, or closes it when it is open there.
    pub fn toggle_menu(self, chart: &str) {
        self.menu.update(|menu| {
            let open = !menu.as_ref().is_some_and(|menu| menu.open && menu.chart == chart);
            *menu = Some(Menu { chart: chart.to_string(), open });
        });
    }

    /// Changes to the other theme.
    pub fn toggle_theme(self) {
        let other = if self.tone.get_untracked() == Tone::Dark { Tone::Light } else { Tone::Dark };
        self.tone.set(other);
        self.change(|v| v.theme = Some(other));
    }
}
