// Run with: node --test tests/widgets/front/
import assert from "node:assert";
import test from "node:test";

import { logTicks, nearestDot, wholeTicks } from "../../../nmd_lab/widgets/front/chart.mjs";

test("a logarithmic axis has two to six ticks in its range", () => {
  for (const [low, high] of [[0.11, 0.13], [0.2, 0.33], [1e-12, 1], [0.2, 40], [3, 3.0001], [1e-300, 1e300]]) {
    const ticks = logTicks(low, high);
    assert.ok(ticks.every((tick, k) => tick >= low && tick <= high && (!k || tick > ticks[k - 1])));
    assert.ok(ticks.length >= 2 && ticks.length <= 6);
  }
});

test("ticks of iterations are whole, from 0, at equal steps", () => {
  for (const high of [1, 1.02, 7, 99, 2040, 123456]) {
    const ticks = wholeTicks(0, high), step = ticks[1];
    assert.ok(ticks.length >= 2 && ticks.length < 8 && Number.isInteger(step) && step >= 1);
    assert.deepEqual(ticks, ticks.map((_, k) => k * step));
  }
});

test("the nearest point within reach is found", () => {
  const lefts = [0, 10, 30], tops = [0, 0, 40];
  assert.equal(nearestDot(lefts, tops, 12, 1, 5), 1);
  assert.equal(nearestDot(lefts, tops, 20, 20, 5), -1);
});
