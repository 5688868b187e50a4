// @ts-check
// Client, provider and tokens: who says what of the prompt cache, in words.

import { h, icon } from "../dom.js";
import { GENERATION } from "../drill.js";
import { changed, href } from "../filters.js";
import { compact, counted, integer } from "../format.js";
import { redraw } from "../keyed.js";

/** @typedef {import("../filters.js").View} View */

const CLIENT = /** @type {Record<string, string>} */ ({ same: "sent the same prefix", changed: "changed it", nothing: "says nothing" });
const PROVIDER = /** @type {Record<string, string>} */ ({ same: "found it", changed: "names a change", nothing: "says nothing" });
const TOKENS = /** @type {Record<string, string>} */ ({ read: "read again", missed: "missed", missed_after_pause: "missed after a pause", unknown: "tell nothing" });
const ACCORDS = /** @type {Record<string, [string, string, string]>} */ ({
  agree: ["Agree", "completed", "ok"], contradict: ["Contradict", "refused", "bad"], unknown: ["Cannot be held against each other", "unknown", "unknown"],
});
const LAYERS = /** @type {Record<string, string>} */ ({
  client: "the client’s doing", between: "something between", provider: "the provider’s doing", unknown: "nobody’s, or not known",
});
const LOSSES = ["prefix_changed", "identity_change", "idle", "pinned_floor", "one_off_full", "one_off_partial", "persistent", "unknown"];
const TOKEN_VERDICTS = /** @type {Record<string, string[]>} */ ({
  read: ["hit", "shortfall"], missed: LOSSES, missed_after_pause: ["idle"], unknown: ["!hit", "!shortfall", "!unjudged"],
});
/** What filters know of the client's word; the provider's is none. */
const CLIENT_REASONS = /** @type {Record<string, string[]>} */ ({
  same: ["ok"], changed: ["prefix_mismatch", "non_input_fields_changed"], nothing: ["!ok", "!prefix_mismatch"],
});

/**
 * @param {HTMLElement} host
 * @param {any} told what /api/witnesses answered
 * @param {View} view
 */
export function drawWitnesses(host, told, view) {
  if (!told.turns) return redraw(host, h("p", { class: "card part muted" }, "No turn of this view was judged yet."));
  const link = (/** @type {any} */ cell) => href("/requests", changed(view, {
    ...GENERATION, reason: CLIENT_REASONS[cell.client], verdict: TOKEN_VERDICTS[cell.tokens],
  }));
  redraw(host,
    h("ul", { class: "sums" }, ...Object.entries(told.layer).filter(([name]) => name !== "unknown").map(([name, sum]) => h("li", {},
      `Missed, ${LAYERS[name]}: `, h("strong", {}, integer(sum.turns)), sum.turns > 0 && ` (${compact(sum.missed_tokens)} tokens)`)),
    h("li", {}, "Same prefix and yet cold: ", h("strong", {}, integer(told.stable_but_cold.turns)),
      told.stable_but_cold.turns > 0 && h("span", {}, " – ", h("code", {}, "warmline evidence"), " collects them for the provider’s support"))),
    h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Matrix of the three witnesses" }, h("table", { class: "plain stacks matrix" },
      h("caption", { class: "visually-hidden" }, "Judged turns by what client, provider and tokens say"),
      h("thead", {}, h("tr", {}, ...["The client", "The provider", "The tokens", "Together", "Turns", "Tokens lost"].map((title, at) => h("th", { scope: "col", class: at > 3 && "number" }, title)))),
      h("tbody", {}, ...told.cells.map((/** @type {any} */ cell) => {
        const [word, sign, tone] = ACCORDS[cell.accord];
        return h("tr", {},
          h("td", { "data-label": "The client" }, CLIENT[cell.client]), h("td", { "data-label": "The provider" }, PROVIDER[cell.provider]), h("td", { "data-label": "The tokens" }, TOKENS[cell.tokens]),
          h("th", { scope: "row" }, h("span", { class: `tag ${tone}` }, icon(sign), word), h("span", { class: "second" }, cell.sentence)),
          h("td", { class: "number", "data-label": "Turns" }, integer(cell.turns), h("a", {
            class: "second", href: link(cell), title: "Rows with the reasons and verdicts of this cell; the provider’s word is no filter", "aria-label": `Rows like these: ${cell.sentence}`,
          }, "rows like these")),
          h("td", { class: "number", "data-label": "Tokens lost", title: counted(cell.missed_tokens, "token") }, compact(cell.missed_tokens)));
      })))));
}
