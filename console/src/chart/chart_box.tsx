// A chart in the page: it takes the room that there is, and shows the value at the pointer or of the arrow keys.
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { nearestMark, type Size } from './draw';
import { SceneView, type Mark, type Scene } from './scene';

interface ChartBoxProps {
  /** Draws the chart; it changes only if the chart does. */
  draw: (size: Size) => Scene;
  onScene?: (scene: Scene) => void;
  /** A click on a value, or Enter. */
  onOpen?: (mark: Mark) => void;
}

export function ChartBox({ draw, onScene, onOpen }: ChartBoxProps) {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<Size | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry!.contentRect;
      setSize({ width: Math.max(Math.floor(width), 120), height: Math.max(Math.floor(height), 120) });
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const scene = useMemo(() => {
    const drawn = size && draw(size);
    // The arrow keys move along the axis, and within a place from top to bottom.
    drawn?.marks.sort((one, other) => one.x - other.x || one.y - other.y);
    return drawn;
  }, [draw, size]);
  useLayoutEffect(() => {
    setChosen(null);
    if (scene) onScene?.(scene);
  }, [scene]);
  const mark = (chosen !== null && scene?.marks[chosen]) || null;

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && mark) onOpen?.(mark);
    const last = (scene?.marks.length ?? 0) - 1;
    const moves: Record<string, number> = { ArrowRight: (chosen ?? -1) + 1, ArrowLeft: (chosen ?? last + 1) - 1, Home: 0, End: last };
    const move = moves[event.key];
    if (move === undefined || last < 0) return;
    event.preventDefault();
    setChosen(Math.min(Math.max(move, 0), last));
  };
  const onPointer = (event: PointerEvent) => {
    const { left, top } = box.current!.getBoundingClientRect();
    const nearest = scene && nearestMark(scene.marks, event.clientX - left, event.clientY - top);
    setChosen(nearest ? scene.marks.indexOf(nearest) : null);
  };
  return (
    <>
      <div
        ref={box}
        class="chart"
        role="img"
        aria-label={scene ? `${scene.summary}. The arrow keys move between its values.` : 'Chart'}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onPointerMove={onPointer}
        onPointerDown={onPointer}
        onClick={() => mark && onOpen?.(mark)}
        onPointerLeave={() => setChosen(null)}
      >
        {scene && <SceneView scene={scene} mark={mark} />}
      </div>
      <p class="chart-readout" role="status">
        {mark?.text ?? ''}
      </p>
    </>
  );
}
