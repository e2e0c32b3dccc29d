// The console in a browser: `node --test tests/console/*.test.mjs` after `npm ci` in that folder.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  HOSTILE, makeFolder, openConsole, runProgram, startBrowser, startProxy, startServer, takePicture, writeData,
} from './harness.mjs';
import {
  cell, checkAccessibility, checkLooks, queryHash, runAndWait, SCREENS, until, visitConsole, waitForEditor, write,
} from './visit.mjs';

const OWN_DATA = [path.resolve(import.meta.dirname, '../../data/demo')];

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

const visit = (options, act) => visitConsole(browser, options.server ?? server, options, act);

describe('overview', () => {
  test('says what is wrong and shows live numbers', () =>
    visit({}, async (page) => {
      await page.getByText('The table broken.damaged cannot be read').waitFor();
      await page.getByText('Nothing is wrong').waitFor({ state: 'detached' });
      await page.locator('.tile', { hasText: 'Latency' }).waitFor();
      await page.getByRole('link', { name: 'nycflights13' }).waitFor();
      assert.match(page.url(), /#\/overview$/);
    }));

  test('cancels a running call', () =>
    visit({ hash: queryHash('SELECT count(*) FROM generate_series(1, 3000000000) a') }, async (page) => {
      await waitForEditor(page);
      await page.getByRole('button', { name: 'Run' }).click();
      await page.getByText('Loading the first rows').waitFor();
      await page.getByRole('link', { name: 'Overview' }).click();
      await page.getByRole('row', { name: /sql running/ }).getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('row', { name: /sql cancelled/ }).waitFor();
    }));
});

describe('data', () => {
  test('searches, lists columns, and orders and filters rows by click', () =>
    visit({ hash: '#/data' }, async (page) => {
      await page.getByRole('searchbox').fill('tailnum');
      await page.getByRole('navigation', { name: 'Tables' }).getByRole('link', { name: /flights.*nycflights13/ }).click();
      await page.getByRole('grid').waitFor();
      await page.getByRole('tab', { name: 'Columns (19)' }).click();
      await page.getByRole('cell', { name: 'timestamp with time zone not null' }).waitFor();
      await page.getByRole('tab', { name: 'Rows' }).click();
      const head = page.getByRole('columnheader', { name: 'dep_delay integer' });
      await head.getByRole('button', { name: 'dep_delay integer' }).click();
      await page.locator('[role=columnheader][aria-sort=ascending]').waitFor();
      await head.getByRole('button', { name: 'dep_delay integer' }).click();
      await page.locator('[role=columnheader][aria-sort=descending]').waitFor();
      await page.locator('[role=gridcell]', { hasText: '1301' }).first().waitFor();
      await cell(page, 0, 9).click();
      await page.getByRole('button', { name: 'carrier = HA' }).click();
      await page.locator('.chip', { hasText: 'carrier = HA' }).waitFor();
      await page.getByText('342 rows').first().waitFor();
      const address = page.url();
      await page.getByRole('button', { name: 'Open as SQL' }).click();
      await waitForEditor(page);
      await runAndWait(page);
      await page.getByText('342 rows').waitFor();
      // The address alone opens the same view.
      await page.goto('about:blank');
      await page.goto(address);
      await page.getByText('342 rows').first().waitFor();
    }));

  test('counts the values of a column', () =>
    visit({ hash: '#/data/nycflights13/flights' }, async (page) => {
      await page.getByRole('grid').waitFor();
      await page.getByRole('button', { name: 'Values of origin' }).click();
      await page.getByRole('button', { name: /EWR.*120,835/ }).waitFor();
      await takePicture(page, 'values');
      await page.getByRole('button', { name: /LGA/ }).click();
      await page.locator('.chip', { hasText: 'origin = LGA' }).waitFor();
    }));

  test('shows hostile names and values as text', () =>
    visit({ hash: '#/data/hostile' }, async (page) => {
      const table = HOSTILE.replaceAll('/', '');
      await page.getByRole('link', { name: table }).click();
      await page.getByRole('gridcell', { name: HOSTILE }).waitFor();
      await page.getByRole('gridcell', { name: '<script>window.wasRun=1</script>' }).click();
      await page.getByRole('button', { name: 'Show the whole value' }).click();
      await page.getByRole('dialog').getByText('<script>window.wasRun=1</script>').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: `Values of ${HOSTILE}` }).click();
      await page.getByRole('dialog').getByText(HOSTILE).first().waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Call' }).click();
      await page.getByRole('dialog').getByText('tools/call').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Open as SQL' }).click();
      await waitForEditor(page);
      await runAndWait(page);
      await page.getByRole('gridcell', { name: HOSTILE }).waitFor();
      await takePicture(page, 'hostile');
    }));

  test('keeps all digits', () =>
    visit({ hash: '#/data/hostile/numbers' }, async (page) => {
      await page.getByRole('gridcell', { name: '9007199254740993', exact: true }).click();
      await page.getByRole('button', { name: 'id = 9007199254740993' }).click();
      await page.getByText('1 row', { exact: true }).first().waitFor();
    }));
});

describe('query', () => {
  test('scrolls to the last row of five million', () =>
    visit({ hash: queryHash('SELECT n, n * 2 AS twice FROM generate_series(1, 5000000) AS t(n)') }, async (page) => {
      await waitForEditor(page);
      await page.getByRole('button', { name: 'Run' }).click();
      await page.getByText(/rows\/s/).waitFor();
      await page.getByText('Done 5,000,000 rows').waitFor({ timeout: 120_000 });
      const grid = page.getByRole('grid');
      await grid.click();
      await page.keyboard.press('Escape');
      await page.keyboard.press('Control+End');
      await cell(page, 4_999_999, 0).getByText('5000000', { exact: true }).waitFor();
      await page.keyboard.press('Control+Home');
      await page.keyboard.press('PageDown');
      await cell(page, 0, 0).waitFor({ state: 'detached' });
      await grid.evaluate((element) => {
        element.scrollTop = element.scrollHeight / 2;
      });
      await page.getByRole('gridcell', { name: /^25\d{5}$/ }).first().waitFor();
      const bytes = await page.evaluate(() => performance.memory.usedJSHeapSize);
      assert.ok(bytes < 200e6, `the page uses ${bytes} bytes`);
    }));

  test('cancels, and keeps the rows that arrived', () =>
    visit({ hash: queryHash('SELECT n, md5(n::text) AS hash FROM generate_series(1, 500000000) AS t(n)') }, async (page) => {
      await waitForEditor(page);
      await page.getByRole('button', { name: 'Run' }).click();
      await page.getByText(/rows\/s/).waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByText(/^Cancelled/).waitFor();
      await cell(page, 0, 0).getByText('1', { exact: true }).waitFor();
      await page.getByText('The rows are not complete').waitFor();
    }));

  test('marks a mistake, and corrects it', () =>
    visit({ hash: queryHash('SELECT carier, count(*) FROM flights GROUP BY 1') }, async (page) => {
      await waitForEditor(page);
      await runAndWait(page);
      assert.equal(await page.locator('.cm-lintRange-error').textContent(), 'carier');
      await takePicture(page, 'mistake');
      await page.getByRole('button', { name: 'carrier', exact: true }).click();
      await runAndWait(page);
      await page.getByText(/Done 16 rows/).waitFor();
      await write(page, "SELECT 'abc");
      await runAndWait(page);
      await page.locator('.cm-lintRange-error').waitFor();
    }));

  test('completes names of tables and columns', () =>
    visit({ hash: '#/query?database=nycflights13' }, async (page) => {
      await waitForEditor(page);
      await page.locator('.cm-content').click();
      await page.keyboard.type('SELECT * FROM weather WHERE wind_g');
      await page.locator('.cm-completionLabel', { hasText: 'wind_gust' }).click();
      assert.match(await page.locator('.cm-content').textContent(), /wind_gust$/);
    }));

  test('runs the selection, and the statement at the cursor', () =>
    visit({ hash: queryHash('SELECT 1 AS one;\nSELECT 2 AS two') }, async (page) => {
      await waitForEditor(page);
      await page.locator('.cm-content').click();
      await page.keyboard.press('Control+End');
      await page.keyboard.press('Control+Enter');
      await page.getByRole('columnheader', { name: 'two' }).waitFor();
      await page.keyboard.press('Control+Home');
      await page.keyboard.press('Control+Enter');
      await page.getByRole('columnheader', { name: 'one' }).waitFor();
    }));

  test('has fields for parameters', () =>
    visit({ hash: queryHash("SELECT count(*) AS n FROM flights WHERE dest = $1 AND month = $2 -- not $3") }, async (page) => {
      await waitForEditor(page);
      await page.getByLabel('$1').fill('LAX');
      await page.getByLabel('$2').fill('1');
      assert.equal(await page.getByLabel('$3').count(), 0);
      await runAndWait(page);
      await cell(page, 0, 0).getByText('1159').waitFor();
      assert.match(page.url(), /LAX/);
    }));

  test('shows the plan, the call and the history, and exports', () =>
    visit({ hash: queryHash('SELECT carrier, name FROM airlines ORDER BY 1') }, async (page) => {
      await waitForEditor(page);
      await page.getByRole('button', { name: 'Plan' }).click();
      await page.locator('.plan-name', { hasText: 'DataSourceExec' }).waitFor();
      await runAndWait(page);
      for (const [format, first] of [['CSV', 'carrier,name'], ['JSON, one object a line', '{"carrier":"9E"']]) {
        await page.getByRole('button', { name: 'Export' }).click();
        const saved = page.waitForEvent('download');
        await page.getByRole('button', { name: format, exact: true }).click();
        const text = await readFile(await (await saved).path(), 'utf8');
        assert.ok(text.startsWith(first), text.slice(0, 100));
      }
      await page.getByRole('button', { name: 'Call' }).click();
      await page.getByText(/^curl -H/).waitFor();
      await page.keyboard.press('Escape');
      await write(page, 'SELECT 1');
      await page.getByRole('tab', { name: 'History' }).click();
      await page.getByRole('button', { name: /FROM airlines/ }).click();
      assert.match(await page.locator('.cm-content').textContent(), /airlines/);
    }));

  test('is usable with the keyboard alone', () =>
    visit({ hash: '#/query?database=nycflights13' }, async (page) => {
      await waitForEditor(page);
      for (let presses = 0; presses < 20; presses += 1) {
        await page.keyboard.press('Tab');
        if (await page.evaluate(() => document.activeElement?.shadowRoot?.activeElement?.ariaLabel === 'SQL statement')) break;
      }
      await page.keyboard.insertText('SELECT carrier, name FROM airlines ORDER BY 1');
      await page.keyboard.press('Control+Enter');
      await page.getByText(/Done 16 rows/).waitFor();
      for (let presses = 0; presses < 20; presses += 1) {
        await page.keyboard.press('Tab');
        if (await page.evaluate(() => document.activeElement?.role === 'grid')) break;
      }
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').getByText('American Airlines Inc.').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }));
});

describe('sign-in', () => {
  let guarded;

  before(async () => {
    const file = path.join(data.folder, 'tidegate.yaml');
    const databases = [{ name: 'nyc', files: path.resolve(import.meta.dirname, '../../data/demo') }];
    databases.push({ name: 'system', system: {} });
    const roles = [
      { name: 'reader', toolsets: ['*'], databases: ['nyc'] },
      { name: 'operator', toolsets: ['*'], databases: ['*'], access: ['metrics', 'operator'] },
      { name: 'narrow', toolsets: ['questions'], databases: ['nyc'] },
    ];
    const toolsets = { questions: ['list_databases', 'list_tables', 'sql'] };
    await writeFile(file, JSON.stringify({ databases, roles, toolsets, auth: { keys: path.join(data.folder, 'keys.json') } }));
    guarded = { config: file, server: await startServer(['--config', file]) };
  });

  after(() => guarded?.server.stop());

  async function addKey(name, role) {
    const added = await runProgram(['key', 'add', name, '--role', role, '--config', guarded.config]);
    const key = added.match(/tg_\S+/)[0];
    // The server reads the file again within two seconds.
    const headers = { Authorization: `Bearer ${key}` };
    await until(async () => (await fetch(`${guarded.server.address}/rest/tools`, { headers })).ok);
    return key;
  }

  async function signIn(page, key) {
    await page.getByLabel('Key or token').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  test('takes a key, keeps the view, and forgets the key at sign-out', async () => {
    const key = await addKey('ann', 'reader');
    await visit({ server: guarded.server, hash: '#/data/nyc/airlines' }, async (page) => {
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await takePicture(page, 'sign-in');
      await checkAccessibility(page);
      await signIn(page, 'not-a-key');
      await page.getByRole('alert').waitFor();
      await signIn(page, key);
      await page.getByRole('gridcell', { name: 'American Airlines Inc.' }).waitFor();
      const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
      assert.ok(!kept.includes(key), 'the key is kept in the browser');
      await page.getByRole('button', { name: 'Call' }).click();
      await page.getByText('Bearer $TIDEGATE_KEY').waitFor();
      assert.ok(!(await page.content()).includes(key), 'the page shows the key');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    });
  });

  test('shows to each role what it may use', async () => {
    await visit({ server: guarded.server }, async (page) => {
      await signIn(page, await addKey('olga', 'operator'));
      await page.getByRole('heading', { name: 'Memory and disk of queries' }).waitFor();
      await page.locator('.tile', { hasText: 'Latency' }).waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await signIn(page, await addKey('rita', 'reader'));
      await page.getByText('Live numbers need a role with the access name metrics').waitFor();
      assert.equal(await page.getByRole('heading', { name: 'Memory and disk of queries' }).count(), 0);
    });
  });

  test('shows the first rows to roles without stored results', async () => {
    await visit({ server: guarded.server, hash: queryHash('SELECT * FROM flights', 'nyc') }, async (page) => {
      await signIn(page, await addKey('nora', 'narrow'));
      await waitForEditor(page);
      await runAndWait(page);
      await page.getByText('1,000 rows, more exist').waitFor();
      await cell(page, 0, 0).getByText('2013').waitFor();
      await page.getByRole('button', { name: 'Export' }).click();
      const saved = page.waitForEvent('download');
      await page.getByRole('button', { name: 'CSV', exact: true }).click();
      const text = await readFile(await (await saved).path(), 'utf8');
      assert.equal(text.trimEnd().split('\n').length, 336_777);
    });
  });

  test('a revoked key leads to the sign-in', async () => {
    const key = await addKey('bob', 'reader');
    await visit({ server: guarded.server, hash: '#/data/nyc/airlines' }, async (page) => {
      await signIn(page, key);
      await page.getByRole('grid').waitFor();
      await runProgram(['key', 'revoke', 'bob', '--config', guarded.config]);
      await page.getByRole('link', { name: 'planes' }).click();
      // The server reads the file again within two seconds.
      for (const name of ['airports', 'flights', 'weather', 'airlines', 'planes', 'airports']) {
        if (await page.getByText('Your key is no longer valid').isVisible()) break;
        await page.getByRole('link', { name, exact: false }).first().click({ timeout: 2000 }).catch(() => {});
        await page.getByText('Your key is no longer valid').waitFor({ timeout: 1000 }).catch(() => {});
      }
      await page.getByText('Your key is no longer valid').waitFor();
    });
  });
});

describe('server', () => {
  test('a result that has expired can be asked for again', async () => {
    const config = path.join(data.folder, 'short.yaml');
    await writeFile(config, JSON.stringify({ databases: [{ name: 'nyc', files: path.resolve(import.meta.dirname, '../../data/demo') }], results: { ttl: '15s' } }));
    const short = await startServer(['--config', config]);
    const visiting = visit({ server: short, hash: queryHash('SELECT * FROM flights', 'nyc') }, async (page) => {
      const [, id] = await new Promise((resolve) => {
        page.on('request', (request) => {
          const found = /\/results\/([^/]+)$/.exec(request.url());
          if (found) resolve(found);
        });
        page.getByRole('button', { name: 'Run' }).click();
      });
      await page.getByText(/^Done 336,776/).waitFor();
      await until(async () => !(await fetch(`${short.address}/results/${id}`)).ok);
      await page.getByRole('grid').focus();
      await page.keyboard.press('Control+End');
      await page.getByText('The result has expired').waitFor();
      await page.getByRole('button', { name: 'Run the statement again' }).click();
      await page.getByText(/^Done 336,776/).waitFor();
      await page.getByText('The result has expired').waitFor({ state: 'detached' });
    });
    await visiting.finally(() => short.stop());
  });

  test('may be behind a path prefix', async () => {
    const proxy = await startProxy(server, '/tide');
    const visiting = visit({ server: proxy, hash: queryHash('SELECT carrier, name FROM airlines ORDER BY 1') }, async (page) => {
      await waitForEditor(page);
      await runAndWait(page);
      await page.getByRole('gridcell', { name: 'American Airlines Inc.' }).waitFor();
      await page.getByRole('button', { name: 'Export' }).click();
      const saved = page.waitForEvent('download');
      await page.getByRole('button', { name: 'CSV', exact: true }).click();
      assert.match(await readFile(await (await saved).path(), 'utf8'), /^carrier,name/);
      await page.getByRole('link', { name: 'Overview' }).click();
      await page.locator('.tile', { hasText: 'Latency' }).waitFor();
    });
    await visiting.finally(() => proxy.stop());
  });

  test('a restart is announced, and the page goes on', async () => {
    const first = await startServer(OWN_DATA);
    const { page, close } = await openConsole(browser, first);
    let second;
    try {
      await page.getByRole('heading', { name: 'Databases' }).waitFor();
      await first.stop();
      await page.getByText('The page tries again').waitFor();
      second = await startServer(OWN_DATA, { port: first.port });
      await page.getByText('The page tries again').waitFor({ state: 'detached' });
    } finally {
      await close();
      await (second ?? first).stop();
    }
  });
});

describe('looks', () => {
  const VIEWS = {
    overview: ['', (page) => page.locator('.tile').first().waitFor()],
    data: ['#/data/nycflights13/flights?order=-dep_delay', (page) => page.getByRole('gridcell').first().waitFor()],
    columns: ['#/data/nycflights13/weather?tab=columns', (page) => page.locator('table.columns').waitFor()],
    query: [queryHash('SELECT carrier, month, count(*) AS flights\nFROM flights\nGROUP BY ALL\nORDER BY flights DESC'.replace('ALL', 'carrier, month')), async (page) => {
      await waitForEditor(page);
      await runAndWait(page);
      await page.getByRole('gridcell').first().waitFor();
    }],
    plan: [queryHash('SELECT carrier, count(*) FROM flights GROUP BY 1'), async (page) => {
      await waitForEditor(page);
      await page.getByRole('button', { name: 'Plan' }).click();
      await page.locator('.tree').first().waitFor();
    }],
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
