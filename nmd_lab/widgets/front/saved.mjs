// What a saved file has in the place of a kernel: the record of a page, and its answers to what a reader does.

import { decodedValues } from "./factors.mjs";

const SAVED_CELLS = ["state", "data", "model", "sure", "share"]; // lists of a column of a table, one item a row
const SAVED_PYTHON = "This needs Python: the page is a saved file";

const bytesOf = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
const isRecord = (value) => value?.constructor === Object;

/** What a front end takes for the model of a widget. */
export class Recorded {
  constructor({ shown, answers, blobs }) {
    Object.assign(this, { answers, blobs, listeners: {}, last: null });
    this.first = this.shown = this.revived(shown);
  }

  /** Return a value with its bytes, which stand in it by number; those of large pictures are codes. */
  revived(value) {
    if (Array.isArray(value)) return value.map((each) => this.revived(each));
    if (!isRecord(value)) return value;
    if ("blob" in value) return new DataView(bytesOf(this.blobs[value.blob]).buffer);
    if ("floats" in value) return new DataView(decodedValues(bytesOf(this.blobs[value.floats.codes.blob]), value.floats).buffer);
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.revived(each)]));
  }

  get(name) { return this.shown[name] ?? null; }
  set() {}
  save_changes() {}
  on(event, listener) { (this.listeners[event] ??= new Set()).add(listener); }
  off(event, listener) { this.listeners[event]?.delete(listener); }

  change(changed) {
    this.shown = { ...this.shown, ...changed };
    for (const name of Object.keys(changed)) for (const listener of this.listeners[`change:${name}`] ?? []) listener();
  }

  /** Do what the kernel did, as far as that was recorded. */
  send(message) {
    const { do: what, ...picked } = message;
    if (what === "component" && picked.what === "on") return this.restore();
    const ways = { opened: () => null, clear: () => this.change({ selection: null }), lasso: () => this.change({ selection: picked }),
      select: () => this.select(picked), plane: () => this.turn(picked), arrange: () => this.arrange(picked) };
    (ways[what] ?? (() => this.answer(JSON.stringify(message))))();
  }

  /** Show a recorded answer in the place of the one before; the same message again takes it back. */
  answer(text) {
    if (!(text in this.answers)) return this.change({ status: { ...this.get("status"), message: SAVED_PYTHON } });
    this.last = text === this.last ? null : text;
    this.restore(this.last ? this.merged(this.first, this.answers[text]) : {});
  }

  /** Show the first record again, but for the order of a table, the plane and the selection, with some changes. */
  restore(changed = {}) {
    const { grid, scatter, selection } = this.shown;
    this.change({ ...this.first, grid, scatter, selection, ...changed });
  }

  /** Return recorded changes: of a record, those of its entries. */
  merged(before, changes) {
    const both = ([name, each]) => [name, isRecord(each) && isRecord(before[name]) ? { ...before[name], ...each } : each];
    return Object.fromEntries(Object.entries(this.revived(changes)).map(both));
  }

  /** Pick an entry. */
  select(picked) {
    const { pictures, selection } = this.shown, { picture, y, x } = picked, isMatrix = pictures?.layout === "matrix";
    const pixel = () => ({ pixel: y * pictures.width + x,
      row: isMatrix ? y * pictures.step : pictures.ids[picture], column: isMatrix ? x * pictures.step : null });
    this.change({ selection: { ...selection, ...(y >= 0 ? pixel() : picked) } });
  }

  /** Show the plane of two components, each of which was recorded with itself. */
  turn({ a, b }) {
    const of = (k) => this.merged(this.first, this.answers[JSON.stringify({ do: "plane", a: k, b: k })]).scatter ?? this.first.scatter;
    const [across, up] = [a, b].map(of), ring = across.person && { person: { ...across.person, y: up.person.y } };
    this.change({ scatter: { ...across, b, y: up.y, ...ring } });
  }

  /** Sort the rows of a table by a column, cells without data last. */
  arrange({ column }) {
    const grid = this.get("grid"), reverse = grid.column === column && !grid.reverse;
    const by = grid.columns.find(({ at }) => at === column), keys = by.share.some(Boolean) ? by.share : by.data;
    const isMissing = (i) => by.state[i] === 2, sign = reverse ? -1 : 1;
    const compared = (i, j) => isMissing(i) - isMissing(j) || (isMissing(i) ? 0 : sign * ((keys[i] > keys[j]) - (keys[i] < keys[j])));
    const order = [...grid.rows.keys()].sort(compared), sorted = (list) => order.map((k) => list[k]);
    const columns = grid.columns.map((each) => ({ ...each, ...Object.fromEntries(SAVED_CELLS.map((name) => [name, sorted(each[name])])) }));
    this.change({ grid: { ...grid, column, reverse, columns, rows: sorted(grid.rows), labels: sorted(grid.labels) } });
  }
}

/** Draw the page of a file. */
export async function openRecord(render) {
  const packed = bytesOf(document.getElementById("record").textContent), el = document.getElementById("explorer");
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const theme = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  const turn = () => { root.dataset.theme = theme.matches ? "dark" : "light"; };
  theme.addEventListener("change", turn);
  turn();
  const record = await new Response(stream).json();
  render({ model: new Recorded(record), el });
  el.dataset.leftOut = record.left_out.join(" ");
  for (const where of record.left_out.includes("off") ? [".nmd-gallery"] : []) el.querySelector(where)?.toggleAttribute("inert", true);
}
