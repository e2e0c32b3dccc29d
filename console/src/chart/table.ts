// The columns of a result as a chart needs them: numbers, times and texts.
import { cellText, NumberText, type Cell } from '../api/json';
import type { GridColumn, RowSource } from '../api/rows';
import { isNumberType } from '../parts/grid';

export type ColumnKind = 'number' | 'time' | 'text';

/** A number, the milliseconds of a time in UTC, or a text. */
export type Value = number | string | null;

export interface ChartColumn {
  name: string;
  kind: ColumnKind;
  /** Whether the times are dates without a time of day. */
  isDate: boolean;
  values: Value[];
}

export interface ChartTable {
  columns: ChartColumn[];
  rows: number;
  /** Rows of the result, of which the chart may have the first only. */
  total: number;
}

/** Rows in a chart at most: more cannot be told apart, and the page has to stay small. */
export const CHART_ROWS_MAX = 20_000;

export async function readTable(source: RowSource, signal: AbortSignal): Promise<ChartTable> {
  const rows = await source.readFirst(CHART_ROWS_MAX, signal);
  return { columns: source.columns.map((column, index) => toColumn(column, rows, index)), rows: rows.length, total: source.rows.peek() };
}

function toColumn({ name, type }: GridColumn, rows: Cell[][], index: number): ChartColumn {
  const kind = kindOf(type);
  const read = { number: readNumber, time: readTime, text: readText }[kind];
  return { name, kind, isDate: /^date$/i.test(type), values: rows.map((cells) => read(cells[index] ?? null)) };
}

function kindOf(type: string): ColumnKind {
  if (isNumberType(type)) return 'number';
  return /^(timestamp|date)/i.test(type) ? 'time' : 'text';
}

function readNumber(cell: Cell): number | null {
  const value = cell instanceof NumberText ? Number(cell.text) : typeof cell === 'string' ? Number(cell) : NaN;
  return Number.isFinite(value) ? value : null;
}

/** Times without a zone are drawn as if they were in UTC: as they are written. */
function readTime(cell: Cell): number | null {
  if (typeof cell !== 'string') return null;
  const text = cell.replace(' ', 'T');
  const value = Date.parse(/T/.test(text) && !/(Z|[+-]\d{2}(:?\d{2})?)$/.test(text) ? `${text}Z` : text);
  return Number.isFinite(value) ? value : null;
}

function readText(cell: Cell): string | null {
  return cell === null ? null : cellText(cell);
}

export function findColumn(table: ChartTable, name: string): ChartColumn | undefined {
  return table.columns.find((column) => column.name === name);
}

/** The values, each once: numbers and times in their order, texts in the order of the rows. */
export function distinct(column: ChartColumn): Value[] {
  const values = [...new Set(column.values)];
  return column.kind === 'text' ? values : values.sort((one, other) => Number(one ?? -Infinity) - Number(other ?? -Infinity));
}
