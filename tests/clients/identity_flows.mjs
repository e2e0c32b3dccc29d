// npm `@modelcontextprotocol/client` performs the OAuth flow: from the 401 response to the node's metadata, to the provider,
// to a token, and to the answer; and again when a call needs a scope that the token lacks.

import assert from "node:assert/strict";
import { check, packages, textsOf, under } from "./node_checks.mjs";
import { METADATA, RESOURCE } from "./identity_node.mjs";
import { DESK, IMPORTER, RETURN } from "./identity_provider.mjs";

const {
  Client,
  ClientCredentialsProvider,
  discoverOAuthProtectedResourceMetadata,
  discoverOAuthServerInfo,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} = packages("@modelcontextprotocol/client");

const REDIRECTS_MAX = 10;

const newClient = () => new Client({ name: "tidegate-tests", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
const rowsOf = (result) => JSON.parse(textsOf(result)[0]);
const scopesOf = ({ scope }) => scope.split(" ").sort();

/** The OAuth state of an interactive client, with its existing registration at the provider, if any.
 *  `authorizationUrls` are the addresses to which it sent the user. */
class ClientState {
  redirectUrl = RETURN;
  clientMetadata = {
    client_name: "tidegate-tests",
    redirect_uris: [RETURN],
    grant_types: ["authorization_code"],
    token_endpoint_auth_method: "none",
  };
  authorizationUrls = [];
  #stored;

  constructor(client) {
    this.#stored = { client };
  }
  clientInformation() {
    return this.#stored.client;
  }
  saveClientInformation(client) {
    this.#stored.client = client;
  }
  tokens() {
    return this.#stored.tokens;
  }
  saveTokens(tokens) {
    this.#stored.tokens = tokens;
  }
  codeVerifier() {
    return this.#stored.verifier;
  }
  saveCodeVerifier(verifier) {
    this.#stored.verifier = verifier;
  }
  discoveryState() {
    return this.#stored.discovery;
  }
  saveDiscoveryState(discovery) {
    this.#stored.discovery = discovery;
  }
  redirectToAuthorization(url) {
    this.authorizationUrls.push(url);
  }
}

/** Follows the redirects of the provider, as a browser does, until one leads back to the client. */
async function followRedirects(start) {
  const cookies = new Map();
  let url = start;
  for (let step = 0; step < REDIRECTS_MAX; step += 1) {
    const Cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { Cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    const location = response.headers.get("Location");
    assert.ok(location, `${url} does not redirect: ${response.status} ${await response.text()}`);
    url = new URL(location, url);
    if (url.href.startsWith(RETURN)) return url.searchParams;
  }
  throw new Error(`${start} redirects too often`);
}

/** Connects a client: the first attempt is rejected, and after the login of the user the second one succeeds. */
async function connectUser(state) {
  const transport = () => new StreamableHTTPClientTransport(new URL(RESOURCE), { authProvider: state });
  const rejected = transport();
  await assert.rejects(newClient().connect(rejected), UnauthorizedError);
  await rejected.finishAuth(await followRedirects(state.authorizationUrls.at(-1)));
  const client = newClient();
  await client.connect(transport());
  return client;
}

/** A client discovers the provider with only the address of the node. */
export async function checkDiscovery(provider) {
  const metadata = await discoverOAuthProtectedResourceMetadata(RESOURCE);
  assert.equal(metadata.resource, RESOURCE);
  assert.deepEqual(metadata.authorization_servers, [provider.issuer]);
  const { authorizationServerMetadata } = await discoverOAuthServerInfo(RESOURCE, { resourceMetadataUrl: new URL(METADATA) });
  assert.equal(authorizationServerMetadata.token_endpoint, `${provider.url}/token`);
}

async function checkProgram(provider) {
  const { client_id: clientId, client_secret: clientSecret } = IMPORTER;
  const authProvider = new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: provider.issuer });
  const client = newClient();
  await check("a program is rejected, fetches a token and receives an answer, without help", async () => {
    await client.connect(new StreamableHTTPClientTransport(new URL(RESOURCE), { authProvider }));
    assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
    assert.deepEqual(scopesOf(authProvider.tokens()), ["orders:read"]);
    assert.deepEqual(rowsOf(await client.callTool({ name: "orders_of_tenant", arguments: {} })), [{ id: 1 }, { id: 3 }]);
  });
  await check("a program that lacks a scope fetches a token with the scope and receives an answer", async () => {
    assert.deepEqual(rowsOf(await client.callTool({ name: "orders_refund", arguments: {} })), [{ refunded: 1 }]);
    assert.deepEqual(scopesOf(authProvider.tokens()), ["orders:read", "orders:refund"]);
  });
  await client.close();
}

async function checkUser() {
  await check("a client registers itself, its user logs in, and receives the rows of this user", async () => {
    const state = new ClientState();
    const client = await connectUser(state);
    assert.ok(state.clientInformation().client_id);
    assert.deepEqual(scopesOf(state.tokens()), ["orders:read"]);
    assert.deepEqual(rowsOf(await client.callTool({ name: "self", arguments: {} })), [{ name: "Bob" }]);
    assert.deepEqual(rowsOf(await client.callTool({ name: "orders_of_tenant", arguments: {} })), [{ id: 2 }, { id: 5 }]);
    await client.close();
  });
  await check("a user is sent to the provider again for a missing scope, and the call succeeds", async () => {
    const state = new ClientState(DESK);
    const client = await connectUser(state);
    const refund = () => client.callTool({ name: "orders_refund", arguments: {} });
    await assert.rejects(refund(), UnauthorizedError);
    assert.equal(state.authorizationUrls.length, 2);
    await client.transport.finishAuth(await followRedirects(state.authorizationUrls[1]));
    assert.deepEqual(rowsOf(await refund()), [{ refunded: 1 }]);
    assert.deepEqual(scopesOf(state.tokens()), ["orders:read", "orders:refund"]);
    await client.close();
  });
}

/** The OAuth flows of the package with this provider. */
export async function checkFlows(provider) {
  under("identity provider, npm client");
  await check("its discovery needs only the address of the node", () => checkDiscovery(provider));
  await checkProgram(provider);
  await checkUser();
}
