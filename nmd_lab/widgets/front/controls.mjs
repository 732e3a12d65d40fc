// Inputs with a label, a note that contains the fault, and "auto" next to numbers.

import { button, h } from "./dom.mjs";

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
