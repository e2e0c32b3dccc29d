// npm `@modelcontextprotocol/ext-tasks` over `@modelcontextprotocol/client`: calls that become tasks.
//
// Runs under `with_server.py`.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { ADDRESSES, check, COMMAND, finish, importModule, textsOf, under, withTimeout } from "./node_checks.mjs";

const { Client, StreamableHTTPClientTransport } = await importModule("@modelcontextprotocol/client/dist/index.mjs");
const { StdioClientTransport } = await importModule("@modelcontextprotocol/client/dist/stdio.mjs");
const { createTaskSessionFromClient } = await importModule("@modelcontextprotocol/ext-tasks/dist/client/index.js");

const REVISION = "2026-07-28";
const INFO = { name: "tidegate-tests", version: "1.0.0" };
const CAPABILITIES = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };
const INVALID_PARAMS = -32602;

// Neither reports progress; the first takes seconds, the second never ends.
const countStatement = (limit) => `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c ${limit}) SELECT count(*) AS n FROM c`;
const LONG = { database: "ledger", sql: countStatement("LIMIT 10000000"), no_cache: true };
const ENDLESS = { database: "ledger", sql: countStatement(""), no_cache: true };
const EXPORT = { database: "shop", sql: "SELECT * FROM measurements", delivery: "blocks", no_cache: true };
const MEASUREMENTS = 20_000;

let requests = 0;

/** The raw dispatch of the package: it sends a request unchanged and returns the response unchanged. */
const answerOf = (message) =>
  "error" in message ? { kind: "error", error: message.error } : { kind: "result", result: message.result };

/** Dispatches over a new connection. */
async function overHttp({ method, params }, { signal, context } = {}) {
  const id = ++requests;
  const response = await fetch(ADDRESSES.http, {
    method: "POST",
    signal,
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": REVISION,
      "Mcp-Method": method,
      "Mcp-Name": params.taskId ?? params.name,
      ...context?.headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
  });
  const text = await response.text();
  const isStream = response.headers.get("content-type").startsWith("text/event-stream");
  const texts = isStream ? [...text.matchAll(/^data: ?(.+)$/gm)].map(([, data]) => data) : [text];
  return answerOf(texts.map((data) => JSON.parse(data)).find((message) => message.id === id));
}

/** Dispatches over the connection of a client, in parallel with its own requests. */
function beside(transport) {
  const waiting = new Map();
  const toClient = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const resolve = "method" in message ? undefined : waiting.get(message.id);
    if (!resolve) return toClient(message, extra);
    waiting.delete(message.id);
    resolve(answerOf(message));
  };
  return async ({ method, params }) => {
    const id = `raw-${++requests}`;
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    await transport.send({ jsonrpc: "2.0", id, method, params });
    return answer;
  };
}

const TRANSPORTS = {
  stdio: () => new StdioClientTransport(COMMAND),
  http: () => new StreamableHTTPClientTransport(ADDRESSES.http),
};

/** A client with its task session; `notifications` are the status notifications, `answers` those of its user. */
async function connect(transport, answers = []) {
  const client = new Client(INFO, { versionNegotiation: { mode: "auto" }, capabilities: CAPABILITIES });
  const notifications = [];
  client.fallbackNotificationHandler = async (notification) => void notifications.push(notification);
  await client.connect(TRANSPORTS[transport]());
  const left = [...answers];
  const session = createTaskSessionFromClient(client, {
    endpointId: `tidegate-${transport}`,
    rawDispatch: transport === "http" ? overHttp : beside(client.transport),
    v2RequestFraming: { protocolVersion: REVISION, clientInfo: INFO, clientCapabilities: CAPABILITIES },
    onInputRequest: async () => left.shift(),
  });
  return { client, session, notifications };
}

const settle = (execution) => withTimeout("the task does not end", () => execution.settle());

/** The result of a task that completed. */
async function resultOf(execution) {
  assert.equal(execution.kind, "task");
  const { outcome } = await settle(execution);
  assert.equal(outcome.status, "completed", JSON.stringify(outcome));
  return outcome.result;
}

async function checkEnds(transport) {
  const { client, session } = await connect(transport);
  await check("a quick call is answered at once", async () => {
    const execution = await session.callTool("list_databases", {});
    assert.equal(execution.kind, "immediate");
    const { outcome } = await settle(execution);
    assert.ok(textsOf(outcome.result)[0].includes("shop"), JSON.stringify(outcome));
  });
  await check("a long query becomes a task, whose result is the one of a direct call", async () => {
    const result = await resultOf(await session.callTool("sql", LONG));
    assert.deepEqual(JSON.parse(textsOf(result)[0]), [{ n: 10_000_000 }]);
  });
  await check("an export becomes a task, and the link in its result can be read", async () => {
    const result = await resultOf(await session.callTool("sql", EXPORT));
    const link = result.content.find(({ type }) => type === "resource_link");
    assert.ok(link, JSON.stringify(result));
    const { contents } = await client.readResource({ uri: link.uri });
    const manifest = JSON.parse(contents[0].text);
    assert.equal(manifest.rows, MEASUREMENTS, JSON.stringify(manifest));
  });
  await check("a failed call is a completed task with the error of the tool", async () => {
    const wrong = { ...EXPORT, sql: "SELECT * FROM oders" };
    const execution = await session.callTool("sql", wrong);
    const { outcome } = await settle(execution);
    assert.ok(outcome.result.isError && textsOf(outcome.result)[0].includes("orders"), JSON.stringify(outcome));
  });
  await check("a cancelled task has that status, and its job ends", async () => {
    const execution = await session.callTool("sql", ENDLESS);
    assert.equal(execution.kind, "task");
    await execution.cancel();
    await withTimeout("the task does not stop", async () => {
      while ((await session.task(execution.handle.taskId).snapshot()).status === "working");
    });
    assert.equal((await session.task(execution.handle.taskId).snapshot()).status, "cancelled");
    const jobs = JSON.parse(textsOf(await client.callTool({ name: "list_jobs", arguments: {} }))[0]);
    assert.ok(!jobs.some(({ target, status }) => target === "sql" && status === "running"), JSON.stringify(jobs));
  });
  await check("an unknown task is an error", async () => {
    const task = session.task(randomUUID());
    await assert.rejects(task.snapshot(), ({ code }) => code === INVALID_PARAMS);
    await assert.rejects(task.cancel(), ({ code }) => code === INVALID_PARAMS);
  });
  await session.close();
  await client.close();
}

async function checkInput(transport) {
  await check("a call with a form becomes a task after the answer", async () => {
    const { client, session } = await connect(transport, [{ action: "accept", content: { customer: "Bob" } }]);
    const result = await resultOf(await session.callTool("orders_of", { delivery: "blocks" }));
    assert.ok(!result.isError && textsOf(result)[0].includes("2"), JSON.stringify(result));
    await session.close();
    await client.close();
  });
}

async function checkNotifications(transport) {
  await check("a listener receives the outcome of a task", async () => {
    const { client, session, notifications } = await connect(transport);
    const execution = await session.callTool("sql", LONG);
    const { taskId } = execution.handle;
    const subscription = await client.listen({ taskIds: [taskId] });
    const result = await resultOf(execution);
    const own = () => notifications.filter(({ method, params }) => method === "notifications/tasks" && params.taskId === taskId);
    await withTimeout("no notification of the end", async () => {
      while (own().at(-1)?.params.status !== "completed") await new Promise((resolve) => setTimeout(resolve, 10));
    });
    assert.deepEqual(own().at(-1).params.result.content, result.content);
    await subscription.close();
    await session.close();
    await client.close();
  });
}

/** Another client of the same principal continues a task. Not over stdio, where each client has its own server. */
async function checkHandoff() {
  await check("a task can be handed to another client", async () => {
    const first = await connect("http");
    const execution = await first.session.callTool("sql", LONG);
    let reference;
    await execution.handoff((handoff) => void (reference = JSON.stringify(handoff)));
    // Closing its session at once would cancel the task.
    await first.client.close();
    const second = await connect("http");
    const result = await resultOf(await second.session.resumeTask(JSON.parse(reference)));
    assert.deepEqual(JSON.parse(textsOf(result)[0]), [{ n: 10_000_000 }]);
    await second.session.close();
    await second.client.close();
  });
}

for (const transport of Object.keys(TRANSPORTS)) {
  under(`ext-tasks ${transport}`);
  await check("it completes", () => checkEnds(transport));
  await checkInput(transport);
  await checkNotifications(transport);
}
await checkHandoff();
finish();
