// Numbers and times in the viewer's own form.

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '' : whole.format(value);
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${whole.format(value)} ${value === 1 ? one : many}`;
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    unit += 1;
  }
  return `${short.format(value)} ${units[unit]}`;
}

export function rate(value: number): string {
  return value >= 1000 ? whole.format(value) : short.format(value);
}

export function milliseconds(value: number): string {
  if (value < 1000) return `${short.format(value)} ms`;
  if (value < 60_000) return `${short.format(value / 1000)} s`;
  return duration(value / 1000);
}

export function duration(seconds: number): string {
  const days = Math.floor(seconds / 86_400);
  const hours = Math.floor((seconds % 86_400) / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (minutes > 0) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds)} s`;
}

/** A time of the server in the viewer's time zone. */
export function localTime(text: string): string {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : moment.format(date);
}

export function timeOfDay(milliseconds: number): string {
  return clock.format(new Date(milliseconds));
}
