// @ts-check
// Turns as letters, and a session as a strip of them: one cell a turn. A kind is told by the shape of its cell as
// well as by its colour.

import { fill, h, s } from "../dom.js";
import { counted, integer } from "../format.js";

/**
 * What is drawn of a letter, in a cell of 20 in height: from where to where, and in which token.
 * @type {Record<string, {words: string, token: string, shape: [number, number][]}>}
 */
export const CELLS = {
  i: { words: "WebSocket, incremental", token: "series-1", shape: [[0, 20]] },
  j: { words: "HTTP, incremental", token: "series-4", shape: [[0, 8], [12, 20]] },
  f: { words: "WebSocket, full", token: "series-2", shape: [[10, 20]] },
  h: { words: "HTTP, full", token: "series-3", shape: [[10, 13.5], [16.5, 20]] },
  u: { words: "mode not known", token: "series-8", shape: [[16, 20]] },
  x: { words: "did not succeed", token: "bad", shape: [[8, 12]] },
  w: { words: "warm-up", token: "series-6", shape: [[17, 20]] },
  c: { words: "compaction", token: "series-5", shape: [[0, 3], [17, 20]] },
};
/** Where a break has its mark, above the cell of a full turn. */
export const BREAK = { words: "break: could have been continued", token: "bad", shape: /** @type {[number, number][]} */ ([[0, 6]]) };

/** Stretches of like cells that are told one by one. */
const RUNS = 12;

/** A capital is a break. @param {string} letter */
export function isBreak(letter) {
  return letter !== letter.toLowerCase();
}

/** @param {string} letter */
export function wordsOf(letter) {
  return `${CELLS[letter.toLowerCase()].words}${isBreak(letter) ? ", a break" : ""}`;
}

/**
 * @param {string} letters one a turn, the oldest first
 * @param {number} leftOut turns before them
 */
export function strip(letters, leftOut) {
  /** @type {Map<string, string>} */
  const paths = new Map();
  const put = (/** @type {string} */ kind, /** @type {[number, number][]} */ shape, /** @type {number} */ at) =>
    paths.set(kind, shape.reduce((path, [top, bottom]) => `${path}M${at} ${top}h.84v${bottom - top}h-.84z`, paths.get(kind) ?? ""));
  [...letters].forEach((letter, at) => {
    const kind = letter.toLowerCase();
    put(kind, CELLS[kind].shape, at);
    if (isBreak(letter)) put("break", BREAK.shape, at);
  });
  const drawn = [...paths].map(([kind, d]) => s("path", { d, class: `cell-${kind}` }));
  const svg = s("svg", { viewBox: `0 0 ${Math.max(letters.length, 1)} 20`, preserveAspectRatio: "none", role: "img", "aria-label": summary(letters, leftOut) }, ...drawn);
  svg.style.setProperty("--cells", String(letters.length));
  return h("span", { class: "strip" }, svg, h("span", { class: "visually-hidden" }, inOrder(letters)));
}

/**
 * The cells in words, the latest first, those that are alike together: "The latest first: 3 WebSocket, incremental; 1 WebSocket, full, a break."
 * @param {string} letters
 */
function inOrder(letters) {
  const runs = (letters.match(/(.)\1*/g) ?? []).reverse();
  const words = runs.slice(0, RUNS).map((run) => `${integer(run.length)} ${wordsOf(run[0])}`);
  return `The latest first: ${words.join("; ")}${runs.length > RUNS ? "; and so on" : ""}.`;
}

/**
 * "The last 200 of 343 turns: 320 WebSocket, incremental; 4 breaks."
 * @param {string} letters
 * @param {number} leftOut
 */
function summary(letters, leftOut) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  let breaks = 0;
  for (const letter of letters) {
    const { words } = CELLS[letter.toLowerCase()];
    counts.set(words, (counts.get(words) ?? 0) + 1);
    if (isBreak(letter)) breaks += 1;
  }
  const parts = [...counts].sort((a, b) => b[1] - a[1]).map(([words, count]) => `${integer(count)} ${words}`);
  const which = leftOut ? `The last ${integer(letters.length)} of ${integer(letters.length + leftOut)} turns` : counted(letters.length, "turn");
  return `${which}: ${parts.join("; ")}; ${counted(breaks, "break")}.`;
}

/**
 * @param {HTMLElement} host
 * @param {...Node} more
 */
export function legend(host, ...more) {
  const sample = (/** @type {string} */ kind, /** @type {[number, number][]} */ shape) =>
    s("svg", { viewBox: "0 0 10 20", width: 10, height: 20, "aria-hidden": "true" },
      s("path", { class: `cell-${kind}`, d: shape.map(([top, bottom]) => `M1 ${top}h8v${bottom - top}h-8z`).join("") }));
  fill(host,
    ...Object.entries(CELLS).map(([kind, { words, shape }]) => h("li", {}, sample(kind, shape), words)),
    h("li", {}, sample("break", BREAK.shape), BREAK.words), ...more);
}
