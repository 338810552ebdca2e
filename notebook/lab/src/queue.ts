// A queue to a server that may be away for a while.

/** Maximum number of queued entries. Beyond it the oldest are dropped and counted. */
export const MAX_WAITING = 1_024;
/** Maximum number of entries of one request. */
export const MAX_AT_ONCE = 128;
/** Pauses before the retries of a request, milliseconds: five minutes in all. After the last one it is dropped. */
export const PAUSES_MS = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000];

/** Result of a request. */
export type Outcome =
  /** All of it is stored. A repeated request is stored once. */
  | 'taken'
  /** The server is unreachable or overloaded. The same request may succeed later. */
  | 'later'
  /** At least one entry is invalid, so none is stored. */
  | 'invalid'
  /** The server rejects all of them, now and later. */
  | 'refused';

/** Sends entries in their order, one request at a time. `put` never waits and never throws. */
export class Queue<T> {
  private readonly waiting: T[] = [];
  private isSending = false;
  private lost = 0;

  /**
   * `taken` gets the stored entries. `dropped` gets the number of lost entries since the start, each time it grows.
   */
  constructor(
    private readonly send: (entries: T[]) => Promise<Outcome>,
    private readonly pause: (ms: number) => Promise<void>,
    private readonly taken: (entries: T[]) => void,
    private readonly dropped: (all: number) => void
  ) {}

  put(entry: T): void {
    this.waiting.push(entry);
    if (this.waiting.length > MAX_WAITING) {
      this.waiting.shift();
      this.lose(1);
    }
    if (!this.isSending) {
      this.isSending = true;
      void this.run();
    }
  }

  private async run(): Promise<void> {
    while (this.waiting.length > 0) {
      await this.deliver(this.waiting.splice(0, MAX_AT_ONCE));
    }
    // No await since the check of the list: an entry that is put from here on starts a new run.
    this.isSending = false;
  }

  private async deliver(entries: T[]): Promise<void> {
    let outcome = await this.outcome(entries);
    for (const ms of PAUSES_MS) {
      if (outcome !== 'later') {
        break;
      }
      await this.pause(ms);
      outcome = await this.outcome(entries);
    }
    if (outcome === 'taken') {
      this.taken(entries);
    } else if (outcome === 'invalid' && entries.length > 1) {
      // An invalid entry must not affect the others.
      const half = entries.length >> 1;
      await this.deliver(entries.slice(0, half));
      await this.deliver(entries.slice(half));
    } else {
      this.lose(entries.length);
    }
  }

  private async outcome(entries: T[]): Promise<Outcome> {
    try {
      return await this.send(entries);
    } catch {
      return 'later';
    }
  }

  private lose(count: number): void {
    this.lost += count;
    this.dropped(this.lost);
  }
}
