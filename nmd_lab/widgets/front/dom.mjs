// Elements, numbers and words that all parts of an explorer use.

/** Return a function that makes elements: "tag.class", then attributes (functions become listeners) and children. */
const maker = (create) => (name, ...rest) => {
  const [tag, ...classes] = name.split("."), made = create(tag);
  if (classes.length) made.setAttribute("class", classes.join(" "));
  for (const each of rest.filter((part) => part !== null)) {
    if (each.constructor === Object) set(made, each);
    else made.append(each);
  }
  return made;
};
export const html = maker((tag) => document.createElement(tag));
export const svg = maker((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));

/** Set attributes of an element; null, and false where it is no word of ARIA, takes one away. */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const aria = name.startsWith("aria-");
    if (typeof value === "function") element.addEventListener(name, value);
    else if ((value ?? null) === null || (value === false && !aria)) element.removeAttribute(name);
    else element.setAttribute(name, value === true && !aria ? "" : value);
  }
  return element;
}

/** Return a button with a text. */
export function button(text, click, attributes = {}) {
  return html("button", { type: "button", click, ...attributes }, text);
}

/** Return what a table has for the key of an event, which then does nothing else. */
export function keyOf(event, table) {
  const found = table[event.key];
  if (found === undefined) return found;
  event.preventDefault();
  event.stopPropagation();
  return found;
}

/** Replace the children of an element; the focus stays in what is at the same place of a selector. */
export function replace(element, children, selector) {
  const at = [...element.querySelectorAll(selector)].findIndex((each) => each.matches(":focus"));
  element.replaceChildren(...children);
  element.querySelectorAll(selector)[at]?.focus();
}

/** Make one of the elements of a selector a tab stop, the first unless another is given, and the others none. */
export function stopAt(element, selector, stop = element.querySelector(selector)) {
  for (const each of element.querySelectorAll(selector)) each.tabIndex = each === stop ? 0 : -1;
}

/** Return an element whose buttons of a selector are one tab stop: keys move between them, by numbers. */
export function oneStop(element, selector, steps) {
  stopAt(element, selector);
  return set(element, {
    focusin: ({ target }) => target.matches(selector) && stopAt(element, selector, target),
    keydown: (event) => {
      const all = [...element.querySelectorAll(selector)], at = all.indexOf(event.target), by = at < 0 ? undefined : keyOf(event, steps);
      if (by) all[clamp(at + by, 0, all.length - 1)].focus();
    },
  });
}

/** Return the numbers in the bytes that Python has sent; none for nothing. */
export function numbers(bytes, Kind = Float32Array) {
  if (!bytes || !bytes.byteLength) return new Kind(0);
  return new Kind(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

/** Return a number with so many significant digits, and a dash for NaN. */
export function short(number, digits = 4) {
  return Number.isFinite(number) ? String(Number(number.toPrecision(digits))) : "–";
}

/** Return a number between two others. */
export const clamp = (number, low, high) => Math.min(high, Math.max(low, number));

/** Colours that people with any kind of colour blindness tell apart (Okabe and Ito, 2008), and that of all others. */
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442"], OTHER = "#8a8a8a";

/** Return what gives the colour of a number, the last one of which is that of the text around an element. */
export function pageColors(element) {
  const colors = [...COLORS, getComputedStyle(element).color];
  return (k) => colors[k] ?? OTHER;
}

/** Return whether the page around an element is dark, and so its text light. */
export function isDark(element) {
  const context = html("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  context.fillStyle = getComputedStyle(element).color;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  return red + green + blue > 384;
}
