/* The page "Try it": results that docs/try_it.py computed, drawn and changed in the browser. */
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = { ReLU: "#0072b2", MinMax: "#0072b2", linear: "#d55e00", NMF: "#009e73", "posterior mean": "#009e73", interpolation: "#777777" };

  /** Return an element with attributes (functions become listeners) and children. */
  function node(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") made.addEventListener(name, value);
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function svgNode(tag, attributes = {}, text = "") {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  }

  const byte = (share) => Math.round(255 * Math.min(1, Math.max(0, share)));
  const grey = (value) => [byte(value), byte(value), byte(value)];
  /** Blue below 0, white at 0, orange above: told apart without red and green. */
  const signed = (value) =>
    value < 0 ? [byte(1 + value), byte(1 + 0.55 * value), 255 - byte(-0.3 * value)]
      : [255 - byte(0.16 * value), byte(1 - 0.63 * value), byte(1 - value)];

  /** Draw values of pixels, row by row. */
  function paint(canvas, values, columns, colour = grey) {
    canvas.width = columns;
    canvas.height = values.length / columns;
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    values.forEach((value, k) => image.data.set([...colour(value, k), 255], 4 * k));
    context.putImageData(image, 0, 0);
  }

  /** Return a figure: a canvas above its caption. */
  function picture(name, attributes = {}) {
    const canvas = node("canvas", { role: "img", "aria-label": name, ...attributes });
    const caption = node("figcaption", {}, name);
    const figure = node("figure", { class: "try-picture" }, canvas, caption);
    return { figure, canvas, caption };
  }

  /** Return a slider over the positions of a list. */
  function slider(name, values, start, change) {
    const shown = node("output", {}, String(values[start]));
    const input = node("input", {
      type: "range", min: 0, max: values.length - 1, value: start, "aria-valuetext": values[start],
      input: () => { set(Number(input.value)); change(Number(input.value)); },
    });
    function set(position) {
      input.value = position;
      shown.textContent = values[position];
      input.setAttribute("aria-valuetext", values[position]);
    }
    return { element: node("label", { class: "try-slider" }, `${name} `, input, shown), set };
  }

  /** Return a chart of errors, and a function that marks a position of x. */
  function chart(about, x, series, choose) {
    const [width, height, left, bottom, top] = [460, 240, 50, 40, 14];
    const drawing = svgNode("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about.label, class: "try-chart" });
    const highest = 1.08 * Math.max(...Object.values(series).flat());
    const atX = (k) => left + 20 + ((width - left - 130) * k) / (x.length - 1);
    const atY = (value) => height - bottom - ((height - bottom - top) * value) / highest;
    const line = svgNode("line", { class: "try-mark", y1: top, y2: height - bottom });
    drawing.append(line);
    for (let k = 0; k <= 4; k++) {
      const value = (highest * k) / 4;
      drawing.append(svgNode("line", { class: "try-grid", x1: left, x2: width - 100, y1: atY(value), y2: atY(value) }));
      drawing.append(svgNode("text", { x: left - 6, y: atY(value) + 4, "text-anchor": "end" }, value.toFixed(2)));
    }
    x.forEach((value, k) => drawing.append(svgNode("text", { x: atX(k), y: height - bottom + 17, "text-anchor": "middle" }, value)));
    drawing.append(svgNode("text", { x: (left + width - 100) / 2, y: height - 6, "text-anchor": "middle" }, about.x));
    for (const [name, values] of Object.entries(series)) {
      const points = values.map((value, k) => `${atX(k)},${atY(value)}`).join(" ");
      drawing.append(svgNode("polyline", { points, fill: "none", stroke: COLOURS[name], "stroke-width": 2 }));
      values.forEach((value, k) => {
        const dot = svgNode("circle", { cx: atX(k), cy: atY(value), r: 5, fill: COLOURS[name] });
        dot.append(svgNode("title", {}, `${name}, ${about.x} ${x[k]}: ${value.toFixed(4)}`));
        dot.addEventListener("click", () => choose(k));
        drawing.append(dot);
      });
    }
    const names = Object.keys(series).sort((a, b) => atY(series[a].at(-1)) - atY(series[b].at(-1)));
    let above = -Infinity;
    for (const name of names) {
      above = Math.max(above + 16, atY(series[name].at(-1)) + 4);
      drawing.append(svgNode("text", { x: atX(x.length - 1) + 10, y: above, fill: COLOURS[name], class: "try-name" }, name));
    }
    return { drawing, mark: (k) => { line.setAttribute("x1", atX(k)); line.setAttribute("x2", atX(k)); } };
  }

  /** Digits by components: choose a picture and a rank, switch components off. */
  function components(place, data) {
    const state = { picture: 4, fit: Math.min(3, data.fits.length - 1), model: "relu", off: new Set() };
    const models = { relu: "ReLU(WH)", linear: "WH, linear" };
    const ranks = data.fits.map((fit) => fit.rank);
    const original = picture("a digit");
    const fitted = Object.fromEntries(Object.entries(models).map(([key, name]) => [key, picture(name)]));
    const grid = node("div", { class: "try-components", role: "group", "aria-label": "components" });
    const said = node("p", { "aria-live": "polite" });
    const series = Object.fromEntries(["ReLU", "linear", "NMF"].map((name) => [name, data.fits.map((fit) => fit.errors[name])]));
    const errors = chart({ x: "rank", label: "Relative error of all 1797 digits against the rank" }, ranks, series, chooseRank);
    const rank = slider("rank", ranks, state.fit, chooseRank);
    const which = node("select", { change: () => { state.model = which.value; state.off.clear(); draw(); } },
      ...Object.entries(models).map(([key, name]) => node("option", { value: key }, name)));

    function chooseRank(k) {
      state.fit = k;
      state.off.clear();
      rank.set(k);
      draw();
    }

    /** Return f(WH) of the chosen picture, without the components that are off. */
    function reconstruct(model) {
      const { W, H } = data.fits[state.fit][model];
      const product = H[0].map((_, pixel) => H.reduce((sum, row, k) =>
        model === state.model && state.off.has(k) ? sum : sum + W[state.picture][k] * row[pixel], 0));
      return model === "relu" ? product.map((value) => Math.max(0, value)) : product;
    }

    function errorOf(model, values) {
      const norm = (list) => Math.sqrt(list.reduce((sum, value) => sum + value * value, 0));
      return norm(model.map((value, k) => value - values[k])) / norm(values);
    }

    function draw() {
      const values = data.pictures[state.picture];
      paint(original.canvas, values, 8);
      original.caption.textContent = `a digit: ${data.labels[state.picture]}`;
      for (const [key, { canvas, caption }] of Object.entries(fitted)) {
        const model = reconstruct(key);
        paint(canvas, model, 8);
        caption.textContent = `${models[key]}: error ${errorOf(model, values).toFixed(3)}`;
        canvas.setAttribute("aria-label", caption.textContent);
      }
      const { W, H } = data.fits[state.fit][state.model];
      grid.replaceChildren(...H.map((row, k) => {
        const weight = W[state.picture][k];
        const canvas = node("canvas", { "aria-hidden": "true" });
        const largest = Math.max(...row.map(Math.abs));
        paint(canvas, row.map((value) => (Math.sign(weight) * value) / largest), 8, signed);
        return node("button", {
          type: "button", "aria-pressed": String(!state.off.has(k)),
          "aria-label": `component ${k + 1}, weight ${Math.abs(weight).toFixed(2)}`,
          click: () => { if (!state.off.delete(k)) state.off.add(k); draw(); grid.children[k].focus(); },
        }, canvas, Math.abs(weight).toFixed(2));
      }));
      said.textContent = state.off.size
        ? `${models[state.model]} without ${state.off.size} of ${H.length} components.`
        : `All ${H.length} components. Press one to switch it off; its number is its weight in this picture.`;
      errors.mark(state.fit);
    }

    const digits = slider("picture", data.labels, state.picture, (k) => { state.picture = k; draw(); });
    place.append(
      node("div", { class: "try-controls" }, digits.element, rank.element, node("label", {}, "components of ", which)),
      node("div", { class: "try-row" }, original.figure, fitted.relu.figure, fitted.linear.figure, errors.drawing),
      grid, said,
    );
    draw();
  }

  /** A clipped picture with holes: choose how many, and read every pixel. */
  function holes(place, data) {
    const [rows, columns] = data.shape;
    const names = Object.keys(data.cases[0].models);
    const state = { share: Math.min(2, data.cases.length - 1), at: Math.floor(rows / 2) * columns + Math.floor(columns / 3) };
    const shares = data.cases.map((each) => each.share);
    const seen = picture("given");
    const shown = Object.fromEntries([...names, "width of the 90 % interval"].map((name) => [name, picture(name)]));
    const all = [seen, ...Object.values(shown)];
    const said = node("p", { "aria-live": "polite", class: "try-said" });
    const series = Object.fromEntries(names.map((name) => [name, data.cases.map((each) => each.errors[name])]));
    const errors = chart({ x: "missing, %", label: "RMSE of the missing pixels against their share" }, shares, series, chooseShare);
    const share = slider("missing, %", shares, state.share, chooseShare);

    function chooseShare(k) {
      state.share = k;
      share.set(k);
      draw();
    }

    function draw() {
      const own = data.cases[state.share];
      const widths = own.high.map((high, k) => high - own.low[k]);
      paint(seen.canvas, data.picture, columns, (value, k) => (own.hidden[k] ? [176, 120, 40] : grey(value)));
      for (const name of names) {
        paint(shown[name].canvas, own.models[name], columns);
        shown[name].caption.textContent = `${name}: RMSE of the holes ${own.errors[name].toFixed(3)}`;
      }
      paint(shown["width of the 90 % interval"].canvas, widths.map((width) => width / Math.max(...widths)), columns);
      all.forEach(({ canvas, caption }) => canvas.setAttribute("aria-label", caption.textContent));
      errors.mark(state.share);
      point();
    }

    /** Mark the pixel in all pictures, and say its values. */
    function point() {
      const own = data.cases[state.share];
      const [row, column] = [Math.floor(state.at / columns), state.at % columns];
      all.forEach(({ figure }) => {
        figure.style.setProperty("--row", (row + 0.5) / rows);
        figure.style.setProperty("--column", (column + 0.5) / columns);
      });
      const values = names.map((name) => `${name} ${own.models[name][state.at].toFixed(2)}`).join(", ");
      said.textContent = `Row ${row}, column ${column}, ${own.hidden[state.at] ? "missing" : "seen"}: ` +
        `the sensor has ${data.picture[state.at].toFixed(2)}; ${values}; 90 % interval ${own.low[state.at].toFixed(2)} ` +
        `to ${own.high[state.at].toFixed(2)}. The intervals hold ${Math.round(100 * own.held)} % of the missing pixels.`;
    }

    function move(down, right) {
      const row = Math.min(rows - 1, Math.max(0, Math.floor(state.at / columns) + down));
      const column = Math.min(columns - 1, Math.max(0, (state.at % columns) + right));
      state.at = row * columns + column;
      point();
    }

    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    for (const { canvas, figure } of all) {
      figure.classList.add("try-crossed");
      canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        const row = Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows));
        const column = Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns));
        state.at = Math.max(0, row) * columns + Math.max(0, column);
        point();
      });
    }
    seen.canvas.setAttribute("tabindex", "0");
    seen.canvas.addEventListener("keydown", (event) => {
      if (!(event.key in steps)) return;
      event.preventDefault();
      move(...steps[event.key]);
    });
    place.append(
      node("div", { class: "try-controls" }, share.element),
      node("div", { class: "try-row try-wide" }, ...all.map(({ figure }) => figure), errors.drawing),
      said,
    );
    draw();
  }

  for (const [name, build, key] of [["components", components, "digits"], ["holes", holes, "holes"]]) {
    const place = document.getElementById(`try-${name}`);
    if (place) build(place, globalThis.TRY_IT[key]);
  }
})();
