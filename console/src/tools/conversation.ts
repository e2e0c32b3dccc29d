// One call with all of its messages: where the server needs input of a person first, the call is sent again with it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { isAborted } from '../api/client';
import { exchange, type Exchange } from '../api/mcp';
import type { Entry } from './entries';
import type { Schema } from './schema';

export interface InputRequest {
  method: string;
  params: { message?: string; mode?: string; url?: string; requestedSchema?: Schema };
}

export interface InputResponse {
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown>;
}

export interface Conversation {
  exchanges: Exchange[];
  isRunning: boolean;
  error: unknown;
  /** What the server needs before it answers, by key. */
  requests: [string, InputRequest][];
  start: (values: Record<string, unknown>) => void;
  respond: (responses: Record<string, InputResponse>) => void;
  cancel: () => void;
}

export function useConversation(entry: Entry): Conversation {
  const [exchanges, setExchanges] = useState<Exchange[]>([]);
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const controller = useRef<AbortController | null>(null);
  const parameters = useRef<Record<string, unknown>>({});
  useEffect(() => () => controller.current?.abort(), []);

  const send = async (more: Record<string, unknown>, earlier: Exchange[]) => {
    controller.current?.abort();
    const mine = new AbortController();
    controller.current = mine;
    setRunning(true);
    setError(null);
    setExchanges(earlier);
    try {
      const sent = await exchange(entry.method, { ...parameters.current, ...more }, mine.signal);
      if (!mine.signal.aborted) setExchanges([...earlier, sent]);
    } catch (refused) {
      if (!isAborted(refused)) setError(refused);
    } finally {
      if (controller.current === mine) setRunning(false);
    }
  };
  const last = exchanges[exchanges.length - 1]?.reply.result;
  const isWaiting = last?.resultType === 'input_required';
  return {
    exchanges,
    isRunning,
    error,
    requests: isWaiting ? Object.entries((last.inputRequests ?? {}) as Record<string, InputRequest>) : [],
    start(values) {
      parameters.current = entry.parameters(values);
      void send({}, []);
    },
    respond(responses) {
      const state = last?.requestState;
      void send({ ...(state !== undefined && { requestState: state }), inputResponses: responses }, exchanges);
    },
    cancel: () => controller.current?.abort(),
  };
}
