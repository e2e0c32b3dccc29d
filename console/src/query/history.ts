// The statements that were run in this browser. They stay in it: the server has no part in this list.
import { signal } from '@preact/signals';
import type { RunState } from './run';

export interface HistoryItem {
  database: string;
  sql: string;
  at: number;
  state: RunState;
  rows: number | null;
  milliseconds: number;
}

const NAME = 'tidegate-history';
const ITEMS_MAX = 100;
const STATEMENT_CHARACTERS_MAX = 20_000;

export const history = signal<HistoryItem[]>(read());

function read(): HistoryItem[] {
  try {
    const items = JSON.parse(localStorage.getItem(NAME) ?? '[]') as unknown;
    return Array.isArray(items) ? (items as HistoryItem[]).filter((item) => typeof item?.sql === 'string') : [];
  } catch {
    return [];
  }
}

export function addToHistory({ database, sql, at, state, rows, milliseconds }: HistoryItem): void {
  if (sql.length > STATEMENT_CHARACTERS_MAX) return;
  const item = { database, sql, at, state, rows, milliseconds };
  // The same statement is listed once, at its last time.
  const others = history.peek().filter((other) => other.sql !== sql || other.database !== database);
  store([item, ...others].slice(0, ITEMS_MAX));
}

export function clearHistory(): void {
  store([]);
}

function store(items: HistoryItem[]): void {
  history.value = items;
  try {
    localStorage.setItem(NAME, JSON.stringify(items));
  } catch {
    // The storage of the browser is full or off; the list lasts as long as the page.
  }
}
