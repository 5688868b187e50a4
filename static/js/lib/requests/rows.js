// @ts-check
// A table of any length: its rows stand in parts, and a part that is far out of sight is a gap of the same height.

import { h } from "../dom.js";

/** @typedef {{body: HTMLElement, rows: any[], drawn: boolean}} Part */

const SIZE = 50; // rows of a part
const MARGIN = "1200px 0px"; // a part is drawn before it comes into sight

export class Rows {
  /** @type {Part[]} */ #parts = [];
  /** @type {IntersectionObserver} */ #observer;
  /** @type {Map<Element, Part>} */ #of = new Map();
  #table;
  #draw;

  /**
   * @param {HTMLElement} table
   * @param {(row: any) => HTMLElement} draw makes the element of a row
   */
  constructor(table, draw) {
    this.#table = table;
    this.#draw = draw;
    this.#observer = this.#watch(null);
  }

  /**
   * Say what scrolls: an element, or the page.
   * @param {Element | null} box
   */
  scrolledBy(box) {
    this.#observer.disconnect();
    this.#observer = this.#watch(box);
    for (const part of this.#parts) this.#observer.observe(part.body);
  }

  /** @param {Element | null} root */
  #watch(root) {
    return new IntersectionObserver((entries) => this.#moved(entries), { root, rootMargin: MARGIN });
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #moved(entries) {
    for (const { target, isIntersecting: near, boundingClientRect } of entries) {
      const part = this.#of.get(target);
      if (!part) continue;
      if (near && !part.drawn) this.#fill(part);
      else if (!near && part.drawn && !inUse(part.body)) this.#empty(part, boundingClientRect.height);
    }
    this.number();
  }

  /** @param {Part} part */
  #fill(part) {
    part.body.replaceChildren(...part.rows.map(this.#draw));
    part.drawn = true;
  }

  /** @param {Part} part @param {number} height */
  #empty(part, height) {
    const gap = h("tr", { class: "gap", "aria-hidden": "true" });
    gap.style.height = `${height}px`;
    part.body.replaceChildren(gap);
    part.drawn = false;
  }

  /** @param {any[]} rows @param {Part} [before] */
  #make(rows, before) {
    const part = { body: h("tbody"), rows, drawn: false };
    this.#fill(part);
    this.#table.insertBefore(part.body, before?.body ?? null);
    this.#parts.splice(before ? this.#parts.indexOf(before) : this.#parts.length, 0, part);
    this.#of.set(part.body, part);
    this.#observer.observe(part.body);
  }

  /** Begin anew with these. @param {any[]} rows */
  reset(rows) {
    this.#observer.disconnect();
    for (const part of this.#parts) part.body.remove();
    this.#parts = [];
    this.#of.clear();
    this.append(rows);
  }

  /** @param {any[]} rows */
  append(rows) {
    for (let at = 0; at < rows.length; at += SIZE) this.#make(rows.slice(at, at + SIZE));
    this.number();
  }

  /**
   * Put a row in its place.
   * @param {any} row
   * @param {any} [next] the row after it, which is there already
   * @returns {HTMLElement | null} its element, if it is drawn
   */
  insert(row, next) {
    const part = next && this.#parts.find((one) => one.rows.includes(next));
    const first = this.#parts[0];
    if (!part || (part === first && next === part.rows[0] && part.rows.length >= SIZE)) {
      this.#make([row], part);
    } else {
      const at = part.rows.indexOf(next);
      part.rows.splice(at, 0, row);
      if (part.drawn) part.body.insertBefore(this.#draw(row), part.body.children[at]);
    }
    this.number();
    return this.element(row.turn_id);
  }

  /** A row says something else now. @param {any} row */
  replace(row) {
    for (const part of this.#parts) {
      const at = part.rows.findIndex((one) => one.turn_id === row.turn_id);
      if (at < 0) continue;
      part.rows[at] = row;
      if (part.drawn) part.body.children[at].replaceWith(this.#draw(row));
    }
    this.number();
  }

  /** Draw what is drawn once more, in other columns say. */
  redraw() {
    for (const part of this.#parts) if (part.drawn) this.#fill(part);
    this.number();
  }

  /** The element of a row, if it is drawn. @param {string} turn */
  element(turn) {
    for (const part of this.#parts) {
      const at = part.drawn ? part.rows.findIndex((row) => row.turn_id === turn) : -1;
      if (at >= 0) return /** @type {HTMLElement} */ (part.body.children[at]);
    }
    return null;
  }

  /** Draw the part that holds a row, wherever it is. @param {string} turn */
  show(turn) {
    const part = this.#parts.find((one) => one.rows.some((row) => row.turn_id === turn));
    if (part && !part.drawn) this.#fill(part);
    this.number();
    return this.element(turn);
  }

  /** Each row's place in the whole, for those who cannot see where in the table they are. */
  number() {
    let place = 2; // the head is the first
    for (const part of this.#parts) {
      if (part.drawn) for (const [at, element] of [...part.body.children].entries()) element.setAttribute("aria-rowindex", String(place + at));
      place += part.rows.length;
    }
  }
}

/** Whether the focus or a selection would be lost. @param {HTMLElement} body */
function inUse(body) {
  const selection = getSelection();
  return body.contains(document.activeElement) || Boolean(selection && !selection.isCollapsed && selection.containsNode(body, true));
}
