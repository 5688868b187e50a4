// @ts-check
// Keys that walk a list of links: j and k to the next and the one before, r to look again. Enter is the link's own.

import { all } from "./dom.js";
import { onKeys } from "./keys.js";

/**
 * @param {HTMLElement} list
 * @param {string} row selector of what holds one link of the list
 * @param {() => void} again
 */
export function walkByKeys(list, row, again) {
  /** @param {1 | -1} step */
  const move = (step) => {
    const links = all(".row-link", list);
    const at = links.findIndex((link) => link.closest(row) === document.activeElement?.closest(row));
    const next = links[at < 0 ? 0 : at + step];
    next?.focus();
    next?.closest(row)?.scrollIntoView({ block: "nearest" });
  };
  onKeys({ j: () => move(1), k: () => move(-1), r: again });
}
