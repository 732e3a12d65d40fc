// A table drawn as a table: histograms in its heads, bars on the scale of each column, and filled cells marked.

import { button, clamp, html, keyOf, oneStop, replace, set, short, stopAt } from "./dom.mjs";

const GRID_STATES = ["seen", "hidden from the fit", "missing, filled in"];
const GRID_STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const GRID_HEADS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
const GRID_NOTE = "italic: missing, filled in by the model; dotted: hidden from it, data → model; % of a class: its probability";

export class Grid {
  constructor(send) {
    Object.assign(this, { send, data: null, at: [0, 0] });
    this.head = oneStop(html("tr"), "button", GRID_HEADS);
    this.body = html("tbody");
    const turn = (text, title, by) => button(text, () => send({ do: "arrange", begin: this.data.begin + by * this.data.page }), { title });
    this.pages = [turn("‹", "earlier rows", -1), turn("›", "later rows", 1)];
    this.said = html("span");
    this.note = html("p.nmd-read", ...this.pages, this.said);
    const table = html("table", html("thead", this.head), this.body);
    const about = { role: "group", "aria-label": "table of data and model", tabindex: 0 };
    const box = html("div.nmd-grid-box", { ...about, keydown: (event) => this.step(event) }, table);
    this.element = html("div.nmd-grid-stage", { hidden: true }, box, this.note);
  }

  show(data, selection) {
    const { row, column } = selection ?? {}, moved = row !== this.row || column !== this.column;
    this.element.hidden = !data;
    if (!data || (data === this.data && !moved)) return;
    Object.assign(this, { data, row, column });
    replace(this.head, [html("td"), ...data.columns.map((each) => this.top(each))], "button");
    if (!this.head.querySelector("button:focus")) stopAt(this.head, "button");
    this.body.replaceChildren(...data.rows.map((_, k) => html("tr",
      html("th", { scope: "row" }, data.labels[k]), ...data.columns.map((each, j) => this.cell(each, k, j)))));
    const { begin, page, total, drawn, rows } = data, model = drawn ? "mean of the draws and 90 % interval" : "the fit";
    [begin === 0, begin + page >= total].forEach((disabled, k) => set(this.pages[k], { disabled, hidden: total <= page }));
    if (moved) this.body.querySelector("[aria-selected]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.said.textContent = ` rows ${begin + 1} to ${begin + rows.length} of ${total}; model: ${model}; ${GRID_NOTE}`;
  }

  /** Return the head of a column: its name, and a histogram on its own scale. */
  top({ name, bars, low, high, at }) {
    const { column, reverse } = this.data, title = `${name}: ${low} to ${high}; click: sort`;
    const sorted = at !== column ? null : reverse ? "descending" : "ascending";
    const drawn = bars.map((share) => html("i", { style: `height: ${Math.max(share ? 1 : 0, 20 * share)}px` }));
    const click = () => this.send({ do: "arrange", column: at });
    return html("th", { scope: "col", title, "aria-sort": sorted, click }, button(name, null),
      html("span.nmd-bars", { "aria-hidden": "true" }, ...drawn));
  }

  cell(column, k, j) {
    const state = column.state[k], data = column.data[k], model = column.model[k], sure = column.sure[k];
    const text = state === 0 ? data : state === 1 && model ? `${data} → ${model}` : model || "–";
    const ends = [column.zero, column.share[k]].sort((a, b) => a - b).map((end) => `${100 * end}%`);
    return html(`td.nmd-cell.nmd-state-${state}`, {
      style: `--from: ${ends[0]}; --to: ${ends[1]}`,
      "aria-selected": (this.data.rows[k] === this.row && column.at === this.column) || null,
      title: `${column.name}: ${GRID_STATES[state]}${sure && `, ${sure}`}`, click: () => this.pick(k, j),
    }, text, sure && state === 2 ? html("small", sure) : null);
  }

  pick(k, j) {
    this.at = [k, j];
    this.send({ do: "select", row: this.data.rows[k], column: this.data.columns[j].at });
  }

  /** Move the cell that is picked by an arrow. */
  step(event) {
    const by = keyOf(event, GRID_STEPS), { rows, columns } = this.data;
    if (!by) return;
    const most = [rows.length - 1, columns.length - 1];
    this.pick(...this.at.map((each, axis) => clamp(each + by[axis], 0, most[axis])));
    this.body.children[this.at[0]].scrollIntoView({ block: "nearest" });
  }
}

/** What the model says of one cell: a bar for each class, or nested intervals. */
export class CellBox {
  constructor() {
    this.element = html("div.nmd-cell-box", { role: "status", hidden: true });
  }

  /** Show a cell; return whether it is another one than before. */
  show(cell) {
    const known = JSON.stringify(cell), fresh = known !== this.known;
    this.known = known;
    this.element.hidden = !cell;
    if (!cell || !fresh) return false;
    const bars = cell.bars.map(([name, share]) => html("div.nmd-class", html("span", name),
      html("span.nmd-class-bar", { style: `width: ${120 * share}px` }), `${short(100 * share, 2)} %`));
    const line = (text) => html("div", text), intervals = (cell.intervals ?? []).map(line);
    if (!bars.length && !intervals.length) intervals.push(line("“How sure?” draws its intervals."));
    this.element.replaceChildren(html("strong", cell.title), line(cell.text), ...bars, ...intervals);
    const other = cell.title !== this.title;
    this.title = cell.title;
    return other;
  }
}
