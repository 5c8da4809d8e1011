// Colours and patterns, those of 'dtsim plot' (plots/chart.c, plots/memory.c).

import { isDark } from './theme.js';

const solid = 0, rising = 1, falling = 2, crossed = 3, dotted = 4, lying = 5, standing = 6;
const tones = {
  forward: ['#0072b2', '#ffffff', solid],
  backward: ['#e69f00', '#000000', rising],
  'backward-input': ['#44bb99', '#000000', falling],
  'backward-weight': ['#225522', '#ffffff', crossed],
  recompute: ['#a6d4fa', '#000000', dotted],
  pack: ['#b39ddb', '#000000', standing],
  update: ['#666666', '#ffffff', lying],
  communication: ['#4b0082', '#ffffff', lying],
  offload: ['#f0e442', '#000000', standing],
  host: ['#966900', '#ffffff', dotted],
  'exposed tensor': ['#4b0082', '#ffffff', lying],
  'exposed pipeline': ['#b41eff', '#ffffff', rising],
  'exposed data': ['#e1695a', '#000000', falling],
  'exposed context': ['#ffd278', '#000000', crossed],
  'exposed expert': ['#00ffa5', '#000000', dotted],
  'exposed offload': ['#966900', '#ffffff', standing],
  bubble: ['#f0f0f0', '#000000', solid],
};
// Where the page is dark, tones that would hardly show are lighter.
const lighter = { '#4b0082': ['#ab86f0', '#000000'], '#225522': ['#6db36d', '#000000'], '#666666': ['#9aa0a6', '#000000'],
  '#f0f0f0': ['#3d444d', '#ffffff'], '#0072b2': ['#3d9be0', '#000000'], '#882255': ['#d0709f', '#000000'], '#b41eff': ['#c95fff', '#000000'],
  '#117733': ['#4fae6c', '#000000'], '#966900': ['#c89a2c', '#000000'] };
function shown(fill, ink, pattern) {
  const [tone, text] = isDark() && lighter[fill] || [fill, ink];
  return { fill: tone, ink: text, pattern };
}
const moves = { activation: 'communication', gradient: 'communication', sync: 'communication', weights: 'communication',
  prefetch: 'offload', 'host-update': 'host' };
const others = ['#8c564b', '#17becf', '#bcbd22', '#7f7f7f'];

const of = (table, key) => Object.hasOwn(table, key) ? table[key] : undefined;        // names may be 'constructor'
// The look of a kind of span, or of a share of time: {fill, ink, pattern}.
export function lookOf(kind) {
  const key = kind.replaceAll('_', kind.startsWith('exposed') ? ' ' : '-');
  const tone = of(tones, of(moves, key) ?? key);
  if (tone) return shown(...tone);
  let sum = 0;
  for (const letter of kind) sum += letter.codePointAt(0);
  return { fill: others[sum % others.length], ink: '#000000', pattern: 1 + sum % 6 };
}
// What memory is held for.
const memory = { context: ['#666666', '#ffffff', lying], parameters: ['#0072b2', '#ffffff', solid], gathered: ['#a6d4fa', '#000000', dotted],
  gradients: ['#e69f00', '#000000', rising], optimizer: ['#225522', '#ffffff', crossed], buffers: ['#b39ddb', '#000000', standing],
  fragmentation: ['#bfbfbf', '#000000', falling], activations: ['#44bb99', '#000000', falling], workspace: ['#4b0082', '#ffffff', lying] };
export const memoryLook = kind => shown(...of(memory, kind) ?? ['#f0e442', '#000000', standing]);

function strokes(context, pattern, size) {
  const line = (x0, y0, x1, y1) => { context.moveTo(x0, y0); context.lineTo(x1, y1); };
  context.beginPath();
  if (pattern === rising || pattern === crossed) { line(0, size, size, 0); line(-1, 1, 1, -1); line(size - 1, size + 1, size + 1, size - 1); }
  if (pattern === falling || pattern === crossed) { line(0, 0, size, size); line(size - 1, -1, size + 1, 1); line(-1, size - 1, 1, size + 1); }
  if (pattern === lying) line(0, size / 2, size, size / 2);
  if (pattern === standing) line(size / 2, 0, size / 2, size);
  if (pattern === dotted) context.rect(size / 2 - 1, size / 2 - 1, 2, 2);
  context.stroke();
}
// A small picture that repeats: the colour with its pattern.
export function tileOf(look, size = 8) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const context = tile.getContext('2d');
  context.fillStyle = look.fill;
  context.fillRect(0, 0, size, size);
  context.strokeStyle = look.ink === '#ffffff' ? 'rgba(255,255,255,.45)' : 'rgba(0,0,0,.35)';
  if (look.pattern) strokes(context, look.pattern, size);
  return tile;
}
