// A table drawn as a table: histograms in its heads with the interval of the cell under the pointer, and filled cells marked.

import { button, clamp, draw, h, keyOf, made, steps } from "./dom.mjs";

const STATES = ["seen", "held out of the fit", "missing, filled in"];
const CELLS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const HEADS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

export class Grid {
  constructor(send) {
    Object.assign(this, { send, data: null, at: [0, 0] });
    const about = { role: "group", "aria-label": "table of data and model", tabindex: 0 };
    this.box = made(h("div.nmd-grid-box", { ...about, keydown: (event) => this.step(event), pointerover: (event) => this.look(event.target.closest?.("td[data-at]")),
      pointerleave: () => this.look(null), click: ({ target }) => this.pick(...(target.closest("td[data-at]")?.dataset.at.split(",").map(Number) ?? [])) }));
    this.note = made(h("p.nmd-read"));
    this.element = made(h("div.nmd-grid-stage", { hidden: true }, this.box, this.note));
  }

  show(data, selection) {
    const { row, column } = selection ?? {}, moved = row !== this.row || column !== this.column;
    this.element.hidden = !data;
    if (!data || (data === this.data && !moved)) return;
    Object.assign(this, { data, row, column });
    this.draw();
    const cell = this.box.querySelector("[aria-selected]");
    this.seeks = (moved || this.seeks) && row !== undefined; // its page may come later
    if (this.seeks && cell) {
      cell.scrollIntoView({ block: "nearest", inline: "nearest" });
      this.seeks = false;
    }
    this.look(cell);
  }

  draw() {
    const { columns, rows, labels } = this.data;
    this.bare = columns.every(({ state }) => state.every((each) => each === 2)); // a model without its data
    this.box.classList.toggle("nmd-bare", this.bare);
    draw(this.box, h("table", h("thead", h("tr", steps("button", HEADS), h("td"), columns.map((each) => this.top(each)))),
      h("tbody", rows.map((_, k) => h("tr", h("th", { scope: "row" }, labels[k]), columns.map((each, j) => this.cell(each, k, j)))))));
    this.write();
  }

  write(cell = "") {
    const { begin, page, total, rows } = this.data, more = total > page;
    const turn = (text, title, by, disabled) => more && button(text, () => this.send({ do: "arrange", begin: begin + by * page }), { title: disabled ? `no ${title}` : title, disabled });
    const marks = this.bare ? "as the model has them" : "italic: missing, filled in; dotted: held out, data → model";
    const all = `rows ${begin + 1} to ${begin + rows.length} of ${total}; ${marks}`;
    draw(this.note, turn("‹", "earlier rows", -1, begin === 0), turn("›", "later rows", 1, begin + page >= total), h("output", { "aria-live": "polite" }, cell || all));
  }

  top({ name, bars, low, high, at }) {
    const { column, reverse } = this.data, title = `${name}: ${low} to ${high}; click: sort`;
    const sorted = at !== column ? null : reverse ? "descending" : "ascending";
    const drawn = bars.map((share) => h("i", { style: `height: ${Math.max(share ? 1 : 0, 20 * share)}px` }));
    return h("th", { scope: "col", title, "aria-sort": sorted, click: () => this.send({ do: "arrange", column: at }) }, button(name.split(/(?<=[_ /])/).map((each) => h("span", each)), null),
      h("span.nmd-bars", { "aria-hidden": "true" }, drawn, h("b", { hidden: true })));
  }

  cell(column, k, j) {
    const state = column.state[k], data = column.data[k], model = column.model[k];
    const text = state === 0 ? data : state === 1 && model ? `${data} → ${model}` : model || "–";
    const ends = [column.zero, column.share[k]].sort((a, b) => a - b).map((end) => `${100 * end}%`);
    return h(`td.nmd-cell.nmd-state-${state}`, {
      style: `--from: ${ends[0]}; --to: ${ends[1]}`, "data-at": `${k},${j}`,
      "aria-selected": (this.data.rows[k] === this.row && column.at === this.column) || null,
    }, text);
  }

  /** Show the interval of a cell in the histogram of its column, and in words. */
  look(cell) {
    const [k, j] = cell?.dataset.at.split(",").map(Number) ?? [], { columns, labels } = this.data ?? {}, column = columns?.[j];
    this.box.querySelectorAll(".nmd-bars > b").forEach((mark, c) => {
      const ends = c === j ? column.ends[k] : null;
      mark.hidden = !ends;
      if (ends) mark.style.cssText = `left: ${100 * ends[0]}%; width: ${Math.max(2, 100 * (ends[1] - ends[0]))}%`;
    });
    if (!this.data) return;
    if (!column) return this.write();
    const { sure, model, data, state, name } = column, value = data[k] || model[k] || "–";
    this.write(`${name}, row ${labels[k]}: ${this.bare ? "" : `${STATES[state[k]]}, `}${value}${sure[k] && `; model: ${model[k]}, ${sure[k]}`}`);
  }

  pick(k, j) {
    if (k === undefined) return;
    this.at = [k, j];
    this.send({ do: "select", row: this.data.rows[k], column: this.data.columns[j].at });
  }

  step(event) {
    const by = event.target === this.box && keyOf(event, CELLS), { rows, columns } = this.data;
    if (!by) return;
    const most = [rows.length - 1, columns.length - 1];
    this.pick(...this.at.map((each, axis) => clamp(each + by[axis], 0, most[axis])));
  }
}
