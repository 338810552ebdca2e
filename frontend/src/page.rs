//! What the whole page shares: the store, the view, the state of the link, and the actions of buttons and keys.
//!
//! Signals carry what changes seldom (view, link, plan). Data never goes through a signal: the board draws it, at most
//! once a frame.

use crate::address::{self, Tone, View};
use crate::link::Link;
use crate::panels::board::Board;
use crate::panels::crosshair::Tip;
use crate::store::plan::{self, Plan};
use crate::store::{Changed, Store};
use leptos::prelude::*;
use shared::processes::ProcessTable;
use shared::window::{WINDOWS, Window};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use wasm_bindgen::prelude::*;

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

/// Shared by all components.
pub struct Shared {
    /// Data.
    pub store: RefCell<Store>,
    /// The connection.
    pub link: RefCell<Link>,
    /// Panels, tiles and their canvases.
    pub board: RefCell<Board>,
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
    /// The tooltip.
    pub tip: RwSignal<Option<Tip>>,
    /// Once a second: for words that count seconds.
    pub beat: RwSignal<u32>,
    /// Server clock minus ours, ms.
    pub ahead: Cell<i64>,
    scheduled: Cell<bool>,
}

/// A handle to it that goes everywhere.
#[derive(Clone, Copy)]
pub struct Page(StoredValue<&'static Shared, LocalStorage>);

impl Deref for Page {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        self.0.get_value()
    }
}

/// The page of this component.
pub fn page() -> Page {
    expect_context()
}

/// The browser's window; there is always one.
pub fn browser() -> web_sys::Window {
    web_sys::window().expect("a page has a window")
}

/// Milliseconds since the epoch by this machine's clock.
pub fn now() -> i64 {
    js_sys::Date::now() as i64
}

/// Local time minus UTC at an instant, ms.
pub fn offset(t: i64) -> i64 {
    let date = js_sys::Date::new(&JsValue::from_f64(t as f64));
    -(date.get_timezone_offset() as i64) * 60_000
}

impl Page {
    /// The one page, as the address says.
    pub fn from_address() -> Self {
        let query = browser().location().search().unwrap_or_default();
        let mut pairs = Vec::new();
        if let Ok(params) = web_sys::UrlSearchParams::new_with_str(&query) {
            for name in ["w", "from", "to", "theme", "source", "hide"] {
                pairs.extend(params.get(name).map(|value| (name.to_string(), value)));
            }
        }
        let view = address::read(pairs);
        let bright =
            || browser().match_media("(prefers-color-scheme: light)").ok().flatten().is_some_and(|m| m.matches());
        let tone = view.theme.unwrap_or(if bright() { Tone::Light } else { Tone::Dark });
        let shared = Shared {
            store: RefCell::new(Store::default()),
            link: RefCell::new(Link::default()),
            board: RefCell::new(Board::default()),
            view: RwSignal::new(view),
            state: RwSignal::new(LinkState::Connecting),
            goodbye: RwSignal::new(String::new()),
            plan: RwSignal::new(Plan::default()),
            processes: RwSignal::new(None),
            tone: RwSignal::new(tone),
            tip: RwSignal::new(None),
            beat: RwSignal::new(0),
            ahead: Cell::new(0),
            scheduled: Cell::new(false),
        };
        // It lives as long as the page does.
        Page(StoredValue::new_local(Box::leak(Box::new(shared))))
    }

    /// The server's clock.
    pub fn server_now(&self) -> i64 {
        now() + self.ahead.get()
    }

    /// The span that is shown: the frozen one, else up to the newest tick, or up to now when ticks stay away.
    pub fn span(&self) -> (i64, i64) {
        let view = self.view.get_untracked();
        if let Some(span) = view.frozen {
            return span;
        }
        let store = self.store.borrow();
        let source = store.source(view.source.as_deref());
        let now = self.server_now();
        let end = match source.and_then(|s| Some((s.last_t()?, s.info.interval))) {
            Some((t, interval)) if now - t <= interval * 2 => t,
            _ => now,
        };
        (end - view.window.ms, end)
    }

    /// What a message changed is drawn in the next frame.
    pub fn changed(self, changed: Changed) {
        if changed.plan {
            self.replan();
        }
        if changed.ticks || changed.plan || changed.history {
            self.redraw();
        }
    }

    /// Looks again at which panels there are.
    pub fn replan(self) {
        let view = self.view.get_untracked();
        let plan = {
            let store = self.store.borrow();
            plan::plan(&store, store.source(view.source.as_deref()), &view.hide)
        };
        if self.plan.with_untracked(|p| *p != plan) {
            self.plan.set(plan);
        }
    }

    /// Draws everything in view at the next frame.
    pub fn redraw(self) {
        if self.scheduled.replace(true) {
            return;
        }
        request_animation_frame(move || {
            self.scheduled.set(false);
            Board::draw(self);
        });
    }

    fn set_view(self, change: impl FnOnce(&mut View)) {
        self.view.update(change);
        let params = web_sys::UrlSearchParams::new().expect("empty search parameters");
        for (name, value) in address::write(&self.view.get_untracked()) {
            params.append(name, &value);
        }
        let query = format!("?{}", String::from(params.to_string()));
        // Refused in a sandboxed frame; the view is right all the same.
        if let Ok(history) = browser().history() {
            let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&query));
        }
        self.load();
        self.redraw();
    }

    /// Asks for the history that the view needs and the page has not.
    pub fn load(self) {
        let (from, _) = self.span();
        let view = self.view.get_untracked();
        let ask = {
            let store = self.store.borrow();
            store.source(view.source.as_deref()).and_then(|s| {
                let until = s.loaded_from.min(s.last_t()?);
                (from < s.loaded_from && s.loaded_from != i64::MAX).then_some((s.info.id, from, until))
            })
        };
        if let Some((source, from, to)) = ask {
            self.link.borrow_mut().history(source, from, to);
        }
    }

    /// Shows a window; a frozen span keeps its end.
    pub fn choose(self, window: Window) {
        self.set_view(|v| {
            v.window = window;
            v.frozen = v.frozen.map(|(_, to)| (to - window.ms, to));
        });
    }

    /// Shows another machine. The page begins anew with it: nothing that is drawn stays.
    pub fn show_source(self, name: String) {
        self.set_view(|v| v.source = Some(name));
        // The address says the machine already; where reloading is refused a person can still do it.
        let _ = browser().location().reload();
    }

    /// Stands still, or goes on.
    pub fn toggle_frozen(self) {
        if self.view.with_untracked(|v| v.frozen.is_some()) {
            self.go_live();
        } else {
            let span = self.span();
            self.set_view(|v| v.frozen = Some(span));
        }
    }

    /// Goes on.
    pub fn go_live(self) {
        self.tip.set(None);
        self.board.borrow_mut().hover = None;
        if self.view.with_untracked(|v| v.frozen.is_some()) {
            self.set_view(|v| v.frozen = None);
        } else {
            self.redraw();
        }
    }

    /// The other theme.
    pub fn toggle_theme(self) {
        let other = if self.tone.get_untracked() == Tone::Dark { Tone::Light } else { Tone::Dark };
        self.tone.set(other);
        self.set_view(|v| v.theme = Some(other));
    }

    /// A key that was pressed; true when it meant something.
    pub fn key(self, key: &str) -> bool {
        match key {
            "t" => self.toggle_theme(),
            " " => self.toggle_frozen(),
            "Escape" => self.go_live(),
            _ => match key.parse::<usize>().ok().and_then(|n| WINDOWS.get(n.wrapping_sub(1))) {
                Some(window) => self.choose(*window),
                None => return false,
            },
        }
        true
    }
}
