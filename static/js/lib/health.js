// @ts-check
// What Warmline says of itself, on every page: a line below the bar where something is wrong, one at the foot at all times.

import { get } from "./api.js";
import { announce, byId, fill, h, icon } from "./dom.js";
import { counted, integer } from "./format.js";
import { every } from "./poll.js";
import { clock, moment, sameDay } from "./time.js";

const PAUSE = 5000;

/**
 * @typedef {object} Ledger
 * @property {boolean} readable
 * @property {string | null} read_error
 * @property {number} queued
 * @property {number} on_disk
 * @property {number} written
 * @property {number} dropped
 * @property {number} rejected
 * @property {string | null} last_error
 * @property {{missed: number, last_error: string | null} | null} journal
 *
 * @typedef {{as_of: string, status: string, since: string | null, ledger: Ledger | null}} Health
 * @typedef {{level: "bad" | "warn", what: string, more: string}} Trouble
 */

/** Ask again and again. @param {() => void} [back] the ledger can be read again: what failed meanwhile can be fetched */
export function wireHealth(back) {
  if (!document.getElementById("health")) return; // the log-in page knows nothing yet
  let readable = true;
  void every(async () => {
    /** @type {Health | null} */
    const told = await get("/api/status").catch(() => null);
    show(told);
    const before = readable;
    readable = Boolean(told?.ledger?.readable);
    if (readable && !before) back?.();
  }, PAUSE)();
}

/** @param {Health | null} told null: no answer */
function show(told) {
  const strip = byId("health");
  const trouble = told ? troubleOf(told) : SILENCE;
  const { level = "", what = "", more = "" } = trouble ?? {};
  const line = `${what} ${more}`;
  if (strip.dataset.line !== line) {
    if (what !== strip.dataset.what) announce(what || (strip.dataset.what ? "The ledger is well again." : ""));
    strip.dataset.line = line;
    strip.dataset.what = what;
    strip.dataset.level = level;
    fill(byId("health-words"), icon("error"), h("strong", {}, what), " ", more);
  }
  strip.hidden = !trouble;
  byId("ledger-line").textContent = told?.ledger ? `Ledger: ${lineOf(told.ledger)}` : "";
}

/** @type {Trouble} */
const SILENCE = { level: "bad", what: "Warmline does not answer.", more: "What you see is the last that it told. This page asks again every few seconds." };

/** @param {Health} told @returns {Trouble | null} */
function troubleOf({ as_of, status, since, ledger }) {
  if (!ledger) return { level: "warn", what: "Warmline is starting.", more: "Its ledger is not open yet." };
  const lately = since ? ` since ${instant(since, as_of)}` : "";
  const waits = ledger.queued > 0 && `${counted(ledger.queued, "row")} ${ledger.queued === 1 ? "waits" : "wait"} to be written${disk(ledger)}.`;
  const rest = [waits, lost(ledger), journal(ledger)];
  if (status === "ledger_unreadable") {
    return { level: "bad", what: `The ledger cannot be read${lately}.`, more: sentence(why(ledger.read_error), "Turns are served; what you see is the last that was read.", ...rest) };
  }
  if (status === "ledger_unwritable") {
    return { level: "warn", what: `The ledger cannot be written${lately}.`, more: sentence(why(ledger.last_error), "Turns are served.", ...rest) };
  }
  if (status !== "ok") {
    return { level: "warn", what: `No row has been written${lately}.`, more: sentence("The database is locked, or does not answer. Turns are served.", ...rest) };
  }
  const found = sentence(lost(ledger), journal(ledger));
  return found ? { level: "warn", what: "The ledger is not whole.", more: found } : null;
}

/** @param {Ledger} ledger */
function disk({ queued, on_disk }) {
  if (!on_disk) return "";
  return on_disk === queued ? ", in the journal alone" : `, ${integer(on_disk)} of them in the journal alone`;
}

/** @param {Ledger} ledger */
function lost({ dropped, rejected }) {
  const lost = dropped + rejected;
  if (!lost) return "";
  const causes = [dropped && `${integer(dropped)} found memory and journal full`, rejected && `${integer(rejected)} were refused by the database`];
  return `Since the start ${counted(lost, "turn")} ${lost === 1 ? "was" : "were"} lost: ${causes.filter(Boolean).join(", ")}.`;
}

/** @param {Ledger} ledger */
function journal({ journal }) {
  return journal?.last_error && `The journal cannot be written (${journal.last_error}): rows that wait would not outlive this process.`;
}

/** @param {string | null} error */
function why(error) {
  if (!error) return "";
  const said = error === "no_answer" ? "The database does not answer." : `The database says ${error}.`;
  return `${said} Check that it runs, is not locked and has room.`;
}

/** @param {...(string | false | null | undefined)} parts */
function sentence(...parts) {
  return parts.filter(Boolean).join(" ");
}

/** @param {string} iso @param {string} asOf */
function instant(iso, asOf) {
  const [then, now] = [new Date(iso), new Date(asOf)];
  return sameDay(then, now) ? clock(then) : moment(then);
}

/** @param {Ledger} ledger */
function lineOf({ queued, written }) {
  return `${counted(written, "row")} written since the start, ${queued ? `${integer(queued)} waiting` : "none waiting"}`;
}
