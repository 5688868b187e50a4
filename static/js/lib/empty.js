// @ts-check
// Nothing to show has three causes, and each has its own way out.

import { byId, copyText, fill, h, icon } from "./dom.js";
import { cleared, count } from "./filters.js";
import { rangeWords, relativeSeconds } from "./time.js";

const WIDER = /** @type {const} */ ([["now-1h", "1 hour"], ["now-6h", "6 hours"], ["now-24h", "24 hours"], ["now-7d", "7 days"], ["now-30d", "30 days"]]);

/**
 * Show the fitting empty state, or none.
 * @param {boolean} ledgerEmpty the ledger holds no row at all
 * @param {number} rows in this view
 * @param {import("./toolbar.js").Toolbar} toolbar
 * @returns {boolean} whether there is nothing to show
 */
export function showEmpty(ledgerEmpty, rows, toolbar) {
  const box = byId("empty");
  const kind = rows ? "" : ledgerEmpty ? "ledger" : count(toolbar.view) ? "filter" : "range";
  box.hidden = !kind;
  if (kind !== box.dataset.kind || kind === "range") {
    box.dataset.kind = kind;
    if (kind === "ledger") fill(box, ...noLedger());
    if (kind === "range") fill(box, ...noneInRange(toolbar));
    if (kind === "filter") fill(box, ...noneMatch(toolbar));
  }
  return Boolean(kind);
}

function noLedger() {
  const line = `export OPENAI_BASE_URL=${location.origin}/v1`;
  return [
    icon("mark"),
    h("h2", {}, "The ledger is empty"),
    h("p", {}, h("a", { href: "/connect" }, "Point a client"), " at Warmline; nothing else changes for it. This page fills itself with the first turn."),
    command(line, "the line that points a client here"),
    h("p", {}, "Or ", h("a", { href: "/import" }, "import logs"), " that you have. ", h("code", {}, "warmline demo"), " runs sample agents against a built-in provider, with some days of history."),
  ];
}

/**
 * @param {string} line
 * @param {string} name
 */
function command(line, name) {
  const button = h("button", { type: "button", class: "button", "aria-label": `Copy ${name}` }, icon("copy"), h("span", {}, "Copy"));
  button.addEventListener("click", async () => {
    const done = await copyText(line);
    fill(button, icon(done ? "check" : "copy"), h("span", {}, done ? "Copied" : "Select and copy"));
  });
  return h("div", { class: "command" }, h("code", {}, line), button);
}

/** @param {import("./toolbar.js").Toolbar} toolbar */
function noneInRange(toolbar) {
  const seconds = relativeSeconds(toolbar.view.from);
  const wider = WIDER.filter(([from]) => seconds === null || (relativeSeconds(from) ?? 0) > seconds);
  return [
    icon("rate_limited"),
    h("h2", {}, seconds === null ? "No turns in this range" : `No turns in ${rangeWords(toolbar.view.from, toolbar.view.to)}`),
    h("p", {}, "The ledger holds turns of other times."),
    wider.length > 0 && h("div", { class: "actions" }, ...wider.slice(-3).map(([from, words]) =>
      h("button", { type: "button", class: "button", click: () => toolbar.go({ ...toolbar.view, from, to: "now" }) }, `Widen to ${words}`))),
  ];
}

/** @param {import("./toolbar.js").Toolbar} toolbar */
function noneMatch(toolbar) {
  return [
    icon("filter"),
    h("h2", {}, "No turn matches these filters"),
    h("p", {}, "Remove one of the filters above, or all of them."),
    h("div", { class: "actions" }, h("button", { type: "button", class: "button", click: () => toolbar.go(cleared(toolbar.view)) }, "Clear all filters")),
  ];
}
