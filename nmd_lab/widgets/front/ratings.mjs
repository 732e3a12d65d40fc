// Ratings: those of a person, with stars for a new one, and the films that suit best, each on one line with its interval.

import { button, clamp, controls, draw, h, keyOf, made, steps } from "./dom.mjs";

const SORTS = { for_you: "for you", highest: "highest", surest: "least uncertain" };
const HALF = 0.15; // part of a star by which the half before its middle is smaller
const MOVES = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** Return the number of stars that show ratings, and what part of them each rating fills: "4.5" is four and a half. */
export function starsOf(levels) {
  const half = levels[0] > 0 && levels.at(-1) <= 10 && levels.every((each) => Number.isInteger(2 * each)), count = half ? Math.ceil(levels.at(-1)) : levels.length;
  return { count, shares: levels.map((each, k) => (half ? each : k + 1) / count) };
}

/** Return the number, from 1, of the first rating that fills a part of the stars. */
export const levelAt = (share, shares, slack = 0) => clamp(shares.findIndex((each) => each >= share + slack) + 1 || shares.length, 1, shares.length);

/** Return stars that show the rating with a number among all, from 1; `rate(number)` hears of another, and of 0 for none. */
function stars(name, levels, number, rate) {
  const count = levels.length, text = number ? String(levels[number - 1]) : "not rated", drawn = starsOf(levels);
  const fill = (star, level) => {
    star.style.setProperty("--filled", `${100 * (drawn.shares[level - 1] ?? 0)}%`);
    star.dataset.text = levels[level - 1] ?? "";
  };
  const under = ({ currentTarget, clientX }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return levelAt((clientX - left) / width, drawn.shares, drawn.count < count ? HALF / drawn.count : 0);
  };
  const [more, less] = [Math.min(count, number + 1), Math.max(0, number - 1)];
  const keys = { ArrowRight: more, ArrowUp: more, ArrowLeft: less, ArrowDown: less, Home: 1, End: count, Delete: 0 };
  return h("span.nmd-stars", {
    role: "slider", tabindex: 0, title: text, "aria-label": `rating of ${name}`, "aria-valuetext": text, style: `--filled: ${100 * (drawn.shares[number - 1] ?? 0)}%`,
    "aria-valuemin": 0, "aria-valuemax": count, "aria-valuenow": number, "data-number": number, "data-text": levels[number - 1] ?? "",
    keydown: (event) => [keyOf(event, keys)].filter(Number.isFinite).forEach((next) => rate(next)),
    pointermove: (event) => fill(event.currentTarget, under(event)),
    pointerleave: ({ currentTarget }) => fill(currentTarget, currentTarget.dataset.number),
    click: (event) => rate(under(event) === number ? 0 : under(event)),
  }, "★".repeat(drawn.count));
}

export class Ratings {
  constructor(send, plane) {
    Object.assign(this, { send, plane });
    this.element = made(h("div.nmd-lists", { hidden: true }));
  }

  show(data, selected) {
    this.element.hidden = !data;
    if (!data || (data === this.data && selected === this.selected)) return;
    Object.assign(this, { data, selected });
    const ask = (name, value) => this.send({ do: "ask", name, value }), { you, fields, known, top, about, sort, least } = data;
    const sorts = you ? SORTS : { highest: SORTS.highest, surest: SORTS.surest };
    draw(this.element, h("section.nmd-known", { "aria-label": "ratings" },
      h("div.nmd-list-head", h("strong", you ? "YOU" : "RATED"), button(you ? "somebody else" : "☆ you", () => ask("row", data.turn), { class: "nmd-turn" })),
      h("div.nmd-query", controls(fields, ask)),
      this.heads(known[0], you), h("ol", steps("li button", MOVES), { tabindex: 0, "aria-label": "ratings of this person" }, known.map((each) => this.line(each, you)))),
    h("section.nmd-top", { "aria-label": "suggestions" }, h("div.nmd-list-head", h("strong", "FOR ", you ? "YOU" : data.person),
      h("label", "by ", h("select.nmd-sort", { value: sort, title: "least uncertain: the highest lower end of the 90 % range", change: ({ target }) => ask("sort", target.value) },
        Object.entries(sorts).map(([name, text]) => h("option", { value: name, selected: name === sort }, text)))),
      h("label", "at least ", h("input", { size: 3, value: String(least), inputmode: "numeric", change: ({ target }) => ask("least", target.value) }), " ratings")),
    h("p.nmd-about-you", { title: about }, about),
    this.heads(top[0], false), h("ol", steps("li button", MOVES), { tabindex: 0, "aria-label": "suggestions" }, top.map((each) => this.line(each, false)))));
  }

  heads(film, rated) {
    const { rating, for_you, ends, n } = film ?? {}, { levels } = this.data;
    return h("div.nmd-heads", rated && h("span", "stars"), h("span.nmd-title", "title"), rating !== undefined && h("span.nmd-rating", "rated"),
      for_you !== undefined && h("span.nmd-for-you", { title: "stars more than for somebody equally generous" }, "for you"), film && h("span.nmd-predicted", "model"), n !== undefined && [ends && h("span.nmd-interval", { title: "90 % range on the scale of the ratings" }, [levels[0], "90 %", levels.at(-1)].map((text) => h("span", text))), h("small", "ratings")]);
  }

  /** Return one film: its title, stars or a rating, what is for this person alone, and the prediction with its interval. */
  line({ column, title, rating, number, predicted, ends, text, for_you, n, hidden, near }, rated) {
    const pick = () => {
      this.send({ do: "select", column });
      if (this.data.you && !rated && column !== this.selected) this.element.querySelector(".nmd-about-you").firstChild.data = `${title} …`; // until Python knows why
    };
    const light = (columns) => () => this.plane.light(columns);
    const rate = (level) => this.send({ do: "rate", column, number: level });
    const bar = ends && n !== undefined && h("span.nmd-interval", { title: text, "aria-hidden": "true" }, h("i", { style: `left: ${100 * ends[0]}%; width: ${100 * (ends[1] - ends[0])}%` }),
      h("b", { style: `left: ${100 * ends[2]}%` }));
    return h("li", { key: column, "aria-current": column === this.selected || null, pointerenter: light([column, ...near]), pointerleave: light([]),
      focusin: light([column, ...near]), focusout: light([]) },
      rated ? stars(title, this.data.levels, number, rate) : null,
      h("button.nmd-title", { type: "button", title: hidden ? `${title}: held out` : title, click: pick }, hidden ? "● " : "", title),
      rating !== undefined && h("span.nmd-rating", rating), for_you !== undefined && h("span.nmd-for-you", for_you),
      h("span.nmd-predicted", { title: text }, predicted), bar, n !== undefined && h("small", { title: `${n} ratings` }, String(n)));
  }
}
