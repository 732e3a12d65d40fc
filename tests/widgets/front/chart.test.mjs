// Run with: node --test tests/widgets/front/
import assert from "node:assert";
import test from "node:test";

import { pageColors } from "../../../nmd_lab/widgets/front/dom.mjs";
import { cutText, dotPoints, roomyTicks } from "../../../nmd_lab/widgets/front/chart.mjs";

const points = [{ label: "8", x: 1, y: 0.1, id: 4 }, { x: 2, y: 0.2, low: 0.1, high: 0.3, panel: "a", name: "two" }, { x: 3, y: null }, { x: 4, y: 0 }];

test("points have all that is drawn, without those that have no value", () => {
  const [first, second, ...rest] = dotPoints({ points });
  assert.deepEqual(first, { panel: "", label: "8", name: "", id: 4, x: 1, y: 0.1, low: null, high: null });
  assert.deepEqual(second, { panel: "a", label: "", name: "two", id: null, x: 2, y: 0.2, low: 0.1, high: 0.3 });
  assert.equal(rest.length, 1);
});

test("a logarithm has no place for 0", () => assert.equal(dotPoints({ points, log: true }).length, 2));

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
