// Requests answers of given sizes with one of the npm packages, as largest_probe.py does with PyPI's:
//
//     largest_probe.mjs PACKAGE TRANSPORT TARGET…

import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { join } from "node:path";

const [name, transport, ...target] = process.argv.slice(2);
const require = createRequire(join(process.env.TIDEGATE_NODE_PACKAGES, "package.json"));

/** The classes of version 2 are in two modules, those of version 1 in one module each. */
function classes() {
  if (name === "client") return { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") };
  const parts = ["index", "stdio", "streamableHttp", "sse", "websocket"];
  return Object.assign({}, ...parts.map((part) => require(`@modelcontextprotocol/sdk/client/${part}.js`)));
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport, WebSocketClientTransport } = classes();

function newTransport() {
  if (transport === "stdio") return new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: "ignore" });
  const address = new URL(target[0]);
  if (transport === "sse") return new SSEClientTransport(address);
  if (transport === "ws") return new WebSocketClientTransport(address);
  return new StreamableHTTPClientTransport(address);
}

async function request({ question, size }) {
  const client = new Client({ name: "tidegate-tests", version: "1.0.0" });
  // A transport reports dropped messages only here; the call itself would wait for its timeout.
  const failed = Promise.withResolvers();
  client.onerror = (error) => failed.reject(error);
  client.onclose = () => failed.reject(new Error("the connection closed"));
  failed.promise.catch(() => {});
  await client.connect(newTransport());
  try {
    const options = transport === "events" ? { onprogress: () => {} } : {};
    const call = name === "client" ? client.callTool(question, options) : client.callTool(question, undefined, options);
    call.catch(() => {});
    const { content } = await Promise.race([call, failed.promise]);
    const { text } = content[0];
    return text.length === size ? "whole" : `answer of ${text.length}: ${text.slice(0, 200)}`;
  } finally {
    client.onclose = undefined;
    await client.close().catch(() => {});
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const outcome = await request(JSON.parse(line)).catch(String);
  console.log(outcome.replaceAll(/\s+/g, " ").slice(0, 400));
}
process.exit(0);
