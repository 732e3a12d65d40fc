// Run with: node --test tests/widgets/front/
import assert from "node:assert";
import test from "node:test";

import { Factors, decodedValues, nearMean } from "../../../nmd_lab/widgets/front/local.mjs";

const close = (a, b, most = 1e-5) => a.forEach((each, k) => assert.ok(Math.abs(each - b[k]) < most, `${a} ${b}`));

const bytes = (numbers) => new DataView(Float32Array.from(numbers).buffer);

/** Return f(wH) of weights of components, whose rows of H stand one after the other; there are no offsets. */
function drawn(w, H, { low, high, table }) {
  const size = H.length / w.length, none = Array(2 * size).fill(0);
  return new Factors({ rank: w.length + 2, low, high, H: bytes([...H, ...none]), table: bytes(table) }, [...w, 1, 1]).first();
}

test("f(wH) is read from the table, which continues as a line", () => {
  const f = { low: -1, high: 1, table: Array.from({ length: 201 }, (_, k) => Math.max(0, k / 100 - 1)) };
  close(drawn([2, -1], [0.1, 0.2, 3, 0.5, 0.1, 1], f), [0, 0.3, 5]);
  close(drawn([1], [-9, -1, 1, 9], f), [0, 0, 1, 9]);
});

test("a pixel without a value stays without one", () => {
  assert.deepEqual([...drawn([1], [NaN, 1], { low: 0, high: 1, table: [0, 1] })], [NaN, 1]);
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

test("the first components are summed with the offsets, forwards and backwards, and one is alone", () => {
  const table = Float32Array.from({ length: 41 }, (_, k) => k - 20);
  const W = [[1, 2, 0.5, 1], [-1, 3, 0, 1]], H = [[1, 2], [3, -1], [1, 1], [0, 4]]; // two components, offsets of rows and of columns
  const factors = new Factors({ rank: 4, low: -20, high: 20, shown: bytes(W.flat()), H: bytes(H.flat()), table: bytes(table) });
  const sum = (k) => W.flatMap((w) => [0, 1].map((p) => [...[0, 1].slice(0, k), 2, 3].reduce((all, c) => all + w[c] * H[c][p], 0)));
  for (const k of [0, 2, 1, 0, 1, 2]) close(factors.first(k), sum(k), 1e-4);
  close(factors.add(1, 1, new Float32Array(4)), [6, -2, 9, -3]);
});
