// The frame of an explorer: a sentence whose words are its controls, the stage at full width, and the strip of components.

import { button, clamp, controls, draw, h, isDark, keyOf, made, nextFrame, steps, svg } from "./dom.mjs";
import { Chart, nearestDot } from "./chart.mjs";
import { Components, swapper } from "./components.mjs";
import { Factors, Local } from "./local.mjs";
import { Grid } from "./grid.mjs";
import { Pictures } from "./pictures.mjs";
import { Plane } from "./plane.mjs";
import { Ratings } from "./ratings.mjs";

const RESTARTED = "The kernel was restarted or has ended: run the cell again to fit. The rest works without it.";
const FITTING = ":is(.nmd-again, .nmd-stop, .nmd-swap), :is(.nmd-popover, .nmd-brushes, .nmd-lists, .nmd-cells) :is(button, input, select)";
const FILES = ".csv,.tsv,.txt,.gz,.data,.npy,.npz,.mtx,.nc,.png,.jpg,.jpeg,.tif,.tiff,.bmp";
const RUNS = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 };

/** Return the part of a text that stays on the line of the word before it, up to the first space, and the rest. */
function afterWord(word, text) {
  const held = word?.[1] ? text.match(/^\S*/)[0] : "";
  return [held, text.slice(held.length)];
}

const joined = (text) => text.replaceAll(" %", "\u00a0%"); // on one line with its number

const hasNumber = (pieces) => pieces.some(([, opens]) => opens === "number");

class Page {
  constructor(model, el) {
    this.model = model;
    const send = this.send = async (message, buffers) => {
      this.saved = message.do === "save" ? this.message : null; // what was said before
      try {
        await model.send(message, undefined, buffers);
      } catch {
        this.ended();
      }
    };
    this.pictures = new Pictures(send, () => this.components.write());
    this.plane = new Plane(send);
    this.grid = new Grid(send);
    this.ratings = new Ratings(send, this.plane);
    this.components = new Components(send, this.pictures, this.plane);
    this.charts = { curves: new Chart(send), ranks: new Chart(send), intervals: new Chart(send), study: new Chart(send, null) };
    this.frame = made(h("div.nmd-frame", { keydown: (event) => this.opened && keyOf(event, { Escape: () => this.open(null) })?.(),
      pointerdown: ({ target }) => this.opened && !target.closest(".nmd-popover, [aria-haspopup]") && this.open(null) }));
    el.append(this.frame);
  }

  get(name) { return this.model.get(name); }

  open(name) {
    const opener = this.frame.querySelector('[aria-expanded="true"]');
    this.opened = name === this.opened ? null : name;
    this.draw();
    if (!this.opened) opener?.focus({ preventScroll: true });
    else this.frame.querySelector(".nmd-popover :is(button, input, select):not(:disabled)")?.focus({ preventScroll: true });
  }

  show() {
    const selection = this.get("selection"), facts = this.get("facts") ?? {}, pictures = this.get("pictures"), drawing = this.get("drawing");
    const grid = this.get("grid"), dots = this.get("dots") ?? {}, { row, column, rows } = selection ?? {};
    if (drawing !== this.drawing) Object.assign(this, { drawing, factors: drawing?.shown ? new Factors(drawing) : null });
    this.stage = facts.stage ?? (grid ? "table" : dots.study ? "study" : facts.lists ? "ratings" : "pictures");
    this.draw();
    this.grid.show(grid, selection);
    this.pictures.square = ["photograph", "patches"].includes(this.stage); // the cells of another matrix fill the stage
    this.pictures.sure = "sample" in (this.get("status").buttons ?? {});
    this.pictures.show(grid ? null : pictures, this.get("modelled"), this.factors, { row, column }, facts.painted);
    this.charts.study.show(dots.study ?? null, facts.point ?? null);
    const things = this.get("scatter")?.things;
    this.components.picked = things ? [] : rows ?? [];
    this.components.show(this.get("components"), facts.swap);
    this.plane.show(this.get("scatter"), drawing, this.pictures.scale, things ? [column].filter(Number.isFinite) : rows?.length ? rows : [row].filter(Number.isFinite));
    this.ratings.show(facts.lists ?? null, column);
  }

  draw() {
    const status = this.get("status"), facts = this.get("facts") ?? {}, { stage, frame } = this, running = status.phase === "running";
    this.texts(status, running);
    const { done, planned } = status, still = !status.buttons.run, none = !this.get("components");
    const unsure = stage === "table" && none && (this.get("tables") ?? []).find(({ name }) => name === "unsure");
    const bare = ["study", "patches"].includes(stage) || (none && still && !unsure);
    const posterior = bare && ["photograph", "pictures"].includes(stage);
    Object.assign(frame.dataset, { stage: posterior ? "posterior" : stage, bare });
    draw(frame, h("div.nmd-bar", h("p.nmd-sentence", this.sentence), this.actions(status, running), this.popover(status)),
      h("div.nmd-progress", { hidden: !running, role: "progressbar", "aria-label": "progress of the run", "aria-valuemax": planned, "aria-valuenow": Math.min(done, planned),
        style: `width: ${Math.min(100, (100 * done) / planned)}%` }),
      h("div.nmd-says", h(`div.nmd-status.nmd-${this.kind}`, { role: "status", "aria-live": "polite", title: [this.message, ...status.warnings].join("\n") },
        status.warnings.length && !running ? h("span.nmd-warning", `⚠ ${status.warnings[0]} `) : null, this.opened === "more" && this.saved !== null ? "" : this.message), this.runs()),
      h("section.nmd-stage", { "aria-label": "data and model" }, this.pictures.element, this.grid.element, this.ratings.element,
        this.charts.study.element, (posterior || stage === "study") && h("div.nmd-points", this.tables()), stage === "table" ? null : this.plane.element),
      unsure ? this.unsure(unsure, facts) : !bare && this.components.element);
    if (this.dead) for (const each of frame.querySelectorAll(FITTING)) each.disabled = true;
  }

  /** Find the sentence and the message; while a run has no number yet, that of the one before stays. */
  texts(status, running) {
    const { message, failed, phase, sentence } = status, [[data]] = sentence;
    const old = running && !hasNumber(sentence) && this.pieces?.[0][0] === data && hasNumber(this.pieces);
    const grey = old || status.first_look || this.model.waits; // the number is not that of what is shown, or not for long
    if (!old) this.pieces = sentence;
    const word = ([text, opens, about], k) => (opens ? button(text, () => (opens in status.buttons ? this.act(opens) : this.open(opens)), { key: `${opens} ${k}`, "aria-haspopup": opens in status.buttons ? null : "dialog",
      "aria-expanded": opens in status.buttons ? null : this.opened === opens, title: status.buttons[opens]?.title ?? about ?? null, class: `nmd-word nmd-word-${opens}${grey && opens === "number" ? " nmd-old" : ""}` }) : text);
    const at = grey ? this.pieces.findIndex(([, opens]) => opens === "number") : Infinity; // of what is said about the error before
    this.sentence = [this.pieces.map((piece, k, all) => {
      const [held, text] = afterWord(all[k - 1], piece[0]), next = afterWord(piece, all[k + 1]?.[0] ?? "")[0];
      return piece[1] && next ? h("span.nmd-held", { key: `held ${k}` }, word(piece, k), next) : piece[1] ? word(piece, k) : text.startsWith("\n") ? [h("br"), h("small", text)] : k > at ? h("span.nmd-old", joined(text)) : joined(text);
    })];
    Object.assign(this, this.dead ? { message: RESTARTED, kind: "failed" } : this.local ?? { message, kind: failed ? "failed" : phase });
  }

  actions({ buttons }, running) {
    const opener = (name, text, about) => button(text, () => this.open(name), { key: name, class: `nmd-action nmd-${name}`, "aria-haspopup": "dialog",
      "aria-expanded": this.opened === name, "aria-label": about, title: about });
    const copy = button(this.copied ? "copied" : "code", () => this.copy(), { key: "code", class: "nmd-action nmd-copy", title: "Copy the code that repeats this" });
    const stop = button("■", () => this.send({ do: "stop" }), { key: "stop", "aria-label": "stop", title: "stop", class: "nmd-action nmd-stop" });
    return h("div.nmd-actions", { role: "group", "aria-label": "run" }, buttons.run && (running ? stop : opener("again", "⟲", "fit again, resume, settings")), copy, opener("more", "⋯", "share, save, open, uncertainty"));
  }

  /** Return the errors of runs and rivals on one bar: a click, or an arrow, compares with a run. */
  runs() {
    const runs = (this.get("runs") ?? []).filter(({ off }) => Number.isFinite(off)), { rivals = [] } = this.get("status").headline ?? {};
    if (!runs.length) return null;
    const all = [...runs.map(({ off }) => off), ...rivals.map(({ off }) => off)], low = Math.min(...all), high = Math.max(...all);
    const sorted = [...runs].sort((a, b) => a.off - b.off), gap = Math.min(7, 88 / runs.length), places = new Map(), chosen = runs.find(({ left }) => left);
    const place = (off) => 6 + (high > low ? (off - low) / (high - low) : 0.5) * 88;
    const after = (run, k) => Math.max(place(run.off), k ? places.get(sorted[k - 1]) + gap : 0); // dots do not hide one another
    sorted.forEach((run, k) => places.set(run, Math.min(after(run, k), 97 - gap * (runs.length - 1 - k))));
    const others = runs.filter(({ current }) => !current), pick = (run) => run && this.send({ do: "history", number: run.number });
    const nearest = ({ currentTarget, clientX }) => {
      const { left, width } = currentTarget.getBoundingClientRect(), at = (100 * (clientX - left)) / width;
      pick(others[nearestDot(others.map((run) => places.get(run)), others.map(() => 0), at, 0, Infinity)]);
    };
    const text = chosen ? `compared with ${chosen.text}, ${chosen.error}` : "";
    return h("div.nmd-compare", h("span", text || `errors, lowest left: ● ${runs.length > 1 ? "runs, a click compares" : "this model"}${rivals.length ? ", | rivals" : ""}`), h("div.nmd-runs", { role: "slider", tabindex: 0, "aria-label": "run to compare with",
      "aria-valuemin": 0, "aria-valuemax": others.length, "aria-valuenow": chosen ? others.indexOf(chosen) + 1 : 0, "aria-valuetext": text || "none",
      title: "errors of runs (dots; blue: this one) and rivals (lines), the lowest left", click: nearest,
      keydown: (event) => pick(others[clamp(others.indexOf(chosen) + (keyOf(event, RUNS) ?? NaN), 0, others.length - 1)]) }, rivals.map(({ off }) => h("i", { style: `left: ${place(off)}%` })),
    runs.map((run) => h("b", { style: `left: ${places.get(run)}%`, title: `${run.text}, ${run.error}`, "data-now": run.current || null, "data-left": run.left || null }))));
  }

  popover(status) {
    const name = this.opened, abouts = { data: ["the data", () => [this.fields("data"), this.acts(status, "turn", "flat"), this.stage === "study" ? null : this.opener()]], components: ["the components", this.aboutComponents], shape: ["the shape of the model", this.aboutShape],
      number: ["the error", this.aboutNumber], again: ["fit again", () => [this.acts(status, "run", "continue"), this.fields("again")]], more: ["more", this.aboutMore] }, [label, about] = abouts[name] ?? [];
    if (!about) return null;
    const opener = this.frame.querySelector(`[aria-expanded="true"]`) ?? this.frame.querySelector(`.nmd-word-${name}, .nmd-${name}`);
    const room = this.frame.clientWidth, left = clamp(opener?.offsetLeft ?? 0, 0, Math.max(0, room - 322)), right = room - left - 322, [side, offset, other] = left > right ? ["right", right, left] : ["left", left, right]; // it grows to where there is room
    return h("div.nmd-popover", { key: `popover ${name}`, role: "dialog", tabindex: -1, "aria-label": label, style: `${side}: ${offset}px; max-width: ${other + 298}px` }, about.call(this, status));
  }

  fields(group, besides = []) {
    const fields = (this.get("controls") ?? []).filter((each) => each.group === group && !besides.includes(each.name));
    return controls(fields, (name, value) => this.send({ do: "set", name, value }));
  }

  acts({ buttons }, ...names) {
    const has = names.filter((name) => buttons[name]);
    return has.length > 0 && h("div.nmd-acts", has.map((name) => {
      const { label, disabled, title } = buttons[name];
      return button(label, () => this.act(name), { key: name, disabled, title, class: `nmd-${name}` });
    }));
  }

  act(name) {
    this.send({ do: name });
    this.open(null);
  }

  aboutComponents(status) {
    const field = (this.get("controls") ?? []).find(({ name }) => name === "rank"), now = Number(field?.value) || this.get("components")?.total || 1;
    const set = (value) => this.send({ do: "set", name: "rank", value: String(Math.max(1, value)) });
    this.charts.ranks.show(this.get("dots")?.ranks ?? null, now);
    return [field && h("div.nmd-stepper", button("−", () => set(now - 1), { "aria-label": "one component less" }), controls([field], (name, value) => this.send({ do: "set", name, value })),
      button("+", () => set(now + 1), { "aria-label": "one component more" })), h("p", status.why), this.charts.ranks.element, this.fields("components", ["rank"]), this.stage === "table" ? this.plane.element : null];
  }

  aboutShape() {
    const { shapes = [] } = this.get("facts") ?? {};
    const own = shapes.length && !shapes.some(({ chosen }) => chosen) ? h("p", "Each column has a shape of its own; a click gives all of them one.") : null;
    return [own, h("div.nmd-shapes", { role: "group", "aria-label": "shapes" }, shapes.map(({ name, text, error, path, chosen }) =>
      button([svg("svg", { viewBox: "0 0 40 24", width: 40, height: 24, "aria-hidden": "true" }, svg("path", { d: path })), h("span", text), error && h("small", error)],
        () => this.send({ do: "set", name: "nonlinearity", value: name }), { key: name, "aria-pressed": chosen }))), this.fields("shape", ["nonlinearity"])];
  }

  aboutNumber() {
    this.charts.curves.show(this.get("curves"));
    return [this.charts.curves.element, this.tables(), this.get("status").warnings.map((text) => h("p.nmd-warning", text))];
  }

  aboutMore(status) {
    const { intervals } = this.get("dots") ?? {};
    const page = status.filename.replace(/\.\w+$/, ".html"), share = { disabled: Boolean(status.save), class: "nmd-as-page", title: status.save || `Write this page to ${page}, which any browser opens without Python` };
    const save = ({ currentTarget }) => this.send({ do: "save", filename: currentTarget.parentElement.querySelector("input").value });
    this.charts.intervals.show(intervals ?? null);
    return [status.folder && button("share as a page", () => this.send({ do: "save", filename: page }), share), this.acts(status, "sample"), this.charts.intervals.element, this.fields("uncertainty"), status.folder && h("strong", "Save"), h("div.nmd-line", h("input", { type: "text", value: this.name ?? status.filename, "aria-label": "file", input: ({ target }) => { this.name = target.value; }, keydown: (event) => event.key === "Enter" && !status.save && save(event) }),
        button("save", save, { disabled: Boolean(status.save), title: status.save || null, class: "nmd-save" })), status.folder && h("p.nmd-folder", `${status.endings}; in ${status.folder}`),
      this.saved !== null && (this.saved !== this.message || this.kind === "failed") && h("p", { role: "status", class: `nmd-${this.kind}` }, this.message), this.opener()];
  }

  opener() {
    const read = async (file) => {
      if (!file) return;
      if (file.size > 8e6) { // servers of notebooks take messages of 10 MiB
        this.local = { message: `${file.name} is too large for an upload: give its path.`, kind: "failed" };
        this.draw();
      } else this.send({ do: "open", name: file.name }, [await file.arrayBuffer()]);
    };
    return h("div.nmd-opener", h("strong", "Open a file"),
      h("input", { type: "file", accept: FILES, "aria-label": "file to upload", change: ({ target }) => read(target.files[0]) }),
      h("input", { type: "text", placeholder: "or its path", "aria-label": "path of a file", change: ({ target }) => target.value && this.send({ do: "open", name: target.value }) }));
  }

  /** Return the cells of which draws are least sure, in the place of the components: each can be picked. */
  unsure({ caption, rows, ids }, { swap }) {
    return h("section.nmd-components", { key: "unsure", "aria-label": "least sure cells" }, h("div.nmd-strip-head", swapper(swap, this.send), h("span.nmd-words", { title: caption }, caption)),
      h("div.nmd-cells", steps("button"), rows.map(([cell, filled, sure], k) =>
        button([h("span", cell), h("b", filled), sure], () => this.send({ do: "select", row: ids[k][0], column: ids[k][1] }), { key: cell, title: `${cell}: ${filled}, ${sure}` }))));
  }

  tables() {
    const isText = (rows, j) => rows.some((row) => /^[^\d−-]/.test(row[j]));
    return (this.get("tables") ?? []).filter(({ name }) => name !== "unsure").map(({ name, caption, head, rows }) => h("div.nmd-table-box", { key: name, tabindex: 0, role: "group", "aria-label": caption || name }, caption ? h("p", caption) : null,
      h(`table.nmd-table.nmd-${name}`, head.some(Boolean) ? h("thead", h("tr", head.map((text, j) => h("th", { scope: "col", class: isText(rows, j) ? "nmd-text" : null }, text)))) : null, h("tbody", rows.map((texts) => h("tr", texts.map((text, j) =>
        h(j ? "td" : "th", { scope: j ? null : "row", class: isText(rows, j) ? "nmd-text" : null }, text))))))));
  }

  async copy() {
    const code = this.get("code_text") ?? "";
    try {
      await navigator.clipboard.writeText(code);
    } catch {
      const area = made(h("textarea", { "aria-hidden": "true", value: code }));
      this.frame.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const say = (copied) => { this.copied = copied; this.draw(); };
    say(true);
    setTimeout(say, 1500, false);
  }

  ended() {
    this.dead = true;
    Object.assign(this.model, { alone: true, stale: true });
    this.draw();
  }
}

function render({ model: source, el }) {
  const model = source instanceof Local ? source : new Local(source);
  el.classList.add("nmd-explorer");
  // Keys belong to the controls: JupyterLab would take arrows, letters and more for its shortcuts
  el.addEventListener("keydown", (event) => event.ctrlKey || event.metaKey || event.stopPropagation());
  // A picture for readers without a kernel is not needed next to the living explorer
  el.append(made(h("style", `.nmd-static[data-explorer="${model.get("static_id")}"] { display: none; }`)));
  const page = new Page(model, el);
  const show = () => {
    if (el.isConnected) el.dataset.theme = isDark(el) ? "dark" : "light";
    page.show();
  };
  const soon = nextFrame(show), change = () => { page.local = null; soon(); };
  const ended = () => page.ended();
  const theme = new MutationObserver(change);
  for (const each of [document.documentElement, document.body]) theme.observe(each, { attributes: true });
  model.listeners.add(change);
  source.on?.("comm_live_update", ended);
  show();
  change();
  page.send({ do: "opened" });
  return () => {
    theme.disconnect();
    model.end();
    source.off?.("comm_live_update", ended);
  };
}

export default { render };
