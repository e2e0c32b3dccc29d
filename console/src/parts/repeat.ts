// Reading again and again, as long as somebody looks.
import { useEffect, useState } from 'preact/hooks';
import { isAborted } from '../api/client';

interface Repeated<T> {
  /** The last value that was read; null before the first. */
  value: T | null;
  /** Why the last reading failed. */
  error: unknown;
  /** How often `refresh` was called. */
  round: number;
  refresh: () => void;
}

/** What `read` returns, again after each pause, while the page is visible and `isPermitted`. */
export function useRepeated<T>(pauseMilliseconds: number, isPermitted: boolean, read: (signal: AbortSignal) => Promise<T>): Repeated<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!isPermitted) return;
    return repeat(pauseMilliseconds, async (signal) => {
      try {
        setValue(await read(signal));
        setError(null);
      } catch (refused) {
        if (!isAborted(refused)) setError(refused);
      }
      return true;
    });
  }, [isPermitted, round]);
  return { value, error, round, refresh: () => setRound((earlier) => earlier + 1) };
}

/** Runs `read` now and then again after each pause, while the page is visible. It ends when `read` returns false. */
export function repeat(pauseMilliseconds: number, read: (signal: AbortSignal) => Promise<boolean>): () => void {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const next = async () => {
    if (document.hidden) return;
    const goesOn = await read(controller.signal);
    if (goesOn && !controller.signal.aborted) timer = setTimeout(next, pauseMilliseconds);
  };
  const onVisible = () => {
    clearTimeout(timer);
    if (!document.hidden) void next();
  };
  document.addEventListener('visibilitychange', onVisible, { signal: controller.signal });
  void next();
  return () => {
    controller.abort();
    clearTimeout(timer);
  };
}
