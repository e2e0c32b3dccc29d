// npm `@modelcontextprotocol/client` as a client that listens: `subscriptions/listen` as a modern one, `resources/subscribe` as a
// legacy one. The tests change the files on disk.
//
// Runs under `with_server.py`; TIDEGATE_PYTHON changes the files.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { check, finish, packages, under, withTimeout } from "./node_checks.mjs";
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

/** A client, and a function that waits for the next notification of a method, including earlier ones. */
async function connect(transport, era) {
  const client = new Client({ name: "tidegate-tests", version: "1.0.0" }, ERAS[era]);
  const received = [];
  let wake = () => {};
  for (const method of [TOOLS_CHANGED, RESOURCES_CHANGED, UPDATED]) {
    client.setNotificationHandler(method, (notification) => {
      received.push(notification);
      wake();
    });
  }
  const nextNotification = (method) =>
    withTimeout(`no ${method}`, async () => {
      for (;;) {
        const at = received.findIndex((notification) => notification.method === method);
        if (at >= 0) return received.splice(at, 1)[0];
        await new Promise((resolve) => (wake = resolve));
      }
    });
  await client.connect(TRANSPORTS[transport]());
  // This server may still be reading what the client before changed.
  await withTimeout("the last change does not arrive", async () => {
    while (tools > 0 && !(await namesOf(client)).includes(`node_${tools - 1}`));
  });
  received.length = 0;
  const { resources } = await client.listResources();
  const table = resources.find(({ uri }) => uri.includes("orders")).uri;
  return { client, received, nextNotification, table };
}

const namesOf = async (client) => (await client.listTools(undefined, { cacheMode: "refresh" })).tools.map(({ name }) => name);

async function checkModern(transport) {
  const { client, received, nextNotification, table } = await connect(transport, "modern");
  await check("the honoured filter omits resources that do not exist", async () => {
    const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [table, UNKNOWN] });
    assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true, resourceSubscriptions: [table] });
    await subscription.close();
    assert.equal(await subscription.closed, "local");
  });
  await check("a change of the configuration is notified", async () => {
    const subscription = await client.listen({ toolsListChanged: true });
    const name = newTool();
    await nextNotification(TOOLS_CHANGED);
    assert.ok((await namesOf(client)).includes(name));
    await subscription.close();
  });
  await check("a changed file of a table is notified, and nothing else", async () => {
    const subscription = await client.listen({ resourceSubscriptions: [table] });
    received.length = 0;
    addRow();
    assert.equal((await nextNotification(UPDATED)).params.uri, table);
    assert.deepEqual(received, []);
    await subscription.close();
  });
  await check("the connection is still usable after the last subscription", async () => {
    assert.ok((await namesOf(client)).includes("list_databases"));
  });
  await client.close();
}

async function checkLegacy(transport) {
  const { client, received, nextNotification, table } = await connect(transport, "legacy");
  await check("a change of the configuration is notified", async () => {
    const name = newTool();
    await nextNotification(TOOLS_CHANGED);
    await nextNotification(RESOURCES_CHANGED);
    assert.ok((await namesOf(client)).includes(name));
  });
  await check("a change of a subscribed table is notified", async () => {
    await client.subscribeResource({ uri: table });
    addRow();
    assert.equal((await nextNotification(UPDATED)).params.uri, table);
  });
  await check("a change after the end of the subscription is not notified", async () => {
    await client.unsubscribeResource({ uri: table });
    received.length = 0;
    addRow();
    // A new configuration counts as a change of each resource. The notifications of the first change are complete when
    // those of the second one arrive.
    for (let round = 0; round < 2; round += 1) {
      newTool();
      await nextNotification(TOOLS_CHANGED);
    }
    assert.ok(received.every(({ method }) => method !== UPDATED), JSON.stringify(received));
  });
  await check("a resource that does not exist cannot be subscribed to", async () => {
    await assert.rejects(client.subscribeResource({ uri: UNKNOWN }), ({ code }) => [-32602, -32002].includes(code));
  });
  await client.close();
}

for (const transport of Object.keys(TRANSPORTS)) {
  under(`node listening ${transport} modern`);
  await check("it completes", () => checkModern(transport));
  under(`node listening ${transport} legacy`);
  await check("it completes", () => checkLegacy(transport));
}
finish();
