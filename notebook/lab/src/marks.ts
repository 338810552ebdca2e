// Begin and end of each cell that this Lab runs, as its kernel says them: what IPython's own hooks tell where a notebook has
// loaded them, without anything to load. The server leaves out what a kernel tells by itself.

import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel, KernelMessage } from '@jupyterlab/services';
import { Marker, mark } from './server';

/** Cells that were sent to kernels and have not ended, and markers that wait to be sent, at most; the oldest go. */
const LIMIT = 256;
/** Markers of one request: the server takes 64 KiB. */
const AT_ONCE = 128;

/** Follows the kernels of all open notebooks. */
export class Marks {
  /** The cell of each request, by the number that Lab gave it. */
  private readonly asked = new Map<string, { cell: string; n?: number }>();
  private readonly waiting: Marker[] = [];
  private isSending = false;

  constructor(tracker: INotebookTracker) {
    tracker.widgetAdded.connect((_, panel) => this.watch(panel));
    tracker.forEach(panel => this.watch(panel));
  }

  private watch(panel: NotebookPanel): void {
    panel.sessionContext.kernelChanged.connect((_, { newValue }) => newValue?.anyMessage.connect(this.hear, this));
    panel.sessionContext.session?.kernel?.anyMessage.connect(this.hear, this);
  }

  private hear(kernel: Kernel.IKernelConnection, { msg, direction }: Kernel.IAnyMessageArgs): void {
    try {
      if (direction === 'send') {
        const cell = msg.header.msg_type === 'execute_request' ? msg.metadata.cellId : undefined;
        if (typeof cell === 'string') {
          keep(this.asked, msg.header.msg_id, { cell });
        }
        return;
      }
      const request = 'msg_id' in msg.parent_header ? msg.parent_header.msg_id : '';
      const asked = this.asked.get(request);
      if (asked === undefined) {
        return;
      }
      const common = { kind: 'cell', by: 'lab', kernel: kernel.id, cell: asked.cell, t: seconds(msg.header.date) };
      if (KernelMessage.isExecuteInputMsg(msg)) {
        // A cell that is scheduled has not begun: its kernel runs others first.
        asked.n = msg.content.execution_count ?? undefined;
        this.put({ ...common, id: `${request}-start`, phase: 'start', n: asked.n });
      } else if (KernelMessage.isExecuteReplyMsg(msg)) {
        this.asked.delete(request);
        // One that an error before it has put off never began.
        if (asked.n !== undefined) {
          const { status } = msg.content;
          const error = status === 'error' ? (msg.content as KernelMessage.IReplyErrorContent).ename : undefined;
          this.put({ ...common, id: `${request}-end`, phase: 'end', n: asked.n, ok: status === 'ok', error });
        }
      }
    } catch (error) {
      console.warn('watchglass:', error);
    }
  }

  private put(marker: Marker): void {
    this.waiting.push(marker);
    this.waiting.splice(0, this.waiting.length - LIMIT);
    if (!this.isSending) {
      this.isSending = true;
      void this.send().finally(() => (this.isSending = false));
    }
  }

  private async send(): Promise<void> {
    while (this.waiting.length > 0) {
      // What is refused or does not arrive is not sent again: the next cell has markers of its own.
      await mark(this.waiting.splice(0, AT_ONCE));
    }
  }
}

function keep<T>(all: Map<string, T>, key: string, value: T): void {
  all.set(key, value);
  if (all.size > LIMIT) {
    all.delete(all.keys().next().value as string);
  }
}

/** The kernel's own time of a message, Unix seconds. */
function seconds(date: string): number | undefined {
  const ms = Date.parse(date);
  return Number.isFinite(ms) ? ms / 1_000 : undefined;
}
