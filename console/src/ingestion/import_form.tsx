// Sends a file to a table that takes rows. A repeat after a failure has the same key, so no row is stored twice.
import { useRef, useState } from 'preact/hooks';
import { isAborted, request } from '../api/client';
import { databases } from '../api/catalog';
import { bytes, plural } from '../format';
import { ProblemNote } from '../parts/problem';
import { link } from '../route';

/** The media types of what the names of files end with. */
const TYPES: Record<string, string> = {
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  jsonl: 'application/x-ndjson',
  arrow: 'application/vnd.apache.arrow.file',
  arrows: 'application/vnd.apache.arrow.stream',
  parquet: 'application/vnd.apache.parquet',
};
const CODINGS: Record<string, string> = { gz: 'gzip', zst: 'zstd' };
const REJECTIONS_MAX = 20;

interface FileForm {
  type: string;
  coding: string | undefined;
  /** The table that the name of the file suggests. */
  table: string;
}

interface Stored {
  database: string;
  table: string;
  rows: number;
  rejected: number;
  rejections: { line?: number; row?: number; column?: string; reason: string }[];
  created: boolean;
}

/** `null` if the name says nothing about the format. */
function formOf(name: string): FileForm | null {
  const parts = name.toLowerCase().split('.');
  const coding = CODINGS[parts.at(-1) ?? ''];
  if (coding) parts.pop();
  const type = parts.length > 1 ? TYPES[parts.pop()!] : undefined;
  if (!type) return null;
  const table = parts.join('_').replace(/[^a-z0-9_]+/g, '_').replace(/^_+|_+$/g, '');
  return { type, coding, table };
}

interface ImportFormProps {
  tables: { database: string; table: string }[];
  onStore: () => void;
}

export function ImportForm({ tables, onStore }: ImportFormProps) {
  const [file, setFile] = useState<File | null>(null);
  const [chosenDatabase, setDatabase] = useState<string | null>(null);
  const database = chosenDatabase ?? tables[0]?.database ?? databases.value?.[0]?.name ?? '';
  const [table, setTable] = useState('');
  const [keepsOthers, setKeepsOthers] = useState(false);
  const [isOver, setIsOver] = useState(false);
  const [isSending, setIsSending] = useState(false);
  const [stored, setStored] = useState<Stored | null>(null);
  const [error, setError] = useState<unknown>(null);
  const controller = useRef<AbortController | null>(null);
  const writeKey = useRef('');
  const form = file && formOf(file.name);

  const choose = (chosen: File | undefined) => {
    if (!chosen) return;
    setFile(chosen);
    setStored(null);
    setError(null);
    setTable(table || formOf(chosen.name)?.table || '');
  };
  const change = (act: () => void) => {
    // Other rows, or another table: a new write.
    writeKey.current = '';
    act();
  };
  const send = async (event: Event) => {
    event.preventDefault();
    if (!file || !form) return;
    controller.current = new AbortController();
    writeKey.current ||= crypto.randomUUID();
    setIsSending(true);
    setError(null);
    setStored(null);
    const headers: Record<string, string> = { 'Content-Type': form.type, 'Idempotency-Key': writeKey.current };
    if (form.coding) headers['Content-Encoding'] = form.coding;
    const path = `data/${encodeURIComponent(database)}/${encodeURIComponent(table)}?on_reject=${keepsOthers ? 'row' : 'all'}`;
    try {
      const response = await request(path, { method: 'POST', content: file, headers, signal: controller.current.signal });
      setStored((await response.json()) as Stored);
      writeKey.current = '';
      onStore();
    } catch (refused) {
      if (!isAborted(refused)) setError(refused);
    } finally {
      setIsSending(false);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    if (!isSending) change(() => choose(event.dataTransfer?.files[0]));
  };
  return (
    <section>
      <h2>Import a file</h2>
      <form class="import" onSubmit={(event) => void send(event)}>
        <fieldset disabled={isSending}>
          <label
            class={isOver ? 'drop over' : 'drop'}
            onDragOver={(event) => {
              event.preventDefault();
              setIsOver(true);
            }}
            onDragLeave={() => setIsOver(false)}
            onDrop={drop}
          >
            <span>{file ? `${file.name}, ${bytes(file.size)}` : 'Drop a file here, or choose one'}</span>
            <span class="muted">CSV, TSV, JSON, NDJSON, Arrow or Parquet, also with gzip or Zstandard</span>
            <input type="file" aria-label="File" onChange={(event) => change(() => choose(event.currentTarget.files?.[0]))} />
          </label>
          <div class="toolbar">
            <DatabaseField database={database} onChange={(name) => change(() => setDatabase(name))} />
            <label class="inline">
              <span class="muted">Table</span>
              <input required list="import-tables" value={table} onInput={(event) => change(() => setTable(event.currentTarget.value))} />
            </label>
            <datalist id="import-tables">
              {tables.filter((known) => known.database === database).map((known) => (
                <option key={known.table} value={known.table} />
              ))}
            </datalist>
            <label class="inline">
              <input type="checkbox" checked={keepsOthers} onChange={(event) => change(() => setKeepsOthers(event.currentTarget.checked))} />
              Store the rows that fit, if others do not
            </label>
            <button type="submit" class="primary" disabled={!form}>
              Import
            </button>
          </div>
        </fieldset>
      </form>
      {file && !form && <p class="note wrong">The name does not say which format the file has. It should end with .csv, .tsv, .json, .ndjson, .arrow or .parquet, and then .gz or .zst if it is compressed.</p>}
      {isSending && (
        <p class="loading" role="status">
          Sending {file && bytes(file.size)}…{' '}
          <button type="button" class="small" onClick={() => controller.current?.abort()}>
            Cancel
          </button>
        </p>
      )}
      {error !== null && <ProblemNote error={error} />}
      {stored && <Outcome stored={stored} />}
    </section>
  );
}

function DatabaseField({ database, onChange }: { database: string; onChange: (name: string) => void }) {
  const known = databases.value ?? [];
  return (
    <label class="inline">
      <span class="muted">Database</span>
      {/* A caller may be permitted to write to a database that it cannot read. */}
      <input required list="import-databases" value={database} onInput={(event) => onChange(event.currentTarget.value)} />
      <datalist id="import-databases">
        {known.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}

function Outcome({ stored }: { stored: Stored }) {
  const { database, table, rows, rejected, rejections, created } = stored;
  return (
    <div class={rejected > 0 ? 'note' : 'note good'} role="status">
      <div>
        <p>
          {plural(rows, 'row')} stored in{' '}
          <a href={link(['data', database, table])}>
            {database}.{table}
          </a>
          {created && ', which is new'}. {rejected > 0 && `${plural(rejected, 'row')} rejected.`}
        </p>
        {rejections.length > 0 && (
          <ul>
            {rejections.slice(0, REJECTIONS_MAX).map(({ line, row, column, reason }, index) => (
              <li key={index}>
                {[line !== undefined && `line ${line}`, row !== undefined && `row ${row}`, column].filter(Boolean).join(', ')}: {reason}
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}
