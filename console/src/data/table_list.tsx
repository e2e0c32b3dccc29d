// The tables of all databases, and the search over names, comments and columns, which the server does.
import { useEffect, useState } from 'preact/hooks';
import { isAborted } from '../api/client';
import { databases, listTables, mayUse, searchTables, type Database, type Table } from '../api/catalog';
import { count } from '../format';
import { Icon } from '../parts/icons';
import { ProblemNote } from '../parts/problem';
import { link } from '../route';

const SEARCH_AFTER_MILLISECONDS = 250;

interface TableListProps {
  database: string | undefined;
  table: string | undefined;
}

export function TableList({ database, table }: TableListProps) {
  const [words, setWords] = useState('');
  const [found, setFound] = useState<Table[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    setError(null);
    if (!words.trim()) {
      setFound(null);
      return;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      searchTables(words.trim(), controller.signal)
        .then(setFound)
        .catch((refused) => !isAborted(refused) && setError(refused));
    }, SEARCH_AFTER_MILLISECONDS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [words]);
  const known = databases.value ?? [];
  return (
    <nav class="sidebar" aria-label="Tables">
      <label class="search">
        <span class="hidden">Search tables, columns and comments</span>
        <Icon name="search" />
        <input type="search" placeholder="Search tables and columns" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
      {error !== null && <ProblemNote error={error} />}
      {found ? (
        <SearchResults found={found} table={table} database={database} />
      ) : (
        known.map((one) => <DatabaseTables key={one.name} database={one} isOpen={known.length === 1 || one.name === database} table={one.name === database ? table : undefined} />)
      )}
      {known.length === 0 && <p class="muted">There is no database that you may query.</p>}
    </nav>
  );
}

interface DatabaseTablesProps {
  database: Database;
  isOpen: boolean;
  table: string | undefined;
}

function DatabaseTables({ database, isOpen, table }: DatabaseTablesProps) {
  const [open, setOpen] = useState(isOpen);
  const [tables, setTables] = useState<Table[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    if (isOpen) setOpen(true);
  }, [isOpen]);
  useEffect(() => {
    if (!open || tables || !mayUse.value.has('list_tables')) return;
    listTables(database.name).then(setTables).catch(setError);
  }, [open, database]);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="name">{database.name}</span>
        <span class="muted">{database.kind}</span>
      </summary>
      {error !== null && <ProblemNote error={error} />}
      {open && !tables && error === null && <p class="loading">Loading…</p>}
      {tables && tables.length === 0 && <p class="muted empty">No tables</p>}
      <ul>
        {tables?.map((one) => (
          <TableLink key={one.name} table={one} isCurrent={one.name === table} />
        ))}
      </ul>
    </details>
  );
}

function SearchResults({ found, database, table }: { found: Table[]; database: string | undefined; table: string | undefined }) {
  const only = databases.value?.[0]?.name ?? '';
  const tables = found.filter(({ name }) => name !== null).map((one) => ({ ...one, database: one.database ?? only }));
  if (tables.length === 0) return <p class="muted empty">Nothing has these words in its name, comment or columns.</p>;
  return (
    <ul>
      {tables.map((one) => (
        <TableLink key={`${one.database}/${one.name}`} table={one} isCurrent={one.name === table && one.database === database} withDatabase />
      ))}
    </ul>
  );
}

function TableLink({ table, isCurrent, withDatabase }: { table: Table; isCurrent: boolean; withDatabase?: boolean }) {
  return (
    <li>
      <a href={link(['data', table.database, table.name])} aria-current={isCurrent ? 'page' : undefined} title={table.comment ?? undefined}>
        <span class="name">{table.name}</span>
        <span class="number muted">{count(table.rows)}</span>
        {withDatabase && <span class="found muted">{[table.database, table.columns].filter(Boolean).join(': ')}</span>}
      </a>
    </li>
  );
}
