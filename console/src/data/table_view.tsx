// One table: its columns, and its first rows with filters and an order.
import { useEffect, useState } from 'preact/hooks';
import { callForText, isAborted, type Call } from '../api/client';
import { databases, describeTable, listTables, mayUse, type Column, type Table } from '../api/catalog';
import { plural } from '../format';
import { CallButton } from '../parts/call_button';
import { Icon } from '../parts/icons';
import { Loading, ProblemNote } from '../parts/problem';
import { Tabs } from '../parts/tabs';
import { go, link, route } from '../route';
import { ColumnTable } from './column_table';
import { queryArguments, readFilters, writeFilters, type Filter, type RowsRequest } from './filters';
import { FilterBar } from './filter_bar';
import { ROWS_MAX, RowsTable } from './rows_table';
import { writeStatement } from './sql_text';

type Tab = 'columns' | 'rows';

export function TableView({ database, table }: { database: string; table: string }) {
  const [columns, setColumns] = useState<Column[] | null>(null);
  const [entry, setEntry] = useState<Table | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const controller = new AbortController();
    const fail = (refused: unknown) => !isAborted(refused) && setError(refused);
    describeTable(database, table, controller.signal).then(setColumns).catch(fail);
    if (mayUse.value.has('list_tables')) {
      listTables(database)
        .then((tables) => setEntry(tables.find(({ name }) => name === table) ?? null))
        .catch(() => {});
    }
    return () => controller.abort();
  }, [database, table]);

  const parameters = route.value.parameters;
  const tab: Tab = parameters.get('tab') === 'columns' ? 'columns' : 'rows';
  const filters = readFilters(parameters.get('where'));
  const order = parameters.get('order');
  const show = (change: { tab?: Tab; filters?: Filter[]; order?: string | null }) => {
    const next = { tab, filters, order, ...change };
    go(['data', database, table], {
      tab: next.tab === 'columns' ? 'columns' : undefined,
      where: writeFilters(next.filters),
      order: next.order ?? undefined,
    });
  };
  const tabs = { rows: 'Rows', columns: columns ? `Columns (${columns.length})` : 'Columns' };
  const request = { database, table, filters, order };
  const args = columns ? { ...queryArguments(request, columns), limit: ROWS_MAX } : null;
  const call: Call | null =
    tab === 'columns' ? { tool: 'get_schema', arguments: { database, table, samples: 3 } } : args && { tool: 'query', arguments: args };
  return (
    <>
      <div class="view-head">
        <a class="plain back" href={link(['data', database])} aria-label="All tables">
          <Icon name="back" />
        </a>
        <h1 class="table-name">{table}</h1>
        <span class="muted">{entry?.rows !== null && entry?.rows !== undefined && plural(entry.rows, 'row')}</span>
        <span class="fill" />
        <CallButton call={call} />
        {columns && mayUse.value.has('explain') && mayUse.value.has('sql') && (
          <SqlButton request={request} columns={columns} />
        )}
      </div>
      {entry?.comment && <p class="comment">{entry.comment}</p>}
      <div class="tabs">
        <Tabs label="Views of the table" names={tabs} chosen={tab} onChoose={(name) => show({ tab: name })} />
      </div>
      {error !== null && <ProblemNote error={error} />}
      {!columns && error === null && <Loading what="the columns" />}
      {columns && tab === 'columns' && <ColumnTable columns={columns} />}
      {columns && tab === 'rows' && (
        <>
          <FilterBar columns={columns} filters={filters} onChange={(next) => show({ filters: next })} />
          <RowsTable
            request={request}
            columns={columns}
            onFilter={(filter) => show({ filters: [...filters.filter((other) => !isSame(other, filter)), filter] })}
            onOrder={(next) => show({ order: next })}
          />
        </>
      )}
    </>
  );
}

function isSame(one: Filter, other: Filter): boolean {
  return one.column === other.column && one.operator === other.operator && one.value === other.value;
}

interface SqlButtonProps {
  request: RowsRequest;
  columns: Column[];
}

/** Opens the rows as a statement. */
function SqlButton({ request, columns }: SqlButtonProps) {
  const [error, setError] = useState<unknown>(null);
  const { database, table } = request;
  const open = async () => {
    try {
      const text = await callForText('explain', { query: { database, table } });
      // The server quotes the name of the table as the dialect needs it, and adds the default maximum of the tool.
      const head = /^Statement: ([\s\S]*?)(?: LIMIT \d+)?\nEstimated rows: /.exec(text)?.[1] ?? '';
      const dialect = databases.value?.find(({ name }) => name === database)?.dialect ?? '';
      go(['query'], { database, sql: writeStatement(head, request, columns, dialect) });
    } catch (refused) {
      setError(refused);
    }
  };
  return (
    <>
      <button type="button" class="plain" title="The statement for all of these rows" onClick={() => void open()}>
        Open as SQL
      </button>
      {error !== null && <ProblemNote error={error} />}
    </>
  );
}
