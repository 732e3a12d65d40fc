// Run with: node --test tests/widgets/front/
import assert from "node:assert";
import test from "node:test";

import { rangeOf, linearTicks, nearestDot, tickText } from "../../../nmd_lab/widgets/front/axes.mjs";
import { insideOf, mostOf } from "../../../nmd_lab/widgets/front/plane.mjs";

/** Return numbers between 0 and 1 that are the same in each run. */
function someNumbers(count, seed = 7) {
  let state = seed;
  return Array.from({ length: count }, () => (state = (state * 16807) % 2147483647) / 2147483647);
}

const square = [[0, 0], [1, 0], [1, 1], [0, 1]];

test("a square holds what is between its sides", () => {
  assert.deepEqual(insideOf(square, [0.5, 1.5, -0.1, 0.99], [0.5, 0.5, 0.2, 0.01]), [0, 3]);
});

test("a polygon in the other direction holds the same points", () => {
  const [xs, ys] = [someNumbers(500, 3), someNumbers(500, 4)];
  const shape = [[0.1, 0.1], [0.9, 0.3], [0.5, 0.5], [0.8, 0.95], [0.2, 0.7]];
  assert.deepEqual(insideOf(shape, xs, ys), insideOf([...shape].reverse(), xs, ys));
});

test("a convex polygon holds the points on the same side of all its edges", () => {
  const corners = Array.from({ length: 9 }, (_, k) => [Math.cos((2 * Math.PI * k) / 9), Math.sin((2 * Math.PI * k) / 9)]);
  const [xs, ys] = [5, 6].map((seed) => someNumbers(2000, seed).map((each) => 2.4 * each - 1.2));
  const left = ([ax, ay], [bx, by], x, y) => (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0;
  const expected = [...xs.keys()].filter((k) => corners.every((each, i) => left(each, corners[(i + 1) % 9], xs[k], ys[k])));
  assert.ok(expected.length > 500);
  assert.deepEqual(insideOf(corners, xs, ys), expected);
});

test("the notch of a concave polygon and the middle of a star are outside", () => {
  const notched = [[0, 0], [4, 0], [4, 4], [2, 1], [0, 4]];
  assert.deepEqual(insideOf(notched, [2, 0.5, 3.5, 2], [3, 2, 2, 0.5]), [1, 2, 3]);
  const star = [0, 2, 4, 1, 3].map((k) => [Math.sin((2 * Math.PI * k) / 5), Math.cos((2 * Math.PI * k) / 5)]);
  assert.deepEqual(insideOf(star, [0, 0], [0, 0.8]), [1]);
});

test("nothing is inside an empty polygon, a line, or at NaN", () => {
  assert.deepEqual(insideOf([], [0], [0]), []);
  assert.deepEqual(insideOf([[0, 0], [1, 1]], [0.5, 0.2], [0.5, 0.9]), []);
  assert.deepEqual(insideOf(square, [NaN, 0.5], [0.5, NaN]), []);
});

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
