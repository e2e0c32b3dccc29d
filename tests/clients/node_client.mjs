// npm `@modelcontextprotocol/client` against the real binary: each of its transports, with the version negotiated automatically.
//
// Runs under `with_server.py`.

import { ADDRESSES, COMMAND, packages, run } from "./node_checks.mjs";

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = packages("@modelcontextprotocol/client");
const { StdioClientTransport } = packages("@modelcontextprotocol/client/stdio");

const TRANSPORTS = {
  stdio: () => new StdioClientTransport(COMMAND),
  http: () => new StreamableHTTPClientTransport(ADDRESSES.http),
  sse: () => new SSEClientTransport(ADDRESSES.sse),
};

await run("node", Object.keys(TRANSPORTS), {
  revision: "2026-07-28",
  revisionOf: (client) => client.getNegotiatedProtocolVersion(),
  call: (client, params, options) => client.callTool(params, options),
  connect: async (transport) => {
    const client = new Client({ name: "tidegate-tests", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
    await client.connect(TRANSPORTS[transport]());
    return client;
  },
});
