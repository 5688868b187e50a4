// @ts-check
// Settings: what is in force, where it comes from, and what became of each upstream's turns.

import { get } from "../lib/api.js";
import { all, byId, fill, h, typing } from "../lib/dom.js";
import { every } from "../lib/poll.js";
import { sections } from "../lib/sections.js";
import { drawSettings } from "../lib/settings/list.js";
import { drawUpstreams } from "../lib/settings/upstreams.js";
import * as shell from "../lib/shell.js";

const PAUSE = 4000;
const main = byId("main");
const { section } = sections();

async function load() {
  try {
    const told = await get("/api/settings");
    section("upstreams", told.upstreams, (host) => drawUpstreams(host, told.upstreams));
    section("service", told.settings, (host) => drawSettings(host, "Settings of the service", told.settings));
    section("alerts", told.alerts, (host) => drawAlerts(host, told.alerts));
    byId("board").hidden = false;
    shell.showFault(null);
    shell.justUpdated();
  } catch (fault) {
    shell.showFault(fault);
  }
  main.setAttribute("aria-busy", "false");
}

/**
 * @param {HTMLElement} host
 * @param {{rules: string[], receivers: string[]}} alerts
 */
function drawAlerts(host, alerts) {
  /** @param {string[]} names */
  const list = (names) => (names.length ? names.join(", ") : "none");
  fill(host, h("dl", { class: "facts" },
    h("div", {}, h("dt", {}, "Rules"), h("dd", {}, list(alerts.rules))),
    h("div", {}, h("dt", {}, "Receivers"), h("dd", {}, list(alerts.receivers)))));
}

const refresh = every(load, PAUSE);

shell.wireBar();
shell.wireUpdated();
for (const button of all("[data-refresh]")) button.addEventListener("click", () => void refresh());
document.addEventListener("keydown", (event) => {
  if (event.key !== "r" || event.ctrlKey || event.metaKey || event.altKey || typing()) return;
  void refresh();
});
void refresh();
