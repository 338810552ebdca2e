// The pointer moves: 24 charts of 12 h show the values at another time.
import { Board, drawn, init, pairs, panels, peers, touch } from './kit.js';

const CHARTS = 24, POINTS = 43200;

export default async function () {
  await init();
  const { articles, contexts } = panels(CHARTS);
  const board = new Board(articles, 1, POINTS);
  const [from, to] = [board.newest() - POINTS * 1000, board.newest()];
  board.draw(from, to, NaN);
  contexts().forEach(touch);
  const over = contexts().filter((_, i) => i % 2 === 1);
  const theirs = peers(CHARTS, POINTS, { cursor: true });
  return pairs(
    60,
    drawn(round => board.point(from, to, from + (to - from) * (round + 0.5) / 60), over),
    // Their cursor consists of elements: their layout is measured, as is the rasterization of ours.
    Object.assign(round => theirs.forEach(({ plot }) => plot.setCursor({ left: 8 * (round + 0.5), top: 60 })), {
      touch: () => theirs.forEach(({ plot }) => plot.root.getBoundingClientRect()),
    }),
  );
}
