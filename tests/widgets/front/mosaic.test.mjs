import assert from "node:assert/strict";
import test from "node:test";

import {
  PICTURE_PALETTES, absoluteLimit, channelMeans, discSpans, fillMosaic, mosaicCorner, mosaicOf, mosaicPixel, pictureScale,
  strokePoints, tintMosaic,
} from "../../../nmd_lab/widgets/front/mosaic.mjs";

const colorOf = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255, pixel >>> 24];

function filled(values, about, scale) {
  const mosaic = mosaicOf(about), pixels = new Uint32Array(mosaic.across * mosaic.down);
  fillMosaic(pixels, Float32Array.from(values), mosaic, scale);
  return [...pixels].map(colorOf);
}

test("palettes go from dark to bright, and from blue over white to orange", () => {
  assert.deepEqual(PICTURE_PALETTES.gray(77), [77, 77, 77]);
  assert.deepEqual(PICTURE_PALETTES.signed(128), [255, 255, 255]);
  const [negative, positive] = [PICTURE_PALETTES.signed(1), PICTURE_PALETTES.signed(255)];
  assert.ok(negative[2] > negative[0] && positive[0] > positive[2]);
});

test("pixels of a mosaic are found again, and gaps are none", () => {
  const mosaic = mosaicOf({ count: 5, height: 3, width: 2 });
  assert.deepEqual([mosaic.columns, mosaic.across, mosaic.down], [3, 8, 7]);
  for (let picture = 0; picture < 5; picture++) for (let y = 0; y < 3; y++) for (let x = 0; x < 2; x++) {
    const [left, top] = mosaicCorner(mosaic, picture);
    assert.deepEqual(mosaicPixel(mosaic, [left + x + 0.4, top + y + 0.9]), { picture, y, x });
  }
  for (const place of [[2.5, 0], [0, 3.1], [7, 6], [-0.1, 0], [8, 0], [NaN, 0]]) assert.equal(mosaicPixel(mosaic, place), null);
});

test("gray values, holes and gaps get their colors", () => {
  const pixels = filled([0, 1, NaN, 0.5, -9, 9], { count: 2, height: 1, width: 3 }, pictureScale("gray", 0, 1));
  const hole = [127, 155, 184, 255], gray = (entry) => [entry, entry, entry, 255];
  assert.deepEqual(pixels, [gray(0), gray(255), hole, [0, 0, 0, 0], gray(128), gray(0), gray(255)]);
});

test("zero is white on the signed scale, and a scale without width has no NaN", () => {
  const [zero, least] = filled([0, -2], { count: 1, height: 1, width: 2 }, pictureScale("signed", -2, 1));
  assert.deepEqual([zero, least], [[255, 255, 255, 255], [...PICTURE_PALETTES.signed(1), 255]]);
  assert.deepEqual(filled([0], { count: 1, height: 1, width: 1 }, pictureScale("signed", 0, 0))[0], [255, 255, 255, 255]);
  assert.deepEqual(filled([3], { count: 1, height: 1, width: 1 }, pictureScale("gray", 3, 3))[0], [0, 0, 0, 255]);
});

test("colors have three values a pixel, and one NaN makes a hole", () => {
  const pixels = filled([0, 1, 2, 1, NaN, 1], { count: 1, height: 1, width: 2 }, pictureScale("rgb", 0, 2));
  assert.deepEqual(pixels, [[0, 128, 255, 255], [127, 155, 184, 255]]);
});

test("doubt is colour: none leaves the grey of the picture, and more makes it purple", () => {
  const mosaic = mosaicOf({ count: 1, height: 1, width: 4 }), pixels = new Uint32Array(4), about = { low: 0, high: 2, most: 5 };
  tintMosaic(pixels, Float32Array.from([1, 2, 2, NaN]), Float32Array.from([0, 5, 2.5, NaN]), mosaic, about);
  const [none, all, half, hole] = [...pixels].map(colorOf);
  assert.deepEqual([none, all], [[128, 128, 128, 255], [170, 51, 119, 255]]);
  assert.deepEqual(half, [213, 153, 187, 255]);
  assert.deepEqual(hole, [0, 0, 0, 255]);
});

test("a disc has the pixels whose centres are near, and stays in the picture", () => {
  assert.deepEqual(discSpans([5, 5], 1, 9, 9), [[4, 5, 5], [5, 4, 6], [6, 5, 5]]);
  assert.deepEqual(discSpans([0, 0], 1.5, 9, 9), [[0, 0, 1], [1, 0, 1]]);
  assert.deepEqual(discSpans([-5, 3], 2, 9, 9), []);
});

test("the points of a stroke are close, and end where it ends", () => {
  const points = strokePoints([0, 0], [3, 4], 1.5);
  assert.equal(points.length, 4);
  assert.deepEqual(points.at(-1), [3, 4]);
  assert.ok(Math.hypot(...points[0]) <= 1.5);
  assert.deepEqual(strokePoints([2, 2], [2, 2], 1), []);
});

test("the limit leaves out few large values, and knows nothing but NaN", () => {
  const values = Float32Array.from({ length: 100_000 }, (_, k) => (k % 200 === 0 ? -1000 : (k % 101) / 100));
  const limit = absoluteLimit(values, 0.99);
  assert.ok(limit >= 0.95 && limit <= 1, String(limit));
  assert.equal(absoluteLimit(Float32Array.of(NaN, -3, 2)), 3);
  assert.equal(absoluteLimit(Float32Array.of(NaN)), 0);
  assert.equal(absoluteLimit(new Float32Array(0)), 0);
});

test("means over channels, of values and of differences", () => {
  assert.deepEqual([...channelMeans(Float32Array.of(1, 2, 3, 4, 5, 6), null, 3)], [2, 5]);
  assert.deepEqual([...channelMeans(Float32Array.of(3, 1), Float32Array.of(1, NaN), 1)], [2, NaN]);
});
