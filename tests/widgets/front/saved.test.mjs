// What a saved file answers in the place of a kernel.

import assert from "node:assert/strict";
import test from "node:test";

import { recorded as opened } from "../../../nmd_lab/widgets/front/saved.mjs";

const bytes = (...numbers) => Buffer.from(Float32Array.from(numbers).buffer).toString("base64");
const off = { do: "component", k: 0, what: "off" };
const floats = (view) => [...new Float32Array(view.buffer)];
const column = { at: 0, name: "size", state: [0, 2, 0], data: ["3", "", "1"], model: ["", "2", ""], sure: ["", "1 – 4", ""], share: [1, 0.5, 0] };

function recorded(shown, answers = {}) {
  const blobs = [bytes(1, 2), bytes(3, 4), Buffer.from([0, 254, 255]).toString("base64")];
  return opened({ shown, answers, blobs });
}

test("numbers come back, those of large pictures from codes with their holes", () => {
  const model = recorded({ modelled: { blob: 0 }, pictures: { seen: { floats: { low: 1, high: 3, codes: { blob: 2 } } } } });
  assert.deepEqual(floats(model.get("modelled")), [1, 2]);
  assert.deepEqual(floats(model.get("pictures").seen), [1, 3, NaN]);
  assert.equal(model.get("unknown"), null);
});

test("an answer changes entries of records, is heard of, and the same message takes it back", () => {
  const model = recorded({ facts: { a: 1, b: 2 }, modelled: { blob: 0 } },
    { [JSON.stringify(off)]: { facts: { b: 3 }, modelled: { blob: 1 } } });
  let heard = 0;
  const listener = () => heard++;
  model.on("change:facts", listener);
  model.send(off);
  assert.deepEqual([model.get("facts"), floats(model.get("modelled")), heard], [{ a: 1, b: 3 }, [3, 4], 1]);
  model.off("change:facts", listener);
  model.send(off);
  assert.deepEqual([model.get("facts"), floats(model.get("modelled")), heard], [{ a: 1, b: 2 }, [1, 2], 1]);
});

test("what was not recorded has a sentence", () => {
  const model = recorded({ status: { message: "done", phase: "finished" } });
  model.send({ do: "opened" });
  assert.equal(model.get("status").message, "done");
  model.send({ do: "run" });
  assert.match(model.get("status").message, /needs Python/);
});

test("a plane has a component on each axis", () => {
  const plane = (k, scatter) => ({ [JSON.stringify({ do: "plane", a: k, b: k })]: { scatter } });
  const model = recorded({ scatter: { rank: 2, a: 0, b: 1, labels: ["p", "q"], x: { blob: 0 }, y: { blob: 1 } } },
    { ...plane(0, { b: 0, y: { blob: 0 } }), ...plane(1, { a: 1, x: { blob: 1 } }) });
  model.send({ do: "plane", a: 1, b: 0 });
  const { a, b, x, y, labels } = model.get("scatter");
  assert.deepEqual([a, b, floats(x), floats(y), labels], [1, 0, [3, 4], [1, 2], ["p", "q"]]);
});

test("a table is sorted by a column, and again the other way round, missing cells last", () => {
  const model = recorded({ grid: { column: null, reverse: false, rows: [5, 6, 7], labels: ["f", "s", "t"], columns: [column] } });
  model.send({ do: "arrange", column: 0 });
  assert.deepEqual([model.get("grid").rows, model.get("grid").columns[0].data], [[7, 5, 6], ["1", "3", ""]]);
  model.send({ do: "arrange", column: 0 });
  assert.deepEqual([model.get("grid").labels, model.get("grid").reverse], [["f", "t", "s"], true]);
});

test("a pixel of a picture is one of a row, and of a matrix an entry", () => {
  const rows = recorded({ pictures: { layout: "rows", ids: [3, 9], width: 8 } });
  rows.send({ do: "select", picture: 1, y: 2, x: 3 });
  assert.deepEqual([rows.get("selection").row, rows.get("selection").pixel], [9, 19]);
  const matrix = recorded({ pictures: { layout: "matrix", step: 2, width: 8 } });
  matrix.send({ do: "select", picture: 0, y: 2, x: 3 });
  assert.deepEqual([matrix.get("selection").row, matrix.get("selection").column], [4, 6]);
});
