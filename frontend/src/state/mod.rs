//! What the whole page shares: the store, the view, how the connection stands. It knows nothing of who draws, asks or
//! reads keys: those follow it.
//!
//! Signals carry what changes seldom (view, connection, plan). Samples are never signals: a message marks the next frame,
//! and the board follows that. [`view`] changes what is shown, [`recorded`] plays a recording, [`received`] takes in what
//! a server says, [`wanted`] finds what the page has not.

mod received;
mod recorded;
mod view;
mod wanted;

pub use received::Received;

use crate::address::{self, Tone, View};
use crate::browser::{now, preferred, window};
use crate::player::Player;
use crate::store::plan::{self, Plan};
use crate::store::{Changed, Store};
use leptos::prelude::*;
use shared::processes::ProcessTable;
use shared::wire::PageMessage;
use view::{Back, Writes};

/// How the page stands to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// No sample yet.
    Connecting,
    /// Samples come.
    Live,
    /// The connection broke and is tried again.
    Reconnecting,
    /// It has been tried for long, or the server refused.
    Lost,
}

/// The instant that all charts show: where the pointer is, or the keys are.
#[derive(Clone, Debug, PartialEq)]
pub struct Hover {
    /// The chart that is pointed at.
    pub panel: String,
    /// The instant, ms since the epoch.
    pub t: i64,
    /// Place in the span while the pointer rests there; none where the instant stays.
    pub share: Option<f64>,
    /// Height on the plot, CSS pixels from its top.
    pub y: f64,
    /// Where that top was in the window, CSS pixels.
    pub top: f64,
    /// Whether it stays where it is when the pointer goes.
    pub pinned: bool,
}

/// What the dialog shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dialog {
    /// The list of all keys.
    Keys,
    /// The table of a chart, by its id.
    Table(String),
}

/// The menu of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// The chart that it belongs to, or belonged to last, by its id.
    pub chart: String,
    /// Whether it is open.
    pub open: bool,
}

/// The page's state; a copy is the same state. Parts of the page find it in their context.
#[derive(Clone, Copy)]
pub struct Page {
    /// Data.
    pub store: StoredValue<Store>,
    /// What is shown.
    pub view: RwSignal<View>,
    /// How the connection stands.
    pub state: RwSignal<LinkState>,
    /// Why it is lost, in the server's words.
    pub goodbye: RwSignal<String>,
    /// Panels, sections, tiles.
    pub plan: RwSignal<Plan>,
    /// The newest process table that was asked for.
    pub processes: RwSignal<Option<ProcessTable>>,
    /// The theme in force.
    pub tone: RwSignal<Tone>,
    /// Once a second: for words that count seconds.
    pub beat: RwSignal<u32>,
    /// The clock of the recording that is shown, where nothing is live.
    pub player: RwSignal<Option<Player>>,
    /// Whether a file is shown, and no server is asked any more.
    pub over: RwSignal<bool>,
    /// Why a file was not opened.
    pub refused: RwSignal<String>,
    /// What of the address cannot be shown, and why; empty when all can.
    pub wrong: RwSignal<String>,
    /// Whether the server is there and the machine that is shown has sent nothing for a while.
    pub silent: RwSignal<bool>,
    /// The menu of the charts; none until it was opened once.
    pub menu: RwSignal<Option<Menu>>,
    /// What the dialog shows; none while it is closed.
    pub dialog: RwSignal<Option<Dialog>>,
    /// Whether the list of what changed is open.
    pub sheet: RwSignal<bool>,
    /// Whether a narrow page shows the tools of the bar.
    pub tools: RwSignal<bool>,
    /// Server clock minus ours, ms.
    pub ahead: StoredValue<i64>,
    /// The instant that all charts show.
    pub hover: StoredValue<Option<Hover>>,
    /// Something is to be drawn in the next frame: the board follows it.
    pub frame: Trigger,
    /// Older history arrived: what was ranked or counted over a span may be another.
    pub history: Trigger,
    /// What the server is to be asked: who holds the connection takes it from here.
    pub outbox: RwSignal<Vec<PageMessage>>,
    /// When ticks of the machine that is shown came last, ms.
    told: StoredValue<i64>,
    scheduled: StoredValue<bool>,
    replanned: StoredValue<bool>,
    writes: StoredValue<Writes>,
    back: StoredValue<Back>,
}

/// The past comes in messages with less than this between them, ms.
const TOLD_PAUSE_MS: i64 = 1_500;

impl Page {
    /// The one page, as the address says.
    pub fn from_address() -> Self {
        let query = window().location().search().unwrap_or_default();
        let mut pairs = Vec::new();
        if let Ok(params) = web_sys::UrlSearchParams::new_with_str(&query) {
            for name in address::NAMES {
                pairs.extend(params.get_all(name).iter().filter_map(|v| Some((name.to_string(), v.as_string()?))));
            }
        }
        let (view, wrong) = address::read(pairs);
        Page {
            store: StoredValue::new(Store::default()),
            tone: RwSignal::new(view.theme.unwrap_or_else(preferred)),
            view: RwSignal::new(view),
            state: RwSignal::new(LinkState::Connecting),
            goodbye: RwSignal::default(),
            plan: RwSignal::default(),
            processes: RwSignal::new(None),
            beat: RwSignal::new(0),
            player: RwSignal::new(None),
            over: RwSignal::new(false),
            refused: RwSignal::default(),
            wrong: RwSignal::new(wrong.join("; ")),
            silent: RwSignal::new(false),
            menu: RwSignal::new(None),
            dialog: RwSignal::new(None),
            sheet: RwSignal::new(false),
            tools: RwSignal::new(false),
            ahead: StoredValue::new(0),
            hover: StoredValue::new(None),
            frame: Trigger::new(),
            history: Trigger::new(),
            outbox: RwSignal::default(),
            told: StoredValue::new(0),
            scheduled: StoredValue::new(false),
            replanned: StoredValue::new(false),
            writes: StoredValue::new(Writes::begin()),
            back: StoredValue::new(Back::default()),
        }
    }

    /// The server's clock, or that of a recording.
    pub fn server_now(&self) -> i64 {
        self.player.with_untracked(|p| p.as_ref().map(|p| p.t)).unwrap_or_else(|| now() + self.ahead.get_value())
    }

    /// The right edge while live: the newest tick, or now when ticks stay away.
    pub fn newest(&self) -> i64 {
        let now = self.server_now();
        let store = self.store.read_value();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        match source.and_then(|s| Some((s.last_t()?, s.info.interval))) {
            // Our idea of the server's clock is late by what its greeting took, so a tick may seem to come early.
            Some((t, interval)) if (t - interval..=t + interval * 2).contains(&now) => t,
            _ => now,
        }
    }

    /// The clock by which samples are old: the server's; while old ticks are still coming, that of the newest one.
    pub fn reads_as_now(&self) -> i64 {
        let clock = self.server_now();
        if !self.is_told() {
            return clock;
        }
        let store = self.store.read_value();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        source.and_then(|s| s.last_t().filter(|t| clock - t > s.info.interval * 2)).unwrap_or(clock)
    }

    /// Whether ticks are coming right now: while they are old ones the past is on its way, and nothing is late.
    pub fn is_told(&self) -> bool {
        now() - self.told.get_value() < TOLD_PAUSE_MS
    }

    /// The span that is shown: the frozen one, else the window up to the newest tick.
    pub fn span(&self) -> (i64, i64) {
        let (window, frozen) = self.view.with_untracked(|v| (v.window, v.frozen));
        frozen.unwrap_or_else(|| {
            let end = self.newest();
            (end - window, end)
        })
    }

    /// What a message changed is drawn in the next frame.
    pub fn changed(self, what: Changed) {
        if what.plan {
            // With the next frame: series, checks and rows come one after another, and what one brings must not be seen to
            // make room for what the next does.
            self.replanned.set_value(true);
        }
        if what.history {
            self.history.notify();
        }
        if what.ticks || what.plan || what.history {
            self.redraw();
        }
    }

    /// Looks again at which panels there are. Between the greeting of a server that has started anew and the machines that
    /// it names next, what stands there stays.
    fn replan(self) {
        let plan = {
            let store = self.store.read_value();
            if store.sources.is_empty() {
                return;
            }
            self.view.with_untracked(|v| plan::plan(&store, store.source(v.source.as_deref()), &v.hide))
        };
        if self.plan.with_untracked(|p| *p != plan) {
            self.plan.set(plan);
        }
    }

    /// Has everything in view drawn at the next frame.
    pub fn redraw(self) {
        if !std::mem::replace(&mut *self.scheduled.write_value(), true) {
            self.frame.notify();
        }
    }

    /// The frame has come: what is drawn in it is settled now.
    pub fn begin_frame(self) {
        self.scheduled.set_value(false);
        if std::mem::take(&mut *self.replanned.write_value()) {
            self.replan();
        }
        if let Some(t) = self.player.with_untracked(|p| p.as_ref().map(|p| p.t)) {
            self.store.write_value().sources.values_mut().for_each(|source| source.until = t);
        }
    }

    /// The view as it is.
    pub fn view_now(&self) -> View {
        self.view.get_untracked()
    }

    /// The title of a chart that stands on the page, folded away or not.
    pub fn title_of(&self, id: &str) -> Option<String> {
        self.plan.with_untracked(|p| {
            let mut all = p.top.iter().chain(p.sections.iter().flat_map(|s| &s.panels));
            all.find(|c| c.id == id).map(|c| c.title.clone())
        })
    }

    /// Whether a chart stands on the page, folded away or not.
    pub fn is_planned(&self, id: &str) -> bool {
        self.title_of(id).is_some()
    }

    /// Opens the menu of a chart, or closes it there.
    pub fn toggle_menu(self, chart: &str) {
        self.menu.update(|menu| {
            let open = !menu.as_ref().is_some_and(|menu| menu.open && menu.chart == chart);
            *menu = Some(Menu { chart: chart.to_string(), open });
        });
    }

    /// The other theme.
    pub fn toggle_theme(self) {
        let other = if self.tone.get_untracked() == Tone::Dark { Tone::Light } else { Tone::Dark };
        self.tone.set(other);
        self.change(|v| v.theme = Some(other));
    }
}
