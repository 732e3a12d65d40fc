// Points with error bars: panels that share the y axis, a colour for each label.
//
// While there are few points, each is a button that the keyboard reaches; otherwise they only show their values.

import { clamp, html, keyOf, pageColors, set, short, svg } from "./dom.mjs";
import { Axes, linearTicks, nearestDot, rangeOf, svgText, tickText, wholeTicks } from "./axes.mjs";

const DOT_LEFT = 56, DOT_RIGHT = 12, DOT_BETWEEN = 18, DOT_LETTER = 6.3;
const DOT_BUTTONS = 150, DOT_REACH = 20, DOT_ON_ANOTHER = 6;

/** Return the points that the axes can show, of all panels, with the label of their series. */
export function dotPoints({ panels, joined }) {
  const bar = (number) => (Number.isFinite(number) ? number : null);
  return panels.flatMap(({ series }, panel) => series.flatMap((one, number) => {
    const points = Array.from(one.x, (x, k) => ({
      panel, number, x, y: one.y[k], low: bar(one.low?.[k]), high: bar(one.high?.[k]),
      label: one.label, id: one.ids?.[k] ?? null, name: one.names[k],
    })).filter(({ y }) => Number.isFinite(y));
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

/** A chart of points with error bars, or of lines with bands. */
export class DotChart {
  constructor(send, name) {
    Object.assign(this, { send, name, data: null, points: [], title: html("strong") });
    const look = () => this.look(this.focused), press = { Enter: true, " ": true };
    this.drawing = svg("svg", {
      pointermove: (event) => this.look(this.under(event)), pointerleave: look,
      focusin: look, focusout: () => this.look(null), click: (event) => this.press(this.under(event), true),
      keydown: (event) => this.focused && keyOf(event, press) && this.press(this.focused),
    });
    this.read = html("output.nmd-read", { "aria-live": "off" });
    this.element = html("div.nmd-dots", { hidden: true }, this.title, this.drawing, this.read);
    new ResizeObserver(() => ![0, this.space].includes(this.element.clientWidth) && this.draw()).observe(this.element);
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
    const [lefts, tops] = ["left", "top"].map((side) => this.points.map((point) => point[side]));
    const near = nearestDot(lefts, tops, (clientX - box.left) * scale, (clientY - box.top) * scale, DOT_REACH);
    return this.points.find(({ circle }) => circle === target) ?? this.points[near] ?? null;
  }

  press(point, clicked = false) {
    const next = point && clicked ? nextHere(this.points, point, this.selected).next : point;
    if (next?.button) this.send({ do: "point", chart: this.name, id: next.id });
  }

  /** Show the name and the value of a point, or of the chosen one at its place; nothing without one. */
  look(point) {
    this.ring?.replaceChildren(...(point ? [svg("circle", { cx: point.left, cy: point.top, r: 6.5 })] : []));
    const { here, next } = point ? nextHere(this.points, point, this.selected) : { here: [] };
    const named = here.find(({ id }) => id !== null && id === this.selected) ?? point;
    const bar = named && named.low !== null ? ` (${short(named.low)} to ${short(named.high)})` : "";
    const more = here.length > 1 && next.button ? ` – ${here.length} points here, click again for the next` : "";
    this.read.textContent = named ? `${named.name}: ${short(named.y)}${bar}${more}` : "";
  }

  draw() {
    const { data } = this, held = this.focused?.id ?? null;
    this.element.points = this.points = data ? dotPoints(data) : [];
    if (!data) return this.drawing.replaceChildren();
    const legend = this.measure(), few = this.points.length <= DOT_BUTTONS;
    for (const point of this.points) {
      const { panel, x, y, low, high, label, id } = point, axes = this.panels[panel];
      Object.assign(point, { left: axes.across(x), top: axes.up(y), button: few && id !== null });
      point.ends = low === null ? null : [axes.up(low), axes.up(high)];
      point.color = this.colors[this.labels.indexOf(label)];
    }
    this.ring = svg("g", { opacity: 0.6, fill: "none", stroke: "currentColor" });
    const grid = data.panels.flatMap(({ title }, panel) => this.grid(title, this.panels[panel], panel === 0));
    this.drawing.replaceChildren(...legend, ...grid, ...this.marks(), ...this.dots(), this.ring);
    const role = this.points.some((point) => point.button) ? "group" : "img";
    const least = this.points.reduce((a, b) => (a && a.y <= b.y ? a : b), null);
    const lowest = least ? `, lowest ${data.y} ${short(least.y)} (${least.name})` : "";
    set(this.drawing, { role, "aria-label": `${data.title}: ${this.points.length} points${lowest}` });
    this.title.textContent = data.title;
    if (held !== null) this.points.find(({ id }) => id === held)?.circle.focus({ preventScroll: true });
    this.look(this.focused);
  }

  /** Set the axes of the panels and the size of the drawing; return the legend. */
  measure() {
    const { panels, ticks, joined, diagonal } = this.data;
    this.space = this.element.clientWidth || this.space || 560;
    this.width = clamp(this.space, 280, 860);
    const { legend, end } = this.legend(), top = end + (panels.some(({ title }) => title) ? 20 : 8);
    const bottom = top + (this.name === "study" ? 400 : 200);
    let xs = [...this.points.map(({ x }) => x), ...(ticks ?? []).map(([x]) => x)];
    let ys = this.points.flatMap(({ y, low, high }) => [y, low, high]);
    if (diagonal) xs = ys = [...xs, ...ys];
    [xs, ys] = [rangeOf(xs, false, ticks && !joined ? 0.5 / Math.max(1, ticks.length - 1) : 0.06), rangeOf(ys)];
    const wide = (this.width - DOT_LEFT - DOT_RIGHT - DOT_BETWEEN * (panels.length - 1)) / panels.length;
    this.panels = panels.map((_, k) => {
      const left = DOT_LEFT + k * (wide + DOT_BETWEEN);
      return new Axes({ left, right: left + wide, wide, top, bottom }, xs, ys);
    });
    this.ticks = this.xTicks(this.panels[0]);
    const longest = Math.max(0, ...this.ticks.map(({ text }) => text.length * DOT_LETTER));
    this.height = bottom + (this.turned ? 0.71 * longest : 4) + 34;
    const { width, height } = this;
    set(this.drawing, { viewBox: `0 0 ${width} ${height}`, width, height });
    return legend;
  }

  /** Return the ticks of the first panel: turned or cut where the texts have no room. */
  xTicks(axes) {
    const { ticks, joined } = this.data;
    const kind = this.points.every(({ x }) => Number.isInteger(x)) ? wholeTicks : linearTicks;
    const given = ticks ?? kind(...axes.xs).map((tick) => [tick, tickText(tick)]);
    const all = given.map(([x, full]) => ({ x, left: axes.across(x), text: full, full })).sort((a, b) => a.x - b.x);
    const cut = (width) => all.map((tick) => ({ ...tick, text: cutText(tick.text, width(tick)) }));
    const fit = roomyTicks(all);
    this.turned = Boolean(ticks) && !joined && all.length > 4 && fit.length < all.length;
    if (this.turned) return roomyTicks(cut(({ left }) => Math.min(180, (left - 2) / 0.71)), 14);
    return fit.length === all.length || !ticks || joined ? fit : cut(() => axes.wide / all.length - 4);
  }

  /** Set the colours; return the legend, in as many lines as it needs, and where it ends. */
  legend() {
    this.labels = [...new Set(this.data.panels.flatMap(({ series }) => series.map(({ label }) => label)))];
    const colorOf = pageColors(this.drawing);
    this.colors = this.labels.map((_, k) => colorOf(k));
    if (!this.labels.some(Boolean)) return { legend: [], end: 0 };
    let [left, end] = [DOT_LEFT, 18];
    const legend = [this.data.color, ...this.labels].flatMap((label, k) => {
      const wide = label.length * DOT_LETTER + (k ? 26 : 10);
      if (left + wide > this.width && left > DOT_LEFT) [left, end] = [DOT_LEFT, end + 16];
      const at = left, y = end - 5, more = { "text-anchor": "start", opacity: k ? 1 : 0.75 };
      left += wide;
      const dot = k ? svg("circle", { cx: at + 5, cy: y - 4, r: 4, fill: this.colors[k - 1] }) : "";
      return [dot, svgText(label, at + (k ? 13 : 0), y, more)];
    });
    return { legend, end };
  }

  /** Return the grid, the ticks and the titles of a panel, with the line y = x if it is asked for. */
  grid(title, axes, first) {
    const { left, right, top, bottom, wide, ys } = axes, pen = { stroke: "currentColor", opacity: 0.5 };
    const floor = svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, ...pen });
    const parts = axes.rows(linearTicks(...ys), first);
    for (const { x, text, full } of this.ticks) {
      const at = axes.across(x), below = bottom + 15;
      const turn = this.turned ? { "text-anchor": "end", dx: 4, transform: `rotate(-45 ${at} ${below})` } : {};
      parts.push(svgText(text, at, below, turn));
      if (text !== full) parts.at(-1).append(svg("title", full));
    }
    parts.push(floor, svgText(cutText(title, wide), (left + right) / 2, top - 7));
    if (first) {
      const middle = (top + bottom) / 2, turn = { transform: `rotate(-90 11 ${middle})` };
      parts.push(svgText(this.data.x, (DOT_LEFT + this.width - DOT_RIGHT) / 2, this.height - 5));
      parts.push(svgText(cutText(this.data.y, this.height), 11, middle, turn));
    }
    const line = { x1: left, y1: bottom, x2: right, y2: top, "stroke-dasharray": "4 3", ...pen };
    return this.data.diagonal ? [...parts, svg("line", line)] : parts;
  }

  /** Return the lines and bands, or the error bars, of all series. */
  marks() {
    return this.data.panels.flatMap(({ series }, panel) => series.flatMap((_, number) => {
      const points = this.points.filter((point) => point.panel === panel && point.number === number);
      const stroke = points[0]?.color, barred = points.filter(({ ends }) => ends);
      const pen = { fill: "none", stroke, "stroke-width": 1.5 };
      const bar = ({ left, ends: [low, high] }) => `M${left} ${low}V${high}m-3 0h6M${left - 3} ${low}h6`;
      if (!this.data.joined) return [svg("path", { ...pen, d: barred.map(bar).join(""), opacity: 0.7 })];
      const edge = (k) => barred.map(({ left, ends }) => `${left},${ends[k]}`);
      const band = [...edge(0), ...edge(1).reverse()].join(" ");
      const line = points.map(({ left, top }) => `${left},${top}`).join(" ");
      return [svg("polygon", { points: band, fill: stroke, opacity: 0.18 }), svg("polyline", { ...pen, points: line })];
    }));
  }

  /** Return the circles of all points, and rings around the selected ones. */
  dots() {
    const r = this.points.length > DOT_BUTTONS ? 2 : 4;
    return this.points.flatMap((point) => {
      const { left: cx, top: cy, name, y, id, color: fill } = point, chosen = id !== null && id === this.selected;
      const role = { role: "button", tabindex: 0, "aria-label": `${name}: ${short(y)}`, "aria-pressed": chosen };
      point.circle = svg("circle", { cx, cy, r, fill, ...(point.button ? role : {}) });
      const ring = { cx, cy, r: 8, fill: "none", stroke: "currentColor", "stroke-width": 2 };
      return chosen ? [point.circle, svg("circle.nmd-dots-chosen", ring)] : [point.circle];
    });
  }
}
