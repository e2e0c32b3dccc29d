// The tour of the documentation: its steps still work, and the page has each picture.
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { makeFolder, startBrowser, startServer } from './harness.mjs';
import { describePicture } from './palette.mjs';
import { NAMES, PICTURES, SIZE, takeTour, TOUR_PAGE } from './tour.mjs';

/** All pictures of the documentation together. */
const BYTES_MAX = 1_000_000;

let browser;
let data;
let server;

before(async () => {
  data = await makeFolder();
  browser = await startBrowser();
  server = await startServer([], { command: 'demo' });
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await data?.remove();
});

test('the pictures can be taken', async () => {
  await takeTour(browser, server, data.folder);
  await checkPictures(data.folder);
});

test('the page has them in their order', async () => {
  const page = await readFile(TOUR_PAGE, 'utf8');
  const shown = [...page.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, target]) => target);
  assert.deepEqual(shown, NAMES.map((name) => `${path.basename(PICTURES)}/${name}.png`));
  await checkPictures(PICTURES);
});

async function checkPictures(folder) {
  let bytes = 0;
  for (const name of NAMES) {
    const file = path.join(folder, `${name}.png`);
    assert.deepEqual(describePicture(await readFile(file)), { ...SIZE, hasPalette: true }, name);
    bytes += (await stat(file)).size;
  }
  assert.ok(bytes < BYTES_MAX, `the pictures have ${bytes} bytes`);
}
