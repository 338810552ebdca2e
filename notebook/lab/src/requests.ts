// The requests that run cells, and the markers that are made of what kernels answer to them.

import type { Marker } from './server';

/** Requests that have not ended, at most; the oldest go. */
const MAX_REQUESTS = 1_024;
/** Bytes of an error's name that the server takes. */
const MAX_ERROR_BYTES = 64;

/** A message of a kernel, as far as it tells of a cell. */
export interface Message {
  kernel: string;
  /** The message that it answers. */
  request: string;
  /** The kernel's own time, RFC 3339. */
  date: string;
}

interface Begun {
  t?: number;
  n?: number;
}

interface Request {
  cell: string;
  begun?: Begun;
  /** The marker of the end, where the reply came before the begin. */
  end?: Marker;
}

/**
 * Pairs what a kernel says of one request. Begin and end come by two channels, iopub and shell, and nothing says which of them
 * is first: of a short cell it is often the end. Markers come out in the order that the server pairs them by.
 */
export class Requests {
  private readonly all = new Map<string, Request>();

  /** A request that runs a cell was sent. */
  sent(request: string, cell: string): void {
    this.all.set(request, { cell });
    if (this.all.size > MAX_REQUESTS) {
      this.all.delete(this.all.keys().next().value as string);
    }
  }

  /** Its kernel has begun with it (`execute_input`), as the `n`th one. */
  begun(message: Message, n: number | null | undefined): Marker[] {
    const request = this.all.get(message.request);
    if (request === undefined || request.begun !== undefined) {
      return [];
    }
    request.begun = { t: seconds(message.date), n: n ?? undefined };
    const start = marker(message, request, 'start');
    if (request.end === undefined) {
      return [start];
    }
    this.all.delete(message.request);
    return [start, { ...request.end, n: request.begun.n }];
  }

  /** Its kernel has answered it (`execute_reply`). */
  ended(message: Message, status: string, ename?: string): Marker[] {
    const request = this.all.get(message.request);
    if (request === undefined || request.end !== undefined) {
      return [];
    }
    if (status === 'aborted') {
      // An error before it has put it off: it never began.
      this.all.delete(message.request);
      return [];
    }
    const error = status === 'error' && ename ? clip(ename, MAX_ERROR_BYTES) : undefined;
    const end = { ...marker(message, request, 'end'), t: seconds(message.date), ok: status === 'ok', error };
    if (request.begun === undefined) {
      request.end = end;
      return [];
    }
    this.all.delete(message.request);
    return [end];
  }
}

function marker({ kernel, request: id }: Message, { cell, begun }: Request, phase: 'start' | 'end'): Marker {
  return { kind: 'cell', by: 'lab', kernel, id: `${id}-${phase}`, phase, cell, t: begun?.t, n: begun?.n };
}

function seconds(date: string): number | undefined {
  const ms = Date.parse(date);
  return Number.isFinite(ms) ? ms / 1_000 : undefined;
}

/** The text in at most so many bytes of UTF-8, without a letter that is cut. */
function clip(text: string, most: number): string {
  const encoder = new TextEncoder();
  let [clipped, bytes] = ['', 0];
  for (const letter of text) {
    bytes += encoder.encode(letter).length;
    if (bytes > most) {
      break;
    }
    clipped += letter;
  }
  return clipped;
}
