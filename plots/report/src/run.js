// The page of a run.
import { useMemo, useState } from 'preact/hooks';
import { jsonOf, tableOf, spansOf } from './data.js';
import { html, show, Part, Fact, Table, Breakdown, Copied, ThemeSwitch, Swatch } from './parts.js';
import { TimelineView } from './timeline-view.js';
import { CriticalPath, Waits, WhatIf, piecesOf } from './explanation.js';
import { Stacked } from './charts.js';
import { lookOf, memoryLook } from './palette.js';
import { useTheme } from './theme.js';
import { time, bytes, percent, number, plain, short, has, words } from './format.js';

// The main numbers: key of result.json, name, how it reads.
const main = [
  ['iteration_time_s', 'iteration', time], ['samples_per_s', 'samples a second', number], ['tokens_per_s', 'tokens a second', number],
  ['tokens_per_s_per_gpu', 'tokens a second and GPU', number], ['model_tflops_per_gpu', 'model TFLOP/s a GPU', number],
  ['mfu', 'model FLOP utilization', percent], ['hfu', 'hardware FLOP utilization', percent],
  ['bubble_fraction', 'bubble', percent], ['utilization', 'time that computes', percent],
  ['exposed_communication_s', 'exposed communication', time], ['peak_memory_bytes', 'peak memory', bytes],
  ['memory_limit_bytes', 'memory of a GPU', bytes], ['gpus', 'GPUs', number],
];

function Summary({ result }) {
  const whole = Object.values(result.breakdown_s ?? {}).reduce((sum, x) => sum + x, 0);
  const largest = Object.entries(result.breakdown_s ?? {}).filter(([, x]) => x > 0).sort((a, b) => b[1] - a[1]).slice(0, 3);
  return html`
    <p class="lead">${short(result.setup ?? '', 300)}${result.model && result.model !== 'given' ? `, ${short(result.model)}` : ''}${result.gpu ? `, on ${short(result.gpu)}` : ''}.
      An iteration takes <b>${time(result.iteration_time_s)}</b>${has(result.expected_error_share)
        ? ` (6 of 10 published runs like this one were within ${percent(result.expected_error_share)})` : ''}.
      Most of the average rank's time goes to ${largest.map(([key, x], i) =>
        `${i ? i === largest.length - 1 ? ' and ' : ', ' : ''}${words(key)} (${percent(x / whole)})`).join('')}.</p>
    <dl class="facts">${main.filter(([key]) => has(result[key])).map(([key, name, format]) =>
      html`<${Fact} name=${name} text=${format(result[key])} value=${result[key]} id=${key}/>`)}</dl>
    ${result.notes?.length > 0 && html`<h3>What to know before believing it</h3><ul>${result.notes.map(note => html`<li>${plain(note)}</li>`)}</ul>`}`;
}

function WhereTime({ result }) {
  const shown = Object.entries(result.breakdown_s ?? {}).filter(([, x]) => x > 0), whole = shown.reduce((sum, [, x]) => sum + x, 0);
  return html`<${Breakdown} parts=${shown}/>
    <${Table} id="breakdown-table" caption="The average rank's time in the iteration" rows=${shown} columns=${[
      ['', ([key]) => html`<${Swatch} look=${lookOf(key)}/>`], ['part', ([key]) => words(key)],
      ['time', ([key, x]) => html`<data data-key=${key} value=${x}>${time(x)}</data>`, 'number'],
      ['share', ([, x]) => percent(whole ? x / whole : 0), 'number']]}/>`;
}

function Utilization({ table }) {
  const { at, series } = useMemo(() => {
    const keys = Object.keys(table).filter(key => key !== 't0' && key !== 't1'), count = table.t0.length;
    const column = key => [...table[key].map(Number), Number(table[key][count - 1])];
    return { at: [...table.t0.map(Number), Number(table.t1[count - 1])],
      series: keys.map(key => ({ name: words(key), look: () => lookOf(key), values: column(key) })).filter(one => one.values.some(x => x > 0)) };
  }, [table]);
  return html`<p class="note">What the compute lanes of all ranks do, as a share of their time, in one window of utilization.tsv after the other.</p>
    <${Stacked} id="utilization-chart" at=${at} series=${series} value=${percent} label="utilization over time"/>`;
}

// Changes of one rank as columns: the bytes of each kind after each change of time.
function heldBy(table, rank, kinds, until) {
  const at = [], values = kinds.map(() => []), now = kinds.map(() => 0);
  const push = (seconds) => { at.push(seconds); now.forEach((x, kind) => values[kind].push(x)); };
  for (let i = 0; i < table.rank.length; i++) {
    if (Number(table.rank[i]) !== rank) continue;
    const seconds = Number(table.ns[i]) * 1e-9;
    now[table.kind[i]] = Number(table.bytes[i]);
    if (at.length && at[at.length - 1] === seconds) now.forEach((x, kind) => { values[kind][at.length - 1] = x; });
    else push(seconds);
  }
  push(Math.max(until, at[at.length - 1] ?? 0));
  return { at, series: kinds.map((name, kind) => ({ name, look: () => memoryLook(name), values: values[kind] })).filter(one => one.values.some(x => x > 0)) };
}

function Memory({ table, head, result }) {
  const [first, fullest, last] = head.memory_ranks, [rank, setRank] = useState(fullest);
  const { at, series } = useMemo(() => heldBy(table, rank, head.memory_kinds, result.makespan_s), [rank]);
  const choices = [...new Map([[fullest, 'the fullest'], [first, 'the first'], [last, 'the last']].reverse()).entries()].reverse();
  const limit = has(result.memory_limit_bytes) ? { name: 'memory of a GPU', value: result.memory_limit_bytes } : undefined;
  return html`<label>rank <select id="memory-rank" value=${rank} onChange=${event => setRank(Number(event.target.value))}>
      ${choices.map(([one, name]) => html`<option value=${one}>${one}, ${name}</option>`)}</select></label>
    <${Stacked} id="memory-chart" at=${at} series=${series} value=${bytes} steps=${Array.from({ length: 60 }, (_, i) => 2 ** i)} limit=${limit} label="memory of a rank over time"/>
    <${Table} caption="The fullest GPU at its peak" rows=${Object.entries(result.memory_breakdown_bytes ?? {}).filter(([, x]) => x)} columns=${[
      ['kind', ([key]) => words(key)], ['bytes', ([, x]) => html`<data value=${x}>${bytes(x)}</data>`, 'number']]}/>`;
}

function Links({ table, result }) {
  const [wanted, setWanted] = useState('');
  const order = useMemo(() => table.busy.map((busy, i) => [Number(busy), i]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).map(([, i]) => i), [table]);
  const found = order.filter(i => !wanted || table.link[i].includes(wanted) || table.class[i].includes(wanted));
  return html`
    <${Table} id="link-classes" caption="What crosses links, by class, in the iteration" rows=${Object.entries(result.link_bytes ?? {})} columns=${[
      ['class', ([key]) => words(key)], ['payload', ([, x]) => html`<data value=${x.payload_bytes}>${bytes(x.payload_bytes)}</data>`, 'number'],
      ['on the wire', ([, x]) => html`<data value=${x.wire_bytes}>${bytes(x.wire_bytes)}</data>`, 'number']]}/>
    ${order.length > 0 && html`<div class="tools"><label>links <input id="link-filter" type="search" placeholder="name or class" value=${wanted}
        onInput=${event => setWanted(event.target.value)}/></label> <span role="status">${found.length.toLocaleString('en')} of ${order.length.toLocaleString('en')}</span></div>
      <${Table} id="links-table" caption=${`The busiest${found.length > 50 ? ' 50' : ''}`} rows=${found.slice(0, 50)} columns=${[
        ['link', i => short(table.link[i])], ['class', i => short(table.class[i])],
        ['payload', i => html`<data value=${table.payload_bytes[i]}>${bytes(Number(table.payload_bytes[i]))}</data>`, 'number'],
        ['on the wire', i => bytes(Number(table.wire_bytes[i])), 'number'], ['busy', i => percent(Number(table.busy[i])), 'number'],
        ['stands for', i => table.replicas[i], 'number']]}/>`}`;
}

function Page({ head, result, parts, spans, explanation }) {
  useTheme();
  const use = useMemo(() => tableOf(parts.utilization), []), links = useMemo(() => tableOf(parts.links), []);
  const pieces = useMemo(() => piecesOf(explanation), []);
  const memory = useMemo(() => parts.memory && tableOf(parts.memory), []);
  return html`
    <header><h1>${short(result.scenario?.name ?? head.input, 120)}</h1><${ThemeSwitch} first=${head.theme}/></header>
    <${Part} id="summary" title="Summary"><${Summary} result=${result}/><//>
    <${Part} id="breakdown" title="Where the time goes"><${WhereTime} result=${result}/><//>
    <${Part} id="timeline-part" title="Timeline">
      <p class="note">${spans.count.toLocaleString('en')} spans of ${new Set(spans.rows.map(row => row.rank)).size} ranks. A rank is a pipeline
        rank of a replica, whose tensor group acts as one${head.replicas > 1 ? `; each row stands for ${head.replicas} replicas that do the same` : ''}.</p>
      <${TimelineView} spans=${spans} head=${head} pieces=${pieces}/><//>
    ${explanation && html`<${Part} id="critical-path" title="Critical path"><${CriticalPath} explanation=${explanation}/><//>
      <${Part} id="waits" title="Why ranks wait"><${Waits} explanation=${explanation}/><//>
      ${explanation.what_if?.length > 0 && html`<${Part} id="what-if" title="What if"><${WhatIf} explanation=${explanation}/><//>`}`}
    ${use.t0.length > 0 && html`<${Part} id="utilization-part" title="Utilization"><${Utilization} table=${use}/><//>`}
    ${memory && html`<${Part} id="memory" title="Memory"><${Memory} table=${memory} head=${head} result=${result}/><//>`}
    <${Part} id="links" title="Links"><${Links} table=${links} result=${result}/><//>
    <${Part} id="scenario" title="Scenario" closed=${true}>
      <p class="note">Every default resolved. 'dtsim run' reads it as it stands.</p>
      <${Copied} id="scenario-text" text=${JSON.stringify(result.scenario ?? {}, null, 2)}/><//>
    <footer>dtsim ${short(result.version ?? '')}, run ${short(result.run_id ?? '')}, engine ${short(result.engine ?? '')}. The numbers are of a
      simulation.</footer>`;
}

show((parts, head) => {
  const result = jsonOf(parts.result), explanation = jsonOf(parts.explanation), spans = spansOf(parts, head);
  window.dtsimReport = { spans, head };          // for tests, and for who looks into it by the console
  return { title: short(result.scenario?.name ?? 'dtsim', 60),
    page: html`<${Page} head=${head} result=${result} parts=${parts} spans=${spans} explanation=${explanation}/>` };
});
