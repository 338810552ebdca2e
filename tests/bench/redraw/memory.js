// After 12 h of history, 12 h of ticks follow, and the charts are drawn twice a minute. Sealed ticks return as columns.
import { Board, init, median, panels } from './kit.js';

const CHARTS = 24, SERIES = 8, POINTS = 43200;

export default async function () {
  const wasm = await init();
  const { articles } = panels(CHARTS);
  const board = new Board(articles, SERIES, POINTS);
  // Memory of the tab: the page's own, and the heap of the scripts after a garbage collection.
  const held = () => {
    globalThis.gc?.();
    return (wasm.memory.buffer.byteLength + (performance.memory?.usedJSHeapSize ?? 0)) / 1e6;
  };
  const samples = [];
  for (let tick = 1; tick <= POINTS; tick++) {
    board.tick();
    if (tick % 30 === 0) board.draw(board.newest() - 43200000, board.newest(), NaN);
    if (tick % 1800 === 0) {
      await new Promise(requestAnimationFrame);
      samples.push(held());
    }
  }
  // In the first two hours, buffers grow to their final size.
  const begin = median(samples.slice(4, 8)), end = median(samples.slice(-4));
  const change = Math.max(...samples.slice(8).map(mb => Math.abs(mb / begin - 1)));
  return { begin, end, change, samples };
}
