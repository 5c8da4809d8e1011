// Whether the page is dark: as a person chose, else as the system is; never on paper.
import { options } from 'preact';
import { useEffect, useReducer } from 'preact/hooks';

const system = matchMedia('(prefers-color-scheme: dark)');
const root = document.documentElement;
export const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : system.matches;

// Draws the component anew when that changes.
export function useTheme() {
  const [, again] = useReducer(count => count + 1, 0);
  useEffect(() => {
    const watch = new MutationObserver(again);
    watch.observe(root, { attributes: true, attributeFilter: ['data-theme'] });
    system.addEventListener('change', again);
    addEventListener('printing', again);
    return () => { watch.disconnect(); system.removeEventListener('change', again); removeEventListener('printing', again); };
  }, []);
  return isDark();
}

// Before the page is printed all parts are opened and drawn light: at once, since the picture is taken when this returns.
let before = null;
addEventListener('beforeprint', () => {
  before ??= { theme: root.dataset.theme, closed: [...document.querySelectorAll('details:not([open])')] };
  for (const one of before.closed) one.open = true;
  root.dataset.theme = 'light';
  options.debounceRendering = options.requestAnimationFrame = act => act();
  dispatchEvent(new Event('printing'));
  options.debounceRendering = options.requestAnimationFrame = undefined;
});
addEventListener('afterprint', () => {
  if (!before) return;
  for (const one of before.closed) one.open = false;
  if (before.theme === undefined) delete root.dataset.theme; else root.dataset.theme = before.theme;
  before = null;
});
