// @ts-check
// The lanes as a drawing: a canvas as wide as what is seen of them, drawn anew as one scrolls. Cells of one kind are
// one path, so that ten thousand of them are drawn at once.

import { integer } from "../format.js";
import { colour, onTheme } from "../theme.js";
import { clock, day } from "../time.js";
import { epochs } from "./lanes.js";
import { BREAK, CELLS, isBreak } from "./strip.js";

/** @typedef {import("./lanes.js").Turn} Turn */
/** @typedef {{at: number, kind: "alert" | "alert_end"}} Mark */

const TOP = 34; // epochs, and marks below them
const LANE = 34;
const CELL = 24;
const FOOT = 22;
const SIZES = [0, 3, 6, 12, 18]; // pixels of a turn; 0: all of them fit
const ZOOMS = [1, 4, 16, 64]; // of the time that fits
const LETTERED = 12;
const LEAST = 2.5; // pixels of a turn on the axis of time

export class LaneView {
  /** @type {Turn[]} */ #turns = [];
  /** @type {{from: number, epoch: number | null}[]} */ #epochs = [];
  /** @type {Mark[]} */ #marks = [];
  #lanes = 1;
  /** @type {"turn" | "time"} */ #axis = "turn";
  #zoom = { turn: SIZES.length - 1, time: 0 };
  #selected = -1;
  #wanted = false;
  /** Asked for once, not for each cell. */
  #width = 0;
  #scale = 1;
  #scroller;
  #room;
  #canvas;

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} room as wide as all turns
   * @param {HTMLCanvasElement} canvas
   */
  constructor(scroller, room, canvas) {
    this.#scroller = scroller;
    this.#room = room;
    this.#canvas = canvas;
    scroller.addEventListener("scroll", () => this.repaint());
    new ResizeObserver(() => this.#resize()).observe(scroller);
    onTheme(() => this.repaint());
  }

  get axis() {
    return this.#axis;
  }

  /** Pixels of a turn, or of a millisecond. */
  #scaled() {
    if (this.#axis === "turn") return SIZES[this.#zoom.turn] || Math.min(18, this.#width / Math.max(1, this.#turns.length));
    const span = this.#end - this.#start;
    return ((this.#width - 24) * ZOOMS[this.#zoom.time]) / Math.max(1, span);
  }

  get #start() {
    return this.#turns[0]?.at ?? 0;
  }

  get #end() {
    const last = this.#turns[this.#turns.length - 1];
    return last ? last.at + Math.max(1000, last.duration ?? 0) : 1;
  }

  get #total() {
    return this.#axis === "turn" ? this.#turns.length * this.#scale : (this.#end - this.#start) * this.#scale + 24;
  }

  /**
   * Show these turns. What is seen stays where it is; at the end one stays at the end.
   * @param {import("./lanes.js").Turns} turns
   */
  show(turns) {
    const left = this.#scroller.scrollLeft;
    const atEnd = !this.#turns.length || left + this.#width >= this.#total - 24;
    const anchor = this.#turns[this.#at(left)];
    const offset = anchor ? left - this.#x(this.#turns.indexOf(anchor)) : 0;
    const selected = this.#turns[this.#selected]?.id;
    this.#turns = turns.list;
    this.#lanes = turns.lanes;
    this.#epochs = epochs(turns.list);
    this.#selected = selected ? turns.place(selected) : -1;
    this.#scroller.style.setProperty("height", `${TOP + this.#lanes * LANE + FOOT}px`);
    this.#resize();
    const place = anchor ? turns.place(anchor.id) : -1;
    this.#scroller.scrollLeft = atEnd || place < 0 ? this.#total : this.#x(place) + offset;
  }

  /** @param {Mark[]} marks in the order of their time */
  mark(marks) {
    this.#marks = marks;
    this.repaint();
  }

  /** @param {"turn" | "time"} axis */
  along(axis) {
    const middle = this.#at(this.#scroller.scrollLeft + this.#width / 2);
    this.#axis = axis;
    this.#centre(this.#selected >= 0 ? this.#selected : middle);
  }

  /** @param {1 | -1} step @returns {{least: boolean, most: boolean}} what is as far as it goes */
  zoom(step) {
    const middle = this.#selected >= 0 ? this.#selected : this.#at(this.#scroller.scrollLeft + this.#width / 2);
    const steps = this.#axis === "turn" ? SIZES : ZOOMS;
    this.#zoom[this.#axis] = Math.max(0, Math.min(steps.length - 1, this.#zoom[this.#axis] + step));
    this.#centre(middle);
    return this.ends();
  }

  ends() {
    const steps = this.#axis === "turn" ? SIZES : ZOOMS;
    return { least: this.#zoom[this.#axis] === 0, most: this.#zoom[this.#axis] === steps.length - 1 };
  }

  /** Mark a turn and bring it into sight. @param {number} place -1: none */
  select(place) {
    this.#selected = place;
    if (place >= 0) {
      const x = this.#x(place);
      const { scrollLeft } = this.#scroller;
      if (x < scrollLeft + 30 || x > scrollLeft + this.#width - 50) this.#scroller.scrollLeft = x - this.#width / 2;
    }
    this.repaint();
  }

  get selected() {
    return this.#selected;
  }

  /**
   * The turn at a point of the scroller; -1 where there is none near.
   * @param {MouseEvent} event
   */
  hit(event) {
    const box = this.#scroller.getBoundingClientRect();
    const x = event.clientX - box.left + this.#scroller.scrollLeft;
    const lane = Math.floor((event.clientY - box.top - TOP) / LANE);
    const near = this.#at(x);
    if (this.#axis === "turn") return x < this.#total && near < this.#turns.length ? near : -1;
    let best = -1;
    for (let place = Math.max(0, near - 30); place < Math.min(this.#turns.length, near + 30); place += 1) {
      const turn = this.#turns[place];
      const inside = x >= this.#x(place) - 3 && x <= this.#x(place) + this.#wide(turn) + 3;
      if (inside && (best < 0 || turn.lane === lane)) best = place;
    }
    return best;
  }

  /** Draw soon: once, however often it is asked for. */
  repaint() {
    if (this.#wanted) return;
    this.#wanted = true;
    requestAnimationFrame(() => {
      this.#wanted = false;
      this.#draw();
    });
  }

  /** @param {number} place */
  #centre(place) {
    this.#resize();
    this.#scroller.scrollLeft = this.#x(Math.max(0, place)) - this.#width / 2;
    this.repaint();
  }

  #resize() {
    this.#width = this.#scroller.clientWidth;
    this.#scale = this.#scaled();
    this.#room.style.setProperty("width", `${Math.max(this.#width, Math.ceil(this.#total))}px`);
    this.repaint();
  }

  /** The first turn whose cell is not before x. @param {number} x */
  #at(x) {
    if (this.#axis === "turn") return Math.max(0, Math.floor(x / this.#scale));
    let [low, high] = [0, this.#turns.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#x(middle) < x) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** @param {number} place */
  #x(place) {
    return this.#axis === "turn" ? place * this.#scale : 8 + (this.#turns[place].at - this.#start) * this.#scale;
  }

  /** @param {Turn} turn */
  #wide(turn) {
    if (this.#axis === "turn") return Math.max(0.5, this.#scale - (this.#scale > 4 ? 1.5 : 0));
    return Math.max(LEAST, (turn.duration ?? 0) * this.#scale);
  }

  #draw() {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [this.#width, TOP + this.#lanes * LANE + FOOT];
    const canvas = this.#canvas;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.setProperty("width", `${width}px`);
      canvas.style.setProperty("height", `${height}px`);
    }
    const brush = canvas.getContext("2d");
    if (!brush) return;
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.clearRect(0, 0, width, height);
    const left = this.#scroller.scrollLeft;
    const first = Math.max(0, this.#at(left - 60) - 1);
    const last = Math.min(this.#turns.length, this.#at(left + width) + 1);
    brush.translate(-left, 0);
    brush.font = "11px system-ui, sans-serif";
    this.#drawEpochs(brush, left, width, height);
    this.#drawCells(brush, first, last);
    this.#drawMarks(brush, left, width);
    this.#drawFoot(brush, left, width, height);
  }

  /** @param {CanvasRenderingContext2D} brush @param {number} left @param {number} width @param {number} height */
  #drawEpochs(brush, left, width, height) {
    const line = colour("line");
    const band = colour("sunken");
    this.#epochs.forEach(({ from, epoch }, number) => {
      const x = this.#x(from);
      const next = this.#epochs[number + 1];
      const end = next ? this.#x(next.from) : this.#total;
      if (end < left || x > left + width) return;
      if (number % 2) {
        brush.fillStyle = band;
        brush.fillRect(x, 0, end - x, height - FOOT);
      }
      brush.fillStyle = line;
      if (from > 0) brush.fillRect(x - 1, 0, 1, height - FOOT);
      const words = epoch === null ? "" : `epoch ${integer(epoch)}`;
      const at = Math.max(x, left) + 6;
      if (words && end - at > brush.measureText(words).width + 8) {
        brush.fillStyle = colour("muted");
        brush.fillText(words, at, 13);
      }
    });
  }

  /** @param {CanvasRenderingContext2D} brush @param {number} first @param {number} last */
  #drawCells(brush, first, last) {
    /** @type {Map<string, Path2D>} */
    const paths = new Map();
    const put = (/** @type {string} */ token, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ w, /** @type {number} */ h) => {
      let path = paths.get(token);
      if (!path) paths.set(token, (path = new Path2D()));
      path.rect(x, y, w, h);
    };
    const letters = this.#axis === "turn" && this.#scale >= LETTERED;
    const unit = CELL / 20;
    for (let place = first; place < last; place += 1) {
      const turn = this.#turns[place];
      const [x, y, w] = [this.#x(place), TOP + turn.lane * LANE + 4, this.#wide(turn)];
      const { token, shape } = CELLS[turn.letter.toLowerCase()];
      for (const [top, bottom] of shape) put(token, x, y + top * unit, w, (bottom - top) * unit);
      if (isBreak(turn.letter)) for (const [top, bottom] of BREAK.shape) put(BREAK.token, x, y + top * unit, w, (bottom - top) * unit);
      if (turn.begins && place > 0 && this.#scale > 4) put("line-strong", x - 1, y - 2, 1, CELL + 4);
      if (turn.moved) put("ink", x - 1, y + CELL + 1, Math.max(3, Math.min(8, w)), 3);
      if (turn.life) this.#gap(put, x, y, turn.life);
    }
    for (const [token, path] of paths) {
      brush.fillStyle = colour(token);
      brush.fill(path);
    }
    if (letters) this.#drawLetters(brush, first, last);
    this.#drawSelected(brush);
  }

  /** Dots in a column: two where the cache may be gone, four where it is. @param {(token: string, x: number, y: number, w: number, h: number) => void} put @param {number} x @param {number} y @param {number} life */
  #gap(put, x, y, life) {
    const dots = life === 2 ? 4 : 2;
    for (let dot = 0; dot < dots; dot += 1) put("warn", x - 3, y + dot * 6 + (life === 2 ? 0 : 6), 3, 4);
  }

  /** @param {CanvasRenderingContext2D} brush @param {number} first @param {number} last */
  #drawLetters(brush, first, last) {
    brush.fillStyle = colour("surface");
    brush.textAlign = "center";
    brush.font = "600 10px system-ui, sans-serif";
    for (let place = first; place < last; place += 1) {
      const turn = this.#turns[place];
      if (!"ifF".includes(turn.letter)) continue;
      brush.fillText(turn.letter === "i" ? "I" : "F", this.#x(place) + this.#wide(turn) / 2, TOP + turn.lane * LANE + 4 + CELL - 4);
    }
    brush.textAlign = "start";
    brush.font = "11px system-ui, sans-serif";
  }

  /** @param {CanvasRenderingContext2D} brush */
  #drawSelected(brush) {
    const turn = this.#turns[this.#selected];
    if (!turn) return;
    brush.strokeStyle = colour("accent");
    brush.lineWidth = 2;
    brush.strokeRect(this.#x(this.#selected) - 2, TOP + turn.lane * LANE + 1, Math.max(3, this.#wide(turn)) + 4, CELL + 6);
  }

  /** Resets and ended connections by a sign and a word, alerts by a triangle. @param {CanvasRenderingContext2D} brush @param {number} left @param {number} width */
  #drawMarks(brush, left, width) {
    let free = -Infinity;
    this.#turns.forEach((turn, place) => {
      const ended = turn.fallback && (turn.moved || turn.reason === "connection_lost");
      if (!turn.reset && !ended) return;
      const x = this.#x(place);
      if (x < left - 80 || x > left + width || x < free) return;
      brush.fillStyle = colour(turn.reset ? "accent" : "warn");
      const words = turn.reset ? `↺ ${turn.reset}` : `⇄ ${turn.fallback}`;
      brush.fillText(words, x, 28);
      free = x + brush.measureText(words).width + 8;
    });
    for (const { at, kind } of this.#marks) {
      const x = this.#axis === "time" ? 8 + (at - this.#start) * this.#scale : this.#turns.findIndex((turn) => turn.at >= at) * this.#scale;
      if (x < left - 8 || x > left + width + 8) continue;
      brush.fillStyle = colour(kind === "alert" ? "bad" : "ok");
      brush.beginPath();
      brush.moveTo(x, TOP - 2);
      brush.lineTo(x - 5, TOP - 11);
      brush.lineTo(x + 5, TOP - 11);
      brush.fill();
      brush.fillRect(x - 0.5, TOP - 2, 1, this.#lanes * LANE);
    }
  }

  /** Times along the axis, as many as there is room for. @param {CanvasRenderingContext2D} brush @param {number} left @param {number} width @param {number} height */
  #drawFoot(brush, left, width, height) {
    brush.fillStyle = colour("line");
    brush.fillRect(left, height - FOOT, width, 1);
    brush.fillStyle = colour("muted");
    let free = left + 4;
    let before = "";
    const from = Math.max(0, this.#at(left) - 1);
    for (let place = from; place < this.#turns.length; place += 1) {
      const x = Math.max(left + 4, this.#x(place));
      if (x > left + width - 60) break;
      if (x < free) continue;
      const at = new Date(this.#turns[place].at);
      const date = day(at);
      const words = date === before ? clock(at) : `${date}, ${clock(at)}`;
      before = date;
      brush.fillText(words, x, height - 6);
      free = x + brush.measureText(words).width + 24;
    }
  }
}
