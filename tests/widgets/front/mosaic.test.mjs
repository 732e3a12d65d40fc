import assert from "node:assert/strict";
import test from "node:test";

import {
  Sheet, absoluteLimit, channelMeans, discPixels, mosaicOf, pictureScale, pixelAt, strokePoints, tileCorner, tilesOf,
} from "../../../nmd_lab/widgets/front/pictures.mjs";

const colorOf = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255, pixel >>> 24];

/** Return a sheet of pixels alone, without a canvas. */
function sheetOf(about) {
  const mosaic = mosaicOf(about), wide = mosaic.columns * mosaic.width;
  return Object.assign(Object.create(Sheet.prototype), { mosaic, wide, pixels: new Uint32Array(wide * mosaic.rows * mosaic.height), changed() {} });
}

function filled(values, about, scale) {
  const sheet = sheetOf(about);
  sheet.fill(Float32Array.from(values), scale);
  return [...sheet.pixels].map(colorOf);
}

test("pixels of a mosaic are found again, and gaps are none", () => {
  const mosaic = mosaicOf({ count: 5, height: 3, width: 2 });
  assert.deepEqual([mosaic.columns, mosaic.rows, mosaic.gap.toFixed(2)], [3, 2, "0.15"]);
  for (let picture = 0; picture < 5; picture++) for (let y = 0; y < 3; y++) for (let x = 0; x < 2; x++) {
    const [left, top] = tileCorner(mosaic, picture), { share, ...found } = pixelAt(mosaic, [left + x + 0.4, top + y + 0.9]);
    assert.deepEqual(found, { picture, y, x });
    assert.ok(Math.abs(share - (x + 0.4) / 2) < 1e-6);
  }
  for (const place of [[2.1, 0], [0, 3.1], [6, 6], [-0.1, 0], [8, 0], [NaN, 0]]) assert.equal(pixelAt(mosaic, place), null);
});

test("as many tiles are shown as fill a place best, but at least 24 and all of a few", () => {
  const of = (count, wide, high, [height, width] = [8, 8]) => {
    const { columns, count: shown } = tilesOf({ count, height, width }, wide, high);
    return [columns, shown];
  };
  assert.deepEqual(of(40, 810, 460), [7, 28]);
  assert.deepEqual(of(40, 1120, 450), [10, 40]);
  assert.deepEqual(of(40, 300, 900), [3, 27]);
  assert.deepEqual(of(5, 800, 450), [3, 5]);
  assert.deepEqual(of(1, 840, 560, [427, 640]), [1, 1]);
  assert.deepEqual(of(40, 0, 0), [1, 40]); // nothing is visible yet
});

test("gray values and missing ones get their colours, tile after tile", () => {
  const pixels = filled([0, 1, NaN, 0.5, -9, 9], { count: 2, height: 1, width: 3 }, pictureScale("gray", 0, 1));
  const missing = [186, 127, 80, 255], gray = (entry) => [entry, entry, entry, 255];
  assert.deepEqual(pixels, [gray(0), gray(255), missing, gray(128), gray(0), gray(255)]);
});

test("on the signed scale zero is white, less is blue and more orange, and a scale without width has no NaN", () => {
  const colours = filled([0, -2, 2], { count: 1, height: 1, width: 3 }, pictureScale("signed", -2, 1));
  assert.deepEqual(colours, [[255, 255, 255, 255], [2, 115, 179, 255], [213, 95, 2, 255]]);
  assert.deepEqual(filled([0], { count: 1, height: 1, width: 1 }, pictureScale("signed", 0, 0))[0], [255, 255, 255, 255]);
  assert.deepEqual(filled([3], { count: 1, height: 1, width: 1 }, pictureScale("gray", 3, 3))[0], [0, 0, 0, 255]);
});

test("colors have three values a pixel, and one NaN makes it missing", () => {
  const pixels = filled([0, 1, 2, 1, NaN, 1], { count: 1, height: 1, width: 2 }, pictureScale("rgb", 0, 2));
  assert.deepEqual(pixels, [[0, 128, 255, 255], [186, 127, 80, 255]]);
});

test("uncertainty is colour: none leaves the grey of the picture, and more makes it purple", () => {
  const sheet = sheetOf({ count: 1, height: 1, width: 4 });
  sheet.tint(Float32Array.from([1, 2, 2, NaN]), Float32Array.from([0, 5, 2.5, NaN]), { low: 0, high: 2 }, 5);
  const [none, all, half, missing] = [...sheet.pixels].map(colorOf);
  assert.deepEqual([none, all], [[128, 128, 128, 255], [170, 51, 119, 255]]);
  assert.deepEqual(half, [213, 153, 187, 255]);
  assert.deepEqual(missing, [0, 0, 0, 255]);
});

test("what a component adds is orange, and what it takes away is blue", () => {
  const sheet = sheetOf({ count: 1, height: 1, width: 2 });
  sheet.tint(Float32Array.from([1, 1]), Float32Array.from([3, -3]), { low: 0, high: 2 }, 3, true);
  assert.deepEqual([...sheet.pixels].map(colorOf), [[213, 94, 0, 255], [0, 114, 178, 255]]);
});

test("a disc has the pixels whose centres are near, and stays in the picture", () => {
  assert.deepEqual(discPixels([5, 5], 1, 9, 9), [[4, 5], [5, 4], [5, 5], [5, 6], [6, 5]]);
  assert.deepEqual(discPixels([0, 0], 1.5, 9, 9), [[0, 0], [0, 1], [1, 0], [1, 1]]);
  assert.deepEqual(discPixels([-5, 3], 2, 9, 9), []);
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
