// Elements, numbers and words that all parts of an explorer use.

/** Return an HTML element with attributes (functions become listeners) and children. */
export function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Return an SVG element with attributes (functions become listeners) and children. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
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

/** Colours of curves and dots that people with any kind of colour blindness tell apart (Okabe and Ito, 2008). */
export const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b38600", "#3d8fc4", "#7a5195", "#6b6b6b",
  "#9c4f00", "#004d73", "#66b38f", "#8c1d40"];

/** Return red, green, blue and opacity of a colour in any notation of CSS, from 0 to 255. */
export function colorParts(color) {
  const context = html("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
}

/** Return a function that runs at once, and then at most once in so many milliseconds, with the last arguments. */
export function throttled(action, pause) {
  let timer = null, waiting = null;
  const run = () => {
    timer = null;
    if (waiting === null) return;
    const given = waiting;
    waiting = null;
    timer = setTimeout(run, pause);
    action(...given);
  };
  return (...given) => {
    waiting = given;
    if (timer === null) run();
  };
}

/** Hand a text or a Blob to the user as a file. */
export function download(content, name, type = "image/svg+xml") {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  html("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Hand a drawing to the user as an SVG file that looks the same without this page. */
export function downloadSvg(drawing, name) {
  const copy = drawing.cloneNode(true);
  const originals = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, k) => {
    const style = getComputedStyle(originals[k]);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "filter"]) {
      element.style.setProperty(name, style.getPropertyValue(name));
    }
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  download(new XMLSerializer().serializeToString(copy), name);
}
