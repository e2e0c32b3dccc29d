// The rows of the view as a statement that people take along, in the dialect of the database.
import type { Column } from '../api/catalog';
import { isNumberType } from '../parts/grid';
import { quoteName } from '../query/statement';
import { hasValue, type Filter, type RowsRequest } from './filters';

/** `head` is the statement for the table without conditions, as the server writes it. */
export function writeStatement(head: string, { filters, order }: RowsRequest, columns: Column[], dialect: string): string {
  const isSqlite = /sqlite/i.test(dialect);
  let text = head;
  filters.forEach((filter, index) => {
    const type = columns.find(({ name }) => name === filter.column)?.type ?? '';
    text += `\n${index === 0 ? 'WHERE' : '  AND'} ${condition(filter, type, isSqlite)}`;
  });
  if (order) {
    const isDescending = order.startsWith('-');
    text += `\nORDER BY ${quoteName(isDescending ? order.slice(1) : order)}${isDescending ? ' DESC NULLS LAST' : ''}`;
  }
  return text;
}

function condition({ column, operator, value }: Filter, type: string, isSqlite: boolean): string {
  const name = quoteName(column);
  if (!hasValue(operator)) return `${name} ${operator === 'is_null' ? 'IS NULL' : 'IS NOT NULL'}`;
  const literal = isNumberType(type) && /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value) ? value : quoteText(value);
  switch (operator) {
    case 'contains':
      return `${isSqlite ? 'instr' : 'strpos'}(${name}, ${literal}) > 0`;
    case 'starts_with':
      return isSqlite ? `substr(${name}, 1, length(${literal})) = ${literal}` : `starts_with(${name}, ${literal})`;
    case '!=':
      return `${name} <> ${literal}`;
    default:
      return type === 'boolean' ? `${name} ${operator} ${value}` : `${name} ${operator} ${literal}`;
  }
}

function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
