// Inputs with a label, a note that says what is wrong, and "auto" beside numbers.

import { html } from "./dom.mjs";

let inputCount = 0;

/** One input; `enter(name, value)` hears of what the user enters. */
class Control {
  constructor(field, enter) {
    const id = `nmd-input-${(inputCount += 1)}`;
    this.field = field;
    this.note = html("div", { class: "nmd-note", id: `${id}-note` });
    this.input = this.make(id, enter);
    this.input.setAttribute("aria-describedby", `${id}-note`);
    this.shown = field.kind === "share" ? html("output", { for: id }) : null;
    this.auto = field.auto
      ? html("button", {
        type: "button", class: "nmd-auto", title: `Choose the ${field.label} by held-out entries`, "aria-pressed": "false",
        click: () => enter(field.name, this.auto.getAttribute("aria-pressed") === "true" ? "" : "auto"),
      }, "auto")
      : null;
    const label = html("label", { for: id, title: field.help }, field.label);
    const line = html("div", { class: "nmd-line" }, label, this.input, this.shown, this.auto);
    this.element = html("div", { class: `nmd-control nmd-${field.name.replaceAll("_", "-")}` }, line, this.note);
  }

  make(id, enter) {
    const { name, kind, help, searched } = this.field;
    const change = () => {
      if (searched) this.value = null; // what was found is no longer to be read
      enter(name, kind === "share" ? Number(this.input.value) : this.input.value.trim());
    };
    if (kind === "choice") return html("select", { id, title: help, change });
    if (kind === "share") {
      const input = () => { this.shown.textContent = this.input.value; };
      return html("input", { id, type: "range", min: 0, max: 0.95, step: 0.05, title: help, change, input });
    }
    if (kind !== "text") return html("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", title: help, change });
    this.list = html("datalist", { id: `${id}-list` });
    const look = () => searched && enter("search", input.value);
    const input = html("input", { id, type: "text", list: `${id}-list`, autocomplete: "off", title: help, change, input: look });
    input.append(this.list);
    return input;
  }

  /** Show the value that Python has, unless the user is just entering another. */
  show(field) {
    const { options, problem, reason } = field, isAuto = field.auto && field.value === "auto";
    const listed = JSON.stringify(options);
    if (listed !== this.listed) {
      this.listed = listed;
      const made = options.map(([value, label]) => html("option", { value }, this.list ? "" : label));
      (this.list ?? this.input).replaceChildren(...(this.list || this.field.kind === "choice" ? made : []));
    }
    const value = String(isAuto ? "" : field.value);
    if (this.value !== value || !this.input.matches(":focus")) this.input.value = value;
    this.value = value;
    if (this.shown) this.shown.textContent = this.input.value;
    this.input.disabled = isAuto;
    this.input.placeholder = isAuto ? "auto" : "";
    this.input.setAttribute("aria-invalid", String(Boolean(problem)));
    if (this.auto) {
      this.auto.setAttribute("aria-pressed", String(isAuto));
      this.auto.setAttribute("aria-label", `${this.field.label}: choose by held-out entries`);
    }
    this.note.textContent = problem;
    this.note.hidden = !problem;
    this.element.hidden = Boolean(reason);
    this.element.classList.toggle("nmd-wrong", Boolean(problem));
  }
}

/** Groups of controls with headings. */
export class Controls {
  constructor(enter, name = "settings") {
    this.enter = enter;
    this.element = html("div", { class: "nmd-controls", role: "group", "aria-label": name });
    this.known = "";
  }

  show(fields) {
    this.element.hidden = !fields?.length;
    if (this.element.hidden) return;
    const known = fields.map(({ name, kind }) => `${name}:${kind}`).join();
    if (known !== this.known) this.rebuild(fields);
    this.known = known;
    fields.forEach((field, k) => this.controls[k].show(field));
    for (const { heading, group } of this.headings) heading.hidden = fields.every((field) => field.group !== group || field.reason);
  }

  rebuild(fields) {
    this.controls = fields.map((field) => new Control(field, this.enter));
    const parts = [];
    this.headings = [];
    fields.forEach(({ group }, k) => {
      if (group && group !== fields[k - 1]?.group) {
        this.headings.push({ group, heading: html("div", { class: "nmd-heading" }, group) });
        parts.push(this.headings.at(-1).heading);
      }
      parts.push(this.controls[k].element);
    });
    this.element.replaceChildren(...parts);
  }
}
