// The rows of a matrix in the plane of two components, on a canvas: lasso, selection and values.

import { clamp, html, keyOf, numbers, pageColors, short } from "./dom.mjs";
import { Axes, linearTicks, nearestDot, rangeOf, tickText } from "./axes.mjs";
import { Drawing, nearMean } from "./drawing.mjs";

const SCATTER_REACH = 12, SCATTER_MANY = 2000, SCATTER_DRAG = 4;

/** Return the positions of the points inside a closed polygon of [x, y] (even-odd rule). */
export function insideOf(polygon, xs, ys) {
  const found = [];
  for (let k = 0; k < xs.length; k++) {
    let inside = false;
    for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
      const [[ax, ay], [bx, by]] = [polygon[i], polygon[j]];
      if (ay > ys[k] !== by > ys[k] && xs[k] < ax + ((bx - ax) * (ys[k] - ay)) / (by - ay)) inside = !inside;
    }
    if (inside) found.push(k);
  }
  return found;
}

/** Return a range around the middle 98 % of numbers, and around another: the rest stands at the edge. */
export function mostOf(numbers, other) {
  const sorted = numbers.slice().sort(), cut = Math.floor(sorted.length / 100);
  return rangeOf([...sorted.subarray(cut, sorted.length - cut), other]);
}

function circle(pen, x, y, r) {
  pen.beginPath();
  pen.arc(x, y, r, 0, 2 * Math.PI);
}

/** The rows as points that a lasso, a click or the keyboard selects. */
export class Scatter {
  constructor(send) {
    Object.assign(this, { send, data: null, at: null, lasso: null, selected: new Set(), rows: [] });
    const change = () => {
      const [a, b] = this.choices.map(({ value }) => Number(value));
      send({ do: "plane", a, b });
    };
    this.choices = ["a", "b"].map(() => html("select", { change }));
    const labels = ["plane of", "and"].map((text, k) => html("label", text, this.choices[k]));
    const head = html("div.nmd-scatter-head", ...labels);
    this.canvas = html("canvas", {
      role: "img", tabindex: 0, keydown: (event) => this.press(event),
      pointerdown: (event) => this.down(event), pointermove: (event) => this.move(this.placeOf(event)),
      pointerup: (event) => this.lasso && this.release(this.placeOf(event)),
      pointerleave: () => this.look(null), pointercancel: () => this.drop(),
    });
    this.base = html("canvas");
    this.note = html("div.nmd-scatter-note");
    this.read = html("output.nmd-read");
    this.drawing = new Drawing();
    this.element = html("div.nmd-scatter.nmd-nothing", head, this.canvas, this.note, this.drawing.element, this.read);
    this.element.scatter = this;
    new ResizeObserver(() => ![0, this.width].includes(this.canvas.clientWidth) && this.draw()).observe(this.element);
  }

  /** Show other points, or nothing for null, with these rows selected. */
  show(data, selectedRows = []) {
    Object.assign(this, { data, selected: new Set(selectedRows), orders: {} });
    this.element.classList.toggle("nmd-nothing", !data);
    if (!data) return;
    [this.x, this.y, this.rows] = [numbers(data.x), numbers(data.y), numbers(data.rows, Int32Array)];
    if (this.at >= this.rows.length) this.at = null;
    const option = (_, c) => html("option", { value: c }, String(c));
    this.choices.forEach((choice, k) => {
      if (choice.length !== data.rank) choice.replaceChildren(...Array.from({ length: data.rank }, option));
      choice.value = String(k ? data.b : data.a);
    });
    this.note.replaceChildren(...this.legend());
    this.draw();
  }

  /** Return what stands below the plane: whose ring it is, and the colours. */
  legend() {
    const { total, color, values, person } = this.data, colorOf = pageColors(this.canvas);
    const sampled = total > this.rows.length ? `a sample of ${this.rows.length} of ${total} rows` : "";
    const named = (values ?? []).map((text, k) => html("span", { style: "display: inline-block; margin-right: 4px" },
      html("span", { "aria-hidden": "true", style: `color: ${colorOf(k)}` }, "● "), `${text} `));
    return [sampled, color ? `${color}: ` : "", person ? html("b", `○ ${person.name} `) : "", ...named];
  }

  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.width, ((event.clientY - box.top) / box.height) * this.height];
  }

  /** Return the point near a place, or null. */
  near(place, reach = SCATTER_REACH) {
    const k = nearestDot(this.positions.left, this.positions.top, ...place, reach);
    return k < 0 ? null : k;
  }

  /** Draw what the model has at a place. */
  sketch(place) {
    const k = this.near(place, Infinity), { data, drawing } = this;
    if (k === null || !drawing.data) return;
    const w = nearMean(drawing.W, this.positions, place);
    [w[data.a], w[data.b]] = this.axes.valuesAt(...place);
    drawing.draw(w, k, this.nameOf(k));
  }

  nameOf(k) {
    const label = this.data.labels?.[k];
    return `row ${this.rows[k]}${label ? ` (${label})` : ""}`;
  }

  down(event) {
    if (event.button !== 0) return;
    this.lasso = [this.placeOf(event)];
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(place) {
    this.lasso?.push(place);
    this.look(this.lasso ? null : this.near(place));
    this.sketch(place);
  }

  /** Select what the lasso holds, or the point under a click. */
  release(place) {
    const path = [...this.lasso, place], [[left, top]] = path, near = this.near(place);
    const click = path.every(([x, y]) => Math.hypot(x - left, y - top) < SCATTER_DRAG);
    const inside = click ? [near].filter((k) => k !== null) : insideOf(path, this.positions.left, this.positions.top);
    this.drop();
    this.select(inside.map((k) => this.rows[k]));
  }

  drop() {
    this.lasso = null;
    this.paint();
  }

  select(rows) {
    this.selected = new Set(rows);
    this.draw();
    this.send({ do: "lasso", rows });
  }

  /** Select the row under the cursor, too; or no longer. */
  toggle() {
    const row = this.rows[this.at], rest = [...this.selected].filter((each) => each !== row);
    if (this.at !== null) this.select(this.selected.has(row) ? rest : [...rest, row]);
  }

  press(event) {
    const [toggle, step] = [() => this.toggle(), (axis, by) => () => this.step(axis, by)];
    keyOf(event, {
      ArrowRight: step("x", 1), ArrowLeft: step("x", -1), ArrowUp: step("y", 1), ArrowDown: step("y", -1),
      Enter: toggle, " ": toggle, Escape: () => (this.lasso ? this.drop() : this.select([])),
    })?.();
  }

  /** Move the cursor to the next point in the order of an axis. */
  step(axis, by) {
    const values = this[axis];
    const finite = () => Array.from(values.keys()).filter((k) => Number.isFinite(this.x[k] + this.y[k]));
    const order = (this.orders[axis] ??= finite().sort((a, b) => values[a] - values[b]));
    const next = this.at === null ? (by > 0 ? 0 : order.length - 1) : order.indexOf(this.at) + by;
    this.look(order[clamp(next, 0, order.length - 1)] ?? null);
    if (this.at !== null) this.sketch([this.positions.left[this.at], this.positions.top[this.at]]);
  }

  /** Show the row and the values of a point; nothing for null. */
  look(k) {
    const { a, b } = this.data ?? {};
    const said = () => `${this.nameOf(k)}: component ${a} ${short(this.x[k])}, component ${b} ${short(this.y[k])}`;
    this.at = k;
    this.read.textContent = k === null ? "" : said();
    this.paint();
  }

  /** Set the size of the canvas and the places of the points, and draw everything but the cursor. */
  draw() {
    if (!this.data) return;
    this.width = this.canvas.clientWidth || this.width || 560;
    const others = Number(getComputedStyle(this.element).getPropertyValue("--nmd-others")); // pixels above and below the plane
    this.height = Math.round(clamp(this.width, 200, clamp(this.element.clientHeight - others, 200, 420)));
    this.canvas.style.height = `${this.height}px`;
    this.ratio = globalThis.devicePixelRatio || 1;
    const [width, height] = [this.width, this.height].map((size) => Math.round(size * this.ratio));
    for (const each of [this.canvas, this.base]) Object.assign(each, { width, height });
    const { a, b, person } = this.data, box = { left: 42, right: this.width - 8, top: 8, bottom: this.height - 34 };
    const axes = new Axes(box, ...["x", "y"].map((axis) => (person ? mostOf(this[axis], person[axis]) : rangeOf(this[axis]))));
    this.axes = axes;
    this.positions = { left: this.x.map((x) => axes.across(x)), top: this.y.map((y) => axes.up(y)) };
    const pen = this.base.getContext("2d");
    pen.scale(this.ratio, this.ratio);
    this.frame(pen);
    this.dots(pen);
    const what = `${person ? `ring of ${person.name} among ` : ""}${this.rows.length} rows`;
    this.canvas.setAttribute("aria-label", `${what} by component ${a} and component ${b}, ${this.selected.size} selected`);
    this.look(this.at);
  }

  /** Draw the ticks, the names of the components and the lines at zero. */
  frame(pen) {
    const { color, fontFamily } = getComputedStyle(this.canvas), { axes, data } = this;
    const { left, right, top, bottom, xs, ys } = axes;
    Object.assign(pen, { fillStyle: color, strokeStyle: color, font: `11px ${fontFamily}`, textAlign: "center" });
    const line = (alpha, ...box) => {
      pen.globalAlpha = alpha;
      pen.strokeRect(...box);
      pen.globalAlpha = 1;
    };
    line(0.25, left, top, right - left, bottom - top);
    if (xs[0] < 0 && xs[1] > 0) line(0.4, axes.across(0), top, 0, bottom - top);
    if (ys[0] < 0 && ys[1] > 0) line(0.4, left, axes.up(0), right - left, 0);
    for (const tick of linearTicks(...xs, 4)) pen.fillText(tickText(tick), axes.across(tick), bottom + 14);
    pen.fillText(`component ${data.a}`, (left + right) / 2, this.height - 5);
    pen.save();
    pen.textAlign = "right";
    for (const tick of linearTicks(...ys, 5)) pen.fillText(tickText(tick), left - 5, axes.up(tick) + 4);
    pen.textAlign = "center";
    pen.translate(11, (top + bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(`component ${data.b}`, 0, 0);
    pen.restore();
  }

  /** Draw all points, the selected ones last, larger and with an outline, and a ring around the person that is asked for. */
  dots(pen) {
    const colorOf = pageColors(this.canvas), { groups, person } = this.data, { left, top } = this.positions;
    const [chosen, others] = [[], []];
    this.rows.forEach((row, k) => (this.selected.has(row) ? chosen : others).push(k));
    const faint = this.selected.size || person ? 0.3 : 0.75;
    for (const [points, size, alpha] of [[others, 3, faint], [chosen, 5, 1]]) {
      const many = points.length > SCATTER_MANY, r = many ? size / 2 : size;
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
    if (!person) return;
    const strokeStyle = getComputedStyle(this.canvas).getPropertyValue("--nmd-star");
    Object.assign(pen, { globalAlpha: 1, lineWidth: 3, strokeStyle });
    circle(pen, this.axes.across(person.x), this.axes.up(person.y), 7);
    pen.stroke();
  }

  /** Draw the lasso and the ring of the cursor over the points, once in a frame. */
  paint() {
    if (this.painting || !this.data) return;
    this.painting = requestAnimationFrame(() => {
      this.painting = null;
      const pen = this.canvas.getContext("2d"), { left, top } = this.positions;
      this.canvas.width += 0; // which clears it
      pen.drawImage(this.base, 0, 0);
      pen.scale(this.ratio, this.ratio);
      pen.strokeStyle = pen.fillStyle = getComputedStyle(this.canvas).color;
      if (this.at !== null) circle(pen, left[this.at], top[this.at], 8);
      pen.stroke();
      pen.beginPath();
      for (const place of this.lasso ?? []) pen.lineTo(...place);
      pen.closePath();
      pen.stroke();
      pen.globalAlpha = 0.1;
      pen.fill("evenodd");
    });
  }
}
