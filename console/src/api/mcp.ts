// Requests of MCP 2026-07-28, which needs no session: each message stands for itself.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/transports
import { request } from './client';

const REVISION = '2026-07-28';
const CLIENT = { name: 'tidegate-console', version: '1' };
const META = 'io.modelcontextprotocol';
/** Pages of a list at most. */
const PAGES_MAX = 50;

export interface Message {
  jsonrpc: '2.0';
  id: number;
  method: string;
  params: Record<string, unknown>;
}

export interface Reply {
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: unknown };
}

/** A request with its reply, as they are sent. */
export interface Exchange {
  request: Message;
  reply: Reply;
  milliseconds: number;
}

let lastId = 0;

export async function exchange(method: string, params: Record<string, unknown>, signal?: AbortSignal): Promise<Exchange> {
  lastId += 1;
  const meta = { [`${META}/protocolVersion`]: REVISION, [`${META}/clientCapabilities`]: { elicitation: { form: {}, url: {} } }, [`${META}/clientInfo`]: CLIENT };
  const message: Message = { jsonrpc: '2.0', id: lastId, method, params: { ...params, _meta: meta } };
  const headers: Record<string, string> = { 'MCP-Protocol-Version': REVISION, 'Mcp-Method': method };
  const name = params.name ?? params.uri;
  if (typeof name === 'string') headers['Mcp-Name'] = headerText(name);
  const startedAt = performance.now();
  const response = await request('mcp', {
    method: 'POST', body: message, headers, signal, accept: 'application/json, text/event-stream',
    // Errors of JSON-RPC may have another status.
    isAnswer: ({ status, headers: received }) => status !== 401 && status !== 403 && /^application\/json/.test(received.get('content-type') ?? ''),
  });
  const reply = readReply(await response.text(), response.headers.get('content-type') ?? '');
  return { request: message, reply, milliseconds: performance.now() - startedAt };
}

/** Header values are ASCII; others are in Base64. */
function headerText(text: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  return `=?base64?${btoa(bytes.join(''))}?=`;
}

/** The reply in a body of JSON, or the last one of a stream of events. */
function readReply(text: string, type: string): Reply {
  if (!type.startsWith('text/event-stream')) return JSON.parse(text) as Reply;
  const messages = text.split(/\r?\n\r?\n/).flatMap((event) => {
    const data = event.split(/\r?\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
    return data.length > 0 && data.join('') ? [JSON.parse(data.join('\n')) as Reply] : [];
  });
  const reply = messages.findLast(({ result, error }) => result ?? error);
  if (!reply) throw new Error('The stream ended without a reply.');
  return reply;
}

/** An error of JSON-RPC as an exception. */
export function resultOf({ reply }: Exchange): Record<string, unknown> {
  if (reply.result) return reply.result;
  throw new Error(reply.error?.message ?? 'The server sent neither a result nor an error.');
}

/** All items of a list, page by page. */
export async function listAll<T>(method: string, member: string, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = [];
  let cursor: unknown;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const result = resultOf(await exchange(method, cursor === undefined ? {} : { cursor }, signal));
    items.push(...((result[member] as T[] | undefined) ?? []));
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  return items;
}
