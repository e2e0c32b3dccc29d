// The node that believes an identity provider: its configuration, written while it serves, and how it is asked with a token.

import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ADDRESSES, withinReason } from "./node_checks.mjs";
import { NODE } from "./identity_provider.mjs";

const { TIDEGATE_CONFIGURATION, TIDEGATE_SHOP } = process.env;
const REVISION = "2026-07-28";
const POLL_MS = 100;
/** What clients are told to ask for at first. */
const SCOPE = "orders:read";

/** What tokens are for. */
export const RESOURCE = ADDRESSES.http.href;
/** Where it says who issues them (RFC 9728). */
export const METADATA = new URL(`/.well-known/oauth-protected-resource${ADDRESSES.http.pathname}`, RESOURCE).href;

/** The challenge to who shows nothing, and to who shows what is not good. */
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

/** The provider's keys are looked for by its name. */
export const bySignature = ({ issuer }) => configuration({ issuer, discovery: true, algorithms: ["ES256"] });

/** The provider is asked about each token. */
export const byIntrospection = ({ issuer, url }) =>
  configuration({ issuer, introspection: { ...NODE, url: `${url}/token/introspection` } });

/** Replaces the configuration whole, as an editor does; the node follows it. */
export function configure(content) {
  const unfinished = join(TIDEGATE_SHOP, "..", "tidegate.unfinished");
  // A JSON text is one of YAML.
  writeFileSync(unfinished, JSON.stringify(content));
  renameSync(unfinished, TIDEGATE_CONFIGURATION);
}

/** Looks again and again until `look` finds something, and gives that. */
export function until(failure, look) {
  return withinReason(failure, async () => {
    for (;;) {
      const found = await look();
      if (found) return found;
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

/** What a call over MCP is answered, by status. */
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

export const DOORS = { mcp: overMcp, rest: overRest };

/** What an answer over either door complains of. */
const complaintOf = (body) => body.error?.message ?? body.detail;

/** The names of the tools in an answer over either door. */
export const toolsIn = (body) => (body.result ?? body).tools.map(({ name }) => name);

/** The rows in an answer over either door. */
export function rowsOf({ status, body }) {
  assert.equal(status, 200, complaintOf(body));
  return body.result ? JSON.parse(body.result.content[0].text) : body.Query;
}

/** Whether a token lets in, at this moment. */
export const isLetIn = async (token) => (await overMcp(token)).status === 200;

/** It lets in, through either door. */
export async function assertLetIn(token) {
  for (const [door, ask] of Object.entries(DOORS)) {
    const { status, body } = await ask(token);
    assert.equal(status, 200, `${door}: ${complaintOf(body)}`);
  }
}

/** It does not, and the answer says no more than the way in. */
export async function assertRefused(token) {
  for (const [door, ask] of Object.entries(DOORS)) {
    const { status, challenge, body } = await ask(token);
    assert.equal(status, 401, door);
    assert.equal(challenge, INVALID, door);
    assert.equal(complaintOf(body), "the key or token is not valid", door);
  }
}
