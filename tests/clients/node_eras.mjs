// The ways in which npm `@modelcontextprotocol/client` connects where both eras are looked at: the transports that carry
// both, and how it negotiates.

import { ADDRESSES, COMMAND, packages } from "./node_checks.mjs";

const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/client");
const { StdioClientTransport } = packages("@modelcontextprotocol/client/stdio");

export const TRANSPORTS = {
  stdio: () => new StdioClientTransport(COMMAND),
  http: () => new StreamableHTTPClientTransport(ADDRESSES.http),
};

/** Options of the client. */
export const ERAS = { modern: { versionNegotiation: { mode: "auto" } }, legacy: {} };
