// The strip of components, largest first: pictures, bars or lists of labels; a click switches one off.

import { html, numbers, short } from "./dom.mjs";

/** Return the colour of a number between -1 and 1: blue, white, orange; transparent for NaN. */
function componentColor(share) {
  if (!Number.isFinite(share)) return [0, 0, 0, 0];
  const [red, green, blue] = share > 0 ? [213, 94, 0] : [0, 114, 178], part = Math.min(1, Math.abs(share));
  return [red, green, blue].map((each) => Math.round(255 + part * (each - 255))).concat(255);
}

const COMPONENT_STEPS = { ArrowRight: 1, ArrowLeft: -1 };

export class Components {
  constructor(send) {
    this.send = send;
    this.said = html("p", { class: "nmd-caption", role: "status" });
    this.grid = html("div", { class: "nmd-gallery", role: "group", "aria-label": "components", keydown: (event) => this.step(event) });
    this.element = html("section", { class: "nmd-components", "aria-label": "components, orange adds, blue takes away" }, this.grid, this.said);
  }

  show(data) {
    this.grid.hidden = !data;
    if (data === this.data) return;
    this.data = data;
    if (!data) return this.said.replaceChildren();
    const key = `${data.kind} ${data.count}`;
    if (key !== this.key) this.rebuild(data);
    this.key = key;
    const values = numbers(data.values), size = data.height * data.width;
    this.largest = values.reduce((most, each) => Math.max(most, Math.abs(each) || 0), 0) || 1;
    const order = data.shares.map((_, k) => k).sort((a, b) => data.shares[b] - data.shares[a]);
    if (order.some((k, at) => this.grid.children[at] !== this.tiles[k].element)) {
      this.grid.replaceChildren(...order.map((k) => this.tiles[k].element));
      this.order = order;
      this.focusAt(0, false);
    }
    this.tiles.forEach((tile, k) => this.draw(tile, k, data, values.subarray(k * size, (k + 1) * size)));
    this.said.textContent = data.said;
  }

  rebuild({ kind, count }) {
    this.tiles = Array.from({ length: count }, (_, k) => {
      const picture = html(kind === "list" ? "span" : "canvas", { "aria-hidden": "true", class: "nmd-component-picture" });
      const bar = html("span", { class: "nmd-share", "aria-hidden": "true" });
      const main = html("button", { type: "button", class: "nmd-component", tabindex: -1, click: () => this.act(k, "off") }, picture, bar);
      const rows = html("button", { type: "button", class: "nmd-rows", tabindex: -1, click: () => this.act(k, "rows"),
        title: `Rows that are strongest in component ${k}` }, `${k}`);
      rows.setAttribute("aria-label", `rows with most of component ${k}`);
      return { main, rows, bar, picture, element: html("div", { class: `nmd-kind-${kind}` }, main, rows) };
    });
    this.grid.replaceChildren();
  }

  /** Move the focus among the components by arrows: all of them are one tab stop. */
  step(event) {
    const active = this.grid.getRootNode().activeElement, at = this.order.findIndex((k) => this.tiles[k].element.contains(active));
    const by = COMPONENT_STEPS[event.key], inRows = active?.classList.contains("nmd-rows");
    if (at < 0 || (by === undefined && event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
    event.preventDefault();
    event.stopPropagation();
    if (by) this.focusAt((at + by + this.order.length) % this.order.length, true, inRows);
    else this.focusAt(at, true, event.key === "ArrowDown");
  }

  focusAt(at, focus, rows = false) {
    for (const { main, rows: other } of this.tiles) main.tabIndex = other.tabIndex = -1;
    const tile = this.tiles[this.order[at]], button = tile && (rows ? tile.rows : tile.main);
    if (!button) return;
    button.tabIndex = 0;
    if (focus) button.focus();
  }

  act(k, what) {
    this.send({ do: "component", k, what });
  }

  draw({ main, rows, bar, picture }, k, data, values) {
    const off = data.off.includes(k), share = `${short(100 * data.shares[k], 2)} %`;
    main.setAttribute("aria-pressed", String(!off));
    main.title = `Component ${k}, ${share} of what the model adds: switch ${off ? "on" : "off"}`;
    bar.style.width = `${(100 * data.shares[k]) / Math.max(...data.shares)}%`;
    rows.setAttribute("aria-pressed", String(data.chosen === k));
    if (data.kind === "list") {
      const line = ([label, number]) => html("span", {}, `${number < 0 ? "−" : "+"} ${label}`);
      picture.replaceChildren(...data.lists[k].slice(0, 3).map(line));
      main.setAttribute("aria-label", `component ${k}: ${data.lists[k].map(([label]) => label).join(", ")}`);
      main.title += `. ${data.lists[k].map(([label, number]) => `${label} ${short(number, 2)}`).join(", ")}`;
      return;
    }
    main.setAttribute("aria-label", `component ${k}`);
    if (data.kind === "bars") drawBars(picture, values, this.largest);
    else drawImage(picture, values, this.largest, data);
  }
}

function drawImage(canvas, values, largest, { height, width }) {
  Object.assign(canvas, { height, width });
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  for (let k = 0; k < values.length; k++) image.data.set(componentColor(values[k] / largest), 4 * k);
  context.putImageData(image, 0, 0);
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
