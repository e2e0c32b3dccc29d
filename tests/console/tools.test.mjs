// Tools, prompts and resources in a browser, as a model uses them.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HOSTILE, makeFolder, startBrowser, startServer, writeData } from './harness.mjs';
import { checkLooks, SCREENS, visitConsole } from './visit.mjs';

let browser;
let data;
let server;

before(async () => {
  data = await makeFolder();
  browser = await startBrowser();
  const databases = (await writeData(data.folder)).map((entry) => entry.split('=')).map(([name, files]) => ({ name, files }));
  const tools = [{
    name: 'count_flights',
    description: `Flights of an airline. ${HOSTILE}`,
    database: 'nycflights13',
    sql: 'SELECT count(*) AS flights FROM flights WHERE carrier = :carrier AND month = :month',
    input: {
      carrier: { type: 'string', enum: ['UA', 'AA', 'HA'], ask: 'Which airline?' },
      month: { type: 'integer', minimum: 1, maximum: 12, default: 1 },
    },
    confirm: 'Count the flights of {{carrier}}?',
  }];
  const config = path.join(data.folder, 'tidegate.yaml');
  await writeFile(config, JSON.stringify({ databases, tools }));
  server = await startServer(['--config', config]);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await data?.remove();
});

const visit = (options, act) => visitConsole(browser, server, options, act);

function entryHash(kind, name, values) {
  return `#/tools/${kind}/${encodeURIComponent(name)}${values ? `?arguments=${encodeURIComponent(JSON.stringify(values))}` : ''}`;
}

describe('tools', () => {
  test('are found, filled in from their schema, and called', () =>
    visit({ hash: '#/tools' }, async (page) => {
      await page.getByRole('searchbox').fill('columns');
      await page.getByRole('link', { name: /get_schema/ }).click();
      await page.getByRole('textbox', { name: /^database/ }).fill('nycflights13');
      await page.getByRole('textbox', { name: /^table/ }).fill('airlines');
      await page.getByRole('button', { name: 'Call' }).click();
      await page.getByText(/about \d+ tokens/).waitFor();
      await page.locator('.answer pre', { hasText: '"name":"carrier"' }).waitFor();
      assert.match(page.url(), /arguments=/);
      await page.getByRole('tab', { name: 'Messages' }).click();
      await page.locator('pre.message', { hasText: '"method": "tools/call"' }).waitFor();
      await page.locator('pre.message', { hasText: '"resultType": "complete"' }).waitFor();
    }));

  test('the link fills in the form, and calls nothing', () =>
    visit({ hash: entryHash('tools', 'sql', { sql: 'SELECT 6 * 7 AS answer', database: 'nycflights13' }) }, async (page) => {
      await page.getByRole('textbox', { name: /^sql/ }).waitFor();
      assert.equal(await page.locator('.answer').count(), 0);
      await page.getByRole('button', { name: 'Call' }).click();
      await page.locator('.answer pre', { hasText: '[{"answer":42}]' }).waitFor();
    }));

  test('wrong values are named before they are sent, and errors of the tool as the model sees them', () =>
    visit({ hash: entryHash('tools', 'sql') }, async (page) => {
      await page.getByRole('textbox', { name: /^max_rows/ }).fill('many');
      await page.getByRole('button', { name: 'Call' }).click();
      await page.getByText('A value is needed.').waitFor();
      await page.getByText('A whole number is needed.').waitFor();
      await page.getByRole('textbox', { name: /^max_rows/ }).fill('');
      await page.getByRole('textbox', { name: /^database/ }).fill('nycflights13');
      await page.getByRole('textbox', { name: /^sql/ }).fill('SELECT carier FROM airlines');
      await page.keyboard.press('Control+Enter');
      await page.getByText('The tool reports an error').waitFor();
      await page.locator('.answer pre', { hasText: 'carrier' }).waitFor();
    }));

  test('what a tool needs from a person is a form', () =>
    visit({ hash: entryHash('tools', 'count_flights') }, async (page) => {
      await page.getByText(`Flights of an airline. ${HOSTILE}`).waitFor();
      await page.getByRole('button', { name: 'Call' }).click();
      const form = page.getByRole('region', { name: 'The server needs your input' });
      await form.getByRole('heading', { name: 'Which airline?' }).waitFor();
      await form.getByRole('combobox', { name: /^carrier/ }).selectOption('HA');
      await form.getByRole('button', { name: 'Send' }).click();
      await form.getByRole('heading', { name: 'Count the flights of "HA"?' }).waitFor();
      await form.getByRole('combobox', { name: /^confirm/ }).selectOption('true');
      await form.getByRole('button', { name: 'Send' }).click();
      await page.locator('.answer pre', { hasText: '[{"flights":31}]' }).waitFor();
      await page.getByRole('tab', { name: 'Messages' }).click();
      await page.locator('pre.message', { hasText: '"inputResponses"' }).first().waitFor();
      await page.getByRole('tab', { name: 'Answer' }).click();
      await page.getByRole('button', { name: 'Call' }).click();
      await form.getByRole('button', { name: 'Decline' }).click();
      await page.locator('.answer, .note.wrong').first().waitFor();
    }));

  test('prompts and resources are read', () =>
    visit({ hash: entryHash('prompts', 'explore', { database: 'nycflights13' }) }, async (page) => {
      await page.getByRole('button', { name: 'Get' }).click();
      await page.getByText('From the user').waitFor();
      await page.getByRole('link', { name: 'tidegate://databases/{database}/tables/{table}' }).click();
      await page.getByRole('textbox', { name: /^database/ }).fill('nycflights13');
      await page.getByRole('textbox', { name: /^table/ }).fill('airlines');
      await page.keyboard.press('Enter');
      await page.locator('.answer pre', { hasText: 'American Airlines Inc.' }).waitFor();
    }));
});

describe('looks', () => {
  for (const [screen, options] of Object.entries(SCREENS)) {
    test(`a call, ${screen}`, () =>
      visit({ hash: entryHash('tools', 'list_databases'), ...options }, async (page) => {
        await page.getByRole('button', { name: 'Call' }).click();
        await page.locator('.answer').waitFor();
        await checkLooks(page, `tools-${screen}`);
      }));
    test(`a form, ${screen}`, () =>
      visit({ hash: entryHash('tools', 'count_flights'), ...options }, async (page) => {
        await page.getByRole('button', { name: 'Call' }).click();
        await page.getByRole('button', { name: 'Decline' }).waitFor();
        await checkLooks(page, `tools-form-${screen}`);
      }));
  }
});
