// @ts-check
// What a rule would have done: its signal over the stored rows, and when it would have fired.

import { isAbort, send } from "../api.js";
import { Chart, plotly } from "../charts.js";
import { add, fill, h, icon } from "../dom.js";
import { counted, milliseconds, regrouped } from "../format.js";
import { dataTable } from "../table.js";
import { moment } from "../time.js";
import { plainly } from "./fields.js";
import { afterTag, amount, causeWords, groupWords, stateTag } from "./words.js";

const RANGES = /** @type {const} */ ([["now-24h", "24 h", "last 24 hours"], ["now-7d", "7 d", "last 7 days"], ["now-14d", "14 d", "last 14 days"]]);
const SETTLES = 700; // milliseconds without a change before it is asked anew
const FIRST = 8; // of the times it would have fired; the others are folded
const MOST = 50; // transitions in the list; all of them are in the API's answer

export class Preview {
  #wanted;
  #from = /** @type {string} */ (RANGES[0][0]);
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  #current = new AbortController();
  #said = h("p", { class: "preview-said", role: "status" }, " ");
  #plot = h("div", { class: "plot" });
  #table = h("div", { class: "data-table", tabindex: 0, role: "region", "aria-label": "Data: preview" });
  #data = h("details", { hidden: true }, h("summary", {}, "Show data"), this.#table);
  #lists = h("div", { class: "preview-lists" });
  #button = h("button", { type: "button", class: "button", click: () => void this.run(true) }, icon("spike"), "Preview");
  #chart = new Chart(this.#plot, { pick: () => undefined, zoom: () => undefined });
  #zone;
  /** How a refusal is put. @type {(fault: any) => string} */
  plainly = plainly;

  /**
   * @param {() => {rule?: any, id?: string, unit: string}} wanted the rule to try; may throw what is wrong with it
   * @param {() => string} zone
   * @param {(fault: unknown, asked: boolean) => void} failed
   */
  constructor(wanted, zone, failed) {
    this.#wanted = wanted;
    this.#zone = zone;
    this.failed = failed;
    this.#plot.hidden = true;
    const ranges = h("fieldset", { class: "segments" }, h("legend", { class: "visually-hidden" }, "Preview over"),
      ...RANGES.map(([value, short, long]) => {
        const input = h("input", { type: "radio", name: "preview-range", value, "aria-label": `The ${long}`, change: () => {
          this.#from = value;
          void this.run(true);
        } });
        input.checked = value === this.#from;
        return h("label", { title: `The ${long}` }, input, h("span", {}, short));
      }));
    this.element = h("section", { class: "preview", "aria-label": "Preview" },
      h("div", { class: "preview-head" }, h("h3", {}, "What it would have done"), ranges, this.#button),
      this.#said, this.#plot, this.#data, this.#lists);
  }

  /** Something changed: run it once it has settled. */
  soon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.run(false), SETTLES);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#current.abort();
    this.#chart.clear();
  }

  /** @param {boolean} asked somebody pressed the button, and wants to know what is wrong */
  async run(asked) {
    clearTimeout(this.#timer);
    this.#current.abort();
    this.#current = new AbortController();
    const { signal } = this.#current;
    this.element.setAttribute("aria-busy", "true");
    try {
      const { unit, ...body } = this.#wanted();
      const told = await send("POST", "/api/alerts/backtest", { ...body, from: this.#from, to: "now", tz: this.#zone() }, signal);
      if (signal.aborted) return;
      await this.#show(told, unit);
    } catch (fault) {
      if (isAbort(fault) || signal.aborted) return;
      this.#nothing(regrouped(this.plainly(fault)));
      this.failed(fault, asked);
    }
    this.element.removeAttribute("aria-busy");
  }

  /** @param {string} words */
  #nothing(words) {
    this.#said.textContent = words;
    this.#plot.hidden = true;
    this.#data.hidden = true;
    this.#chart.clear();
    fill(this.#lists);
  }

  /**
   * @param {any} told what the backtest answered
   * @param {string} unit
   */
  async #show(told, unit) {
    const payload = { slug: "alert-preview", title: "Preview", range: told.range, ...told.chart };
    this.#said.textContent = regrouped(told.sentence);
    this.#plot.hidden = payload.empty;
    this.#data.hidden = !payload.table.rows.length;
    dataTable(this.#table, payload, () => null);
    fill(this.#lists, firings(told.firings, unit), transitions(told.transitions));
    if (payload.empty) return this.#chart.clear();
    const lib = await plotly(document.body.dataset.plotly ?? "").catch(() => null);
    if (!lib || !this.element.isConnected) {
      this.#plot.hidden = true;
      this.#data.open = true;
      return;
    }
    await this.#chart.draw(lib, payload, `${told.range.from} ${told.range.to}`);
  }
}

/**
 * @param {any[]} list
 * @param {string} unit
 */
function firings(list, unit) {
  if (!list.length) return null;
  return h("section", {}, h("h4", {}, list.length === 1 ? "Would have fired once" : `Would have fired ${counted(list.length, "time")}`),
    ...folded(list.slice(0, MOST).map((one) => {
      const labels = groupWords(labelsOf(one.group));
      const lasted = one.ended_at ? `${moment(one.started_at)}, for ${milliseconds(Date.parse(one.ended_at) - Date.parse(one.started_at))}` : `${moment(one.started_at)}, and still does`;
      return h("li", {}, lasted, labels && `, ${labels}`, one.peak !== null && `; worst ${amount(one.peak, unit)}`);
    })), rest(list));
}

/** The first of a list, and the others where they do not push away what follows. @param {HTMLElement[]} items */
function folded(items) {
  const others = items.slice(FIRST);
  return [h("ul", { class: "plain" }, ...items.slice(0, FIRST)),
    others.length > 0 && h("details", {}, h("summary", {}, counted(others.length, "more", "more")), h("ul", { class: "plain" }, ...others))];
}

/** @param {any[]} list */
function transitions(list) {
  if (!list.length) return null;
  return h("details", { "data-key": "transitions" }, h("summary", {}, counted(list.length, "change of state", "changes of state")),
    h("ol", { class: "plain" }, ...list.slice(0, MOST).map((one) => {
      const item = h("li", {}, h("time", { datetime: one.at, title: one.at }, moment(one.at)), " ", stateTag(one.before), " → ", afterTag(one));
      const labels = groupWords(labelsOf(one.group));
      add(item, h("span", { class: "muted" }, ` ${causeWords(one.cause)}${labels && ` (${labels})`}`));
      return item;
    })), rest(list));
}

/** Labels come as an object, or as the canonical JSON of one. @param {unknown} group */
function labelsOf(group) {
  return typeof group === "string" ? JSON.parse(group) : (group ?? {});
}

/** @param {any[]} list */
function rest(list) {
  return list.length > MOST && h("p", { class: "muted" }, counted(list.length - MOST, "more", "more"));
}
