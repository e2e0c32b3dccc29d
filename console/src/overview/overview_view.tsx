// What is wrong right now, and what the server does: live numbers, running calls, databases.
import { useMemo } from 'preact/hooks';
import { call, type Call } from '../api/client';
import { databases, mayUse, type Database } from '../api/catalog';
import { bytes, count, duration, localTime, milliseconds, plural } from '../format';
import { CallButton } from '../parts/call_button';
import { Icon } from '../parts/icons';
import { ProblemNote } from '../parts/problem';
import { isOpen, isOwn, JobState, type Job } from '../parts/job_state';
import { link } from '../route';
import { findProblems, type Finding, type NodeStatus } from './findings';
import { useLiveState } from './live';
import { Pools } from './pools';
import { Tiles } from './tiles';

const CALL: Call = { tool: 'node_status', arguments: {} };
const ENDED_JOBS_MAX = 8;

export function OverviewView() {
  const live = useLiveState();
  const known = databases.value ?? [];
  const findings = useMemo(
    () => findProblems(live.status, known, live.snapshots[0], live.snapshots[live.snapshots.length - 1]),
    [live.status, known, live.snapshots],
  );
  return (
    <div class="view overview">
      <div class="view-head">
        <h1>Overview</h1>
        {live.status && <Summary status={live.status} />}
        <span class="fill" />
        <CallButton call={mayUse.value.has('node_status') ? CALL : null} />
        <button type="button" class="plain" onClick={live.refresh}>
          <Icon name="refresh" /> <span class="label">Refresh</span>
        </button>
      </div>
      {live.error !== null && <ProblemNote error={live.error} />}
      <Findings findings={findings} isKnown={live.status !== null || !mayUse.value.has('node_status')} />
      <Tiles live={live} />
      <Jobs jobs={live.jobs} onChange={live.refresh} />
      <DatabaseList databases={known} />
      <Pools databases={known} />
      {live.status?.notes && <Notes text={live.status.notes} />}
    </div>
  );
}

function Summary({ status }: { status: NodeStatus }) {
  return (
    <p class="muted summary">
      Up for {duration(status.uptime_seconds)} · {count(status.databases_reachable)} of {plural(status.databases, 'database')} reachable
    </p>
  );
}

function Findings({ findings, isKnown }: { findings: Finding[]; isKnown: boolean }) {
  if (!isKnown) return null;
  if (findings.length === 0) {
    return (
      <p class="note good">
        <Icon name="done" /> Nothing is wrong.
      </p>
    );
  }
  return (
    <section aria-label="What is wrong" class="findings">
      {findings.map(({ what, reason, advice }) => (
        <div key={what} class="note wrong">
          <Icon name="warning" />
          <div>
            <p class="what">{what}</p>
            <p>{reason}</p>
            <p class="hint">{advice}</p>
          </div>
        </div>
      ))}
    </section>
  );
}

function Jobs({ jobs, onChange }: { jobs: Job[]; onChange: () => void }) {
  const open = jobs.filter(isOpen);
  const ended = jobs.filter((job) => !isOpen(job) && !isOwn(job)).slice(0, ENDED_JOBS_MAX);
  if (!mayUse.value.has('list_jobs')) return null;
  const cancel = async (job: Job) => {
    await call('cancel_job', { id: job.id });
    onChange();
  };
  return (
    <section>
      <h2>
        Your calls <span class="muted">{open.length > 0 ? `${count(open.length)} running` : 'none running'}</span>
      </h2>
      {open.length + ended.length > 0 && (
        <div class="table-box" tabIndex={0} role="region" aria-label="Your calls">
          <table>
            <thead>
              <tr>
                <th>Call</th>
                <th>State</th>
                <th>Started</th>
                <th class="number">Time</th>
                <th class="number">Rows</th>
                <th class="number">Size</th>
                <th>
                  <span class="hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {[...open, ...ended].map((job) => (
                <tr key={job.id}>
                  <td>
                    <code>{job.target}</code>
                  </td>
                  <td>
                    <JobState name={job.status} />
                  </td>
                  <td class="nowrap">{localTime(job.started_at)}</td>
                  <td class="number">{milliseconds(job.elapsed_ms)}</td>
                  <td class="number">{count(job.rows)}</td>
                  <td class="number">{bytes(job.bytes)}</td>
                  <td class="actions">
                    {isOpen(job) && mayUse.value.has('cancel_job') && (
                      <button type="button" class="small" onClick={() => void cancel(job)}>
                        Cancel
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function DatabaseList({ databases: known }: { databases: Database[] }) {
  if (known.length === 0) return null;
  return (
    <section>
      <h2>Databases</h2>
      <div class="table-box" tabIndex={0} role="region" aria-label="Databases">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Kind</th>
              <th>SQL</th>
              <th class="number">Tables</th>
              <th>State</th>
            </tr>
          </thead>
          <tbody>
            {known.map((database) => (
              <tr key={database.name}>
                <td>
                  <a href={link(['data', database.name])}>{database.name}</a>
                </td>
                <td>{database.kind}</td>
                <td>{database.dialect}</td>
                <td class="number">{count(database.tables)}</td>
                <td class={database.status === 'ok' ? '' : 'wrong-text'}>{database.status}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Notes({ text }: { text: string }) {
  return (
    <section>
      <h2>Notes about files</h2>
      <ul class="notes">
        {text.split('\n').map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </section>
  );
}
