// @ts-check
// Imports, newest first: how far each is, what came of it, what was skipped and why.

import { h, icon } from "../dom.js";
import { bytes, counted, integer, regrouped } from "../format.js";
import { moment } from "../time.js";

/** State: icon, tone, words. */
const STATES = /** @type {Record<string, readonly [string, string, string]>} */ ({
  uploading: ["arrow-up", "unknown", "Being sent"],
  waiting: ["rate_limited", "unknown", "Waits for another one"],
  running: ["sending", "unknown", "Running"],
  done: ["completed", "ok", "Done"],
  interrupted: ["incomplete", "warn", "Interrupted"],
  empty: ["unknown", "unknown", "Nothing to import"],
  undoing: ["recovering", "unknown", "Being undone"],
  undone: ["silence", "unknown", "Undone"],
});
const BUSY = new Set(["waiting", "running", "undoing"]);

/** Whether something is still going on. @param {any} one */
export function busy(one) {
  return BUSY.has(one.state);
}

/** @param {any} one */
export function stateWord(one) {
  return STATES[one.state]?.[2] ?? one.state;
}

/**
 * @param {any[]} imports
 * @param {Map<string, any>} details by id, of those that are open
 * @param {{open: (id: string, open: boolean) => void, undo: (one: any) => void}} on
 */
export function importList(imports, details, on) {
  if (!imports.length) {
    return h("div", { class: "card empty" }, icon("mark"), h("h3", {}, "Nothing was imported yet"),
      h("p", {}, "Drop a folder of rollouts above, or run ", h("code", {}, "warmline import PATH"), " on the machine where the files are."));
  }
  return h("ul", { class: "imports" }, ...imports.map((one) => h("li", {}, card({ ...details.get(one.id), ...one }, on))));
}

/**
 * @param {any} one
 * @param {{open: (id: string, open: boolean) => void, undo: (one: any) => void}} on
 */
function card(one, on) {
  const [mark, tone, word] = STATES[one.state] ?? ["unknown", "unknown", one.state];
  const title = one.names || (one.state === "uploading" ? "Files that are sent" : "Files that were sent");
  const id = `import-${one.id}`;
  return h("article", { class: "card import", "aria-labelledby": id, "data-state": one.state },
    h("div", { class: "import-head" },
      h("h3", { id, class: "clip", title }, title),
      h("span", { class: `tag ${tone}` }, icon(mark), word),
      ...one.formats.map((/** @type {string} */ name) => h("span", { class: "tag-plain" }, name)),
      h("time", { class: "muted", datetime: one.started_at }, moment(one.started_at))),
    one.progress && busy(one) && bar(one),
    one.failure && h("p", { class: "failure" }, icon("error"), h("span", {}, regrouped(one.failure.message), " ", h("span", { class: "muted" }, one.failure.hint ?? ""))),
    h("div", { class: "came" },
      h("p", {}, ...came(one)),
      undoable(one) && h("button", { type: "button", class: "button small", "data-key": `undo-${one.id}`, click: () => on.undo(one) },
        undoWord(one), h("span", { class: "visually-hidden" }, ` ${title}`))),
    h("details", { "data-key": id, toggle: (/** @type {Event} */ event) => on.open(one.id, /** @type {HTMLDetailsElement} */ (event.target).open) },
      h("summary", {}, "Details", h("span", { class: "visually-hidden" }, ` of ${title}`)),
      ...told(one)));
}

/** @param {any} one */
function came(one) {
  if (one.state === "uploading") return ["It takes files; nothing is imported yet."];
  if (one.state === "empty") return ["None of the files is of a format that can be imported."];
  const kept = one.kept && ` ${counted(one.kept, "row")} had been deleted as too old: what they added to the sums stays.`;
  return [h("strong", {}, counted(one.rows.new, "new row")), `, ${integer(one.rows.known)} known, ${integer(one.skipped.records)} skipped.`, kept];
}

/** @param {any} one */
function undoable(one) {
  return !["undone", "empty"].includes(one.state);
}

/** @param {any} one */
export function undoWord(one) {
  if (one.state === "uploading") return "Throw away";
  if (one.state === "undoing") return "Go on undoing";
  return ["waiting", "running"].includes(one.state) ? "Stop and undo" : "Undo";
}

/** @param {any} one */
function bar({ state, progress: { done, of } }) {
  const words = state === "undoing" ? `${integer(done)} of ${counted(of, "row")} taken away` : `${bytes(done)} of ${bytes(of)} read`;
  return h("div", { class: "bar-line" }, h("progress", { max: of, value: done, "aria-label": words }), h("span", { class: "muted" }, words));
}

/** What is known beyond the numbers; fetched when it is opened. @param {any} one */
function told(one) {
  const rows = one.rows_in_ledger;
  return [
    rows && h("p", {}, h("a", { class: "button small", href: `/requests?${rowsQuery(rows)}` }, "Show ", counted(rows.rows, "row"), icon("arrow-right")),
      " ", h("span", { class: "muted" }, `from ${moment(rows.from)} to ${moment(rows.to)}`)),
    one.skipped.reasons.length > 0 && reasons(one.skipped.reasons),
    one.report && files(one.report),
    one.rows_in_ledger === null && !one.report && h("p", { class: "muted" }, "No row of it is in the ledger."),
  ];
}

/** @param {{from: string, to: string, sources: string[]}} rows */
function rowsQuery({ from, to, sources }) {
  const query = new URLSearchParams({ from, to });
  for (const source of sources) query.append("source", source);
  return query;
}

/** @param {any[]} found */
function reasons(found) {
  return h("table", { class: "plain" },
    h("caption", {}, "Skipped"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Why"), h("th", { scope: "col", class: "number" }, "Records"), h("th", { scope: "col" }, "For example"))),
    h("tbody", {}, ...found.map((one) => h("tr", {},
      h("th", { scope: "row" }, one.reason, one.reason.startsWith("was purged") && h("span", { class: "muted" }, " (tick the box above to take them again)")),
      h("td", { class: "number" }, integer(one.records)),
      h("td", {}, one.examples.length ? one.examples.map((/** @type {any} */ at) => `${at.file}, line ${integer(at.line)}`).join("; ") : "–")))));
}

/** @param {any} report */
function files(report) {
  return h("div", {},
    h("table", { class: "plain" },
      h("caption", {}, "Files"),
      h("thead", {}, h("tr", {}, ...["File", "Format", "New", "Known", "Skipped"].map((name, at) => h("th", { scope: "col", class: at > 1 && "number" }, name)))),
      h("tbody", {}, ...report.files.map((/** @type {any} */ file) => h("tr", {},
        h("th", { scope: "row" }, file.name, file.failure && h("span", { class: "said bad" }, file.failure), ...file.remarks.map((/** @type {string} */ remark) => h("span", { class: "said" }, remark))),
        h("td", {}, file.format ?? "–"),
        ...[file.new, file.known, file.skipped].map((count) => h("td", { class: "number" }, file.format ? integer(count) : "–")))))),
    h("p", { class: "muted" }, [
      report.more_files > 0 && `And ${counted(report.more_files, "other file")}.`,
      report.passed_over > 0 && `${counted(report.passed_over, "file")} of other formats ${report.passed_over === 1 ? "was" : "were"} passed over.`,
      report.merged > 0 && `${counted(report.merged, "record")} ${report.merged === 1 ? "is of a call" : "are of calls"} that the gateway had seen, and one row with its own${report.differing ? ` (${integer(report.differing)} with other figures)` : ""}.`,
      report.strangers > 0 && `${counted(report.strangers, "tenant")} of these rows ${report.strangers === 1 ? "is" : "are"} new to the ledger: their sessions stand beside those that were there.`,
    ].filter(Boolean).join(" ")));
}
