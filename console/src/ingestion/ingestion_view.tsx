// Tables that take rows: what waits, what was rejected, and the import of files.
import { useEffect, useState } from 'preact/hooks';
import { callForStructure, type Call } from '../api/client';
import { databases, forgetCatalog, listTables, mayUse, type Table } from '../api/catalog';
import { bytes, count, duration, plural } from '../format';
import { CallButton } from '../parts/call_button';
import { Icon } from '../parts/icons';
import { Loading, ProblemNote } from '../parts/problem';
import { useRepeated } from '../parts/repeat';
import { link } from '../route';
import { ImportForm } from './import_form';

const CALL: Call = { tool: 'ingest_status', arguments: {} };
const PAUSE_MILLISECONDS = 10_000;
/** Age of waiting rows from which their table is behind. */
const AGE_SECONDS_MAX = 60;
const REJECTS = '__rejects';

interface TableStatus {
  database: string;
  table: string;
  waiting_rows: number;
  waiting_bytes: number;
  oldest_seconds: number | null;
  files: number;
  /** In files. */
  rows: number;
  bytes: number;
  flushes: number;
  compactions: number;
  last_error: string | null;
}

export function IngestionView() {
  const readsStatus = mayUse.value.has('ingest_status');
  const read = async (signal: AbortSignal) => (await callForStructure<{ tables: TableStatus[] }>('ingest_status', {}, signal)).tables;
  const { value: tables, error, round, refresh } = useRepeated(PAUSE_MILLISECONDS, readsStatus, read);
  const again = () => {
    // Tables may be new.
    forgetCatalog();
    refresh();
  };
  const mayWrite = mayUse.value.has('append_rows');
  if (!readsStatus && !mayWrite) {
    return <p class="note">There are no tables here that take rows from you. The key ingest of a database and of a role permits them.</p>;
  }
  return (
    <div class="view ingestion">
      <div class="view-head">
        <h1>Ingestion</h1>
        <span class="fill" />
        <CallButton call={readsStatus ? CALL : null} />
        <button type="button" class="plain" onClick={again}>
          <Icon name="refresh" /> <span class="label">Refresh</span>
        </button>
      </div>
      {error !== null && <ProblemNote error={error} />}
      {readsStatus && !tables && error === null && <Loading what="the tables that take rows" />}
      {tables && <Tables tables={tables} />}
      {!readsStatus && <p class="muted">Operators also see how many rows wait, the files, and the last error of each table.</p>}
      <Rejects round={round} />
      {mayWrite && <ImportForm tables={tables ?? []} onStore={again} />}
    </div>
  );
}

function Tables({ tables }: { tables: TableStatus[] }) {
  if (tables.length === 0) return <p class="muted empty">No table has taken rows yet.</p>;
  return (
    <section>
      <h2>
        Tables <span class="muted">{tables.length}</span>
      </h2>
      <div class="table-box" tabIndex={0} role="region" aria-label="Tables that take rows">
        <table>
          <thead>
            <tr>
              <th>Table</th>
              <th class="number">Rows</th>
              <th class="number">In the log only</th>
              <th class="number">Oldest of them</th>
              <th class="number">Files</th>
              <th class="number">Size</th>
              <th class="number">Moves</th>
              <th>State</th>
            </tr>
          </thead>
          <tbody>
            {tables.map((table) => (
              <tr key={`${table.database}.${table.table}`}>
                <td>
                  <a href={link(['data', table.database, table.table])}>
                    {table.database}.{table.table}
                  </a>
                </td>
                <td class="number">{count(table.rows + table.waiting_rows)}</td>
                <td class="number">{count(table.waiting_rows)}</td>
                <td class="number">{table.oldest_seconds === null ? '–' : duration(table.oldest_seconds)}</td>
                <td class="number">{count(table.files)}</td>
                <td class="number">{bytes(table.bytes)}</td>
                <td class="number">{count(table.flushes)}</td>
                <td>
                  <TableState table={table} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function TableState({ table }: { table: TableStatus }) {
  if (table.last_error !== null) return <span class="state wrong">{table.last_error}</span>;
  if ((table.oldest_seconds ?? 0) > AGE_SECONDS_MAX) return <span class="state wrong">rows wait for their data files</span>;
  return <span class="state good">ok</span>;
}

/** The tables of rejected rows that the viewer may read. */
function Rejects({ round }: { round: number }) {
  const [found, setFound] = useState<Table[]>([]);
  const known = databases.value ?? [];
  useEffect(() => {
    if (!mayUse.value.has('list_tables')) return;
    let isCurrent = true;
    const readAll = Promise.all(known.map(({ name }) => listTables(name).catch(() => [])));
    void readAll.then((tables) => isCurrent && setFound(tables.flat().filter(({ name }) => name.endsWith(REJECTS))));
    return () => {
      isCurrent = false;
    };
  }, [known, round]);
  if (found.length === 0) return null;
  return (
    <section>
      <h2>Rejected rows</h2>
      <ul>
        {found.map(({ database, name, rows }) => (
          <li key={`${database}.${name}`}>
            <a href={link(['data', database, name], { order: '-time' })}>
              {database}.{name}
            </a>{' '}
            <span class="muted">{rows !== null && plural(rows, 'row')}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
