// Run with: node --test tests/widgets/front/
import assert from "node:assert";
import test from "node:test";

import { decodedValues, drawnValues, nearMean } from "../../../nmd_lab/widgets/front/drawing.mjs";

const close = (a, b, most = 1e-5) => a.forEach((each, k) => assert.ok(Math.abs(each - b[k]) < most, `${a} ${b}`));

test("f(wH) is read from the table, which goes on as a line", () => {
  const table = Float32Array.from({ length: 201 }, (_, k) => Math.max(0, k / 100 - 1)), range = { low: -1, high: 1 };
  close(drawnValues([2, -1], Float32Array.of(0.1, 0.2, 3, 0.5, 0.1, 1), range, table), [0, 0.3, 5]);
  close(drawnValues([1], Float32Array.of(-9, -1, 1, 9), range, table), [0, 0, 1, 9]);
});

test("a pixel without a value stays without one", () => {
  assert.deepEqual([...drawnValues([1], Float32Array.of(NaN, 1), { low: 0, high: 1 }, Float32Array.of(0, 1))], [NaN, 1]);
});

test("at a dot the mean is its row, and halfway between two it is half of both", () => {
  const W = Float32Array.of(1, 2, 3, 4, 5, 6), places = { left: [0, 10, NaN], top: [0, 0, 0] };
  close(nearMean(W, places, [10, 0]), [3, 4], 1e-4);
  close(nearMean(W, places, [5, 0]), [2, 3], 1e-4);
  assert.ok(nearMean(W, places, [2, 0])[0] < 1.1);
});

test("bytes become numbers, and 255 none", () => {
  assert.deepEqual([...decodedValues(Uint8Array.of(0, 127, 254, 255), { low: -1, high: 1 })], [-1, 0, 1, NaN]);
});
