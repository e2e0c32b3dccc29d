// What every client of Node.js asks, whichever package it is of and whatever its transport.
//
// A package is described by how it connects (`connect(transport)` gives a client) and how it calls a tool, whose signature
// differs (`call(client, params, options)`).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { TIDEGATE_BINARY, TIDEGATE_CONFIGURATION, TIDEGATE_NODE_PACKAGES, TIDEGATE_PYTHON, TIDEGATE_RECORDINGS, TIDEGATE_URL } =
  process.env;
const { questions: QUESTIONS, endless: ENDLESS } = JSON.parse(readFileSync(join(import.meta.dirname, "questions.json"), "utf8"));
const TEE = join(import.meta.dirname, "..", "wire", "stdio_tee.py");
// No answer of these tests takes longer on a machine that is not broken.
const WAIT_MS_MAX = 60_000;

/** The packages lie in a cache folder, TIDEGATE_NODE_PACKAGES, so they are required from there. */
export const packages = createRequire(join(TIDEGATE_NODE_PACKAGES, "package.json"));

/** A module of a package that can only be imported, by its path. */
export const imported = (path) => import(pathToFileURL(join(TIDEGATE_NODE_PACKAGES, "node_modules", path)));

/** The addresses of the doors, through the recording proxy. */
export const ADDRESSES = {
  http: new URL(TIDEGATE_URL),
  sse: new URL(`${TIDEGATE_URL}/sse`),
  ws: new URL(`${TIDEGATE_URL.replace("http", "ws")}/ws`),
};

/** A server of its own over standard input and output, recorded. */
export const COMMAND = {
  command: TIDEGATE_PYTHON,
  args: [TEE, TIDEGATE_RECORDINGS, TIDEGATE_BINARY, "stdio", "--config", TIDEGATE_CONFIGURATION],
};

let passed = 0;
let failed = 0;
let subject = "";

/** What is under test from here on; it stands before each check's name. */
export function under(what) {
  subject = what;
}

export async function check(name, body) {
  try {
    await body();
    passed += 1;
    console.log(`ok   ${subject}: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${subject}: ${name}: ${describe(error)}`);
  }
}

/** An assertion speaks for itself; anything else shows where in the tests it came from. */
function describe(error) {
  if (error instanceof assert.AssertionError) return error.message.replaceAll(/\s+/g, " ");
  const place = error.stack?.split("\n").find((line) => line.includes(import.meta.filename));
  return `${error}${place ? ` (${place.trim()})` : ""}`;
}

/** What `wait` gives, unless that takes longer than anything may: then an error that says `failure`. */
export function withinReason(failure, wait) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error(failure)), WAIT_MS_MAX));
  return Promise.race([wait(), late]);
}

export const textsOf = (result) => result.content.filter((block) => block.type === "text").map((block) => block.text);

/** The same comparison as in questions.py. */
function compare(question, result) {
  const texts = textsOf(result);
  const text = texts.join("\n");
  const shown = text.length < 1500 ? text : `${text.slice(0, 700)} […] ${text.slice(-700)}`;
  assert.equal(result.isError ?? false, question.isError ?? false, `isError is ${result.isError}: ${shown}`);
  assert.ok(text, "the answer is empty");
  if ("equals" in question) assert.deepEqual(JSON.parse(texts[0]), question.equals, shown);
  for (const part of question.contains ?? []) assert.ok(text.includes(part), `no ${part} in: ${shown}`);
  for (const part of question.lacks ?? []) assert.ok(!text.includes(part), `${part} in: ${shown}`);
  // Python writes the flag for "a dot matches a line end too" into the pattern, JavaScript beside it.
  if (question.matches) assert.match(text, new RegExp(question.matches.replace("(?s)", ""), "s"), shown);
}

async function checkLists(client, call) {
  await check("tools are listed with their schemas", async () => {
    const { tools } = await client.listTools();
    const names = new Set(tools.map((tool) => tool.name));
    for (const { tool } of QUESTIONS) assert.ok(names.has(tool), `${tool} is missing`);
    for (const tool of tools) assert.equal(tool.inputSchema.type, "object");
  });
  await check("a table is a resource that can be read", async () => {
    const { resources } = await client.listResources();
    const table = resources.find((resource) => resource.uri.includes("orders"));
    assert.ok(table, `no orders among ${resources.map((resource) => resource.uri)}`);
    const { contents } = await client.readResource({ uri: table.uri });
    assert.ok(contents.length > 0);
  });
  await check("a table's name completes", async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    const template = resourceTemplates.find((template) => template.uriTemplate.includes("{table}"));
    const { completion } = await client.complete({
      ref: { type: "ref/resource", uri: template.uriTemplate },
      argument: { name: "table", value: "ord" },
      context: { arguments: { database: "shop" } },
    });
    assert.ok(completion.values.includes("orders"), JSON.stringify(completion));
  });
  await check("an unknown tool is an error", async () => {
    await assert.rejects(call(client, { name: "drop_everything", arguments: {} }), (error) => error.code === -32602);
  });
}

const jobs = async (client, call) => JSON.parse(textsOf(await call(client, { name: "list_jobs", arguments: {} }))[0]);

async function checkLongCall(client, call) {
  await check("a long call reports progress, and ends when the client cancels it", async () => {
    const abort = new AbortController();
    const progress = [];
    const deadline = AbortSignal.timeout(WAIT_MS_MAX);
    const reported = Promise.withResolvers();
    deadline.addEventListener("abort", () => reported.reject(new Error("no progress in time")));
    const endless = call(
      client,
      { name: ENDLESS.tool, arguments: ENDLESS.arguments },
      {
        signal: abort.signal,
        timeout: WAIT_MS_MAX,
        onprogress: ({ progress: value }) => {
          progress.push(value);
          reported.resolve();
        },
      },
    );
    const ended = assert.rejects(endless);
    await Promise.race([reported.promise, ended]);
    const running = (await jobs(client, call)).filter((job) => job.target === ENDLESS.tool && job.status === "running");
    assert.equal(running.length, 1, JSON.stringify(running));
    abort.abort("no longer wanted");
    await ended;
    const { id } = running[0];
    while ((await jobs(client, call)).some((job) => job.id === id && job.status === "running")) deadline.throwIfAborted();
    assert.ok(progress.every((value, index) => index === 0 || value > progress[index - 1]), `${progress}`);
  });
}

/** Asks everything over each transport in turn and ends the process. */
export async function run(name, transports, { connect, call, revisionOf, revision }) {
  for (const transport of transports) {
    under(`${name} ${transport}`);
    await check("it connects", async () => {
      const client = await connect(transport);
      await check(`it negotiates ${revision}`, () => assert.equal(revisionOf(client), revision));
      await checkLists(client, call);
      for (const question of QUESTIONS) {
        await check(question.name, async () => compare(question, await call(client, { name: question.tool, arguments: question.arguments })));
      }
      await checkLongCall(client, call);
      await check("the connection lives on", async () => compare(QUESTIONS[0], await call(client, { name: "list_databases", arguments: {} })));
      await client.close();
    });
  }
  finish();
}

/** Prints the closing line and ends the process. */
export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed > 0 || passed === 0 ? 1 : 0);
}
