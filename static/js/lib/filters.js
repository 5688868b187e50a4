// @ts-check
// The view that a page shows: range, filters and open row. The query string is the state; defaults stay out of it.

import { zone } from "./time.js";

/**
 * @typedef {object} View
 * @property {string} from `now-24h` or ISO 8601
 * @property {string} to `now` or ISO 8601
 * @property {Map<string, string[]>} values filters by name; a value that starts with `!` excludes
 * @property {string | null} turn the row that is open
 * @property {Record<string, string>} [own] what only this page knows of, such as its order
 */

const DEFAULT_FROM = "now-24h";
export const DEFAULT_TO = "now";

/** Names of the query string that are not filters. */
const OWN = new Set(["from", "to", "tz", "turn"]);

/** Names that are one page's own: links to other pages go without them. */
const OF_PAGES = /** @type {Record<string, string[]>} */ ({ "/breaks": ["state", "sort"], "/sessions": ["sort"], "/requests": ["columns"] });

/** Filters that the panel offers, in its order, with their titles. */
export const FACETS = /** @type {const} */ ([
  ["mode", "Mode"],
  ["reason", "Reason"],
  ["model", "Model"],
  ["upstream", "Upstream"],
  ["client", "Client"],
  ["session", "Session"],
  ["kind", "Kind"],
  ["source", "Source"],
  ["status", "Status"],
]);

/** Words for filters that only a link or a drill-down sets. */
const TITLES = new Map([
  ...FACETS.map(([name, title]) => /** @type {[string, string]} */ ([name, title])),
  ["q", "Text"], ["tenant", "Tenant"], ["root", "Root session"], ["chain", "Chain"], ["eligible", "Eligible"],
  ["fingerprint", "Fingerprint"], ["changed_fields", "Changed fields"], ["fallback_reason", "Fallback"], ["cache", "Cache"], ["verdict", "Verdict"], ["grade", "Grade"], ["turn_id", "Turn"], ["break", "Break"], ["by", "Range by"],
]);

/** A value as a filter has it: one that begins with `!` is not to exclude. @param {string} value */
export function literal(value) {
  return /^[!\\]/.test(value) ? `\\${value}` : value;
}

/** The value that a filter means. @param {string} written */
export function meant(written) {
  return /^[!\\]/.test(written) ? written.slice(1) : written;
}

/**
 * @param {string} search
 * @returns {View}
 */
export function read(search) {
  const query = new URLSearchParams(search);
  const own = (OF_PAGES[location.pathname] ?? []).filter((name) => query.get(name));
  /** @type {Map<string, string[]>} */
  const values = new Map();
  // a name that nobody knows is kept: the API then says what is wrong with the link
  for (const [name, value] of query) {
    if (!OWN.has(name) && !own.includes(name) && value !== "") values.set(name, [...(values.get(name) ?? []), value]);
  }
  return {
    from: query.get("from") || DEFAULT_FROM,
    to: query.get("to") || DEFAULT_TO,
    values,
    turn: query.get("turn"),
    own: Object.fromEntries(own.map((name) => [name, query.get(name) ?? ""])),
  };
}

/**
 * The filters alone, as the live socket takes them.
 * @param {View} view
 */
export function filterQuery(view) {
  const query = new URLSearchParams();
  for (const [name, values] of view.values) for (const value of values) query.append(name, value);
  return query;
}

/**
 * Filters, range and zone, as the API takes them.
 * @param {View} view
 */
export function apiQuery(view) {
  const query = filterQuery(view);
  query.set("from", view.from);
  query.set("to", view.to);
  query.set("tz", zone());
  return query;
}

/**
 * The page's own query string; a relative range stays relative.
 * @param {View} view
 */
export function pageQuery(view) {
  const query = new URLSearchParams();
  if (view.from !== DEFAULT_FROM || view.to !== DEFAULT_TO) query.set("from", view.from);
  if (view.to !== DEFAULT_TO) query.set("to", view.to);
  for (const [name, value] of filterQuery(view)) query.append(name, value);
  if (view.turn) query.set("turn", view.turn);
  return query;
}

/**
 * The address of a page that shows a view.
 * @param {string} path
 * @param {View} view
 */
export function href(path, view) {
  const full = pageQuery(view);
  if (path === location.pathname) for (const [name, value] of Object.entries(view.own ?? {})) full.set(name, value);
  const query = full.toString();
  return query ? `${path}?${query}` : path;
}

/**
 * A copy with some filters replaced; an empty list removes one.
 * @param {View} view
 * @param {Record<string, string[]>} values
 * @param {{from?: string, to?: string}} [range]
 * @returns {View}
 */
export function changed(view, values, range = {}) {
  const next = new Map(view.values);
  for (const [name, list] of Object.entries(values)) {
    if (list.length) next.set(name, list);
    else next.delete(name);
  }
  return { from: range.from ?? view.from, to: range.to ?? view.to, values: next, turn: null, own: view.own };
}

/**
 * @param {View} view
 * @returns {View}
 */
export function cleared(view) {
  return { ...view, values: new Map(), turn: null };
}

/** How many filters hold, the range apart. @param {View} view */
export function count(view) {
  return [...view.values.values()].reduce((sum, list) => sum + list.length, 0);
}

/**
 * @param {View} view
 * @returns {{name: string, title: string, value: string, shown: string, excludes: boolean}[]}
 */
export function chips(view) {
  const list = [];
  for (const [name, values] of view.values) {
    for (const value of values) {
      const excludes = value.startsWith("!");
      const word = meant(value);
      list.push({ name, value, excludes, title: TITLES.get(name) ?? name, shown: name === "break" ? breakName(word) : word });
    }
  }
  return list;
}

/** What is read of the id of a group of breaks. @param {string} id */
function breakName(id) {
  return id.replace(/^(reason|verdict):/, "").replace(":", ", ");
}

/**
 * Whether a row that was just written belongs to the view's range; its filters are applied by the server.
 * @param {View} view
 * @param {{started_at: string, recorded_at: string | null}} row
 * @param {string} from the resolved start of the snapshot
 */
export function inRange(view, row, from) {
  const at = (view.values.get("by")?.[0] === "recorded" && row.recorded_at) || row.started_at;
  if (at < from) return false;
  return view.to === DEFAULT_TO || at < new Date(view.to).toISOString();
}
