// @ts-check
// Keys that walk a list of links: j and k to the next and the one before, r to look again. Enter is the link's own.

import { all, typing } from "./dom.js";

/**
 * @param {HTMLElement} list
 * @param {string} row selector of what holds one link of the list
 * @param {() => void} again
 * @param {Record<string, () => void>} [more] keys of this page, and what they do
 */
export function walkByKeys(list, row, again, more = {}) {
  /** @param {1 | -1} step */
  const move = (step) => {
    const links = all(".row-link", list);
    const at = links.findIndex((link) => link.closest(row) === document.activeElement?.closest(row));
    const next = links[at < 0 ? 0 : at + step];
    next?.focus();
    next?.closest(row)?.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || typing()) return;
    const act = /** @type {Record<string, () => void>} */ ({ j: () => move(1), k: () => move(-1), r: again, ...more })[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
