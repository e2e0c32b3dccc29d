// What the tests of all views do with a page.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { openConsole, takePicture } from './harness.mjs';

const POLL_MILLISECONDS = 200;
const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

export const PHONE = { size: { width: 390, height: 780 }, hasTouch: true, isMobile: true };
/** The screens on which each view is looked at. */
export const SCREENS = { light: {}, dark: { theme: 'dark' }, phone: PHONE };

/** Opens the console of `server`, runs `act`, and fails if the page had an error or sent a request elsewhere. */
export async function visitConsole(browser, server, options, act) {
  const { page, faults, close } = await openConsole(browser, server, options);
  page.setDefaultTimeout(30_000);
  try {
    await act(page);
    assert.equal(await page.evaluate(() => globalThis.wasRun), undefined, 'markup of the data was run');
    assert.deepEqual(faults, []);
  } catch (error) {
    await takePicture(page, 'failure');
    throw error;
  } finally {
    await close();
  }
}

/** Waits until `condition` holds. */
export async function until(condition) {
  const latest = Date.now() + 60_000;
  while (!(await condition())) {
    assert.ok(Date.now() < latest, `it does not hold within a minute: ${condition}`);
    await pause(POLL_MILLISECONDS);
  }
}

export function queryHash(sql, database = 'nycflights13') {
  return `#/query?${new URLSearchParams({ database, sql })}`;
}

export async function waitForEditor(page) {
  await page.locator('.cm-content').waitFor();
}

/** Replaces the text of the editor, as a person types it. */
export async function write(page, sql) {
  await page.locator('.cm-content').click();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(sql);
}

export async function runAndWait(page) {
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByText(/^(Done|Failed|Cancelled)/).waitFor();
}

export function cell(page, row, column) {
  return page.locator(`[role=gridcell][data-row="${row}"][data-column="${column}"]`);
}

export async function checkAccessibility(page) {
  // The policy of the page permits no other script, so the debugger evaluates it.
  await page.evaluate(await readFile(axePath, 'utf8'));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  assert.deepEqual(found, []);
}

/** The view on one screen: a picture, no violation of accessibility, and no wider than the window. */
export async function checkLooks(page, name) {
  await takePicture(page, name);
  await checkAccessibility(page);
  const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.ok(!isWide, 'the page is wider than its window');
}
