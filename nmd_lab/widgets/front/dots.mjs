// Points with error bars: panels that share the y axis, a colour for each label.
//
// While there are few points, each is a button that the keyboard reaches; otherwise they only show their values.

import { clamp, downloadSvg, html, short, svg } from "./dom.mjs";
import { dotRange, linearTicks, logTicks, nearestDot, pageColors, tickText, wholeTicks } from "./axes.mjs";

const DOT_LEFT = 56, DOT_RIGHT = 12, DOT_BETWEEN = 18, DOT_HIGH = 200, DOT_STUDY = 400, DOT_BUTTONS = 150, DOT_REACH = 20, DOT_LETTER = 6.3, DOT_ON_ANOTHER = 6;

/** Return the points that the axes can show, of all panels, with the label of their series. */
export function dotPoints({ panels, log, joined }) {
  const bar = (number) => (Number.isFinite(number) ? number : null);
  return panels.flatMap(({ series }, panel) => series.flatMap((one, number) => {
    const points = Array.from(one.x, (x, k) => ({
      panel, number, x, y: one.y[k], low: bar(one.low?.[k]), high: bar(one.high?.[k]),
      label: one.label, id: one.ids?.[k] ?? null, name: one.names?.[k] ?? (one.label || short(x)),
    })).filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y) && (!log || y > 0));
    return joined ? points.sort((a, b) => a.x - b.x) : points;
  }));
}

/** Return the point that a click chooses: where several lie on one another, the one after that which is chosen. */
export function nextHere(points, point, chosen) {
  const here = points.filter(({ left, top }) => Math.hypot(left - point.left, top - point.top) < DOT_ON_ANOTHER);
  const at = here.findIndex(({ id }) => id !== null && id === chosen);
  return { here, next: at < 0 ? point : here[(at + 1) % here.length] };
}

/** Return a text that is at most so many pixels wide. */
export const cutText = (text, width) =>
  text.length * DOT_LETTER > width ? `${text.slice(0, Math.max(1, Math.floor(width / DOT_LETTER) - 1))}…` : text;

/** Return the ticks (lefts are ascending) that do not touch, each as wide as its text or so many pixels. */
export function roomyTicks(ticks, wide = 0) {
  let end = -Infinity;
  return ticks.filter(({ left, text }) => {
    const half = (wide || text.length * DOT_LETTER + 4) / 2, fits = left - half >= end;
    if (fits) end = left + half;
    return fits;
  });
}

const dotText = (text, x, y, anchor = "middle", more = {}) => svg("text", { x, y, "text-anchor": anchor, ...more }, text);

/** A chart of points with error bars, or of lines with bands. */
export class DotChart {
  constructor(send, name) {
    Object.assign(this, { send, name, data: null, points: [], title: html("strong"), drawing: svg("svg") });
    const save = html("button", { type: "button", click: () => downloadSvg(this.drawing, `${name}.svg`) }, "save SVG");
    this.read = html("output", { class: "nmd-read", "aria-live": "off" });
    const head = html("div", { class: "nmd-dots-head" }, this.title, save);
    this.element = html("div", { class: "nmd-dots", hidden: true }, head, this.drawing, this.read);
    this.listen();
    new ResizeObserver(() => ![0, this.space].includes(this.element.clientWidth) && this.draw()).observe(this.element);
  }

  listen() {
    const on = (kind, action) => this.drawing.addEventListener(kind, action);
    on("pointermove", (event) => this.look(this.under(event)));
    on("pointerleave", () => this.look(this.focused));
    on("focusin", () => this.look(this.focused));
    on("focusout", () => this.look(null));
    on("click", (event) => {
      const point = this.under(event);
      if (point) this.press(nextHere(this.points, point, this.selected).next);
    });
    on("keydown", (event) => {
      if (!this.focused || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      event.stopPropagation();
      this.press(this.focused);
    });
    on("transitionend", (event) => event.target === this.drawing && this.draw());
  }

  /** Show other data, or nothing for null; a ring marks the selected point. */
  show(data, selectedId = null) {
    Object.assign(this, { data, selected: selectedId });
    this.element.hidden = !data;
    this.draw();
  }

  /** Return the point that has the focus. */
  get focused() {
    const active = this.drawing.getRootNode().activeElement;
    return (active && this.points.find(({ circle }) => circle === active)) ?? null;
  }

  /** Return the point of an event: its circle, or the nearest one. */
  under({ target, clientX, clientY }) {
    const box = this.drawing.getBoundingClientRect(), scale = this.width / box.width;
    const [lefts, tops] = [this.points.map(({ left }) => left), this.points.map(({ top }) => top)];
    const near = nearestDot(lefts, tops, (clientX - box.left) * scale, (clientY - box.top) * scale, DOT_REACH);
    return this.points.find(({ circle }) => circle === target) ?? this.points[near] ?? null;
  }

  press(point) {
    if (point?.button) this.send({ do: "point", chart: this.name, id: point.id });
  }

  /** Show the name and the value of a point; nothing without one. */
  look(point) {
    this.ring?.replaceChildren(...(point ? [svg("circle", { cx: point.left, cy: point.top, r: 6.5 })] : []));
    const bar = point && point.low !== null && point.high !== null ? ` (${short(point.low)} to ${short(point.high)})` : "";
    const { here, next } = point ? nextHere(this.points, point, this.selected) : { here: [] };
    const more = here.length > 1 && next.button ? ` – ${here.length} points here, click again for the next` : "";
    this.read.textContent = point ? `${point.name}: ${short(point.y)}${bar}${more}` : "";
  }

  draw() {
    const held = this.focused?.id ?? null;
    this.element.points = this.points = this.data ? dotPoints(this.data) : [];
    if (!this.data) return this.drawing.replaceChildren();
    const few = this.points.length <= DOT_BUTTONS, legend = this.measure();
    const frames = this.data.panels.flatMap((each, panel) => this.axes(each, panel));
    for (const point of this.points) {
      Object.assign(point, { left: this.across(point.panel, point.x), top: this.up(point.y), button: few && point.id !== null });
    }
    this.ring = svg("g", { opacity: 0.6, fill: "none", stroke: "currentColor" });
    this.drawing.replaceChildren(...legend, ...frames, ...this.marks(), ...this.dots(), this.ring);
    this.drawing.setAttribute("role", this.points.some(({ button }) => button) ? "group" : "img");
    this.drawing.setAttribute("aria-label", this.summary());
    this.title.textContent = this.data.title;
    if (held !== null) this.points.find(({ id }) => id === held)?.circle.focus({ preventScroll: true });
    this.look(this.focused);
  }

  /** Set the ranges of the axes and the size of the drawing; return the legend. */
  measure() {
    const { panels, ticks, log, joined, diagonal } = this.data;
    this.space = this.element.clientWidth || this.space || 560;
    this.width = clamp(this.space, 280, 860);
    const legend = this.legend();
    this.top += panels.some(({ title }) => title) ? 20 : 8;
    this.high = this.name === "study" ? DOT_STUDY : DOT_HIGH;
    this.bottom = this.top + this.high;
    const xs = [...this.points.map(({ x }) => x), ...(ticks ?? []).map(([x]) => x)];
    const ys = this.points.flatMap(({ y, low, high }) => [y, low, high]);
    this.ys = dotRange(ys, log);
    this.xs = dotRange(xs, false, ticks && !joined ? 0.5 / Math.max(1, ticks.length - 1) : 0.06);
    if (diagonal && !log) this.xs = this.ys = dotRange([...xs, ...ys]);
    this.wide = (this.width - DOT_LEFT - DOT_RIGHT - DOT_BETWEEN * (panels.length - 1)) / panels.length;
    this.ticks = this.xTicks();
    const longest = Math.max(0, ...this.ticks.map(({ text }) => text.length * DOT_LETTER));
    this.height = this.bottom + (this.turned ? 0.71 * longest : 4) + 34;
    const size = { viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height };
    for (const [name, value] of Object.entries(size)) this.drawing.setAttribute(name, value);
    return legend;
  }

  across(panel, x) {
    return DOT_LEFT + panel * (this.wide + DOT_BETWEEN) + ((x - this.xs[0]) / (this.xs[1] - this.xs[0])) * this.wide;
  }

  up(y) {
    const scale = this.data.log ? Math.log : Number;
    const [low, high, at] = [...this.ys, clamp(y, ...this.ys)].map(scale);
    return this.bottom - ((at - low) / (high - low)) * this.high;
  }

  /** Return the ticks of the first panel: turned or cut where the texts have no room. */
  xTicks() {
    const { ticks, joined } = this.data;
    const kind = this.points.every(({ x }) => Number.isInteger(x)) ? wholeTicks : linearTicks;
    const given = ticks ?? kind(...this.xs).map((tick) => [tick, tickText(tick)]);
    const all = given.map(([x, full]) => ({ x, left: this.across(0, x), text: String(full), full })).sort((a, b) => a.x - b.x);
    const cut = (width) => all.map((tick) => ({ ...tick, text: cutText(tick.text, width(tick)) }));
    const fit = roomyTicks(all);
    this.turned = Boolean(ticks) && !joined && all.length > 4 && fit.length < all.length;
    if (this.turned) return roomyTicks(cut(({ left }) => Math.min(180, (left - 2) / 0.71)), 14);
    return fit.length === all.length || !ticks || joined ? fit : cut(() => this.wide / all.length - 4);
  }

  /** Return the legend, in as many lines as it needs, and set where it ends. */
  legend() {
    this.labels = [...new Set(this.data.panels.flatMap(({ series }) => series.map(({ label }) => label)))];
    const colors = pageColors(this.drawing);
    this.colors = this.labels.map((_, k) => colors[k % colors.length]);
    let left = DOT_LEFT;
    this.top = this.labels.some(Boolean) ? 18 : 0;
    return !this.top ? [] : [this.data.color, ...this.labels].flatMap((label, k) => {
      const wide = label.length * DOT_LETTER + (k ? 26 : 10);
      if (left + wide > this.width && left > DOT_LEFT) [left, this.top] = [DOT_LEFT, this.top + 16];
      const [at, y] = [left, this.top - 5];
      left += wide;
      const dot = svg("circle", { cx: at + 5, cy: y - 4, r: k ? 4 : 0, fill: this.colors[k - 1] });
      return [dot, dotText(label, at + (k ? 13 : 0), y, "start", { opacity: k ? 1 : 0.75 })];
    });
  }

  /** Return the grid, the ticks and the titles of a panel, with the line y = x if it is asked for. */
  axes({ title }, panel) {
    const { log, x, y, diagonal } = this.data, first = panel === 0;
    const [start, end] = this.xs.map((each) => this.across(panel, each));
    const pen = { stroke: "currentColor", fill: "none" };
    const line = (d, opacity, dash) => svg("path", { d, opacity, "stroke-dasharray": dash, ...pen });
    const parts = (log ? logTicks : linearTicks)(...this.ys).flatMap((tick) => [
      line(`M${start} ${this.up(tick)}H${end}`, 0.15), first ? dotText(tickText(tick), start - 5, this.up(tick) + 4, "end") : "",
    ]);
    for (const { x: tick, text, full } of this.ticks) {
      const [left, top] = [this.across(panel, tick), this.bottom + 15];
      const turn = this.turned ? { transform: `rotate(-45 ${left} ${top})` } : {};
      parts.push(dotText(text, left + (this.turned ? 4 : 0), top, this.turned ? "end" : "middle", turn));
      if (text !== full) parts.at(-1).append(svg("title", {}, full));
    }
    parts.push(line(`M${start} ${this.bottom}H${end}`, 0.5), dotText(cutText(title, this.wide), (start + end) / 2, this.top - 7));
    if (first) parts.push(dotText(x, (DOT_LEFT + this.width - DOT_RIGHT) / 2, this.height - 5));
    const middle = this.bottom - this.high / 2;
    if (first) parts.push(dotText(cutText(y, this.height), 11, middle, "middle", { transform: `rotate(-90 11 ${middle})` }));
    const [from, to] = [Math.max(this.xs[0], this.ys[0]), Math.min(this.xs[1], this.ys[1])];
    const steps = Array.from({ length: 41 }, (_, k) => from + (k / 40) * (to - from));
    const way = steps.map((each) => `${this.across(panel, each)} ${this.up(each)}`).join("L");
    return diagonal && from < to ? [...parts, line(`M${way}`, 0.5, "4 3")] : parts;
  }

  /** Return the lines and bands, or the error bars, of all series. */
  marks() {
    return this.data.panels.flatMap(({ series }, panel) => series.flatMap(({ label }, number) => {
      const points = this.points.filter((point) => point.panel === panel && point.number === number);
      const color = this.colors[this.labels.indexOf(label)];
      const barred = points.filter(({ low, high }) => low !== null && high !== null);
      const way = (all, height) => all.map((each) => `${each.left} ${this.up(height(each))}`).join("L");
      const band = `${way(barred, ({ low }) => low)}L${way([...barred].reverse(), ({ high }) => high)}Z`;
      const bar = ({ left, low, high }) => `M${left} ${this.up(low)}V${this.up(high)}m-3 0h6M${left - 3} ${this.up(low)}h6`;
      const drawn = (d, fill, stroke, opacity) => svg("path", { d, fill, stroke, opacity, "stroke-width": 1.5 });
      if (!this.data.joined) return [drawn(barred.map(bar).join(""), "none", color, 0.7)];
      const line = points.length ? `M${way(points, ({ y }) => y)}` : "";
      return [drawn(barred.length ? `M${band}` : "", color, "none", 0.18), drawn(line, "none", color, 1)];
    }));
  }

  /** Return the circles of all points, and rings around the selected ones. */
  dots() {
    return this.points.flatMap((point) => {
      const { left: cx, top: cy, name, y, label, button } = point, chosen = point.id !== null && point.id === this.selected;
      const role = { role: "button", tabindex: 0, "aria-label": `${name}: ${short(y)}`, "aria-pressed": String(chosen) };
      const r = this.points.length > DOT_BUTTONS ? 2 : 4;
      point.circle = svg("circle", { cx, cy, r, fill: this.colors[this.labels.indexOf(label)], ...(button ? role : {}) });
      const ring = { cx, cy, r: 8, fill: "none", stroke: "currentColor", "stroke-width": 2, class: "nmd-dots-chosen" };
      return chosen ? [point.circle, svg("circle", ring)] : [point.circle];
    });
  }

  summary() {
    const least = this.points.reduce((a, b) => (a && a.y <= b.y ? a : b), null);
    const lowest = least ? `, lowest ${this.data.y} ${short(least.y)} (${least.name})` : "";
    return `${this.data.title}: ${this.points.length} points${lowest}`;
  }
}
