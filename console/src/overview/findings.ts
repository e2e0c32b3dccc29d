// What is wrong right now, from the states that the server reports, each with what to do.
import type { Database } from '../api/catalog';
import { count } from '../format';
import { sum, type Snapshot } from './metrics';

export interface NodeStatus {
  status: string;
  databases: number;
  databases_reachable: number;
  unreadable_tables: string | null;
  notes: string | null;
  transports: string | null;
  open_calls: number;
  memory_bytes: number | null;
  uptime_seconds: number;
}

export interface Finding {
  what: string;
  reason: string;
  advice: string;
}

/** Age of rows in the log only from which writing to data files is behind. */
const INGEST_AGE_SECONDS_MAX = 60;

export function findProblems(
  status: NodeStatus | null,
  databases: Database[],
  first: Snapshot | undefined,
  last: Snapshot | undefined,
): Finding[] {
  return [...databasesAway(databases), ...unreadableTables(status, databases), ...stoppedTransports(status), ...ofMetrics(first, last)];
}

function databasesAway(databases: Database[]): Finding[] {
  const isAway = ({ status }: Database) => status !== 'ok' && !/^\d+ tables? cannot be read/.test(status);
  return databases.filter(isAway).map(({ name, status }) => ({
    what: `The database ${name} cannot be used`,
    reason: status,
    advice: 'Check that it runs and that this server may connect. The command tidegate doctor checks each step.',
  }));
}

function unreadableTables(status: NodeStatus | null, databases: Database[]): Finding[] {
  const all = status?.unreadable_tables?.split('\n') ?? [];
  const federated = databases.filter(({ kind }) => kind === 'federated').map(({ name }) => `${name}.`);
  // A federated database lists the tables of its members once more.
  const isRepeated = (line: string) => federated.some((prefix) => line.startsWith(prefix) && all.includes(line.slice(prefix.length)));
  const lines = all.filter((line) => !isRepeated(line));
  return lines.map((line) => {
    const separator = line.indexOf(': ');
    return {
      what: `The table ${line.slice(0, separator)} cannot be read`,
      reason: line.slice(separator + 2),
      advice: 'Correct the file, or set its options in tidegate.yaml. The next query reads it again.',
    };
  });
}

function stoppedTransports(status: NodeStatus | null): Finding[] {
  const text = status?.transports ?? '';
  if (!/stopp/.test(text)) return [];
  return [{ what: 'A transport is stopped', reason: text, advice: 'An operator starts it with tidegate transport start.' }];
}

function ofMetrics(first: Snapshot | undefined, last: Snapshot | undefined): Finding[] {
  if (!first || !last) return [];
  const grown = (name: string) => (sum(last, name) ?? 0) - (sum(first, name) ?? 0);
  const findings: Finding[] = [];
  const dropped = sum(last, 'tidegate_audit_lines_dropped_total') ?? 0;
  if (dropped > 0) {
    findings.push({
      what: 'The audit log is incomplete',
      reason: `${count(dropped)} lines could not be written since the start.`,
      advice: 'Make room on its disk. Calls continue meanwhile, because on_write_failure is drop.',
    });
  }
  const faults = grown('tidegate_internal_errors_total');
  if (faults > 0) {
    findings.push({
      what: 'The server had internal errors',
      reason: `${count(faults)} in the last minutes.`,
      advice: 'The server log has the details, each with the id that its caller received.',
    });
  }
  const limits = grown('tidegate_limits_reached_total');
  if (limits > 0) {
    findings.push({
      what: 'Calls reached a limit',
      reason: `${count(limits)} in the last minutes.`,
      advice: 'The audit log names the callers. limits in tidegate.yaml sets what each may use.',
    });
  }
  for (const { labels, value } of last.metrics.get('tidegate_ingest_oldest_age_seconds') ?? []) {
    if (value <= INGEST_AGE_SECONDS_MAX) continue;
    findings.push({
      what: `Rows of ${labels.database} wait for their data files`,
      reason: `The oldest has waited for ${count(value)} seconds.`,
      advice: 'The command tidegate ingest status has the last error of each table.',
    });
  }
  for (const { labels, value } of last.metrics.get('tidegate_mqtt_connected') ?? []) {
    if (value === 1) continue;
    findings.push({
      what: `No messages arrive from the MQTT broker ${labels.broker}`,
      reason: 'The broker has not confirmed the subscriptions.',
      advice: 'Check its address and the credentials under receivers in tidegate.yaml. The server tries again.',
    });
  }
  return findings;
}
