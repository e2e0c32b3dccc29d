// npm `oidc-provider` as the authorization server of these tests: its clients, the person who logs in, the keys that it signs
// with, and whether it can be reached.

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { createServer, request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { imported } from "./node_checks.mjs";

const { Provider } = await imported("oidc-provider/lib/index.js");

const ALGORITHM = "ES256";
const SCOPES = "orders:read orders:refund";
const PERSON = "Bob";
const TOKEN_SECONDS = 600;

/** Where a client of a person waits for its return. */
export const RETURN = "http://127.0.0.1/return";

/** What the node shows when it asks about a token. Only what is escaped arrives. */
export const NODE = { client_id: "tide gate", client_secret: "of the/node: 100%+" };
/** A program of a tenant and a group, and one of which nothing more is known. */
export const IMPORTER = { client_id: "importer", client_secret: "of-the-importer" };
export const STRANGER = { client_id: "stranger", client_secret: "of-the-stranger" };
/** What a person uses; it is known already and has no secret. */
export const DESK = { client_id: "desk" };
const CLAIMS = {
  [IMPORTER.client_id]: { tenant: "Ann", groups: ["importers", "clerks"] },
  [PERSON]: { tenant: PERSON, groups: ["clerks"] },
};

const desk = {
  ...DESK,
  application_type: "native",
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code"],
  redirect_uris: [RETURN],
  scope: SCOPES,
};
const program = (client) => ({ ...client, grant_types: ["client_credentials"], response_types: [], redirect_uris: [] });

/** A key that signs tokens, as a JWK. */
export function newKey(kid, namedCurve = "P-256", alg = ALGORITHM) {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve });
  return { ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg };
}

/** Status and text of what a form is answered, over a connection of its own: the provider hangs up on open ones. */
async function posted(url, { client_id, client_secret }, form) {
  const response = await new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    const request = httpRequest(url, { method: "POST", agent: false, auth: `${client_id}:${client_secret}`, headers }, resolve);
    request.on("error", reject).end(`${new URLSearchParams(form)}`);
  });
  return [response.statusCode, await text(response)];
}

export class IdentityProvider {
  /** Where it is. */
  url;
  /** Who it says that it is. */
  issuer;
  /** How often it could not be reached since it was stopped. */
  missed = 0;
  #server;
  #path;
  #provider;
  #answer;
  #isDown = false;
  /** What the next tokens are like. */
  #issued = { format: "jwt", seconds: TOKEN_SECONDS };

  /** With these keys, of which the last one signs, below `path`. `issuer` if it says that it is another. */
  static async start(keys, { path = "", issuer } = {}) {
    const provider = new IdentityProvider();
    provider.#server = createServer((request, response) => provider.#answered(request, response));
    // Its port stays its own while it is down: it only hangs up.
    provider.#server.on("connection", (socket) => provider.#isDown && provider.#hangUp(socket));
    await new Promise((resolve) => provider.#server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${provider.#server.address().port}`;
    provider.#path = path.replace(/\/$/, "");
    provider.url = origin + provider.#path;
    provider.issuer = issuer ?? origin + path;
    provider.restart(keys);
    return provider;
  }

  /** Goes on as after a restart, with these keys, of which the last one signs. It can be reached again. */
  restart(keys) {
    this.#server.closeAllConnections();
    this.#provider = new Provider(this.issuer, this.#configuration(keys));
    this.#answer = this.#provider.callback();
    this.resume();
  }

  /** Can be reached again, as it was. */
  resume() {
    this.#isDown = false;
  }

  /** Cannot be reached. */
  stop() {
    this.#isDown = true;
    this.missed = 0;
    this.#server.closeAllConnections();
  }

  async close() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /** A token of `client`: for whom, for what, signed (`jwt`) or `opaque`, and for how long. */
  async token(client, { resource, scope, format = "jwt", seconds = TOKEN_SECONDS } = {}) {
    const usual = this.#issued;
    this.#issued = { format, seconds };
    const { access_token: token } = await this.#post("/token", client, {
      grant_type: "client_credentials",
      ...(resource && { resource }),
      ...(scope && { scope }),
    });
    this.#issued = usual;
    return token;
  }

  /** RFC 7009. */
  revoke(client, token) {
    return this.#post("/token/revocation", client, { token });
  }

  async #post(path, client, form) {
    const [status, said] = await posted(this.url + path, client, form);
    assert.equal(status, 200, said);
    return said && JSON.parse(said);
  }

  #configuration(keys) {
    const signing = { alg: ALGORITHM, kid: keys.at(-1).kid };
    return {
      clients: [program({ ...IMPORTER, scope: SCOPES }), program({ ...STRANGER, scope: SCOPES }), program(NODE), desk],
      clientDefaults: { id_token_signed_response_alg: ALGORITHM },
      cookies: { keys: ["of these tests"] },
      jwks: { keys },
      scopes: SCOPES.split(" "),
      findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
      extraTokenClaims: (_, { accountId, clientId }) => CLAIMS[accountId ?? clientId],
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      ttl: {
        ClientCredentials: () => this.#issued.seconds,
        Grant: TOKEN_SECONDS,
        IdToken: TOKEN_SECONDS,
        Interaction: TOKEN_SECONDS,
        Session: TOKEN_SECONDS,
      },
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === NODE.client_id },
        registration: { enabled: true },
        revocation: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => undefined,
          getResourceServerInfo: (_, resource) => ({
            audience: resource,
            scope: SCOPES,
            accessTokenFormat: this.#issued.format,
            accessTokenTTL: this.#issued.seconds,
            jwt: { sign: signing },
          }),
        },
      },
    };
  }

  #hangUp(socket) {
    this.missed += 1;
    socket.destroy();
  }

  #answered(request, response) {
    if (!request.url.startsWith(this.#path)) return response.writeHead(404).end();
    // So it knows that it is not at the root.
    request.originalUrl = request.url;
    request.url = request.url.slice(this.#path.length);
    if (!request.url.startsWith("/interaction/")) return this.#answer(request, response);
    this.#interact(request, response).catch((error) => response.writeHead(500).end(`${error.stack}`));
  }

  /** The person logs in, and agrees to whatever is asked for. */
  async #interact(request, response) {
    const { prompt, params, session } = await this.#provider.interactionDetails(request, response);
    if (prompt.name === "login") {
      return this.#provider.interactionFinished(request, response, { login: { accountId: PERSON } });
    }
    const grant = new this.#provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    grant.addResourceScope(params.resource, params.scope);
    const grantId = await grant.save();
    return this.#provider.interactionFinished(request, response, { consent: { grantId } });
  }
}
