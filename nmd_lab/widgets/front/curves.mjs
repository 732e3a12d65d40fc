// Curves over iterations: log axes, values under the cursor, and the way to an earlier iteration.

import { COLORS, html, numbers, short, svg } from "./dom.mjs";
import { logTicks, nearest, wholeTicks } from "./axes.mjs";

const WIDTH = 290, HEIGHT = 170;
const EDGE = { left: 40, right: 8, top: 8, bottom: 28 };

/** Return the points of each curve: by key the number of points, and all x, then all y, of each as float64. */
function decodeCurves(sizes, values) {
  const all = numbers(values, Float64Array);
  const curves = {};
  let begin = 0;
  for (const [key, size] of Object.entries(sizes)) {
    curves[key] = { x: all.subarray(begin, begin + size), y: all.subarray(begin + size, begin + 2 * size) };
    begin += 2 * size;
  }
  return curves;
}

/** Return the colour of a curve; grey where its fit still remembers what it is measured at. */
const colorOf = (key, k) => (key.startsWith("remembered") ? "#8a8a8a" : COLORS[k % COLORS.length]);

/** Return the curve with most points; one without points if there is none. */
const longest = (curves) => curves.reduce((a, b) => (b.x.length > a.x.length ? b : a), { x: [] });

/** One pair of axes with its curves: a slider over the iterations that can be shown again. */
class CurvePanel {
  constructor(about, number, send) {
    Object.assign(this, { about, send, at: null, iterations: [], chosen: null });
    this.drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: number ? null : 0 });
    this.read = html("output", { class: "nmd-read" });
    this.legend = about.curves.map(({ key, label, past }, k) => {
      const each = html("span", { class: past ? "nmd-past" : null }, label);
      each.style.setProperty("--curve", colorOf(key, k));
      return each;
    });
    const head = html("div", { class: "nmd-curves-head" }, html("strong", {}, about.title), ...this.legend);
    this.element = html("div", { class: "nmd-curves-panel", "data-panel": number }, head, this.drawing, this.read);
    this.listen();
  }

  listen() {
    const on = (kind, action) => this.drawing.addEventListener(kind, action);
    on("pointerdown", (event) => {
      this.dragged = true;
      this.drawing.setPointerCapture?.(event.pointerId);
      this.ask(this.iterationAt(event));
    });
    on("pointermove", (event) => {
      this.look(this.iterationAt(event));
      if (this.dragged) this.ask(this.at);
    });
    on("pointerup", () => { this.dragged = false; });
    on("pointerleave", () => this.look(null));
    on("keydown", (event) => {
      const { iterations, chosen } = this, at = iterations.indexOf(chosen), last = iterations.length - 1;
      const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
      if (next === undefined || last < 0) return;
      event.preventDefault();
      event.stopPropagation();
      this.ask(iterations[Math.min(last, Math.max(0, next))]);
      this.look(this.chosen);
    });
  }

  /** Ask for the iteration nearest to one that can be shown again. */
  ask(iteration) {
    if (this.iterations.length < 2) return;
    const next = this.iterations[nearest(this.iterations, iteration)];
    if (next !== this.chosen) this.send({ do: "iteration", iteration: next });
    this.chosen = next;
  }

  iterationAt(event) {
    const box = this.drawing.getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * WIDTH - EDGE.left) / (WIDTH - EDGE.left - EDGE.right);
    return this.low + Math.min(1, Math.max(0, share)) * (this.high - this.low);
  }

  /** Take new points, by key, and the iterations that can be shown. */
  take(curves, { iterations, iteration }) {
    Object.assign(this, { curves, iterations: iterations ?? [], chosen: iteration ?? null });
    this.draw();
  }

  get shown() {
    return this.about.curves
      .map((each, k) => ({ ...each, color: colorOf(each.key, k), ...this.curves[each.key] }))
      .filter(({ x }) => x?.length);
  }

  /** Set the ranges of both axes to what is shown. */
  fit(shown) {
    [this.low, this.high] = [0, 1.02 * Math.max(1, ...shown.map(({ x }) => x[x.length - 1]))];
    const good = shown.flatMap(({ y }) => Array.from(y).filter((each) => each > 0 && each < Infinity));
    const bottom = good.reduce((a, b) => Math.min(a, b), Infinity), top = good.reduce((a, b) => Math.max(a, b), 0);
    const room = top ? Math.max(1.02, (top / bottom) ** 0.08) : 1;
    [this.bottom, this.top] = top ? [bottom / room, top * room] : [0.1, 1];
  }

  place(x, y) {
    const across = (x - this.low) / (this.high - this.low || 1);
    const up = Math.log(y / this.bottom) / Math.log(this.top / this.bottom);
    return [
      EDGE.left + across * (WIDTH - EDGE.left - EDGE.right),
      HEIGHT - EDGE.bottom - up * (HEIGHT - EDGE.top - EDGE.bottom),
    ];
  }

  draw() {
    const shown = this.shown;
    this.fit(shown);
    const parts = this.axes();
    for (const { key, x, y, color, past } of shown) {
      const gaps = x.length < 2 || x[x.length - 1] - x[0] >= x.length;
      let path = "", pen = "M";
      for (let k = 0; k < x.length; k++) {
        if (!(y[k] > 0)) { pen = "M"; continue; }
        const [left, top] = this.place(x[k], y[k]);
        path += `${pen}${left.toFixed(1)} ${top.toFixed(1)}`;
        pen = "L";
        if (gaps) parts.push(svg("circle", { cx: left, cy: top, r: 1.6, fill: color }));
      }
      parts.push(svg("path", { d: path, stroke: color, "data-key": key, "stroke-dasharray": past ? "4 3" : null }));
    }
    parts.push(...this.ring(shown));
    this.cursor = svg("g", { class: "nmd-cursor" });
    this.drawing.replaceChildren(...parts, this.cursor);
    this.describe(shown);
    this.look(this.at);
  }

  axes() {
    const parts = [];
    for (const tick of logTicks(this.bottom, this.top)) {
      const [, y] = this.place(this.low, tick);
      parts.push(svg("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y, y2: y, class: "nmd-grid" }));
      const text = tick < 0.001 || tick >= 1e5 ? tick.toExponential().replace("e+", "e") : String(tick);
      parts.push(svg("text", { x: EDGE.left - 4, y: y + 3, "text-anchor": "end" }, text));
    }
    for (const tick of wholeTicks(this.low, this.high)) {
      const [x] = this.place(tick, this.bottom);
      parts.push(svg("text", { x, y: HEIGHT - EDGE.bottom + 13, "text-anchor": "middle" }, String(tick)));
    }
    const middle = (EDGE.left + WIDTH - EDGE.right) / 2;
    parts.push(svg("text", { x: middle, y: HEIGHT - 2, "text-anchor": "middle" }, "iteration"));
    return parts;
  }

  /** Return the line at the iteration that is shown, and the ring around the lowest point of the curve that has one. */
  ring(shown) {
    const parts = [], curve = shown.find(({ key }) => key === this.about.lowest);
    if (this.iterations.length > 1 && this.chosen !== null) {
      const [x] = this.place(this.chosen, this.bottom);
      parts.push(svg("line", { x1: x, x2: x, y1: EDGE.top, y2: HEIGHT - EDGE.bottom, class: "nmd-shown-iteration" }));
    }
    if (!curve) return parts;
    let best = -1;
    for (let k = 0; k < curve.x.length; k++) if (curve.y[k] > 0 && !(curve.y[best] <= curve.y[k])) best = k;
    if (best < 0) return parts;
    const [x, y] = this.place(curve.x[best], curve.y[best]), end = x > 0.6 * WIDTH ? "end" : "start";
    const above = y > HEIGHT - EDGE.bottom - 16 ? -9 : 16;
    return [...parts, svg("circle", { cx: x, cy: y, r: 4.5, fill: "none", stroke: curve.color, class: "nmd-lowest" }),
      svg("text", { x, y: y + above, "text-anchor": end }, `${short(curve.y[best], 3)} at ${curve.x[best]}`)];
  }

  /** Show the values at an iteration; none for null. */
  look(iteration) {
    this.at = iteration;
    const shown = this.shown;
    this.cursor.replaceChildren();
    this.read.textContent = "";
    if (iteration === null || !shown.length) return;
    const { x } = longest(shown), at = x[nearest(x, iteration)], [left] = this.place(at, this.bottom);
    const parts = [svg("line", { x1: left, x2: left, y1: EDGE.top, y2: HEIGHT - EDGE.bottom })];
    const said = shown.map(({ label, x: xs, y, color }) => {
      const k = nearest(xs, at);
      if (y[k] > 0) {
        const [cx, cy] = this.place(xs[k], y[k]);
        parts.push(svg("circle", { cx, cy, r: 3, fill: color }));
      }
      return `${label} ${short(y[k])}${xs[k] === at ? "" : ` (at ${xs[k]})`}`;
    });
    this.cursor.replaceChildren(...parts);
    this.read.textContent = `iteration ${at}: ${said.join(", ")}`;
  }

  /** Say what the chart shows: as a slider where an earlier iteration can be shown. */
  describe(shown) {
    const last = shown.map(({ label, x, y }) => `${label} ${short(y[y.length - 1])} at ${x[x.length - 1]}`);
    const { iterations, chosen } = this, slides = iterations.length > 1 && this.drawing.hasAttribute("tabindex");
    const said = { role: slides ? "slider" : "img", "aria-label": `${this.about.title} over iterations. ${last.length ? `Last: ${last.join(", ")}.` : "No points yet."}` };
    const range = { "aria-valuemin": iterations[0], "aria-valuemax": iterations.at(-1), "aria-valuenow": chosen ?? iterations.at(-1) };
    for (const [name, value] of Object.entries(said)) this.drawing.setAttribute(name, value);
    for (const [name, value] of Object.entries(range)) if (slides) this.drawing.setAttribute(name, value); else this.drawing.removeAttribute(name);
  }
}

/** All panels of a run, and of the runs that are drawn beside it. */
export class Curves {
  constructor(send) {
    this.send = send;
    this.place = html("div", { class: "nmd-curves-view" });
    this.caption = html("p", { class: "nmd-caption" });
    this.element = html("section", { class: "nmd-curves", "aria-label": "curves" }, this.place, this.caption);
    this.solver = html("div", { class: "nmd-curves-solver" });
    this.element.frames = 0;
    this.described = "";
    this.panels = [];
  }

  show(data, facts) {
    this.element.hidden = !data;
    if (!data || (data === this.data && facts === this.facts)) return;
    Object.assign(this, { data, facts });
    const described = JSON.stringify(data.panels);
    if (described !== this.described) {
      this.described = described;
      this.panels = data.panels.map((about, k) => new CurvePanel(about, k, this.send));
      this.place.replaceChildren(this.panels[0].element);
      this.solver.replaceChildren(...this.panels.slice(1).map((panel) => panel.element));
    }
    const curves = decodeCurves(data.sizes, data.values);
    for (const panel of this.panels) panel.take(curves, facts);
    this.caption.textContent = data.caption;
    this.caption.hidden = !data.caption;
    this.element.frames += 1;
    this.element.curves = curves;
  }
}
