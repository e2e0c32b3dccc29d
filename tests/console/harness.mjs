// A server with data, and a browser that opens its console.
//
// TIDEGATE_BINARY is the program, CHROMIUM the browser, and SCREENSHOTS a folder for pictures. With CONSOLE_DIST, the files of that
// folder are answered in place of those in the program: to look at a build that is not compiled in.
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, request as forward } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const root = path.resolve(import.meta.dirname, '../..');
const program = process.env.TIDEGATE_BINARY ?? path.join(root, 'target/debug/tidegate');
const dist = process.env.CONSOLE_DIST;
const screenshots = process.env.SCREENSHOTS;

/** What the server sends with the page, for files that are not compiled in. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
  + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/** A name and a value that would run if a page took them for markup. */
export const HOSTILE = `<img src=x onerror="window.wasRun=1">`;

/** A folder for the data of a test; `remove` deletes it. */
export async function makeFolder() {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-console-'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Starts a server on a free port and waits for its address, and for that of Flight SQL if it has one. */
export async function startServer(args, { command = 'serve', port = 0, hasFlight = false } = {}) {
  const child = spawn(program, [command, '--listen', `127.0.0.1:${port}`, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const { address, flight } = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      output += chunk;
      const http = /listening on (http:\/\/[\d.:]+)\//.exec(output)?.[1];
      const grpc = /listening on (grpc:\/\/[\d.:]+)\s/.exec(output)?.[1];
      if (http && (grpc || !hasFlight)) resolve({ address: http, flight: grpc });
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', (code) => reject(new Error(`the server ended with ${code}:\n${output}`)));
  });
  return {
    address,
    flight,
    port: Number(new URL(address).port),
    async stop() {
      if (child.exitCode !== null) return;
      const ended = new Promise((resolve) => child.on('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** A proxy that serves `server` below a path prefix. */
export async function startProxy(server, prefix) {
  const proxy = createServer((request, response) => {
    const path = request.url.startsWith(`${prefix}/`) ? request.url.slice(prefix.length) : '/no-such-path';
    const headers = { ...request.headers, host: new URL(server.address).host };
    const forwarded = forward(new URL(path, server.address), { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    forwarded.on('error', () => response.destroy());
    request.pipe(forwarded);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${proxy.address().port}`,
    prefix,
    stop: () => new Promise((resolve) => proxy.closeAllConnections() ?? proxy.close(resolve)),
  };
}

/** Runs a command of the program; its standard output. */
export function runProgram(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let [output, problems] = ['', ''];
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (problems += chunk));
    child.on('exit', (code) => (code === 0 ? resolve(output) : reject(new Error(problems))));
  });
}

/** The demo's flights, a folder with hostile names, and a file that cannot be read. */
export async function writeData(folder) {
  const hostile = path.join(folder, 'hostile');
  await mkdir(hostile);
  await writeFile(path.join(hostile, `${HOSTILE.replaceAll('/', '')}.csv`), `"${HOSTILE.replaceAll('"', '""')}",n\n"${HOSTILE.replaceAll('"', '""')}",1\n"<script>window.wasRun=1</script>",2\n`);
  await writeFile(path.join(hostile, 'numbers.csv'), 'id,exact,note\n9007199254740993,0.10000000000000000001,a\n2,3.5,\n');
  const broken = path.join(folder, 'broken');
  await mkdir(broken);
  await writeFile(path.join(broken, 'damaged.parquet'), 'this is no Parquet file');
  return [`nycflights13=${path.join(root, 'data/demo')}`, `hostile=${hostile}`, `broken=${broken}`];
}

export async function startBrowser() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync',
    ],
  });
  if (screenshots) await mkdir(screenshots, { recursive: true });
  return browser;
}

/** A page with the console of `server`. It records errors, and requests to other origins. */
export async function openConsole(browser, server, { hash = '', theme = 'light', size = { width: 1280, height: 800 }, ...options } = {}) {
  const context = await browser.newContext({ viewport: size, colorScheme: theme, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    // A refused request is part of what is tested.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) faults.push(message.text());
  });
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (!['blob:', 'about:'].includes(protocol) && origin !== server.address) faults.push(`a request to ${request.url()}`);
  });
  page.on('dialog', (dialog) => faults.push(`a dialog: ${dialog.message()}`));
  if (dist) await page.route(isConsoleFile(server), answerFromDist);
  await page.goto(`${server.address}${server.prefix ?? ''}/${hash}`);
  return { page, faults, close: () => context.close() };
}

function isConsoleFile(server) {
  const root = `${server.prefix ?? ''}/`;
  return ({ origin, pathname }) => origin === server.address && (pathname === root || pathname.startsWith(`${root}_console/`));
}

const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

async function answerFromDist(route) {
  const { pathname } = new URL(route.request().url());
  const name = /_console\/.*$/.exec(pathname)?.[0] ?? 'index.html';
  const body = await readFile(path.join(dist, name));
  await route.fulfill({ body, contentType: TYPES[path.extname(name)], headers: { 'Content-Security-Policy': POLICY } });
}

/** Keeps a picture of the page, if pictures are wanted. */
export async function takePicture(page, name) {
  if (screenshots) await page.screenshot({ path: path.join(screenshots, `${name}.png`) });
}
