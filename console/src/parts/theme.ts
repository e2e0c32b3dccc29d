// The colours: those of the system, or the viewer's choice, which the browser keeps.
import { effect, signal } from '@preact/signals';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const NAME = 'tidegate-theme';

export const theme = signal<Theme>(read());

function read(): Theme {
  const kept = localStorage.getItem(NAME);
  return THEMES.find((name) => name === kept) ?? 'system';
}

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(NAME, theme.value);
});
