// Requests to the server's public endpoints, with the key of the viewer.
//
// The key is in the memory of the page only: no other page, and no later visitor of this browser, can read it.
import { signal } from '@preact/signals';

export const key = signal<string | null>(null);
/** Whether the server answered the last request. */
export const isReachable = signal(true);
/** Why the viewer has to sign in, if it is so. */
export const signInReason = signal<string | null>(null);

/** The viewer asks to sign in, where callers without a key may use something. */
export const SIGN_IN = 'With a key, you may use more.';

/** The address of the page without its own part: the server may be behind a path prefix. */
export const base = new URL('.', document.baseURI);

export interface Violation {
  path: string;
  message: string;
}

/** A refusal or a failure, as the server describes it. */
export class Problem extends Error {
  readonly title: string;
  readonly violations: Violation[];
  readonly choices: string[];
  readonly hint: string | undefined;
  /** The name of the kind, such as `invalid_arguments`; `unreachable` if no server answered. */
  readonly kind: string;

  constructor(readonly status: number, members: Record<string, unknown>) {
    super(String(members.detail ?? members.title ?? `the server answered with the status ${status}`));
    this.title = String(members.title ?? 'The request failed');
    this.violations = (members.violations as Violation[] | undefined) ?? [];
    this.choices = (members.choices as string[] | undefined) ?? [];
    this.hint = members.hint as string | undefined;
    this.kind = String(members.type ?? '').split('/').pop() ?? '';
  }
}

export const UNREACHABLE = 'unreachable';

/** A tool with its arguments: what a view shows is the answer to one call. */
export interface Call {
  tool: string;
  arguments: Record<string, unknown>;
}

export interface RequestOptions {
  method?: string;
  /** What is sent as JSON. */
  body?: unknown;
  /** What is sent as it is; `headers` has its type. */
  content?: Blob;
  signal?: AbortSignal | undefined;
  accept?: string;
  /** A key to try, instead of the viewer's. */
  key?: string;
  headers?: Record<string, string>;
  /** Whether a status other than success is an answer too. */
  isAnswer?: (response: Response) => boolean;
}

/** The response to a request below the address of the server; a refusal is thrown as a [`Problem`]. */
export async function request(path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: options.accept ?? 'application/json', ...options.headers };
  const credential = options.key ?? key.peek();
  if (credential) headers.Authorization = `Bearer ${credential}`;
  const init: RequestInit = { method: options.method ?? 'GET', headers, cache: 'no-store', credentials: 'omit' };
  if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    headers['Content-Type'] = 'application/json';
    init.body = JSON.stringify(options.body);
  }
  if (options.content) init.body = options.content;
  let response: Response;
  try {
    response = await fetch(new URL(path, base), init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    isReachable.value = false;
    throw new Problem(0, {
      type: UNREACHABLE,
      title: 'The server does not answer',
      detail: 'The server does not answer. It may be restarting, or the network is down.',
    });
  }
  isReachable.value = true;
  if (response.ok || options.isAnswer?.(response)) return response;
  const problem = await readProblem(response);
  if (response.status === 401 && options.key === undefined) {
    signInReason.value = key.peek() ? 'Your key is no longer valid. Sign in again to continue here.' : 'This server needs a key.';
  }
  throw problem;
}

async function readProblem(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    return new Problem(response.status, JSON.parse(text) as Record<string, unknown>);
  } catch {
    return new Problem(response.status, { detail: text.trim() || undefined });
  }
}

/** The path of a tool below the address of the server. */
export function callPath(tool: string): string {
  return `rest/tools/${encodeURIComponent(tool)}/call`;
}

export function call(tool: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<Response> {
  return request(`${callPath(tool)}?format=json`, { method: 'POST', body: args, signal });
}

/** The rows of a tool whose values are short texts and counts. */
export async function callForRows<T>(tool: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<T[]> {
  const response = await call(tool, args, signal);
  const answer = (await response.json()) as { Query?: T[] };
  return answer.Query ?? [];
}

/** The text of a tool that answers with text. */
export async function callForText(tool: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<string> {
  const response = await call(tool, args, signal);
  const answer = (await response.json()) as { content?: { type: string; text?: string }[] };
  return (answer.content ?? []).map((item) => item.text ?? '').join('\n');
}

/** The object of a tool whose answer is no table. */
export async function callForStructure<T>(tool: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<T> {
  return (await (await call(tool, args, signal)).json()) as T;
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
