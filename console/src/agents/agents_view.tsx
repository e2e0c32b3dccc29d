// What models and programs asked, with the outcome, the time and the size of each answer.
import { useMemo, useState } from 'preact/hooks';
import { callForRows, type Call } from '../api/client';
import { mayUse } from '../api/catalog';
import { count, localTime, milliseconds, plural } from '../format';
import { CallButton } from '../parts/call_button';
import { Dialog } from '../parts/dialog';
import { Fact } from '../parts/fact';
import { Icon } from '../parts/icons';
import { isOpen, isOwn, JobState, type Job } from '../parts/job_state';
import { Loading, ProblemNote } from '../parts/problem';
import { useRepeated } from '../parts/repeat';
import { Tabs } from '../parts/tabs';
import { link, replace, route } from '../route';

const CALL: Call = { tool: 'list_jobs', arguments: {} };
const PAUSE_MILLISECONDS = 5000;
/** Bytes of a token, about: tokenizers of models differ. */
const TOKEN_BYTES = 4;
const SHOWN_MAX = 300;
const ORDERS = { newest: 'Newest', slowest: 'Slowest', failed: 'Failed', largest: 'Largest answers' };
type Order = keyof typeof ORDERS;

export function AgentsView() {
  const [opened, setOpened] = useState<Job | null>(null);
  const isPermitted = mayUse.value.has('list_jobs');
  const { value: jobs, error, refresh } = useRepeated(PAUSE_MILLISECONDS, isPermitted, (signal) => callForRows<Job>(CALL.tool, CALL.arguments, signal));
  const chosen = route.value.parameters.get('order') ?? '';
  const order: Order = Object.hasOwn(ORDERS, chosen) ? (chosen as Order) : 'newest';
  const shown = useMemo(() => (jobs ? inOrder(jobs.filter((job) => !isOwn(job)), order) : []), [jobs, order]);
  if (!isPermitted) return <p class="note">Your roles do not permit the tool list_jobs. An administrator can add it to a toolset of your role.</p>;
  return (
    <div class="view agents">
      <div class="view-head">
        <h1>Agents</h1>
        {jobs && <p class="muted summary">{summary(shown)}</p>}
        <span class="fill" />
        <CallButton call={CALL} />
        <button type="button" class="plain" onClick={refresh}>
          <Icon name="refresh" /> <span class="label">Refresh</span>
        </button>
      </div>
      <div class="tabs">
        <Tabs label="Order" names={ORDERS} chosen={order} onChoose={(name) => replace(['agents'], { order: name === 'newest' ? undefined : name })} />
      </div>
      {error !== null && <ProblemNote error={error} />}
      {!jobs && error === null && <Loading what="the calls" />}
      {jobs && shown.length === 0 && <p class="muted empty">{order === 'failed' ? 'No call has failed.' : 'Nothing has been called yet.'}</p>}
      {shown.length > 0 && <Jobs jobs={shown} onOpen={setOpened} />}
      <p class="muted">These are the last calls that the server keeps: yours, and for operators those of their tenant. Who called, and older calls, are in the audit log.</p>
      {opened && <JobDialog job={opened} onClose={() => setOpened(null)} />}
    </div>
  );
}

function isFailed(job: Job): boolean {
  return !isOpen(job) && job.status !== 'done';
}

function inOrder(jobs: Job[], order: Order): Job[] {
  const sorted = {
    newest: jobs,
    slowest: jobs.toSorted((one, other) => other.elapsed_ms - one.elapsed_ms),
    failed: jobs.filter(isFailed),
    largest: jobs.toSorted((one, other) => other.bytes - one.bytes),
  }[order];
  return sorted.slice(0, SHOWN_MAX);
}

function summary(jobs: Job[]): string {
  const failed = jobs.filter(isFailed).length;
  return `${plural(jobs.length, 'call')}, ${count(failed)} failed`;
}

function tokens(job: Job): string {
  return count(Math.ceil(job.bytes / TOKEN_BYTES));
}

function Jobs({ jobs, onOpen }: { jobs: Job[]; onOpen: (job: Job) => void }) {
  return (
    <div class="table-box fill-box" tabIndex={0} role="region" aria-label="Calls">
      <table>
        <thead>
          <tr>
            <th>Called</th>
            <th>Outcome</th>
            <th>Started</th>
            <th class="number">Time</th>
            <th class="number">Rows</th>
            <th class="number" title="A quarter of the bytes: tokenizers of models differ">
              Tokens, about
            </th>
            <th>Asked</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id}>
              <td>
                <button type="button" class="link" onClick={() => onOpen(job)}>
                  {job.target}
                </button>
              </td>
              <td>
                <JobState name={job.status} />
              </td>
              <td class="nowrap">{localTime(job.started_at)}</td>
              <td class="number">{milliseconds(job.elapsed_ms)}</td>
              <td class="number">{count(job.rows)}</td>
              <td class="number">{tokens(job)}</td>
              <td class="asked">
                <code>{question(job)}</code>
                {job.message && <span class="wrong-text failure">{job.message}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The statement of a call, or its arguments. */
function question(job: Job): string {
  return statementOf(job)?.sql ?? job.arguments ?? '';
}

function statementOf(job: Job): { sql: string; database?: string } | null {
  try {
    const values = JSON.parse(job.arguments ?? 'null') as Record<string, unknown> | null;
    if (typeof values?.sql !== 'string') return null;
    return { sql: values.sql, ...(typeof values.database === 'string' && { database: values.database }) };
  } catch {
    // The arguments are cut.
    return null;
  }
}

function JobDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const statement = statementOf(job);
  return (
    <Dialog title={`${job.target}, ${job.status}`} onClose={onClose}>
      <dl class="facts">
        <Fact name="Started" value={localTime(job.started_at)} />
        <Fact name="Time" value={milliseconds(job.elapsed_ms)} />
        <Fact name="Rows" value={count(job.rows)} />
        <Fact name="Tokens, about" value={tokens(job)} />
        <Fact name="Job" value={job.id} />
      </dl>
      {job.message && <p class="note wrong">{job.message}</p>}
      <pre tabIndex={0}>{statement?.sql ?? job.arguments ?? 'no arguments'}</pre>
      {statement && mayUse.value.has('sql') && (
        <p>
          <a href={link(['query'], { database: statement.database, sql: statement.sql })}>Open in the editor</a>
        </p>
      )}
    </Dialog>
  );
}
