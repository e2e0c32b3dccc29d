// The nodes of networks: their state, and which node has which part of a table.
import { useEffect, useState } from 'preact/hooks';
import { callForRows, isAborted, type Call } from '../api/client';
import { databases, listTables, mayUse, type Table } from '../api/catalog';
import { bytes, count, localTime, milliseconds } from '../format';
import { CallButton } from '../parts/call_button';
import { Icon } from '../parts/icons';
import { Loading, ProblemNote } from '../parts/problem';
import { useRepeated } from '../parts/repeat';
import { replace, route } from '../route';

/** Each reading contacts all nodes. */
const PAUSE_MILLISECONDS = 30_000;
const CALL: Call = { tool: 'list_nodes', arguments: { format: 'json' } };

interface NetworkNode {
  database: string;
  node: string;
  url: string;
  state: string;
  version: string | null;
  latency_ms: number | null;
  last_seen: string | null;
  running_calls: number | null;
  clock_offset_ms: number | null;
  failure: string | null;
}

interface TablePart {
  node: string;
  rows: number | null;
  share: number | null;
  bytes: number | null;
  ranges: string | null;
  known_since: string | null;
  holds: string | null;
  notes: string | null;
}

export function NetworkView() {
  const isPermitted = mayUse.value.has('list_nodes');
  const { value: nodes, error, refresh } = useRepeated(PAUSE_MILLISECONDS, isPermitted, (signal) => callForRows<NetworkNode>(CALL.tool, CALL.arguments, signal));
  if (!isPermitted) return <p class="note">There is no network here that you may query. A database with the key network unites the tables of several servers.</p>;
  const away = nodes?.filter(({ state }) => state !== 'ok') ?? [];
  return (
    <div class="view network">
      <div class="view-head">
        <h1>Network</h1>
        {nodes && (
          <p class="muted summary">
            {count(nodes.length - away.length)} of {count(nodes.length)} nodes answer
          </p>
        )}
        <span class="fill" />
        <CallButton call={CALL} />
        <button type="button" class="plain" onClick={refresh}>
          <Icon name="refresh" /> <span class="label">Refresh</span>
        </button>
      </div>
      {error !== null && <ProblemNote error={error} />}
      {!nodes && error === null && <Loading what="the nodes" />}
      {nodes && <Nodes nodes={nodes} />}
      {nodes && mayUse.value.has('locate') && <Parts />}
    </div>
  );
}

function Nodes({ nodes }: { nodes: NetworkNode[] }) {
  const networks = new Set(nodes.map(({ database }) => database));
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Nodes">
      <table>
        <thead>
          <tr>
            {networks.size > 1 && <th>Network</th>}
            <th>Node</th>
            <th>State</th>
            <th class="number">Latency</th>
            <th class="number">Your calls</th>
            <th>Version</th>
            <th>Last seen</th>
            <th>Address</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={`${node.database}/${node.node}`}>
              {networks.size > 1 && <td>{node.database}</td>}
              <td>{node.node}</td>
              <td>
                <span class={node.state === 'ok' ? 'state good' : 'state wrong'}>{node.state}</span>
                {node.failure && <span class="muted failure">{node.failure}</span>}
              </td>
              <td class="number">{node.latency_ms === null ? '–' : milliseconds(node.latency_ms)}</td>
              <td class="number">{count(node.running_calls)}</td>
              <td>{node.version}</td>
              <td class="nowrap">{node.last_seen && localTime(node.last_seen)}</td>
              <td class="mono">{node.url}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Where the rows of one table lie. */
function Parts() {
  const networks = (databases.value ?? []).filter(({ kind }) => kind === 'network').map(({ name }) => name);
  const { parameters } = route.value;
  const database = parameters.get('database') ?? networks[0] ?? '';
  const [tables, setTables] = useState<Table[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    setTables(null);
    setError(null);
    if (database) listTables(database).then(setTables, setError);
  }, [database]);
  const table = parameters.get('table') ?? tables?.[0]?.name ?? '';
  return (
    <section>
      <h2>What lies where</h2>
      <div class="toolbar wrap">
        {networks.length > 1 && (
          <label class="inline">
            <span class="muted">Network</span>
            <select value={database} onChange={(event) => replace(['network'], { database: event.currentTarget.value })}>
              {networks.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        <label class="inline">
          <span class="muted">Table</span>
          <select value={table} onChange={(event) => replace(['network'], { database, table: event.currentTarget.value })}>
            {tables?.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <CallButton call={table ? { tool: 'locate', arguments: { database, table } } : null} />
      </div>
      {error !== null && <ProblemNote error={error} />}
      {tables?.length === 0 && <p class="muted empty">The nodes have no table that you may read.</p>}
      {table && <PartTable key={`${database}/${table}`} database={database} table={table} />}
    </section>
  );
}

function PartTable({ database, table }: { database: string; table: string }) {
  const [parts, setParts] = useState<TablePart[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const controller = new AbortController();
    callForRows<TablePart>('locate', { database, table, format: 'json' }, controller.signal).then(setParts, (refused) => !isAborted(refused) && setError(refused));
    return () => controller.abort();
  }, []);
  if (error !== null) return <ProblemNote error={error} />;
  if (!parts) return <Loading what="the parts of the table" />;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={`Parts of ${table}`}>
      <table>
        <thead>
          <tr>
            <th>Node</th>
            <th class="number">Rows</th>
            <th>Share</th>
            <th class="number">Size</th>
            <th>Ranges</th>
            <th>Declared rows</th>
            <th>Notes</th>
          </tr>
        </thead>
        <tbody>
          {parts.map((part) => (
            <tr key={part.node}>
              <td>{part.node}</td>
              <td class="number">{part.rows === null ? 'unknown' : count(part.rows)}</td>
              <td>{part.share !== null && <meter class="share" min={0} max={1} value={part.share} aria-label={`Share of ${part.node}`} title={`${(part.share * 100).toFixed(1)} %`} />}</td>
              <td class="number">{part.bytes !== null && bytes(part.bytes)}</td>
              <td>{part.ranges}</td>
              <td>{part.holds}</td>
              <td class={part.notes ? 'wrong-text' : undefined}>{part.notes}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
