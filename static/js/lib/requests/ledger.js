// @ts-check
// The rows of the view in memory: pages of a snapshot, and rows that were written since. No elements here.

/**
 * Newest first; ids break ties, as the API does.
 * @param {any} a
 * @param {any} b
 */
function order(a, b) {
  if (a.started_at !== b.started_at) return a.started_at < b.started_at ? 1 : -1;
  return a.turn_id < b.turn_id ? 1 : -1;
}

export class Ledger {
  /** @type {any[]} */ rows = [];
  /** @type {Map<string, any>} */ waiting = new Map();
  /** @type {string | null} */ cursor = null;
  /** @type {{from: string, to: string} | null} */ range = null;
  /** The newest instant that is known of. */
  asOf = "";
  #count = 0;

  /** How many rows the view holds, those that wait included. */
  get count() {
    return this.#count;
  }

  /** @param {string} turn */
  row(turn) {
    return this.rows.find((row) => row.turn_id === turn) ?? this.waiting.get(turn) ?? null;
  }

  /**
   * Begin with the first page. Rows that were heard while it was fetched are kept if it does not hold them.
   * @param {any} page
   */
  begin(page) {
    const last = page.next_cursor ? page.rows[page.rows.length - 1] : null;
    const heard = [...this.waiting.values()].filter((row) => row.started_at >= page.range.from && (!last || order(row, last) < 0));
    this.rows = page.rows;
    this.cursor = page.next_cursor;
    this.range = page.range;
    this.asOf = page.as_of;
    this.#count = page.count;
    this.waiting.clear();
    this.hear(heard, page.as_of);
  }

  /**
   * Append a further page.
   * @param {any} page
   * @returns {any[]} the rows that are new
   */
  extend(page) {
    const known = new Set(this.rows.map((row) => row.turn_id));
    const added = page.rows.filter((/** @type {any} */ row) => !known.has(row.turn_id));
    this.rows.push(...added);
    this.cursor = page.next_cursor;
    return added;
  }

  /**
   * Take rows that were just written. A row that is shown already is replaced, the others wait.
   * @param {any[]} rows
   * @param {string} asOf
   * @returns {any[]} rows that changed in place
   */
  hear(rows, asOf) {
    if (asOf > this.asOf) this.asOf = asOf;
    const changed = [];
    for (const row of rows) {
      const at = this.rows.findIndex((known) => known.turn_id === row.turn_id);
      if (at >= 0) {
        this.rows[at] = row;
        changed.push(row);
        continue;
      }
      if (!this.waiting.has(row.turn_id)) this.#count += 1;
      this.waiting.set(row.turn_id, row);
    }
    return changed;
  }

  /**
   * Let the waiting rows in. One that is older than all that is loaded comes with its page.
   * @returns {any[]} the rows that are new, newest first
   */
  admit() {
    const last = this.rows[this.rows.length - 1];
    const added = [...this.waiting.values()].filter((row) => !this.cursor || !last || order(row, last) < 0);
    this.waiting.clear();
    added.sort(order);
    this.rows = [...this.rows, ...added].sort(order);
    return added;
  }
}
