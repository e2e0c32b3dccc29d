// How npm `@modelcontextprotocol/client` connects in tests of both eras: the transports that support both, and the options
// of version negotiation.

import { ADDRESSES, COMMAND, packages } from "./node_checks.mjs";

const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/client");
const { StdioClientTransport } = packages("@modelcontextprotocol/client/stdio");

export const TRANSPORTS = {
  stdio: () => new StdioClientTransport(COMMAND),
  http: () => new StreamableHTTPClientTransport(ADDRESSES.http),
};

/** Options of the client. */
export const ERAS = { modern: { versionNegotiation: { mode: "auto" } }, legacy: {} };
