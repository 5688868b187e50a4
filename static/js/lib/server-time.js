// @ts-check
// The server's present. "3 min ago" is told by its clock, for the viewer's may be wrong.

import { all } from "./dom.js";
import { ago } from "./time.js";

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
