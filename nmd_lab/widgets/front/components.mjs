// The strip: the model built component by component, and the components, the largest first, each explained in words.

import { button, draw, h, made, numbers, steps, twoDigits } from "./dom.mjs";
import { ADDS, Sheet, TAKES, mosaicOf, pictureScale } from "./pictures.mjs";

/** Return the button that turns a table from the draws to the fit, and back. */
export const swapper = (text, send) => text && button(text, () => send({ do: "swap" }), { class: "nmd-swap" });

export class Components {
  constructor(send, pictures, plane) {
    Object.assign(this, { send, pictures, plane, sheets: [], at: null });
    this.element = made(h("section.nmd-components", { "aria-label": "components" }));
    this.head = made(h("div.nmd-strip-head"));
    this.gallery = made(h("div.nmd-gallery", { role: "group", "aria-label": "components", ...steps(".nmd-component") }));
  }

  show(data, swap) {
    const fresh = data !== this.data;
    Object.assign(this, { data, swap });
    if (fresh && data && data.kind !== "list") this.paint(data);
    this.draw();
  }

  paint(data) {
    const values = numbers(data.values), size = data.height * data.width;
    while (this.sheets.length < data.count) this.sheets.push(new Sheet());
    this.sheets.slice(0, data.count).forEach((sheet, k) => {
      const each = values.subarray(k * size, (k + 1) * size);
      const largest = each.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0) || 1;
      if (data.kind === "bars") return drawBars(sheet.canvas, each, largest);
      sheet.resize(mosaicOf({ count: 1, height: data.height, width: data.width }));
      sheet.fill(each, { ...pictureScale("signed", -largest, largest), missing: 0 });
    });
  }

  draw() {
    const { data } = this;
    if (!data) return draw(this.element);
    draw(this.gallery, Array.from({ length: data.count }, (_, k) => this.tile(k)));
    this.write();
    draw(this.element, this.head, this.gallery);
  }

  /** Bring the line above the components up to date: what is built, and what one does. */
  write() {
    const { data, pictures } = this;
    if (!data) return;
    const line = this.at === null || data.off.includes(this.at) ? this.shown() || data.hint : data.words[this.at];
    const back = data.off.length ? `${data.off.length} off: switch all on` : data.chosen !== null ? `${data.chosen} pinned: show all rows` : "";
    const on = back && button(back, () => this.send({ do: "component", what: "on" }), { class: "nmd-all-on" });
    draw(this.head, pictures.factors ? this.builder() : null, swapper(this.swap, this.send), on, h("span.nmd-words", { role: "status", title: line }, line));
  }

  /** Say how many pictures of the rows that are picked or of a component are shown, and what most of them are. */
  shown() {
    const { picked, pictures: { data, mosaic }, plane } = this, { rows, groups = [], color, values } = plane.data ?? {};
    if (data?.layout !== "rows" || !(picked.length || this.data.chosen !== null)) return "";
    const all = Array.from(numbers(rows, Int32Array)), counts = Array(values?.length ?? 0).fill(0), chosen = new Set(picked);
    all.forEach((row, k) => chosen.has(row) && counts[groups[k]]++);
    const most = Math.max(...counts), common = color && most > 0 ? `, ${Math.round((100 * most) / picked.length)} % ${color} ${values[counts.indexOf(most)]}` : "";
    return `${picked.length ? `${picked.length} rows picked${common}; ` : ""}${mosaic?.count ?? data.count} images shown, Escape on them shows all`;
  }

  builder() {
    const { pictures } = this, { factors, built } = pictures, { rank, data: { errors, where } } = factors;
    const k = built ?? rank, gone = this.data.off.filter((each) => each < k).length, off = Number.isFinite(errors?.[k]) ? [": ", h("b", `±${twoDigits(errors[k])}`), ` ${where}`] : null;
    return h("div.nmd-build", h("input", { type: "range", min: 0, max: rank, value: k, "aria-label": "number of components that are built",
        input: ({ target }) => pictures.build(Number(target.value)) }), h("output", `first ${k} of ${rank}${gone ? `, ${gone} off` : ""}`, off));
  }

  tile(k) {
    const { data } = this, off = data.off.includes(k), pinned = data.chosen === k, list = data.lists[k] ?? [];
    const look = (at) => () => {
      this.at = at;
      this.pictures.light(at);
      this.plane.slide(at);
      this.write();
    };
    const line = ([label, number]) => h("span", `${number < 0 ? "−" : "+"} ${label}`);
    const picture = data.kind === "list" ? h("span.nmd-component-picture", { "aria-hidden": "true" }, list.slice(0, 3).map(line)) : this.sheets[k].canvas;
    return h(`div.nmd-kind-${data.kind}`, { key: `${data.kind} ${k}` }, button([picture, h("span.nmd-share", { style: `width: ${(100 * data.shares[k]) / data.shares[0]}%` })],
      () => this.send({ do: "component", k, what: (pinned || off) ? "off" : "rows" }), {
        class: "nmd-component", "aria-pressed": pinned, "data-off": off || null, "aria-label": `component ${k}: ${data.words[k]}`, title: data.words[k],
        pointerenter: look(k), pointerleave: look(null), focus: look(k), blur: look(null),
      }), h("span.nmd-number", off ? `${k} off` : `${k} · ${data.percents[k]}`));
  }
}

function drawBars(canvas, values, largest) {
  Object.assign(canvas, { height: 48, width: 64 });
  const context = canvas.getContext("2d"), wide = 64 / values.length;
  values.forEach((value, k) => {
    const height = (Math.abs(value) / largest) * 24;
    context.fillStyle = `rgb(${value > 0 ? ADDS : TAKES})`;
    context.fillRect(k * wide, value > 0 ? 24 - height : 24, Math.max(1, wide - 0.5), height);
  });
}
