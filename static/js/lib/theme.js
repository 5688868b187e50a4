// @ts-check
// Light, dark, or whatever the system says. The choice is remembered where storage allows it.

import { store } from "./stored.js";

/** @typedef {"system" | "light" | "dark"} Theme */
/** @type {Set<() => void>} */
const listeners = new Set();

/** @returns {Theme} */
export function theme() {
  const set = document.documentElement.dataset.theme;
  return set === "light" || set === "dark" ? set : "system";
}

/** @param {Theme} next */
export function chooseTheme(next) {
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  store("theme", next === "system" ? null : next); // in force also where it is not remembered
  for (const listener of listeners) listener();
}

/**
 * Called whenever the colours in force change.
 * @param {() => void} listener
 */
export function onTheme(listener) {
  listeners.add(listener);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const listener of listeners) listener();
});

/**
 * The colour in force of a token: it reads back as rgb() because tokens.css registers it.
 * @param {string} name without the dashes
 */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
