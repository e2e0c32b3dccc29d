// The rows of the last run, or why there are none.
import { useState } from 'preact/hooks';
import { Problem } from '../api/client';
import { CellDialog } from '../parts/cell_dialog';
import { Grid, type CellPlace } from '../parts/grid';
import { Loading, ProblemNote } from '../parts/problem';
import type { StoredRows } from '../api/rows';
import type { Run } from './run';

interface ResultProps {
  current: Run | null;
  onRun: () => void;
  /** Replaces the marked mistake; `undefined` if none is marked. */
  onCorrect: ((name: string) => void) | undefined;
}

export function Result({ current, onRun, onCorrect }: ResultProps) {
  const [cell, setCell] = useState<CellPlace | null>(null);
  if (!current) return <p class="muted empty">Run a statement: its rows appear here. Ctrl+Enter runs, Ctrl+Space completes.</p>;
  if (current.error !== null) return <ProblemNote error={current.error} onChoose={onCorrect} />;
  const { answer } = current;
  if (!answer) return current.state === 'running' ? <Loading what="the first rows" /> : <p class="muted empty">Cancelled before the first row.</p>;
  return (
    <>
      {answer.kind === 'stored' && <StoredNotes source={answer.source} onRun={onRun} />}
      <Grid source={answer.source} label="Rows of the result" onCell={setCell} />
      {cell && <CellDialog name={cell.column.name} type={cell.column.type} cell={cell.cell} onClose={() => setCell(null)} />}
    </>
  );
}

/** What is missing in a stored result. */
export function StoredNotes({ source, onRun }: { source: StoredRows; onRun: () => void }) {
  const manifest = source.manifest.value;
  const problem = source.problem.value;
  const isGone = problem instanceof Problem && problem.status === 404;
  return (
    <>
      {manifest.status === 'incomplete' && (
        <p class="note wrong">The rows are not complete: {manifest.reason ?? 'the query ended early'}.</p>
      )}
      {manifest.missing_nodes && (
        <p class="note wrong">
          The rows of these nodes are missing: {manifest.missing_nodes.map(({ name, reason }) => `${name} (${reason})`).join(', ')}.
        </p>
      )}
      {isGone && (
        <div class="note wrong">
          <p>The result has expired: the server keeps results for a limited time.</p>
          <button type="button" onClick={onRun}>
            Run the statement again
          </button>
        </div>
      )}
      {problem !== null && !isGone && <ProblemNote error={problem} />}
    </>
  );
}
