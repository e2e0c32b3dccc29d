// Tables that take rows, networks of nodes, and what was asked, in a browser.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { HOSTILE, makeFolder, startBrowser, startServer } from './harness.mjs';
import { checkLooks, SCREENS, visitConsole, waitForEditor } from './visit.mjs';

const NODES = { oslo: 'time,degrees\n2026-11-01T00:00:00Z,3\n2026-11-02T00:00:00Z,4\n', rome: 'time,degrees\n2026-11-01T00:00:00Z,15\n' };

let browser;
let data;
/** It takes rows, and unites the nodes. */
let server;
const nodes = {};

before(async () => {
  data = await makeFolder();
  browser = await startBrowser();
  for (const [name, readings] of Object.entries(NODES)) {
    const folder = path.join(data.folder, name);
    await mkdir(path.join(folder, 'data'), { recursive: true });
    await writeFile(path.join(folder, 'data', 'readings.csv'), readings);
    const config = { server: { flight: '127.0.0.1:0' }, databases: [{ name: 'plant', files: './data' }] };
    nodes[name] = await startServer(['--config', await writeConfig(folder, config)], { hasFlight: true });
  }
  const columns = { device: 'text not null', value: 'double' };
  const databases = [
    { name: 'plant', ingest: './plant', tables: { readings: { columns } } },
    { name: 'sites', network: { nodes: Object.entries(nodes).map(([name, { flight }]) => ({ name, url: flight })) } },
  ];
  server = await startServer(['--config', await writeConfig(data.folder, { databases })]);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  for (const node of Object.values(nodes)) await node.stop();
  await data?.remove();
});

const visit = (options, act) => visitConsole(browser, options.server ?? server, options, act);

async function writeConfig(folder, config) {
  const file = path.join(folder, 'tidegate.yaml');
  await writeFile(file, JSON.stringify(config));
  return file;
}

function csv(name, text) {
  return { name, mimeType: 'text/csv', buffer: Buffer.from(text) };
}

async function importFile(page, file, table) {
  await page.getByLabel('File', { exact: true }).setInputFiles(file);
  await page.getByLabel('Database', { exact: true }).fill('plant');
  await page.getByLabel('Table', { exact: true }).fill(table);
  await page.getByRole('button', { name: 'Import' }).click();
}

describe('ingestion', () => {
  test('a file becomes rows, and rows that do not fit are named', () =>
    visit({ hash: '#/ingestion' }, async (page) => {
      await importFile(page, csv('readings.csv', 'device,value\npump,1.5\nfan,2\n'), 'readings');
      await page.getByText(/2 rows stored in/).waitFor();
      await page.getByRole('row', { name: /plant\.readings 2 / }).waitFor();
      await importFile(page, csv('more.csv', `device,value\npump,3\n"${HOSTILE.replaceAll('"', '""')}",warm\n`), 'readings');
      await page.getByText('1 row does not fit; nothing was stored').waitFor();
      await page.getByText('"warm" does not fit; the column is a double').waitFor();
      await page.getByLabel('Store the rows that fit').check();
      await page.getByRole('button', { name: 'Import' }).click();
      await page.getByText(/1 row stored in/).waitFor();
      await page.getByText('1 row rejected').waitFor();
      await page.getByRole('row', { name: /plant\.readings 3 / }).waitFor();
      await page.getByRole('link', { name: 'plant.readings__rejects' }).last().click();
      await page.getByRole('gridcell', { name: /"warm" does not fit/ }).waitFor();
    }));

  test('a file that is dropped creates a table', () =>
    visit({ hash: '#/ingestion' }, async (page) => {
      const bytes = [...gzipSync('n,word\n1,one\n2,two\n')];
      const dropped = await page.evaluateHandle((content) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(content)], 'New words.csv.gz'));
        return transfer;
      }, bytes);
      await page.getByLabel('Database', { exact: true }).fill('plant');
      await page.locator('.drop').dispatchEvent('drop', { dataTransfer: dropped });
      assert.equal(await page.getByLabel('Table', { exact: true }).inputValue(), 'new_words');
      await page.getByRole('button', { name: 'Import' }).click();
      await page.getByText(/2 rows stored in plant\.new_words, which is new/).waitFor();
      await page.getByRole('link', { name: 'plant.new_words' }).first().click();
      await page.getByRole('gridcell', { name: 'two' }).waitFor();
    }));

  test('a name that does not say the format is refused', () =>
    visit({ hash: '#/ingestion' }, async (page) => {
      await page.getByLabel('File', { exact: true }).setInputFiles(csv('readings', 'device\n'));
      await page.getByText(/The name does not say which format the file has/).waitFor();
      assert.ok(await page.getByRole('button', { name: 'Import' }).isDisabled());
    }));
});

describe('network', () => {
  test('has the nodes, and what lies where', () =>
    visit({ hash: '#/network' }, async (page) => {
      await page.getByText('2 of 2 nodes answer').waitFor();
      const parts = page.getByRole('region', { name: 'Parts of readings' });
      await parts.getByRole('row', { name: /^oslo 2 / }).waitFor();
      await parts.getByRole('row', { name: /^rome 1 / }).waitFor();
      await page.getByRole('button', { name: 'Call' }).last().click();
      await page.getByRole('dialog').getByText(/locate/).first().waitFor();
    }));
});

describe('agents', () => {
  test('list what was asked, the failures and the slow calls', async () => {
    const body = (sql) => JSON.stringify({ database: 'plant', sql });
    for (const sql of ['SELECT 6 * 7 AS answer', 'SELECT missing FROM readings', `SELECT '${HOSTILE}' AS text`]) {
      await fetch(`${server.address}/rest/sql`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: body(sql) });
    }
    await visit({ hash: '#/agents' }, async (page) => {
      await page.getByRole('row', { name: /sql done .*SELECT 6 \* 7 AS answer/ }).waitFor();
      await page.getByRole('tab', { name: 'Failed' }).click();
      await page.getByRole('row', { name: /SELECT 6 \* 7/ }).waitFor({ state: 'detached' });
      await page.getByRole('row', { name: /SELECT missing FROM readings/ }).getByRole('button', { name: 'sql' }).click();
      await page.getByRole('dialog').getByText(/missing/).first().waitFor();
      await page.getByRole('link', { name: 'Open in the editor' }).click();
      await waitForEditor(page);
      assert.match(await page.locator('.cm-content').textContent(), /SELECT missing FROM readings/);
    });
  });
});

describe('a server without them', () => {
  test('has no links to them, and says why', async () => {
    const folder = path.join(data.folder, 'bare');
    await mkdir(folder);
    const bare = await startServer(['--config', await writeConfig(folder, { databases: [] })]);
    try {
      await visit({ server: bare, hash: '#/overview' }, async (page) => {
        await page.getByRole('link', { name: 'Access' }).waitFor();
        assert.equal(await page.getByRole('link', { name: 'Ingestion' }).count(), 0);
        assert.equal(await page.getByRole('link', { name: 'Network' }).count(), 0);
        await page.goto(`${bare.address}/#/ingestion`);
        await page.getByText('There are no tables here that take rows from you').waitFor();
        await page.goto(`${bare.address}/#/network`);
        await page.getByText('There is no network here that you may query').waitFor();
      });
    } finally {
      await bare.stop();
    }
  });
});

describe('looks', () => {
  const VIEWS = {
    ingestion: ['#/ingestion', (page) => page.getByRole('region', { name: 'Tables that take rows' }).waitFor()],
    network: ['#/network', (page) => page.getByRole('region', { name: 'Parts of readings' }).waitFor()],
    agents: ['#/agents', (page) => page.getByRole('region', { name: 'Calls' }).waitFor()],
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
