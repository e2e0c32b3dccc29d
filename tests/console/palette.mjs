// Pictures of the browser with a palette of 256 colours, which makes them a third as large.
//
// The format: https://www.w3.org/TR/png-3/
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS_MAX = 256;
/** The channels of a pixel for the types of colour that a browser writes: red, green and blue, and also opacity. */
const CHANNELS = { 2: 3, 6: 4 };
const PALETTE = 3;

/** The width and height of a PNG, and whether it has a palette. */
export function describePicture(png) {
  if (!png.subarray(0, 8).equals(SIGNATURE)) throw new Error('this is no PNG');
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20), hasPalette: png[25] === PALETTE };
}

/** The same picture with a palette: the most frequent colours stay as they are, and the others become the nearest of them. */
export function withPalette(png) {
  const { width, height } = describePicture(png);
  const [depth, type] = [png[24], png[25]];
  const channels = CHANNELS[type];
  if (depth !== 8 || !channels || png[28] !== 0) throw new Error(`a PNG of another kind: depth ${depth}, type ${type}`);
  const pixels = unfilter(inflateSync(readData(png)), width, height, channels);
  const { colours, indexOf } = choosePalette(pixels);
  const lines = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1) {
    // The filter of each line stays 0, "none".
    for (let x = 0; x < width; x += 1) lines[y * (width + 1) + 1 + x] = indexOf.get(pixels[y * width + x]);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, PALETTE, 0, 0, 0], 8);
  const palette = Buffer.from(colours.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const chunks = [chunk('IHDR', header), chunk('PLTE', palette), chunk('IDAT', deflateSync(lines, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([SIGNATURE, ...chunks]);
}

function readData(png) {
  const parts = [];
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  return Buffer.concat(parts);
}

/** The colours of the pixels as numbers, without opacity: a picture of a page has none. */
function unfilter(bytes, width, height, channels) {
  const length = width * channels;
  const pixels = new Uint32Array(width * height);
  let above = new Uint8Array(length);
  for (let y = 0; y < height; y += 1) {
    const start = y * (length + 1);
    const filter = bytes[start];
    const line = Uint8Array.from(bytes.subarray(start + 1, start + 1 + length));
    for (let at = 0; at < length; at += 1) {
      const left = at >= channels ? line[at - channels] : 0;
      const corner = at >= channels ? above[at - channels] : 0;
      line[at] += prediction(filter, left, above[at], corner);
    }
    for (let x = 0; x < width; x += 1) {
      const at = x * channels;
      pixels[y * width + x] = (line[at] << 16) | (line[at + 1] << 8) | line[at + 2];
    }
    above = line;
  }
  return pixels;
}

function prediction(filter, left, up, corner) {
  switch (filter) {
    case 0:
      return 0;
    case 1:
      return left;
    case 2:
      return up;
    case 3:
      return (left + up) >> 1;
    case 4:
      return paeth(left, up, corner);
    default:
      throw new Error(`PNG has no filter ${filter}`);
  }
}

function paeth(left, up, corner) {
  const estimate = left + up - corner;
  const [toLeft, toUp, toCorner] = [left, up, corner].map((value) => Math.abs(estimate - value));
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

function choosePalette(pixels) {
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  // Equally frequent colours in the order of their values, so that the same picture becomes the same file.
  const byCount = [...counts].sort(([one, ones], [other, others]) => others - ones || one - other).map(([colour]) => colour);
  const colours = byCount.slice(0, COLOURS_MAX);
  const indexOf = new Map(byCount.map((colour, index) => [colour, index < COLOURS_MAX ? index : nearest(colours, colour)]));
  return { colours, indexOf };
}

function nearest(colours, colour) {
  let [best, smallest] = [0, Infinity];
  colours.forEach((candidate, index) => {
    const parts = [16, 8, 0].map((shift) => ((candidate >> shift) & 255) - ((colour >> shift) & 255));
    const distance = parts.reduce((total, part) => total + part * part, 0);
    if (distance < smallest) [best, smallest] = [index, distance];
  });
  return best;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
