// Databases, tables, columns and rows.
import { databases, mayUse, type Database } from '../api/catalog';
import { count } from '../format';
import { link, route } from '../route';
import { TableList } from './table_list';
import { TableView } from './table_view';

export function DataView() {
  const [, database, table] = route.value.path;
  const chosen = (databases.value ?? []).find(({ name }) => name === database);
  return (
    <div class={table === undefined ? 'view data list-only' : 'view data'}>
      <TableList database={database} table={table} />
      <div class="data-main">
        {table !== undefined && database !== undefined ? (
          <TableView key={`${database}/${table}`} database={database} table={table} />
        ) : (
          <Choice database={chosen} />
        )}
      </div>
    </div>
  );
}

function Choice({ database }: { database: Database | undefined }) {
  const shown = database ? [database] : (databases.value ?? []);
  return (
    <>
      <h1>{database?.name ?? 'Data'}</h1>
      <p class="muted">{mayUse.value.has('list_tables') ? 'Choose a table, or search for one.' : 'Your roles do not permit the tool list_tables.'}</p>
      <ul class="cards">
        {shown.map((one) => (
          <li key={one.name}>
            <a href={link(['data', one.name])}>
              <strong>{one.name}</strong>
              <span class="muted">
                {one.kind} · {one.dialect} · {one.tables === null ? 'tables unknown' : `${count(one.tables)} tables`}
              </span>
              {one.status !== 'ok' && <span class="wrong-text">{one.status}</span>}
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}
