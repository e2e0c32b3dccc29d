// npm `@modelcontextprotocol/client` finds its way by itself: from the refusal to the node's metadata, to the provider, to a
// token, and with it to the answer; and once more when a call needs a scope that the token has not.

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

/** What a client of a person keeps, with what the provider knows it by already. `asked` are the addresses to which it sent
 *  its person. */
class Keeper {
  redirectUrl = RETURN;
  clientMetadata = {
    client_name: "tidegate-tests",
    redirect_uris: [RETURN],
    grant_types: ["authorization_code"],
    token_endpoint_auth_method: "none",
  };
  asked = [];
  #kept;

  constructor(client) {
    this.#kept = { client };
  }
  clientInformation() {
    return this.#kept.client;
  }
  saveClientInformation(client) {
    this.#kept.client = client;
  }
  tokens() {
    return this.#kept.tokens;
  }
  saveTokens(tokens) {
    this.#kept.tokens = tokens;
  }
  codeVerifier() {
    return this.#kept.verifier;
  }
  saveCodeVerifier(verifier) {
    this.#kept.verifier = verifier;
  }
  discoveryState() {
    return this.#kept.discovery;
  }
  saveDiscoveryState(discovery) {
    this.#kept.discovery = discovery;
  }
  redirectToAuthorization(url) {
    this.asked.push(url);
  }
}

/** Goes where the provider leads, as a browser does, until that is back to the client. */
async function followed(start) {
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
    assert.ok(location, `${url} leads nowhere: ${response.status} ${await response.text()}`);
    url = new URL(location, url);
    if (url.href.startsWith(RETURN)) return url.searchParams;
  }
  throw new Error(`${start} leads round and round`);
}

/** A client that is let in: refused at first, it sends its person to the provider and comes again. */
async function connected(keeper) {
  const transport = () => new StreamableHTTPClientTransport(new URL(RESOURCE), { authProvider: keeper });
  const refused = transport();
  await assert.rejects(newClient().connect(refused), UnauthorizedError);
  await refused.finishAuth(await followed(keeper.asked.at(-1)));
  const client = newClient();
  await client.connect(transport());
  return client;
}

/** A client finds the provider by the address of the node alone. */
export async function checkFound(provider) {
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
  await check("a program is refused, fetches a token and is answered, all by itself", async () => {
    await client.connect(new StreamableHTTPClientTransport(new URL(RESOURCE), { authProvider }));
    assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
    assert.deepEqual(scopesOf(authProvider.tokens()), ["orders:read"]);
    assert.deepEqual(rowsOf(await client.callTool({ name: "orders_of_tenant", arguments: {} })), [{ id: 1 }, { id: 3 }]);
  });
  await check("a program that lacks a scope fetches a token that has it, and is answered", async () => {
    assert.deepEqual(rowsOf(await client.callTool({ name: "orders_refund", arguments: {} })), [{ refunded: 1 }]);
    assert.deepEqual(scopesOf(authProvider.tokens()), ["orders:read", "orders:refund"]);
  });
  await client.close();
}

async function checkPerson() {
  await check("a client registers itself, its person logs in, and is answered as who that is", async () => {
    const keeper = new Keeper();
    const client = await connected(keeper);
    assert.ok(keeper.clientInformation().client_id);
    assert.deepEqual(scopesOf(keeper.tokens()), ["orders:read"]);
    assert.deepEqual(rowsOf(await client.callTool({ name: "self", arguments: {} })), [{ name: "Bob" }]);
    assert.deepEqual(rowsOf(await client.callTool({ name: "orders_of_tenant", arguments: {} })), [{ id: 2 }, { id: 5 }]);
    await client.close();
  });
  await check("a person is asked once more for what a call needs, and the call is answered", async () => {
    const keeper = new Keeper(DESK);
    const client = await connected(keeper);
    const refund = () => client.callTool({ name: "orders_refund", arguments: {} });
    await assert.rejects(refund(), UnauthorizedError);
    assert.equal(keeper.asked.length, 2);
    await client.transport.finishAuth(await followed(keeper.asked[1]));
    assert.deepEqual(rowsOf(await refund()), [{ refunded: 1 }]);
    assert.deepEqual(scopesOf(keeper.tokens()), ["orders:read", "orders:refund"]);
    await client.close();
  });
}

/** Everything that the package does by itself with this provider. */
export async function checkFlows(provider) {
  under("identity provider, npm client");
  await check("its discovery finds the provider by the address of the node alone", () => checkFound(provider));
  await checkProgram(provider);
  await checkPerson();
}
