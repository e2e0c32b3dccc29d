// The live numbers, each with its course over the last minutes.
import { useMemo } from 'preact/hooks';
import { bytes, count, milliseconds, plural, rate } from '../format';
import { Sparkline, type Series } from '../parts/sparkline';
import type { LiveState } from './live';
import { percentiles, perSecond, sum, type Snapshot } from './metrics';

interface Tile {
  title: string;
  value: string;
  detail?: string;
  series: Series[];
}

/** Snapshots over which percentiles are computed: ten seconds. */
const PERCENTILE_SNAPSHOTS = 5;
/** The line of a shorter time begins further right. */
const POINTS_MIN = 30;

export function Tiles({ live }: { live: LiveState }) {
  const tiles = useMemo(() => buildTiles(live), [live.snapshots, live.status, live.memory]);
  return (
    <section>
      <h2 class="hidden">Live numbers</h2>
      <div class="tiles">
        {tiles.map(({ title, value, detail, series }) => (
          <div key={title} class="tile">
            <h3>{title}</h3>
            <p class="tile-value">{value}</p>
            <p class="tile-detail">{detail ?? ''}</p>
            <Sparkline series={series} points={Math.max(POINTS_MIN, ...series.map(({ values }) => values.length))} />
          </div>
        ))}
      </div>
      {live.metricsProblem && <p class="muted">{metricsNote(live.metricsProblem.status)}</p>}
    </section>
  );
}

function metricsNote(status: number): string {
  if (status === 403) return 'Live numbers need a role with the access name metrics.';
  if (status === 404) return 'This address does not serve metrics: server.transports.metrics is false.';
  return 'The metrics cannot be read now.';
}

function buildTiles(live: LiveState): Tile[] {
  const tiles: Tile[] = [];
  const { snapshots, status, memory } = live;
  const last = snapshots[snapshots.length - 1];
  if (last) tiles.push(...ofMetrics(snapshots, last));
  if (status?.memory_bytes) {
    tiles.push({ title: 'Memory', value: bytes(status.memory_bytes), detail: 'of the server process', series: [{ values: memory }] });
  }
  if (!last && status) tiles.push({ title: 'Running calls', value: count(status.open_calls), series: [] });
  return tiles;
}

function ofMetrics(snapshots: Snapshot[], last: Snapshot): Tile[] {
  const isFailed = (labels: Record<string, string>) => labels.outcome !== 'done';
  const rates = (name: string, filter?: typeof isFailed) => between(snapshots, (one, other) => perSecond(one, other, name, filter));
  const [calls, errors] = [rates('tidegate_calls_total'), rates('tidegate_calls_total', isFailed)];
  const [rows, size] = [rates('tidegate_answer_rows_total'), rates('tidegate_answer_bytes_total')];
  const latencies = between(snapshots, (_, other, index) => {
    const earlier = snapshots[Math.max(index - PERCENTILE_SNAPSHOTS, 0)]!;
    return percentiles(earlier, other, 'tidegate_call_duration_seconds', [0.5, 0.95, 0.99]);
  });
  const latency = latencies.findLast(([half]) => half !== null) ?? [null, null, null];
  const seconds = (value: number | null | undefined) => (value === null || value === undefined ? '–' : milliseconds(value * 1000));
  const gauge = (name: string) => snapshots.map((snapshot) => sum(snapshot, name) ?? 0);
  const jobs = gauge('tidegate_jobs_open');
  const tiles: Tile[] = [
    {
      title: 'Calls',
      value: `${rate(latest(calls))}/s`,
      detail: `${count(sum(last, 'tidegate_calls_total') ?? 0)} since the start`,
      series: [{ values: calls }],
    },
    {
      title: 'Errors',
      value: `${rate(latest(errors))}/s`,
      detail: `${count(sum(last, 'tidegate_calls_total', isFailed) ?? 0)} since the start`,
      series: [{ values: errors, class: 'bad' }],
    },
    {
      title: 'Latency, median',
      value: seconds(latency[0]),
      detail: `95 %: ${seconds(latency[1])}, 99 %: ${seconds(latency[2])}`,
      series: [
        { values: latencies.map((values) => values[2] ?? null), class: 'faint' },
        { values: latencies.map((values) => values[0] ?? null) },
      ],
    },
    { title: 'Rows', value: `${rate(latest(rows))}/s`, detail: `${bytes(latest(size))}/s`, series: [{ values: rows }] },
    {
      title: 'Running calls',
      value: count(latest(jobs)),
      detail: `${plural(sum(last, 'tidegate_connections') ?? 0, 'connection')}, ${plural(sum(last, 'tidegate_sessions') ?? 0, 'session')}`,
      series: [{ values: jobs }],
    },
  ];
  if (last.metrics.has('tidegate_ingest_rows_total') || last.metrics.has('tidegate_ingest_waiting_rows')) {
    const ingested = rates('tidegate_ingest_rows_total', ({ outcome }) => outcome === 'stored');
    tiles.push({
      title: 'Rows taken',
      value: `${rate(latest(ingested))}/s`,
      detail: `${count(sum(last, 'tidegate_ingest_waiting_rows') ?? 0)} wait for data files`,
      series: [{ values: ingested }],
    });
  }
  if (last.metrics.has('tidegate_stored_results')) {
    const stored = gauge('tidegate_stored_results_bytes');
    tiles.push({
      title: 'Stored results',
      value: bytes(latest(stored)),
      detail: plural(sum(last, 'tidegate_stored_results') ?? 0, 'result'),
      series: [{ values: stored }],
    });
  }
  return tiles;
}

/** A value for each snapshot but the first, from the one before it. */
function between<T>(snapshots: Snapshot[], read: (earlier: Snapshot, later: Snapshot, index: number) => T): T[] {
  return snapshots.slice(1).map((later, index) => read(snapshots[index]!, later, index + 1));
}

function latest(values: (number | null)[]): number {
  return values[values.length - 1] ?? 0;
}
