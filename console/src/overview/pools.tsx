// Connections to databases and the memory of results, from the live tables of a database of the kind `system`.
import { useEffect, useState } from 'preact/hooks';
import { callForRows } from '../api/client';
import { mayUse, type Database } from '../api/catalog';
import { bytes, count } from '../format';

interface Pool {
  database: string;
  kind: string;
  connections_in_use: number | null;
  connections_free: number | null;
}

interface Cache {
  name: string;
  entries: number | null;
  used_bytes: number;
}

export function Pools({ databases }: { databases: Database[] }) {
  const [pools, setPools] = useState<Pool[]>([]);
  const [caches, setCaches] = useState<Cache[]>([]);
  const system = databases.find(({ kind }) => kind === 'system')?.name;
  useEffect(() => {
    if (!system || !mayUse.value.has('query')) return;
    const controller = new AbortController();
    const read = <T,>(table: string) => callForRows<T>('query', { database: system, table }, controller.signal);
    // A table that the viewer may not read does not exist for them.
    const absent = () => [];
    void read<Pool>('pools').catch(absent).then(setPools);
    void read<Cache>('caches').catch(absent).then(setCaches);
    return () => controller.abort();
  }, [system, databases]);
  return (
    <>
      {pools.length > 0 && (
        <section>
          <h2>Connections to databases</h2>
          <div class="table-box" tabIndex={0} role="region" aria-label="Connections to databases">
            <table>
              <thead>
                <tr>
                  <th>Database</th>
                  <th>Kind</th>
                  <th class="number">In use</th>
                  <th class="number">Free</th>
                </tr>
              </thead>
              <tbody>
                {pools.map((pool) => (
                  <tr key={pool.database}>
                    <td>{pool.database}</td>
                    <td>{pool.kind}</td>
                    <td class="number">{count(pool.connections_in_use)}</td>
                    <td class="number">{count(pool.connections_free)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {caches.length > 0 && (
        <section>
          <h2>Memory and disk of queries</h2>
          <div class="table-box" tabIndex={0} role="region" aria-label="Memory and disk of queries">
            <table>
              <thead>
                <tr>
                  <th>What</th>
                  <th class="number">Entries</th>
                  <th class="number">Size</th>
                </tr>
              </thead>
              <tbody>
                {caches.map((cache) => (
                  <tr key={cache.name}>
                    <td>{cache.name.replaceAll('_', ' ')}</td>
                    <td class="number">{count(cache.entries)}</td>
                    <td class="number">{bytes(cache.used_bytes)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </>
  );
}
