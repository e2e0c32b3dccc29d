// The entries of a log, the newest first, and those around one of them.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { isAborted } from '../api/client';
import { cellText } from '../api/json';
import { count } from '../format';
import { CellDialog } from '../parts/cell_dialog';
import { Dialog } from '../parts/dialog';
import { Grid, type CellPlace } from '../parts/grid';
import { Loading, ProblemNote } from '../parts/problem';
import { ENTRIES_MAX, EntryRows } from './entry_rows';
import { queryLogs, toCell, type LogAnswer, type LogEntries, type LogField } from './log_answer';

/** Entries on each side of the one that is looked at. */
const CONTEXT_ENTRIES = 20;
/** Where an entry stands says nothing about what happened. */
const PLACE_FIELDS = /^(entry_|parse_error|normalized_)/;

interface EntriesProps {
  answer: LogAnswer;
  args: Record<string, unknown>;
  fields: LogField[];
}

export function Entries({ answer, args, fields }: EntriesProps) {
  const [cell, setCell] = useState<CellPlace | null>(null);
  const [contextOf, setContextOf] = useState<string | null>(null);
  const source = useMemo(() => new EntryRows(answer, args), [answer]);
  useEffect(() => () => source.close(), [source]);
  const rows = source.rows.value;
  if (rows === 0) return <p class="muted empty">No entry matches.</p>;
  const timeField = fields.find(({ role }) => role === 'time')?.field;
  const time = cell && timeOf(source, cell.row, timeField);
  return (
    <>
      <Grid source={source} label="Log entries, the newest first" onCell={setCell} />
      {source.problem.value !== null && (
        <ProblemNote error={source.problem.value}>
          <button type="button" onClick={() => source.retry()}>
            Try again
          </button>
        </ProblemNote>
      )}
      {rows < answer.matched && <p class="muted grid-foot">{foot(rows, answer.matched, source.hasMore)}</p>}
      {cell && (
        <CellDialog name={cell.column.name} type={cell.column.type} cell={cell.cell} onClose={() => setCell(null)}>
          {time && (
            <button
              type="button"
              onClick={() => {
                setCell(null);
                setContextOf(time);
              }}
            >
              Show the entries around it
            </button>
          )}
        </CellDialog>
      )}
      {contextOf !== null && <ContextDialog source={args.source} time={contextOf} timeField={timeField!} onClose={() => setContextOf(null)} />}
    </>
  );
}

function timeOf(source: EntryRows, row: number, field: string | undefined): string | null {
  const value = source.row(row)?.[source.columns.findIndex(({ name }) => name === field)];
  return value === undefined || value === null ? null : cellText(value);
}

function foot(rows: number, matched: number, hasMore: boolean): string {
  const shown = `The newest ${count(rows)} of ${count(matched)}.`;
  if (hasMore) return `${shown} More are read as you scroll.`;
  return rows >= ENTRIES_MAX ? `${shown} A click on a bar shows those of its time.` : shown;
}

interface ContextDialogProps {
  source: unknown;
  time: string;
  timeField: string;
  onClose: () => void;
}

/** All entries around the time, also those that do not match the search. */
function ContextDialog({ source, time, timeField, onClose }: ContextDialogProps) {
  const [answer, setAnswer] = useState<LogAnswer | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const controller = new AbortController();
    const context = { time, before: CONTEXT_ENTRIES, after: CONTEXT_ENTRIES };
    queryLogs({ source, context }, controller.signal).then(setAnswer, (refused) => !isAborted(refused) && setError(refused));
    return () => controller.abort();
  }, []);
  return (
    <Dialog title={`Entries around ${time}`} class="wide" onClose={onClose}>
      {error !== null && <ProblemNote error={error} />}
      {!answer && error === null && <Loading what="the entries" />}
      {answer && <ContextTable parts={[answer.before, answer.after]} time={time} timeField={timeField} />}
    </Dialog>
  );
}

function ContextTable({ parts, time, timeField }: { parts: (LogEntries | undefined)[]; time: string; timeField: string }) {
  const found = parts.filter((part) => part !== undefined);
  const names = [...new Set(found.flatMap(({ columns }) => columns))].filter((name) => !PLACE_FIELDS.test(name));
  const rows = found.flatMap(({ columns, rows: entries }) => entries.map((entry) => names.map((name) => entry[columns.indexOf(name)] ?? null)));
  return (
    <div class="table-box context" tabIndex={0} role="region" aria-label="Entries around it">
      <table>
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index} class={row[names.indexOf(timeField)] === time ? 'current' : undefined}>
              {row.map((value, column) => (
                <td key={column} class={names[column] === timeField ? 'nowrap' : undefined}>
                  {value === null ? '' : cellText(toCell(value))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
