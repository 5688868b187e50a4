// @ts-check
// Messages to receivers, newest first, and one of them in full.

import { get, send } from "../api.js";
import { openPanel } from "../dialog.js";
import { add, announce, byId, copyable, fill, h, icon } from "../dom.js";
import { integer, milliseconds, UNKNOWN } from "../format.js";
import { redraw, selecting } from "../keyed.js";
import { when } from "../server-time.js";
import { moment } from "../time.js";
import { deliveryTag, groupWords, outcomeWords } from "./words.js";

const FOLLOW = 2000; // milliseconds between two looks at an open message
const TOLD = /** @type {Record<string, string>} */ ({ firing: "Firing", resolved: "Resolved", no_data: "No data", test: "Test" });

/**
 * @param {HTMLElement} host
 * @param {any[]} deliveries
 * @param {(delivery: any) => void} open
 * @param {string} state the only one that is asked for; empty: all
 */
export function drawDeliveries(host, deliveries, open, state) {
  if (!deliveries.length) return redraw(host, h("p", { class: "card nothing-yet muted" }, state ? `No delivery is ${state}.` : "Nothing was sent yet."));
  const head = h("tr", {}, ...["When", "Rule", "Told", "Receiver", "State", "Attempts", "Next attempt"].map((title) => h("th", { scope: "col", class: title === "Attempts" && "number" }, title)));
  redraw(host, h("div", { class: "card log" }, h("table", {},
    h("caption", { class: "visually-hidden" }, "Messages to receivers, newest first"),
    h("thead", {}, head), h("tbody", {}, ...deliveries.map((delivery) => row(delivery, open))))));
}

/**
 * @param {any} delivery
 * @param {(delivery: any) => void} open
 */
function row(delivery, open) {
  const labels = groupWords(delivery.group ?? {});
  return h("tr", {},
    h("th", { scope: "row" }, h("button", { type: "button", class: "button link", "data-key": `delivery-${delivery.id}`, click: () => open(delivery) }, when(delivery.created_at), h("span", { class: "visually-hidden" }, `: ${told(delivery)}, ${delivery.rule ?? ""} to ${delivery.receiver}`))),
    cell("Rule", h("span", {}, delivery.rule ?? UNKNOWN), labels && h("span", { class: "second" }, labels)),
    cell("Told", told(delivery)),
    cell("Receiver", delivery.receiver),
    cell("State", deliveryTag(delivery.state), delivery.outcome && delivery.state !== "delivered" && h("span", { class: "second" }, outcomeWords(delivery.outcome))),
    h("td", { class: "number", "data-label": "Attempts" }, integer(delivery.attempts)),
    cell("Next attempt", delivery.next_attempt_at && delivery.state === "queued" ? when(delivery.next_attempt_at) : h("span", { class: "muted" }, UNKNOWN)));
}

/**
 * @param {string} label
 * @param {...import("../dom.js").Child} content
 */
function cell(label, ...content) {
  return h("td", { "data-label": label }, ...content);
}

/** @param {any} delivery */
function told(delivery) {
  const kind = TOLD[delivery.told] ?? delivery.told;
  const word = delivery.repeat > 0 ? `${kind} (reminder ${delivery.repeat})` : kind;
  return delivery.test && delivery.told !== "test" ? `${word} (test)` : word;
}

/**
 * One message: its attempts, and its body as it was sent.
 * @param {any} delivery
 * @param {() => void} changed
 */
export async function openDelivery(delivery, changed) {
  const body = h("div", { class: "delivery" }, h("p", { class: "muted" }, "Loading …"));
  openPanel(`Message to ${delivery.receiver}`, [body], { kind: "wide" });
  let text = "";
  const look = async () => {
    const now = await found(delivery.id);
    if (JSON.stringify(now) === text || selecting(body)) return;
    text = JSON.stringify(now);
    fillDelivery(body, now, async () => {
      changed();
      await look();
      byId("panel-title").focus({ preventScroll: true }); // the button has gone
    });
  };
  // what becomes of it is followed until the panel is closed
  const follow = () => setTimeout(async () => {
    if (!body.isConnected) return;
    if (!document.hidden) await look().catch(() => undefined);
    follow();
  }, FOLLOW);
  try {
    await look();
    follow();
  } catch (fault) {
    fill(body, h("p", { class: "field-error", role: "alert" }, /** @type {Error} */ (fault).message));
  }
}

/** @param {string} id */
async function found(id) {
  const answer = await get(`/api/alerts/deliveries/${encodeURIComponent(id)}`);
  return answer.delivery ?? answer;
}

/**
 * @param {HTMLElement} host
 * @param {any} delivery
 * @param {() => Promise<void>} changed
 */
function fillDelivery(host, delivery, changed) {
  const over = delivery.state === "delivered" || delivery.state === "dead";
  const fault = h("p", { class: "field-error", role: "alert" });
  const replay = async () => {
    try {
      await send("POST", `/api/alerts/deliveries/${encodeURIComponent(delivery.id)}/replay`);
      announce("It is sent again.");
      await changed();
    } catch (told) {
      fault.textContent = /** @type {Error} */ (told).message;
    }
  };
  const facts = h("dl", { class: "facts" });
  /** @type {(name: string, ...value: import("../dom.js").Child[]) => void} */
  const fact = (name, ...value) => facts.append(h("div", {}, h("dt", {}, name), h("dd", {}, ...value)));
  fact("rule", delivery.rule ?? UNKNOWN);
  if (groupWords(delivery.group ?? {})) fact("group", groupWords(delivery.group));
  fact("told", told(delivery));
  fact("state", deliveryTag(delivery.state));
  fact("attempts", integer(delivery.attempts));
  fact("written", moment(delivery.created_at));
  if (delivery.settled_at) fact("settled", moment(delivery.settled_at));
  if (delivery.next_attempt_at && !over) fact("next attempt", when(delivery.next_attempt_at));
  if (delivery.outcome) fact("outcome", outcomeWords(delivery.outcome));
  fact("webhook-id", copyable(delivery.id, "webhook-id"));
  redraw(host, facts, over && h("div", { class: "actions" }, h("button", { type: "button", class: "button", "data-key": "replay", click: () => void replay() }, icon("refresh"), "Replay")), fault,
    ...message(delivery.body),
    h("h3", {}, "Attempts"), attempts(delivery.attempt_log ?? []),
    h("h3", {}, "Body"), h("pre", { class: "body", tabindex: 0, "data-key": "message-body", role: "region", "aria-label": "Body of the message" }, JSON.stringify(delivery.body, null, 2)));
}

/** What it says to people, whatever its kind. @param {any} body @returns {HTMLElement[]} */
function message(body) {
  const title = body?.data?.title ?? body?.commonAnnotations?.summary;
  const text = body?.data?.text ?? body?.commonAnnotations?.description ?? body?.text;
  if (typeof text !== "string") return [];
  return [h("h3", {}, "What it says"), h("p", { class: "said" }, title && h("strong", {}, title), title && "\n", text)];
}

/** @param {any[]} log */
function attempts(log) {
  if (!log.length) return h("p", { class: "muted" }, "No attempt yet.");
  return h("ol", { class: "attempts" }, ...log.map((one) => {
    const item = h("li", {}, h("p", {},
      h("strong", {}, `Attempt ${integer(one.attempt)}`), ` ${moment(one.started_at)}: `,
      (one.outcome && outcomeWords(one.outcome)) ?? (one.status ? `HTTP ${one.status}` : "no answer"), one.duration_ms !== null && `, ${milliseconds(one.duration_ms)}`));
    if (one.response) add(item, h("pre", { tabindex: 0, "data-key": `answer-${one.attempt}`, role: "region", "aria-label": `Answer to attempt ${one.attempt}, its first kilobyte` }, one.response));
    return item;
  }));
}
