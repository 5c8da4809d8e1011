// A heat map of two axes: in each cell the best of the others, or why there is none.
import { useMemo, useState } from 'preact/hooks';
import { html } from './parts.js';
import { shown } from './metrics.js';
import { isDark } from './theme.js';
import { short, plain } from './format.js';

const text = value => typeof value === 'string' ? value : JSON.stringify(value);
const order = (a, b) => typeof a === 'number' && typeof b === 'number' ? a - b : String(text(a)).localeCompare(String(text(b)), 'en', { numeric: true });

// {xs, ys, cells: {"x y": {best: row or -1, rows: []}}}: the best row by a metric of each pair of values.
export function heatOf(store, x, y, metric) {
  const left = store.values(x), up = store.values(y), by = store.values(metric.key), cells = new Map();
  const values = column => [...new Map(column.filter(one => one !== null).map(one => [text(one), one])).values()].sort(order);
  for (let row = 0; row < store.count; row++) {
    const key = JSON.stringify([text(left[row]), text(up[row])]);
    if (!cells.has(key)) cells.set(key, { best: -1, rows: [] });
    const cell = cells.get(key);
    cell.rows.push(row);
    if (Number.isNaN(by[row]) || store.status[row] !== 'ok') continue;
    if (cell.best < 0 || (metric.less ? by[row] < by[cell.best] : by[row] > by[cell.best])) cell.best = row;
  }
  return { xs: values(left), ys: values(up), cell: (a, b) => cells.get(JSON.stringify([text(a), text(b)])) };
}

// From poor to good, light to dark (and the other way on a dark page): a part of viridis, readable with its ink.
function tone(share) {
  const stops = isDark() ? [[59, 30, 86], [49, 88, 140], [53, 160, 132], [186, 222, 60]] : [[236, 240, 200], [150, 205, 140], [52, 140, 141], [58, 50, 120]];
  const at = share * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2), part = at - i;
  const rgb = stops[i].map((one, k) => Math.round(one + (stops[i + 1][k] - one) * part));
  const light = [0.2126, 0.7152, 0.0722].reduce((sum, weight, k) => sum + weight * ((rgb[k] / 255 + 0.055) / 1.055) ** 2.4, 0);
  return { background: `rgb(${rgb.join(',')})`, color: light > 0.18 ? '#000000' : '#ffffff' };
}

export function HeatMap({ head, store, row, choose }) {
  const metrics = shown(store), first = metrics.findIndex(one => one.key === head.ranked);
  const [x, setX] = useState(store.axes[0]), [y, setY] = useState(store.axes[1]), [which, setWhich] = useState(Math.max(first, 0));
  const metric = metrics[which], heat = useMemo(() => heatOf(store, x, y, metric), [x, y, which]);
  const best = heat.ys.flatMap(b => heat.xs.map(a => heat.cell(a, b)?.best ?? -1)).filter(one => one >= 0).map(one => store.values(metric.key)[one]);
  const low = Math.min(...best), high = Math.max(...best);
  const share = value => high > low ? (metric.less ? high - value : value - low) / (high - low) : 1;
  const select = (value, set, name) => html`<label>${name} <select value=${value} onChange=${event => set(event.target.value)}>
    ${store.axes.map(one => html`<option value=${one}>${short(one, 50)}</option>`)}</select></label>`;
  if (heat.xs.length * heat.ys.length > 10000)
    return html`<div class="tools">${select(x, setX, 'across')}${select(y, setY, 'down')}</div><p>These axes have more than 10,000 cells.</p>`;
  return html`<div class="tools">${select(x, setX, 'across')}${select(y, setY, 'down')}
      <label>by <select id="heat-by" value=${which} onChange=${event => setWhich(Number(event.target.value))}>
        ${metrics.map((one, i) => html`<option value=${i}>${one.name}</option>`)}</select></label></div>
    <p class="note">The best of the other axes in each cell. A hatched cell has no point that ran; a click says why.</p>
    <div class="wide"><table class="heat"><thead><tr><th scope="col">${short(y, 30)} \\ ${short(x, 30)}</th>${heat.xs.map(a => html`<th scope="col">${short(text(a), 24)}</th>`)}</tr></thead>
    <tbody>${heat.ys.map(b => html`<tr><th scope="row">${short(text(b), 24)}</th>${heat.xs.map(a => {
      const cell = heat.cell(a, b);
      if (!cell) return html`<td></td>`;
      const shown_ = cell.best >= 0 ? cell.best : cell.rows[0], value = store.values(metric.key)[shown_];
      const reason = store.has('reason') ? store.values('reason')[shown_] : null;
      return html`<td><button class=${`${cell.best < 0 ? 'none' : ''} ${cell.rows.includes(row) ? 'chosen' : ''}`} data-row=${shown_}
        style=${cell.best < 0 ? { background: '', color: '' } : tone(share(value))} onClick=${() => choose(shown_)}
        title=${cell.best < 0 ? plain(reason ?? store.status[shown_]) : ''}>${cell.best < 0 ? short(store.values('rule')?.[shown_] ?? store.status[shown_], 14) : metric.format(value)}</button></td>`;
    })}</tr>`)}</tbody></table></div>`;
}
