// Redraws 24 charts of 43,200 points by our drawing and by uPlot in turn, on the same data, and leaves the times in
// document.title as JSON. One pixel of each canvas is read back, so that rasterising counts.
import init, { Redraw } from './redraw.js';

const CHARTS = 24, POINTS = 43200, ROUNDS = 12, WIDTH = 600, HEIGHT = 200;

function series(seed) {
  // A walk with noise and rare spikes: what a utilisation looks like.
  let state = seed * 2654435761 >>> 0 || 1;
  const random = () => ((state = (state * 1664525 + 1013904223) >>> 0) / 4294967296);
  const values = new Float64Array(POINTS);
  let level = 50;
  for (let i = 0; i < POINTS; i++) {
    level = Math.min(90, Math.max(5, level + (random() - 0.5) * 2));
    values[i] = random() < 0.0005 ? 100 : Math.round((level + random() * 8) * 100) / 100;
  }
  return values;
}

function canvas() {
  const element = document.createElement('canvas');
  element.width = WIDTH; element.height = HEIGHT;
  document.body.append(element);
  return element.getContext('2d');
}

const touch = context => context.getImageData(0, 0, 1, 1);
const median = list => list.slice().sort((a, b) => a - b)[list.length >> 1];

await init();
const times = Float64Array.from({ length: POINTS }, (_, i) => 1700000000 + i);
const data = Array.from({ length: CHARTS }, (_, i) => series(i + 1));
const contexts = data.map(canvas);
const ours = data.map((values, i) => new Redraw(contexts[i], WIDTH, HEIGHT, values));
const options = {
  width: WIDTH, height: HEIGHT, pxRatio: 1, legend: { show: false }, cursor: { show: false },
  series: [{}, { stroke: '#c58644', width: 1.5, points: { show: false } }],
};
const theirs = data.map(values => new uPlot(options, [times, values], document.body));

const result = { ours: [], theirs: [] };
for (let round = 0; round < ROUNDS; round++) {
  let begin = performance.now();
  for (const chart of ours) chart.draw();
  contexts.forEach(touch);
  result.ours.push(performance.now() - begin);

  begin = performance.now();
  theirs.forEach((chart, i) => chart.setData([times, data[i]]));
  await Promise.resolve(); // uPlot draws in a microtask
  theirs.forEach(chart => touch(chart.ctx));
  result.theirs.push(performance.now() - begin);
  await new Promise(requestAnimationFrame);
}
const pairs = result.ours.map((ms, i) => ms / result.theirs[i]);
document.title = JSON.stringify({ ours: median(result.ours), theirs: median(result.theirs), ratio: median(pairs) });
