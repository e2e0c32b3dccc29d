// Reads the state of the server again and again while the overview is visible.
import { useEffect, useState } from 'preact/hooks';
import { callForRows, isAborted, Problem, request } from '../api/client';
import { loadDatabases, mayUse } from '../api/catalog';
import type { Job } from '../parts/job_state';
import { repeat } from '../parts/repeat';
import type { NodeStatus } from './findings';
import { parseMetrics, type Snapshot } from './metrics';

const METRICS_MILLISECONDS = 2000;
/** Each reading of the state is a call, which the audit log has. So it is read less often. */
const STATUS_MILLISECONDS = 15_000;
/** Snapshots in memory: five minutes. */
const SNAPSHOTS_MAX = 150;

export interface LiveState {
  snapshots: Snapshot[];
  /** Why there are no metrics, if it is so. */
  metricsProblem: Problem | null;
  status: NodeStatus | null;
  memory: number[];
  jobs: Job[];
  error: unknown;
  /** Reads everything but the metrics now. */
  refresh: () => void;
}

export function useLiveState(): LiveState {
  const [snapshots, setSnapshots] = useState<Snapshot[]>([]);
  const [metricsProblem, setMetricsProblem] = useState<Problem | null>(null);
  const [status, setStatus] = useState<NodeStatus | null>(null);
  const [memory, setMemory] = useState<number[]>([]);
  const [jobs, setJobs] = useState<Job[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);

  useEffect(() => {
    return repeat(METRICS_MILLISECONDS, async (signal) => {
      try {
        const response = await request('metrics', { accept: 'text/plain', signal });
        const snapshot = parseMetrics(await response.text(), Date.now());
        setSnapshots((earlier) => [...earlier, snapshot].slice(-SNAPSHOTS_MAX));
        setMetricsProblem(null);
        return true;
      } catch (refused) {
        if (isAborted(refused) || !(refused instanceof Problem)) return true;
        setMetricsProblem(refused);
        // A server without metrics, or a viewer without the right to read them: asking again changes nothing.
        return refused.status !== 403 && refused.status !== 404;
      }
    });
  }, []);

  useEffect(() => {
    return repeat(STATUS_MILLISECONDS, async (signal) => {
      try {
        if (mayUse.value.has('node_status')) {
          const [row] = await callForRows<NodeStatus>('node_status', {}, signal);
          setStatus(row ?? null);
          if (row?.memory_bytes) setMemory((earlier) => [...earlier, row.memory_bytes!].slice(-SNAPSHOTS_MAX));
        }
        if (mayUse.value.has('list_jobs')) setJobs(await callForRows<Job>('list_jobs', {}, signal));
        await loadDatabases();
        setError(null);
      } catch (refused) {
        if (!isAborted(refused)) setError(refused);
      }
      return true;
    });
  }, [round]);

  return { snapshots, metricsProblem, status, memory, jobs, error, refresh: () => setRound((earlier) => earlier + 1) };
}
