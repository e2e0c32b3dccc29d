// Conditions on the rows of a table, as the address of the view has them, and as the tool `query` takes them.
import type { Column } from '../api/catalog';
import { cellText, NumberText, type Cell } from '../api/json';
import { isNumberType } from '../parts/grid';

export const OPERATORS = ['=', '!=', '<', '<=', '>', '>=', 'contains', 'starts_with', 'is_null', 'is_not_null'] as const;
export type Operator = (typeof OPERATORS)[number];

export interface Filter {
  column: string;
  operator: Operator;
  value: string;
}

const OPERATOR_WORDS: Record<Operator, string> = {
  '=': '=',
  '!=': '≠',
  '<': '<',
  '<=': '≤',
  '>': '>',
  '>=': '≥',
  contains: 'contains',
  starts_with: 'starts with',
  is_null: 'is null',
  is_not_null: 'is not null',
};

export function operatorWords(operator: Operator): string {
  return OPERATOR_WORDS[operator];
}

export function hasValue(operator: Operator): boolean {
  return operator !== 'is_null' && operator !== 'is_not_null';
}

/** The filter for rows that have, or do not have, the value of a cell. */
export function filterOfCell(column: string, cell: Cell, isEqual: boolean): Filter {
  if (cell === null) return { column, operator: isEqual ? 'is_null' : 'is_not_null', value: '' };
  return { column, operator: isEqual ? '=' : '!=', value: cellText(cell) };
}

export function writeFilters(filters: Filter[]): string | undefined {
  if (filters.length === 0) return undefined;
  return JSON.stringify(filters.map(({ column, operator, value }) => (hasValue(operator) ? [column, operator, value] : [column, operator])));
}

/** The filters in an address. What is no filter is left out: people edit addresses. */
export function readFilters(text: string | null): Filter[] {
  if (!text) return [];
  let items: unknown;
  try {
    items = JSON.parse(text);
  } catch {
    return [];
  }
  if (!Array.isArray(items)) return [];
  return items.flatMap((item) => {
    if (!Array.isArray(item)) return [];
    const operator = OPERATORS.find((known) => known === item[1]);
    return operator && typeof item[0] === 'string' ? [{ column: item[0], operator, value: String(item[2] ?? '') }] : [];
  });
}

export interface RowsRequest {
  database: string;
  table: string;
  filters: Filter[];
  /** A column, with a minus for descending. */
  order: string | null;
}

/** The arguments of the tool `query` for these rows. */
export function queryArguments(request: RowsRequest, columns: Column[]): Record<string, unknown> {
  const args: Record<string, unknown> = { database: request.database, table: request.table };
  const conditions = request.filters.map((filter) => condition(filter, columns));
  if (conditions.length > 0) args.where = { and: conditions };
  if (request.order) args.order_by = [request.order];
  return args;
}

function condition({ column, operator, value }: Filter, columns: Column[]): Record<string, unknown> {
  if (!hasValue(operator)) return { column, op: operator };
  const type = columns.find(({ name }) => name === column)?.type ?? '';
  return { column, op: operator, value: typedValue(value, type) };
}

/** Numbers beyond the digits of a float stay text, which the server reads exactly. */
function typedValue(value: string, type: string): unknown {
  if (type === 'boolean') return value === 'true';
  const number = Number(value);
  const isExact = value.trim() !== '' && String(number) === value;
  return isNumberType(type) && isExact ? number : value;
}

/** The text of a cell for a title. */
export function shortText(cell: Cell): string {
  const text = cell instanceof NumberText ? cell.text : cellText(cell);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
