// What a search found: how sure it is, the configurations that it shows, and how all the others ended.
import { html, Bars, Part, Table } from './parts.js';
import { shown as metricsOf } from './metrics.js';
import { plain, short } from './format.js';

const ends = [['replayed', 'replayed; they fit'], ['pruned', 'surely slower: their bounds say so'], ['memory', 'do not fit in memory'],
  ['refused', 'refused'], ['by_rule', 'against a rule'], ['outside', 'outside the limits'], ['failed', 'failed'], ['left', 'not reached']];
const text = value => value === null || value === undefined ? '' : short(typeof value === 'object' ? JSON.stringify(value) : value, 40);
const count = value => value.toLocaleString('en');
const last = path => short(path.split('.').at(-1).replaceAll('_', ' '), 40);

// Rows in the order of the plan.
export const orderOf = head => head.order.map((at, row) => [at, row]).filter(([at]) => at !== null).sort((a, b) => a[0] - b[0]).map(([, row]) => row);
// Rules by their words, the most points first: {name, points}.
function rulesOf(plan) {
  const rules = new Map();
  for (const { rule, points } of plan.rules ?? []) rules.set(rule, (rules.get(rule) ?? 0) + points);
  return [...rules].map(([name, points]) => ({ name, points })).filter(one => one.points > 0).sort((a, b) => b.points - a.points);
}

function Ranked({ head, store, row, choose, place }) {
  const rows = orderOf(head).slice(0, head.plan.shown), metrics = metricsOf(store).filter(one => one.plan || one.key === head.ranked);
  if (!rows.length) return '';
  const columns = [
    ['place', one => html`<button class="small" aria-pressed=${one === row} onClick=${() => choose(one)}>${place(head, one)}</button>`, 'number'],
    ...store.axes.filter(key => key in head.plan.axes || store.points.includes(key)).map(key => [last(key), one => text(store.values(key)[one])]),
    ...metrics.map(metric => [metric.name, one => Number.isNaN(store.values(metric.key)[one]) ? ''
      : html`<data data-key=${`${one} ${metric.key}`} value=${store.values(metric.key)[one]}>${metric.format(store.values(metric.key)[one])}</data>`, 'number'])];
  return html`<${Table} id="ranked" caption=${`${head.plan.front ? 'The front' : 'The best'}: a place shows its configuration below. Rows that share a place (=) cannot be told apart`}
    rows=${rows} columns=${columns} chosen=${one => one === row}/>`;
}

export function Plan({ head, store, row, choose, place }) {
  const { plan } = head, counts = plan.counts, axes = Object.entries(plan.axes ?? {}), rules = rulesOf(plan);
  return html`<p class="lead">${plan.status === 'none feasible' ? 'Of the configurations ' : 'The order is '}<b id="proven">${plan.status === 'none feasible'
      ? 'none is feasible' : plain(plan.status)}</b>.</p>
    <${Ranked} head=${head} store=${store} row=${row} choose=${choose} place=${place}/>
    <ul id="conclusions">${(plan.conclusions ?? []).map(one => html`<li>${plain(one)}</li>`)}</ul>
    <${Bars} id="ended" caption=${`How the ${count(counts.considered)} combinations of the axes ended`} titles=${['', 'combinations']} whole=${counts.considered}
      rows=${ends.filter(([key]) => counts[key] > 0).map(([key, name]) => ({ key, name, value: counts[key], text: count(counts[key]) }))}/>
    ${(plan.refusals ?? []).length > 0 && html`<${Table} id="refusals" caption="Why configurations are refused" rows=${plan.refusals} columns=${[
      ['rule', one => short(one.rule, 60)], ['combinations', one => html`<data data-key=${one.rule} value=${one.points}>${count(one.points)}</data>`, 'number'],
      ['such as', one => plain(one.example)]]}/>`}
    ${rules.length > 0 && html`<${Table} id="rules" caption="Rules of the axes" rows=${rules} columns=${[
      ['rule', one => plain(one.name)], ['combinations', one => html`<data data-key=${one.name} value=${one.points}>${count(one.points)}</data>`, 'number']]}/>`}
    ${axes.length > 0 && html`<${Table} id="axes" caption="What was searched" rows=${axes} columns=${[
      ['axis', ([path]) => short(path, 60)], ['values', ([, values]) => short(values, 200)], ['why these', ([path]) => plain(plan.axis_reasons?.[path] ?? '')]]}/>`}`;
}
