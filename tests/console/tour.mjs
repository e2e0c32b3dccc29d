// The pictures of docs/tutorials/console-tour.md, of the console of `tidegate demo`: `node tests/console/tour.mjs` writes them.
//
// A person with a browser finds which airline was late in which month, draws it, and sends the link. Each step is a click or a word that is
// typed, and each picture shows its end.
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openConsole, startBrowser, startServer } from './harness.mjs';
import { withPalette } from './palette.mjs';
import { cell, until, waitForEditor } from './visit.mjs';

export const TOUR_PAGE = path.resolve(import.meta.dirname, '../../docs/tutorials/console-tour.md');
export const PICTURES = TOUR_PAGE.replace(/\.md$/, '');
export const SIZE = { width: 1280, height: 800 };

/** The texts of the page do not depend on where the pictures are made. */
const VIEWER = { size: SIZE, locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce', theme: 'light' };
/** What is called before the first picture, so that it shows a server in use. */
const STATEMENTS = [
  'SELECT origin, count(*) AS flights FROM flights GROUP BY 1 ORDER BY 2 DESC',
  'SELECT dest, avg(arr_delay) AS delay FROM flights GROUP BY 1 ORDER BY 2 DESC LIMIT 10',
  "SELECT time_hour, temp FROM weather WHERE origin = 'JFK' ORDER BY 1 LIMIT 500",
  'SELECT model, count(*) AS planes FROM planes GROUP BY 1 ORDER BY 2 DESC LIMIT 20',
];
/** Readings of the metrics until the first picture. */
const READINGS = 6;
const DATABASE = 'nycflights13';
/** The place of dep_delay in flights. */
const DELAY_COLUMN = 5;
/** The statement until it is completed, in its lines. A month with few flights says nothing about an airline. */
const QUESTION = ['SELECT name AS airline, month, round(avg(', 'FROM flights JOIN airlines USING (carrier)', 'GROUP BY 1, 2 HAVING count(*) >= 100 ORDER BY 3 DESC'];
/** What the pointer shows in the month in which an airline was latest. */
const LATEST = /AirTran.*41\.2/;

/** The pictures in their order, each with the steps that lead to it. */
const STEPS = {
  overview: async (page, server) => {
    let readings = 0;
    page.on('response', (response) => {
      if (new URL(response.url()).pathname === '/metrics') readings += 1;
    });
    await until(async () => {
      await callOnce(server, readings);
      return readings >= READINGS;
    });
  },
  search: async (page) => {
    await page.getByRole('link', { name: 'Data', exact: true }).click();
    await page.getByRole('searchbox').fill('delay');
    await page.locator('.sidebar .found').first().waitFor();
  },
  rows: async (page) => {
    await page.getByRole('navigation', { name: 'Tables' }).getByRole('link', { name: /^flights/ }).click();
    await page.getByRole('gridcell').first().waitFor();
  },
  values: async (page) => {
    await page.getByRole('button', { name: 'Values of carrier' }).click();
    await page.getByRole('button', { name: /^UA/ }).waitFor();
  },
  filter: async (page) => {
    await page.getByRole('button', { name: /^F9/ }).click();
    await page.locator('.chip', { hasText: 'carrier = F9' }).waitFor();
    const order = page.getByRole('columnheader', { name: 'dep_delay integer' }).getByRole('button', { name: 'dep_delay integer' });
    await order.click();
    await page.locator('[role=columnheader][aria-sort=ascending]').waitFor();
    await order.click();
    await page.locator('[role=columnheader][aria-sort=descending]').waitFor();
    await cell(page, 0, DELAY_COLUMN).getByText('853', { exact: true }).waitFor();
  },
  completion: async (page) => {
    await page.getByRole('button', { name: 'Open as SQL' }).click();
    await waitForEditor(page);
    await page.locator('.cm-content').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Delete');
    for (const [index, line] of QUESTION.entries()) {
      if (index > 0) await page.keyboard.press('Enter');
      await page.keyboard.insertText(line);
    }
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('End');
    await page.keyboard.type('dep');
    await page.locator('.cm-completionLabel', { hasText: 'dep_delay' }).waitFor();
  },
  result: async (page) => {
    await page.locator('.cm-completionLabel', { hasText: 'dep_delay' }).click();
    await page.keyboard.insertText('), 1) AS delay');
    // The list of completions for the last word.
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+Enter');
    await page.getByText(/^Done \d+ rows/).waitFor();
    await page.getByRole('gridcell', { name: 'AirTran Airways Corporation' }).first().waitFor();
  },
  chart: async (page) => {
    await page.getByRole('tab', { name: 'Chart' }).click();
    await page.getByRole('combobox', { name: 'Chart', exact: true }).selectOption('Heat map');
    const drawing = page.getByRole('img', { name: 'Heat map of delay by month and airline' });
    await drawing.waitFor();
    await page.waitForURL((url) => url.hash.includes('chart=heatmap'));
    await drawing.focus();
    await pressUntil(page, 'ArrowRight', LATEST);
  },
  link: async (page) => {
    const address = page.url();
    // Another person, who has received the address.
    await page.goto('about:blank');
    await page.goto(address);
    await waitForEditor(page);
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('img', { name: 'Heat map of delay by month and airline' }).waitFor();
    await page.getByRole('button', { name: 'Call' }).click();
    await page.getByText(/^curl -H/).waitFor();
  },
  tool: async (page) => {
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Tools', exact: true }).click();
    await page.locator('a[href="#/tools/tools/query"]').click();
    await page.getByRole('textbox', { name: /^database/ }).fill(DATABASE);
    await page.getByRole('textbox', { name: /^table/ }).fill('airlines');
    await page.getByRole('button', { name: 'Call' }).click();
    await page.getByText(/about \d+ tokens/).waitFor();
    await page.locator('.answer').scrollIntoViewIfNeeded();
  },
  logs: async (page) => {
    await page.getByRole('link', { name: 'Logs', exact: true }).click();
    await page.getByLabel('Source').selectOption('shop_app');
    await page.getByRole('button', { name: /^error 83/ }).click();
    await page.getByText('83 entries match').waitFor();
  },
  metrics: async (page) => {
    await page.getByRole('link', { name: 'Metrics', exact: true }).click();
    await page.getByRole('link', { name: /checkout_duration/ }).click();
    await page.locator('.chart svg').waitFor();
  },
};

export const NAMES = Object.keys(STEPS);

async function pressUntil(page, key, text) {
  await until(async () => {
    await page.keyboard.press(key);
    return text.test(await page.locator('.chart-readout').textContent());
  });
}

async function callOnce(server, turn) {
  const body = JSON.stringify({ database: DATABASE, sql: STATEMENTS[turn % STATEMENTS.length] });
  const response = await fetch(`${server.address}/rest/sql`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  await response.arrayBuffer();
}

/** Takes all pictures and writes them to `folder`. */
export async function takeTour(browser, server, folder) {
  await mkdir(folder, { recursive: true });
  const { page, faults, close } = await openConsole(browser, server, VIEWER);
  page.setDefaultTimeout(30_000);
  try {
    for (const [name, act] of Object.entries(STEPS)) {
      try {
        await act(page, server);
        if (faults.length > 0) throw new Error(faults.join('\n'));
      } catch (error) {
        throw new Error(`the picture ${name} cannot be taken`, { cause: error });
      }
      await writeFile(path.join(folder, `${name}.png`), withPalette(await page.screenshot({ caret: 'initial' })));
    }
  } finally {
    await close();
  }
}

async function main() {
  const browser = await startBrowser();
  const server = await startServer([], { command: 'demo' });
  try {
    await takeTour(browser, server, PICTURES);
  } finally {
    await browser.close();
    await server.stop();
  }
}

if (import.meta.main ?? process.argv[1] === import.meta.filename) await main();
