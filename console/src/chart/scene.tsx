// What a chart consists of: paths and texts. The page and the two forms of files draw the same.
//
// A picture cannot be made from the SVG element: the policy of the page permits no images but those of the server. So the
// same shapes are drawn on a canvas.
import { useMemo } from 'preact/hooks';

/** A name of a colour, which `base.css` has for both themes. */
export type Ink = 'text' | 'muted' | 'line' | 'line-strong' | 'surface' | 'on-accent' | `series-${number}`;

export interface PathShape {
  d: string;
  fill?: Ink;
  stroke?: Ink;
  width?: number;
  opacity?: number;
}

export interface TextShape {
  text: string;
  x: number;
  y: number;
  anchor: 'start' | 'middle' | 'end';
  ink: Ink;
  size?: number;
  /** Degrees, around the anchor. */
  turn?: number;
}

/** A place with a value, which the pointer and the arrow keys reach. */
export interface Mark {
  x: number;
  y: number;
  text: string;
  /** What is highlighted, if a point would cover a text. */
  outline?: string;
  /** The value on the axis, if the chart has places. */
  place?: number | string | null;
}

export interface Scene {
  width: number;
  height: number;
  paths: PathShape[];
  texts: TextShape[];
  marks: Mark[];
  /** The chart in one sentence. */
  summary: string;
}

export const SERIES_MAX = 12;
const SIZE = 12;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
/** Pixels of a character on average. */
const CHARACTER_PIXELS = 6.5;

export function seriesInk(index: number): Ink {
  return `series-${(index % SERIES_MAX) + 1}`;
}

export function textWidth(text: string): number {
  return text.length * CHARACTER_PIXELS;
}

/** The text, cut to `pixels`. */
export function cutText(text: string, pixels: number): string {
  const characters = Math.max(Math.floor(pixels / CHARACTER_PIXELS), 1);
  return text.length > characters ? `${text.slice(0, Math.max(characters - 1, 1))}…` : text;
}

export function rectangle(x: number, y: number, width: number, height: number): string {
  return `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}z`;
}

/** A dot, which the round ends of a line draw. */
export function dot(x: number, y: number): string {
  return `M${round(x)} ${round(y)}h0`;
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** `mark` is highlighted. */
export function SceneView({ scene, mark }: { scene: Scene; mark: Mark | null }) {
  const shapes = useMemo(() => drawShapes(scene, (ink) => `var(--${ink})`), [scene]);
  return (
    <svg width={scene.width} height={scene.height} viewBox={`0 0 ${scene.width} ${scene.height}`} aria-hidden="true">
      {shapes}
      {mark && (mark.outline ? <path class="mark" d={mark.outline} /> : <circle class="mark" cx={mark.x} cy={mark.y} r={5} />)}
    </svg>
  );
}

function drawShapes({ paths, texts }: Scene, colour: (ink: Ink) => string) {
  return (
    <>
      {paths.map(({ d, fill, stroke, width, opacity }, index) => (
        <path
          key={`p${index}`}
          d={d}
          fill={fill ? colour(fill) : 'none'}
          stroke={stroke && colour(stroke)}
          stroke-width={stroke && (width ?? 1)}
          stroke-linecap="round"
          stroke-linejoin="round"
          opacity={opacity}
        />
      ))}
      {texts.map(({ text, x, y, anchor, ink, size, turn }, index) => (
        <text
          key={`t${index}`}
          x={round(x)}
          y={round(y)}
          fill={colour(ink)}
          font-size={size ?? SIZE}
          text-anchor={anchor}
          transform={turn ? `rotate(${turn} ${round(x)} ${round(y)})` : undefined}
        >
          {text}
        </text>
      ))}
    </>
  );
}

/** The colours of the theme that the page has now. */
function readColours(): (ink: Ink) => string {
  const style = getComputedStyle(document.documentElement);
  return (ink) => style.getPropertyValue(`--${ink}`).trim();
}

/** The chart as a file of its own, with a background. */
export function toSvg({ width, height, paths, texts }: Scene): Blob {
  const colour = readColours();
  const escape = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escape(FONT)}" font-size="${SIZE}">`,
    `<rect width="${width}" height="${height}" fill="${colour('surface')}"/>`,
    ...paths.map(({ d, fill, stroke, width: line, opacity }) => {
      const drawn = stroke ? ` stroke="${colour(stroke)}" stroke-width="${line ?? 1}" stroke-linecap="round" stroke-linejoin="round"` : '';
      return `<path d="${d}" fill="${fill ? colour(fill) : 'none'}"${drawn}${opacity === undefined ? '' : ` opacity="${opacity}"`}/>`;
    }),
    ...texts.map(({ text, x, y, anchor, ink, size, turn }) => {
      const turned = turn ? ` transform="rotate(${turn} ${round(x)} ${round(y)})"` : '';
      return `<text x="${round(x)}" y="${round(y)}" fill="${colour(ink)}" font-size="${size ?? SIZE}" text-anchor="${anchor}"${turned}>${escape(text)}</text>`;
    }),
    '</svg>',
  ];
  return new Blob([lines.join('\n')], { type: 'image/svg+xml' });
}

/** Pixels of a picture for each of the page: enough for print. */
const PICTURE_SCALE = 2;
const ALIGNMENTS = { start: 'left', middle: 'center', end: 'right' } as const;

export async function toPng({ width, height, paths, texts }: Scene): Promise<Blob> {
  const colour = readColours();
  const canvas = document.createElement('canvas');
  canvas.width = width * PICTURE_SCALE;
  canvas.height = height * PICTURE_SCALE;
  const context = canvas.getContext('2d')!;
  context.scale(PICTURE_SCALE, PICTURE_SCALE);
  context.fillStyle = colour('surface');
  context.fillRect(0, 0, width, height);
  context.lineCap = 'round';
  context.lineJoin = 'round';
  for (const { d, fill, stroke, width: line, opacity } of paths) {
    const path = new Path2D(d);
    context.globalAlpha = opacity ?? 1;
    if (fill) {
      context.fillStyle = colour(fill);
      context.fill(path);
    }
    if (stroke) {
      context.strokeStyle = colour(stroke);
      context.lineWidth = line ?? 1;
      context.stroke(path);
    }
  }
  context.globalAlpha = 1;
  for (const { text, x, y, anchor, ink, size, turn } of texts) {
    context.save();
    context.translate(x, y);
    context.rotate(((turn ?? 0) * Math.PI) / 180);
    context.font = `${size ?? SIZE}px ${FONT}`;
    context.textAlign = ALIGNMENTS[anchor];
    context.fillStyle = colour(ink);
    context.fillText(text, 0, 0);
    context.restore();
  }
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('The browser could not make the picture.'))), 'image/png');
  });
}
