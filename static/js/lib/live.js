// @ts-check
// The only file that opens a socket: rows as they are written, with the state of the connection in words.

/**
 * @typedef {"connecting" | "live" | "reconnecting" | "lost" | "paused" | "off"} State
 * @typedef {object} Handlers
 * @property {(rows: any[], asOf: string) => void} rows
 * @property {() => void} reset messages were lost: fetch the snapshot again
 * @property {(state: State, seconds?: number) => void} state
 */

const FIRST_DELAY = 1000;
const LONGEST_DELAY = 30_000;
const LOST_AFTER = 5; // attempts in a row, about a minute

export class Live {
  /** @type {WebSocket | null} */ #socket = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  #query = "";
  #next = 0;
  #failures = 0;
  #paused = false;
  #handlers;

  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.#handlers = handlers;
    addEventListener("online", () => this.#wake());
    document.addEventListener("visibilitychange", () => !document.hidden && this.#wake());
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", (event) => event.persisted && !this.#paused && this.#open());
  }

  /**
   * Listen to this view; a socket for another view is closed. Call it before fetching the snapshot.
   * @param {URLSearchParams} query
   */
  listen(query) {
    const text = query.toString();
    if (text === this.#query && (this.#socket || this.#failures)) return; // open, or on its way
    this.#query = text;
    this.#failures = 0;
    if (!this.#paused) this.#open();
  }

  get paused() {
    return this.#paused;
  }

  pause() {
    this.#paused = true;
    this.#close();
    this.#handlers.state("paused");
  }

  resume() {
    this.#paused = false;
    this.#failures = 0;
    this.#open();
    this.#handlers.reset();
  }

  /** The server refuses this view: asking again would change nothing until another is listened to. */
  rest() {
    this.#close();
    this.#query = "\0";
    if (!this.#paused) this.#handlers.state("off");
  }

  /** Try at once instead of waiting out the delay. */
  #wake() {
    if (!this.#paused && !this.#socket && this.#query !== "\0") this.#open();
  }

  #close() {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null; // first, so that its close event is not taken for a loss
    // closing one that is still opening makes browsers complain: let it open first
    if (socket?.readyState === WebSocket.CONNECTING) socket.addEventListener("open", () => socket.close());
    else socket?.close();
  }

  #open() {
    this.#close();
    const again = this.#failures > 0;
    if (!again) this.#handlers.state("connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/api/live${this.#query && `?${this.#query}`}`);
    this.#socket = socket;
    this.#next = 0;
    socket.addEventListener("message", (event) => socket === this.#socket && this.#take(JSON.parse(event.data)));
    socket.addEventListener("close", () => socket === this.#socket && this.#ended());
  }

  /** @param {any} message */
  #take(message) {
    const gap = message.seq !== this.#next;
    this.#next = message.seq + 1;
    if (message.type === "hello") {
      const again = this.#failures > 0;
      this.#failures = 0;
      this.#handlers.state("live");
      if (again) this.#handlers.reset(); // rows written meanwhile were not heard
      return;
    }
    if (gap || message.type === "reset") this.#handlers.reset();
    else if (message.type === "rows") this.#handlers.rows(message.rows, message.as_of);
  }

  #ended() {
    this.#socket = null;
    this.#failures += 1;
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** (this.#failures - 1)) * (0.75 + Math.random() / 2);
    this.#handlers.state(this.#failures >= LOST_AFTER ? "lost" : "reconnecting", Math.ceil(delay / 1000));
    this.#timer = setTimeout(() => this.#open(), delay);
  }
}

/**
 * Run something soon, but no more often than its last run allows, and never while the page is hidden.
 * @param {() => Promise<void>} work
 * @param {number} [least] milliseconds between two runs
 * @returns {() => void}
 */
export function coalesced(work, least = 1000) {
  let wanted = false;
  let running = false;
  let earliest = 0;
  const run = async () => {
    if (running || !wanted || document.hidden) return;
    const wait = earliest - performance.now();
    if (wait > 0) {
      running = true;
      await new Promise((done) => setTimeout(done, wait));
      running = false;
      if (document.hidden) return;
    }
    running = true;
    wanted = false;
    const started = performance.now();
    try {
      await work();
    } finally {
      // a slow ledger is asked less often: it gets three times its own time to rest
      earliest = performance.now() + Math.max(least, 3 * (performance.now() - started));
      running = false;
    }
    void run();
  };
  document.addEventListener("visibilitychange", () => void run());
  return () => {
    wanted = true;
    void run();
  };
}

/**
 * Two ways to fetch a page: at once for another view, which makes what is being fetched stale, and for new rows, which
 * wait for it.
 * @param {() => Promise<void>} work
 */
export function loading(work) {
  let running = Promise.resolve();
  const load = () => (running = work());
  const refresh = coalesced(async () => {
    await running;
    await load();
  });
  return { load, refresh };
}
