// The rows that a grid shows: those of an answer that is complete, or those of a stored result, which are read block by
// block when they come into view.
import { signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { call, Problem, request } from './client';
import { parseRow, parseRows, type Cell } from './json';

export interface GridColumn {
  name: string;
  type: string;
}

export interface RowSource {
  readonly columns: GridColumn[];
  /** The number of rows so far. */
  readonly rows: ReadonlySignal<number>;
  /** Increases whenever rows have arrived. */
  readonly version: ReadonlySignal<number>;
  /** The cells of a row; `undefined` until it has arrived. */
  row(index: number): Cell[] | undefined;
  /** Loads these rows, unless they are there. */
  want(first: number, last: number): void;
  /** The first rows, at most `max`. */
  readFirst(max: number, signal: AbortSignal): Promise<Cell[][]>;
}

/** Rows that are all there. */
export class LoadedRows implements RowSource {
  readonly rows: Signal<number>;
  readonly version = signal(0);

  constructor(
    readonly columns: GridColumn[],
    private readonly loaded: Cell[][],
  ) {
    this.rows = signal(loaded.length);
  }

  /** The rows of an answer in the format `json`. */
  static fromAnswer(text: string): { source: LoadedRows; isTruncated: boolean } {
    const rows = parseRows(text);
    const end = text.lastIndexOf('],"columns":');
    const rest = JSON.parse(`{${text.slice(end + 2)}`) as AnswerEnd;
    const source = new LoadedRows(rest.columns, rows.map((row) => row.cells));
    return { source, isTruncated: rest.truncated };
  }

  row(index: number): Cell[] | undefined {
    return this.loaded[index];
  }

  want(): void {}

  readFirst(max: number): Promise<Cell[][]> {
    return Promise.resolve(this.loaded.slice(0, max));
  }
}

interface AnswerEnd {
  columns: GridColumn[];
  truncated: boolean;
}

interface Block {
  index: number;
  first_row: number;
  rows: number;
}

export interface Manifest {
  id: string;
  status: 'running' | 'complete' | 'incomplete';
  rows: number;
  bytes: number;
  job: string;
  reason?: string;
  expires_at: string;
  columns: GridColumn[];
  blocks: Block[];
  missing_nodes?: { name: string; reason: string }[];
  links?: { data: string };
}

/** Blocks that are in memory. A block has at most 4 MiB, so the page stays small however far it scrolls. */
const BLOCKS_MAX = 12;

/** The rows of a stored result. Lines are parsed when they are shown, which keeps a block as small as its text. */
export class StoredRows implements RowSource {
  readonly rows: Signal<number>;
  readonly version = signal(0);
  readonly manifest: Signal<Manifest>;
  /** Why rows cannot be read. */
  readonly problem = signal<unknown>(null);
  private readonly blocks = new Map<number, string[] | Promise<void>>();

  constructor(manifest: Manifest) {
    this.manifest = signal(manifest);
    this.rows = signal(manifest.rows);
  }

  get columns(): GridColumn[] {
    return this.manifest.value.columns;
  }

  update(manifest: Manifest): void {
    this.manifest.value = manifest;
    this.rows.value = manifest.rows;
  }

  row(index: number): Cell[] | undefined {
    const block = this.blockOf(index);
    const lines = block && this.blocks.get(block.index);
    if (!block || !Array.isArray(lines)) return undefined;
    const line = lines[index - block.first_row];
    return line === undefined ? undefined : parseRow(line).cells;
  }

  want(first: number, last: number): void {
    for (let row = first; row <= last; ) {
      const block = this.blockOf(row);
      if (!block) return;
      this.load(block);
      row = block.first_row + block.rows;
    }
  }

  /** The block with the row, by halving. */
  private blockOf(row: number): Block | undefined {
    const blocks = this.manifest.value.blocks;
    let low = 0;
    let high = blocks.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const block = blocks[middle]!;
      if (row < block.first_row) high = middle - 1;
      else if (row >= block.first_row + block.rows) low = middle + 1;
      else return block;
    }
    return undefined;
  }

  private load(block: Block): void {
    const known = this.blocks.get(block.index);
    if (known !== undefined) {
      // The block becomes the most recently used one.
      this.blocks.delete(block.index);
      this.blocks.set(block.index, known);
      return;
    }
    this.blocks.set(block.index, this.fetch(block));
    for (const [index, lines] of this.blocks) {
      if (this.blocks.size <= BLOCKS_MAX) break;
      if (Array.isArray(lines)) this.blocks.delete(index);
    }
  }

  /** The lines of these blocks are not kept, so that the blocks of the grid stay in memory. */
  async readFirst(max: number, signal: AbortSignal): Promise<Cell[][]> {
    const rows: Cell[][] = [];
    for (const block of this.manifest.peek().blocks) {
      if (rows.length >= max) break;
      const known = this.blocks.get(block.index);
      const lines = Array.isArray(known) ? known : await this.readLines(block, signal);
      for (const line of lines.slice(0, max - rows.length)) rows.push(parseRow(line).cells);
    }
    return rows;
  }

  private async readLines(block: Block, signal?: AbortSignal): Promise<string[]> {
    const path = `results/${this.manifest.peek().id}/blocks/${block.index}?format=ndjson`;
    const text = await (await request(path, { accept: 'application/x-ndjson', signal })).text();
    return text.trimEnd().split('\n');
  }

  private async fetch(block: Block): Promise<void> {
    try {
      this.blocks.set(block.index, await this.readLines(block));
      this.problem.value = null;
    } catch (error) {
      this.blocks.delete(block.index);
      this.problem.value = error;
    }
    this.version.value += 1;
  }
}

export async function readManifest(id: string, signal?: AbortSignal): Promise<Manifest> {
  return (await (await request(`results/${id}`, { signal })).json()) as Manifest;
}

/** Rows of an answer at most, where results are not stored for the viewer. */
export const LOADED_ROWS_MAX = 1000;

export type Answer =
  | { kind: 'stored'; source: StoredRows }
  | { kind: 'loaded'; source: LoadedRows; isTruncated: boolean };

/** Whether the viewer can read stored results, as far as it is known. */
let readsStored = true;

/** Forgets what is known about the viewer. */
export function forgetViewer(): void {
  readsStored = true;
}

/** Runs a statement. Its rows are stored on the server; where they cannot be read, the first of them are the answer. */
export async function runStatement(args: Record<string, unknown>, signal: AbortSignal): Promise<Answer> {
  if (readsStored) {
    const manifest = await runIntoStore(args, signal);
    if (manifest) return { kind: 'stored', source: new StoredRows(manifest) };
    readsStored = false;
  }
  const response = await call('sql', { ...args, max_rows: LOADED_ROWS_MAX }, signal);
  return { kind: 'loaded', ...LoadedRows.fromAnswer(await response.text()) };
}

/** The manifest of the result; `null` where the server stores none, or a toolset lacks the resources of results. */
async function runIntoStore(args: Record<string, unknown>, signal: AbortSignal): Promise<Manifest | null> {
  let answer: { structured: Manifest };
  try {
    answer = (await (await call('sql', { ...args, delivery: 'blocks' }, signal)).json()) as { structured: Manifest };
  } catch (error) {
    if (error instanceof Problem && error.kind === 'unavailable' && /stored results/.test(error.message)) return null;
    throw error;
  }
  try {
    return await readManifest(answer.structured.id, signal);
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}
