// Whether a chart makes sense for the columns; if not, what would, as a statement or as another chart.
import { quoteName } from '../query/statement';
import { extent, numberText, roundStep } from './scale';
import { FIELDS, hasRepeatedPlaces, hasSeveralValues, withKind, type ChartSpec } from './spec';
import { SERIES_MAX } from './scene';
import { distinct, findColumn, type ChartColumn, type ChartTable } from './table';

export interface ChartFault {
  message: string;
  advice: string;
  fixes: Fix[];
}

export interface Fix {
  label: string;
  spec: ChartSpec;
  /** The statement whose result the chart draws, if it is another one. */
  sql?: string;
}

/** Places along an axis at most, so that each can be seen. */
const BARS_MAX = 200;
const HEAT_COLUMNS_MAX = 120;
const HEAT_ROWS_MAX = 60;
/** Bars of a statement that keeps the largest ones. */
const LARGEST = 30;
/** Bars of a histogram that SQL counts. */
const HISTOGRAM_BARS = 40;
/** The column of the number of rows. */
const COUNT = 'number_of_rows';

/** Why the chart cannot be drawn; `null` if it can. `sql` is the statement of the result. */
export function checkChart(spec: ChartSpec, table: ChartTable, sql: string): ChartFault | null {
  if (table.rows === 0) return { message: 'The result has no rows.', advice: 'Change its conditions, and run it again.', fixes: [] };
  return checkFields(spec, table, sql) ?? checkPlaces(spec, table, sql) ?? checkRepeated(spec, table, sql);
}

function checkFields(spec: ChartSpec, table: ChartTable, sql: string): ChartFault | null {
  const { kind, x, y, by } = spec;
  const fields = FIELDS[kind];
  const axis = findColumn(table, x);
  const has = (type: ChartColumn['kind']) => table.columns.some((column) => column.kind === type);
  if (!axis) return { message: `The chart needs a column for ${fields.x.toLowerCase()}.`, advice: 'Choose one above.', fixes: [] };
  if (!has('number')) {
    return { message: 'No column has numbers.', advice: 'A chart can show how many rows each value has.', fixes: [countFix(spec, sql)] };
  }
  const wrong = y.map((name) => findColumn(table, name)).find((column) => column?.kind !== 'number');
  if (fields.y && (y.length === 0 || wrong !== undefined)) {
    return { message: `The chart needs a column with numbers for ${fields.y.toLowerCase()}.`, advice: 'Choose one above.', fixes: [] };
  }
  if (kind === 'heatmap' && !by) return { message: 'A heat map needs a column for its rows.', advice: 'Choose one above.', fixes: [] };
  if (kind === 'line' || kind === 'area' || kind === 'scatter') {
    if (axis.kind === 'text') {
      return { message: `“${x}” has texts, which have no distance on an axis.`, advice: 'Lines and points need numbers or times there.', fixes: [{ label: 'Draw bars', spec: withKind(spec, 'bar', table) }] };
    }
  } else if ((kind === 'histogram' || kind === 'map') && axis.kind !== 'number') {
    const fixes = kind === 'histogram' ? [countFix(spec, sql)] : [];
    return { message: `“${x}” has no numbers.`, advice: kind === 'map' ? 'A map needs a longitude and a latitude in degrees.' : 'A histogram counts ranges of numbers.', fixes };
  }
  return kind === 'map' ? checkDegrees(spec, axis, findColumn(table, y[0]!)!, table) : null;
}

function checkDegrees(spec: ChartSpec, longitude: ChartColumn, latitude: ChartColumn, table: ChartTable): ChartFault | null {
  const [[west, east], [south, north]] = [extent(longitude.values) ?? [0, 0], extent(latitude.values) ?? [0, 0]];
  if (west >= -180 && east <= 360 && south >= -90 && north <= 90) return null;
  return {
    message: `“${longitude.name}” and “${latitude.name}” are not degrees.`,
    advice: 'Longitudes are from -180 to 180, latitudes from -90 to 90.',
    fixes: [{ label: 'Draw points', spec: withKind(spec, 'scatter', table) }],
  };
}

/** Too many places, rows or colours. */
function checkPlaces(spec: ChartSpec, table: ChartTable, sql: string): ChartFault | null {
  const { kind, x, y, by } = spec;
  const axis = findColumn(table, x)!;
  const series = findColumn(table, by);
  const places = kind === 'bar' || kind === 'heatmap' ? distinct(axis).length : 0;
  if (places > (kind === 'bar' ? BARS_MAX : HEAT_COLUMNS_MAX)) {
    const fixes: Fix[] = axis.kind === 'text' ? [{ label: `Keep the ${LARGEST} largest`, spec, sql: largest(sql, y[0]!) }] : [];
    if (axis.kind === 'number') fixes.push({ label: `Group ${x} into ranges`, spec: { ...spec, y: y.slice(0, 1) }, sql: groupRanges(sql, axis, spec) });
    if (axis.kind !== 'text' && kind === 'bar') fixes.push({ label: 'Draw a line', spec: withKind(spec, 'line', table) });
    return { message: `“${x}” has ${numberText(places)} values: too many to tell apart.`, advice: 'Fewer of them make a chart.', fixes };
  }
  if (!series) return null;
  const rows = distinct(series).length;
  if (kind === 'heatmap') {
    if (rows <= HEAT_ROWS_MAX) return null;
    const fixes: Fix[] = series.kind === 'number' ? [{ label: `Group ${by} into ranges`, spec, sql: groupRanges(sql, series, spec) }] : [];
    return { message: `“${by}” has ${numberText(rows)} values: too many rows.`, advice: 'Fewer of them make a heat map.', fixes };
  }
  if (rows <= SERIES_MAX) return null;
  const fixes: Fix[] = hasSeveralValues(kind) ? [{ label: 'Draw a heat map', spec: withKind(spec, 'heatmap', table) }] : [];
  fixes.push({ label: 'Without colours', spec: { ...spec, by: '' } });
  return { message: `“${by}” has ${numberText(rows)} values, more than there are colours.`, advice: `At most ${SERIES_MAX} can be told apart.`, fixes };
}

/** Several values for one place: which one to draw is a question for SQL. */
function checkRepeated(spec: ChartSpec, table: ChartTable, sql: string): ChartFault | null {
  const { kind, x, y, by } = spec;
  if (!hasSeveralValues(kind) && kind !== 'heatmap') return null;
  const [axis, series] = [findColumn(table, x)!, findColumn(table, by)];
  if (!hasRepeatedPlaces(axis, series)) return null;
  const names = [x, by].filter(Boolean);
  const computed = (name: string) => y.map((value) => `${name}(${quoteName(value)}) AS ${quoteName(value)}`);
  return {
    message: `Several rows have the same ${names.join(' and ')}.`,
    advice: 'A chart needs one value for each: let SQL compute it over all rows.',
    fixes: [
      { label: `Average of ${y.join(', ')}`, spec, sql: aggregate(sql, names, computed('avg')) },
      { label: `Sum of ${y.join(', ')}`, spec, sql: aggregate(sql, names, computed('sum')) },
      countFix(spec, sql),
      ...bySeries(spec, table),
    ],
  };
}

/** A text column that makes the rows different. */
function bySeries(spec: ChartSpec, table: ChartTable): Fix[] {
  if (spec.by) return [];
  const axis = findColumn(table, spec.x)!;
  const fits = (column: ChartColumn) => {
    if (column === axis || spec.y.includes(column.name) || distinct(column).length > SERIES_MAX) return false;
    return !hasRepeatedPlaces(axis, column);
  };
  const column = table.columns.find(fits);
  return column ? [{ label: `One series for each ${column.name}`, spec: { ...spec, y: spec.y.slice(0, 1), by: column.name } }] : [];
}

/** The statement as a table. A comment at its end must not hide what follows. */
function inner(sql: string): string {
  return `(\n${sql.replace(/[;\s]+$/, '')}\n) AS result`;
}

function aggregate(sql: string, names: string[], values: string[]): string {
  const places = names.map((_, index) => index + 1).join(', ');
  return `SELECT ${[...names.map(quoteName), ...values].join(', ')}\nFROM ${inner(sql)}\nGROUP BY ${places}\nORDER BY ${places}`;
}

function countFix(spec: ChartSpec, sql: string): Fix {
  const names = [spec.x, spec.by].filter(Boolean);
  const kind = hasSeveralValues(spec.kind) || spec.kind === 'heatmap' ? spec.kind : 'bar';
  const counted = { ...spec, kind, y: [COUNT] };
  return { label: `Count the rows by ${names.join(' and ')}`, spec: counted, sql: aggregate(sql, names, [`count(*) AS ${COUNT}`]) };
}

function largest(sql: string, value: string): string {
  return `SELECT *\nFROM ${inner(sql)}\nORDER BY ${quoteName(value)} DESC\nLIMIT ${LARGEST}`;
}

/** Ranges of the numbers of a column, with the average of the values. */
function groupRanges(sql: string, column: ChartColumn, { x, y, by }: ChartSpec): string {
  const range = rangeText(column);
  const names = [x, by].filter(Boolean).map((name) => (name === column.name ? `${range} AS ${quoteName(name)}` : quoteName(name)));
  const places = names.map((_, index) => index + 1).join(', ');
  const value = quoteName(y[0]!);
  return `SELECT ${[...names, `avg(${value}) AS ${value}`].join(', ')}\nFROM ${inner(sql)}\nGROUP BY ${places}\nORDER BY ${places}`;
}

function rangeText(column: ChartColumn): string {
  const [low, high] = extent(column.values) ?? [0, 1];
  const width = roundStep((high - low || 1) / HISTOGRAM_BARS);
  // Between whole numbers, division cuts, which would put values on both sides of zero into one range.
  const divisor = Number.isInteger(width) ? `${width}.0` : String(width);
  return `floor(${quoteName(column.name)} / ${divisor}) * ${width}`;
}

/** The histogram over all rows of the statement, as bars. */
export function histogramFix(sql: string, column: ChartColumn): Fix {
  const { name } = column;
  const counted = `SELECT ${rangeText(column)} AS ${quoteName(name)}, count(*) AS ${COUNT}\nFROM ${inner(sql)}\nGROUP BY 1\nORDER BY 1`;
  return { label: 'Count all rows in SQL', spec: { kind: 'bar', x: name, y: [COUNT], by: '' }, sql: counted };
}
