// Common code of all scenarios: panels as on the page, uPlot on the same data, and times of both in turn.
import init, { BenchBoard as Board, Redraw } from './redraw.js';

export { Board, Redraw, init };
export const WIDTH = 600, HEIGHT = 200;
export const median = list => list.slice().sort((a, b) => a - b)[list.length >> 1];
// One pixel of a canvas is read back, so that rasterization is measured.
export const touch = context => context.getImageData(0, 0, 1, 1);

// Elements of panels, and the contexts of their canvases after the first drawing: the first request fixes their type.
export function panels(n, [width, height] = [WIDTH, HEIGHT]) {
  const articles = Array.from({ length: n }, () => {
    const article = document.createElement('article');
    const words = ['note', 'sum-min', 'sum-mean', 'sum-max', 'age'].map(name => `<span class="${name}"></span>`);
    article.innerHTML = `<header>${words.join('')}</header><div class="plot"><canvas></canvas><canvas></canvas></div>`;
    Object.assign(article.style, { width: `${width}px`, height: `${height}px` });
    document.body.append(article);
    return article;
  });
  const canvases = articles.flatMap(article => [...article.querySelectorAll('canvas')]);
  return { articles, contexts: () => canvases.map(canvas => canvas.getContext('2d')) };
}

// A random walk with noise and rare spikes, similar to a utilization.
export function walk(seed, points) {
  let state = seed * 2654435761 >>> 0 || 1;
  const random = () => ((state = (state * 1664525 + 1013904223) >>> 0) / 4294967296);
  const values = new Float64Array(points);
  let level = 50;
  for (let i = 0; i < points; i++) {
    level = Math.min(90, Math.max(5, level + (random() - 0.5) * 2));
    values[i] = random() < 0.0005 ? 100 : Math.round((level + random() * 8) * 100) / 100;
  }
  return values;
}

// uPlot on the same walks. Times are seconds.
export function peers(n, points, { cursor = false, size: [width, height] = [WIDTH, HEIGHT] } = {}) {
  const times = Float64Array.from({ length: points }, (_, i) => 1700000000 + i);
  const options = {
    width, height, pxRatio: 1, legend: { show: false }, cursor: { show: cursor },
    series: [{}, { stroke: '#c58644', width: 1.5, points: { show: false } }],
  };
  return Array.from({ length: n }, (_, i) => {
    const data = [times, walk(i + 1, points)];
    return { data, plot: new uPlot(options, data, document.body) };
  });
}

// Milliseconds of each of our rounds and of theirs, in turn, so that other load on the machine affects both. Microtasks
// are included.
export async function pairs(rounds, ours, theirs) {
  const times = { ours: [], theirs: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [name, work] of [['ours', ours], ['theirs', theirs]]) {
      if (!work) continue;
      const begin = performance.now();
      work(round);
      await Promise.resolve();
      work.touch();
      times[name].push(performance.now() - begin);
      await new Promise(requestAnimationFrame);
    }
  }
  const ratio = theirs && median(times.ours.map((ms, i) => ms / times.theirs[i]));
  const worst = times.ours.slice().sort((a, b) => a - b)[Math.floor(rounds * 0.95)];
  return { ours: median(times.ours), worst, theirs: theirs ? median(times.theirs) : null, ratio: ratio ?? null };
}

// Work that includes the rasterization of its canvases in its time.
export const drawn = (work, contexts) => Object.assign(work, { touch: () => contexts.forEach(touch) });
