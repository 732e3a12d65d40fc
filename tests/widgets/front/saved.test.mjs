// What a saved file answers in the place of a kernel.

import assert from "node:assert/strict";
import test from "node:test";

import { Local } from "../../../nmd_lab/widgets/front/local.mjs";
import { Recorded } from "../../../nmd_lab/widgets/front/saved.mjs";

const bytes = (...numbers) => Buffer.from(Float32Array.from(numbers).buffer).toString("base64");
const floats = (view) => [...new Float32Array(view.buffer)];
const column = { at: 0, name: "size", state: [0, 2, 0], data: ["3", "", "1"], model: ["", "2", ""], sure: ["", "1 – 4", ""], share: [1, 0.5, 0] };

function recorded(shown) {
  const blobs = [bytes(1, 2), bytes(3, 4), Buffer.from([0, 254, 255]).toString("base64")];
  return new Local(new Recorded({ shown, blobs }), true);
}

test("numbers come back, those of large pictures from codes with their holes", () => {
  const model = recorded({ modelled: { blob: 0 }, pictures: { seen: { floats: { low: 1, high: 3, codes: { blob: 2 } } } } });
  assert.deepEqual(floats(model.get("modelled")), [1, 2]);
  assert.deepEqual(floats(model.get("pictures").seen), [1, 3, NaN]);
  assert.equal(model.get("unknown"), null);
});

/** A model of one row of two components, on data of two numbers; a kernel hears what the page sends. */
function kernel(off = [], chosen = null) {
  const view = (...values) => new DataView(Float32Array.from(values).buffer);
  const drawing = { rank: 4, height: 1, width: 2, channels: 1, W: view(2, 3, 0, 1), shown: view(2, 3, 0, 1), H: view(1, 0, 0, 1, 1, 1, 0, 0),
    low: 0, high: 10, table: view(0, 10), data: null, errors: [3, 2, 1], lost: [2.5, 2], where: "held out" };
  const scatter = { rows: new DataView(Int32Array.from([7]).buffer), labels: ["p"], values: [], groups: [] };
  const status = { message: "", sentence: [["p", "data"], [": ", ""], ["2 components", "components"], [". ", ""], ["Held-out pixels are predicted to ", ""], ["±1", "number"], [" of 0…10.", ""]] };
  const shown = { drawing, status, scatter, components: { off, chosen }, modelled: view(2, 3), pictures: { layout: "rows", ids: [7] } };
  const sent = [], heard = {};
  return { sent, shown, get: (name) => shown[name], on: (event, listener) => { heard[event] = listener; }, off: () => {}, send: (message) => sent.push(message),
    change: (changes) => { Object.assign(shown, changes); for (const name of Object.keys(changes)) heard[`change:${name}`]?.(); } };
}

const said = (model) => model.get("status").sentence.map(([text]) => text).join("");

test("a component goes off at once, with the errors of the model without it", () => {
  const source = kernel(), model = new Local(source), message = { do: "component", k: 1, what: "off" };
  model.send(message);
  assert.deepEqual([floats(model.get("modelled")), model.get("components").off], [[2, 0], [1]]);
  assert.deepEqual([model.get("drawing").errors.at(-1), source.sent, model.waits], [2, [message], true]);
  assert.equal(said(model), "p: 2 components. Held-out pixels are predicted to ±1 of 0…10."); // which is grey until the kernel has answered
  source.change({ components: { off: [1], chosen: null } });
  assert.deepEqual([model.get("drawing").errors.at(-1), model.waits], [2, false]);
});

test("without a kernel the sentence has the error without a component, and says that it is not known without two", () => {
  const model = new Local(kernel(), true);
  model.send({ do: "component", k: 0, what: "off" });
  assert.equal(said(model), "p: 2 components, without component 0. Held-out pixels are predicted to ±2.50 of 0…10.");
  model.send({ do: "component", k: 1, what: "off" });
  assert.deepEqual([said(model), model.get("drawing").errors], ["p: 2 components, without component 0, 1. How well it predicts needs Python.", []]);
  model.send({ do: "component", what: "on" });
  assert.equal(said(model), "p: 2 components. Held-out pixels are predicted to ±1 of 0…10.");
  assert.deepEqual([floats(model.get("modelled")), model.get("drawing").errors], [[2, 3], [3, 2, 1]]);
});

test("a new model of the kernel counts, whatever was clicked before it", () => {
  const source = kernel(), model = new Local(source);
  model.send({ do: "component", k: 0, what: "rows" });
  assert.equal(model.get("components").chosen, 0);
  source.change({ drawing: { ...source.shown.drawing } });
  assert.equal(model.get("components").chosen, null);
});

test("what was not recorded has a sentence", () => {
  const model = recorded({ status: { message: "done", phase: "finished" } });
  model.send({ do: "opened" });
  assert.equal(model.get("status").message, "done");
  model.send({ do: "run" });
  assert.match(model.get("status").message, /needs Python/);
});

test("a point of a study shows its fits, and a second click those of the best model", () => {
  const model = recorded({ facts: { point: null, abouts: ["a", "b"] }, tables: ["best", "all"] });
  model.send({ do: "point", chart: "study", id: 1 });
  assert.deepEqual([model.get("facts").point, model.get("tables")], [1, ["b", "all"]]);
  model.send({ do: "point", chart: "study", id: 1 });
  assert.deepEqual([model.get("facts").point, model.get("tables")], [null, ["best", "all"]]);
});

test("a table is sorted by a column, and again the other way round, missing cells last", () => {
  const model = recorded({ grid: { column: null, reverse: false, rows: [5, 6, 7], labels: ["f", "s", "t"], columns: [column] } });
  model.send({ do: "arrange", column: 0 });
  assert.deepEqual([model.get("grid").rows, model.get("grid").columns[0].data], [[7, 5, 6], ["1", "3", ""]]);
  model.send({ do: "arrange", column: 0 });
  assert.deepEqual([model.get("grid").labels, model.get("grid").reverse], [["f", "t", "s"], true]);
});

test("cells and lists follow a component that is pinned or off, one at a time", () => {
  const cells = (...model) => ({ columns: [{ ...column, model }], rows: [5, 6, 7], labels: ["f", "s", "t"] });
  const pinned = (k) => ({ components: { off: [], chosen: k, said: "" }, grid: { rows: [7], columns: [{ data: ["1"], model: [""], state: [0], share: [0] }] } });
  const off = (k) => ({ components: { off: [k], chosen: k, said: `without ${k}` }, grid: { columns: [{ model: ["", String(k), ""] }] } });
  const answers = { "": { components: { off: [], chosen: null, said: "" } }, 0: pinned(0), 1: pinned(1), "-0": off(0), "-1": off(1) };
  const model = recorded({ components: { off: [], chosen: null, words: ["a", "b"], answers }, grid: cells("", "2", "") });
  const click = (k, what) => { model.send({ do: "component", k, what }); return [model.get("components").off, model.get("components").chosen, model.get("components").said, model.get("grid").columns[0].model]; };
  assert.deepEqual(click(0, "rows"), [[], 0, "", [""]]);
  assert.deepEqual(model.get("grid").rows, [7]);
  assert.deepEqual(click(0, "off"), [[0], 0, "without 0", ["", "0", ""]]);
  assert.deepEqual(click(1, "rows"), [[], 1, "", [""]]);
  assert.deepEqual(click(1, "off"), [[1], 1, "without 1", ["", "1", ""]]);
  model.send({ do: "arrange", column: 0 });
  assert.deepEqual([model.get("grid").rows, model.get("grid").columns[0].model], [[7, 5, 6], ["", "", "1"]]);
  assert.deepEqual(click(1, "off"), [[], null, "", ["", "2", ""]]);
});
