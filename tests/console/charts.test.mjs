// Charts of results, in a browser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { HOSTILE, makeFolder, startBrowser, startServer, writeData } from './harness.mjs';
import { checkLooks, queryHash, SCREENS, visitConsole, waitForEditor } from './visit.mjs';

let browser;
let data;
let server;

before(async () => {
  data = await makeFolder();
  browser = await startBrowser();
  server = await startServer(await writeData(data.folder));
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await data?.remove();
});

const visit = (options, act) => visitConsole(browser, server, options, act);
const LATE = 'SELECT carrier, month, avg(dep_delay) AS delay FROM flights GROUP BY 1, 2 ORDER BY 1, 2';
const WEATHER = "SELECT time_hour, temp, dewp FROM weather WHERE origin = 'JFK' AND month = 3 ORDER BY 1";

/** Runs the statement and opens its chart. */
async function draw(page) {
  await waitForEditor(page);
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByText(/^(Done|Failed)/).waitFor();
  await page.getByRole('tab', { name: 'Chart' }).click();
  await page.getByRole('combobox', { name: 'Chart', exact: true }).waitFor();
}

function chart(page, name) {
  return page.getByRole('img', { name });
}

/** Waits until the link to the chart is the address. */
function waitForLink(page, kind) {
  return page.waitForURL((url) => url.hash.includes(`chart=${kind}`));
}

async function save(page, format) {
  await page.getByRole('button', { name: 'Picture' }).click();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: format, exact: true }).click();
  return readFile(await (await saved).path());
}

describe('first choice', () => {
  const CHOICES = {
    'a heat map of many series over few places': [LATE, 'heatmap', 'Heat map of delay by month and carrier'],
    'lines over time': ['SELECT time_hour::date AS day, origin, count(*) AS n FROM flights GROUP BY 1, 2', 'line', 'Lines of n by day, for each origin'],
    'bars for texts': ['SELECT name, length(name) AS size FROM airlines', 'bar', 'Bars of size by name'],
    'points for two measured numbers': ['SELECT origin, distance, arr_delay FROM flights LIMIT 3000', 'scatter', 'Points of arr_delay by distance, for each origin'],
    'a histogram for one number': ['SELECT dep_delay FROM flights LIMIT 3000', 'histogram', 'Histogram of dep_delay'],
    'a map for degrees': ['SELECT faa, lat, lon FROM airports', 'map', 'Map of 1458 points'],
  };
  for (const [name, [sql, kind, summary]] of Object.entries(CHOICES)) {
    test(name, () =>
      visit({ hash: queryHash(sql) }, async (page) => {
        await draw(page);
        await chart(page, summary).waitFor();
        await waitForLink(page, kind);
      }));
  }
});

describe('charts', () => {
  test('the link draws the same chart', () =>
    visit({ hash: queryHash(WEATHER) }, async (page) => {
      await draw(page);
      await page.getByRole('combobox', { name: 'Chart', exact: true }).selectOption('Area');
      await page.getByRole('button', { name: /^Values/ }).click();
      await page.getByRole('checkbox', { name: 'temp' }).check();
      await page.keyboard.press('Escape');
      await chart(page, 'Areas of dewp, temp by time_hour').waitFor();
      await page.waitForURL((url) => /chart=area.*y=dewp%1Ftemp/.test(url.hash));
      const address = page.url();
      await page.goto('about:blank');
      await page.goto(address);
      await waitForEditor(page);
      await page.getByText('Run the statement: its chart appears here').waitFor();
      await page.getByRole('button', { name: 'Run' }).click();
      await chart(page, 'Areas of dewp, temp by time_hour').waitFor();
      assert.equal(await page.getByRole('combobox', { name: 'Chart', exact: true }).inputValue(), 'area');
    }));

  test('are saved as PNG and SVG, in the colours of the theme', () =>
    visit({ hash: queryHash(LATE), theme: 'dark' }, async (page) => {
      await draw(page);
      await chart(page, /Heat map/).waitFor();
      const picture = await save(page, 'PNG');
      assert.equal(picture.subarray(1, 4).toString(), 'PNG');
      assert.ok(picture.length > 10_000, `${picture.length} bytes`);
      const drawing = (await save(page, 'SVG')).toString();
      assert.match(drawing, /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg"/);
      assert.match(drawing, /fill="#151d25"/);
      assert.match(drawing, />carrier</);
    }));

  test('name the value at the pointer and of the arrow keys', () =>
    visit({ hash: queryHash('SELECT month, count(*) AS flights FROM flights GROUP BY 1 ORDER BY 1') }, async (page) => {
      await draw(page);
      const drawn = chart(page, 'Lines of flights by month');
      await drawn.focus();
      await page.keyboard.press('ArrowRight');
      await page.getByText('1 · flights: 27,004').waitFor();
      await page.keyboard.press('End');
      await page.getByText('12 · flights: 28,135').waitFor();
      const { width, height } = await drawn.boundingBox();
      await drawn.hover({ position: { x: width - 20, y: height / 2 } });
      await page.getByText('12 · flights: 28,135').waitFor();
    }));

  test('have texts in markup as texts', () =>
    visit({ hash: queryHash(`SELECT * FROM "${HOSTILE.replaceAll('/', '').replaceAll('"', '""')}"`, 'hostile') }, async (page) => {
      await draw(page);
      await chart(page, /Bars of n by <img/).waitFor();
      const drawing = (await save(page, 'SVG')).toString();
      assert.ok(!/<img|<script/.test(drawing), drawing);
    }));
});

describe('what makes no sense', () => {
  test('rows that are repeated become averages', () =>
    visit({ hash: `${queryHash('SELECT carrier, dep_delay FROM flights -- all')}&chart=bar&x=carrier&y=dep_delay` }, async (page) => {
      await draw(page);
      await page.getByText('Several rows have the same carrier').waitFor();
      await page.getByRole('button', { name: 'Average of dep_delay' }).click();
      await chart(page, 'Bars of dep_delay by carrier').waitFor();
      assert.match(await page.locator('.cm-content').textContent(), /avg\(dep_delay\) AS dep_delay/);
      await page.getByText(/^Done 16 rows/).waitFor();
    }));

  test('texts on an axis become bars, and many series a heat map', () =>
    visit({ hash: `${queryHash(LATE)}&chart=line&x=month&y=delay&by=carrier` }, async (page) => {
      await draw(page);
      await page.getByText('“carrier” has 16 values').waitFor();
      await page.getByRole('button', { name: 'Draw a heat map' }).click();
      await chart(page, /Heat map of delay by month and carrier/).waitFor();
      await page.getByRole('combobox', { name: 'Chart', exact: true }).selectOption('Line');
      await page.getByRole('combobox', { name: 'Axis' }).selectOption('carrier');
      await page.getByRole('combobox', { name: 'Series' }).selectOption('month');
      await page.getByRole('button', { name: 'Draw bars' }).click();
      await chart(page, 'Bars of delay by carrier, for each month').waitFor();
    }));

  test('texts alone are counted', () =>
    visit({ hash: queryHash('SELECT origin, dest FROM flights') }, async (page) => {
      await draw(page);
      await page.getByText('No column has numbers').waitFor();
      await page.getByRole('button', { name: 'Count the rows by origin' }).click();
      await chart(page, 'Bars of number_of_rows by origin').waitFor();
    }));

  test('a histogram of more rows than it has is counted in SQL', () =>
    visit({ hash: queryHash('SELECT dep_delay FROM flights') }, async (page) => {
      await draw(page);
      await page.getByText('The chart has the first 20,000 of 336,776 rows').waitFor();
      await page.getByRole('button', { name: 'Count all rows in SQL' }).click();
      await chart(page, 'Bars of number_of_rows by dep_delay').focus();
      await page.keyboard.press('ArrowRight');
      // The flights that left before their time have a bar of their own.
      await page.getByText('NULL · number_of_rows: 8255').waitFor();
      await page.keyboard.press('ArrowRight');
      await page.getByText('-50 · number_of_rows: 183,575').waitFor();
    }));

  test('rows that are not complete are not drawn without a word', () =>
    visit({ hash: queryHash('SELECT n, md5(n::text) AS hash FROM generate_series(1, 500000000) AS t(n)') }, async (page) => {
      await waitForEditor(page);
      await page.getByRole('button', { name: 'Run' }).click();
      await page.getByText(/rows\/s/).waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByText(/^Cancelled/).waitFor();
      await page.getByRole('tab', { name: 'Chart' }).click();
      await page.getByText('The rows are not complete').waitFor();
    }));

  test('a column that is missing is named', () =>
    visit({ hash: `${queryHash(LATE)}&chart=bar&x=monat&y=delay` }, async (page) => {
      await draw(page);
      await page.getByText('The result has no column “monat”').waitFor();
      await chart(page, /Heat map/).waitFor();
    }));
});

describe('looks', () => {
  const VIEWS = { heatmap: queryHash(LATE), lines: `${queryHash(WEATHER)}&chart=line&x=time_hour&y=temp%1Fdewp`, map: queryHash('SELECT faa, name, lat, lon FROM airports') };
  for (const [view, hash] of Object.entries(VIEWS)) {
    for (const [screen, options] of Object.entries(SCREENS)) {
      test(`${view}, ${screen}`, () =>
        visit({ hash, ...options }, async (page) => {
          await draw(page);
          await page.locator('.chart svg').waitFor();
          await checkLooks(page, `chart-${view}-${screen}`);
        }));
    }
  }
});
