// Log entries of a source: how many over time, by values of fields, by pattern, and the entries themselves.
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { callForRows, isAborted, type Call } from '../api/client';
import { mayUse } from '../api/catalog';
import { ChartBox } from '../chart/chart_box';
import { drawBars, type Size } from '../chart/draw';
import type { Ink } from '../chart/scene';
import type { ChartTable } from '../chart/table';
import { count, plural } from '../format';
import { CallButton } from '../parts/call_button';
import { Icon } from '../parts/icons';
import { Loading, ProblemNote } from '../parts/problem';
import { repeat } from '../parts/repeat';
import { Tabs } from '../parts/tabs';
import { rangeArguments, TimeRangeField } from '../parts/time_range';
import { replace, route } from '../route';
import { Entries } from './entries';
import { PAGE_ENTRIES } from './entry_rows';
import { queryLogs, type LogAnswer, type LogField } from './log_answer';
import { readLogQuery, writeLogQuery, type LogQuery } from './log_query';

const TABS = { entries: 'Entries', patterns: 'Patterns' };
/** How often a followed log is asked for new entries. Only if there are some, everything is read again. */
const FOLLOW_MILLISECONDS = 2000;
const BARS = 48;
const PATTERNS = 100;
const FACETS_MAX = 6;
/** A field with more values is no facet. */
const FACET_VALUES_MAX = 40;

export function LogsView() {
  const [sources, setSources] = useState<string[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    if (!mayUse.value.has('query_logs')) return;
    const controller = new AbortController();
    callForRows<{ name: string }>('list_logs_sources', {}, controller.signal)
      .then((rows) => setSources(rows.map(({ name }) => name)))
      .catch((refused) => !isAborted(refused) && setError(refused));
    return () => controller.abort();
  }, [mayUse.value]);
  if (!mayUse.value.has('query_logs')) return <p class="note">There are no log sources here that you may read. Files of logs, the journal and received logs become sources.</p>;
  if (error !== null) return <ProblemNote error={error} />;
  if (!sources) return <Loading what="the log sources" />;
  const query = readLogQuery(route.value.parameters, sources[0] ?? '');
  return <Source key={query.source} sources={sources} query={query} />;
}

function Source({ sources, query }: { sources: string[]; query: LogQuery }) {
  const [fields, setFields] = useState<LogField[] | null>(null);
  const [answer, setAnswer] = useState<{ of: string; args: Record<string, unknown>; answer: LogAnswer } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  const [tab, setTab] = useState<keyof typeof TABS>('entries');
  useEffect(() => {
    const controller = new AbortController();
    callForRows<LogField>('list_logs_fields', { source: query.source }, controller.signal)
      .then(setFields)
      .catch((refused) => !isAborted(refused) && setError(refused));
    return () => controller.abort();
  }, []);
  const request = useMemo(() => fields && callOf(query, fields), [fields, JSON.stringify(query)]);
  const asked = JSON.stringify(request);
  useEffect(() => {
    if (!request) return;
    const controller = new AbortController();
    setError(null);
    queryLogs(request.arguments, controller.signal)
      .then((found) => setAnswer({ of: asked, args: request.arguments, answer: found }))
      .catch((refused) => !isAborted(refused) && setError(refused));
    return () => controller.abort();
  }, [asked, round]);
  const isFollowing = query.follows;
  const tail = answer?.of === asked ? answer.answer.tail : undefined;
  useEffect(() => {
    if (!isFollowing || !tail || !request) return;
    const { source, after, before, query: words, selections } = request.arguments;
    return repeat(FOLLOW_MILLISECONDS, async (signal) => {
      try {
        const { entries } = await queryLogs({ source, after, before, query: words, selections, cursor: tail, limit: 1 }, signal);
        if (!entries || entries.rows.length === 0) return true;
        setRound((earlier) => earlier + 1);
      } catch (refused) {
        if (!isAborted(refused)) setError(refused);
      }
      return false;
    });
    // Each answer has a tail of its own, which may be the same text.
  }, [isFollowing, answer]);
  const change = (part: Partial<LogQuery>) => replace(['logs'], writeLogQuery({ ...query, ...part }));
  const shown = answer?.answer;
  return (
    <div class="view logs">
      <div class="view-head">
        <h1 class="hidden">Logs</h1>
        <label class="inline">
          <span class="label muted">Source</span>
          <select value={query.source} onChange={(event) => replace(['logs'], { source: event.currentTarget.value })}>
            {sources.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <SearchField words={query.words} onChange={(words) => change({ words })} />
        <TimeRangeField range={query} onChange={change} />
        <button type="button" class="plain" aria-pressed={isFollowing} title="Show new entries as they come" onClick={() => change({ follows: !isFollowing })}>
          <Icon name={isFollowing ? 'stop' : 'run'} /> <span class="label">Follow</span>
        </button>
        <button type="button" class="plain" aria-label="Read again" title="Read again" onClick={() => setRound(round + 1)}>
          <Icon name="refresh" />
        </button>
        <span class="fill" />
        <CallButton call={request} />
      </div>
      {error !== null && <ProblemNote error={error} />}
      {!shown && error === null && <Loading what="the log" />}
      {shown && (
        <div class={answer.of === asked ? 'log-parts' : 'log-parts stale'}>
          <Facets answer={shown} query={query} onChange={change} />
          <div class="log-main">
            <Histogram answer={shown} onRange={change} />
            <div class="tabs">
              <Tabs label="Entries and patterns" names={TABS} chosen={tab} onChoose={setTab} />
              <span class="fill" />
              <span class="run-state" role="status">
                {plural(shown.matched, 'entry', 'entries')} {shown.matched === 1 ? 'matches' : 'match'}
              </span>
            </div>
            {tab === 'entries' ? <Entries answer={shown} args={answer.args} fields={fields ?? []} /> : <Patterns answer={shown} />}
          </div>
        </div>
      )}
    </div>
  );
}

function callOf(query: LogQuery, fields: LogField[]): Call {
  const severity = fields.find(({ role }) => role === 'severity');
  const isFacet = ({ field, type, role, values }: LogField) => {
    return /^(text|varchar)/.test(type) && role !== 'message' && role !== 'time' && !/^(entry_|parse_error|other_fields|normalized_)/.test(field) && (values === null || (values > 1 && values <= FACET_VALUES_MAX));
  };
  const facets = fields.filter(isFacet).map(({ field }) => field).slice(0, FACETS_MAX);
  return {
    tool: 'query_logs',
    arguments: {
      source: [query.source], ...rangeArguments(query), ...(query.words && { query: query.words }), ...(Object.keys(query.selections).length > 0 && { selections: query.selections }),
      limit: PAGE_ENTRIES, facets, histogram: { bars: BARS, ...(severity && { field: severity.field }) }, patterns: PATTERNS,
    },
  };
}

function SearchField({ words, onChange }: { words: string; onChange: (words: string) => void }) {
  const [text, setText] = useState(words);
  useEffect(() => setText(words), [words]);
  const submit = (event: Event) => {
    event.preventDefault();
    onChange(text.trim());
  };
  return (
    <form class="log-search" role="search" onSubmit={submit}>
      <input type="search" aria-label="Search the log" placeholder={'timeout "a phrase" field:value'} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="submit">Search</button>
    </form>
  );
}

function Facets({ answer, query, onChange }: { answer: LogAnswer; query: LogQuery; onChange: (part: Partial<LogQuery>) => void }) {
  const toggle = (field: string, value: string) => {
    const chosen = query.selections[field] ?? [];
    const next = chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value];
    const selections = { ...query.selections, [field]: next };
    if (next.length === 0) delete selections[field];
    onChange({ selections });
  };
  return (
    <aside class="facets" aria-label="Values of fields">
      {Object.entries(answer.facets ?? {}).map(([field, { values, more }]) => (
        <details key={field} open>
          <summary>{field}</summary>
          <ul>
            {values.map(([value, rows]) => {
              const name = value ?? '-';
              return (
                <li key={name}>
                  <button type="button" aria-pressed={query.selections[field]?.includes(name) ?? false} onClick={() => toggle(field, name)}>
                    <span class={value === null ? 'name null' : 'name'}>{value ?? 'missing'}</span> <span class="number muted">{count(rows)}</span>
                  </button>
                </li>
              );
            })}
            {more && <li class="muted more">{plural(more.values, 'value')} more</li>}
          </ul>
        </details>
      ))}
    </aside>
  );
}

function Histogram({ answer, onRange }: { answer: LogAnswer; onRange: (range: { after: string; before: string }) => void }) {
  const { histogram } = answer;
  const draw = useCallback((size: Size) => drawBars({ kind: 'bar', x: 'time', y: ['rows'], by: 'value' }, histogramTable(histogram!), size, { isStacked: true, inkOf: severityInk }), [histogram]);
  if (!histogram || histogram.series.length === 0) return null;
  const width = histogram.width_seconds * 1000;
  return (
    <div class="log-histogram">
      <ChartBox
        draw={draw}
        onOpen={({ place }) => {
          if (typeof place === 'number') onRange({ after: new Date(place).toISOString(), before: new Date(place + width).toISOString() });
        }}
      />
    </div>
  );
}

/** Errors are red, and warnings yellow. */
function severityInk(severity: string): Ink | undefined {
  if (/^(err|crit|fatal|alert|emerg|panic|severe)/i.test(severity)) return 'series-5';
  if (/^warn/i.test(severity)) return 'series-6';
  return /^(info|notice|entries)/i.test(severity) ? 'series-1' : undefined;
}

function histogramTable({ from, width_seconds: width, series }: NonNullable<LogAnswer['histogram']>): ChartTable {
  const start = Date.parse(from);
  const rows = series.flatMap(({ value, rows: numbers }) => numbers.map((number, index) => ({ time: start + index * width * 1000, number, value: value ?? 'entries' })));
  return {
    columns: [
      { name: 'time', kind: 'time', isDate: false, values: rows.map(({ time }) => time) },
      { name: 'rows', kind: 'number', isDate: false, values: rows.map(({ number }) => number) },
      { name: 'value', kind: 'text', isDate: false, values: rows.map(({ value }) => value) },
    ],
    rows: rows.length,
    total: rows.length,
  };
}

function Patterns({ answer }: { answer: LogAnswer }) {
  const rows = answer.patterns?.rows ?? [];
  if (rows.length === 0) return <p class="muted empty">No entry matches.</p>;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Patterns">
      <table>
        <thead>
          <tr>
            <th class="number">Entries</th>
            <th>Pattern</th>
            <th>First</th>
            <th>Last</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([number, pattern, first, last]) => (
            <tr key={pattern}>
              <td class="number">{count(number)}</td>
              <td class="mono">{pattern}</td>
              <td class="nowrap">{first}</td>
              <td class="nowrap">{last}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
