// Statements: written with completion, run with progress, and their rows in a grid.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem, type Call } from '../api/client';
import { databases, mayUse } from '../api/catalog';
import { count, milliseconds, rate } from '../format';
import { CallButton } from '../parts/call_button';
import { Icon } from '../parts/icons';
import { lazy } from '../parts/lazy';
import { Loading, ProblemNote } from '../parts/problem';
import { Tabs } from '../parts/tabs';
import type { Fix } from '../chart/check';
import { readSpec, writeSpec, type ChartSpec } from '../chart/spec';
import { replace, route } from '../route';
import { EditorBox, type EditorHandle } from './editor_box';
import { ExportMenu } from './export_menu';
import { HistoryList } from './history_list';
import { PlanTree } from './plan_tree';
import { Result } from './result';
import { cancel, explain, plan, run, start, statementCall, type Run, type Statement } from './run';
import { countParameters, locateMistake, parameterValue } from './statement';

const ChartPane = lazy('the chart', () => import('../chart/chart_pane').then((module) => module.ChartPane));

const TABS = { result: 'Result', chart: 'Chart', plan: 'Plan', history: 'History' };
type Tab = keyof typeof TABS;

/** What is written stays while other views are open. */
const text = signal('');
const chosenDatabase = signal('');
const parameterTexts = signal<string[]>([]);
const tab = signal<Tab>('result');
/** The chart that the viewer has chosen, and the one that is shown. */
const chart = signal<ChartSpec | null>(null);
const shownChart = signal<ChartSpec | null>(null);
/** The address that this view wrote last. */
let written = '';
/** Whether a mistake is marked in the text. */
const isMarked = signal(false);

export function QueryView() {
  const editor = useRef<EditorHandle>(null);
  const known = databases.value ?? [];
  useEffect(() => readAddress(editor.current), [route.value]);
  useEffect(() => {
    isMarked.value = false;
  }, [text.value]);
  if (!chosenDatabase.value && known[0]) chosenDatabase.value = known[0].name;
  const database = known.find(({ name }) => name === chosenDatabase.value);
  const current = run.value;

  const chosenStatement = (): Statement | null => {
    const span = editor.current?.chosen() ?? { from: 0, to: text.value.length };
    const sql = text.value.slice(span.from, span.to);
    if (!sql.trim()) return null;
    const parameters = parameterTexts.value.slice(0, countParameters(sql)).map(parameterValue);
    return { database: chosenDatabase.value, sql, parameters, offset: span.from };
  };
  const runChosen = () => {
    const statement = chosenStatement();
    if (!statement) return;
    // A chart is drawn again.
    if (tab.value !== 'chart') tab.value = 'result';
    writeAddress();
    editor.current?.setMistake(null);
    isMarked.value = false;
    void start(statement);
  };
  const applyFix = ({ spec, sql }: Fix) => {
    chart.value = spec;
    if (sql !== undefined && current) {
      const { statement } = current;
      const from = text.value.startsWith(statement.sql, statement.offset) ? statement.offset : 0;
      const to = from === statement.offset ? from + statement.sql.length : text.value.length;
      editor.current?.setText(text.value.slice(0, from) + sql + text.value.slice(to));
      void start({ ...statement, sql, offset: from });
    }
  };
  const explainChosen = () => {
    const statement = chosenStatement();
    if (!statement) return;
    tab.value = 'plan';
    void explain(statement).then(() => showMistake(editor.current, statement, plan.peek()?.error));
  };
  useEffect(() => {
    if (current?.state === 'failed') showMistake(editor.current, current.statement, current.error);
  }, [current?.state, current?.startedAt]);

  if (!mayUse.value.has('sql')) {
    return <p class="note">Your roles do not permit the tool sql. An administrator can add it to a toolset of your role.</p>;
  }
  return (
    <div class={tab.value === 'chart' ? 'view query has-chart' : 'view query'}>
      <Head
        current={current}
        call={callOf(chosenStatement)}
        onRun={runChosen}
        onExplain={mayUse.value.has('explain') ? explainChosen : undefined}
      />
      <EditorBox
        handle={editor}
        text={text}
        database={chosenDatabase.value}
        dialect={database?.dialect ?? ''}
        onRun={runChosen}
      />
      <Parameters statement={text.value} />
      <div class="tabs">
        <Tabs label="Result, chart, plan and history" names={TABS} chosen={tab.value} onChoose={chooseTab} />
        <span class="fill" />
        {current && <Progress current={current} />}
      </div>
      <div class="pane">
        {tab.value === 'result' && <Result current={current} onRun={runChosen} onCorrect={isMarked.value ? (name) => editor.current?.correct(name) : undefined} />}
        {tab.value === 'chart' && (
          <ChartPane
            current={current}
            chosen={chart.value}
            onChoose={(spec) => (chart.value = spec)}
            onShow={(spec) => {
              shownChart.value = spec;
              writeAddress();
            }}
            onRun={runChosen}
            onFix={applyFix}
          />
        )}
        {tab.value === 'plan' && <PlanPane />}
        {tab.value === 'history' && (
          <HistoryList
            onChoose={(item) => {
              chosenDatabase.value = item.database;
              editor.current?.setText(item.sql);
              editor.current?.focus();
            }}
          />
        )}
      </div>
    </div>
  );
}

interface HeadProps {
  current: Run | null;
  call: Call | null;
  onRun: () => void;
  onExplain: (() => void) | undefined;
}

function Head({ current, call, onRun, onExplain }: HeadProps) {
  const isRunning = current?.state === 'running';
  return (
    <div class="view-head">
      <h1 class="hidden">Query</h1>
      <label class="inline">
        <span class="label muted">Database</span>
        <select value={chosenDatabase.value} onChange={(event) => (chosenDatabase.value = event.currentTarget.value)}>
          {(databases.value ?? []).map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {isRunning ? (
        <button type="button" class="primary" onClick={() => void cancel()}>
          <Icon name="stop" /> Cancel
        </button>
      ) : (
        <button type="button" class="primary" title="Run the selection, or the statement at the cursor (Ctrl+Enter)" onClick={onRun}>
          <Icon name="run" /> Run
        </button>
      )}
      {onExplain && (
        <button type="button" onClick={onExplain}>
          Plan
        </button>
      )}
      <span class="fill" />
      <CallButton call={call} />
      {current?.answer && <ExportMenu statement={current.statement} answer={current.answer} />}
    </div>
  );
}

function callOf(chosen: () => Statement | null): Call | null {
  const statement = text.value.trim() ? chosen() : null;
  return statement && statementCall(statement);
}

function readAddress(editor: EditorHandle | null): void {
  if (location.hash === written) return;
  const { parameters } = route.value;
  const [sql, database, values] = [parameters.get('sql'), parameters.get('database'), parameters.get('values')];
  if (database) chosenDatabase.value = database;
  if (values) parameterTexts.value = values.split('\u001f');
  const spec = readSpec(parameters);
  if (spec) {
    chart.value = spec;
    tab.value = 'chart';
  }
  if (sql !== null && sql !== text.peek()) {
    text.value = sql;
    editor?.setText(sql);
  }
}

function writeAddress(): void {
  const values = parameterTexts.value.slice(0, countParameters(text.value)).join('\u001f');
  const drawn = tab.value === 'chart' && shownChart.value ? writeSpec(shownChart.value) : {};
  replace(['query'], { database: chosenDatabase.value, sql: text.value, values: values || undefined, ...drawn });
  written = location.hash;
}

function chooseTab(name: Tab): void {
  tab.value = name;
  // The address opens the chart only while it is shown.
  if (route.peek().parameters.has('chart')) writeAddress();
}

function showMistake(editor: EditorHandle | null, statement: Statement, error: unknown): void {
  if (!editor || !(error instanceof Problem) || !text.peek().startsWith(statement.sql, statement.offset)) return;
  const messages = [error.message, ...error.violations.map(({ message }) => message)];
  for (const message of messages) {
    const span = locateMistake(statement.sql, message);
    if (!span) continue;
    const [from, to] = [span.from + statement.offset, span.to + statement.offset];
    editor.setMistake({ from, to, message, hint: error.hint, choices: corrections(error) });
    isMarked.value = true;
    return;
  }
}

/** The names that the server suggests, the nearest first. */
function corrections(problem: Problem): string[] {
  const meant = [...problem.message.matchAll(/did you mean "([^"]+)"/g)].map(([, name]) => name!);
  return [...meant, ...problem.choices];
}

function Parameters({ statement }: { statement: string }) {
  const wanted = countParameters(statement);
  if (wanted === 0) return null;
  const set = (index: number, value: string) => {
    const next = [...parameterTexts.value];
    while (next.length < wanted) next.push('');
    next[index] = value;
    parameterTexts.value = next;
  };
  return (
    <fieldset class="parameters">
      <legend class="muted">Parameters: 5 is a number, "5" is text, null is NULL</legend>
      {Array.from({ length: wanted }, (_, index) => (
        <label key={index} class="inline">
          <span class="mono">${index + 1}</span>
          <input value={parameterTexts.value[index] ?? ''} spellcheck={false} onInput={(event) => set(index, event.currentTarget.value)} />
        </label>
      ))}
    </fieldset>
  );
}

const CLOCK_MILLISECONDS = 100;

/** The state of the last run, with its time, rows and speed. */
function Progress({ current }: { current: Run }) {
  const [now, setNow] = useState(Date.now());
  const isRunning = current.state === 'running';
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setNow(Date.now()), CLOCK_MILLISECONDS);
    return () => clearInterval(timer);
  }, [isRunning]);
  const elapsed = Math.max((current.endedAt ?? now) - current.startedAt, 0);
  const rows = current.answer?.source.rows.value ?? 0;
  const isLimited = current.answer?.kind === 'loaded' && current.answer.isTruncated;
  const parts = [
    current.answer && `${count(rows)} ${rows === 1 ? 'row' : 'rows'}${isLimited ? ', more exist' : ''}`,
    milliseconds(elapsed),
    isRunning && rows > 0 && elapsed > 0 && `${rate((rows / elapsed) * 1000)} rows/s`,
  ];
  return (
    <span class={`run-state ${current.state}`} role="status">
      {isRunning && <span class="spinner" aria-hidden="true" />}
      {STATE_WORDS[current.state]} <span class="muted">{parts.filter(Boolean).join(' · ')}</span>
    </span>
  );
}

const STATE_WORDS: Record<Run['state'], string> = { running: 'Running', done: 'Done', failed: 'Failed', cancelled: 'Cancelled' };

function PlanPane() {
  const shown = plan.value;
  if (!shown) return <p class="muted empty">“Plan” shows how the statement would be run, without running it.</p>;
  if (shown.error !== null) return <ProblemNote error={shown.error} />;
  if (shown.text === null) return <Loading what="the plan" />;
  return <PlanTree text={shown.text} />;
}
