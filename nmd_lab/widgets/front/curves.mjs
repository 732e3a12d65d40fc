// Curves over iterations: log axes, values under the cursor, and the way to an earlier iteration.

import { clamp, html, keyOf, numbers, set, short, svg } from "./dom.mjs";
import { Axes, logTicks, nearest, rangeOf, svgText, wholeTicks } from "./axes.mjs";

const WIDTH = 290, BOX = { left: 40, right: 282, top: 8, bottom: 142 };

/** Return the points of a curve: all x, then all y, as float64. */
function pointsOf(bytes) {
  const all = numbers(bytes, Float64Array), half = all.length / 2;
  return { x: all.subarray(0, half), y: all.subarray(half) };
}

/** Return a line from the top to the bottom of the axes. */
const upright = (tag, x) => svg(tag, { x1: x, x2: x, y1: BOX.top, y2: BOX.bottom });

/** One pair of axes with its curves: the first is a slider over the iterations that can be shown again. */
class CurvePanel {
  constructor(about, number, send) {
    Object.assign(this, { about, send, slides: !number, at: null });
    this.drawing = svg("svg", {
      viewBox: `0 0 ${WIDTH} 170`, tabindex: number ? null : 0, keydown: (event) => this.press(event),
      pointerdown: (event) => {
        this.drawing.setPointerCapture(event.pointerId);
        this.ask(this.iterationAt(event));
      },
      pointermove: (event) => {
        this.look(this.iterationAt(event));
        if (this.drawing.hasPointerCapture(event.pointerId)) this.ask(this.at);
      },
      pointerleave: () => this.look(null),
    });
    this.read = html("output.nmd-read");
    const legend = about.curves.map(({ color, label }) => html("span", { style: `--curve: ${color}` }, label));
    const head = html("div.nmd-curves-head", html("strong", about.title), ...legend);
    this.element = html("div.nmd-curves-panel", { "data-panel": number }, head, this.drawing, this.read);
  }

  press(event) {
    const { iterations } = this, at = iterations.indexOf(this.chosen), last = iterations.length - 1;
    const next = last < 0 ? null : keyOf(event, { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last });
    if (!Number.isFinite(next)) return;
    this.ask(iterations[clamp(next, 0, last)]);
    this.look(this.chosen);
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
    return this.axes.valuesAt(((event.clientX - box.left) / box.width) * WIDTH, 0)[0];
  }

  /** Take new points, and the iterations that can be shown. */
  take(about, { iterations = [], iteration = null }) {
    Object.assign(this, { iterations, chosen: iteration });
    this.shown = about.curves.map((each) => ({ ...each, ...pointsOf(each.points) })).filter(({ x }) => x.length);
    const last = Math.max(1, ...this.shown.map(({ x }) => x.at(-1)));
    const ys = this.shown.flatMap(({ y }) => Array.from(y));
    this.axes = new Axes(BOX, [0, 1.02 * last], rangeOf(ys, true, 0.08), true);
    this.draw();
  }

  draw() {
    const { axes, about, shown, iterations, chosen } = this;
    const tick = (each) => svgText(String(each), axes.across(each), BOX.bottom + 13);
    const parts = [...axes.rows(logTicks(...axes.ys)), ...wholeTicks(...axes.xs).map(tick)];
    parts.push(svgText("iteration", (BOX.left + BOX.right) / 2, 168));
    parts.push(...shown.flatMap((curve) => this.curve(curve)));
    if (iterations.length > 1 && chosen !== null) {
      parts.push(upright("line.nmd-shown-iteration", axes.across(chosen)));
    }
    const marked = shown.find(({ key }) => key === about.lowest);
    this.cursor = svg("g.nmd-cursor");
    this.drawing.replaceChildren(...parts, ...(marked ? this.lowest(marked) : []), this.cursor);
    this.describe();
    this.look(this.at);
  }

  /** Return the line of a curve, and dots where it has gaps. */
  curve({ key, x, y, color, past }) {
    const places = Array.from(x, (each, k) => y[k] > 0 && [this.axes.across(each), this.axes.up(y[k])]);
    const step = (place, k) => (place ? `${places[k - 1] ? "L" : "M"}${place.join(" ")}` : "");
    const dots = x.length < 2 || x.at(-1) - x[0] >= x.length ? places.filter(Boolean) : [];
    const line = { d: places.map(step).join(""), stroke: color, "data-key": key, "stroke-dasharray": past ? "4 3" : null };
    return [...dots.map(([cx, cy]) => svg("circle", { cx, cy, r: 1.6, fill: color })), svg("path", line)];
  }

  /** Return a ring around the lowest point of a curve, and what it is. */
  lowest({ x, y, color }) {
    const best = x.reduce((a, _, k) => (y[k] > 0 && !(y[a] <= y[k]) ? k : a), -1);
    if (best < 0) return [];
    const cx = this.axes.across(x[best]), cy = this.axes.up(y[best]), above = cy > BOX.bottom - 16;
    const ring = svg("circle.nmd-lowest", { cx, cy, r: 4.5, fill: "none", stroke: color });
    const said = `${short(y[best], 3)} at ${x[best]}`, side = { "text-anchor": cx > 0.6 * WIDTH ? "end" : "start" };
    return [ring, svgText(said, cx, cy + (above ? -9 : 16), side)];
  }

  /** Show the values at an iteration; none for null. */
  look(iteration) {
    const { shown, axes } = this;
    this.at = iteration;
    this.cursor.replaceChildren();
    this.read.textContent = "";
    if (iteration === null || !shown.length) return;
    const { x } = shown.reduce((a, b) => (b.x.length > a.x.length ? b : a)), at = x[nearest(x, iteration)];
    const said = shown.map(({ label, x: xs, y, color }) => {
      const k = nearest(xs, at), dot = { cx: axes.across(xs[k]), cy: axes.up(y[k]), r: 3, fill: color };
      if (y[k] > 0) this.cursor.append(svg("circle", dot));
      return `${label} ${short(y[k])}${xs[k] === at ? "" : ` (at ${xs[k]})`}`;
    });
    this.cursor.prepend(upright("line", axes.across(at)));
    this.read.textContent = `iteration ${at}: ${said.join(", ")}`;
  }

  /** Say what the chart shows: as a slider where an earlier iteration can be shown. */
  describe() {
    const { iterations, chosen } = this, slides = this.slides && iterations.length > 1;
    const last = this.shown.map(({ label, x, y }) => `${label} ${short(y.at(-1))} at ${x.at(-1)}`).join(", ");
    set(this.drawing, {
      role: slides ? "slider" : "img",
      "aria-label": `${this.about.title} over iterations. ${last ? `Last: ${last}.` : "No points yet."}`,
      "aria-valuemin": slides ? iterations[0] : null,
      "aria-valuemax": slides ? iterations.at(-1) : null,
      "aria-valuenow": slides ? chosen ?? iterations.at(-1) : null,
    });
  }
}

/** All panels of a run, and of the runs that are drawn beside it. */
export class Curves {
  constructor(send) {
    Object.assign(this, { send, panels: [], described: "" });
    this.place = html("div");
    this.caption = html("p.nmd-caption");
    this.element = html("section.nmd-curves", { "aria-label": "curves" }, this.place, this.caption);
    this.element.frames = 0;
  }

  show(data, facts) {
    this.element.hidden = !data;
    if (!data || (data === this.data && facts === this.facts)) return;
    Object.assign(this, { data, facts });
    const described = JSON.stringify(data.panels, (name, value) => (name === "points" ? null : value));
    if (described !== this.described) {
      this.described = described;
      this.panels = data.panels.map((about, k) => new CurvePanel(about, k, this.send));
      this.place.replaceChildren(...this.panels.map(({ element }) => element));
    }
    this.panels.forEach((panel, k) => panel.take(data.panels[k], facts));
    this.caption.textContent = data.caption;
    this.caption.hidden = !data.caption;
    this.element.frames += 1;
    this.element.curves = Object.fromEntries(this.panels.flatMap(({ shown }) => shown.map((each) => [each.key, each])));
  }
}
