// Log entries, of which further pages are read when they come into view.
import { signal, type Signal } from '@preact/signals';
import type { Cell } from '../api/json';
import type { GridColumn, RowSource } from '../api/rows';
import { queryLogs, toCell, type LogAnswer, type LogEntries } from './log_answer';

export const PAGE_ENTRIES = 500;
/** Entries in memory at most. */
export const ENTRIES_MAX = 20_000;
/** How close to the last entry the next page is read. */
const ROWS_AHEAD = 100;

export class EntryRows implements RowSource {
  columns: GridColumn[] = [];
  readonly rows: Signal<number>;
  readonly version = signal(0);
  /** Why a page cannot be read. */
  readonly problem = signal<unknown>(null);
  private readonly loaded: Cell[][] = [];
  private readonly controller = new AbortController();
  private cursor: string | undefined;
  private isReading = false;

  /** `args` are those of the first page. */
  constructor(
    answer: LogAnswer,
    private readonly args: Record<string, unknown>,
  ) {
    if (answer.entries) this.append(answer.entries);
    this.cursor = answer.cursor;
    this.rows = signal(this.loaded.length);
  }

  get hasMore(): boolean {
    return this.cursor !== undefined && this.loaded.length < ENTRIES_MAX;
  }

  row(index: number): Cell[] | undefined {
    return this.loaded[index];
  }

  want(_: number, last: number): void {
    if (last + ROWS_AHEAD < this.loaded.length || !this.hasMore || this.isReading || this.problem.peek() !== null) return;
    void this.readPage();
  }

  readFirst(max: number): Promise<Cell[][]> {
    return Promise.resolve(this.loaded.slice(0, max));
  }

  /** Reads again after a failure. */
  retry(): void {
    this.problem.value = null;
    void this.readPage();
  }

  /** Nobody looks any more. */
  close(): void {
    this.controller.abort();
  }

  private async readPage(): Promise<void> {
    this.isReading = true;
    try {
      const { source, after, before, query, selections } = this.args;
      const args = { source, after, before, query, selections, cursor: this.cursor, limit: PAGE_ENTRIES };
      const answer = await queryLogs(args, this.controller.signal);
      if (answer.entries) this.append(answer.entries);
      this.cursor = answer.cursor;
      this.rows.value = this.loaded.length;
      this.version.value += 1;
    } catch (error) {
      if (!this.controller.signal.aborted) this.problem.value = error;
    } finally {
      this.isReading = false;
    }
  }

  private append({ columns, rows }: LogEntries): void {
    const known = this.columns.map(({ name }) => name);
    const added = columns.filter((name) => !known.includes(name));
    if (added.length > 0) this.columns = [...this.columns, ...added.map((name): GridColumn => ({ name, type: '' }))];
    const places = this.columns.map(({ name }) => columns.indexOf(name));
    for (const row of rows) this.loaded.push(places.map((place) => (place < 0 ? null : toCell(row[place]))));
  }
}
