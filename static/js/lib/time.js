// @ts-check
// Instants, zones and ranges. The zone of the viewer is UTC or local; it is remembered, and a link may carry it.

import { store, stored } from "./stored.js";

export const LOCAL = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** @type {string | null} */
let linked = null;
/** @type {string | null} */
let chosen = stored("zone");

/** The zone in force: that of the link, else the remembered one, else the browser's. */
export function zone() {
  return linked ?? (chosen === "UTC" ? "UTC" : LOCAL);
}

/**
 * Take the zone from a link (`tz=…`) without remembering it. An unknown name is ignored here; the API tells it.
 * @param {string | null} name
 */
export function linkZone(name) {
  linked = name && known(name) ? name : null;
}

/**
 * Choose and remember.
 * @param {"UTC" | "local"} choice
 */
export function chooseZone(choice) {
  linked = null;
  chosen = choice; // for as long as the page, where it is not remembered
  store("zone", choice);
}

/** @param {string} name */
function known(name) {
  try {
    return Boolean(Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}

/** @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/**
 * @param {Date} date
 * @returns {Record<string, string>} year, month, day, hour, minute, second in the zone in force
 */
function parts(date) {
  const name = zone();
  let format = formats.get(name);
  if (!format) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: name, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit",
      hour: "2-digit", minute: "2-digit", second: "2-digit",
    });
    formats.set(name, format);
  }
  return Object.fromEntries(format.formatToParts(date).map((part) => [part.type, part.value]));
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** "14:03:22" @param {Date} date */
export function clock(date) {
  const p = parts(date);
  return `${p.hour}:${p.minute}:${p.second}`;
}

/** "30 Nov" @param {Date} date */
export function day(date) {
  const p = parts(date);
  return `${Number(p.day)} ${MONTHS[Number(p.month) - 1]}`;
}

/** "30 Nov 2026, 14:03" @param {Date | string} when */
export function moment(when) {
  const date = typeof when === "string" ? new Date(when) : when;
  const p = parts(date);
  const seconds = p.second === "00" ? "" : `:${p.second}`;
  return `${Number(p.day)} ${MONTHS[Number(p.month) - 1]} ${p.year}, ${p.hour}:${p.minute}${seconds}`;
}

/** Whether two instants fall on the same day of the zone. @param {Date} a @param {Date} b */
export function sameDay(a, b) {
  const [p, q] = [parts(a), parts(b)];
  return p.year === q.year && p.month === q.month && p.day === q.day;
}

/** The value of a datetime-local field. @param {Date} date */
export function toField(date) {
  const p = parts(date);
  return `${p.year}-${p.month}-${p.day}T${p.hour}:${p.minute}`;
}

/**
 * The instant that a datetime-local field means in the zone in force; null when it is empty or unreadable.
 * Of a repeated hour the first is taken; a skipped time moves forward.
 * @param {string} value
 * @returns {Date | null}
 */
export function fromField(value) {
  const wall = Date.parse(`${value}Z`);
  if (!value || Number.isNaN(wall)) return null;
  const offset = (/** @type {number} */ at) => {
    const p = parts(new Date(at));
    return Date.parse(`${p.year}-${p.month}-${p.day}T${p.hour}:${p.minute}:${p.second}Z`) - at;
  };
  const guesses = [wall - offset(wall - 86_400_000), wall - offset(wall + 86_400_000)];
  const exact = guesses.filter((at) => at + offset(at) === wall);
  return new Date(exact.length ? Math.min(...exact) : Math.max(...guesses));
}

/** "now", "12 s ago", "3 min ago", "3 d ago" @param {number} seconds */
export function ago(seconds) {
  if (seconds < 2) return "just now";
  if (seconds < 90) return `${Math.floor(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} d ago`;
}

const UNITS = /** @type {Record<string, [string, number]>} */ ({
  s: ["second", 1], m: ["minute", 60], h: ["hour", 3600], d: ["day", 86_400], w: ["week", 604_800],
});

/**
 * "now-6h" → seconds before now; null when it is not relative.
 * @param {string} text
 */
export function relativeSeconds(text) {
  if (text === "now") return 0;
  const match = /^now-(\d+)([smhdw])$/.exec(text);
  return match ? Number(match[1]) * UNITS[match[2]][1] : null;
}

/**
 * A range in words: "the last 24 hours", "30 Nov 2026, 10:00 to 30 Nov 2026, 12:00".
 * @param {string} from
 * @param {string} to
 */
export function rangeWords(from, to) {
  const match = /^now-(\d+)([smhdw])$/.exec(from);
  if (match && to === "now") {
    const unit = UNITS[match[2]][0];
    return match[1] === "1" ? `the last ${unit}` : `the last ${match[1]} ${unit}s`;
  }
  return `${edge(from)} to ${edge(to)}`;
}

/** @typedef {{from: string, to: string}} Range */

/**
 * A range that lies so many of its own lengths later; earlier when negative. It is fixed, for it no longer ends now.
 * @param {Range} range instants
 * @param {number} steps
 * @returns {Range}
 */
export function shifted({ from, to }, steps) {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const by = (end - start) * steps;
  return { from: new Date(start + by).toISOString(), to: new Date(end + by).toISOString() };
}

/**
 * Twice the range: around its middle, or further back from now where it is relative.
 * @param {Range} asked `now-6h` to `now`, or instants
 * @param {Range} exact what that is in instants
 * @returns {Range}
 */
export function widened(asked, exact) {
  const match = /^now-(\d+)([smhdw])$/.exec(asked.from);
  if (match && asked.to === "now") return { from: `now-${2 * Number(match[1])}${match[2]}`, to: "now" };
  const [start, end] = [Date.parse(exact.from), Date.parse(exact.to)];
  const half = (end - start) / 2;
  return { from: new Date(start - half).toISOString(), to: new Date(end + half).toISOString() };
}

/** @param {string} text */
function edge(text) {
  return relativeSeconds(text) === null ? moment(text) : text;
}
