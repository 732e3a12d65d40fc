// What a saved file has in the place of a kernel: the record of a page, and its answers to what a reader does.

import { h, made, numbers } from "./dom.mjs";
import { Factors, decodedValues } from "./factors.mjs";

const SAVED_CELLS = ["state", "data", "model", "sure", "share"]; // lists of a column of a table, one item a row
const SAVED_PYTHON = "This needs Python: the page is a saved file";
const SAVED_ROWS = 28; // rows of a lasso whose pictures are shown, at most
const WEBP = "UklGR"; // how pictures that are compressed begin

const bytesOf = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
const isRecord = (value) => value?.constructor === Object;

/** What a front end takes for the model of a widget. */
export class Recorded {
  constructor({ shown, answers, blobs }, images = []) {
    Object.assign(this, { answers, blobs, images, listeners: {}, last: null, chosen: null, picked: [] });
    this.first = this.shown = this.revived(shown);
    this.without = new Set(this.first.components?.off);
    if (this.drawn) this.shown = { ...this.shown, ...this.staged() };
  }

  /** Return a value with its bytes, which stand in it by number; those of many numbers are codes or a compressed picture. */
  revived(value) {
    if (Array.isArray(value)) return value.map((each) => this.revived(each));
    if (!isRecord(value)) return value;
    if ("blob" in value) return new DataView(bytesOf(this.blobs[value.blob]).buffer);
    if ("floats" in value) return new DataView(this.decoded(value.floats).buffer);
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.revived(each)]));
  }

  decoded({ low, high, codes, image, missing, channels, most = 254 }) {
    if (image) {
      const holes = missing && bytesOf(this.blobs[missing.blob]), pixels = this.images[image.blob], gain = (high - low) / 255;
      const size = (pixels.length / 4) * channels, isHole = (k) => holes && (holes[k >> 3] >> (7 - (k & 7))) & 1;
      return Float32Array.from({ length: size }, (_, k) => (isHole(k) ? NaN : low + gain * pixels[4 * Math.floor(k / channels) + (k % channels)]));
    }
    const bytes = bytesOf(this.blobs[codes.blob]);
    return most === 254 ? decodedValues(bytes, { low, high }) : Float32Array.from(new Uint16Array(bytes.buffer), (code) => low + (code / most) * (high - low));
  }

  get(name) { return this.shown[name] ?? null; }
  on(event, listener) { (this.listeners[event] ??= new Set()).add(listener); }
  off(event, listener) { this.listeners[event]?.delete(listener); }

  change(changed) {
    this.shown = { ...this.shown, ...changed };
    for (const name of Object.keys(changed)) for (const listener of this.listeners[`change:${name}`] ?? []) listener();
  }

  /** Do what the kernel did, as far as that was recorded. */
  send(message) {
    const { do: what, ...picked } = message;
    const ways = { opened: () => null, clear: () => this.change({ selection: null }), lasso: () => this.pick(picked),
      select: () => this.select(picked), plane: () => this.turn(picked), arrange: () => this.arrange(picked),
      component: () => (picked.what === "on" && !this.drawn ? this.restore() : this.drawn ? this.turnOff(picked) : this.answer(JSON.stringify(message))) };
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

  get drawn() { return Boolean(this.first.drawing?.shown); }

  ofComponent(k, what) {
    return this.merged(this.first, this.answers[JSON.stringify({ do: "component", k, what })] ?? {});
  }

  turnOff({ k, what }) {
    const { without: off } = this;
    if (what === "on") off.clear();
    else if (what === "off") off.delete(k) || off.add(k);
    if (what === "rows") Object.assign(this, { chosen: this.chosen === k ? null : k, picked: [] });
    else if (!off.has(k)) this.chosen = null;
    this.restore(this.staged());
  }

  pick({ rows }) {
    this.change({ selection: { rows } });
    if (!this.drawn || !this.first.drawing.W) return;
    Object.assign(this, { picked: rows, chosen: null });
    this.restore(this.staged());
  }

  /** Return the rows of a lasso or of a component, as data and by the model without the components that are off. */
  staged() {
    const { first, without: off, chosen } = this, now = { ...first, ...(chosen === null ? {} : this.ofComponent(chosen, "rows")), ...this.pictured() };
    const list = [...off].sort((a, b) => a - b), words = list.length === 1 && this.ofComponent(list[0], "off").components.said;
    const components = { ...first.components, off: list, chosen, said: list.length ? words || `without component ${list.join(", ")}` : first.components.said };
    if (!list.length && !this.picked.length) return { ...now, components };
    const drawing = { ...now.drawing, H: this.zeroed(list) }, factors = new Factors(drawing);
    return { ...now, components, drawing, modelled: new DataView(factors.first(factors.rank).slice().buffer) };
  }

  zeroed(off) {
    const { H, rank } = this.first.drawing, all = numbers(H), size = all.length / rank;
    for (const k of off) all.fill(0, k * size, (k + 1) * size);
    return new DataView(all.buffer);
  }

  /** Return the pictures of the rows that were picked, as far as their data are in the record. */
  pictured() {
    const { pictures, drawing, scatter } = this.first, all = numbers(scatter?.rows, Int32Array);
    const ids = this.picked.filter((row) => all.includes(row)).slice(0, SAVED_ROWS);
    if (!ids.length) return {};
    const at = ids.map((row) => all.indexOf(row)), { rank, height, width, channels, data } = drawing;
    const taken = (values, size) => Float32Array.from(at.flatMap((k) => [...values.subarray(k * size, (k + 1) * size)]));
    const codes = data && decodedValues(numbers(data.codes, Uint8Array), data);
    return { drawing: { ...drawing, shown: new DataView(taken(numbers(drawing.W), rank).buffer) },
      pictures: { ...pictures, count: ids.length, ids, labels: at.map((k) => scatter.labels[k] ?? ""), seen: null, spread: null, beside: null,
        original: codes && new DataView(taken(codes, height * width * channels).buffer) } };
  }

  /** Return recorded changes: of a record, those of its entries. */
  merged(before, changes) {
    const both = ([name, each]) => [name, isRecord(each) && isRecord(before[name]) ? { ...before[name], ...each } : each];
    return Object.fromEntries(Object.entries(this.revived(changes)).map(both));
  }

  select(picked) {
    const { pictures, selection } = this.shown, { picture, y, x } = picked, isMatrix = pictures?.layout === "matrix";
    const pixel = () => ({ pixel: y * pictures.width + x,
      row: isMatrix ? y * pictures.step : pictures.ids[picture], column: isMatrix ? x * pictures.step : null });
    this.change({ selection: { ...selection, ...(y >= 0 ? pixel() : picked) } });
  }

  /** Show the plane of two components: by the weights of the rows, or as it was recorded for each with itself. */
  turn({ a, b }) {
    const { W, rank } = this.first.drawing ?? {}, { scatter } = this.shown;
    if (W) {
      const all = numbers(W), column = (k) => new DataView(Float32Array.from({ length: all.length / rank }, (_, row) => all[row * rank + k]).buffer);
      return this.change({ scatter: { ...scatter, a, b, x: column(a), y: column(b) } });
    }
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

async function pixelsOf(text) {
  const image = await createImageBitmap(new Blob([bytesOf(text)], { type: "image/webp" }), { colorSpaceConversion: "none" });
  const pen = made(h("canvas", { width: image.width, height: image.height })).getContext("2d");
  pen.drawImage(image, 0, 0);
  return pen.getImageData(0, 0, image.width, image.height).data;
}

export async function openRecord(render) {
  const packed = bytesOf(document.getElementById("record").textContent), el = document.getElementById("explorer");
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const theme = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  const turn = () => { root.dataset.theme = theme.matches ? "dark" : "light"; };
  theme.addEventListener("change", turn);
  turn();
  const record = await new Response(stream).json();
  const images = await Promise.all(record.blobs.map((text) => (text.startsWith(WEBP) ? pixelsOf(text) : null)));
  render({ model: new Recorded(record, images), el });
  el.dataset.leftOut = record.left_out.join(" ");
  for (const where of record.left_out.includes("off") ? [".nmd-gallery"] : []) el.querySelector(where)?.toggleAttribute("inert", true);
}
