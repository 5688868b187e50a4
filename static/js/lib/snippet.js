// @ts-check
// A piece of settings or code that copies itself.

import { announce, copyText, fill, h, icon } from "./dom.js";

/**
 * @param {string} place where it goes
 * @param {string} text
 */
export function snippet(place, text) {
  const button = h("button", { type: "button", class: "button small", "aria-label": `Copy ${place}` }, icon("copy"), "Copy");
  button.addEventListener("click", async () => {
    const done = await copyText(text);
    fill(button, icon(done ? "check" : "copy"), done ? "Copied" : "Select and copy");
    announce(done ? "Copied." : "The browser did not allow copying.");
    setTimeout(() => fill(button, icon("copy"), "Copy"), 1500);
  });
  return h("figure", { class: "snippet" },
    h("figcaption", {}, h("span", {}, place), button),
    h("pre", { tabindex: 0, "aria-label": place, role: "group" }, h("code", {}, text)));
}
