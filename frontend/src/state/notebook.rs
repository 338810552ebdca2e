//! State of the notebook beside the page: its kernel, and the runs of its cells.

use super::Page;
use crate::card;
use charts::marks::CellMark;
use leptos::prelude::*;
use shared::catalog::kernel;
use std::rc::Rc;

/// A kernel as the server reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelState {
    /// Its id.
    pub id: String,
    /// The name of its notebook; empty where it is not known.
    pub name: String,
    /// Number of its process.
    pub pid: f64,
    /// Cause of its end; empty while it runs.
    pub how: String,
    /// When it ended, ms since the epoch.
    pub ended: Option<i64>,
    /// The warning; empty without one.
    pub warning: String,
    /// The cell that it runs, as `[7]`; empty for none.
    pub busy: String,
}

/// A run of a cell as the server reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellRun {
    /// The cell's id in the notebook; empty where it is not known.
    pub cell: String,
    /// As `[7]`.
    pub name: String,
    /// When it began, ms since the epoch.
    pub from: i64,
    /// When it ended; None while it runs.
    pub to: Option<i64>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Name of the error that ended it; empty for one without a name.
    pub error: Option<String>,
    /// A line of it, where its user wants it kept.
    pub label: String,
    /// Summary of it, in one line.
    pub line: String,
    /// The bottleneck; empty where it is not known.
    pub finding: String,
    /// Growth of the kernel's memory over the run, in bytes.
    pub kept: Option<f64>,
    /// Peak memory of the kernel, in bytes.
    pub peak: Option<f64>,
    /// Idle time of its GPUs, in seconds.
    pub idle: Option<f64>,
}

/// The notebook beside the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notebook {
    /// Its kernel.
    pub kernel: Option<KernelState>,
    /// Runs of its cells, the newest first.
    pub cells: Vec<CellRun>,
    /// Begin of the chosen run, ms since the epoch.
    pub chosen: Option<i64>,
    /// Name of the notebook from the surrounding page: a kernel knows only the name at its start. Empty without one.
    pub name: String,
}

/// The last part of a path.
pub fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or_default().to_string()
}

/// An instant after all others that are drawn, ms since the epoch.
const FAR_FUTURE: i64 = i64::MAX / 4;

impl Notebook {
    /// The marks in the charts, in order of time.
    fn marks(&self) -> Rc<[CellMark]> {
        let mark = |run: &CellRun| CellMark {
            from: run.from,
            to: run.to.unwrap_or(FAR_FUTURE),
            name: run.name.clone(),
            failed: run.error.is_some(),
            strong: run.to.is_none() || self.chosen == Some(run.from),
            fault: false,
        };
        self.cells.iter().rev().map(mark).collect()
    }
}

/// Charts of a kernel, the most useful first. The side of a notebook shows only the first two.
fn charts_of_kernels() -> [&'static str; 3] {
    [kernel::MEMORY.chart, kernel::GPU_MEMORY.chart, kernel::CPU.chart]
}
/// Number of charts at the side of a notebook.
const SIDE_CHARTS: usize = 2;

impl Page {
    /// Stores the server's response about the notebook.
    pub fn set_notebook(self, kernel: Option<KernelState>, cells: Vec<CellRun>) {
        let (chosen, name) = self.notebook.with_untracked(|now| (now.chosen, now.name.clone()));
        let new = Notebook { kernel, cells, chosen, name };
        if self.notebook.with_untracked(|now| *now != new) {
            self.marks.set_value(new.marks());
            self.notebook.set(new);
            self.redraw();
        }
    }

    /// The name of the notebook is this now.
    pub fn name_notebook(self, path: &str) {
        let name = file_name(path);
        if self.notebook.with_untracked(|now| now.name != name) {
            self.notebook.update(|now| now.name = name);
        }
    }

    /// Marks a run in all charts, and shows the time around it.
    pub fn choose_cell(self, run: &CellRun) {
        self.notebook.update(|notebook| notebook.chosen = Some(run.from));
        self.marks.set_value(self.notebook.with_untracked(Notebook::marks));
        let to = run.to.unwrap_or_else(|| self.newest());
        let around = (to - run.from).max(2_000) / 4;
        self.begin_step();
        self.show(run.from - around, to + around);
    }

    /// Shows the charts of a kernel first, or of none.
    pub fn show_kernel(self, id: Option<String>) {
        if self.view.with_untracked(|view| view.kernel != id) {
            self.notebook.set(Notebook::default());
            self.marks.set_value(Rc::default());
            self.change(|view| view.kernel = id);
            self.replace_plan();
        }
    }

    /// True when the shown machine has a kernel with samples in the page.
    pub fn has_kernels(self) -> bool {
        let store = self.store.read_value();
        let row = store.catalog.position(kernel::MEMORY.tag);
        let source = self.view.with_untracked(|view| store.source(view.source.as_deref()));
        source.is_some_and(|source| source.defs.iter().any(|def| Some(def.metric) == row))
    }

    /// Ids of the charts that come first.
    pub(super) fn front(self) -> Vec<String> {
        self.view.with_untracked(|view| {
            let own = charts_of_kernels().into_iter().filter(|_| view.kernel.is_some());
            let own = own.map(str::to_string).filter(|id| !view.front.contains(id));
            let cards = card::cards(&view.cards).into_iter().map(|card| card.id());
            let cards = cards.filter(|id| !view.front.contains(id));
            own.chain(view.front.iter().cloned()).chain(cards).collect()
        })
    }

    /// Ids of the only charts of a page at the side of a notebook that shows its kernel; None for other pages.
    pub(super) fn side(self) -> Option<Vec<String>> {
        let is_side = self.view.with_untracked(|view| view.compact && view.kernel.is_some());
        is_side.then(|| charts_of_kernels().into_iter().take(SIDE_CHARTS).map(str::to_string).collect())
    }
}
