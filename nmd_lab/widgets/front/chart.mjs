// Charts: axes, points with error bars, lines with bands and curves over iterations; panels with one y axis, a colour for each label.

import { clamp, draw, h, keyOf, keysOf, made, pageColors, short, steps, svg } from "./dom.mjs";

/** Return the multiples in a range of the smallest 1, 2 or 5 times a power of ten above a number. */
function multiples(least, low, high) {
  const power = 10 ** Math.floor(Math.log10(least)), step = [1, 2, 5, 10].find((each) => each * power >= 0.999 * least) * power;
  const first = Math.ceil(low / step - 1e-9), count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

export const linearTicks = (low, high, count = 7) => multiples((high - low) / count, low, high);

export const wholeTicks = (low, high) => multiples(Math.max((high - low) / 5, 1), low, high);

/** Return the tick values of a logarithmic axis: few of 1, 2 and 5 times a power of ten. */
export function logTicks(low, high) {
  if (high < 5 * low) return linearTicks(low, high, 4);
  const first = Math.floor(Math.log10(low)), powers = Array.from({ length: Math.floor(Math.log10(high)) - first + 1 }, (_, k) => 10 ** (first + k));
  const ticks = powers.flatMap((power) => (high / low > 1000 ? [1] : [1, 2, 5]).map((step) => Number((step * power).toPrecision(2))));
  const shown = ticks.filter((tick) => tick >= low && tick <= high);
  return shown.filter((_, k) => k % Math.ceil(shown.length / 5) === 0);
}

export function tickText(tick) {
  const plain = tick === 0 || (Math.abs(tick) >= 0.001 && Math.abs(tick) < 1e5);
  return plain ? String(tick) : tick.toExponential().replace("e+", "e");
}

/** Return the position of the point nearest to a place; -1 if none is within reach. */
export function nearestDot(lefts, tops, left, top, reach) {
  const far = (k) => (k < 0 ? reach : Math.hypot(lefts[k] - left, tops[k] - top));
  return lefts.reduce((best, _, k) => (far(k) <= far(best) ? k : best), -1);
}

/** Return a range with some room around all numbers that an axis can show. */
export function rangeOf(all, log = false, share = 0.06) {
  const good = all.filter((each) => Number.isFinite(each) && (!log || each > 0));
  if (!good.length) return log ? [0.1, 1] : [0, 1];
  const low = good.reduce((a, b) => Math.min(a, b)), high = good.reduce((a, b) => Math.max(a, b));
  const factor = Math.max(1.02, (high / low) ** share);
  const room = share * (high - low) || 0.1 * Math.abs(high) || 1;
  return log ? [low / factor, high * factor] : [low - room, high + room];
}

/** Places in a box of pixels: numbers outside of the ranges stand at its edge. */
export class Axes {
  constructor(box, xs, ys, log = false) {
    Object.assign(this, box, { xs, ys, scale: log ? Math.log : Number });
  }

  across(x) {
    const share = clamp((x - this.xs[0]) / (this.xs[1] - this.xs[0]), 0, 1);
    return this.left + share * (this.right - this.left);
  }

  up(y) {
    const [low, high, at] = [...this.ys, y].map(this.scale);
    return this.bottom - clamp((at - low) / (high - low), 0, 1) * (this.bottom - this.top);
  }

  /** Return the x and, without logarithms, the y at a place. */
  valuesAt(left, top) {
    const between = ([low, high], share) => low + clamp(share, 0, 1) * (high - low);
    return [between(this.xs, (left - this.left) / (this.right - this.left)), between(this.ys, (this.bottom - top) / (this.bottom - this.top))];
  }

  rows(ticks, texts = true) {
    const { left, right } = this;
    return ticks.flatMap((tick) => {
      const y = this.up(tick), line = { x1: left, x2: right, y1: y, y2: y };
      return [svg("line", { ...line, stroke: "currentColor", opacity: 0.15 }),
        texts ? svgText(tickText(tick), left - 5, y, { "text-anchor": "end", dy: "0.33em" }) : ""];
    });
  }
}

export const svgText = (text, x, y, ...more) => svg("text", { x, y, "text-anchor": "middle" }, ...more, text);

const LEFT = 52, RIGHT = 10, BETWEEN = 18, LETTER = 6.3, BUTTONS = 150;

export function dotPoints({ points, log }) {
  const bar = (number) => (Number.isFinite(number) ? number : null), plain = { panel: "", label: "", name: "", id: null };
  const shown = points.filter(({ y }) => Number.isFinite(y) && (!log || y > 0));
  return shown.map((point) => ({ ...plain, ...point, low: bar(point.low), high: bar(point.high) }));
}

export const cutText = (text, width) =>
  text.length * LETTER > width ? `${text.slice(0, Math.max(1, Math.floor(width / LETTER) - 1))}…` : text;

/** Return the ticks (lefts are ascending) whose texts do not touch. */
export function roomyTicks(ticks) {
  let end = -Infinity;
  return ticks.filter(({ left, text }) => {
    const half = (text.length * LETTER + 4) / 2, fits = left - half >= end;
    if (fits) end = left + half;
    return fits;
  });
}

export class Chart {
  constructor(send, tall = 130) {
    Object.assign(this, { send, tall, data: null, points: [] });
    this.legend = made(h("div.nmd-read"));
    this.element = made(h("div.nmd-chart", { hidden: true }, this.legend));
    this.element.chart = this;
    new ResizeObserver(() => ![0, this.space].includes(this.element.clientWidth) && this.draw()).observe(this.element);
  }

  /** Show other data, or nothing for null; a ring marks the selected point. */
  show(data, selected = null) {
    this.element.hidden = !data;
    if (data === this.data && selected === this.selected) return;
    Object.assign(this, { data, selected });
    this.draw();
  }

  under({ target, clientX, clientY }) {
    const box = this.element.querySelector("svg").getBoundingClientRect(), scale = this.width / box.width;
    const [lefts, tops] = ["left", "top"].map((side) => this.points.map((point) => point[side]));
    const near = nearestDot(lefts, tops, (clientX - box.left) * scale, (clientY - box.top) * scale, this.data.log ? Infinity : 24);
    return this.points[target.getAttribute("data-point") ?? near] ?? null;
  }

  press(point) {
    if (point?.button) this.send({ do: "point", id: point.id });
  }

  /** Show the name and the value of a point; nothing without one. */
  look(point) {
    this.at = point;
    const bar = point && point.low !== null ? ` (${short(point.low)} to ${short(point.high)})` : "";
    const name = this.data.log ? `${point?.label}, iteration ${point?.x}` : point?.name;
    this.said = point ? `${name}: ${short(point.y)}${bar}` : "";
    this.paint();
  }

  draw() {
    const { data } = this;
    this.points = data ? dotPoints(data) : [];
    if (!data) return;
    [this.titles, this.labels] = ["panel", "label"].map((name) => [...new Set(data.points.map((point) => point[name] ?? ""))]);
    const colorOf = pageColors(this.element);
    draw(this.legend, this.labels.some(Boolean) && [data.color && `${data.color}: `, keysOf(this.labels, colorOf)]);
    this.measure();
    const few = this.points.length <= BUTTONS && !data.log;
    for (const point of this.points) {
      const { panel, x, y, low, high, label, id } = point, axes = this.panels[this.titles.indexOf(panel)];
      Object.assign(point, { left: axes.across(x), top: axes.up(y), button: few && id !== null });
      point.ends = low === null ? null : [axes.up(low), axes.up(high)];
      point.color = colorOf(this.labels.indexOf(label));
    }
    this.look(null);
  }

  paint() {
    const { data, points, at, width, height } = this, grouped = points.some((point) => point.button);
    const least = points.reduce((a, b) => (a && a.y <= b.y ? a : b), null);
    const lowest = least ? `, lowest ${data.y} ${short(least.y)} (${least.name || least.x})` : "";
    const look = (event) => this.look(this.under(event));
    const ring = at && svg("circle", { cx: at.left, cy: at.top, r: 6.5, fill: "none", stroke: "currentColor", opacity: 0.6 });
    const parts = [this.titles.map((title, k) => this.grid(title, this.panels[k], k === 0)), this.marks(), this.dots(), ring];
    draw(this.element, data.title ? h("strong", data.title) : null, this.legend, svg("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: grouped ? "group" : "img",
      "aria-label": `${data.title || data.y}: ${points.length} points${lowest}`,
      pointermove: look, pointerleave: () => this.look(null), click: (event) => this.press(this.under(event)),
      ...steps("[role=button]"), focusout: () => this.look(null),
    }, parts), h("output.nmd-read", { "aria-live": "off" }, this.said));
  }

  measure() {
    const { ticks, joined, diagonal, log } = this.data, { titles } = this;
    this.space = this.element.clientWidth || this.space || 276;
    this.width = clamp(this.space, 240, 1120);
    const top = titles.some(Boolean) ? 20 : 8, around = top + this.legend.offsetHeight + 72; // title, ticks, names of the axes, what is read
    const bottom = top + (this.tall ?? clamp(this.element.clientHeight - around, 130, 600));
    let xs = [...this.points.map(({ x }) => x), ...(ticks ?? []).map(([x]) => x)];
    let ys = this.points.flatMap(({ y, low, high }) => [y, low ?? y, high ?? y]);
    if (diagonal) xs = ys = [...xs, ...ys];
    xs = log ? [0, 1.02 * Math.max(1, ...xs)] : rangeOf(xs, false, ticks && !joined ? 0.5 / Math.max(1, ticks.length - 1) : 0.06);
    const wide = (this.width - LEFT - RIGHT - BETWEEN * (titles.length - 1)) / titles.length;
    this.panels = titles.map((_, k) => {
      const left = LEFT + k * (wide + BETWEEN);
      return new Axes({ left, right: left + wide, wide, top, bottom }, xs, rangeOf(ys, log, 0.08), log);
    });
    this.ticks = this.xTicks(this.panels[0]);
    this.height = bottom + 36;
  }

  xTicks(axes) {
    const { ticks, joined } = this.data;
    const kind = this.points.every(({ x }) => Number.isInteger(x)) ? wholeTicks : linearTicks;
    const given = ticks ?? kind(...axes.xs).map((tick) => [tick, tickText(tick)]);
    const room = ticks && !joined ? axes.wide / given.length - 4 : Infinity; // names of categories are cut
    const all = given.map(([x, full]) => ({ x, left: axes.across(x), text: cutText(full, room), full }));
    return roomyTicks(all.sort((a, b) => a.x - b.x));
  }

  /** Return the grid, the ticks and the titles of a panel, with the line y = x if it is asked for. */
  grid(title, axes, first) {
    const { left, right, top, bottom, wide, ys } = axes, pen = { stroke: "currentColor", opacity: 0.5 }, { data } = this, middle = (top + bottom) / 2;
    const names = this.ticks.map(({ x, text, full }) => svgText(text, axes.across(x), bottom + 14, text === full ? null : svg("title", full)));
    return [axes.rows(data.log ? logTicks(...ys) : linearTicks(...ys, 6), first), names,
      svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, ...pen }), svgText(cutText(title, wide), (left + right) / 2, top - 7),
      first && svgText(data.x, (LEFT + this.width - RIGHT) / 2, this.height - 4),
      first && svgText(cutText(data.y, this.height), 11, middle, { transform: `rotate(-90 11 ${middle})` }),
      data.diagonal && svg("line", { x1: left, y1: bottom, x2: right, y2: top, "stroke-dasharray": "4 3", ...pen })];
  }

  marks() {
    return this.titles.flatMap((title) => this.labels.flatMap((name) => {
      const points = this.points.filter(({ panel, label }) => panel === title && label === name);
      const stroke = points[0]?.color, barred = points.filter(({ ends }) => ends);
      const pen = { fill: "none", stroke, "stroke-width": 1.5 };
      const bar = ({ left, ends: [low, high] }) => `M${left} ${low}V${high}m-3 0h6M${left - 3} ${low}h6`;
      if (!this.data.joined) return svg("path", { ...pen, d: barred.map(bar).join(""), opacity: 0.7 });
      const edge = (k) => barred.map(({ left, ends }) => `${left},${ends[k]}`);
      const band = [...edge(0), ...edge(1).reverse()].join(" ");
      const line = points.map(({ left, top }) => `${left},${top}`).join(" ");
      return [svg("polygon", { points: band, fill: stroke, opacity: 0.18 }), svg("polyline", { ...pen, points: line })];
    }));
  }

  dots() {
    if (this.data.log) return [];
    const r = this.points.length > BUTTONS ? 2 : 4;
    return this.points.flatMap((point, k) => {
      const { left: cx, top: cy, name, y, id, color: fill } = point, chosen = id !== null && id === this.selected;
      const press = () => this.press(point);
      const role = { role: "button", "data-point": k, "aria-label": `${name}: ${short(y)}`,
        "aria-pressed": chosen, focus: () => this.look(point),
        keydown: (event) => keyOf(event, { Enter: press, " ": press })?.() };
      const ring = { cx, cy, r: 8, fill: "none", stroke: "currentColor", "stroke-width": 2 };
      return [svg("circle", { key: `dot ${k}`, cx, cy, r, fill, ...(point.button ? role : {}) }), chosen ? svg("circle.nmd-chosen", ring) : null];
    });
  }
}
