// The model f(WH) in the page: of the first components, of one of them, and at a place of the plane.

import { clamp, numbers } from "./dom.mjs";

/** Return the value of f, given as a table between two numbers, which continues as a line beyond them. */
function functionOf({ low, high }, table) {
  const last = table.length - 1, gain = last / (high - low);
  return (t) => {
    const place = (t - low) * gain, cell = clamp(Math.floor(place), 0, last - 1);
    return table[cell] + (place - cell) * (table[cell + 1] - table[cell]);
  };
}

/** Return f(wH) of weights w: H has a row of numbers for each, and f is a table. */
export function drawnValues(w, H, ends, table) {
  const size = H.length / w.length, values = new Float32Array(size);
  w.forEach((weight, k) => {
    for (let at = 0, from = k * size; at < size; at++, from++) values[at] += weight * H[from];
  });
  return values.map(functionOf(ends, table));
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

/** W and H of what is on the stage; two more components are the offsets of rows and of columns. */
export class Factors {
  constructor(data) {
    Object.assign(this, { data, W: numbers(data.shown), H: numbers(data.H), k: 0 });
    this.rank = data.rank - 2;
    this.size = this.H.length / data.rank;
    this.count = this.W.length / data.rank;
    this.f = functionOf(data, numbers(data.table));
    this.sums = new Float32Array(this.count * this.size);
    for (const offset of [this.rank, this.rank + 1]) this.add(offset, 1);
  }

  /** Add a component to the sums, or to other numbers, times 1 or -1. */
  add(c, sign, sums = this.sums) {
    const { W, H, size, count, data: { rank } } = this;
    for (let i = 0, to = 0; i < count; i++) {
      const w = sign * W[i * rank + c];
      if (w === 0) { to += size; continue; }
      for (let from = c * size, end = from + size; from < end; from++) sums[to++] += w * H[from];
    }
    return sums;
  }

  whole() { return this.first(this.rank); }

  /** Return f of the sum of the first k components. */
  first(k) {
    while (this.k < k) this.add(this.k++, 1);
    while (this.k > k) this.add(--this.k, -1);
    return this.sums.map(this.f);
  }
}
