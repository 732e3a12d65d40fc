// The frame of an explorer, whose parts never move: bar, stage, inspector with tabs, strip of components.

import { colorParts, html } from "./dom.mjs";
import { Controls } from "./controls.mjs";
import { Curves } from "./curves.mjs";
import { Pictures } from "./pictures.mjs";
import { Components } from "./components.mjs";
import { DotChart } from "./dots.mjs";
import { Scatter } from "./scatter.mjs";
import { CellBox, Grid } from "./grid.mjs";
import { Runs, Tables } from "./runs.mjs";

const RESTARTED = "The kernel was restarted or has ended: run the cell again to work with this explorer.";
const FILES = ".csv,.tsv,.txt,.gz,.data,.npy,.npz,.mtx,.nc,.png,.jpg,.jpeg,.tif,.tiff,.bmp";

const MOST_BYTES = 8e6; // of an upload: servers of notebooks take messages of 10 MiB

const PARTS = [
  "controls", "status", "facts", "pictures", "modelled", "grid", "curves", "components", "scatter", "drawing", "dots", "tables", "runs",
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

const TABS = { error: "Error", why: "Why this rank", sure: "How sure", runs: "Runs", solver: "⚙" };
const TAB_STEPS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
const IN_BAR = ["run", "stop"];

let pageCount = 0;

/** Panels of which one is shown: a panel replaces another, and nothing moves. */
class Tabs {
  constructor(panels, opened) {
    const id = `nmd-tabs-${(pageCount += 1)}`;
    this.panels = panels;
    this.opened = opened;
    this.buttons = Object.fromEntries(Object.keys(panels).map((name) => [name, html("button", {
      type: "button", role: "tab", id: `${id}-${name}`, "aria-controls": `${id}-${name}-panel`, click: () => this.open(name),
    }, TABS[name])]));
    this.buttons.solver?.setAttribute("aria-label", "Solver");
    for (const [name, panel] of Object.entries(panels)) {
      const about = { role: "tabpanel", id: `${id}-${name}-panel`, "aria-labelledby": `${id}-${name}`, tabindex: 0 };
      for (const [attribute, value] of Object.entries(about)) panel.setAttribute(attribute, value);
    }
    const list = html("div", { class: "nmd-tablist", role: "tablist", "aria-label": "inspector", keydown: (event) => this.step(event) },
      ...Object.values(this.buttons));
    this.element = html("aside", { class: "nmd-inspector", "aria-label": "inspector" }, list, ...Object.values(panels));
    this.open("error", false);
  }

  open(name, told = true) {
    this.at = name;
    for (const [each, button] of Object.entries(this.buttons)) {
      button.setAttribute("aria-selected", String(each === name));
      button.tabIndex = each === name ? 0 : -1;
      this.panels[each].hidden = each !== name;
    }
    if (told) this.opened(name);
  }

  step(event) {
    const shown = Object.values(this.buttons).filter((button) => !button.hidden), by = TAB_STEPS[event.key];
    const at = shown.indexOf(event.target.closest("[role=tab]"));
    if (by === undefined || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    shown[Math.min(shown.length - 1, Math.max(0, at + by))].focus();
  }

  /** Hide tabs that have no use for this explorer. */
  allow(names) {
    for (const [name, button] of Object.entries(this.buttons)) button.hidden = !names.includes(name);
    if (!names.includes(this.at)) this.open(names[0], false);
  }
}

/** Everything in the frame. */
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
    this.send = send;
    this.controls = new Controls((name, value) => send({ do: "set", name, value }));
    this.query = new Controls((name, value) => send({ do: "ask", name, value }), "which row");
    this.progress = html("progress", { max: 1, value: 0, "aria-label": "progress of the run" });
    this.said = html("div", { class: "nmd-status", role: "status", "aria-live": "polite" });
    this.notes = html("div", { class: "nmd-notes", role: "status" });
    this.reason = html("p", { class: "nmd-choice" });
    const parts = { pictures: Pictures, grid: Grid, cell: CellBox, curves: Curves, components: Components, scatter: Scatter, tables: Tables, found: Tables, doubts: Tables, runs: Runs };
    for (const [name, Part] of Object.entries(parts)) this[name] = new Part(send);
    this.charts = {};
    this.buttons = {};
    this.choosing = html("div", { class: "nmd-asks" });
    this.unsure = html("p", { class: "nmd-choice" });
    this.asking = html("div", { class: "nmd-asks" });
    this.mending = html("div", { class: "nmd-mending", role: "group", "aria-label": "what to do with the data" });
    const panel = (...children) => html("div", { class: "nmd-panel" }, ...children);
    const panels = {
      error: panel(this.notes, this.curves.element, this.found.element), why: panel(this.choosing, this.reason), sure: panel(this.cell.element, this.asking, this.unsure, this.doubts.element),
      runs: panel(this.runs.element, this.keeper()), solver: panel(this.controls.element, this.opener(), this.curves.solver),
    };
    this.places = { ranks: panels.why, alphas: panels.why, intervals: panels.sure };
    this.tabs = new Tabs(panels, (name) => name === "sure" && this.ask());
    this.you = html("button", { type: "button", class: "nmd-you", click: () => send({ do: "ask", name: "row", value: this.person }) }, "☆ rate some yourself");
    this.lists = html("div", { class: "nmd-lists" }, html("div", { class: "nmd-query" }, this.query.element, this.you), this.tables.element);
    this.stage = html("section", { class: "nmd-stage", "aria-label": "data and model" },
      this.turn(), this.mending, this.pictures.element, this.grid.element, this.lists, this.scatter.element);
    this.frame = html("div", { class: "nmd-frame" }, this.bar(), this.progress, this.said, this.stage, this.tabs.element, this.components.element);
    el.append(this.frame);
  }

  /** Return the bar: the data, the model, one number, and what can be done. */
  bar() {
    this.about = html("div", { class: "nmd-about" }, html("strong"), html("span"));
    this.headline = html("output", { class: "nmd-headline" });
    this.running = html("span", { class: "nmd-running-buttons" });
    this.menu = html("div", { class: "nmd-menu-list", role: "group", "aria-label": "more ways to run" });
    const close = (event) => { if (!this.more.contains(event.relatedTarget)) this.more.open = false; };
    this.more = html("details", { class: "nmd-menu", focusout: close, click: (event) => { if (event.target.closest("button")) this.more.open = false; },
      keydown: (event) => { if (event.key === "Escape") { this.more.open = false; this.more.firstChild.focus(); } } },
    html("summary", { "aria-label": "more ways to run", title: "find the rank, find everything, and more" }, "▾"), this.menu);
    this.copying = html("button", { type: "button", class: "nmd-copy-button", title: "Copy the code that repeats this", click: () => this.copy() }, "code");
    this.saving = html("button", { type: "button", class: "nmd-save-result", click: () => this.send({ do: "save", filename: this.filename.value }) }, "save");
    this.actions = html("div", { class: "nmd-toolbar", role: "group", "aria-label": "run" }, this.running, this.more, this.copying, this.saving);
    return html("div", { class: "nmd-bar" }, this.about, this.headline, this.actions);
  }

  /** Return what turns from the pictures to the plane where there is no room for both. */
  turn() {
    const button = (name, pressed) => html("button", { type: "button", "aria-pressed": String(pressed), click: () => {
      this.stage.dataset.side = name;
      for (const each of turn.children) each.setAttribute("aria-pressed", String(each.textContent === name));
    } }, name);
    const turn = html("div", { class: "nmd-turn", role: "group", "aria-label": "what the stage shows" }, button("data", true), button("plane", false));
    return turn;
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

  /** Return the name of the file that Save writes, and the code. */
  keeper() {
    this.filename = html("input", { type: "text", class: "nmd-filename", "aria-label": "file that Save writes" });
    this.code = html("textarea", { readonly: true, class: "nmd-code", spellcheck: "false", "aria-label": "code that repeats this" });
    return html("div", { class: "nmd-keeper" }, html("label", {}, "save as ", this.filename), this.code);
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.code.value);
    } catch {
      this.tabs.open("runs");
      this.code.select();
      document.execCommand("copy");
    }
    this.copying.textContent = "copied";
    setTimeout(() => { this.copying.textContent = "code"; }, 1500);
  }

  /** Ask how sure the model is when the tab is opened, unless that was asked before. */
  ask() {
    if (this.buttons.sample && !this.buttons.sample.disabled && !this.model.get("dots")?.intervals) this.send({ do: "sample" });
  }

  /** Show the parts of the page that have changed; all of them without names. */
  show() {
    const get = (name) => this.model.get(name), selection = get("selection"), facts = get("facts") ?? {};
    const pictures = get("pictures"), dots = get("dots") ?? {}, tables = get("tables") ?? [];
    const grid = get("grid");
    const stage = grid ? "table" : dots.study ? "study" : pictures?.count ? "pictures" : facts.query ? "ratings" : "pictures";
    this.frame.dataset.stage = stage;
    this.controls.show(get("controls"));
    this.status(get("status"), stage);
    const picked = selection && { row: selection.row ?? null, column: selection.pixel ?? selection.column ?? null };
    const inMatrix = pictures?.layout === "matrix" && selection;
    this.grid.show(grid, selection);
    if (this.cell.show(facts.cell)) this.tabs.open("sure", false);
    this.pictures.show(grid ? null : pictures, get("modelled"), inMatrix ? { row: selection.row, column: selection.column } : picked);
    this.showCharts(dots, facts.point ?? null);
    this.curves.show(get("curves"), facts);
    this.components.show(get("components"));
    this.scatter.show(get("scatter"), selection?.rows?.length ? selection.rows : [selection?.row].filter((row) => row !== null && row !== undefined));
    this.scatter.drawing.show(get("drawing"), pictures);
    this.scatter.element.hidden = stage === "study";
    this.ask_how(facts.asked);
    this.lists.hidden = !facts.query;
    this.query.show(facts.query);
    this.person = facts.you ?? "you";
    this.you.setAttribute("aria-pressed", String(Boolean(facts.you)));
    this.tables.show(facts.query ? tables : [], selection?.column);
    this.found.show(facts.query ? [] : tables.filter(({ name }) => name !== "unsure"), selection?.column);
    this.doubts.show(tables.filter(({ name }) => name === "unsure"));
    this.runs.show(get("runs"));
    const code = get("code_text") ?? "";
    if (this.code.value !== code) this.code.value = code;
    this.stage.querySelector(".nmd-turn").hidden = stage === "study";
  }

  /** Show what is wrong with the data, and a button for each way to put it right. */
  ask_how(asked) {
    this.mending.hidden = !asked;
    const way = (text) => html("button", { type: "button", click: () => this.send({ do: "mend", way: text }) }, text);
    this.mending.replaceChildren(html("p", {}, asked?.fault ?? ""), ...(asked?.ways ?? []).map(way));
  }

  status(status, stage) {
    if (!status || status === this.shownStatus) return;
    this.shownStatus = status;
    const { phase, message, failed, done, planned, left, warnings, notes, buttons, save, filename, headline, title, model } = status;
    const names = Object.keys(buttons);
    if (names.join() !== Object.keys(this.buttons).join()) this.rebuild(buttons);
    for (const name of names) Object.assign(this.buttons[name], { disabled: buttons[name].disabled, title: buttons[name].title });
    Object.assign(this.progress, { max: planned, value: Math.min(done, planned) });
    this.progress.style.visibility = phase === "running" ? "visible" : "hidden";
    this.say(left ? `${message}, ${left}` : message, failed ? "failed" : phase, warnings);
    this.about.title = `${title}: ${model}`;
    this.about.children[0].textContent = title;
    this.about.children[1].textContent = model;
    this.headline.replaceChildren(...(headline ? [html("strong", {}, headline.value), ` ${headline.text} `, html("span", {}, headline.rivals)] : []));
    this.headline.classList.toggle("nmd-warning", Boolean(headline?.worse));
    this.headline.title = headline ? `${headline.value} ${headline.text} ${headline.rivals}` : "";
    this.notes.replaceChildren(...warnings.map((text) => html("div", { class: "nmd-warning" }, `Warning: ${text}`)));
    this.reason.textContent = notes[0] ?? "";
    this.unsure.textContent = buttons.sample?.disabled && phase !== "running" ? buttons.sample.title : "";
    const uses = { why: names.includes("choose") || this.charts.ranks, sure: names.includes("sample") || this.charts.intervals, solver: this.model.get("controls")?.length };
    this.tabs.allow(Object.keys(TABS).filter((name) => !(name in uses) || uses[name]));
    this.tabs.buttons.error.textContent = stage === "study" ? "Point" : TABS.error;
    Object.assign(this.saving, { disabled: Boolean(save), title: save || "Write the result to the file" });
    if (filename !== this.offered) this.filename.value = this.offered = filename;
  }

  /** Show the status line; a warning stands behind it, and in the inspector. */
  say(message, kind, warnings = []) {
    const more = warnings.length ? html("span", { class: "nmd-warning" }, ` ⚠ ${warnings[0]}`) : "";
    this.said.replaceChildren(message, more);
    this.said.title = [message, ...warnings].join("\n");
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
    const { sample, ...others } = this.buttons, rest = Object.entries(others).filter(([name]) => !IN_BAR.includes(name)).map(([, each]) => each);
    this.running.replaceChildren(...IN_BAR.filter((name) => this.buttons[name]).map((name) => this.buttons[name]));
    this.menu.replaceChildren(...rest);
    this.more.hidden = !rest.length;
    this.asking.replaceChildren(...(sample ? [sample] : []));
  }

  showCharts(charts, point) {
    for (const name of Object.keys(charts)) {
      if (this.charts[name]) continue;
      this.charts[name] = new DotChart(this.send, name);
      (this.places[name] ?? this.stage).append(this.charts[name].element);
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
  page.send({ do: "opened" });
  return () => {
    theme.disconnect();
    for (const part of PARTS) model.off(`change:${part}`, change);
    model.off("comm_live_update", ended);
  };
}

export default { render };
