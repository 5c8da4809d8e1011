// The page of a training: how long it takes, how sure that is, and where the time goes.
import { useMemo, useState } from 'preact/hooks';
import { jsonOf, tableOf } from './data.js';
import { html, show, Part, Bars, Fact, Table, Copied, ThemeSwitch } from './parts.js';
import { Canvas, drawAxes, linear } from './canvas.js';
import { useTheme } from './theme.js';
import { amount, bytes, has, longTime, longUnit, number, percent, plain, roundStep, short, words } from './format.js';

const day = 86400;
const days = value => longTime(value * day);
const energy = joules => `${number(joules / 3.6e9)} MWh`;
const money = value => `$${number(value)}`;

// The main numbers: key of result.json, name, how it reads; those with a spread also have _p10 and _p90.
const main = [
  ['days', 'wall time', days], ['goodput', 'goodput', percent], ['gpu_hours', 'GPU-hours', number], ['cost', 'cost', money],
  ['energy_j', 'energy', energy], ['steady_days', 'of steps alone', days], ['steps', 'steps', number], ['tokens', 'tokens', amount],
  ['samples', 'samples', amount], ['tokens_per_day', 'tokens a day', amount], ['iteration_time_s', 'a step', longTime], ['mfu', 'MFU in steps', percent],
  ['mfu_all_in', 'MFU all in', percent], ['gpus', 'GPUs', number], ['nodes', 'nodes', number], ['failures', 'failures', number],
  ['nodes_lost', 'nodes lost', number], ['mtbf_s', 'between failures', longTime], ['recovery_s', 'a recovery', longTime],
];
const spread = (result, key, format) => has(result[`${key}_p10`]) && result[`${key}_p10`] !== result[`${key}_p90`]
  ? ` (P10 ${format(result[`${key}_p10`])}, P90 ${format(result[`${key}_p90`])})` : '';

function Summary({ result }) {
  if (!has(result.days)) return html`<p class="lead">No trial of ${number(result.trials)} finished: ${number(result.stopped)} ended for lack of spare
    nodes, ${number(result.stuck)} did not progress.</p>`;
  const also = [[has(result.cost), `costs ${has(result.cost) && money(result.cost)}${spread(result, 'cost', money)}`],
    [has(result.energy_j), `takes ${has(result.energy_j) && energy(result.energy_j)}${spread(result, 'energy_j', energy)}`]].filter(([one]) => one).map(([, text]) => text);
  return html`<p class="lead">${has(result.tokens) ? `${amount(result.tokens)} tokens` : `${amount(result.samples)} samples`} on ${number(result.gpus)} GPUs
      take <b>${days(result.days)}</b>${spread(result, 'days', days)} and ${number(result.gpu_hours)} GPU-hours${spread(result, 'gpu_hours', number)}.
      Its goodput, the time of the steps over the wall time, is ${percent(result.goodput)}${spread(result, 'goodput', percent)}.
      ${also.length > 0 && ` It ${also.join(' and ')}.`}</p>
    <dl class="facts">${main.filter(([key]) => has(result[key])).map(([key, name, format]) =>
      html`<${Fact} name=${name} text=${`${format(result[key])}${spread(result, key, format)}`} value=${result[key]} id=${key}/>`)}</dl>
    <p class="note">Means of ${number(result.finished)} trials that finished${result.stopped + result.stuck > 0
      ? `; ${number(result.stopped)} others ended for lack of spare nodes and ${number(result.stuck)} did not progress` : ''}, seed ${number(result.seed)}.</p>
    ${result.notes?.length > 0 && html`<h3>What to know before believing it</h3><ul>${result.notes.map(note => html`<li>${plain(note)}</li>`)}</ul>`}`;
}

function Shares({ result }) {
  const shares = Object.entries(result.time_shares ?? {}), wall = result.days * day, losses = shares.filter(([key, x]) => key !== 'steps' && x > 0);
  const row = ([key, x]) => ({ key, name: words(key), value: x * wall, text: longTime(x * wall) });
  const steps = result.time_shares?.steps ?? 0;
  return html`<div class="stack" role="img" aria-label="shares of the wall time"><div class="good" style=${{ width: `${100 * steps}%` }}>steps ${percent(steps)}</div>
      <div class="lost" style=${{ width: `${100 * (1 - steps)}%` }}>${steps < 0.85 && `lost ${percent(1 - steps)}`}</div></div>
    <p class="note">Steps take ${longTime(steps * wall)} (<data data-key="steps" value=${steps}>${percent(steps)}</data>) of the mean wall time; the rest:</p>
    ${losses.length > 0 ? html`<${Bars} id="losses" caption="Lost time by cause, mean of the trials" titles=${['cause', 'time']} whole=${wall}
      rows=${losses.sort((a, b) => b[1] - a[1]).map(row)}/>` : html`<p>Nothing is lost.</p>`}`;
}

const rounded = value => Number(value.toPrecision(6)).toString();
// An axis of wall time in s, in a unit that reads well.
function timeAxis(low, most) {
  const [, scale, unit] = longUnit(most), text = value => rounded(value / scale);
  return linear(low, most, 8, text, `wall time (${unit})`, (width, marks) => roundStep(width / scale, marks) * scale);
}

// How much is trained for good after how much wall time.
function Progress({ rows, what }) {
  const [shown, setShown] = useState(null), place = useMemo(() => ({}), []);
  const last = rows.at(-1), isSpread = last.p10 < last.p90;
  const draw = (context, width, high, colour) => {
    const { at, up, top, left } = Object.assign(place, drawAxes(context, width, high, colour, timeAxis(0, 1.02 * last.p90), linear(0, 1.02 * last.amount, 5, amount)));
    const line = (key, dash, stroke, wide) => {
      context.strokeStyle = stroke;
      context.lineWidth = wide;
      context.setLineDash(dash);
      context.beginPath();
      for (const row of rows) context.lineTo(at(row[key]), up(row.amount));
      context.stroke();
      context.setLineDash([]);
    };
    if (isSpread) {
      context.fillStyle = colour.link;
      context.globalAlpha = 0.3;
      context.beginPath();
      for (const row of rows) context.lineTo(at(row.p10), up(row.amount));
      for (const row of rows.toReversed()) context.lineTo(at(row.p90), up(row.amount));
      context.fill();
      context.globalAlpha = 1;
      line('p50', [], colour.link, 2);
    }
    line('uninterrupted', [7, 5], colour.ink, 1.5);
    if (shown) {
      context.fillStyle = colour.path;
      context.beginPath();
      context.arc(at(shown.p50), up(shown.amount), 4, 0, 7);
      context.fill();
    }
    const keys = [...isSpread ? [['P10 to P90 of the trials', 10, 0.3], ['median', 2, 1]] : [], ['without failures', 0, 1]];
    keys.forEach(([name, thick, alpha], i) => {
      const y = top + 14 + 18 * i;
      context.globalAlpha = alpha;
      context.fillStyle = colour.link;
      if (thick) context.fillRect(left + 12, y - 4 - thick / 2, 28, thick);
      context.globalAlpha = 1;
      if (!thick) { context.strokeStyle = colour.ink; context.lineWidth = 1.5; context.setLineDash([7, 5]); context.beginPath(); context.moveTo(left + 12, y - 4); context.lineTo(left + 40, y - 4); context.stroke(); context.setLineDash([]); }
      context.fillStyle = colour.ink;
      context.fillText(name, left + 48, y);
    });
  };
  const move = event => {
    const x = event.clientX - event.target.getBoundingClientRect().left;
    setShown(rows.reduce((best, row) => Math.abs(place.at(row.p50) - x) < Math.abs(place.at(best.p50) - x) ? row : best));
  };
  const said = row => `${amount(row.amount)} ${what}: ${longTime(row.p50)}${isSpread ? ` (P10 ${longTime(row.p10)}, P90 ${longTime(row.p90)})` : ''}; ${longTime(row.uninterrupted)} without failures`;
  return html`<p class="note"><output id="passed">${shown ? said(shown) : said(last)}</output></p>
    <${Canvas} draw=${draw} what=${[shown]} high=${330} label=${`${what} trained for good over wall time`} onPointerMove=${move} onPointerLeave=${() => setShown(null)}/>
    <details><summary>In numbers</summary><${Table} id="progress-table" caption=${`After how much wall time so many ${what} are trained for good`} rows=${rows} columns=${[
      [what, row => amount(row.amount), 'number'], ['without failures', row => longTime(row.uninterrupted), 'number'], ['P10', row => longTime(row.p10), 'number'],
      ['median', row => html`<data value=${row.p50}>${longTime(row.p50)}</data>`, 'number'], ['P90', row => longTime(row.p90), 'number']]}/></details>`;
}

// How many trials take how long.
function Trials({ walls, result }) {
  const low = walls.reduce((a, b) => Math.min(a, b)), high_ = walls.reduce((a, b) => Math.max(a, b)), bins = Math.min(40, Math.max(8, Math.round(Math.sqrt(walls.length))));
  const counts = Array(bins).fill(0);
  for (const wall of walls) counts[Math.min(Math.floor((wall - low) / (high_ - low) * bins), bins - 1)]++;
  const most = Math.max(...counts), quantiles = [['P10', result.days_p10], ['P50', result.days_p50], ['P90', result.days_p90]];
  const draw = (context, width, high, colour) => {
    const { at, up, top, bottom } = drawAxes(context, width, high, colour, timeAxis(low, high_), linear(0, 1.15 * most, 5, rounded));
    const wide = (high_ - low) / bins;
    context.fillStyle = colour.link;
    counts.forEach((count, i) => context.fillRect(at(low + i * wide) + 0.5, up(count), at(low + wide) - at(low) - 1, bottom - up(count)));
    context.fillStyle = colour.ink;
    context.textAlign = 'center';
    for (const [name, value] of quantiles) {
      context.fillStyle = colour.path;
      context.fillRect(at(value * day) - 1, top + 14, 2, bottom - top - 14);
      context.fillStyle = colour.ink;
      context.fillText(name, at(value * day), top + 8);
    }
    context.textAlign = 'left';
  };
  return html`<p class="note">${walls.length.toLocaleString('en')} trials, from ${longTime(low)} to ${longTime(high_)}; how many take how long. These are the luck of failures alone:
      how far off a step's time may be is a question of its own${has(result.expected_error_share) ? ` (6 of 10 published steps like these were within ${percent(result.expected_error_share)})` : ''}.</p>
    <${Canvas} draw=${draw} what=${[]} high=${260} label="trials by wall time"/>`;
}

function Checkpoints({ result }) {
  const { checkpoint, closed_form: form } = result;
  const facts = checkpoint ? [['checkpoints', has(checkpoint.count) && number(checkpoint.count)], ['bytes of one', has(checkpoint.bytes) && bytes(checkpoint.bytes)],
    ['stops the training for', has(checkpoint.stall_s) && longTime(checkpoint.stall_s)], ['is finished after', has(checkpoint.finished_s) && longTime(checkpoint.finished_s)],
    ['loading', has(checkpoint.load_s) && longTime(checkpoint.load_s)], ['between two', has(checkpoint.interval_s) && longTime(checkpoint.interval_s)]].filter(([, text]) => text) : [];
  const names = [['young', 'Young'], ['daly', 'Daly'], ['exact', 'exact optimum'], ['chosen', 'this training']].filter(([key]) => form?.[key]);
  return html`<dl class="facts">${facts.map(([name, text]) => html`<${Fact} name=${name} text=${text}/>`)}</dl>
    ${names.length > 0 && html`<${Table} id="optima" caption="Intervals by closed forms, with blocking checkpoints" rows=${names} columns=${[
      ['by', ([, name]) => name], ['interval', ([key]) => has(form[key].interval_s) ? longTime(form[key].interval_s) : '', 'number'],
      ['goodput', ([key]) => has(form[key].goodput) ? html`<data data-key=${key} value=${form[key].goodput}>${(100 * form[key].goodput).toFixed(2)} %</data>` : '', 'number']]}/>`}
    ${has(form?.goodput) && html`<p class="note">The goodput of this training by its closed form is ${(100 * form.goodput).toFixed(2)} %; simulated: ${(100 * result.goodput).toFixed(2)} %,
      standard error ${(100 * result.goodput_standard_error).toFixed(2)} %.</p>`}`;
}

function Reported({ result }) {
  const reported = result.scenario?.train?.reported, mine = key => has(result[key]) && typeof reported[key] === 'number';
  const sign = text => text.startsWith('-') ? text : `+${text}`, ratio = key => sign(percent(result[key] / reported[key] - 1));
  const rows = [['days', 'wall time', days, ratio], ['gpu_hours', 'GPU-hours', number, ratio],
    ['goodput', 'goodput', percent, key => `${sign((100 * (result[key] - reported[key])).toFixed(1))} points`]].filter(([key]) => mine(key));
  return html`<${Table} id="reported-table" caption=${plain(reported.source ?? '')} rows=${rows} columns=${[['', ([, name]) => name],
    ['reported', ([key, , format]) => format(reported[key]), 'number'], ['predicted', ([key, , format]) => format(result[key]), 'number'],
    ['predicted against reported', ([key, , , off]) => off(key), 'number']]}/>`;
}

function Events({ table }) {
  const count = table.time_s.length, rows = [...Array(Math.min(count, 500)).keys()];
  return html`<${Table} id="events-table" caption=${`What happens in trial 0${count > 500 ? `: the first 500 of ${count.toLocaleString('en')}` : ''}`} rows=${rows} columns=${[
    ['after', i => longTime(Number(table.time_s[i])), 'number'], ['', i => short(table.kind[i], 40)], ['node', i => Number(table.node[i]) < 0 ? '' : short(table.node[i], 12), 'number'],
    ['cause', i => short(table.cause[i], 60)], ['steps lost', i => Number(table.steps_lost[i]) ? number(Number(table.steps_lost[i])) : '', 'number']]}/>`;
}

function Phases({ table }) {
  const rows = [...table.phase.keys()], of = (key, format) => i => Number.isNaN(Number(table[key][i])) || table[key][i] === '' ? '' : format(Number(table[key][i]));
  return html`<${Table} id="phases-table" caption="Steps that are alike, in their order" rows=${rows} columns=${[['phase', of('phase', number), 'number'], ['ramp', i => Number(table.ramp[i]) ? 'yes' : ''],
    ['batch', of('batch', number), 'number'], ['sequence', of('sequence', number), 'number'], ['GPUs', of('gpus', number), 'number'], ['nodes', of('nodes', number), 'number'],
    ['steps', of('steps', number), 'number'], ['a step', of('step_s', longTime), 'number'], ['tokens', of('tokens', amount), 'number'], ['MFU', of('mfu', percent), 'number']]}/>`;
}

function Page({ head, result, parts }) {
  useTheme();
  const { what, rows } = useMemo(() => {
    const table = tableOf(parts.progress), what = ['tokens', 'samples', 'steps'].find(key => table[key].some(cell => cell !== '')) ?? 'steps';
    return { what, rows: table.steps.map((_, i) => ({ amount: Number(table[what][i]), uninterrupted: Number(table.uninterrupted_s[i]), p10: Number(table.p10_s[i]),
      p50: Number(table.p50_s[i]), p90: Number(table.p90_s[i]) })) };
  }, []);
  const trials = useMemo(() => tableOf(parts.trials), []), events = useMemo(() => tableOf(parts.events), []), phases = useMemo(() => tableOf(parts.phases), []);
  const walls = trials.wall_s.map(Number).filter((_, i) => trials.end[i] === 'finished');
  return html`
    <header><h1>${short(result.scenario?.name ?? head.input, 120)}</h1><${ThemeSwitch} first=${head.theme}/></header>
    <${Part} id="summary" title="Summary"><${Summary} result=${result}/><//>
    ${has(result.days) && html`<${Part} id="lost" title="Where the wall time goes"><${Shares} result=${result}/><//>`}
    ${rows.length > 1 && rows.at(-1).p90 > 0 && html`<${Part} id="progress" title="Progress"><${Progress} rows=${rows} what=${what}/><//>`}
    ${new Set(walls).size > 1 && html`<${Part} id="trials" title="How sure the wall time is"><${Trials} walls=${walls} result=${result}/><//>`}
    ${result.scenario?.train?.reported && html`<${Part} id="reported" title="Reported of a real training"><${Reported} result=${result}/><//>`}
    ${(result.checkpoint || result.closed_form) && html`<${Part} id="checkpoints" title="Checkpoints"><${Checkpoints} result=${result}/><//>`}
    <${Part} id="phases" title="Phases"><${Phases} table=${phases}/><//>
    ${events.time_s.length > 0 && html`<${Part} id="events" title="One trial" closed=${true}><${Events} table=${events}/><//>`}
    <${Part} id="scenario" title="Scenario" closed=${true}>
      <p class="note">Every default resolved. 'dtsim train' reads it as it stands.</p>
      <${Copied} id="scenario-text" text=${JSON.stringify(result.scenario ?? {}, null, 2)}/><//>
    <footer>dtsim ${short(result.version ?? '')}, training ${short(result.run_id ?? '')}, engine ${short(result.engine ?? '')}. The numbers are of a simulation.</footer>`;
}

show((parts, head) => {
  const result = jsonOf(parts.result);
  return { title: short(result.scenario?.name ?? 'dtsim', 60), page: html`<${Page} head=${head} result=${result} parts=${parts}/>` };
});
