// What a person has chosen: two variants of scenarios, and how the address holds them. A variant is a scenario of the
// tour, or text that was dropped, and changes of it: {tour, text, file, set: [[path, value], ...]}; values are texts.
import { lessons, stepOf } from './lesson.js';

let known = null;
export function learn(all) { known = all; }
export const about = () => known;

export const first = () => ({ tour: known.tour.find(one => one.name === '06-3d')?.name ?? known.tour[0]?.name, text: null, file: null, set: [] });

// The schema of a value, which may be of several kinds.
const kinds = schema => !schema ? [] : schema.anyOf ? schema.anyOf.flatMap(kinds) : [schema];
const inside = (schema, key) => {
  for (const one of kinds(schema)) {
    if (one.properties && Object.hasOwn(one.properties, key)) return one.properties[key];
    if (one.items && /^\d+$/.test(key)) return one.items;
  }
  return undefined;
};
const schemaOf = path => path.split('.').reduce(inside, known.schema);

// What a field may hold: {brief, choices: [{name, title}] or none, kind: 'integer' | 'boolean' | 'text', least, most}.
export function fieldOf(path) {
  const schema = schemaOf(path), all = kinds(schema), brief = schema?.description ?? '';
  const inner = all.flatMap(one => one.type === 'array' ? kinds(one.items) : [one]);
  const folder = all.map(one => one['x-files']).find(Boolean);
  const lines = brief.split('\n').slice(1).map(line => line.split(/: (.*)/));
  let choices = inner.flatMap(one => one.enum ?? []).filter(one => typeof one === 'string').map(name => ({ name, title: lines.find(line => line[0] === name)?.[1] ?? '' }));
  if (folder) choices = [...all.flatMap(one => (one['x-names'] ?? '').split(' ')).filter(Boolean).map(name => ({ name, title: '' })), ...known.files[folder]];
  const number = inner.find(one => one.type === 'integer');
  if (!choices.length && all.some(one => one.type === 'boolean')) choices = [{ name: 'true', title: '' }, { name: 'false', title: '' }];
  return { path, brief: brief.split('\n')[0], known: !!schema, choices: choices.length ? [...new Map(choices.map(one => [one.name, one])).values()] : null,
    kind: number ? 'integer' : 'text', least: number?.minimum, most: number?.maximum };
}

// All paths that take a value, for who looks for a key.
export function allPaths() {
  const paths = [];
  const walk = (schema, path, depth) => {
    for (const one of kinds(schema)) {
      if (one.properties && depth < 5) for (const [key, inner] of Object.entries(one.properties)) walk(inner, path ? `${path}.${key}` : key, depth + 1);
      else if (path) paths.push(path);
    }
  };
  walk(known.schema, '', 0);
  return [...new Set(paths)].filter(path => !/^(train|plan|name)\b/.test(path)).sort();
}

// The text of a value as the scenario would hold it: a number and a truth without quotes.
function typed(path, text) {
  const types = kinds(schemaOf(path)).flatMap(one => [one, ...kinds(one.items)]).map(one => one.type);
  if (/^[[{]/.test(text)) { try { return JSON.parse(text); } catch { return text; } }
  if (/^(true|false)$/.test(text) && (types.includes('boolean') || !types.length)) return text === 'true';
  if (/^-?\d+(\.\d+)?$/.test(text) && (types.includes('integer') || types.includes('number') || !types.length)) return Number(text);
  return text;
}
export const valueOf = (variant, path) => variant.set.find(one => one[0] === path)?.[1];
export const isBelow = (path, above) => path === above || path.startsWith(`${above}.`);
// The variant with another value; '' takes the change back. A value takes the place of those below it, and of the whole that it is in.
export function changed(variant, path, value) {
  const set = variant.set.filter(one => !(value === '' ? one[0] === path : isBelow(one[0], path)));
  return { ...variant, set: value === '' ? set : [...set, [path, value]].sort((a, b) => a[0].split('.').length - b[0].split('.').length) };
}
// What the server is asked.
export const questionOf = variant => ({ ...(variant.text === null ? { tour: variant.tour } : { text: variant.text }),
  set: Object.fromEntries(variant.set.map(([path, text]) => [path, typed(path, text)])) });

const flow = value => typeof value === 'object' ? JSON.stringify(value) : String(value);
const quoted = text => /^[\w.=:,/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
export const commandOf = variant => `dtsim run ${variant.text === null ? quoted(known.tour.find(one => one.name === variant.tour)?.path ?? variant.tour) : quoted(variant.file || 'scenario.yaml')}`
  + ` --engine fast${variant.set.map(([path, text]) => ` \\\n  --set ${quoted(`${path}=${flow(typed(path, text))}`)}`).join('')}`;

// Text as the address holds it: deflate, then letters that need no escapes.
async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
async function packed(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream('deflate-raw'));
  let letters = '';
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
const unpackedMost = 1 << 20;
async function unpacked(letters) {
  const bytes = Uint8Array.from(atob(letters.replaceAll('-', '+').replaceAll('_', '/')), letter => letter.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader(), parts = [];
  for (let size = 0, part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > unpackedMost) throw new Error('the state holds more than 1 MiB of text');
    parts.push(part.value);
  }
  return new Blob(parts).text();
}
async function put(entries, variant, before) {
  if (variant.text === null) entries.append(`${before}tour`, variant.tour);
  else {
    entries.append(`${before}text`, await packed(variant.text));
    if (variant.file) entries.append(`${before}file`, variant.file);
  }
  for (const [path, text] of variant.set) entries.append(before + path, text);
}
export async function fragmentOf({ a, b, lesson }) {
  const entries = new URLSearchParams();
  if (lesson) entries.append('lesson', lesson);
  await put(entries, a, '');
  if (b) await put(entries, b, 'b.');
  return `#${entries}`;
}
export async function stateOf(fragment) {
  const entries = new URLSearchParams(fragment.replace(/^#/, '')), step = Number(entries.get('lesson'));
  const lesson = Number.isInteger(step) && step >= 1 && step <= lessons ? step : null;
  if (lesson && entries.size === 1) return stepOf(lesson);
  entries.delete('lesson');
  const state = { a: first(), b: null, lesson };
  for (const [name, text] of entries) {
    const isB = name.startsWith('b.'), key = isB ? name.slice(2) : name;
    if (isB) state.b ??= { ...first(), set: [] };
    const variant = isB ? state.b : state.a;
    if (key === 'tour') Object.assign(variant, { tour: text, text: null, file: null });
    else if (key === 'text') variant.text = await unpacked(text);
    else if (key === 'file') variant.file = text;
    else if (/^\w+(\.\w+)*$/.test(key)) Object.assign(variant, changed(variant, key, text));
  }
  return state;
}

// The value at a path of a resolved scenario.
export const at = (tree, path) => path.split('.').reduce((one, key) => one !== null && typeof one === 'object' && Object.hasOwn(one, key) ? one[key] : undefined, tree);
// All values of a tree: Map of path to text.
export function flat(tree, path = '', all = new Map()) {
  if (tree !== null && typeof tree === 'object' && !(Array.isArray(tree) && tree.every(one => one === null || typeof one !== 'object')))
    for (const [key, value] of Object.entries(tree)) flat(value, path ? `${path}.${key}` : key, all);
  else all.set(path, Array.isArray(tree) ? tree.join(', ') : String(tree));
  return all;
}

// Errors of values that a person set, by path: the place of such an error is the change.
export function wrongsOf(answer) {
  const wrongs = new Map();
  for (const error of answer?.errors ?? []) {
    const path = /^--set ([\w.]+)=/.exec(error.file ?? '')?.[1];
    if (path) wrongs.set(path, error.message);
  }
  return wrongs;
}
