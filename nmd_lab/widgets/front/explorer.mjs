// The page of an explorer: controls on the left, the run and what it found on the right.

import { colorParts, html } from "./dom.mjs";
import { Controls } from "./controls.mjs";
import { Curves } from "./curves.mjs";
import { Pictures } from "./pictures.mjs";
import { Components } from "./components.mjs";
import { DotChart } from "./dots.mjs";
import { Scatter } from "./scatter.mjs";
import { Runs, Tables } from "./runs.mjs";

const RESTARTED = "The kernel was restarted or has ended: run the cell again to work with this explorer.";
const FILES = ".csv,.tsv,.txt,.gz,.data,.npy,.npz,.mtx,.nc,.png,.jpg,.jpeg,.tif,.tiff,.bmp";

const MOST_BYTES = 8e6; // of an upload: servers of notebooks take messages of 10 MiB

const PARTS = [
  "controls", "status", "facts", "pictures", "modelled", "curves", "components", "scatter", "dots", "tables", "runs",
  "code_text", "selection",
];

/** Return whether the page behind an element is dark. */
function isDark(element) {
  for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
    const [red, green, blue, opacity] = colorParts(getComputedStyle(at).backgroundColor);
    if (opacity > 128) return 0.3 * red + 0.59 * green + 0.11 * blue < 128;
  }
  return false;
}

/** Everything between the buttons and the end of the page. */
class Page {
  constructor(model, el) {
    this.model = model;
    const send = (message, buffers) => {
      try {
        model.send(message, undefined, buffers)?.catch?.(() => this.ended());
      } catch {
        this.ended();
      }
    };
    const enter = (name, value) => send({ do: "set", name, value });
    this.controls = new Controls(enter);
    this.query = new Controls((name, value) => send({ do: "ask", name, value }), "which row");
    this.toolbar = html("div", { class: "nmd-toolbar", role: "group", "aria-label": "run" });
    this.progress = html("progress", { max: 1, value: 0, "aria-label": "progress of the run" });
    this.said = html("div", { class: "nmd-status", role: "status", "aria-live": "polite" });
    this.notes = html("div", { class: "nmd-notes", role: "status" });
    this.slider = html("input", { type: "range", "aria-label": "iteration that is shown", min: 0, step: 1 });
    this.slider.addEventListener("input", () => send({ do: "iteration", iteration: this.iterations[this.slider.value] }));
    this.at = html("output");
    this.sliderLine = html("div", { class: "nmd-slider" }, "iteration ", this.slider, this.at);
    const parts = { pictures: Pictures, curves: Curves, components: Components, scatter: Scatter, tables: Tables, runs: Runs };
    for (const [name, Part] of Object.entries(parts)) this[name] = new Part(send);
    this.dots = html("div", { class: "nmd-charts" });
    this.charts = {};
    this.send = send;
    const main = html("div", { class: "nmd-main" }, this.toolbar, this.said, this.notes, this.pictures.element, this.sliderLine,
      this.dots, this.curves.element, this.components.element, this.scatter.element, this.query.element,
      this.tables.element, this.runs.element, this.footer());
    el.append(html("div", { class: "nmd-columns" }, html("div", { class: "nmd-side" }, this.controls.element, this.opener()), main));
    this.buttons = {};
  }

  /** Return what opens a file: by upload, by a drop, or by its path. */
  opener() {
    const read = async (file) => {
      if (!file) return;
      if (file.size > MOST_BYTES) this.say(`${file.name} is too large for an upload: give its path.`, "failed");
      else this.send({ do: "open", name: file.name }, [await file.arrayBuffer()]);
    };
    const file = html("input", { type: "file", accept: FILES, "aria-label": "file to upload", change: () => read(file.files[0]) });
    const path = html("input", { type: "text", placeholder: "path on the kernel's machine", "aria-label": "path of a file" });
    path.addEventListener("change", () => path.value && this.send({ do: "open", name: path.value }));
    return html("details", {
      class: "nmd-opener", dragover: (event) => event.preventDefault(),
      drop: (event) => { event.preventDefault(); read(event.dataTransfer.files[0]); },
    }, html("summary", {}, "Open a file"), file, path);
  }

  /** Return what saves the result and copies the code. */
  footer() {
    this.filename = html("input", { type: "text", class: "nmd-filename", "aria-label": "file that Save writes" });
    this.saving = html("button", { type: "button", class: "nmd-save-result", click: () => this.send({ do: "save", filename: this.filename.value }) }, "Save");
    this.code = html("textarea", { readonly: true, class: "nmd-code", spellcheck: "false", "aria-label": "code that repeats this" });
    this.copying = html("button", { type: "button", class: "nmd-copy-button", click: () => this.copy() }, "Copy as code");
    this.details = html("details", { class: "nmd-copy" }, html("summary", {}, "Show the code"), this.code);
    return html("div", { class: "nmd-footer" }, this.filename, this.saving, this.copying, this.details);
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.code.value);
    } catch {
      this.details.open = true;
      this.code.select();
      document.execCommand("copy");
    }
    this.copying.textContent = "Copied";
    setTimeout(() => { this.copying.textContent = "Copy as code"; }, 1500);
  }

  /** Show the parts of the page that have changed; all of them without names. */
  show() {
    const get = (name) => this.model.get(name), selection = get("selection"), facts = get("facts") ?? {};
    this.controls.show(get("controls"));
    this.status(get("status"));
    const picked = selection && { row: selection.row ?? null, column: selection.pixel ?? selection.column ?? null };
    const inMatrix = get("pictures")?.layout === "matrix" && selection;
    this.pictures.show(get("pictures"), get("modelled"), inMatrix ? { row: selection.row, column: selection.column } : picked);
    this.showIterations(facts);
    this.showCharts(get("dots") ?? {}, facts.point ?? null);
    this.curves.show(get("curves"));
    this.components.show(get("components"));
    this.scatter.show(get("scatter"), selection?.rows?.length ? selection.rows : [selection?.row].filter((row) => row !== null && row !== undefined));
    this.query.show(facts.query);
    this.tables.show(get("tables"), selection?.column);
    this.runs.show(get("runs"));
    const code = get("code_text") ?? "";
    if (this.code.value !== code) Object.assign(this.code, { value: code, rows: Math.min(24, code.split("\n").length) });
  }

  status(status) {
    if (!status || status === this.shownStatus) return;
    this.shownStatus = status;
    const { phase, message, failed, done, planned, left, warnings, notes, buttons, save, filename } = status;
    const names = Object.keys(buttons);
    if (names.join() !== Object.keys(this.buttons).join()) this.rebuild(buttons);
    for (const name of names) Object.assign(this.buttons[name], { disabled: buttons[name].disabled, title: buttons[name].title });
    Object.assign(this.progress, { max: planned, value: Math.min(done, planned) });
    this.toolbar.hidden = !names.length;
    this.say(left ? `${message}, ${left}` : message, failed ? "failed" : phase);
    const lines = [...notes.map((text) => ["nmd-choice", text]), ...warnings.map((text) => ["nmd-warning", `Warning: ${text}`])];
    this.notes.replaceChildren(...lines.map(([kind, text]) => html("div", { class: kind }, text)));
    Object.assign(this.saving, { disabled: Boolean(save), title: save || "Write the result to the file" });
    if (filename !== this.offered) this.filename.value = this.offered = filename;
  }

  say(message, kind) {
    this.said.textContent = message;
    this.said.className = `nmd-status nmd-${kind}`;
  }

  /** Say that nobody listens any more. */
  ended() {
    this.say(RESTARTED, "failed");
    for (const button of Object.values(this.buttons)) button.disabled = true;
  }

  rebuild(buttons) {
    this.buttons = {};
    for (const [name, { label }] of Object.entries(buttons)) {
      this.buttons[name] = html("button", { type: "button", class: `nmd-${name}`, click: () => this.send({ do: name }) }, label);
    }
    this.toolbar.replaceChildren(...Object.values(this.buttons), this.progress);
  }

  showIterations({ iterations, iteration }) {
    this.iterations = iterations ?? [];
    this.sliderLine.hidden = this.iterations.length < 2;
    if (this.sliderLine.hidden) return;
    this.slider.max = this.iterations.length - 1;
    const at = this.iterations.indexOf(iteration);
    this.slider.value = at < 0 ? this.iterations.length - 1 : at;
    this.slider.setAttribute("aria-valuetext", `iteration ${iteration}`);
    this.at.textContent = iteration;
  }

  showCharts(charts, point) {
    for (const name of Object.keys(charts)) {
      if (this.charts[name]) continue;
      this.charts[name] = new DotChart(this.send, name);
      this.dots.append(this.charts[name].element);
    }
    for (const [name, chart] of Object.entries(this.charts)) chart.show(charts[name] ?? null, point);
  }
}

function render({ model, el }) {
  el.classList.add("nmd-explorer");
  // Keys belong to the controls: JupyterLab would take arrows, letters and more for its shortcuts
  el.addEventListener("keydown", (event) => event.ctrlKey || event.metaKey || event.stopPropagation());
  // A picture for readers without a kernel is not needed beside the living explorer
  el.append(html("style", {}, `.nmd-static[data-explorer="${model.get("static_id")}"] { display: none; }`));
  const page = new Page(model, el);
  let asked = false;
  const show = () => {
    asked = false;
    if (el.isConnected) el.dataset.theme = isDark(el) ? "dark" : "light";
    page.show();
  };
  const change = () => {
    if (!asked) requestAnimationFrame(show);
    asked = true;
  };
  const ended = () => page.ended();
  const theme = new MutationObserver(change);
  for (const each of [document.documentElement, document.body]) theme.observe(each, { attributes: true });
  for (const part of PARTS) model.on(`change:${part}`, change);
  model.on("comm_live_update", ended);
  show();
  change();
  return () => {
    theme.disconnect();
    for (const part of PARTS) model.off(`change:${part}`, change);
    model.off("comm_live_update", ended);
  };
}

export default { render };
