// Running a statement, with its progress and its end.
import { signal } from '@preact/signals';
import { callForText, isAborted, request, type Call } from '../api/client';
import { readManifest, runStatement, type Answer } from '../api/rows';
import { addToHistory } from './history';

export interface Statement {
  database: string;
  sql: string;
  parameters: unknown[];
  /** Where the statement begins in the text of the editor. */
  offset: number;
}

export type RunState = 'running' | 'done' | 'failed' | 'cancelled';

export interface Run {
  statement: Statement;
  state: RunState;
  startedAt: number;
  endedAt: number | null;
  answer: Answer | null;
  error: unknown;
}

export const run = signal<Run | null>(null);
/** The plan of the last statement that was explained. */
export const plan = signal<{ statement: Statement; text: string | null; error: unknown } | null>(null);

const POLL_MILLISECONDS = 400;

let controller: AbortController | null = null;

export function statementCall({ database, sql, parameters }: Statement): Call {
  const args: Record<string, unknown> = { database, sql };
  if (parameters.length > 0) args.parameters = parameters;
  return { tool: 'sql', arguments: args };
}

export async function start(statement: Statement): Promise<void> {
  controller?.abort();
  const mine = new AbortController();
  controller = mine;
  const started: Run = { statement, state: 'running', startedAt: Date.now(), endedAt: null, answer: null, error: null };
  run.value = started;
  const update = (change: Partial<Run>) => {
    if (controller === mine) run.value = { ...run.peek()!, ...change };
  };
  const end = (state: RunState, change: Partial<Run> = {}) => {
    update({ state, endedAt: Date.now(), ...change });
    const rows = run.peek()?.answer?.source.rows.peek() ?? null;
    if (controller === mine) addToHistory({ ...statement, at: started.startedAt, state, rows, milliseconds: Date.now() - started.startedAt });
  };
  try {
    const answer = await runStatement(statementCall(statement).arguments, mine.signal);
    update({ answer });
    if (answer.kind === 'stored') await follow(answer, mine.signal);
    const isWhole = answer.kind === 'loaded' || answer.source.manifest.peek().status === 'complete';
    end(isWhole ? 'done' : 'cancelled');
  } catch (error) {
    if (isAborted(error)) end('cancelled');
    else end('failed', { error });
  }
}

/** Reads the progress of a result until it is complete. */
async function follow(answer: Extract<Answer, { kind: 'stored' }>, signal: AbortSignal): Promise<void> {
  const { source } = answer;
  while (source.manifest.peek().status === 'running') {
    await pause(POLL_MILLISECONDS, signal);
    source.update(await readManifest(source.manifest.peek().id, signal));
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new DOMException('cancelled', 'AbortError'));
    });
  });
}

/** Ends the statement on the server. Rows that are stored stay. */
export async function cancel(): Promise<void> {
  const answer = run.peek()?.answer;
  if (answer?.kind !== 'stored') {
    // Before the first row, the end of the connection cancels the call.
    controller?.abort();
    return;
  }
  try {
    await request(`rest/jobs/${answer.source.manifest.peek().job}`, { method: 'DELETE' });
  } catch {
    // It has ended in the meantime, or the viewer may not use the tool: the page stops to follow it.
    controller?.abort();
  }
}

export async function explain(statement: Statement): Promise<void> {
  plan.value = { statement, text: null, error: null };
  try {
    const text = await callForText('explain', statementCall(statement).arguments);
    plan.value = { statement, text, error: null };
  } catch (error) {
    plan.value = { statement, text: null, error };
  }
}
