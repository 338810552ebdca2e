// 24 charts with 12 h of raw samples: each round shows another span, from 20 min to 11 h.
import { Board, drawn, init, pairs, panels, peers } from './kit.js';

const CHARTS = 24, POINTS = 43200;

export default async function () {
  await init();
  const { articles, contexts } = panels(CHARTS);
  const board = new Board(articles, 1, POINTS);
  const theirs = peers(CHARTS, POINTS);
  const span = round => {
    const length = 1200 + (round * 7919) % 38400;
    const from = 1700000000 + (round * 104729) % (POINTS - length);
    return [from, from + length];
  };
  return pairs(
    24,
    drawn(round => { const [from, to] = span(round); board.draw(from * 1000, to * 1000, NaN); }, contexts()),
    drawn(round => { const [min, max] = span(round); theirs.forEach(t => t.plot.setScale('x', { min, max })); },
      theirs.map(t => t.plot.ctx)),
  );
}
