//! Isolated, hidden and highlighted series of a chart. The view keeps these choices, so that a link shows them too.

use crate::panels::board::Board;

/// A choice for one series. Choosing the same again undoes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Shows the series alone in its chart.
    Isolate,
    /// Hides the series in its chart.
    Hide,
    /// Highlights the series in all charts.
    Pin,
}

/// Applies a choice to the series at position `i` of a panel.
pub fn choose(board: Board, panel: &str, i: usize, choice: Choice) {
    let Some(name) = board.series_name(panel, i) else { return };
    let here = (panel.to_string(), name);
    board.page.step(|view| match choice {
        Choice::Isolate => {
            let alone = view.only.contains(&here);
            let others = |list: &mut Vec<(String, String)>| list.retain(|(chart, _)| *chart != here.0);
            others(&mut view.only);
            others(&mut view.off);
            if !alone {
                view.only.push(here);
            }
        }
        Choice::Hide => toggle(&mut view.off, here),
        Choice::Pin => toggle(&mut view.pin, here.1),
    });
}

fn toggle<T: PartialEq>(list: &mut Vec<T>, item: T) {
    match list.iter().position(|i| *i == item) {
        Some(i) => drop(list.remove(i)),
        None => list.push(item),
    }
}
