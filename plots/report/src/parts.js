// Pieces that several views use.
import { h, render } from 'preact';
import { useRef, useEffect, useState } from 'preact/hooks';
import htm from 'htm';
import { readParts, jsonOf } from './data.js';
import { lookOf, tileOf } from './palette.js';
import { percent, plain, time, words } from './format.js';

export const html = htm.bind(h);

// A patch of colour and pattern.
export function Swatch({ look }) {
  const canvas = useRef();
  useEffect(() => {
    const context = canvas.current.getContext('2d');
    context.fillStyle = context.createPattern(tileOf(look), 'repeat');
    context.fillRect(0, 0, 16, 16);
  }, [look.fill, look.pattern]);
  return html`<canvas class="swatch" width="16" height="16" ref=${canvas} aria-hidden="true"></canvas>`;
}

export const Fact = ({ name, text, value, id }) => html`<div><dt>${name}</dt><dd>${value === undefined ? text
  : html`<data id=${id} value=${value}>${text}</data>`}</dd></div>`;

// A part of the page, which a person can close.
export const Part = ({ title, id, closed, children }) => html`
  <details id=${id} class="part" open=${!closed}><summary><h2>${title}</h2></summary>${children}</details>`;

// A table: columns are [title, text of a row, "number" or none]; `chosen(row)`: whether a row is marked.
export const Table = ({ caption, columns, rows, id, chosen }) => html`<div class="wide"><table id=${id}><caption>${caption}</caption>
  <thead><tr>${columns.map(([title, , kind]) => html`<th scope="col" class=${kind}>${title}</th>`)}</tr></thead>
  <tbody>${rows.map(row => html`<tr class=${chosen?.(row) ? 'chosen' : ''}>${columns.map(([, of, kind]) => html`<td class=${kind}>${of(row)}</td>`)}</tr>`)}</tbody></table></div>`;

// Numbers that are parts of one whole, with a bar each, as long as its number: {key, name, value, text, note}.
export function Bars({ caption, rows, id, titles, whole }) {
  const most = Math.max(...rows.map(row => row.value), 0);
  return html`<${Table} id=${id} caption=${caption} rows=${rows} columns=${[
    [titles[0], row => row.name], [titles[1], row => html`<data data-key=${row.key} value=${row.value}>${row.text}</data>`, 'number'],
    ['share', row => percent(whole ? row.value / whole : 0), 'number'],
    ['', row => html`<div class="bar" style=${{ width: `${most ? 220 * row.value / most : 0}px` }} aria-hidden="true"></div>`],
    ...(rows.some(row => row.note) ? [['', row => row.note]] : [])]}/>`;
}

// Where the average rank's time went, as one bar: [key, s] each.
export function Breakdown({ parts }) {
  const whole = parts.reduce((sum, [, x]) => sum + x, 0);
  return html`<div class="stack" role="img" aria-label="shares of the average rank's time">${parts.map(([key, x]) => html`
    <div style=${{ width: `${100 * x / whole}%`, background: lookOf(key).fill, color: lookOf(key).ink }} title=${`${words(key)}: ${time(x)}`}>
      ${x / whole > 0.08 ? words(key) : ''}</div>`)}</div>`;
}

// Text that can be copied.
export function Copied({ text, id }) {
  const [said, setSaid] = useState('');
  const pre = useRef();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('copied');
    } catch {
      getSelection().selectAllChildren(pre.current);
      setSaid('selected: copy it by ctrl+C');
    }
  };
  return html`<div class="copied"><button onClick=${copy}>copy</button> <span role="status">${said}</span>
    <pre id=${id} ref=${pre} tabindex="0">${plain(text).replaceAll('\\u000a', '\n')}</pre></div>`;
}

// The theme: as the system has it, or as a person chooses.
export function ThemeSwitch({ first }) {
  const [theme, setTheme] = useState(first ?? '');
  useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
  return html`<label class="theme">theme <select id="theme" value=${theme} onChange=${event => setTheme(event.target.value)}>
    <option value="">of the system</option><option value="light">light</option><option value="dark">dark</option></select></label>`;
}

// Reads the data of the page and shows what `view(parts, head)` makes of them: {title, page, whole: the title says all}.
export async function show(view) {
  const place = document.getElementById('page'), root = document.documentElement;
  try {
    const parts = await readParts(), head = jsonOf(parts.page), { title, page, whole } = view(parts, head);
    if (head.theme) root.dataset.theme = head.theme;
    document.title = whole ? title : `${title} - dtsim report`;
    place.replaceChildren();
    render(page, place);
    root.dataset.opened = Math.round(performance.now());
  } catch (error) {
    place.textContent = `The report cannot be shown: ${error.message}`;
    throw error;
  }
}
