// The page of a sweep.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Tabulator } from './tabulator.js';
import { jsonOf } from './data.js';
import { html, show, Part, Fact, Breakdown, Copied, ThemeSwitch, Swatch } from './parts.js';
import { HeatMap, heatOf } from './heat.js';
import { Front, Parallel } from './front.js';
import { Plan, orderOf } from './plan-view.js';
import { useTheme } from './theme.js';
import { lookOf } from './palette.js';
import { shown } from './metrics.js';
import { time, percent, plain, short, words } from './format.js';

// The rows by columns: values(key)[row]; NaN or null where a row has none.
function storeOf(parts, head) {
  const columns = jsonOf(parts.columns), bytes = parts.numbers.slice().buffer, values = new Map();
  let text = 0, number = 0;
  for (const { key, from } of head.keys)
    values.set(key, from === 'metric' ? new Float64Array(bytes, 8 * head.rows * number++, head.rows) : columns[text++]);
  const of = from => head.keys.filter(one => one.from === from).map(one => one.key);
  const varies = key => values.get(key).some(value => JSON.stringify(value) !== JSON.stringify(values.get(key)[0]));
  return { count: head.rows, values: key => values.get(key), has: key => values.has(key), metrics: of('metric'),
    axes: of('point').filter(varies).slice(0, 40), points: of('point'), status: values.get('status') ?? [] };
}
const place = (head, row) => head.ranks[row] ? `${head.ranks[row]}${head.shared[row] ? '=' : ''}` : '';
const cell = value => value === null || value === undefined ? '' : short(typeof value === 'object' ? JSON.stringify(value) : value, 60);

// The scenario of a row: the sweep's own, with what the point sets.
function scenarioOf(head, store, row) {
  const scenario = structuredClone(head.base ?? {});
  for (const key of store.points) {
    const value = store.values(key)[row], path = key.split('.');
    if (value === null) continue;
    let at = scenario;
    for (const part of path.slice(0, -1)) {
      if (typeof at[part] !== 'object' || at[part] === null) Object.defineProperty(at, part, { value: {}, enumerable: true, writable: true });
      at = at[part];
    }
    Object.defineProperty(at, path.at(-1), { value, enumerable: true, writable: true, configurable: true });
  }
  return scenario;
}

function Chosen({ head, store, row }) {
  if (row === null) return html`<p class="note">A click on a row, a cell or a point shows it here.</p>`;
  const parts = store.metrics.filter(key => key.startsWith('breakdown_s.')).map(key => [key.slice(12), store.values(key)[row]]).filter(([, x]) => x > 0);
  const whole = parts.reduce((sum, [, x]) => sum + x, 0);
  const reason = store.has('reason') ? store.values('reason')[row] : null;
  return html`<dl class="facts">${store.points.map(key => html`<${Fact} name=${short(key)} text=${cell(store.values(key)[row])}/>`)}
      <${Fact} name="ended" text=${cell(store.status[row])}/>${head.ranks[row] > 0 && html`<${Fact} name="place" text=${place(head, row)}/>`}
      ${shown(store).map(({ key, name, format }) => store.values(key)[row] === store.values(key)[row] &&
        html`<${Fact} name=${name} text=${format(store.values(key)[row])} value=${store.values(key)[row]} id=${`chosen-${key}`}/>`)}</dl>
    ${reason && html`<p id="reason">${plain(reason)}</p>`}
    ${parts.length > 0 && html`<${Breakdown} parts=${parts}/>
      <ul class="legend">${parts.map(([key, x]) => html`<li><${Swatch} look=${lookOf(key)}/>${words(key)} ${time(x)}, ${percent(x / whole)}</li>`)}</ul>`}
    <p class="note">${head.base ? "The scenario as it was searched, with what this point sets. 'dtsim run' reads it in the folder of that scenario."
      : 'What this point sets: the rows were written by an older build, without its scenario.'}</p>
    <${Copied} id="scenario-text" text=${JSON.stringify(scenarioOf(head, store, row), null, 2)}/>`;
}

function Rows({ head, store, row, choose }) {
  const at = useRef(), table = useRef();
  useEffect(() => {
    const number = () => ({ sorter: 'number', hozAlign: 'right', headerFilter: 'input', headerFilterPlaceholder: '>= or <=', headerFilterFunc: compare });
    const keys = [...store.axes, 'status', ...shown(store).map(one => one.key)];
    const columns = [{ title: 'place', field: 'place', sorter: 'number', formatter: one => place(head, one.getRow().getData().row), hozAlign: 'right' }];
    keys.forEach((key, i) => {
      const metric = shown(store).find(one => one.key === key);
      columns.push({ title: metric?.name ?? short(key, 40), field: `k${i}`, ...(metric ? number() : { headerFilter: 'input', sorter: 'alphanum' }),
        formatter: one => document.createTextNode(metric ? (Number.isNaN(one.getValue()) ? '' : metric.format(one.getValue())) : cell(one.getValue())) });
    });
    // its own titles would be markup
    for (const one of columns) Object.assign(one, { titleFormatter: head => document.createTextNode(head.getValue()), width: 44 + 8 * one.title.length });
    const data = Array.from({ length: store.count }, (_, i) => {
      const one = { id: i, row: i, place: head.ranks[i] || Infinity };
      keys.forEach((key, k) => { one[`k${k}`] = store.values(key)[i]; });
      return one;
    });
    table.current = new Tabulator(at.current, { data, columns, height: 420, index: 'id' });
    table.current.on('rowClick', (event, one) => choose(one.getData().row));
    return () => table.current.destroy();
  }, []);
  return html`<div id="rows" ref=${at}></div>`;
}
// ">= 3", "< 0.5" or the beginning of a number.
function compare(wanted, value) {
  const [, sign, text] = /^\s*(<=|>=|<|>|=)?\s*(.*)$/.exec(wanted), limit = Number(text);
  if (!text || Number.isNaN(limit)) return true;
  if (Number.isNaN(value)) return false;
  return { '<=': value <= limit, '>=': value >= limit, '<': value < limit, '>': value > limit, '=': value === limit }[sign] ?? String(value).startsWith(text);
}

function Summary({ head, store }) {
  const ended = Object.entries(store.status.reduce((sum, one) => ({ ...sum, [one]: (sum[one] ?? 0) + 1 }), Object.create(null)));
  const tied = head.ranks.filter(rank => rank === 1).length, best = head.ranks.indexOf(1);
  return html`<p class="lead">${store.count.toLocaleString('en')} points: ${ended.map(([one, count], i) => `${i ? ', ' : ''}${count.toLocaleString('en')} ${short(one)}`).join('')}.
      ${best >= 0 && ` The best by ${words(head.ranked)}: ${store.axes.map(key => `${short(key)} ${cell(store.values(key)[best])}`).join(', ')}.`}
      ${tied > 1 && ` ${tied.toLocaleString('en')} points share the first place: what is known of errors cannot tell them apart.`}</p>
    ${head.tie && html`<p class="note" id="tie">${plain(head.tie.replaceAll('\n', ' '))}</p>`}`;
}

function Page({ head, store }) {
  useTheme();
  const best = head.plan ? orderOf(head)[0] ?? -1 : head.ranks.indexOf(1), [row, setRow] = useState(best >= 0 ? best : null);
  const metrics = useMemo(() => shown(store), []);
  return html`
    <header><h1>${short(head.name ?? head.input, 120)}</h1><${ThemeSwitch} first=${head.theme}/></header>
    ${head.plan ? html`<${Part} id="plan" title="What the search found"><${Plan} head=${head} store=${store} row=${row} choose=${setRow} place=${place}/>
      ${head.tie && html`<p class="note" id="tie">${plain(head.tie.replaceAll('\n', ' '))}</p>`}<//>`
      : html`<${Part} id="summary" title="Summary"><${Summary} head=${head} store=${store}/><//>`}
    ${store.count > 0 && html`<${Points} head=${head} store=${store} row=${row} setRow=${setRow} metrics=${metrics}/>`}
    <footer>dtsim. The numbers are of simulations.</footer>`;
}

// All points: the chosen one, their table, and pictures of them.
function Points({ head, store, row, setRow, metrics }) {
  return html`<${Part} id="chosen" title="The chosen point"><${Chosen} head=${head} store=${store} row=${row}/><//>
    <${Part} id="table" title="Points"><${Rows} head=${head} store=${store} row=${row} choose=${setRow}/><//>
    ${store.axes.length > 1 && metrics.length > 0 && html`<${Part} id="heat" title="Heat map"><${HeatMap} head=${head} store=${store} row=${row} choose=${setRow}/><//>`}
    ${metrics.length > 1 && html`<${Part} id="front" title="Front"><${Front} head=${head} store=${store} row=${row} choose=${setRow}/><//>`}
    ${metrics.length > 0 && html`<${Part} id="parallel" title="Parallel coordinates"><${Parallel} head=${head} store=${store} row=${row} choose=${setRow}/><//>`}`;
}

show((parts, head) => {
  const store = storeOf(parts, head);
  window.dtsimReport = { head, store, heatOf };
  return { title: short(head.name ?? 'dtsim', 60), page: html`<${Page} head=${head} store=${store}/>` };
});
