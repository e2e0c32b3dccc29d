// The checks of all Node.js clients, for each package and transport.
//
// A package provides `connect(transport)`, which returns a client, and `call(client, params, options)`, because the signatures
// of tool calls differ.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { TIDEGATE_BINARY, TIDEGATE_CONFIGURATION, TIDEGATE_NODE_PACKAGES, TIDEGATE_PYTHON, TIDEGATE_RECORDINGS, TIDEGATE_URL } =
  process.env;
const { questions: QUESTIONS, endless: ENDLESS } = JSON.parse(readFileSync(join(import.meta.dirname, "questions.json"), "utf8"));
const TEE = join(import.meta.dirname, "..", "wire", "stdio_tee.py");
// The limit for any answer of these tests.
const WAIT_MS_MAX = 60_000;

/** Loads packages from the cache folder TIDEGATE_NODE_PACKAGES. */
export const packages = createRequire(join(TIDEGATE_NODE_PACKAGES, "package.json"));

/** A module of a package that can only be importModule, by its path. */
export const importModule = (path) => import(pathToFileURL(join(TIDEGATE_NODE_PACKAGES, "node_modules", path)));

/** The addresses of the HTTP transports, through the recording proxy. */
export const ADDRESSES = {
  http: new URL(TIDEGATE_URL),
  sse: new URL(`${TIDEGATE_URL}/sse`),
  ws: new URL(`${TIDEGATE_URL.replace("http", "ws")}/ws`),
};

/** A separate server over standard input and output, recorded. */
export const COMMAND = {
  command: TIDEGATE_PYTHON,
  args: [TEE, TIDEGATE_RECORDINGS, TIDEGATE_BINARY, "stdio", "--config", TIDEGATE_CONFIGURATION],
};

let passed = 0;
let failed = 0;
let subject = "";

/** Sets the subject of the following checks; it precedes the name of each check. */
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

/** The message of an assertion; for any other error, also the line of the test. */
function describe(error) {
  if (error instanceof assert.AssertionError) return error.message.replaceAll(/\s+/g, " ");
  const place = error.stack?.split("\n").find((line) => line.includes(import.meta.filename));
  return `${error}${place ? ` (${place.trim()})` : ""}`;
}

/** The result of `wait`; after the time limit, an error with the message `failure`. */
export function withTimeout(failure, wait) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error(failure)), WAIT_MS_MAX));
  return Promise.race([wait(), late]);
}

export const textsOf = (result) => result.content.filter((block) => block.type === "text").map((block) => block.text);

/** The same comparison as in questions.py. */
function compare(question, result) {
  const texts = textsOf(result);
  const text = texts.join("\n");
  const excerpt = text.length < 1500 ? text : `${text.slice(0, 700)} […] ${text.slice(-700)}`;
  assert.equal(result.isError ?? false, question.isError ?? false, `isError is ${result.isError}: ${excerpt}`);
  assert.ok(text, "the answer is empty");
  if ("equals" in question) assert.deepEqual(JSON.parse(texts[0]), question.equals, excerpt);
  for (const part of question.contains ?? []) assert.ok(text.includes(part), `no ${part} in: ${excerpt}`);
  for (const part of question.lacks ?? []) assert.ok(!text.includes(part), `${part} in: ${excerpt}`);
  // Python writes the dotall flag into the pattern, JavaScript passes it separately.
  if (question.matches) assert.match(text, new RegExp(question.matches.replace("(?s)", ""), "s"), excerpt);
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
    abort.abort("cancelled by the test");
    await ended;
    const { id } = running[0];
    while ((await jobs(client, call)).some((job) => job.id === id && job.status === "running")) deadline.throwIfAborted();
    assert.ok(progress.every((value, index) => index === 0 || value > progress[index - 1]), `${progress}`);
  });
}

/** Runs all checks over each transport in turn and ends the process. */
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
      await check("the connection is still usable", async () => compare(QUESTIONS[0], await call(client, { name: "list_databases", arguments: {} })));
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
