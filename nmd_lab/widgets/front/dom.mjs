// Descriptions of elements and what brings a page in line with them; inputs, numbers and colours of all parts.

const SVG = "http://www.w3.org/2000/svg", LIVE = ["value", "checked", "disabled"]; // properties, not attributes

/** An element as it should be: its tag, attributes (functions listen), children, and a key that finds it again. */
class Described {
  constructor(name, rest, space = null) {
    const [tag, ...classes] = name.split(".");
    Object.assign(this, { tag, space, children: [], attributes: classes.length ? { class: classes.join(" ") } : {} });
    for (const each of rest.flat(Infinity)) {
      if (each?.constructor === Object) Object.assign(this.attributes, each);
      else if (isChild(each)) this.children.push(each);
    }
    this.key = this.attributes.key;
    delete this.attributes.key;
  }
}
const isChild = (each) => (each ?? false) !== false && each !== "";
export const h = (name, ...rest) => new Described(name, rest);
export const svg = (name, ...rest) => new Described(name, rest, SVG);
export const button = (text, click, ...rest) => h("button", { type: "button", click }, ...rest, text);

function created(described) {
  const { tag, space } = described, node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  Object.assign(node, { described: { tag, key: described.key, attributes: {} }, heard: {} });
  adapt(node, described);
  return node;
}

/** Make an element that no other description takes over. */
export const made = (described) => Object.assign(created(described), { owned: true });

/** Bring the children of an element in line with descriptions, texts and elements; what fits is used again. */
export function draw(parent, ...given) {
  const children = given.flat(Infinity).filter(isChild), keyed = new Map(), wanted = new Set(children.map((child) => child.key ?? child));
  for (const node of [...parent.childNodes]) {
    const name = node.owned ? node : node.described?.key;
    if (name !== undefined && !wanted.has(name)) node.remove();
    else keyed.set(name, node);
  }
  let next = parent.firstChild;
  for (const child of children) {
    let node = child;
    if (child instanceof Described) {
      const { key, tag } = child, old = key === undefined ? next : keyed.get(key);
      const fits = old?.described?.tag === tag && old.described.key === key && !old.owned;
      node = fits ? old : created(child);
      if (fits) adapt(node, child);
    } else if (!(child instanceof Node)) {
      node = next?.nodeType === 3 ? next : document.createTextNode("");
      if (node.data !== String(child)) node.data = child;
    }
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  while (next?.nextSibling) next.nextSibling.remove();
  next?.remove();
  if (parent.dataset.steps) stopAt(parent, parent.dataset.steps);
}

function adapt(node, { attributes, children }) {
  const before = node.described.attributes;
  for (const name of Object.keys(before)) if (!(name in attributes)) put(node, name, null);
  for (const [name, value] of Object.entries(attributes)) if (value !== before[name] || LIVE.includes(name)) put(node, name, value);
  node.described.attributes = attributes;
  draw(node, children);
}

/** Set an attribute, a listener or a property; null, and false where it is no word of ARIA, takes one away. */
function put(node, name, value) {
  if (typeof value === "function" || name in node.heard) {
    if (!(name in node.heard)) node.addEventListener(name, (event) => node.heard[name]?.(event));
    node.heard[name] = value;
  } else if (LIVE.includes(name) && name in node) {
    const text = value ?? false;
    if (node[name] !== text && !(name === "value" && node.matches(":focus"))) node[name] = text;
  } else if ((value ?? null) === null || (value === false && !name.startsWith("aria-"))) node.removeAttribute(name);
  else node.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
}

/** Return a function that draws at the next frame, once however often it is called. */
export function nextFrame(draw) {
  let asked = null;
  return () => { asked ??= requestAnimationFrame(() => { asked = null; draw(); }); };
}

/** Return what a table has for the key of an event, which then does nothing else. */
export function keyOf(event, table) {
  const found = table[event.key];
  if (found === undefined) return found;
  event.preventDefault();
  event.stopPropagation();
  return found;
}

/** Make one of the elements of a selector a tab stop: the one that is, unless another is given; the others are none. */
function stopAt(element, selector, stop) {
  const all = [...element.querySelectorAll(selector)], one = stop ?? all.find((each) => each.getAttribute("tabindex") === "0") ?? all[0];
  for (const each of all) each.tabIndex = each === one ? 0 : -1;
}

/** Return attributes that make the elements of a selector one tab stop, and by which keys move between them, by numbers. */
export const steps = (selector, moves = { ArrowRight: 1, ArrowLeft: -1 }) => ({
  "data-steps": selector,
  focusin: ({ target, currentTarget }) => target.matches(selector) && stopAt(currentTarget, selector, target),
  keydown: (event) => {
    const all = [...event.currentTarget.querySelectorAll(selector)], at = all.indexOf(event.target), by = at < 0 ? undefined : keyOf(event, moves);
    if (by) all[clamp(at + by, 0, all.length - 1)].focus();
  },
});

/** Return the numbers in the bytes that Python has sent; none for nothing. */
export const numbers = (bytes, Kind = Float32Array) => new Kind(
  bytes?.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) ?? 0);

export const short = (number, digits = 3) => (Number.isFinite(number) ? String(Number(number.toPrecision(digits))) : "–");

/** Return an error as Python writes it: with two digits, from 1 on behind the point. */
export const twoDigits = (error) => error.toPrecision(error < 1 ? 2 : 3);

export const clamp = (number, low, high) => Math.min(high, Math.max(low, number));

/** Colours that people with any kind of colour blindness tell apart (Okabe and Ito, 2008), two more, and that of all others. */
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442"], MORE = ["#aa3377", "#808000"], OTHER = "#8a8a8a";

/** Return what gives the colour of a number; the eighth is that of the text around an element. */
export function pageColors(element) {
  const style = getComputedStyle(element), mark = style.getPropertyValue("--nmd-mark").trim() || COLORS[0];
  const colors = [mark, ...COLORS.slice(1).map((each) => (each === mark ? COLORS[0] : each)), style.color, ...MORE];
  return (k) => colors[k] ?? OTHER;
}

export const keysOf = (texts, colorOf) => texts.map((text, k) => h("span.nmd-key",
  h("span", { "aria-hidden": "true", style: `color: ${colorOf(k)}` }, "●"), ` ${text}`));

export function isDark(element) {
  const context = made(h("canvas", { width: 1, height: 1 })).getContext("2d", { willReadFrequently: true });
  context.fillStyle = getComputedStyle(element).color;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  return red + green + blue > 384;
}

/** Return fields: `enter(name, value)` hears of what the user enters. */
export const controls = (fields, enter) => fields.filter(({ unused }) => !unused).map(({ name, label, kind, help: title, options, problem, auto, value, searched }) => {
  const id = `nmd-${name}`, isAuto = auto && value === "auto";
  const change = ({ target }) => {
    enter(name, kind === "share" ? Number(target.value) : target.value.trim());
    if (searched) target.value = "";
  };
  const about = { "aria-label": label, title, change, "aria-invalid": Boolean(problem), "aria-describedby": problem ? `${id}-note` : null };
  const input = {
    choice: () => h("select", { ...about, value }, options.map(([each, text]) => h("option", { value: each, selected: each === value }, text))),
    share: () => [h("input", { ...about, type: "range", min: 0, max: 0.95, step: 0.05, value: String(value) }), h("output", `${Math.round(100 * value)} %`)],
    text: () => [h("input", { ...about, type: "text", autocomplete: "off", list: `${id}-list`, value: String(value),
      input: ({ target }) => searched && enter("search", target.value) }),
    h("datalist", { id: `${id}-list` }, options.map(([each]) => h("option", { value: each })))],
  }[kind] ?? (() => h("input", { ...about, type: "text", inputmode: "decimal", value: isAuto ? "" : String(value), disabled: isAuto, placeholder: isAuto ? "auto" : null }));
  const choosing = auto && button("auto", () => enter(name, isAuto ? "" : "auto"), { "aria-pressed": isAuto,
    title: `Choose the ${label} by held-out entries`, "aria-label": `${label}: choose by held-out entries` });
  return h(`div.nmd-control.nmd-${name.replaceAll("_", "-")}${problem ? ".nmd-wrong" : ""}`, { key: name },
    h("div.nmd-line", h("span", { title }, label), input(), choosing), problem && h("div.nmd-note", { id: `${id}-note` }, problem));
});
