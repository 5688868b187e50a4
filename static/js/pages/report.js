// @ts-check
// The page of `warmline report`: draws the charts that it holds. All else is there without script.

import { Chart, plotly } from "../lib/charts.js";
import { all, byId } from "../lib/dom.js";
import { linkZone } from "../lib/time.js";

const nothing = () => undefined;

linkZone(document.documentElement.dataset.zone ?? null);
const payloads = JSON.parse(byId("payloads").textContent ?? "{}");
const library = await plotly();
for (const figure of all("figure[data-slug]")) {
  const plot = figure.querySelector(".plot");
  if (!(plot instanceof HTMLElement)) continue;
  await new Chart(plot, { pick: nothing, zoom: nothing }).draw(library, payloads[figure.dataset.slug ?? ""], "report");
}
