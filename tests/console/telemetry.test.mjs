// Logs, metrics and the page about rights, in a browser.
import assert from 'node:assert/strict';
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { makeFolder, openConsole, startBrowser, startServer, takePicture } from './harness.mjs';
import { cell, checkLooks, SCREENS, until, visitConsole } from './visit.mjs';

const DEMO = path.resolve(import.meta.dirname, '../../data/demo');

let browser;
let data;
let server;

before(async () => {
  data = await makeFolder();
  browser = await startBrowser();
  const config = path.join(data.folder, 'tidegate.yaml');
  const logs = path.join(data.folder, 'logs');
  await mkdir(logs);
  await writeFile(path.join(logs, 'long.log'), Array.from({ length: LINES }, (_, index) => logLine(index)).join(''));
  const metrics = [{ name: 'shop', table: 'demo.shop_metrics' }];
  await writeFile(config, JSON.stringify({ databases: [{ name: 'demo', files: DEMO }, { name: 'logs', files: logs }], metrics }));
  server = await startServer(['--config', config]);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await data?.remove();
});

const visit = (options, act) => visitConsole(browser, options.server ?? server, options, act);
const SHOP = '#/logs?source=shop_app';
/** Lines of a log that has more entries than a page of an answer. */
const LINES = 1200;

function logLine(index) {
  const time = new Date(Date.UTC(2026, 2, 14, 12, 0, index)).toISOString();
  return `ts=${time} level=info service=web msg="line ${index}"\n`;
}

describe('logs', () => {
  test('are counted by field, filtered by click, and searched', () =>
    visit({ hash: SHOP }, async (page) => {
      await page.getByText('848 entries match').waitFor();
      await page.getByRole('button', { name: /^error 83/ }).click();
      await page.getByText('83 entries match').waitFor();
      await page.getByRole('button', { name: /^error/, pressed: true }).waitFor();
      await page.getByRole('searchbox').fill('pool');
      await page.keyboard.press('Enter');
      await page.getByText('38 entries match').waitFor();
      const address = page.url();
      await page.goto('about:blank');
      await page.goto(address);
      await page.getByText('38 entries match').waitFor();
      await cell(page, 0, 2).click();
      await page.getByRole('dialog').getByText(/connection pool exhausted/).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Call' }).click();
      await page.getByRole('dialog').getByText(/query_logs/).first().waitFor();
    }));

  test('a bar of the histogram becomes the time, by keyboard', () =>
    visit({ hash: SHOP }, async (page) => {
      await page.getByText('848 entries match').waitFor();
      await page.getByRole('img', { name: /Bars of rows by time/ }).focus();
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('Enter');
      await page.waitForURL((url) => /after=.*before=/.test(url.hash));
      await page.getByText('848 entries match').waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'All times' }).click();
      await page.getByText('848 entries match').waitFor();
    }));

  test('have patterns', () =>
    visit({ hash: SHOP }, async (page) => {
      await page.getByRole('tab', { name: 'Patterns' }).click();
      await page.getByRole('row', { name: /674 order <number> paid after <number> ms/ }).waitFor();
    }));

  test('are read further as one scrolls, and followed', () =>
    visit({ hash: '#/logs?source=long' }, async (page) => {
      await page.getByText('The newest 500 of 1,200. More are read as you scroll.').waitFor();
      const grid = page.getByRole('grid');
      await cell(page, 0, 0).waitFor();
      await grid.focus();
      await until(async () => {
        await page.keyboard.press('Control+End');
        return (await page.getByText('More are read as you scroll').count()) === 0;
      });
      await page.keyboard.press('Control+End');
      await page.getByRole('gridcell', { name: 'line 0', exact: true }).waitFor();
      await page.getByRole('button', { name: 'Follow' }).click();
      await appendFile(path.join(data.folder, 'logs', 'long.log'), logLine(LINES));
      await page.getByText('1,201 entries match').waitFor();
      await page.getByRole('gridcell', { name: `line ${LINES}`, exact: true }).waitFor();
      await page.getByRole('button', { name: 'Follow', pressed: true }).click();
      await page.waitForURL((url) => !url.hash.includes('follow'));
    }));

  test('show the entries around one of them, whatever the search', () =>
    visit({ hash: '#/logs?source=shop_app&query=pool_max' }, async (page) => {
      await page.getByRole('gridcell', { name: /setting pool_max changed from 2 to 20/ }).click();
      await page.getByRole('button', { name: 'Show the entries around it' }).click();
      const around = page.getByRole('region', { name: 'Entries around it' });
      await around.getByText(/connection pool exhausted/).first().waitFor();
      assert.match(await around.locator('tr.current').first().textContent(), /pool_max changed/);
      await takePicture(page, 'logs-context');
    }));

  test('a search that is no search is explained', () =>
    visit({ hash: '#/logs?source=nothing' }, async (page) => {
      await page.getByText(/there is no log source "nothing"/).waitFor();
    }));
});

describe('metrics', () => {
  test('are found and drawn by their labels', () =>
    visit({ hash: '#/metrics' }, async (page) => {
      await page.getByRole('link', { name: /http_requests_total/ }).click();
      await page.getByRole('img', { name: /Lines of requests by time, for each series/ }).waitFor();
      await page.getByRole('button', { name: /^Lines by/ }).click();
      await page.getByRole('checkbox', { name: 'service' }).check();
      await page.keyboard.press('Escape');
      await page.getByText(/sum over series, a point for each/).waitFor();
      await page.getByLabel('Over time').selectOption('increase');
      await page.getByText(/^increase of http_requests_total/).waitFor();
      assert.match(page.url(), /aggregation=increase/);
      await page.getByLabel('Time', { exact: true }).selectOption('-1h');
      await page.getByText(/The metric has samples from 2026-03-14/).waitFor();
    }));
});

describe('access', () => {
  test('lists what the viewer may use', () =>
    visit({ hash: '#/access' }, async (page) => {
      await page.getByText('a caller without a key').waitFor();
      await page.getByRole('row', { name: /query_logs reads/ }).waitFor();
      await page.getByRole('row', { name: /cancel_job may change something/ }).waitFor();
      await page.getByRole('link', { name: 'server_info' }).click();
      await page.getByRole('button', { name: 'Call' }).first().waitFor();
    }));

  test('a server without logs and metrics says so', async () => {
    const config = path.join(data.folder, 'bare.yaml');
    await writeFile(config, JSON.stringify({ databases: [] }));
    const bare = await startServer(['--config', config]);
    const { page, close } = await openConsole(browser, bare, { hash: '#/logs' });
    try {
      await page.getByText('There are no log sources here that you may read').waitFor();
      await page.getByRole('link', { name: 'Metrics' }).click();
      await page.getByText('There are no metric sources here that you may read').waitFor();
    } finally {
      await close();
      await bare.stop();
    }
  });
});

describe('looks', () => {
  const VIEWS = {
    logs: [SHOP, (page) => page.locator('.log-histogram svg').waitFor()],
    metrics: ['#/metrics/checkout_duration', (page) => page.locator('.chart svg').waitFor()],
    access: ['#/access', (page) => page.getByRole('heading', { name: 'Access' }).waitFor()],
  };
  for (const [view, [hash, act]] of Object.entries(VIEWS)) {
    for (const [screen, options] of Object.entries(SCREENS)) {
      test(`${view}, ${screen}`, () =>
        visit({ hash, ...options }, async (page) => {
          await act(page);
          await checkLooks(page, `${view}-${screen}`);
        }));
    }
  }
});
