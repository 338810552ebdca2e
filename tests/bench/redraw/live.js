// 200 charts of five minutes at 1 Hz: all are drawn at each tick.
import { Board, drawn, init, pairs, panels, peers, walk } from './kit.js';

const CHARTS = 200, WINDOW = 300, ROUNDS = 20;

export default async function (size) {
  await init();
  const { articles, contexts } = panels(CHARTS, size);
  const board = new Board(articles, 1, 900);
  const theirs = peers(CHARTS, WINDOW, { size });
  const more = theirs.map((_, i) => walk(i + 1, WINDOW + ROUNDS));
  const draw = () => board.draw(board.newest() - WINDOW * 1000, board.newest(), NaN);
  draw();
  return pairs(
    ROUNDS,
    drawn(() => { board.tick(); draw(); }, contexts()),
    drawn(round => theirs.forEach(({ plot, data }, i) => {
      const times = data[0].map(t => t + round + 1);
      plot.setData([times, more[i].subarray(round, round + WINDOW)]);
    }), theirs.map(t => t.plot.ctx)),
  );
}
