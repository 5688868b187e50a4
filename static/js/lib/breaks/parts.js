// @ts-check
// One group of breaks: what it is, since when, what was new then, whose it is, and its last examples.

import { copyable, fill, h, worded } from "../dom.js";
import { changed, href, literal } from "../filters.js";
import { compact, counted, integer, orUnknown, percent, regrouped } from "../format.js";
import { redraw } from "../keyed.js";
import { when } from "../server-time.js";
import { clock, day, moment } from "../time.js";
import { acts, breakRows, breakTag, costOf } from "./words.js";

/** @typedef {import("../filters.js").View} View */

/**
 * @param {HTMLElement} host
 * @param {any} group
 * @param {View} view
 * @param {() => void} done
 */
export function drawWhat(host, group, view, done) {
  const rows = breakRows(group, view);
  const linked = (/** @type {import("../dom.js").Child} */ text, /** @type {string} */ name) => h("a", { href: rows, "aria-label": `${name}: show the rows` }, text);
  const figure = (/** @type {string} */ title, /** @type {import("../dom.js").Child[]} */ value) => h("div", {}, h("dt", {}, title), h("dd", {}, ...value));
  redraw(host,
    h("div", { class: "what-head" }, breakTag(group.state), acts(group, done)),
    group.cause && h("p", {}, h("span", { class: "label" }, "Usual cause "), ...worded(group.cause)),
    group.remedy && h("p", {}, h("span", { class: "label" }, "What helps "), ...worded(group.remedy)),
    h("dl", { class: "break-figures" },
      figure("Breaks in this view", [linked(integer(group.turns), counted(group.turns, "break")), h("span", { class: "second" }, `${integer(group.turns_ever)} ever`)]),
      figure("Sessions", [linked(integer(group.sessions), counted(group.sessions, "session"))]),
      figure("Tokens lost", [group.missed_tokens === null ? orUnknown(null, "", "the missed tokens of these turns are not known") : linked(h("span", { title: counted(group.missed_tokens, "token") }, compact(group.missed_tokens)), `${integer(group.missed_tokens)} tokens lost`)]),
      figure("List-price estimate", costOf(group))),
    h("section", { "aria-label": "History" }, h("h2", {}, "History of its state"), h("ol", { class: "history" }, ...history(group))),
    h("p", { class: "muted ids" }, `Grouped by ${group.by}: `, copyable(group.id, "the group")));
}

/** What is known of it: an operator's last word, and when it was seen. @param {any} group */
function history(group) {
  const { decided, state } = group;
  const events = [
    [group.first_seen, h("span", {}, "First seen")],
    [group.last_seen, h("span", {}, "Last seen")],
  ];
  if (decided) {
    const words = { resolved: "Resolved", muted: decided.ends_at ? `Muted until ${moment(decided.ends_at)}` : "Muted for ever", open: "Opened again" };
    events.push([decided.at, h("span", {}, `${words[/** @type {keyof typeof words} */ (decided.state)]} by ${decided.by === "operator" ? "an operator" : decided.by}`)]);
  }
  events.sort(([a], [b]) => String(a).localeCompare(String(b)));
  return [...events.map(([at, words]) => h("li", {}, words, " ", when(/** @type {string} */ (at)), h("span", { class: "second" }, moment(/** @type {string} */ (at))))),
    h("li", {}, "Now: ", breakTag(state))];
}

/**
 * @param {HTMLElement} host
 * @param {any} told what /api/breaks/{group} answered
 */
export function drawOnset(host, told) {
  const { onset, group } = told;
  if (!onset) {
    return redraw(host, h("p", { class: "muted" }, group.turns
      ? "Within this view it did not become more frequent at one time: no onset."
      : "There are no breaks of it in this view."));
  }
  const end = onset.to ? `, until ${moment(onset.to)}` : " and is so still";
  const sentence = h("p", { class: "onset-sentence" }, "It became much more frequent at ", h("strong", {}, moment(onset.from)), end, `, in ${counted(onset.sessions, "session")}.`);
  if (!onset.suspects.length) {
    return redraw(host, sentence, h("p", { class: "muted" }, "Of versions, tools, instructions, models and keys none was new with it, as far as these are known."));
  }
  redraw(host, sentence,
    h("p", {}, "Possibly because of: ", h("strong", {}, regrouped(onset.suspects[0].sentence))),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Before and after" }, h("table", { class: "plain" },
      h("caption", { class: "visually-hidden" }, "What was new: shares before and after"),
      h("thead", {}, h("tr", {}, ...["What", "Value", "Turns before that had it", "Breaks since that have it"].map((title, at) => h("th", { scope: "col", class: at > 1 && "number" }, title)))),
      h("tbody", {}, ...onset.suspects.map((/** @type {any} */ one) => h("tr", {},
        h("th", { scope: "row" }, FIELDS[one.field] ?? one.field), h("td", {}, h("code", { title: one.value }, one.value)),
        h("td", { class: "number" }, percent(one.before)), h("td", { class: "number" }, `${percent(one.share)} (${integer(one.breaks)})`)))))),
    h("p", { class: "muted note" }, "Told by frequency alone: a suspect, not a proof."));
}

const FIELDS = /** @type {Record<string, string>} */ ({
  client_version: "Client version", gateway_version: "Version of Warmline", tools_digest: "Set of tools", instructions_digest: "Instructions",
  model: "Model", reasoning_effort: "Reasoning effort", service_tier: "Service tier", prompt_cache_key: "Cache key",
});

/**
 * @param {HTMLElement} host
 * @param {any} told
 * @param {View} view
 */
export function drawSessions(host, told, view) {
  const { group, by_session: list } = told;
  if (!list.length) return redraw(host, h("p", { class: "muted" }, "None in this view."));
  redraw(host, h("ul", { class: "counts" }, ...list.map((/** @type {any} */ one) => h("li", {},
    h("a", { href: href(`/sessions/${encodeURIComponent(one.session_key)}`, { ...view, turn: one.turn_id }), class: "clip", title: one.session ?? one.session_key }, one.session ?? one.session_key),
    h("a", { href: breakRows(group, changed(view, { session: [one.session_key] })), "aria-label": `${counted(one.turns, "break")} of ${one.session ?? one.session_key}: show the rows` }, counted(one.turns, "break"))))),
  group.sessions > list.length && h("p", { class: "muted note" }, `The ${integer(list.length)} with most breaks, of ${integer(group.sessions)}.`));
}

/**
 * @param {HTMLElement} host
 * @param {any} group
 * @param {View} view
 */
export function drawClients(host, group, view) {
  if (!group.turns) return redraw(host, h("p", { class: "muted" }, "None in this view."));
  const count = (/** @type {string} */ title, /** @type {string} */ name, /** @type {string | null} */ value, /** @type {number} */ turns, /** @type {string | null} */ more = null, alone = true) => h("li", {},
    h("span", { class: "clip" }, value ?? `unknown ${title}`, more && h("span", { class: "muted" }, ` ${more}`)),
    !alone ? h("span", { title: "The version is no filter" }, counted(turns, "break")) : h("a", { href: breakRows(group, changed(view, { [name]: [literal(value ?? "unknown")] })), "aria-label": `${counted(turns, "break")} of ${title} ${value ?? "unknown"}: show the rows` }, counted(turns, "break")));
  redraw(host,
    h("h3", {}, "Client and version"),
    h("ul", { class: "counts" }, ...group.clients.map((/** @type {any} */ one) => count("client", "client", one.client, one.turns, one.version ?? "version not known",
      group.clients.filter((/** @type {any} */ other) => other.client === one.client).length === 1))),
    h("h3", {}, "Model"),
    h("ul", { class: "counts" }, ...group.models.map((/** @type {any} */ one) => count("model", "model", one.model, one.turns))));
}

/**
 * @param {HTMLElement} host
 * @param {any[]} rows
 */
export function drawExamples(host, rows) {
  if (!rows.length) return fill(host, h("p", { class: "card part muted" }, "There are none in this view. Choose a longer range."));
  redraw(host, h("ol", { class: "examples" }, ...rows.map(example)));
}

/** @param {any} row */
function example(row) {
  const at = new Date(row.started_at);
  const to = `/sessions/${encodeURIComponent(row.session_key)}?turn=${encodeURIComponent(row.turn_id)}`;
  const items = row.items_sent === null || row.items_total === null ? null : `${integer(row.items_sent)} of ${integer(row.items_total)} items sent`;
  return h("li", { class: "card part" },
    h("div", { class: "example-head" },
      h("a", { href: to, class: "row-link", "data-key": row.turn_id }, h("time", { datetime: row.started_at, title: row.started_at }, `${day(at)}, ${clock(at)}`)),
      h("span", { class: "clip", title: row.session ?? "" }, row.session ?? "no session"),
      h("span", { class: "muted" }, [row.model, row.client, row.client_version].filter(Boolean).join(" · "))),
    h("p", {}, regrouped(row.why)),
    row.cache_why && h("p", { class: "muted" }, regrouped(row.cache_why)),
    h("p", { class: "muted example-foot" }, items && h("span", {}, items),
      h("a", { href: to, "aria-label": `In its session, ${moment(row.started_at)}` }, "In its session"), h("a", { href: `/requests?turn=${encodeURIComponent(row.turn_id)}`, "aria-label": `All columns of the row, ${moment(row.started_at)}` }, "All columns")));
}
