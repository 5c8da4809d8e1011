// Whether the page is dark: as a person chose, else as the system is.
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
    return () => { watch.disconnect(); system.removeEventListener('change', again); };
  }, []);
  return isDark();
}
