// @ts-check
// Views that somebody keeps under a name: range, filters and columns, as the address says them. They stay in this browser.

import { add, announce, byId, fill, h, icon } from "../dom.js";
import { meant } from "../filters.js";
import { store, stored } from "../stored.js";

/** @typedef {{name: string, query: string, first: boolean}} Saved `first`: the page opens with it */

const KEY = "views";
const LONGEST = 80;

/**
 * What is kept; null where it cannot be read.
 * @returns {Saved[] | null}
 */
function kept() {
  try {
    const told = JSON.parse(stored(KEY) ?? "[]");
    const sound = (/** @type {any} */ one) => one && typeof one.name === "string" && one.name && typeof one.query === "string";
    if (!Array.isArray(told) || !told.every(sound)) return null;
    return told.map((one) => ({ name: one.name.slice(0, LONGEST), query: one.query, first: one.first === true }));
  } catch {
    return null;
  }
}

/** The address of the view that the page opens with, if there is one. @param {string} path @returns {string | null} */
export function firstView(path) {
  const view = kept()?.find((one) => one.first);
  return view?.query ? address(path, view) : null;
}

/** @param {string} path @param {Saved} view */
function address(path, view) {
  return `${path}?${new URLSearchParams(view.query)}`;
}

/**
 * The dialog of the views of this page.
 * @param {() => URLSearchParams} current the view that the page shows
 * @param {() => string} words what it shows, in short: a name to begin with
 */
export function wireViews(current, words) {
  const dialog = byId("views", HTMLDialogElement);
  const name = byId("views-name", HTMLInputElement);
  const list = byId("views-list");
  /** @type {string | null} */
  let renamed = null;

  const show = () => {
    const views = kept();
    byId("views-none").hidden = Boolean(views?.length);
    byId("views-none").textContent = views ? "None yet." : "What this browser kept cannot be read, so it is left out. Saving a view replaces it.";
    fill(list, ...(views ?? []).map((view) => (view.name === renamed ? naming(view) : entry(view))));
  };

  /** @param {Saved[]} views @param {string} said @param {string} [focus] the name of the view that was dealt with */
  const keep = (views, said, focus) => {
    const done = store(KEY, views.length ? JSON.stringify(views) : null);
    renamed = null;
    show();
    byId("views-said").textContent = done ? said : "This browser does not let pages remember anything.";
    announce(byId("views-said").textContent ?? "");
    const link = focus === undefined ? null : [...list.querySelectorAll("a")].find((one) => one.textContent === focus);
    (link ?? byId("views-title")).focus();
  };

  /** @param {Saved} view */
  const entry = (view) => {
    const others = () => (kept() ?? []).filter((one) => one.name !== view.name);
    const item = h("li", {},
      h("a", { href: address(location.pathname, view) }, view.name),
      view.first && h("span", { class: "tag-plain" }, icon("check"), "opens first"),
      h("span", { class: "second clip", title: view.query }, inWords(view.query)));
    add(item, h("div", { class: "actions" },
      button(view.first ? "Do not open first" : "Open first", view.name, () => {
        keep((kept() ?? []).map((one) => ({ ...one, first: !view.first && one.name === view.name })), view.first ? "The page opens as ever." : `The page opens with “${view.name}”.`, view.name);
      }),
      button("Rename", view.name, () => {
        renamed = view.name;
        show();
        list.querySelector("input")?.focus();
      }),
      button("Delete", view.name, () => keep(others(), `“${view.name}” is deleted.`))));
    return item;
  };

  /** @param {Saved} view */
  const naming = (view) => {
    const input = h("input", { class: "input", value: view.name, maxlength: LONGEST, required: true, "aria-label": `New name of ${view.name}` });
    const form = h("form", { class: "views-form" }, input, h("button", { type: "submit", class: "button" }, "Rename"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const chosen = input.value.trim();
      const views = kept() ?? [];
      if (!chosen || (chosen !== view.name && views.some((one) => one.name === chosen))) {
        byId("views-said").textContent = chosen ? `There is a view “${chosen}” already.` : "Give it a name.";
        return;
      }
      keep(views.map((one) => (one.name === view.name ? { ...one, name: chosen } : one)), `It is “${chosen}” now.`, chosen);
    });
    return h("li", {}, form);
  };

  byId("views-open").addEventListener("click", () => {
    renamed = null;
    byId("views-said").textContent = "";
    byId("views-now").textContent = inWords(current().toString());
    name.value = words();
    show();
    dialog.showModal();
    byId("views-title").focus();
  });
  byId("views-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  byId("views-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = name.value.trim().slice(0, LONGEST);
    if (!chosen) return;
    const views = kept() ?? [];
    const old = views.find((one) => one.name === chosen);
    const saved = { name: chosen, query: current().toString(), first: old?.first ?? false };
    keep(old ? views.map((one) => (one === old ? saved : one)) : [...views, saved], old ? `“${chosen}” is what you see now.` : `“${chosen}” is saved.`, chosen);
  });
  return { readable: kept() !== null };
}

/**
 * @param {string} words
 * @param {string} name
 * @param {() => void} act
 */
function button(words, name, act) {
  return h("button", { type: "button", class: "button small", "aria-label": `${words}: ${name}`, click: act }, words);
}

/** "now-7d · model gpt-5.6 · 9 columns" @param {string} query */
function inWords(query) {
  const parts = [];
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "columns") parts.push(value === "default" ? "default columns" : `${value.split(",").length} columns of its own`);
    else if (name === "from" || name === "to") parts.push(`${name} ${value}`);
    else parts.push(`${name} ${value.startsWith("!") ? "is not " : ""}${meant(value)}`);
  }
  return parts.join(" · ") || "everything of the last 24 hours";
}
