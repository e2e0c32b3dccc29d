// A third-party identity provider, npm `oidc-provider`, whose tokens the node accepts: valid and invalid tokens, key rotation,
// introspection of opaque tokens, and outages of the provider.
//
// Runs under `with_server.py`, whose configuration it replaces.

import assert from "node:assert/strict";
import { check, finish, under } from "./node_checks.mjs";
import { checkFlows, checkDiscovery } from "./identity_flows.mjs";
import * as node from "./identity_node.mjs";
import { IdentityProvider, IMPORTER, newKey, STRANGER } from "./identity_provider.mjs";

const { RESOURCE } = node;
const SCOPE = "orders:read";
const ELSEWHERE = "https://other.example.com/mcp";
const EXPIRED_SECONDS = 5;

const decoded = (part) => JSON.parse(Buffer.from(part, "base64url"));
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const headerOf = (token) => decoded(token.split(".")[0]);

async function checkStart(provider) {
  await check("an open node requires a token as soon as its configuration names the provider", async () => {
    assert.equal((await node.overMcp()).status, 200);
    node.configure(node.bySignature(provider));
    await node.waitUntil("the node stays open", async () => (await node.overMcp()).status === 401);
    for (const call of Object.values(node.ENDPOINTS)) {
      const { status, challenge } = await call();
      assert.deepEqual([status, challenge], [401, node.MISSING]);
    }
  });
  await check("its metadata contain the provider", async () => {
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
  await check("the provider's token follows RFC 9068 and has this node as its audience", () => {
    assert.deepEqual(headerOf(token), { alg: "ES256", typ: "at+jwt", kid: "first" });
    const { iss, aud, sub, scope } = decoded(token.split(".")[1]);
    assert.deepEqual([iss, aud, sub, scope], [provider.issuer, RESOURCE, IMPORTER.client_id, SCOPE]);
  });
  for (const [endpoint, call] of Object.entries(node.ENDPOINTS)) {
    await check(`${endpoint}: its claims give a role, which has access to its tools`, async () => {
      const { status, body } = await call(token);
      assert.equal(status, 200, body.detail);
      const names = node.toolsIn(body).sort();
      assert.deepEqual(names, ["orders_of_tenant", "orders_refund", "self"]);
    });
    await check(`${endpoint}: the tenant receives only its own rows`, async () => {
      assert.deepEqual(node.rowsOf(await call(token, "orders_of_tenant")), [{ id: 1 }, { id: 3 }]);
    });
    await check(`${endpoint}: a call without a required scope is rejected with the scope's name, and succeeds with the scope`, async () => {
      const { status, challenge } = await call(token, "orders_refund");
      assert.equal(status, 403);
      const named = 'error="insufficient_scope", scope="orders:refund"';
      assert.equal(challenge, `Bearer realm="tidegate", ${named}, resource_metadata="${node.METADATA}"`);
      const more = await provider.token(IMPORTER, { resource: RESOURCE, scope: "orders:read orders:refund" });
      assert.deepEqual(node.rowsOf(await call(more, "orders_refund")), [{ refunded: 1 }]);
    });
    await check(`${endpoint}: a token without these claims is accepted, and has access to no tools`, async () => {
      const { status, body } = await call(await provider.token(STRANGER, { resource: RESOURCE, scope: SCOPE }));
      assert.equal(status, 200);
      assert.deepEqual(node.toolsIn(body), []);
    });
  }
}

async function checkExpiry(provider, good) {
  await check("a token is accepted until it expires", async () => {
    const short = await provider.token(IMPORTER, { ...good, seconds: EXPIRED_SECONDS });
    await node.assertAccepted(short);
    await node.waitUntil("the token remains valid", async () => !(await node.isAccepted(short)));
    await node.assertRejected(short);
  });
}

/** `key` is that of `provider`. */
async function checkBad(provider, key) {
  const good = { resource: RESOURCE, scope: SCOPE };
  const token = await provider.token(IMPORTER, good);
  const [header, claims, signature] = token.split(".");
  const another = await IdentityProvider.start([key]);
  const impostor = await IdentityProvider.start([newKey("first")], { issuer: provider.issuer });
  const bad = {
    "for another resource": await provider.token(IMPORTER, { ...good, resource: ELSEWHERE }),
    "of another issuer with the same key": await another.token(IMPORTER, good),
    "of an impostor with the same issuer and key id, and another key": await impostor.token(IMPORTER, good),
    "with changed claims": [header, encoded({ ...decoded(claims), tenant: "Bob" }), signature].join("."),
    "with a changed header": [encoded({ alg: "ES256", kid: "first" }), claims, signature].join("."),
    "with the algorithm none": [encoded({ alg: "none", typ: "at+jwt" }), claims, ""].join("."),
    "that is opaque, for this resource": await provider.token(IMPORTER, { ...good, format: "opaque" }),
    "that is opaque, without a resource": await provider.token(IMPORTER),
  };
  await Promise.all([another.close(), impostor.close()]);
  for (const [what, wrong] of Object.entries(bad)) {
    await check(`a token ${what} is rejected with the challenge`, () => node.assertRejected(wrong));
  }
  await checkExpiry(provider, good);
  await check("the valid token is still accepted", () => node.assertAccepted(token));
}

const waitUntilAccepted = (token) => node.waitUntil("the node does not fetch the new key", () => node.isAccepted(token));

async function checkRotation(provider, first) {
  const good = { resource: RESOURCE, scope: SCOPE };
  const [second, third] = [newKey("second"), newKey("third")];
  const before = await provider.token(IMPORTER, good);
  const unused = await provider.token(IMPORTER, good);
  await check("a second key in addition to the first: tokens of both are accepted, used and unused ones", async () => {
    await node.assertAccepted(before);
    provider.restart([first, second]);
    const token = await provider.token(IMPORTER, good);
    assert.equal(headerOf(token).kid, "second");
    await waitUntilAccepted(token);
    for (const accepted of [token, before, unused]) await node.assertAccepted(accepted);
  });
  await check("a third key after a restart, and a key that the node cannot use: only tokens of the third key are accepted", async () => {
    const fromSecond = await provider.token(IMPORTER, good);
    await node.assertAccepted(fromSecond);
    provider.restart([newKey("foreign", "P-521", "ES512"), third]);
    const token = await provider.token(IMPORTER, good);
    assert.equal(headerOf(token).kid, "third");
    await waitUntilAccepted(token);
    await node.assertAccepted(token);
    for (const rejected of [fromSecond, before, unused]) await node.assertRejected(rejected);
  });
  return third;
}

async function checkOutage(provider, key) {
  const good = { resource: RESOURCE, scope: SCOPE };
  const used = await provider.token(IMPORTER, good);
  const unused = await provider.token(IMPORTER, good);
  const unusedUntilLater = await provider.token(IMPORTER, good);
  const next = newKey("next");
  // A replica of the provider signs a token with the key that the provider uses after the outage.
  const replica = await IdentityProvider.start([next], { issuer: provider.issuer });
  const fromNewKey = await replica.token(IMPORTER, good);
  await replica.close();
  await check("during an outage, tokens of known keys are accepted, used and unused ones", async () => {
    await node.assertAccepted(used);
    provider.stop();
    await node.assertAccepted(used);
    await node.assertAccepted(unused);
  });
  await check("during an outage, a token of an unknown key is rejected as invalid", async () => {
    await node.waitUntil("the node does not fetch the key", async () => {
      await node.assertRejected(fromNewKey);
      return provider.refusedConnections;
    });
    await node.assertRejected(fromNewKey);
  });
  await check("other tokens are still accepted after the failed fetch of the key", async () => {
    for (const accepted of [used, unused, unusedUntilLater]) await node.assertAccepted(accepted);
  });
  await check("after the outage, tokens of the new key are accepted", async () => {
    provider.restart([key, next]);
    await waitUntilAccepted(fromNewKey);
    for (const accepted of [fromNewKey, used, unused]) await node.assertAccepted(accepted);
  });
}

/** Issuers as real providers use them: with a path, which has three places for metadata, and with a trailing slash. */
async function checkNames() {
  for (const path of ["/realms/one", "/"]) {
    await check(`a provider at ${path} is discovered by the node and by a client`, async () => {
      const provider = await IdentityProvider.start([newKey("first")], { path });
      node.configure(node.bySignature(provider));
      const token = await provider.token(IMPORTER, { resource: RESOURCE, scope: SCOPE });
      await node.waitUntil("the provider is not discovered", () => node.isAccepted(token));
      await checkDiscovery(provider);
      await provider.close();
    });
  }
}

async function checkIntrospection(provider) {
  const good = { resource: RESOURCE, scope: SCOPE, format: "opaque" };
  const [token, revoked] = [await provider.token(IMPORTER, good), await provider.token(IMPORTER, good)];
  await check("opaque tokens are accepted as soon as the configuration has an introspection endpoint", async () => {
    await node.assertRejected(token);
    node.configure(node.byIntrospection(provider));
    await node.waitUntil("no opaque token is accepted", () => node.isAccepted(token));
    await node.assertAccepted(revoked);
  });
  await provider.revoke(IMPORTER, revoked);
  await check("the introspection response gives role, tenant and scopes", async () => {
    for (const call of Object.values(node.ENDPOINTS)) {
      assert.deepEqual(node.rowsOf(await call(token, "orders_of_tenant")), [{ id: 1 }, { id: 3 }]);
      assert.equal((await call(token, "orders_refund")).status, 403);
    }
  });
  const another = await IdentityProvider.start([newKey("another")]);
  const bad = {
    "for another resource": await provider.token(IMPORTER, { ...good, resource: ELSEWHERE }),
    "without a resource": await provider.token(IMPORTER),
    "of another issuer": await another.token(IMPORTER, good),
    "that is signed, for which introspection is not used": await provider.token(IMPORTER, { ...good, format: "jwt" }),
    "that is no token": "garbage",
  };
  await another.close();
  for (const [what, wrong] of Object.entries(bad)) {
    await check(`a token ${what} is rejected`, () => node.assertRejected(wrong));
  }
  await checkExpiry(provider, good);
  await check("during an outage, recently used tokens are accepted, and others are rejected as invalid", async () => {
    const unused = await provider.token(IMPORTER, good);
    provider.stop();
    await node.assertAccepted(token);
    await node.assertRejected(unused);
    provider.resume();
    await node.assertAccepted(unused);
  });
  await check("a revoked token is rejected after its cached introspection has expired; others are accepted", async () => {
    await node.waitUntil("the token remains valid", async () => !(await node.isAccepted(revoked)));
    await node.assertRejected(revoked);
    await node.assertAccepted(token);
  });
}

const keys = [newKey("first")];
const provider = await IdentityProvider.start(keys);
under("identity provider");
await checkStart(provider);
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
