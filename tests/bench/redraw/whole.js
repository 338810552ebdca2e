// uPlot as a page of its own: charts of 12 h in the sizes of the whole page, with the same wheel and mouse input. Its
// legend shows the values at the cursor, as the labels of our charts do.
import { walk } from './kit.js';

const POINTS = 43200, END = 1700000000 + POINTS - 1;
const HUES = ['#c58644', '#5b8fd9', '#4fa36b', '#b46fc9', '#c9b04f', '#6fb7c9', '#d9776b', '#8a8fd0'];

export default async function () {
  const times = Float64Array.from({ length: POINTS }, (_, i) => 1700000000 + i);
  const all = [];
  JSON.parse(decodeURIComponent(location.hash.slice(1))).forEach(([width, height, lines], chart) => {
    const values = HUES.slice(0, lines).map((_, i) => walk(chart * 8 + i + 1, POINTS));
    const series = values.map((_, i) => ({ label: `GPU ${i}`, stroke: HUES[i], width: 1.5, points: { show: false } }));
    const cursor = { sync: { key: 'all' } };
    const plot = new uPlot({ width, height, cursor, series: [{}, ...series] }, [times, ...values], document.body);
    all.push(plot);
    // Like ours, a turn of the wheel with ctrl zooms all charts at the pointer, once per frame.
    plot.over.addEventListener('wheel', event => {
      event.preventDefault();
      const at = plot.posToVal(event.offsetX, 'x'), { min, max } = plot.scales.x;
      const factor = Math.exp(event.deltaY * 0.002), length = Math.min((max - min) * factor, POINTS);
      const from = Math.min(Math.max(at - (at - min) * factor, times[0]), END - length);
      all.forEach(plot => plot.setScale('x', { min: from, max: from + length }));
    }, { passive: false });
  });
  return { charts: all.length };
}
