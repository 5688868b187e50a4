// @ts-check
// The turns of one session in memory: pages of them put together, each chain in a lane. No elements here.

/**
 * @typedef {object} Turn
 * @property {string} id
 * @property {number} at milliseconds since 1970
 * @property {number | null} duration
 * @property {string} letter
 * @property {string | null} chain
 * @property {number | null} epoch
 * @property {string | null} connection
 * @property {string | null} reason
 * @property {string | null} reset
 * @property {string | null} fallback why it went over a worse wire, or another connection
 * @property {number | null} input
 * @property {number | null} cached
 * @property {number | null} missed
 * @property {number | null} gap milliseconds since the end of the turn that it goes on from
 * @property {number | null} life 1: the cache may be gone after such a gap; 2: it is
 * @property {number} lane
 * @property {boolean} begins the first turn of its chain
 * @property {boolean} moved another connection than the turn before it in its chain
 */

/** So many lanes at most; what is more shares the last one. */
const MOST_LANES = 12;

export class Turns {
  /** In the order in which they began. @type {Turn[]} */ list = [];
  /** @type {Map<string, number>} */ #places = new Map();
  /** @type {string | null} */ cursor = null;
  lanes = 1;

  /** @param {string} id */
  place(id) {
    return this.#places.get(id) ?? -1;
  }

  /**
   * The last page: what is older is kept where the two touch.
   * @param {any} page
   */
  begin(page) {
    const told = read(page);
    const known = told.length ? this.place(told[0].id) : -1;
    if (known >= 0) this.#settle([...this.list.slice(0, known), ...told]);
    else {
      this.cursor = page.next_cursor;
      this.#settle(told);
    }
  }

  /** The page before all that is known. @param {any} page @returns {number} how many came */
  extend(page) {
    const told = read(page).filter((turn) => this.place(turn.id) < 0);
    this.cursor = page.next_cursor;
    this.#settle([...told, ...this.list]);
    return told.length;
  }

  clear() {
    this.cursor = null;
    this.#settle([]);
  }

  /** @param {Turn[]} list */
  #settle(list) {
    this.list = list;
    this.#places = new Map(list.map((turn, place) => [turn.id, place]));
    this.lanes = assign(list);
  }
}

/** @param {any} page @returns {Turn[]} */
function read(page) {
  const base = Date.parse(page.base ?? 0);
  const word = (/** @type {string[]} */ words, /** @type {number | null} */ at) => (at === null ? null : words[at]);
  return page.turns.map((/** @type {any[]} */ row) => {
    const [id, at, duration, letter, chain, epoch, connection, reason, reset, input, cached, missed, gap, life, fallback] = row;
    return {
      id, at: base + at, duration, letter, epoch, input, cached, missed, gap, life, lane: 0, begins: false, moved: false,
      chain: word(page.chains, chain), connection: word(page.connections, connection),
      reason: word(page.reasons, reason), reset: word(page.resets, reset), fallback: word(page.fallbacks, fallback),
    };
  });
}

/**
 * Give each chain a lane: the first that is free from its first turn to its last.
 * @param {Turn[]} list
 * @returns {number} how many there are
 */
function assign(list) {
  /** @type {Map<string | null, number>} */
  const last = new Map();
  list.forEach((turn, place) => last.set(turn.chain, place));
  /** @type {Map<string | null, {lane: number, connection: string | null}>} */
  const open = new Map();
  /** The last place of the chain in each lane. @type {number[]} */
  const taken = [];
  list.forEach((turn, place) => {
    let chain = open.get(turn.chain);
    turn.begins = !chain;
    if (!chain) {
      let lane = taken.findIndex((until) => until < place);
      if (lane < 0) lane = Math.min(taken.length, MOST_LANES - 1);
      chain = { lane, connection: turn.connection };
      open.set(turn.chain, chain);
    }
    taken[chain.lane] = Math.max(taken[chain.lane] ?? 0, last.get(turn.chain) ?? place);
    turn.lane = chain.lane;
    turn.moved = Boolean(turn.connection && chain.connection && turn.connection !== chain.connection);
    chain.connection = turn.connection ?? chain.connection;
  });
  return Math.max(1, taken.length);
}

/**
 * Where each epoch begins.
 * @param {Turn[]} list
 * @returns {{from: number, epoch: number | null}[]} places
 */
export function epochs(list) {
  /** @type {{from: number, epoch: number | null}[]} */
  const found = [];
  list.forEach((turn, place) => {
    const before = found[found.length - 1];
    if (!before || (turn.epoch !== null && turn.epoch !== before.epoch)) found.push({ from: place, epoch: turn.epoch });
  });
  return found;
}
