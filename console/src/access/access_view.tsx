// Who the viewer is to the server, and what the viewer may use.
import { useEffect, useState } from 'preact/hooks';
import { callForRows, isAborted, key, Problem, request } from '../api/client';
import { databases, mayUse, tools } from '../api/catalog';
import { count, duration } from '../format';
import { Fact } from '../parts/fact';
import { Loading, ProblemNote } from '../parts/problem';
import { link } from '../route';

interface ServerInfo {
  title: string;
  version: string;
  timeout_seconds: number | null;
  inline_rows: number | null;
  inline_bytes: number | null;
}

interface Rights {
  server: ServerInfo | null;
  /** Why the viewer may not read the metrics; `null` if the viewer may. */
  metrics: string | null;
}

export function AccessView() {
  const [rights, setRights] = useState<Rights | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const controller = new AbortController();
    setError(null);
    readRights(controller.signal).then(setRights, (refused) => !isAborted(refused) && setError(refused));
    return () => controller.abort();
  }, [key.value]);
  if (error !== null) return <ProblemNote error={error} />;
  if (!rights) return <Loading what="your rights" />;
  const { server, metrics } = rights;
  return (
    <div class="view access">
      <h1>Access</h1>
      <dl class="facts">
        <Fact name="You are" value={key.value === null ? 'a caller without a key' : 'signed in with a key'} />
        {server && <Fact name="Server" value={`${server.title} ${server.version}`} />}
        {server?.timeout_seconds != null && <Fact name="A call may take" value={duration(server.timeout_seconds)} />}
        {server && <Fact name="Rows of an answer" value={server.inline_rows === null ? 'no limit' : count(server.inline_rows)} />}
        {server && <Fact name="Size of an answer" value={server.inline_bytes === null ? 'no limit' : `${count(server.inline_bytes)} bytes`} />}
        <Fact name="Live numbers" value={metrics ?? 'you may read them'} />
      </dl>
      {key.value === null && <p class="muted">With a key, you may use more: the administrator of the server gives keys to callers.</p>}
      <DatabaseRights />
      <ToolRights />
    </div>
  );
}

async function readRights(signal: AbortSignal): Promise<Rights> {
  const [server] = mayUse.value.has('server_info') ? await callForRows<ServerInfo>('server_info', {}, signal) : [];
  return { server: server ?? null, metrics: await readMetricsRight(signal) };
}

async function readMetricsRight(signal: AbortSignal): Promise<string | null> {
  try {
    await request('metrics', { accept: 'text/plain', signal });
    return null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 403) return 'they need the access name metrics';
    if (error.status === 404) return 'this address does not serve them';
    throw error;
  }
}

function DatabaseRights() {
  const known = databases.value ?? [];
  return (
    <section>
      <h2>
        Databases <span class="muted">{known.length}</span>
      </h2>
      {known.length === 0 ? (
        <p class="muted">{mayUse.value.has('list_databases') ? 'There is no database that you may query.' : 'Your roles do not permit the tool list_databases.'}</p>
      ) : (
        <div class="table-box" tabIndex={0} role="region" aria-label="Databases">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Kind</th>
                <th class="number">Tables</th>
                <th>State</th>
              </tr>
            </thead>
            <tbody>
              {known.map(({ name, kind, tables, status }) => (
                <tr key={name}>
                  <td>
                    <a href={link(['data', name])}>{name}</a>
                  </td>
                  <td>{kind}</td>
                  <td class="number">{count(tables)}</td>
                  <td class={status === 'ok' ? undefined : 'wrong-text'}>{status}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function ToolRights() {
  const known = tools.value ?? [];
  return (
    <section>
      <h2>
        Tools <span class="muted">{known.length}</span>
      </h2>
      <div class="table-box" tabIndex={0} role="region" aria-label="Tools">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Effect</th>
              <th>Description</th>
            </tr>
          </thead>
          <tbody>
            {known.map(({ name, description, annotations }) => (
              <tr key={name}>
                <td>
                  <a href={link(['tools', 'tools', name])}>{name}</a>
                </td>
                <td class="nowrap">{annotations?.readOnlyHint ? 'reads' : 'may change something'}</td>
                <td class="muted">{description}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="muted">What is missing here, your roles do not permit. An administrator sees the reason with tidegate access explain.</p>
    </section>
  );
}
