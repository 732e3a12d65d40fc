// Axes of charts: ticks, ranges, places of numbers, and the point near a place.

import { clamp, svg } from "./dom.mjs";

/** Return the multiples in a range of the smallest 1, 2 or 5 times a power of ten above a number. */
function multiples(least, low, high) {
  const power = 10 ** Math.floor(Math.log10(least)), step = [1, 2, 5, 10].find((each) => each * power >= 0.999 * least) * power;
  const first = Math.ceil(low / step - 1e-9), count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

export const linearTicks = (low, high, count = 7) => multiples((high - low) / count, low, high);

export const wholeTicks = (low, high) => multiples(Math.max((high - low) / 5, 1), low, high);

/** Return the tick values of a logarithmic axis: few of 1, 2 and 5 times a power of ten. */
export function logTicks(low, high) {
  if (high < 5 * low) return linearTicks(low, high, 4);
  const first = Math.floor(Math.log10(low)), powers = Array.from({ length: Math.floor(Math.log10(high)) - first + 1 }, (_, k) => 10 ** (first + k));
  const ticks = powers.flatMap((power) => (high / low > 1000 ? [1] : [1, 2, 5]).map((step) => Number((step * power).toPrecision(2))));
  const shown = ticks.filter((tick) => tick >= low && tick <= high);
  return shown.filter((_, k) => k % Math.ceil(shown.length / 5) === 0);
}

export function tickText(tick) {
  const plain = tick === 0 || (Math.abs(tick) >= 0.001 && Math.abs(tick) < 1e5);
  return plain ? String(tick) : tick.toExponential().replace("e+", "e");
}

/** Return the position of the point nearest to a place; -1 if none is within reach. */
export function nearestDot(lefts, tops, left, top, reach) {
  const far = (k) => (k < 0 ? reach : Math.hypot(lefts[k] - left, tops[k] - top));
  return lefts.reduce((best, _, k) => (far(k) <= far(best) ? k : best), -1);
}

/** Return a range with some room around all numbers that an axis can show. */
export function rangeOf(all, log = false, share = 0.06) {
  const good = all.filter((each) => Number.isFinite(each) && (!log || each > 0));
  if (!good.length) return log ? [0.1, 1] : [0, 1];
  const low = good.reduce((a, b) => Math.min(a, b)), high = good.reduce((a, b) => Math.max(a, b));
  const factor = Math.max(1.02, (high / low) ** share);
  const room = share * (high - low) || 0.1 * Math.abs(high) || 1;
  return log ? [low / factor, high * factor] : [low - room, high + room];
}

/** Places in a box of pixels: numbers outside of the ranges stand at its edge. */
export class Axes {
  constructor(box, xs, ys, log = false) {
    Object.assign(this, box, { xs, ys, scale: log ? Math.log : Number });
  }

  across(x) {
    const share = clamp((x - this.xs[0]) / (this.xs[1] - this.xs[0]), 0, 1);
    return this.left + share * (this.right - this.left);
  }

  up(y) {
    const [low, high, at] = [...this.ys, y].map(this.scale);
    return this.bottom - clamp((at - low) / (high - low), 0, 1) * (this.bottom - this.top);
  }

  /** Return the x and, without logarithms, the y at a place. */
  valuesAt(left, top) {
    const between = ([low, high], share) => low + clamp(share, 0, 1) * (high - low);
    return [between(this.xs, (left - this.left) / (this.right - this.left)), between(this.ys, (this.bottom - top) / (this.bottom - this.top))];
  }

  rows(ticks, texts = true) {
    const { left, right } = this;
    return ticks.flatMap((tick) => {
      const y = this.up(tick), line = { x1: left, x2: right, y1: y, y2: y };
      return [svg("line", { ...line, stroke: "currentColor", opacity: 0.15 }),
        texts ? svgText(tickText(tick), left - 5, y, { "text-anchor": "end", dy: "0.33em" }) : ""];
    });
  }
}

export const svgText = (text, x, y, ...more) => svg("text", { x, y, "text-anchor": "middle" }, ...more, text);
