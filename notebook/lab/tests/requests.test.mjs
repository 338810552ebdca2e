// Start and end of a cell become a pair of markers, in any order of the kernel's two channels.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { source } from './source.mjs';

const { Requests } = await source('requests');

const KERNEL = '0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9';
const message = (request, date) => ({ kernel: KERNEL, request, date: `2026-11-28T01:00:${date}Z` });
const spoken = markers => markers.map(({ phase, cell, n, t, ok, error }) => ({ phase, cell, n, t, ok, error }));
const at = second => Date.UTC(2026, 10, 28, 1) / 1_000 + second;
const start = { phase: 'start', cell: 'c', n: 1, t: at(1), ok: undefined, error: undefined };
const end = { phase: 'end', cell: 'c', n: 1, t: at(1.005), ok: true, error: undefined };

test('begin and end become two markers, whichever came first', () => {
  const inOrder = new Requests();
  inOrder.sent('r', 'c');
  assert.deepEqual(spoken(inOrder.begun(message('r', '01.000'), 1)), [start]);
  assert.deepEqual(spoken(inOrder.ended(message('r', '01.005'), 'ok')), [end]);

  const swapped = new Requests();
  swapped.sent('r', 'c');
  assert.deepEqual(swapped.ended(message('r', '01.005'), 'ok'), []);
  assert.deepEqual(spoken(swapped.begun(message('r', '01.000'), 1)), [start, end]);
});

test('an error is named whichever came first, in what the server takes', () => {
  const long = 'Ä'.repeat(40);
  for (const swapped of [false, true]) {
    const requests = new Requests();
    requests.sent('r', 'c');
    const steps = [
      () => requests.begun(message('r', '01.000'), 1),
      () => requests.ended(message('r', '01.005'), 'error', long)
    ];
    const markers = (swapped ? steps.reverse() : steps).flatMap(step => step());
    assert.deepEqual(spoken(markers), [start, { ...end, ok: false, error: 'Ä'.repeat(32) }]);
  }
});

test('each message counts once, and what nobody asked for not at all', () => {
  const requests = new Requests();
  assert.deepEqual(requests.begun(message('other', '01.000'), 1), []);
  assert.deepEqual(requests.ended(message('other', '01.000'), 'ok'), []);
  requests.sent('r', 'c');
  assert.equal(requests.begun(message('r', '01.000'), 1).length, 1);
  assert.deepEqual(requests.begun(message('r', '01.000'), 1), []);
  assert.equal(requests.ended(message('r', '01.005'), 'ok').length, 1);
  assert.deepEqual(requests.ended(message('r', '01.005'), 'ok'), []);
});

test('a cell that an error before it has put off never began', () => {
  const requests = new Requests();
  requests.sent('r', 'c');
  assert.deepEqual(requests.ended(message('r', '01.005'), 'aborted'), []);
  assert.deepEqual(requests.begun(message('r', '01.000'), 1), []);
});

test('several cells at once keep their own pairs, and requests without an answer are bounded', () => {
  const requests = new Requests();
  ['a', 'b'].forEach(one => requests.sent(one, one));
  requests.ended(message('b', '02.000'), 'ok');
  requests.ended(message('a', '01.000'), 'ok');
  const ids = ['a', 'b'].flatMap(one => requests.begun(message(one, '00.500'), 1)).map(({ id, cell }) => [id, cell]);
  assert.deepEqual(ids, [['a-start', 'a'], ['a-end', 'a'], ['b-start', 'b'], ['b-end', 'b']]);
  requests.sent('old', 'old');
  for (let at = 0; at < 2_000; at++) {
    requests.sent(`r${at}`, 'c');
  }
  assert.deepEqual(requests.begun(message('old', '01.000'), 1), []);
  assert.equal(requests.begun(message('r1999', '01.000'), 1).length, 1);
});
