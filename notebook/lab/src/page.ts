// The page in a frame, and its messages to and from Lab.

import { Widget } from '@lumino/widgets';
import { Message } from '@lumino/messaging';
import { pageUrl } from './server';

/** Lab's state, which is sent to the page. */
export interface State {
  kernel?: string;
  path?: string;
  theme: 'dark' | 'light';
}

/** The page. Its frame is loaded when it is first shown, so that a closed sidebar needs no stream. */
export class Page extends Widget {
  private readonly frame = document.createElement('iframe');
  private readonly origin: string;
  private ready = false;

  constructor(
    private readonly compact: boolean,
    private readonly state: () => State,
    private readonly go: (cell: string) => void
  ) {
    super();
    this.addClass('wg-Page');
    this.frame.title = 'Watchglass';
    this.node.appendChild(this.frame);
    this.origin = new URL(pageUrl(), window.location.href).origin;
    window.addEventListener('message', this);
  }

  /** Called when Lab's state has changed. */
  tell(): void {
    if (this.ready) {
      this.frame.contentWindow?.postMessage({ watchglass: 1, ...this.state() }, this.origin);
    }
  }

  handleEvent(event: Event): void {
    const message = event as MessageEvent;
    const data: unknown = message.data;
    const isOurs = message.source === this.frame.contentWindow && message.origin === this.origin;
    if (!isOurs || typeof data !== 'object' || data === null) {
      return;
    }
    const said = data as Record<string, unknown>;
    if (said.watchglass !== 1) {
      return;
    }
    if (said.ready === true) {
      this.ready = true;
      this.tell();
    } else if (typeof said.go === 'string') {
      this.go(said.go);
    }
  }

  dispose(): void {
    window.removeEventListener('message', this);
    super.dispose();
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.fill();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      this.fill();
    }
  }

  private fill(): void {
    if (this.frame.hasAttribute('src')) {
      return;
    }
    const { kernel, theme } = this.state();
    const asked = new URLSearchParams({ theme: 'lab' });
    if (this.compact) {
      asked.set('view', 'compact');
    }
    if (kernel !== undefined) {
      asked.set('kernel', kernel);
    }
    this.frame.style.colorScheme = theme;
    this.frame.src = `${pageUrl()}?${asked.toString()}`;
  }
}
