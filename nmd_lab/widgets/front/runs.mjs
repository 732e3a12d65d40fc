// Tables: of results, whose rows can be picked, and of the runs so far.

import { html } from "./dom.mjs";
import { stars } from "./stars.mjs";

/** Small tables of texts; a row that stands for a column of the matrix, or for a cell, can be picked. */
export class Tables {
  constructor(send) {
    this.send = send;
    this.element = html("div", { class: "nmd-tables" });
  }

  show(tables, column) {
    this.element.hidden = !tables?.length;
    const same = (each, k) => each === this.tables?.[k];
    if (this.element.hidden || (tables.length === this.tables?.length && tables.every(same) && column === this.column)) return;
    Object.assign(this, { tables, column });
    const at = [...this.element.querySelectorAll(".nmd-stars")].findIndex((each) => each.matches(":focus"));
    this.element.replaceChildren(...tables.map((each) => this.table(each)));
    this.element.querySelectorAll(".nmd-stars")[at]?.focus();
  }

  table({ name, caption, head, rows, ids, best, ratings, rated }) {
    const lines = rows.map((cells, k) => {
      const [first, ...others] = cells.map((text, j) => html(j ? "td" : "th", {
        class: best?.[k][j] ? "nmd-best" : null, title: text, scope: j ? null : "row",
      }, text));
      if (ids) first.replaceChildren(html("button", { type: "button", click: () => this.pick(ids[k]) }, cells[0]));
      const rate = (number) => this.send({ do: "rate", column: ids[k], number });
      if (rated) others.unshift(html("td", {}, stars(cells[0], ratings, rated[k], rate)));
      return html("tr", { "aria-selected": ids && ids[k] === this.column ? "true" : null }, first, ...others);
    });
    const heads = html("thead", {}, html("tr", {}, ...head.map((text) => html(text ? "th" : "td", { scope: text ? "col" : null }, text))));
    const shown = head.length ? html("table", { class: `nmd-table nmd-${name}` }, heads, html("tbody", {}, ...lines)) : null;
    return html("div", { class: `nmd-table-box nmd-${name}-box` }, caption ? html("div", {}, caption) : null, shown);
  }

  pick(id) {
    this.send(Array.isArray(id) ? { do: "select", row: id[0], column: id[1] } : { do: "select", column: id });
  }
}

/** The runs so far: curves of some beside the present ones, a picture beside the present one, and the way back. */
export class Runs {
  constructor(send) {
    this.send = send;
    this.body = html("tbody");
    const heads = ["run", "settings", "held out", "seen", "steps", ""];
    const row = html("tr", {}, ...heads.map((text) => html(text ? "th" : "td", { scope: text ? "col" : null }, text)));
    const table = html("table", { class: "nmd-table" }, html("thead", {}, row), this.body);
    this.element = html("div", { class: "nmd-runs" }, table);
  }

  show(runs) {
    this.element.hidden = !runs?.length;
    if (this.element.hidden || runs === this.runs) return;
    this.runs = runs;
    const at = [...this.body.querySelectorAll("button")].findIndex((each) => each.matches(":focus"));
    this.body.replaceChildren(...runs.map((run) => this.line(run)));
    this.body.querySelectorAll("button")[at]?.focus();
  }

  line(run) {
    const { number, settings, error, held_out, iterations, current, overlaid, beside } = run;
    const button = (what, text, pressed) => html("button", {
      type: "button", "aria-pressed": pressed === null ? null : String(pressed), "aria-label": `run ${number}: ${text}`, title: text,
      disabled: current && what !== "beside", click: () => this.send({ do: "history", number, what }),
    }, { overlay: "curve", beside: "beside", back: "back" }[what]);
    const cells = [settings, held_out, error, iterations].map((text) => html("td", {}, String(text)));
    const buttons = html("td", {}, button("overlay", "draw its curves, too", overlaid),
      button("beside", "show its picture beside", beside), button("back", "go back to it", null));
    return html("tr", { "aria-current": current ? "true" : null }, html("th", { scope: "row" }, String(number)), ...cells, buttons);
  }
}
