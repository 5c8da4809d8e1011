// Canvases of all points: two metrics and their front, and all axes side by side.
import { useRef, useState } from 'preact/hooks';
import { html } from './parts.js';
import { shown } from './metrics.js';
import { Canvas, drawAxes, linear, binarySteps } from './canvas.js';
import { bytes, short } from './format.js';

const range = values => {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (value === value) { low = Math.min(low, value); high = Math.max(high, value); }
  return low < high ? [low, high] : [low - 0.5, low + 0.5];
};

// Rows that no other betters in both metrics, by the first.
export function frontOf(store, x, y) {
  const a = store.values(x.key), b = store.values(y.key), better = (p, q, less) => less ? p < q : p > q, front = [];
  const rows = [...a.keys()].filter(row => store.status[row] === 'ok' && a[row] === a[row] && b[row] === b[row]);
  rows.sort((p, q) => (x.less ? 1 : -1) * (a[p] - a[q]) || (y.less ? 1 : -1) * (b[p] - b[q]));
  for (const row of rows) {
    const last = front.at(-1);
    if (last === undefined || better(b[row], b[last], y.less) || (a[row] === a[last] && b[row] === b[last])) front.push(row);
  }
  return { rows, front };
}

export function Front({ head, store, row, choose }) {
  const metrics = shown(store), at = key => Math.max(metrics.findIndex(one => one.key === key), 0);
  const [x, setX] = useState(at('peak_memory_bytes')), [y, setY] = useState(at(head.ranked) === at('peak_memory_bytes') ? 0 : at(head.ranked));
  const { rows, front } = frontOf(store, metrics[x], metrics[y]), spot = useRef();
  const draw = (context, width, high, colour) => {
    const a = store.values(metrics[x].key), b = store.values(metrics[y].key);
    const axis = (metric, values) => {
      const [low, most] = range(rows.map(one => values[one])), pad = 0.04 * (most - low);
      return linear(low >= 0 ? Math.max(low - pad, 0) : low - pad, most + pad, 6, metric.format, metric.name, metric.format === bytes ? binarySteps : undefined);
    };
    const { at, up } = drawAxes(context, width, high, colour, axis(metrics[x], a), axis(metrics[y], b));
    spot.current = one => [at(a[one]), up(b[one])];
    for (const one of rows) {
      const [u, v] = spot.current(one);
      context.fillStyle = colour.link;
      context.globalAlpha = 0.7;
      if (head.ranks[one] === 1) context.fillRect(u - 4, v - 4, 8, 8);
      else { context.beginPath(); context.arc(u, v, 3, 0, 7); context.fill(); }
    }
    context.globalAlpha = 1;
    context.strokeStyle = colour.path;
    context.lineWidth = 1.5;
    context.beginPath();
    front.forEach((one, i) => context[i ? 'lineTo' : 'moveTo'](...spot.current(one)));
    context.stroke();
    if (row !== null && rows.includes(row)) {
      const [u, v] = spot.current(row);
      context.strokeStyle = colour.ink;
      context.lineWidth = 2;
      context.strokeRect(u - 7, v - 7, 14, 14);
    }
  };
  const click = event => {
    const box = event.target.getBoundingClientRect(), far = one => Math.hypot(spot.current(one)[0] - event.clientX + box.left, spot.current(one)[1] - event.clientY + box.top);
    const nearest = rows.reduce((best, one) => best < 0 || far(one) < far(best) ? one : best, -1);
    if (nearest >= 0 && far(nearest) < 20) choose(nearest);
  };
  const select = (value, set, name) => html`<label>${name} <select value=${value} onChange=${event => set(Number(event.target.value))}>
    ${metrics.map((one, i) => html`<option value=${i}>${one.name}</option>`)}</select></label>`;
  return html`<div class="tools">${select(x, setX, 'across')}${select(y, setY, 'up')}</div>
    <p class="note">The line joins the points that no other betters in both; squares share the first place. A click chooses a point.</p>
    <${Canvas} draw=${draw} what=${[x, y, row]} high=${340} label="two metrics of all points and their front" onClick=${click}/>
    <p>The front: ${front.slice(0, 40).map(one => html`<button class="small" onClick=${() => choose(one)}>${store.axes.map(key =>
      `${short(key.split('.').at(-1), 12)} ${short(typeof store.values(key)[one] === 'string' ? store.values(key)[one] : JSON.stringify(store.values(key)[one]), 16)}`).join(', ') || 'the point'}</button> `)}${front.length > 40 ? `and ${front.length - 40} more` : ''}</p>`;
}

// A line for each point across all axes; a part of an axis that is drawn over keeps its points alone.
export function Parallel({ head, store, row, choose }) {
  const metrics = shown(store).slice(0, 6);
  const axes = [...store.axes.slice(0, 8).map(key => ({ key, name: short(key.split('.').at(-1), 18), format: value => short(value, 12) })), ...metrics];
  const [kept, setKept] = useState({}), held = useRef(), place = useRef();
  const scales = axes.map(({ key }) => {
    const values = store.values(key);
    if (values instanceof Float64Array || values.every(one => one === null || typeof one === 'number')) {
      const [low, high] = range([...values].map(one => one ?? NaN));
      return { share: one => (values[one] === null ? NaN : (values[one] - low) / (high - low)), at: share => low + share * (high - low) };
    }
    const names = [...new Set(values.map(one => JSON.stringify(one)))].sort(), last = Math.max(names.length - 1, 1);
    return { share: one => names.indexOf(JSON.stringify(values[one])) / last, at: share => names[Math.round(share * last)].replace(/^"(.*)"$/, '$1') };
  });
  const inside = one => Object.entries(kept).every(([i, [low, high]]) => scales[i].share(one) >= low && scales[i].share(one) <= high);
  const rows = [...Array(store.count).keys()].filter(one => store.status[one] === 'ok');
  const kepts = rows.filter(inside), x = (i, width) => 60 + i / Math.max(axes.length - 1, 1) * (width - 130);
  const draw = (context, width, high, colour) => {
    place.current = { width, high };
    const line = (one, stroke, alpha, wide) => {
      context.strokeStyle = stroke; context.globalAlpha = alpha; context.lineWidth = wide;
      context.beginPath();
      scales.forEach((scale, i) => { const share = scale.share(one); if (share === share) context.lineTo(x(i, width), high - 24 - share * (high - 74)); });
      context.stroke();
    };
    const thin = list => list.length > 4000 ? list.filter((_, i) => i % Math.ceil(list.length / 4000) === 0) : list;
    if (kepts.length < rows.length) thin(rows).forEach(one => line(one, colour.line, 0.6, 1));
    thin(kepts).forEach(one => line(one, colour.link, kepts.length > 300 ? 0.25 : 0.6, head.ranks[one] === 1 ? 2.2 : 1));
    if (row !== null) line(row, colour.path, 1, 2.5);
    context.globalAlpha = 1;
    axes.forEach((axis, i) => {
      const u = x(i, width);
      context.fillStyle = colour.ink;
      context.fillRect(u, 50, 1, high - 74);
      context.fillText(axis.name, u - 40, i % 2 ? 26 : 12);
      context.fillText(axis.format(scales[i].at(1)), u - 20, 44);
      context.fillText(axis.format(scales[i].at(0)), u - 20, high - 8);
      if (kept[i]) { context.globalAlpha = 0.35; context.fillRect(u - 6, high - 24 - kept[i][1] * (high - 74), 13, (kept[i][1] - kept[i][0]) * (high - 74)); context.globalAlpha = 1; }
    });
  };
  const shareOf = event => {
    const box = event.target.getBoundingClientRect(), { width, high } = place.current;
    const i = axes.findIndex((_, k) => Math.abs(x(k, width) - event.clientX + box.left) < 20);
    return { i, share: Math.min(Math.max((high - 24 - event.clientY + box.top) / (high - 74), 0), 1) };
  };
  const down = event => { held.current = shareOf(event); event.target.setPointerCapture(event.pointerId); };
  const up = event => {
    const { i, share } = held.current, end = shareOf(event).share, next = { ...kept };
    if (i < 0) return;
    if (Math.abs(share - end) < 0.01) delete next[i]; else next[i] = [Math.min(share, end), Math.max(share, end)];
    setKept(next);
  };
  return html`<p class="note">A line for each point that ran; a drag along an axis keeps the points there, a click on it all again. <output>${kepts.length.toLocaleString('en')} of ${rows.length.toLocaleString('en')} kept${kepts.length > 4000 ? ', of which 4,000 are drawn' : ''}.</output> ${kepts.length > 0 && kepts.length <= 8 && kepts.map(one => html`<button class="small" onClick=${() => choose(one)}>choose ${one + 1}</button> `)}</p>
    <${Canvas} draw=${draw} what=${[row, kept]} high=${334} label="all points across all axes" onPointerDown=${down} onPointerUp=${up}/>`;
}
