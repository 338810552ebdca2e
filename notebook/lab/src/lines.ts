// A line below each cell with its resource usage.

import { Cell } from '@jupyterlab/cells';
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { cells } from './server';

export type Mode = 'off' | 'while hovering' | 'always';

/**
 * Milliseconds after the end of a cell at which its line is requested. Measurements arrive with the next samples, and
 * later on a busy machine.
 */
const TRIES = [300, 1_500, 4_000, 15_000];

/** Updates the lines of all open notebooks according to `mode`. */
export class Lines {
  private mode: Mode = 'while hovering';
  /** The next request for a notebook's lines: one per notebook, regardless of how many cells end meanwhile. */
  private readonly looks = new WeakMap<NotebookPanel, { timer: number; at: number }>();

  constructor(private readonly tracker: INotebookTracker) {
    tracker.widgetAdded.connect((_, panel) => this.watch(panel));
    tracker.forEach(panel => this.watch(panel));
    NotebookActions.executed.connect((_, { notebook, cell }) => {
      const panel = tracker.find(one => one.content === notebook);
      if (panel !== undefined) {
        // The current line is from the run before.
        write(cell, undefined, this.mode);
        this.look(panel, 0);
      }
    });
  }

  /** Sets the mode, also for existing lines. */
  set(mode: Mode): void {
    this.mode = mode;
    this.tracker.forEach(panel => void this.fill(panel));
  }

  /** Called when the server has stored ends of cells of these kernels, which may be long after they ended. */
  stored(kernels: Set<string>): void {
    this.tracker.forEach(panel => {
      const id = kernelOf(panel);
      if (id !== undefined && kernels.has(id)) {
        this.look(panel, 0);
      }
    });
  }

  private watch(panel: NotebookPanel): void {
    panel.sessionContext.kernelChanged.connect(() => void this.fill(panel));
    void panel.sessionContext.ready.then(() => this.fill(panel));
  }

  /** Requests lines at the attempt `at`, and at later ones. An earlier attempt that is already scheduled is enough. */
  private look(panel: NotebookPanel, at: number): void {
    const waits = this.looks.get(panel);
    if (at >= TRIES.length || (waits !== undefined && waits.at <= at)) {
      return;
    }
    window.clearTimeout(waits?.timer);
    const run = () => {
      this.looks.delete(panel);
      void this.fill(panel).then(() => this.look(panel, at + 1));
    };
    this.looks.set(panel, { timer: window.setTimeout(run, TRIES[at] - (TRIES[at - 1] ?? 0)), at });
  }

  private async fill(panel: NotebookPanel): Promise<void> {
    try {
      const id = panel.isDisposed ? undefined : kernelOf(panel);
      const runs = id === undefined || this.mode === 'off' ? [] : await cells(id);
      // When the server does not answer, the lines stay unchanged.
      if (panel.isDisposed || runs === null) {
        return;
      }
      const lines = new Map<string, string | undefined>();
      for (const run of runs) {
        // The newest run comes first. A running one has no line yet.
        if (run.cell !== undefined && !lines.has(run.cell)) {
          lines.set(run.cell, run.to === undefined ? undefined : [run.line, run.finding].filter(Boolean).join(' · '));
        }
      }
      panel.content.widgets.forEach(cell => write(cell, lines.get(cell.model.id), this.mode));
    } catch {
      // A notebook that is being closed has no lines.
    }
  }
}

/** The id of a notebook's kernel. */
export function kernelOf(panel: NotebookPanel | null | undefined): string | undefined {
  return panel?.sessionContext.session?.kernel?.id;
}

function write(cell: Cell, line: string | undefined, mode: Mode): void {
  const found = Array.from(cell.node.children).find(child => child.classList.contains('wg-Line'));
  if (line === undefined || mode === 'off') {
    found?.remove();
    return;
  }
  const node = found ?? cell.node.appendChild(document.createElement('div'));
  node.className = mode === 'always' ? 'wg-Line' : 'wg-Line wg-mod-hover';
  // Text, never markup: labels and errors come from programs.
  node.textContent = line;
}
