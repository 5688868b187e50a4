// @ts-check
// What every page has around its content: theme, zone, navigation that keeps the view, the live state, "updated …".

import { logout } from "./api.js";
import { all, announce, byId, fill, icon } from "./dom.js";
import { href } from "./filters.js";
import { wireHealth } from "./health.js";
import { store, stored } from "./stored.js";
import { chooseTheme, theme } from "./theme.js";
import { ago, chooseZone, LOCAL, zone } from "./time.js";

/** @typedef {import("./theme.js").Theme} Theme */

const NEXT = /** @type {Record<Theme, Theme>} */ ({ system: "light", light: "dark", dark: "system" });
const THEME_ICON = /** @type {Record<Theme, string>} */ ({ system: "system", light: "sun", dark: "moon" });

/**
 * Theme switch, log-out and the state of the ledger; needs nothing from the page.
 * @param {() => void} [back] called when the ledger can be read again
 */
export function wireBar(back) {
  const button = byId("theme", HTMLButtonElement);
  const show = () => {
    const label = `Theme: ${theme()}. Switch to ${NEXT[theme()]}`;
    fill(button, icon(THEME_ICON[theme()]));
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  button.addEventListener("click", () => {
    chooseTheme(NEXT[theme()]);
    show();
    announce(`Theme: ${theme()}.`);
  });
  show();
  document.getElementById("logout")?.addEventListener("click", () => void logout());
  wireHealth(back);
}

/**
 * The UTC/local switch. A zone that came with the link shows as neither until one is chosen.
 * @param {() => void} changed
 */
export function wireZone(changed) {
  const inputs = /** @type {HTMLInputElement[]} */ (all("#zone input"));
  const show = () => {
    for (const input of inputs) input.checked = zone() === (input.value === "UTC" ? "UTC" : LOCAL);
    byId("zone").title = `Times are shown in ${zone()}. Exports are always UTC.`;
  };
  for (const input of inputs) {
    input.addEventListener("change", () => {
      chooseZone(input.value === "UTC" ? "UTC" : "local");
      show();
      changed();
    });
  }
  show();
}

/**
 * Links of the navigation take the view along.
 * @param {import("./filters.js").View} view
 */
export function keepView(view) {
  for (const link of all(".nav a[data-path]")) {
    link.setAttribute("href", href(link.dataset.path ?? "/", { ...view, turn: null }));
  }
}

const WORDS = { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting", lost: "Connection lost", paused: "Paused", off: "Not live" };

/**
 * The live state in words, with its switch.
 * @param {import("./live.js").Live} live
 */
function wireLive(live) {
  const button = byId("live-switch", HTMLButtonElement);
  button.addEventListener("click", () => (live.paused ? live.resume() : live.pause()));
}

/**
 * @param {import("./live.js").State} state
 * @param {number} [seconds] until the next attempt
 */
export function showLive(state, seconds) {
  const pill = byId("live");
  const before = pill.dataset.state;
  pill.dataset.state = state;
  byId("live-word").textContent = seconds ? `${WORDS[state]}, next try in ${seconds} s` : WORDS[state];
  const button = byId("live-switch", HTMLButtonElement);
  button.textContent = state === "paused" ? "Resume" : "Pause";
  button.setAttribute("aria-label", state === "paused" ? "Resume live updates" : "Pause live updates");
  if (before === "live" && state !== "live" && state !== "connecting") announce(`Live updates: ${WORDS[state]}.`);
}

/**
 * All of this for a page of the ledger: its bar, its zone, its live updates and its button to look again.
 * @param {import("./toolbar.js").Toolbar} toolbar
 * @param {import("./live.js").Live} live
 * @param {() => void} again fetches the view that is shown
 * @param {() => void} anew draws it from nothing, in another zone
 * @param {() => void} [unasked] fetches it while somebody may be reading: nothing is to move
 */
export function wireView(toolbar, live, again, anew, unasked = again) {
  wireBar(again);
  wireZone(() => {
    toolbar.rezone();
    anew();
  });
  wireLive(live);
  wireUpdated();
  wireAuto(unasked);
  for (const button of all("[data-refresh]")) button.addEventListener("click", again);
}

/**
 * Fetch again every so often, on all pages alike, but not while nobody looks, a row is open or text is selected.
 * @param {() => void} again
 */
function wireAuto(again) {
  const choice = byId("auto", HTMLSelectElement);
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  const due = () => {
    if (!document.hidden && !document.querySelector("dialog[open]") && getSelection()?.isCollapsed !== false) again();
  };
  const start = () => {
    clearInterval(timer);
    if (choice.value !== "0") timer = setInterval(due, 1000 * Number(choice.value));
  };
  const kept = stored("auto");
  if ([...choice.options].some(({ value }) => value === kept)) choice.value = kept ?? "0";
  start();
  choice.addEventListener("change", () => {
    store("auto", choice.value === "0" ? null : choice.value);
    start();
  });
}

let updated = 0;

/** Start the clock of "updated 12 s ago". */
export function wireUpdated() {
  const show = () => {
    if (updated && !document.hidden) byId("updated").textContent = `updated ${ago((Date.now() - updated) / 1000)}`;
  };
  setInterval(show, 1000);
  document.addEventListener("visibilitychange", show);
}

/** What is on the page is now this fresh. */
export function justUpdated() {
  updated = Date.now();
  byId("updated").textContent = `updated ${ago(0)}`;
}

/**
 * Show or take back a fault. What was shown before stays on the page.
 * @param {unknown} fault null when all is well
 */
export function showFault(fault) {
  const notice = byId("fault");
  notice.hidden = !fault;
  if (!fault) return;
  const { message, hint, code, request } = /** @type {{message: string, hint?: string | null, code?: string, request?: string | null}} */ (fault);
  byId("fault-message").textContent = message;
  byId("fault-hint").textContent = [hint, code ? `(${[code, request && `request ${request}`].filter(Boolean).join(", ")})` : ""].filter(Boolean).join(" ");
}

/**
 * What could not be done; unlike what could not be fetched it stays to be read until the next try.
 * @param {unknown} fault null when all is well
 */
export function showRefusal(fault) {
  byId("refusal").hidden = !fault;
  if (!fault) return;
  const { message, hint } = /** @type {{message: string, hint?: string | null}} */ (fault);
  byId("refusal-message").textContent = message;
  byId("refusal-hint").textContent = hint ?? "";
}

export function wireRefusal() {
  byId("refusal-close").addEventListener("click", () => showRefusal(null));
}
