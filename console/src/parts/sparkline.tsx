// A small line of the last values, drawn by hand: it needs no library.
import { useMemo } from 'preact/hooks';

const WIDTH = 120;
const HEIGHT = 28;

export interface Series {
  values: (number | null)[];
  class?: string;
}

/** The lines of `series` over the same time, with one scale from zero. */
export function Sparkline({ series, points }: { series: Series[]; points: number }) {
  const paths = useMemo(() => drawPaths(series, points), [series, points]);
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {paths.map((path, index) => (
        <path key={index} class={series[index]!.class ?? ''} d={path} vector-effect="non-scaling-stroke" />
      ))}
    </svg>
  );
}

function drawPaths(series: Series[], points: number): string[] {
  const max = Math.max(...series.flatMap(({ values }) => values.map((value) => value ?? 0)), Number.MIN_VALUE);
  return series.map(({ values }) => {
    const first = points - values.length;
    let path = '';
    let isDrawing = false;
    values.forEach((value, index) => {
      if (value === null) {
        isDrawing = false;
        return;
      }
      const x = ((first + index) / Math.max(points - 1, 1)) * WIDTH;
      const y = HEIGHT - 1 - (value / max) * (HEIGHT - 2);
      path += `${isDrawing ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
      isDrawing = true;
    });
    return path;
  });
}
