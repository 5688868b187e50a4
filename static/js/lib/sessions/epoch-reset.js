// @ts-check
// The button that resets the epoch of a session, and what it says before and after.

import { send } from "../api.js";
import { confirmed } from "../dialog.js";
import { announce, byId } from "../dom.js";
import { counted } from "../format.js";
import * as shell from "../shell.js";

const LIVE = new Set(["gateway", "sample"]); // whose turns go through this gateway

/**
 * @param {string} api of the session
 * @param {() => number | null} last how many input tokens its last turn had
 */
export function wireReset(api, last) {
  byId("epoch-reset").addEventListener("click", async () => {
    const tokens = last();
    const whole = tokens === null ? "" : `, about ${counted(tokens, "token")} by its last turn,`;
    const cost = `Its chains end, and its next turn goes to the provider in full: all of its history${whole} is sent again. What the provider has cached may still be read; nothing of the conversation is lost. Turns after that are continued as before.`;
    if (!(await confirmed("Reset the epoch of this session?", cost, "Reset the epoch"))) return;
    try {
      const told = await send("POST", `${api}/epoch-reset`);
      shell.showRefusal(null);
      said(`${told.under_way ? "Reset. The turn under way ends as it began; the one after it" : `Reset: ${counted(told.chains, "chain")} ended. Its next turn`} goes in full.`);
    } catch (fault) {
      shell.showRefusal(fault);
      said("");
    }
  });
}

/** Whether there is something to reset here. @param {any} session */
export function offerReset(session) {
  byId("epoch-reset").hidden = !LIVE.has(session.source);
}

/** @param {string} words */
function said(words) {
  byId("reset-said").textContent = words;
  if (words) announce(words);
}
