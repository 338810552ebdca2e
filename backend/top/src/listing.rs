//! Actions on the process table: selecting, folding, scrolling.

use crate::model::Model;
use std::collections::BTreeSet;

/// Moves the selection by this number of lines; without one, selects the first visible line.
pub fn step(model: &mut Model, by: isize) {
    let at = model.view.chosen.map_or(model.view.first, |(_, at)| at.saturating_add_signed(by));
    choose(model, at);
}

/// Selects the process of a line, at most the last one.
pub fn choose(model: &mut Model, at: usize) {
    let at = at.min(model.listed.len().saturating_sub(1));
    model.view.chosen = model.listed.get(at).map(|line| (line.process.pid, at));
}

/// Scrolls by this number of lines.
pub fn scroll(model: &mut Model, by: isize) {
    let first = model.view.first.saturating_add_signed(by);
    model.view.first = first.min(model.listed.len().saturating_sub(1));
}

/// Folds the selected process (true), unfolds it (false) or toggles it (none).
/// Folding a process without unfolded children selects its parent.
pub fn fold(model: &mut Model, wanted: Option<bool>) {
    let Some((pid, at)) = model.view.chosen else { return };
    let Some(line) = model.listed.get(at) else { return };
    match (line.open, wanted) {
        (Some(true), Some(true) | None) => drop(model.view.folded.insert(pid)),
        (Some(false), Some(false) | None) => drop(model.view.folded.remove(&pid)),
        (_, Some(true)) => {
            let depth = line.depth;
            let parent = model.listed[..at].iter().rposition(|line| line.depth < depth);
            choose(model, parent.unwrap_or(at));
        }
        _ if model.view.listing.tree.is_none() => model.view.note = "press E for the process tree".into(),
        _ => {}
    }
}

/// Folds every process that has children, or unfolds all.
pub fn fold_all(model: &mut Model) {
    let view = &mut model.view;
    let parents: BTreeSet<u32> = model.processes.rows.iter().map(|row| row.parent).collect();
    match view.folded.is_empty() {
        true => {
            view.folded = model.processes.rows.iter().map(|row| row.pid).filter(|pid| parents.contains(pid)).collect()
        }
        false => view.folded.clear(),
    }
    view.listing.tree.get_or_insert_default();
    let words = match (parents.is_empty(), view.folded.is_empty()) {
        (true, _) => "there are no processes to fold",
        (false, true) => "all processes are unfolded",
        (false, false) => "all processes are folded",
    };
    view.note = words.into();
}
