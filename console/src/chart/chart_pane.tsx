// The chart of a result: its fields, the picture, or what would make a chart.
import { signal } from '@preact/signals';
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { count } from '../format';
import { download } from '../parts/download';
import { Icon } from '../parts/icons';
import { Menu } from '../parts/menu';
import { Loading, ProblemNote } from '../parts/problem';
import { StoredNotes } from '../query/result';
import type { Run } from '../query/run';
import { ChartBox } from './chart_box';
import { checkChart, histogramFix, type ChartFault, type Fix } from './check';
import { drawChart, type Size } from './draw';
import { toPng, toSvg, type Scene } from './scene';
import { chooseChart, FIELDS, hasSeveralValues, KINDS, namedColumns, withKind, type ChartKind, type ChartSpec } from './spec';
import { findColumn, readTable, type ChartTable } from './table';

interface ChartPaneProps {
  current: Run | null;
  /** What the viewer has chosen; `null` for the first choice. */
  chosen: ChartSpec | null;
  onChoose: (spec: ChartSpec) => void;
  /** This chart is in the page. */
  onShow: (spec: ChartSpec) => void;
  onRun: () => void;
  /** Draws another chart, of the result of another statement. */
  onFix: (fix: Fix) => void;
}

export function ChartPane({ current, chosen, onChoose, onShow, onRun, onFix }: ChartPaneProps) {
  const { table, error } = useTable(current);
  const missing = table && chosen ? namedColumns(chosen).filter((name) => !findColumn(table, name)) : [];
  const spec = useMemo(() => table && (chosen && missing.length === 0 ? chosen : chooseChart(table)), [table, chosen]);
  useEffect(() => {
    if (spec) onShow(spec);
  }, [spec]);
  if (error !== null) return <ProblemNote error={error} />;
  if (!current) return <p class="muted empty">Run the statement: its chart appears here.</p>;
  if (!table || !spec) return <Loading what="the rows of the chart" />;
  const { sql } = current.statement;
  const fault = checkChart(spec, table, sql);
  return (
    <>
      <Fields spec={spec} table={table} onChange={onChoose} />
      {missing.length > 0 && <p class="note">The result has no column {missing.map((name) => `“${name}”`).join(', ')}, so this is another chart.</p>}
      {current.answer?.kind === 'stored' && <StoredNotes source={current.answer.source} onRun={onRun} />}
      {table.rows < table.total && <Partial spec={spec} table={table} sql={sql} onFix={onFix} />}
      {current.answer?.kind === 'loaded' && current.answer.isTruncated && (
        <p class="note">More rows exist: the chart has the first {count(table.rows)} only. Aggregate in the statement to draw all of them.</p>
      )}
      {fault ? <Fault fault={fault} onFix={onFix} /> : <Picture spec={spec} table={table} />}
    </>
  );
}

/** The rows of a run that has ended. */
function useTable(current: Run | null): { table: ChartTable | null; error: unknown } {
  const [read, setRead] = useState<{ of: Run['answer']; table: ChartTable | null; error: unknown } | null>(null);
  const answer = current?.answer ?? null;
  const isRunning = current?.state === 'running';
  useEffect(() => {
    if (!answer || isRunning) return;
    const controller = new AbortController();
    const keep = (table: ChartTable | null, error: unknown) => {
      if (!controller.signal.aborted) setRead({ of: answer, table, error });
    };
    readTable(answer.source, controller.signal).then((table) => keep(table, null), (error: unknown) => keep(null, error));
    return () => controller.abort();
  }, [answer, isRunning]);
  if (current?.error) return { table: null, error: current.error };
  if (read === null || read.of !== answer || isRunning) return { table: null, error: null };
  return { table: read.table, error: read.error };
}

interface FieldsProps {
  spec: ChartSpec;
  table: ChartTable;
  onChange: (spec: ChartSpec) => void;
}

function Fields({ spec, table, onChange }: FieldsProps) {
  const fields = FIELDS[spec.kind];
  const all = table.columns.map(({ name }) => name);
  const numbers = table.columns.filter(({ kind }) => kind === 'number').map(({ name }) => name);
  const canHaveSeveral = hasSeveralValues(spec.kind) && !spec.by;
  return (
    <div class="chart-fields">
      <label class="inline">
        <span class="muted">Chart</span>
        <select value={spec.kind} onChange={(event) => onChange(withKind(spec, event.currentTarget.value as ChartKind, table))}>
          {Object.entries(KINDS).map(([kind, title]) => (
            <option key={kind} value={kind}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <ColumnField label={fields.x} value={spec.x} names={all} onChange={(x) => onChange({ ...spec, x })} />
      {fields.y && canHaveSeveral && <ValuesMenu label={fields.y} spec={spec} names={numbers} onChange={onChange} />}
      {fields.y && !canHaveSeveral && (
        <ColumnField label={fields.y} value={spec.y[0] ?? ''} names={numbers} onChange={(y) => onChange({ ...spec, y: [y] })} />
      )}
      {fields.by && (
        <ColumnField
          label={fields.by}
          value={spec.by}
          names={all}
          isOptional
          onChange={(by) => onChange({ ...spec, by, y: by ? spec.y.slice(0, 1) : spec.y })}
        />
      )}
      <span class="fill" />
      <SaveMenu />
    </div>
  );
}

interface ColumnFieldProps {
  label: string;
  value: string;
  names: string[];
  isOptional?: boolean;
  onChange: (name: string) => void;
}

function ColumnField({ label, value, names, isOptional, onChange }: ColumnFieldProps) {
  return (
    <label class="inline">
      <span class="muted">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {(isOptional || !names.includes(value)) && <option value="">–</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function ValuesMenu({ label, spec, names, onChange }: { label: string; spec: ChartSpec; names: string[]; onChange: (spec: ChartSpec) => void }) {
  const toggle = (name: string, isOn: boolean) => {
    const y = isOn ? [...spec.y, name] : spec.y.filter((other) => other !== name);
    onChange({ ...spec, y });
  };
  return (
    <span class="inline-field">
      <span class="muted" aria-hidden="true">
        {label}
      </span>
      <Menu class="select" name={`${label}: ${spec.y.join(', ') || 'none'}`} label={<><span class="cut">{spec.y.join(', ') || '–'}</span> <Icon name="down" /></>}>
        {names.map((name) => (
          <label key={name} class="menu-check">
            <input type="checkbox" checked={spec.y.includes(name)} onChange={(event) => toggle(name, event.currentTarget.checked)} /> {name}
          </label>
        ))}
      </Menu>
    </span>
  );
}

/** The picture that is shown, which can be saved. */
const shown = signal<Scene | null>(null);

function SaveMenu() {
  const [error, setError] = useState<unknown>(null);
  const scene = shown.value;
  const save = (kind: 'png' | 'svg') => {
    setError(null);
    const made = kind === 'png' ? toPng(scene!) : Promise.resolve(toSvg(scene!));
    made.then((blob) => download(blob, `chart.${kind}`), setError);
  };
  if (!scene) return null;
  return (
    <>
      <Menu label={<><Icon name="save" /> Picture</>}>
        <button type="button" onClick={() => save('png')}>
          PNG
        </button>
        <button type="button" onClick={() => save('svg')}>
          SVG
        </button>
      </Menu>
      {error !== null && <ProblemNote error={error} />}
    </>
  );
}

function Picture({ spec, table }: { spec: ChartSpec; table: ChartTable }) {
  const { kind, x, y, by } = spec;
  const draw = useCallback((size: Size) => drawChart(spec, table, size), [kind, x, y.join('\u001f'), by, table]);
  useEffect(() => () => {
    shown.value = null;
  }, []);
  return <ChartBox draw={draw} onScene={(scene) => (shown.value = scene)} />;
}

function Partial({ spec, table, sql, onFix }: { spec: ChartSpec; table: ChartTable; sql: string; onFix: (fix: Fix) => void }) {
  const column = spec.kind === 'histogram' ? findColumn(table, spec.x) : undefined;
  const fix = column?.kind === 'number' ? histogramFix(sql, column) : null;
  return (
    <div class="note chart-note">
      <p>
        The chart has the first {count(table.rows)} of {count(table.total)} rows. {fix ? '' : 'Aggregate in the statement to draw all of them.'}
      </p>
      {fix && (
        <button type="button" class="small" onClick={() => onFix(fix)}>
          {fix.label}
        </button>
      )}
    </div>
  );
}

function Fault({ fault, onFix }: { fault: ChartFault; onFix: (fix: Fix) => void }) {
  return (
    <div class="note" role="alert">
      <Icon name="warning" />
      <div>
        <p>
          <strong>{fault.message}</strong>
        </p>
        <p>{fault.advice}</p>
        <p class="fixes">
          {fault.fixes.map((fix) => (
            <button key={fix.label} type="button" class="small" onClick={() => onFix(fix)}>
              {fix.label}
            </button>
          ))}
        </p>
      </div>
    </div>
  );
}
