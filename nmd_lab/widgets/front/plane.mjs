// Rows, or films, in the plane of two components, on a canvas: lasso, selection, names, and what the model draws there.

import { clamp, draw, h, keyOf, keysOf, made, nextFrame, numbers, pageColors, short } from "./dom.mjs";
import { Axes, nearestDot, rangeOf } from "./chart.mjs";
import { Factors, decodedValues, nearMean } from "./local.mjs";
import { Sheet, mosaicOf } from "./pictures.mjs";

const DRAWN = 96, LINE = 15;
const THUMB = 26, DIRECTIONS = 10; // size of the pictures at the edges, and their number at most

/** Return a range around the middle 98 % of numbers, and around another: the rest stands at the edge. */
export function mostOf(values, other) {
  const sorted = values.slice().sort(), cut = Math.floor(sorted.length / 100);
  return rangeOf([...sorted.subarray(cut, sorted.length - cut), other]);
}

function circle(pen, x, y, r) {
  pen.beginPath();
  pen.arc(x, y, r, 0, 2 * Math.PI);
}

export class Plane {
  constructor(send) {
    Object.assign(this, { send, data: null, a: 0, b: 1, at: null, lasso: null, selected: new Set(), lit: [], rows: [], width: 290, said: "" });
    this.paint = nextFrame(() => this.cursor());
    this.canvas = made(h("canvas", {
      role: "img", tabindex: 0, keydown: (event) => this.press(event),
      pointerdown: (event) => this.down(event), pointermove: (event) => this.move(this.placeOf(event)),
      pointerup: (event) => this.lasso && this.release(this.placeOf(event)),
      pointerleave: () => this.look(null), pointercancel: () => this.drop(),
    }));
    this.base = made(h("canvas"));
    this.sheets = [new Sheet(), new Sheet()];
    this.thumb = new Sheet();
    this.drawn = made(h("div.nmd-drawn", { hidden: true, "aria-hidden": "true" }, this.sheets.map(({ canvas }, k) =>
      h("figure", canvas, h("figcaption", k ? "nearest" : "model here")))));
    this.element = made(h("div.nmd-plane", { hidden: true }));
    this.element.plane = this;
    this.box = made(h("div.nmd-plane-box", this.canvas, this.drawn));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  /** Show other points, or nothing for null, with these rows selected; the factors draw. */
  show(data, drawing, scale, selectedRows = []) {
    Object.assign(this, { data, selected: new Set(selectedRows), slid: null });
    this.element.hidden = !data;
    if (!data) return;
    this.weights = numbers(data.weights);
    this.rows = numbers(data.rows, Int32Array);
    for (const axis of ["a", "b"]) this[axis] = Math.min(this[axis], data.rank - 1);
    this.turn();
    if (this.at >= this.rows.length) this.at = null;
    if (drawing !== this.drawing) this.load(drawing);
    this.scale = scale;
    this.write();
    this.draw();
  }

  /** Find the places in the plane of the two components; of a person, as far away as columns are: only the direction means something. */
  turn() {
    const { person } = this.data, { a, b } = this;
    [this.x, this.y] = [this.along(a), this.along(b)];
    if (!person) return Object.assign(this, { ring: null });
    const [x, y] = [person.weights[a], person.weights[b]], far = this.x.reduce((sum, each, k) => sum + each ** 2 + this.y[k] ** 2, 0) / (this.x.length || 1);
    const size = Math.sqrt(far) / (Math.hypot(x, y) || 1);
    this.ring = { x: x * size, y: y * size };
  }

  along(k) {
    const { weights, rows, data: { rank } } = this;
    return Float32Array.from({ length: rows.length }, (_, row) => weights[row * rank + k]);
  }

  load(drawing) {
    this.drawing = drawing;
    this.drawn.hidden = true;
    if (!drawing?.W) return;
    Object.assign(this, { W: numbers(drawing.W), codes: numbers(drawing.data?.codes, Uint8Array), factors: new Factors(drawing, new Float32Array(drawing.rank)) });
    for (const sheet of this.sheets) sheet.resize(mosaicOf({ count: 1, height: drawing.height, width: drawing.width }));
    this.drawn.classList.toggle("nmd-flat", drawing.height === 1);
  }

  /** Bring the texts in line: which components, whose ring it is, and the colours. */
  write() {
    const { rank, total, color, values, person } = this.data, { a, b } = this, colorOf = pageColors(this.canvas);
    const options = (one) => Array.from({ length: rank }, (_, c) => h("option", { value: c, selected: c === one }, String(c)));
    const choose = (name) => ({ target }) => {
      this[name] = Number(target.value);
      this.turn();
      this.draw();
    };
    const sample = total > this.rows.length ? `a sample of ${this.rows.length} of ${total}; ` : "";
    draw(this.element, h("div.nmd-plane-head", ["a", "b"].map((name, k) => h("label", k ? "up " : "across ",
      h("select", { change: choose(name), value: String(k ? b : a) }, options(k ? b : a))))), this.box,
    h("div.nmd-plane-note", sample, color && `${color}: `, person && h("b", `○ ${person.name} `), keysOf(values ?? [], colorOf)), h("output.nmd-read", this.said));
  }

  light(rows) {
    this.lit = rows;
    this.draw();
  }

  slide(k) {
    if (!this.data?.things || k === this.b || k >= this.data.rank) return; // along the axis that goes up they would be a line
    Object.assign(this, { slid: k, x: this.along(k ?? this.a) });
    this.draw();
  }

  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.width, ((event.clientY - box.top) / box.height) * this.height];
  }

  near(place, reach = 12) {
    return [nearestDot(this.positions.left, this.positions.top, ...place, reach)].find((k) => k >= 0) ?? null;
  }

  /** Draw f(WH) at a place next to it, and the nearest row. */
  sketch(place) {
    const k = this.near(place, Infinity), { drawing, drawn, width } = this;
    drawn.hidden = k === null || !drawing?.W || Boolean(this.lasso);
    if (drawn.hidden) return;
    const w = nearMean(this.W, this.positions, place), size = drawing.height * drawing.width * drawing.channels;
    [w[this.a], w[this.b]] = this.axes.valuesAt(...place);
    this.values = new Factors(drawing, w, this.factors).first();
    this.sheets[0].fill(this.values, this.scale);
    if (drawing.data) this.sheets[1].fill(decodedValues(this.codes.subarray(k * size, (k + 1) * size), drawing.data), this.scale);
    const left = place[0] > width / 2 ? place[0] - 2 * DRAWN - 24 : place[0] + 16;
    drawn.style.left = `${clamp(left, 0, Math.max(0, width - 2 * DRAWN - 8))}px`;
    drawn.style.top = `${place[1] > this.height / 2 ? place[1] - DRAWN - 40 : place[1] + 16}px`;
  }

  down(event) {
    if (event.button !== 0) return;
    this.lasso = [this.placeOf(event)];
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(place) {
    if (!this.data) return;
    this.lasso?.push(place);
    this.look(this.lasso ? null : this.near(place));
    this.sketch(place);
  }

  release(place) {
    const path = [...this.lasso, place], [[left, top]] = path, near = this.near(place);
    const click = path.every(([x, y]) => Math.hypot(x - left, y - top) < 4);
    const { left: lefts, top: tops } = this.positions, pen = made(h("canvas")).getContext("2d");
    const loop = this.loop(path), within = (k) => pen.isPointInPath(loop, lefts[k], tops[k], "evenodd");
    const inside = click ? [near].filter((k) => k !== null) : [...this.rows.keys()].filter(within);
    this.drop();
    this.select(inside.map((k) => this.rows[k]));
  }

  loop(places) { return new Path2D(places.length ? `M${places.join("L")}Z` : ""); }

  drop() {
    this.lasso = null;
    this.paint();
  }

  select(rows) {
    this.selected = new Set(rows);
    this.draw();
    this.send(this.data.things ? { do: "select", column: rows[0] ?? null } : { do: "lasso", rows });
  }

  press(event) {
    const row = this.rows[this.at], rest = [...this.selected].filter((each) => each !== row), step = (axis, by) => () => this.step(axis, by);
    const toggle = () => this.at !== null && this.select(this.selected.has(row) ? rest : [...rest, row]); // the row under the cursor
    keyOf(event, {
      ArrowRight: step("x", 1), ArrowLeft: step("x", -1), ArrowUp: step("y", 1), ArrowDown: step("y", -1),
      Enter: toggle, " ": toggle, Escape: () => (this.lasso ? this.drop() : this.select([])),
    })?.();
  }

  step(axis, by) {
    const values = this[axis], finite = [...values.keys()].filter((k) => Number.isFinite(this.x[k] + this.y[k]));
    const order = finite.sort((a, b) => values[a] - values[b]);
    const next = this.at === null ? (by > 0 ? 0 : order.length - 1) : order.indexOf(this.at) + by;
    this.look(order[clamp(next, 0, order.length - 1)] ?? null);
    if (this.at !== null) this.sketch([this.positions.left[this.at], this.positions.top[this.at]]);
  }

  look(k) {
    const { a, b } = this, { things, labels } = this.data ?? {}, label = labels?.[k];
    const row = () => `row ${this.rows[k]}${label ? ` (${label})` : ""}, component ${a}: ${short(this.x[k], 2)}, component ${b}: ${short(this.y[k], 2)}`;
    const said = k === null ? "" : things ? label : row();
    this.at = k;
    this.drawn.hidden ||= k === null;
    if (said !== this.said) this.element.querySelector(".nmd-read").textContent = this.said = said;
    this.paint();
  }

  /** Set the size of the canvas and the places of the points, and draw everything but the cursor. */
  draw() {
    if (!this.data || !this.box.clientWidth) return;
    [this.width, this.height] = [this.box.clientWidth, Math.max(80, this.box.clientHeight)];
    this.ratio = globalThis.devicePixelRatio || 1;
    const [width, height] = [this.width, this.height].map((size) => Math.round(size * this.ratio));
    for (const each of [this.canvas, this.base]) Object.assign(each, { width, height });
    const { a, b, ring } = this, { things } = this.data, person = this.slid === null && this.data.person, box = { left: 6, right: this.width - 6, top: 6, bottom: this.height - 6 };
    const axes = new Axes(box, ...["x", "y"].map((axis) => (person ? mostOf(this[axis], ring[axis]) : rangeOf(this[axis]))));
    this.axes = axes;
    this.positions = { left: this.x.map((x) => axes.across(x)), top: this.y.map((y) => axes.up(y)) };
    const pen = this.base.getContext("2d");
    pen.scale(this.ratio, this.ratio);
    this.frame(pen);
    this.dots(pen);
    if (things) this.names(pen);
    else this.thumbs(pen);
    const what = `${person ? `ring of ${person.name} among ` : ""}${this.rows.length} ${things ?? "rows"}`;
    this.canvas.setAttribute("aria-label", `${what} by component ${a} and component ${b}, ${this.selected.size} selected`);
    this.paint();
  }

  frame(pen) {
    const { color, fontFamily } = getComputedStyle(this.canvas), { axes } = this, { left, right, top, bottom, xs, ys } = axes;
    Object.assign(pen, { fillStyle: color, strokeStyle: color, font: `11px ${fontFamily}`, globalAlpha: 0.3 });
    pen.strokeRect(left, top, right - left, bottom - top);
    if (xs[0] < 0 && xs[1] > 0) pen.strokeRect(axes.across(0), top, 0, bottom - top);
    if (ys[0] < 0 && ys[1] > 0) pen.strokeRect(left, axes.up(0), right - left, 0);
  }

  dots(pen) {
    const colorOf = pageColors(this.canvas), { groups, person, things } = this.data, { left, top } = this.positions;
    const [chosen, others] = [[], []];
    const marked = new Set([...this.selected, ...this.lit]);
    this.rows.forEach((row, k) => (marked.has(row) ? chosen : others).push(k));
    const faint = marked.size || things ? 0.3 : 0.75;
    for (const [points, size, alpha] of [[others, 3, faint], [chosen, 5, 1]]) {
      const many = points.length > 2000, r = many ? size / 2 : size;
      pen.globalAlpha = alpha;
      for (const k of points) {
        pen.fillStyle = colorOf(groups[k] ?? 0);
        if (many) {
          pen.fillRect(left[k] - r, top[k] - r, 2 * r, 2 * r);
          continue;
        }
        circle(pen, left[k], top[k], r);
        pen.fill();
        if (alpha === 1) pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    if (!person || this.slid !== null) return;
    Object.assign(pen, { lineWidth: 3, strokeStyle: getComputedStyle(this.canvas).getPropertyValue("--nmd-mark") });
    circle(pen, this.axes.across(this.ring.x), this.axes.up(this.ring.y), 7);
    pen.stroke();
  }

  names(pen) {
    const { left: lefts, top: tops } = this.positions, { left, right, top, bottom } = this.axes, style = getComputedStyle(this.canvas), { ring } = this;
    const taken = ring && this.slid === null ? [{ x: this.axes.across(ring.x) - 8, y: this.axes.up(ring.y), wide: 16 }] : []; // no name on the ring
    Object.assign(pen, { fillStyle: style.color, strokeStyle: style.getPropertyValue("--nmd-back"), lineWidth: 3, lineJoin: "round" });
    const lit = this.lit.map((row) => this.rows.indexOf(row)).filter((k) => k >= 0);
    for (const k of lit.length ? lit : this.data.named) {
      const text = this.data.labels[k].replace(/ \(\d{4}\)$/, ""), wide = pen.measureText(text).width;
      const box = { x: clamp(lefts[k] + 5, left, right - wide), y: clamp(tops[k], top + LINE, bottom - 2), wide };
      const free = taken.every(({ x, y, wide: other }) => box.x > x + other + 6 || x > box.x + wide + 6 || Math.abs(box.y - y) > LINE);
      if (!free || wide > (right - left) / 2) continue;
      taken.push(box);
      for (const write of ["strokeText", "fillText"]) pen[write](text, box.x, box.y + 4);
    }
    pen.lineWidth = 1;
  }

  thumbs(pen) {
    const { drawing, positions, axes, scale } = this, { height, width, channels, data } = drawing ?? {};
    if (!data || height < 2 || !scale) return;
    const [wide, high] = [axes.right - axes.left, axes.bottom - axes.top], size = height * width * channels, taken = [];
    this.thumb.resize(mosaicOf({ count: 1, height, width }));
    for (let n = 0; n < DIRECTIONS; n++) {
      const [across, up] = [Math.cos, Math.sin].map((f) => f((2 * Math.PI * n) / DIRECTIONS));
      const far = (k) => (across * positions.left[k]) / wide + (up * positions.top[k]) / high;
      const k = this.rows.reduce((best, _, each) => (far(each) > far(best) ? each : best), 0);
      const x = clamp(positions.left[k] - THUMB / 2, axes.left + 1, axes.right - THUMB - 1), y = clamp(positions.top[k] - THUMB / 2, axes.top + 1, axes.bottom - THUMB - 1);
      if (taken.some(([left, top]) => Math.max(Math.abs(left - x), Math.abs(top - y)) < THUMB + 2)) continue;
      taken.push([x, y]);
      this.thumb.fill(decodedValues(this.codes.subarray(k * size, (k + 1) * size), data), scale);
      Object.assign(pen, { imageSmoothingEnabled: false, lineWidth: 1 }).drawImage(this.thumb.canvas, x, y, THUMB, THUMB);
      pen.strokeRect(x, y, THUMB, THUMB);
    }
  }

  cursor() {
    if (!this.data || !this.positions) return;
    const pen = this.canvas.getContext("2d"), { left, top } = this.positions;
    this.canvas.width += 0; // which clears it
    pen.drawImage(this.base, 0, 0);
    pen.scale(this.ratio, this.ratio);
    pen.strokeStyle = pen.fillStyle = getComputedStyle(this.canvas).color;
    if (this.at !== null) circle(pen, left[this.at], top[this.at], 8);
    pen.stroke();
    const lasso = this.loop(this.lasso ?? []);
    pen.stroke(lasso);
    pen.globalAlpha = 0.1;
    pen.fill(lasso, "evenodd");
  }
}
