// The components of a fit: pictures, bars or lists of labels; a click switches one off.

import { html, numbers, short } from "./dom.mjs";

/** Return the colour of a number between -1 and 1: blue, white, orange; transparent for NaN. */
function componentColor(share) {
  if (!Number.isFinite(share)) return [0, 0, 0, 0];
  const [red, green, blue] = share > 0 ? [213, 94, 0] : [0, 114, 178], part = Math.min(1, Math.abs(share));
  return [red, green, blue].map((each) => Math.round(255 + part * (each - 255))).concat(255);
}

export class Components {
  constructor(send) {
    this.send = send;
    this.said = html("p", { class: "nmd-caption", role: "status" });
    this.grid = html("div", { class: "nmd-gallery", role: "group", "aria-label": "components" });
    const hint = "Components: orange adds, blue takes away. Press one to switch it off, “rows” to see where there is most of it.";
    this.element = html("section", { class: "nmd-components", "aria-label": "components" }, html("p", {}, hint), this.grid, this.said);
  }

  show(data) {
    this.element.hidden = !data;
    if (!data || data === this.data) return;
    this.data = data;
    const key = `${data.kind} ${data.count}`;
    if (key !== this.key) this.rebuild(data);
    this.key = key;
    const values = numbers(data.values), size = data.height * data.width;
    this.largest = values.reduce((most, each) => Math.max(most, Math.abs(each) || 0), 0) || 1;
    this.tiles.forEach((tile, k) => this.draw(tile, k, data, values.subarray(k * size, (k + 1) * size)));
    this.said.textContent = data.said;
  }

  rebuild({ kind, count }) {
    this.tiles = Array.from({ length: count }, (_, k) => {
      const picture = html(kind === "list" ? "span" : "canvas", { "aria-hidden": "true" });
      const main = html("button", { type: "button", class: "nmd-component", click: () => this.act(k, "off") }, `${k}`, picture);
      const rows = html("button", { type: "button", class: "nmd-rows", click: () => this.act(k, "rows") }, "rows");
      rows.setAttribute("aria-label", `rows with most of component ${k}`);
      return { main, rows, picture, element: html("div", { class: `nmd-kind-${kind}` }, main, rows) };
    });
    this.grid.replaceChildren(...this.tiles.map(({ element }) => element));
  }

  act(k, what) {
    this.send({ do: "component", k, what });
  }

  draw({ main, rows, picture }, k, data, values) {
    const off = data.off.includes(k);
    main.setAttribute("aria-pressed", String(!off));
    main.title = `Component ${k}: switch ${off ? "on" : "off"}`;
    rows.setAttribute("aria-pressed", String(data.chosen === k));
    if (data.kind === "list") {
      picture.replaceChildren(...data.lists[k].map(([label, number]) => html("span", {}, `${short(number, 2)} ${label}`)));
      main.setAttribute("aria-label", `component ${k}: ${data.lists[k].map(([label]) => label).join(", ")}`);
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
  Object.assign(canvas, { height: 40, width: 64 });
  const context = canvas.getContext("2d"), wide = 64 / values.length;
  values.forEach((value, k) => {
    const height = (Math.abs(value) / largest) * 20;
    context.fillStyle = value > 0 ? "#d55e00" : "#0072b2";
    context.fillRect(k * wide, value > 0 ? 20 - height : 20, Math.max(1, wide - 0.5), height);
  });
}
