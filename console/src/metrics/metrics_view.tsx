// The metrics that the server reads, each as lines over time.
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { call, isAborted, type Call } from '../api/client';
import { mayUse } from '../api/catalog';
import { ChartBox } from '../chart/chart_box';
import { drawChart, type Size } from '../chart/draw';
import { SERIES_MAX } from '../chart/scene';
import type { ChartTable } from '../chart/table';
import { count, plural } from '../format';
import { CallButton } from '../parts/call_button';
import { Icon } from '../parts/icons';
import { Menu } from '../parts/menu';
import { Loading, ProblemNote } from '../parts/problem';
import { rangeArguments, TimeRangeField } from '../parts/time_range';
import { link, replace, route } from '../route';

const METRICS_MAX = 1000;
const POINTS = 240;
const AGGREGATIONS = ['average', 'min', 'max', 'sum', 'median', 'p95', 'rate', 'increase', 'last', 'count'];

interface Metric {
  name: string;
  unit?: string;
  kind?: string;
  labels?: Record<string, number>;
  series?: number;
  from?: string;
  to?: string;
}

interface MetricAnswer {
  computed: string;
  unit?: string;
  from: string;
  to: string;
  step: string;
  series: { labels: Record<string, string>; values: (number | null)[] }[];
  more?: unknown;
  notes?: string[];
}

/** An answer, and why there is none. */
interface Read<T> {
  value: T | null;
  error: unknown;
}

/** The answer to a call; `null` for no call. */
function useAnswer<T>(request: Call | null, round: number): Read<T> {
  const [read, setRead] = useState<Read<T>>({ value: null, error: null });
  const asked = JSON.stringify(request);
  useEffect(() => {
    if (!request) return;
    const controller = new AbortController();
    call(request.tool, request.arguments, controller.signal)
      .then(async (response) => setRead({ value: (await response.json()) as T, error: null }))
      .catch((error) => !isAborted(error) && setRead({ value: null, error }));
    return () => controller.abort();
  }, [asked, round]);
  return read;
}

/** Metrics whose names begin alike, where there are too many. */
interface MetricGroup {
  pattern: string;
  count: number;
}

interface MetricList {
  /** Where there are several sources, the answer without one lists them. */
  sources?: { name: string }[];
  metrics?: Metric[];
  groups?: MetricGroup[];
  more?: MetricGroup;
}

const SEARCH_AFTER_MILLISECONDS = 250;

export function MetricsView() {
  const [sources, setSources] = useState<string[]>([]);
  const [words, setWords] = useState('');
  const [pattern, setPattern] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setPattern(words.trim()), SEARCH_AFTER_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [words]);
  const mayRead = mayUse.value.has('list_metrics');
  const { path, parameters } = route.value;
  const source = parameters.get('source') ?? sources[0] ?? '';
  const list = useAnswer<MetricList>(mayRead ? { tool: 'list_metrics', arguments: { limit: METRICS_MAX, ...(source && { source }), ...(pattern && { pattern }) } } : null, 0);
  useEffect(() => {
    if (list.value?.sources) setSources(list.value.sources.map(({ name }) => name));
  }, [list.value]);
  if (!mayRead) return <p class="note">There are no metric sources here that you may read. A Prometheus server, tables of samples and received metrics become sources.</p>;
  const name = path[1];
  return (
    <div class={name !== undefined ? 'view data' : 'view data list-only'}>
      <nav class="sidebar" aria-label="Metrics">
        <label class="search">
          <span class="hidden">Search metrics</span>
          <Icon name="search" />
          <input type="search" placeholder="Words, or http_*" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
        {sources.length > 0 && (
          <select aria-label="Source" value={source} onChange={(event) => replace(['metrics'], { source: event.currentTarget.value })}>
            {sources.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
        {list.error !== null && <ProblemNote error={list.error} />}
        {!list.value && list.error === null && <Loading what="the metrics" />}
        {list.value && <MetricNames list={list.value} chosen={name} source={source} onGroup={setWords} />}
      </nav>
      <div class="data-main">
        {name !== undefined ? (
          <MetricPanel key={`${source}/${name}`} name={name} metric={list.value?.metrics?.find((metric) => metric.name === name)} source={source} />
        ) : (
          <>
            <h1>Metrics</h1>
            <p class="muted">Choose a metric.</p>
          </>
        )}
      </div>
    </div>
  );
}

function MetricNames({ list, chosen, source, onGroup }: { list: MetricList; chosen: string | undefined; source: string; onGroup: (pattern: string) => void }) {
  const groups = [...(list.groups ?? []), ...(list.more ? [list.more] : [])];
  return (
    <>
      <ul>
        {(list.metrics ?? []).map((metric) => (
          <li key={metric.name}>
            <a href={link(['metrics', metric.name], { source })} aria-current={metric.name === chosen ? 'page' : undefined}>
              <span class="name">{metric.name}</span> <span class="number muted">{count(metric.series)}</span>
              <span class="found muted">{[metric.kind, metric.unit].filter(Boolean).join(', ')}</span>
            </a>
          </li>
        ))}
      </ul>
      {groups.map(({ pattern, count: metrics }) => (
        <button key={pattern} type="button" class="plain" onClick={() => onGroup(pattern)}>
          {pattern}, {plural(metrics, 'metric')}
        </button>
      ))}
      {list.metrics?.length === 0 && groups.length === 0 && <p class="muted">No metric is found.</p>}
    </>
  );
}

interface MetricQuery {
  aggregation: string;
  by: string[];
  after: string;
  before: string;
}

const SEPARATOR = '\u001f';

function MetricPanel({ name, metric, source }: { name: string; metric: Metric | undefined; source: string }) {
  const [round, setRound] = useState(0);
  const { parameters } = route.value;
  const text = (parameter: string) => parameters.get(parameter) ?? '';
  const query: MetricQuery = { aggregation: text('aggregation'), by: text('by').split(SEPARATOR).filter(Boolean), after: text('after'), before: text('before') };
  const change = (part: Partial<MetricQuery>) => {
    const { aggregation, by, after, before } = { ...query, ...part };
    replace(['metrics', name], { source, aggregation, by: by.join(SEPARATOR), after, before });
  };
  const request = callOf(name, metric, source, query);
  const { value: answer, error } = useAnswer<MetricAnswer>(request, round);
  const labels = Object.keys(metric?.labels ?? {});
  return (
    <>
      <div class="view-head">
        <a class="back" href="#/metrics" aria-label="All metrics">
          <Icon name="back" />
        </a>
        <h1 class="table-name">{name}</h1>
        <span class="muted">{[metric?.kind, metric?.unit, metric?.series !== undefined && plural(metric.series, 'series', 'series')].filter(Boolean).join(' · ')}</span>
        <span class="fill" />
        <CallButton call={request} />
      </div>
      <div class="chart-fields">
        <label class="inline">
          <span class="muted">Over time</span>
          <select value={query.aggregation} onChange={(event) => change({ aggregation: event.currentTarget.value })}>
            <option value="">{metric?.kind === 'counter' ? 'rate (default)' : 'default'}</option>
            {AGGREGATIONS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        {labels.length > 0 && (
          <span class="inline-field">
            <span class="muted" aria-hidden="true">
              Lines
            </span>
            <Menu class="select" name={`Lines by: ${query.by.join(', ') || 'each series'}`} label={<><span class="cut">{query.by.join(', ') || 'each series'}</span> <Icon name="down" /></>}>
              {labels.map((label) => (
                <label key={label} class="menu-check">
                  <input
                    type="checkbox"
                    checked={query.by.includes(label)}
                    onChange={(event) => change({ by: event.currentTarget.checked ? [...query.by, label] : query.by.filter((other) => other !== label) })}
                  />{' '}
                  {label}
                </label>
              ))}
            </Menu>
          </span>
        )}
        <TimeRangeField range={query} onChange={change} />
        <button type="button" class="plain" aria-label="Read again" title="Read again" onClick={() => setRound(round + 1)}>
          <Icon name="refresh" />
        </button>
      </div>
      {error !== null && <ProblemNote error={error} />}
      {!answer && error === null && <Loading what="the metric" />}
      {answer && error === null && <Lines answer={answer} name={name} />}
    </>
  );
}

/** Without a range, all samples. */
function callOf(name: string, metric: Metric | undefined, source: string, { aggregation, by, ...range }: MetricQuery): Call {
  const whole = { ...(metric?.from && { after: metric.from }), ...(metric?.to && { before: metric.to }) };
  const times = range.after || range.before ? rangeArguments(range) : whole;
  return {
    tool: 'query_metrics',
    arguments: { ...(source && { source }), metric: name, ...times, points: POINTS, series: SERIES_MAX, ...(aggregation && { aggregation }), ...(by.length > 0 && { by }) },
  };
}

function Lines({ answer, name }: { answer: MetricAnswer; name: string }) {
  const table = useMemo(() => toTable(answer, name), [answer]);
  const draw = useCallback((size: Size) => drawChart({ kind: 'line', x: 'time', y: [table.columns[1]!.name], by: answer.series.length > 1 ? 'series' : '' }, table, size), [table]);
  return (
    <>
      {answer.notes?.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      {answer.more !== undefined && <p class="note">More than {SERIES_MAX} series exist. Group them by a label, or choose fewer.</p>}
      {table.rows === 0 ? <p class="muted empty">There are no samples in this time.</p> : <ChartBox draw={draw} />}
      <p class="muted">
        {answer.computed}, a point for each {answer.step}
      </p>
    </>
  );
}

function toTable({ series, from, to, unit }: MetricAnswer, name: string): ChartTable {
  const start = Date.parse(from);
  const isOneLabel = new Set(series.flatMap(({ labels }) => Object.keys(labels))).size === 1;
  const rows = series.flatMap(({ labels, values }) => {
    const step = (Date.parse(to) - start) / Math.max(values.length, 1);
    const title = Object.entries(labels).map(([label, value]) => (isOneLabel ? value : `${label}=${value}`)).join(' ') || name;
    return values.map((value, index) => ({ time: start + index * step, value, title }));
  });
  return {
    columns: [
      { name: 'time', kind: 'time', isDate: false, values: rows.map(({ time }) => time) },
      { name: unit ?? 'value', kind: 'number', isDate: false, values: rows.map(({ value }) => value) },
      { name: 'series', kind: 'text', isDate: false, values: rows.map(({ title }) => title) },
    ],
    rows: rows.length,
    total: rows.length,
  };
}
