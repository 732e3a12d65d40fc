// Stars that give a rating by a click or the keyboard; the same one again takes it back.

import { clamp, html, keyOf } from "./dom.mjs";

/** Return the number of the rating at a share of the width, from 1. */
export const levelAt = (share, count) => clamp(Math.ceil(share * count), 1, count);

/** Return stars that show the rating with a number among all, from 1; `rate(number)` hears of another, and of 0 for none. */
export function stars(name, ratings, number, rate) {
  const count = ratings.length, said = number ? String(ratings[number - 1]) : "not rated";
  const fill = (many) => element.style.setProperty("--filled", `${(100 * many) / count}%`);
  const under = (event) => {
    const { left, width } = element.getBoundingClientRect();
    return levelAt((event.clientX - left) / width, count);
  };
  const [more, less] = [Math.min(count, number + 1), Math.max(0, number - 1)];
  const keys = { ArrowRight: more, ArrowUp: more, ArrowLeft: less, ArrowDown: less, Home: 1, End: count, Delete: 0 };
  const press = (event) => {
    const next = keyOf(event, keys);
    if (next !== undefined) rate(next);
  };
  const element = html("span.nmd-stars", {
    role: "slider", tabindex: 0, title: said, "aria-label": `rating of ${name}`, "aria-valuetext": said,
    "aria-valuemin": 0, "aria-valuemax": count, "aria-valuenow": number, keydown: press,
    pointermove: (event) => fill(under(event)), pointerleave: () => fill(number),
    click: (event) => rate(under(event) === number ? 0 : under(event)),
  }, "★".repeat(count > 5 && count % 2 === 0 ? count / 2 : count));
  fill(number);
  return element;
}
