// 64 devices x 12 metrics x 12 h: loaded, then a window of one hour is panned through all of it, there and back.
import { Board, drawn, init, pairs, panels, touch } from './kit.js';

const CHARTS = 12, SERIES = 64, POINTS = 43200, WINDOW = 3600, FRAMES = 120;

export default async function () {
  await init();
  const { articles, contexts } = panels(CHARTS);
  const board = new Board(articles, SERIES, POINTS);
  const end = board.newest(), begin = end - POINTS * 1000;
  const loaded = performance.now();
  board.draw(begin, end, NaN);
  contexts().forEach(touch);
  const load = performance.now() - loaded;
  // Half a minute per frame, to the left and back to the right.
  const show = frame => {
    const to = end - 60000 - Math.min(frame, FRAMES - frame) * 30000;
    board.draw(to - WINDOW * 1000, to, NaN);
  };
  show(0);
  const moved = await pairs(FRAMES, drawn(show, contexts()));
  return { ...moved, load };
}
