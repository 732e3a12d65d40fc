// The frame of an explorer, whose parts never move: bar, stage, inspector with tabs, strip of components.

import { button, clamp, html, isDark, keyOf, set } from "./dom.mjs";
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

const PARTS = ["controls", "status", "facts", "pictures", "modelled", "grid", "curves", "components", "scatter", "drawing",
  "dots", "tables", "runs", "code_text", "selection"];

const TABS = { error: "Error", why: "Why this rank", sure: "How sure", runs: "Runs", solver: "⚙" };
const TAB_STEPS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

let pageCount = 0;

/** Panels of which one is shown: a panel replaces another, and nothing moves. */
class Tabs {
  constructor(panels, opened) {
    const id = `nmd-tabs-${(pageCount += 1)}`;
    Object.assign(this, { panels, opened, buttons: {} });
    for (const [name, panel] of Object.entries(panels)) {
      const about = { role: "tab", id: `${id}-${name}`, "aria-controls": `${id}-${name}-panel` };
      this.buttons[name] = button(TABS[name], () => this.open(name), about);
      set(panel, { role: "tabpanel", id: about["aria-controls"], "aria-labelledby": about.id, tabindex: 0 });
    }
    this.buttons.solver.setAttribute("aria-label", "Solver");
    const list = html("div.nmd-tablist", { role: "tablist", "aria-label": "inspector",
      keydown: (event) => this.step(event) }, ...Object.values(this.buttons));
    this.element = html("aside.nmd-inspector", { "aria-label": "inspector" }, list, ...Object.values(panels));
    this.open("error", false);
  }

  open(name, told = true) {
    this.at = name;
    for (const [each, tab] of Object.entries(this.buttons)) {
      set(tab, { "aria-selected": each === name, tabindex: each === name ? 0 : -1 });
      this.panels[each].hidden = each !== name;
    }
    if (told) this.opened(name);
  }

  step(event) {
    const shown = Object.values(this.buttons).filter((tab) => !tab.hidden), at = shown.indexOf(event.target);
    const by = keyOf(event, TAB_STEPS);
    if (by) shown[clamp(at + by, 0, shown.length - 1)].focus();
  }

  /** Hide tabs that have no use for this explorer. */
  allow(names) {
    for (const [name, tab] of Object.entries(this.buttons)) tab.hidden = !names.includes(name);
    if (!names.includes(this.at)) this.open(names[0], false);
  }
}

/** Everything in the frame. */
class Page {
  constructor(model, el) {
    this.model = model;
    const send = this.send = (message, buffers) => {
      try {
        model.send(message, undefined, buffers)?.catch?.(() => this.ended());
      } catch {
        this.ended();
      }
    };
    const parts = { pictures: Pictures, grid: Grid, cell: CellBox, curves: Curves, components: Components,
      scatter: Scatter, tables: Tables, found: Tables, doubts: Tables, runs: Runs };
    for (const [name, Part] of Object.entries(parts)) this[name] = new Part(send);
    this.charts = {};
    this.buttons = {};
    this.progress = html("progress", { max: 1, value: 0, "aria-label": "progress of the run" });
    this.said = html("div.nmd-status", { role: "status", "aria-live": "polite" });
    this.frame = html("div.nmd-frame", this.bar(), this.progress, this.said, this.middle(),
      this.inspector(), this.components.element);
    el.append(this.frame);
  }

  /** Return the bar: the data, the model, one number, and what can be done. */
  bar() {
    this.about = html("div.nmd-about", html("strong"), html("span"));
    this.headline = html("output.nmd-headline");
    this.running = html("span.nmd-running-buttons");
    this.menu = html("div.nmd-menu-list", { role: "group", "aria-label": "more ways to run" });
    const about = { "aria-label": "more ways to run", title: "find the rank, find everything, and more" };
    const summary = html("summary", about, "▾"), close = (isOver) => { if (isOver) this.more.open = false; };
    this.more = html("details.nmd-menu", {
      focusout: (event) => close(!this.more.contains(event.relatedTarget)),
      click: (event) => close(event.target.closest("button")),
      keydown: (event) => {
        close(event.key === "Escape");
        if (event.key === "Escape") summary.focus();
      },
    }, summary, this.menu);
    const title = "Copy the code that repeats this";
    this.copying = button("code", () => this.copy(), { class: "nmd-copy-button", title });
    this.saving = button("save", () => this.send({ do: "save", filename: this.filename.value }));
    const actions = html("div.nmd-toolbar", { role: "group", "aria-label": "run" },
      this.running, this.more, this.copying, this.saving);
    return html("div.nmd-bar", this.about, this.headline, actions);
  }

  /** Return the stage: pictures, a table or lists, and the plane. */
  middle() {
    const { send } = this, rate = () => {
      this.say("one moment …", "running");
      this.shownStatus = null;  // the next one is shown, even if it is the same
      send({ do: "ask", name: "row", value: this.person });
    };
    // Where there is no room for both, two buttons turn from the pictures to the plane
    const sides = ["data", "plane"].map((name) => button(name, () => {
      this.stage.dataset.side = name;
      for (const each of sides) each.setAttribute("aria-pressed", each.textContent === name);
    }, { "aria-pressed": name === "data" }));
    this.turn = html("div.nmd-turn", { role: "group", "aria-label": "what the stage shows" }, ...sides);
    this.mending = html("div.nmd-mending", { role: "group", "aria-label": "what to do with the data" });
    this.query = new Controls((name, value) => send({ do: "ask", name, value }), "which row");
    this.you = button("☆ rate some yourself", rate);
    this.lists = html("div.nmd-lists", html("div.nmd-query", this.you, this.query.element), this.tables.element);
    this.stage = html("section.nmd-stage", { "aria-label": "data and model" },
      this.turn, this.mending, this.pictures.element, this.grid.element, this.lists, this.scatter.element);
    return this.stage;
  }

  /** Return the inspector beside the stage. */
  inspector() {
    const panel = (...children) => html("div.nmd-panel", ...children);
    this.controls = new Controls((name, value) => this.send({ do: "set", name, value }));
    this.notes = html("div", { role: "status" });
    this.reason = html("p.nmd-choice");
    this.asking = html("div.nmd-asks");
    this.unsure = html("p.nmd-choice");
    this.filename = html("input", { type: "text", "aria-label": "file that Save writes" });
    this.code = html("textarea", { readonly: true, spellcheck: "false", "aria-label": "code that repeats this" });
    const keeper = html("div.nmd-keeper", html("label", "save as ", this.filename), this.code);
    const panels = {
      error: panel(this.notes, this.curves.element, this.found.element),
      why: panel(this.reason),
      sure: panel(this.asking, this.unsure, this.doubts.element, this.cell.element),
      runs: panel(this.runs.element, keeper),
      solver: panel(this.controls.element, this.opener()),
    };
    this.places = { ranks: panels.why, intervals: panels.sure };
    this.tabs = new Tabs(panels, (name) => name === "sure" && this.ask());
    return this.tabs.element;
  }

  /** Return what opens a file: by upload, by a drop, or by its path. */
  opener() {
    const read = async (file) => {
      if (!file) return;
      if (file.size > MOST_BYTES) this.say(`${file.name} is too large for an upload: give its path.`, "failed");
      else this.send({ do: "open", name: file.name }, [await file.arrayBuffer()]);
    };
    const dragover = (event) => event.preventDefault(), drop = (event) => {
      event.preventDefault();
      read(event.dataTransfer.files[0]);
    };
    const file = html("input", { type: "file", accept: FILES, "aria-label": "file to upload" });
    const path = html("input", { type: "text", placeholder: "path on the kernel's machine", "aria-label": "path of a file" });
    set(file, { change: () => read(file.files[0]) });
    set(path, { change: () => path.value && this.send({ do: "open", name: path.value }) });
    return html("details.nmd-opener", { dragover, drop }, html("summary", "Open a file"), file, path);
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

  /** Show all parts of the page; what has not changed stays as it is. */
  show() {
    const get = (name) => this.model.get(name), selection = get("selection"), facts = get("facts") ?? {};
    const pictures = get("pictures"), grid = get("grid"), dots = get("dots") ?? {}, tables = get("tables") ?? [];
    const { row, column, pixel, rows } = selection ?? {}, isMatrix = pictures?.layout === "matrix";
    const stage = grid ? "table" : dots.study ? "study" : facts.query && !pictures?.count ? "ratings" : facts.stage ?? "pictures";
    this.frame.dataset.stage = stage;
    this.controls.show(get("controls"));
    this.status(get("status"), stage);
    this.grid.show(grid, selection);
    if (this.cell.show(facts.cell)) this.tabs.open("sure", false);
    this.pictures.show(grid ? null : pictures, get("modelled"), { row, column: isMatrix ? column : pixel ?? column });
    this.showCharts(dots, facts.point ?? null);
    this.curves.show(get("curves"), facts);
    this.components.show(get("components"));
    this.scatter.show(get("scatter"), rows?.length ? rows : [row].filter(Number.isFinite));
    this.scatter.drawing.show(get("drawing"), pictures);
    this.scatter.element.hidden = this.turn.hidden = stage === "study" || stage === "photograph";
    this.mend(facts.asked);
    this.lists.hidden = !facts.query;
    this.query.show(facts.query);
    this.person = facts.you ?? "you";
    this.you.setAttribute("aria-pressed", Boolean(facts.you));
    this.tables.show(facts.query ? tables : [], column);
    this.found.show(facts.query ? [] : tables.filter(({ name }) => name !== "unsure"), column);
    this.doubts.show(tables.filter(({ name }) => name === "unsure"));
    this.runs.show(get("runs"));
    const code = get("code_text") ?? "";
    if (this.code.value !== code) this.code.value = code;
  }

  /** Show what is wrong with the data, and a button for each way to put it right. */
  mend(asked) {
    this.mending.hidden = !asked;
    if (!asked) return;
    const ways = asked.ways.map((way) => button(way, () => this.send({ do: "mend", way })));
    this.mending.replaceChildren(html("p", asked.fault), ...ways);
  }

  status(status, stage) {
    if (!status || status === this.shownStatus) return;
    this.shownStatus = status;
    const { phase, message, failed, done, planned, left, warnings, why, buttons, save, filename, title, model } = status;
    const names = Object.keys(buttons);
    if (names.join() !== Object.keys(this.buttons).join()) this.rebuild(buttons);
    for (const name of names) set(this.buttons[name], { disabled: buttons[name].disabled, title: buttons[name].title });
    Object.assign(this.progress, { max: planned, value: Math.min(done, planned) });
    this.progress.style.visibility = phase === "running" ? "visible" : "hidden";
    this.say(left ? `${message}, ${left}` : message, failed ? "failed" : phase, warnings);
    this.about.title = `${title}: ${model}`;
    [title, model].forEach((text, k) => { this.about.children[k].textContent = text; });
    this.showHeadline(status.headline, phase === "running" && title === this.headlined);
    this.headlined = title;
    this.notes.replaceChildren(...warnings.map((text) => html("div.nmd-warning", `Warning: ${text}`)));
    this.reason.textContent = why;
    this.unsure.textContent = buttons.sample?.disabled && phase !== "running" ? buttons.sample.title : "";
    const uses = { why: names.includes("choose") || this.charts.ranks, sure: names.includes("sample") || this.model.get("dots")?.intervals,
      solver: this.model.get("controls")?.length };
    this.tabs.allow(Object.keys(TABS).filter((name) => !(name in uses) || uses[name]));
    this.tabs.buttons.error.textContent = stage === "study" ? "Point" : TABS.error;
    set(this.saving, { disabled: Boolean(save), title: save || "Write the result to the file" });
    if (filename !== this.offered) this.filename.value = this.offered = filename;
  }

  /** Show the one number of the bar, beside that of the rivals; while a fit runs, that of the one before stays. */
  showHeadline(headline, stays) {
    const { value, text, rivals, worse } = headline ?? {}, isOld = !headline && stays;
    this.headline.classList.toggle("nmd-old", isOld);
    if (isOld) return;
    this.headline.replaceChildren(...(headline ? [html("strong", value), ` ${text} `, html("span", rivals)] : []));
    this.headline.classList.toggle("nmd-warning", Boolean(worse));
    this.headline.title = headline ? `${value} ${text} ${rivals}` : "";
  }

  /** Show the status line; a warning stands behind it, and in the inspector. */
  say(message, kind, warnings = []) {
    const more = warnings.length ? html("span.nmd-warning", ` ⚠ ${warnings[0]}`) : "";
    this.said.replaceChildren(message, more);
    set(this.said, { title: [message, ...warnings].join("\n"), class: `nmd-status nmd-${kind}` });
  }

  /** Say that nobody listens any more. */
  ended() {
    this.say(RESTARTED, "failed");
    const live = this.frame.querySelectorAll("button, input, select");
    for (const each of live) each.disabled = each !== this.copying && !each.closest("[role=tablist]");
  }

  rebuild(buttons) {
    this.buttons = Object.fromEntries(Object.entries(buttons).map(([name, { label }]) =>
      [name, button(label, () => this.send({ do: name }), { class: `nmd-${name}` })]));
    const { sample, run, stop, ...rest } = this.buttons, others = Object.values(rest);
    this.running.replaceChildren(...[run, stop].filter(Boolean));
    this.menu.replaceChildren(...others);
    this.more.hidden = !others.length;
    this.asking.replaceChildren(...[sample].filter(Boolean));
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
  el.append(html("style", `.nmd-static[data-explorer="${model.get("static_id")}"] { display: none; }`));
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
