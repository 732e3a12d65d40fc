// The stage of a matrix: data and model in one picture with a swipe, other layers, zoom, selection, and a brush.

import { button, clamp, html, keyOf, numbers, set, short, svg } from "./dom.mjs";
import { PictureSheet, absoluteLimit, brushCircle, channelMeans, discSpans, mosaicCorner, mosaicOf, mosaicPixel,
  pictureBox, pictureScale, pixelCross, strokePoints, tintMosaic } from "./mosaic.mjs";

const PICTURE_LAYERS = { compare: "data | model", residual: "residual", uncertainty: "doubt", beside: "beside" };
const PICTURE_NAMES = { original: "data", seen: "data with holes", reconstruction: "model", residual: "residual",
  uncertainty: "doubt", beside: "beside" };
const PICTURE_DOUBT = "doubt: standard deviation over the draws of what the model expects, in the unit of the data";
const PICTURE_HOLE = "#7f9bb8";
const PICTURE_SHINE = 0x40ffffff; // opacity of painted holes, through which the model shines
const PICTURE_RAIN = 0.7; // fraction of the pixels under the brush that rain hides
const PICTURE_MODES = { look: "", zoom: "", rain: "Hide 70 % of the pixels: the model can fill them",
  hide: "Hide all pixels: what was there is a guess", reveal: "Show pixels to the model" };
const PICTURE_ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const PICTURE_GRIP = 12; // pixels beside the edge between data and model at which it can be dragged; its handle is twice as high
const PICTURE_PAUSE = 60; // milliseconds between messages about a stroke of the brush

export class Pictures {
  constructor(send) {
    Object.assign(this, { send, frames: 0, data: null, values: {}, cursor: null, drag: null, stroke: null, points: [],
      layer: "compare", notes: {} });
    this.sheets = Object.fromEntries(Object.keys(PICTURE_NAMES).map((name) => [name, new PictureSheet()]));
    this.canvas = html("canvas", {
      role: "img", tabindex: 0, "aria-keyshortcuts": "Enter Space + - Escape Control+Z",
      pointerdown: (event) => this.down(event), pointermove: (event) => this.move(event),
      pointerup: (event) => this.up(event), pointercancel: (event) => this.up(event),
      pointerleave: () => this.drag || this.look(null), keydown: (event) => this.key(event),
      wheel: (event) => this.wheel(event), dblclick: () => this.brushing || this.window(0, 0, 1),
    });
    const pair = (mark) => ["path.nmd-halo", "path"].map((tag) => svg(`${tag}.nmd-mark-${mark}`));
    this.paths = ["selected", "cursor", "box"].map(pair);
    this.over = svg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" }, ...this.paths.flat());
    this.edge = html("div.nmd-edge", { "aria-hidden": "true" });
    this.corners = ["left", "right"].map((side) => html(`span.nmd-corner.nmd-${side}`, { "aria-hidden": "true" }));
    this.box = html("div.nmd-picture-box", this.canvas, this.over, this.edge, ...this.corners);
    this.read = html("output.nmd-read", { "aria-live": "off" });
    this.element = html("div.nmd-pictures", { hidden: true }, this.toolbar(),
      html("div.nmd-picture-area", this.box), this.footer(), this.read);
    this.element.pictures = this;
    this.choose("look");
  }

  toolbar() {
    this.buttons = Object.fromEntries(Object.entries(PICTURE_MODES)
      .map(([mode, title]) => [mode, button(mode, () => this.choose(mode), { title })]));
    const range = { type: "range", min: 1, max: 40, "aria-label": "brush radius", title: "brush radius" };
    this.size = html("input", { ...range, input: () => this.mark() });
    this.undo = button("undo", () => this.send({ do: "undo" }), { title: "Take the last stroke back (Ctrl+Z)" });
    this.forget = button("forget paint", () => this.send({ do: "unpaint" }));
    const { look, zoom, ...brushes } = this.buttons;
    this.brushTools = [...Object.values(brushes), this.size, this.undo, this.forget];
    return html("div.nmd-picture-tools", { role: "toolbar", "aria-label": "tools of the pictures" },
      look, zoom, ...this.brushTools);
  }

  /** Return what chooses the layer, and where data end and the model begins. */
  footer() {
    this.layers = Object.fromEntries(Object.entries(PICTURE_LAYERS).map(([name, text]) => [name, button(text, () => {
      this.layer = name;
      this.draw();
      this.say();
    }, { title: name === "uncertainty" ? PICTURE_DOUBT : null })]));
    const range = { type: "range", min: 0, max: 100, value: 50, "aria-label": "where data end and the model begins" };
    this.swipe = html("input", { ...range, input: () => this.draw() });
    return html("div.nmd-layers", { role: "toolbar", "aria-label": "layers" }, ...Object.values(this.layers), this.swipe);
  }

  get brushing() { return ["rain", "hide", "reveal"].includes(this.mode); }
  get withHoles() { return this.values.seen !== null && (this.brushing || this.data.many_holes); }
  title(name) { return (name === "beside" && this.data.beside_title) || PICTURE_NAMES[name]; }

  /** Return the sheets on the left and on the right of the edge. */
  get sides() {
    const { values } = this;
    if (this.stroke) return ["seen", "seen"];
    const left = this.withHoles && values.seen ? "seen" : values.original ? "original" : null;
    if (this.layer !== "compare") return [this.layer, this.layer];
    const right = values.reconstruction ? "reconstruction" : left;
    return [left ?? right, right];
  }

  choose(mode) {
    this.mode = this.element.dataset.mode = mode;
    for (const [name, each] of Object.entries(this.buttons)) each.setAttribute("aria-pressed", name === mode);
    this.draw();
    this.mark();
  }

  /** Show data, the reconstruction, and the selected entry; only what is new is drawn. */
  show(data, model, selection) {
    const fresh = data !== this.data;
    this.selection = selection;
    if (fresh) this.load(data);
    if (data?.count && (fresh || model !== this.model)) this.step(model);
    this.model = model;
    this.mark();
  }

  /** Return the numbers in bytes, and null unless there is one for each value. */
  decoded(bytes) {
    const { count, height, width, channels } = this.data;
    return bytes?.byteLength === 4 * count * height * width * channels ? numbers(bytes) : null;
  }

  /** Take new data: sizes, tools, and the layers that stay the same while a fit runs. */
  load(data) {
    const same = data && this.data && ["count", "height", "width"].every((name) => data[name] === this.data[name]);
    if (!same) this.finish();
    Object.assign(this, { data, values: {} });
    this.element.hidden = !data?.count;
    if (!data?.count) return;
    if (!same) this.reshape(data);
    if (data.beside_title !== this.beside) this.layer = data.beside_title ? "beside" : "compare";
    this.beside = data.beside_title;
    const original = this.decoded(data.original), seen = original && this.decoded(data.seen), spread = this.decoded(data.spread);
    const uncertainty = spread && channelMeans(spread, null, data.channels);
    const most = uncertainty?.reduce((a, b) => (b > a ? b : a), 0) ?? 0;
    this.values = { original, seen, uncertainty, beside: this.decoded(data.beside) };
    this.scale = pictureScale(data.scale, data.low, data.high);
    this.holeColor = data.n_painted ? (this.scale.hole & PICTURE_SHINE) >>> 0 : this.scale.hole;
    for (const name of ["original", "beside"]) this.paint(name, this.scale);
    this.paint("seen", { ...this.scale, hole: this.holeColor }, data.n_painted ? "filled by the model" : "");
    this.most = most;
    for (const tool of this.brushTools) tool.hidden = !data.can_brush;
    this.undo.disabled = this.forget.disabled = !data.n_painted;
    if (!data.can_brush && this.brushing) this.choose("look");
  }

  reshape(data) {
    this.mosaic = mosaicOf(data);
    const { across, down } = this.mosaic;
    this.least = Math.min(1, 4 / Math.min(across, down));
    Object.assign(this, { cursor: null, drag: null });
    for (const sheet of Object.values(this.sheets)) sheet.resize(this.mosaic);
    const [width, height] = [across, down].map((size) => (size < 600 ? Math.floor(1200 / size) * size : Math.min(size, 1200)));
    Object.assign(this.canvas, { width, height });
    this.box.style.setProperty("--nmd-ratio", clamp(across / down, 0.4, 4));
    this.canvas.classList.toggle("nmd-few", across < 600 && down < 600);
    this.size.value = clamp(Math.round(Math.min(data.height, data.width) / 20), 1, 40);
    this.window(0, 0, 1);
  }

  /** Take a frame of the reconstruction, and draw it. */
  step(model) {
    const { values } = this, frame = this.decoded(model);
    values.reconstruction = frame;
    values.residual = values.original && frame && channelMeans(values.original, frame, this.data.channels);
    const limit = values.residual ? absoluteLimit(values.residual) : 0;
    this.paint("reconstruction", this.scale);
    this.paint("residual", pictureScale("signed", -limit, limit), `±${short(limit, 2)}`);
    this.tint(frame ?? values.original);
    if (frame) this.frames++;
    this.draw();
    this.say();
  }

  /** Fill a sheet with the colours of its values. */
  paint(name, scale, note = "") {
    this.notes[name] = note;
    if (this.values[name]) this.sheets[name].fill(this.values[name], scale);
  }

  /** Lay doubt over a picture: the more of it, the more colour. */
  tint(picture) {
    this.notes.uncertainty = `none (grey) to ${short(this.most, 2)} (purple)`;
    if (!this.values.uncertainty || !picture) return;
    const { low, high, channels } = this.data, shown = channelMeans(picture, null, channels);
    tintMosaic(this.sheets.uncertainty.pixels, shown, this.values.uncertainty, this.mosaic, { low, high, most: this.most });
    this.sheets.uncertainty.changed();
  }

  /** Draw the window: one layer, or data and model on both sides of the edge. */
  draw() {
    if (!this.data?.count) return;
    const { view, values, swipe, edge } = this, { width, height } = this.canvas, pen = this.canvas.getContext("2d");
    if (this.layer !== "compare" && !values[this.layer]) this.layer = "compare";
    const [left, right] = this.sides, both = left !== right, share = both ? Number(swipe.value) / 100 : 0;
    pen.imageSmoothingEnabled = view.width > width || view.height > height;
    pen.clearRect(0, 0, width, height);
    if (this.stroke) Object.assign(pen, { fillStyle: PICTURE_HOLE }).fillRect(0, 0, width, height); // under holes through which it shines
    const under = left === "seen" && !this.stroke && this.data.n_painted && values.reconstruction ? "reconstruction" : null;
    for (const [name, from, to] of [[under, 0, share], [left, 0, share], [right, share, 1]]) {
      if (!name || to <= from) continue;
      const begin = view.left + from * view.width, wide = (to - from) * view.width;
      pen.drawImage(this.sheets[name].canvas, begin, view.top, wide, view.height, from * width, 0, (to - from) * width, height);
    }
    this.element.dataset.palette = { uncertainty: "doubt", residual: "signed" }[this.layer] ?? this.data.scale;
    edge.hidden = swipe.disabled = !both;
    edge.style.left = `${100 * share}%`;
    this.describe(left, right);
  }

  /** Bring buttons and texts in line with the sheets on both sides of the edge. */
  describe(left, right) {
    const { values, data: { beside_title, count, height, width, layout } } = this, both = left !== right;
    const corner = (name) => (name ? [this.title(name), this.notes[name]].filter(Boolean).join(", ") : "");
    this.corners[0].textContent = both ? corner(left) : "";
    this.corners[1].textContent = corner(right);
    for (const [name, each] of Object.entries(this.layers)) {
      const missing = name !== "compare" && !values[name];
      set(each, { hidden: name === "beside" && missing, disabled: missing, "aria-pressed": name === this.layer });
    }
    this.layers.beside.textContent = beside_title || "beside";
    const what = layout === "matrix" ? "matrix" : `${count} picture${count === 1 ? "" : "s"}`;
    const names = both ? `${this.title(left)} left, ${this.title(right)} right` : this.title(right ?? "original");
    this.canvas.setAttribute("aria-label", `${names}: ${what} of ${height} x ${width} pixels`);
  }

  /** Show a part of the mosaic (1: all) that begins at a place. */
  window(left, top, wanted) {
    const { across, down } = this.mosaic, part = clamp(wanted, this.least, 1), width = part * across, height = part * down;
    this.view = { left: clamp(left, 0, across - width), top: clamp(top, 0, down - height), width, height, part };
    this.element.classList.toggle("nmd-zoomed", part < 1);
    this.over.setAttribute("viewBox", `${this.view.left} ${this.view.top} ${width} ${height}`);
    this.draw();
  }

  /** Zoom by a factor (below 1: closer) so that a place stays where it is. */
  zoom(factor, [left, top]) {
    const { view } = this, part = clamp(view.part * factor, this.least, 1), share = part / view.part;
    this.window(left - (left - view.left) * share, top - (top - view.top) * share, part);
  }

  /** Show a box, and as much around it as keeps the shape of pixels. */
  zoomTo(from, to) {
    const { across, down } = this.mosaic, sizes = [Math.abs(to[0] - from[0]) / across, Math.abs(to[1] - from[1]) / down];
    const part = clamp(Math.max(...sizes), this.least, 1);
    this.window((from[0] + to[0] - part * across) / 2, (from[1] + to[1] - part * down) / 2, part);
  }

  /** Move the cursor to a place of the mosaic; null for none. */
  look(place, live = "off") {
    const pixel = place && mosaicPixel(this.mosaic, place);
    this.cursor = pixel && { ...pixel, place };
    this.read.setAttribute("aria-live", live);
    this.say();
    this.mark();
  }

  /** Say the values under the cursor. */
  say() {
    const { picture, y, x } = this.cursor ?? {}, { layout, step, ids, labels, count, height, width } = this.data;
    const label = labels?.[picture] ? ` (${labels[picture]})` : "";
    const where = layout === "matrix" ? (step > 1 ? `mean of rows ${y * step} to ${(y + 1) * step - 1}, columns ${x * step} to ${(x + 1) * step - 1}`
      : `row ${y}, column ${x}${label}`)
      : `picture ${ids?.[picture]}${label}, pixel ${y}, ${x}`;
    const shown = Object.keys(PICTURE_NAMES).filter((name) => this.values[name] && name !== "seen");
    const said = this.cursor && shown.map((name) => {
      const values = this.values[name], channels = values.length / (count * height * width);
      const at = ((picture * height + y) * width + x) * channels, each = Array.from(values.subarray(at, at + channels));
      return `${this.title(name)} ${each.some(Number.isNaN) ? "missing" : each.map((value) => short(value, 3)).join(" / ")}`;
    });
    const about = this.layer === "uncertainty" ? PICTURE_DOUBT : "";
    this.read.textContent = said ? `${where}: ${said.join(", ")}` : about;
  }

  /** Return the path around the selected picture and through the selected pixel. */
  selectedPath() {
    const { row, column } = this.selection, { layout, step, ids, height, width } = this.data, matrix = layout === "matrix";
    const picture = matrix ? 0 : Array.from(ids).indexOf(row), corner = mosaicCorner(this.mosaic, picture);
    if (!Number.isFinite(row) || picture < 0) return "";
    const y = Math.floor(matrix ? row / step : column / width), x = matrix ? Math.floor(column / step) : column % width;
    const frame = matrix ? "" : pictureBox(...corner, width, height), known = Number.isFinite(column) && y < height && x < width;
    return known ? frame + pixelCross(this.mosaic, { picture, y, x }) : frame;
  }

  /** Draw the marks: the selection, the cursor or the brush, and the box of a zoom. */
  mark() {
    if (!this.data?.count) return;
    const { cursor, drag } = this, { from, to } = drag?.mode === "zoom" ? drag : {};
    const round = cursor && this.brushing ? brushCircle(...cursor.place, Number(this.size.value) + 0.5) : "";
    const marks = [this.selectedPath(), cursor ? round || pixelCross(this.mosaic, cursor) : "",
      to ? pictureBox(...from, to[0] - from[0], to[1] - from[1]) : ""];
    marks.forEach((path, k) => this.paths[k].forEach((each) => each.setAttribute("d", path)));
  }

  /** Return the place of the mosaic under the pointer. */
  placeOf(event) {
    const box = event.currentTarget.getBoundingClientRect(), { left, top, width, height } = this.view;
    return [left + ((event.clientX - box.left) / box.width) * width, top + ((event.clientY - box.top) / box.height) * height];
  }

  wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.zoom(2 ** clamp(event.deltaY / 200, -1, 1), this.placeOf(event));
  }

  down(event) {
    if (event.button || this.drag) return;
    const edge = this.edge.hidden ? null : this.edge.getBoundingClientRect(), below = edge && event.clientY - (edge.top + edge.bottom) / 2;
    const swipes = edge && Math.abs(event.clientX - (edge.left + edge.right) / 2) < PICTURE_GRIP
      && (this.mode === "look" || (below >= 0 && below <= 2 * PICTURE_GRIP)); // the handle is there for all tools
    this.drag = { mode: swipes ? "swipe" : this.mode, id: event.pointerId, from: this.placeOf(event), begin: [event.clientX, event.clientY] };
    this.look(this.drag.from);
    if (this.brushing && !swipes) this.begin();
    event.currentTarget.setPointerCapture(event.pointerId);
  }

  move(event) {
    const place = this.placeOf(event), { drag, view } = this;
    if (drag && drag.id !== event.pointerId) return;
    if (drag && (drag.to || Math.hypot(event.clientX - drag.begin[0], event.clientY - drag.begin[1]) > 3)) drag.to = place;
    const pan = drag?.mode === "look" && drag.to;
    if (drag?.mode === "swipe") {
      this.swipe.value = (100 * (place[0] - view.left)) / view.width;
      this.draw();
    }
    if (pan) this.window(view.left + drag.from[0] - place[0], view.top + drag.from[1] - place[1], view.part);
    if (this.stroke) this.brushTo(place);
    this.look(pan ? this.placeOf(event) : place);
  }

  up(event) {
    const { drag } = this, { mode, from, to } = drag ?? {};
    if (drag?.id !== event.pointerId) return;
    this.drag = null;
    this.finish();
    if (event.type === "pointerup" && mode === "look" && !to) this.select();
    if (event.type === "pointerup" && mode === "zoom" && to) this.zoomTo(from, to);
    this.mark();
  }

  select() {
    const { picture, y, x } = this.cursor ?? {};
    if (this.cursor) this.send({ do: "select", picture, y, x });
  }

  /** Begin a stroke of the brush at the cursor. */
  begin() {
    if (!this.cursor) return;
    const rain = this.mode === "rain";
    this.stroke = { picture: this.cursor.picture, hide: rain || this.mode === "hide", rain, radius: Number(this.size.value) };
    this.brushTo(this.cursor.place);
  }

  /** Go on with a stroke to a place of the mosaic; only what is in the picture where it began counts. */
  brushTo([across, down]) {
    const { stroke, mosaic: { height, width } } = this, [left, top] = mosaicCorner(this.mosaic, stroke.picture);
    const to = [down - top - 0.5, across - left - 0.5], { last } = stroke;
    if (last && Math.hypot(to[0] - last[0], to[1] - last[1]) < 0.5) return;
    stroke.last = to;
    const points = (last ? strokePoints(last, to, Math.max(0.5, stroke.radius / 2)) : [to])
      .filter(([y, x]) => y >= -0.5 && x >= -0.5 && y <= height - 0.5 && x <= width - 0.5)
      .map(([y, x]) => [Math.round(10 * clamp(y, 0, height - 1)) / 10, Math.round(10 * clamp(x, 0, width - 1)) / 10]);
    this.points.push(...points);
    this.preview(points);
    this.timer ??= setTimeout(() => this.sendPoints(), PICTURE_PAUSE);
  }

  /** Show at once what points of a stroke hide or reveal, before Python has answered; drops of rain fall anywhere. */
  preview(points) {
    const { picture, radius, hide, rain } = this.stroke, { height, width, across } = this.mosaic, { original, seen } = this.sheets;
    const [left, top] = mosaicCorner(this.mosaic, picture);
    for (const [row, first, last] of points.flatMap((point) => discSpans(point, radius, height, width))) {
      const from = (top + row) * across + left + first, end = from + last - first + 1;
      if (rain) for (let at = from; at < end; at++) seen.pixels[at] = Math.random() < PICTURE_RAIN / 3 ? this.holeColor : seen.pixels[at];
      else if (hide) seen.pixels.fill(this.holeColor, from, end);
      else seen.pixels.set(original.pixels.subarray(from, end), from);
    }
    seen.changed();
    this.draw();
  }

  /** Send what was painted since the last message. */
  sendPoints() {
    const { picture, hide, rain, radius } = this.stroke ?? {};
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.points.length) return;
    this.send({ do: "brush", hide, rain, picture, points: this.points.splice(0), radius, goes_on: this.stroke.sent });
    this.stroke.sent = true;
  }

  /** End the stroke, if there is one. */
  finish() {
    if (!this.stroke) return;
    this.sendPoints();
    this.stroke = null;
    this.draw();
  }

  key(event) {
    const { left, top, width, height, part } = this.view;
    const centre = this.cursor?.place ?? [left + width / 2, top + height / 2];
    const undo = () => this.drag || this.undo.disabled || this.send({ do: "undo" });
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && this.data.can_brush) keyOf(event, { z: undo })?.();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const closer = () => this.zoom(0.5, centre), all = () => this.window(0, 0, 1), clear = () => {
      all();
      this.send({ do: "clear" });
    }, dab = () => {
      if (this.drag) return;
      this.begin();
      this.finish();
    };
    const arrow = keyOf(event, PICTURE_ARROWS);
    if (arrow && event.shiftKey) this.window(left + (arrow[0] * width) / 10, top + (arrow[1] * height) / 10, part);
    else if (arrow) this.walk(arrow, centre);
    else keyOf(event, { Enter: () => this.select(), " ": this.brushing ? dab : undefined, "+": closer, "=": closer,
      "-": () => this.zoom(2, centre), Escape: clear, 0: all })?.();
  }

  /** Move the cursor by a pixel, over gaps too, and the window with it; without a cursor, begin at a place. */
  walk(arrow, from) {
    const { left, top, width, height, part } = this.view, steps = this.cursor ? [1, 2] : [0, 1, 2];
    const places = steps.map((far) => from.map((each, k) => Math.floor(each) + 0.5 + far * arrow[k]));
    const next = places.find((each) => mosaicPixel(this.mosaic, each)) ?? this.cursor?.place ?? [0.5, 0.5];
    this.window(clamp(left, next[0] + 0.5 - width, next[0] - 0.5), clamp(top, next[1] + 0.5 - height, next[1] - 0.5), part);
    this.look(next, "polite");
  }
}
