//! What the whole page shares: the store, the view, the state of the link, and the actions of buttons and keys.
//!
//! Signals carry what changes seldom (view, link, plan). Data never goes through a signal: the board draws it, at most
//! once a frame.

use crate::address::{self, Tone, View};
use crate::link::Link;
use crate::panels::board::Board;
use crate::panels::{changed, crosshair, menu, roving, tools};
use crate::player::Player;
use crate::range::{self, SHORTEST};
use crate::recording;
use crate::signal::Signal;
use crate::store::plan::{self, Plan};
use crate::store::{Changed, Store};
use leptos::prelude::{request_animation_frame, set_timeout};
use shared::processes::ProcessTable;
use shared::window::{self, LONGEST_OF_SAMPLES, WINDOWS};
use shared::wire::{PageMessage, Recorded};
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
    pub view: Signal<View>,
    /// How the connection stands.
    pub state: Signal<LinkState>,
    /// Why it is lost, in the server's words.
    pub goodbye: Signal<String>,
    /// Panels, sections, tiles.
    pub plan: Signal<Plan>,
    /// The newest process table that was asked for.
    pub processes: Signal<Option<ProcessTable>>,
    /// The theme in force.
    pub tone: Signal<Tone>,
    /// Once a second: for words that count seconds.
    pub beat: Signal<u32>,
    /// Server clock minus ours, ms.
    pub ahead: Cell<i64>,
    /// The clock of the recording that is shown, where nothing is live.
    pub player: Signal<Option<Player>>,
    /// Why a file was not opened.
    pub refused: Signal<String>,
    /// What of the address cannot be shown, and why; empty when all can.
    pub wrong: Signal<String>,
    /// Whether the server is there and the machine that is shown has sent nothing for a while.
    pub silent: Signal<bool>,
    scheduled: Cell<bool>,
    replanned: Cell<bool>,
    writing: Cell<bool>,
    /// When the address was written last, and how often it may be written without a pause.
    writes: Cell<(i64, i64)>,
    /// Windows and spans that were left, newest last.
    back: RefCell<Vec<Shown>>,
}

/// Window, and the span that stands still.
type Shown = (i64, Option<(i64, i64)>);

/// Writings of the address without a pause, and the time in which one more is allowed, ms.
const WRITES: i64 = 20;
const WRITE: i64 = 200;
/// So much more of an earlier period is asked for than is seen, ms.
const AHEAD: i64 = 3_600_000;
/// Steps back that are kept.
const STEPS: usize = 50;

/// A handle to it that goes everywhere.
#[derive(Clone, Copy)]
pub struct Page(&'static Shared);

impl Deref for Page {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        self.0
    }
}

thread_local! {
    static PAGE: Cell<Option<Page>> = const { Cell::new(None) };
}

/// The one page.
pub fn page() -> Page {
    PAGE.get().expect("the page is made before its parts")
}

/// The browser's window; there is always one.
pub fn browser() -> web_sys::Window {
    web_sys::window().expect("a page has a window")
}

/// The theme that the system asks for.
pub fn preferred() -> Tone {
    let bright = browser().match_media("(prefers-color-scheme: light)").ok().flatten().is_some_and(|m| m.matches());
    if bright { Tone::Light } else { Tone::Dark }
}

/// Milliseconds on the browser's fine clock, which nobody sets.
pub fn performance() -> f64 {
    browser().performance().map_or(0.0, |p| p.now())
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
            for name in address::NAMES {
                pairs.extend(params.get_all(name).iter().filter_map(|v| Some((name.to_string(), v.as_string()?))));
            }
        }
        let (view, wrong) = address::read(pairs);
        let tone = view.theme.unwrap_or_else(preferred);
        let shared = Shared {
            store: RefCell::new(Store::default()),
            link: RefCell::new(Link::default()),
            board: RefCell::new(Board::default()),
            view: Signal::new(view),
            state: Signal::new(LinkState::Connecting),
            goodbye: Signal::new(String::new()),
            plan: Signal::new(Plan::default()),
            processes: Signal::new(None),
            tone: Signal::new(tone),
            beat: Signal::new(0),
            ahead: Cell::new(0),
            player: Signal::new(None),
            refused: Signal::new(String::new()),
            wrong: Signal::new(wrong.join("; ")),
            silent: Signal::new(false),
            scheduled: Cell::new(false),
            replanned: Cell::new(false),
            writing: Cell::new(false),
            writes: Cell::new((now(), WRITES)),
            back: RefCell::default(),
        };
        // It lives as long as the page does.
        let page = Page(Box::leak(Box::new(shared)));
        PAGE.set(Some(page));
        page
    }

    /// The server's clock, or that of a recording.
    pub fn server_now(&self) -> i64 {
        self.player.with_untracked(|p| p.as_ref().map(|p| p.t)).unwrap_or_else(|| now() + self.ahead.get())
    }

    /// The instant of the newest tick that came, if that is behind the server's clock by more than it should be.
    pub fn told(&self) -> i64 {
        let store = self.store.borrow();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        let now = self.server_now();
        source.and_then(|s| s.last_t().filter(|t| now - t > s.info.interval * 2)).unwrap_or(now)
    }

    /// The right edge while live: the newest tick, or now when ticks stay away.
    pub fn newest(&self) -> i64 {
        let store = self.store.borrow();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        let now = self.server_now();
        match source.and_then(|s| Some((s.last_t()?, s.info.interval))) {
            // Our idea of the server's clock is late by what its greeting took, so a tick may seem to come early.
            Some((t, interval)) if (t - interval..=t + interval * 2).contains(&now) => t,
            _ => now,
        }
    }

    /// Shows a recording, whose machines the store has or is about to have.
    pub fn recorded(self, recorded: Recorded) {
        let length = recorded.to - recorded.from;
        let asked = browser().location().search().unwrap_or_default();
        if !["?w=", "&w="].iter().any(|name| asked.contains(name)) {
            // As much of it as one window holds.
            let all = WINDOWS.iter().find(|w| w.ms >= length).unwrap_or(&WINDOWS[WINDOWS.len() - 1]);
            self.view.update(|v| v.window = all.ms);
        }
        self.player.set(Some(Player::new(recorded)));
        self.replan();
        self.redraw();
    }

    /// Does something with the clock of the recording, if one is shown.
    pub fn play(self, change: impl FnOnce(&mut Player)) {
        if self.player.with_untracked(Option::is_some) {
            self.player.update(|p| {
                if let Some(p) = p {
                    change(p);
                }
            });
            self.load();
            self.redraw();
        }
    }

    /// Whether a recording is shown.
    pub fn is_recorded(&self) -> bool {
        self.player.with_untracked(Option::is_some)
    }

    /// A key while a recording is shown; true when it meant something.
    fn player_key(self, key: &str) -> bool {
        let step = self.view.with_untracked(|v| v.window) / 10;
        match key {
            " " => self.play(Player::toggle),
            "<" | "," => self.play(|p| p.shift(-1)),
            ">" | "." => self.play(|p| p.shift(1)),
            "j" => self.play(|p| p.jump(p.t - step)),
            "l" => self.play(|p| p.jump(p.t + step)),
            _ => return false,
        }
        true
    }

    /// Forgets everything that is shown; what comes next is another machine's.
    pub fn begin_anew(self) {
        self.player.set(None);
        self.processes.set(None);
        self.plan.set(Plan::default());
        self.back.borrow_mut().clear();
        self.view.update(|v| (v.frozen, v.source) = (None, None));
        *self.store.borrow_mut() = Store::default();
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
            self.replanned.set(true);
        }
        if what.history {
            changed::again(self);
        }
        if what.ticks || what.plan || what.history {
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
            if self.replanned.take() {
                self.replan();
            }
            if let Some(t) = self.player.with_untracked(|p| p.as_ref().map(|p| p.t)) {
                self.store.borrow_mut().sources.values_mut().for_each(|source| source.until = t);
            }
            Board::draw(self);
        });
    }

    /// Changes the view. The address follows at once, in a long drag a few times a second: a browser counts how often.
    pub fn change(self, change: impl FnOnce(&mut View)) {
        self.view.update(change);
        let (at, left) = self.writes.get();
        let more = (now() - at) / WRITE;
        let left = (left + more).min(WRITES);
        self.writes.set((at + more * WRITE, left));
        if left > 0 {
            self.write_address();
        } else if !self.writing.replace(true) {
            set_timeout(move || self.write_address(), std::time::Duration::from_millis(WRITE as u64));
        }
        self.load();
        self.redraw();
    }

    /// Writes what is seen into the address.
    pub fn write_address(self) {
        self.writing.set(false);
        let (at, left) = self.writes.get();
        self.writes.set((at, left - 1));
        let params = web_sys::UrlSearchParams::new().expect("empty search parameters");
        for (name, value) in address::write(&self.view.get_untracked()) {
            params.append(name, &value);
        }
        let query = format!("?{}", String::from(params.to_string()));
        // Refused in a sandboxed frame; the view is right all the same.
        if let Ok(history) = browser().history() {
            let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&query));
        }
    }

    /// Asks for the history that the view needs and the page has not.
    pub fn load(self) {
        let (from, to) = self.span();
        let earlier = self.view.with_untracked(|v| v.versus).map(|ms| if ms == 0 { to - from } else { ms });
        match earlier {
            // Live, the earlier span moves on.
            Some(ms) => self.want(&[(from, to), (from - ms, (to - ms + AHEAD).min(to))]),
            None => self.want(&[(from, to)]),
        }
    }

    /// Asks for the history of spans that the page has not: samples, or minutes where a span is longer than is drawn from
    /// samples. One question at a time; with each answer it is asked for what is missing then.
    pub fn want(self, spans: &[(i64, i64)]) {
        let name = self.view.with_untracked(|v| v.source.clone());
        let ask = {
            let mut store = self.store.borrow_mut();
            store.source_mut(name.as_deref()).and_then(|s| {
                let (source, newest) = (s.info.id, s.last_t()?);
                if spans.iter().all(|(from, to)| to - from <= LONGEST_OF_SAMPLES) || self.is_recorded() {
                    let (from, to) = s.ask(spans)?;
                    return Some(PageMessage::History { source, from, to });
                }
                let (from, to) = s.ask_days(spans.iter().map(|span| span.0).min()?, newest)?;
                Some(PageMessage::Minutes { source, from, to })
            })
        };
        if let Some(ask) = ask {
            self.link.borrow_mut().history(&ask);
        }
    }

    /// The longest window, ms: as far as history goes back.
    pub fn longest(&self) -> i64 {
        if self.is_recorded() {
            return LONGEST_OF_SAMPLES;
        }
        range::longest(self.store.borrow().hello.as_ref().map_or(0, |h| h.retention))
    }

    /// The windows to choose from.
    pub fn windows(&self) -> impl Iterator<Item = window::Window> + use<> {
        window::choices(self.longest())
    }

    /// Shows no more than there can be, and says so.
    pub fn fit(self) {
        let longest = self.longest();
        let asked = self.view.with_untracked(|v| v.window);
        if asked > longest {
            self.wrong.set(format!("w={}: history is kept for {}", range::name(asked), range::name(longest)));
            self.view.update(|v| v.window = longest);
        }
    }

    /// The view as it is.
    pub fn view_now(&self) -> View {
        self.view.get_untracked()
    }

    /// Whether a chart stands on the page, folded away or not.
    pub fn is_planned(&self, id: &str) -> bool {
        self.plan.with_untracked(|p| p.top.iter().chain(p.sections.iter().flat_map(|s| &s.panels)).any(|c| c.id == id))
    }

    /// Keeps what is shown, for a step back.
    pub fn remember(self) {
        let shown = self.view.with_untracked(|v| (v.window, v.frozen));
        let mut back = self.back.borrow_mut();
        if back.last() != Some(&shown) {
            if back.len() == STEPS {
                back.remove(0);
            }
            back.push(shown);
        }
    }

    /// Goes one step back; without one it goes on live.
    pub fn step_back(self) {
        let shown = self.view.with_untracked(|v| (v.window, v.frozen));
        let before = {
            let mut back = self.back.borrow_mut();
            std::iter::from_fn(|| back.pop()).find(|b| *b != shown)
        };
        match before {
            Some((window, frozen)) => self.change(|v| (v.window, v.frozen) = (window, frozen)),
            None => self.go_live(),
        }
    }

    /// Shows a window of so many ms; a frozen span keeps its end.
    pub fn choose(self, window: i64) {
        self.remember();
        self.change(|v| {
            v.window = window;
            v.frozen = v.frozen.map(|(_, to)| (to - window, to));
        });
    }

    /// Stands still at a span, as far as it can be shown: 5 s to the longest window, not ahead of now.
    pub fn show(self, from: i64, to: i64) {
        let length = (to - from).clamp(SHORTEST, self.longest());
        let middle = from + (to - from) / 2;
        let end = (middle - length / 2 + length).min(self.newest().max(length));
        self.change(|v| v.frozen = Some((end - length, end)));
    }

    /// Makes the span so many times as long; the instant `at` stays where it is. A live view that is taken by its right
    /// end stays live.
    pub fn zoom(self, at: i64, factor: f64) {
        let (from, to) = self.span();
        let length = ((to - from) as f64 * factor) as i64;
        let length = length.clamp(SHORTEST, self.longest());
        let share = (at - from) as f64 / (to - from) as f64;
        if share > 0.9 && self.view.with_untracked(|v| v.frozen.is_none()) {
            self.change(|v| v.window = (length + 500) / 1000 * 1000);
        } else {
            let start = at - (length as f64 * share) as i64;
            self.show(start, start + length);
        }
    }

    /// Shows another machine. The page begins anew with it: nothing that is drawn stays.
    pub fn show_source(self, name: String) {
        self.change(|v| v.source = Some(name));
        self.write_address();
        // The address says the machine already; where reloading is refused a person can still do it.
        let _ = browser().location().reload();
    }

    /// Stands still, or goes on.
    pub fn toggle_frozen(self) {
        if self.view.with_untracked(|v| v.frozen.is_some()) {
            self.go_live();
        } else {
            let span = self.span();
            self.remember();
            self.change(|v| v.frozen = Some(span));
        }
    }

    /// Goes on.
    pub fn go_live(self) {
        crosshair::clear(self);
        self.back.borrow_mut().clear();
        self.change(|v| v.frozen = None);
    }

    /// Back to what the page shows of itself, and an address that says so.
    pub fn set_right(self) {
        self.wrong.set(String::new());
        self.change(|v| v.source = None);
        self.go_live();
    }

    /// The other theme.
    pub fn toggle_theme(self) {
        let other = if self.tone.get_untracked() == Tone::Dark { Tone::Light } else { Tone::Dark };
        self.tone.set(other);
        self.change(|v| v.theme = Some(other));
    }

    /// A key that was pressed, `far` with shift; true when it meant something.
    pub fn key(self, key: &str, far: bool) -> bool {
        if self.is_recorded() && self.player_key(key) {
            return true;
        }
        let (from, to) = self.span();
        let middle = || crosshair::instant(self).unwrap_or(from + (to - from) / 2);
        let zoom = |factor| {
            self.remember();
            self.zoom(middle(), factor);
        };
        let pan = |by: i64| {
            self.remember();
            self.show(from + by, to + by);
        };
        match key {
            "t" => self.toggle_theme(),
            " " | "l" => self.toggle_frozen(),
            "?" => tools::list_keys(self),
            "m" => menu::by_key(self),
            "ArrowUp" => return roving::go(self, -1),
            "ArrowDown" => return roving::go(self, 1),
            "Escape" if tools::close_all() => {}
            "Escape" => self.go_live(),
            "/" => tools::focus_range(),
            "c" => self.change(|v| v.versus = if v.versus.is_some() { None } else { Some(0) }),
            "d" => changed::toggle(self),
            "r" => recording::save(self),
            "o" => recording::choose(self),
            "Backspace" => self.step_back(),
            "ArrowLeft" => crosshair::step(self, if far { -10 } else { -1 }),
            "ArrowRight" => crosshair::step(self, if far { 10 } else { 1 }),
            "Home" => crosshair::step(self, i64::MIN),
            "End" => crosshair::step(self, i64::MAX),
            "Enter" => crosshair::toggle_pin(self),
            "+" | "=" => zoom(0.5),
            "-" => zoom(2.0),
            "[" => pan((from - to) / 2),
            "]" => pan((to - from) / 2),
            _ => match key.parse::<usize>().ok().and_then(|n| self.windows().nth((n + 9) % 10)) {
                Some(window) => self.choose(window.ms),
                None => return false,
            },
        }
        true
    }
}
