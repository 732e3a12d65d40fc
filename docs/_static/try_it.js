/* The page "Try it": explorers of notebooks, with recorded answers in the place of a kernel. */
"use strict";

(() => {
  /** Return a value with the bytes that stand in it as base64. */
  function revived(value) {
    if (Array.isArray(value)) return value.map(revived);
    if (value === null || typeof value !== "object") return value;
    if (typeof value.bytes === "string") return new DataView(Uint8Array.from(atob(value.bytes), (each) => each.charCodeAt(0)).buffer);
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, revived(each)]));
  }

  /** What a front end takes for the model of a widget. */
  class Recorded {
    constructor({ shown, answers }) {
      this.first = this.shown = revived(shown);
      this.answers = answers;
      this.listeners = new Map();
    }

    get(name) { return this.shown[name] ?? null; }

    on(event, listener) { this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]); }

    off(event, listener) { this.listeners.set(event, (this.listeners.get(event) ?? []).filter((each) => each !== listener)); }

    /** Answer as the kernel did; the same message again takes the answer back. */
    send(message) {
      const { do: what, ...picked } = message, text = JSON.stringify(message);
      if (what === "select" && !("picture" in picked)) this.change({ selection: { ...this.get("selection"), ...picked } });
      if (!(text in this.answers)) return;
      const again = what === "component" && text === this.last;
      this.last = again ? null : text;
      const { modelled, components, facts } = this.first, answer = again ? {} : revived(this.answers[text]);
      this.change({
        modelled: answer.modelled ?? modelled, components: { ...components, ...answer.components }, facts: { ...facts, ...answer.facts },
      });
    }

    change(parts) {
      this.shown = { ...this.shown, ...parts };
      for (const name of Object.keys(parts)) for (const listener of this.listeners.get(`change:${name}`) ?? []) listener();
    }
  }

  document.head.append(Object.assign(document.createElement("style"), { textContent: TRY_IT.style }));
  for (const name of ["digits", "picture"]) {
    NMD_EXPLORER.render({ model: new Recorded(TRY_IT[name]), el: document.getElementById(`try-${name}`) });
  }
})();
