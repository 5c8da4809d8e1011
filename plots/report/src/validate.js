// The page of 'dtsim validate --json': predicted against measured, by table and by software.
import { useMemo, useState } from 'preact/hooks';
import { jsonOf } from './data.js';
import { html, show, Part, Table, ThemeSwitch } from './parts.js';
import { Canvas, drawAxes, logarithmic } from './canvas.js';
import { useTheme } from './theme.js';
import { percent, number, plain, short, words } from './format.js';

// The rows that have a prediction of the first thing that their table measures: {table, id, key, measured, predicted, error, software}.
function rowsOf(tables) {
  return tables.flatMap(table => table.rows.flatMap(row => {
    const key = Object.keys(row.measured ?? {}).find(one => [row.error, row.predicted, row.measured].every(values => typeof values?.[one] === 'number'));
    return key === undefined ? [] : [{ table: table.name, id: row.id, key, measured: row.measured[key], predicted: row.predicted[key],
      error: row.error[key], software: row.software ?? 'not known' }];
  }));
}
// Rows by what `of` gives: how many, the mean of absolute errors, of errors, and the largest.
function groupsOf(rows, of) {
  const groups = new Map();
  for (const row of rows) groups.set(of(row), [...groups.get(of(row)) ?? [], row]);
  return [...groups].map(([name, all]) => ({ name, count: all.length, mean: all.reduce((sum, row) => sum + Math.abs(row.error), 0) / all.length,
    bias: all.reduce((sum, row) => sum + row.error, 0) / all.length,
    worst: all.reduce((worst, row) => Math.abs(row.error) > Math.abs(worst.error) ? row : worst) }));
}
const signed = share => `${share > 0 ? '+' : ''}${percent(share)}`;

function Scatter({ rows, key_, shown }) {
  const points = rows.filter(row => row.key === key_ && row.measured > 0 && row.predicted > 0);
  const draw = (context, width, high, colour) => {
    const values = points.flatMap(row => [row.measured, row.predicted]), low = 0.9 * Math.min(...values), most = 1.1 * Math.max(...values);
    const { at, up } = drawAxes(context, width, high, colour, logarithmic(low, most, number, 'measured'), logarithmic(low, most, number, 'predicted'));
    const line = (factor, dash) => {
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(at(low), up(low * factor));
      context.lineTo(at(most), up(most * factor));
      context.stroke();
    };
    context.strokeStyle = colour.soft;
    line(1, []); line(1.1, [4, 4]); line(1 / 1.1, [4, 4]);
    context.setLineDash([]);
    for (const row of points) {
      context.fillStyle = shown && (row.table === shown || row.software === shown) ? colour.path : colour.link;
      context.globalAlpha = 0.75;
      context.beginPath();
      context.arc(at(row.measured), up(row.predicted), 3.5, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  };
  return html`<${Canvas} draw=${draw} what=${[key_, shown]} high=${420} label="predicted against measured"/>`;
}

function Page({ head, tables }) {
  useTheme();
  const rows = useMemo(() => rowsOf(tables), []), keys = [...new Set(rows.map(row => row.key))];
  const [key, setKey] = useState(keys[0]), [shown, setShown] = useState('');
  const groups = (title, of, id) => html`<${Table} id=${id} caption="The error is predicted over measured less 1, of a rate that of the time behind it: positive is too slow; of a share it is the difference"
    rows=${groupsOf(rows, of)} columns=${[
      [title, one => html`<button class="small" aria-pressed=${shown === one.name} onClick=${() => setShown(shown === one.name ? '' : one.name)}>${short(one.name, 60)}</button>`],
      ['rows', one => one.count, 'number'], ['mean of absolute errors', one => html`<data data-key=${one.name} value=${one.mean}>${percent(one.mean)}</data>`, 'number'],
      ['mean error', one => signed(one.bias), 'number'], ['largest', one => signed(one.worst.error), 'number'], ['of', one => short(one.worst.id, 40)]]}/>`;
  const failed = tables.reduce((sum, table) => sum + table.failed, 0), missed = tables.flatMap(table => Object.entries(table.bars ?? {})
    .filter(([, bar]) => bar && bar.passed === false).map(([name]) => `${table.name}: ${name}`));
  return html`<header><h1>Predicted against measured</h1><${ThemeSwitch} first=${head.theme}/></header>
    <${Part} id="summary" title="Summary"><p class="lead">${rows.length} rows of ${tables.length} published table${tables.length > 1 ? 's' : ''};
      ${` the mean of absolute errors is ${percent(rows.reduce((sum, row) => sum + Math.abs(row.error), 0) / Math.max(rows.length, 1))}`}, each row as its table configures it.
      ${failed > 0 && ` ${failed} rows could not be simulated.`} ${missed.length > 0 && ` Bars that are missed: ${plain(missed.join(', '))}.`}</p><//>
    ${rows.length > 0 && html`<${Part} id="scatter" title="Predicted against measured"><div class="tools"><label>of <select value=${key} onChange=${event => setKey(event.target.value)}>
      ${keys.map(one => html`<option value=${one}>${words(one)}</option>`)}</select></label></div>
      <p class="note">On the line a prediction is right; the dashed lines are 10 % off. What is chosen in a table below is marked.</p>
      <${Scatter} rows=${rows} key_=${key} shown=${shown}/><//>`}
    <${Part} id="tables" title="By table">${groups('table', row => row.table, 'by-table')}<//>
    <${Part} id="software" title="By software">${groups('software', row => row.software, 'by-software')}<//>
    ${shown && html`<${Part} id="rows" title=${`Rows of ${short(shown, 60)}`}><${Table} caption="" rows=${rows.filter(row => row.table === shown || row.software === shown)} columns=${[
      ['table', row => short(row.table, 50)], ['row', row => short(row.id, 50)], ['', row => words(row.key)], ['measured', row => number(row.measured), 'number'],
      ['predicted', row => number(row.predicted), 'number'], ['error', row => signed(row.error), 'number']]}/>
      ${tables.filter(table => table.name === shown).map(table => html`<p class="note">${plain(table.source)}</p>`)}<//>`}
    <footer>dtsim. Predictions are of a simulation.</footer>`;
}

show((parts, head) => ({ title: 'Predicted against measured', page: html`<${Page} head=${head} tables=${jsonOf(parts.validation)}/>` }));
