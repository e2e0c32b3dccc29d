// Reading again and again, as long as somebody looks.

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
