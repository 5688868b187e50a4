// @ts-check
// Single keys as commands: off while somebody types or a dialog asks something. Those that every list has are here.

import { all, byId, typing } from "./dom.js";

/**
 * @param {Record<string, () => void>} acts by key, what this page does
 */
export function onKeys(acts) {
  const known = { ...ofEveryList(), ...acts };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || typing() || asking()) return;
    const act = known[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/** @returns {Record<string, () => void>} */
function ofEveryList() {
  /** @type {Record<string, () => void>} */
  const acts = {};
  const search = document.getElementById("q");
  const help = document.getElementById("keys");
  if (search) acts["/"] = () => search.focus();
  if (document.getElementById("range")) acts.t = () => all("#range input").find((input) => /** @type {HTMLInputElement} */ (input).checked)?.focus();
  if (help instanceof HTMLDialogElement) {
    acts["?"] = () => help.showModal();
    byId("keys-close").addEventListener("click", () => help.close());
    document.getElementById("keys-open")?.addEventListener("click", () => help.showModal());
    help.addEventListener("click", (event) => event.target === help && help.close());
  }
  return acts;
}

/** Whether a dialog has the page; a row in full does not ask anything. */
export function asking() {
  return document.querySelector("dialog:modal:not(#detail)") !== null;
}
