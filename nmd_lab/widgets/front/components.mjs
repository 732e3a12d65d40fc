// The strip of components, largest first: pictures, bars or lists of labels; a click switches one off.

import { button, html, keyOf, numbers, set, short, stopAt } from "./dom.mjs";
import { PictureSheet, mosaicOf, pictureScale } from "./mosaic.mjs";

export class Components {
  constructor(send) {
    this.send = send;
    this.said = html("span.nmd-caption", { role: "status" });
    this.hint = html("span.nmd-hint");
    this.on = button("", () => this.data.off.forEach((k) => send({ do: "component", k, what: "off" })), { class: "nmd-all-on", hidden: true });
    const keydown = (event) => this.step(event), name = "components, orange adds, blue takes away";
    this.grid = html("div.nmd-gallery", { role: "group", "aria-label": "components", keydown });
    this.element = html("section.nmd-components", { "aria-label": name }, this.grid,
      html("p.nmd-strip-note", this.on, this.said, this.hint));
  }

  show(data) {
    this.grid.hidden = !data;
    if (data === this.data) return;
    this.data = data;
    this.said.textContent = data?.said ?? "";
    if (!data) return;
    const colours = data.kind === "list" ? "" : "orange adds, blue takes away; ";
    this.hint.textContent = data.captions
      ? `${data.count} groups of patches, each with its four strongest patterns; a click shows where a group is`
      : `${data.total > data.count ? `${data.count} of ` : ""}${data.total} components, the largest first; ${colours}a click switches one off`;
    this.on.textContent = `${data.off.length} of ${data.count} off: switch all on`;
    this.on.hidden = !data.off.length;
    this.hint.hidden = Boolean(data.off.length || data.said);
    const key = `${data.kind} ${data.count} ${Boolean(data.captions)}`;
    if (key !== this.key) this.rebuild(data);
    this.key = key;
    const values = numbers(data.values), size = data.height * data.width;
    this.tiles.forEach((tile, k) => {
      this.describe(tile, k, data);
      const own = values.subarray(k * size, (k + 1) * size); // on a scale of its own: the bar has its share
      const largest = own.reduce((most, each) => Math.max(most, Math.abs(each) || 0), 0) || 1;
      if (data.kind === "bars") drawBars(tile.sheet.canvas, own, largest);
      if (data.kind !== "image") return;
      tile.sheet.resize(mosaicOf({ count: 1, height: data.height, width: data.width }));
      tile.sheet.fill(own, { ...pictureScale("signed", -largest, largest), hole: 0 });
    });
    const order = data.shares.map((_, k) => k).sort((a, b) => data.shares[b] - data.shares[a]);
    if (order.every((k, at) => this.grid.children[at] === this.tiles[k].element)) return;
    this.grid.replaceChildren(...order.map((k) => this.tiles[k].element));
    stopAt(this.grid, "button");
  }

  rebuild({ kind, count, captions }) {
    this.tiles = Array.from({ length: count }, (_, k) => {
      const act = (what) => () => this.send({ do: "component", k, what });
      const sheet = new PictureSheet();
      const picture = kind === "list" ? html("span", { "aria-hidden": "true" }) : sheet.canvas;
      picture.className = "nmd-component-picture";
      const main = button(picture, act(captions ? "rows" : "off"), { class: "nmd-component" });
      main.append(html("span.nmd-share", { "aria-hidden": "true" }));
      const title = `Rows that are strongest in component ${k}`, label = `rows with most of component ${k}`;
      const show = () => {
        if (this.data.chosen !== k) this.send({ do: "clear" }); // picked rows would hide them
        act("rows")();
      };
      const rows = button(`rows of ${k}`, show, { class: "nmd-rows", title, "aria-label": label });
      return { main, rows, picture, sheet, element: html(`div.nmd-kind-${kind}`, main, rows) };
    });
    this.grid.replaceChildren();
  }

  /** Move the focus by arrows: all buttons are one tab stop, those of rows below the others. */
  step(event) {
    const buttons = [...this.grid.querySelectorAll("button")], at = buttons.indexOf(event.target), { length } = buttons;
    const above = at - (at % 2);
    const next = keyOf(event, {
      ArrowRight: (at + 2) % length, ArrowLeft: (at - 2 + length) % length, ArrowUp: above, ArrowDown: above + 1,
    });
    if (next === undefined) return;
    stopAt(this.grid, "button", buttons[next]);
    buttons[next].focus();
  }

  describe({ main, rows, picture }, k, data) {
    const off = data.off.includes(k), share = `${short(100 * data.shares[k], 2)} %`, list = data.lists[k] ?? [];
    const what = data.captions ? `Group ${k}, ${share} of the patches; click: where it is`
      : `Component ${k}, ${share} of what the model adds; click: ${off ? "on" : "off"}`;
    const labels = list.map(([label]) => label).join(", ");
    if (data.captions) rows.textContent = `${k}: ${data.captions[k]}`;
    set(main, {
      "aria-pressed": !off, "aria-label": `${data.captions ? "group" : "component"} ${k}${labels && `: ${labels}`}`,
      title: [what, list.map(([label, number]) => `${label} ${short(number, 2)}`).join(", ")].filter(Boolean).join(". "),
    });
    main.lastChild.style.width = `${(100 * data.shares[k]) / Math.max(...data.shares)}%`;
    rows.setAttribute("aria-pressed", data.chosen === k);
    const line = ([label, number]) => html("span", `${number < 0 ? "−" : "+"} ${label}`);
    if (data.kind === "list") picture.replaceChildren(...list.slice(0, 3).map(line));
  }
}

function drawBars(canvas, values, largest) {
  Object.assign(canvas, { height: 48, width: 64 });
  const context = canvas.getContext("2d"), wide = 64 / values.length;
  values.forEach((value, k) => {
    const height = (Math.abs(value) / largest) * 24;
    context.fillStyle = value > 0 ? "#d55e00" : "#0072b2";
    context.fillRect(k * wide, value > 0 ? 24 - height : 24, Math.max(1, wide - 0.5), height);
  });
}
