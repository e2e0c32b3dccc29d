// What the viewer may use: tools, databases, tables and columns. Each is read once and kept until it is refreshed.
import { computed, signal } from '@preact/signals';
import { callForRows, request } from './client';

export interface Tool {
  name: string;
  title?: string;
  description?: string;
  annotations?: { readOnlyHint?: boolean };
}

export interface Database {
  name: string;
  kind: string;
  dialect: string;
  tables: number | null;
  status: string;
}

export interface Table {
  database: string;
  name: string;
  rows: number | null;
  comment: string | null;
  /** The columns that a search found. */
  columns?: string | null;
}

export interface Column {
  table?: string;
  name: string;
  type: string;
  nullable: boolean | null;
  comment: string | null;
  samples?: string[] | null;
}

export const tools = signal<Tool[] | null>(null);
export const databases = signal<Database[] | null>(null);
export const mayUse = computed(() => new Set((tools.value ?? []).map((tool) => tool.name)));

export async function loadTools(): Promise<void> {
  const response = await request('rest/tools');
  tools.value = ((await response.json()) as { tools: Tool[] }).tools;
}

export async function loadDatabases(): Promise<void> {
  if (!mayUse.value.has('list_databases')) {
    databases.value = [];
    return;
  }
  databases.value = await callForRows<Database>('list_databases', {});
}

const tablesOfDatabase = new Map<string, Promise<Table[]>>();
const columnsOfTable = new Map<string, Promise<Column[]>>();

/** Forgets what is kept, after the viewer or the data has changed. */
export function forgetCatalog(): void {
  tablesOfDatabase.clear();
  columnsOfTable.clear();
}

export function listTables(database: string): Promise<Table[]> {
  return kept(tablesOfDatabase, database, async () => {
    const tables = await callForRows<Table>('list_tables', { database, format: 'json' });
    return tables.filter((table) => table.name !== null).map((table) => ({ ...table, database }));
  });
}

export function searchTables(words: string, signal: AbortSignal): Promise<Table[]> {
  return callForRows<Table>('list_tables', { pattern: words, format: 'json' }, signal);
}

export function listColumns(database: string, table: string): Promise<Column[]> {
  const name = JSON.stringify([database, table]);
  return kept(columnsOfTable, name, () => callForRows<Column>('get_schema', { database, table }));
}

/** The columns with example values. */
export function describeTable(database: string, table: string, signal: AbortSignal): Promise<Column[]> {
  return callForRows<Column>('get_schema', { database, table, samples: 3 }, signal);
}

function kept<T>(cache: Map<string, Promise<T>>, name: string, load: () => Promise<T>): Promise<T> {
  const known = cache.get(name);
  if (known) return known;
  const loading = load();
  cache.set(name, loading);
  // A failure is not kept: the next reader tries again.
  loading.catch(() => cache.delete(name));
  return loading;
}
