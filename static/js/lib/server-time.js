// @ts-check
// The server's present. "3 min ago" is told by its clock, for the viewer's may be wrong.

import { all, h } from "./dom.js";
import { UNKNOWN } from "./format.js";
import { ago, moment } from "./time.js";

let ahead = 0;

/** @param {string} asOf what the server says is now */
export function serverSays(asOf) {
  ahead = Date.parse(asOf) - Date.now();
}

/** Epoch milliseconds. */
export function present() {
  return Date.now() + ahead;
}

/** "12 s ago", "in 4 min" @param {string} iso */
export function relative(iso) {
  const seconds = (present() - Date.parse(iso)) / 1000;
  if (seconds > -2) return ago(Math.max(0, seconds));
  return `in ${ago(-seconds).replace(" ago", "")}`;
}

/** An instant: when, and how long ago. @param {string | null | undefined} iso @param {string} [none] */
export function when(iso, none = UNKNOWN) {
  if (!iso) return h("span", { class: "muted" }, none);
  return h("time", { datetime: iso, title: `${moment(iso)} (${iso})`, "data-ago": "" }, relative(iso));
}

/** Keep every element that carries `data-ago` up to date. */
export function wireAges() {
  setInterval(() => {
    if (document.hidden) return;
    for (const element of all("time[data-ago]")) {
      const text = relative(element.getAttribute("datetime") ?? "");
      if (element.textContent !== text) element.textContent = text; // a selection of it survives
    }
  }, 1000);
}
