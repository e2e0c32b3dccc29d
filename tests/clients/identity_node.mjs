// The node that trusts an identity provider: its configuration, which is replaced while it runs, and calls with a token.

import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ADDRESSES, withTimeout } from "./node_checks.mjs";
import { NODE } from "./identity_provider.mjs";

const { TIDEGATE_CONFIGURATION, TIDEGATE_SHOP } = process.env;
const REVISION = "2026-07-28";
const POLL_MS = 100;
/** The scope in the challenge. */
const SCOPE = "orders:read";

/** The audience of tokens. */
export const RESOURCE = ADDRESSES.http.href;
/** The address of its protected resource metadata (RFC 9728). */
export const METADATA = new URL(`/.well-known/oauth-protected-resource${ADDRESSES.http.pathname}`, RESOURCE).href;

/** The challenges for a request without a token, and with an invalid one. */
export const MISSING = `Bearer realm="tidegate", scope="${SCOPE}", resource_metadata="${METADATA}"`;
export const INVALID = MISSING.replace(",", ', error="invalid_token",');

const tool = (name, sql, scope) => ({ name, description: name, database: "shop", sql, ...(scope && { scopes: [scope] }) });

const configuration = (tokens) => ({
  databases: [
    {
      name: "shop",
      files: TIDEGATE_SHOP,
      policies: [
        { table: "orders", rows: "customer = :tenant" },
        { table: "customers", rows: "name = :subject" },
      ],
    },
  ],
  tools: [
    tool("orders_of_tenant", "SELECT id FROM orders ORDER BY id", SCOPE),
    tool("orders_refund", "SELECT 1 AS refunded", "orders:refund"),
    tool("self", "SELECT name FROM customers"),
  ],
  toolsets: { desk: ["orders_*", "self"] },
  roles: [{ name: "clerk", toolsets: ["desk"], databases: ["shop"], claims: { groups: "clerks" } }],
  auth: {
    tokens: { audience: RESOURCE, tenant_claim: "tenant", leeway: "1s", ...tokens },
    oauth: { resource: RESOURCE, scopes: [SCOPE] },
  },
});

/** The node discovers the keys of the provider by its issuer. */
export const bySignature = ({ issuer }) => configuration({ issuer, discovery: true, algorithms: ["ES256"] });

/** The node introspects each token at the provider. */
export const byIntrospection = ({ issuer, url }) =>
  configuration({ issuer, introspection: { ...NODE, url: `${url}/token/introspection` } });

/** Replaces the configuration atomically, as an editor does; the node reloads it. */
export function configure(content) {
  const unfinished = join(TIDEGATE_SHOP, "..", "tidegate.unfinished");
  // JSON is valid YAML.
  writeFileSync(unfinished, JSON.stringify(content));
  renameSync(unfinished, TIDEGATE_CONFIGURATION);
}

/** Calls `probe` until its result is true, and returns this result. */
export function waitUntil(failure, probe) {
  return withTimeout(failure, async () => {
    for (;;) {
      const result = await probe();
      if (result) return result;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  });
}

const bearer = (token) => token && { Authorization: `Bearer ${token}` };

/** Status, challenge and answer. */
async function answerTo(url, headers, content) {
  const response = await fetch(url, {
    method: content ? "POST" : "GET",
    headers: { ...headers, ...(content && { "Content-Type": "application/json" }) },
    body: content && JSON.stringify(content),
  });
  return { status: response.status, challenge: response.headers.get("WWW-Authenticate"), body: await response.json() };
}

/** The response to a call over MCP. */
export function overMcp(token, name) {
  const method = name ? "tools/call" : "tools/list";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": { name: "tidegate-tests", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const headers = {
    ...bearer(token),
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": REVISION,
    "Mcp-Method": method,
    ...(name && { "Mcp-Name": name }),
  };
  const params = name ? { name, arguments: {}, _meta } : { _meta };
  return answerTo(RESOURCE, headers, { jsonrpc: "2.0", id: 1, method, params });
}

/** The same over REST. */
export function overRest(token, name) {
  const rest = `${RESOURCE.replace(/\/mcp$/, "")}/rest`;
  return name ? answerTo(`${rest}/tools/${name}/call`, bearer(token), {}) : answerTo(`${rest}/tools`, bearer(token));
}

export const ENDPOINTS = { mcp: overMcp, rest: overRest };

/** The error text of an answer of either endpoint. */
const errorTextOf = (body) => body.error?.message ?? body.detail;

/** The names of the tools in an answer of either endpoint. */
export const toolsIn = (body) => (body.result ?? body).tools.map(({ name }) => name);

/** The rows in an answer of either endpoint. */
export function rowsOf({ status, body }) {
  assert.equal(status, 200, errorTextOf(body));
  return body.result ? JSON.parse(body.result.content[0].text) : body.Query;
}

/** Whether the node accepts a token at this moment. */
export const isAccepted = async (token) => (await overMcp(token)).status === 200;

/** Both endpoints accept the token. */
export async function assertAccepted(token) {
  for (const [endpoint, call] of Object.entries(ENDPOINTS)) {
    const { status, body } = await call(token);
    assert.equal(status, 200, `${endpoint}: ${errorTextOf(body)}`);
  }
}

/** Both endpoints reject the token, and the answer contains only the challenge. */
export async function assertRejected(token) {
  for (const [endpoint, call] of Object.entries(ENDPOINTS)) {
    const { status, challenge, body } = await call(token);
    assert.equal(status, 401, endpoint);
    assert.equal(challenge, INVALID, endpoint);
    assert.equal(errorTextOf(body), "the key or token is not valid", endpoint);
  }
}
