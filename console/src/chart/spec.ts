// Which chart: what the viewer has chosen, the first choice by the types of the columns, and its form in the address.
import { distinct, findColumn, type ChartColumn, type ChartTable } from './table';
import { SERIES_MAX } from './scene';

export const KINDS = {
  line: 'Line',
  area: 'Area',
  bar: 'Bars',
  scatter: 'Points',
  histogram: 'Histogram',
  heatmap: 'Heat map',
  map: 'Map',
} as const;
export type ChartKind = keyof typeof KINDS;

export interface ChartSpec {
  kind: ChartKind;
  /** The column along the axis; of a map, the longitude. */
  x: string;
  /** The columns with the values: several only for lines, areas and bars. Of a map, the latitude. */
  y: string[];
  /** The column whose values are series; of a heat map, its rows. Empty for none. */
  by: string;
}

/** What the fields of a kind are called; a kind has no field without a name. */
export const FIELDS: Record<ChartKind, { x: string; y?: string; by?: string }> = {
  line: { x: 'Axis', y: 'Values', by: 'Series' },
  area: { x: 'Axis', y: 'Values', by: 'Series' },
  bar: { x: 'Axis', y: 'Values', by: 'Series' },
  scatter: { x: 'Axis', y: 'Values', by: 'Colour' },
  histogram: { x: 'Values' },
  heatmap: { x: 'Columns', y: 'Values', by: 'Rows' },
  map: { x: 'Longitude', y: 'Latitude', by: 'Colour' },
};

/** Whether the kind shows several columns of values beside each other. */
export function hasSeveralValues(kind: ChartKind): boolean {
  return kind === 'line' || kind === 'area' || kind === 'bar';
}

/** A number on an axis of which each value is a place of its own, such as a month, has at most so many. */
const PLACES_MAX = 60;

/** The first choice for the columns, by their types and values. */
export function chooseChart(table: ChartTable): ChartSpec {
  const spec = chooseByTypes(table);
  const [axis, series] = [findColumn(table, spec.x), findColumn(table, spec.by)];
  const isOnePerPlace = spec.kind === 'scatter' || spec.kind === 'histogram' || spec.kind === 'map';
  if (!axis || isOnePerPlace || !hasRepeatedPlaces(axis, series)) return spec;
  // Single rows, and not one value for each place: their numbers are measured.
  const [x, y] = table.columns.filter((column) => column.kind === 'number' && !isPlace(column, table));
  const by = table.columns.find((column) => column.kind === 'text' && distinct(column).length <= SERIES_MAX)?.name ?? '';
  if (x && y) return { kind: 'scatter', x: x.name, y: [y.name], by };
  return x ? { kind: 'histogram', x: x.name, y: [], by: '' } : spec;
}

/** Whether two rows have the same place, within their series. */
export function hasRepeatedPlaces(axis: ChartColumn, series: ChartColumn | undefined): boolean {
  const seen = new Set(axis.values.map((value, row) => JSON.stringify([value, series?.values[row]])));
  return seen.size < axis.values.length;
}

function chooseByTypes(table: ChartTable): ChartSpec {
  const of = (kind: ChartColumn['kind']) => table.columns.filter((column) => column.kind === kind);
  const [numbers, texts, time] = [of('number'), of('text'), of('time')[0]];
  const none: ChartSpec = { kind: 'bar', x: table.columns[0]?.name ?? '', y: [], by: '' };
  if (numbers.length === 0) return none;
  const longitude = numbers.find(({ name }) => /^(lon|lng|long|longitude)$/i.test(name));
  const latitude = numbers.find(({ name }) => /^(lat|latitude)$/i.test(name));
  if (longitude && latitude) return { kind: 'map', x: longitude.name, y: [latitude.name], by: '' };
  if (time) return seriesOf(table, 'line', time, numbers, texts[0]);
  const places = numbers.length > 1 ? numbers.find((column) => isPlace(column, table)) : undefined;
  const values = numbers.filter((column) => column !== places);
  if (places) return seriesOf(table, 'line', places, values, texts[0]);
  const value = values[values.length - 1]!;
  if (texts[0] && texts[1] && distinct(texts[1]).length < table.rows) return grid(texts[0], texts[1], value);
  if (texts[0]) return { ...none, x: texts[0].name, y: [value.name] };
  if (values.length > 1) return { kind: 'scatter', x: values[0]!.name, y: [values[1]!.name], by: '' };
  return { kind: 'histogram', x: value.name, y: [], by: '' };
}

/** Whether the values are few whole numbers, as of a month or an hour, and not measured. */
function isPlace(column: ChartColumn, table: ChartTable): boolean {
  if (table.rows < 2 || !column.values.every((value) => Number.isInteger(value))) return false;
  const places = distinct(column).length;
  return places > 1 && places <= PLACES_MAX;
}

function seriesOf(table: ChartTable, kind: ChartKind, x: ChartColumn, values: ChartColumn[], text: ChartColumn | undefined): ChartSpec {
  const y = values.length > 0 ? [values[values.length - 1]!.name] : [];
  // One row for each place needs no series.
  if (!text || distinct(x).length === table.rows) return { kind, x: x.name, y, by: '' };
  if (distinct(text).length > SERIES_MAX && distinct(x).length <= PLACES_MAX) return grid(x, text, values[values.length - 1]!);
  return { kind, x: x.name, y, by: text.name };
}

function grid(x: ChartColumn, by: ChartColumn, value: ChartColumn): ChartSpec {
  return { kind: 'heatmap', x: x.name, y: [value.name], by: by.name };
}

/** The chart with another kind, whose missing fields are chosen. */
export function withKind(spec: ChartSpec, kind: ChartKind, table: ChartTable): ChartSpec {
  const fields = FIELDS[kind];
  const isNumber = (name: string) => findColumn(table, name)?.kind === 'number';
  const others = table.columns.filter(({ name, kind: type }) => type === 'number' && name !== spec.x).map(({ name }) => name);
  const y = spec.y.filter(isNumber);
  const chosen = y.length > 0 ? y : others.slice(-1);
  const by = spec.by || (kind === 'heatmap' ? (table.columns.find(({ name }) => name !== spec.x && !chosen.includes(name))?.name ?? '') : '');
  const x = kind === 'histogram' && !isNumber(spec.x) && chosen[0] ? chosen[0] : spec.x;
  return { kind, x, y: fields.y ? (hasSeveralValues(kind) ? chosen : chosen.slice(0, 1)) : [], by: fields.by ? by : '' };
}

const SEPARATOR = '\u001f';

/** The chart as parameters of an address. */
export function writeSpec({ kind, x, y, by }: ChartSpec): Record<string, string | undefined> {
  return { chart: kind, x, y: y.join(SEPARATOR) || undefined, by: by || undefined };
}

export function readSpec(parameters: URLSearchParams): ChartSpec | null {
  const kind = parameters.get('chart') ?? '';
  if (!Object.hasOwn(KINDS, kind)) return null;
  const y = parameters.get('y');
  return { kind: kind as ChartKind, x: parameters.get('x') ?? '', y: y ? y.split(SEPARATOR) : [], by: parameters.get('by') ?? '' };
}

/** The columns that the chart names. */
export function namedColumns({ x, y, by }: ChartSpec): string[] {
  return [x, ...y, by].filter((name) => name !== '');
}
