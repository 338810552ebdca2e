//! Actions of keys: the shortcuts of the page, and additional ones of the terminal.

use crate::listing;
use crate::model::{Model, Over};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use shared::unit::rough_duration;
use shared::window::WINDOWS;
use viewer::shortcuts::{self, Action};
use viewer::store::processes::Column;

/// Effect of a key outside of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A redraw only.
    Draw,
    /// The program ends.
    Quit,
    /// The program is to be suspended.
    Suspend,
    /// A reconnect to another machine.
    Reopen,
    /// A change of the theme.
    Theme,
    /// The mouse is captured or released.
    Mouse,
    /// No redraw.
    Nothing,
}

/// Keys that the page does not have, with descriptions.
pub const OWN: &[(&str, &str)] = &[
    ("Q Ctrl-C", "end"),
    ("Ctrl-Z", "suspend; fg resumes"),
    ("Z", "enlarge one chart"),
    ("P", "enlarge the process table"),
    ("S Shift-S", "sort processes by the next column; reverse the order"),
    ("J K", "next, previous process; then also ↓ ↑, Esc deselects"),
    ("E", "process tree"),
    ("← → Enter", "fold or unfold the selected process"),
    ("Shift-F", "fold or unfold all processes"),
    ("U", "processes of one user, then of all"),
    ("M", "enable or disable the mouse"),
    ("PgUp PgDn", "scroll the processes"),
];

/// Sort columns of the processes, in the order in which the key changes them.
const COLUMNS: [Column; 10] = [
    Column::Cpu,
    Column::Memory,
    Column::Gpu,
    Column::GpuIndex,
    Column::Disk,
    Column::Threads,
    Column::Age,
    Column::State,
    Column::Pid,
    Column::Name,
];

/// Handles a key.
pub fn press(model: &mut Model, key: KeyEvent) -> Effect {
    let effect = pressed(model, key);
    model.list();
    effect
}

fn pressed(model: &mut Model, key: KeyEvent) -> Effect {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    model.view.note.clear();
    match (key.code, control) {
        (KeyCode::Char('c'), true) => return Effect::Quit,
        (KeyCode::Char('z'), true) => return Effect::Suspend,
        (KeyCode::Char('k'), true) => return act(model, Action::Find, 1),
        (_, true) => return Effect::Draw,
        _ => {}
    }
    match model.view.over.clone() {
        Over::Nothing => {}
        Over::Help(passed) => {
            // Drawing limits it to the number of lines, because only then the room is known.
            let passed = match key.code {
                KeyCode::Down | KeyCode::Char('j') => Some(passed + 1),
                KeyCode::PageDown => Some(passed + 10),
                KeyCode::Up | KeyCode::Char('k') => Some(passed.saturating_sub(1)),
                KeyCode::PageUp => Some(passed.saturating_sub(10)),
                _ => None,
            };
            model.view.over = passed.map_or(Over::Nothing, Over::Help);
            if passed.is_some() {
                return Effect::Draw;
            }
            return if key.code == KeyCode::Char('q') { Effect::Quit } else { Effect::Draw };
        }
        Over::Find(text, at) => return find(model, key.code, text, at),
        Over::Machines(at) => return machines(model, key.code, at),
    }
    if process(model, key.code) {
        return Effect::Draw;
    }
    if let Some(effect) = own(model, key.code) {
        return effect;
    }
    let name = match key.code {
        KeyCode::Char(c) => c.to_lowercase().to_string(),
        KeyCode::Up => "ArrowUp".into(),
        KeyCode::Down => "ArrowDown".into(),
        KeyCode::Left => "ArrowLeft".into(),
        KeyCode::Right => "ArrowRight".into(),
        KeyCode::Home => "Home".into(),
        KeyCode::End => "End".into(),
        KeyCode::Enter => "Enter".into(),
        KeyCode::Esc => "Escape".into(),
        KeyCode::Tab => return chart(model, 1),
        KeyCode::BackTab => return chart(model, -1),
        _ => return Effect::Draw,
    };
    let times = if key.modifiers.contains(KeyModifiers::SHIFT) { 10 } else { 1 };
    // A recording has no clock of its own here, so its keys are those of any span.
    shortcuts::action(&name, false).map_or(Effect::Draw, |action| act(model, action, times))
}

/// Handles a key while a process is selected. Returns whether the key has a meaning then.
fn process(model: &mut Model, code: KeyCode) -> bool {
    if model.view.chosen.is_none() {
        return false;
    }
    match code {
        KeyCode::Down | KeyCode::Char('j') => listing::step(model, 1),
        KeyCode::Up | KeyCode::Char('k') => listing::step(model, -1),
        KeyCode::PageDown => listing::step(model, 10),
        KeyCode::PageUp => listing::step(model, -10),
        KeyCode::Home => listing::choose(model, 0),
        KeyCode::End => listing::choose(model, usize::MAX),
        KeyCode::Left => listing::fold(model, Some(true)),
        KeyCode::Right => listing::fold(model, Some(false)),
        KeyCode::Enter => listing::fold(model, None),
        KeyCode::Esc => model.view.chosen = None,
        _ => return false,
    }
    true
}

/// Moves the focus by this number of charts.
pub fn chart(model: &mut Model, by: i32) -> Effect {
    act(model, Action::Chart(by), 1)
}

fn own(model: &mut Model, code: KeyCode) -> Option<Effect> {
    let view = &mut model.view;
    let by = COLUMNS.iter().position(|column| *column == view.listing.by).unwrap_or(0);
    match code {
        KeyCode::Char('q' | 'Q') => return Some(Effect::Quit),
        KeyCode::Char('z') => view.zoomed = !view.zoomed,
        KeyCode::Char('p') => (view.table, view.first) = (!view.table, 0),
        KeyCode::Char('m') => return Some(Effect::Mouse),
        KeyCode::Char('s') => {
            view.listing.by = COLUMNS[(by + 1) % COLUMNS.len()];
            view.listing.ascending = matches!(view.listing.by, Column::Pid | Column::Name);
        }
        KeyCode::Char('S') => view.listing.ascending = !view.listing.ascending,
        KeyCode::Char('e') => {
            view.listing.tree = if view.listing.tree.is_some() { None } else { Some(Vec::new()) };
            let is_tree = view.listing.tree.is_some();
            model.list();
            // Folding needs a selected process, so the first key selects one.
            match (is_tree, model.view.chosen) {
                (true, None) => listing::step(model, 0),
                (true, Some(_)) => {}
                (false, _) => model.view.chosen = None,
            }
        }
        KeyCode::Char('F') => listing::fold_all(model),
        KeyCode::Char('j' | 'k') => listing::step(model, 0),
        KeyCode::Char('u') => {
            let mut users: Vec<&str> = model.processes.rows.iter().map(|row| row.user.as_str()).collect();
            users.sort_unstable();
            users.dedup();
            let at = users.iter().position(|user| *user == view.listing.user).map_or(0, |at| at + 1);
            view.listing.user = users.get(at).map_or(String::new(), |user| user.to_string());
        }
        KeyCode::PageDown => listing::scroll(model, 10),
        KeyCode::PageUp => listing::scroll(model, -10),
        _ => return None,
    }
    Some(Effect::Draw)
}

fn act(model: &mut Model, action: Action, times: i64) -> Effect {
    let ((from, to), panels) = (model.span(), model.panels().len().max(1));
    let interval = model.shown().map_or(1_000, |source| source.info.interval);
    let recording = model.is_recording();
    let view = &mut model.view;
    match action {
        // Before the first sample there is no time to freeze.
        Action::Read(_) | Action::Closer | Action::Wider | Action::Pan(_) | Action::Freeze if to == 0 => {
            view.note = "there are no samples yet".into();
        }
        Action::Chart(by) => view.focus = (view.focus as i32 + by).rem_euclid(panels as i32) as usize,
        Action::Read(i64::MIN) => view.crosshair = Some(from),
        Action::Read(i64::MAX) => view.crosshair = Some(to),
        Action::Read(by) => {
            let at = view.crosshair.unwrap_or(to) + by * times * interval;
            view.frozen.get_or_insert((from, to));
            view.crosshair = Some(at.clamp(from, to));
        }
        Action::Pin => view.zoomed = !view.zoomed,
        Action::Window(place) => model.choose(place),
        Action::Find => view.over = Over::Find(String::new(), 0),
        Action::Go => view.over = Over::Machines(0),
        Action::Keys => view.over = Over::Help(0),
        Action::Closer | Action::Wider => {
            let length = if action == Action::Closer { (to - from) / 2 } else { (to - from) * 2 };
            let middle = view.crosshair.unwrap_or(to);
            let right = (length as f64 * ((to - middle) as f64 / (to - from).max(1) as f64)) as i64;
            model.look_at((middle + right - length, middle + right));
        }
        Action::Pan(by) => model.look_at((from + by * (to - from) / 2, to + by * (to - from) / 2)),
        Action::Freeze if view.frozen.is_some() && recording => model.choose_end(),
        Action::Freeze => {
            let view = &mut model.view;
            view.frozen = if view.frozen.is_some() { None } else { Some((from, to)) };
            view.crosshair = None;
        }
        Action::Leave if view.zoomed || view.table => (view.zoomed, view.table) = (false, false),
        Action::Leave if !view.words.is_empty() => view.words.clear(),
        Action::Leave if recording => model.choose_end(),
        Action::Leave => (view.frozen, view.crosshair) = (None, None),
        Action::Theme => return Effect::Theme,
        Action::Findings => view.note = "findings are in the page, and in watchglass findings".into(),
        Action::About => {
            let panel = model.panels().get(model.view.focus).map(|panel| panel.id.clone()).unwrap_or_default();
            let metric =
                model.store.catalog.metrics.iter().find(|metric| panel.trim_end_matches(".heat") == metric.chart);
            model.view.note = metric.map_or(String::new(), |metric| metric.help.clone());
        }
        _ => view.note = "this is available in the page; open it in a browser".into(),
    }
    Effect::Draw
}

/// Search results: charts by position, and words for processes.
pub fn found(model: &Model, text: &str) -> Vec<(SearchHit, String)> {
    let words = text.to_lowercase();
    let fits = |title: &str| words.split_whitespace().all(|word| title.to_lowercase().contains(word));
    let mut all: Vec<(SearchHit, String)> = Vec::new();
    if !text.trim().is_empty() {
        all.push((SearchHit::Processes, format!("processes with “{}”", text.trim())));
    }
    for (place, window) in WINDOWS.iter().enumerate().filter(|(_, window)| !words.is_empty() && window.name == words) {
        all.push((SearchHit::Window(place), format!("the last {}", rough_duration(window.ms))));
    }
    let charts = model.panels().into_iter().enumerate().filter(|(_, panel)| fits(&panel.title));
    all.extend(charts.map(|(at, panel)| (SearchHit::Chart(at), panel.title)));
    all
}

/// A search result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchHit {
    /// Processes that match the words.
    Processes,
    /// A window, by position.
    Window(usize),
    /// A chart, by position.
    Chart(usize),
}

fn find(model: &mut Model, code: KeyCode, mut text: String, at: usize) -> Effect {
    let all = found(model, &text);
    let mut next = at;
    match code {
        KeyCode::Esc => {
            model.view.over = Over::Nothing;
            return Effect::Draw;
        }
        KeyCode::Enter => {
            model.view.over = Over::Nothing;
            match all.get(at).map(|(found, _)| *found) {
                Some(SearchHit::Processes) => (model.view.words, model.view.first) = (text.trim().into(), 0),
                Some(SearchHit::Window(place)) => model.choose(place),
                Some(SearchHit::Chart(place)) => (model.view.focus, model.view.table) = (place, false),
                None => {}
            }
            return Effect::Draw;
        }
        KeyCode::Down | KeyCode::Tab => next = (at + 1).min(all.len().saturating_sub(1)),
        KeyCode::Up => next = at.saturating_sub(1),
        KeyCode::Backspace => (next, _) = (0, text.pop()),
        KeyCode::Char(c) if text.chars().count() < 64 && !c.is_control() => {
            text.push(c);
            next = 0;
        }
        _ => {}
    }
    model.view.over = Over::Find(text, next);
    Effect::Draw
}

fn machines(model: &mut Model, code: KeyCode, at: usize) -> Effect {
    let last = model.store.index.len().saturating_sub(1);
    let next = match code {
        KeyCode::Down | KeyCode::Char('j') => (at + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::PageDown => (at + 10).min(last),
        KeyCode::PageUp => at.saturating_sub(10),
        KeyCode::Home => 0,
        KeyCode::End => last,
        KeyCode::Enter => {
            model.view.over = Over::Nothing;
            let Some(key) = model.store.index.get(at).map(|entry| entry.key.clone()) else { return Effect::Draw };
            model.switch(key);
            return Effect::Reopen;
        }
        _ => {
            model.view.over = Over::Nothing;
            return Effect::Draw;
        }
    };
    model.view.over = Over::Machines(next);
    Effect::Draw
}
