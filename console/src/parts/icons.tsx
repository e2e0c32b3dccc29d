// The symbols of the console. They are decoration: the control that has one also has a name.

const PATHS = {
  close: 'M4 4l8 8M12 4l-8 8',
  run: 'M5 3.5v9l7-4.5z',
  stop: 'M4.5 4.5h7v7h-7z',
  down: 'M4 6l4 4 4-4',
  up: 'M4 10l4-4 4 4',
  back: 'M10 4L6 8l4 4',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5L14 14',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3',
  code: 'M6 4L2.5 8 6 12M10 4l3.5 4-3.5 4',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z',
  system: 'M2 3h12v8H2zM6 14h4M8 11v3',
  copy: 'M6 6h7v7H6zM10 6V3H3v7h3',
  save: 'M8 2v8M4.5 7L8 10.5 11.5 7M3 13.5h10',
  filter: 'M2 3.5h12L9.5 9v4l-3-1.5V9z',
  warning: 'M8 2l6.5 11.5h-13zM8 6.5v3.5M8 11.8v.4',
  done: 'M3 8.5l3.2 3.2L13 5',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  const filled = name === 'run' || name === 'stop';
  return (
    <svg class={filled ? 'icon filled' : 'icon'} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
