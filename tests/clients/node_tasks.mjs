// npm `@modelcontextprotocol/ext-tasks` over `@modelcontextprotocol/client`: calls that become tasks.
//
// Runs under `with_server.py`.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { ADDRESSES, check, COMMAND, finish, imported, textsOf, under, withinReason } from "./node_checks.mjs";

const { Client, StreamableHTTPClientTransport } = await imported("@modelcontextprotocol/client/dist/index.mjs");
const { StdioClientTransport } = await imported("@modelcontextprotocol/client/dist/stdio.mjs");
const { createTaskSessionFromClient } = await imported("@modelcontextprotocol/ext-tasks/dist/client/index.js");

const REVISION = "2026-07-28";
const INFO = { name: "tidegate-tests", version: "1.0.0" };
const CAPABILITIES = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };
const INVALID_PARAMS = -32602;

// Neither says a word before its end; the first takes seconds, the second one never ends.
const counted = (limit) => `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c ${limit}) SELECT count(*) AS n FROM c`;
const LONG = { database: "ledger", sql: counted("LIMIT 10000000"), no_cache: true };
const ENDLESS = { database: "ledger", sql: counted(""), no_cache: true };
const EXPORT = { database: "shop", sql: "SELECT * FROM measurements", delivery: "blocks", no_cache: true };
const MEASUREMENTS = 20_000;

let requests = 0;

/** What the package calls raw dispatch: a request as it is, and what comes back as it is. */
const answerOf = (message) =>
  "error" in message ? { kind: "error", error: message.error } : { kind: "result", result: message.result };

/** Over a connection of its own. */
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

/** Over the connection of a client, beside its own requests. */
function beside(transport) {
  const waiting = new Map();
  const toClient = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const answered = "method" in message ? undefined : waiting.get(message.id);
    if (!answered) return toClient(message, extra);
    waiting.delete(message.id);
    answered(answerOf(message));
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

/** A client with its session of tasks; `told` are the status notifications. `answers` are those of its person. */
async function connected(transport, answers = []) {
  const client = new Client(INFO, { versionNegotiation: { mode: "auto" }, capabilities: CAPABILITIES });
  const told = [];
  client.fallbackNotificationHandler = async (notification) => void told.push(notification);
  await client.connect(TRANSPORTS[transport]());
  const left = [...answers];
  const session = createTaskSessionFromClient(client, {
    endpointId: `tidegate-${transport}`,
    rawDispatch: transport === "http" ? overHttp : beside(client.transport),
    v2RequestFraming: { protocolVersion: REVISION, clientInfo: INFO, clientCapabilities: CAPABILITIES },
    onInputRequest: async () => left.shift(),
  });
  return { client, session, told };
}

const settled = (execution) => withinReason("the task does not end", () => execution.settle());

/** The result of a task that ended well. */
async function resultOf(execution) {
  assert.equal(execution.kind, "task");
  const { outcome } = await settled(execution);
  assert.equal(outcome.status, "completed", JSON.stringify(outcome));
  return outcome.result;
}

async function checkEnds(transport) {
  const { client, session } = await connected(transport);
  await check("a call that is quick is answered at once", async () => {
    const execution = await session.callTool("list_databases", {});
    assert.equal(execution.kind, "immediate");
    const { outcome } = await settled(execution);
    assert.ok(textsOf(outcome.result)[0].includes("shop"), JSON.stringify(outcome));
  });
  await check("a long query becomes a task, whose result is the ordinary one", async () => {
    const result = await resultOf(await session.callTool("sql", LONG));
    assert.deepEqual(JSON.parse(textsOf(result)[0]), [{ n: 10_000_000 }]);
  });
  await check("an export becomes a task, and the link in its result is read", async () => {
    const result = await resultOf(await session.callTool("sql", EXPORT));
    const link = result.content.find(({ type }) => type === "resource_link");
    assert.ok(link, JSON.stringify(result));
    const { contents } = await client.readResource({ uri: link.uri });
    const manifest = JSON.parse(contents[0].text);
    assert.equal(manifest.rows, MEASUREMENTS, JSON.stringify(manifest));
  });
  await check("a failed call is a task that completed, with the error of the tool", async () => {
    const wrong = { ...EXPORT, sql: "SELECT * FROM oders" };
    const execution = await session.callTool("sql", wrong);
    const { outcome } = await settled(execution);
    assert.ok(outcome.result.isError && textsOf(outcome.result)[0].includes("orders"), JSON.stringify(outcome));
  });
  await check("a task that is cancelled ends so, and its job with it", async () => {
    const execution = await session.callTool("sql", ENDLESS);
    assert.equal(execution.kind, "task");
    await execution.cancel();
    await withinReason("the task goes on", async () => {
      while ((await session.task(execution.handle.taskId).snapshot()).status === "working");
    });
    assert.equal((await session.task(execution.handle.taskId).snapshot()).status, "cancelled");
    const jobs = JSON.parse(textsOf(await client.callTool({ name: "list_jobs", arguments: {} }))[0]);
    assert.ok(!jobs.some(({ target, status }) => target === "sql" && status === "running"), JSON.stringify(jobs));
  });
  await check("a task that never was is none", async () => {
    const task = session.task(randomUUID());
    await assert.rejects(task.snapshot(), ({ code }) => code === INVALID_PARAMS);
    await assert.rejects(task.cancel(), ({ code }) => code === INVALID_PARAMS);
  });
  await session.close();
  await client.close();
}

async function checkInput(transport) {
  await check("a call that asks first becomes a task when it was answered", async () => {
    const { client, session } = await connected(transport, [{ action: "accept", content: { customer: "Bob" } }]);
    const result = await resultOf(await session.callTool("orders_of", { delivery: "blocks" }));
    assert.ok(!result.isError && textsOf(result)[0].includes("2"), JSON.stringify(result));
    await session.close();
    await client.close();
  });
}

async function checkNotifications(transport) {
  await check("who listens to a task is told how it ends", async () => {
    const { client, session, told } = await connected(transport);
    const execution = await session.callTool("sql", LONG);
    const { taskId } = execution.handle;
    const subscription = await client.listen({ taskIds: [taskId] });
    const result = await resultOf(execution);
    const own = () => told.filter(({ method, params }) => method === "notifications/tasks" && params.taskId === taskId);
    await withinReason("no notification of the end", async () => {
      while (own().at(-1)?.params.status !== "completed") await new Promise((resolve) => setTimeout(resolve, 10));
    });
    assert.deepEqual(own().at(-1).params.result.content, result.content);
    await subscription.close();
    await session.close();
    await client.close();
  });
}

/** Another client, of the same principal, goes on with a task; over standard input and output each has a server of its own. */
async function checkHandedOn() {
  await check("a task is handed on to another client", async () => {
    const first = await connected("http");
    const execution = await first.session.callTool("sql", LONG);
    let reference;
    await execution.handoff((handed) => void (reference = JSON.stringify(handed)));
    // Its session would cancel the task if it was closed at once.
    await first.client.close();
    const second = await connected("http");
    const result = await resultOf(await second.session.resumeTask(JSON.parse(reference)));
    assert.deepEqual(JSON.parse(textsOf(result)[0]), [{ n: 10_000_000 }]);
    await second.session.close();
    await second.client.close();
  });
}

for (const transport of Object.keys(TRANSPORTS)) {
  under(`ext-tasks ${transport}`);
  await check("it comes to its end", () => checkEnds(transport));
  await checkInput(transport);
  await checkNotifications(transport);
}
await checkHandedOn();
finish();
