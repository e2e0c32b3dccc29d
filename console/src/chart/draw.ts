// Draws a chart whose columns have been checked: the shapes, and the marks with their values.
import { distinct, findColumn, type ChartColumn, type ChartTable, type Value } from './table';
import { extent, numberScale, numberText, placeTexts, roundStep, timeScale, valueText, type Scale, type Tick } from './scale';
import { cutText, dot, rectangle, round, seriesInk, textWidth, type Ink, type Mark, type Scene } from './scene';
import type { ChartSpec } from './spec';

export interface Size {
  width: number;
  height: number;
}

export function drawChart(spec: ChartSpec, table: ChartTable, size: Size): Scene {
  if (spec.kind === 'heatmap') return drawHeatMap(spec, table, size);
  if (spec.kind === 'histogram') return drawHistogram(spec, table, size);
  if (spec.kind === 'bar') return drawBars(spec, table, size);
  return spec.kind === 'map' ? drawMap(spec, table, size) : drawPoints(spec, table, size);
}

/** The part of the picture within the axes. */
interface Plot {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const TEXT_PIXELS = 12;
const LINE_PIXELS = 18;
const GAP_PIXELS = 8;
/** Pixels between ticks, about. */
const TICK_PIXELS = { x: 90, y: 48 };
/** A label below the axis has at most so many pixels when it is turned. */
const TURNED_PIXELS_MAX = 96;

function emptyScene(size: Size): Scene {
  return { ...size, paths: [], texts: [], marks: [], summary: '' };
}

/** One series of values over the axis. */
interface Series {
  name: string;
  ink: Ink;
  points: { x: Value; y: number | null }[];
}

function readSeries({ x, y, by }: ChartSpec, table: ChartTable): Series[] {
  const axis = findColumn(table, x)!;
  const split = findColumn(table, by);
  if (!split) {
    return y.map((name, index) => {
      const { values } = findColumn(table, name)!;
      return { name, ink: seriesInk(index), points: values.map((value, row) => ({ x: axis.values[row]!, y: value as number | null })) };
    });
  }
  const { values } = findColumn(table, y[0]!)!;
  const series = new Map(distinct(split).map((value, index): [Value, Series] => {
    return [value, { name: valueText(split, value), ink: seriesInk(index), points: [] }];
  }));
  split.values.forEach((value, row) => series.get(value)!.points.push({ x: axis.values[row]!, y: values[row] as number | null }));
  return [...series.values()];
}

/** The names of the series above the plot; the top of what is below them. */
function drawLegend(scene: Scene, series: { name: string; ink: Ink }[], left: number): number {
  if (series.length < 2) return GAP_PIXELS;
  let [x, y] = [left, GAP_PIXELS + TEXT_PIXELS];
  for (const { name, ink } of series) {
    const text = cutText(name, 200);
    const width = textWidth(text) + 36;
    if (x + width > scene.width && x > left) [x, y] = [left, y + LINE_PIXELS];
    scene.paths.push({ d: rectangle(x, y - 9, 10, 10), fill: ink });
    scene.texts.push({ text, x: x + 15, y, anchor: 'start', ink: 'text' });
    x += width;
  }
  return y + GAP_PIXELS + 4;
}

/** The left axis, with the lines of its ticks; its place of a value. */
function drawValueAxis(scene: Scene, plot: Plot, scale: Scale): (value: number) => number {
  const place = (value: number) => plot.bottom - ((value - scale.min) / (scale.max - scale.min)) * (plot.bottom - plot.top);
  for (const { value, label } of scale.ticks) {
    const y = place(value);
    scene.paths.push({ d: `M${plot.left} ${round(y)}H${plot.right}`, stroke: value === 0 ? 'line-strong' : 'line' });
    scene.texts.push({ text: label, x: plot.left - 6, y: y + 4, anchor: 'end', ink: 'muted' });
  }
  return place;
}

function axisWidth({ ticks }: Scale): number {
  return Math.max(...ticks.map(({ label }) => textWidth(label)), 10) + 10;
}

function axisScale(column: ChartColumn, plot: { left: number; right: number }): Scale {
  const [low, high] = extent(column.values) ?? [0, 1];
  const wanted = Math.max(2, (plot.right - plot.left) / TICK_PIXELS.x);
  if (column.kind === 'time') return timeScale(low, high, wanted);
  const scale = numberScale(low, high, wanted, column.values.every((value) => value === null || Number.isInteger(value)));
  // Along the axis, there is no room between its end and the data.
  return low === high ? scale : { min: low, max: high, ticks: scale.ticks.filter(({ value }) => value >= low && value <= high) };
}

/** The bottom axis of numbers or times; its place of a value. */
function drawAxis(scene: Scene, plot: Plot, scale: Scale, inset: number): (value: number) => number {
  const [left, right] = [plot.left + inset, plot.right - inset];
  const place = (value: number) => left + ((value - scale.min) / (scale.max - scale.min)) * (right - left);
  scene.paths.push({ d: `M${plot.left} ${plot.bottom}H${plot.right}`, stroke: 'line-strong' });
  for (const { value, label } of scale.ticks) {
    const x = place(value);
    scene.paths.push({ d: `M${round(x)} ${plot.bottom}v4`, stroke: 'line-strong' });
    scene.texts.push({ text: label, x: Math.min(x, scene.width - textWidth(label) / 2 - 2), y: plot.bottom + LINE_PIXELS, anchor: 'middle', ink: 'muted' });
  }
  return place;
}

interface BandLabels {
  labels: string[];
  isTurned: boolean;
  /** Pixels that the labels need below the axis. */
  height: number;
}

/** How the labels of places fit below `width` pixels. */
function fitLabels(labels: string[], width: number, isNumeric: boolean): BandLabels {
  const band = width / Math.max(labels.length, 1);
  const longest = Math.max(...labels.map(textWidth), 0);
  if (longest + 6 <= band || isNumeric) return { labels, isTurned: false, height: LINE_PIXELS };
  const shown = labels.map((label) => cutText(label, TURNED_PIXELS_MAX));
  return { labels: shown, isTurned: true, height: Math.max(...shown.map(textWidth)) + 10 };
}

function drawBands(scene: Scene, plot: Plot, { labels, isTurned }: BandLabels): void {
  const band = (plot.right - plot.left) / labels.length;
  const needed = isTurned ? TEXT_PIXELS + 2 : Math.max(...labels.map(textWidth)) + 10;
  const step = Math.max(1, Math.ceil(needed / band));
  labels.forEach((text, index) => {
    if (index % step !== 0) return;
    const x = plot.left + (index + 0.5) * band;
    if (isTurned) scene.texts.push({ text, x: x + 4, y: plot.bottom + 7, anchor: 'end', ink: 'muted', turn: -90 });
    else scene.texts.push({ text, x, y: plot.bottom + LINE_PIXELS, anchor: 'middle', ink: 'muted' });
  });
}

/** The names of the axes. */
function drawTitles(scene: Scene, plot: Plot, x: string, y: string): void {
  scene.texts.push({ text: cutText(x, plot.right - plot.left), x: (plot.left + plot.right) / 2, y: scene.height - 6, anchor: 'middle', ink: 'text' });
  if (!y) return;
  const middle = (plot.top + plot.bottom) / 2;
  scene.texts.push({ text: cutText(y, plot.bottom - plot.top), x: 12, y: middle, anchor: 'middle', ink: 'text', turn: -90 });
}

const TITLE_PIXELS = 20;

function axisName(column: ChartColumn): string {
  return column.kind === 'time' && !column.isDate ? `${column.name} (UTC)` : column.name;
}

function valueScale(series: Series[], height: number, hasZero: boolean): Scale {
  const [low, high] = extent(series.flatMap(({ points }) => points.map(({ y }) => y))) ?? [0, 1];
  // Near zero, the axis begins there.
  const isNear = low >= 0 && low <= high / 2;
  return numberScale(hasZero || isNear ? Math.min(low, 0) : low, hasZero ? Math.max(high, 0) : high, height / TICK_PIXELS.y);
}

/** Lines, areas and single points. */
function drawPoints(spec: ChartSpec, table: ChartTable, size: Size): Scene {
  const scene = emptyScene(size);
  const axis = findColumn(table, spec.x)!;
  const series = readSeries(spec, table);
  const isLine = spec.kind !== 'scatter';
  const yName = spec.by || spec.y.length === 1 ? spec.y[0]! : '';
  const top = drawLegend(scene, series, TITLE_PIXELS);
  const bottom = size.height - TITLE_PIXELS - LINE_PIXELS - 4;
  const scale = valueScale(series, bottom - top, spec.kind === 'area');
  const plot: Plot = { left: TITLE_PIXELS + axisWidth(scale), top, right: size.width - 12, bottom };
  const placeY = drawValueAxis(scene, plot, scale);
  const placeX = drawAxis(scene, plot, axisScale(axis, plot), isLine ? 0 : 6);
  for (const { name, ink, points } of series) {
    const placed = points.flatMap(({ x, y }) => (typeof x === 'number' ? [{ x, y }] : []));
    if (isLine) placed.sort((one, other) => one.x - other.x);
    const pixels = placed.map(({ x, y }) => ({ x: placeX(x), y: y === null ? null : placeY(y) }));
    if (spec.kind === 'area') scene.paths.push({ d: areaPath(pixels, placeY(0)), fill: ink, opacity: series.length > 1 ? 0.16 : 0.24 });
    if (isLine) scene.paths.push({ d: linePath(pixels), stroke: ink, width: 2 });
    else scene.paths.push({ d: pixels.flatMap(({ x, y }) => (y === null ? [] : [dot(x, y)])).join(''), stroke: ink, width: table.rows > 2000 ? 3 : 6, opacity: 0.6 });
    placed.forEach(({ x, y }, index) => {
      if (y === null) return;
      const text = [valueText(axis, x), series.length > 1 && name, `${yName || name}: ${numberText(y)}`].filter(Boolean).join(' · ');
      scene.marks.push({ x: pixels[index]!.x, y: placeY(y), text });
    });
  }
  drawTitles(scene, plot, axisName(axis), yName);
  scene.summary = `${{ area: 'Areas', scatter: 'Points' }[spec.kind as string] ?? 'Lines'} of ${spec.y.join(', ')} by ${spec.x}${spec.by ? `, for each ${spec.by}` : ''}`;
  return scene;
}

interface Pixel {
  x: number;
  y: number | null;
}

/** The lines between values; a missing value is a gap, and a value between two gaps is a dot. */
function linePath(pixels: Pixel[]): string {
  let path = '';
  let isDrawing = false;
  pixels.forEach(({ x, y }, index) => {
    const isAlone = !isDrawing && (pixels[index + 1]?.y ?? null) === null;
    if (y === null) isDrawing = false;
    else if (isAlone) path += dot(x, y);
    else {
      path += `${isDrawing ? 'L' : 'M'}${round(x)} ${round(y)}`;
      isDrawing = true;
    }
  });
  return path;
}

function areaPath(pixels: Pixel[], base: number): string {
  let path = '';
  let start: number | null = null;
  pixels.forEach(({ x, y }, index) => {
    if (y === null) return;
    if (start === null) path += `M${round(x)} ${round(base)}`;
    start ??= x;
    path += `L${round(x)} ${round(y)}`;
    if ((pixels[index + 1]?.y ?? null) === null) {
      path += `L${round(x)} ${round(base)}z`;
      start = null;
    }
  });
  return path;
}

export interface BarOptions {
  /** The values are parts of a whole, such as numbers of rows. */
  isStacked?: boolean;
  /** The colour of a series, if it is not the next one. */
  inkOf?: (series: string) => Ink | undefined;
}

export function drawBars(spec: ChartSpec, table: ChartTable, size: Size, { isStacked = false, inkOf }: BarOptions = {}): Scene {
  const scene = emptyScene(size);
  const axis = findColumn(table, spec.x)!;
  const series = readSeries(spec, table).map((one) => ({ ...one, ink: inkOf?.(one.name) ?? one.ink }));
  const places = distinct(axis);
  const yName = spec.by || spec.y.length === 1 ? spec.y[0]! : '';
  const top = drawLegend(scene, series, TITLE_PIXELS);
  const texts = placeTexts(axis, places);
  const roughWidth = size.width - TITLE_PIXELS - 60;
  const labels = fitLabels(texts, roughWidth, axis.kind !== 'text');
  const bottom = size.height - TITLE_PIXELS - labels.height - 4;
  const scale = isStacked ? stackScale(series, bottom - top) : valueScale(series, bottom - top, true);
  const plot: Plot = { left: TITLE_PIXELS + axisWidth(scale), top, right: size.width - 12, bottom };
  const placeY = drawValueAxis(scene, plot, scale);
  drawBands(scene, plot, labels);
  const band = (plot.right - plot.left) / places.length;
  const bar = (band * (band > 6 ? 0.8 : 1)) / (isStacked ? 1 : series.length);
  const bases = new Map<Value, number>();
  const indexes = new Map(places.map((place, index) => [place, index]));
  series.forEach(({ name, ink, points }, part) => {
    let path = '';
    for (const { x, y } of points) {
      if (y === null) continue;
      const left = plot.left + (indexes.get(x)! + 0.5) * band + (isStacked ? -0.5 : part - series.length / 2) * bar;
      const base = bases.get(x) ?? 0;
      if (isStacked) bases.set(x, base + y);
      const [high, low] = [placeY(Math.max(base + y, base)), placeY(Math.min(base + y, base))];
      if (isStacked && y === 0) continue;
      path += rectangle(left, high, Math.max(bar - (bar > 4 ? 1 : 0), 0.5), Math.max(low - high, 0.5));
      const text = [valueText(axis, x), series.length > 1 && name, `${yName || name}: ${numberText(y)}`].filter(Boolean).join(' · ');
      scene.marks.push({ x: left + bar / 2, y: y < 0 ? low : high, text, place: x });
    }
    scene.paths.push({ d: path, fill: ink });
  });
  drawTitles(scene, plot, axisName(axis), yName);
  scene.summary = `Bars of ${spec.y.join(', ')} by ${spec.x}${spec.by ? `, for each ${spec.by}` : ''}`;
  return scene;
}

/** The scale of values that stand upon each other. */
function stackScale(series: Series[], height: number): Scale {
  const sums = new Map<Value, number>();
  for (const { points } of series) for (const { x, y } of points) sums.set(x, (sums.get(x) ?? 0) + (y ?? 0));
  return numberScale(0, Math.max(...sums.values(), 1), height / TICK_PIXELS.y, true);
}

const HISTOGRAM_BARS = 40;

function drawHistogram(spec: ChartSpec, table: ChartTable, size: Size): Scene {
  const scene = emptyScene(size);
  const column = findColumn(table, spec.x)!;
  const [low, high] = extent(column.values) ?? [0, 1];
  const isWhole = column.values.every((value) => value === null || Number.isInteger(value));
  const step = Math.max(roundStep((high - low || 1) / Math.min(HISTOGRAM_BARS, Math.max(size.width / 14, 8))), isWhole ? 1 : 0);
  const first = Math.floor(low / step);
  const counts = new Array<number>(Math.floor(high / step) - first + 1).fill(0);
  for (const value of column.values) if (typeof value === 'number') counts[Math.floor(value / step) - first]! += 1;
  const bottom = size.height - TITLE_PIXELS - LINE_PIXELS - 4;
  const scale = numberScale(0, Math.max(...counts), (bottom - GAP_PIXELS) / TICK_PIXELS.y, true);
  const plot: Plot = { left: TITLE_PIXELS + axisWidth(scale), top: GAP_PIXELS, right: size.width - 12, bottom };
  const placeY = drawValueAxis(scene, plot, scale);
  const [start, end] = [first * step, (first + counts.length) * step];
  const ticks = numberScale(start, end, (plot.right - plot.left) / TICK_PIXELS.x).ticks.filter(({ value }) => value >= start && value <= end);
  const placeX = drawAxis(scene, plot, { min: start, max: end, ticks }, 0);
  let path = '';
  counts.forEach((number, index) => {
    const [from, to] = [(first + index) * step, (first + index + 1) * step];
    const [left, right] = [placeX(from), placeX(to)];
    if (number > 0) path += rectangle(left, placeY(number), right - left - 1, plot.bottom - placeY(number));
    scene.marks.push({ x: (left + right) / 2, y: placeY(number), text: `${numberText(from)} to ${numberText(to)}: ${numberText(number)} rows` });
  });
  scene.paths.push({ d: path, fill: seriesInk(0) });
  drawTitles(scene, plot, column.name, 'rows');
  scene.summary = `Histogram of ${spec.x}`;
  return scene;
}

/** The opacity of the smallest value, which is still visible. */
const FAINTEST = 0.08;
const LEGEND_STEPS = 6;

function drawHeatMap(spec: ChartSpec, table: ChartTable, size: Size): Scene {
  const scene = emptyScene(size);
  const [axis, rows, values] = [findColumn(table, spec.x)!, findColumn(table, spec.by)!, findColumn(table, spec.y[0]!)!];
  const [columns, lines] = [distinct(axis), distinct(rows)];
  const [low, high] = extent(values.values) ?? [0, 1];
  // Values on both sides of zero have two colours, else the scale begins at the smallest.
  const isTwoSided = low < 0 && high > 0;
  const far = Math.max(Math.abs(low), Math.abs(high));
  const shade = (value: number) => FAINTEST + (1 - FAINTEST) * (isTwoSided ? Math.abs(value) / far : (value - low) / (high - low || 1));
  const ink = (value: number) => seriesInk(isTwoSided && value < 0 ? 1 : 0);
  const names = lines.map((line) => cutText(valueText(rows, line), Math.min(160, size.width / 4)));
  const labels = fitLabels(columns.map((column) => valueText(axis, column)), size.width - TITLE_PIXELS - 80, axis.kind !== 'text');
  const plot: Plot = {
    left: TITLE_PIXELS + Math.max(...names.map(textWidth)) + 10, top: GAP_PIXELS + LINE_PIXELS + 6,
    right: size.width - 12, bottom: size.height - TITLE_PIXELS - labels.height - 4,
  };
  const [width, height] = [(plot.right - plot.left) / columns.length, (plot.bottom - plot.top) / lines.length];
  const [columnOf, lineOf] = [new Map(columns.map((value, index) => [value, index])), new Map(lines.map((value, index) => [value, index]))];
  const format = new Intl.NumberFormat(undefined, { maximumFractionDigits: far >= 100 ? 0 : far >= 1 ? 1 : 3, useGrouping: 'min2' });
  const hasRoom = height >= 15 && width >= textWidth(format.format(far)) + 10;
  values.values.forEach((value, row) => {
    if (typeof value !== 'number') return;
    const [x, y] = [plot.left + columnOf.get(axis.values[row]!)! * width, plot.top + lineOf.get(rows.values[row]!)! * height];
    const opacity = round(shade(value) * 100) / 100;
    scene.paths.push({ d: rectangle(x, y, width - (width > 4 ? 1 : 0), height - (height > 4 ? 1 : 0)), fill: ink(value), opacity });
    const text = format.format(value);
    if (hasRoom) scene.texts.push({ text, x: x + width / 2, y: y + height / 2 + 4, anchor: 'middle', ink: opacity > 0.6 ? 'on-accent' : 'text' });
    scene.marks.push({ x: x + width / 2, y: y + height / 2, outline: rectangle(x, y, width, height), text: `${valueText(axis, axis.values[row]!)} · ${valueText(rows, rows.values[row]!)} · ${spec.y[0]}: ${numberText(value)}` });
  });
  const every = Math.max(1, Math.ceil((TEXT_PIXELS + 2) / height));
  names.forEach((text, index) => {
    if (index % every === 0) scene.texts.push({ text, x: plot.left - 6, y: plot.top + (index + 0.5) * height + 4, anchor: 'end', ink: 'muted' });
  });
  drawBands(scene, plot, labels);
  drawShades(scene, plot, [low, high], shade, ink, spec.y[0]!);
  drawTitles(scene, plot, axisName(axis), axisName(rows));
  scene.summary = `Heat map of ${spec.y[0]} by ${spec.x} and ${spec.by}`;
  return scene;
}

/** What the colours of a heat map mean. */
function drawShades(scene: Scene, plot: Plot, [low, high]: [number, number], shade: (value: number) => number, ink: (value: number) => Ink, name: string): void {
  const start = numberText(low);
  const title = cutText(name, (plot.right - plot.left) / 3);
  const y = GAP_PIXELS + TEXT_PIXELS;
  let x = plot.left;
  scene.texts.push({ text: title, x, y, anchor: 'start', ink: 'text' });
  x += textWidth(title) + 14;
  scene.texts.push({ text: start, x, y, anchor: 'start', ink: 'muted' });
  x += textWidth(start) + 6;
  for (let step = 0; step < LEGEND_STEPS; step += 1) {
    const value = low + ((high - low) * step) / (LEGEND_STEPS - 1);
    scene.paths.push({ d: rectangle(x + step * 18, y - 10, 18, 12), fill: ink(value), opacity: round(shade(value) * 100) / 100 });
  }
  scene.texts.push({ text: numberText(high), x: x + LEGEND_STEPS * 18 + 6, y, anchor: 'start', ink: 'muted' });
}

const DEGREES = { steps: [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 90] };

/** Points by longitude and latitude, with a grid of degrees. A place is as wide as it is high in the middle of the map. */
function drawMap(spec: ChartSpec, table: ChartTable, size: Size): Scene {
  const scene = emptyScene(size);
  const [longitude, latitude] = [findColumn(table, spec.x)!, findColumn(table, spec.y[0]!)!];
  const series = readSeries(spec, table);
  const [[west, east], [south, north]] = [extent(longitude.values) ?? [0, 1], extent(latitude.values) ?? [0, 1]];
  const outer: Plot = { left: 52, top: drawLegend(scene, series, 52), right: size.width - 16, bottom: size.height - LINE_PIXELS - 10 };
  const stretch = Math.max(Math.cos((((south + north) / 2) * Math.PI) / 180), 0.1);
  const [wide, high] = [Math.max(east - west, 0.01) * 1.06, Math.max(north - south, 0.01) * 1.06];
  const scale = Math.min((outer.right - outer.left) / (wide * stretch), (outer.bottom - outer.top) / high);
  const [width, height] = [wide * stretch * scale, high * scale];
  const [left, top] = [(outer.left + outer.right - width) / 2, (outer.top + outer.bottom - height) / 2];
  const plot: Plot = { left, right: left + width, top, bottom: top + height };
  const placeX = (value: number) => plot.left + (value - (west + east) / 2 + wide / 2) * stretch * scale;
  const placeY = (value: number) => plot.bottom - (value - (south + north) / 2 + high / 2) * scale;
  const ticks = (low: number, span: number, pixels: number, name: (value: number) => string): Tick[] => {
    const step = DEGREES.steps.find((one) => one >= (span * 70) / pixels) ?? 90;
    const found: Tick[] = [];
    for (let index = Math.ceil(low / step); index * step <= low + span; index += 1) found.push({ value: index * step, label: name(index * step) });
    return found;
  };
  scene.paths.push({ d: rectangle(plot.left, plot.top, width, height), stroke: 'line-strong' });
  for (const { value, label } of ticks((west + east - wide) / 2, wide, width, (degree) => degreeText(degree, 'E', 'W'))) {
    scene.paths.push({ d: `M${round(placeX(value))} ${round(plot.top)}V${round(plot.bottom)}`, stroke: 'line' });
    scene.texts.push({ text: label, x: placeX(value), y: plot.bottom + LINE_PIXELS, anchor: 'middle', ink: 'muted' });
  }
  for (const { value, label } of ticks((south + north - high) / 2, high, height, (degree) => degreeText(degree, 'N', 'S'))) {
    scene.paths.push({ d: `M${round(plot.left)} ${round(placeY(value))}H${round(plot.right)}`, stroke: 'line' });
    scene.texts.push({ text: label, x: plot.left - 6, y: placeY(value) + 4, anchor: 'end', ink: 'muted' });
  }
  const names = table.columns.filter(({ kind }) => kind === 'text');
  for (const { ink, points } of series) {
    scene.paths.push({ d: points.flatMap(({ x, y }) => (typeof x === 'number' && y !== null ? [dot(placeX(x), placeY(y))] : [])).join(''), stroke: ink, width: table.rows > 2000 ? 3 : 5, opacity: 0.65 });
  }
  longitude.values.forEach((x, row) => {
    const y = latitude.values[row];
    if (typeof x !== 'number' || typeof y !== 'number') return;
    const texts = [...names.slice(0, 2).map(({ values }) => values[row]), `${degreeText(y, 'N', 'S')} ${degreeText(x, 'E', 'W')}`];
    scene.marks.push({ x: placeX(x), y: placeY(y), text: texts.filter(Boolean).join(' · ') });
  });
  scene.summary = `Map of ${numberText(table.rows)} points`;
  return scene;
}

function degreeText(value: number, positive: string, negative: string): string {
  return `${numberText(Math.abs(value))}° ${value < 0 ? negative : value > 0 ? positive : ''}`.trim();
}

/** The mark nearest to a place; `null` if there is none. */
export function nearestMark(marks: Mark[], x: number, y: number): Mark | null {
  let [nearest, least]: [Mark | null, number] = [null, Infinity];
  for (const mark of marks) {
    const distance = (mark.x - x) ** 2 + ((mark.y - y) ** 2) / 4;
    if (distance < least) [nearest, least] = [mark, distance];
  }
  return nearest;
}
