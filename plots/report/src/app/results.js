// What the server says of one variant, or of two side by side with what differs.
import { useEffect, useState } from 'preact/hooks';
import { html, Part, Fact, Table, Breakdown, Swatch, Copied } from '../parts.js';
import { spansOf, jsonOf, partsOf } from '../data.js';
import { TimelineView } from '../timeline-view.js';
import { lookOf, memoryLook } from '../palette.js';
import { time, bytes, percent, number, plain, short, has, words } from '../format.js';
import { commandOf, flat } from './state.js';
import { inside } from './simulator.js';

const metrics = [
  ['iteration_time_s', 'iteration', time, true], ['tokens_per_s_per_gpu', 'tokens a second and GPU', number], ['mfu', 'MFU', percent],
  ['tokens_per_s', 'tokens a second', number], ['samples_per_s', 'samples a second', number], ['bubble_fraction', 'bubble', percent, true],
  ['exposed_communication_s', 'exposed communication', time, true], ['peak_memory_bytes', 'peak memory', bytes, true],
  ['memory_limit_bytes', 'memory of a GPU', bytes], ['gpus', 'GPUs', number, true],
];
const numbersOf = one => one?.answer?.numbers;
const isWhole = one => one?.answer?.exit_code === 0;

// The error that is expected of its time, in words.
const certainty = numbers => has(numbers.expected_error_share)
  ? `6 of 10 published runs like it were within ${percent(numbers.expected_error_share)} of the time that dtsim says`
  : 'how far off it may be is not known: no published run is like it';

function Memory({ numbers, name }) {
  const held = Object.entries(numbers.memory_breakdown_bytes ?? {}).filter(([, x]) => x > 0), peak = numbers.peak_memory_bytes, limit = numbers.memory_limit_bytes;
  const most = Math.max(peak, limit ?? 0);
  if (!(peak > 0)) return html`<p class="note">${name}The scenario says no memory.</p>`;
  return html`<div class="gauge" role="img" aria-label=${`${bytes(peak)}${has(limit) ? ` of ${bytes(limit)}` : ''}`}>
      <div class="stack">${held.map(([key, x]) => { const look = memoryLook(key); return html`<div style=${{ width: `${100 * x / most}%`, background: look.fill, color: look.ink }}
        title=${`${words(key)}: ${bytes(x)}`}>${x / most > 0.1 ? words(key) : ''}</div>`; })}</div>
      ${has(limit) && html`<div class="limit" style=${{ left: `${100 * limit / most}%` }}></div>`}</div>
    <p class="note">${name}${bytes(peak)}${has(limit) ? html` of ${bytes(limit)}${peak > limit ? html`: <b class="bad">${bytes(peak - limit)} too much</b>` : `, ${percent(peak / limit)}`}` : ''}${
      has(numbers.fits_probability) ? `; it fits with a probability of ${percent(numbers.fits_probability)}` : ''}</p>`;
}

// Why a variant has no numbers, and what would help.
export function Refused({ one, name, apply, variant }) {
  const { answer, failed, advice, offers } = one;
  if (failed) return html`<div class="refused" role="alert"><b>${name}No answer.</b> ${plain(failed)}.
    ${!inside && "If the server has ended, start 'dtsim app' again: --state and this page's state show the same again."}</div>`;
  if (!answer?.exit_code) return '';
  const rule = answer.errors[0].rule, errors = advice?.errors ?? answer.errors;
  const title = answer.exit_code === 5 ? `Not possible${rule ? `, by the rule '${rule}'` : ''}` : answer.exit_code === 7 ? 'Stopped' : answer.exit_code === 130 ? 'Cancelled' : 'There is a mistake';
  return html`<div class="refused" role="alert"><b>${name}${plain(title)}.</b>
    <ul>${errors.map(error => html`<li>${error.line && !error.file?.startsWith('--') && !error.file?.includes('/') ? `line ${error.line}, column ${error.column}: ` : ''}${plain(error.message)}</li>`)}</ul>
    ${answer.exit_code === 5 && rule === 'memory' && !advice && html`<p class="note">Looking for the change that makes it fit \u2026</p>`}
    ${inside && [1, 6, 7].includes(answer.exit_code) && html`<p>The program dtsim has no such limits: <code class="command">${commandOf(variant).replaceAll(' \\\n ', '')}</code></p>`}
    ${offers?.length > 0 && html`<p>Nearest changes that make it possible: ${offers.map((change, i) => html`<button class="offer" id=${`offer-${i}`} onClick=${() => apply(change)}>
      ${short(change.map(([path, value]) => `${path} = ${value}`).join(', '), 100)}</button> `)}</p>`}</div>`;
}

function Lead({ numbers }) {
  const parts = Object.entries(numbers.breakdown_s).filter(([, x]) => x > 0).sort((a, b) => b[1] - a[1]), whole = parts.reduce((sum, [, x]) => sum + x, 0);
  return html`<p class="lead">An iteration takes <b>${time(numbers.iteration_time_s)}</b>: ${short(numbers.setup, 300)}${numbers.model && numbers.model !== 'given' ? `, ${short(numbers.model)}` : ''}${
    numbers.gpu ? `, on ${short(numbers.gpu)}` : ''}. Most of it is ${parts.slice(0, 3).map(([key, x]) => `${words(key)} (${percent(x / whole)})`).join(', ')}.
    <span class="soft"> ${certainty(numbers)[0].toUpperCase() + certainty(numbers).slice(1)}.</span></p>`;
}

function Facts({ numbers }) {
  return html`<dl class="facts">${metrics.filter(([key]) => has(numbers[key])).map(([key, name, format]) =>
    html`<${Fact} name=${name} text=${format(numbers[key])} value=${numbers[key]} id=${key}/>`)}</dl>`;
}

const share = (a, b) => a > 0 && a !== b ? `${b >= a ? '+' : '\u2212'}${percent(Math.abs(b - a) / a)}` : '';

// Two variants, number by number.
function Both({ a, b }) {
  const A = numbersOf(a), B = numbersOf(b), rows = metrics.filter(([key]) => has(A?.[key]) || has(B?.[key]));
  return html`<${Table} id="both" caption="Both variants" rows=${rows} columns=${[['', ([, name]) => name],
    ...[['A', A, 'a'], ['B', B, 'b']].map(([title, of, id]) => [title, ([key, , format]) => has(of?.[key]) ? html`<data data-key=${`${id}.${key}`} value=${of[key]}>${format(of[key])}</data>` : '\u2013', 'number']),
    ['B against A', ([key]) => has(A?.[key]) && has(B?.[key]) ? share(A[key], B[key]) : '', 'number']]}/>`;
}

// Where the difference of both comes from, and what was set differently.
function Difference({ a, b }) {
  const A = numbersOf(a), B = numbersOf(b), by = B.iteration_time_s - A.iteration_time_s;
  const kinds = Object.keys(A.breakdown_s).map(key => [key, A.breakdown_s[key], B.breakdown_s[key] ?? 0]).filter(([, x, y]) => Math.abs(y - x) > 1e-9 * A.iteration_time_s)
    .sort((x, y) => Math.abs(y[2] - y[1]) - Math.abs(x[2] - x[1]));
  const [from, to] = [flat(A.scenario), flat(B.scenario)];
  const keys = [...new Set([...from.keys(), ...to.keys()])].filter(key => from.get(key) !== to.get(key));
  const [first] = kinds;
  return html`<p class="lead" id="difference"><b>${by === 0 ? 'B takes as long as A' : `B takes ${percent(Math.abs(by) / A.iteration_time_s)} ${by < 0 ? 'less' : 'more'} time an iteration than A`}</b>${
      by !== 0 && first ? `, most of it by ${words(first[0])}: ${time(first[1])} in A, ${time(first[2])} in B` : ''}.
      ${by !== 0 && (b.answer.ties ? html`<b> That is less than the error of the ratio of two such predictions: they cannot be told apart.</b>`
        : has(B.expected_ratio_error_share) ? ` 6 of 10 such ratios are within ${percent(B.expected_ratio_error_share)}.` : '')}</p>
    <${Table} id="difference-table" caption="The average rank's time, by what it does" rows=${kinds} columns=${[
      ['', ([key]) => html`<${Swatch} look=${lookOf(key)}/>`], ['part', ([key]) => words(key)], ['A', ([, x]) => time(x), 'number'], ['B', ([, , y]) => time(y), 'number'],
      ['B less A', ([key, x, y]) => html`<data data-key=${key} value=${y - x}>${y < x ? '\u2212' : '+'}${time(Math.abs(y - x))}</data>`, 'number']]}/>
    <${Table} id="keys-table" caption="Values that differ, with every default" rows=${keys.slice(0, 60)} columns=${[
      ['value', key => short(key)], ['A', key => short(from.get(key) ?? '\u2013', 60)], ['B', key => short(to.get(key) ?? '\u2013', 60)]]}/>`;
}

function WhereTime({ numbers, id }) {
  const shown = Object.entries(numbers.breakdown_s).filter(([, x]) => x > 0), whole = shown.reduce((sum, [, x]) => sum + x, 0);
  return html`<${Breakdown} parts=${shown}/><${Table} id=${id} caption="The average rank's time in the iteration" rows=${shown} columns=${[
    ['', ([key]) => html`<${Swatch} look=${lookOf(key)}/>`], ['part', ([key]) => words(key)],
    ['time', ([key, x]) => html`<data data-key=${key} value=${x}>${time(x)}</data>`, 'number'], ['share', ([, x]) => percent(whole ? x / whole : 0), 'number']]}/>`;
}

// The timeline is made when it comes: a later one is another.
let drawn = 0;
function Drawn({ packed }) {
  const state = useParts(packed);
  if (state?.failed) return html`<p class="note">The timeline cannot be shown: ${plain(state.failed)}</p>`;
  return state ? html`<${TimelineView} key=${state.key} spans=${state.spans} head=${state.head} pieces=${state.pieces}/>` : html`<p class="note">The timeline is being read \u2026</p>`;
}
function useParts(packed) {
  const [state, setState] = useState(null);
  useEffect(() => {
    let wanted = true;
    partsOf(packed).then(parts => {
      const head = jsonOf(parts.page), spans = spansOf(parts, head);
      if (!wanted) return;
      window.dtsimReport = { spans, head };
      setState({ spans, head, pieces: {}, key: ++drawn });
    }).catch(error => wanted && setState({ failed: error.message }));
    return () => { wanted = false; };
  }, [packed]);
  return state;
}

export function Results({ a, b, variants, shown, apply, fragment }) {
  const one = shown === 'b' && b ? b : a, numbers = numbersOf(one), variant = shown === 'b' && b ? variants.b : variants.a;
  const name = b ? `${shown === 'b' ? 'B' : 'A'}: ` : '', whole = isWhole(one), two = b && isWhole(a) && isWhole(b);
  const notes = numbers?.notes ?? [];
  return html`<section class=${`results${one.busy ? ' busy' : ''}`} aria-label="result" aria-busy=${!!one.busy}>
    <${Refused} one=${a} name=${b ? 'A: ' : ''} apply=${change => apply('a', change)} variant=${variants.a}/>
    ${b && html`<${Refused} one=${b} name="B: " apply=${change => apply('b', change)} variant=${variants.b}/>`}
    ${two && html`<${Part} id="difference-part" title="What differs"><${Difference} a=${a} b=${b}/><//>`}
    ${(whole || (b && (numbersOf(a) || numbersOf(b)))) && html`<${Part} id="result" title="Result">
      ${whole && html`<${Lead} numbers=${numbers}/>`}
      ${b ? html`<${Both} a=${a} b=${b}/>` : html`<${Facts} numbers=${numbers}/>`}<//>`}
    ${numbers && html`<${Part} id="memory" title="Memory of the fullest GPU">${b
      ? [['A: ', a], ['B: ', b]].map(([title, of]) => numbersOf(of) && html`<${Memory} numbers=${numbersOf(of)} name=${title}/>`)
      : html`<${Memory} numbers=${numbers} name=""/>`}<//>`}
    ${whole && html`<${Part} id="breakdown" title=${`${name}Where the time goes`}><${WhereTime} numbers=${numbers} id="breakdown-table"/><//>`}
    ${whole && html`<${Part} id="timeline-part" title=${`${name}Timeline`}>${one.timeline?.timeline ? html`<${Drawn} packed=${one.timeline.timeline}/>`
      : html`<p class="note">${one.timeline?.errors ? plain(one.timeline.errors[0].message) : 'The timeline is being made \u2026'}</p>`}<//>`}
    ${notes.length > 0 && html`<${Part} id="notes" title=${`${name}What to know before believing it`}><ul>${notes.map(note => html`<li>${plain(note)}</li>`)}</ul><//>`}
    <${Part} id="take" title=${`${name}Take it along`} closed=${true}>
      ${one.answer?.yaml && html`<h3>The scenario</h3><${Copied} id="yaml" text=${one.answer.yaml}/>`}
      <h3>The command line</h3>${variant.text !== null && html`<p class="note">It reads the file that was dropped.</p>`}<${Copied} id="command" text=${commandOf(variant)}/>
      <h3>The state of this page</h3><p class="note">${inside ? 'Behind the address of this page' : "'dtsim app'"} it shows the same, for you or for somebody else.</p>
      <${Copied} id="state" text=${inside ? fragment : `dtsim app --state '${fragment}'`}/><//>
  </section>`;
}
