// The requests that run cells, and the markers that are made from the kernels' answers.

import type { Marker } from './server';

/** Maximum number of open requests. Beyond it the oldest are dropped. */
const MAX_REQUESTS = 1_024;
/** Maximum size in bytes of an error's name on the server. */
const MAX_ERROR_BYTES = 64;

/** The part of a kernel's message that concerns a cell. */
export interface Message {
  kernel: string;
  /** Id of the message that it answers. */
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
  /** The marker of the end, when the reply came before the start. */
  end?: Marker;
}

/**
 * Pairs the messages of a kernel about one request. Start and end come by two channels, iopub and shell, in any order:
 * for a short cell the end is often first. Markers are returned in the order by which the server pairs them.
 */
export class Requests {
  private readonly all = new Map<string, Request>();

  /** Called when a request that runs a cell was sent. */
  sent(request: string, cell: string): void {
    this.all.set(request, { cell });
    if (this.all.size > MAX_REQUESTS) {
      this.all.delete(this.all.keys().next().value as string);
    }
  }

  /** Called when its kernel has begun with it (`execute_input`), as the `n`th one. */
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

  /** Called when its kernel has answered it (`execute_reply`). */
  ended(message: Message, status: string, ename?: string): Marker[] {
    const request = this.all.get(message.request);
    if (request === undefined || request.end !== undefined) {
      return [];
    }
    if (status === 'aborted') {
      // It never began, because an earlier cell failed.
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

/** The text in at most `most` bytes of UTF-8, without a truncated character. */
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
