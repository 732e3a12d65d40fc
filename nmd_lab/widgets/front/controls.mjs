// Inputs with a label, a note that says what is wrong, and "auto" beside numbers.

import { button, html, set } from "./dom.mjs";

let inputCount = 0;

/** One input; `enter(name, value)` hears of what the user enters. */
class Control {
  constructor(field, enter) {
    const id = `nmd-input-${(inputCount += 1)}`, { name, label, kind, help } = field;
    this.field = field;
    this.note = html("div.nmd-note", { id: `${id}-note` });
    this.input = this.make(id, enter);
    this.shown = kind === "share" ? html("output", { for: id }) : null;
    this.auto = field.auto
      ? button("auto", () => enter(name, this.isAuto ? "" : "auto"), { class: "nmd-auto",
        title: `Choose the ${label} by held-out entries`, "aria-label": `${label}: choose by held-out entries` })
      : null;
    const labelled = html("label", { for: id, title: help }, label);
    const line = html("div.nmd-line", labelled, this.input, this.shown, this.auto);
    this.element = html(`div.nmd-control.nmd-${name.replaceAll("_", "-")}`, line, this.note);
  }

  make(id, enter) {
    const { name, kind, help: title, searched } = this.field;
    const change = () => {
      if (searched) this.value = null; // what was found is no longer to be read
      enter(name, kind === "share" ? Number(this.input.value) : this.input.value.trim());
    };
    const about = { id, title, change, "aria-describedby": `${id}-note` };
    if (kind === "choice") return html("select", about);
    if (kind === "share") {
      const input = () => { this.shown.textContent = this.input.value; };
      return html("input", { ...about, type: "range", min: 0, max: 0.95, step: 0.05, input });
    }
    Object.assign(about, { type: "text", autocomplete: "off" });
    if (kind !== "text") return html("input", { ...about, inputmode: "decimal" });
    this.list = html("datalist", { id: `${id}-list` });
    const input = () => searched && enter("search", this.input.value);
    return html("input", { ...about, list: `${id}-list`, input }, this.list);
  }

  /** Show the value that Python has, unless the user is just entering another. */
  show({ options, problem, unused, auto, value: given }) {
    const listed = JSON.stringify(options), place = this.list ?? this.input;
    this.isAuto = auto && given === "auto";
    if (listed !== this.listed && (this.list || this.field.kind === "choice")) {
      place.replaceChildren(...options.map(([value, label]) => html("option", { value }, this.list ? "" : label)));
    }
    this.listed = listed;
    const value = String(this.isAuto ? "" : given);
    if (this.value !== value || !this.input.matches(":focus")) this.input.value = value;
    this.value = value;
    if (this.shown) this.shown.textContent = this.input.value;
    set(this.input, { disabled: this.isAuto, placeholder: this.isAuto ? "auto" : null, "aria-invalid": Boolean(problem) });
    this.auto?.setAttribute("aria-pressed", this.isAuto);
    this.note.textContent = problem;
    this.note.hidden = !problem;
    this.element.hidden = unused;
    this.element.classList.toggle("nmd-wrong", Boolean(problem));
  }
}

/** Groups of controls with headings. */
export class Controls {
  constructor(enter, name = "settings") {
    this.enter = enter;
    this.element = html("div.nmd-controls", { role: "group", "aria-label": name });
  }

  show(fields) {
    this.element.hidden = !fields?.length;
    if (this.element.hidden) return;
    const known = fields.map(({ name, kind }) => `${name}:${kind}`).join();
    if (known !== this.known) this.rebuild(fields);
    this.known = known;
    fields.forEach((field, k) => this.controls[k].show(field));
    for (const [name, heading] of Object.entries(this.headings)) {
      heading.hidden = fields.every(({ group, unused }) => group !== name || unused);
    }
  }

  rebuild(fields) {
    const names = [...new Set(fields.map(({ group }) => group).filter(Boolean))];
    this.headings = Object.fromEntries(names.map((name) => [name, html("div.nmd-heading", name)]));
    this.controls = fields.map((field) => new Control(field, this.enter));
    this.element.replaceChildren(...this.controls.map(({ element }) => element));
    for (const name of names) this.controls.find(({ field }) => field.group === name).element.before(this.headings[name]);
  }
}
