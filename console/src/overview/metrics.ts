// The metrics of the server over the last minutes: counters become rates, and histograms become percentiles.
//
// The text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** The metrics at one time, by name. */
export interface Snapshot {
  time: number;
  metrics: Map<string, Sample[]>;
}

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string, time: number): Snapshot {
  const metrics = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const labels: Record<string, string> = {};
    for (const [, name, value] of (found[2] ?? '').matchAll(LABEL)) labels[name!] = value!.replace(/\\(.)/g, '$1');
    const samples = metrics.get(found[1]!) ?? [];
    samples.push({ labels, value: Number(found[3]) });
    metrics.set(found[1]!, samples);
  }
  return { time, metrics };
}

type Filter = (labels: Record<string, string>) => boolean;

/** The sum of the metric; `null` if it does not exist (yet). */
export function sum(snapshot: Snapshot, name: string, filter: Filter = () => true): number | null {
  const samples = snapshot.metrics.get(name)?.filter(({ labels }) => filter(labels));
  return samples && samples.length > 0 ? samples.reduce((total, { value }) => total + value, 0) : null;
}

/** How much the counter grew per second between two times. A counter begins at zero with its first event. */
export function perSecond(earlier: Snapshot, later: Snapshot, name: string, filter?: Filter): number {
  const seconds = (later.time - earlier.time) / 1000;
  const grown = (sum(later, name, filter) ?? 0) - (sum(earlier, name, filter) ?? 0);
  // After a restart, counters begin again.
  return seconds > 0 ? Math.max(grown, 0) / seconds : 0;
}

/** Percentiles of the durations between two times, in seconds; `null` without a call. */
export function percentiles(earlier: Snapshot, later: Snapshot, name: string, parts: number[]): (number | null)[] {
  const before = bucketCounts(earlier, name);
  const buckets = [...bucketCounts(later, name)]
    .map(([limit, count]) => ({ limit, count: Math.max(count - (before.get(limit) ?? 0), 0) }))
    .sort((one, other) => one.limit - other.limit);
  const total = buckets[buckets.length - 1]?.count ?? 0;
  return parts.map((part) => (total > 0 ? valueAt(buckets, part * total) : null));
}

function bucketCounts(snapshot: Snapshot, name: string): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { labels, value } of snapshot.metrics.get(`${name}_bucket`) ?? []) {
    const limit = labels.le === '+Inf' ? Infinity : Number(labels.le);
    counts.set(limit, (counts.get(limit) ?? 0) + value);
  }
  return counts;
}

/** The value below which `rank` calls are, between the limits of its bucket in proportion. */
function valueAt(buckets: { limit: number; count: number }[], rank: number): number {
  let [lower, below] = [0, 0];
  for (const { limit, count } of buckets) {
    if (count >= rank) {
      if (limit === Infinity || count === below) return lower;
      return lower + ((rank - below) / (count - below)) * (limit - lower);
    }
    [lower, below] = [limit, count];
  }
  return lower;
}
