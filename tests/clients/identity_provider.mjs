// npm `oidc-provider` as the authorization server of these tests: its clients, the user who logs in, its signing
// keys, and whether it is reachable.

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { createServer, request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { importModule } from "./node_checks.mjs";

const { Provider } = await importModule("oidc-provider/lib/index.js");

const ALGORITHM = "ES256";
const SCOPES = "orders:read orders:refund";
const USER = "Bob";
const TOKEN_SECONDS = 600;

/** The redirect URI of interactive clients. */
export const RETURN = "http://127.0.0.1/return";

/** The credentials of the node for introspection. They are valid only when they are escaped correctly. */
export const NODE = { client_id: "tide gate", client_secret: "of the/node: 100%+" };
/** A program with a tenant and groups, and one without further claims. */
export const IMPORTER = { client_id: "importer", client_secret: "of-the-importer" };
export const STRANGER = { client_id: "stranger", client_secret: "of-the-stranger" };
/** An interactive client that is already registered and has no secret. */
export const DESK = { client_id: "desk" };
const CLAIMS = {
  [IMPORTER.client_id]: { tenant: "Ann", groups: ["importers", "clerks"] },
  [USER]: { tenant: USER, groups: ["clerks"] },
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

/** Posts a form over a new connection, because the provider closes idle ones, and returns status and text. */
async function postForm(url, { client_id, client_secret }, form) {
  const response = await new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    const request = httpRequest(url, { method: "POST", agent: false, auth: `${client_id}:${client_secret}`, headers }, resolve);
    request.on("error", reject).end(`${new URLSearchParams(form)}`);
  });
  return [response.statusCode, await text(response)];
}

export class IdentityProvider {
  /** Its address. */
  url;
  /** The issuer that it claims to be. */
  issuer;
  /** The number of connections that it has refused since `stop`. */
  refusedConnections = 0;
  #server;
  #path;
  #provider;
  #answer;
  #isDown = false;
  /** The properties of the next tokens. */
  #issued = { format: "jwt", seconds: TOKEN_SECONDS };

  /** Starts a provider below `path` with these keys, of which the last one signs. `issuer` sets a different issuer. */
  static async start(keys, { path = "", issuer } = {}) {
    const provider = new IdentityProvider();
    provider.#server = createServer((request, response) => provider.#handle(request, response));
    // It holds its port while it is down, and closes each connection.
    provider.#server.on("connection", (socket) => provider.#isDown && provider.#refuse(socket));
    await new Promise((resolve) => provider.#server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${provider.#server.address().port}`;
    provider.#path = path.replace(/\/$/, "");
    provider.url = origin + provider.#path;
    provider.issuer = issuer ?? origin + path;
    provider.restart(keys);
    return provider;
  }

  /** Simulates a restart with these keys, of which the last one signs. It is reachable again. */
  restart(keys) {
    this.#server.closeAllConnections();
    this.#provider = new Provider(this.issuer, this.#configuration(keys));
    this.#answer = this.#provider.callback();
    this.resume();
  }

  /** Makes it reachable again, unchanged. */
  resume() {
    this.#isDown = false;
  }

  /** Makes it unreachable. */
  stop() {
    this.#isDown = true;
    this.refusedConnections = 0;
    this.#server.closeAllConnections();
  }

  async close() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /** Requests a token for `client`: its resource, scope, format (`jwt` or `opaque`) and lifetime. */
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
    const [status, body] = await postForm(this.url + path, client, form);
    assert.equal(status, 200, body);
    return body && JSON.parse(body);
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

  #refuse(socket) {
    this.refusedConnections += 1;
    socket.destroy();
  }

  #handle(request, response) {
    if (!request.url.startsWith(this.#path)) return response.writeHead(404).end();
    // `oidc-provider` derives its mount path from this.
    request.originalUrl = request.url;
    request.url = request.url.slice(this.#path.length);
    if (!request.url.startsWith("/interaction/")) return this.#answer(request, response);
    this.#interact(request, response).catch((error) => response.writeHead(500).end(`${error.stack}`));
  }

  /** Logs the user in and grants all requested scopes. */
  async #interact(request, response) {
    const { prompt, params, session } = await this.#provider.interactionDetails(request, response);
    if (prompt.name === "login") {
      return this.#provider.interactionFinished(request, response, { login: { accountId: USER } });
    }
    const grant = new this.#provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    grant.addResourceScope(params.resource, params.scope);
    const grantId = await grant.save();
    return this.#provider.interactionFinished(request, response, { consent: { grantId } });
  }
}
