// The first rows of a table. A click on a value or on the head of a column filters, orders, or counts values.
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, isAborted } from '../api/client';
import type { Column } from '../api/catalog';
import { cellText } from '../api/json';
import { LoadedRows, type GridColumn } from '../api/rows';
import { count } from '../format';
import { CellDialog } from '../parts/cell_dialog';
import { Grid, HeaderText, rowsText, type CellPlace } from '../parts/grid';
import { Icon } from '../parts/icons';
import { placeBeside } from '../parts/menu';
import { Loading, ProblemNote } from '../parts/problem';
import { ColumnValues } from './column_values';
import { filterOfCell, queryArguments, shortText, writeFilters, type Filter, type RowsRequest } from './filters';

/** Rows of the view at most; a statement reads all. */
export const ROWS_MAX = 500;

interface RowsTableProps {
  request: RowsRequest;
  columns: Column[];
  onFilter: (filter: Filter) => void;
  onOrder: (order: string | null) => void;
}

interface Shown {
  source: LoadedRows;
  isTruncated: boolean;
}

export function RowsTable({ request, columns, onFilter, onOrder }: RowsTableProps) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [cell, setCell] = useState<CellPlace | null>(null);
  const [opened, setOpened] = useState<CellPlace | null>(null);
  const [counted, setCounted] = useState<GridColumn | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    setError(null);
    call('query', { ...queryArguments(request, columns), limit: ROWS_MAX }, controller.signal)
      .then((response) => response.text())
      .then((text) => setShown(LoadedRows.fromAnswer(text)))
      .catch((refused) => {
        if (isAborted(refused)) return;
        setShown(null);
        setError(refused);
      });
    return () => controller.abort();
  }, [request.database, request.table, writeFilters(request.filters), request.order]);

  if (error !== null) return <ProblemNote error={error} />;
  if (!shown) return <Loading what="the rows" />;
  const sort = ({ name }: GridColumn) =>
    request.order === name ? 'ascending' : request.order === `-${name}` ? 'descending' : undefined;
  const head = (column: GridColumn) => (
    <ColumnHead column={column} sort={sort(column)} onOrder={onOrder} onCount={() => setCounted(column)} />
  );
  return (
    <>
      <Grid source={shown.source} label={`Rows of ${request.table}`} header={head} sort={sort} onCell={setCell} />
      <p class="grid-foot muted" role="status">
        {shown.isTruncated ? `The first ${count(shown.source.rows.value)} rows` : rowsText(shown.source.rows.value)}
        {shown.isTruncated && '. “Open as SQL” reads all.'}
      </p>
      {cell && <CellMenu place={cell} onClose={() => setCell(null)} onFilter={onFilter} onOpen={() => setOpened(cell)} />}
      {opened && <CellDialog name={opened.column.name} type={opened.column.type} cell={opened.cell} onClose={() => setOpened(null)} />}
      {counted && (
        <ColumnValues
          request={request}
          columns={columns}
          column={counted}
          onClose={() => setCounted(null)}
          onFilter={(filter) => {
            setCounted(null);
            onFilter(filter);
          }}
        />
      )}
    </>
  );
}

interface ColumnHeadProps {
  column: GridColumn;
  sort: 'ascending' | 'descending' | undefined;
  onOrder: (order: string | null) => void;
  onCount: () => void;
}

function ColumnHead({ column, sort, onOrder, onCount }: ColumnHeadProps) {
  const next = sort === 'ascending' ? `-${column.name}` : sort === 'descending' ? null : column.name;
  return (
    <>
      <button type="button" class="head-button" title={`Order by ${column.name}`} onClick={() => onOrder(next)}>
        {sort && <Icon name={sort === 'ascending' ? 'up' : 'down'} />}
        <HeaderText column={column} />
      </button>
      <button type="button" class="head-count" title={`Values of ${column.name}`} aria-label={`Values of ${column.name}`} onClick={onCount}>
        <Icon name="filter" />
      </button>
    </>
  );
}

interface CellMenuProps {
  place: CellPlace;
  onClose: () => void;
  onFilter: (filter: Filter) => void;
  onOpen: () => void;
}

/** The actions on a value, beside its cell. */
function CellMenu({ place, onClose, onFilter, onOpen }: CellMenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  const { column, cell } = place;
  useEffect(() => {
    const shown = menu.current!;
    shown.showPopover();
    placeBeside(shown, place.element.getBoundingClientRect());
    shown.querySelector('button')!.focus();
    return () => (document.querySelector<HTMLElement>('[role=grid]') ?? undefined)?.focus({ preventScroll: true });
  }, [place]);
  const run = (action: () => void) => () => {
    onClose();
    action();
  };
  const value = cell === null ? '' : shortText(cell);
  return (
    <div ref={menu} class="menu" popover="auto" onToggle={(event) => event.newState === 'closed' && onClose()}>
      <button type="button" onClick={run(() => onFilter(filterOfCell(column.name, cell, true)))}>
        {cell === null ? `${column.name} is null` : `${column.name} = ${value}`}
      </button>
      <button type="button" onClick={run(() => onFilter(filterOfCell(column.name, cell, false)))}>
        {cell === null ? `${column.name} is not null` : `${column.name} ≠ ${value}`}
      </button>
      <button type="button" onClick={run(onOpen)}>
        Show the whole value
      </button>
      <button type="button" onClick={run(() => void navigator.clipboard.writeText(cellText(cell)))}>
        Copy the value
      </button>
    </div>
  );
}
