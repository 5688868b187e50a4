// @ts-check
// The rows of the list of sessions.

import { h, icon } from "../dom.js";
import { changed, href } from "../filters.js";
import { compact, counted, dollars, integer, orUnknown, percent } from "../format.js";
import { clock, day, moment, sameDay } from "../time.js";
import { strip } from "./strip.js";

/** @typedef {import("../filters.js").View} View */

/**
 * The page of a session. Filters stay, but for those that say which session.
 * @param {string} key
 * @param {View} view
 */
function sessionHref(key, view) {
  return href(`/sessions/${encodeURIComponent(key)}`, changed(view, { session: [], root: [], q: [] }));
}

/**
 * @param {any} row
 * @param {View} view
 * @param {string | null} member of which root it is shown as a part
 * @param {boolean} open whether its sub-agents are shown
 */
export function sessionRow(row, view, member, open) {
  const { continuation: rates, tokens } = row.figures;
  const key = member === null ? row.session_key : `${member}/${row.session_key}`;
  return h("tr", { "data-session": row.session_key, "data-member": member, class: member !== null && "member" },
    h("th", { scope: "row", class: "cell-name" },
      row.tenant !== null
        ? h("a", { href: sessionHref(row.session_key, view), class: "row-link clip", title: row.session, "data-key": key }, row.session ?? row.session_key)
        : h("span", { class: "clip", title: row.session }, row.session ?? row.session_key),
      h("span", { class: "second clip" }, [row.client, row.model].filter(Boolean).join(" · ")),
      row.sub_agents > 0 && h("button", { type: "button", class: "button quiet small agents", "aria-expanded": String(open), "data-root": row.session_key, "data-key": `agents ${row.session_key}` },
        icon("chevron"), counted(row.sub_agents, "sub-agent"))),
    h("td", { class: "cell-strip" }, row.strip.turns && strip(row.strip.turns, row.strip.left_out), h("span", { class: "second" }, stripWords(row))),
    cell("Residency", orUnknown(rates.incremental_rate, percent(rates.incremental_rate), "no turn of known mode")),
    cell("Run", ...run(row.strip)),
    cell("Turns", integer(row.figures.turns)),
    cell("Breaks", integer(rates.breaks), h("span", { class: "second" }, rates.eligible ? `${percent(rates.mismatch_rate)} mismatch` : "none eligible")),
    cell("Input", orUnknown(tokens.input, compact(tokens.input)), h("span", { class: "second" }, tokens.cached_ratio === null ? "" : `${percent(tokens.cached_ratio)} cached`)),
    cell("Missed", orUnknown(row.figures.missed_tokens, compact(row.figures.missed_tokens), "nothing is known to have been missed")),
    cell("Cost", ...cost(row.figures)),
    h("td", { class: "cell-seen", "data-label": "Last seen" }, ...(row.idle ? [...seen(row.idle.before), h("span", { class: "second" }, "before the range")] : seen(row.figures.last_seen))));
}

/**
 * @param {string} label shown beside the value where rows are cards
 * @param {...import("../dom.js").Child} content
 */
function cell(label, ...content) {
  return h("td", { class: "number", "data-label": label }, ...content);
}

/** @param {any} row */
function stripWords(row) {
  if (row.idle) return `No turn in this range: idle from ${moment(row.idle.before)} to ${moment(row.idle.after)}.`;
  if (!row.strip.turns) return "Only sums are kept of these turns.";
  const whose = row.sub_agents > 0 ? (row.strip.of_root ? ", its own" : ", of the sub-agent seen last") : "";
  return row.strip.left_out ? `the last ${integer(row.strip.turns.length)}${whose}` : whose.slice(2);
}

/** @param {any} told */
function run(told) {
  if (told.mean_run === null) return [orUnknown(null, "", "nothing was continued")];
  return [told.mean_run.toFixed(told.mean_run < 10 ? 1 : 0), h("span", { class: "second" }, `longest ${integer(told.longest_run)}`)];
}

/** @param {any} figures */
function cost(figures) {
  const missing = figures.turns - figures.turns_with_price;
  const some = figures.cost_usd !== null && missing > 0;
  return [orUnknown(figures.cost_usd, dollars(figures.cost_usd), "no turn has a price"), some && h("span", { class: "second" }, `${integer(missing)} without price`)];
}

/** @param {string} iso */
function seen(iso) {
  const at = new Date(iso);
  return [h("time", { datetime: iso, title: moment(iso) }, clock(at)), h("span", { class: "second" }, sameDay(at, new Date()) ? "today" : day(at))];
}
