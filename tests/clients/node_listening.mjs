// npm `@modelcontextprotocol/client` as a client that listens: `subscriptions/listen` as a modern one, `resources/subscribe` as a
// legacy one. What it hears of is changed on disk.
//
// Runs under `with_server.py`; TIDEGATE_PYTHON changes the files.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { check, finish, packages, under, withinReason } from "./node_checks.mjs";
import { ERAS, TRANSPORTS } from "./node_eras.mjs";

const { Client } = packages("@modelcontextprotocol/client");

const UNKNOWN = "tidegate://nowhere/nothing";
const TOOLS_CHANGED = "notifications/tools/list_changed";
const RESOURCES_CHANGED = "notifications/resources/list_changed";
const UPDATED = "notifications/resources/updated";
let tools = 0;

const change = (...what) => execFileSync(process.env.TIDEGATE_PYTHON, [join(import.meta.dirname, "changes.py"), ...what]);
const addRow = () => change("table");

function newTool() {
  const name = `node_${tools++}`;
  change("tool", name);
  return name;
}

/** A client, and a function that waits for the next notification of a method; what came before counts, too. */
async function connected(transport, era) {
  const client = new Client({ name: "tidegate-tests", version: "1.0.0" }, ERAS[era]);
  const came = [];
  let wake = () => {};
  for (const method of [TOOLS_CHANGED, RESOURCES_CHANGED, UPDATED]) {
    client.setNotificationHandler(method, (notification) => {
      came.push(notification);
      wake();
    });
  }
  const heard = (method) =>
    withinReason(`no ${method}`, async () => {
      for (;;) {
        const at = came.findIndex((notification) => notification.method === method);
        if (at >= 0) return came.splice(at, 1)[0];
        await new Promise((resolve) => (wake = resolve));
      }
    });
  await client.connect(TRANSPORTS[transport]());
  const { resources } = await client.listResources();
  const table = resources.find(({ uri }) => uri.includes("orders")).uri;
  return { client, came, heard, table };
}

const namesOf = async (client) => (await client.listTools(undefined, { cacheMode: "refresh" })).tools.map(({ name }) => name);

async function checkModern(transport) {
  const { client, came, heard, table } = await connected(transport, "modern");
  await check("what does not exist is left out of what is honoured", async () => {
    const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [table, UNKNOWN] });
    assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true, resourceSubscriptions: [table] });
    await subscription.close();
    assert.equal(await subscription.closed, "local");
  });
  await check("a change of the configuration is heard", async () => {
    const subscription = await client.listen({ toolsListChanged: true });
    const name = newTool();
    await heard(TOOLS_CHANGED);
    assert.ok((await namesOf(client)).includes(name));
    await subscription.close();
  });
  await check("a changed file of a table is heard, and nothing else", async () => {
    const subscription = await client.listen({ resourceSubscriptions: [table] });
    came.length = 0;
    addRow();
    assert.equal((await heard(UPDATED)).params.uri, table);
    assert.deepEqual(came, []);
    await subscription.close();
  });
  await check("the connection lives on when nobody listens any more", async () => {
    assert.ok((await namesOf(client)).includes("list_databases"));
  });
  await client.close();
}

async function checkLegacy(transport) {
  const { client, came, heard, table } = await connected(transport, "legacy");
  await check("a change of the configuration is heard", async () => {
    const name = newTool();
    await heard(TOOLS_CHANGED);
    await heard(RESOURCES_CHANGED);
    assert.ok((await namesOf(client)).includes(name));
  });
  await check("a table that is subscribed to is heard of", async () => {
    await client.subscribeResource({ uri: table });
    addRow();
    assert.equal((await heard(UPDATED)).params.uri, table);
  });
  await check("one that is subscribed to no more is not", async () => {
    await client.unsubscribeResource({ uri: table });
    came.length = 0;
    addRow();
    // A new configuration counts as a change of each resource. What there is to say of the first one is said when the
    // second one is.
    for (let round = 0; round < 2; round += 1) {
      newTool();
      await heard(TOOLS_CHANGED);
    }
    assert.ok(came.every(({ method }) => method !== UPDATED), JSON.stringify(came));
  });
  await check("what does not exist cannot be subscribed to", async () => {
    await assert.rejects(client.subscribeResource({ uri: UNKNOWN }), ({ code }) => [-32602, -32002].includes(code));
  });
  await client.close();
}

for (const transport of Object.keys(TRANSPORTS)) {
  under(`node listening ${transport} modern`);
  await check("it comes to its end", () => checkModern(transport));
  under(`node listening ${transport} legacy`);
  await check("it comes to its end", () => checkLegacy(transport));
}
finish();
