// @ts-check
// Alerts: what fires, the rules, who is told, and what was told. Asked anew every few seconds.

import { drawDeliveries, openDelivery } from "../lib/alerts/deliveries.js";
import { drawFiring, firing } from "../lib/alerts/firing.js";
import { openRuleForm, openRulePreview, PRESET } from "../lib/alerts/form.js";
import { drawHistory, drawReceived } from "../lib/alerts/history.js";
import { openReceiverForm, openSecretForm } from "../lib/alerts/receiver-form.js";
import { drawReceivers } from "../lib/alerts/receivers.js";
import { drawRules } from "../lib/alerts/rules.js";
import { drawSilences, GROUPINGS, openSilenceForm } from "../lib/alerts/silences.js";
import { openTestForm } from "../lib/alerts/test.js";
import { byUrgency, groupWords, stateWord } from "../lib/alerts/words.js";
import { get, send } from "../lib/api.js";
import { confirmed, wirePanel } from "../lib/dialog.js";
import { all, announce, byId, typing } from "../lib/dom.js";
import { focusKey } from "../lib/keyed.js";
import { every } from "../lib/poll.js";
import { sections } from "../lib/sections.js";
import { serverSays, wireAges } from "../lib/server-time.js";
import * as shell from "../lib/shell.js";

const PAUSE = 4000;
const PAGE = 20;
const SAID = 5; // changes that are read out; of more, their number
const MOST = 200; // more is for the API
const main = byId("main");
const wanted = byId("delivery-state", HTMLSelectElement);
const limits = { deliveries: PAGE, events: PAGE };
const hasReceived = document.body.dataset.received !== undefined; // only in the demo
/** @type {any[]} */ let rules = [];
/** @type {any[]} */ let receivers = [];
/** @type {string[]} */ let privateHosts = [];
/** @type {Map<string, import("../lib/alerts/words.js").Signal>} */ let signals = new Map();
/** @type {Map<string, string> | null} */ let states = null;
let followed = false; // the link that led here
const { section, forget } = sections();

async function load() {
  const state = wanted.value; // another may be chosen before the answer is here
  try {
    const [ruled, received, sent, happened, silent, arrived] = await Promise.all([
      get("/api/alerts/rules"), get("/api/alerts/receivers"),
      get("/api/alerts/deliveries", new URLSearchParams({ limit: String(limits.deliveries), ...(state && { state }) })),
      get("/api/alerts/events", new URLSearchParams({ limit: String(limits.events) })),
      get("/api/alerts/silences"), hasReceived ? get("/api/alerts/received") : null,
    ]);
    serverSays(ruled.as_of);
    signals = new Map(ruled.signals.map((/** @type {any} */ signal) => [signal.name, signal]));
    // a rule that this version cannot read may lack fields: it is shown with what is wrong
    rules = ruled.rules.map((/** @type {any} */ rule) => ({ ...rule, groups: rule.groups.toSorted(byUrgency), definition: { ...PRESET, name: rule.id, ...rule.definition } }));
    receivers = received.receivers;
    privateHosts = received.private_hosts ?? [];
    byId("board").hidden = false;
    section("firing", rules, (host) => drawFiring(host, rules, signals, { silence, start: () => newRule({ ...PRESET, name: "Mismatch rate" }) }));
    section("rules", rules, (host) => drawRules(host, rules, signals, ruleActions));
    section("receivers", receivers, (host) => drawReceivers(host, receivers, receiverActions));
    section("deliveries", [sent.deliveries, state], (host) => drawDeliveries(host, sent.deliveries, (one) => void openDelivery(one, () => void refresh()), state));
    section("history", happened.events, (host) => drawHistory(host, happened.events));
    section("silences", [silent.silences, rules.map((rule) => [rule.id, rule.definition.name])], (host) => drawSilences(host, silent.silences, names(), (one) => void endSilence(one)));
    byId("received-section").hidden = !arrived;
    if (arrived) section("received", arrived.received, (host) => drawReceived(host, arrived.received));
    older("deliveries", sent.next_cursor, limits.deliveries);
    older("history", happened.next_cursor, limits.events);
    tellChanges();
    if (!followed) {
      followed = true;
      followLink();
    }
    shell.showFault(null);
    shell.justUpdated();
  } catch (fault) {
    shell.showFault(fault);
  }
  main.setAttribute("aria-busy", "false");
}

/**
 * Offer what is older than what is shown.
 * @param {string} what
 * @param {string | null} more
 * @param {number} limit
 */
function older(what, more, limit) {
  byId(`more-${what}`).hidden = !more || limit >= MOST;
  byId(`rest-${what}`).hidden = !more || limit < MOST;
}

/** Say which alerts changed their state, and keep the count of those that fire in the title. */
function tellChanges() {
  /** @type {Map<string, string>} */
  const now = new Map();
  const said = [];
  for (const rule of rules) {
    for (const group of rule.groups) {
      const key = `${rule.id} ${group.key}`;
      now.set(key, group.state);
      const before = states?.get(key);
      const labels = groupWords(group.labels);
      if (states && before !== group.state && (before !== undefined || group.state === "firing")) {
        said.push(`${rule.definition.name}${labels && `, ${labels}`}: ${stateWord(group.state)}.`);
      }
    }
  }
  states = now;
  const rest = said.length - SAID;
  if (said.length) announce([...said.slice(0, SAID), rest > 0 && `And ${rest} more.`].filter(Boolean).join(" "));
  const count = firing(rules).length;
  document.title = `${count ? `(${count} firing) ` : ""}Alerts · Warmline`;
}

function names() {
  return new Map(rules.map((rule) => [rule.id, rule.definition.name]));
}

const refresh = every(load, PAUSE);

/** Do something that changes the server's state, show what is wrong with it, and look anew. @param {() => Promise<unknown>} work */
async function change(work) {
  shell.showRefusal(null);
  try {
    await work();
  } catch (fault) {
    const lost = /** @type {{code?: string}} */ (fault).code === "unreachable";
    refuse(lost ? { message: "Warmline did not answer.", hint: "What you asked for may not have been done: look once it answers again." } : fault);
  }
  await refresh();
}

/** @param {unknown} fault */
function refuse(fault) {
  shell.showRefusal(fault);
  byId("refusal").scrollIntoView({ block: "center" });
}

// --- rules ------------------------------------------------------------------------------------

/** @param {any} given */
function newRule(given) {
  const names = receivers.map((receiver) => receiver.name);
  // where there is only one, it is the one that is meant
  openRuleForm(null, { ...given, receivers: names.length === 1 ? names : [] }, signals, names, (saved) => void refresh().then(() => showRule(saved.id)));
}

/** @param {any} rule */
const rulePath = (rule) => `/api/alerts/rules/${encodeURIComponent(rule.id)}`;

const ruleActions = {
  edit: (/** @type {any} */ rule) => openRuleForm(rule, rule.definition, signals, receivers.map((receiver) => receiver.name), () => void refresh()),
  preview: (/** @type {any} */ rule) => openRulePreview(rule, signals.get(rule.definition.signal)),
  test: (/** @type {any} */ rule) => openTestForm(rule, receivers.map((receiver) => receiver.name), () => void refresh()),
  pause: (/** @type {any} */ rule) => void change(async () => {
    const enabled = !rule.definition.enabled;
    const fires = rule.state === "firing" || rule.state === "recovering";
    if (!enabled && fires && !(await confirmed(`Pause ${rule.definition.name}?`, "It fires now: its alerts end, and its receivers are told that they are resolved.", "Pause rule"))) return;
    await send("PUT", rulePath(rule), { ...rule.definition, enabled, version: rule.version });
    announce(`${enabled ? "Resumed" : "Paused"} ${rule.definition.name}.`);
  }),
  remove: (/** @type {any} */ rule) => void change(async () => {
    if (!(await confirmed(`Delete ${rule.definition.name}?`, "A rule that fires is resolved first, and its receivers are told. Its history stays.", "Delete rule"))) return;
    await send("DELETE", rulePath(rule));
    announce(`Deleted ${rule.definition.name}.`);
  }),
  silence,
};

/**
 * Bring a rule into sight, with the keyboard on it; whether there is one.
 * @param {string} id
 */
function showRule(id) {
  const found = focusKey(`rule-${id}`);
  if (found) document.getElementById(`rule-${id}`)?.scrollIntoView({ block: "center" });
  return found;
}

// --- receivers --------------------------------------------------------------------------------

/** @param {any} receiver */
const receiverPath = (receiver) => `/api/alerts/receivers/${encodeURIComponent(receiver.id)}`;

const receiverActions = {
  edit: (/** @type {any} */ receiver) => openReceiverForm(receiver, privateHosts, () => void refresh()),
  rotate: (/** @type {any} */ receiver) => openSecretForm(receiver, () => void refresh()),
  test: (/** @type {any} */ receiver) => void change(async () => {
    await send("POST", `${receiverPath(receiver)}/test`);
    announce(`A test to ${receiver.name} is on its way; its delivery is in the list.`);
  }),
  enable: (/** @type {any} */ receiver) => void change(async () => {
    await send("POST", `${receiverPath(receiver)}/enable`);
    announce(`Enabled ${receiver.name}.`);
  }),
  remove: (/** @type {any} */ receiver) => void change(async () => {
    const named = rules.some((rule) => rule.definition.receivers.includes(receiver.name)); // the server refuses, and says which rules
    if (!named && !(await confirmed(`Delete ${receiver.name}?`, "Nothing is sent to it any more, not even that an alert is over. Its address and secrets are erased.", "Delete receiver"))) return;
    await send("DELETE", receiverPath(receiver));
    announce(`Deleted ${receiver.name}.`);
  }),
};

// --- silences ---------------------------------------------------------------------------------

/**
 * @param {any} rule null for all rules
 * @param {Record<string, string>} labels
 */
function silence(rule, labels) {
  openSilenceForm(rules, { rule: rule?.id ?? "", labels }, () => void refresh());
}

/** @param {any} one */
async function endSilence(one) {
  await change(async () => {
    await send("DELETE", `/api/alerts/silences/${encodeURIComponent(one.id)}`);
    announce("The silence ended.");
  });
}

const GONE = { message: "The rule of this link is gone.", hint: "It was deleted, or the link is of another server. What it did stands under History." };

/** What a link asks for: a rule, or a silence of some of its groups. */
function followLink() {
  const query = new URLSearchParams(location.search);
  const silenced = query.get("silence");
  const rule = query.get("rule");
  if (rule && !showRule(rule)) refuse(GONE);
  if (silenced === null) return;
  // never in its place a silence of all rules
  if (!rules.some((one) => one.id === silenced)) return refuse(GONE);
  const labels = Object.fromEntries(GROUPINGS.flatMap((name) => (query.get(name) ? [[name, query.get(name) ?? ""]] : [])));
  silence(rules.find((one) => one.id === silenced) ?? null, labels);
}

shell.wireBar();
shell.wireZone(() => {
  forget();
  void refresh();
});
shell.wireUpdated();
wirePanel();
shell.wireRefusal();
wireAges();
for (const button of all("[data-refresh]")) button.addEventListener("click", () => void refresh());
byId("new-rule").addEventListener("click", () => newRule({ ...PRESET }));
byId("new-receiver").addEventListener("click", () => openReceiverForm(null, privateHosts, () => void refresh()));
byId("new-silence").addEventListener("click", () => silence(null, {}));
wanted.addEventListener("change", () => {
  limits.deliveries = PAGE;
  void refresh();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "r" || event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || typing()) return;
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  void refresh();
});
byId("more-deliveries").addEventListener("click", () => {
  limits.deliveries += PAGE;
  void refresh();
});
byId("more-history").addEventListener("click", () => {
  limits.events += PAGE;
  void refresh();
});
void refresh();
