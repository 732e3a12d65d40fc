// Curves over iterations: log axes, values under the cursor, zoom, and a legend that switches.

import { COLORS, downloadSvg, html, numbers, short, svg } from "./dom.mjs";
import { logTicks, nearest, wholeTicks } from "./axes.mjs";

const WIDTH = 380, HEIGHT = 200;
const EDGE = { left: 46, right: 10, top: 8, bottom: 26 };

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
/** One pair of axes with its curves. */
class CurvePanel {
  constructor(about, number) {
    this.about = about;
    this.off = new Set();
    this.zoom = null;
    this.at = null;
    this.drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: 0 });
    this.read = html("output", { class: "nmd-read" });
    this.legend = about.curves.map(({ key, label }, k) => {
      const button = html("button", { type: "button", "aria-pressed": "true", title: `Show or hide: ${label}` }, label);
      button.style.setProperty("--curve", colorOf(key, k));
      button.addEventListener("click", () => {
        if (!this.off.delete(key)) this.off.add(key);
        button.setAttribute("aria-pressed", String(!this.off.has(key)));
        this.draw();
      });
      return button;
    });
    const save = html("button", {
      type: "button", class: "nmd-save", title: "Save these curves as an SVG file", "aria-label": `save ${about.title} as SVG`,
      click: () => downloadSvg(this.drawing, `${about.title}.svg`),
    }, "SVG");
    const head = html("div", { class: "nmd-curves-head" }, html("strong", {}, about.title), ...this.legend, save);
    this.element = html("div", { class: "nmd-curves-panel", "data-panel": number }, head, this.drawing, this.read);
    this.listen();
  }

  listen() {
    this.drawing.addEventListener("pointerdown", (event) => {
      this.from = this.iterationAt(event);
      this.drawing.setPointerCapture?.(event.pointerId);
    });
    this.drawing.addEventListener("pointermove", (event) => this.look(this.iterationAt(event)));
    this.drawing.addEventListener("pointerup", (event) => {
      const to = this.iterationAt(event);
      const range = [this.from, to].sort((a, b) => a - b);
      if (this.from !== undefined && range[1] - range[0] > 0.03 * (this.high - this.low)) this.zoom = range;
      this.from = undefined;
      this.draw();
    });
    this.drawing.addEventListener("pointerleave", () => this.look(null));
    this.drawing.addEventListener("dblclick", () => this.zoomOut());
    this.drawing.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) this.step(step);
      else if (event.key === "+") this.zoomAround(0.5);
      else if (event.key === "-") this.zoomAround(2);
      else if (event.key === "Escape" || event.key === "0") this.zoomOut();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** Move the cursor to the next point of the longest curve. */
  step(by) {
    const { x } = longest(this.shown);
    const k = nearest(x, this.at ?? this.high) + (this.at === null ? 0 : by);
    if (x.length) this.look(x[Math.min(x.length - 1, Math.max(0, k))]);
  }

  zoomOut() {
    this.zoom = null;
    this.draw();
  }

  zoomAround(factor) {
    const centre = this.at ?? (this.low + this.high) / 2;
    const half = Math.max(1, (factor * (this.high - this.low)) / 2);
    this.zoom = [Math.max(0, centre - half), centre + half];
    this.draw();
  }

  iterationAt(event) {
    const box = this.drawing.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const share = (x - EDGE.left) / (WIDTH - EDGE.left - EDGE.right);
    return this.low + Math.min(1, Math.max(0, share)) * (this.high - this.low);
  }

  /** Take new points, by key. */
  take(curves) {
    this.curves = curves;
    this.draw();
  }

  get shown() {
    return this.about.curves
      .map((each, k) => ({ ...each, color: colorOf(each.key, k), ...this.curves[each.key] }))
      .filter(({ key, x }) => x?.length && !this.off.has(key));
  }

  /** Set the ranges of both axes to what is shown. */
  fit(shown) {
    const last = Math.max(1, ...shown.map(({ x }) => x[x.length - 1]));
    [this.low, this.high] = this.zoom ?? [0, 1.02 * last];
    let [bottom, top] = [Infinity, 0];
    for (const { x, y } of shown) {
      for (let k = 0; k < x.length; k++) {
        if (!(y[k] > 0) || y[k] === Infinity || x[k] < this.low || x[k] > this.high) continue;
        bottom = Math.min(bottom, y[k]);
        top = Math.max(top, y[k]);
      }
    }
    if (!top) [bottom, top] = [0.1, 1];
    const room = Math.max(1.02, (top / bottom) ** 0.08);
    [this.bottom, this.top] = [bottom / room, top * room];
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
        if (!(y[k] > 0) || x[k] < this.low || x[k] > this.high) { pen = "M"; continue; }
        const [left, top] = this.place(x[k], y[k]);
        path += `${pen}${left.toFixed(1)} ${top.toFixed(1)}`;
        pen = "L";
        if (gaps) parts.push(svg("circle", { cx: left, cy: top, r: 1.8, fill: color }));
      }
      parts.push(svg("path", { d: path, stroke: color, "data-key": key, "stroke-dasharray": past ? "4 3" : null }));
    }
    parts.push(...this.lowest(shown));
    this.cursor = svg("g", { class: "nmd-cursor" });
    this.drawing.replaceChildren(...parts, this.cursor);
    this.drawing.setAttribute("aria-label", this.summary(shown));
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
      parts.push(svg("text", { x, y: HEIGHT - EDGE.bottom + 12, "text-anchor": "middle" }, String(tick)));
    }
    const middle = (EDGE.left + WIDTH - EDGE.right) / 2;
    parts.push(svg("text", { x: middle, y: HEIGHT - 3, "text-anchor": "middle" }, "iteration"));
    return parts;
  }

  /** Return the ring around the lowest point of the curve that has one. */
  lowest(shown) {
    const curve = shown.find(({ key }) => key === this.about.lowest);
    if (!curve) return [];
    let best = -1;
    for (let k = 0; k < curve.x.length; k++) if (curve.y[k] > 0 && !(curve.y[best] <= curve.y[k])) best = k;
    if (best < 0 || curve.x[best] < this.low || curve.x[best] > this.high) return [];
    const [x, y] = this.place(curve.x[best], curve.y[best]);
    const end = x > 0.6 * WIDTH ? "end" : "start";
    const text = `${short(curve.y[best])} at ${curve.x[best]}`;
    const above = y > HEIGHT - EDGE.bottom - 16 ? -9 : 16;
    return [
      svg("circle", { cx: x, cy: y, r: 4.5, fill: "none", stroke: curve.color, class: "nmd-lowest" }),
      svg("text", { x, y: y + above, "text-anchor": end, fill: curve.color }, text),
    ];
  }

  /** Show the values at an iteration; none for null. */
  look(iteration) {
    this.at = iteration;
    const shown = this.shown;
    if (iteration === null || !shown.length) {
      this.cursor.replaceChildren();
      this.read.textContent = "";
      return;
    }
    const { x } = longest(shown);
    const at = x[nearest(x, iteration)];
    const [left] = this.place(at, this.bottom);
    const parts = [svg("line", { x1: left, x2: left, y1: EDGE.top, y2: HEIGHT - EDGE.bottom })];
    const said = shown.map(({ label, x, y, color }) => {
      const k = nearest(x, at);
      if (y[k] > 0) {
        const [cx, cy] = this.place(x[k], y[k]);
        parts.push(svg("circle", { cx, cy, r: 3, fill: color }));
      }
      return `${label} ${short(y[k])}${x[k] === at ? "" : ` (at ${x[k]})`}`;
    });
    this.cursor.replaceChildren(...parts);
    this.read.textContent = `iteration ${at}: ${said.join(", ")}`;
  }

  summary(shown) {
    const last = shown.map(({ label, x, y }) => `${label} ${short(y[y.length - 1])} at ${x[x.length - 1]}`);
    return `${this.about.title} over iterations. ${last.length ? `Last: ${last.join(", ")}.` : "No points yet."}`;
  }
}

/** All panels of a run, and of the runs that are drawn beside it. */
export class Curves {
  constructor() {
    this.place = html("div", { class: "nmd-curves-view" });
    this.caption = html("p", { class: "nmd-caption" });
    this.element = html("section", { class: "nmd-curves", "aria-label": "curves" }, this.place, this.caption);
    this.element.frames = 0;
    this.described = "";
    this.panels = [];
  }

  show(data) {
    this.element.hidden = !data;
    if (!data || data === this.data) return;
    this.data = data;
    const described = JSON.stringify(data.panels);
    if (described !== this.described) {
      this.described = described;
      this.panels = data.panels.map((about, k) => new CurvePanel(about, k));
      this.place.replaceChildren(...this.panels.map((panel) => panel.element));
    }
    const curves = decodeCurves(data.sizes, data.values);
    for (const panel of this.panels) panel.take(curves);
    this.caption.textContent = data.caption;
    this.caption.hidden = !data.caption;
    this.element.frames += 1;
    this.element.curves = curves;
  }
}
