// Run with: node --test tests/widgets/front/
import assert from "node:assert";
import test from "node:test";

import { rangeOf, linearTicks, nearestDot, tickText } from "../../../nmd_lab/widgets/front/chart.mjs";
import { mostOf } from "../../../nmd_lab/widgets/front/plane.mjs";

/** Return numbers between 0 and 1 that are the same in each run. */
function someNumbers(count, seed = 7) {
  let state = seed;
  return Array.from({ length: count }, () => (state = (state * 16807) % 2147483647) / 2147483647);
}

test("the nearest point is the one of all distances, within reach", () => {
  const [lefts, tops] = [someNumbers(300, 8), someNumbers(300, 9)];
  for (const [left, top] of [[0.2, 0.3], [0.9, 0.9], [0.5, 0.01]]) {
    const away = lefts.map((each, k) => Math.hypot(each - left, tops[k] - top));
    assert.equal(nearestDot(lefts, tops, left, top, 1), away.indexOf(Math.min(...away)));
  }
  assert.equal(nearestDot([0, NaN], [0, 0], 13, 0, 12), -1);
  assert.equal(nearestDot([0, NaN], [0, 0], 12, 0, 12), 0);
  assert.equal(nearestDot([], [], 0, 0, 12), -1);
});

test("linear ticks are round, ascending and within the range", () => {
  assert.deepEqual(linearTicks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(linearTicks(-0.25, 0.31, 5), [-0.2, 0, 0.2]);
  for (const [low, high] of [[-7, 1e6], [1e-9, 3e-9], [99.1, 99.7], [-3e4, -2e4]]) {
    const ticks = linearTicks(low, high);
    assert.ok(ticks.length >= 3 && ticks.length <= 8, `${ticks}`);
    assert.ok(ticks.every((tick, k) => tick >= low && tick <= high && (!k || tick > ticks[k - 1])), `${ticks}`);
  }
});

test("very small and very large ticks have exponents", () => {
  assert.deepEqual([0, 0.5, -20, 2e-5, 1e6].map(tickText), ["0", "0.5", "-20", "2e-5", "1e6"]);
});

test("a range has room around the finite numbers, and only positive ones on a log axis", () => {
  const [low, high] = rangeOf([1, null, NaN, 3, Infinity]);
  assert.ok(low < 1 && low > 0.5 && high > 3 && high < 3.5);
  const [bottom, top] = rangeOf([-1, 0, 0.01, 10], true);
  assert.ok(bottom > 0 && bottom < 0.01 && top > 10);
  assert.deepEqual([rangeOf([]), rangeOf([0], true)], [[0, 1], [0.1, 1]]);
  assert.deepEqual(rangeOf(Float32Array.of(0, 0)), [-1, 1]);
});

test("a few outliers do not squeeze the others, and the person is within the range", () => {
  const numbers = Float32Array.from({ length: 200 }, (_, k) => k);
  numbers[7] = 1e6;
  const [low, high] = mostOf(numbers, 250);
  assert.ok(low < 5 && low > -30 && high > 250 && high < 270, `${low} ${high}`);
});
