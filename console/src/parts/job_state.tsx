// Calls as the server lists them.

export interface Job {
  id: string;
  kind: string;
  target: string;
  status: string;
  started_at: string;
  elapsed_ms: number;
  rows: number;
  bytes: number;
  result: string | null;
  /** As JSON, redacted and cut. */
  arguments: string | null;
  message: string | null;
}

/** The calls by which this page reads the state of the server; lists leave them out when they have ended. */
const OWN_CALLS = ['node_status', 'list_jobs', 'list_databases', 'ingest_status', 'list_nodes'];

export function isOpen({ status }: Job): boolean {
  return status === 'running' || status === 'waiting';
}

export function isOwn({ target }: Job): boolean {
  return OWN_CALLS.includes(target);
}

export function JobState({ name }: { name: string }) {
  const kind = name === 'done' ? 'good' : name === 'running' || name === 'waiting' ? 'busy' : 'wrong';
  return <span class={`state ${kind}`}>{name.replaceAll('_', ' ')}</span>;
}
