// Which rating is under the pointer.

import assert from "node:assert/strict";
import test from "node:test";

import { levelAt } from "../../../nmd_lab/widgets/front/ratings.mjs";

test("a place on a star is its rating", () => {
  assert.deepEqual([0.1, 0.3, 0.5, 0.7, 0.9].map((share) => levelAt(share, 5)), [1, 2, 3, 4, 5]);
});

test("half a star is a rating where there are ten", () => {
  assert.deepEqual([0.05, 0.15, 0.95].map((share) => levelAt(share, 10)), [1, 2, 10]);
});

test("the edges are the lowest and the highest one", () => {
  assert.deepEqual([-0.1, 0, 1, 1.1].map((share) => levelAt(share, 5)), [1, 1, 5, 5]);
});
