// The data of the page: base64 of deflate of parts, "NAME BYTES\n" and the bytes (sim/page/page.c writes them).

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const value = new Uint8Array(128);
  for (let i = 0; i < 64; i++) value[digits.charCodeAt(i)] = i;
  const pads = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = new Uint8Array(text.length / 4 * 3 - pads);
  for (let i = 0, to = 0; i < text.length; i += 4) {
    const bits = value[text.charCodeAt(i)] << 18 | value[text.charCodeAt(i + 1)] << 12 |
      value[text.charCodeAt(i + 2)] << 6 | value[text.charCodeAt(i + 3)];
    bytes[to++] = bits >> 16;
    bytes[to++] = bits >> 8;
    bytes[to++] = bits;
  }
  return bytes;
}

export const readParts = () => partsOf(document.getElementById('data').textContent);
export async function partsOf(text) {
  if (typeof DecompressionStream === 'undefined')
    throw new Error('this browser is too old for it, it has no DecompressionStream; Chrome and Edge have it from 80, Firefox from 113, Safari from 16.4');
  const packed = new Blob([fromBase64(text)]);
  const stream = packed.stream().pipeThrough(new DecompressionStream('deflate'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const parts = {};
  for (let at = 0; at < bytes.length;) {
    const line = bytes.indexOf(10, at);
    const [name, size] = new TextDecoder().decode(bytes.subarray(at, line)).split(' ');
    at = line + 1 + Number(size);
    parts[name] = bytes.subarray(line + 1, at);
  }
  return parts;
}

export const textOf = part => new TextDecoder().decode(part);
export const jsonOf = part => part ? JSON.parse(textOf(part)) : undefined;

// A table of tab-separated columns: {column: [texts]}.
export function tableOf(part) {
  const [head, ...lines] = textOf(part).split('\n');
  const names = head.split('\t');
  const table = Object.fromEntries(names.map(name => [name, []]));
  for (const line of lines) {
    if (!line) continue;
    line.split('\t').forEach((cell, i) => table[names[i]].push(cell));
  }
  return table;
}

// Reads numbers of 7 bits a byte, the lowest first.
export class Varints {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }
  next() {
    let byte = this.bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
    }
    return value;
  }
  byte() { return this.bytes[this.at++]; }
  all(array) {
    for (let i = 0; i < array.length; i++) array[i] = this.next();
    return array;
  }
}

// A property that is made when it is first asked for: not all of a million spans is needed to open a page.
function later(object, name, make) {
  Object.defineProperty(object, name, { configurable: true, enumerable: true, get() {
    const value = make();
    Object.defineProperty(object, name, { value });
    return value;
  } });
}

// The spans by columns. A row is a lane of a rank: its spans are [first, first + count), by start.
export function spansOf(parts, head) {
  const count = head.rows.reduce((sum, row) => sum + row[2], 0);
  const column = (name, Type) => new Varints(parts[name]).all(new Type(count));
  const spans = { start: column('gap', Float64Array), end: column('duration', Float64Array), kind: column('kind', Uint16Array),
    rows: [], count, until: 0, awaits: awaitsOf(parts.after, count) };
  const others = { name: Uint32Array, communication: Float64Array, op: Uint8Array, size: Uint32Array, peer: Int32Array, group: Int32Array, stage: Int32Array };
  for (const [name, Type] of Object.entries(others)) later(spans, name, () => column(name, Type));
  let first = 0, at = 0;
  for (const [rank, lane, length, bytes] of head.rows) {
    const row = { rank, lane, first, count: length }, levels = parts.levels.subarray(at, at += bytes);
    let until = 0;
    for (let i = first; i < first + length; i++) {
      spans.start[i] += until;
      until = spans.end[i] += spans.start[i];
    }
    spans.until = Math.max(spans.until, until);
    later(row, 'levels', () => levelsOf(new Varints(levels)));
    spans.rows.push(row);
    first += length;
  }
  return spans;
}

// For which spans a span waits, and which wait for it: {before, behind}, arrays of {i, part}; part: ns of the earlier one, or
// none: all of it. Read when it is first asked for.
function awaitsOf(bytes, count) {
  let first = null, others = null, parts = null;
  const read = () => {
    const varints = new Varints(bytes), all = new Uint32Array(bytes.length);
    let length = 0;
    parts = new Map();
    first = new Uint32Array(count + 1);
    for (let i = 0; i < count; i++) {
      first[i] = length;
      for (let number = varints.next(); number; number = varints.next()) {
        const half = Math.floor(number / 2), back = half % 2 ? -(half - 1) / 2 : half / 2;
        if (number % 2) parts.set(length, varints.next());
        all[length++] = i - back;
      }
    }
    first[count] = length;
    others = all.subarray(0, length);
  };
  return i => {
    if (!first) read();
    const before = [], behind = [];
    for (let k = first[i]; k < first[i + 1]; k++) before.push({ i: others[k], part: parts.get(k) });
    for (let k = others.indexOf(i), at = 0; k >= 0; k = others.indexOf(i, k + 1)) {
      while (first[at + 1] <= k) at++;
      behind.push({ i: at, part: parts.get(k) });
    }
    return { before, behind };
  };
}

// Levels of detail of a row, the finest first: runs of blocks of 2^shift ns.
function levelsOf(varints) {
  const levels = [];
  for (let left = varints.next(); left > 0; left--) {
    const width = 2 ** varints.next(), count = varints.next();
    const level = { width, count, from: new Float64Array(count), to: new Float64Array(count),
      kind: new Uint8Array(count), share: new Uint8Array(count) };
    let block = 0;
    for (let i = 0; i < count; i++) {
      block += varints.next();
      level.from[i] = block * width;
      block += varints.next();
      level.to[i] = block * width;
      level.kind[i] = varints.byte();
      level.share[i] = varints.byte();
    }
    levels.push(level);
  }
  return levels;
}
