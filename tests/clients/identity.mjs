// An identity provider that nobody of us wrote, npm `oidc-provider`, whose tokens the node takes: what each proves, what is
// wrong with others, new keys, questions about opaque tokens, and the time while the provider is away.
//
// Runs under `with_server.py`, whose configuration it replaces.

import assert from "node:assert/strict";
import { check, finish, under } from "./node_checks.mjs";
import { checkFlows, checkFound } from "./identity_flows.mjs";
import * as node from "./identity_node.mjs";
import { IdentityProvider, IMPORTER, newKey, STRANGER } from "./identity_provider.mjs";

const { RESOURCE } = node;
const SCOPE = "orders:read";
const ELSEWHERE = "https://other.example.com/mcp";
const EXPIRED_SECONDS = 5;

const decoded = (part) => JSON.parse(Buffer.from(part, "base64url"));
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const headerOf = (token) => decoded(token.split(".")[0]);

async function checkBegin(provider) {
  await check("an open node asks everybody who it is as soon as its configuration names the provider", async () => {
    assert.equal((await node.overMcp()).status, 200);
    node.configure(node.bySignature(provider));
    await node.until("the node stays open", async () => (await node.overMcp()).status === 401);
    for (const ask of Object.values(node.DOORS)) {
      const { status, challenge } = await ask();
      assert.deepEqual([status, challenge], [401, node.MISSING]);
    }
  });
  await check("its metadata name the provider", async () => {
    const response = await fetch(node.METADATA);
    assert.deepEqual(await response.json(), {
      resource: RESOURCE,
      authorization_servers: [provider.issuer],
      bearer_methods_supported: ["header"],
      scopes_supported: [SCOPE],
    });
  });
}

async function checkGood(provider) {
  const token = await provider.token(IMPORTER, { resource: RESOURCE, scope: SCOPE });
  await check("the provider's token is one of RFC 9068, for this node", () => {
    assert.deepEqual(headerOf(token), { alg: "ES256", typ: "at+jwt", kid: "first" });
    const { iss, aud, sub, scope } = decoded(token.split(".")[1]);
    assert.deepEqual([iss, aud, sub, scope], [provider.issuer, RESOURCE, IMPORTER.client_id, SCOPE]);
  });
  for (const [door, ask] of Object.entries(node.DOORS)) {
    await check(`${door}: its claims give a role, which reaches its tools`, async () => {
      const { status, body } = await ask(token);
      assert.equal(status, 200, body.detail);
      const names = node.toolsIn(body).sort();
      assert.deepEqual(names, ["orders_of_tenant", "orders_refund", "self"]);
    });
    await check(`${door}: its tenant sees its own rows`, async () => {
      assert.deepEqual(node.rowsOf(await ask(token, "orders_of_tenant")), [{ id: 1 }, { id: 3 }]);
    });
    await check(`${door}: a call that needs a scope more is refused with its name, and answered with it`, async () => {
      const { status, challenge } = await ask(token, "orders_refund");
      assert.equal(status, 403);
      const named = 'error="insufficient_scope", scope="orders:refund"';
      assert.equal(challenge, `Bearer realm="tidegate", ${named}, resource_metadata="${node.METADATA}"`);
      const more = await provider.token(IMPORTER, { resource: RESOURCE, scope: "orders:read orders:refund" });
      assert.deepEqual(node.rowsOf(await ask(more, "orders_refund")), [{ refunded: 1 }]);
    });
    await check(`${door}: a token without these claims is taken, and reaches nothing`, async () => {
      const { status, body } = await ask(await provider.token(STRANGER, { resource: RESOURCE, scope: SCOPE }));
      assert.equal(status, 200);
      assert.deepEqual(node.toolsIn(body), []);
    });
  }
}

async function checkExpiry(provider, good) {
  await check("a token is taken until it expires", async () => {
    const short = await provider.token(IMPORTER, { ...good, seconds: EXPIRED_SECONDS });
    await node.assertLetIn(short);
    await node.until("it lives on", async () => !(await node.isLetIn(short)));
    await node.assertRefused(short);
  });
}

/** `key` is that of `provider`. */
async function checkBad(provider, key) {
  const good = { resource: RESOURCE, scope: SCOPE };
  const token = await provider.token(IMPORTER, good);
  const [header, claims, signature] = token.split(".");
  const another = await IdentityProvider.start([key]);
  const claimed = await IdentityProvider.start([newKey("first")], { issuer: provider.issuer });
  const bad = {
    "for another resource": await provider.token(IMPORTER, { ...good, resource: ELSEWHERE }),
    "of another issuer with the same key": await another.token(IMPORTER, good),
    "of who says that it is the issuer, with another key of that name": await claimed.token(IMPORTER, good),
    "with other claims than were signed": [header, encoded({ ...decoded(claims), tenant: "Bob" }), signature].join("."),
    "with another header than was signed": [encoded({ alg: "ES256", kid: "first" }), claims, signature].join("."),
    "said to be unsigned": [encoded({ alg: "none", typ: "at+jwt" }), claims, ""].join("."),
    "that is opaque, for this resource": await provider.token(IMPORTER, { ...good, format: "opaque" }),
    "that is opaque, for none": await provider.token(IMPORTER),
  };
  await Promise.all([another.close(), claimed.close()]);
  for (const [what, wrong] of Object.entries(bad)) {
    await check(`a token ${what} is refused with the way in`, () => node.assertRefused(wrong));
  }
  await checkExpiry(provider, good);
  await check("all the while the good one is taken", () => node.assertLetIn(token));
}

const becomesGood = (token) => node.until("the new key is not looked for", () => node.isLetIn(token));

async function checkRotation(provider, first) {
  const good = { resource: RESOURCE, scope: SCOPE };
  const [second, third] = [newKey("second"), newKey("third")];
  const before = await provider.token(IMPORTER, good);
  const unseen = await provider.token(IMPORTER, good);
  await check("a second key beside the first: tokens of either are taken, those already seen and others", async () => {
    await node.assertLetIn(before);
    provider.restart([first, second]);
    const token = await provider.token(IMPORTER, good);
    assert.equal(headerOf(token).kid, "second");
    await becomesGood(token);
    for (const taken of [token, before, unseen]) await node.assertLetIn(taken);
  });
  await check("after a restart a third key, beside one that the node cannot use: its tokens are taken, and those of the others no more", async () => {
    const gone = await provider.token(IMPORTER, good);
    await node.assertLetIn(gone);
    provider.restart([newKey("foreign", "P-521", "ES512"), third]);
    const token = await provider.token(IMPORTER, good);
    assert.equal(headerOf(token).kid, "third");
    await becomesGood(token);
    await node.assertLetIn(token);
    for (const refused of [gone, before, unseen]) await node.assertRefused(refused);
  });
  return third;
}

async function checkOutage(provider, key) {
  const good = { resource: RESOURCE, scope: SCOPE };
  const seen = await provider.token(IMPORTER, good);
  const unseen = await provider.token(IMPORTER, good);
  const late = await provider.token(IMPORTER, good);
  const next = newKey("next");
  // What will be signed after the outage exists already: the same provider in another place.
  const replica = await IdentityProvider.start([next], { issuer: provider.issuer });
  const early = await replica.token(IMPORTER, good);
  await replica.close();
  await check("while the provider is away, tokens of known keys are taken, those already seen and others", async () => {
    await node.assertLetIn(seen);
    provider.stop();
    await node.assertLetIn(seen);
    await node.assertLetIn(unseen);
  });
  await check("while the provider is away, a token of an unknown key is refused as a wrong one", async () => {
    await node.until("the node does not look for the key", async () => {
      await node.assertRefused(early);
      return provider.missed;
    });
    await node.assertRefused(early);
  });
  await check("that its key was not found costs no other token anything", async () => {
    for (const taken of [seen, unseen, late]) await node.assertLetIn(taken);
  });
  await check("when the provider is back with a new key, tokens of it are taken", async () => {
    provider.restart([key, next]);
    await becomesGood(early);
    for (const taken of [early, seen, unseen]) await node.assertLetIn(taken);
  });
}

/** Names of providers as they are out there: with a path, where metadata lie in three places, and with a slash at the end. */
async function checkNames() {
  for (const path of ["/realms/one", "/"]) {
    await check(`a provider at ${path} is found by the node, and by a client`, async () => {
      const provider = await IdentityProvider.start([newKey("first")], { path });
      node.configure(node.bySignature(provider));
      const token = await provider.token(IMPORTER, { resource: RESOURCE, scope: SCOPE });
      await node.until("the provider is not found", () => node.isLetIn(token));
      await checkFound(provider);
      await provider.close();
    });
  }
}

async function checkIntrospection(provider) {
  const good = { resource: RESOURCE, scope: SCOPE, format: "opaque" };
  const [token, revoked] = [await provider.token(IMPORTER, good), await provider.token(IMPORTER, good)];
  await check("opaque tokens are taken as soon as the configuration says where to ask about them", async () => {
    await node.assertRefused(token);
    node.configure(node.byIntrospection(provider));
    await node.until("no opaque token is taken", () => node.isLetIn(token));
    await node.assertLetIn(revoked);
  });
  await provider.revoke(IMPORTER, revoked);
  await check("what the provider tells gives role, tenant and scopes", async () => {
    for (const ask of Object.values(node.DOORS)) {
      assert.deepEqual(node.rowsOf(await ask(token, "orders_of_tenant")), [{ id: 1 }, { id: 3 }]);
      assert.equal((await ask(token, "orders_refund")).status, 403);
    }
  });
  const another = await IdentityProvider.start([newKey("another")]);
  const bad = {
    "for another resource": await provider.token(IMPORTER, { ...good, resource: ELSEWHERE }),
    "for none": await provider.token(IMPORTER),
    "of another issuer": await another.token(IMPORTER, good),
    "that is signed, about which the provider is not to be asked": await provider.token(IMPORTER, { ...good, format: "jwt" }),
    "of no one": "garbage",
  };
  await another.close();
  for (const [what, wrong] of Object.entries(bad)) {
    await check(`a token ${what} is refused`, () => node.assertRefused(wrong));
  }
  await checkExpiry(provider, good);
  await check("while the provider is away, tokens seen a moment ago are taken, and others refused as wrong ones", async () => {
    const unseen = await provider.token(IMPORTER, good);
    provider.stop();
    await node.assertLetIn(token);
    await node.assertRefused(unseen);
    provider.resume();
    await node.assertLetIn(unseen);
  });
  await check("a revoked token is refused when what was known of it is forgotten, and no other is", async () => {
    await node.until("it lives on", async () => !(await node.isLetIn(revoked)));
    await node.assertRefused(revoked);
    await node.assertLetIn(token);
  });
}

const keys = [newKey("first")];
const provider = await IdentityProvider.start(keys);
under("identity provider");
await checkBegin(provider);
await checkGood(provider);
await checkBad(provider, keys[0]);
await checkFlows(provider);
under("identity provider, keys");
await checkOutage(provider, await checkRotation(provider, keys[0]));
under("identity provider, names");
await checkNames();
under("identity provider, introspection");
await checkIntrospection(provider);
await provider.close();
finish();
