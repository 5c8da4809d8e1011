import { useEffect, useRef } from 'preact/hooks';
import { html } from './parts.js';
import { useTheme } from './theme.js';

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
