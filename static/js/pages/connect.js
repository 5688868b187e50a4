// @ts-check
// Connect: how each client is pointed here, and the first request when it arrives.

import { get } from "../lib/api.js";
import { add, all, announce, byId, fill, h, icon } from "../lib/dom.js";
import { Live } from "../lib/live.js";
import * as shell from "../lib/shell.js";
import { snippet } from "../lib/snippet.js";
import { modeTag, statusTag } from "../lib/table.js";
import { ago } from "../lib/time.js";

const GATEWAY = new URLSearchParams({ source: "gateway" }); // rows of sample agents and of logs are no sign
const main = byId("main");
const upstream = byId("upstream", HTMLSelectElement);
/** @type {any} */
let told = null;
let here = false; // a request arrived while this page was open

async function load() {
  try {
    told = await get("/api/connect");
    drawChoices();
    drawSteps();
    byId("board").hidden = false;
    shell.showFault(null);
    live.listen(GATEWAY);
    await before();
  } catch (fault) {
    shell.showFault(fault);
  }
  main.setAttribute("aria-busy", "false");
}

/** The client that the address names, else the first one. */
function chosen() {
  const name = location.hash.slice(1);
  return told.clients.find((/** @type {any} */ one) => one.name === name) ?? told.clients[0];
}

function drawChoices() {
  const host = byId("clients");
  for (const label of all("label", host)) label.remove();
  add(host, ...told.clients.map((/** @type {any} */ one) => {
    const input = h("input", { type: "radio", name: "client", value: one.name, change: () => choose(one.name) });
    input.checked = one === chosen();
    return h("label", {}, input, h("span", {}, one.title));
  }));
  const kept = upstream.value;
  fill(upstream, ...told.upstreams.map((/** @type {any} */ one) => h("option", { value: one.path }, `${one.name} (${one.base_url})`)));
  if (told.upstreams.some((/** @type {any} */ one) => one.path === kept)) upstream.value = kept;
  byId("upstream-field").hidden = told.upstreams.length < 2;
}

/** @param {string} name */
function choose(name) {
  history.replaceState(null, "", `#${name}`);
  drawSteps();
}

function drawSteps() {
  const client = chosen();
  const address = location.origin + upstream.value;
  fill(byId("steps"),
    h("h3", {}, client.title),
    h("p", { class: "address muted" }, "Its address here: ", h("code", {}, address)),
    told.gateway_token && h("div", {},
      h("p", {}, "This server wants a token of its clients (setting ", h("code", {}, "gateway_token"), "). Set it where the client starts; it is never shown here."),
      snippet("in the shell, with the token in place of …", "export WARMLINE_TOKEN=…\n")),
    ...client.snippets.map((/** @type {any} */ one) => snippet(one.place, one.text.replaceAll(told.placeholder, address))),
    h("p", { class: "muted" }, client.note));
}

/** What arrived before this page was opened: it says that something is connected, and is not what is waited for. */
async function before() {
  const query = new URLSearchParams([...GATEWAY, ["limit", "1"]]);
  const { rows, as_of } = await get("/api/requests", query);
  if (here || !rows.length) return;
  const [row] = rows;
  const seconds = (Date.parse(as_of) - Date.parse(row.started_at)) / 1000;
  byId("arrival-title").textContent = "Waiting for the next request";
  fill(byId("arrival-words"), `The latest one came ${ago(seconds)}, from ${row.client ?? "a client that gave no name"}. `, link(row));
}

/** @param {any[]} rows the newest last */
function arrived(rows) {
  const row = rows.at(-1);
  if (!row) return;
  const card = byId("arrival");
  const first = !here;
  here = true;
  card.dataset.state = "here";
  fill(byId("sign"), icon("completed"));
  byId("arrival-title").textContent = "Connected";
  fill(byId("arrival-words"),
    `A request of ${row.client ?? "a client that gave no name"}${row.client_version ? ` ${row.client_version}` : ""} arrived: `,
    modeTag(row.mode), " ", statusTag(row.status), " ", link(row));
  if (first) announce(`Connected: a request of ${row.client ?? "a client"} arrived.`);
}

/** @param {any} row */
function link(row) {
  return h("a", { href: `/requests?${new URLSearchParams({ turn: row.turn_id })}` }, "Show its row");
}

const live = new Live({
  rows: arrived,
  reset: () => void before().catch(() => undefined),
  state: (state, seconds) => {
    byId("live").dataset.state = state;
    byId("live-word").textContent = { connecting: "Connecting", live: "Listening", reconnecting: `Reconnecting, next try in ${seconds} s`, lost: `Connection lost, next try in ${seconds} s`, paused: "Paused", off: "Not listening" }[state];
  },
});

shell.wireBar(() => void load());
upstream.addEventListener("change", drawSteps);
addEventListener("hashchange", () => {
  for (const input of /** @type {HTMLInputElement[]} */ (all("#clients input"))) input.checked = input.value === chosen().name;
  drawSteps();
});
document.querySelector("#fault [data-refresh]")?.addEventListener("click", () => void load());
void load();
