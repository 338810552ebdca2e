// No entry is lost while the server answers, and lost entries are counted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { source } from './source.mjs';

const { Queue, MAX_AT_ONCE, MAX_WAITING, PAUSES_MS } = await source('queue');

/** A queue to a server that answers `answer(entries)`, on a clock that does not run; `idle` waits until all is settled. */
function begin(answer) {
  const seen = { sent: [], taken: [], pauses: [], dropped: 0 };
  const send = async entries => {
    seen.sent.push([...entries]);
    return answer(entries);
  };
  const pause = async ms => void seen.pauses.push(ms);
  const queue = new Queue(send, pause, entries => seen.taken.push(...entries), all => (seen.dropped = all));
  // Every step of the queue is a microtask.
  const idle = () => new Promise(done => setImmediate(done));
  return { queue, seen, idle };
}

test('entries go in their order, those that come meanwhile right after', async () => {
  let answer;
  const { queue, seen, idle } = begin(() => new Promise(done => (answer = done)));
  queue.put(1);
  queue.put(2);
  queue.put(3);
  assert.deepEqual(seen.sent, [[1]]);
  answer('taken');
  await idle();
  assert.deepEqual(seen.sent, [[1], [2, 3]]);
  answer('taken');
  await idle();
  assert.deepEqual([seen.taken, seen.dropped], [[1, 2, 3], 0]);
});

test('an entry that comes in whatever moment around the end of a request is sent', async () => {
  // Number of microtasks after the answer: before, at and after the queue's own end.
  for (let later = 0; later < 12; later++) {
    const { queue, seen, idle } = begin(async () => 'taken');
    queue.put('first');
    let turn = Promise.resolve();
    for (let at = 0; at < later; at++) {
      turn = turn.then(() => undefined);
    }
    await turn;
    queue.put('second');
    await idle();
    assert.deepEqual(seen.taken, ['first', 'second'], `${later} microtasks later`);
  }
});

test('a server that is away, or fails, gets the same request again, and nothing overtakes it', async () => {
  const answers = [() => 'later', () => Promise.reject(new Error('broken')), () => 'later', () => 'taken', () => 'taken'];
  const { queue, seen, idle } = begin(() => answers.shift()());
  queue.put('start');
  queue.put('end');
  await idle();
  assert.deepEqual(seen.sent, [['start'], ['start'], ['start'], ['start'], ['end']]);
  assert.deepEqual(seen.pauses, PAUSES_MS.slice(0, 3));
  assert.deepEqual([seen.taken, seen.dropped], [['start', 'end'], 0]);
});

test('a server that stays away is given up after a bounded time, which is counted, and the next entry is tried anew', async () => {
  let away = true;
  const { queue, seen, idle } = begin(() => (away ? 'later' : 'taken'));
  queue.put(1);
  await idle();
  assert.deepEqual([seen.sent.length, seen.pauses, seen.dropped], [PAUSES_MS.length + 1, PAUSES_MS, 1]);
  assert.ok(PAUSES_MS.reduce((sum, ms) => sum + ms, 0) >= 300_000);
  away = false;
  queue.put(2);
  await idle();
  assert.deepEqual([seen.taken, seen.dropped], [[2], 1]);
});

test('one entry that is wrong takes no other with it', async () => {
  let first;
  const { queue, seen, idle } = begin(entries =>
    first === undefined ? new Promise(done => (first = done)) : entries.includes(77) ? 'invalid' : 'taken'
  );
  const all = Array.from({ length: 101 }, (_, at) => at);
  all.forEach(entry => queue.put(entry));
  first('taken');
  await idle();
  assert.deepEqual(seen.taken, all.filter(entry => entry !== 77));
  assert.equal(seen.dropped, 1);
  assert.ok(seen.sent.length < 20, `${seen.sent.length} requests`);
});

test('what a server never takes is not sent again', async () => {
  const { queue, seen, idle } = begin(async () => 'refused');
  queue.put(1);
  await idle();
  assert.deepEqual([seen.sent, seen.pauses, seen.dropped], [[[1]], [], 1]);
});

test('what waits is bounded: the oldest go, counted, and a request has no more than the server takes', async () => {
  let answer;
  const { queue, seen, idle } = begin(() => (answer === undefined ? new Promise(done => (answer = done)) : 'taken'));
  const all = Array.from({ length: MAX_WAITING + 11 }, (_, at) => at);
  all.forEach(entry => queue.put(entry));
  assert.equal(seen.dropped, 10);
  answer('taken');
  await idle();
  assert.deepEqual(seen.taken, [0, ...all.slice(11)]);
  assert.ok(seen.sent.every(entries => entries.length <= MAX_AT_ONCE));
});
