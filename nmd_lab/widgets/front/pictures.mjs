// Pictures of a matrix side by side: linked cursor, zoom, selection, and a brush that hides or reveals pixels.

import { html, svg, numbers, short, clamp, throttled, download } from "./dom.mjs";
import {
  absoluteLimit, brushCircle, channelMeans, discSpans, fillMosaic, mosaicCorner, mosaicOf, mosaicPixel, pictureBox,
  pictureScale, pixelCross, strokePoints,
} from "./mosaic.mjs";

const PICTURE_TILES = { original: "original", seen: "seen", reconstruction: "reconstruction", residual: "residual",
  uncertainty: "standard deviation", beside: "beside" };
const PICTURE_MODES = { look: "look", zoom: "zoom", hide: "hide pixels", reveal: "reveal pixels" };
const PICTURE_ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** One picture or mosaic with its caption, and marks above it. */
class PictureTile {
  constructor(name, listeners) {
    this.name = name;
    this.canvas = html("canvas", { role: "img", tabindex: 0, "aria-keyshortcuts": "Enter Space + - Escape", ...listeners });
    this.caption = html("figcaption");
    this.whole = html("canvas");
    this.paths = ["selected", "cursor", "box"].map((mark) => [`nmd-halo nmd-mark-${mark}`, `nmd-mark-${mark}`]
      .map((name) => svg("path", { class: name })));
    this.over = svg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" }, ...this.paths.flat());
    const box = html("div", { class: "nmd-tile-box" }, this.canvas, this.over);
    this.element = html("figure", { class: "nmd-tile", "data-name": name, hidden: true }, box, this.caption);
  }

  /** Take the size of the mosaic; the canvas has a multiple of a small one, and at most 1200 pixels of a large one. */
  resize({ across, down }) {
    const [width, height] = [across, down].map((size) => (size < 600 ? Math.floor(600 / size) * size : Math.min(size, 1200)));
    Object.assign(this.whole, { width: across, height: down });
    Object.assign(this.canvas, { width, height });
    this.canvas.style.aspectRatio = clamp(across / down, 0.5, 4);
    this.canvas.classList.toggle("nmd-few", across < 600 && down < 600);
    this.image = new ImageData(across, down);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  /** Draw the pixels of the tile that are in the window; `changed` if they are new. */
  draw(view, changed) {
    if (changed) this.whole.getContext("2d").putImageData(this.image, 0, 0);
    const { width, height } = this.canvas, context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = view.width > width || view.height > height;
    context.clearRect(0, 0, width, height);
    context.drawImage(this.whole, view.left, view.top, view.width, view.height, 0, 0, width, height);
  }

  /** Draw the marks: the path of what is selected, of the cursor, and of the zoom box. */
  mark(marks) {
    marks.forEach((path, k) => this.paths[k].forEach((each) => each.setAttribute("d", path)));
  }
}

export class Pictures {
  constructor(send) {
    Object.assign(this, { send, frames: 0, data: null, values: {}, cursor: null, drag: null, stroke: null, points: [] });
    const listeners = { pointerleave: () => this.drag || this.look(null), dblclick: () => this.brushing || this.window(0, 0, 1) };
    for (const [event, action] of Object.entries({ pointerdown: this.down, pointermove: this.move, pointerup: this.up,
      pointercancel: this.up, keydown: this.key, wheel: this.wheel })) listeners[event] = action.bind(this);
    this.tiles = Object.fromEntries(Object.keys(PICTURE_TILES).map((name) => [name, new PictureTile(name, listeners)]));
    this.all = Object.values(this.tiles);
    this.read = html("output", { class: "nmd-read", "aria-live": "off" });
    const tiles = html("div", { class: "nmd-tiles" }, ...this.all.map((tile) => tile.element));
    this.element = html("div", { class: "nmd-pictures", hidden: true }, this.toolbar(), tiles, this.read);
    this.element.pictures = this;
    this.sendSoon = throttled(() => this.sendPoints(), 60);
    this.choose("look");
  }

  toolbar() {
    const button = (text, click) => html("button", { type: "button", click }, text);
    this.buttons = {};
    for (const [mode, text] of Object.entries(PICTURE_MODES)) this.buttons[mode] = button(text, () => this.choose(mode));
    this.size = html("input", { type: "range", min: 1, max: 40, "aria-label": "brush radius", input: () => this.mark() });
    this.forget = button("forget paint", () => this.send({ do: "unpaint" }));
    this.brushTools = [this.buttons.hide, this.buttons.reveal, html("label", {}, "brush radius", this.size), this.forget];
    return html("div", { class: "nmd-picture-tools", role: "toolbar", "aria-label": "tools of the pictures" },
      this.buttons.look, this.buttons.zoom, ...this.brushTools, button("save PNG", () => this.save()));
  }

  get brushing() { return this.mode === "hide" || this.mode === "reveal"; }
  get shown() { return this.all.filter(({ name }) => this.values[name]); }
  title(name) { return (name === "beside" && this.data.beside_title) || PICTURE_TILES[name]; }

  choose(mode) {
    this.mode = this.element.dataset.mode = mode;
    for (const [name, button] of Object.entries(this.buttons)) button.setAttribute("aria-pressed", String(name === mode));
    this.mark();
  }

  /** Show data, the reconstruction, and the selected entry; only what is new is drawn. */
  show(data, model, selection) {
    const fresh = data !== this.data, moved = ["row", "column"].some((name) => selection?.[name] !== this.selection?.[name]);
    this.selection = selection;
    if (fresh) this.load(data);
    if (data?.count && (fresh || model !== this.model)) this.step(model);
    this.model = model;
    if (fresh || moved) this.mark();
  }

  /** Return the numbers in bytes, and null unless there is one for each value. */
  decoded(bytes) {
    const { count, height, width, channels } = this.data;
    return bytes?.byteLength === 4 * count * height * width * channels ? numbers(bytes) : null;
  }

  /** Take new data: sizes, tools, and the tiles that stay the same while a fit runs. */
  load(data) {
    const same = data && this.data && ["count", "height", "width"].every((name) => data[name] === this.data[name]);
    if (!same) this.finish();
    Object.assign(this, { data, values: {} });
    this.element.hidden = !data?.count;
    if (!data?.count) return;
    if (!same) this.reshape(data);
    const original = this.decoded(data.original), seen = original && this.decoded(data.seen), spread = this.decoded(data.spread);
    const uncertainty = spread && channelMeans(spread, null, data.channels);
    const most = uncertainty?.reduce((a, b) => (b > a ? b : a), 0) ?? 0;
    this.values = { original, seen, uncertainty, beside: this.decoded(data.beside) };
    this.scale = pictureScale(data.scale, data.low, data.high);
    for (const name of ["original", "seen", "beside"]) this.paint(name, this.scale);
    this.paint("uncertainty", pictureScale("spread", 0, most), `, up to ${short(most, 2)}`);
    for (const tool of this.brushTools) tool.hidden = !data.can_brush;
    this.forget.disabled = !data.n_painted;
    if (!data.can_brush && this.brushing) this.choose("look");
  }

  reshape(data) {
    this.mosaic = mosaicOf(data);
    this.least = Math.min(1, 4 / Math.min(this.mosaic.across, this.mosaic.down));
    Object.assign(this, { cursor: null, drag: null });
    for (const tile of this.all) tile.resize(this.mosaic);
    this.size.value = clamp(Math.round(Math.min(data.height, data.width) / 20), 1, 40);
    this.window(0, 0, 1);
  }

  /** Draw a frame of the reconstruction and the residual. */
  step(model) {
    const { values } = this, frame = this.decoded(model);
    values.reconstruction = frame;
    values.residual = values.original && frame && channelMeans(values.original, frame, this.data.channels);
    const limit = values.residual ? absoluteLimit(values.residual) : 0;
    this.paint("reconstruction", this.scale);
    this.paint("residual", pictureScale("signed", -limit, limit), `, ±${short(limit, 2)}`);
    if (frame) this.frames++;
    this.say();
  }

  /** Draw the values of a tile, and hide it if there are none. */
  paint(name, scale, more = "") {
    const { canvas, pixels, caption, element } = this.tiles[name], { count, height, width, layout } = this.data;
    element.hidden = !this.values[name];
    if (element.hidden) return;
    fillMosaic(pixels, this.values[name], this.mosaic, scale);
    this.tiles[name].draw(this.view, true);
    caption.textContent = this.title(name) + more;
    const what = layout === "matrix" ? "matrix" : `${count} picture${count === 1 ? "" : "s"}`;
    canvas.setAttribute("aria-label", `${this.title(name)}: ${what} of ${height} x ${width} pixels`);
  }

  /** Show a part of the mosaic (1: all) that begins at a place. */
  window(left, top, wanted) {
    const { across, down } = this.mosaic, part = clamp(wanted, this.least, 1), width = part * across, height = part * down;
    this.view = { left: clamp(left, 0, across - width), top: clamp(top, 0, down - height), width, height, part };
    this.element.classList.toggle("nmd-zoomed", part < 1);
    for (const { over } of this.all) over.setAttribute("viewBox", `${this.view.left} ${this.view.top} ${width} ${height}`);
    for (const tile of this.shown) tile.draw(this.view);
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

  /** Move the cursor of all tiles to a place of the mosaic; null for none. */
  look(place, live = "off") {
    const pixel = place && mosaicPixel(this.mosaic, place);
    this.cursor = pixel && { ...pixel, place };
    this.read.setAttribute("aria-live", live);
    this.say();
    this.mark();
  }

  channelsAt(tile, picture, y, x) {
    const { count, height, width } = this.data, values = this.values[tile] ?? [];
    const channels = values.length / (count * height * width), at = ((picture * height + y) * width + x) * channels;
    return Array.from({ length: channels }, (_, k) => values[at + k]);
  }

  /** Return the value of a tile at a pixel, the mean over channels. */
  valueAt(tile, picture, y, x) {
    const each = this.channelsAt(tile, picture, y, x);
    return each.reduce((a, b) => a + b, 0) / each.length;
  }

  /** Say the values under the cursor. */
  say() {
    const { picture, y, x } = this.cursor ?? {}, { layout, step, ids, labels } = this.data;
    const label = labels?.[picture] ? ` (${labels[picture]})` : "";
    const where = layout === "matrix" ? `row ${y * step}, column ${x * step}${label}`
      : `picture ${ids?.[picture]}${label}, pixel ${y}, ${x}`;
    const said = this.cursor && this.shown.map(({ name }) => {
      const each = this.channelsAt(name, picture, y, x);
      return `${this.title(name)} ${each.some(Number.isNaN) ? "missing" : each.map((value) => short(value, 3)).join(" / ")}`;
    });
    this.read.textContent = said ? `${where}: ${said.join(", ")}` : "";
  }

  /** Return the path around the selected picture and through the selected pixel. */
  selectedPath() {
    const { row, column } = this.selection ?? {}, { layout, step, ids, height, width } = this.data, matrix = layout === "matrix";
    const picture = matrix ? 0 : Array.from(ids).indexOf(row), corner = mosaicCorner(this.mosaic, picture);
    if (!Number.isFinite(row) || picture < 0) return "";
    const y = Math.floor(matrix ? row / step : column / width), x = matrix ? Math.floor(column / step) : column % width;
    const frame = matrix ? "" : pictureBox(...corner, width, height), known = Number.isFinite(column) && y < height && x < width;
    return known ? frame + pixelCross(this.mosaic, { picture, y, x }) : frame;
  }

  /** Draw the marks above all tiles: the selection, the cursor or the brush, and the box of a zoom. */
  mark() {
    if (!this.data?.count) return;
    const { cursor, drag } = this, { from, to } = drag?.mode === "zoom" ? drag : {};
    const round = cursor && this.brushing ? brushCircle(...cursor.place, Number(this.size.value) + 0.5) : "";
    const marks = [this.selectedPath(), cursor ? round || pixelCross(this.mosaic, cursor) : "",
      to ? pictureBox(...from, to[0] - from[0], to[1] - from[1]) : ""];
    for (const tile of this.all) tile.mark(marks);
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
    this.drag = { mode: this.mode, id: event.pointerId, from: this.placeOf(event), begin: [event.clientX, event.clientY] };
    this.look(this.drag.from);
    if (this.brushing) this.begin();
    event.currentTarget.setPointerCapture(event.pointerId);
  }

  move(event) {
    const place = this.placeOf(event), { drag, view } = this;
    if (drag && drag.id !== event.pointerId) return;
    if (drag && (drag.to || Math.hypot(event.clientX - drag.begin[0], event.clientY - drag.begin[1]) > 3)) drag.to = place;
    const pan = drag?.mode === "look" && drag.to;
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
    this.stroke = { picture: this.cursor.picture, hide: this.mode === "hide", radius: Number(this.size.value) };
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
    this.sendSoon();
  }

  /** Show on the seen tile what points of a stroke hide or reveal, before Python has answered. */
  preview(points) {
    const { picture, radius, hide } = this.stroke, { height, width, across } = this.mosaic, { original, seen } = this.tiles;
    const [left, top] = mosaicCorner(this.mosaic, picture);
    for (const [row, first, last] of points.flatMap((point) => discSpans(point, radius, height, width))) {
      const from = (top + row) * across + left + first, end = from + last - first + 1;
      if (hide) seen.pixels.fill(this.scale.hole, from, end);
      else seen.pixels.set(original.pixels.subarray(from, end), from);
    }
    seen.draw(this.view, true);
  }

  sendPoints() {
    const { picture, hide, radius } = this.stroke ?? {};
    if (this.points.length) this.send({ do: "brush", hide, picture, points: this.points.splice(0), radius });
  }

  /** End the stroke, if there is one. */
  finish() {
    if (!this.stroke) return;
    this.sendPoints();
    this.stroke = null;
    this.send({ do: "brush_end" });
  }

  key(event) {
    const { key } = event, arrow = PICTURE_ARROWS[key], { left, top, width, height, part } = this.view;
    const centre = this.cursor?.place ?? [left + width / 2, top + height / 2];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (arrow && event.shiftKey) this.window(left + (arrow[0] * width) / 10, top + (arrow[1] * height) / 10, part);
    else if (arrow) this.walk(arrow, centre);
    else if (key === "Enter") this.select();
    else if (key === " " && this.brushing) { if (!this.drag) { this.begin(); this.finish(); } }
    else if (key === "+" || key === "=") this.zoom(0.5, centre);
    else if (key === "-") this.zoom(2, centre);
    else if (key === "Escape" || key === "0") this.window(0, 0, 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Move the cursor by a pixel, over gaps too, and the window with it; without a cursor, begin at a place. */
  walk(arrow, from) {
    const { left, top, width, height, part } = this.view, steps = this.cursor ? [1, 2] : [0, 1, 2];
    const places = steps.map((far) => from.map((each, k) => Math.floor(each) + 0.5 + far * arrow[k]));
    const next = places.find((each) => mosaicPixel(this.mosaic, each)) ?? this.cursor?.place ?? [0.5, 0.5];
    this.window(clamp(left, next[0] + 0.5 - width, next[0] - 0.5), clamp(top, next[1] + 0.5 - height, next[1] - 0.5), part);
    this.look(next, "polite");
  }

  /** Hand all tiles, side by side and with captions, to the user as a PNG file. */
  save() {
    const tiles = this.shown, height = Math.round(480 / clamp(this.mosaic.across / this.mosaic.down, 0.5, 4));
    const page = html("canvas", { width: tiles.length * 496 + 16, height: height + 48 }), context = page.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, page.width, page.height);
    Object.assign(context, { fillStyle: "black", font: "18px sans-serif" });
    tiles.forEach(({ canvas, caption }, k) => {
      context.imageSmoothingEnabled = !canvas.classList.contains("nmd-few");
      context.drawImage(canvas, 16 + k * 496, 8, 480, height);
      context.fillText(caption.textContent, 16 + k * 496, height + 34, 480);
    });
    page.toBlob((blob) => download(blob, "pictures.png"));
  }
}
