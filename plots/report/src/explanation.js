// Why ranks wait, the critical path, and what would gain how much: what 'dtsim explain --json' says.
import { useState } from 'preact/hooks';
import { html, Table, Swatch } from './parts.js';
import { lookOf } from './palette.js';
import { time, percent, short, words } from './format.js';

const set = change => change.set.map(one => `--set '${one}'`).join(' ');

export function CriticalPath({ explanation }) {
  const kinds = Object.entries(explanation.critical_path.kinds_s), whole = kinds.reduce((sum, [, x]) => sum + x, 0);
  return html`<p class="note">${explanation.critical_path.pieces.length.toLocaleString('en')} pieces that follow each other from the first
      operation of the iteration to its last; operations that are not among them can take longer. The timeline underlines them.</p>
    <${Table} id="critical-table" caption="The critical path" rows=${kinds.filter(([, x]) => x > 0)} columns=${[
      ['', ([key]) => html`<${Swatch} look=${lookOf(key)}/>`], ['part', ([key]) => words(key)],
      ['time', ([key, x]) => html`<data data-key=${key} value=${x}>${time(x)}</data>`, 'number'],
      ['share', ([, x]) => percent(whole ? x / whole : 0), 'number']]}/>`;
}

export function Waits({ explanation }) {
  const ranks = [...new Set(explanation.idle.map(one => one.rank))], [rank, setRank] = useState(ranks[0] ?? 0);
  const all = one => one.bubble_s + one.exposed_s;
  return html`<label>rank <select value=${rank} onChange=${event => setRank(Number(event.target.value))}>
      ${ranks.map(one => html`<option value=${one}>${one}</option>`)}</select></label>
    <${Table} id="waits-table" caption="For what the rank waits" rows=${explanation.idle.filter(one => one.rank === rank).sort((a, b) => all(b) - all(a))}
      columns=${[['for', one => words(one.for) + (one.of_rank === null ? '' : ` of rank ${one.of_rank}`)],
        ['in all', one => time(all(one)), 'number'], ['while the other computes', one => time(one.bubble_s), 'number'],
        ['while bytes are on the way', one => time(one.exposed_s), 'number']]}/>`;
}

export function WhatIf({ explanation }) {
  const whole = explanation.iteration_time_s;
  return html`<p class="note">Each alone, simulated. Behind it the change of the scenario that comes nearest to it.</p>
    <${Table} id="what-if-table" caption="What would gain how much" rows=${explanation.what_if} columns=${[
      ['if', one => words(one.what_if)],
      ['iteration', one => html`<data data-key=${one.what_if} value=${one.iteration_time_s}>${time(one.iteration_time_s)}</data>`, 'number'],
      ['change', one => percent((one.iteration_time_s - whole) / whole), 'number'],
      ['nearest', one => one.change ? html`<code>${short(set(one.change), 200)}</code>` : ''],
      ['with it', one => one.change ? `${time(one.change.iteration_time_s)}${one.change.fits === false ? ', does not fit' : ''}` : '', 'number']]}/>`;
}

// The pieces of the critical path by rank and lane: {"0 compute": [[from, to], ...]} in ns.
export function piecesOf(explanation) {
  const pieces = {};
  for (const piece of explanation?.critical_path.pieces ?? [])
    (pieces[`${piece.rank} ${piece.lane}`] ??= []).push([piece.from_s * 1e9, piece.to_s * 1e9]);
  return pieces;
}
