// Pictures as pixels: palettes, places in a mosaic, discs of a brush, and the paths of marks.

import { html } from "./dom.mjs";

const DOUBT_COLOR = [170, 51, 119];
const blendColors = (a, b, share) => a.map((each, k) => Math.round(each + share * (b[k] - each)));
const packColor = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/** Palettes: the red, green and blue of an entry 0 to 255; entry 128 of the signed one is white. */
export const PICTURE_PALETTES = {
  gray: (entry) => [entry, entry, entry],
  signed: (entry) => blendColors([255, 255, 255], entry < 128 ? [0, 114, 178] : [213, 94, 0], Math.abs(entry - 128) / 128),
};
const PALETTE_TABLES = Object.fromEntries(Object.entries(PICTURE_PALETTES)
  .map(([name, colorOf]) => [name, Uint32Array.from({ length: 256 }, (_, entry) => packColor(colorOf(entry)))]));

/** Return how values become palette entries (value * gain + base), and the color of holes. */
export function pictureScale(kind, low, high) {
  const isSigned = kind === "signed";
  const gain = isSigned ? 127 / (Math.max(Math.abs(low), Math.abs(high)) || 1) : 255 / (high - low || 1);
  const hole = packColor(kind === "gray" || kind === "rgb" ? [127, 155, 184] : [140, 140, 140]);
  const base = isSigned ? 128 : -low * gain;
  return { table: PALETTE_TABLES[kind], hole, gain, base };
}

/** Return the places of pictures in a square mosaic with gaps of one pixel. */
export function mosaicOf({ count, height, width }) {
  const columns = Math.max(1, Math.ceil(Math.sqrt(count))), rows = Math.max(1, Math.ceil(count / columns));
  return { count, height, width, columns, across: columns * (width + 1) - 1, down: rows * (height + 1) - 1 };
}

/** Return the left and top mosaic pixel of a picture. */
export function mosaicCorner({ columns, height, width }, picture) {
  return [(picture % columns) * (width + 1), Math.floor(picture / columns) * (height + 1)];
}

/** Return the picture and its pixel at a place of the mosaic; null for a gap. */
export function mosaicPixel({ count, columns, height, width, across, down }, [left, top]) {
  if (!(left >= 0 && top >= 0 && left < across && top < down)) return null;
  const picture = Math.floor(top / (height + 1)) * columns + Math.floor(left / (width + 1));
  const y = Math.floor(top % (height + 1)), x = Math.floor(left % (width + 1));
  return picture < count && y < height && x < width ? { picture, y, x } : null;
}

/** Return the pixels in a disc as [row, first, last] of each row; whole numbers are the centres of pixels. */
export function discSpans([y, x], radius, height, width) {
  const spans = [];
  for (let row = Math.max(0, Math.ceil(y - radius)); row <= Math.min(height - 1, y + radius); row++) {
    const half = Math.sqrt(radius ** 2 - (row - y) ** 2);
    const first = Math.max(0, Math.ceil(x - half)), last = Math.min(width - 1, Math.floor(x + half));
    if (first <= last) spans.push([row, first, last]);
  }
  return spans;
}

/** Return points from one (left out) to another (included), at most `spacing` apart. */
export function strokePoints(from, to, spacing) {
  const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / spacing);
  return Array.from({ length: steps }, (_, n) => from.map((each, k) => each + ((n + 1) / steps) * (to[k] - each)));
}

/** Return the limit that this share of the absolute values keep, by at most 5000 of them; 0 for none. */
export function absoluteLimit(values, share = 0.99) {
  const most = Math.min(5000, values.length), sample = new Float32Array(most);
  let found = 0;
  for (let k = 0; k < most; k++) {
    const value = values[most === values.length ? k : Math.floor(((k * 0.618033988749895) % 1) * values.length)];
    if (Number.isFinite(value)) sample[found++] = Math.abs(value);
  }
  return found ? sample.subarray(0, found).sort()[Math.min(found - 1, Math.floor(share * found))] : 0;
}

/** Return the mean over channels of a, or of a - b, for each pixel. */
export function channelMeans(a, b, channels) {
  const means = new Float32Array(a.length / channels);
  for (let k = 0, from = 0; k < means.length; k++) {
    let sum = 0;
    for (const end = from + channels; from < end; from++) sum += b ? a[from] - b[from] : a[from];
    means[k] = sum / channels;
  }
  return means;
}

/** Write the colors of values into the pixels of a mosaic; a scale without a table takes three values a pixel. */
export function fillMosaic(pixels, values, mosaic, { table, hole, gain, base }) {
  const { count, height, width, across } = mosaic;
  const entry = (value) => { const at = value * gain + base; return at < 0 ? 0 : at > 255 ? 255 : (at + 0.5) | 0; };
  for (let line = 0, from = 0; line < count * height; line++) {
    const [left, top] = mosaicCorner(mosaic, Math.floor(line / height)), begin = (top + (line % height)) * across + left;
    for (let to = begin; to < begin + width; to++) {
      const value = values[from++];
      if (table) { pixels[to] = value === value ? table[entry(value)] : hole; continue; }
      const green = values[from++], blue = values[from++], sum = value + green + blue;
      pixels[to] = sum === sum ? (255 << 24) | (entry(blue) << 16) | (entry(green) << 8) | entry(value) : hole;
    }
  }
}

/** Write grey values that have the more colour the larger the doubt about them is. */
export function tintMosaic(pixels, values, doubts, mosaic, { low, high, most }) {
  const { count, height, width, across } = mosaic, gain = 255 / (high - low || 1);
  for (let line = 0, from = 0; line < count * height; line++) {
    const [left, top] = mosaicCorner(mosaic, Math.floor(line / height)), begin = (top + (line % height)) * across + left;
    for (let to = begin; to < begin + width; to++, from++) {
      const grey = Math.min(255, Math.max(0, Math.round((values[from] - low) * gain) || 0));
      const colour = DOUBT_COLOR.map((each) => each * (0.5 + grey / 510));
      pixels[to] = packColor(blendColors([grey, grey, grey], colour, Math.min(1, doubts[from] / most || 0)));
    }
  }
}

/** The pixels of a mosaic, on a canvas. */
export class PictureSheet {
  constructor() {
    this.canvas = html("canvas", { "aria-hidden": "true" });
  }

  resize(mosaic) {
    this.mosaic = mosaic;
    Object.assign(this.canvas, { width: mosaic.across, height: mosaic.down });
    this.image = new ImageData(mosaic.across, mosaic.down);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  fill(values, scale) {
    fillMosaic(this.pixels, values, this.mosaic, scale);
    this.changed();
  }

  /** Take over pixels that have changed. */
  changed() {
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
  }
}

/** Return the path of lines through a pixel, up to the edges of its picture, and around it. */
export function pixelCross(mosaic, { picture, y, x }) {
  const [left, top] = mosaicCorner(mosaic, picture), right = left + mosaic.width, bottom = top + mosaic.height;
  const lines = `M${left} ${top + y + 0.5}H${left + x}m1 0H${right}M${left + x + 0.5} ${top}V${top + y}m0 1V${bottom}`;
  return lines + pictureBox(left + x, top + y, 1, 1);
}
export const pictureBox = (left, top, width, height) => `M${left} ${top}h${width}v${height}h${-width}z`;
export const brushCircle = (left, top, r) => `M${left - r} ${top}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
