// 24 charts of 43,200 points, drawn from the samples each time, without any cache.
import { HEIGHT, Redraw, WIDTH, drawn, init, pairs, peers } from './kit.js';

const CHARTS = 24, POINTS = 43200;

export default async function () {
  await init();
  const theirs = peers(CHARTS, POINTS);
  const canvases = theirs.map(() => document.body.appendChild(document.createElement('canvas')));
  const ours = theirs.map(({ data }, i) => new Redraw(canvases[i], WIDTH, HEIGHT, data[1]));
  const contexts = canvases.map(canvas => canvas.getContext('2d'));
  return pairs(
    12,
    drawn(() => ours.forEach(chart => chart.draw()), contexts),
    drawn(() => theirs.forEach(({ plot, data }) => plot.setData(data)), theirs.map(t => t.plot.ctx)),
  );
}
