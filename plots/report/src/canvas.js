import { useEffect, useRef } from 'preact/hooks';
import { html } from './parts.js';
import { useTheme } from './theme.js';
import { roundStep } from './format.js';

// A canvas that is drawn anew when its size, the theme or `what` changes.
export function Canvas({ draw, what, high, label, ...handlers }) {
  const canvas = useRef(), dark = useTheme();
  useEffect(() => {
    const redraw = () => {
      const one = canvas.current, scale = devicePixelRatio || 1, width = one.clientWidth;
      if (!width) return;
      one.width = width * scale;
      one.height = high * scale;
      const context = one.getContext('2d'), style = getComputedStyle(one);
      context.scale(scale, scale);
      context.font = '12px system-ui, sans-serif';
      draw(context, width, high, Object.fromEntries(['ink', 'soft', 'line', 'link', 'path', 'card'].map(name => [name, style.getPropertyValue(`--${name}`)])));
    };
    const watch = new ResizeObserver(redraw);
    watch.observe(canvas.current);
    return () => watch.disconnect();
  }, [dark, ...what]);
  return html`<canvas class="plot" role="img" aria-label=${label} style=${{ height: `${high}px` }} ref=${canvas} ...${handlers}></canvas>`;
}

// An axis: where its values are as shares of it, its marks, their texts and its name. Of bytes, steps are powers of two.
export function linear(low, most, count, text, name, steps = roundStep) {
  const by = steps(most - low, count), marks = [];
  for (let value = Math.ceil(low / by - 1e-9) * by; value <= most + 1e-9 * by; value += by) marks.push(value);
  return { share: value => (value - low) / (most - low), marks, text, name };
}
export const binarySteps = (width, marks) => 2 ** Math.ceil(Math.log2(width / marks));
export function logarithmic(low, most, text, name) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(most)), wide = Math.log10(most / low);
  const sets = [[1, [1, 2, 5]], [1, [1]], ...[2, 3, 6, 12].map(by => [by, [1]])].map(([by, digits]) => {
    const marks = [];
    for (let power = first; power <= last; power += by) marks.push(...digits.map(digit => digit * 10 ** power).filter(value => value >= low && value <= most));
    return marks;
  });
  return { share: value => Math.log10(value / low) / wide, marks: sets.find(marks => marks.length <= 8) ?? [], text, name };
}
// Draws two axes with a line for each mark. Returns where values are: {at, up, left, top, bottom}.
export function drawAxes(context, width, high, colour, x, y) {
  const left = 84, right = width - 28, top = y.name ? 24 : 14, bottom = high - 40;
  const at = value => left + x.share(value) * (right - left), up = value => bottom - y.share(value) * (bottom - top);
  context.textAlign = 'center';
  for (const value of x.marks) {
    context.fillStyle = colour.line;
    context.fillRect(at(value), top, 1, bottom - top);
    context.fillStyle = colour.ink;
    context.fillText(x.text(value), at(value), bottom + 16);
  }
  context.fillStyle = colour.ink;
  context.fillText(x.name, (left + right) / 2, high - 6);
  context.textAlign = 'right';
  for (const value of y.marks) {
    context.fillStyle = colour.line;
    context.fillRect(left, up(value), right - left, 1);
    context.fillStyle = colour.ink;
    context.fillText(y.text(value), left - 6, up(value) + 4);
  }
  context.textAlign = 'left';
  if (y.name) context.fillText(y.name, 4, 12);
  return { at, up, left, top, bottom };
}
