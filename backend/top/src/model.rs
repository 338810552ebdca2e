//! Data of a machine, and the view of a person on it.

use ratatui_core::layout::Rect;
use shared::processes::ProcessTable;
use shared::run::RunLine;
use shared::series::SeriesId;
use shared::unit::rough_duration;
use shared::window::{DEFAULT, WINDOWS};
use shared::wire::{IndexEntry, PageMessage, Received, ServerMessage, decode_server};
use std::collections::{BTreeMap, BTreeSet};
use viewer::names::{Name, names};
use viewer::spread::Spread;
use viewer::store::Store;
use viewer::store::plan::{self, Panel, Plan};
use viewer::store::processes::{self, Line, Listing};
use viewer::store::source::Source;
use viewer::store::trace::Trace;
use viewer::tile::Sparkline;

/// Interval between two requests for processes, in time of the source, ms.
const PROCESSES_MS: i64 = 2_000;
/// Interval between two requests for runs, in time of the source, ms.
const RUNS_MS: i64 = 5_000;
/// Minimum span, ms.
const MIN_SPAN_MS: i64 = 10_000;

/// Overlay on the picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// Nothing.
    #[default]
    Nothing,
    /// The list of keys, and the number of lines scrolled.
    Help(usize),
    /// The search text, and the selected line.
    Find(String, usize),
    /// The machines, and the selected line.
    Machines(usize),
}

/// View settings of a person.
#[derive(Clone, Debug)]
pub struct View {
    /// Length of the live span, ms.
    pub window: i64,
    /// The span at which time is frozen, ms since the epoch.
    pub frozen: Option<(i64, i64)>,
    /// The instant whose values are shown, ms since the epoch.
    pub crosshair: Option<i64>,
    /// The focused chart, by position.
    pub focus: usize,
    /// Whether the focused chart fills the whole body.
    pub zoomed: bool,
    /// Sort order and form of the process table.
    pub listing: Listing,
    /// Words that processes must match.
    pub words: String,
    /// Position of the first visible process.
    pub first: usize,
    /// PID and position of the selected process. When it has ended, the process at its position is selected.
    pub chosen: Option<(u32, usize)>,
    /// PIDs of the tree whose children are folded.
    pub folded: BTreeSet<u32>,
    /// Whether the process table fills the whole body.
    pub table: bool,
    /// Overlay on the picture.
    pub over: Over,
    /// A message for the person.
    pub note: String,
}

/// Areas of the parts as last drawn.
#[derive(Default)]
pub struct Places {
    /// Rows of devices.
    pub rows: Option<Rect>,
    /// Charts by position in the list of all.
    pub charts: Vec<(usize, Rect)>,
    /// Areas of the dots of these charts.
    pub plots: Vec<(usize, Rect)>,
    /// The process table, with its two header rows.
    pub processes: Option<Rect>,
}

/// Reduced series of one chart.
#[derive(Default)]
pub struct Reduced {
    /// The series.
    pub ids: Vec<SeriesId>,
    /// Their names and colors.
    pub names: Vec<Name>,
    /// Their columns.
    pub traces: BTreeMap<SeriesId, Trace>,
    /// Distribution over all series, if there are more than two.
    pub spread: Spread,
}

/// State of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Nothing was received yet.
    Waiting,
    /// Connected.
    Well,
    /// Disconnected and reconnecting, with the reason.
    Lost(String),
}

/// Model of the program.
pub struct Model {
    /// The data.
    pub store: Store,
    /// The requested machine, by name or key.
    pub source: Option<String>,
    /// View settings.
    pub view: View,
    /// Tiles, charts and absent families.
    pub plan: Plan,
    /// Reduced charts by ID.
    pub reduced: BTreeMap<String, Reduced>,
    /// Sparklines of the tiles by ID.
    pub sparklines: BTreeMap<String, Sparkline>,
    /// The newest process table.
    pub processes: ProcessTable,
    /// Its lines, in the selected order and form.
    pub listed: Vec<Line>,
    /// Runs of the machine that run or ended a moment ago, newest first; None before the first answer.
    pub runs: Option<Vec<RunLine>>,
    /// Areas of the parts.
    pub places: Places,
    /// State of the connection.
    pub delivery: Delivery,
    /// Description of the data source, shown beside.
    pub origin: String,
    /// A part of this program that failed; a sentence.
    pub failed: Option<String>,
    /// Number of messages dropped because the queue to the server was full.
    pub dropped: u64,
    /// Whether a process table was received, possibly an empty one.
    pub answered: bool,
    asked: Option<i64>,
    asked_runs: Option<i64>,
    /// Whether a requested span of history is still to come.
    awaited: bool,
    taken: u32,
}

impl Model {
    /// An empty model.
    pub fn new(source: Option<String>, origin: String) -> Self {
        let view = View {
            window: DEFAULT.ms,
            frozen: None,
            crosshair: None,
            focus: 0,
            zoomed: false,
            listing: Listing::default(),
            words: String::new(),
            first: 0,
            chosen: None,
            folded: BTreeSet::new(),
            table: false,
            over: Over::Nothing,
            note: String::new(),
        };
        Model {
            store: Store::default(),
            source,
            view,
            plan: Plan::default(),
            reduced: BTreeMap::new(),
            sparklines: BTreeMap::new(),
            processes: ProcessTable::default(),
            listed: Vec::new(),
            runs: None,
            places: Places::default(),
            delivery: Delivery::Waiting,
            origin,
            failed: None,
            dropped: 0,
            answered: false,
            asked: None,
            asked_runs: None,
            awaited: false,
            taken: 0,
        }
    }

    /// Index entry of the machine shown: the requested one, or the first.
    pub fn entry(&self) -> Option<&IndexEntry> {
        let called = |text: &str| self.store.index.iter().find(|entry| entry.name == text || entry.key == text);
        self.source.as_deref().and_then(called).or_else(|| self.store.index.first())
    }

    /// Data of the machine shown.
    pub fn shown(&self) -> Option<&Source> {
        self.store.sources.get(&self.entry()?.id)
    }

    /// Whether a recording is shown.
    pub fn is_recording(&self) -> bool {
        self.store.hello.as_ref().is_some_and(|hello| hello.recorded.is_some())
    }

    /// Time of the newest sample, ms since the epoch; 0 before the first one.
    pub fn newest(&self) -> i64 {
        self.shown().and_then(Source::last_t).unwrap_or(0)
    }

    /// The visible span, ms since the epoch.
    pub fn span(&self) -> (i64, i64) {
        let to = self.newest();
        self.view.frozen.unwrap_or((to - self.view.window, to))
    }

    /// First message of a connection.
    pub fn open(&mut self) -> PageMessage {
        (self.delivery, self.taken, self.awaited) = (Delivery::Well, 0, false);
        let (from, to) = self.span();
        PageMessage::Open {
            protocol: shared::wire::PROTOCOL,
            window: (to - from).max(self.view.window),
            resume: self.store.resume(),
            sources: vec![self.source.clone().unwrap_or_default()],
        }
    }

    /// Counts a message that was dropped. No answer will come, so its requests are repeated.
    pub fn unsent(&mut self) {
        self.dropped += 1;
        (self.awaited, self.asked, self.asked_runs) = (false, None, None);
    }

    /// Switches to another machine, which needs another connection.
    pub fn switch(&mut self, source: String) {
        let Model { view, .. } = Model::new(None, String::new());
        self.view = View { window: self.view.window, listing: self.view.listing.clone(), ..view };
        (self.source, self.processes, self.asked) = (Some(source), ProcessTable::default(), None);
        (self.store, self.plan) = (Store::default(), Plan::default());
        (self.runs, self.asked_runs) = (None, None);
        (self.reduced, self.sparklines, self.listed) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    }

    /// Processes a received message. Returns messages to send, and whether the picture changed.
    ///
    /// # Errors
    /// The connection cannot be used any more; a sentence.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(Vec<PageMessage>, bool), String> {
        let speaks = "the server has another version of Watchglass; install the same version on both sides";
        let mut answers = Vec::new();
        match decode_server(bytes).map_err(|_| speaks.to_string())? {
            Received::Control(ServerMessage::Processes(table)) => {
                (self.processes, self.answered) = (table, true);
                self.list();
            }
            Received::Control(ServerMessage::Runs(runs)) => self.runs = Some(runs),
            Received::Control(ServerMessage::Heartbeat { .. }) => {
                // Answers the heartbeat.
                answers.push(PageMessage::Ack { messages: self.taken });
                return Ok((answers, false));
            }
            Received::Control(ServerMessage::Goodbye { reason }) => return Err(reason),
            Received::Control(message) => {
                let sources = matches!(message, ServerMessage::Sources(_));
                let ended = matches!(message, ServerMessage::HistoryEnd { more: false, .. });
                self.awaited &= !ended;
                let changed = self.store.take(message);
                if sources && self.source.is_some() && self.store.index.iter().all(|entry| !self.is_asked(entry)) {
                    return Err(self.unknown());
                }
                if changed.plan {
                    self.plan = plan::plan(&self.store, self.shown(), plan::Choice::default());
                }
                if let (true, Some(recorded)) = (sources, self.store.hello.as_ref().and_then(|h| h.recorded.clone())) {
                    let from = recorded.from.max(recorded.to - self.view.window);
                    self.view.frozen.get_or_insert((from, recorded.to));
                }
                if !changed.plan && !changed.history && !ended {
                    return Ok((answers, changed.fleet));
                }
            }
            Received::Ticks(source, frames) => {
                self.taken += 1;
                answers.push(PageMessage::Ack { messages: self.taken });
                self.store.ticks(source, &frames).map_err(|error| format!("a part of the stream was lost: {error}"))?;
            }
            Received::Overview(..) => return Ok((answers, false)),
        }
        answers.extend(self.questions());
        Ok((answers, true))
    }

    fn is_asked(&self, entry: &IndexEntry) -> bool {
        self.source.as_ref().is_some_and(|text| entry.name == *text || entry.key == *text)
    }

    fn unknown(&self) -> String {
        let some: Vec<&str> = self.store.index.iter().take(8).map(|entry| entry.name.as_str()).collect();
        let more = if self.store.index.len() > 8 { ", …" } else { "" };
        let name = self.source.as_deref().unwrap_or_default();
        format!("there is no machine {name:?}; --source takes one of {}{more}", some.join(", "))
    }

    /// Requests for data that the view needs and the store lacks.
    pub fn questions(&mut self) -> Vec<PageMessage> {
        let (span, newest) = (self.span(), self.newest());
        let mut all = Vec::new();
        let Some(id) = self.entry().map(|entry| entry.id) else { return all };
        let Some(source) = self.store.sources.get_mut(&id) else { return all };
        if source.last_seq().is_none() {
            return all;
        }
        let history = if self.awaited { None } else { source.ask(&[span]).or_else(|| source.hand_back()) };
        if let Some((from, to)) = history {
            self.awaited = true;
            all.push(PageMessage::History { source: id, from, to });
        }
        let at = self.view.frozen.map(|(_, to)| self.view.crosshair.unwrap_or(to));
        let due = match (at, self.asked) {
            (_, None) => true,
            (Some(at), Some(asked)) => at != asked,
            (None, Some(asked)) => !(asked..asked + PROCESSES_MS).contains(&newest),
        };
        if due {
            self.asked = Some(at.unwrap_or(newest));
            all.push(PageMessage::Processes { at });
        }
        // Runs have no history, so a recording has none.
        let told = self.asked_runs.is_some_and(|asked| (asked..asked + RUNS_MS).contains(&newest));
        if !told && !self.is_recording() {
            self.asked_runs = Some(newest);
            all.push(PageMessage::Runs);
        }
        all
    }

    /// Updates the columns of a chart, for a width of `dots`.
    pub fn reduce(&mut self, id: &str, dots: i64) {
        let (from, to) = self.span();
        let Some(entry) = self.entry().map(|entry| entry.id) else { return };
        let Some(source) = self.store.sources.get(&entry) else { return };
        let ids = source.charts.get(id).map_or(&[][..], |members| &members.lines[..]);
        let reduced = self.reduced.entry(id.to_string()).or_default();
        if reduced.ids != ids {
            *reduced = Reduced { ids: ids.to_vec(), ..Reduced::default() };
            reduced.names = names(&self.store.catalog, &source.defs, ids);
        }
        let step = step(to - from, dots, source.info.interval);
        for id in ids {
            let fits = |t: &Trace| t.is_of(step, false) && t.fits(from, source);
            if !reduced.traces.get(id).is_some_and(fits) {
                reduced.spread = Spread::default();
                reduced.traces.insert(*id, Trace::new(*id, step, from, source, &self.store.catalog));
            }
            if let Some(trace) = reduced.traces.get_mut(id) {
                trace.feed(source, from, to);
            }
        }
        if ids.len() > 2 {
            let columns: Vec<_> = ids.iter().filter_map(|id| Some(reduced.traces.get(id)?.columns())).collect();
            let slots = from.div_euclid(step)..to.div_euclid(step) + 1;
            reduced.spread.show(&columns, slots);
        }
    }

    /// Updates the lines of the process table. A tree is unfolded except for the folded PIDs.
    pub fn list(&mut self) {
        let (view, rows) = (&mut self.view, &self.processes.rows);
        let mut listing = view.listing.clone();
        if let Some(open) = &mut listing.tree {
            view.folded.retain(|pid| rows.iter().any(|row| row.pid == *pid));
            *open = rows.iter().map(|row| row.pid).filter(|pid| !view.folded.contains(pid)).collect();
        }
        self.listed = processes::lines(rows, &listing, &view.words);
        if let Some((pid, at)) = view.chosen {
            let found = self.listed.iter().position(|line| line.process.pid == pid);
            let at = found.unwrap_or(at.min(self.listed.len().saturating_sub(1)));
            view.chosen = self.listed.get(at).map(|line| (line.process.pid, at));
        }
    }

    /// All charts in order: the top ones, then those of the families.
    pub fn panels(&self) -> Vec<Panel> {
        let below = self.plan.sections.iter().flat_map(|section| &section.panels);
        self.plan.top.iter().chain(below).cloned().collect()
    }

    /// Selects the window at a position of the list.
    pub fn choose(&mut self, place: usize) {
        let kept = self.store.hello.as_ref().map_or(i64::MAX, |hello| hello.retention);
        match WINDOWS.get(place) {
            Some(window) => {
                self.view.window = window.ms;
                let newest = self.newest();
                self.view.frozen = self.view.frozen.map(|(_, to)| (to - window.ms, to)).filter(|_| self.is_recording());
                self.view.crosshair = None;
                if kept < window.ms && newest > 0 {
                    self.view.note = format!("history is kept for {}", rough_duration(kept));
                }
            }
            None => self.view.note = "windows of days are available in the page".into(),
        }
    }

    /// Returns to the end of a recording.
    pub fn choose_end(&mut self) {
        let to = self.store.hello.as_ref().and_then(|hello| hello.recorded.as_ref()).map_or(0, |recorded| recorded.to);
        (self.view.frozen, self.view.crosshair) = (Some((to - self.view.window, to)), None);
    }

    /// Moves or scales the span, and freezes time.
    pub fn look_at(&mut self, (from, to): (i64, i64)) {
        let length = (to - from).clamp(MIN_SPAN_MS, shared::window::MAX_SAMPLES_SPAN_MS);
        let to = to.min(self.newest().max(from + MIN_SPAN_MS));
        self.view.frozen = Some((to - length, to));
        self.view.crosshair = self.view.crosshair.map(|at| at.clamp(to - length, to));
    }
}

/// Width of a column in ms for this number of dots; 1 (no reduction) if each dot has at most one sample.
fn step(span: i64, dots: i64, interval: i64) -> i64 {
    let (dots, interval) = (dots.max(1), interval.max(1));
    let samples = (span + dots * interval - 1) / (dots * interval);
    match samples {
        _ if span / interval <= dots => 1,
        ..4 => samples.max(1) * interval,
        _ => interval * (samples as u64 * 3 / 4).next_power_of_two().max(4) as i64,
    }
}
