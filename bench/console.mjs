// What a person waits for in the console, and what the page needs: first paint, an editor that takes text, and the memory of a page that
// scrolls through a million rows. `bench/run console` prints it; the program is TIDEGATE_BINARY.
import { readFile, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openConsole, startBrowser, startServer } from '../tests/console/harness.mjs';
import { cell, queryHash, runAndWait, waitForEditor } from '../tests/console/visit.mjs';

const RESULTS = path.resolve(import.meta.dirname, 'results/console.json');
const RUNS = 9;
const ROWS = 1_000_000;
/** Places at which the page stops while it scrolls from the first row to the last. */
const STOPS = 200;
const HEAP_BYTES_MAX = 200e6;
const STATEMENT = `SELECT n, md5(n::text) AS hash, n * 1.5 AS price, 'row ' || n AS name FROM generate_series(1, ${ROWS}) AS t(n)`;

/** Milliseconds from the request of the page until something is painted, and until the editor is there. Nothing is cached. */
async function measureStart(browser, server) {
  const { page, close } = await openConsole(browser, server, { hash: queryHash('SELECT 1') });
  await waitForEditor(page);
  const times = await page.evaluate(() => ({
    editor: performance.now(),
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
    bytes: performance.getEntriesByType('resource').reduce((total, { transferSize }) => total + transferSize, 0),
  }));
  await close();
  return times;
}

/** The memory of the page at its largest, on the way from the first row to the last. */
async function measureScrolling(browser, server) {
  const { page, close } = await openConsole(browser, server, { hash: queryHash(STATEMENT) });
  page.setDefaultTimeout(120_000);
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const heap = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'JSHeapUsedSize').value;
  };
  await waitForEditor(page);
  await runAndWait(page);
  const before = await heap();
  const grid = page.getByRole('grid');
  let [heapMax, rendererMax] = [0, 0];
  for (let stop = 0; stop <= STOPS; stop += 1) {
    await grid.evaluate((element, part) => {
      element.scrollTop = part * (element.scrollHeight - element.clientHeight);
    }, stop / STOPS);
    await page.locator('[role=gridcell][data-column="1"]', { hasText: /^[0-9a-f]{32}$/ }).first().waitFor();
    heapMax = Math.max(heapMax, await heap());
    rendererMax = Math.max(rendererMax, await rendererBytes(browser));
  }
  await cell(page, ROWS - 1, 0).waitFor();
  await session.send('HeapProfiler.collectGarbage');
  const after = await heap();
  await close();
  return { before, heapMax, after, rendererMax };
}

/** The anonymous memory of the largest process of the browser that draws a page. */
async function rendererBytes(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const sizes = processInfo.filter(({ type }) => type === 'renderer').map(async ({ id }) => {
    const status = await readFile(`/proc/${id}/status`, 'utf8').catch(() => '');
    return Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024;
  });
  return Math.max(0, ...(await Promise.all(sizes)));
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}

function show({ start, scrolling }) {
  const megabytes = (value) => `${(value / 1e6).toFixed(1)} MB`;
  const rows = [
    ['first paint', `${start.paint.toFixed(0)} ms`],
    ['an editor that takes text', `${start.editor.toFixed(0)} ms`],
    ['files until then', `${(start.bytes / 1000).toFixed(0)} kB`],
    ['JavaScript heap with the first rows', megabytes(scrolling.before)],
    [`the same, at most, while scrolling through ${ROWS.toLocaleString('en')} rows`, megabytes(scrolling.heapMax)],
    ['the same, afterwards', megabytes(scrolling.after)],
    ['anonymous memory of the process that draws the page, at most', megabytes(scrolling.rendererMax)],
  ];
  console.log('\n| console in Chromium | |\n|---|---:|');
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
  console.log(`\n${scrolling.heapMax < HEAP_BYTES_MAX ? 'held' : 'missed'}: a heap under ${megabytes(HEAP_BYTES_MAX)}`);
}

async function main() {
  const browser = await startBrowser();
  const server = await startServer([], { command: 'demo' });
  try {
    const starts = [];
    // The first one starts the browser's processes.
    for (let run = 0; run <= RUNS; run += 1) starts.push(await measureStart(browser, server));
    const measured = starts.slice(1);
    const start = Object.fromEntries(['paint', 'editor', 'bytes'].map((name) => [name, median(measured.map((times) => times[name]))]));
    const results = { runs: RUNS, start, rows: ROWS, scrolling: await measureScrolling(browser, server) };
    show(results);
    const machine = { processor: os.cpus()[0].model, cores: os.cpus().length, system: os.type(), browser: browser.version() };
    await writeFile(RESULTS, `${JSON.stringify({ measured_at: new Date().toISOString(), machine, results }, null, 2)}\n`);
  } finally {
    await browser.close();
    await server.stop();
  }
}

await main();
