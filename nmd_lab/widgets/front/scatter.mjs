// The rows of a matrix in the plane of two components, on a canvas: lasso, selection and values.

import { clamp, html, numbers, short } from "./dom.mjs";
import { dotRange, linearTicks, nearestDot, pageColors, tickText } from "./axes.mjs";
import { Drawing, nearMean } from "./drawing.mjs";

const SCATTER_EDGE = { left: 42, right: 8, top: 8, bottom: 34 };
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
  return dotRange([...sorted.subarray(cut, sorted.length - cut), other]);
}

/** The rows as points that a lasso, a click or the keyboard selects. */
export class Scatter {
  constructor(send) {
    Object.assign(this, { send, data: null, at: null, lasso: null, selected: new Set(), rows: [], orders: {} });
    this.positions = { left: new Float32Array(0), top: new Float32Array(0) };
    this.choices = ["a", "b"].map((key) => html("select", { change: () => this.choose(), "data-axis": key }));
    this.note = html("div", { class: "nmd-scatter-note" });
    const labels = ["plane of", "and"].map((text, k) => html("label", {}, text, this.choices[k]));
    this.canvas = html("canvas", { role: "img", tabindex: 0 });
    this.base = html("canvas");
    this.read = html("output", { class: "nmd-read" });
    this.drawing = new Drawing();
    const head = html("div", { class: "nmd-scatter-head" }, ...labels);
    this.element = html("div", { class: "nmd-scatter nmd-nothing" }, head, this.canvas, this.note, this.drawing.element, this.read);
    this.element.scatter = this;
    this.listen();
    new ResizeObserver(() => ![0, this.width].includes(this.canvas.clientWidth) && this.draw()).observe(this.element);
  }

  listen() {
    const on = (kind, action) => this.canvas.addEventListener(kind, action);
    on("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.lasso = [this.placeOf(event)];
      this.canvas.setPointerCapture?.(event.pointerId);
    });
    on("pointermove", (event) => {
      const place = this.placeOf(event);
      if (this.lasso) this.lasso.push(place);
      this.look(this.lasso ? null : this.near(place));
      this.sketch(place);
    });
    on("pointerup", (event) => this.lasso && this.release(this.placeOf(event)));
    on("pointerleave", () => this.look(null));
    on("pointercancel", () => this.drop());
    on("keydown", (event) => this.press(event));
    on("transitionend", () => this.draw());
  }

  /** Show other points, or nothing for null, with these rows selected. */
  show(data, selectedRows = []) {
    Object.assign(this, { data, selected: new Set(selectedRows), orders: {} });
    this.element.classList.toggle("nmd-nothing", !data);
    if (!data) return;
    [this.x, this.y, this.rows] = [numbers(data.x), numbers(data.y), numbers(data.rows, Int32Array)];
    if (this.at >= this.rows.length) this.at = null;
    this.choices.forEach((choice, k) => {
      const names = Array.from({ length: data.rank }, (_, c) => String(c));
      if (choice.length !== data.rank) choice.replaceChildren(...names.map((name, c) => html("option", { value: c }, name)));
      choice.value = String(k ? data.b : data.a);
    });
    const sampled = data.total > this.rows.length ? `a sample of ${this.rows.length} of ${data.total} rows` : "";
    const colors = pageColors(this.canvas), named = data.color ? [`${data.color}: `] : [];
    const legend = (data.values ?? []).map((text, k) => {
      const dot = html("span", { "aria-hidden": "true" }, "● ");
      dot.style.color = colors[k % colors.length];
      return html("span", {}, dot, `${text} `);
    });
    if (data.person) legend.unshift(html("b", {}, `○ ${data.person.name} `));
    this.note.replaceChildren(sampled, ...named, ...legend);
    this.draw();
  }

  choose() {
    const [a, b] = this.choices.map(({ value }) => Number(value));
    this.send({ do: "plane", a, b });
  }

  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.width, ((event.clientY - box.top) / box.height) * this.height];
  }

  /** Return the point near a place, or null. */
  near([left, top], reach = SCATTER_REACH) {
    const k = nearestDot(this.positions.left, this.positions.top, left, top, reach);
    return k < 0 ? null : k;
  }

  /** Draw what the model has at a place. */
  sketch([left, top]) {
    const { left: west, right, top: north, bottom } = SCATTER_EDGE, [xs, ys] = this.ranges;
    const share = [(left - west) / (this.width - west - right), (this.height - bottom - top) / (this.height - north - bottom)]
      .map((each) => clamp(each, 0, 1));
    const k = this.near([left, top], Infinity);
    if (k === null || !this.drawing.data) return;
    const w = nearMean(this.drawing.W, this.positions, [left, top]);
    [w[this.data.a], w[this.data.b]] = [xs, ys].map(([from, to], axis) => from + share[axis] * (to - from));
    this.drawing.draw(w, k, this.nameOf(k));
  }

  nameOf(k) {
    const label = this.data.labels?.[k];
    return `row ${this.rows[k]}${label ? ` (${label})` : ""}`;
  }

  /** Select what the lasso holds, or the point under a click. */
  release(place) {
    const path = [...this.lasso, place], [[left, top]] = path;
    const click = path.every(([x, y]) => Math.hypot(x - left, y - top) < SCATTER_DRAG);
    const near = this.near(place);
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

  press(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
    const row = this.at === null ? null : this.rows[this.at];
    if (step) this.step(event.key === "ArrowRight" || event.key === "ArrowLeft" ? "x" : "y", step);
    else if (event.key === "Escape" && this.lasso) this.drop();
    else if (event.key === "Escape") this.select([]);
    else if ((event.key === "Enter" || event.key === " ") && row === null) return;
    else if (event.key === "Enter" || event.key === " ") {
      const rest = [...this.selected].filter((each) => each !== row);
      this.select(this.selected.has(row) ? rest : [...rest, row]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Move the cursor to the next point in the order of an axis. */
  step(axis, by) {
    const values = this[axis];
    const finite = () => Array.from(values.keys()).filter((k) => Number.isFinite(this.x[k] + this.y[k]));
    const order = (this.orders[axis] ??= finite().sort((a, b) => values[a] - values[b]));
    const next = this.at === null ? (by > 0 ? 0 : order.length - 1) : clamp(order.indexOf(this.at) + by, 0, order.length - 1);
    this.look(order[next] ?? null);
    if (this.at !== null) this.sketch([this.positions.left[this.at], this.positions.top[this.at]]);
  }

  /** Show the row and the values of a point; nothing for null. */
  look(k) {
    this.at = k;
    const { a, b } = this.data ?? {};
    const said = () => `${this.nameOf(k)}: component ${a} ${short(this.x[k])}, component ${b} ${short(this.y[k])}`;
    this.read.textContent = k === null ? "" : said();
    this.paint();
  }

  /** Set the size of the canvas and the places of the points, and draw everything but the cursor. */
  draw() {
    if (!this.data) return;
    const { left, right, top, bottom } = SCATTER_EDGE;
    this.width = this.canvas.clientWidth || this.width || 560;
    const others = Number(getComputedStyle(this.element).getPropertyValue("--nmd-others")); // pixels above and below the plane
    this.height = Math.round(clamp(this.width, 200, clamp(this.element.clientHeight - others, 200, 420)));
    this.canvas.style.height = `${this.height}px`;
    this.ratio = globalThis.devicePixelRatio || 1;
    const size = { width: Math.round(this.width * this.ratio), height: Math.round(this.height * this.ratio) };
    for (const each of [this.canvas, this.base]) Object.assign(each, size);
    const { person } = this.data, [xs, ys] = this.ranges = ["x", "y"].map((axis) => (person ? mostOf(this[axis], person[axis]) : dotRange(this[axis])));
    this.across = (x) => left + clamp((x - xs[0]) / (xs[1] - xs[0]), 0, 1) * (this.width - left - right);
    this.up = (y) => this.height - bottom - clamp((y - ys[0]) / (ys[1] - ys[0]), 0, 1) * (this.height - top - bottom);
    this.positions = { left: this.x.map(this.across), top: this.y.map(this.up) };
    const pen = this.base.getContext("2d");
    pen.scale(this.ratio, this.ratio);
    this.axes(pen, xs, ys);
    this.dots(pen);
    const names = `component ${this.data.a} and component ${this.data.b}`;
    this.canvas.setAttribute("aria-label", `${person ? `ring of ${person.name} among ` : ""}${this.rows.length} rows by ${names}, ${this.selected.size} selected`);
    this.look(this.at);
  }

  /** Draw the ticks, the names of the components and the lines at zero. */
  axes(pen, xs, ys) {
    const { color, fontFamily } = getComputedStyle(this.canvas);
    const { left, right, top, bottom } = SCATTER_EDGE, floor = this.height - bottom, end = this.width - right;
    Object.assign(pen, { fillStyle: color, strokeStyle: color, font: `11px ${fontFamily || "sans-serif"}` });
    const line = (alpha, ...box) => {
      pen.globalAlpha = alpha;
      pen.strokeRect(...box);
      pen.globalAlpha = 1;
    };
    line(0.25, left, top, end - left, floor - top);
    pen.textAlign = "center";
    for (const tick of linearTicks(...xs, 4)) {
      pen.fillText(tickText(tick), this.across(tick), floor + 14);
      if (tick === 0) line(0.4, this.across(0), top, 0, floor - top);
    }
    pen.fillText(`component ${this.data.a}`, (left + end) / 2, this.height - 5);
    pen.textAlign = "right";
    for (const tick of linearTicks(...ys, 5)) {
      pen.fillText(tickText(tick), left - 5, this.up(tick) + 4);
      if (tick === 0) line(0.4, left, this.up(0), end - left, 0);
    }
    pen.textAlign = "center";
    pen.save();
    pen.translate(11, (top + floor) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(`component ${this.data.b}`, 0, 0);
    pen.restore();
  }

  /** Draw all points, the selected ones last, larger and with an outline, and a ring around the person that is asked for. */
  dots(pen) {
    const colors = pageColors(this.canvas), groups = this.data.groups ?? [], { left, top } = this.positions;
    const [chosen, others] = [[], []];
    this.rows.forEach((row, k) => (this.selected.has(row) ? chosen : others).push(k));
    const dot = (k, r, simple) => {
      if (simple) return pen.fillRect(left[k] - r, top[k] - r, 2 * r, 2 * r);
      pen.beginPath();
      pen.arc(left[k], top[k], r, 0, 2 * Math.PI);
      pen.fill();
    };
    for (const [points, r, alpha] of [[others, 3, this.selected.size || this.data.person ? 0.3 : 0.75], [chosen, 5, 1]]) {
      const simple = points.length > SCATTER_MANY;
      pen.globalAlpha = alpha;
      for (const k of points) {
        pen.fillStyle = colors[Math.abs(groups[k] ?? 0) % colors.length];
        dot(k, simple ? r / 2 : r, simple);
        if (alpha === 1 && !simple) pen.stroke();
      }
    }
    const { person } = this.data;
    if (!person) return;
    Object.assign(pen, { globalAlpha: 1, lineWidth: 3, strokeStyle: getComputedStyle(this.canvas).getPropertyValue("--nmd-star") });
    pen.beginPath();
    pen.arc(this.across(person.x), this.up(person.y), 7, 0, 2 * Math.PI);
    pen.stroke();
  }

  /** Draw the lasso and the ring of the cursor over the points, once in a frame. */
  paint() {
    if (this.frame || !this.data) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      const pen = this.canvas.getContext("2d");
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
      pen.drawImage(this.base, 0, 0);
      pen.scale(this.ratio, this.ratio);
      pen.strokeStyle = pen.fillStyle = getComputedStyle(this.canvas).color;
      pen.beginPath();
      if (this.at !== null) pen.arc(this.positions.left[this.at], this.positions.top[this.at], 8, 0, 2 * Math.PI);
      pen.stroke();
      pen.beginPath();
      for (const place of this.lasso ?? []) pen.lineTo(...place);
      pen.closePath();
      pen.stroke();
      pen.globalAlpha = 0.1;
      pen.fill("evenodd");
      pen.globalAlpha = 1;
    });
  }
}
