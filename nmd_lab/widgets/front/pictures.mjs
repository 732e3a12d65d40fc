// The stage of pictures: tiles that each show data left and model right of a divider, other layers, and a brush; palettes and places of pixels.

import { button, clamp, draw, h, keyOf, made, nextFrame, numbers, short, steps } from "./dom.mjs";

export const HIDDEN = [186, 127, 80], ADDS = [213, 94, 0], TAKES = [0, 114, 178];
const UNSURE = [170, 51, 119], WHITE = [255, 255, 255];
const blended = (a, b, share) => a.map((each, k) => Math.round(each + share * (b[k] - each)));
const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

const paletteOf = (colorOf) => Uint32Array.from({ length: 256 }, (_, entry) => packed(colorOf(entry)));
const TABLES = { gray: paletteOf((entry) => [entry, entry, entry]),
  signed: paletteOf((entry) => blended(WHITE, entry < 128 ? TAKES : ADDS, Math.abs(entry - 128) / 128)) }; // entry 128 is white

/** Return how values become palette entries (value * gain + base), and the colour of missing ones. */
export function pictureScale(kind, low, high) {
  const isSigned = kind === "signed";
  const gain = isSigned ? 127 / (Math.max(Math.abs(low), Math.abs(high)) || 1) : 255 / (high - low || 1);
  const missing = packed(isSigned ? [140, 140, 140] : HIDDEN);
  return { table: TABLES[kind], missing, gain, base: isSigned ? 128 : -low * gain };
}

/** Return the columns and the number of tiles that fill a place best: of many not always all, and more only if they gain 1 %. */
export function tilesOf({ count, height, width }, wide, high) {
  const best = { columns: 1, count, covered: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const [least, most] = [Math.min(count, 24), count].map((each) => Math.ceil(each / columns));
    for (let rows = least; rows <= most; rows++) {
      const shown = Math.min(count, columns * rows);
      const covered = shown * Math.min(wide / (columns * width), high / (rows * height)) ** 2;
      if (covered > 1.01 * best.covered) Object.assign(best, { columns, count: shown, covered });
    }
  }
  return best;
}

export function mosaicOf({ count, height, width }, columns = Math.ceil(Math.sqrt(count))) {
  const rows = Math.max(1, Math.ceil(count / columns)), gap = count > 1 ? 0.05 * Math.max(height, width) : 0;
  return { count, height, width, columns, rows, gap, across: columns * (width + gap) - gap, down: rows * (height + gap) - gap };
}

export const tileCorner = ({ columns, height, width, gap }, k) => [(k % columns) * (width + gap), Math.floor(k / columns) * (height + gap)];

/** Return the tile and its pixel at a place of the mosaic, and how far right in the tile it is; null for a gap. */
export function pixelAt({ count, columns, height, width, gap, across, down }, [left, top]) {
  if (!(left >= 0 && top >= 0 && left < across && top < down)) return null;
  const picture = Math.floor(top / (height + gap)) * columns + Math.floor(left / (width + gap));
  const y = Math.floor(top % (height + gap)), x = Math.floor(left % (width + gap));
  return picture < count && y < height && x < width ? { picture, y, x, share: (left % (width + gap)) / width } : null;
}

/** Return the pixels [row, column] in a disc; whole numbers are their centres. */
export function discPixels([y, x], radius, height, width) {
  const near = (at, size) => [...Array(size).keys()].filter((k) => Math.abs(k - at) <= radius);
  return near(y, height).flatMap((row) => near(x, width).map((column) => [row, column])).filter(([row, column]) => Math.hypot(row - y, column - x) <= radius);
}

/** Return points from one (left out) to another (included), at most `spacing` apart. */
export function strokePoints(from, to, spacing) {
  const count = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / spacing);
  return Array.from({ length: count }, (_, n) => from.map((each, k) => each + ((n + 1) / count) * (to[k] - each)));
}

/** Return the limit that this share of the absolute values keep, by at most 5000 of them; 0 for none. */
export function absoluteLimit(values, share = 0.99) {
  const most = Math.min(5000, values.length), at = (k) => (most === values.length ? k : Math.floor(((k * 0.618033988749895) % 1) * values.length));
  const sample = Float32Array.from({ length: most }, (_, k) => Math.abs(values[at(k)])).filter(Number.isFinite).sort();
  return sample[Math.min(sample.length - 1, Math.floor(share * sample.length))] ?? 0;
}

export function channelMeans(a, b, channels) {
  const means = new Float32Array(a.length / channels);
  for (let k = 0, from = 0; k < means.length; k++) {
    let sum = 0;
    for (const end = from + channels; from < end; from++) sum += b ? a[from] - b[from] : a[from];
    means[k] = sum / channels;
  }
  return means;
}

/** The pixels of all tiles without gaps, on a canvas. */
export class Sheet {
  constructor() {
    this.canvas = made(h("canvas", { "aria-hidden": "true" }));
  }

  resize(mosaic) {
    this.mosaic = mosaic;
    this.wide = mosaic.columns * mosaic.width;
    Object.assign(this.canvas, { width: this.wide, height: mosaic.rows * mosaic.height });
    this.image = new ImageData(this.wide, mosaic.rows * mosaic.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  line(picture, y) {
    const { columns, height, width } = this.mosaic;
    return (Math.floor(picture / columns) * height + y) * this.wide + (picture % columns) * width;
  }

  /** Write the colour of each pixel, by its number among all, its line of all tiles, and its column. */
  write(colorOf) {
    const { count, height, width } = this.mosaic, { pixels } = this;
    for (let line = 0, k = 0; line < count * height; line++) {
      const begin = this.line(Math.floor(line / height), line % height);
      for (let x = 0; x < width; x++, k++) pixels[begin + x] = colorOf(k, line, x);
    }
    this.changed();
  }

  /** Write the colours of values; a scale without a table takes three values a pixel. */
  fill(values, { table, missing, gain, base }) {
    const entry = (value) => { const at = value * gain + base; return at < 0 ? 0 : at > 255 ? 255 : (at + 0.5) | 0; };
    const one = (k) => (values[k] === values[k] ? table[entry(values[k])] : missing), three = (k) => {
      const [red, green, blue] = [values[3 * k], values[3 * k + 1], values[3 * k + 2]], sum = red + green + blue;
      return sum === sum ? 0xff000000 | (entry(blue) << 16) | (entry(green) << 8) | entry(red) : missing;
    };
    this.write(table ? one : three);
  }

  /** Write grey values with more colour where other numbers are larger: signed ones in two colours, up to `most`. */
  tint(values, others, { low, high }, most, signed = false) {
    const gain = 255 / (high - low || 1);
    this.write((k) => {
      const grey = Math.min(255, Math.max(0, Math.round((values[k] - low) * gain) || 0)), other = others[k] || 0;
      const colour = signed ? (other > 0 ? ADDS : TAKES) : UNSURE.map((each) => each * (0.5 + grey / 510));
      const base = signed ? 90 + grey * 0.4 : grey;
      return packed(blended([base, base, base], colour, Math.min(1, Math.abs(other) / (most || 1))));
    });
  }

  changed() {
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
  }
}

const LAYERS = { compare: "data | model", difference: "difference", spread: "uncertainty" };
const BRUSHES = { rain: "rain hides 70 % of the pixels: the model can fill them", solid: "solid hides all pixels: a model can only guess what was there" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Pictures {
  constructor(send, changed) {
    Object.assign(this, { send, changed, frames: 0, data: null, values: {}, cursor: null, drag: null, stroke: null, points: [],
      layer: "compare", mode: "", share: 0.5, notes: {}, built: null, lit: null, size: 4 });
    this.paint = nextFrame(() => this.drawAll());
    this.sheets = Object.fromEntries(["original", "seen", "model", "difference", "spread", "beside", "lit"].map((name) => [name, new Sheet()]));
    this.canvas = made(h("canvas", {
      role: "img", tabindex: 0, "aria-keyshortcuts": "Enter Space Escape Control+Z",
      pointerdown: (event) => this.down(event), pointermove: (event) => this.move(event),
      pointerup: (event) => this.up(event), pointercancel: (event) => this.up(event),
      pointerleave: () => this.drag || this.look(null), keydown: (event) => this.key(event),
    }));
    this.area = made(h("div.nmd-picture-area", this.canvas));
    this.tools = made(h("div.nmd-tools", { role: "toolbar", "aria-label": "layers and brushes", ...steps("button:enabled") }));
    this.read = made(h("output.nmd-read", { "aria-live": "off" }));
    this.element = made(h("div.nmd-pictures", { hidden: true }, this.area, this.tools, this.read));
    this.element.pictures = this;
    new ResizeObserver(() => this.fit()).observe(this.area);
  }

  /** Show data, the model, the factors that build it, and the selected entry; only what is new is drawn. */
  show(data, model, factors, selection, painted = "") {
    const fresh = data !== this.data;
    Object.assign(this, { selection, painted });
    if (fresh) this.load(data);
    if (factors !== this.factors) Object.assign(this, { factors, built: null, lit: null });
    if (!data?.count) return;
    if (fresh || model !== this.model) {
      this.values.model = this.decoded(model);
      if (this.values.model) this.frames++;
      this.restep();
    }
    this.model = model;
    this.say();
    this.paint();
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
    if (!same) {
      this.mosaic = null;
      this.size = clamp(Math.round(Math.min(data.height, data.width) / 20), 1, 40);
    }
    this.fit();
    const [original, spread, beside] = ["original", "spread", "beside"].map((name) => this.decoded(data[name]));
    this.values = { original, seen: original && this.decoded(data.seen), beside, spread };
    this.unsure = spread && channelMeans(spread, null, data.channels);
    this.scale = pictureScale(data.scale, data.low, data.high);
    if (!data.can_brush) this.mode = "";
    const ends = [data.low, data.high].map((end) => short(Math.abs(end) < 0.01 * (data.high - data.low) ? 0 : end, 2)), most = short(Math.max(Math.abs(data.low), data.high), 2);
    const legend = data.scale === "signed" ? `blue −${most}, white 0, orange ${most}` : `black ${ends[0]}, white ${ends[1]}`;
    const shades = data.layout === "matrix" && !this.square ? `${legend}, or beyond` : "";
    this.notes.model = this.notes.original = this.notes.seen = [shades, data.many_missing && "orange: pixels that the model does not see"].filter(Boolean).join("; ");
    this.fill();
  }

  fit() {
    const { clientWidth: wide, clientHeight: high } = this.area, { data } = this;
    if (!data?.count) return;
    const { columns, count } = tilesOf(data, wide, high);
    if (columns !== this.mosaic?.columns || count !== this.mosaic.count) {
      this.mosaic = mosaicOf({ ...data, count }, columns);
      for (const sheet of Object.values(this.sheets)) sheet.resize(this.mosaic);
      if (this.scale && this.values.original) this.fill();
      this.restep();
    }
    const frame = this.element.closest(".nmd-frame"), { across, down } = this.mosaic, stretched = data.layout === "matrix" && !this.square;
    const ratio = stretched ? wide / (high || 1) : clamp(across / down, 0.4, 6);
    const width = Math.floor(Math.min(wide, high * ratio));
    frame?.style.setProperty("--ratio", count > 1 ? 9 : ratio); // a photograph leaves room
    const sharp = globalThis.devicePixelRatio || 1, height = Math.floor(width / ratio);
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    const pixels = { width: Math.round(width * sharp), height: Math.round(height * sharp) };
    if (Object.keys(pixels).some((side) => pixels[side] !== this.canvas[side])) Object.assign(this.canvas, pixels); // which clears it
    this.sharp = sharp;
    this.paint();
  }

  fill() {
    const { values, sheets, scale } = this, scales = { original: scale, seen: scale, beside: { ...scale, missing: 0 } }; // what is in no group is not drawn
    for (const [name, each] of Object.entries(scales)) if (values[name]) sheets[name].fill(values[name], each);
  }

  restep() {
    const { values, sheets, data, scale, built } = this;
    if (!data || !scale) return;
    const model = built === null ? values.model : this.factors.first(built);
    if (model) sheets.model.fill(model, scale);
    const from = values.beside ?? values.original;
    if (model && from && this.layer === "difference") {
      values.difference = channelMeans(from, model, data.channels);
      const limit = absoluteLimit(values.difference);
      sheets.difference.fill(values.difference, pictureScale("signed", -limit, limit));
      this.notes.difference = `difference: ${values.beside ? data.beside_title : "data"} − this model, orange +, blue −, ±${short(limit, 2)} or less in 99 % of the pixels`;
    }
    const picture = (this.lit !== null || this.layer === "spread") && (model ?? values.original), shown = picture && (data.channels > 1 ? channelMeans(picture, null, data.channels) : picture);
    if (shown && values.spread && this.layer === "spread") sheets.spread.tint(shown, this.unsure, data, data.most);
    this.notes.lit = `component ${this.lit}: orange +, blue −`;
    this.notes.spread = `uncertainty, 0 (grey) to ${short(data.most, 2)} or more (purple): one standard deviation${data.channels > 1 ? ", mean of the channels" : ""}, in the unit of the data`;
    if (shown && this.lit !== null && this.factors) {
      const alone = this.factors.add(this.lit, 1, new Float32Array(this.factors.sums.length)), each = data.channels > 1 ? channelMeans(alone, null, data.channels) : alone;
      sheets.lit.tint(shown, each, data, absoluteLimit(each), true);
    }
    this.paint();
    this.say();
  }

  build(k) {
    this.built = !this.factors || k === null || k >= this.factors.rank ? null : k;
    this.lit = null;
    this.restep();
    this.changed();
  }

  light(k) {
    if (!this.factors || this.stroke || k === this.lit) return;
    this.lit = k !== null && k < this.factors.rank ? k : null;
    this.restep();
  }

  get left() {
    const { values, data } = this;
    return values.beside ? "beside" : values.seen && (this.mode || data.many_missing) ? "seen" : values.original ? "original" : null;
  }

  get sides() {
    const { values, left } = this;
    const all = this.stroke ? "seen" : this.lit !== null ? "lit" : this.layer !== "compare" && values[this.layer] ? this.layer : null;
    if (all) return [all, all];
    const right = values.model || this.built !== null ? "model" : left;
    return [left ?? right, right];
  }

  drawAll() {
    if (!this.data?.count || !this.mosaic || !this.canvas.width) return;
    const { mosaic, canvas, sheets, sharp } = this, pen = canvas.getContext("2d"), [left, right] = this.sides;
    const both = left !== right, share = both ? this.share : 0, { height, width, count, columns } = mosaic;
    const [gx, gy] = [canvas.width / mosaic.across, canvas.height / mosaic.down];
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.imageSmoothingEnabled = gx < 1;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const edges = [];
    for (let k = 0; k < count; k++) {
      const [x, y] = tileCorner(mosaic, k), at = [x * gx, y * gy], size = [width * gx, height * gy], across = (k % columns) * width, down = Math.floor(k / columns) * height;
      if (this.stroke) Object.assign(pen, { fillStyle: `rgb(${HIDDEN})` }).fillRect(...at, ...size);
      for (const [name, from, to] of [[left, 0, share], [right, share, 1]]) {
        if (to <= from) continue;
        pen.drawImage(sheets[name].canvas, across + from * width, down, (to - from) * width, height, at[0] + from * size[0], at[1], (to - from) * size[0], size[1]);
      }
      edges.push([at[0] + share * size[0], at[1], size[1]]);
    }
    if (both && share > 0 && share < 1) this.drawEdges(pen, edges);
    pen.setTransform(gx, 0, 0, gy, 0, 0);
    this.mark(pen, sharp / gx);
    this.describe(left, right);
  }

  /** Draw the dividers, and the handle of that in the tile under the pointer. */
  drawEdges(pen, edges) {
    const { sharp } = this;
    for (const [x, y, high] of edges) {
      Object.assign(pen, { fillStyle: "white" }).fillRect(Math.round(x) - sharp, y, sharp, high);
      Object.assign(pen, { fillStyle: "black" }).fillRect(Math.round(x), y, sharp, high);
    }
    const [x, y, high] = edges[this.cursor?.picture ?? 0];
    Object.assign(pen, { fillStyle: "#888", strokeStyle: "white", lineWidth: sharp }).beginPath();
    pen.arc(x, y + high / 2, 8 * sharp, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
    Object.assign(pen, { fillStyle: "white", font: `${9 * sharp}px sans-serif`, textAlign: "center" }).fillText("◂▸", x, y + high / 2 + 3 * sharp);
  }

  mark(pen, thin) {
    const { cursor, mosaic: { height, width } } = this, { row, column } = this.selection ?? {}, { layout, step, ids } = this.data;
    const outline = (path, color) => {
      for (const [strokeStyle, wide] of [["#0008", 3], [color, 1]]) {
        Object.assign(pen, { strokeStyle, lineWidth: wide * thin }).beginPath();
        path();
        pen.stroke();
      }
    };
    const box = ([left, top], y, x) => pen.rect(left + x, top + y, 1, 1), flat = layout === "matrix";
    const picture = flat ? 0 : Array.from(ids).indexOf(row), corner = tileCorner(this.mosaic, picture);
    if (Number.isFinite(row) && picture >= 0) {
      const y = Math.floor(flat ? row / step : column / width), x = flat ? Math.floor(column / step) : column % width;
      outline(() => {
        if (!flat) pen.rect(...corner, width, height);
        if (Number.isFinite(column) && y < height && x < width) box(corner, y, x);
      }, "#56b4e9");
    }
    if (cursor) outline(() => (this.mode ? pen.arc(...cursor.place, this.size + 0.5, 0, 2 * Math.PI) : box(tileCorner(this.mosaic, cursor.picture), cursor.y, cursor.x)), "white");
  }

  describe(left, right) {
    const { values, data, layer, mode, built } = this, both = left !== right, { beside_title, layout } = data;
    const { count, height, width } = this.mosaic, names = { original: "data", seen: "seen data", beside: beside_title, lit: `component ${this.lit}`,
      model: built === null ? "model" : `first ${built} of ${this.factors.rank}`, ...LAYERS };
    const choose = (name) => () => {
      this.layer = name;
      this.restep();
    };
    const swipe = { type: "range", min: 0, max: 100, value: Math.round(100 * this.share), style: both ? "" : "visibility: hidden",
      "aria-label": "part of each picture that shows data", input: ({ target }) => this.swipe(target.value / 100) };
    const lacks = { difference: (values.beside ?? values.original) && values.model ? "" : "It needs data and a model", spread: values.spread ? "" : this.sure ? "It needs intervals: ⋯ draws them" : "It needs intervals" };
    const can = data.can_brush, brush = (name) => button(name, () => {
      this.mode = this.mode === name ? "" : name;
      this.look(null);
    }, { title: BRUSHES[name], "aria-pressed": mode === name, pointerenter: () => this.say(name), pointerleave: () => this.say() });
    draw(this.tools, h("span.nmd-side", { title: names[left], style: both ? "" : "visibility: hidden" }, names[this.left]), h("input", swipe), h("span.nmd-side.nmd-right", { title: names[right] }, names[right]),
      Object.entries(LAYERS).map(([name, text]) => button(name === "compare" && !values.original ? "model" : name === "compare" && values.beside ? "run | model" : text, choose(name),
        { "aria-pressed": layer === name, disabled: Boolean(lacks[name]), title: lacks[name] || null })),
      can && h("span.nmd-brushes", { role: "group", "aria-label": "brushes that hide pixels" }, Object.keys(BRUSHES).map(brush),
        h("input", { type: "range", min: 1, max: 40, value: this.size, "aria-label": "brush radius", title: mode ? "brush radius" : "brush radius: choose a brush first",
          disabled: !mode, input: ({ target }) => { this.size = Number(target.value); } }),
        button("undo", () => this.send({ do: "undo" }), { title: data.n_painted ? "Take the last stroke back (Ctrl+Z)" : "No stroke to take back", disabled: !data.n_painted })));
    this.element.dataset.mode = mode;
    const what = layout === "matrix" ? "matrix" : `${count} picture${count === 1 ? "" : "s"}`;
    this.canvas.setAttribute("aria-label", `${both ? `${names[left]} left, ${names[right]} right` : names[right] ?? "data"}: ${what} of ${height} x ${width} pixels`);
  }

  swipe(share) {
    this.share = clamp(share, 0, 1);
    this.paint();
  }

  look(place, live = "off") {
    const pixel = place && pixelAt(this.mosaic, place);
    this.cursor = pixel && { ...pixel, place };
    this.read.setAttribute("aria-live", live);
    this.say();
    this.paint();
  }

  /** Say what is under the pointer; or, with a brush, how well its strokes are filled, and what it does. */
  say(brush = this.mode) {
    const { picture, y, x } = this.cursor ?? {}, { layout, step, ids, labels, count, height, width, beside_title } = this.data;
    const label = labels?.[picture] ? ` (${labels[picture]})` : "";
    const where = layout === "matrix" ? (step > 1 ? `mean of rows ${y * step} to ${(y + 1) * step - 1}, columns ${x * step} to ${(x + 1) * step - 1}`
      : `row ${y}, column ${x}${label}`) : `picture ${ids?.[picture]}${label}, pixel ${y}, ${x}`;
    const names = { original: "data", beside: beside_title, model: "model", spread: "SD" };
    const texts = this.cursor && Object.keys(names).filter((name) => this.values[name]).map((name) => {
      const values = this.values[name], channels = values.length / (count * height * width);
      const at = ((picture * height + y) * width + x) * channels, each = Array.from(values.subarray(at, at + channels));
      return `${names[name]} ${each.some(Number.isNaN) ? (name === "spread" ? "follows" : "missing") : each.map((value) => short(value, name === "spread" ? 2 : 3)).join(" / ")}`;
    });
    const about = brush && BRUSHES[brush] + (this.data.n_painted ? "" : "; drag over a picture");
    const read = texts && (!brush || this.read.ariaLive !== "off") ? [`${where}: ${texts.join(", ")}`] : [this.painted, this.notes[this.sides[1]], about];
    this.read.textContent = read.filter(Boolean).join(".\n");
  }

  placeOf(event) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect(), { across, down } = this.mosaic;
    return [((event.clientX - left) / width) * across, ((event.clientY - top) / height) * down];
  }

  down(event) {
    if (event.button || this.drag) return;
    const from = this.placeOf(event), [left, right] = this.sides, divided = left !== right;
    this.look(from);
    const { share } = this.cursor ?? {}, gain = this.canvas.clientWidth / this.mosaic.across;
    const near = divided && Math.abs(share - this.share) * this.mosaic.width * gain < 10;
    this.drag = { mode: near ? "swipe" : this.mode || (divided ? "swipe" : ""), id: event.pointerId,
      begin: [event.clientX, event.clientY], picture: this.cursor?.picture };
    if (this.drag.mode === this.mode && this.mode) this.begin();
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    const place = this.placeOf(event), { drag, mosaic } = this;
    if (drag && drag.id !== event.pointerId) return;
    if (drag && Math.hypot(event.clientX - drag.begin[0], event.clientY - drag.begin[1]) > 3) drag.moved = true;
    if (drag?.mode === "swipe" && drag.moved && drag.picture >= 0) this.swipe((place[0] - tileCorner(mosaic, drag.picture)[0]) / mosaic.width);
    if (this.stroke) this.brushTo(place);
    this.look(place);
  }

  up(event) {
    const { drag } = this;
    if (drag?.id !== event.pointerId) return;
    this.drag = null;
    this.finish();
    if (event.type === "pointerup" && !this.mode && !drag.moved) this.select();
  }

  select() {
    const { picture, y, x } = this.cursor ?? {}, { layout, step, width, ids } = this.data, pixel = y * width + x;
    const place = () => (layout === "matrix" ? { row: y * step, column: x * step } : { row: ids[picture], column: pixel });
    if (this.cursor) this.send({ do: "select", pixel, ...place() });
  }

  begin() {
    if (!this.cursor) return;
    this.stroke = { picture: this.cursor.picture, rain: this.mode === "rain", radius: this.size };
    this.brushTo(this.cursor.place);
  }

  /** Extend a stroke to a place of the mosaic; only what is in the picture where it began counts. */
  brushTo([across, down]) {
    const { stroke, mosaic: { height, width } } = this, [left, top] = tileCorner(this.mosaic, stroke.picture);
    const to = [down - top - 0.5, across - left - 0.5], { last } = stroke;
    if (last && Math.hypot(to[0] - last[0], to[1] - last[1]) < 0.5) return;
    stroke.last = to;
    const points = (last ? strokePoints(last, to, Math.max(0.5, stroke.radius / 2)) : [to])
      .filter(([y, x]) => y >= -0.5 && x >= -0.5 && y <= height - 0.5 && x <= width - 0.5)
      .map(([y, x]) => [Math.round(10 * clamp(y, 0, height - 1)) / 10, Math.round(10 * clamp(x, 0, width - 1)) / 10]);
    this.points.push(...points);
    this.preview(points);
    this.timer ??= setTimeout(() => this.sendPoints(), 60);
  }

  /** Show at once what points of a stroke hide, before Python has answered; drops of rain fall anywhere, a few at each point. */
  preview(points) {
    const { picture, radius, rain } = this.stroke, { height, width } = this.mosaic, { seen } = this.sheets;
    for (const [row, column] of points.flatMap((point) => discPixels(point, radius, height, width))) {
      if (!rain || Math.random() < 0.7 / 3) seen.pixels[seen.line(picture, row) + column] = this.scale.missing;
    }
    seen.changed();
    this.paint();
  }

  sendPoints() {
    const { picture, rain, radius, sent } = this.stroke ?? {};
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.points.length) return;
    this.send({ do: "brush", rain, picture, points: this.points.splice(0), radius, goes_on: sent });
    this.stroke.sent = true;
  }

  finish() {
    if (!this.stroke) return;
    this.sendPoints();
    this.stroke = null;
    this.paint();
  }

  key(event) {
    const undo = () => this.drag || !this.data.n_painted || this.send({ do: "undo" });
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && this.data.can_brush) keyOf(event, { z: undo })?.();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const clear = () => {
      Object.assign(this, { mode: "", share: 0.5 });
      this.paint();
      this.send({ do: "clear" });
    }, space = () => {
      if (this.mode) this.begin();
      else this.swipe(this.share < 1 ? 1 : 0); // blink: all data, all model
      this.finish();
    };
    const arrow = keyOf(event, ARROWS);
    if (arrow) this.walk(arrow);
    else keyOf(event, { Enter: () => this.select(), " ": space, Escape: clear })?.();
  }

  /** Move the cursor by a pixel, over gaps too; without a cursor, begin in the middle. */
  walk(arrow) {
    const { across, down, gap } = this.mosaic, { place } = this.cursor ?? {}, from = place ?? [across / 2, down / 2];
    const places = [place ? 1 : 0, 1 + gap].map((far) => from.map((at, k) => at + far * arrow[k]));
    this.look(places.find((each) => pixelAt(this.mosaic, each)) ?? place ?? [0.5, 0.5], "polite");
  }
}
