// The status bar's item: the kernel's memory with its limit, and its GPU memory.

import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { kernel, Kernel } from './server';

/** Poll interval in milliseconds, and that after a failed poll, because each failure is a line in Jupyter's log. */
const EVERY = 5_000;
const LATER = 60_000;

/** Bytes in GiB, or in MiB below 1 GiB. */
export function size(bytes: number): string {
  const gib = bytes / 2 ** 30;
  return gib >= 1 ? `${gib.toFixed(1)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}

/** The item's text; empty when the memory is unknown. */
export function words(now: Kernel | null | undefined): string {
  if (now?.memory === undefined) {
    return '';
  }
  const held = now.gpus.reduce((sum, one) => sum + one.memory, 0);
  const name = now.gpus.length === 1 ? `GPU ${now.gpus[0].gpu}` : `${now.gpus.length} GPUs`;
  return (
    `Kernel ${size(now.memory)}` +
    (now.limit === undefined ? '' : ` of ${size(now.limit)}`) +
    (now.gpus.length === 0 ? '' : ` · ${name} ${size(held)}`)
  );
}

/** Shows the memory of the kernel `current`. It polls only while a notebook has a kernel and Lab is visible. */
export class Status extends Widget {
  readonly changed = new Signal<this, void>(this);
  private readonly button = document.createElement('button');
  private timer = 0;
  private asked = 0;

  constructor(
    private readonly current: () => string | undefined,
    open: () => void
  ) {
    super();
    this.button.type = 'button';
    this.button.className = 'wg-Status';
    this.button.addEventListener('click', open);
    this.node.appendChild(this.button);
    document.addEventListener('visibilitychange', this);
    this.look();
  }

  /** Whether the item has a text. */
  get isActive(): boolean {
    return this.button.textContent !== '';
  }

  handleEvent(): void {
    this.look();
  }

  /** Polls at once, and then periodically. */
  look(): void {
    window.clearTimeout(this.timer);
    const id = this.current();
    // A pending answer is outdated.
    const asked = ++this.asked;
    if (this.isDisposed || document.hidden || id === undefined) {
      this.tell(null);
      return;
    }
    void kernel(id).then(now => {
      if (asked === this.asked && !this.isDisposed) {
        this.tell(now);
        this.timer = window.setTimeout(() => this.look(), now === null ? LATER : EVERY);
      }
    });
  }

  dispose(): void {
    window.clearTimeout(this.timer);
    document.removeEventListener('visibilitychange', this);
    super.dispose();
  }

  private tell(now: Kernel | null | undefined): void {
    this.button.textContent = words(now);
    this.button.title = now?.warning ?? 'Memory of this kernel and of what it started, on GPUs too. Opens Watchglass.';
    this.button.classList.toggle('wg-mod-warning', now?.warning !== undefined);
    this.changed.emit();
  }
}
