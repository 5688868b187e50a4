// @ts-check
// Range, filters and chips: a GET form whose state is the query string, shared by the pages.

import { get } from "./api.js";
import { add, all, announce, byId, copyText, fill, h, icon } from "./dom.js";
import * as filters from "./filters.js";
import { integer } from "./format.js";
import { fromField, linkZone, moment, rangeWords, relativeSeconds, shifted, toField, widened, zone } from "./time.js";

/** @typedef {import("./filters.js").View} View */
/** @typedef {{value: string, label?: string, turns: number}} Choice */

export class Toolbar {
  /** @type {View} */ view;
  /** @type {Record<string, Choice[]>} */ #choices = {};
  /** @type {Map<string, string>} */ #labels = new Map();
  /** @type {{from: string, to: string} | null} */ #resolved = null;
  #form = byId("filters", HTMLFormElement);
  #facets = byId("facets");
  #changed;

  /** @param {(view: View) => void} changed the view is another one */
  constructor(changed) {
    this.#changed = changed;
    this.view = this.#readLocation();
    this.#wire();
    this.#show();
  }

  #readLocation() {
    linkZone(new URLSearchParams(location.search).get("tz"));
    return filters.read(location.search);
  }

  #wire() {
    addEventListener("popstate", () => {
      this.view = this.#readLocation();
      this.#show();
      this.#changed(this.view);
    });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#applyForm();
    });
    for (const input of /** @type {HTMLInputElement[]} */ (all("input[name=range]", this.#form))) {
      input.addEventListener("change", () => {
        byId("custom").hidden = input.value !== "custom";
        if (input.value === "custom") this.#fillCustom();
        else this.go({ ...this.view, from: input.value, to: filters.DEFAULT_TO, turn: null });
      });
    }
    byId("custom-apply").addEventListener("click", () => this.#applyCustom());
    for (const id of ["custom-from", "custom-to", "custom-relative"]) {
      byId(id).addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        this.#applyCustom();
      });
    }
    byId("clear-all").addEventListener("click", () => this.go(filters.cleared(this.view)));
    byId("earlier").addEventListener("click", () => this.#move((exact) => shifted(exact, -1)));
    byId("later").addEventListener("click", () => this.#move((exact) => shifted(exact, 1)));
    byId("zoom-out").addEventListener("click", () => this.#move((exact) => widened(this.view, exact)));
    byId("copy-link").addEventListener("click", () => void this.#copy("copy-link", {}));
    byId("copy-absolute").addEventListener("click", () => void this.#copy("copy-absolute", this.#resolved ?? {}));
    byId("filter-switch").addEventListener("click", () => {
      this.#facets.hidden = !this.#facets.hidden;
      byId("filter-switch").setAttribute("aria-expanded", String(!this.#facets.hidden));
      if (!this.#facets.hidden) void this.#loadChoices();
    });
    const text = document.getElementById("q");
    if (text instanceof HTMLInputElement) text.addEventListener("search", () => this.#applyForm());
  }

  /**
   * Go to another view: a new entry in the history, so that Back returns.
   * @param {View} view
   */
  go(view) {
    const next = filters.href(location.pathname, view);
    if (next === location.pathname + location.search) return;
    history.pushState(null, "", next);
    this.view = view;
    this.#show();
    this.#changed(view);
  }

  /**
   * Open or close a row: the address changes, the view does not.
   * @param {string | null} turn
   */
  openTurn(turn) {
    const was = this.view.turn;
    this.view = { ...this.view, turn };
    const next = filters.href(location.pathname, this.view);
    // stepping from row to row is one entry in the history, opening the first is another
    if (was && turn) history.replaceState(null, "", next);
    else history.pushState(null, "", next);
  }

  /**
   * Something that only this page knows of has changed: the address says so, without an entry in the history.
   * @param {Record<string, string>} own
   */
  keepOwn(own) {
    if (new URLSearchParams(own).toString() === new URLSearchParams(this.view.own).toString()) return;
    this.view = { ...this.view, own };
    history.replaceState(history.state, "", filters.href(location.pathname, this.view));
  }

  /** Show everything anew in another zone. */
  rezone() {
    this.#show();
    if (!byId("custom").hidden) this.#fillCustom();
  }

  /**
   * Tell what the range resolved to, once the server has said so.
   * @param {{from: string, to: string}} range
   */
  resolved(range) {
    this.#resolved = range;
    this.#showRange();
  }

  /** Names for values that are keys. @param {string} value @param {string} label */
  learn(value, label) {
    this.#labels.set(value, label);
  }

  /** @param {string} value */
  label(value) {
    return this.#labels.get(value) ?? value;
  }

  #applyForm() {
    /** @type {Record<string, string[]>} */
    const values = {};
    for (const [name] of filters.FACETS) {
      const boxes = /** @type {HTMLInputElement[]} */ (all(`input[type=checkbox][name=${name}]`, this.#form));
      if (!boxes.length) continue; // the panel was never opened: what the link says stands
      const excluded = (this.view.values.get(name) ?? []).filter((value) => value.startsWith("!"));
      values[name] = [...boxes.filter((box) => box.checked).map((box) => box.value), ...excluded];
    }
    const text = document.getElementById("q");
    if (text instanceof HTMLInputElement) values.q = text.value.trim() ? [text.value.trim()] : [];
    this.go(filters.changed(this.view, values));
  }

  #fillCustom() {
    const range = this.#resolved;
    const from = byId("custom-from", HTMLInputElement);
    const to = byId("custom-to", HTMLInputElement);
    from.value = range ? toField(new Date(range.from)) : "";
    to.value = range ? toField(new Date(range.to)) : "";
    byId("custom-zone").textContent = zone();
    from.focus();
  }

  /** @param {(exact: {from: string, to: string}) => {from: string, to: string}} to */
  #move(to) {
    if (this.#resolved) this.go({ ...this.view, ...to(this.#resolved), turn: null });
  }

  #applyCustom() {
    const relative = byId("custom-relative", HTMLInputElement).value.trim();
    const unread = relative && !relativeSeconds(relative) ? "Write a relative start as now-6h, now-30m or now-7d." : "";
    byId("custom-relative").setAttribute("aria-invalid", String(Boolean(unread)));
    if (relative) {
      byId("custom-error").textContent = unread;
      if (!unread) this.go({ ...this.view, from: relative, to: filters.DEFAULT_TO, turn: null });
      return;
    }
    const from = fromField(byId("custom-from", HTMLInputElement).value);
    const to = fromField(byId("custom-to", HTMLInputElement).value);
    const wrong = !from || !to ? "Give both a start and an end." : from >= to ? "The start must lie before the end." : "";
    const message = byId("custom-error");
    message.textContent = wrong;
    for (const id of ["custom-from", "custom-to"]) byId(id).setAttribute("aria-invalid", String(Boolean(wrong)));
    if (from && to && !wrong) this.go({ ...this.view, from: from.toISOString(), to: to.toISOString(), turn: null });
  }

  /** @param {string} id of the button @param {{from?: string, to?: string}} range other than that of the view */
  async #copy(id, { from = this.view.from, to = this.view.to }) {
    const done = await copyText(location.origin + filters.href(location.pathname, { ...this.view, from, to }));
    announce(done ? "Copied a link to this view." : "The browser did not allow copying.");
    const button = byId(id);
    const words = button.textContent;
    button.textContent = done ? "Link copied" : "Copying was refused";
    setTimeout(() => (button.textContent = words), 1500);
  }

  async #loadChoices() {
    const told = await get("/api/dimensions", filters.apiQuery(this.view)).catch(() => null);
    if (told) this.#choices = told.dimensions;
    for (const choice of this.#choices.session ?? []) if (choice.label) this.learn(choice.value, choice.label);
    this.#showFacets();
    this.#showChips();
  }

  #show() {
    const preset = this.view.to === filters.DEFAULT_TO ? this.view.from : null;
    const inputs = /** @type {HTMLInputElement[]} */ (all("input[name=range]", this.#form));
    const known = inputs.find((input) => input.value === preset);
    for (const input of inputs) input.checked = input === (known ?? inputs[inputs.length - 1]);
    byId("custom").hidden = Boolean(known);
    const text = document.getElementById("q");
    if (text instanceof HTMLInputElement) text.value = this.view.values.get("q")?.[0] ?? "";
    const count = filters.count(this.view);
    byId("filter-count").textContent = count ? integer(count) : "";
    byId("filter-count").hidden = !count;
    this.#showChips();
    this.#showRange();
    if (!this.#facets.hidden) void this.#loadChoices();
  }

  #showRange() {
    const words = byId("range-words");
    const relative = relativeSeconds(this.view.from) !== null;
    const exact = this.#resolved ? `${moment(this.#resolved.from)} to ${moment(this.#resolved.to)}` : "";
    const readable = (/** @type {string} */ at) => relativeSeconds(at) !== null || !Number.isNaN(Date.parse(at));
    byId("range-zone").textContent = zone();
    byId("copy-absolute").hidden = !relative;
    byId("copy-absolute", HTMLButtonElement).disabled = !this.#resolved;
    byId("later", HTMLButtonElement).disabled = this.view.to === filters.DEFAULT_TO;
    if (!readable(this.view.from) || !readable(this.view.to)) return fill(words, "a range that cannot be read");
    fill(words, relative ? rangeWords(this.view.from, this.view.to) : exact || rangeWords(this.view.from, this.view.to));
    words.title = exact;
    if (this.#resolved && !byId("custom").hidden && document.activeElement?.closest("#custom") === null) this.#fillQuietly();
  }

  /** Fill the custom fields without taking the focus. */
  #fillQuietly() {
    if (!this.#resolved) return;
    byId("custom-from", HTMLInputElement).value = toField(new Date(this.#resolved.from));
    byId("custom-to", HTMLInputElement).value = toField(new Date(this.#resolved.to));
    byId("custom-zone").textContent = zone();
  }

  #showChips() {
    const list = filters.chips(this.view);
    byId("chip-row").hidden = !list.length;
    fill(byId("chips"), ...list.map((chip) => {
      const shown = chip.name === "session" ? this.label(chip.shown) : chip.shown;
      const name = `${chip.title} ${chip.excludes ? "is not" : "is"}`;
      const remove = h("button", { type: "button", "aria-label": `Remove filter: ${name} ${shown}`, title: "Remove this filter" }, icon("close"));
      remove.addEventListener("click", () => {
        const rest = (this.view.values.get(chip.name) ?? []).filter((value) => value !== chip.value);
        this.go(filters.changed(this.view, { [chip.name]: rest }));
      });
      return h("li", { class: "chip" }, h("span", { title: `${name} ${chip.shown}` }, h("span", { class: "chip-name" }, `${name} `), shown), remove);
    }));
  }

  #showFacets() {
    const focused = document.activeElement instanceof HTMLInputElement ? document.activeElement.id : "";
    fill(this.#facets, ...filters.FACETS.map(([name, title]) => {
      const chosen = (this.view.values.get(name) ?? []).filter((value) => !value.startsWith("!"));
      const offered = this.#choices[name] ?? [];
      const missing = chosen.map(filters.meant).filter((value) => !offered.some((choice) => choice.value === value)).map((value) => ({ value, turns: 0 }));
      const list = h("ul", { class: "facet-values" });
      for (const choice of [...missing, ...offered]) {
        const id = `facet-${name}-${choice.value}`;
        const box = h("input", { type: "checkbox", name, value: filters.literal(choice.value), id, change: () => this.#applyForm() });
        box.checked = chosen.includes(box.value);
        const shown = this.label(choice.value);
        add(list, h("li", {}, h("label", { for: id, title: shown }, box, h("span", { class: "clip" }, shown), h("span", { class: "muted count" }, integer(choice.turns)))));
      }
      const none = h("p", { class: "muted" }, "none in this range");
      return h("fieldset", { class: "facet" }, h("legend", {}, title), list.childElementCount ? list : none);
    }));
    if (focused) document.getElementById(focused)?.focus();
  }
}
