// @ts-check
// Redrawing a list that somebody may be using: the focus stays on what it was on, what is open stays open.

import { all, fill } from "./dom.js";

/**
 * Replace all that an element holds. What carries `data-key` is known again after it.
 * @param {HTMLElement} host
 * @param {...import("./dom.js").Child} children
 */
export function redraw(host, ...children) {
  const active = document.activeElement;
  const key = active instanceof HTMLElement && host.contains(active) ? (active.dataset.key ?? "") : "";
  const open = new Set(all("details[open][data-key]", host).map((one) => one.dataset.key));
  fill(host, ...children);
  for (const details of /** @type {HTMLDetailsElement[]} */ (all("details[data-key]", host))) {
    if (open.has(details.dataset.key)) details.open = true;
  }
  if (key && !focusKey(key, host)) focusHeading(host); // what was acted on has gone
}

/** The keyboard stays near where it was. @param {HTMLElement} host */
function focusHeading(host) {
  const [heading] = all("h2", host.closest("section") ?? host);
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/**
 * Give the focus to what carries a key; whether it is there.
 * @param {string} key
 * @param {ParentNode} [root]
 */
export function focusKey(key, root = document) {
  const element = all("[data-key]", root).find((one) => one.dataset.key === key);
  element?.focus({ preventScroll: true });
  return Boolean(element);
}

/** Whether text within an element is selected, so that redrawing it would take the selection away. @param {Element} host */
export function selecting(host) {
  const selection = getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.anchorNode && host.contains(selection.anchorNode));
}
