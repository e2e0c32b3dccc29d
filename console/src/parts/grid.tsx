// A table of any number of rows, of which only the visible ones are in the page.
//
// A browser limits the height of an element. Beyond that, the scroll bar stands for the rows in proportion, and the
// wheel and the keyboard move by rows, so that each row can be reached.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { cellText, JsonText, NumberText, type Cell } from '../api/json';
import type { GridColumn, RowSource } from '../api/rows';
import { count, localTime } from '../format';

const ROW_PIXELS = 28;
/** The head has the name of a column, and below it its type. */
const HEAD_PIXELS = 42;
const HEIGHT_PIXELS_MAX = 8_000_000;
const CHARACTER_PIXELS = 7.9;
const WIDTH_PIXELS = { min: 64, max: 420 };
/** Rows whose texts determine the widths of the columns. */
const MEASURED_ROWS = 60;
/** Room for the controls beside the name of a column. */
const CONTROL_CHARACTERS = 6;
/** Characters of a cell in the page; the whole value is in a dialog. */
const SHOWN_CHARACTERS_MAX = 300;

export interface CellPlace {
  row: number;
  column: GridColumn;
  cell: Cell;
  element: HTMLElement;
}

interface GridProps {
  source: RowSource;
  label: string;
  /** What the header of a column shows; by default its name and type. */
  header?: ((column: GridColumn, index: number) => ComponentChildren) | undefined;
  /** The order of the rows by a column. */
  sort?: ((column: GridColumn) => 'ascending' | 'descending' | undefined) | undefined;
  onCell?: (place: CellPlace) => void;
}

interface ActiveCell {
  row: number;
  column: number;
}

export function Grid({ source, label, header, sort, onCell }: GridProps) {
  const id = useId();
  const viewport = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<ActiveCell>({ row: 0, column: 0 });
  const [rows, version] = [source.rows.value, source.version.value];
  const widths = useMemo(
    () => measure(source, header ? CONTROL_CHARACTERS : 0),
    [source, source.columns, version === 0, rows === 0],
  );
  const offsets = useMemo(() => accumulate(widths), [widths]);
  const totalWidth = `${offsets[offsets.length - 1] ?? 0}px`;
  const scroll = useScroll(viewport, source, rows);
  const first = Math.max(Math.floor(scroll.top), 0);
  const last = Math.min(first + scroll.visible, rows - 1);
  useEffect(() => setActive({ row: 0, column: 0 }), [source]);
  useEffect(() => {
    if (rows > 0) source.want(first, last);
  }, [source, first, last, rows, version]);

  const open = (row: number, column: number, element: HTMLElement) => {
    const cell = source.row(row)?.[column];
    if (cell !== undefined) onCell?.({ row, column: source.columns[column]!, cell, element });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { row, column } = active;
    const target = keyTarget(event, active, { rows, columns: source.columns.length, page: Math.max(scroll.visible - 1, 1) });
    const element = document.getElementById(cellId(id, row, column));
    if (target) {
      event.preventDefault();
      setActive(target);
      scroll.showRow(target.row);
      scrollColumnIntoView(viewport.current!, offsets, target.column);
    } else if ((event.key === 'Enter' || event.key === ' ') && element) {
      event.preventDefault();
      open(row, column, element);
    } else if (isFar(event) && event.key === 'c' && getSelection()?.isCollapsed) {
      const cell = source.row(row)?.[column];
      if (cell !== undefined) void navigator.clipboard.writeText(cellText(cell));
    }
  };
  const onClick = (event: MouseEvent) => {
    const element = (event.target as HTMLElement).closest<HTMLElement>('[role=gridcell]');
    if (!element) return;
    const [row, column] = [Number(element.dataset.row), Number(element.dataset.column)];
    setActive({ row, column });
    if (getSelection()?.isCollapsed) open(row, column, element);
  };

  const shown = Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => first + index);
  return (
    <div
      ref={viewport}
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={rows + 1}
      aria-colcount={source.columns.length}
      aria-activedescendant={rows > 0 ? cellId(id, active.row, active.column) : undefined}
      tabIndex={0}
      onScroll={scroll.onScroll}
      onKeyDown={onKeyDown}
      onClick={onClick}
    >
      <GridHead columns={source.columns} widths={widths} totalWidth={totalWidth} header={header} sort={sort} />
      <div class="grid-body" role="rowgroup" style={{ height: `${scroll.height}px`, width: totalWidth }}>
        {shown.map((row) => (
          <GridRow
            key={row % (scroll.visible + 2)}
            grid={id}
            row={row}
            columns={source.columns}
            cells={source.row(row)}
            widths={widths}
            activeColumn={row === active.row ? active.column : null}
            style={{ transform: `translateY(${scroll.offsetOf(row)}px)`, width: totalWidth }}
          />
        ))}
      </div>
    </div>
  );
}

interface GridHeadProps {
  columns: GridColumn[];
  widths: number[];
  totalWidth: string;
  header: GridProps['header'];
  sort: GridProps['sort'];
}

function GridHead({ columns, widths, totalWidth, header, sort }: GridHeadProps) {
  return (
    <div class="grid-row grid-head" role="row" aria-rowindex={1} style={{ width: totalWidth }}>
      {columns.map((column, index) => (
        <div
          key={index}
          role="columnheader"
          aria-colindex={index + 1}
          aria-sort={sort?.(column)}
          class={headClass(column)}
          style={{ width: `${widths[index]}px` }}
        >
          {header ? header(column, index) : <HeaderText column={column} />}
        </div>
      ))}
    </div>
  );
}

interface GridRowProps {
  grid: string;
  row: number;
  columns: GridColumn[];
  cells: Cell[] | undefined;
  widths: number[];
  /** The column of the active cell, if it is in this row. */
  activeColumn: number | null;
  style: Record<string, string>;
}

function GridRow({ grid, row, columns, cells, widths, activeColumn, style }: GridRowProps) {
  return (
    <div class={activeColumn === null ? 'grid-row' : 'grid-row active'} role="row" aria-rowindex={row + 2} style={style}>
      {columns.map((column, index) => (
        <div
          key={index}
          id={cellId(grid, row, index)}
          role="gridcell"
          aria-colindex={index + 1}
          data-row={row}
          data-column={index}
          class={cellClass(column, cells?.[index], index === activeColumn)}
          style={{ width: `${widths[index]}px` }}
          title={cellHint(column, cells?.[index])}
        >
          {cells ? shownText(cells[index] ?? null) : '…'}
        </div>
      ))}
    </div>
  );
}

interface Scroll {
  /** The first visible row, with the part of it that is above the view. */
  top: number;
  /** The number of rows that fit. */
  visible: number;
  /** The height of all rows in the page. */
  height: number;
  onScroll: () => void;
  showRow: (row: number) => void;
  /** Where a row stands in the page. */
  offsetOf: (row: number) => number;
}

function useScroll(viewport: { current: HTMLDivElement | null }, source: RowSource, rows: number): Scroll {
  const [viewHeight, setViewHeight] = useState(0);
  const [top, setTop] = useState(0);
  const height = Math.min(rows * ROW_PIXELS, HEIGHT_PIXELS_MAX);
  const bodyHeight = Math.max(viewHeight - HEAD_PIXELS, ROW_PIXELS);
  const topMax = Math.max(rows - bodyHeight / ROW_PIXELS, 0);
  const isScaled = rows * ROW_PIXELS > HEIGHT_PIXELS_MAX;
  const pixelsPerRow = isScaled && topMax > 0 ? (height - bodyHeight) / topMax : ROW_PIXELS;
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setViewHeight(entry!.contentRect.height));
    observer.observe(viewport.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    viewport.current!.scrollTop = 0;
    setTop(0);
  }, [source]);
  const scrollTo = (row: number) => {
    const target = Math.min(Math.max(row, 0), topMax);
    setTop(target);
    viewport.current!.scrollTop = target * pixelsPerRow;
  };
  useEffect(() => {
    const onWheel = (event: WheelEvent) => {
      if (!isScaled || event.deltaY === 0 || event.ctrlKey) return;
      event.preventDefault();
      scrollTo(top + event.deltaY / ROW_PIXELS);
    };
    const element = viewport.current!;
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  });
  return {
    top,
    visible: Math.ceil(bodyHeight / ROW_PIXELS),
    height,
    onScroll() {
      const { scrollTop } = viewport.current!;
      // Positions that the code has set are rounded by the browser.
      if (Math.abs(scrollTop - top * pixelsPerRow) >= 1) setTop(Math.min(scrollTop / pixelsPerRow, topMax));
    },
    showRow(row) {
      const whole = Math.floor(bodyHeight / ROW_PIXELS);
      if (row < top) scrollTo(row);
      else if (row > top + whole - 1) scrollTo(row - whole + 1);
    },
    offsetOf: (row) => (isScaled ? (viewport.current?.scrollTop ?? 0) + (row - top) * ROW_PIXELS : row * ROW_PIXELS),
  };
}

function isFar(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey;
}

/** The cell to which a key moves. */
function keyTarget(
  event: KeyboardEvent,
  { row, column }: ActiveCell,
  { rows, columns, page }: { rows: number; columns: number; page: number },
): ActiveCell | null {
  const moves: Record<string, [number, number]> = {
    ArrowDown: [row + 1, column],
    ArrowUp: [row - 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    PageDown: [row + page, column],
    PageUp: [row - page, column],
    Home: isFar(event) ? [0, 0] : [row, 0],
    End: isFar(event) ? [rows - 1, columns - 1] : [row, columns - 1],
  };
  const move = moves[event.key];
  const within = (value: number, count: number) => Math.min(Math.max(value, 0), Math.max(count - 1, 0));
  return move ? { row: within(move[0], rows), column: within(move[1], columns) } : null;
}

export function HeaderText({ column }: { column: GridColumn }) {
  return (
    <span class="column-text">
      <span class="column-name">{column.name}</span> <span class="column-type">{column.type}</span>
    </span>
  );
}

function cellId(grid: string, row: number, column: number): string {
  return `${grid}-${row}-${column}`;
}

function shownText(cell: Cell): string {
  const text = cellText(cell);
  const short = text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
  return short.replace(/\r?\n/g, ' ⏎ ');
}

function cellClass(column: GridColumn, cell: Cell | undefined, isActive: boolean): string {
  const classes = ['cell'];
  if (cell instanceof NumberText || isNumberType(column.type)) classes.push('number');
  if (cell instanceof JsonText) classes.push('json');
  if (cell === null) classes.push('null');
  if (isActive) classes.push('active');
  return classes.join(' ');
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;

function cellHint(column: GridColumn, cell: Cell | undefined): string | undefined {
  // Times with a zone are in UTC; the viewer's own time is beside them.
  if (typeof cell === 'string' && TIME.test(cell)) return `${column.name}: ${localTime(cell)} (local time)`;
  return undefined;
}

const NUMBER_TYPE = /^(small|big)?int|^u?int\d|^(numeric|decimal|float|double|real|integer)/i;

export function isNumberType(type: string): boolean {
  return NUMBER_TYPE.test(type);
}

function headClass(column: GridColumn): string {
  return isNumberType(column.type) ? 'head-cell number' : 'head-cell';
}

function measure(source: RowSource, controlCharacters: number): number[] {
  const lengths = source.columns.map(({ name, type }) => Math.max(name.length + controlCharacters, type.length));
  for (let row = 0; row < Math.min(source.rows.value, MEASURED_ROWS); row += 1) {
    source.row(row)?.forEach((cell, index) => {
      lengths[index] = Math.max(lengths[index] ?? 0, cellText(cell).length);
    });
  }
  return lengths.map((length) => Math.round(Math.min(Math.max(length * CHARACTER_PIXELS + 22, WIDTH_PIXELS.min), WIDTH_PIXELS.max)));
}

function accumulate(widths: number[]): number[] {
  const offsets = [0];
  for (const width of widths) offsets.push(offsets[offsets.length - 1]! + width);
  return offsets;
}

function scrollColumnIntoView(viewport: HTMLElement, offsets: number[], column: number): void {
  const [left, right] = [offsets[column]!, offsets[column + 1]!];
  if (left < viewport.scrollLeft) viewport.scrollLeft = left;
  else if (right > viewport.scrollLeft + viewport.clientWidth) viewport.scrollLeft = right - viewport.clientWidth;
}

/** The number of rows, as a sentence. */
export function rowsText(rows: number): string {
  return `${count(rows)} ${rows === 1 ? 'row' : 'rows'}`;
}
