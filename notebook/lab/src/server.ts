// Client of the server through Jupyter, at the entry `watchglass` of jupyter-server-proxy.

import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { Outcome } from './queue';

/** A kernel from `GET api/v1/kernels`. Unknown values are absent. */
export interface Kernel {
  id: string;
  memory?: number;
  limit?: number;
  warning?: string;
  /** Memory of its processes on each GPU, in bytes; empty when memory cannot be assigned to processes. */
  gpus: { gpu: number; memory: number }[];
}

/** A run of a cell from `GET api/v1/cells`. */
export interface CellRun {
  cell?: string;
  line?: string;
  /** A problem during the run. */
  finding?: string;
  to?: number;
}

/** A marker for `POST api/v1/markers`. */
export interface Marker {
  kind: string;
  by: string;
  kernel: string;
  id: string;
  phase: string;
  cell: string;
  t?: number;
  n?: number;
  ok?: boolean;
  error?: string;
}

/** The address of the page, with a trailing slash. */
export function pageUrl(): string {
  return URLExt.join(PageConfig.getBaseUrl(), 'watchglass') + '/';
}

/** An answer: its status, absent when there is none, and its body, null when it cannot be read. */
interface Answer {
  status?: number;
  body: unknown;
}

async function ask(url: string, body?: object): Promise<Answer> {
  const settings = ServerConnection.makeSettings();
  const stop = new AbortController();
  const timer = window.setTimeout(() => stop.abort(), 10_000);
  try {
    // With `no-store` Jupyter's client would add a parameter, and the server rejects unknown parameters.
    const asked: RequestInit = { cache: 'no-cache', signal: stop.signal };
    const sent = body && { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
    const answer = await ServerConnection.makeRequest(url, { ...asked, ...sent }, settings);
    return { status: answer.status, body: answer.ok ? await answer.json() : null };
  } catch {
    return { body: null };
  } finally {
    window.clearTimeout(timer);
  }
}

/** The body of a successful answer, else null. */
async function json(url: string): Promise<unknown> {
  return (await ask(url)).body;
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function rows(value: unknown, name: string): unknown[] {
  const list = member(value, name);
  return Array.isArray(list) ? list : [];
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** Jupyter's entry for us: null without one, else whether it has a card of its own in the launcher. */
export async function entry(): Promise<{ hasCard: boolean } | null> {
  const info = await json(URLExt.join(PageConfig.getBaseUrl(), 'server-proxy/servers-info'));
  const ours = rows(info, 'server_processes').find(one => member(one, 'name') === 'watchglass');
  return ours === undefined ? null : { hasCard: member(member(ours, 'launcher_entry'), 'enabled') === true };
}

/** The kernel with this id: undefined when the server does not know it, null when it does not answer. */
export async function kernel(id: string): Promise<Kernel | null | undefined> {
  const answer = await json(pageUrl() + 'api/v1/kernels');
  const found = rows(answer, 'kernels').find(one => member(one, 'id') === id);
  if (found === undefined) {
    return answer === null ? null : undefined;
  }
  const [memory, limit] = [number(member(found, 'memory')), number(member(found, 'limit'))];
  return { id, memory, limit, warning: text(member(found, 'warning')), gpus: await gpus(id) };
}

/** Current memory of this kernel on each GPU. Tags of its series contain the first letters of a UUID, and more of other ids. */
async function gpus(id: string): Promise<Kernel['gpus']> {
  const isUuid = id.length === 36 && id[8] === '-';
  const short = id.slice(0, isUuid ? 8 : 24);
  const answer = await json(`${pageUrl()}api/v1/query?tag=kernel.${encodeURIComponent(short)}.gpu.*.memory&from=-15s`);
  return rows(answer, 'series').flatMap(one => {
    const gpu = /\.gpu\.(\d+)\.memory$/.exec(text(member(one, 'tag')) ?? '')?.[1];
    const last: unknown = rows(one, 'points').pop();
    const memory = Array.isArray(last) ? number(last[1]) : undefined;
    return gpu === undefined || memory === undefined ? [] : [{ gpu: Number(gpu), memory }];
  });
}

/** Runs of this kernel's cells in the last 12 hours, newest first; null when the server does not answer. */
export async function cells(id: string): Promise<CellRun[] | null> {
  const answer = await json(`${pageUrl()}api/v1/cells?kernel=${encodeURIComponent(id)}&from=-12h`);
  return answer === null ? null : rows(answer, 'cells').map(one => ({
    cell: text(member(one, 'cell')),
    line: text(member(one, 'line')),
    finding: text(member(one, 'finding')),
    to: number(member(one, 'to'))
  }));
}

/** Sends starts and ends of cells. */
export async function mark(markers: Marker[]): Promise<Outcome> {
  const { status, body } = await ask(pageUrl() + 'api/v1/markers', { markers });
  if (status === undefined || status === 408 || status === 429 || status >= 500) {
    return 'later';
  }
  if (status >= 300) {
    return status === 400 || status === 413 ? 'invalid' : 'refused';
  }
  // Markers were dropped by the rate limit. It recognizes repeated ones.
  return (number(member(body, 'dropped')) ?? 0) === 0 ? 'taken' : 'later';
}
