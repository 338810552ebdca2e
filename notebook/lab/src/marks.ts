// Start and end of each cell that this Lab runs, from its kernel's messages. They are the same as those of our IPython
// hooks, but need no extension in the notebook. The server drops them for a kernel that reports them itself.

import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel, KernelMessage } from '@jupyterlab/services';
import { Queue } from './queue';
import { Requests } from './requests';
import { Marker, mark } from './server';

/** Follows the kernels of all open notebooks. */
export class Marks {
  private readonly requests = new Requests();
  private readonly queue: Queue<Marker>;

  /** `stored` is called with the kernels whose ends of cells the server has stored. */
  constructor(tracker: INotebookTracker, stored: (kernels: Set<string>) => void) {
    this.queue = new Queue<Marker>(
      mark,
      ms => new Promise(done => window.setTimeout(done, ms)),
      markers => stored(new Set(markers.filter(({ phase }) => phase === 'end').map(({ kernel }) => kernel))),
      all => console.warn(`watchglass: ${all} begins and ends of cells were not stored: the server rejected them`)
    );
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
          this.requests.sent(msg.header.msg_id, cell);
        }
        return;
      }
      const request = 'msg_id' in msg.parent_header ? msg.parent_header.msg_id : '';
      const message = { kernel: kernel.id, request, date: msg.header.date };
      let markers: Marker[] = [];
      if (KernelMessage.isExecuteInputMsg(msg)) {
        // A scheduled cell has not begun: its kernel runs others first.
        markers = this.requests.begun(message, msg.content.execution_count);
      } else if (KernelMessage.isExecuteReplyMsg(msg)) {
        const { status } = msg.content;
        const ename = status === 'error' ? (msg.content as KernelMessage.IReplyErrorContent).ename : undefined;
        markers = this.requests.ended(message, status, ename);
      }
      markers.forEach(marker => this.queue.put(marker));
    } catch (error) {
      console.warn('watchglass:', error);
    }
  }
}
