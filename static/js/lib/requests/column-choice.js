// @ts-check
// Choosing the columns of the ledger: which, in which order, how close. The address says it, the browser remembers it.

import { announce, byId, h, icon } from "../dom.js";
import { focusKey, redraw } from "../keyed.js";
import { store, stored } from "../stored.js";
import { GROUPS, wordsOf } from "./column-words.js";
import { columnOf, DEFAULT } from "./columns.js";

const KNOWN = new Set(GROUPS.flatMap(([, columns]) => Object.keys(columns)));
const IN_WORDS = "default";

export class ColumnChoice {
  names = DEFAULT;
  compact = stored("density") === "compact";
  /** Names in the address that are no columns. @type {string[]} */ unknown = [];
  #chosen;

  /** @param {() => void} chosen somebody chose others, or another density */
  constructor(chosen) {
    this.#chosen = chosen;
    this.#wire();
  }

  get columns() {
    return this.names.map(columnOf);
  }

  /** Whether they are somebody's own choice, so that none may be left out where they do not fit. */
  get own() {
    return !same(this.names, DEFAULT);
  }

  /**
   * Take what the address says, else what is remembered.
   * @param {string | undefined} asked
   */
  take(asked) {
    const named = asked === IN_WORDS ? [] : read(asked ?? stored("columns"));
    const known = named.filter((name) => KNOWN.has(name));
    this.unknown = asked ? named.filter((name) => !KNOWN.has(name)) : [];
    this.names = known.length ? known : DEFAULT;
  }

  /** As the address says it: nothing where the default is what one gets anyway. */
  get text() {
    if (this.own) return this.names.join(",");
    return read(stored("columns")).some((name) => KNOWN.has(name)) ? IN_WORDS : "";
  }

  /** The same for a view that is kept, wherever it is opened. */
  get lasting() {
    return this.own ? this.names.join(",") : IN_WORDS;
  }

  #wire() {
    const dialog = byId("pick", HTMLDialogElement);
    byId("pick-open").addEventListener("click", () => {
      this.#show();
      dialog.showModal();
      byId("pick-title").focus();
    });
    byId("pick-close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    byId("pick-default").addEventListener("click", () => this.#choose(DEFAULT, "The default columns are back."));
    for (const choice of ["comfortable", "compact"]) {
      const input = byId(`pick-${choice}`, HTMLInputElement);
      input.checked = this.compact === (choice === "compact");
      input.addEventListener("change", () => {
        this.compact = choice === "compact";
        store("density", choice === "compact" ? choice : null);
        this.#chosen();
      });
    }
  }

  /**
   * @param {string[]} names
   * @param {string} words
   */
  #choose(names, words) {
    this.names = names;
    store("columns", this.own ? names.join(",") : null);
    this.#show();
    announce(words);
    this.#chosen();
  }

  #show() {
    redraw(byId("pick-shown"), ...this.names.map((name, at) => h("li", {}, this.#box(name),
      this.#step(name, at, -1), this.#step(name, at, 1))));
    redraw(byId("pick-more"), ...GROUPS.map(([title, columns]) => {
      const names = Object.keys(columns).filter((name) => !this.names.includes(name));
      return names.length > 0 && h("fieldset", {}, h("legend", {}, title), h("ul", {}, ...names.map((name) => h("li", {}, this.#box(name)))));
    }));
    byId("pick-default", HTMLButtonElement).disabled = !this.own;
  }

  /** @param {string} name */
  #box(name) {
    const shown = this.names.includes(name);
    const box = h("input", { type: "checkbox", checked: shown, disabled: shown && this.names.length === 1, "data-key": `box ${name}` });
    box.addEventListener("change", () => {
      if (box.checked) this.#choose([...this.names, name], `${wordsOf(name)} is shown, as the last column.`);
      else this.#choose(this.names.filter((one) => one !== name), `${wordsOf(name)} is not shown.`);
      focusKey(`box ${name}`, byId("pick")); // it stands in the other list now
    });
    return h("label", {}, box, h("span", {}, wordsOf(name)), h("code", {}, name));
  }

  /**
   * @param {string} name
   * @param {number} at
   * @param {-1 | 1} step
   */
  #step(name, at, step) {
    const words = step < 0 ? "up" : "down";
    const to = at + step;
    const button = h("button", { type: "button", class: `button quiet icon step-${words}`, "aria-label": `Move ${wordsOf(name)} ${words}`, title: `Move ${words}`, "data-key": `${words} ${name}`, "aria-disabled": to < 0 || to >= this.names.length ? "true" : null }, icon("arrow-up"));
    button.addEventListener("click", () => {
      if (to < 0 || to >= this.names.length) return;
      const names = this.names.filter((one) => one !== name);
      names.splice(to, 0, name);
      this.#choose(names, `${wordsOf(name)} is column ${to + 1} of ${names.length}.`);
    });
    return button;
  }
}

/** @param {string | null} text */
function read(text) {
  return [...new Set((text ?? "").split(",").map((name) => name.trim()).filter(Boolean))];
}

/** @param {string[]} one @param {string[]} other */
function same(one, other) {
  return one.length === other.length && one.every((name, at) => name === other[at]);
}
