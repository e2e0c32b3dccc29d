// npm `@modelcontextprotocol/client` with a user: forms that are accepted, declined and cancelled, and a client
// without forms. A modern client receives input requests in the result of a call, a legacy one as requests of the server.
//
// Runs under `with_server.py`.

import assert from "node:assert/strict";
import { check, finish, packages, textsOf, under } from "./node_checks.mjs";
import { ERAS, TRANSPORTS } from "./node_eras.mjs";

const { Client } = packages("@modelcontextprotocol/client");

const REFUND = { name: "refund", arguments: { purchase: 3, amount: 2.5 } };
const MISSING_CAPABILITY = -32021;
// The ways in which a user refuses.
const REFUSALS = {
  "unticks the box": { action: "accept", content: { confirm: false } },
  declines: { action: "decline" },
  "closes the form": { action: "cancel" },
};

/** A client whose user gives `answers` in this order; `forms` are the received forms. Without answers it does not support forms. */
async function connect(transport, era, answers) {
  const capabilities = answers ? { elicitation: { form: {} } } : {};
  const client = new Client({ name: "tidegate-tests", version: "1.0.0" }, { ...ERAS[era], capabilities });
  const forms = [];
  if (answers) {
    const left = [...answers];
    client.setRequestHandler("elicitation/create", ({ params }) => {
      forms.push(params);
      return left.shift();
    });
  }
  await client.connect(TRANSPORTS[transport]());
  return { client, forms };
}

async function checkConsent(transport, era) {
  await check("a call that its user confirms is answered, after one form", async () => {
    const { client, forms } = await connect(transport, era, [{ action: "accept", content: { confirm: true } }]);
    const result = await client.callTool(REFUND);
    assert.deepEqual(JSON.parse(textsOf(result)[0]), [{ id: 3, refunded: 2.5 }]);
    assert.deepEqual(forms.map(({ message }) => message), ["Refund 2.5 for order 3?"]);
    await client.close();
  });
  for (const [what, answer] of Object.entries(REFUSALS)) {
    await check(`nothing is done when the user ${what}`, async () => {
      const { client, forms } = await connect(transport, era, [answer]);
      const result = await client.callTool(REFUND);
      assert.ok(result.isError && textsOf(result)[0].includes("nothing was done"), JSON.stringify(result));
      assert.equal(forms.length, 1);
      await client.close();
    });
  }
}

async function checkParameters(transport, era) {
  await check("a missing parameter is requested by a form", async () => {
    const { client, forms } = await connect(transport, era, [{ action: "accept", content: { customer: "Ann" } }]);
    const result = await client.callTool({ name: "orders_of", arguments: {} });
    assert.ok(!result.isError, JSON.stringify(result));
    assert.deepEqual(JSON.parse(textsOf(result)[0]).slice(0, 2), [{ id: 1 }, { id: 3 }]);
    assert.equal(forms.length, 1);
    assert.ok("customer" in forms[0].requestedSchema.properties, JSON.stringify(forms));
    await client.close();
  });
}

async function checkWithoutForms(transport, era) {
  await check("without forms the call is rejected, with the missing capability", async () => {
    const { client } = await connect(transport, era);
    if (era === "legacy") {
      const result = await client.callTool(REFUND);
      assert.ok(result.isError && textsOf(result)[0].includes("elicitation"), JSON.stringify(result));
    } else {
      await assert.rejects(client.callTool(REFUND), (error) => {
        assert.equal(error.code, MISSING_CAPABILITY, String(error));
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
