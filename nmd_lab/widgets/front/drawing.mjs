// What the model draws at a place of the plane, f(wH), beside the data of the nearest row.

import { clamp, html, numbers } from "./dom.mjs";
import { PictureSheet, mosaicOf, pictureScale } from "./mosaic.mjs";

/** Return f(wH) of weights w: H has a row of `size` values for each, and f is a table between two numbers. */
export function drawnValues(w, H, { low, high }, table) {
  const size = H.length / w.length, values = new Float32Array(size), last = table.length - 1;
  w.forEach((weight, k) => {
    for (let at = 0, from = k * size; at < size; at++, from++) values[at] += weight * H[from];
  });
  return values.map((t) => {
    const place = ((t - low) / (high - low)) * last, cell = clamp(Math.floor(place), 0, last - 1);
    return table[cell] + (place - cell) * (table[cell + 1] - table[cell]); // beyond its ends the table goes on as a line
  });
}

/** Return the mean of the rows of W: the nearer a row's place [left, top], the more it counts, and at a dot it alone does. */
export function nearMean(W, { left, top }, [x, y]) {
  const rank = W.length / left.length, mean = new Float64Array(rank);
  let sum = 0;
  for (let k = 0, from = 0; k < left.length; k++, from += rank) {
    const weight = 1 / ((left[k] - x) ** 2 + (top[k] - y) ** 2 + 1e-4) ** 2;
    if (Number.isNaN(weight)) continue;
    sum += weight;
    for (let c = 0; c < rank; c++) mean[c] += weight * W[from + c];
  }
  return mean.map((each) => each / sum);
}

/** Return numbers of codes 0 to 254; 255 stands for NaN. */
export function decodedValues(codes, { low, high }) {
  return Float32Array.from(codes, (code) => (code === 255 ? NaN : low + (code / 254) * (high - low)));
}

/** Two pictures in a place that is reserved for them. */
export class Drawing {
  constructor() {
    const figure = (caption) => {
      const sheet = new PictureSheet(), said = html("figcaption", caption);
      return { sheet, said, element: html("figure", sheet.canvas, said) };
    };
    this.model = figure("model here");
    this.nearest = figure("");
    this.said = html("p.nmd-drawing-said");
    this.element = html("div.nmd-drawing", html("div", this.model.element, this.nearest.element), this.said);
    this.show(null, null);
  }

  /** Take the numbers to draw with, and the scale of the pictures of the page. */
  show(data, pictures) {
    if (data) this.scale = pictureScale(pictures.scale, pictures.low, pictures.high);
    if (data === this.data) return;
    this.data = data;
    this.element.classList.toggle("nmd-drawn", false);
    this.said.textContent = data ? "Move over the plane: the model draws." : "";
    if (!data) return;
    Object.assign(this, { W: numbers(data.W), H: numbers(data.H), table: numbers(data.table) });
    this.codes = numbers(data.data?.codes, Uint8Array);
    const mosaic = mosaicOf({ count: 1, height: data.height, width: data.width });
    for (const { sheet } of [this.model, this.nearest]) sheet.resize(mosaic);
    this.element.classList.toggle("nmd-flat", data.height === 1);
    this.nearest.element.hidden = !data.data;
  }

  /** Draw weights w, and beside them the row at position k. */
  draw(w, k, name) {
    const { data, codes } = this, size = data.height * data.width * data.channels;
    this.values = drawnValues(w, this.H, data, this.table);
    this.model.sheet.fill(this.values, this.scale);
    const row = codes.subarray(k * size, (k + 1) * size);
    if (data.data) this.nearest.sheet.fill(decodedValues(row, data.data), this.scale);
    this.nearest.said.textContent = `data of ${name}`;
    this.said.textContent = data.rank > 4 ? "other components: mean of the near rows" : "";
    this.element.classList.toggle("nmd-drawn", true);
  }
}
