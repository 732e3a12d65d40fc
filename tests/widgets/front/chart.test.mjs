// Run with: node --test tests/widgets/front/
import assert from "node:assert";
import test from "node:test";

import { pageColors } from "../../../nmd_lab/widgets/front/dom.mjs";
import { cutText, dotPoints, roomyTicks } from "../../../nmd_lab/widgets/front/chart.mjs";

const series = { label: "8", x: [2, 1, 3], y: [0.2, 0.1, null], low: [0.1, null, 0], high: [0.3, null, 1], ids: ["b", "a", "c"] };
const names = ["two", "one", "three"];

test("points carry what the series says, without those that have no value", () => {
  const [first, second, ...rest] = dotPoints({ panels: [{ title: "", series: [{ ...series, names }] }] });
  assert.deepEqual(first, { panel: 0, number: 0, x: 2, y: 0.2, low: 0.1, high: 0.3, label: "8", id: "b", name: "two" });
  assert.deepEqual([second.low, second.high, second.id, rest.length], [null, null, "a", 0]);
});

test("joined points are in the order of x, and each keeps its id and name", () => {
  const points = dotPoints({ panels: [{ title: "", series: [{ ...series, names }] }], joined: true });
  assert.deepEqual(points.map(({ x, id, name }) => [x, id, name]), [[1, "a", "one"], [2, "b", "two"]]);
});

test("points of all panels and series are numbered", () => {
  const one = { label: "", x: [0], y: [1], low: null, high: null, ids: null, names: ["0"] };
  const points = dotPoints({ panels: [{ title: "a", series: [one, one] }, { title: "b", series: [one] }] });
  assert.deepEqual(points.map(({ panel, number }) => [panel, number]), [[0, 0], [0, 1], [1, 0]]);
  assert.deepEqual([points[0].id, points[0].low, points[0].name], [null, null, "0"]);
});

test("texts are cut to a width", () => {
  assert.equal(cutText("short", 200), "short");
  const cut = cutText("a rather long name of a model", 80);
  assert.ok(cut.endsWith("…") && cut.length < 14 && cut.length > 5, cut);
});

test("ticks that would touch the one before are left out", () => {
  const at = (left, text) => ({ left, text });
  const ticks = [at(0, "2"), at(5, "4"), at(40, "8"), at(100, "sixteen"), at(110, "32")];
  assert.deepEqual(roomyTicks(ticks).map(({ text }) => text), ["2", "8", "sixteen"]);
});

test("ten values of a coordinate have ten colours, and more are grey", () => {
  globalThis.getComputedStyle = () => ({ getPropertyValue: () => "#56b4e9", color: "#eee" }); // dark
  const colors = Array.from({ length: 12 }, (_, k) => pageColors(null)(k));
  assert.equal(new Set(colors.slice(0, 10)).size, 10);
  assert.deepEqual(colors.slice(10), ["#8a8a8a", "#8a8a8a"]);
});
