//! Which series of a chart a person isolates, hides or follows; kept in the view, so that a link shows the same.

use crate::panels::board::Board;

/// What is done with a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It stands alone in its chart; once more: all are back.
    Isolate,
    /// It is out of sight; once more: it is back.
    Hide,
    /// It is followed through all charts; once more: it is not.
    Pin,
}

/// Does it with the series at a position of a chart.
pub fn choose(board: Board, panel: &str, i: usize, choice: Choice) {
    let Some(name) = board.series_name(panel, i) else { return };
    let here = (panel.to_string(), name);
    board.page.change(|view| match choice {
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
