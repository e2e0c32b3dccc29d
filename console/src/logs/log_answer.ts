// Answers of `query_logs`.
import { call } from '../api/client';
import { JsonText, NumberText, type Cell } from '../api/json';

export interface LogField {
  field: string;
  type: string;
  role: string | null;
  values: number | null;
}

/** A column without a value in any of the rows is left out. */
export interface LogEntries {
  columns: string[];
  rows: unknown[][];
}

export interface LogAnswer {
  matched: number;
  facets?: Record<string, { values: [string | null, number][]; more?: { values: number } }>;
  histogram?: { from: string; width_seconds: number; series: { value?: string | null; rows: number[] }[] };
  patterns?: { rows: [number, string, string, string][] };
  entries?: LogEntries;
  /** The entries around a time. */
  before?: LogEntries;
  after?: LogEntries;
  /** For the next page, and for entries that come later. */
  cursor?: string;
  tail?: string;
}

export async function queryLogs(args: Record<string, unknown>, signal?: AbortSignal): Promise<LogAnswer> {
  return parseAnswer(await (await call('query_logs', args, signal)).text());
}

/** Digits that a number of JavaScript cannot have: the text stays. */
const EXACT_CHARACTERS = 15;

function parseAnswer(text: string): LogAnswer {
  const keepDigits = (_: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    return typeof value === 'number' && source !== undefined && source.length > EXACT_CHARACTERS ? new NumberText(source) : value;
  };
  return JSON.parse(text, keepDigits) as LogAnswer;
}

export function toCell(value: unknown): Cell {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || value instanceof NumberText) return value;
  return typeof value === 'number' ? new NumberText(String(value)) : new JsonText(JSON.stringify(value));
}
