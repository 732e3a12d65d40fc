// Which rating is under the pointer.

import assert from "node:assert/strict";
import test from "node:test";

import { levelAt, starsOf } from "../../../nmd_lab/widgets/front/ratings.mjs";

const WHOLE = starsOf([1, 2, 3, 4, 5]), HALF = starsOf([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]);

test("a place on a star is its rating", () => {
  assert.deepEqual([0.1, 0.3, 0.5, 0.7, 0.9].map((share) => levelAt(share, WHOLE.shares)), [1, 2, 3, 4, 5]);
});

test("half a star is a rating where there are ten", () => {
  assert.equal(HALF.count, 5);
  assert.deepEqual([0.05, 0.15, 0.95].map((share) => levelAt(share, HALF.shares)), [1, 2, 10]);
});

test("nine ratings from 1 to 5 have five stars, of which the lowest fills one", () => {
  const nine = starsOf([1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]);
  assert.equal(nine.count, 5);
  assert.deepEqual([nine.shares[0], nine.shares[7]], [0.2, 0.9]);
  assert.deepEqual([0.1, 0.2, 0.25, 0.85, 1].map((share) => levelAt(share, nine.shares)), [1, 1, 2, 8, 9]);
});

test("other ratings have a star for each", () => {
  assert.deepEqual(starsOf([-2, 0, 7]), { count: 3, shares: [1 / 3, 2 / 3, 1] });
});

test("the edges are the lowest and the highest one", () => {
  assert.deepEqual([-0.1, 0, 1, 1.1].map((share) => levelAt(share, WHOLE.shares)), [1, 1, 5, 5]);
});

test("the middle of a star is all of it where there are halves", () => {
  const { shares } = starsOf([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]);
  assert.deepEqual([0.9, 0.82, 0.5].map((share) => levelAt(share, shares, 0.15 / 5)), [10, 9, 6]);
});
