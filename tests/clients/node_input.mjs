// npm `@modelcontextprotocol/client` with a person behind it: forms that are accepted, declined and cancelled, and a client
// without forms. As a modern client it is asked by rounds of the same call, as a legacy one by requests of the server.
//
// Runs under `with_server.py`.

import assert from "node:assert/strict";
import { check, finish, packages, textsOf, under } from "./node_checks.mjs";
import { ERAS, TRANSPORTS } from "./node_eras.mjs";

const { Client } = packages("@modelcontextprotocol/client");

const REFUND = { name: "refund", arguments: { purchase: 3, amount: 2.5 } };
const MISSING_ABILITY = -32021;
// What a person who does not agree does.
const REFUSALS = {
  "unticks the box": { action: "accept", content: { confirm: false } },
  declines: { action: "decline" },
  "closes the form": { action: "cancel" },
};

/** A client whose person gives `answers`, one after the other; `asked` are the questions. Without answers it has no forms. */
async function connected(transport, era, answers) {
  const capabilities = answers ? { elicitation: { form: {} } } : {};
  const client = new Client({ name: "tidegate-tests", version: "1.0.0" }, { ...ERAS[era], capabilities });
  const asked = [];
  if (answers) {
    const left = [...answers];
    client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params);
      return left.shift();
    });
  }
  await client.connect(TRANSPORTS[transport]());
  return { client, asked };
}

async function checkConsent(transport, era) {
  await check("a call to which its person agrees is answered, and was asked for once", async () => {
    const { client, asked } = await connected(transport, era, [{ action: "accept", content: { confirm: true } }]);
    const result = await client.callTool(REFUND);
    assert.deepEqual(JSON.parse(textsOf(result)[0]), [{ id: 3, refunded: 2.5 }]);
    assert.deepEqual(asked.map(({ message }) => message), ["Refund 2.5 for order 3?"]);
    await client.close();
  });
  for (const [what, answer] of Object.entries(REFUSALS)) {
    await check(`nothing is done when the person ${what}`, async () => {
      const { client, asked } = await connected(transport, era, [answer]);
      const result = await client.callTool(REFUND);
      assert.ok(result.isError && textsOf(result)[0].includes("nothing was done"), JSON.stringify(result));
      assert.equal(asked.length, 1);
      await client.close();
    });
  }
}

async function checkParameters(transport, era) {
  await check("a parameter that was left out is asked for", async () => {
    const { client, asked } = await connected(transport, era, [{ action: "accept", content: { customer: "Ann" } }]);
    const result = await client.callTool({ name: "orders_of", arguments: {} });
    assert.ok(!result.isError, JSON.stringify(result));
    assert.deepEqual(JSON.parse(textsOf(result)[0]).slice(0, 2), [{ id: 1 }, { id: 3 }]);
    assert.equal(asked.length, 1);
    assert.ok("customer" in asked[0].requestedSchema.properties, JSON.stringify(asked));
    await client.close();
  });
}

async function checkWithoutForms(transport, era) {
  await check("without forms the call is refused, with what was missing", async () => {
    const { client } = await connected(transport, era);
    if (era === "legacy") {
      const result = await client.callTool(REFUND);
      assert.ok(result.isError && textsOf(result)[0].includes("elicitation"), JSON.stringify(result));
    } else {
      await assert.rejects(client.callTool(REFUND), (error) => {
        assert.equal(error.code, MISSING_ABILITY, String(error));
        assert.ok("elicitation" in error.data.requiredCapabilities, JSON.stringify(error.data));
        return true;
      });
    }
    const result = await client.callTool({ name: "orders_of", arguments: {} });
    assert.ok(result.isError && textsOf(result)[0].includes("customer"), JSON.stringify(result));
    await client.close();
  });
}

for (const transport of Object.keys(TRANSPORTS)) {
  for (const era of Object.keys(ERAS)) {
    under(`node input ${transport} ${era}`);
    await checkConsent(transport, era);
    await checkParameters(transport, era);
    await checkWithoutForms(transport, era);
  }
}
finish();
