// The place of the editor in the page, and the schema that it completes.
import type { Signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { listColumns, listTables, mayUse, type Table } from '../api/catalog';
import { Loading, ProblemNote } from '../parts/problem';
import type { Editor, Mistake, SchemaTable } from './editor';
import { blank, type Span } from './statement';

export interface EditorHandle {
  chosen(): Span;
  setText(text: string): void;
  setMistake(mistake: Mistake | null): void;
  correct(name: string): void;
  focus(): void;
}

interface EditorBoxProps {
  handle: { current: EditorHandle | null };
  text: Signal<string>;
  database: string;
  dialect: string;
  onRun: () => void;
}

/** Tables whose columns are read for completion. */
const NAMED_TABLES_MAX = 20;

export function EditorBox({ handle, text, database, dialect, onRun }: EditorBoxProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const latest = useRef({ onRun, database });
  latest.current = { onRun, database };
  const [isReady, setReady] = useState(false);
  const [error, setError] = useState<unknown>(null);

  useEffect(() => {
    let isGone = false;
    import('./editor')
      .then(({ createEditor }) => {
        if (isGone) return;
        const root = host.current!.attachShadow({ mode: 'open' });
        const parent = document.createElement('div');
        parent.style.height = '100%';
        root.append(parent);
        const created = createEditor(root, parent, {
          text: text.peek(),
          onChange: (changed) => (text.value = changed),
          onRun: () => latest.current.onRun(),
          readSchema: (written) => readSchema(written, latest.current.database),
        });
        editor.current = created;
        handle.current = created;
        setReady(true);
      })
      .catch(setError);
    return () => {
      isGone = true;
      handle.current = null;
      editor.current?.destroy();
    };
  }, []);

  useEffect(() => editor.current?.setDialect(dialect), [isReady, dialect]);
  if (error !== null) return <ProblemNote error={error} />;
  return (
    <>
      {!isReady && <Loading what="the editor" />}
      <div ref={host} class={isReady ? 'editor' : 'editor hidden'} />
    </>
  );
}

/** The tables of the database, with the columns of those that the text names. */
async function readSchema(text: string, database: string): Promise<SchemaTable[]> {
  if (!database || !mayUse.value.has('list_tables')) return [];
  // Without a schema, keywords are still completed; the reason is shown when the statement runs.
  const tables = await listTables(database).catch(() => []);
  const named = namedTables(text, tables);
  const columns = await Promise.all(named.map((table) => readColumns(database, table)));
  return tables.map(({ name, comment }) => ({ name, comment, columns: columns[named.indexOf(name)] ?? [] }));
}

async function readColumns(database: string, table: string) {
  if (!mayUse.value.has('get_schema')) return [];
  return listColumns(database, table).catch(() => []);
}

function namedTables(text: string, tables: Table[]): string[] {
  const words = new Set((blank(text, true).toLowerCase().match(/[\w$]+|"[^"]+"/g) ?? []).map((word) => word.replaceAll('"', '')));
  const isNamed = ({ name }: Table) => words.has(name.toLowerCase()) || words.has(name.toLowerCase().split('.').pop()!);
  return tables.filter(isNamed).slice(0, NAMED_TABLES_MAX).map(({ name }) => name);
}
