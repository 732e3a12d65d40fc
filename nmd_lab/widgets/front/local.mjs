// What the page does by itself at once: the model f(WH), components pinned or off, rows of a lasso; and all that it can without a kernel.

import { clamp, numbers, twoDigits } from "./dom.mjs";

/** Return the value of f, given as a table between two numbers, which continues as a line beyond them. */
function functionOf({ low, high }, table) {
  const last = table.length - 1, gain = last / (high - low);
  return (t) => {
    const place = (t - low) * gain, cell = clamp(Math.floor(place), 0, last - 1);
    return table[cell] + (place - cell) * (table[cell + 1] - table[cell]);
  };
}

/** Return the mean of the rows of W: the nearer a row's place [left, top], the more it counts, and at a dot it alone does. */
export function nearMean(W, { left, top }, [x, y]) {
  const rank = W.length / left.length, mean = new Float64Array(rank);
  let sum = 0;
  for (let k = 0, from = 0; k < left.length; k++, from += rank) {
    const weight = 1 / ((left[k] - x) ** 2 + (top[k] - y) ** 2 + 1e-4) ** 2;
    if (Number.isNaN(weight)) continue;
    sum += weight;
    for (let c = 0; c < rank; c++) mean[c] += weight * W[from + c];
  }
  return mean.map((each) => each / sum);
}

export function decodedValues(codes, { low, high }) {
  return Float32Array.from(codes, (code) => (code === 255 ? NaN : low + (code / 254) * (high - low)));
}

/** W and H of what is on the stage, or of other rows; two more components are the offsets of rows and of columns. */
export class Factors {
  constructor(data, W = numbers(data.shown), { H, f } = { H: numbers(data.H), f: functionOf(data, numbers(data.table)) }) {
    Object.assign(this, { data, W, H, f, k: 0, rank: data.rank - 2, size: H.length / data.rank, count: W.length / data.rank });
    this.sums = new Float32Array(this.count * this.size);
    for (const offset of [this.rank, this.rank + 1]) this.add(offset, 1);
  }

  /** Add a component to the sums, or to other numbers, times 1 or -1. */
  add(c, sign, sums = this.sums) {
    const { W, H, size, count, data: { rank } } = this;
    for (let i = 0, to = 0; i < count; i++) {
      const w = sign * W[i * rank + c];
      if (w === 0) { to += size; continue; }
      for (let from = c * size, end = from + size; from < end; from++) sums[to++] += w * H[from];
    }
    return sums;
  }

  first(k = this.rank) {
    while (this.k < k) this.add(this.k++, 1);
    while (this.k > k) this.add(--this.k, -1);
    return this.sums.map(this.f);
  }
}

const PARTS = ["controls", "status", "facts", "pictures", "modelled", "grid", "curves", "components", "scatter", "drawing",
  "dots", "tables", "runs", "code_text", "selection"];
const SAVED_CELLS = ["state", "data", "model", "sure", "share", "ends"]; // lists of a column of a table, one item a row
const WITHOUT = ", without component";
const NO_PYTHON = "This needs Python: the page is a saved file, or its kernel has ended";
const MOST_ROWS = 40; // rows whose pictures are shown, at most

const viewOf = (array) => new DataView(array.buffer, array.byteOffset, array.byteLength);

/** A model of a widget with what the page does by itself, until the kernel has done it, too. */
export class Local {
  constructor(source, alone = false) {
    Object.assign(this, { source, alone, listeners: new Set(), mine: null, staged: {}, changed: {}, stale: true });
    this.changing = () => {
      this.stale = true;
      this.tell();
    };
    for (const name of PARTS) source.on?.(`change:${name}`, this.changing);
  }

  get(name) {
    if (this.stale) this.stage();
    return this.staged[name] ?? this.changed[name] ?? this.source.get(name) ?? null;
  }

  end() {
    for (const name of PARTS) this.source.off?.(`change:${name}`, this.changing);
  }

  tell(changes = {}) {
    Object.assign(this.changed, changes);
    for (const listener of this.listeners) listener();
  }

  async send(message, ...rest) {
    const { do: what, ...picked } = message, { now, answers } = this, { shown } = this.source.get("drawing") ?? {};
    const one = !answers || now.off.includes(picked.k) || now.chosen === picked.k ? now : { off: [], chosen: null }; // there are answers for one at a time
    const own = { component: () => (shown || answers) && this.act({ ...one, ...((this.alone || answers) && { rows: [] }), ...afterClick(one, picked) }),
      lasso: () => shown && this.act({ ...now, rows: picked.rows, chosen: null }), clear: () => shown && this.act({ ...now, rows: [], chosen: null }) };
    if (this.alone && what === "clear") this.tell({ selection: {} });
    const done = own[what]?.() ?? false;
    if (!this.alone) return this.source.send(message, ...rest);
    const select = () => this.tell({ selection: { ...this.get("selection"), ...picked } });
    const ways = { opened: () => null, clear: () => null, lasso: select, select, arrange: () => this.arrange(picked), point: () => this.point(picked) };
    return done || (ways[what] ?? (() => this.tell({ status: { ...this.get("status"), message: NO_PYTHON } })))();
  }

  act(mine) {
    Object.assign(this, { mine, stale: true, since: this.source.get("drawing") });
    this.tell();
    return true;
  }

  /** What the kernel has: components that are off, one whose rows are shown, and rows that are picked. */
  get theirs() {
    const [{ off = [], chosen = null }, selection] = ["components", "selection"].map((name) => this.source.get(name) ?? {});
    return { off, chosen, rows: selection.rows ?? [] };
  }

  get waits() { return Boolean(this.mine && !this.alone); }

  get now() { return this.mine ?? this.theirs; }

  /** What a saved file has of cells and lists without each component. */
  get answers() { return this.source.get("components")?.answers; }

  /** Find what the page shows in the place of what the kernel has sent. */
  stage() {
    const { theirs } = this, of = (name) => this.source.get(name);
    this.stale = false;
    const agreed = JSON.stringify(theirs) === JSON.stringify(this.mine) || of("drawing") !== this.since;
    if (!this.alone && agreed) this.mine = null;
    const { off, chosen, rows } = this.now, { mine, alone } = this, drawing = of("drawing"), components = of("components"), staged = this.staged = {};
    if (mine && alone) staged.selection = { ...this.changed.selection, rows };
    if (mine && this.answers) {
      const answer = this.answers[`${off.length ? "-" : ""}${off[0] ?? chosen ?? ""}`];
      for (const name of Object.keys(answer)) staged[name] = changed(of(name), answer[name]);
    }
    if (!drawing?.shown || !components) return;
    if (mine) staged.components = { ...components, off, chosen };
    const moved = mine && (chosen !== theirs.chosen || String(rows) !== String(theirs.rows)) && this.pictured(this.rowsOf(mine));
    Object.assign(staged, moved);
    if (off.length || moved) staged.drawing = this.without(off, moved?.drawing ?? drawing);
    if (mine && alone) staged.status = this.judged(off, staged.drawing ?? drawing);
    if (mine || !of("modelled")) staged.modelled = viewOf(new Factors(staged.drawing ?? drawing).first());
  }

  /** Return what draws the model without components; the same object while nothing changes. */
  without(off, drawing) {
    const key = String(off);
    if (this.drawn?.of !== drawing || this.drawn.key !== key) {
      const H = numbers(drawing.H).slice(), size = H.length / drawing.rank, one = off.length === 1;
      for (const k of off) H.fill(0, k * size, (k + 1) * size);
      const errors = !off.length ? drawing.errors : one && drawing.lost?.length ? [...Array(drawing.rank - 2).fill(NaN), drawing.lost[off[0]]] : [];
      this.drawn = { of: drawing, key, made: { ...drawing, H: viewOf(H), errors } };
    }
    return this.drawn.made;
  }

  /** Return the status with the error of what is shown, where it is known. */
  judged(off, { errors, where }) {
    const status = this.changed.status ?? this.source.get("status"), error = where === "held out" ? errors.at(-1) : NaN, pieces = status?.sentence?.filter(([text]) => !text.includes(WITHOUT)) ?? [];
    const end = pieces.findIndex(([text]) => text === ". "), at = pieces.findIndex(([, opens]) => opens === "number");
    if (at < 0 || String(off) === String(this.theirs.off)) return status;
    const number = Number.isFinite(error) ? [pieces[at - 1], [`±${twoDigits(error)}`, "number"], ...pieces.slice(at + 1).map(([text, opens]) => [off.length ? text.replace(/;[^;]* intervals cover[^.;]*/, "") : text, opens])] : [["How well it predicts needs Python.", ""]];
    const gone = off.length ? [[`${WITHOUT} ${off.join(", ")}`, ""]] : [];
    return { ...status, sentence: [...pieces.slice(0, end), ...gone, pieces[end], ...number] };
  }

  /** Return the rows that are picked, or those with most of a component; some of all for neither. */
  rowsOf({ rows, chosen }) {
    const all = numbers(this.source.get("scatter")?.rows, Int32Array), W = numbers(this.source.get("drawing").W), rank = W.length / all.length;
    if (rows.length) return rows.filter((row) => all.includes(row)).slice(0, MOST_ROWS).map((row) => all.indexOf(row));
    const every = Math.max(1, all.length / MOST_ROWS), size = Math.min(MOST_ROWS, all.length);
    if (chosen === null) return Array.from({ length: size }, (_, k) => Math.floor(k * every));
    return [...all.keys()].sort((i, j) => W[j * rank + chosen] - W[i * rank + chosen]).slice(0, MOST_ROWS);
  }

  /** Return the pictures of some of the rows of the plane; null where they cannot be drawn. */
  pictured(at) {
    const [pictures, drawing, scatter] = ["pictures", "drawing", "scatter"].map((name) => this.source.get(name));
    if (!at.length || !drawing.W || pictures?.layout !== "rows") return null;
    const { rank, height, width, channels, data } = drawing, ids = numbers(scatter.rows, Int32Array), codes = data && numbers(data.codes, Uint8Array);
    const taken = (values, size) => viewOf(Float32Array.from(at.flatMap((k) => [...values.subarray(k * size, (k + 1) * size)])));
    const size = height * width * channels, original = data && taken(decodedValues(codes, data), size), group = (k) => scatter.values[scatter.groups[k]];
    return { drawing: { ...drawing, shown: taken(numbers(drawing.W), rank) },
      pictures: { ...pictures, count: at.length, ids: at.map((k) => ids[k]), labels: at.map((k) => scatter.labels[k] ?? (scatter.color ? `${scatter.color} ${group(k)}` : "")), seen: original, spread: null, beside: null, original } };
  }


  /** Show the fits of a point of a study; a second click shows those of the best model again. */
  point({ id }) {
    const { abouts, point } = this.get("facts"), tables = this.source.get("tables"), back = id === point;
    this.tell({ facts: { ...this.get("facts"), point: back ? null : id }, tables: back ? tables : [abouts[id], ...tables.slice(-1)] });
  }

  /** Sort the rows of a table by a column, cells without data last. */
  arrange({ column }) {
    const grid = this.get("grid"), reverse = grid.column === column && !grid.reverse;
    const by = grid.columns.find(({ at }) => at === column), keys = by.share.some(Boolean) ? by.share : by.data;
    const isMissing = (i) => by.state[i] === 2, sign = reverse ? -1 : 1;
    const compared = (i, j) => isMissing(i) - isMissing(j) || (isMissing(i) ? 0 : sign * ((keys[i] > keys[j]) - (keys[i] < keys[j])));
    const order = [...grid.rows.keys()].sort(compared), sorted = (list) => list && order.map((k) => list[k]);
    const columns = grid.columns.map((each) => ({ ...each, ...Object.fromEntries(SAVED_CELLS.map((name) => [name, sorted(each[name])])) }));
    Object.assign(this.staged.grid ? this.staged : this.changed, { grid: { ...grid, column, reverse, columns, rows: sorted(grid.rows), labels: sorted(grid.labels) } });
    this.tell();
  }
}

/** Return a record with changes, of which lists have one for each item. */
function changed(old, now) {
  if (Array.isArray(old) && Array.isArray(now) && now[0]?.constructor === Object) return now.length === old.length ? now.map((each, k) => changed(old[k], each)) : now;
  if (now?.constructor !== Object) return now;
  return { ...old, ...Object.fromEntries(Object.entries(now).map(([name, each]) => [name, changed(old?.[name], each)])) };
}

/** Return what a click on a component changes: pinned, off, and all on. */
function afterClick({ off, chosen }, { k, what }) {
  if (what === "on") return { off: [], chosen: null };
  if (what === "rows") return { chosen: chosen === k ? null : k };
  const less = off.filter((each) => each !== k);
  return less.length < off.length ? { off: less, chosen: null } : { off: [...off, k].sort((i, j) => i - j) };
}
