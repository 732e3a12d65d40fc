// A table drawn as a table: histograms in its heads, bars on the scale of each column, and filled cells marked.

import { html, short } from "./dom.mjs";

const GRID_STATES = ["seen", "hidden from the fit", "missing, filled in"];
const GRID_STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class Grid {
  constructor(send) {
    Object.assign(this, { send, data: null, at: [0, 0] });
    this.head = html("tr");
    this.body = html("tbody");
    this.note = html("p", { class: "nmd-read" });
    const table = html("table", {}, html("thead", {}, this.head), this.body);
    const box = html("div", { class: "nmd-grid-box", role: "group", "aria-label": "table of data and model", tabindex: 0, keydown: (event) => this.step(event) }, table);
    this.element = html("div", { class: "nmd-grid-stage", hidden: true }, box, this.note);
    this.element.grid = this;
  }

  show(data, selection) {
    this.element.hidden = !data;
    const moved = selection?.row !== this.row || selection?.column !== this.column;
    if (!data || (data === this.data && !moved)) return;
    Object.assign(this, { data, row: selection?.row, column: selection?.column });
    this.head.replaceChildren(html("td"), ...data.columns.map((column) => this.top(column)));
    this.body.replaceChildren(...data.rows.map((row, k) => html("tr", {}, html("th", { scope: "row" }, data.labels[k]),
      ...data.columns.map((column, j) => this.cell(column, k, j)))));
    const filled = "italic: missing, filled in by the model; dotted: hidden from the fit, data → model";
    this.note.textContent = `${data.rows.length} of ${data.total} rows; ${filled}`;
  }

  /** Return the head of a column: its name, and a histogram on its own scale. */
  top({ name, bars, low, high }) {
    const drawn = bars.map((height) => {
      const bar = html("i");
      bar.style.height = `${Math.max(height ? 1 : 0, 20 * height)}px`;
      return bar;
    });
    return html("th", { scope: "col", title: `${name}: ${low} to ${high}` }, name, html("span", { class: "nmd-bars", "aria-hidden": "true" }, ...drawn));
  }

  cell(column, k, j) {
    const state = column.state[k], data = column.data[k], model = column.model?.[k] ?? "", interval = column.interval[k];
    const text = state === 0 ? data : state === 1 && model ? `${data} → ${model}` : model || "–";
    const picked = this.data.rows[k] === this.row && column.at === this.column;
    const each = html("td", { class: `nmd-cell nmd-state-${state}`, "aria-selected": picked ? "true" : null,
      title: `${column.name}: ${GRID_STATES[state]}${interval ? `, ${interval}` : ""}`, click: () => this.pick(k, j) },
    text, interval && state === 2 ? html("small", {}, interval) : null);
    each.style.setProperty("--share", `${100 * column.share[k]}%`);
    return each;
  }

  pick(k, j) {
    this.at = [k, j];
    this.send({ do: "select", row: this.data.rows[k], column: this.data.columns[j].at });
  }

  /** Move the cell that is picked by an arrow. */
  step(event) {
    const by = GRID_STEPS[event.key];
    if (!by || !this.data) return;
    event.preventDefault();
    event.stopPropagation();
    const sizes = [this.data.rows.length, this.data.columns.length];
    this.pick(...this.at.map((each, axis) => Math.min(sizes[axis] - 1, Math.max(0, each + by[axis]))));
    this.body.children[this.at[0]]?.scrollIntoView?.({ block: "nearest" });
  }
}

/** What the model says of one cell: a bar for each class, or nested intervals. */
export class CellBox {
  constructor() {
    this.element = html("div", { class: "nmd-cell-box", role: "status", hidden: true });
  }

  /** Show a cell; return whether it is another one than before. */
  show(cell) {
    const known = JSON.stringify(cell ?? null), fresh = known !== this.known;
    this.known = known;
    this.element.hidden = !cell;
    if (!cell || !fresh) return false;
    const bars = cell.bars.map(([name, share]) => {
      const bar = html("span", { class: "nmd-class-bar" });
      bar.style.width = `${120 * share}px`;
      return html("div", { class: "nmd-class" }, html("span", {}, name), bar, `${short(100 * share, 2)} %`);
    });
    const hint = !cell.bars.length && !cell.intervals?.length ? ["“How sure?” draws its intervals."] : [];
    const lines = [...(cell.intervals ?? []), ...hint].map((text) => html("div", {}, text));
    const other = cell.title !== this.title;
    this.title = cell.title;
    this.element.replaceChildren(html("strong", {}, cell.title), html("div", {}, cell.text), ...bars, ...lines);
    return other;
  }
}
