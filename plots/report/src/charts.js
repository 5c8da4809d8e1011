// Charts over time of what adds up: the areas lie on each other.
import uPlot from 'uplot';
import { useEffect, useRef } from 'preact/hooks';
import { html } from './parts.js';
import { tileOf } from './palette.js';
import { useTheme } from './theme.js';
import { short, time, timesLike } from './format.js';

// `series`: [{name, look(), values}] from the lowest area to the highest; `limit`: a line {name, value}, or none.
export function Stacked({ at, series, value, limit, label, id, steps }) {
  const place = useRef(), dark = useTheme();
  useEffect(() => {
    let chart = null;
    const draw = () => {
      const style = getComputedStyle(place.current), ink = style.getPropertyValue('--ink'), line = style.getPropertyValue('--line');
      const sums = [];
      series.forEach((one, i) => sums.push(one.values.map((x, k) => x + (i ? sums[i - 1][k] : 0))));
      const areas = series.map((one, i) => ({
        label: short(one.name, 40), width: 0, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
        fill: self => self.ctx.createPattern(tileOf(one.look()), 'repeat'),
        value: (self, x, which, k) => k === null ? '' : value(one.values[k]),
      })).reverse(), colours = ['', ...series.map(one => one.look().fill).reverse()];
      const data = [at, ...sums.reverse()];
      if (limit) {
        areas.push({ label: limit.name, stroke: ink, width: 1.5, dash: [6, 4], points: { show: false }, value: () => value(limit.value) });
        data.push(at.map(() => limit.value));
      }
      const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
      chart?.destroy();
      chart = new uPlot({
        width: place.current.clientWidth, height: 240, series: [{ label: 'time', value: (self, x) => x === null ? '' : time(x, 6) }, ...areas],
        scales: { x: { time: false }, y: { range: (self, low, high) => [0, high * 1.02 || 1] } },
        axes: [{ ...axis, values: (self, marks) => timesLike(marks) },
          { ...axis, size: 76, ...(steps && { incrs: steps }), values: (self, marks) => marks.map(value) }],
        legend: { markers: { width: 0, fill: (self, which) => colours[which] ?? ink } },
        cursor: { drag: { x: true, y: false } },
      }, data, place.current);
    };
    const resize = new ResizeObserver(() => place.current.clientWidth && draw());
    resize.observe(place.current);
    return () => { resize.disconnect(); chart?.destroy(); };
  }, [at, series, dark]);
  return html`<div id=${id} class="chart" role="img" aria-label=${label} ref=${place}></div>`;
}
