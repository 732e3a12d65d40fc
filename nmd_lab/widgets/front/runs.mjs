// Tables: of results, whose rows can be picked, and of the runs so far.

import { button, html, oneStop, replace } from "./dom.mjs";
import { stars } from "./stars.mjs";

/** Return the cells of a line: the first is its head. */
const cellsOf = (texts) => texts.map((text, k) => html(k ? "td" : "th", { scope: k ? null : "row" }, String(text)));

const LIST_STEPS = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

const headOf = (texts) => html("thead", html("tr", ...texts.map((text) =>
  html(text ? "th" : "td", { scope: text ? "col" : null }, text))));

/** Small tables of texts; a row that stands for a column of the matrix, or for a cell, can be picked. */
export class Tables {
  constructor(send) {
    this.send = send;
    this.element = html("div.nmd-tables");
  }

  show(tables, column) {
    this.element.hidden = !tables?.length;
    const same = (each, k) => each === this.tables?.[k];
    if (this.element.hidden || (tables.length === this.tables?.length && tables.every(same) && column === this.column)) return;
    Object.assign(this, { tables, column });
    replace(this.element, tables.map((each) => this.table(each)), ".nmd-stars, th button");
  }

  table({ name, caption, head, rows, ids, best, ratings, rated }) {
    const lines = rows.map((texts, k) => {
      const cells = cellsOf(texts), column = ids?.[k];
      cells.forEach((cell, j) => {
        cell.title = texts[j];
        cell.classList.toggle("nmd-best", Boolean(best?.[k][j]));
      });
      const cell = Array.isArray(column) ? { row: column[0], column: column[1] } : { column };
      if (ids) cells[0].replaceChildren(button(texts[0], () => this.send({ do: "select", ...cell })));
      const rate = (number) => this.send({ do: "rate", column, number });
      if (rated) cells.splice(1, 0, html("td", stars(texts[0], ratings, rated[k], rate)));
      return html("tr", { "aria-selected": (ids && column === this.column) || null }, ...cells);
    });
    const body = oneStop(html("tbody", ...lines), "th button", LIST_STEPS);
    const table = html(`table.nmd-table.nmd-${name}`, headOf(head), body);
    const said = caption ? html("div", caption) : null;
    return html(`div.nmd-table-box.nmd-${name}-box`, said, head.length ? table : null);
  }
}

/** The runs so far: curves of some beside the present ones, a picture beside the present one, and the way back. */
export class Runs {
  constructor(send) {
    this.send = send;
    this.body = html("tbody");
    const head = headOf(["run", "settings", "held out", "seen", "steps", ""]);
    this.element = html("div.nmd-runs", html("table.nmd-table", head, this.body));
  }

  show(runs) {
    this.element.hidden = !runs?.length;
    if (this.element.hidden || runs === this.runs) return;
    this.runs = runs;
    replace(this.body, runs.map((run) => this.line(run)), "button");
  }

  line({ number, settings, error, held_out, iterations, current, overlaid, beside }) {
    const act = (what, text, title, about) => button(text, () => this.send({ do: "history", number, what }),
      { title, "aria-label": `run ${number}: ${title}`, ...about });
    const buttons = html("td",
      act("overlay", "curve", "draw its curves, too", { "aria-pressed": overlaid, disabled: current }),
      act("beside", "beside", "show its picture beside", { "aria-pressed": beside }),
      act("back", "back", "go back to it", { disabled: current }));
    const cells = cellsOf([number, settings, held_out, error, iterations]);
    return html("tr", { "aria-current": current || null }, ...cells, buttons);
  }
}
