// From values to places on an axis, with round values beside it, in the viewer's own form.
import type { ChartColumn, Value } from './table';

export interface Tick {
  value: number;
  label: string;
}

export interface Scale {
  min: number;
  max: number;
  ticks: Tick[];
}

/** A scale whose ends are round, with about `wanted` ticks. */
export function numberScale(low: number, high: number, wanted: number, isWhole = false): Scale {
  if (low === high) [low, high] = low === 0 ? [0, 1] : [Math.min(low, 0), Math.max(high, 0)];
  let step = roundStep((high - low) / Math.max(wanted, 1));
  if (isWhole) step = Math.max(step, 1);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const format = new Intl.NumberFormat(undefined, {
    minimumFractionDigits: Math.min(digits, 20), maximumFractionDigits: Math.min(digits, 20), useGrouping: 'min2',
    notation: Math.max(Math.abs(low), Math.abs(high)) >= 1e7 ? 'compact' : 'standard',
  });
  const ticks: Tick[] = [];
  for (let index = first; index <= last; index += 1) {
    const value = index * step;
    ticks.push({ value, label: format.format(value) });
  }
  return { min: first * step, max: last * step, ticks };
}

/** 1, 2 or 5 with zeros. */
export function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const digit = step / power;
  return (digit <= 1.0001 ? 1 : digit <= 2.0001 ? 2 : digit <= 5.0001 ? 5 : 10) * power;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  1, 10, 100, SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
  DAY, 2 * DAY, 7 * DAY, 14 * DAY,
];
const MONTH_STEPS = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200];

/** A scale of times from the first to the last, with ticks at whole hours, days, months or years of UTC. */
export function timeScale(low: number, high: number, wanted: number): Scale {
  if (low === high) [low, high] = [low - HOUR, high + HOUR];
  const goal = (high - low) / Math.max(wanted, 1);
  let step = STEPS.find((one) => one >= goal);
  let ticks = step === undefined ? monthTicks(low, high, goal) : evenTicks(low, high, step);
  const finer = step === undefined ? undefined : STEPS[STEPS.indexOf(step) - 1];
  // One tick alone says nothing about the distance.
  if (ticks.length < 2 && finer !== undefined) [step, ticks] = [finer, evenTicks(low, high, finer)];
  const format = timeFormat(step ?? 31 * DAY);
  return { min: low, max: high, ticks: ticks.map((value) => ({ value, label: format(value) })) };
}

function evenTicks(low: number, high: number, step: number): number[] {
  // Weeks begin on Monday; the first day of the epoch is a Thursday.
  const origin = step >= 7 * DAY ? 4 * DAY : 0;
  const ticks: number[] = [];
  for (let value = Math.ceil((low - origin) / step) * step + origin; value <= high; value += step) ticks.push(value);
  return ticks;
}

function monthTicks(low: number, high: number, goal: number): number[] {
  const months = MONTH_STEPS.find((one) => one * 30 * DAY >= goal) ?? MONTH_STEPS[MONTH_STEPS.length - 1]!;
  const start = new Date(low);
  const ticks: number[] = [];
  for (let month = Math.floor((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months; ; month += months) {
    const value = Date.UTC(Math.floor(month / 12), month % 12, 1);
    // Beyond the last time that a date can have, there is no number.
    if (!(value <= high)) return ticks;
    if (value >= low) ticks.push(value);
  }
}

/** The form of times that are `step` milliseconds apart. */
function timeFormat(step: number): (time: number) => string {
  const at = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(undefined, { ...options, timeZone: 'UTC' });
  const year = at({ year: 'numeric' });
  const month = at({ month: 'short', year: 'numeric' });
  const day = at({ day: 'numeric', month: 'short' });
  const clock = at({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...(step < MINUTE && { second: '2-digit' }) });
  if (step > 14 * DAY) return (time) => (step > 300 * DAY ? year : month).format(time);
  if (step >= DAY) return (time) => day.format(time);
  // Midnight is shown as its day.
  return (time) => (time % DAY === 0 ? day : clock).format(time);
}

/** The places along an axis: times as short as their distance permits. */
export function placeTexts(column: ChartColumn, places: Value[]): string[] {
  const times = places.filter((place) => typeof place === 'number');
  if (column.kind !== 'time' || times.length < 2) return places.map((place) => valueText(column, place));
  const format = timeFormat(Math.min(...times.slice(1).map((time, index) => time - times[index]!)));
  return places.map((place) => (typeof place === 'number' ? format(place) : valueText(column, place)));
}

const numberFormat = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 6, useGrouping: 'min2' });
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });
const momentFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23', timeZone: 'UTC' });

export function numberText(value: number): string {
  return numberFormat.format(value);
}

/** A value of a column for people. */
export function valueText(column: Pick<ChartColumn, 'kind' | 'isDate'>, value: Value): string {
  if (value === null) return 'NULL';
  if (typeof value === 'string') return value;
  if (column.kind === 'number') return numberText(value);
  return column.isDate || value % DAY === 0 ? dayFormat.format(value) : momentFormat.format(value);
}

/** The smallest and the largest number; `null` without one. */
export function extent(values: Iterable<Value>): [number, number] | null {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (typeof value !== 'number') continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}
