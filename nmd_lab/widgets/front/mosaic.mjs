// Pictures as pixels: palettes, places in a mosaic of tiles, discs of a brush.

import { h, made } from "./dom.mjs";

export const HIDDEN = [186, 127, 80];
const UNSURE = [170, 51, 119], ADDS = [213, 94, 0], TAKES = [0, 114, 178], WHITE = [255, 255, 255];
const GAP = 0.05; // between tiles, in sizes of a tile
const LEAST = 24; // tiles that are shown in any case
const BETTER = 1.01; // factor of the covered area that more and smaller tiles have to gain
const blended = (a, b, share) => a.map((each, k) => Math.round(each + share * (b[k] - each)));
const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

const paletteOf = (colorOf) => Uint32Array.from({ length: 256 }, (_, entry) => packed(colorOf(entry)));
const TABLES = { gray: paletteOf((entry) => [entry, entry, entry]),
  signed: paletteOf((entry) => blended(WHITE, entry < 128 ? TAKES : ADDS, Math.abs(entry - 128) / 128)) }; // entry 128 is white

/** Return how values become palette entries (value * gain + base), and the colour of missing ones. */
export function pictureScale(kind, low, high) {
  const isSigned = kind === "signed";
  const gain = isSigned ? 127 / (Math.max(Math.abs(low), Math.abs(high)) || 1) : 255 / (high - low || 1);
  const missing = packed(isSigned ? [140, 140, 140] : HIDDEN);
  return { table: TABLES[kind], missing, gain, base: isSigned ? 128 : -low * gain };
}

/** Return the columns and the number of tiles that fill a place best: of many, not always all. */
export function tilesOf({ count, height, width }, wide, high) {
  const best = { columns: 1, count, covered: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const [least, most] = [Math.min(count, LEAST), count].map((each) => Math.ceil(each / columns));
    for (let rows = least; rows <= most; rows++) {
      const shown = Math.min(count, columns * rows);
      const covered = shown * Math.min(wide / (columns * width), high / (rows * height)) ** 2;
      if (covered > BETTER * best.covered) Object.assign(best, { columns, count: shown, covered });
    }
  }
  return best;
}

/** Return the places of tiles, side by side with gaps, in pixels. */
export function mosaicOf({ count, height, width }, columns = Math.ceil(Math.sqrt(count))) {
  const rows = Math.max(1, Math.ceil(count / columns)), gap = count > 1 ? GAP * Math.max(height, width) : 0;
  return { count, height, width, columns, rows, gap, across: columns * (width + gap) - gap, down: rows * (height + gap) - gap };
}

export const tileCorner = ({ columns, height, width, gap }, k) => [(k % columns) * (width + gap), Math.floor(k / columns) * (height + gap)];

/** Return the tile and its pixel at a place of the mosaic, and how far right in the tile it is; null for a gap. */
export function pixelAt({ count, columns, height, width, gap, across, down }, [left, top]) {
  if (!(left >= 0 && top >= 0 && left < across && top < down)) return null;
  const picture = Math.floor(top / (height + gap)) * columns + Math.floor(left / (width + gap));
  const y = Math.floor(top % (height + gap)), x = Math.floor(left % (width + gap));
  return picture < count && y < height && x < width ? { picture, y, x, share: (left % (width + gap)) / width } : null;
}

/** Return the pixels [row, column] in a disc; whole numbers are their centres. */
export function discPixels([y, x], radius, height, width) {
  const near = (at, size) => [...Array(size).keys()].filter((k) => Math.abs(k - at) <= radius);
  return near(y, height).flatMap((row) => near(x, width).map((column) => [row, column])).filter(([row, column]) => Math.hypot(row - y, column - x) <= radius);
}

/** Return points from one (left out) to another (included), at most `spacing` apart. */
export function strokePoints(from, to, spacing) {
  const count = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / spacing);
  return Array.from({ length: count }, (_, n) => from.map((each, k) => each + ((n + 1) / count) * (to[k] - each)));
}

/** Return the limit that this share of the absolute values keep, by at most 5000 of them; 0 for none. */
export function absoluteLimit(values, share = 0.99) {
  const most = Math.min(5000, values.length), at = (k) => (most === values.length ? k : Math.floor(((k * 0.618033988749895) % 1) * values.length));
  const sample = Float32Array.from({ length: most }, (_, k) => Math.abs(values[at(k)])).filter(Number.isFinite).sort();
  return sample[Math.min(sample.length - 1, Math.floor(share * sample.length))] ?? 0;
}

export function channelMeans(a, b, channels) {
  const means = new Float32Array(a.length / channels);
  for (let k = 0, from = 0; k < means.length; k++) {
    let sum = 0;
    for (const end = from + channels; from < end; from++) sum += b ? a[from] - b[from] : a[from];
    means[k] = sum / channels;
  }
  return means;
}

/** The pixels of all tiles without gaps, on a canvas. */
export class Sheet {
  constructor() {
    this.canvas = made(h("canvas", { "aria-hidden": "true" }));
  }

  resize(mosaic) {
    this.mosaic = mosaic;
    this.wide = mosaic.columns * mosaic.width;
    Object.assign(this.canvas, { width: this.wide, height: mosaic.rows * mosaic.height });
    this.image = new ImageData(this.wide, mosaic.rows * mosaic.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  line(picture, y) {
    const { columns, height, width } = this.mosaic;
    return (Math.floor(picture / columns) * height + y) * this.wide + (picture % columns) * width;
  }

  /** Write the colour of each pixel, by its number among all, its line of all tiles, and its column. */
  write(colorOf) {
    const { count, height, width } = this.mosaic, { pixels } = this;
    for (let line = 0, k = 0; line < count * height; line++) {
      const begin = this.line(Math.floor(line / height), line % height);
      for (let x = 0; x < width; x++, k++) pixels[begin + x] = colorOf(k, line, x);
    }
    this.changed();
  }

  /** Write the colours of values; a scale without a table takes three values a pixel. */
  fill(values, { table, missing, gain, base }) {
    const entry = (value) => { const at = value * gain + base; return at < 0 ? 0 : at > 255 ? 255 : (at + 0.5) | 0; };
    const one = (k) => (values[k] === values[k] ? table[entry(values[k])] : missing), three = (k) => {
      const [red, green, blue] = [values[3 * k], values[3 * k + 1], values[3 * k + 2]], sum = red + green + blue;
      return sum === sum ? 0xff000000 | (entry(blue) << 16) | (entry(green) << 8) | entry(red) : missing;
    };
    this.write(table ? one : three);
  }

  /** Write grey values with more colour where other numbers are larger: signed ones in two colours, up to `most`. */
  tint(values, others, { low, high }, most, signed = false) {
    const gain = 255 / (high - low || 1);
    this.write((k) => {
      const grey = Math.min(255, Math.max(0, Math.round((values[k] - low) * gain) || 0)), other = others[k] || 0;
      const colour = signed ? (other > 0 ? ADDS : TAKES) : UNSURE.map((each) => each * (0.5 + grey / 510));
      const base = signed ? 90 + grey * 0.4 : grey;
      return packed(blended([base, base, base], colour, Math.min(1, Math.abs(other) / (most || 1))));
    });
  }

  changed() {
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
  }
}
