// Axes of charts: ticks, ranges, the point near a place, and colours for the page.

import { COLORS, colorParts } from "./dom.mjs";

/** Return 1, 2 or 5 times a power of ten, the smallest that is at least as large as a number. */
function niceStep(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].find((each) => each * power >= 0.999 * number) * power;
}

/** Return the multiples of a step in a range. */
function multiples(step, low, high) {
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k++) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** Return the tick values of a logarithmic axis: few of 1, 2 and 5 times a power of ten. */
export function logTicks(low, high) {
  if (high < 5 * low) return multiples(niceStep((high - low) / 4), low, high);
  const ticks = [];
  const steps = high / low > 1000 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const step of steps) {
      const tick = step * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(Number(tick.toPrecision(2)));
    }
  }
  const every = Math.ceil(ticks.length / 5);
  return ticks.filter((_, k) => k % every === 0);
}

/** Return the tick values of an axis of whole numbers. */
export function wholeTicks(low, high) {
  return multiples(niceStep(Math.max((high - low) / 5, 1)), low, high);
}

/** Return the position of the x nearest to a number; x is ascending. */
export function nearest(x, number) {
  let [low, high] = [0, x.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= number) low = middle;
    else high = middle;
  }
  return Math.abs(x[low] - number) <= Math.abs(x[high] - number) ? low : high;
}

/** Return the position of the point nearest to a place; -1 if none is within reach. */
export function nearestDot(lefts, tops, left, top, reach) {
  let [best, least] = [-1, reach * reach];
  for (let k = 0; k < lefts.length; k++) {
    const square = (lefts[k] - left) ** 2 + (tops[k] - top) ** 2;
    if (square <= least) [best, least] = [k, square];
  }
  return best;
}

/** Return the multiples of 1, 2 or 5 times a power of ten in a range, about so many. */
export function linearTicks(low, high, count = 7) {
  const rough = (high - low) / count;
  if (!(rough > 0 && rough < Infinity)) return Number.isFinite(low) ? [low] : [];
  return multiples(niceStep(rough), low, high);
}

/** Return the text of a tick. */
export function tickText(tick) {
  const plain = tick === 0 || (Math.abs(tick) >= 0.001 && Math.abs(tick) < 1e5);
  return plain ? String(tick) : tick.toExponential().replace("e+", "e");
}

/** Return a range with some room around all numbers that an axis can show. */
export function dotRange(all, log = false, share = 0.06) {
  const good = all.filter((each) => Number.isFinite(each) && (!log || each > 0));
  if (!good.length) return log ? [0.1, 1] : [0, 1];
  const [low, high] = good.reduce(([a, b], each) => [Math.min(a, each), Math.max(b, each)], [Infinity, -Infinity]);
  const factor = Math.max(1.05, (high / low) ** share);
  const room = share * (high - low) || 0.1 * Math.abs(high) || 1;
  return log ? [low / factor, high * factor] : [low - room, high + room];
}

/** Return the colours for the page around an element: brighter ones where its text is light. */
export function pageColors(element) {
  const [red, green, blue] = colorParts(getComputedStyle(element).color);
  const brighter = (part) => Math.min(255, Math.round(1.7 * parseInt(part, 16))).toString(16).padStart(2, "0");
  return red + green + blue > 384 ? COLORS.map((color) => color.replace(/[\da-f]{2}/g, brighter)) : COLORS;
}
