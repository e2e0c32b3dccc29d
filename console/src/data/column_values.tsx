// The most frequent values of a column among the filtered rows, with nulls, distinct values and the range.
import { useEffect, useState } from 'preact/hooks';
import { call, isAborted } from '../api/client';
import type { Column } from '../api/catalog';
import { cellText, parseRows, type Cell } from '../api/json';
import type { GridColumn } from '../api/rows';
import { count } from '../format';
import { Dialog } from '../parts/dialog';
import { Loading, ProblemNote } from '../parts/problem';
import { filterOfCell, queryArguments, type Filter, type RowsRequest } from './filters';

const VALUES_MAX = 15;

interface ColumnValuesProps {
  request: RowsRequest;
  columns: Column[];
  column: GridColumn;
  onClose: () => void;
  onFilter: (filter: Filter) => void;
}

interface Counted {
  values: { cell: Cell; rows: number }[];
  rows: number;
  present: number;
  distinct: number;
  least: Cell;
  greatest: Cell;
}

export function ColumnValues({ request, columns, column, onClose, onFilter }: ColumnValuesProps) {
  const [counted, setCounted] = useState<Counted | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const controller = new AbortController();
    countValues(request, columns, column.name, controller.signal)
      .then(setCounted)
      .catch((refused) => !isAborted(refused) && setError(refused));
    return () => controller.abort();
  }, []);
  return (
    <Dialog title={`Values of ${column.name}`} onClose={onClose}>
      {error !== null && <ProblemNote error={error} />}
      {!counted && error === null && <Loading what="the values" />}
      {counted && (
        <>
          <dl class="facts">
            <Fact name="Rows" value={count(counted.rows)} />
            <Fact name="Null" value={count(counted.rows - counted.present)} />
            <Fact name="Distinct" value={count(counted.distinct)} />
            <Fact name="Least" value={cellText(counted.least)} />
            <Fact name="Greatest" value={cellText(counted.greatest)} />
          </dl>
          <ul class="values">
            {counted.values.map(({ cell, rows }) => (
              <li key={cellText(cell)}>
                <button type="button" onClick={() => onFilter(filterOfCell(column.name, cell, true))}>
                  <span class={cell === null ? 'name null' : 'name'}>{cellText(cell)}</span>
                  <meter min={0} max={counted.values[0]!.rows} value={rows} aria-label={`${count(rows)} rows`} />
                  <span class="number">{count(rows)}</span>
                  <span class="number muted">{((rows / counted.rows) * 100).toFixed(1)} %</span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </Dialog>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

async function countValues(request: RowsRequest, columns: Column[], column: string, signal: AbortSignal): Promise<Counted> {
  const { order_by: _, ...rows } = queryArguments(request, columns);
  const aggregate = (name: string, as: string) => ({ function: name, column, as });
  const values = call('query', {
    ...rows,
    select: [column, { function: 'count', as: 'n_rows' }],
    group_by: [column],
    order_by: ['-n_rows'],
    limit: VALUES_MAX,
  }, signal);
  const totals = call('query', {
    ...rows,
    select: [
      { function: 'count', as: 'n_rows' },
      aggregate('count', 'n_present'),
      aggregate('count_distinct', 'n_distinct'),
      aggregate('min', 'least'),
      aggregate('max', 'greatest'),
    ],
  }, signal);
  const [frequent, total] = await Promise.all([values.then(readRows), totals.then(readRows)]);
  const [all, present, distinct, least, greatest] = total[0]!.cells;
  return {
    values: frequent.map(({ cells }) => ({ cell: cells[0] ?? null, rows: Number(cellText(cells[1] ?? null)) })),
    rows: Number(cellText(all ?? null)),
    present: Number(cellText(present ?? null)),
    distinct: Number(cellText(distinct ?? null)),
    least: least ?? null,
    greatest: greatest ?? null,
  };
}

async function readRows(response: Response) {
  return parseRows(await response.text());
}
