// npm `@modelcontextprotocol/sdk` 1.x against the real binary: each of its transports, including HTTP+SSE and WebSocket,
// which newer packages lack.
//
// Runs under `with_server.py`.

import { ADDRESSES, COMMAND, packages, run } from "./node_checks.mjs";

const { Client } = packages("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport } = packages("@modelcontextprotocol/sdk/client/sse.js");
const { StdioClientTransport } = packages("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { WebSocketClientTransport } = packages("@modelcontextprotocol/sdk/client/websocket.js");

const TRANSPORTS = {
  stdio: () => new StdioClientTransport(COMMAND),
  http: () => new StreamableHTTPClientTransport(ADDRESSES.http),
  sse: () => new SSEClientTransport(ADDRESSES.sse),
  ws: () => new WebSocketClientTransport(ADDRESSES.ws),
};

// The package reports the negotiated version only to its transports.
const revisions = new WeakMap();

await run("node sdk 1", Object.keys(TRANSPORTS), {
  revision: "2025-11-25",
  revisionOf: (client) => revisions.get(client),
  call: (client, params, options) => client.callTool(params, undefined, options),
  connect: async (name) => {
    const client = new Client({ name: "tidegate-tests", version: "1.0.0" });
    const transport = TRANSPORTS[name]();
    const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
      revisions.set(client, version);
      setProtocolVersion?.(version);
    };
    await client.connect(transport);
    return client;
  },
});
